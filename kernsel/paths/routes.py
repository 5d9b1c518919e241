"""Which way leads to held-out outputs: decided once for a path, from sizes that are known before anything is computed.

No route looks at what happens to be there already, so that no result depends on what was asked before. All are exact
but for rounding; only what they cost differs.

========================  ==================================================  ==========================================
representation            route                                               taken
========================  ==================================================  ==========================================
the square loss, Gram     a factorisation of each ridge                       from ``factored`` rows, for few ridges
                          conjugate gradients for all ridges and folds        from ``krylov`` rows, few folds, no bias
                          one eigendecomposition                              otherwise
the square loss, features products of features without those of a fold        where these take fewer multiplications
                          one eigendecomposition                              otherwise
other losses, Gram        refits of all folds                                 where cheaper than Newton steps
                          Newton steps                                        otherwise
their refits, Gram        side by side                                        curved everywhere, from ``together``
                                                                              rows, where cheaper
                          one by one                                          otherwise
their steps, Gram         side by side                                        where refits are, for few folds
                          one by one                                          otherwise
other losses, features    Newton steps
any, fits that leave out   refits
more than half of the rows
whole kernel in tiles     another factor for a fold that is held out alone    one fold
                          systems for all folds at once                       up to ``COLUMNS`` right-hand sides
                          blocks of the inverse                               otherwise
========================  ==================================================  ==========================================
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from kernsel.folds.partition import Partition
from kernsel.numerics.square import heldout
from kernsel.numerics.square.factored import factors_are_cheaper
from kernsel.numerics.whole.solver import COLUMNS
from kernsel.types import Array, Indices, Mask

KRYLOV_SYSTEMS = 100
"""Folds times outputs up to which conjugate gradients beat an eigendecomposition."""

GRAM_OF_FEATURES, DECOMPOSITION = 4.0, 10.0
"""An eigendecomposition of features (n, r) takes ``4 n r^2 + 10 r^3`` multiplications: products there and back, and an
eigendecomposition (r, r)."""

STEPS = 3
"""Newton steps that a refit without a fold takes from the fit on all rows, where it doesn't keep its curved rows."""

PRODUCTS = 60
"""Refits side by side take as long for each fold as so many products of the inverse and a vector, at the speed of
multiplications in an inverse: two to ten conjugate gradients for each of three to five Newton steps."""

FOLDS_OF_STEPS = 20
"""With one fold in so many rows Newton steps side by side cost as much as one by one: five products of a matrix with a
vector of each fold cost what inverting in float32 spares."""

Square = Literal["spectrum", "factors", "krylov", "products"]
Whole = Literal["one fold", "folds", "blocks"]


class Thresholds(NamedTuple):
    """Rows from which a route is taken.

    Parameters
    ----------
    factored : int
        A few ridges are factorised; below, an eigendecomposition takes milliseconds.
    krylov : int
        Conjugate gradients beat an eigendecomposition.
    single : int
        Of so many folds of one row, ratios are taken from the rows' leverages.
    together : int
        Refits without each fold may go side by side; below, they save less than their loops take to compile, once.
    """

    factored: int = 300
    krylov: int = 700
    single: int = 50
    together: int = 500


class Sizes(NamedTuple):
    """What a route is decided by.

    Parameters
    ----------
    rows : Partition
        For the numbers of rows and outputs, and the sizes and weights of folds; no value of X or Y is looked at.
    lams : int
        Number of lambda.
    rank : int
        Columns of the Gram matrix, or of the features at most.
    """

    rows: Partition
    lams: int
    rank: int
    bias: bool
    thresholds: Thresholds = Thresholds()

    @property
    def systems(self) -> int:
        """Folds times outputs."""
        return int(self.rows.left.size) * len(self.rows.Y)


def few_ridges(rows: Partition, lams: int, thresholds: Thresholds) -> bool:
    """Tell whether so few ridges are wanted of so large a Gram matrix that each has a factorisation of its own."""
    return rows.n >= thresholds.factored and factors_are_cheaper(np.empty(lams), rows.left)


