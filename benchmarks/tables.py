"""What kernsel's default predicts on many tables, beside boosted trees, support vector machines and its own narrower
searches: ``kernsel.compare`` on each, and what they come to.

    python benchmarks/tables.py [DATA.csv ...] [--rows 2000] [--draws 3] [--methods auto,gaussian,...] [--journals DIR]

Tables: the CSV files that are given (features, then the target), those that scikit-learn ships, and made ones. A draw
takes at most ``--rows`` rows, at most 70 % of a table, to learn from, and up to 5000 others to test on. Figures: for a
regression the mean squared error in units of the target's variance, for classes the share misclassified. Of several
methods the geometric mean of ratios to the first one (regressions), the mean (classes), and on how many tables each is
better than the first. Times are median wall seconds on all threads. A stopped run goes on from its journals.

Rivals that are not installed are left out: ``lightgbm`` (as it comes; ``tuned``: the best of eight settings by early
stopping on a fifth of the rows), ``xrfm`` (kernels with a learnt metric: the best of nine settings, judged and stopped
on a fifth of the rows) and, for a regression, ``xgpr`` (a Gaussian process of random features).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import kernsel

Array = NDArray[Any]
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


class Tuned(BaseEstimator):
    """The best of eight settings of LightGBM, each with as many trees as a fifth of the rows says; fitted on all."""

    def __init__(self, kind: Any = None) -> None:
        self.kind = kind

    def fit(self, X: Array, y: Array) -> Tuned:
        import lightgbm

        classes = issubclass(self.kind, lightgbm.LGBMClassifier)
        X_train, X_stop, y_train, y_stop = train_test_split(
            X, y, test_size=0.2, random_state=0, stratify=y if classes else None
        )
        best: tuple[float, dict[str, Any], int] = (np.inf, {}, 100)
        for setting in TUNED:
            model = self.kind(n_estimators=2000, verbose=-1, **setting)
            stop = lightgbm.early_stopping(50, verbose=False)
            model.fit(X_train, y_train, eval_set=[(X_stop, y_stop)], callbacks=[stop])
            loss = next(iter(next(iter(model.best_score_.values())).values()))
            best = min(best, (loss, setting, model.best_iteration_ or 100), key=lambda each: each[0])
        _, setting, trees = best
        self.model_ = self.kind(n_estimators=max(trees, 1), verbose=-1, **setting).fit(X, y)
        return self

    def predict(self, Z: Array) -> Array:
        return np.asarray(self.model_.predict(Z))


class Xrfm(BaseEstimator):
    """The best of nine settings of xRFM, each stopped on a fifth of the rows, which its package asks for."""

    def __init__(self, classes: bool = False) -> None:
        self.classes = classes

    def fit(self, X: Array, y: Array) -> Xrfm:
        import torch
        from xrfm import xRFM

        self.scaler_ = StandardScaler().fit(X)
        self.labels_ = np.unique(y) if self.classes else None
        self.centre_, self.spread_ = (0.0, 1.0) if self.classes else (y.mean(), y.std())
        target = (y[:, None] == self.labels_) if self.classes else ((y - self.centre_) / self.spread_)[:, None]
        split = train_test_split(
            self.scaler_.transform(X), target, test_size=0.2, random_state=0, stratify=y if self.classes else None
        )
        X_train, X_stop, y_train, y_stop = (torch.tensor(np.asarray(part, np.float32)) for part in split)
        best: tuple[float, Any] = (np.inf, None)
        for bandwidth in (2.0, 5.0, 15.0):
            for ridge in (1e-4, 1e-2, 1.0):
                settings = {
                    "model": {"kernel": "l2", "bandwidth": bandwidth, "exponent": 1.0, "diag": False},
                    "fit": {"reg": ridge, "iters": 5, "verbose": False, "early_stop_rfm": True},
                }
                metric = "accuracy" if self.classes else "mse"
                model = xRFM(settings, device="cpu", tuning_metric=metric, random_state=0, verbose=False)
                model.fit(X_train, y_train, X_stop, y_stop)
                F = self._outputs(model, X_stop)
                wrong = F.argmax(1) != y_stop.numpy().argmax(1) if self.classes else (F - y_stop.numpy()) ** 2
                best = min(best, (float(wrong.mean()), model), key=lambda each: each[0])
        self.model_ = best[1]
        return self

    def _outputs(self, model: Any, X: Any) -> Array:
        F = model.predict_proba(X) if self.classes else model.predict(X)
        return np.asarray(F).reshape(len(X), -1)

    def predict(self, Z: Array) -> Array:
        import torch

        F = self._outputs(self.model_, torch.tensor(self.scaler_.transform(Z), dtype=torch.float32))
        if self.labels_ is not None:
            return np.asarray(self.labels_[F.argmax(axis=1)])
        return np.asarray(self.centre_ + self.spread_ * F[:, 0])


class Xgpr(BaseEstimator):
    """A Gaussian process of 1024 random features, its two parameters by the evidence."""

    def fit(self, X: Array, y: Array) -> Xgpr:
        from xGPR import build_regression_dataset, xGPRegression

        self.scaler_ = StandardScaler().fit(X)
        rows = build_regression_dataset(self.scaler_.transform(X), y.astype(np.float64))
        self.model_ = xGPRegression(num_rffs=1024, kernel_choice="Matern", verbose=False)
        self.model_.tune_hyperparams(rows)
        self.model_.fit(rows, mode="exact")
        return self

    def predict(self, Z: Array) -> Array:
        return np.asarray(self.model_.predict(self.scaler_.transform(Z), get_var=False))


def trees(classes: bool) -> Any:
    """Return LightGBM's estimator, the class."""
    import lightgbm

    return lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor


