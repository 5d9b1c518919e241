"""Relevances by the gradient of criteria, and what comes out of all ways of learning them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import kernsel
import tables
import tolerances
import twins.learning
from kernsel import learn_relevances, registry
from kernsel.criteria import BR, CV, ELOO, LOO, Evidence
from kernsel.data import from_arrays
from kernsel.errors import IncompatibleError, OptionError
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.kernels import ARD, ARDPolynomial, Gaussian
from kernsel.learners import Krr, Lssvm
from kernsel.learning import PUBLISHED, descent
from kernsel.learning.descent import Box, DescentPoint
from kernsel.learning.relevances import Objective, learn_on_dataset
from kernsel.paths import make_path
from kernsel.representation.problem import Problem

CRITERIA = [Evidence(), LOO(), ELOO(), CV(), BR()]
THETA = np.array([0.4, 0.1, 0.02])


def waves(n=90, d=5, seed=0, noise=0.2):
    """A regression on the first two of d features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)
    return pd.DataFrame(X, columns=[f"f{j}" for j in range(d)]), y


def rows_on(weights=None, outputs=2, n=40, folds=5):
    X, _ = waves(n, 3)
    Y = np.random.default_rng(1).normal(size=(n, outputs)) + np.sin(2 * X.to_numpy()[:, :1])
    dataset = from_arrays(X, Y if outputs > 1 else Y[:, 0], weights=weights)
    return Partition.of(dataset, make_folds(folds, dataset), 0)


@pytest.mark.parametrize("learner", [Krr(), Lssvm()], ids=str)
@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: c.name)
@pytest.mark.parametrize("kernel", [ARD(THETA), ARDPolynomial(THETA, 2), Gaussian(2.0)], ids=lambda k: k.name)
def test_gradients_are_the_differences_and_values_the_scores(kernel, criterion, learner):
    rows = rows_on(weights=np.random.default_rng(2).uniform(0.5, 2.0, 40))
    theta = np.array(kernel.theta)

    def value(theta, lam):
        return criterion.gradient(Problem(rows, kernel.with_theta(theta)), learner, lam).value

    for lam in (1e-3, 0.1):
        slopes = criterion.gradient(Problem(rows, kernel.with_theta(theta)), learner, lam)
        expected = twins.learning.differences(lambda t: value(t, lam), theta)  # noqa: B023
        np.testing.assert_allclose(slopes.theta, expected, rtol=1e-5, atol=1e-6 * abs(slopes.value))
        along = twins.learning.differences(lambda t: value(theta, t[0]), np.array([lam]))[0] * lam
        assert slopes.lam == pytest.approx(along, rel=1e-5, abs=1e-6 * abs(slopes.value))
        score = criterion.score(make_path(Problem(rows, kernel.with_theta(theta)), learner, [lam])).score[0]
        assert slopes.value == pytest.approx(score, rel=1e-8)


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: c.name)
def test_the_optimum_keeps_the_conditions_at_the_bound(criterion):
    X, y = waves()
    dataset = from_arrays(X, y)
    rows = Partition.of(dataset, make_folds(5, dataset), 0)
    objective = Objective(rows, ARD(), Krr(), criterion)
    least = 1e-3 if criterion.name == "br" else 0.0
    box, start = Box(least, 1e3, (1e-9, 1e2)), DescentPoint(np.full(5, 0.1), 1e-2)
    found = descent.on_scale(objective, descent.on_log_scale(objective, start, box), box, tolerance=1e-12)
    slopes = objective(found.theta, found.lam)
    units = np.maximum(found.theta, descent.NEGLIGIBLE * found.theta.max())
    low = found.theta <= least
    assert low[2:].any()
    assert not low[:2].any()
    assert (slopes.theta[low] > -tolerances.STATIONARY).all()
    assert (np.abs(slopes.theta * units)[~low] < tolerances.STATIONARY).all()
    assert abs(slopes.lam) < tolerances.STATIONARY
    values = [value for value, _ in found.path]
    assert values[-1] == found.value < objective(start.theta, start.lam).value


