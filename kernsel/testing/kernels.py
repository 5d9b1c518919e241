"""The laws of a kernel; one is skipped where the kernel lacks the capability, whatever its name."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import scipy.sparse

import kernsel
from kernsel.errors import OptionError
from kernsel.kernels import Kernel, On, Statistics, from_spec, parse
from kernsel.numerics import gram
from kernsel.numerics.stability import scan_gram
from kernsel.protocols.kernels import SupportsSklearn, has_relevances, is_differentiable
from kernsel.testing.base import DIFFERENCES, EPS, NOTHING, Check, Draw, Laws, Subject, left_as_they_are, run_checks
from kernsel.types import Array

FEATURES = 3
STEP = 1e-6  # of differences: their own error is its square, and EPS / STEP from rounding
LAWS = Laws()


@dataclass(frozen=True)
class KernelSubject(Subject):
    """A kernel that is checked.

    Parameters
    ----------
    kind : {"kernel"}
    part : Kernel
    rows : callable
        What brings rows of real numbers (n, 3) to those that the kernel is for.
    """

    rows: Callable[[Array], Array] = np.array

    def some(self, n: int = 12, seed: int = 0) -> Array:
        """Return rows (n, 3) that the kernel is for."""
        return self.rows(np.random.default_rng(seed).normal(size=(n, FEATURES)))

    def fixed(self, X: Array) -> Any:
        """Return the kernel with a value for each parameter, from the middle of its axes for the rows X."""
        from kernsel.testing.strategies import with_all

        kernel = self.part
        values = {name: np.asarray(axis)[(len(axis) - 1) // 2].item() for name, axis in kernel.axes(X).items()}
        kernel = kernel.with_parameters(**values)
        if has_relevances(kernel) and kernel.theta is None:
            kernel = kernel.with_theta(np.linspace(1.0, 0.1, X.shape[1]))
        return with_all(kernel)

    def drawn(self, draw: Draw) -> tuple[Array, Any]:
        """Return rows (n, 3), n from 2 to 9, and the kernel with a value for each parameter."""
        from kernsel.testing import strategies

        X = draw(strategies.points(FEATURES, self.rows))
        return X, draw(strategies.kernels(self.part, X))


def kernel_checks(
    kernel: Kernel, *, rows: Callable[[Array], Array] = np.array, without: Mapping[str, str] = NOTHING
) -> list[Check]:
    """Return the checks of a kernel.

    Parameters
    ----------
    kernel : Kernel
        Its free parameters get values from its axes; what its axes don't search needs a value.
    rows : callable, optional
        What brings rows of any real numbers, (n, 3), to those that the kernel is for, such as ``np.abs``.
    without : mapping of str to str, optional
        Checks to skip, by name, each with the reason.
    """
    return LAWS.of(KernelSubject("kernel", kernel, rows), without)


def check_kernel(kernel: Kernel, **options: Any) -> dict[str, str]:
    """Run ``kernel_checks``; AssertionError if some fail, else those that don't apply, with the reasons."""
    return run_checks(kernel_checks(kernel, **options))


def rounding(kernel: Kernel, X: Array) -> float:
    """Return the size of the rounding errors of a Gram matrix: those of its largest entries, n of them summed."""
    return float(1e4 * EPS * len(X) * max(kernel.diag(X).max(), np.finfo(float).tiny))


@LAWS.add
def values_are_numbers_in_arrays_of_the_right_shape(subject: KernelSubject) -> None:
    """Values are float64: k(X, Z) is (n, m), and diag (n,); the rows are left as they are."""
    X, Z = subject.some(), subject.some(7, 1)
    kernel = subject.fixed(X)
    with left_as_they_are(subject, X=X, Z=Z):
        found = {
            "k(X)": (kernel(X), (12, 12)),
            "k(X, Z)": (kernel(X, Z), (12, 7)),
            "evaluate(Statistics(X))": (kernel.evaluate(Statistics(X)), (12, 12)),
            "evaluate(Statistics(X, Z))": (kernel.evaluate(Statistics(X, Z)), (12, 7)),
            "diag(X)": (kernel.diag(X), (12,)),
        }
    for name, (values, shape) in found.items():
        right = isinstance(values, np.ndarray) and values.dtype == np.float64 and values.shape == shape
        what = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        subject.check(right, f"{name} is {what} for 12 rows in X and 7 in Z; return float64 of shape {shape}")
        subject.check(np.isfinite(values).all(), f"{name} has entries that aren't finite; rows of the size 1 are usual")


