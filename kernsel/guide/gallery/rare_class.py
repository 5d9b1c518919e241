"""A rare class: precision against recall on held-out rows, and the threshold that is best for F1."""

from sklearn.datasets import make_classification

import kernsel

X, y = make_classification(500, 6, n_informative=4, weights=[0.9], class_sep=1.2, random_state=0)
selection = kernsel.select(X, y, kernel="gaussian", threshold_for="f1")
print(selection.model.threshold.describe())
kernsel.plot(selection, "precision-recall", "rare_class.png")
