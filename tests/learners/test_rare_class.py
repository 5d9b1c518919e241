"""Exact held-out losses of rare classes that are next to separable, at small lambda: where Newton's method goes far."""

import numpy as np
import pytest

import kernsel
import twins.heldout
from twins import losses

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")


@pytest.mark.parametrize(("n", "tau"), [(400, 23.32), (400, 124.19)])
def test_verified_losses_are_those_of_plain_refits(n, tau):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] > np.quantile(X[:, 0], 0.97)).astype(int)
    fold, lam, sign = np.arange(n) % 5, 1.09e-7, 2.0 * y - 1.0
    found = kernsel.select(
        X, y, learner="klr", kernel="gaussian", grid={"tau": [tau], "lambda": [lam]}, folds=fold, extend=False
    )
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    K = np.exp(-((Z[:, None] - Z[None]) ** 2).sum(axis=2) / (2 * tau))
    features = np.column_stack([twins.heldout.features(K), np.ones(n)])
    F = np.empty(n)
    for each in range(5):
        kept = fold != each
        w = twins.heldout.fit(losses.logistic, features[kept], sign[kept], np.ones(kept.sum()), lam, 1)
        F[~kept] = features[~kept] @ w
    expected = np.logaddexp(0, -sign * F).mean()
    assert found.best.verified == pytest.approx(expected, rel=1e-4)
