"""Where a classifier of two features draws its line."""

from sklearn.datasets import make_moons

import kernsel

X, y = make_moons(200, noise=0.25, random_state=0)
selection = kernsel.select(X, y, learner="svm", kernel="gaussian")
kernsel.plot(selection, "boundary", "boundary.png")
