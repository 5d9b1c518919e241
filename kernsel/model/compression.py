"""A small model in the place of a large one: landmarks among its rows, and the closest expansion on them.

The outputs f of a model are approximated by ``g(x) = b + sum_l c_l k(x, r_l)`` over landmarks r_l, which randomly
pivoted Cholesky draws among the model's rows x_i, with the coefficients of

    min over g of   sum_i (f(x_i) - g(x_i))^2 + mu ||f - g||^2,     mu = RIDGE * N lambda.

With features ``z(x) = T' k(x, r)`` of the landmarks, ``f = sum_i a_i k(., x_i)`` and ``g(x) = z(x)' w`` that is
``(Z'Z + mu I) w = Z'(F + mu a)``: with mu = N lambda the fit of the square loss at a low rank, with less nearer to f.

g is close enough where the mean loss of its predictions, with those of f in the place of the truth, is at most a share
of the standard error s of the mean held-out loss,

    (1/n) sum_i (f(x_i) - g(x_i))^2 <= share * s    s of the mean squared error,
    (1/n) #{i: g predicts another class}  <= share * s    s of the share that is misclassified.

Of classes the error of g is then within that of the error of f, whatever the rows. Of a regression the mean squared
error rises by as much, and by twice the mean product of ``f - y`` and ``g - f``, which is 0 for noise alone: by two to
three times as much at new rows of california_housing.

At the rows that it was fitted to a rough f has peaks that new rows don't see. So the difference is that at new rows
which are given; or that of the fits without a fold, where the model keeps them, at the rows of some folds; else that of
f itself at some rows that the sum above leaves out, which asks for more landmarks than new rows would. Landmarks are
drawn among the other rows: they are the ones that are far from others, and what is left would be too easy.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TypeVar

import numpy as np
import scipy.linalg

from kernsel.data.target import chosen_classes
from kernsel.errors import ModelError, OptionError, check_memory
from kernsel.model.expansion import Expansion
from kernsel.model.extrapolation import reach
from kernsel.numerics.lowrank import pivoted_cholesky
from kernsel.numerics.points import Points, as_points, is_sparse
from kernsel.numerics.runtime.threads import one_blas_thread, share_each
from kernsel.types import Array, Indices

M = TypeVar("M", bound=Expansion)

FIRST, LARGEST, SHARE = 64, 8192, 2
"""Landmarks that are tried first, and at most; no more than one in so many rows is one."""

STEPS = 8
"""Numbers of landmarks that are tried between one power of two and the next: the least is known to 9 %."""

RIDGE = 0.1
"""Share of the fit's ridge. At new rows of california_housing g differs from f as with 0 or less, with 1 by a third
more; and the difference at rows that are left out, which with 0 grows beyond bounds, is 1 to 1.6 times that."""

COMPARED, PARTS = 0.2, 5
"""The difference is taken at least at this share of the rows, in so many parts of them at most."""

ROUNDING = 1e-12
"""Least mu, as a share of the trace of Z'Z."""

BLOCK = 2048
"""Rows whose products are summed up at a time."""

NEW = 5000
"""New rows, at most, that are compared: the first ones."""

TIMED = 2000
"""Rows that predictions are timed on."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows that the large model has, and a function that hasn't seen them.

    Parameters
    ----------
    rows : (o,) array
    columns : slice
        Which of the columns of coefficients are those of the function's k outputs.
    bias : (k,) array
    """

    rows: Indices
    columns: slice
    bias: Array


