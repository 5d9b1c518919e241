"""Whether probabilities hold on rows that no fit has seen."""

from sklearn.datasets import make_moons

import kernsel

X, y = make_moons(500, noise=0.6, random_state=0)
selection = kernsel.select(X, y, kernel="gaussian")
kernsel.plot(selection, "calibration", "probabilities.png")
