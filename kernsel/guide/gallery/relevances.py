"""Which features matter: of these ten the first three bend the target, two more tilt it, and five say nothing."""

from sklearn.datasets import make_friedman1

import kernsel

X, y = make_friedman1(300, n_features=10, noise=1.0, random_state=0)
selection = kernsel.select(X, y, kernel="ard")
kernsel.plot(selection, "relevances", "relevances.png")
