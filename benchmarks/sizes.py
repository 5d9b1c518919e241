"""A whole grid at the sizes of real tables: kernsel against GridSearchCV's estimators, and how good the choice is.

    python benchmarks/sizes.py [--rows 4177 8192 20640] [--learners krr svm] [--fits 4]
    python benchmarks/sizes.py --data FILE            # CSV with a header, target last; or svmlight

31 widths x 16 lambda (the grid of FBIF18), 10 folds. Without a file the data are friedman1 (5 of 20 features matter,
unit noise). A file's features are standardised, those of svmlight left as they are, and sparse. ``svm`` on a numeric
target learns whether it is above its median, ``krr`` on labels takes them as numbers.

The rival is KernelRidge or SVC. Here one cell of ten folds takes minutes: one fold is timed (fit and prediction) in
each of a few cells from all over the grid, with all cores, and multiplied by the number of folds and cells.

The choice is checked at a higher rank, or in full where that isn't lower than the number of rows: the leaders and all
cells within two widths and one lambda of the choice are scored by exact 10-fold cross-validation there; what is printed
is the value of the choice over the lowest.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import CELLS, FOLDS, Array, Task, cell, machine, sampled, select, split, table, warm_up
from sklearn.datasets import load_svmlight_file, make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import kernsel
from kernsel.search.axes import PAPER_LAM, PAPER_TAU

LEADERS = 8


def read(path: Path) -> tuple[Any, Array]:
    """Return the features and the target of a file."""
    with path.open() as lines:
        first = lines.readline()
    if ":" in first:
        X, y = load_svmlight_file(str(path))
        return X.tocsr(), y
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1]


def as_task(learner: str, X: Any, y: Array) -> Task:
    """Shuffle the rows (the folds are blocks); give the target the form that the learner needs."""
    labels = np.unique(y)
    if labels.size == 2:
        y = np.where(y == labels[1], 1.0, -1.0)
    elif learner == "svm":
        y = np.where(y > np.median(y), 1.0, -1.0)
    order = np.random.default_rng(0).permutation(len(y))
    return split(learner, X[order], y[order], len(y))


def rival(task: Task, fits: int, threads: int | None) -> tuple[float, str]:
    """Return the estimated seconds of scikit-learn for the whole grid, and the times that the estimate is from."""
    held = task.folds == 0
    times = []
    for tau, lam in sampled(fits):
        gamma = 1 / (2 * tau)
        if task.classes:
            model = SVC(gamma=gamma, C=1 / (2 * task.n * lam), cache_size=1000)
        else:
            model = KernelRidge(kernel="rbf", gamma=gamma, alpha=task.n * lam)
        start = time.perf_counter()
        with threadpool_limits(threads, "blas"):
            model.fit(task.X[~held], task.y[~held]).predict(task.X[held])
        times.append(time.perf_counter() - start)
    return float(np.mean(times)) * FOLDS * len(CELLS), f"{len(times)} single folds, {min(times):.2g}–{max(times):.2g} s"


def check(task: Task, selection: kernsel.Selection, rank: int) -> tuple[float, float]:
    """Return the exact values of the choice and of the best cell around it and the leaders, at a higher rank."""
    best = cell(selection.best)
    leaders = [cell(c) for c in selection.candidates[:LEADERS] if c.failed is None]
    i, j = (int(np.argmin(np.abs(axis - at))) for axis, at in zip((PAPER_TAU, PAPER_LAM), best, strict=True))
    taus = {*PAPER_TAU[max(0, i - 2) : i + 3].tolist(), *(tau for tau, _ in leaders)}
    lams = {*PAPER_LAM[max(0, j - 1) : j + 2].tolist(), *(lam for _, lam in leaders)}
    grid = {"tau": sorted(taus), "lambda": sorted(lams)}
    _, checked = select(task, grid=grid, criterion="cv", verify=0, rank=rank if rank < task.n else "full")
    values = {cell(c): c.score for c in checked.candidates}
    return values[best], min(values.values())


def main() -> None:
    """Print one line for each table and learner."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--rows", type=int, nargs="+", default=[4177, 8192, 20640], help="of friedman1")
    cli.add_argument("--data", type=Path, nargs="+", default=[], help="files in its place")
    cli.add_argument("--learners", nargs="+", default=["krr", "svm"], choices=["krr", "svm"])
    cli.add_argument("--fits", type=int, default=4, help="single folds that the rival is timed on")
    cli.add_argument("--threads", type=int, help="threads of the rival's BLAS, if not as many as there are cores")
    cli.add_argument("--rank", type=int, help="of kernsel; its own choice if not given")
    cli.add_argument("--check-rank", type=int, default=4000, help="rank at which the choice is checked; 0: not at all")
    args = cli.parse_args()
    print(machine(), flush=True)
    sources = [(path.name, read(path)) for path in args.data] or [
        ("friedman1", make_friedman1(n, n_features=20, noise=1.0, random_state=0)) for n in args.rows
    ]
    lines = []
    for name, (X, y) in sources:
        for learner in args.learners:
            task = as_task(learner, X, y)
            warm_up(task, rank=args.rank)
            seconds, selection = select(task, rank=args.rank)
            other, timed = rival(task, args.fits, args.threads) if args.fits else (float("nan"), "not timed")
            chosen, lowest = check(task, selection, args.check_rank) if args.check_rank else (float("nan"),) * 2
            tau, lam = cell(selection.best)
            lines.append(
                [
                    f"{name}, {task.n} × {task.X.shape[1]}",
                    learner,
                    f"{seconds:.3g} s (rank {selection.data['rank']})",
                    f"{other:.3g} s ({timed})",
                    f"{other / seconds:.0f}",
                    f"τ={tau:.3g}, λ={lam:.2g}",
                    f"{selection.best.error:.4f}",
                    f"{chosen:.4g} / {lowest:.4g} = {chosen / lowest:.4f}",
                ]
            )
            print("# " + ", ".join(lines[-1]), flush=True)
    head = ["data", "learner", "kernsel", "scikit-learn, estimated", "ratio", "choice", "held-out error"]
    print("\n" + table([*head, f"choice / best, rank {args.check_rank}"], lines))


if __name__ == "__main__":
    main()
