"""The words of other libraries, above all scikit-learn's: what each is called here, or what takes its place.

A word is understood where it means exactly one thing here. Where it would mean several, or something slightly
different, the error says what to write instead.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from kernsel.deprecation import current
from kernsel.errors import OptionError
from kernsel.text import meant

P = ParamSpec("P")
R = TypeVar("R")

PARTS: Mapping[str, Mapping[str, str]] = {
    "kernel": {
        "rbf": "gaussian",
        "poly": "polynomial",
        "laplace": "laplacian",
        "matern12": "exponential",
        "rationalquadratic": "rational-quadratic",
    },
    "learner": {
        "svc": "svm",
        "kernel-ridge": "krr",
        "kernel_ridge": "krr",
        "kernelridge": "krr",
        "ls-svm": "lssvm",
        "logistic": "klr",
    },
    "criterion": {},
}
"""Names of parts elsewhere, by the kind of part."""

NO_PARTS: Mapping[str, Mapping[str, str]] = {
    "kernel": {
        "matern": "exponential, matern32 and matern52 are those of nu = 0.5, 1.5 and 2.5",
        "sigmoid": "it is not positive definite; polynomial or gaussian take its place",
        "cosine": "it is linear of rows of length 1: scale them so",
        "chi2": "write it as a plugin, see the guide on plugins, or give its Gram matrix to the kernel precomputed",
    },
    "learner": {
        "nusvc": "svm has lambda in place of nu, which is searched",
        "nusvr": "svr has epsilon and lambda in place of nu, which are searched",
        "linearsvc": "it is l2svm with the kernel linear",
        "linearsvr": "it is svr with the kernel linear",
        "ridge": "it is krr with the kernel linear",
        "logisticregression": "it is klr with the kernel linear",
        "gaussianprocessregressor": "its mean is krr; relevances='evidence' learns a kernel as it does",
        "gaussianprocessclassifier": "klr has its link",
    },
    "experiment": dict.fromkeys(
        ("bif14", "fbif18", "flkl", "flkl-mkl", "ks14", "ksj"),
        "the package kernsel-papers has it; in a checkout of kernsel, pip install plugins/kernsel-papers",
    ),
}
"""Parts elsewhere that are none here, each with what takes its place, or which package has it."""

OPTIONS: Mapping[str, str] = {
    "cv": "folds",
    "param_grid": "grid",
    "random_state": "seed",
    "sample_weight": "weights",
    "scoring": "select_by",
}
"""Options of other libraries, each with the option here that means the same."""

_LAMBDA = "the regularisation is lambda, which is searched; to search values of your own, give"
_WIDTH = "the kernel's parameters are searched; to fix one, give"

ELSEWHERE: Mapping[str, str] = {
    "n_jobs": "all cores are used; set the environment variable NUMBA_NUM_THREADS for fewer",
    "C": f"{_LAMBDA} grid={{'C': [0.1, 1, 10]}}, with lambda = 1 / (2 n C)",
    "alpha": f"{_LAMBDA} grid={{'alpha': [0.1, 1, 10]}}, with lambda = alpha / n",
    "lam": f"{_LAMBDA} grid={{'lambda': [0.001, 0.01]}}",
    "lambda_": f"{_LAMBDA} grid={{'lambda': [0.001, 0.01]}}",
    "gamma": f"{_WIDTH} kernel='gaussian(gamma=0.5)'; to search values of your own, give grid={{'gamma': [0.1, 1]}}",
    "length_scale": f"{_WIDTH} kernel='matern32(ell=2)'",
    "degree": f"{_WIDTH} kernel='polynomial(degree=3)'",
    "coef0": f"{_WIDTH} kernel='polynomial(coef0=0)'",
    "epsilon": "it belongs to the learner: learner='svr(epsilon=0.1)', in units of the target's robust spread, or "
    "'svr(epsilon=None)' to search it",
    "probability": "probabilities are always there, see 'calibration'",
    "fit_intercept": "a bias belongs to the learner: learner='svm(bias=false)'; krr has none, and lssvm has one",
    "estimator": "the learner is a name: learner='svm'",
    "refit": "the choice is always fitted on all rows",
    "n_iter": "points at random are a grid: grid='random:50'",
    "n_components": "the number of landmarks is called rank",
    "verbose": "progress=print is called with what is done",
    "nu": "the regularisation is lambda, which is searched",
    "shuffle": "folds=10 deals rows at random, classes in their shares; folds='blocks:10' in their order",
    "n_splits": "the number of folds is folds=10",
    "stratify": "folds keep the shares of classes always",
    "return_train_score": "candidates are scored on held-out rows only",
    "error_score": "candidates that fail come last, and are counted",
    "decision_function_shape": "of several classes each has an output, for it against the rest",
    "tol": "fits are exact to rounding; there is no tolerance",
    "max_iter": "fits are exact to rounding; there is no number of iterations",
}
"""Options of other libraries that are none here, each with what takes its place."""


def own_name(kind: str, name: str) -> str:
    """Return the name that a part has here, for the name that it may have elsewhere.

    Parameters
    ----------
    kind : {"kernel", "learner", "criterion", "search", "format", "experiment"}
    """
    return current(kind, PARTS.get(kind, {}).get(name.lower(), name))


def instead_of(name: str) -> str | None:
    """Return what takes the place of an option of another library, or what it is called; None for any other name."""
    return f"it is called {OPTIONS[name]!r} here" if name in OPTIONS else ELSEWHERE.get(name)


def unknown_option(who: str, name: str, known: Iterable[str]) -> OptionError:
    """Return the error for an option that is none of the known ones.

    Parameters
    ----------
    who : str
        What was told the option.
    """
    if instead := instead_of(name):
        return OptionError(f"{who} has no option {name!r}: {instead}")
    hint = meant(name, [*known, *OPTIONS]) or f"; its options are {', '.join(known)}"
    return OptionError(f"{who} has no option {name!r}{hint}")


def read_options(who: str, options: Mapping[str, object], known: Iterable[str]) -> dict[str, Any]:
    """Return options by their names here.

    Parameters
    ----------
    who : str
        What is told the options, for messages.
    options : mapping
        By names of here or of elsewhere.
    known : iterable of str
        The names that are understood.

    Raises
    ------
    OptionError
        A name is unknown, or one option is given by two names.
    """
    known, read = list(known), {}
    for name, value in options.items():
        own = name if name in known else current("option", OPTIONS.get(name, name))
        if own not in known:
            raise unknown_option(who, name, known)
        if own != name and own in options:
            raise OptionError(f"{who}: {name!r} and {own!r} are one option; give one of them")
        if own == name or value is not None:  # elsewhere None is the default
            read[own] = value
    return read


def understands(*others: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function understand its options by the words of other libraries, and answer unknown ones.

    Parameters
    ----------
    *others : callable
        Functions whose options are passed on.

    Returns
    -------
    callable
        A decorator.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        every = (inspect.signature(each).parameters.values() for each in (function, *others))
        known = list(dict.fromkeys(p.name for group in every for p in group if p.kind is p.KEYWORD_ONLY))
        first = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]

        @functools.wraps(function)
        def understood(*args: P.args, **kwargs: P.kwargs) -> R:
            given = {name: value for name, value in kwargs.items() if name not in first}
            data: dict[str, Any] = {name: value for name, value in kwargs.items() if name in first}
            read = read_options(f"kernsel.{function.__name__}", given, known)
            return function(*args, **data, **read)

        return understood

    return decorate
