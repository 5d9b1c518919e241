"""BLAS and LAPACK inside compiled loops: in place, on row-major arrays, and without exceptions.

Numba's own ``np.linalg`` raises, and an exception can't leave a parallel loop. These wrappers call the routines that
SciPy exports, by symbol name, so that the machine code can be cached.

LAPACK is column-major, so that its upper triangle is our lower one. A symmetric matrix is given by its **lower**
triangle, ``A[i, j]`` with ``j <= i``; what stands above is ignored. Arrays are C-contiguous and used whole.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding
import numpy as np
from numba.core import types
from numba.extending import get_cython_function_address

from kernsel.numerics.runtime.cache import COMPILES
from kernsel.numerics.runtime.jit import REORDER, inline

UPPER, PLAIN, TRANSPOSED, LEFT = (np.frombuffer(letter, np.uint8) for letter in (b"U", b"N", b"T", b"L"))
# "N" also says that a triangular matrix has a diagonal of its own

TILE = 32
"""Rows and columns of a tile that the fastest cache holds twice."""

TRIALS = 6
"""Times that a matrix is factorised: as it is, and with jitters up to a relative one of 1e-6."""


def _routine(module: str, name: str, count: int) -> Any:
    """Return a routine of ``count`` pointers, none of which it keeps: for compiled code, or for Python without it."""
    address = get_cython_function_address(f"scipy.linalg.{module}", name)
    if not COMPILES:
        return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(address)
    symbol = f"kernsel_{name}"
    llvmlite.binding.add_symbol(symbol, address)
    return types.ExternalFunction(symbol, types.void(*[types.voidptr] * count))


_dpotrf = _routine("cython_lapack", "dpotrf", 5)
_dpotri = _routine("cython_lapack", "dpotri", 5)
_dtrtri = _routine("cython_lapack", "dtrtri", 6)
_dpotrs = _routine("cython_lapack", "dpotrs", 8)
_dsyrk = _routine("cython_blas", "dsyrk", 10)
_dtrsv = _routine("cython_blas", "dtrsv", 8)
_dtrsm = _routine("cython_blas", "dtrsm", 11)
_dgemv = _routine("cython_blas", "dgemv", 11)
_dgemm = _routine("cython_blas", "dgemm", 13)
_spotrf = _routine("cython_lapack", "spotrf", 5)
_spotri = _routine("cython_lapack", "spotri", 5)
_sgemm = _routine("cython_blas", "sgemm", 13)


# Numba's own functions (np.array of a list, reshape, sum, np.dot, slices on the left, array expressions) take it up to
# ten times as long to compile as these and as plain loops.


@inline
def integer(value):
    """Return an integer as these routines take it: by its address."""
    box = np.empty(1, np.int32)
    box[0] = value
    return box


@inline
def number(value):
    """Return a float64 number by its address."""
    box = np.empty(1)
    box[0] = value
    return box


@inline(fastmath=REORDER)
def sum_of(a):
    """Return the sum of a vector."""
    total = 0.0
    for i in range(a.size):
        total += a[i]
    return total


@inline(fastmath=REORDER)
def inner(a, b):
    """Return the inner product of two vectors."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@inline
def fill(out, value):
    """Set every entry of a vector."""
    for i in range(out.size):
        out[i] = value


@inline
def times(A, x, out):
    """Fill ``out (n,)`` with ``A x`` for ``A (n, m)``, row by row, which for small matrices is faster than BLAS."""
    for i in range(A.shape[0]):
        out[i] = inner(A[i], x)


@inline
def multiply(A, x, out):
    """Fill ``out (n,)`` with ``A x`` for ``A (n, m)`` by BLAS."""
    if A.size == 0:
        fill(out, 0.0)
        return
    _multiply(TRANSPOSED, A, x, out)


@inline
def multiply_transposed(A, x, out):
    """Fill ``out (m,)`` with ``A' x`` for ``A (n, m)`` by BLAS."""
    if A.size == 0:
        fill(out, 0.0)
        return
    _multiply(PLAIN, A, x, out)


@inline
def _multiply(form, A, x, out):
    n, m, one = integer(A.shape[0]), integer(A.shape[1]), integer(1)
    _dgemv(
        form.ctypes, m.ctypes, n.ctypes, number(1.0).ctypes, A.ctypes, m.ctypes, x.ctypes, one.ctypes,
        number(0.0).ctypes, out.ctypes, one.ctypes,
    )  # fmt: skip


@inline
def inner_products(A, B):
    """Return ``A B'`` (n, k) for ``A (n, m)`` and ``B (k, m)``."""
    out = np.zeros((A.shape[0], B.shape[0]))
    _multiply_matrices(TRANSPOSED, A, B, out)
    return out


