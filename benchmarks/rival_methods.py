"""One function for each way to choose among the 496 candidates: how long, what is chosen, how it predicts.

Each is run in a process of its own by ``rivals.py``. It returns an :class:`Outcome`; what isn't installed or can't be
loaded raises, and the table says so.

In everybody's terms: width ``gamma = 1 / (2 tau)``, ridge ``alpha = n lambda``, ``C = 1 / (2 n lambda)``. liquidSVM has
the kernel ``exp(-|x - z|^2 / gamma^2)``, so that ``gamma = sqrt(2 tau)``, and the same lambda.
"""

from __future__ import annotations

import sysconfig
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import CELLS, FOLDS, Array, Cell, Task, cell, sampled, select, warm_up

from kernsel.search.axes import PAPER_LAM, PAPER_TAU

JOBS = 2
EPSILON = 0.1  # of the tube of a support vector regression, for everybody
COMPONENTS = 200  # of the Nystroem pipelines, and of kernsel at a fixed rank


@dataclass
class Outcome:
    """What a method did.

    Parameters
    ----------
    seconds : float
        For the whole grid.
    extent : str
        What was timed, in words.
    choice : (tau, lambda) or None
        None if only a part of the grid was timed by a method that is exhaustive and exact but for rounding: its choice
        is then the best cell by its own measure, read off the exact table.
    error : callable or float
        The error on the test rows, or how to have it for a choice.
    """

    seconds: float
    extent: str
    choice: Cell | None
    error: float | Callable[[Cell], float]
    spread: str = ""


