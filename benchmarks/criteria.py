"""Which criterion chooses best? The experiment of the kernel stability papers, on tables of your own.

    python benchmarks/criteria.py DATA.csv [DATA.csv ...] [--splits 20] [--jobs 2] [--output criteria.json]

CSV with a header, target last; labels of two kinds are classes for ``svm``, other numbers a regression for ``krr``. As
in KSJ: 70 % of the rows at random to train on, the features standardised on these; n lambda is 0.1, 1, 10 or 100 and
not chosen; each criterion chooses tau from 2^-15 ... 2^15. The weight eta of a penalty is one of 2^-5, 1, 2^5, 2^10, by
3-fold cross-validation of what it chooses. ``cv`` is newton-cv: exact for krr, one Newton step a fold for svm.
``eloo``, ``br`` and ``evidence`` need the square loss: for classes they choose tau for krr, and svm is fitted with it.

Printed are mean test errors (misclassified, or the mean squared error in units of the target's variance), and how often
one criterion is better or worse than another one by a paired t-test at 5 %: the ordinary one, which the paper used, and
the one corrected for overlapping training sets (Nadeau & Bengio 2003).
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # splits go side by side

import numpy as np
from common import machine, table
from joblib import Parallel, delayed

from kernsel import criteria, evaluation
from kernsel.folds.partition import Partition
from kernsel.kernels import Gaussian, Statistics
from kernsel.learners import Krr, Svm
from kernsel.paths import make_path
from kernsel.representation.problem import Problem
from kernsel.selection.eta import ETAS

TAUS = 2.0 ** np.arange(15, -16, -1)  # from the widest down: of equal scores the first one is taken
RIDGES = np.array([100.0, 10.0, 1.0, 0.1])
SHARE = 0.3  # to test on
ERRORS = {"cv5": 5, "cv10": 10}
PENALISED = {
    "cvks5": criteria.CVKS(),
    "cvks10": criteria.CVKS(),
    "rks": criteria.RKS(),
    "sps": criteria.SPS(),
    "sps-surr": criteria.SPSSurrogate(),
    "er": criteria.ER(),
    "ep": criteria.EP(),
}
SQUARE = {"eloo": criteria.ELOO(), "br": criteria.BR(), "evidence": criteria.Evidence()}
NAMES = [*ERRORS, *PENALISED, *SQUARE]
VERSUS = [("cvks5", "cv5"), ("cvks10", "cv10"), ("rks", "sps"), ("cvks5", "br"), ("cvks5", "eloo"), ("br", "eloo")]

Array = Any


def rows_of(X: Array, y: Array, folds: int, seed: int) -> Partition:
    """Deal rows to folds at random."""
    order = np.random.default_rng(seed).permutation(len(X))
    starts = np.linspace(0, len(X), folds + 1).astype(np.int64)
    X = np.ascontiguousarray(X[order])
    return Partition(X, np.ascontiguousarray(y[order][None]), starts, order, Statistics(X))


def surface(
    X: Array, y: Array, X_test: Array, y_test: Array, classes: bool, seed: int, square: dict[str, Any]
) -> dict[str, Array]:
    """Return the terms of every criterion, and the error on other rows, for each tau and ridge: (31, 4) arrays.

    Of the criteria that need the square loss those in ``square``.
    """
    dealt = {folds: rows_of(X, y, folds, seed) for folds in (5, 10)}
    lams, learner = RIDGES / len(X), Svm(bias=False) if classes else Krr()
    found: dict[str, list[Array]] = {}

    def note(name: str, values: Array, failed: list[str | None]) -> None:
        usable = np.array([reason is None for reason in failed])
        found.setdefault(name, []).append(np.where(usable, values, np.inf))

    for tau in TAUS:
        problems = {folds: Problem(rows, Gaussian(float(tau))) for folds, rows in dealt.items()}
        paths = {folds: make_path(problem, learner, lams) for folds, problem in problems.items()}
        for name, folds in ERRORS.items():
            score = criteria.NewtonCV().score(paths[folds])
            note(name, score.score, score.failed)
        for name, part in PENALISED.items():
            if not name.startswith("cvks"):
                score = part.score(paths[10])
                note(f"{name}.fit", score.terms["fit"], score.failed)
                note(f"{name}.penalty", score.terms["penalty"], score.failed)
        penalty = np.full(lams.size, criteria.CVKS().cost(paths[10]))
        for folds in (5, 10):
            found.setdefault(f"cvks{folds}.fit", []).append(found[f"cv{folds}"][-1])
            note(f"cvks{folds}.penalty", penalty, [None] * lams.size)
        plain = paths[10] if not classes else make_path(problems[10], Krr(), lams)
        for name, part in square.items():
            score = part.score(plain)
            note(name, score.score, score.failed)
        K = Gaussian(float(tau))(X_test, paths[10].points())
        outputs = np.array([(paths[10].coefficients(k) @ K.T)[0] for k in range(lams.size)])
        wrong = outputs * y_test <= 0 if classes else (outputs - y_test) ** 2
        note("error", wrong.mean(axis=1), [None] * lams.size)
    return {name: np.array(values) for name, values in found.items()}


def split_errors(X: Array, y: Array, classes: bool, seed: int) -> dict[str, Array]:
    """Return the test error (4,) of what each criterion chooses on one split, and of the best tau."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    train = order[round(SHARE * len(X)) :]
    test = order[: round(SHARE * len(X))]
    centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - centre)[:, spread > 0] / spread[spread > 0]
    if not classes:
        y = (y - y[train].mean()) / y[train].std()
    whole = surface(X[train], y[train], X[test], y[test], classes, seed, SQUARE)
    parts = [train[k::3] for k in range(3)]
    inner = []
    for held in parts:
        rest = np.setdiff1d(train, held)
        inner.append(surface(X[rest], y[rest], X[held], y[held], classes, seed, {}))
    ridge = np.arange(RIDGES.size)
    errors = {"best tau": whole["error"].min(axis=0)}
    for name in NAMES:
        if name not in PENALISED:
            chosen = whole[name].argmin(axis=0)
        else:
            tried = [
                np.mean([each["error"][penalised(each, name, eta).argmin(axis=0), ridge] for each in inner], axis=0)
                for eta in ETAS
            ]
            eta = np.array(ETAS)[np.argmin(tried, axis=0)]
            chosen = penalised(whole, name, eta).argmin(axis=0)
        errors[name] = whole["error"][chosen, ridge]
    return errors