def support(classes: bool) -> Any:
    """Return a grid search of a support vector machine, 56 candidates and five folds."""
    grid = {"C": 2.0 ** np.arange(-3, 12, 2), "gamma": 2.0 ** np.arange(-11, 3, 2)}
    folds = (StratifiedKFold if classes else KFold)(5, shuffle=True, random_state=0)
    search = GridSearchCV(SVC() if classes else SVR(epsilon=0.1), grid, cv=folds, n_jobs=2)
    return search if classes else TransformedTargetRegressor(search, transformer=StandardScaler())


def installed(name: str) -> bool:
    """Return that a module is there; ImportError if it isn't."""
    import_module(name)
    return True


OWN: dict[str, dict[str, Any]] = {
    "auto": {},
    "gaussian": {"kernel": "gaussian"},
    "minimum": {"kernel": "gaussian", "choose": "minimum", "clip": False},
    "quick": {"effort": "quick"},
    "thorough": {"effort": "thorough"},
}
"""Selections, by their options."""

RIVALS: dict[str, Callable[[bool], Any]] = {
    "lightgbm": lambda classes: trees(classes)(verbose=-1),
    "tuned": lambda classes: Tuned(trees(classes)),
    "histogram": lambda classes: (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(
        random_state=0
    ),
    "svm": support,
    "xrfm": lambda classes: installed("xrfm") and Xrfm(classes),
    "xgpr": lambda classes: None if classes else installed("xGPR") and Xgpr(),
}
"""Estimators, for classes or for a regression; their rows are encoded and scaled."""


def compared(X: Array, y: Array, classes: bool, methods: list[str], given: argparse.Namespace, name: str) -> Any:
    """Return a line for each draw and method: risk and seconds."""
    own = {method: OWN[method] for method in methods if method in OWN}
    rivals = {}
    for method in methods:
        if method in RIVALS:
            with suppress(ImportError):
                if (rival := RIVALS[method](classes)) is not None:
                    rivals[method] = rival
    found = kernsel.compare(
        {name: (X, y)},
        methods=own,
        against=list(rivals.values()),
        splits=given.draws,
        train=min(given.rows, int(0.7 * len(y))),
        test_rows=5000,
        measure="mse",
        task="classification" if classes else "regression",
        journal=None if given.journals is None else given.journals / f"{name}.journal",
    )
    names = dict(zip(found.names, [*own, *rivals], strict=True))
    risk = found.frame["error"] / (1 if classes else y.var())
    return found.frame.assign(method=found.frame["method"].map(names), risk=risk, classes=classes)


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
    parser.add_argument("--journals", type=Path, help="a folder for the journals of what is done")
    given = parser.parse_args()
    methods, only = given.methods.split(","), set(filter(None, given.only.split(",")))
    warnings.simplefilter("ignore")
    figures = [
        compared(X, y, len(np.unique(y)) <= 20, methods, given, name)
        for name, X, y in tables(given.data)
        if not only or name in only
    ]
    report(pd.concat(figures), methods[0])


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
        print("seconds", some.groupby("method")["seconds"].median().round(2).to_dict(), "\n")


if __name__ == "__main__":
    main()