@dataclass(frozen=True, eq=False)
class Projection:
    """The least squares of outputs F (n, c), of coefficients A (c, n) at rows X (n, d), on features of m landmarks.

    Parameters
    ----------
    landmarks : (m,) array
        Rows, in the order of their choice.
    Z : (n, m) array
    T : (m, m) array
        Upper triangular: ``Z = k(X, X[landmarks]) T``.
    F : (n, c) array
    G : (m, m) array
        ``Z'Z + mu I``.
    B : (m, c) array
        ``Z'(F + mu a)``.
    """

    landmarks: Indices
    Z: Array
    T: Array
    F: Array
    G: Array
    B: Array

    @classmethod
    def of(cls, model: Expansion, F: Array, A: Array, rank: int, ridge: float, parts: Sequence[Part]) -> Projection:
        """Choose landmarks outside of some parts, and sum up products in blocks, whatever the number of threads."""
        n, X, kernel = len(F), model.rows, model.kernel
        check_memory(8 * (3 * n * rank + 5 * rank**2), f"{rank} landmarks of {n} rows", "leave the model as it is")
        inside = np.ones(n, np.bool_)
        for part in parts:
            inside[part.rows] = False
        among, others = np.flatnonzero(inside), np.flatnonzero(~inside)
        of = X[among]
        known, chosen, T, _ = pivoted_cholesky(lambda i: kernel(of, of[i]), kernel.diag(of), rank, seed=0)
        landmarks = among[chosen]
        m = landmarks.size
        Z = np.empty((n, m))
        Z[among] = known
        if others.size:
            Z[others] = kernel(X[others], X[landmarks]) @ T
        G = np.zeros((m, m))
        blocks = [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]
        for product in share_each(lambda rows: Z[rows].T @ Z[rows], blocks):
            G += product
        mu = max(ridge, ROUNDING * float(np.trace(G)))
        G[np.diag_indices(m)] += mu
        return cls(landmarks, Z, T, F, G, Z.T @ (F + mu * A.T))

    @property
    def rank(self) -> int:
        """How many landmarks there are: fewer than were asked for where rounding is all that is left."""
        return self.landmarks.size

    def without(self, part: Part, ranks: Sequence[int], Z: Array) -> list[Array]:
        """Return the outputs (e, k) of a part's function, without the bias, at rows whose features are Z (e, m).

        They are of least squares that leave out the rows of the part, for each number of landmarks.
        """
        own, F = self.Z[part.rows], self.F[part.rows, part.columns]
        L = scipy.linalg.cholesky(self.G - own.T @ own, lower=True, overwrite_a=True, check_finite=False)
        b = scipy.linalg.solve_triangular(L, self.B[:, part.columns] - own.T @ F, lower=True, check_finite=False)
        # The factor of the first r landmarks is the corner of that of all.
        return [
            np.asarray(Z[:, :r] @ scipy.linalg.solve_triangular(L[:r, :r], b[:r], lower=True, trans="T")) for r in ranks
        ]

    def coefficients(self, r: int) -> Array:
        """Return the coefficients (c, r) of r landmarks."""
        w = scipy.linalg.solve(self.G[:r, :r], self.B[:r], assume_a="pos", check_finite=False)
        return np.ascontiguousarray((self.T[:r, :r] @ w).T)


