"""The scores of all candidates, and those that can't be told from the lowest."""

from sklearn.datasets import load_diabetes

import kernsel

X, y = load_diabetes(return_X_y=True, as_frame=True)
selection = kernsel.select(X, y, kernel=["gaussian", "exponential"])
print(selection.summary())
kernsel.plot(selection, "criterion", "first_selection.png")
