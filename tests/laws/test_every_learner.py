"""Laws of every registered learner, by its default parameters and by those at the ends of what a search may take."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tables
from kernsel import registry
from kernsel.errors import IncompatibleError, OptionError
from kernsel.parts import read_learner
from tolerances import FITTED

NAMES = registry.names("learner")
TASKS = {"classification", "regression"}


def variants():
    """Every registered learner: as it is, with the other choice of a bias, and with the ends of its axes."""
    Y = np.array([np.linspace(-1.0, 1.0, 9)])
    for name in NAMES:
        learner = registry.build("learner", name)
        yield learner
        if "bias" in {each.name for each in fields(learner)}:
            yield replace(learner, bias=not learner.bias)
        if hasattr(learner, "searchable"):
            free = learner.freed(dict.fromkeys(learner.searchable))
            for end in (0, -1):
                yield free.with_parameters(**{each: float(axis[end]) for each, axis in free.axes(Y).items()})


VARIANTS = list(variants())
learners = pytest.mark.parametrize("learner", VARIANTS, ids=str)
outputs, labels = st.floats(-50, 50), st.sampled_from([-1.0, 1.0])


def expand(learner, y, f):
    """The loss and its derivatives at one target and one or more outputs."""
    f = np.atleast_1d(np.asarray(f, dtype=float))
    return [part[0, 0] for part in learner.loss.expand(np.full((1, f.size), y), np.ones(f.size), f[None, None])]


@learners
@given(y=labels, f=outputs)
def test_derivatives_are_those_of_differences(learner, y, f):
    step = 1e-5
    v, d1, d2 = expand(learner, y, [f - step, f, f + step])
    across = learner.loss.piecewise_quadratic and len(set(d2)) > 1
    np.testing.assert_allclose((v[2] - v[0]) / (2 * step), d1[1], rtol=1e-6, atol=step * d2.max() if across else 1e-6)
    if across:  # the second derivative jumps, the first doesn't
        assert abs(d1[2] - d1[0]) <= 2 * step * d2.max() * (1 + 1e-6)
    else:
        np.testing.assert_allclose((d1[2] - d1[0]) / (2 * step), d2[1], rtol=1e-4, atol=1e-4)


@learners
@given(y=labels, a=outputs, b=outputs, share=st.floats(0, 1))
def test_losses_are_convex_and_not_negative(learner, y, a, b, share):
    v, d1, d2 = expand(learner, y, [a, b, share * a + (1 - share) * b])
    assert v[2] <= share * v[0] + (1 - share) * v[1] + 1e-9 * (1 + v.max())
    assert (v >= 0).all()
    assert (d2 >= 0).all()
    assert v[1] >= v[0] + d1[0] * (b - a) - 1e-9 * (1 + np.abs(v).max() + abs(d1[0] * (b - a)))


@learners
def test_weights_multiply_the_derivatives_and_not_the_loss(learner):
    Y, f = np.array([[1.0, -1.0, 1.0]]), np.array([[[0.3, -0.98, 7.0]]])
    once, twice = (learner.loss.expand(Y, np.full(3, s), f) for s in (1.0, 2.0))
    np.testing.assert_array_equal(twice[0], once[0])
    np.testing.assert_array_equal(twice[1], 2 * once[1])
    np.testing.assert_array_equal(twice[2], 2 * once[2])
    unscored = replace(learner.loss, measure=None)
    np.testing.assert_array_equal(unscored.values(Y, f), once[0])
    np.testing.assert_array_equal(unscored.value(Y, f[:, 0]), once[0][:, 0])


@learners
def test_what_is_not_a_number_stays_so(learner):
    assert all(np.isnan(part).any() for part in expand(learner, 1.0, np.nan)[:2])


def rows_for(learner):
    """Rows of targets that a learner is for, weighted."""
    rows = tables.make_rows(real="classification" not in learner.tasks)
    return replace(rows, weights=1.0 + np.arange(rows.n) % 3)


@learners
@pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])
def test_no_small_step_from_a_fit_lowers_the_objective(learner, rank):
    rows = rows_for(learner)
    path = tables.path_on(rows, learner, (0.1, 0.01), rank=rank)
    points, rng = path.representation.points, np.random.default_rng(0)
    K, inner = path.problem.kernel(rows.X, points), path.problem.kernel(points)

    def objective(a, b, k):
        """``sum_i s_i V(y_i, f_i) / sum s + lambda ||f||^2`` of coefficients (outputs, m) and biases (outputs,)."""
        value = learner.loss.expand(rows.Y, np.ones(rows.n), (a @ K.T + b[:, None])[:, None])[0][:, 0]
        return value @ rows.s / rows.total + path.lams[k] * np.einsum("ci,cj,ij->c", a, a, inner)

    for k in range(2):
        a, b = path.coefficients(k), path.intercepts(k)
        best = objective(a, b, k)
        for _ in range(10):
            other = objective(a + 1e-3 * rng.normal(size=a.shape), b + 1e-3 * path.bias * rng.normal(size=b.shape), k)
            assert (other >= best - 1e-12 * (1 + np.abs(best))).all()


@learners
def test_a_weight_of_two_is_a_row_twice(learner):
    rows = rows_for(learner)
    s = rows.s.astype(int)
    repeated = rows.taken(np.repeat(np.arange(rows.n), s), np.r_[0, np.cumsum(s)[rows.starts[1:] - 1]])
    one, other = (tables.path_on(each, learner) for each in (rows, replace(repeated, weights=None)))
    curved = learner.loss.expand(rows.Y, rows.s, one.fits.f)[2].any(axis=2)
    settled = curved if path_has_free_bias(learner) else np.ones_like(curved)
    f = np.repeat(one.fits.f, s, axis=2)
    np.testing.assert_allclose(other.fits.f[settled], f[settled], rtol=0, atol=10 * FITTED)


def path_has_free_bias(learner):
    """Whether a bias may be free to move: where no row is in a bend of a loss that is flat elsewhere."""
    return learner.bias and learner.loss.piecewise_quadratic and not learner.loss.square


@learners
def test_a_learner_is_for_known_tasks_and_refused_for_others(learner):
    assert learner.tasks
    assert set(learner.tasks) <= TASKS
    for task in learner.tasks:
        assert read_learner(learner, task) == learner
    for task in TASKS - set(learner.tasks):
        with pytest.raises(IncompatibleError, match=f"'{learner.name}' is for {learner.tasks[0]}"):
            read_learner(learner, task)


@learners
def test_parameters_are_replaced_one_by_one(learner):
    if not hasattr(learner, "searchable"):
        pytest.skip("the learner has no parameters to search")
    free = learner.with_parameters(**dict.fromkeys(learner.searchable))
    assert free.free == learner.searchable
    with pytest.raises(OptionError, match="has no value"):
        _ = free.loss
    for parameter, value in learner.parameters.items():
        free = free.with_parameters(**{parameter: value})
        assert parameter not in free.free
    assert free == learner
    with pytest.raises(OptionError, match=f"'{learner.name}' has no parameter 'nothing'"):
        learner.with_parameters(nothing=1.0)


@pytest.mark.parametrize("name", NAMES)
def test_conversions_to_other_libraries_are_finite_and_positive(name):
    learner = registry.build("learner", name)
    assert learner.conversions(10, 0.1)
    assert all(0 < value < np.inf for value in learner.conversions(10, 0.1).values())
