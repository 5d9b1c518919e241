"""Twins of fits and held-out outputs: plain NumPy that follows the mathematics line by line.

Everything works in the coordinates of features ``Z (n, r)`` with ``K = Z Z'``, on dense matrices, one fold at a time.
A loss is a function ``(y, f) -> (V, dV/df, d2V/df2)`` of arrays.
"""

from itertools import pairwise

import numpy as np
import scipy.optimize

from twins import losses


def folds(starts):
    """The rows of each fold."""
    return [np.arange(lo, hi) for lo, hi in pairwise(starts)]


def features(K):
    """``Z (n, n)`` with ``Z Z' = K``."""
    ev, U = np.linalg.eigh(K)
    return U * np.sqrt(np.maximum(ev, 0))


def ridged(Z, bias):
    """1 for the columns of features that are penalised, and 0 for that of a bias, which is the last one."""
    return np.arange(Z.shape[1]) < Z.shape[1] - bias


def objective(loss, Z, y, s, lam, w, bias=0):
    """``J = (1/N) sum s V(y, Z w) + lam ||w||^2``, its gradient and its Hessian."""
    v, d1, d2 = loss(y, Z @ w)
    N, P = s.sum(), lam * ridged(Z, bias)
    gradient = Z.T @ (s * d1) / N + 2 * P * w
    return s @ v / N + P * w @ w, gradient, Z.T @ ((s * d2)[:, None] * Z) / N + 2 * np.diag(P)


def fit(loss, Z, y, s, lam, bias=0):
    """Minimise ``J`` by Newton's method with halved steps; at rounding level, three whole steps to finish."""
    w = np.zeros(Z.shape[1])
    last = steps = 0
    while last < 3:
        steps += 1
        assert steps < 1000, "there is no minimum"
        J, gradient, H = objective(loss, Z, y, s, lam, w, bias)
        if bias and H[-1, -1] == 0:  # no row has curvature: the bias goes to a minimum by itself
            along = lambda b: objective(loss, Z, y, s, lam, np.append(w[:-1], b), bias)[0]  # noqa: B023, E731
            if abs(gradient[-1]) > 1e-12:
                w[-1] = scipy.optimize.minimize_scalar(along, bracket=(w[-1], w[-1] - np.sign(gradient[-1]))).x
            J, gradient, H = objective(loss, Z, y, s, lam, w, bias)
            H[-1, -1] = max(H[-1, -1], 0.01)
        p = -np.linalg.solve(H, gradient)
        step = 1.0
        if -gradient @ p <= 1e-14 * J:
            last += 1
        else:
            while objective(loss, Z, y, s, lam, w + step * p, bias)[0] > J + 1e-4 * step * gradient @ p:
                step /= 2
        w = w + step * p
    return w


def refits(loss, Z, y, lam, starts, s=None, bias=0):
    """Held-out outputs ``(n,)``: delete the rows of a fold, fit the others, predict the fold."""
    out, s = np.zeros(y.size), np.ones(y.size) if s is None else s
    for S in folds(starts):
        w = fit(loss, np.delete(Z, S, 0), np.delete(y, S), np.delete(s, S), lam, bias)
        out[S] = Z[S] @ w
    return out


def fit_square(K, y, s, lam, bias):
    """Coefficients and bias ``(k, n + 1)``: ``(K + N lam S^-1) a + b = y``, and ``sum a = 0`` or ``b = 0``."""
    n = len(K)
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = K + s.sum() * lam * np.diag(1 / s)
    A[:n, n] = A[n, :n] = bias
    A[n, n] = 1 - bias
    return np.linalg.solve(A, np.append(y.T, np.zeros((1, *y.shape[:-1])), axis=0)).T


def refits_square(K, y, lam, starts, s=None, bias=0, training=None):
    """The same for the square loss, on the rows that are left, or on those of ``training (t, n)``."""
    out, s = np.zeros(y.shape), np.ones(len(K)) if s is None else s
    for fold, S in enumerate(folds(starts)):
        T = np.setdiff1d(np.arange(len(K)), S) if training is None else np.flatnonzero(training[fold])
        a = fit_square(K[np.ix_(T, T)], y[..., T], s[T], lam, bias)
        out[..., S] = (np.column_stack([K[np.ix_(S, T)], np.ones(S.size)]) @ a.T).T
    return out


def newton_step(loss, Z, y, lam, w, starts, s=None, bias=0):
    """``Z_S (w + delta)``, ``delta = [2 (N - N_S) lam I + Z' D Z - Z_S' D_S Z_S]^-1 (2 N_S lam w + Z_S' d1_S)``."""
    out, s = np.zeros(y.size), np.ones(y.size) if s is None else s
    for S in folds(starts):
        out[S] = Z[S] @ (w + step_of(loss, Z, y, lam, w, S, s, bias))
    return out


def step_of(loss, Z, y, lam, w, S, s, bias):
    """``delta`` for one fold."""
    _, d1, d2 = loss(y, Z @ w)
    d1, d2, P, N, m = s * d1, s * d2, ridged(Z, bias), s.sum(), s[S].sum()
    H = 2 * (N - m) * lam * np.diag(P) + Z.T @ (d2[:, None] * Z) - Z[S].T @ (d2[S, None] * Z[S])
    return np.linalg.solve(H, 2 * m * lam * P * w + Z[S].T @ d1[S])


