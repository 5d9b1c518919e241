"""Systems of curved rows from the factor of other ones, where few rows have changed.

A loss that is piecewise quadratic has the same curvature on all rows of a piece. From one Newton step to the next some
rows leave the curved ones, g, and some are new, q. With the factor ``L L'`` of the system A of the earlier curved rows
c, and the products ``A_cq`` with the new ones, today's system with the right side b is

    A_cc x_c + A_cq x_q + E_g l  =  b_c  (0 on g),     A_qc x_c + A_qq x_q  =  b_q,     x_g  =  0,

with multipliers l. With ``W = [L^-1 E_g, L^-1 A_cq]`` and ``y = L^-1 b_c`` that leaves

    [W_g' W_g, W_g' W_q; W_q' W_g, W_q' W_q - A_qq] [l; x_q]  =  [W_g' y; W_q' y - b_q],
    x_c  =  L'^-1 (y - W_g l - W_q x_q),

of which the first block is positive definite, and what is left of the second one is negative definite. Columns of W and
their products are kept: each row that changes costs one solution with L, once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernsel.numerics.runtime.blas import damped_cholesky, inner, solve_half, solve_rows
from kernsel.numerics.runtime.jit import inline
from kernsel.types import Array, Indices

KEPT = 2
"""One column is kept for so many rows of the factor; where more rows have changed a new factor is made."""

AT_ONCE = 8
"""One column for so many rows of the factor is added in a step at most: with more a new factor takes no longer, as
multiplications there are some five times as fast as in single solutions."""


class Changes(NamedTuple):
    """Rows that changed since a factor was made.

    Parameters
    ----------
    W : (k, m) array
        Columns, as rows, of which the first ``size`` count.
    products : (k, k) array
        ``W W'``.
    column : (n,) array of int
        Which one is that of a row; -1 for none.
    place : (n,) array of int
        The place of a row among those of the factor; -1 for none.
    root : (n,) array
        ``D^1/2`` that the column of a new row was made with.
    size : (1,) array of int
    """

    W: Array
    products: Array
    column: Indices
    place: Indices
    root: Array
    size: Indices


@inline
def no_changes(n, rows, m):
    """Return the changes since a factor of the first m of the ``rows`` was made."""
    column, place, most = np.full(n, -1), np.full(n, -1), m // KEPT
    for i in range(m):
        place[rows[i]] = i
    return Changes(np.empty((most, m)), np.empty((most, most)), column, place, np.empty(n), np.zeros(1, np.int64))


@inline
def differing_rows(changes, rows, root, known, gone, new):
    """Fill ``gone (n,)`` and ``new (n,)`` with rows of a factor that aren't curved, and curved ones that it hasn't.

    Parameters
    ----------
    changes : Changes
    rows, root : (n,), (m,)
        Curved rows, of which the first m count, and ``D^1/2`` on them.
    known : (n,)
        ``D^1/2`` of the factor.
    gone, new : (n,)

    Returns
    -------
    gone, new : int
        How many there are.
    worthwhile : bool
        Whether these are few, and no row has another curvature than in the factor or its column.
    """
    n, most = known.size, changes.W.shape[0]
    i, off, on, more, same = 0, 0, 0, 0, True
    for k in range(n):
        curved = i < root.size and rows[i] == k
        if curved:
            if changes.place[k] < 0:
                new[on] = k
                on += 1
                if changes.column[k] < 0:
                    more += 1
                else:
                    same &= root[i] == changes.root[k]
            else:
                same &= root[i] == known[k]
            i += 1
        elif changes.place[k] >= 0:
            gone[off] = k
            off += 1
            more += changes.column[k] < 0
    few = changes.size[0] + more <= most and AT_ONCE * more <= changes.W.shape[1]
    return off, on, same and few


@inline
def add_column(K, R, rows, known, changes, row, root):
    """Keep the column of a row, whose ``D^1/2`` is ``root`` if it is new."""
    W, products, column, place, roots, size = changes
    count, m = size[0], W.shape[1]
    w = W[count]
    for i in range(m):
        w[i] = 0.0
    if place[row] >= 0:
        w[place[row]] = 1.0
    else:
        for k in range(known.size):
            if place[k] >= 0:
                w[place[k]] = root * known[k] * K[row, k]
    solve_half(R, w, False)
    for i in range(count + 1):
        products[count, i] = inner(W[i], w)
        products[i, count] = products[count, i]
    column[row] = count
    roots[row] = root
    size[0] = count + 1


@inline
def solve_changed(K, R, changes, known, rows, root, mu, gone, new, B):
    """Overwrite each row of ``B (k, m)`` by the solution with the system of today's curved rows; return 0, or -1.

    Parameters
    ----------
    K : (n, n)
    R : (c, c)
        The factor.
    changes : Changes
    known : (n,)
        ``D^1/2`` of the factor.
    rows, root : (n,), (m,)
        Curved rows, of which the first m count, and ``D^1/2`` on them.
    mu : float
    gone, new : (g,), (q,)
        Those of ``differing_rows``.
    B : (k, m)
    """
    W, products, column, place, _, _ = changes
    g, q, m = gone.size, new.size, W.shape[1]
    at = np.full(known.size, -1)
    for i in range(root.size):
        at[rows[i]] = i
    for row in gone:
        if column[row] < 0:
            add_column(K, R, rows, known, changes, row, 0.0)
    for row in new:
        if column[row] < 0:
            add_column(K, R, rows, known, changes, row, root[at[row]])
    P, E, T = np.empty((g, g)), np.empty((q, g)), np.empty((q, q))
    for i in range(g):
        for j in range(g):
            P[i, j] = products[column[gone[i]], column[gone[j]]]
    for i in range(q):
        for j in range(g):
            E[i, j] = products[column[new[i]], column[gone[j]]]
    if damped_cholesky(P) != 0:
        return -1
    solve_rows(P, E)
    across = np.empty((q, g))
    for i in range(q):
        for j in range(g):
            across[i, j] = products[column[new[i]], column[gone[j]]]
    for i in range(q):
        a = root[at[new[i]]]
        for j in range(i + 1):
            b = root[at[new[j]]]
            T[i, j] = a * b * K[new[i], new[j]] - products[column[new[i]], column[new[j]]] + inner(E[i], across[j])
        T[i, i] += mu
    if damped_cholesky(T) != 0:
        return -1
    y, of_gone, of_new = np.empty(m), np.empty(g), np.empty(q)
    for b in B:
        for i in range(m):
            y[i] = 0.0
        for i in range(root.size):
            if place[rows[i]] >= 0:
                y[place[rows[i]]] = b[i]
        solve_half(R, y, False)
        for i in range(g):
            of_gone[i] = inner(W[column[gone[i]]], y)
        solve_rows(P, of_gone)
        for i in range(q):
            of_new[i] = b[at[new[i]]] - inner(W[column[new[i]]], y) + inner(across[i], of_gone)
        solve_rows(T, of_new)
        for i in range(q):
            for j in range(g):
                of_gone[j] -= E[i, j] * of_new[i]
        for i in range(g):
            take_away(of_gone[i], W[column[gone[i]]], y)
        for i in range(q):
            take_away(of_new[i], W[column[new[i]]], y)
        solve_half(R, y, True)
        for i in range(root.size):
            if place[rows[i]] >= 0:
                b[i] = y[place[rows[i]]]
        for i in range(q):
            b[at[new[i]]] = of_new[i]
    return 0


@inline
def take_away(share, w, y):
    """Take ``share w`` off ``y (m,)``."""
    for i in range(y.size):
        y[i] -= share * w[i]


@inline
def add_bias(root, total, u, t):
    """Turn ``t (m,)``, the solution without a bias, into that with ``r' t = total``, ``r = D^1/2``; return the bias.

    ``u (m,)`` is the solution with the right side r.
    """
    db = (inner(root, t) - total) / inner(root, u)
    for i in range(t.size):
        t[i] -= db * u[i]
    return db


@inline
def solve_by_changes(K, R, changes, known, rows, root, mu, total, bias, t):
    """Overwrite ``t (m,)`` by the solution of ``(D^1/2 K D^1/2 + mu I) x + db r = t``, ``r = D^1/2``.

    With a bias ``r' x = total``, else ``db = 0``. The other arguments are those of ``solve_changed``.

    Returns
    -------
    db : float
    status : int
        0, or -1 where a new factor is better, and t is left.
    """
    n, m = known.size, t.size
    gone, new = np.empty(n, np.int64), np.empty(n, np.int64)
    off, on, worthwhile = differing_rows(changes, rows, root, known, gone, new)
    if not worthwhile:
        return 0.0, -1
    B = np.empty((1 + bias, m))
    for i in range(m):
        B[bias, i] = root[i]
        B[0, i] = t[i]
    if solve_changed(K, R, changes, known, rows, root, mu, gone[:off], new[:on], B) != 0:
        return 0.0, -1
    for i in range(m):
        t[i] = B[0, i]
    return add_bias(root, total, B[1], t) if bias else 0.0, 0


@inline
def unsolved(d1, d2, a, mu):
    """Return a bound of what the next step can promise where the last one, without changes of pieces, was taken whole.

    Times N: ``e' (D^1/2 K D^1/2 + mu I)^-1 e <= e'e / mu`` with what is left of the gradient,
    ``e = D^-1/2 (d1 + mu a)``, on the curved rows.

    Parameters
    ----------
    d1, d2 : (n,), (n,)
    a : (n,) or (n + 1,)
    mu : float
    """
    total = 0.0
    for i in range(d2.size):
        if d2[i] > 0.0:
            total += (d1[i] + mu * a[i]) ** 2 / d2[i]
    return total / mu
