"""Which rows move the kernel matrix: for a kernel of distances those amid others, for one of products the long ones."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

import kernsel

X = load_wine().data[:, [0, 9]]
figure, panels = plt.subplots(1, 2, sharey=True, figsize=(9, 4), layout="constrained")
for axes, kernel in zip(panels, ["gaussian(tau=0.5)", "linear"], strict=True):
    moved = kernsel.stability(X, kernel).perturbations
    points = axes.scatter(*X.T, c=moved, s=18)
    figure.colorbar(points, ax=axes, label="norm of K less K without the row")
    axes.set(title=kernel, xlabel="alcohol")
panels[0].set_ylabel("colour intensity")
figure.savefig("influential_rows.png", dpi=150)
