"""One method on one split: choose and fit on the training rows, and the mean loss of the others."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernsel.comparison.methods import FOUND, KERNELS, OWN, Method, make_estimator, merged
from kernsel.comparison.tables import Split, Table
from kernsel.errors import IncompatibleError, KernselError, OptionError
from kernsel.evaluation.nestedcv import row_losses
from kernsel.kernels import Kernel, short
from kernsel.learning import WeightedKernel, learn_mkl_on_dataset, learn_on_dataset
from kernsel.search.candidate import parameters_of
from kernsel.selection.carry_out import carry_out
from kernsel.selection.plan import Plan
from kernsel.text import first_line
from kernsel.types import Indices

FITTED: Mapping[str, Any] = {
    "search": "grid",
    "criterion": "newton-cv",
    "verify": 0,
    "extend": False,
    "choose": "minimum",
}
"""What a model is fitted by, once its kernel and lambda are known."""

LEARNING: Mapping[str, Callable[..., Any]] = dict(zip(FOUND, (learn_on_dataset, learn_mkl_on_dataset), strict=True))
"""What finds a kernel and lambda in place of a search, by a method's option."""

NOT_FITTED = ("relevances", "refine", "budget", "order", "eta", "pure", "one_se", "within", "certify")
"""Options of the choice that the fit of what was chosen has none of."""


@dataclass(frozen=True)
class Trial:
    """What a method came to on one split.

    Parameters
    ----------
    loss : float
        Of the rows to test on: the share misclassified, or the mean squared error in units of the target (of several
        targets, of their standard deviations); NaN where the method failed.
    seconds : float
        To choose and to fit; predictions are not counted.
    learner : str
        Or the estimator's class.
    parameters : dict of str to float
        Of kernel and learner, as chosen.
    reported : float or None
        The held-out error that the selection itself reports.
    proved : float or None
        Of a selection that certifies, the share within which its lowest exact score is proved to be that of the best
        candidate; infinite where nothing is proved.
    work : float or None
        What that took, as a share of the fits of exact cross-validation of all candidates; 0 in closed form.
    failed : str or None
        The reason.
    """

    loss: float
    seconds: float = math.nan
    learner: str = ""
    kernel: str = ""
    parameters: dict[str, float] = field(default_factory=dict)
    lam: float | None = None
    reported: float | None = None
    proved: float | None = None
    work: float | None = None
    failed: str | None = None


def run_trial(table: Table, method: Method, split: Split, seed: int) -> Trial:
    """Return what a method comes to on a split of a table; what it can't do there is said in ``failed``.

    Parameters
    ----------
    split : pair of arrays
    seed : int
        Of an estimator that has a random state.

    Raises
    ------
    OptionError
        An option has a value that it can't have.
    """
    fit = _select if method.against is None else _fit_estimator
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said of one selection would be said hundreds of times
        try:
            predict, found = fit(table, method, split[0], seed)
            predicted = np.asarray(predict(table.part(split[1])[0]))
        except OptionError:
            raise
        except (KernselError, MemoryError) as error:
            return Trial(math.nan, failed=first_line(error) or type(error).__name__)
    losses = row_losses(table.dataset, table.dataset.Y[:, split[1]], predicted)
    return replace(found, loss=float(losses.mean()))


Fitted = tuple[Callable[[Any], Any], Trial]
"""What predicts rows of a table, and what is known of it before it does."""


