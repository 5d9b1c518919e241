"""Learners of other losses on rows in parts: their fits and held-out losses against those of a plain minimiser."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from kernsel.folds.partition import Partition
from kernsel.kernels import Statistics
from kernsel.selection.drivers import InProcess
from kernsel.selection.parts import select as spread
from kernsel.selection.parts import work
from kernsel.selection.parts.encode import find_encoding, in_robust_units
from kernsel.selection.plan import Plan

N, FOLDS, RANK = 500, 4, 20
GRID = {"tau": [1.0, 4.0], "lambda": [1e-4, 1e-3, 1e-2]}


def table(kind, n=N):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"]).assign(c=rng.choice(["u", "v"], n))
    y = np.sin(2.0 * frame["a"]) + frame["b"] ** 2 + (frame["c"] == "u") + 0.3 * rng.normal(size=n)
    if kind != "regression":
        y = pd.Series(np.digitize(y, [0.8] if kind == "two" else [0.5, 1.5]))
    return frame, y.rename("y")


def cut(frame, y, weights=None):
    pieces = [slice(lo, hi) for lo, hi in pairwise([0, 120, 121, 121, 300, len(frame)])]
    s = [None if weights is None else weights[piece] for piece in pieces]
    return [work.Rows(i, frame[piece], y[piece], s[i]) for i, piece in enumerate(pieces)]


def all_rows(parts, plan):
    """All rows as the workers have them, in one partition, and the learner's units."""
    driver, how = InProcess(), find_encoding(InProcess(), parts, plan)
    coding = how.coding(FOLDS, plan.seed)
    encoded = driver.each(work.encode_part, parts, coding)
    learner = spread.read_learner(plan.learner, how.target.task)
    if learner.in_robust_units:
        sample = how.dataset(driver.reduce(work.draw, parts, lambda a, b: work.merge_drawn(a, b, 150), coding, 150))
        encoded, _ = in_robust_units(driver, encoded, sample, "h is", how.deviation)
    fold = np.concatenate([np.repeat(np.arange(FOLDS), np.diff(each.starts)) for each in encoded])
    order = np.argsort(fold, kind="stable")
    X = np.concatenate([each.X for each in encoded])[order]
    Y = np.ascontiguousarray(np.concatenate([each.Y for each in encoded], axis=1)[:, order])
    s = np.concatenate([each.s for each in encoded])[order]
    starts = np.searchsorted(fold[order], np.arange(FOLDS + 1))
    weights = None if (s == 1.0).all() else s
    return Partition(X, Y, starts, np.arange(len(fold)), Statistics(X), weights=weights), learner


@pytest.mark.parametrize(
    ("learner", "kind"),
    [
        ("svm", "two"),
        ("svm", "three"),
        ("l2svm", "two"),
        ("klr", "two"),
        ("klr", "three"),
        ("svr", "regression"),
        ("qsvr", "regression"),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_and_scores_are_those_of_all_rows(monkeypatch, learner, kind, weighted):
    monkeypatch.setattr(spread, "LEAST_SAMPLE", 150)
    frame, y = table(kind)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else None
    parts = cut(frame, y, weights)
    plan = Plan(kernel="gaussian", learner=learner, folds=FOLDS, rank=RANK, grid=GRID, extend=False)
    found = spread.select_parts(parts, InProcess(), plan, weighted)
    rows, part = all_rows(parts, plan)
    assert found.model.sufficient is None
    assert len(found.candidates) >= 6
    best, points = found.best, found.model.rows  # its landmarks are known
    lams = sorted({c.lam for c in found.candidates if c.kernel == best.kernel and c.failed is None}, reverse=True)
    half = np.linalg.cholesky(best.kernel(points, points) + 1e-12 * np.eye(len(points)))
    Z = np.linalg.solve(half, best.kernel(points, rows.X)).T
    held = exact_fits(Z, rows, part, lams)
    if kind == "regression":
        held = np.clip(held, rows.Y.min(axis=1)[:, None, None], rows.Y.max(axis=1)[:, None, None])
    losses = rows.mean(part.loss.values(rows.Y, held).mean(axis=0))
    scores = {c.lam: c.score for c in found.candidates if c.kernel == best.kernel}
    np.testing.assert_allclose([scores[lam] for lam in lams], losses, rtol=1e-6)
    outputs = best.kernel(rows.X, points) @ found.model.coefficients.T + found.model.bias
    for f, y in zip(outputs.T, rows.Y, strict=True):
        w, b = minimum(Z, y, rows.s, part, best.lam)
        np.testing.assert_allclose(f, Z @ w + b, rtol=0, atol=1e-5)


def exact_fits(Z, rows, learner, lams):
    """Held-out outputs (k, L, n) of fits without each fold, on features Z."""
    out = np.zeros((len(rows.Y), len(lams), len(Z)))
    for number, lam in enumerate(lams):
        for fold in range(FOLDS):
            own = slice(rows.starts[fold], rows.starts[fold + 1])
            kept = np.delete(np.arange(len(Z)), own)
            for c, y in enumerate(rows.Y):
                w, b = minimum(Z[kept], y[kept], rows.s[kept], learner, lam)
                out[c, number, own] = Z[own] @ w + b
    return out


def minimum(Z, y, s, learner, lam):
    """Weights and bias of a fit, by Newton steps that are halved until the objective falls."""
    P, penalty = np.column_stack([Z, np.ones(len(Z))]), lam * np.append(np.ones(Z.shape[1]), 0.0)
    if not learner.bias:
        P[:, -1] = 0.0

    def objective(w):
        v, d1, d2 = (each[0, 0] for each in learner.loss.expand(y[None], s, (P @ w)[None, None]))
        return (s @ v) / s.sum() + penalty @ w**2, P.T @ d1 / s.sum() + 2 * penalty * w, d2

    w = np.zeros(P.shape[1])
    for _ in range(500):
        J, g, d2 = objective(w)
        H = (P.T * d2) @ P / s.sum() + 2 * np.diag(penalty) + 1e-12 * np.eye(P.shape[1])
        p = -np.linalg.solve(H, g)
        if -(g @ p) < 1e-18:
            break
        step = 1.0
        while step > 1e-12 and objective(w + step * p)[0] > J + 1e-4 * step * (g @ p) + 1e-16:
            step /= 2
        w += step * p
    return w[:-1], w[-1]
