"""What the benchmarks share: data, the grid of FBIF18, kernsel's own time, and how the machine is named."""

from __future__ import annotations

import datetime
import os
import platform
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import scipy.sparse
import sklearn
from numpy.typing import NDArray
from sklearn.datasets import make_classification, make_friedman1

import kernsel
from kernsel.search.axes import PAPER_LAM, PAPER_TAU

Array = NDArray[np.float64]
Cell = tuple[float, float]

FOLDS = 10
CELLS: list[Cell] = [(float(tau), float(lam)) for tau in PAPER_TAU for lam in PAPER_LAM]


@dataclass(frozen=True, eq=False)
class Task:
    """Rows to select on and rows to test on, dense or sparse; the folds are contiguous blocks."""

    learner: str
    X: Any
    y: Array
    X_test: Any
    y_test: Array

    @property
    def n(self) -> int:
        """The number of rows to select on."""
        return len(self.y)

    @property
    def classes(self) -> bool:
        """Whether the target is of labels -1 and 1."""
        return self.learner == "svm"

    @property
    def folds(self) -> NDArray[np.int64]:
        """The fold of each row, as scikit-learn's ``KFold`` without shuffling deals them."""
        return np.repeat(np.arange(FOLDS), [len(block) for block in np.array_split(self.y, FOLDS)])

    def error(self, outputs: Array) -> float:
        """Return the share misclassified, or the root mean square error, of outputs at the rows to test on."""
        if self.classes:
            return float(np.mean(np.where(outputs > 0, 1, -1) != self.y_test))
        return float(np.sqrt(np.mean((outputs - self.y_test) ** 2)))


def make_task(learner: str, n: int, seed: int = 0) -> Task:
    """Return n rows of 20 features to select on and n to test on.

    Classes: 8 informative features, 4 redundant, 4 clusters a class, 5 % of the labels flipped. A regression:
    friedman1, where 5 features matter, with unit noise.
    """
    if learner == "svm":
        X, y = make_classification(
            2 * n, 20, n_informative=8, n_redundant=4, n_clusters_per_class=4, flip_y=0.05, random_state=seed
        )
        return split(learner, X, np.where(y > 0, 1.0, -1.0), n)
    return split(learner, *make_friedman1(2 * n, n_features=20, noise=1.0, random_state=seed), n)


def split(learner: str, X: Any, y: Array, n: int) -> Task:
    """Take the first n rows to select on and the rest to test on; standardise by the former, sparse features not."""
    if not scipy.sparse.issparse(X):
        spread = X[:n].std(axis=0)
        X = (X - X[:n].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if learner != "svm":
        y = (y - y[:n].mean()) / y[:n].std()
    return Task(learner, X[:n], y[:n], X[n:], y[n:])


def select(task: Task, **options: Any) -> tuple[float, kernsel.Selection]:
    """Return the seconds of a whole selection by kernsel on the grid of FBIF18, and what it selected."""
    given = {"grid": "paper", "folds": task.folds, "extend": False, "standardize": False, "calibration": None}
    given["task"] = "classification" if task.classes else "regression"
    given["learner"] = task.learner
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kernsel.errors.SelectionWarning)
        selection = kernsel.select(task.X, task.y, **(given | options))
    return time.perf_counter() - start, selection


def warm_up(task: Task, **options: Any) -> None:
    """Let kernsel compile or load what a selection needs, on few rows but with a search by halving as on many."""
    few = min(800, task.n)
    small = Task(task.learner, task.X[:few], task.y[:few], task.X_test, task.y_test)
    rank = options.get("rank")
    rank = min(rank, few // 3) if isinstance(rank, int) else rank
    select(small, **({"search": "halving"} | options | {"rank": rank}))


def cell(candidate: Any) -> Cell:
    """Return the width and lambda of a candidate."""
    return candidate.kernel.parameters["tau"], candidate.lam


def sampled(count: int) -> list[Cell]:
    """Return so many cells from all over the grid, the same in every run."""
    chosen = np.random.default_rng(0).choice(len(CELLS), min(count, len(CELLS)), replace=False)
    return [CELLS[i] for i in sorted(chosen)]


def table(head: list[str], lines: list[list[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *lines])


def machine() -> str:
    """Return the date, the machine and the versions in one line."""
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    return (
        f"{datetime.date.today()}: {os.cpu_count()} cores, {model}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Numba {numba.__version__}, scikit-learn {sklearn.__version__}"
    )
