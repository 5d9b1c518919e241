"""A whole grid by kernsel against scikit-learn's GridSearchCV, in one process and on the same data.

    python benchmarks/gridsearch.py [--rows 2000] [--repeat 3] [--rank 200]

The rival's time is that of a few cells of its grid, timed with both cores (``n_jobs=2``), multiplied by the number of
cells; the cells are drawn from all over the grid, as its time depends on them. kernsel scores every candidate, verifies
five and refits; it is timed after one warm-up run, so that nothing is compiled.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings

import numpy as np
from sklearn.datasets import make_classification, make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import kernsel
from kernsel.search.grid import PAPER_LAM, PAPER_TAU

CELLS = 12
FOLDS = 10


def data(learner: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """20 features, of which 5 (friedman1) or 12 (classes) matter."""
    if learner == "krr":
        X, y = make_friedman1(n, n_features=20, noise=1.0, random_state=0)
        return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    X, y = make_classification(
        n, 20, n_informative=8, n_redundant=4, n_clusters_per_class=4, flip_y=0.05, random_state=0
    )
    return StandardScaler().fit_transform(X), np.where(y > 0, 1, -1)


def rival(learner: str, X: np.ndarray, y: np.ndarray) -> float:
    """Return the estimated seconds for the whole grid by GridSearchCV."""
    n = len(y)
    rng = np.random.default_rng(0)
    cells = [(tau, lam) for tau in PAPER_TAU for lam in PAPER_LAM]
    spent = 0.0
    for index in rng.choice(len(cells), CELLS, replace=False):
        tau, lam = cells[index]
        if learner == "krr":
            model, grid = KernelRidge(kernel="rbf"), {"gamma": [1 / (2 * tau)], "alpha": [n * lam]}
        else:
            model, grid = SVC(), {"gamma": [1 / (2 * tau)], "C": [1 / (2 * n * lam)]}
        start = time.perf_counter()
        GridSearchCV(model, grid, cv=FOLDS, n_jobs=2, refit=False).fit(X, y)
        spent += time.perf_counter() - start
    return spent / CELLS * len(cells)


def ours(learner: str, X: np.ndarray, y: np.ndarray, rank: int | str) -> tuple[float, kernsel.Selection]:
    """Return the seconds for the whole grid by kernsel, and what it selected."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection = kernsel.select(
            X, y, learner=learner, grid="paper", folds=FOLDS, rank=rank, extend=False, standardize=False
        )
    return time.perf_counter() - start, selection


def main() -> None:
    """Print one line a learner and rank."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--rows", type=int, default=2000)
    cli.add_argument("--repeat", type=int, default=3)
    cli.add_argument("--rank", nargs="+", default=["200", "full"])
    args = cli.parse_args()
    for learner in ("krr", "svm"):
        X, y = data(learner, args.rows)
        for rank in [r if r == "full" else int(r) for r in args.rank]:
            ours(learner, X[:300], y[:300], rank if rank == "full" else min(rank, 100))
            ratios, times, theirs = [], [], []
            for _ in range(args.repeat):
                seconds, selection = ours(learner, X, y, rank)
                other = rival(learner, X, y)
                times.append(seconds)
                theirs.append(other)
                ratios.append(other / seconds)
            print(
                f"{learner} n={args.rows} rank={rank}: {len(selection.candidates)} candidates x {FOLDS} folds, "
                f"kernsel {statistics.median(times):.2f} s, GridSearchCV {statistics.median(theirs):.0f} s "
                f"({CELLS} cells timed), ratio median {statistics.median(ratios):.0f} "
                f"(min {min(ratios):.0f}, max {max(ratios):.0f}); chosen {selection.best.kernel}, "
                f"lambda {selection.best.lam:.3g}, held-out error {selection.best.error:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
