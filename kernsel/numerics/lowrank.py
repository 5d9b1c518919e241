"""Low-rank features ``K ~ Z Z'`` of a positive semidefinite matrix that is never formed.

Every function works on a few columns of K. The points whose columns are used are the landmarks, with the columns
``C = K[:, landmarks]`` (n, c) and the block ``W = K[landmarks][:, landmarks]`` (c, c); then ``Z = C T`` with a small
matrix T, and a new point x has the features ``z(x) = k(x, landmarks) T``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from kernsel.numerics.dense import Cholesky, times_upper
from kernsel.types import Array, Indices

Columns = Callable[[Indices], Array]

_EPS = float(np.finfo(np.float64).eps)

FIRST_BLOCK = 16
"""Points drawn in the first round where a tolerance may need but a few."""


def nystrom_factor(C: Array, W: Array) -> tuple[Array, Array, int]:
    """Factorise the Nystrom approximation: ``C W^+ C' = Z Z'`` with ``Z = C T``, ``T T' = W^+``.

    With ``W = U diag(s) U'``, T is ``U diag(s)^(-1/2)`` over the eigenvalues above ``c eps s_max``. The others are
    dropped, not raised: they are rounding errors of zero, of either sign.

    Parameters
    ----------
    C : (n, c) array
        Columns of the kernel matrix.
    W : (c, c) array
        The rows of C that belong to the landmarks, symmetric.

    Returns
    -------
    Z : (n, r) array
    T : (c, r) array
    r : int
        Numerical rank of W.

    References
    ----------
    C. Williams and M. Seeger (2001), Using the Nystrom method to speed up kernel machines.
    """
    s, U = scipy.linalg.eigh(W, driver="evd")
    kept = s > len(W) * _EPS * max(s[-1], 0.0) if len(s) else np.zeros(0, dtype=bool)
    T = np.ascontiguousarray((U[:, kept] / np.sqrt(s[kept]))[:, ::-1])
    return C @ T, T, T.shape[1]


def landmark_factor(C: Array, W: Array, trace: float, tol: float = 0.0) -> tuple[Array, Indices, Array, float]:
    """Factorise the Nystrom approximation for given landmarks by pivoted Cholesky of their block.

    Parameters
    ----------
    C, W : as in ``nystrom_factor``
    trace : float
        That of K.
    tol : float
        Landmarks beyond the first that leave at most ``tol`` times the trace are left out.

    Returns
    -------
    Z : (n, r) array
        ``C W^+ C' ~ Z Z'``, up to a residual of the landmarks' block that is rounding.
    kept : (r,) array
        The landmarks that the others don't make superfluous, as columns of C, greediest first.
    T : (r, r) array
        Upper triangular, ``Z = C[:, kept] T``.
    residual : float
        Trace of ``K - Z Z'``, which is positive semidefinite.
    """
    kept, L = independent(W, len(C) * _EPS * float(np.diag(W).max(initial=0.0)))
    T = np.ascontiguousarray(Cholesky(L).half(np.eye(kept.size)).T)
    Z = times_upper(np.take(C, kept, axis=1), T, overwrite=True)
    r, residual = _enough(Z, max(trace - float(np.vdot(Z, Z)), 0.0), tol * trace)
    return np.ascontiguousarray(Z[:, :r]), kept[:r], np.ascontiguousarray(T[:r, :r]), residual


def pivoted_cholesky(
    columns: Columns, diag: Array, rank: int, seed: int, tol: float = 0.0, block: int | None = None
) -> tuple[Array, Indices, Array, float]:
    """Randomly pivoted Cholesky: landmarks drawn in proportion to what is still unexplained.

    In each round a block of points is drawn with probability proportional to the diagonal of the residual
    ``K - Z Z'``. With S the new points that the block turns out to need and ``R`` the residual, ``R[:, S]`` is
    divided by the Cholesky factor of ``R[S, S]`` and joins Z. At most ``rank`` columns of K and the diagonal are
    evaluated. A point of the block whose residual vanishes given the others is left out.

    Parameters
    ----------
    columns : callable
        ``columns(indices (b,)) -> (n, b)``, columns of K.
    diag : (n,) array
        Diagonal of K.
    rank : int
        Largest number of landmarks, at least 1.
    tol : float
        Stop once the trace of the residual is at most ``tol`` times that of K. What the last round drew in excess is
        left out.
    block : int, optional
        Points drawn in one round, at most. About a quarter of the rank unless given; where there is a tolerance, no
        more than there are already, as few may be enough.

    Returns
    -------
    Z : (n, r) array
        r is at most the rank; it is smaller where the residual has fallen to ``tol``, or to rounding:
        ``n eps max(diag)`` at every point.
    landmarks : (r,) array
        Pairwise different, in the order of their choice.
    T : (r, r) array
        Upper triangular, ``Z = K[:, landmarks] T``.
    residual : float
        Trace of ``K - Z Z'``, which is positive semidefinite.

    References
    ----------
    Y. Chen, E. Epperly, J. Tropp and R. Webber (2023), Randomly pivoted Cholesky.
    """
    n = len(diag)
    rank = min(rank, n)
    size = max(1, rank // 4) if block is None else block
    first = FIRST_BLOCK if tol > 0 else size
    rng = np.random.default_rng(seed)
    Z, landmarks = np.zeros((n, rank)), np.zeros(rank, dtype=np.int64)
    left = np.array(diag, dtype=np.float64)
    floor = n * _EPS * float(left.max(initial=0.0))
    target = tol * float(left.sum())
    left[left <= floor] = 0.0
    r = 0
    while r < rank and (total := float(left.sum())) > target and total > 0:
        drawn = np.unique(rng.choice(n, min(size, max(r, first), rank - r), p=left / total))
        G = columns(drawn) - Z[:, :r] @ Z[drawn, :r].T
        kept, L = independent(G[drawn], floor)
        if not kept.size:
            left[drawn] = 0.0  # only rounding was left of them
            continue
        S = drawn[kept]
        Z[:, r : r + S.size] = Cholesky(L).half(G[:, kept].T).T
        landmarks[r : r + S.size] = S
        left -= np.einsum("ij,ij->i", Z[:, r : r + S.size], Z[:, r : r + S.size])
        left[left <= floor] = 0.0
        left[S] = 0.0
        r += S.size
    r, residual = _enough(Z[:, :r], float(left.sum()), target)
    Z, landmarks = np.ascontiguousarray(Z[:, :r]), landmarks[:r]
    T = Cholesky(np.tril(Z[landmarks])).half(np.eye(r)).T if r else np.zeros((0, 0))
    return Z, landmarks, np.ascontiguousarray(T), residual


def _enough(Z: Array, left: float, target: float) -> tuple[int, float]:
    """Return how many columns leave a trace of at most ``target``, and what they leave; all of them leave ``left``."""
    if target <= left:
        return Z.shape[1], left
    lengths = np.einsum("ij,ij->j", Z, Z)
    without = left + np.cumsum(np.append(0.0, lengths[::-1]))[::-1]  # by the first 0, 1, ... columns
    r = int(np.argmax(without <= target))
    return r, float(without[r])


def independent(A: Array, floor: float) -> tuple[Indices, Array]:
    """Greedy pivoted Cholesky of a small block ``A (b, b)``: the rows above ``floor``, and their factor."""
    L, pivots, rank, _ = scipy.linalg.lapack.dpstrf(A, tol=floor, lower=1)
    return pivots[:rank].astype(np.int64) - 1, np.tril(L[:rank, :rank])