@inline
def rows_times(B, A):
    """Return ``B A`` (k, n) for ``B (k, m)`` and ``A (m, n)``: a fifth faster than ``inner_products`` for few rows."""
    out = np.zeros((B.shape[0], A.shape[1]))
    _multiply_matrices(PLAIN, B, A, out)
    return out


@inline
def put_rows_times(B, A, out):
    """Fill ``out (k, n)`` with ``B A``, in memory that is there already."""
    _multiply_matrices(PLAIN, B, A, out)


@inline
def _multiply_matrices(form, A, B, out):
    """Fill ``out (n, k)`` with the product of ``A (n, m)`` and B, plain (m, k) or transposed (k, m)."""
    if A.size > 0 and B.size > 0:
        n, k, m, width = integer(A.shape[0]), integer(out.shape[1]), integer(A.shape[1]), integer(B.shape[1])
        _dgemm(
            form.ctypes, PLAIN.ctypes, k.ctypes, n.ctypes, m.ctypes, number(1.0).ctypes, B.ctypes, width.ctypes,
            A.ctypes, m.ctypes, number(0.0).ctypes, out.ctypes, k.ctypes,
        )  # fmt: skip


@inline
def single(value):
    """Return a float32 number by its address."""
    box = np.empty(1, np.float32)
    box[0] = value
    return box


@inline
def rows_times_in(B, A):
    """Return ``B A`` (k, n) for ``B (k, m)`` and ``A (m, n)``, all in float32 or all in float64."""
    out = np.zeros((B.shape[0], A.shape[1]), A.dtype)
    if A.itemsize == 8:
        _multiply_matrices(PLAIN, B, A, out)
    elif A.size > 0 and B.size > 0:
        k, m, n = integer(B.shape[0]), integer(B.shape[1]), integer(A.shape[1])
        _sgemm(
            PLAIN.ctypes, PLAIN.ctypes, n.ctypes, k.ctypes, m.ctypes, single(1.0).ctypes, A.ctypes, n.ctypes,
            B.ctypes, m.ctypes, single(0.0).ctypes, out.ctypes, n.ctypes,
        )  # fmt: skip
    return out


@inline
def single_inverse(A):
    """Overwrite ``A (n, n)`` in float32, given by its lower triangle, by the whole of its inverse; return 0, or -1."""
    n, info = integer(A.shape[0]), integer(0)
    _spotrf(UPPER.ctypes, n.ctypes, A.ctypes, n.ctypes, info.ctypes)
    if info[0] != 0:
        return -1
    for i in range(A.shape[0]):  # not every LAPACK notices NaN and infinity
        if not 0.0 < A[i, i] < np.inf:
            return -1
    _spotri(UPPER.ctypes, n.ctypes, A.ctypes, n.ctypes, info.ctypes)
    mirror(A)
    return 0


@inline
def mirror(A):
    """Copy the lower triangle of ``A (n, n)`` to the upper one, in tiles: columns of all rows would miss the cache."""
    n = A.shape[0]
    for top in range(0, n, TILE):
        for side in range(0, top + 1, TILE):
            for i in range(top, min(top + TILE, n)):
                for j in range(side, min(side + TILE, i)):
                    A[j, i] = A[i, j]


@inline
def cholesky(A):
    """Overwrite the lower triangle of ``A (n, n)`` by its Cholesky factor; return 0, or the failing row + 1."""
    if A.shape[0] == 0:  # LAPACK wants a leading dimension of at least 1
        return 0
    n, info = integer(A.shape[0]), integer(0)
    _dpotrf(UPPER.ctypes, n.ctypes, A.ctypes, n.ctypes, info.ctypes)
    if info[0] == 0:
        for i in range(A.shape[0]):  # not every LAPACK notices NaN and infinity
            if not 0.0 < A[i, i] < np.inf:
                return i + 1
    return info[0]


