"""The laws of a learner: of its loss, of its fits, and of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any
from unittest import SkipTest

import numpy as np

import kernsel
from kernsel.errors import IncompatibleError, OptionError
from kernsel.folds.partition import Partition
from kernsel.parts import read_learner
from kernsel.protocols import Learner, SupportsConversions, Tunable
from kernsel.testing import tables
from kernsel.testing.base import FITTED, NOTHING, Check, Draw, Laws, Subject, run_checks
from kernsel.types import Array

STEP = 1e-5  # of differences in an output
TASKS = {"classification", "regression"}
LAWS = Laws()


def learner_checks(learner: Learner, *, without: Mapping[str, str] = NOTHING) -> list[Check]:
    """Return the checks of a learner, with the other choice of a bias and with the ends of its axes, too.

    Parameters
    ----------
    learner : Learner
        With a value for each parameter.
    without : mapping of str to str, optional
        Checks to skip, by name, each with the reason.
    """
    return LAWS.of(Subject("learner", learner), without)


def check_learner(learner: Learner, **options: Any) -> dict[str, str]:
    """Run ``learner_checks``; AssertionError if some fail, else those that don't apply, with the reasons."""
    return run_checks(learner_checks(learner, **options))


def variants(learner: Any) -> Iterator[Any]:
    """Yield the learner as it is, with the other choice of a bias, and with the ends of its axes."""
    yield learner
    if "bias" in {each.name for each in fields(learner)}:
        yield replace(learner, bias=not learner.bias)
    if isinstance(learner, Tunable):
        free: Any = learner.freed(dict.fromkeys(learner.searchable))
        axes = free.axes(np.array([np.linspace(-1.0, 1.0, 9)]))
        for end in (0, -1):
            yield free.with_parameters(**{each: float(axis[end]) for each, axis in axes.items()})


def expand(learner: Learner, y: float, f: Any) -> list[Array]:
    """Return the loss and its derivatives at one target and one or more outputs."""
    f = np.atleast_1d(np.asarray(f, dtype=float))
    return [part[0, 0] for part in learner.loss.expand(np.full((1, f.size), y), np.ones(f.size), f[None, None])]


def rows_for(learner: Learner) -> Partition:
    """Return rows of targets that a learner is for, weighted."""
    rows = tables.make_rows(real="classification" not in learner.tasks)
    return replace(rows, weights=(1.0 + np.arange(rows.n) % 3).astype(np.float64))


def _one_target(learner: Learner, draw: Draw) -> float:
    from kernsel.testing import strategies

    return float(draw(strategies.targets("classification" if "classification" in learner.tasks else "regression")))


def _one_variant(subject: Subject, draw: Draw) -> Any:
    from hypothesis import strategies as st

    return draw(st.sampled_from(list(variants(subject.part))))


@LAWS.add
def it_is_for_known_tasks_and_refused_for_others(subject: Subject) -> None:
    """``tasks`` holds "classification", "regression" or both."""
    learner = subject.part
    known = bool(learner.tasks) and set(learner.tasks) <= TASKS
    subject.check(known, f"its tasks are {learner.tasks!r}; they can be 'classification' and 'regression'")
    for task in sorted(TASKS):
        try:
            read_learner(learner, task)
        except IncompatibleError:
            subject.check(task not in learner.tasks, f"it is refused for a {task}, which is in its tasks")
        else:
            subject.check(task in learner.tasks, f"it is taken for a {task}, which isn't in its tasks")


@LAWS.drawn
def derivatives_are_those_of_differences(subject: Subject, draw: Draw) -> None:
    """The first derivative is that of the loss, and the second is that of the first."""
    from kernsel.testing import strategies

    learner = _one_variant(subject, draw)
    y, f = _one_target(learner, draw), draw(strategies.outputs())
    v, d1, d2 = expand(learner, y, [f - STEP, f, f + STEP])
    across = learner.loss.piecewise_quadratic and len(set(d2)) > 1
    where = f"of {learner} at y = {y!r}, f = {f!r}"
    subject.check_close(
        (v[2] - v[0]) / (2 * STEP),
        d1[1],
        f"dV/df {where} isn't the derivative of V; derive it in f",
        rtol=1e-6,
        atol=STEP * d2.max() if across else 1e-6,
    )
    slope = (d1[2] - d1[0]) / (2 * STEP)
    if across:  # the second derivative jumps, the first doesn't
        jumps = abs(d1[2] - d1[0]) > 2 * STEP * d2.max() * (1 + 1e-6)
        subject.check(not jumps, f"dV/df {where} jumps; put a parabola in place of the kink")
    else:
        ask = f"d2V/df2 {where} isn't the derivative of dV/df; derive it, or say piecewise_quadratic=False"
        subject.check_close(slope, d2[1], ask, rtol=1e-4, atol=1e-4)


