"""Named tolerances with their reasons. Errors of outputs are absolute: targets and outputs are of the size 1."""

import numpy as np

from kernsel.testing.base import DIFFERENCES as DIFFERENCES
from kernsel.testing.base import EPS as EPS
from kernsel.testing.base import FITTED as FITTED

RHO = 0.12
"""Relative: few steps are spent on rho, for it is compared with thresholds and its own digits don't count."""

RHO_FLOOR = 0.02
"""Absolute: a series with so small a ratio is as good as exact."""

PENALTY = 1e-9
"""Relative, on J: a solver stops where the next step promises 1e-13 of J; SciPy's own stops are near 1e-10."""

SPECTRA = 1e-10
"""Relative, on sums of the changes of all eigenvalues: each is off by EPS times the largest, up to n of the sum."""

SUMS = 1e-11
"""Means of some hundred numbers of the size 1, and differences of such means times their number."""

QUADRATURE = 1e-12
"""Eigenvalues up to 1 of an operator on Gauss-Hermite nodes, so many that the rule is exact to rounding."""

SCAN = 1e-12
"""Relative: sums of at most some hundred squares in another order, and eigenvalues of matrices of that size."""

SLACK = 1 + 1e-9
"""A factor on bounds that are attained: what is bounded is itself computed, by solves of condition up to 1e6."""

LOW_RANK = 1e-3
"""Relative, on sums over a spectrum of which 25 of 30 eigenvalues are kept, at a width where the others are small."""

ENCLOSED = 1e-7
"""Relative, on exact outputs that intervals are to contain: a fit solved to a share 1e-22 of J is off by the root of it
times a condition of up to 1e4."""

OUTWARD = 3e-6
"""Relative, on the ends of intervals, which rounding errors move outward: the end of a bias' range by 1e-6."""

LBFGS = 2e-4
"""On probabilities: scikit-learn's sigmoid stops at a gradient of 1e-6 a row, in outputs that are not scaled."""


def conditioned(largest, ridge, n):
    """Error of a solve with a matrix of largest eigenvalue ``largest`` and the given ridge: EPS times its condition.

    The factor 10 n stands for the sums over n rows and for a solve, a product and a difference on the way.
    """
    return 10 * n * EPS * (1 + largest / ridge)


def exact(K, lam):
    """Error of a held-out output of the square loss, whose ridge is at least ``lam``; 1e-12 is the least asked for."""
    return max(1e-12, conditioned(np.trace(K), lam, len(K)))


def curved(K, lam, curvature=2.0):
    """The same for a loss with second derivatives up to ``curvature``, after a fit by iteration.

    The fit stops on the value of J, where the outputs are still off by the root of what is left of it times a step
    that converges quadratically: 1e-9 is what is seen of that, at worst.
    """
    return max(1e-9, conditioned(curvature * np.trace(K), 2 * lam, len(K)))


def weighted(s):
    """By how much sample weights worsen the conditioning: the ridge of a row is divided by its weight."""
    return s.max() / s.min()


STATIONARY = 1e-3
"""On gradients at an optimum, in the units of the search: a descent ends where a step gains 1e-9, and near the optimum
a gradient g gains g^2 / 2 over a curvature of the size 1; the rest is curvatures that are smaller."""

OPTIMUM = 1e-6
"""Relative, on a convex objective: SciPy's SLSQP, with a tolerance of 1e-13, ends within this of the minimum."""

SPARSE = 1e-10
"""On outputs of the size 1, sparse against dense rows: sums of some hundred terms in another order, which solves with
ridges of at least 0.1 beside eigenvalues up to 120 magnify a thousandfold."""

PROFILE = 1e-3
"""On half a logarithm of a mean square: a descent of a profile ends where a step promises 1e-4, and some are left."""

PLATEAU = 1e-2
"""As PROFILE, without a prior: logarithms of relevances that are of no use go on for ever, and gain 1 nat in all."""


RESIDUAL = 3e-9
"""Relative: conjugate gradients over the whole kernel are accepted at a residual of 1e-9, and the error in the norm of
all rows is at most that; a bias is a quotient of two of them."""


def orthonormal(U):
    """Columns that are made of features which nearly depend on each other are orthonormal to this only."""
    return np.abs(U.T @ U - np.eye(U.shape[1])).max(initial=0.0)
