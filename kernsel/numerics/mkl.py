"""Weights of the kernels in ``K = sum_m weights_m G_m``: objectives, their gradients, and ways to the best weights.

=========  ==========  ====================================================================================
symbol     shape       meaning
=========  ==========  ====================================================================================
``G``      (m, n, n)   Gram matrices
``weights`` (m,)       of the kernels, >= 0
``a``      (k, n)      coefficients of the fits of k outputs on K, ``f = K a``
``q``      (m,)        energies ``q_m = (1/k) sum_c a_c' G_m a_c``
=========  ==========  ====================================================================================

The optimal value of a fit, ``J(weights) = min_f (1/N) sum s V(y, f) + lam ||f||^2`` in the space of K, the mean over
its outputs, is convex in the weights and has the gradient ``-lam q`` (the envelope theorem; Rakotomamonjy et al. 2008,
equation 11, where ``J / (2 lam)`` stands for J). The coefficients for any weights are feasible in the dual of the
problem over all weights of p-norm 1, and so J is above its minimum by at most

    ``lam (max_{|nu|_p = 1} nu'q - weights'q) = lam (|q|_{p*} - weights'q)``,  ``1/p + 1/p* = 1``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernsel.numerics.square.spectral import ROUNDING
from kernsel.numerics.stability import Scan

Fit = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""``weights -> (J, q)``."""

Parts = Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray, np.ndarray]]
"""``weights -> (value, gradient (m,), bounds (n,), derivatives of the bounds (n, m))``."""

Steps = tuple[np.ndarray, list[float], float]
"""The weights, the values of the objective on the way, and the last duality gap, relative to the objective."""

MAX_STEPS = 500
ACCURACY = 1e-9  # of an objective that is minimised by SLSQP
LEFT = 1e-12  # of the largest weight: what SLSQP leaves where the bound 0 is meant
FLAT = 0.1  # a line search ends where this share of the slope at its start is left