def test_the_evidence_reaches_that_of_scikit_learn():
    X, y = waves(60, 3)
    learnt = learn_relevances(X, y)
    Z, t = ((each - each.mean(axis=0)) / each.std(axis=0, ddof=0) for each in (X.to_numpy(), y))
    scale = ConstantKernel(1.0, (1e-3, 1e4))
    kernel = scale * RBF(np.ones(3), (1e-2, 1e4)) + WhiteKernel(0.1, (1e-6, 1e2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an irrelevant feature's length lies on its bound
        process = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0).fit(Z, t)
    # Ours leaves out the constant n/2 (1 + log 2 pi), and profiles the scale out, which is at its best there too.
    assert -learnt.value - 30 * (1 + np.log(2 * np.pi)) >= process.log_marginal_likelihood_value_ - 1e-3
    lengths = process.kernel_.k1.k2.length_scale
    np.testing.assert_allclose(learnt.relevances[:2], 1 / (2 * lengths[:2] ** 2), rtol=0.02)


@pytest.mark.parametrize("method", [*PUBLISHED, "ARD-evidence"])
def test_every_way_of_learning(method):
    kernel, criterion = PUBLISHED.get(method, ("ard", "evidence"))
    X, y = waves(120)
    learnt = learn_relevances(X, y, kernel=kernel, criterion=criterion, evaluations=6)
    assert learnt.criterion == criterion
    assert learnt.learner == "krr"
    assert list(learnt.relevances.index) == list(X.columns)
    assert (learnt.relevances >= 0).all()
    if kernel == "gaussian":
        assert learnt.relevances.nunique() == 1
    else:
        assert learnt.relevances[:2].min() > 2 * learnt.relevances[2:].max()
    assert learnt.value == pytest.approx(learnt.history["value"].min(), rel=1e-9)
    assert (learnt.mu is None) == (criterion != "flkl")
    assert learnt.zero == [name for name, value in learnt.relevances.items() if value == 0]
    assert repr(learnt).startswith(f"<LearnedKernel: {kernel}, ")


def test_with_one_relevance_it_is_no_worse_than_the_grid():
    X, y = waves(60)
    learnt = learn_relevances(X, y, kernel="gaussian", criterion="cv")
    best = tables.choose(X, y, standardize=True, learner="krr", kernel="gaussian", criterion="cv", folds=5).best
    assert learnt.value <= best.score


@pytest.mark.parametrize("criterion", ["evidence", "flkl"])
def test_many_rows_are_learnt_on_in_part_first(criterion):
    X, y = waves(160)
    learnt = learn_relevances(X, y, criterion=criterion, rows=60, polish=3, evaluations=5)
    assert "learnt on 60 of 160 rows, then on 160" in learnt.notes
    assert learnt.history["rows"].iloc[0] == 60
    assert learnt.relevances[:2].min() > 2 * learnt.relevances[2:].max()
    if criterion == "evidence":
        polished = learnt.history[learnt.history["rows"] == 160]
        assert 1 <= len(polished) <= 3
        everything = learn_relevances(X, y, rows=160)
        unpolished = learn_relevances(X, y, rows=60, polish=0)
        assert everything.value <= learnt.value + 0.5 <= unpolished.value + 0.5
        assert 0.1 < learnt.lam / everything.lam < 10


def test_rows_beyond_the_most_that_are_learnt_on():
    learnt = learn_on_dataset(from_arrays(*waves(150), standardize=True), rows=50, most=100)
    assert learnt.notes[-1] == "learnt on 50 of 150 rows, then on 100 (the most that are learnt on)"
    assert learnt.lam == pytest.approx(learnt.steps[-1].lam * 100 / 150)


def test_classes_weights_groups_and_text():
    rng = np.random.default_rng(0)
    X, y = waves(120, 4)
    frame = X.assign(kind=rng.choice(["a", "b"], 120))
    labels = np.select([y > 0.8, y < -0.8], ["high", "low"], "middle")
    learnt = learn_relevances(
        frame, labels, criterion="cv", folds=3, weights=rng.integers(1, 3, 120), groups=np.arange(120) // 3, rows=80
    )
    assert learnt.learner == "lssvm"
    assert list(learnt.relevances.index) == ["f0", "f1", "f2", "f3", "kind=a", "kind=b"]
    assert learnt.relevances[:2].min() > learnt.relevances[2:].max()


def test_a_selection_takes_the_kernel_as_it_is_and_does_better_by_it():
    X, y = waves(120, 8)
    learnt = learn_relevances(X, y)
    result = tables.choose(X, y, standardize=True, learner="krr", kernel=[learnt.kernel, "gaussian"], folds=5)
    assert result.best.kernel == learnt.kernel
    assert result.best.error < 0.9 * min(c.error for c in result.candidates if c.kernel.name == "gaussian")
    assert learnt.isotropic.name == "gaussian"


def test_a_kernel_with_relevances_is_where_learning_begins():
    X, y = waves(60, 3)
    given = ARD((0.5, 0.2, 0.0))
    learnt = learn_relevances(X, y, kernel=given, criterion="loo")
    assert learnt.isotropic == given
    assert learnt.value == pytest.approx(learn_relevances(X, y, criterion="loo").value, rel=1e-3)


def test_the_same_seed_gives_the_same():
    X, y = waves(80)
    first, again, other = (learn_relevances(X, y, rows=40, polish=1, seed=seed) for seed in (1, 1, 2))
    assert first.kernel == again.kernel != other.kernel
    assert first.steps == again.steps


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": "linear"}, IncompatibleError, "kernel 'linear()' has no relevances to learn: use ard, ard-laplac"),
        ({"learner": "svr"}, IncompatibleError, "relevances are learnt for the square loss, and learner 'svr' has"),
        ({"criterion": "bif"}, IncompatibleError, "criterion 'bif' has no gradient by the relevances of features; the"),
        ({"criterion": "eloo(zero_one=true)"}, IncompatibleError, "with weighted or zero_one has no gradient"),
        ({"criterion": "evidense"}, LookupError, "evidence"),
        ({"rows": 5}, OptionError, "rows must be a whole number of at least 10, not 5"),
        ({"polish": 0.5}, OptionError, "polish must be a whole number of at least 0"),
        ({"evaluations": 0}, OptionError, "evaluations must be a whole number of at least 1"),
        ({"folds": [0, 1]}, OptionError, "folds must be a number of folds, 'loo' or 'logo' here"),
        ({"folds": "time:3"}, OptionError, "relevances are learnt with fits on all rows but a fold"),
        ({"kernel": ARD((0.0, 0.0, 0.0))}, OptionError, "theta is 0 for all features"),
        ({"kernel": ARD((1.0,))}, OptionError, "theta has 1 relevances, and the rows have 3 features"),
    ],
    ids=str,
)
def test_errors_say_what_is_wrong(options, error, message):
    X, y = waves(40, 3)
    with pytest.raises(error) as caught:
        learn_relevances(X, y, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_criteria_with_a_gradient_are_named():
    with pytest.raises(IncompatibleError, match=r"these have: br, cv, eloo, evidence, loo, newton-cv, flkl$"):
        learn_relevances(*waves(40, 3), criterion="bif")


def test_a_measure_of_a_plugin_has_no_gradient():
    class Costly(CV):
        def measure(self, Y, F):
            return np.abs(Y - F).mean(axis=0)

    with pytest.raises(IncompatibleError, match="has no gradient"):
        learn_relevances(*waves(40, 3), criterion=Costly())


def test_a_descent_turns_back_where_the_criterion_has_no_value():
    def valley(theta, lam):
        if theta[0] > 1.0:
            raise np.linalg.LinAlgError("beyond")
        return kernsel.criteria.Slopes(float((theta[0] - 0.9) ** 2), 2 * (theta - 0.9), 0.0)

    box = Box(0.0, 100.0, (1e-3, 1.0))
    for descend in (descent.on_scale, descent.on_log_scale):
        assert descend(valley, DescentPoint(np.array([0.01]), 0.1), box).theta[0] == pytest.approx(0.9, abs=1e-3)
        with pytest.raises(kernsel.errors.SelectionError, match="can't be learnt from where they begin: beyond"):
            descend(valley, DescentPoint(np.array([2.0]), 0.1), box)


def test_every_criterion_of_the_registry_that_has_a_gradient_is_tested_here():
    having = {name for name in registry.names("criterion") if hasattr(registry.get("criterion", name), "gradient")}
    assert having == {criterion.name for criterion in CRITERIA} | {"newton-cv"}  # which is cv here
