"""A function with a jump wants a rough kernel, a smooth one a smooth kernel."""

import matplotlib.pyplot as plt
import numpy as np

import kernsel

KERNELS = ["laplacian", "matern32", "matern52", "gaussian"]
rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, (200, 1))
targets = {"a sine": np.sin(2 * x[:, 0]), "a jump": np.sign(x[:, 0])}

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for name, clean in targets.items():
    y = clean + 0.1 * rng.normal(size=200)
    errors = [kernsel.select(x, y, kernel=kernel).best.error for kernel in KERNELS]
    axes.plot(KERNELS, errors, "o-", label=name)
axes.axhline(0.1, color="grey", linestyle=":", label="the noise")
axes.set(xlabel="kernel, from rough to smooth", ylabel="held-out RMSE", ylim=(0, None))
axes.legend()
figure.savefig("rough_or_smooth.png", dpi=150)
