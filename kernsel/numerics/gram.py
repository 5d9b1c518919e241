"""Gram matrices in parallel tiles: inner products, squared and absolute distances, and functions of them.

The three statistics of a pair of points on which kernels stand::

    inner   <x, z>          sqdist   |x - z|^2          l1   sum_k |x_k - z_k|

and the three families of functions of a statistic s that the built-in kernels are made of::

    exponential   (1 + b u + c u^2) exp(-u),  u = a s  or  u = a sqrt(s)
    power         (a s + b)^c,                c = 1, 2, 3, ...
    inverse       (1 + a s)^-c,               c > 0

Inner products are matrix products of tiles (BLAS); a tile is finished while it lies in the cache. A symmetric matrix
is computed once a pair and mirrored. Each entry depends on its two points alone, so that the result is the same for
any number of threads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba.core import types

from kernsel.numerics.runtime.jit import CONTRACT, b1, f8, f8_1, f8_2, given_1, given_2, i8, i8_1, inline, jit, record
from kernsel.numerics.runtime.threads import one_blas_thread, share, threads
from kernsel.types import Array

STATISTICS = ("inner", "sqdist", "l1")
INNER, SQDIST, L1 = range(3)
_IDENTITY, _EXPONENTIAL, _ROOT_EXPONENTIAL, _POWER, _INVERSE = range(5)

TILE = 120  # 112 kB lie in the second-level cache; a row of 15 cache lines (an odd number) spreads over its sets
_CHUNK = 1024  # elements mapped at a time: 8 kB stay in the first-level cache
_ALONE = 1 << 16  # elements below which a second thread costs more than it saves
NEAR = 1e-3  # below this share of |x|^2 + |z|^2 a squared distance from inner products has lost digits

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # ln 2 in two parts; k * high is exact for |k| < 2^20 (fdlibm, e_exp.c)
_LN2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, which the lowest bits then hold
_TINY = 2.0**-128
_GONE = 790.0  # from here on exp(-u), and u^2 exp(-u), round to 0


class Formula(NamedTuple):
    """A function of a statistic; build one by :func:`exponential`, :func:`power` or :func:`inverse`."""

    code: int
    a: float
    b: float
    c: float


def exponential(a: float, b: float = 0.0, c: float = 0.0, *, root: bool = False) -> Formula:
    """``(1 + b u + c u^2) exp(-u)`` with ``u = a s``, or ``u = a sqrt(s)`` if ``root``; a > 0, s >= 0."""
    finite = min(float(a), sys.float_info.max)  # infinity times the distance 0 would be NaN
    return Formula(_ROOT_EXPONENTIAL if root else _EXPONENTIAL, finite, float(b), float(c))


def power(a: float, b: float, degree: int) -> Formula:
    """``(a s + b)^degree`` with a whole degree >= 1."""
    return Formula(_POWER, float(a), float(b), float(degree))


def inverse(a: float, exponent: float) -> Formula:
    """``(1 + a s)^-exponent`` with a > 0, s >= 0 and an exponent > 0."""
    return Formula(_INVERSE, min(float(a), sys.float_info.max), 0.0, float(exponent))  # infinity times 0 would be NaN


AS_IT_IS = Formula(_IDENTITY, 1.0, 0.0, 0.0)
FORMULA = record(Formula, i8, f8, f8, f8)


class Pairs(NamedTuple):
    """The two sets of points whose pairs a tile is made of, as read-only arrays; build it by :func:`pairs_of`.

    Parameters
    ----------
    A, B : (n, d), (m, d)
        The points as given.
    X, Z : (n, d), (m, d)
        The same points, centred for squared distances.
    Bt : (d, m)
        B transposed for absolute differences, else empty.
    xx, zz : (n,), (m,)
        Squared norms of the rows of X and Z.
    """

    A: Array
    B: Array
    X: Array
    Z: Array
    Bt: Array
    xx: Array
    zz: Array


PAIRS = record(Pairs, *5 * [given_2], *2 * [types.Array(f8, 1, "C", readonly=True)])


@inline(fastmath=CONTRACT)
def finish(v, formula):
    """Replace the statistics ``v (n,)`` by the ``Formula`` of them, in place.

    The exponential has no branch, so that the loop becomes vector code: ``-u = k ln 2 + r`` with ``|r| <= ln(2)/2``;
    ``exp(r) = 1 + r + r^2 q(r)``, q of degree 9 interpolated at the Chebyshev points (relative error 2e-17); ``2^k``
    by writing k into the exponent bits. Where ``2^k`` would be subnormal, ``2^(k+128)`` is taken and the product
    scaled by ``2^-128``, which rounds once. At most 2 units in the last place; NaN stays NaN.
    """
    code, a, b, c = formula
    if code == _IDENTITY:
        return
    if code == _POWER:
        for i in range(v.size):
            base, result, rest = a * v[i] + b, 1.0, int(c)
            while rest > 0:
                if rest & 1:
                    result *= base
                base *= base
                rest >>= 1
            v[i] = result
        return
    if code == _INVERSE:
        if c == 1.0:
            for i in range(v.size):
                v[i] = 1.0 / (1.0 + a * v[i])
        else:
            for i in range(v.size):
                v[i] = (1.0 + a * v[i]) ** -c
        return
    if code == _ROOT_EXPONENTIAL:
        for i in range(v.size):
            v[i] = np.sqrt(v[i])
    for i in range(v.size):
        u = a * v[i]
        u = _GONE if u > _GONE else u  # also keeps infinity * 0 away
        low = u > 690.0
        t = _ROUND - u * _LOG2E
        k = t - _ROUND
        r = (k * -_LN2_HIGH - u) - k * _LN2_LOW
        r2 = r * r
        r4 = r2 * r2
        q = (0.5 + 0.16666666666666669 * r) + (0.04166666666662413 + 0.008333333333330062 * r) * r2
        p = (0.0013888888917213717 + 0.00019841269863053618 * r) + (
            2.4801521295954376e-05 + 2.7557268459997064e-06 * r
        ) * r2
        q += r4 * (p + r4 * (2.7620088445409746e-07 + 2.510038549551032e-08 * r))
        bits = np.float64(t + (128.0 if low else 0.0)).view(np.int64)
        scale = np.int64((bits + 1023) << 52).view(np.float64)
        e = ((r2 * q + r) + 1.0) * scale
        v[i] = (1.0 + u * (b + u * c)) * e * (_TINY if low else 1.0)


@inline(fastmath=CONTRACT)
def compute_tile(pairs, i0, j0, statistic, formula, flat, T):
    """Fill the tile ``T (h, w)``, of which ``flat (h w,)`` is the memory, for the points A from i0 on and B from j0 on.

    ``|x|^2 + |z|^2 - 2 <x, z>`` loses its digits where x is near z. There the distance is computed anew from the
    differences of the points as given (the centring has rounded too), which are 0 exactly for equal points; their
    squares are never negative.
    """
    A, B, X, Z, Bt, xx, zz = pairs
    h, w = T.shape
    if statistic == L1:
        for i in range(h):
            for j in range(w):
                T[i, j] = 0.0
            for k in range(X.shape[1]):
                x = A[i0 + i, k]
                for j in range(w):
                    T[i, j] += abs(x - Bt[k, j0 + j])
    else:
        np.dot(X[i0 : i0 + h], Z[j0 : j0 + w].T, T)
    if statistic == SQDIST:
        for i in range(h):
            least = np.inf  # below 0: some pair of this row is near
            for j in range(w):
                both = xx[i0 + i] + zz[j0 + j]
                s = both - 2.0 * T[i, j]
                T[i, j] = s
                least = min(least, s - NEAR * both)
            if least < 0.0:
                for j in range(w):
                    if T[i, j] - NEAR * (xx[i0 + i] + zz[j0 + j]) < 0.0:
                        s = 0.0
                        for k in range(X.shape[1]):
                            s += (A[i0 + i, k] - B[j0 + j, k]) ** 2
                        T[i, j] = s
    finish(flat, formula)


@jit(
    types.void(PAIRS, i8_1, i8_1, b1, i8, FORMULA, i8, i8, f8_2),
    fastmath=CONTRACT,
)
def _tiles(pairs, rows, columns, symmetric, statistic, formula, first, step, K):
    """Compute every ``step``-th tile of K and its mirror image."""
    buffer = np.empty(TILE * TILE)
    for tile in range(first, rows.size, step):
        i0, j0 = rows[tile], columns[tile]
        h, w = min(TILE, K.shape[0] - i0), min(TILE, K.shape[1] - j0)
        flat = buffer[: h * w]
        T = flat.reshape((h, w))
        compute_tile(pairs, i0, j0, statistic, formula, flat, T)
        for i in range(h):
            for j in range(w):
                K[i0 + i, j0 + j] = T[i, j]
        if symmetric:
            for j in range(w):
                for i in range(j + 1 if i0 == j0 else 0, h):
                    K[j0 + j, i0 + i] = T[i, j]


@jit(types.void(given_1, FORMULA, i8, i8, f8_1), fastmath=CONTRACT)
def _map(s, formula, first, step, out):
    for low in range(first * _CHUNK, s.size, step * _CHUNK):
        high = min(low + _CHUNK, s.size)
        for i in range(low, high):
            out[i] = s[i]
        finish(out[low:high], formula)


def share_elements(work: Callable[[int, int], None], elements: int) -> None:
    """Run ``work(first, step)`` on all threads, or ``work(0, 1)`` where a matrix has few elements."""
    share(work, 1 if elements < _ALONE else threads())


def pairs_of(statistic: str, X: Array, Z: Array | None = None) -> Pairs:
    """Return what tiles of a statistic of the pairs of X (n, d) and Z (m, d), or of X and X, are made of."""
    A, B = X, X if Z is None else Z
    centred = [A, B]
    if statistic == "sqdist":
        centre = (A.sum(axis=0) + B.sum(axis=0)) / max(len(A) + len(B), 1)
        centre[~np.isfinite(centre)] = 0.0  # any centre is right; a NaN must not spread from its row to all
        centred = [A - centre, B - centre]
    norms = (np.einsum("ij,ij->i", side, side) for side in centred)
    columns = np.ascontiguousarray(B.T) if statistic == "l1" else np.empty((0, 0))
    return Pairs(*(_read_only(each) for each in (A, B, *centred, columns, *norms)))


def _read_only(A: Array) -> Array:
    """Return a view that can't be written to: points may be given as a memory map, and a record has one type."""
    view = A.view()
    view.flags.writeable = False
    return view