@inline
def solve_rows(R, B):
    """Overwrite each row b of ``B (k, n)``, or ``b = B (n,)``, by ``A^-1 b``; ``R`` is the Cholesky factor of A."""
    if B.size == 0:
        return
    n, k, info = integer(R.shape[0]), integer(B.size // R.shape[0]), integer(0)
    if k[0] == 1:  # up to four times as fast as the routine for many right sides
        _dtrsv(UPPER.ctypes, TRANSPOSED.ctypes, PLAIN.ctypes, n.ctypes, R.ctypes, n.ctypes, B.ctypes, k.ctypes)
        _dtrsv(UPPER.ctypes, PLAIN.ctypes, PLAIN.ctypes, n.ctypes, R.ctypes, n.ctypes, B.ctypes, k.ctypes)
        return
    _dpotrs(UPPER.ctypes, n.ctypes, k.ctypes, R.ctypes, n.ctypes, B.ctypes, n.ctypes, info.ctypes)


@inline
def solve_half(R, b, back):
    """Overwrite ``b (n,)`` by ``L^-1 b`` with the Cholesky factor ``R = L`` of A, or by ``L'^-1 b`` if it goes back."""
    n, one = integer(R.shape[0]), integer(1)
    form = PLAIN if back else TRANSPOSED
    _dtrsv(UPPER.ctypes, form.ctypes, PLAIN.ctypes, n.ctypes, R.ctypes, n.ctypes, b.ctypes, one.ctypes)


@inline
def solve_half_rows(R, B):
    """Overwrite each row b of ``B (k, n)`` by ``R^-1 b``, with the lower triangle of R."""
    if B.size == 0:
        return
    n, k = integer(B.shape[1]), integer(B.shape[0])
    _dtrsm(
        LEFT.ctypes, UPPER.ctypes, TRANSPOSED.ctypes, PLAIN.ctypes, n.ctypes, k.ctypes, number(1.0).ctypes, R.ctypes,
        n.ctypes, B.ctypes, n.ctypes,
    )  # fmt: skip


@inline
def inverse(R):
    """Overwrite the Cholesky factor ``R (n, n)`` of ``A`` by the whole of ``A^-1``."""
    if R.shape[0] == 0:
        return
    n, info = integer(R.shape[0]), integer(0)
    _dpotri(UPPER.ctypes, n.ctypes, R.ctypes, n.ctypes, info.ctypes)
    mirror(R)


@inline
def invert_factor(R):
    """Overwrite the Cholesky factor ``R (n, n)``, of whose upper triangle nothing is read or left, by ``R^-1``."""
    n, info = integer(R.shape[0]), integer(0)
    _dtrtri(UPPER.ctypes, PLAIN.ctypes, n.ctypes, R.ctypes, n.ctypes, info.ctypes)


@inline
def add_products(A, alpha, C):
    """Add ``alpha A' A`` for ``A (k, n)`` to the lower triangle of ``C (n, n)``."""
    if A.shape[0] == 0:
        return
    n, k = integer(A.shape[1]), integer(A.shape[0])
    _dsyrk(
        UPPER.ctypes, PLAIN.ctypes, n.ctypes, k.ctypes, number(alpha).ctypes, A.ctypes, n.ctypes, number(1.0).ctypes,
        C.ctypes, n.ctypes,
    )  # fmt: skip


@inline
def add_inner_products(A, alpha, C):
    """Add ``alpha A A'`` for ``A (n, k)`` to the lower triangle of ``C (n, n)``."""
    if A.shape[1] == 0:
        return
    n, k = integer(A.shape[0]), integer(A.shape[1])
    _dsyrk(
        UPPER.ctypes, TRANSPOSED.ctypes, n.ctypes, k.ctypes, number(alpha).ctypes, A.ctypes, k.ctypes,
        number(1.0).ctypes, C.ctypes, n.ctypes,
    )  # fmt: skip


@inline
def copy_lower(A, C):
    """Copy the lower triangle of ``A`` to ``C``, by loops: what Numba makes of slices compiles for seconds."""
    for i in range(A.shape[0]):
        for j in range(i + 1):
            C[i, j] = A[i, j]


@inline
def damped_cholesky(A):
    """Factorise ``A`` as ``cholesky`` does; where that fails, add a jitter relative to the mean diagonal, and more.

    Returns 0, or -1 when even a relative jitter of 1e-6 doesn't help, or ``A`` is not finite.
    """
    original = np.empty(A.shape)
    copy_lower(A, original)
    return ridged_cholesky(original, 0.0, np.int64(0), A)  # a literal would be a type of its own


@inline
def ridged_cholesky(H, ridge, free, R):
    """Fill ``R`` with the factor of ``H + ridge I``, with a jitter as in ``damped_cholesky`` where that is needed.

    The last ``free`` rows get no ridge.
    """
    n = H.shape[0]
    mean = 0.0
    for i in range(n):
        mean += (H[i, i] + ridge) / n
    jitter = 0.0
    for _ in range(TRIALS):
        copy_lower(H, R)
        for i in range(n):
            R[i, i] += (ridge if i < n - free else 0.0) + jitter
        if cholesky(R) == 0:
            return 0
        jitter = more_jitter(jitter, mean)
    return -1


@inline
def more_jitter(jitter, mean):
    """Return the jitter to try after one that didn't help, from the mean diagonal."""
    return max(100.0 * jitter, 1e-14 * mean)


@inline
def damped_solve(A, b):
    """Overwrite ``b (n,)`` by ``A^-1 b`` and ``A`` by its factor; return the status of ``damped_cholesky``."""
    status = damped_cholesky(A)
    if status == 0:
        solve_rows(A, b)
    return status
