"""What a model of the square loss on landmarks keeps of its rows, so that new rows can be added to its fit.

With the features ``z(x) = T' k(landmarks, x)`` the fit is ``f(x) = w' z(x) + b``, and w, b solve a system that is made
of sums over the rows: see ``numerics.blocks.sums``. So new rows are added to the sums, and the system is solved again,
for ``N lambda`` with the weight N of all rows. That is the fit on old and new rows together, at the same landmarks,
kernel and lambda; the encoding, the units of the target and the coupling of classes are those of the selection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernsel.heldout.coupling import Coupling
from kernsel.kernels import Kernel
from kernsel.numerics.blocks.features import Features
from kernsel.numerics.blocks.sums import Sums, statistics
from kernsel.numerics.dense import solve_upper
from kernsel.numerics.points import Points
from kernsel.types import Array

ELIMINATED = 2
"""Up to so many rows for each landmark features are finished row by row, which is less work than finishing sums."""

SAMPLE = 256
"""Rows by which it is chosen how features of more rows are half finished."""

FACTORS = (0.25, 4.0)
"""What else lambda might be, times what it is: a factor of 4 is what a search tells apart."""

STANDARD_ERRORS = 3.0
"""By so many standard errors losses must differ before it is said; 1 in 700 does so by chance."""

NOTABLE = 0.02
"""Of the loss: less isn't worth another selection, however sure it is."""

_ARRAYS = ("packed", "right", "targets", "coupling", "factors")


class Losses(NamedTuple):
    """Means of squared errors of new rows, in the model's units, by the fit without them.

    Parameters
    ----------
    expected : float
        What held-out rows of the selection had.
    excess : float
        By how many standard errors the first is above the second.
    by_lambda : dict of float to (float, float)
        For other lambda, the loss and by how many standard errors it is lower.
    """

    rows: int
    found: float
    expected: float
    excess: float
    by_lambda: dict[float, tuple[float, float]]

    @property
    def warnings(self) -> list[str]:
        """What the losses say against the choice of the selection."""
        told = []
        if self.excess > STANDARD_ERRORS and self.found > (1.0 + NOTABLE) * self.expected:
            told.append(
                f"the {self.rows} new rows have {self.found / self.expected:.3g} times the loss that held-out rows of "
                "the selection had: they aren't like those; select again, on rows of both kinds"
            )
        for lam, (loss, errors) in self.by_lambda.items():
            if errors > STANDARD_ERRORS and loss < (1.0 - NOTABLE) * self.found:
                told.append(
                    f"with lambda = {lam:.3g} the {self.rows} new rows would have had {1.0 - loss / self.found:.0%} "
                    "less loss: select again, for kernel and lambda were chosen for other rows"
                )
        return told


class Expanded(NamedTuple):
    """Coefficients (k, r) of the kernel functions at the landmarks, and biases (k,)."""

    coefficients: Array
    bias: Array