def influence(loss, Z, y, lam, w, S, order, factor=1.0, s=None, bias=0):
    """``B_1 .. B_order``, the derivatives in eps of the fit to ``(1 - eps) P + eps Q``, Q the fold S.

    ``L = 2 lam I + H_P``, ``B_1 = -L^-1 (2 lam w + Z_S' d1_S / m)``, ``B_{k+1} = (k + 1) L^-1 (H_P - H_Q) B_k``.
    (BIF14, Theorem 2, prints ``2 H_P``: ``factor=2``.)
    """
    L, H_P, H_Q, pull = operators(loss, Z, y, lam, w, S, s, bias)
    B = [-np.linalg.solve(L, 2 * lam * ridged(Z, bias) * w + pull)]
    for k in range(1, order):
        B.append((k + 1) * np.linalg.solve(L, factor * (H_P @ B[-1]) - H_Q @ B[-1]))
    return B


def operators(loss, Z, y, lam, w, S, s=None, bias=0):
    """L, the Hessians of the losses on P and on Q, and the gradient of the loss on Q."""
    s = np.ones(y.size) if s is None else s
    _, d1, d2 = loss(y, Z @ w)
    d1, d2, N, m = s * d1, s * d2, s.sum(), s[S].sum()
    H_P, H_Q = Z.T @ (d2[:, None] * Z) / N, Z[S].T @ (d2[S, None] * Z[S]) / m
    return 2 * lam * np.diag(ridged(Z, bias)) + H_P, H_P, H_Q, Z[S].T @ d1[S] / m


def series(loss, Z, y, lam, w, starts, order, factor=1.0, s=None, bias=0):
    """The BIF of the given order: ``Z_S (w + sum_k eps^k B_k / k!)`` with ``eps = -N_S / (N - N_S)``."""
    out, weights = np.zeros(y.size), np.ones(y.size) if s is None else s
    for S in folds(starts):
        total, scale = w.copy(), 1.0
        for k, B in enumerate(influence(loss, Z, y, lam, w, S, order, factor, s, bias), 1):
            scale *= -weights[S].sum() / (weights.sum() - weights[S].sum()) / k
            total += scale * B
        out[S] = Z[S] @ total
    return out


def ratios(loss, Z, y, lam, w, starts, s=None, bias=0):
    """The spectral radius of ``eps L^-1 (H_P - H_Q)`` for every fold."""
    found, s = [], np.ones(y.size) if s is None else s
    for S in folds(starts):
        L, H_P, H_Q, _ = operators(loss, Z, y, lam, w, S, s, bias)
        eps = s[S].sum() / (s.sum() - s[S].sum())
        found.append(eps * np.abs(np.linalg.eigvals(np.linalg.solve(L, H_P - H_Q))).max())
    return np.array(found)


def contaminated(loss, Z, y, lam, S, eps):
    """The fit ``w`` to ``(1 - eps) P + eps Q``: the weights are ``(1 - eps) / n``, and ``eps / m`` more in the fold."""
    s = np.full(y.size, (1 - eps) / y.size)
    s[S] += eps / S.size
    return fit(loss, Z, y, s, lam)


def differences(loss, Z, y, lam, S, reach):
    """The first three derivatives of ``contaminated`` at 0, from a polynomial through 9 points within ``reach``."""
    nodes = np.cos(np.pi * (np.arange(9) + 0.5) / 9)
    fits = np.array([contaminated(loss, Z, y, lam, S, reach * x) for x in nodes])
    taylor = np.linalg.solve(np.vander(nodes, increasing=True), fits)
    return [taylor[1] / reach, 2 * taylor[2] / reach**2, 6 * taylor[3] / reach**3]


def nystrom_influence_square(K, V, y, lam, f, starts):
    """FBIF of the square loss, ``f + eps B``: ``(1/lam)[I - V (n lam I + V' V)^-1 V']``, all halved as printed."""
    n, c = V.shape
    inverse = (np.eye(n) - V @ np.linalg.solve(n * lam * np.eye(c) + V.T @ V, V.T)) / lam
    return fbif(inverse, K, y - f, lam * f, starts, 1.0, f)


def nystrom_influence_hinge(K, V, y, lam, h, f, starts, sign=-1.0, mask=True):
    """FBIF of the Huber hinge, ``f + eps B``: ``(1/(2 lam))[I - V (4 n lam h I + V' I0 V)^-1 V' I0]``.

    FBIF18 prints ``sign=+1`` and no ``I0``: ``mask=False``.
    """
    _, d1, d2 = losses.huber_hinge(h)(y, f)
    n, c = V.shape
    I0 = np.diag((d2 > 0).astype(float)) if mask else np.eye(n)
    inverse = (np.eye(n) - V @ np.linalg.solve(4 * n * lam * h * np.eye(c) + V.T @ I0 @ V, V.T @ I0)) / (2 * lam)
    return fbif(inverse, K, d1, 2 * lam * f, starts, sign, f)


def fbif(inverse, K, pull, shrink, starts, sign, f):
    """``B = L~^-1 (sign (K o C_i) pull / m - shrink)``: column j of ``K o C_i`` is that of K where j is in the fold."""
    out = np.empty(f.size)
    for S in folds(starts):
        C = np.zeros(K.shape)
        C[:, S] = 1.0
        B = inverse @ (sign * (K * C) @ pull / S.size - shrink)
        out[S] = f[S] - S.size / (f.size - S.size) * B[S]
    return out
