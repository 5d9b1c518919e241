"""Rows that follow each other are alike: folds at random are too hopeful, blocks with a gap are not."""

import matplotlib.pyplot as plt
import numpy as np

import kernsel

rng = np.random.default_rng(0)
t = np.arange(400)
wander = np.cumsum(rng.normal(size=400))  # what no feature explains
x = np.sin(t / 9) + 0.3 * rng.normal(size=400)
y = x + 0.4 * wander / wander.std() + 0.1 * rng.normal(size=400)
table = np.column_stack([x, t])
ways = {
    "10 at random": {},
    "10 blocks": {"folds": "blocks:10"},
    "10 blocks,\n20 rows purged": {"folds": "blocks:10", "purge": 20},
    "the future\n(time:5)": {"folds": "time:5"},
}
found = [kernsel.select(table, y, kernel="gaussian", **way).best for way in ways.values()]

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.bar(list(ways), [each.error for each in found], yerr=[each.error_se for each in found], capsize=4)
axes.set(ylabel="held-out RMSE of the choice, with its standard error", title="folds")
figure.savefig("folds_in_time.png", dpi=150)