@dataclass(frozen=True, eq=False)
class SufficientStatistics:
    """Sums over the rows of a fit of the square loss on landmarks, and what else a fit with more rows takes.

    Parameters
    ----------
    T : (r, r) array
        Upper triangular, from kernel functions at the landmarks to features.
    loss, deviation : float
        Mean and standard deviation of the squared errors of held-out rows in the selection, in the model's units.
    held : int
        Number of these rows.
    weighted : bool
        Whether rows were given weights of their own.
    coupling : Coupling or None
        Of the outputs of several classes.
    factors : (classes,) array or None
        Weights of the classes.
    """

    T: Array
    sums: Sums
    bias: bool
    lam: float
    loss: float
    deviation: float
    held: int
    weighted: bool
    coupling: Coupling | None = None
    factors: Array | None = None

    def with_rows(
        self, fit: Expanded, kernel: Kernel, points: Points, X: Points, Y: Array, s: Array, limits: Array | None
    ) -> tuple[SufficientStatistics, Losses]:
        """Return them with new rows, and the losses of these by the fit without them, and by fits with other lambda.

        Parameters
        ----------
        fit : Expanded
            Without the rows, and without a coupling.
        points : (r, d) points
            The landmarks.
        X : (m, d) points
            New rows.
        Y : (k, m) array
            Their targets.
        s : (m,) array
            Their weights.
        limits : (2, k) array or None
            Within which outputs are kept.
        """
        m, r = X.shape[0], len(self.T)
        features = Features(kernel, points, self.T, None if m <= ELIMINATED * r else X[:SAMPLE])
        own = solve_upper(self.T, fit.coefficients.T).T[:, None], fit.bias[:, None]
        w, b = (np.concatenate(each, axis=1) for each in zip(own, self._weights(FACTORS), strict=True))
        A, b = features.spread(w).reshape(-1, r), b.reshape(-1, 1)
        errors = np.empty((1 + len(FACTORS), m))

        def see(rows: slice, P: Array) -> None:
            F = (A @ P.T + b).reshape(len(Y), len(errors), -1)
            if limits is not None:
                F = np.clip(F, *limits[:, :, None, None])
            errors[:, rows] = ((F - Y[:, None, rows]) ** 2).mean(axis=0)

        found = statistics(features, X, Y, None if (s == 1.0).all() else s, see)
        return replace(self, sums=self.sums.merge(found)), self._losses(errors, s / s.sum())

    def _weights(self, factors: Sequence[float]) -> tuple[Array, Array]:
        """Return weights (k, L, r) and biases (k, L) for multiples of lambda, before outputs are coupled."""
        w, r = self.sums.solve(self.bias, np.array(factors) * self.lam * self.sums.total), len(self.T)
        return w[..., :r], w[..., r] if self.bias else np.zeros(w.shape[:2])

    def expansion(self) -> Expanded:
        """Return the fit, before outputs are coupled."""
        w, b = self._weights([1.0])
        return Expanded(w[:, 0] @ self.T.T, b[:, 0])

    def coupled(self, fit: Expanded) -> Expanded:
        """Return a fit with its outputs coupled, as a model has it."""
        if self.coupling is None:
            return fit
        A, b = self.coupling.A, self.coupling.b
        return Expanded(np.ascontiguousarray(A @ fit.coefficients), A @ fit.bias + b)

    def uncoupled(self, fit: Expanded) -> Expanded:
        """Return the fit that a model has, without the coupling of its outputs."""
        if self.coupling is None:
            return fit
        A, b = self.coupling.A, self.coupling.b
        return Expanded(np.asarray(np.linalg.solve(A, fit.coefficients)), np.asarray(np.linalg.solve(A, fit.bias - b)))

    def _losses(self, errors: Array, share: Array) -> Losses:
        """Return the losses of errors (1 + FACTORS, m), by the fit and by those with other lambda, of weights (m,)."""
        own, others = errors[0], errors[1:]
        found = float(share @ own)
        error = float(np.hypot(_standard_error(own, share), self.deviation / np.sqrt(self.held)))
        by_lambda = {}
        for factor, other in zip(FACTORS, others, strict=True):
            gain = float(share @ (own - other))
            by_lambda[factor * self.lam] = found - gain, _ratio(gain, _standard_error(own - other, share))
        return Losses(len(share), found, self.loss, _ratio(found - self.loss, error), by_lambda)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return what JSON and arrays hold of them: the two triangles that there are of T and the products in one."""
        r = len(self.T)
        packed = np.zeros((r + 1, r))
        packed[:r] += np.triu(self.T)
        packed[1:] += np.tril(self.sums.products)
        arrays: dict[str, npt.NDArray[Any]] = {
            "packed": packed, "right": self.sums.right, "targets": self.sums.targets,
        }  # fmt: skip
        if self.coupling is not None:
            arrays["coupling"] = np.column_stack([self.coupling.A, self.coupling.b])
        if self.factors is not None:
            arrays["factors"] = self.factors
        header = {name: getattr(self, name) for name in ("bias", "lam", "loss", "deviation", "held", "weighted")}
        return header, {f"sums_{name}": array for name, array in arrays.items()}

    @classmethod
    def of_arrays(cls, header: Mapping[str, Any], contents: Mapping[str, npt.NDArray[Any]]) -> SufficientStatistics:
        """Build them back from what ``to_arrays`` returned; ValueError if they can't be any."""
        packed, right, targets, coupling, factors = (contents.get(f"sums_{name}") for name in _ARRAYS)
        if packed is None or right is None or targets is None:
            raise ValueError("sums without a part of them")
        r, k = packed.shape[1], len(right) - 1
        fits = packed.shape == (r + 1, r) and right.shape == (k + 1, r) and targets.shape == (k + 1, k + 1)
        fits = fits and (coupling is None or coupling.shape == (k, k + 1))
        numbers = [float(header[name]) for name in ("lam", "loss", "deviation", "held")]
        if not fits or not np.isfinite(numbers).all() or numbers[0] <= 0 or numbers[3] < 1 or targets[-1, -1] <= 0:
            raise ValueError("sums of other shapes, or of no fit")
        lower = np.tril(packed[1:])
        T, products = np.ascontiguousarray(np.triu(packed[:r])), lower + np.tril(lower, -1).T
        return cls(
            T=T,
            sums=Sums(products, right, targets),
            bias=bool(header["bias"]),
            lam=numbers[0],
            loss=numbers[1],
            deviation=numbers[2],
            held=int(numbers[3]),
            weighted=bool(header["weighted"]),
            coupling=None if coupling is None else Coupling(np.ascontiguousarray(coupling[:, :-1]), coupling[:, -1]),
            factors=factors,
        )


def _standard_error(values: Array, share: Array) -> float:
    """Return the standard error of the weighted mean of values, whose weights sum to 1."""
    return float(np.sqrt((share**2) @ (values - share @ values) ** 2))


def _ratio(difference: float, error: float) -> float:
    return difference / error if error > 0 else 0.0