@LAWS.drawn
def losses_are_convex_and_not_negative(subject: Subject, draw: Draw) -> None:
    """A chord lies above the loss, a tangent below it."""
    from hypothesis import strategies as st

    from kernsel.testing import strategies

    learner = _one_variant(subject, draw)
    y, a, b = _one_target(learner, draw), draw(strategies.outputs()), draw(strategies.outputs())
    share = draw(st.floats(0, 1))
    v, d1, d2 = expand(learner, y, [a, b, share * a + (1 - share) * b])
    where = f"of {learner} at y = {y!r}, f = {a!r} and {b!r}"
    subject.check((v >= 0).all(), f"the loss {where} is negative: {v[:2]}; add a constant")
    subject.check((d2 >= 0).all(), f"d2V/df2 {where} is negative: {d2[:2]}; the loss must be convex")
    above = v[2] <= share * v[0] + (1 - share) * v[1] + 1e-9 * (1 + v.max())
    slack = 1e-9 * (1 + np.abs(v).max() + abs(d1[0] * (b - a)))
    convex = above and v[1] >= v[0] + d1[0] * (b - a) - slack
    subject.check(convex, f"the loss {where} isn't convex; another loss is needed")


@LAWS.add
def weights_multiply_the_derivatives_and_not_the_loss(subject: Subject) -> None:
    """``expand`` is given weights."""
    Y, f = np.array([[1.0, -1.0, 1.0]]), np.array([[[0.3, -0.98, 7.0]]])
    for learner in variants(subject.part):
        once, twice = (learner.loss.expand(Y, np.full(3, s), f) for s in (1.0, 2.0))
        for one, two, factor in zip(once, twice, (1, 2, 2), strict=True):
            ask = f"a weight of 2 has the wrong effect in expand of the loss of {learner}; leave it to Loss"
            subject.check_close(two, factor * one, ask)
        if getattr(learner.loss, "measure", None) is None:
            ask = f"values of the loss of {learner} are others than those of expand; leave them to Loss"
            subject.check_close(learner.loss.values(Y, f), once[0], ask)
            subject.check_close(learner.loss.value(Y, f[:, 0]), once[0][:, 0], ask)


@LAWS.add
def what_is_not_a_number_stays_so(subject: Subject) -> None:
    """A fit that failed must not look like one that hasn't."""
    for learner in variants(subject.part):
        kept = all(np.isnan(part).any() for part in expand(learner, 1.0, np.nan)[:2])
        ask = f"the loss of {learner} at an output of NaN is a number; let comparisons with NaN lead to NaN"
        subject.check(kept, ask)


@LAWS.add
def no_small_step_from_a_fit_lowers_the_objective(subject: Subject) -> None:
    """``sum_i s_i V(y_i, f_i) / sum s + lambda ||f||^2`` is at its minimum, of the whole kernel and of a low rank."""
    for learner in variants(subject.part):
        for rank in (None, 8):
            _check_minimum(subject, learner, rank)