@LAWS.drawn
def gram_matrices_are_symmetric_and_positive_semidefinite(subject: KernelSubject, draw: Draw) -> None:
    """Unless its ``definite`` is false: such a kernel says itself that it is not."""
    X, kernel = subject.drawn(draw)
    K = kernel(X)
    subject.check_close(K, K.T, f"the Gram matrix of {kernel} isn't symmetric to the bit; compute a pair one way")
    least = np.linalg.eigvalsh(K)[0]
    subject.check(
        least >= -rounding(kernel, X) or not kernel.definite,
        f"the Gram matrix of {kernel} has the eigenvalue {least:.3g}, so it isn't positive semidefinite; use another "
        "formula, or set definite = False",
    )


@LAWS.drawn
def the_ways_to_a_gram_matrix_agree(subject: KernelSubject, draw: Draw) -> None:
    """Of rows with themselves, with a copy, with other rows, by statistics; and the diagonal."""
    X, kernel = subject.drawn(draw)
    K, Z = kernel(X), subject.rows(X[1:] + 0.5)
    close = {"rtol": 1e-10, "atol": rounding(kernel, X)}
    ask = "write all of them from one formula"
    subject.check_close(kernel(X, X.copy()), K, f"k(X, X) isn't k(X); {ask}", **close)
    subject.check_close(kernel.diag(X), np.diag(K), f"diag(X) isn't the diagonal of k(X); {ask}", **close)
    subject.check_close(kernel.evaluate(Statistics(X)), K, f"evaluate(Statistics(X)) isn't k(X); {ask}", **close)
    subject.check_close(
        kernel.evaluate(Statistics(X, Z)), kernel(X, Z), f"evaluate(Statistics(X, Z)) isn't k(X, Z); {ask}", **close
    )
    subject.check_close(kernel(Z, X), kernel(X, Z).T, f"k(Z, X) isn't the transpose of k(X, Z); {ask}", **close)


@LAWS.drawn
def the_order_of_rows_is_the_order_of_entries(subject: KernelSubject, draw: Draw) -> None:
    """No value depends on where its rows stand."""
    from hypothesis import strategies as st

    X, kernel = subject.drawn(draw)
    order = draw(st.permutations(range(len(X))))
    subject.check_close(
        kernel(X[order]),
        kernel(X)[np.ix_(order, order)],
        "rows in another order have other values; let a value depend on its two rows alone",
        rtol=1e-9,
        atol=rounding(kernel, X),
    )


@LAWS.add
def a_gram_matrix_is_the_callers_own(subject: KernelSubject) -> None:
    """What is done to it changes no later one."""
    X = subject.some()
    kernel, statistics = subject.fixed(X), Statistics(X)
    first = kernel.evaluate(statistics)
    kept = first.copy()
    subject.check(first.flags.writeable, "evaluate returns an array that can't be written to; return a new one")
    first[:] = 0
    subject.check_close(kernel.evaluate(statistics), kept, "evaluate returns the same array again; return a new one")


@LAWS.add
def sparse_rows_are_dense_ones(subject: KernelSubject) -> None:
    """A kernel that takes sparse rows gives them the values of dense ones."""
    X, Z = (subject.rows(subject.some(n, s) * (subject.some(n, s + 2) > 0)) for n, s in ((12, 0), (7, 1)))
    kernel = subject.fixed(X)
    if not kernel.sparse:
        raise SkipTest("the kernel takes dense rows only")
    S, T = scipy.sparse.csr_array(X), scipy.sparse.csr_array(Z)
    ask = "mend it, or leave out sparse = True"
    for one, other in ((kernel(S), kernel(X)), (kernel(S, T), kernel(X, Z)), (kernel.diag(S), kernel.diag(X))):
        subject.check_close(one, other, f"sparse rows have other values than dense ones; {ask}", rtol=1e-12, atol=1e-13)