def gram(statistic: str, X: Array, Z: Array | None = None, formula: Formula = AS_IT_IS) -> Array:
    """Compute a statistic, or a formula of it, for all pairs of rows.

    Parameters
    ----------
    statistic : {"inner", "sqdist", "l1"}
    X : (n, d) float64, C-contiguous
    Z : (m, d) float64, C-contiguous, or None for the symmetric matrix of X with itself
    formula : Formula
        The statistic itself unless given.

    Returns
    -------
    K : (n, m) array
        Exactly symmetric if Z is None. Squared distances are never negative, and exactly 0 between equal points.
    """
    n, m = len(X), len(X if Z is None else Z)
    pairs = pairs_of(statistic, X, Z)
    rows, columns = np.indices((-(-n // TILE), -(-m // TILE))).reshape(2, -1) * TILE
    if Z is None:
        rows, columns = rows[columns <= rows], columns[columns <= rows]
    code = STATISTICS.index(statistic)
    K = np.empty((n, m))
    loop = _tiles.code  # compiled here, not by several threads at once

    def task(first: int, step: int) -> None:
        loop(pairs, rows, columns, Z is None, code, formula, first, step, K)

    with one_blas_thread():
        share_elements(task, n * m)
    return K


def apply(formula: Formula, S: Array) -> Array:
    """Map stored statistics, of any shape, to a new array.

    Parameters
    ----------
    S : array of float64

    Returns
    -------
    K : array of the shape of S
    """
    S = np.ascontiguousarray(S, dtype=np.float64)
    K = np.empty_like(S)
    loop = _map.code

    def task(first: int, step: int) -> None:
        loop(S.reshape(-1), formula, first, step, K.reshape(-1))

    share_elements(task, S.size)
    return K