def _check_minimum(subject: Subject, learner: Learner, rank: int | None) -> None:
    rows = rows_for(learner)
    path = tables.path_on(rows, learner, (0.1, 0.01), rank=rank)
    points, rng = path.representation.points, np.random.default_rng(0)
    K, inner = path.problem.kernel(rows.X, points), path.problem.kernel(points)

    def objective(a: Array, b: Array, lam: float) -> Array:
        """Return the objective (outputs,) of coefficients (outputs, m) and biases (outputs,)."""
        value = learner.loss.expand(rows.Y, np.ones(rows.n), (a @ K.T + b[:, None])[:, None])[0][:, 0]
        return np.asarray(value @ rows.s / rows.total + lam * np.einsum("ci,cj,ij->c", a, a, inner))

    for k, lam in enumerate(path.lams):
        a, b = path.coefficients(k), path.intercepts(k)
        best = objective(a, b, lam)
        for _ in range(10):
            near = a + 1e-3 * rng.normal(size=a.shape), b + 1e-3 * path.bias * rng.normal(size=b.shape)
            lower = (objective(*near, lam) < best - 1e-12 * (1 + np.abs(best))).any()
            ask = f"a fit of {learner} at lambda = {lam} isn't the minimum; look at the derivatives and at convexity"
            subject.check(not lower, ask)


@LAWS.add
def a_weight_of_two_is_a_row_twice(subject: Subject) -> None:
    """Where no bias is free to move: no row in a bend of a loss that is flat elsewhere."""
    for learner in variants(subject.part):
        rows = rows_for(learner)
        s = rows.s.astype(int)
        one, other = (tables.path_on(each, learner) for each in (rows, tables.repeated(rows, s)))
        loss = learner.loss
        curved = loss.expand(rows.Y, rows.s, one.fits.f)[2].any(axis=2)
        free_bias = learner.bias and loss.piecewise_quadratic and not loss.square
        settled = curved if free_bias else np.ones_like(curved)
        twice = np.repeat(one.fits.f, s, axis=2)[settled]
        ask = f"{learner} fits a row of weight 2 otherwise than two rows; leave weights to the library"
        subject.check_close(other.fits.f[settled], twice, ask, atol=10 * FITTED)


@LAWS.add
def parameters_are_replaced_one_by_one(subject: Subject) -> None:
    """A search gives values to free parameters, and takes them away."""
    if not isinstance(subject.part, Tunable):
        raise SkipTest("the learner has no parameters to search")
    for learner in variants(subject.part):
        free = learner.with_parameters(**dict.fromkeys(learner.searchable))
        subject.check(free.free == learner.searchable, f"without values {learner.searchable} should be free")
        _check_refused(subject, partial(getattr, free, "loss"), "has no value", "its loss without a value")
        for parameter, value in learner.parameters.items():
            free = free.with_parameters(**{parameter: value})
            subject.check(parameter not in free.free, f"{parameter} is free although it has a value")
        subject.check(free == learner, f"with its parameters replaced one by one {learner} is another learner")
        _check_refused(
            subject,
            partial(learner.with_parameters, nothing=1.0),
            f"'{learner.name}' has no parameter 'nothing'",
            "a parameter that it doesn't have",
        )


def _check_refused(subject: Subject, ask: Callable[[], Any], text: str, what: str) -> None:
    try:
        ask()
    except OptionError as error:
        subject.check(text in str(error), f"the error for {what} should say {text!r}, and says {error}")
    else:
        subject.fail(f"{what} is taken; raise kernsel.errors.OptionError, or derive from kernsel.learners.Tunable")


@LAWS.add
def conversions_to_other_libraries_are_finite_and_positive(subject: Subject) -> None:
    """``conversions(n, lambda)`` by the names of these libraries."""
    learner = subject.part
    found = learner.conversions(10, 0.1) if isinstance(learner, SupportsConversions) else {}
    if not found:
        raise SkipTest("the learner has no terms of other libraries")
    wrong = {name: value for name, value in found.items() if not 0 < value < np.inf}
    subject.check(not wrong, f"conversions(10, 0.1) has {wrong}; leave out what has no finite value above 0")


@LAWS.add
def a_selection_takes_it(subject: Subject) -> None:
    """Candidates are scored, the leaders verified by exact refits, and the model predicts what is finite."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    signal = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=30)
    for task in subject.part.tasks:
        y = signal if task == "regression" else np.where(signal > 0, "up", "down")
        found = kernsel.select(X, y, kernel="gaussian", learner=subject.part, folds=3, grid="coarse", verify=1)
        subject.check(found.best.verified is not None, f"no candidate of a {task} could be verified")
        predicted = found.model.predict(X)
        sound = np.isfinite(predicted) if task == "regression" else np.isin(predicted, y)
        subject.check(sound.all(), f"the model of a {task} predicts what is no target")