@LAWS.add
def a_subset_of_the_features_is_a_table_of_these(subject: KernelSubject) -> None:
    """``kernel[0, 2]`` sees these columns only."""
    X = subject.some()
    wide = np.column_stack([X[:, 0], 7.0 + subject.some(seed=5), X[:, 1:]])
    kernel = subject.fixed(X)
    on = On((0, FEATURES + 1, FEATURES + 2), kernel)
    ask = "on some columns of a table it has other values than on a table of these; use nothing but the rows given"
    for found in (on(wide), on.evaluate(Statistics(wide))):
        subject.check_close(found, kernel(X), ask, rtol=1e-10, atol=1e-12)
    subject.check_close(on.diag(wide), kernel.diag(X), ask, rtol=1e-12)


@LAWS.add
def text_and_description_build_the_kernel_again(subject: KernelSubject) -> None:
    """By them it is named in results, and kept in model files."""
    subject.require_installed()
    for kernel in (subject.part, subject.fixed(subject.some())):
        subject.check(parse(str(kernel)) == kernel, f"the text {kernel} builds another kernel; keep __str__ as it is")
        kept = from_spec(json.loads(json.dumps(kernel.spec())))
        subject.check(kept == kernel, f"spec() of {kernel} builds another kernel; have no state beside the fields")


@LAWS.add
def parameters_are_replaced_one_by_one(subject: KernelSubject) -> None:
    """A search gives values to free parameters, and takes them away."""
    kernel = subject.fixed(subject.some())
    again, free = kernel.with_parameters(**dict.fromkeys(subject.part.free)), subject.part.free
    subject.check(again.free == free, f"without their values {free} should be free, and {again.free} are")
    for parameter in free:
        again = again.with_parameters(**{parameter: kernel.parameters[parameter]})
        subject.check(parameter not in again.free, f"{parameter} is free although it has a value; have it as a field")
    subject.check(again == kernel, "with its parameters replaced one by one it is another kernel")
    try:
        kernel.with_parameters(nothing=1.0)
    except OptionError as error:
        subject.check(
            "no parameter 'nothing'" in str(error), f"the error for a wrong parameter doesn't say so: {error}"
        )
    else:
        subject.fail("it takes a parameter that it doesn't have; raise kernsel.errors.OptionError")


@LAWS.add
def a_free_parameter_is_asked_for(subject: KernelSubject) -> None:
    """A kernel without its values has none of its own."""
    kernel, X = subject.part, subject.some()
    if not kernel.free:
        raise SkipTest("the kernel has no free parameter")
    asks: dict[str, Callable[[Array], Any]] = {
        "k(X)": kernel,
        "diag(X)": kernel.diag,
        "evaluate(stats)": lambda rows: kernel.evaluate(Statistics(rows)),
    }
    for name, ask in asks.items():
        try:
            ask(X)
        except OptionError as error:
            subject.check("has no value" in str(error), f"{name} with a free parameter says {error}")
        except Exception as error:  # noqa: BLE001  # whatever it is, it isn't the one that helps
            subject.fail(f"{name} with a free parameter ends in {error!r}; begin with self.require_fixed()")
        else:
            subject.fail(f"{name} has values although a parameter has none; begin with self.require_fixed()")


@LAWS.drawn
def axes_ascend_and_each_value_is_allowed(subject: KernelSubject, draw: Draw) -> None:
    """Each axis belongs to a free parameter, whose values it lists."""
    X, kernel = subject.drawn(draw)[0], subject.part
    for parameter, axis in kernel.axes(X).items():
        subject.check(parameter in kernel.free, f"axes has {parameter}, which isn't free; leave it out where it is set")
        ascends = np.ndim(axis) == 1 and np.isfinite(axis).all() and (np.diff(axis) > 0).all()
        subject.check(ascends, f"the axis of {parameter} is no row of finite numbers in ascending order: {axis}")
        for value in np.asarray(axis)[[0, -1]]:
            found = kernel.with_parameters(**{parameter: value.item()}).parameters[parameter]
            subject.check(found == value, f"{parameter}={value} of its axis becomes {found} in the kernel")


