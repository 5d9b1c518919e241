"""A small model in the place of a large one: landmarks among its rows, and the closest expansion on them.

The outputs f of a model are approximated by ``g(x) = b + sum_l c_l k(x, r_l)`` over landmarks r_l, which randomly
pivoted Cholesky draws among the model's rows, with the coefficients of least squares, ``min sum_i (f(x_i) - g(x_i))^2``
over these rows. Rows are dealt to two halves, and the difference at each is that of the least squares of the other
half. g is close enough where the mean loss of its predictions, with those of f in the place of the truth, is at most a
share of the standard error s of the mean held-out loss,

    (1/n) sum_i (f(x_i) - g(x_i))^2 <= share * s    s of the mean squared error,
    (1/n) #{i: g predicts another class}  <= share * s    s of the share that is misclassified.

Of classes the error of g is then within that of the error of f, whatever the rows; of a regression the mean squared
error is, where the difference has nothing to do with the noise. The least number of landmarks for which that holds is
found by doubling and bisection: the landmarks of a lower rank are the first ones of a higher.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernsel.data.target import chosen_classes
from kernsel.errors import ModelError, OptionError, check_memory
from kernsel.model.extrapolation import reach
from kernsel.numerics.points import Points, as_points, is_sparse
from kernsel.representation.ranks import Factor, LowRank

if TYPE_CHECKING:
    from kernsel.model.model import Model

Array = NDArray[np.float64]

FIRST, SHARE = 64, 4
"""Landmarks that are tried first; at most one in so many rows is one, for a half of the rows must outnumber them."""

ROWS = 20_000
"""Rows, at most, that the least squares are over: drawn at random among more."""

TIMED = 2000
"""Rows that predictions are timed on."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Least squares of outputs F (n, k) on the features of landmarks, by halves of the rows.

    With ``[Z F] = Q [[R, C], [0, .]]`` the coefficients on the first r features are ``R[:r, :r]^-1 C[:r]``, of any r.

    Parameters
    ----------
    factor : Factor
        Landmarks, and their features Z (n, m).
    F : (n, k) array
    halves : list of two (n / 2,) arrays
        Rows.
    triangles : list of two (m, m + k) arrays
        ``[R C]`` of each half.
    """

    factor: Factor
    F: Array
    halves: list[NDArray[np.int64]]
    triangles: list[Array]

    @classmethod
    def of(cls, kernel: Any, X: Points, F: Array, rank: int) -> Projection:
        """Choose landmarks among rows X (n, d)."""
        factor = LowRank(rank).factor(kernel, X, 0)
        halves = np.array_split(np.random.default_rng(0).permutation(len(F)), 2)
        triangles = [_triangle(np.hstack([factor.Z[half], F[half]]), factor.Z.shape[1]) for half in halves]
        return cls(factor, F, halves, triangles)

    @property
    def rank(self) -> int:
        """How many landmarks there are: fewer than were asked for where rounding is all that is left."""
        return int(self.factor.Z.shape[1])

    def crossed(self, r: int, k: int) -> Array:
        """Return the first k outputs (n, k) at each row, by r landmarks and the least squares of the other half."""
        found = np.empty((len(self.F), k))
        for half, triangle in zip(self.halves, reversed(self.triangles), strict=True):
            found[half] = self.factor.Z[half, :r] @ self._solved(triangle, r)[:, :k]
        return found

    def coefficients(self, r: int) -> Array:
        """Return the coefficients (r, k) of r landmarks, by all rows."""
        w = self._solved(_triangle(np.vstack(self.triangles), self.rank), r)
        return np.asarray(self.factor.T[:r, :r] @ w)

    def _solved(self, triangle: Array, r: int) -> Array:
        return np.asarray(scipy.linalg.solve_triangular(triangle[:r, :r], triangle[:r, self.rank :]))


def _triangle(A: Array, m: int) -> Array:
    """Return the first m rows of the triangle of a QR factorisation of A, which is overwritten."""
    return np.ascontiguousarray(scipy.linalg.qr(A, mode="r", overwrite_a=True, check_finite=False)[0][:m])


def compress(model: Model, within: float, table: Any = None) -> Model:
    """Return a small model that predicts what a large one does.

    Parameters
    ----------
    model : Model
    within : float
        Share of the standard error of the held-out loss that the difference may have.
    table : table, optional
        Rows like those that will be predicted, by default the model's own.

    Raises
    ------
    OptionError
        ``within`` is not above 0.
    ModelError
        The model doesn't tell its error, or no small set of landmarks is enough.
    """
    if isinstance(within, bool) or not within > 0:
        raise OptionError(f"within is a share of the standard error, above 0, not {within!r}; 0.1 is usual")
    allowed = within * _standard_error(model)
    X = model.rows if table is None else model.encoded(table)
    if X.shape[0] > ROWS:
        X = as_points(X[np.sort(np.random.default_rng(0).choice(X.shape[0], ROWS, replace=False))])
    F = model.raw_outputs(X, _columns(model))
    n, k = len(F), len(model.bias)
    most, r = n // SHARE, min(FIRST, n // SHARE)
    while True:
        check_memory(8 * n * r * 3, f"{r} landmarks of {n} rows", "leave the model as it is")
        projection = Projection.of(model.kernel, X, F, r)
        r = projection.rank
        off = _difference(model, projection, r, k)
        if off <= allowed:
            break
        if r >= most or r < min(most, FIRST) or model.rows.shape[0] <= r:
            raise ModelError(
                f"no small set of landmarks predicts what the model does: {r} of {n} rows leave a difference of "
                f"{off:.2g} where {allowed:.2g} is wanted (mean loss); rough kernels need all their rows, so keep the "
                "model, or let the difference be more"
            )
        r = min(2 * r, most)
    low, high = r // 2, r
    while high - low > 1:
        middle = (low + high) // 2
        if _difference(model, projection, middle, k) <= allowed:
            high = middle
        else:
            low = middle
    return _on_landmarks(model, projection, high, X, _difference(model, projection, high, k))


def _standard_error(model: Model) -> float:
    """Return the standard error of the mean held-out loss, for outputs as they are without their scale."""
    error, se = (model.provenance.get(name) for name in ("error", "error_se"))
    if not isinstance(error, float) or not isinstance(se, float):
        raise ModelError(
            "the model doesn't tell its held-out error, so that nothing says what is close; select it anew"
        )
    if model.labels is not None:
        return se
    scale = 1.0 if isinstance(model.target, list) else float(model.output_scale[0])  # of several: in their deviations
    return 2.0 * error * se / scale**2  # the error is the root of the mean


def _columns(model: Model) -> Array:
    """Return the coefficients (k + t k, m) of the outputs, and of those without each fold."""
    if model.intervals is None:
        return model.coefficients
    return np.vstack([model.coefficients, *model.intervals.coefficients])


def _difference(model: Model, projection: Projection, r: int, k: int) -> float:
    """Return the mean loss of r landmarks' predictions, with the model's in the place of the truth."""
    G, F = projection.crossed(r, k) + model.bias, projection.F[:, :k] + model.bias
    if model.labels is not None:
        return float((chosen_classes(G.T) != chosen_classes(F.T)).mean())
    if model.limits is not None:
        G, F = np.clip(G, *model.limits), np.clip(F, *model.limits)
    return float(((G - F) ** 2).mean())


def _on_landmarks(model: Model, projection: Projection, r: int, X: Points, off: float) -> Model:
    """Return the model on the first r landmarks."""
    k, C = len(model.bias), projection.coefficients(r).T
    rows, intervals = as_points(projection.factor.points[:r]), model.intervals
    if intervals is not None:
        t = len(intervals.coefficients)
        intervals = replace(intervals, coefficients=np.ascontiguousarray(C[k:].reshape(t, k, r)))
    compressed = {"rows": int(model.rows.shape[0]), "difference": off}
    return replace(
        model,
        rows=rows,
        coefficients=np.ascontiguousarray(C[:k]),
        intervals=intervals,
        reach=None if model.reach is None else reach(model.kernel, X, rows, None),
        provenance={**model.provenance, "compressed": compressed},
    )


def describe(model: Model, small: Model) -> str:
    """Say how much smaller and faster a small model is than the one that it stands for, as measured in a moment."""
    spent = [_seconds(each, model.rows[:TIMED]) for each in (model, small)]
    size = [_bytes(each) / 1e6 for each in (model, small)]
    what = "classes differ in a share of" if model.labels is not None else "the mean squared difference is"
    off = small.provenance["compressed"]["difference"]
    return (
        f"compressed: {model.rows.shape[0]} rows to {small.rows.shape[0]}, {size[0]:.3g} MB to {size[1]:.3g} MB, "
        f"predictions {spent[0] / spent[1]:.1f} times as fast; {what} {off:.2g}"
    )


def _seconds(model: Model, X: Points) -> float:
    """Return the least time of three that outputs of some rows take."""
    found = []
    for _ in range(3):
        start = time.perf_counter()
        model.raw_outputs(X, model.coefficients)
        found.append(time.perf_counter() - start)
    return min(found)


def _bytes(model: Model) -> int:
    """Return the size of what grows with the rows: these, and the coefficients."""
    rows = model.rows
    return 8 * (int(rows.nnz if is_sparse(rows) else np.size(rows)) + _columns(model).size)
