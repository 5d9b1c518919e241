"""A whole grid by kernsel against scikit-learn's GridSearchCV, in one process and on the same data and folds.

    python benchmarks/gridsearch.py [--rows 2000] [--repeat 3] [--rank 200 full]
    python benchmarks/gridsearch.py --one [--rank 200]

The rival's time is that of a few cells of its grid, timed with both cores (``n_jobs=2``), multiplied by the number of
cells; the cells are drawn from all over the grid, as its time depends on them. With ``--one`` it is that of a single
candidate: KernelRidge with its defaults, or SVC with C = 10 and its default width, ten folds on one process or two,
whichever is faster. kernsel scores every candidate, verifies five and refits; it is timed after one warm-up run, so
that nothing is compiled.
"""

from __future__ import annotations

import argparse
import statistics
import time

from common import CELLS, FOLDS, Task, make_task, sampled, select, warm_up
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.svm import SVC

TIMED = 12


def whole_grid(task: Task) -> float:
    """Return the estimated seconds for the whole grid by GridSearchCV."""
    spent = 0.0
    for tau, lam in sampled(TIMED):
        if task.classes:
            model, grid = SVC(), {"gamma": [1 / (2 * tau)], "C": [1 / (2 * task.n * lam)]}
        else:
            model, grid = KernelRidge(kernel="rbf"), {"gamma": [1 / (2 * tau)], "alpha": [task.n * lam]}
        start = time.perf_counter()
        GridSearchCV(model, grid, cv=KFold(FOLDS), n_jobs=2, refit=False).fit(task.X, task.y)
        spent += time.perf_counter() - start
    return spent / TIMED * len(CELLS)


def one_candidate(task: Task) -> float:
    """Return the seconds of one candidate's 10-fold cross-validation."""
    model = SVC(C=10.0) if task.classes else KernelRidge(kernel="rbf")
    times = []
    for jobs in (1, 2):
        cross_val_score(model, task.X[:300], task.y[:300], cv=KFold(FOLDS), n_jobs=jobs)  # starts the processes
        start = time.perf_counter()
        cross_val_score(model, task.X, task.y, cv=KFold(FOLDS), n_jobs=jobs)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print one line a learner and rank."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--rows", type=int, default=2000)
    cli.add_argument("--repeat", type=int, default=3)
    cli.add_argument("--rank", nargs="+", default=["200", "full"])
    cli.add_argument("--one", action="store_true", help="against one candidate instead of the whole grid")
    args = cli.parse_args()
    for learner in ("krr", "svm"):
        task = make_task(learner, args.rows)
        for rank in [r if r == "full" else int(r) for r in args.rank]:
            warm_up(task, rank=rank)
            ratios, times, theirs = [], [], []
            for _ in range(args.repeat):
                seconds, selection = select(task, rank=rank)
                other = one_candidate(task) if args.one else whole_grid(task)
                times.append(seconds)
                theirs.append(other)
                ratios.append(other / seconds)
            rival = "one candidate of scikit-learn" if args.one else f"GridSearchCV ({TIMED} cells timed)"
            print(
                f"{learner} n={args.rows} rank={rank}: {len(selection.candidates)} candidates x {FOLDS} folds, "
                f"kernsel {statistics.median(times):.2f} s, {rival} {statistics.median(theirs):.3g} s, "
                f"ratio median {statistics.median(ratios):.3g} (min {min(ratios):.3g}, max {max(ratios):.3g}); "
                f"chosen {selection.best.kernel}, lambda {selection.best.lam:.3g}, "
                f"held-out error {selection.best.error:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
