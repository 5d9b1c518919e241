"""What a path gives: fits, their held-out outputs, and what they leave of the targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from kernsel.folds.partition import Partition
from kernsel.numerics.smooth import convergence
from kernsel.numerics.square import spectral
from kernsel.types import Array, Indices, Mask


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Outputs at rows whose fold the fit has not seen.

    Parameters
    ----------
    f : (k, L, n) array
    failed : list of L str or None
        Why there are no usable outputs for that lambda.
    exact : (L,) array of bool
        Whether these are the outputs of refits, not an approximation to them.
    refitted : (L,) array of int, or 0
        Folds (of any output) that were refitted, as the approximation could not be trusted there.
    replaced : (L,) array of bool, or False
        Whether a Newton step took the place of another approximation.
    norms : (L,) array or None
        Squared norms of the fits on all rows, if they came along with the outputs; NaN where they did not.
    """

    f: Array
    failed: list[str | None]
    exact: Mask
    refitted: Indices | int = 0
    replaced: Mask | bool = False
    norms: Array | None = None

    def clipped(self, rows: Partition) -> HeldOut:
        """Return the outputs within the range of the targets, if rows are clipped."""
        return replace(self, f=rows.clipped(self.f)) if rows.clip else self

    @staticmethod
    def of(f: Array, status: Indices, exact: bool, refitted: Indices | int = 0) -> HeldOut:
        """Give each lambda its reason from the worst status (outputs, L) and from values that are not finite."""
        L = f.shape[1]
        worst = status.reshape(-1, L).max(axis=0)
        finite = np.logical_and.reduce(np.isfinite(f), axis=(0, 2))
        worst = np.where(finite | (worst != convergence.CONVERGED), worst, convergence.NOT_FINITE)
        failed = [convergence.REASONS.get(int(s)) for s in worst]
        return HeldOut(f, failed, np.full(L, exact), refitted)


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits: coefficients or weights ``x (k, L, .)``, a bias last, outputs ``f (k, L, n)``, statuses (k, L)."""

    x: Array
    f: Array
    status: Indices


class Enclosed(NamedTuple):
    """Intervals that contain the outputs of exact fits at rows that they have not seen.

    Parameters
    ----------
    low, high : (k, L, n) array
    refitted : (k, L, t) array of bool
        Whether they are made from a refit without the fold.
    """

    low: Array
    high: Array
    refitted: Mask


class Between(NamedTuple):
    """Outputs of refits at rows that they have not seen, and intervals for all lambda between two of theirs.

    Between the lambda l and l + 1 the outputs of exact fits are the interpolated ones of the refits, plus something in
    an interval.

    Parameters
    ----------
    f : (k, L, n) array
    low, high : (k, L - 1, n) array
        Infinite where nothing is known.
    """

    f: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class LeftOver:
    """What fits of the square loss leave of the targets, in the coordinates of ``S^1/2``: see ``square.spectral``.

    The residual of direction j of the spectrum is ``ridge / (ev_j + ridge)`` times the targets' coordinate there, and
    the whole of it in the other directions; nothing is left of the direction of a bias, which is in neither.

    Parameters
    ----------
    share : (L, r) array
        ``ridge / (ev + ridge)``.
    norms : (L,) array
        Squared norms ``sum_j ev_j / (ev_j + ridge)^2 (U' y)_j^2`` of the fits without their bias, summed over outputs.
    squares : (k, r) array
        Of the targets' coordinates.
    beyond : (k,) array
        The targets' squared length in the other directions.
    outside : int
        The number of other directions.
    failed : list of L str or None
        Why a fit settles nothing.
    """

    share: Array
    norms: Array
    squares: Array
    beyond: Array
    outside: int
    failed: list[str | None]

    @staticmethod
    def of(ev: Array, squares: Array, beyond: Array, n: int, ridges: Array) -> LeftOver:
        """Make it from how the targets of n rows spread over the spectrum: see ``Spectrum.energies``."""
        penalised, lost = np.isfinite(ev), ridges <= spectral.least_ridge(ev, n)
        ev, squares = ev[penalised], squares[:, penalised]
        share = spectral.shrinkage(ridges[:, None], ev)
        norms = (spectral.shrinkage(ev, ridges[:, None]) ** 2 / ev) @ squares.sum(axis=0)
        failed = [convergence.REASONS[convergence.SINGULAR] if each else None for each in lost]
        return LeftOver(share, norms, squares, beyond, n - penalised.size, failed)

    @property
    def directions(self) -> int:
        """The number of all directions."""
        return int(self.share.shape[1]) + self.outside


class Spectral(Protocol):
    """A path that can say what its fits leave of the targets."""

    def left_over(self) -> LeftOver:
        """Return what the fits leave of the targets."""