def square_in_gram(sizes: Sizes) -> Square:
    """Return the route to held-out outputs of the square loss with a Gram matrix."""
    rows = sizes.rows
    if few_ridges(rows, sizes.lams, sizes.thresholds):
        return "factors"
    large = rows.n >= sizes.thresholds.krylov
    few = factors_are_cheaper(np.empty(sizes.lams), rows.left)
    return "krylov" if large and not few and not sizes.bias and sizes.systems <= KRYLOV_SYSTEMS else "spectrum"


def square_in_features(sizes: Sizes) -> Square:
    """Return the route to held-out outputs of the square loss with features in memory."""
    rows, r = sizes.rows, sizes.rank
    spectrum = GRAM_OF_FEATURES * rows.n * r**2 + DECOMPOSITION * r**3
    cheaper = heldout.products_are_cheaper(rows.away.bounds, r, np.empty(sizes.lams), spectrum)
    return "products" if cheaper else "spectrum"


def whole_in_tiles(sizes: Sizes) -> Whole:
    """Return how folds are held out of a whole kernel in tiles: see ``numerics.whole.costs.ROUTES``."""
    t = int(sizes.rows.left.size)
    if t == 1:
        return "one fold"
    return "folds" if t * (len(sizes.rows.Y) + sizes.bias) <= COLUMNS else "blocks"


def inverses_are_dearer(rows: Partition) -> bool:
    """Tell whether Newton steps, with an inverse for each weight that a fold leaves, cost more than refits together."""
    return float(np.unique(rows.left).size) > _inverses_of_refits(rows)


def refits_go_together(rows: Partition, thresholds: Thresholds) -> bool:
    """Tell whether refits side by side, for a loss that is curved everywhere, cost less than one by one."""
    share = rows.away.sizes / rows.n
    return rows.n >= thresholds.together and _inverses_of_refits(rows) < STEPS * float(((1.0 - share) ** 3).sum()) / 3.0


def steps_go_together(rows: Partition) -> bool:
    """Tell whether Newton steps of all folds side by side, where refits go so, cost less than one by one.

    They save half of an inverse, and take some products for each fold.
    """
    return int(rows.left.size) * FOLDS_OF_STEPS <= rows.n


def _inverses_of_refits(rows: Partition) -> float:
    """Return how many inverses refits side by side cost as much as."""
    return 1.0 + PRODUCTS * int(rows.left.size) / rows.n


def by_leverages(rows: Partition, thresholds: Thresholds) -> bool:
    """Tell whether every fold is one row, and there are many: their ratios are taken from the rows' leverages."""
    return rows.one_by_one is rows and rows.held >= thresholds.single


def refits_are_cheaper(curved: Indices, n: int, left: Array, share: Array, settled: bool) -> Mask:
    """Say for which fits in the coordinates of the Gram matrix refits without each fold cost less than Newton steps.

    Multiplications are counted. Newton steps invert a matrix of A curved rows, ``A^3``, once for each weight that a
    fold leaves. A refit factorises that of the rows it keeps, ``(1 - share)^3 A^3 / 3``, at each of its steps: one
    where all rows are curved and the loss is piecewise quadratic (they are so without a fold as well, as a rule), else
    ``STEPS``. What is quadratic in the rows is left out.

    Parameters
    ----------
    curved : (L,) array of int
        Curved rows of each fit: a size that only the fits know, and that is always the same.
    n : int
        Number of rows.
    left : (t,) array
        Weight that the fit without each fold keeps.
    share : (t,) array
        Each fold's share of the rows.
    settled : bool
        Whether the loss is piecewise quadratic.
    """
    refits = float(((1.0 - share) ** 3).sum()) / 3.0
    inverses = np.unique(left).size
    steps = np.where((curved == n) & settled, 1, STEPS)
    return (curved > 0) & (steps * refits < inverses)
