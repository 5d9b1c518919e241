"""What kernsel's default predicts on many tables, beside boosted trees, support vector machines and its own narrower
searches.

    python benchmarks/tables.py [DATA.csv ...] [--rows 2000] [--draws 3] [--methods auto,gaussian,...] [--out FILE]

Tables: the CSV files that are given (features, then the target), those that scikit-learn ships, and made ones. A draw
takes at most ``--rows`` rows, at most 70 % of a table, to learn from, and up to 5000 others to test on. Figures: for a
regression the mean squared error in units of the target's variance, for classes the share misclassified. Of several
methods the geometric mean of ratios to the first one (regressions), the mean (classes), and on how many tables each is
better than the first. Times are wall seconds on all threads.

Rivals that are not installed are left out: ``lightgbm`` (as it comes; ``tuned``: the best of eight settings by early
stopping on a fifth of the rows), ``xgpr``, ``xrfm``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import kernsel

Array = NDArray[Any]
Fit = Callable[[Array, Array, bool], Callable[[Array], Array]]
"""``(X, y, whether y is classes) -> predict``."""

TUNED = [
    {"learning_rate": rate, "num_leaves": leaves, "min_child_samples": least}
    for rate in (0.03, 0.1)
    for leaves in (7, 31)
    for least in (5, 20)
]


def waves(seed: int) -> tuple[Array, Array]:
    """Three classes that are mixtures of triangular waves (Breiman, Friedman, Olshen & Stone 1984)."""
    rng = np.random.default_rng(seed)
    shapes = np.array([np.maximum(6 - abs(np.arange(21) - centre), 0) for centre in (6, 14, 10)], float)
    y, u = rng.integers(0, 3, 4000), rng.random((4000, 1))
    first, second = np.array([0, 0, 1])[y], np.array([1, 2, 2])[y]
    return u * shapes[first] + (1 - u) * shapes[second] + rng.normal(size=(4000, 21)), y


def rotated(seed: int) -> tuple[Array, Array]:
    """Friedman's first function on axes that are turned."""
    rng = np.random.default_rng(seed)
    X, y = datasets.make_friedman1(4000, 10, noise=1.0, random_state=seed)
    return X @ np.linalg.qr(rng.normal(size=(10, 10)))[0], y


MADE: dict[str, Callable[[], tuple[Array, Array]]] = {
    "diabetes-sk": lambda: datasets.load_diabetes(return_X_y=True),
    "friedman1": lambda: datasets.make_friedman1(4000, 10, noise=1.0, random_state=0),
    "friedman2": lambda: datasets.make_friedman2(4000, noise=100.0, random_state=0),
    "friedman3": lambda: datasets.make_friedman3(4000, noise=0.1, random_state=0),
    "rotated": lambda: rotated(0),
    "linear": lambda: datasets.make_regression(4000, 10, n_informative=5, noise=50.0, random_state=0),
    "breast_cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "moons": lambda: datasets.make_moons(4000, noise=0.3, random_state=0),
    "clusters": lambda: datasets.make_classification(
        4000, 15, n_informative=6, n_redundant=3, n_classes=3, flip_y=0.05, random_state=0
    ),
    "waves": lambda: waves(0),
}


def kernsel_with(**options: Any) -> Fit:
    """Return a selection with options."""

    def fit(X: Array, y: Array, classes: bool) -> Callable[[Array], Array]:
        task = "classification" if classes else "regression"
        return kernsel.select(X, y, task=task, **options).model.predict

    return fit


def boosted(X: Array, y: Array, classes: bool) -> Callable[[Array], Array]:
    """LightGBM as it comes."""
    import lightgbm

    kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    return kind(verbose=-1).fit(X, y).predict


def boosted_tuned(X: Array, y: Array, classes: bool) -> Callable[[Array], Array]:
    """The best of eight settings of LightGBM, each with as many trees as a fifth of the rows says; fitted on all."""
    import lightgbm

    kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    X_train, X_stop, y_train, y_stop = train_test_split(
        X, y, test_size=0.2, random_state=0, stratify=y if classes else None
    )
    best: tuple[float, dict[str, Any], int] = (np.inf, {}, 100)
    for setting in TUNED:
        model = kind(n_estimators=2000, verbose=-1, **setting)
        stop = lightgbm.early_stopping(50, verbose=False)
        model.fit(X_train, y_train, eval_set=[(X_stop, y_stop)], callbacks=[stop])
        loss = next(iter(next(iter(model.best_score_.values())).values()))
        best = min(best, (loss, setting, model.best_iteration_ or 100), key=lambda each: each[0])
    _, setting, trees = best
    return kind(n_estimators=max(trees, 1), verbose=-1, **setting).fit(X, y).predict