def kernsel_at(rank: int | str | None) -> Callable[..., Outcome]:
    """Select by kernsel as it is, or at a rank."""

    def run(task: Task, repeat: int, cells: int) -> Outcome:
        warm_up(task, rank=rank)
        runs = [select(task, rank=rank) for _ in range(repeat)]
        times = sorted(seconds for seconds, _ in runs)
        selection = runs[-1][1]
        outputs = np.asarray(selection.model.predict(task.X_test), dtype=np.float64)
        return Outcome(
            times[len(times) // 2],
            f"whole, median of {repeat}",
            cell(selection.best),
            task.error(outputs),
            f"{times[0]:.2f}–{times[-1]:.2f}",
        )

    return run


def numpy_closed_form(task: Task, repeat: int, cells: int) -> Outcome:
    """Score kernel ridge regression by one ``eigh`` a width and the block formula, in plain NumPy: the exact table."""
    start = time.perf_counter()
    errors = exact_ridge(task)
    seconds = time.perf_counter() - start
    i, j = np.unravel_index(np.argmin(errors), errors.shape)
    choice = float(PAPER_TAU[i]), float(PAPER_LAM[j])
    return Outcome(seconds, "whole", choice, lambda c: task.error(_ridge_outputs(task, c)))


def exact_ridge(task: Task) -> Array:
    """Return the exact mean squared held-out errors (widths, lambdas).

    For fold S with ridge ``r = (n - m) lambda``: ``A = (K + r I)^-1``, ``a = A y``, ``y_S - f_S = A_SS^-1 a_S``.
    """
    squares = _squared_distances(task.X, task.X)
    blocks = [np.flatnonzero(task.folds == f) for f in range(FOLDS)]
    errors = np.empty((PAPER_TAU.size, PAPER_LAM.size))
    for i, tau in enumerate(PAPER_TAU):
        values, U = np.linalg.eigh(np.exp(squares / (-2.0 * tau)))
        Uy = U.T @ task.y
        for j, lam in enumerate(PAPER_LAM):
            total = 0.0
            for S in blocks:
                shrunk = 1.0 / (np.maximum(values, 0.0) + (task.n - S.size) * lam)
                A = (U[S] * shrunk) @ U[S].T
                residuals = np.linalg.solve(A, U[S] @ (shrunk * Uy))
                total += residuals @ residuals
            errors[i, j] = total / task.n
    return errors


def _squared_distances(A: Array, B: Array) -> Array:
    squares = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2.0 * A @ B.T
    return np.maximum(squares, 0.0)


def _ridge_outputs(task: Task, choice: Cell) -> Array:
    tau, lam = choice
    K = np.exp(_squared_distances(task.X, task.X) / (-2.0 * tau))
    K[np.diag_indices(task.n)] += task.n * lam
    outputs: Array = np.exp(_squared_distances(task.X_test, task.X) / (-2.0 * tau)) @ np.linalg.solve(K, task.y)
    return outputs


def _parameters(task: Task, cells: Iterable[Cell], width: str, strength: str) -> list[dict[str, list[float]]]:
    """Write cells in scikit-learn's terms; ``strength`` is the name of alpha or of C."""
    ridge = strength.endswith("alpha")
    return [
        {width: [1 / (2 * tau)], strength: [task.n * lam if ridge else 1 / (2 * task.n * lam)]} for tau, lam in cells
    ]


def _estimator(task: Task) -> tuple[Any, str, str]:
    """Return scikit-learn's estimator and its names of the width and the strength."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.svm import SVC, SVR

    if task.learner == "krr":
        return KernelRidge(kernel="rbf"), "gamma", "alpha"
    return (SVC() if task.classes else SVR(epsilon=EPSILON)), "gamma", "C"


def _intelex(task: Task) -> tuple[Any, str, str]:
    """Return the estimator of scikit-learn-intelex, which has none for kernel ridge regression."""
    from sklearnex.svm import SVC, SVR

    return (SVC() if task.classes else SVR(epsilon=EPSILON)), "gamma", "C"


def _nystroem(task: Task) -> tuple[Any, str, str]:
    """Return a pipeline of Nystroem features and a linear estimator."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import Pipeline
    from sklearn.svm import LinearSVC, LinearSVR

    linear = {
        "krr": Ridge(fit_intercept=False),
        "svm": LinearSVC(loss="hinge"),
        "svr": LinearSVR(epsilon=EPSILON),
    }[task.learner]
    features = Nystroem(kernel="rbf", n_components=COMPONENTS, random_state=0)
    strength = "linear__alpha" if task.learner == "krr" else "linear__C"
    return Pipeline([("features", features), ("linear", linear)]), "features__gamma", strength


def _workers() -> None:
    """Start joblib's workers, so that their start isn't timed."""
    from joblib import Parallel, delayed

    Parallel(n_jobs=JOBS)(delayed(__import__)("sklearn.svm") for _ in range(2 * JOBS))


def grid_search(make: Callable[[Task], tuple[Any, str, str]], whole: bool = False) -> Callable[..., Outcome]:
    """Search by GridSearchCV: cells from all over the grid, or all of it."""

    def run(task: Task, repeat: int, cells: int) -> Outcome:
        from sklearn.model_selection import GridSearchCV, KFold

        model, width, strength = make(task)
        timed = CELLS if whole else sampled(cells)
        _workers()
        start = time.perf_counter()
        search = GridSearchCV(
            model, _parameters(task, timed, width, strength), cv=KFold(FOLDS), n_jobs=JOBS, refit=False
        )
        search.fit(task.X, task.y)
        seconds = (time.perf_counter() - start) * len(CELLS) / len(timed)
        choice = timed[int(search.best_index_)] if len(timed) == len(CELLS) else None

        def error(chosen: Cell) -> float:
            one = {k: v[0] for k, v in _parameters(task, [chosen], width, strength)[0].items()}
            return task.error(model.set_params(**one).fit(task.X, task.y).predict(task.X_test))

        extent = "whole" if choice is not None else f"{len(timed)} of {len(CELLS)} cells"
        return Outcome(seconds, extent, choice, error)

    return run


def halving(task: Task, repeat: int, cells: int) -> Outcome:
    """Search by HalvingGridSearchCV as it is."""
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401  # lets the next line find it
    from sklearn.model_selection import HalvingGridSearchCV, KFold

    model, width, strength = _estimator(task)
    grid = _parameters(task, CELLS, width, strength)
    _workers()
    start = time.perf_counter()
    search = HalvingGridSearchCV(model, grid, cv=KFold(FOLDS), n_jobs=JOBS, random_state=0)
    search.fit(task.X, task.y)
    seconds = time.perf_counter() - start
    best = search.best_params_
    choice = CELLS[[{k: v[0] for k, v in one.items()} for one in grid].index(best)]
    return Outcome(seconds, "whole", choice, task.error(search.predict(task.X_test)))


def liquidsvm(task: Task, repeat: int, cells: int) -> Outcome:
    """Search by liquidSVM on the same grid and blocks; it predicts by a vote of the folds' fits, each fold's best."""
    known = sysconfig.get_config_var
    # Its loader asks for a name that Python no longer has; it is called EXT_SUFFIX now. (mypy: a function is replaced.)
    sysconfig.get_config_var = lambda name: known("EXT_SUFFIX" if name == "SO" else name)  # type: ignore[assignment]
    from liquidSVM import SVM

    options = {
        "scenario": "BC" if task.classes else "LS",
        "threads": JOBS,
        "grid_choice": -1,
        "gammas": _fixed(np.sqrt(2 * PAPER_TAU)),
        "lambdas": _fixed(PAPER_LAM),
        "folds": FOLDS,
        "folds_kind": "BLOCKS",
        "random_seed": 1,
    }
    start = time.perf_counter()
    model = SVM(task.X, task.y, **options)
    trained = model.train()
    model.select()
    seconds = time.perf_counter() - start
    gamma, lam, validation = trained[:, 3], trained[:, 5], trained[:, 7]
    means = [np.mean(validation[np.isclose(gamma, np.sqrt(2 * t), 1e-6) & np.isclose(lam, v, 1e-6)]) for t, v in CELLS]
    if np.isnan(means).any() or len(trained) != len(CELLS) * FOLDS:
        raise RuntimeError("it didn't train the grid it was given")
    outputs = model.test(task.X_test, task.y_test)[0][:, 0]
    return Outcome(seconds, "whole", CELLS[int(np.argmin(means))], task.error(outputs))


def _fixed(values: Array) -> list[str]:
    """Write numbers without an exponent, which it can't read."""
    return [f"{value:.20f}" for value in values]


def himalaya(task: Task, repeat: int, cells: int) -> Outcome:
    """Search by himalaya's KernelRidgeCV, which has all lambda of one width at once: widths from all over the grid."""
    from himalaya.kernel_ridge import KernelRidge, KernelRidgeCV
    from sklearn.model_selection import KFold

    timed = PAPER_TAU[:: max(1, -(-PAPER_TAU.size // max(1, cells // 2)))]
    start = time.perf_counter()
    for tau in timed:
        KernelRidgeCV(
            alphas=task.n * PAPER_LAM,
            kernel="rbf",
            kernel_params={"gamma": 1 / (2 * tau)},
            cv=KFold(FOLDS),
            Y_in_cpu=False,
        ).fit(task.X, task.y)
    seconds = (time.perf_counter() - start) * PAPER_TAU.size / len(timed)

    def error(chosen: Cell) -> float:
        tau, lam = chosen
        model = KernelRidge(alpha=task.n * lam, kernel="rbf", kernel_params={"gamma": 1 / (2 * tau)})
        return task.error(model.fit(task.X, task.y).predict(task.X_test))

    return Outcome(seconds, f"{len(timed)} of {PAPER_TAU.size} widths", None, error)


def thundersvm(task: Task, repeat: int, cells: int) -> Outcome:
    """Search by ThunderSVM, whose estimators GridSearchCV of today doesn't take: cells and folds in plain loops."""
    from thundersvm import SVC, SVR

    def make(tau: float, lam: float) -> Any:
        named = {"kernel": "rbf", "gamma": 1 / (2 * tau), "C": 1 / (2 * task.n * lam), "n_jobs": JOBS}
        return SVC(**named) if task.classes else SVR(epsilon=EPSILON, **named)

    timed = sampled(cells)
    start = time.perf_counter()
    for tau, lam in timed:
        for fold in range(FOLDS):
            held = task.folds == fold
            make(tau, lam).fit(task.X[~held], task.y[~held]).predict(task.X[held])
    seconds = (time.perf_counter() - start) * len(CELLS) / len(timed)
    return Outcome(
        seconds,
        f"{len(timed)} of {len(CELLS)} cells",
        None,
        lambda c: task.error(make(*c).fit(task.X, task.y).predict(task.X_test)),
    )


METHODS: dict[str, tuple[tuple[str, ...], Callable[..., Outcome]]] = {
    "kernsel": (("krr", "svm", "svr"), kernsel_at(None)),
    f"kernsel, rank {COMPONENTS}": (("krr", "svm", "svr"), kernsel_at(COMPONENTS)),
    "kernsel, full rank": (("krr", "svm", "svr"), kernsel_at("full")),
    "NumPy: eigh and block formula": (("krr",), numpy_closed_form),
    "GridSearchCV": (("krr", "svm", "svr"), grid_search(_estimator)),
    "HalvingGridSearchCV": (("krr", "svm", "svr"), halving),
    f"GridSearchCV, Nystroem({COMPONENTS}) + linear": (("krr", "svm", "svr"), grid_search(_nystroem, whole=True)),
    "GridSearchCV, scikit-learn-intelex": (("svm", "svr"), grid_search(_intelex)),
    "liquidSVM": (("krr", "svm"), liquidsvm),
    "ThunderSVM (CPU)": (("svm", "svr"), thundersvm),
    "himalaya KernelRidgeCV": (("krr",), himalaya),
}
"""The learners that each method has, and how it is run."""

warnings.filterwarnings("ignore", category=FutureWarning, module="sklearn")