@LAWS.add
def derivatives_by_relevances_are_those_of_differences(subject: KernelSubject) -> None:
    """``theta_vjp`` against central differences."""
    X, Z, rng = subject.some(), subject.some(7, 1), np.random.default_rng(2)
    kernel = subject.fixed(X)
    if not has_relevances(kernel):
        raise SkipTest("the kernel has no relevances")
    theta = np.array(kernel.theta)
    moved = [(kernel.with_theta(theta + e), kernel.with_theta(theta - e)) for e in STEP * np.eye(theta.size)]
    for weights, args, others in ((rng.normal(size=(12, 12)), (X,), {}), (rng.normal(size=(12, 7)), (X, Z), {"Z": Z})):
        expected = [((up(*args) - down(*args)) * weights).sum() / (2 * STEP) for up, down in moved]
        subject.check_close(
            kernel.theta_vjp(X, weights, **others),
            expected,
            "theta_vjp isn't the derivative by theta; compare it with differences entry by entry",
            rtol=DIFFERENCES,
            atol=DIFFERENCES,
        )


@LAWS.add
def derivatives_by_parameters_are_those_of_differences(subject: KernelSubject) -> None:
    """``log_slopes`` against central differences in the logarithm of each parameter."""
    X, kernel = subject.some(), subject.fixed(subject.some())
    if not is_differentiable(subject.part) or not subject.part.free:
        raise SkipTest("no free parameter of the kernel is one that its relevances are a function of")
    W = np.random.default_rng(2).normal(size=(12, 12))
    found = kernel.log_slopes(kernel.theta_vjp(X, W))
    for name in subject.part.free:
        value = kernel.parameters[name]
        up, down = (kernel.with_parameters(**{name: value * np.exp(step)})(X) for step in (STEP, -STEP))
        expected = ((up - down) * W).sum() / (2 * STEP)
        ask = f"log_slopes isn't the derivative by log {name}; use the chain rule from theta to it"
        subject.check_close(found[name], expected, ask, rtol=DIFFERENCES, atol=DIFFERENCES)


@LAWS.add
def a_stability_scan_is_that_of_the_gram_matrix(subject: KernelSubject) -> None:
    """``scan`` in blocks is that of the whole matrix."""
    X = subject.some(40)
    kernel = subject.fixed(X)
    for one, other in zip(kernel.scan(X), scan_gram(kernel(X)), strict=True):
        subject.check_close(one, other, "scan isn't that of the Gram matrix; leave it to the base class", rtol=1e-10)


@LAWS.add
def a_compiled_formula_is_the_kernel(subject: KernelSubject) -> None:
    """``compiled`` names a statistic and a formula that have the values of the kernel."""
    X = subject.some()
    kernel = subject.fixed(X)
    if (found := kernel.compiled(X)) is None:
        raise SkipTest("the kernel has no compiled formula")
    statistic, points, formula = found
    values = gram.gram(statistic, points, None, formula)
    subject.check_close(values, kernel(X), "compiled(X) has other values than k(X)", rtol=1e-12, atol=1e-13)


@LAWS.add
def scikit_learn_has_the_same_kernel(subject: KernelSubject) -> None:
    """A kernel that names a metric of scikit-learn equals it."""
    X = subject.some()
    kernel = subject.fixed(X)
    K = kernel(X)
    if not isinstance(kernel, SupportsSklearn):
        raise SkipTest("the kernel names no kernel of scikit-learn")
    from sklearn.metrics.pairwise import pairwise_kernels

    values = pairwise_kernels(X, metric=kernel.metric, **kernel.sklearn_parameters())
    ask = f"scikit-learn's {kernel.metric!r} with sklearn_parameters() has other values"
    subject.check_close(values, K, ask, rtol=1e-10, atol=1e-12)


@LAWS.add
def a_selection_takes_it_and_a_file_keeps_the_model(subject: KernelSubject) -> None:
    """From rows to a file and back, with the predictions that were made before."""
    X = subject.some(24)
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    chosen: Any = subject.part if not subject.part.unlearnt else subject.fixed(X)
    found = kernsel.select(X, y, kernel=chosen, learner="krr", folds=3, grid="coarse", standardize=False, verify=1)
    expected = found.model.predict(X)
    subject.check(np.isfinite(expected).all(), "a model with it predicts what isn't finite")
    subject.require_installed()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        found.model.save(path)
        kept = kernsel.load(path).predict(X)
    subject.check_close(kept, expected, "a model that is loaded from a file predicts something else")