def histogram(X: Array, y: Array, classes: bool) -> Callable[[Array], Array]:
    """scikit-learn's boosted trees as they come."""
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return kind(random_state=0).fit(X, y).predict


def support(X: Array, y: Array, classes: bool) -> Callable[[Array], Array]:
    """A grid search of a support vector machine, 56 candidates and five folds."""
    grid = {"svm__C": 2.0 ** np.arange(-3, 12, 2), "svm__gamma": 2.0 ** np.arange(-11, 3, 2)}
    folds = (StratifiedKFold if classes else KFold)(5, shuffle=True, random_state=0)
    model = make_pipeline(StandardScaler(), SVC() if classes else SVR(epsilon=0.1))
    grid = {name.replace("svm", "svc" if classes else "svr"): values for name, values in grid.items()}
    shift, unit = (0.0, 1.0) if classes else (y.mean(), y.std())
    found = GridSearchCV(model, grid, cv=folds, n_jobs=2).fit(X, y if classes else (y - shift) / unit)
    return found.predict if classes else lambda Z: found.predict(Z) * unit + shift


METHODS: dict[str, Fit] = {
    "auto": kernsel_with(),
    "gaussian": kernsel_with(kernel="gaussian"),
    "minimum": kernsel_with(kernel="gaussian", choose="minimum", clip=False),
    "quick": kernsel_with(effort="quick"),
    "thorough": kernsel_with(effort="thorough"),
    "lightgbm": boosted,
    "tuned": boosted_tuned,
    "histogram": histogram,
    "svm": support,
}


def tables(paths: list[Path]) -> Iterator[tuple[str, Array, Array]]:
    """Give each table: its name, features and target."""
    for path in paths:
        frame = pd.read_csv(path)
        yield path.stem, frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1].to_numpy()
    for name, make in MADE.items():
        yield name, *make()


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", type=Path)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--methods", default="auto,gaussian,quick,lightgbm,tuned,histogram,svm")
    parser.add_argument("--only", default="", help="tables, with commas between")
    parser.add_argument("--out", type=Path, help="a file that figures are appended to, as JSON lines")
    given = parser.parse_args()
    methods, only = given.methods.split(","), set(filter(None, given.only.split(",")))
    warnings.simplefilter("ignore")
    figures: list[dict[str, Any]] = []
    for name, X, y in tables(given.data):
        if only and name not in only:
            continue
        classes = len(np.unique(y)) <= 20
        for draw in range(given.draws):
            order = np.random.default_rng(draw).permutation(len(y))
            n = min(given.rows, int(0.7 * len(y)))
            train, test = order[:n], order[n : n + 5000]
            for method in methods:
                start = time.perf_counter()
                try:
                    predict = METHODS[method](X[train], y[train], classes)
                except ImportError:
                    continue
                seconds = time.perf_counter() - start
                predicted = np.asarray(predict(X[test]))
                wrong = predicted != y[test] if classes else (predicted - y[test]) ** 2 / y[test].var()
                figure = {"table": name, "draw": draw, "method": method, "classes": classes}
                figures.append(figure | {"risk": float(np.mean(wrong)), "seconds": seconds, "rows": n})
                if given.out is not None:
                    with given.out.open("a", encoding="utf-8") as stream:
                        stream.write(json.dumps(figures[-1]) + "\n")
    report(pd.DataFrame(figures), methods[0])


def report(figures: pd.DataFrame, first: str) -> None:
    """Print risks by table, and what they come to."""
    for classes, some in figures.groupby("classes"):
        risk = some.pivot_table(index="table", columns="method", values="risk", sort=False)
        print("classes: share misclassified, %" if classes else "regressions: test MSE / variance")
        print(((100 if classes else 1) * risk).round(2 if classes else 4).to_string())
        if classes:
            print("mean", (100 * risk.mean()).round(2).to_dict())
        else:
            ratio = np.exp(np.log(risk.div(risk[first], axis=0)).mean())
            print(f"geometric mean relative to {first}", ratio.round(3).to_dict())
        print(f"{first} is better on", {name: int((risk[first] < risk[name]).sum()) for name in risk}, "of", len(risk))
        print("seconds", some.groupby("method")["seconds"].mean().round(2).to_dict(), "\n")


if __name__ == "__main__":
    main()
