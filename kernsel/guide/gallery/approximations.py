"""The Bouligand influence function: the higher its order, the nearer to exact cross-validation."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import kernsel

X, y = load_diabetes(return_X_y=True)
given = {"learner": "krr", "kernel": "gaussian(tau=4)", "grid": {"lambda": np.logspace(-6, 0, 25)}, "extend": False}
given |= {"choose": "minimum", "verify": 0}

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for criterion, look in {"cv": "k-", "bif(order=1)": "C0--", "bif(order=3)": "C1--", "bif(order=10)": "C2-."}.items():
    pure = criterion != "cv"  # no step is replaced by a better one
    table = kernsel.select(X, y, criterion=criterion, pure=pure, **given).table.sort_values("lambda")
    axes.loglog(table["lambda"], table["score"], look, label=criterion)
axes.set(xlabel="lambda", ylabel="mean held-out square loss", ylim=(0.3, 3))
axes.legend()
figure.savefig("approximations.png", dpi=150)
