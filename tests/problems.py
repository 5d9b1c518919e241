"""Random problems for the numerics, small enough for brute force."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import twins.heldout


@dataclass(frozen=True)
class Problem:
    """A Gram matrix, features of it, labels, real targets (two rows), weights, and the bounds of unequal folds."""

    K: np.ndarray
    Z: np.ndarray
    y: np.ndarray
    Y: np.ndarray
    starts: np.ndarray
    lam: float
    s: np.ndarray

    @property
    def n(self):
        return len(self.y)

    def features(self, bias=0):
        """Features, with a column of ones for a bias."""
        return np.ascontiguousarray(np.column_stack([self.Z, np.ones((self.n, bias))]))


def make(seed, n=30, d=2, tau=1.0, starts=None, lam=0.01, grid=False, flips=0.2, weighted=False):
    """Points in d dimensions, a Gaussian kernel, noisy labels; ``grid`` rounds the points, so that some coincide."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X = np.round(X) if grid else X
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * tau))
    y = np.where((X[:, 0] > 0) ^ (rng.random(n) < flips), 1.0, -1.0)
    Y = np.stack([np.sin(X[:, 0]) + 0.3 * rng.normal(size=n), y])
    starts = even(n, 5) if starts is None else np.array(starts)
    s = rng.exponential(size=n) + 0.05 if weighted else np.ones(n)
    return Problem(K, np.ascontiguousarray(twins.heldout.features(K)), y, Y, starts, lam, s)


def even(n, t):
    """The bounds of t folds that differ by at most one row."""
    return np.arange(t + 1) * n // t


def starts_of(sizes):
    return np.r_[0, np.cumsum(sizes)]


@st.composite
def problems(draw, largest=9, lams=(-16, 3), widths=(-6, 8), weighted=False):
    """Unequal folds (from single rows to most rows), coinciding points, narrow to nearly flat kernels."""
    sizes = draw(st.lists(st.integers(1, largest), min_size=2, max_size=6))
    return make(
        draw(st.integers(0, 2**32 - 1)),
        n=sum(sizes),
        d=draw(st.integers(1, 3)),
        tau=2.0 ** draw(st.integers(*widths)),
        starts=starts_of(sizes),
        lam=2.0 ** draw(st.integers(*lams)),
        grid=draw(st.booleans()),
        flips=draw(st.sampled_from([0.0, 0.2, 0.5])),
        weighted=weighted and draw(st.booleans()),
    )