def penalised(terms: dict[str, Array], name: str, eta: Array) -> Array:
    """Return the scores of a penalised criterion."""
    return terms[f"{name}.fit"] + eta * terms[f"{name}.penalty"]


def main() -> None:
    """Print the tables."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("data", type=Path, nargs="+")
    cli.add_argument("--splits", type=int, default=20)
    cli.add_argument("--jobs", type=int, default=2)
    cli.add_argument("--rows", type=int, default=1500, help="of a larger table, drawn at random")
    cli.add_argument("--output", type=Path, help="all errors as JSON")
    args = cli.parse_args()
    print(machine(), flush=True)
    everything: dict[str, dict[str, list[list[float]]]] = {}
    for path in args.data:
        data = np.loadtxt(path, delimiter=",", skiprows=1)
        if len(data) > args.rows:
            data = data[np.random.default_rng(0).choice(len(data), args.rows, replace=False)]
        X, y = data[:, :-1], data[:, -1]
        classes = np.unique(y).size == 2
        if classes:
            y = np.where(y == y.max(), 1.0, -1.0)
        done = Parallel(n_jobs=args.jobs)(delayed(split_errors)(X, y, classes, seed) for seed in range(args.splits))
        everything[path.stem] = {name: [each[name].tolist() for each in done] for name in done[0]}
        print(f"# {path.stem}: {len(X)} rows, {args.splits} splits", flush=True)
        if args.output is not None:
            args.output.write_text(json.dumps(everything))
    report(everything)


def report(everything: dict[str, dict[str, list[list[float]]]]) -> None:
    """Print a table for each ridge, and the comparisons of all ridges."""
    for r, ridge in enumerate(RIDGES):
        lines = []
        for data, errors in everything.items():
            means = {name: float(np.mean(errors[name], axis=0)[r]) for name in ["best tau", *NAMES]}
            lines.append([data, *(f"{means[name]:.4f}" for name in means)])
        print(f"\nn lambda = {ridge:g}\n\n" + table(["data", "best tau", *NAMES], lines))
        if len(everything) > 1:
            ranks = evaluation.friedman([[np.mean(e[n], axis=0)[r] for n in NAMES] for e in everything.values()])
            listed = ", ".join(f"{n} {rank:.1f}" for n, rank in zip(NAMES, ranks.mean_ranks, strict=True))
            print(
                f"\nmean ranks: {listed}; "
                f"F = {ranks.statistic:.2f}, p = {ranks.p:.2g}; critical difference {ranks.critical_difference:.1f}"
            )
    lines = []
    for first, second in VERSUS:
        for r, ridge in enumerate(RIDGES):
            counts = {}
            for label, share in (("ordinary", None), ("corrected", SHARE)):
                better = worse = 0
                for errors in everything.values():
                    a, b = (np.array(errors[name])[:, r] for name in (first, second))
                    found = evaluation.paired(a, b, share)
                    better += found.p < 0.05 and found.difference < 0
                    worse += found.p < 0.05 and found.difference > 0
                counts[label] = f"{better} better, {worse} worse"
            lines.append([f"{first} against {second}", f"{ridge:g}", *counts.values()])
    print("\n" + table(["criteria", "n lambda", "t-test", "corrected t-test"], lines))


if __name__ == "__main__":
    main()
