"""Intervals that are as wide as the noise is, here and there."""

import matplotlib.pyplot as plt
import numpy as np

import kernsel

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 300))
y = np.sin(x) + (0.05 + 0.06 * x) * rng.normal(size=300)
new = np.linspace(0, 10, 400)

figure, panels = plt.subplots(1, 2, sharey=True, figsize=(9, 4), layout="constrained")
for axes, kind in zip(panels, ["even", "local"], strict=True):
    model = kernsel.select(x[:, None], y, kernel="gaussian", intervals=kind).model
    low, high = model.predict_interval(new[:, None], 0.9).T
    axes.plot(x, y, ".", color="grey", markersize=3)
    axes.fill_between(new, low, high, alpha=0.3, label="90 % of new rows")
    axes.plot(new, model.predict(new[:, None]), label="prediction")
    axes.set(title=f'intervals="{kind}"', xlabel="x")
panels[0].set_ylabel("y")
panels[0].legend()
figure.savefig("intervals.png", dpi=150)