def weighted_sum(G: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return ``K = sum_m weights_m G_m``, (n, n).

    Parameters
    ----------
    G : (m, n, n) array
        Gram matrices.
    weights : (m,) array
        At least 0.
    """
    K: np.ndarray = np.tensordot(weights, G, 1)
    return K


def energies(G: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return ``q``, (m,).

    Parameters
    ----------
    G : (m, n, n) array
        Gram matrices.
    a : (k, n) array
        Coefficients of k outputs.
    """
    return np.array([np.vdot(a @ each, a) for each in G]) / len(a)


def relative_gap(weights: np.ndarray, J: float, q: np.ndarray, lam: float, p: float) -> float:
    """Return by how much J is at most above its minimum over ``weights >= 0`` of p-norm 1, relative to J.

    Parameters
    ----------
    weights : (m,) array
        At least 0.
    J : float
        The objective at these weights.
    q : (m,) array
        The energies there.
    p : float
        Of the norm, at least 1.
    """
    size = q.max()
    if not size > 0.0:  # nothing is fitted
        return 0.0
    dual_norm = 1.0 if p == 1 else np.linalg.norm(q / size, p / (p - 1.0))
    return float(lam * (size * dual_norm - weights @ q) / J)


def reduced_gradient(fit: Fit, weights: np.ndarray, lam: float, tolerance: float) -> Steps:
    """Minimise ``J`` over the simplex until the relative duality gap is at most ``tolerance``.

    The weights move along the reduced gradient, the largest weight making up for all others, as long as J falls. A
    weight that reaches 0 stays there, and the rest goes on (SimpleMKL, Rakotomamonjy et al. 2008, Algorithm 1). That J
    has begun to rise is seen from its derivative, which comes with every fit; the line search then brackets the zero of
    it.

    Parameters
    ----------
    fit : callable
        ``weights -> (J, q)``.
    weights : (m,) array
        At least 0.
    tolerance : float
        On the relative duality gap.
    """
    J, q = fit(weights)
    history, gap = [J], relative_gap(weights, J, q, lam, 1.0)
    while gap > tolerance and len(history) <= MAX_STEPS:
        before, direction = weights, _descent(weights, q)
        while -lam * q @ direction < 0.0:
            falling = np.flatnonzero(direction < 0.0)
            limits = weights[falling] / -direction[falling]
            first, longest = falling[np.argmin(limits)], float(limits.min())
            end = _moved(weights, longest * direction)
            end[first] = 0.0
            J_end, q_end = fit(end)
            if q_end @ direction < 0.0:  # J rises there: its minimum along the way is before
                weights, J, q = _searched(fit, weights, q, direction, longest)
                break
            weights, J, q = end, J_end, q_end
            direction[first] = 0.0
            direction[np.argmax(weights)] -= direction.sum()
        if (weights == before).all():  # rounding errors are larger than what there is to gain
            break
        history.append(J)
        gap = relative_gap(weights, J, q, lam, 1.0)
    return weights, history, gap


def _descent(weights: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the reduced gradient's direction, which sums to 0 and leaves weights of 0 that would fall."""
    largest = np.lexsort((q, weights))[-1]  # of several the one of the largest energy, whatever their order
    direction: np.ndarray = q - q[largest]
    direction[(weights == 0.0) & (direction < 0.0)] = 0.0
    direction[largest] -= direction.sum()
    return direction


def _moved(weights: np.ndarray, step: np.ndarray) -> np.ndarray:
    moved = np.maximum(weights + step, 0.0)
    return np.asarray(moved / moved.sum())


def _searched(
    fit: Fit, weights: np.ndarray, q: np.ndarray, direction: np.ndarray, longest: float
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return weights, J and q near the minimum of J along ``direction``, from weights up to ``longest``."""
    from scipy.optimize import brentq  # takes a while to import

    found = {}
    start = float(q @ direction)

    def fall(step: float) -> float:
        if step == 0.0:
            return start
        point = _moved(weights, step * direction)
        found[step] = (point, *fit(point))
        slope = float(found[step][2] @ direction)
        return 0.0 if abs(slope) <= FLAT * start else slope

    step = brentq(fall, 0.0, longest)
    return found[step] if step in found else (weights, *fit(weights))


def alternation(fit: Fit, weights: np.ndarray, lam: float, p: float, tolerance: float) -> Steps:
    """Minimise ``J`` over the weights of p-norm 1 by turns: the fit, then the weights in closed form.

    With the norm ``c_m = weights_m q_m^(1/2)`` of kernel m's part of the fits, the best weights for them are
    ``c_m^(2/(p+1)) / (sum c^(2p/(p+1)))^(1/p)``
    (Kloft et al. 2011, equation 20). J never rises.

    Parameters
    ----------
    fit, weights, lam : as in ``reduced_gradient``
    p : float
        Of the norm, at least 1.
    tolerance : as in ``reduced_gradient``
    """
    J, q = fit(weights)
    history, gap = [J], relative_gap(weights, J, q, lam, p)
    while gap > tolerance and len(history) <= MAX_STEPS:
        squares = weights**2 * q
        weights = (squares / squares.max()) ** (1.0 / (p + 1.0))
        weights = weights / np.linalg.norm(weights, p)
        J, q = fit(weights)
        history.append(J)
        gap = relative_gap(weights, J, q, lam, p)
    return weights, history, gap


def aligned(G: np.ndarray, Y: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the weights, of sum 1, that align the centred K with the targets best, and that alignment.

    ``max <K_c, T_c> / (|K_c| |T_c|)``, ``T = sum_c y_c y_c'``, over ``weights >= 0`` is attained along the v of
    ``min v'Mv - 2 v'b`` over ``v >= 0``, with ``M_lm = <G_lc, G_mc>`` and ``b_m = <G_mc, T_c>`` (Cortes, Mohri &
    Rostamizadeh 2012, Proposition 9). Weights of rows count as in a table that has these rows so often.

    If no kernel is aligned at all the weights are 0.

    Parameters
    ----------
    G : (m, n, n) array
        Gram matrices.
    Y : (k, n) array
        Targets.
    s : (n,) array
        Weights of the rows.
    """
    from scipy.optimize import nnls  # takes a while to import

    root = np.sqrt(s)
    targets = root * (Y - (Y @ s / s.sum())[:, None])
    M, b = np.empty((len(G), len(G))), np.empty(len(G))
    for m, each in enumerate(G):
        C = _centred(root[:, None] * each * root, root)
        b[m] = np.vdot(targets @ C, targets)
        M[m] = np.tensordot(G, root[:, None] * C * root, 2)
    ev, U = np.linalg.eigh((M + M.T) / 2.0)
    kept = ev > len(G) * ROUNDING * ev[-1]
    half = np.sqrt(ev[kept])
    v, _ = nnls(half[:, None] * U[:, kept].T, U[:, kept].T @ b / half)
    if not v.any():
        return v, 0.0
    size = np.sqrt(v @ M @ v) * np.linalg.norm(targets @ targets.T)
    return v / v.sum(), float(b @ v / size)


def _centred(K: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return ``P K P`` with ``P = I - root root' / root'root``."""
    unit = root / np.linalg.norm(root)
    half = K - np.outer(unit, unit @ K)
    return half - np.outer(half @ unit, unit)


def perturbation_slopes(K: np.ndarray, s: np.ndarray, scan: Scan) -> np.ndarray:
    """Return the derivatives ``(n, n)`` of every ``|K - K^i|_2`` by the entries of row i of a definite K.

    ``|K - K^i|_2 = (K_ii + (K_ii^2 + 4 r_i^2)^(1/2)) / 2`` with ``r_i^2 = sum_{j != i} s_j K_ij^2 + max(s_i - 1, 0)
    K_ii^2``; ``scan`` holds ``K_ii`` and ``r_i``.

    Parameters
    ----------
    K : (n, n) array
        Gram matrix, definite.
    s : (n,) array
        Weights of the rows.
    scan : Scan
        That of K.
    """
    root = np.hypot(scan.diag, 2.0 * scan.rest)
    inverse = np.divide(1.0, root, out=np.zeros(len(K)), where=root > 0.0)
    slopes: np.ndarray = (2.0 * inverse)[:, None] * K * s
    np.fill_diagonal(slopes, 0.5 + (0.5 + 2.0 * np.maximum(s - 1.0, 0.0)) * scan.diag * inverse)
    return slopes


def least_maximum(parts: Parts, weights: np.ndarray, p: float) -> tuple[np.ndarray, list[float]]:
    """Minimise ``F(weights) = value(weights) + max_i bound_i(weights)`` locally over weights of p-norm 1, all >= 0.

    The bounds are >= 0.

    The maximum has kinks, where a projected gradient stalls. So it is a variable t that no bound may exceed, and
    sequential quadratic programming (SLSQP) minimises ``value + t``. They are written as ``weights = z / |z|_p`` with
    ``sum z = 1``: every point that is looked at is feasible.

    Parameters
    ----------
    weights : (m,)
        Where to start.

    Returns
    -------
    weights : (m,); history : list of float
        The best weights that were met, and the lowest F so far after each evaluation.
    """
    last: tuple[bytes, Any] = (b"", None)
    best = weights
    history: list[float] = []

    def at(z: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Return what ``parts`` says with derivatives by z, for the same z once: all is asked of it before the next."""
        nonlocal best, last
        if last[0] != z.tobytes():
            size = np.linalg.norm(z, p)
            point = z / size
            value, gradient, bounds, derivatives = parts(point)
            F = float(value + bounds.max(initial=0.0))
            if not history or history[-1] > F:
                best = point
            history.append(min([F, *history[-1:]]))
            normal = point ** (p - 1.0)
            along = [(each - np.multiply.outer(each @ point, normal)) / size for each in (gradient, derivatives)]
            last = z.tobytes(), (value, along[0], bounds, along[1])
        known: tuple[float, np.ndarray, np.ndarray, np.ndarray] = last[1]
        return known

    from scipy.optimize import minimize  # takes a while to import

    start = weights / weights.sum()
    bounds = at(start)[2]
    ones, some = np.ones((bounds.size, 1)), bounds.size > 0
    minimize(
        lambda x: (at(x[:-1])[0] + x[-1], np.append(at(x[:-1])[1], 1.0)),
        np.append(start, bounds.max(initial=0.0)),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, None)] * (len(weights) + 1),
        constraints=[
            {"type": "eq", "fun": lambda x: x[:-1].sum() - 1.0, "jac": lambda x: np.append(np.ones(len(weights)), 0.0)},
            *some
            * [
                {
                    "type": "ineq",
                    "fun": lambda x: x[-1] - at(x[:-1])[2],
                    "jac": lambda x: np.hstack([-at(x[:-1])[3], ones]),
                }
            ],
        ],
        options={"maxiter": MAX_STEPS, "ftol": ACCURACY},
    )
    best = np.where(best > LEFT * best.max(), best, 0.0)
    return best / np.linalg.norm(best, p), history
