"""Updates of fits for every fold, by the derivatives of the loss there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kernsel.numerics.runtime.jit import Compiled
from kernsel.numerics.smooth import heldout, heldout_kernel
from kernsel.numerics.smooth.convergence import CONVERGED
from kernsel.numerics.smooth.objective import Objective
from kernsel.paths.outputs import HeldOut
from kernsel.representation.base import Held
from kernsel.representation.gram import Gram
from kernsel.types import Array, Indices, Mask

if TYPE_CHECKING:
    from kernsel.paths.base import Path


class Updated(NamedTuple):
    """Held-out outputs f (k, L, n), the status and ratio of every fold, both (k, L, t), and solutions (k, L, t, .).

    Statuses are no better than those of fits that didn't converge. Intervals ``low, high (k, L, n)`` contain the
    held-out outputs of exact fits, where these are wanted.
    """

    f: Array
    status: Indices
    rho: Array
    x: Array | None = None
    low: Array | None = None
    high: Array | None = None

    def put(self, which: Mask, others: Updated) -> None:
        """Overwrite what is of some lambda (L,) by others."""
        pairs: Iterable[tuple[Any, Any]] = zip(self, others, strict=True)
        for mine, theirs in pairs:
            if mine is not None:
                mine[:, which] = theirs


def update_folds(
    path: Path,
    representation: Held,
    update: Compiled,
    order: int,
    V: Array | None = None,
    trust: float = np.inf,
    which: Mask | Indices | slice = slice(None),
    solutions: bool = False,
    intervals: bool = False,
    given: Array | None = None,
) -> Updated:
    """Apply a fold update of ``numerics.smooth`` to the fits ``which`` of a path.

    Parameters
    ----------
    update : compiled function
    order : int
        Of the influence series; for Newton steps whether ratios are computed.
    V : (n, c) array, optional
        A factor of the Gram matrix, or what else the update takes there.
    trust : float
        The share of what a Newton step promises by which it may stray.
    which : array, optional
        Numbers of lambda, or (L,) bool; all without it.
    solutions : bool
        Whether those that Newton steps end at are wanted.
    intervals : bool
        Whether an update that makes intervals is to do so.
    given : (k, l, t, .) array, optional
        Solutions that the update reads.
    """
    rows, loss, fits = path.rows, path.learner.loss, path.fits
    x, at = (np.ascontiguousarray(each[:, which]) for each in (fits.x, fits.f))
    _, d1, d2 = loss.expand(rows.Y, rows.s, at)
    held = heldout.HeldOut.room(at.copy(), rows.left.size, x.shape[2] if solutions else 0, intervals)
    if given is not None:
        held = held._replace(x=given)
    stack = Objective(rows.Y, rows.s[None], path.lams[which], np.array(loss.parameters), int(path.bias))
    V = np.zeros((rows.n, 0)) if V is None else V
    G, fitted = representation.matrix(path.bias), heldout.Fit(x, at, d1, d2)
    heldout.update_folds(update, G, V, stack, loss.pointer, fitted, rows.folds, order, trust, held)
    of_fits = fits.status[:, which, None]
    status = np.maximum(held.status, np.where(of_fits == CONVERGED, held.status, of_fits))
    low, high = (held.low, held.high) if intervals else (None, None)
    return Updated(held.out, status, held.rho, held.x if solutions else None, low, high)


def nystrom_influence(path: Path, representation: Gram, share: float) -> HeldOut:
    """Return first-order influence with the inverse approximated from ``share * n`` uniform landmarks (FBIF18)."""
    path.need_whole_folds()
    V = representation.nystrom(share)
    if path.bias:
        V = np.column_stack([V, np.ones(path.rows.n)])
    found = update_folds(path, representation, heldout_kernel.nystrom_influence, 1, V)
    return HeldOut.of(found.f, found.status.max(axis=2), exact=False)