def _select(table: Table, method: Method, rows: Indices, seed: int) -> Fitted:
    """Select on some rows."""
    options = {name: value for name, value in method.options.items() if name not in OWN}
    plan = Plan.read("compare", {**options, "task": table.dataset.task, "journal": None})
    start = time.perf_counter()
    dataset = table.encoded(rows, plan)
    if (ridges := method.options.get("ridges")) is not None:
        plan = replace(
            plan, grid=merged({"grid": plan.grid}, {"grid": {"lambda": [r / dataset.total for r in ridges]}})["grid"]
        )
    found: Any = None
    if (learning := method.learning) is not None:
        found = LEARNING[learning](dataset, **method.options[learning])
        plan = _beside(plan, found.kernel) if found.lam is None else _at(plan, found.kernel, found.lam)
    result = carry_out(dataset, plan)
    proof = result.certificate
    if (fitted := method.options.get("fitted")) is not None:
        best = result.best
        result = carry_out(dataset, replace(_at(plan, best.kernel, best.lam), learner=fitted))
    seconds = time.perf_counter() - start
    best = result.best
    return result.model.predict, Trial(
        math.nan,
        seconds,
        result.learner,
        "weighted sum" if isinstance(found, WeightedKernel) else short(best.kernel),
        {**_of_kernel(best.kernel, found), **_numbers(parameters_of(best.learner))},
        best.lam,
        best.error,
        None if proof is None else proof.lowest,
        None if proof is None else 0.0 if proof.closed_form else proof.refits / max(proof.exhaustive, 1),
    )


def _beside(plan: Plan, kernel: Kernel) -> Plan:
    """Return the plan of a selection of lambda for a kernel that is known: values of a grid for others are left out."""
    if isinstance(plan.grid, str):
        return replace(plan, kernel=kernel)
    return replace(plan, kernel=kernel, grid={name: each for name, each in plan.grid.items() if name == "lambda"})


def _at(plan: Plan, kernel: Kernel, lam: float) -> Plan:
    """Return the plan of a fit at a kernel and lambda that are known."""
    defaults: dict[str, Any] = {name: getattr(Plan, name) for name in NOT_FITTED}
    return replace(plan, kernel=kernel, grid={"lambda": [lam]}, **FITTED, **defaults)


def _of_kernel(kernel: Kernel, found: object) -> dict[str, float]:
    """Return the parameters of a kernel; of a weighted sum how many kernels have a weight."""
    if isinstance(found, WeightedKernel):
        return {KERNELS: float(np.count_nonzero(found.weights))}
    return _numbers(kernel.parameters)


def _numbers(parameters: Mapping[str, object]) -> dict[str, float]:
    return {name: float(value) for name, value in parameters.items() if isinstance(value, int | float)}


def _fit_estimator(table: Table, method: Method, rows: Indices, seed: int) -> Fitted:
    """Fit an estimator of scikit-learn's kind to rows that are encoded and scaled as for a selection."""
    plan = Plan.read("compare", merged(method.options, {"task": table.dataset.task}))
    whole = table.dataset
    start = time.perf_counter()
    dataset = table.encoded(rows, plan)
    model = make_estimator(method.against, seed)
    target: Any
    if whole.labels is not None:
        target = np.array(whole.labels)[whole.take(rows).codes]
    else:
        target = np.squeeze(whole.Y[:, rows].T * whole.output_scale + whole.output_shift)
    name = type(model).__name__
    try:
        model.fit(dataset.X, target)
    except (TypeError, ValueError, AttributeError) as error:
        raise IncompatibleError(f"{name} can't be fitted: {first_line(error)}") from error
    seconds = time.perf_counter() - start

    def predict(Z: object) -> Any:
        try:
            predicted = np.asarray(model.predict(dataset.encoder.transform(Z)))
        except (TypeError, ValueError, AttributeError) as error:
            raise IncompatibleError(f"{name} can't predict: {first_line(error)}") from error
        if whole.labels is not None and not set(predicted.tolist()) <= set(whole.labels):
            raise IncompatibleError(f"{name} predicts values that are no labels; name a classifier")
        return predicted

    return predict, Trial(math.nan, seconds, name, "", _chosen(model))


def _chosen(model: object) -> dict[str, float]:
    """Return the parameters that a search of scikit-learn has chosen."""
    return _numbers(getattr(model, "best_params_", {}))