@one_blas_thread()  # the work is cut into blocks and parts of the rows
def compress(model: M, within: float, table: object = None) -> M:
    """Return a small model that predicts what a large one does: see ``Model.compress``."""
    if isinstance(within, bool) or not isinstance(within, Real) or not 0 < within < np.inf:
        raise OptionError(f"within is a share of the standard error, above 0, not {within!r}; 0.1 is usual")
    allowed = within * _standard_error(model)
    X, A = model.rows, stack_coefficients(model)
    n = X.shape[0]
    F = model.raw_outputs(X, A)
    ridge = RIDGE * float(model.provenance.get("lambda", 0.0)) * float(model.provenance.get("rows", n))
    parts, new = choose_parts(model, A), None
    if table is not None:
        parts, new = [Part(np.zeros(0, np.int64), slice(len(model.bias)), model.bias)], model.encoded(table)[:NEW]
        if not new.shape[0]:
            raise OptionError("there are no rows in the table of new rows; give some, or leave it out")
    most = min(n // SHARE, LARGEST)
    tried, off = min(FIRST, most), np.inf
    while tried:
        projection = Projection.of(model, F, A, tried, ridge, parts)
        ranks = _between(tried, projection.rank)
        difference = compare_outputs(model, projection, parts, ranks, new)
        near = np.flatnonzero(difference <= allowed)
        if near.size:
            return _on_landmarks(model, projection, ranks[near[0]], float(difference[near[0]]))
        off = float(difference[-1])
        if tried == most or projection.rank < tried:
            break
        tried = min(2 * tried, most)
    raise ModelError(
        f"no small set of landmarks predicts what the model does: {tried} of {n} rows leave a difference of {off:.2g} "
        f"where {allowed:.2g} is wanted (mean loss); rough kernels need most of their rows: keep the model, or let the "
        f"difference be more (within={within:g} by now)"
    )


def _between(tried: int, found: int) -> list[int]:
    """Return the numbers of landmarks to compare, above those that have been tried before, and up to those found."""
    least = 1 if tried <= FIRST else min(tried // 2, found)
    steps = np.geomspace(least, found, 1 + int(np.ceil(STEPS * np.log2(found / least))))
    return sorted({int(np.ceil(each)) for each in steps if each > least or tried <= FIRST} | {found})


def _standard_error(model: Expansion) -> float:
    """Return the standard error of the mean held-out loss, for outputs as they are without their scale."""
    error, se = (model.provenance.get(name) for name in ("error", "error_se"))
    if not isinstance(error, float) or not isinstance(se, float) or not se > 0:
        raise ModelError(
            "the model doesn't tell its held-out error, so that nothing says what is close; select it anew"
        )
    if model.labels is not None:
        return se
    scale = 1.0 if isinstance(model.target, list) else float(model.output_scale[0])  # of several: in their deviations
    return 2.0 * error * se / scale**2  # the error is the root of the mean


def stack_coefficients(model: Expansion) -> Array:
    """Return the coefficients (c, m) of all functions: k outputs, those without each fold, and the scales of these."""
    intervals = model.intervals
    if intervals is None:
        return model.coefficients
    scales = [] if intervals.scale is None else list(intervals.scale.coefficients)
    return np.vstack([model.coefficients, *intervals.coefficients, *scales])


def choose_parts(model: Expansion, A: Array) -> list[Part]:
    """Return rows at which the small model is compared with the large one, and the functions that haven't seen them."""
    n, k = A.shape[1], len(model.bias)
    wanted = int(np.ceil(COMPARED * n))
    if (intervals := model.intervals) is not None:
        parts, count = list[Part](), 0
        for t, coefficients in enumerate(intervals.coefficients[:PARTS]):
            rows = np.flatnonzero((coefficients == 0).all(axis=0))
            if not rows.size or count >= wanted:  # of a low rank, landmarks have a coefficient without any fold
                break
            parts.append(Part(rows, slice(k * (t + 1), k * (t + 2)), intervals.biases[t]))
            count += rows.size
        if count >= wanted:
            return parts
    rows = np.sort(np.random.default_rng(0).permutation(n)[:wanted])
    return [Part(rows, slice(k), model.bias)]


def compare_outputs(
    model: Expansion, projection: Projection, parts: Sequence[Part], ranks: Sequence[int], new: Points | None = None
) -> Array:
    """Return the mean losses of predictions by numbers of landmarks, with the model's in the place of the truth.

    They are those at the rows of the parts, or at new ones for the only part.
    """
    if new is None:
        rows = [(projection.Z[part.rows], projection.F[part.rows, part.columns]) for part in parts]
    else:
        Z = model.kernel(as_points(new), model.rows[projection.landmarks]) @ projection.T
        rows = [(Z, model.raw_outputs(new, model.coefficients))]

    def losses(job: tuple[Part, tuple[Array, Array]]) -> list[float]:
        part, (Z, F) = job
        return [_loss(model, G + part.bias, F + part.bias) for G in projection.without(part, ranks, Z)]

    total = np.sum(list(share_each(losses, list(zip(parts, rows, strict=True)))), axis=0)
    return np.asarray(total / sum(len(F) for _, F in rows))


def _loss(model: Expansion, G: Array, F: Array) -> float:
    """Return the total loss over rows, of outputs G (e, k) for F in the place of the truth."""
    if model.labels is not None:
        threshold = 0.0 if model.threshold is None else model.threshold.value
        return float((chosen_classes(G.T - threshold) != chosen_classes(F.T - threshold)).sum())
    if model.limits is not None:
        G, F = np.clip(G, *model.limits), np.clip(F, *model.limits)
    return float(((G - F) ** 2).mean(axis=1).sum())


def _on_landmarks(model: M, projection: Projection, r: int, off: float) -> M:
    """Return the model on the first r landmarks."""
    k, C, intervals = len(model.bias), projection.coefficients(r), model.intervals
    rows = as_points(model.rows[projection.landmarks[:r]])
    if intervals is not None:
        shape = (len(intervals.coefficients), k, r)
        of_folds, of_scales = np.split(C[k:], [shape[0] * k])
        scale = intervals.scale
        if scale is not None:
            scale = replace(scale, coefficients=of_scales.reshape(shape).copy())
        intervals = replace(intervals, coefficients=of_folds.reshape(shape).copy(), scale=scale)
    compressed = {"rows": int(model.rows.shape[0]), "difference": off}
    return replace(
        model,
        rows=rows,
        coefficients=C[:k].copy(),
        intervals=intervals,
        sufficient=None,  # sums of other landmarks
        reach=None if model.reach is None else reach(model.kernel, model.rows, rows, None),
        provenance={**model.provenance, "compressed": compressed},
    )


def describe(model: Expansion, small: Expansion) -> str:
    """Say how much smaller and faster a small model is than the one that it stands for, as measured in a moment."""
    spent = [_seconds(each, model.rows[:TIMED]) for each in (model, small)]
    size = [_bytes(each) / 1e6 for each in (model, small)]
    what = "classes differ in a share of" if model.labels is not None else "the mean squared difference is"
    off = small.provenance["compressed"]["difference"]
    return (
        f"compressed: {model.rows.shape[0]} rows to {small.rows.shape[0]}, {size[0]:.3g} MB to {size[1]:.3g} MB, "
        f"predictions {spent[0] / spent[1]:.1f} times as fast; {what} {off:.2g}"
    )


def _seconds(model: Expansion, X: Points) -> float:
    """Return the least time of three that outputs of some rows take."""
    found = []
    for _ in range(3):
        start = time.perf_counter()
        model.raw_outputs(X, model.coefficients)
        found.append(time.perf_counter() - start)
    return min(found)


def _bytes(model: Expansion) -> int:
    """Return the size of what grows with the rows: these, and the coefficients."""
    rows = model.rows
    return 8 * (int(rows.nnz if is_sparse(rows) else np.size(rows)) + stack_coefficients(model).size)
