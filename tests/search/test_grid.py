"""The grid: its values, its errors, its extension, and the order of candidates."""

import math

import numpy as np
import pytest

import tables
from kernsel.criteria import CV
from kernsel.errors import OptionError
from kernsel.kernels import Gaussian, Laplacian, Linear, Polynomial, parse
from kernsel.learners import Klr, Krr, Qsvr, Svm, Svr
from kernsel.search.axes import LARGEST, LEAST, PAPER_LAM, PAPER_TAU, Axes, make_grids
from kernsel.search.candidate import Candidate

KRR = Krr()


def grid_of(kernel, grid="auto", rows=None, learner=KRR):
    return make_grids([kernel], grid, rows if rows is not None else tables.make_rows(), learner)[0]


def test_the_grid_of_the_paper():
    axes = grid_of(Gaussian(), "paper")
    assert axes.values["tau"].tolist() == [2.0**k for k in range(-15, 16)]
    assert axes.lams.tolist() == [2.0**k for k in range(-15, 16, 2)]
    assert len(list(axes.kernels())) * axes.lams.size == 31 * 16
    both = grid_of(Gaussian() + Laplacian(), "paper")
    np.testing.assert_array_equal(both.values["1.tau"], PAPER_TAU)
    np.testing.assert_array_equal(both.values["2.sigma"], grid_of(Laplacian()).values["sigma"])
    np.testing.assert_array_equal(both.lams, PAPER_LAM)


def test_the_automatic_lambda_goes_by_rows_and_by_the_size_of_the_kernel():
    rows = tables.make_rows()
    np.testing.assert_allclose(grid_of(Gaussian(), rows=rows).lams * rows.n, 2.0 ** np.arange(-14, 9, 2))
    np.testing.assert_allclose(grid_of(100 * Gaussian(), rows=rows).lams, 100 * grid_of(Gaussian(), rows=rows).lams)
    size = (rows.X**2).sum(axis=1).mean()
    np.testing.assert_allclose(grid_of(Linear(), rows=rows).lams, size * grid_of(Gaussian(), rows=rows).lams)


@pytest.mark.parametrize("learner", ["krr", "svm"])
def test_the_choice_does_not_depend_on_the_unit_of_the_data(learner):
    X, y = tables.circles()
    small, large = (tables.choose(c * X, y, learner=learner, folds=5) for c in (1.0, 10.0))
    assert large.best.kernel.tau == pytest.approx(100 * small.best.kernel.tau, rel=1e-12)
    assert large.best.lam == small.best.lam
    assert large.best.verified == pytest.approx(small.best.verified, rel=1e-8)
    assert large.heldout.tolist() == small.heldout.tolist()


def test_a_grid_by_name():
    axes = grid_of(Gaussian(), {"tau": [4, 1, 1], "lambda": 0.5})
    assert axes.values["tau"].tolist() == [1.0, 4.0]
    assert axes.lams.tolist() == [0.5]
    partial = grid_of(Gaussian(), {"tau": (1.0,)})
    np.testing.assert_array_equal(partial.lams, grid_of(Gaussian()).lams)
    fixed = grid_of(Gaussian(2.0), {"lambda": np.array([0.1, 1.0])})
    assert list(fixed.kernels()) == [Gaussian(2.0)]


def test_a_name_is_for_every_kernel_that_has_it():
    kernels = [Gaussian(), Laplacian(), Linear(), Gaussian() * Polynomial(degree=2)]
    grid = {"tau": [1.0], "sigma": [2.0], "2.gamma": [0.5], "lambda": [0.1]}
    one, two, three, four = make_grids(kernels, grid, tables.make_rows(), KRR)
    assert list(one.kernels()) == [Gaussian(1.0)]
    assert list(two.kernels()) == [Laplacian(2.0)]
    assert list(three.kernels()) == [Linear()]
    assert four.values["1.tau"].size == 12
    assert four.values["2.gamma"].tolist() == [0.5]
    assert all(axes.lams.tolist() == [0.1] for axes in (one, two, three, four))


def test_a_coarse_grid_has_the_range_of_the_automatic_one():
    kernels, learner = [Gaussian() + Polynomial()], Svm(h=None, bias=False)
    (auto,), (coarse,) = (make_grids(kernels, grid, tables.make_rows(), learner) for grid in ("auto", "coarse"))
    assert {name: axis.size for name, axis in coarse.values.items()} == {"1.tau": 4, "2.degree": 3, "2.gamma": 3}
    assert (coarse.lams.size, coarse.tuning["h"].size) == (4, 3)
    pairs = [(auto.values["1.tau"], coarse.values["1.tau"]), (auto.lams, coarse.lams)]
    for whole, few in [*pairs, (auto.tuning["h"], coarse.tuning["h"])]:
        np.testing.assert_array_equal(few[[0, -1]], whole[[0, -1]])
        np.testing.assert_allclose(few[1:] / few[:-1], few[1] / few[0], rtol=1e-12)
    assert coarse.values["2.degree"].tolist() == [2, 3, 4]  # whole numbers have nothing between


def test_values_that_are_given_are_not_made_fewer():
    grid = {"tau": np.arange(1.0, 9.0), "rest": "coarse"}
    axes = grid_of(Gaussian(), grid)
    assert (axes.values["tau"].size, axes.lams.size) == (8, 4)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("fine", "grid 'fine' is unknown: use auto, coarse, paper, sobol:N, random:N, or a dictionary of values"),
        (None, "grid None is unknown"),
        ([1.0, 2.0], "grid .* is unknown"),
        ({"ell": [1.0]}, r"kernel 'gaussian\(\)' has no free parameter 'ell'; free here: tau, lambda"),
        ({"tau": []}, "the values of 'tau' must be finite numbers, at least one"),
        ({"tau": [1.0, math.nan]}, "the values of 'tau' must be finite numbers"),
        ({"tau": ["wide"]}, "the values of 'tau' must be numbers, not"),
        ({"tau": [-1.0]}, "tau"),
        ({"lambda": [0.0, 1.0]}, "lambda must be greater than 0, from 1e-300 to 1e\\+300"),
        ({"lambda": [1e-310]}, "lambda must be greater than 0, from 1e-300 to 1e\\+300"),
        ({"lambda": [math.inf]}, "the values of 'lambda' must be finite numbers"),
        ({"lambda": None}, "lambda"),
    ],
)
def test_grids_that_make_no_sense(grid, message):
    X, y = tables.circles(20)
    with pytest.raises(OptionError, match=message):
        tables.choose(X, y, grid=grid, folds=2)


def test_a_fixed_parameter_is_not_in_the_grid():
    with pytest.raises(OptionError, match=r"'gaussian\(tau=2.0\)' has no free parameter 'tau'; free here: lambda"):
        grid_of(Gaussian(2.0), {"tau": [1.0]})


WIDE_LOW = {"tau": [1e-4, 2e-4, 4e-4], "lambda": [1e-3, 1e-2, 1e-1]}


def test_a_winner_on_the_edge_extends_the_grid():
    X, y = tables.waves()
    result = tables.choose(X, y, grid=WIDE_LOW, folds=5)
    taus = {candidate.kernel.tau for candidate in result.candidates}
    assert set(WIDE_LOW["tau"]) < taus
    assert max(taus) > 0.1
    assert 4e-4 * 2**4 in taus  # four steps at the factor of the axis
    said = [text for text in result.warnings if "edge of the grid" in text]
    assert said[0].startswith("the best candidate lay on the edge of the grid: extended tau to 0.0001..")
    assert result.best.score < 0.5


def test_a_value_alone_is_no_edge():
    X, y = tables.waves()
    result = tables.choose(X, y, grid={"tau": [1.0], "lambda": [0.001]}, folds=5)
    assert len(result.candidates) == 1
    assert not [text for text in result.warnings if "edge" in text]


def test_a_grid_that_stays():
    X, y = tables.waves()
    result = tables.choose(X, y, grid=WIDE_LOW, folds=5, extend=False, choose="minimum")
    assert len(result.candidates) == 9
    assert result.warnings[0].startswith("the choice lies on the edge of the grid (tau = 0.0004")
    assert result.warnings[0].endswith("the grid was not extended")


def test_a_winner_inside_says_nothing():
    X, y = tables.waves()
    result = tables.choose(X, y, grid={"tau": [1e-3, 2.0, 2e3], "lambda": [1e-7, 3e-3, 1e2]}, folds=5)
    assert (result.best.kernel.tau, result.best.lam) == (2.0, 3e-3)
    assert result.warnings == []


def test_an_endless_slope_ends():
    X, y = tables.waves()
    result = tables.choose(X, y, grid={"tau": [1e-30, 2e-30], "lambda": [1e-3, 1e-2]}, folds=5)
    assert any("after 4 extensions: give a wider grid" in text for text in result.warnings)


def extended(values, lams, tau, lam):
    axes = Axes(Gaussian(), {"tau": np.array(values)}, np.array(lams), KRR)
    longer = axes.extended(Candidate(Gaussian(tau), lam, learner=Krr()))
    return None if longer is None else (longer[0].values["tau"].tolist(), longer[0].lams.tolist(), longer[1])


def test_the_rules_of_extension():
    assert extended([1.0, 2.0, 4.0], [1.0, 2.0, 4.0], 2.0, 2.0) is None
    assert extended([1.0, 2.0, 4.0], [1.0, 2.0, 4.0], 1.0, 2.0) == (
        [0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0],
        [1.0, 2.0, 4.0],
        {"tau": "0.0625..4"},
    )
    tau, lams, done = extended([1.0, 2.0], [1.0, 4.0], 2.0, 4.0)
    assert tau == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert lams == [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0]
    assert done == {"tau": "1..32", "lambda": "1..1.02e+03"}
    assert extended([1.0], [1.0], 1.0, 1.0) is None  # a single value was meant
    _, lams, _ = extended([1.0], [LEAST * 2, LEAST * 4], 1.0, LEAST * 2)
    assert lams[0] == pytest.approx(LEAST)
    assert extended([1.0], [LEAST, LARGEST], 1.0, LARGEST) is None


def test_a_degree_is_not_extended():
    axes = grid_of(Polynomial(), {"degree": [2, 3], "gamma": [0.5, 1.0], "lambda": [0.1]})
    longer, done = axes.extended(Candidate(Polynomial(degree=3, gamma=1.0), 0.1, learner=Krr()))
    assert longer.values["degree"].tolist() == [2, 3]
    assert done == {"gamma": "0.5..16"}


def candidate(tau=1.0, lam=1.0, learner=KRR, **values):
    return Candidate(Gaussian(tau), lam, learner=learner, **{"score": 0.5, "loss": 0.5, **values})


def test_ties():
    order = [
        candidate(score=0.1, loss=9.0),
        candidate(loss=0.4, tau=0.1, lam=1e-3),
        candidate(lam=2.0, tau=0.1),
        candidate(lam=1.0, tau=2.0),
        candidate(lam=1.0, tau=1.0),
        candidate(score=math.inf, loss=math.inf, failed="it broke", lam=5.0),
    ]
    for shuffled in (order[::-1], order[3:] + order[:3]):
        assert sorted(shuffled, key=lambda each: each.order) == order


def test_rounding_does_not_break_a_tie():
    low, high = candidate(score=0.5 - 1e-14, lam=1.0), candidate(score=0.5, lam=2.0)
    assert min([low, high], key=lambda each: each.order) is high
    assert min([candidate(score=0.5 - 1e-5), high], key=lambda each: each.order) is not high


def test_what_is_verified_goes_by_that():
    assert candidate(score=0.1, verified=0.9).order > candidate(score=0.5, verified=0.6).order
    assert candidate(score=0.1, verified=math.inf).order > candidate(score=0.5).order


def test_equal_scores_of_a_whole_selection():
    """Kernels that are the identity on the rows, whatever their width: the larger lambda, then the wider kernel."""
    X, y = tables.waves()
    result = tables.choose(X, y, grid={"tau": [1e-30, 1e-29], "lambda": [0.1, 1.0]}, folds=5, extend=False)
    assert (result.best.kernel.tau, result.best.lam) == (1e-29, 1.0)
    scores = [each.score for each in result.candidates]
    assert scores == pytest.approx([scores[0]] * 4, rel=1e-12)


class Damaging(CV):
    """Wishes the largest lambda to fail, and every other one to be poor."""

    name = "damaging"

    def heldout(self, path):
        held = path.exact()
        held.f[:, 0] = -np.inf
        return held


def test_the_failed_come_last_with_their_reason():
    X, y = tables.waves()
    result = tables.choose(X, y, criterion=Damaging(), grid=tables.SMALL, folds=5, extend=False)
    failed = [each for each in result.candidates if each.failed is not None]
    assert [each.lam for each in failed] == [0.1] * 3
    assert result.candidates[-3:] == failed
    assert {each.failed for each in failed} == {"the score is not finite"}
    assert all(each.score == math.inf and each.error is None for each in failed)
    assert "3 of 9 candidates failed (the score is not finite)" in result.warnings


def test_several_kernels():
    X, y = tables.circles()
    result = tables.choose(X, y, kernel=["linear", Gaussian(), "laplacian(sigma=1.0)"], folds=5)
    kinds = {each.kernel.name for each in result.candidates}
    assert kinds == {"linear", "gaussian", "laplacian"}
    assert result.best.kernel.name != "linear"  # the classes are a circle and its outside
    linear = min(each.error for each in result.candidates if each.kernel.name == "linear")
    assert result.best.error < linear - 0.1


@pytest.mark.parametrize("text", ["gaussian + 0.5*linear", "gaussian*polynomial(degree=2, gamma=0.5)"])
@pytest.mark.parametrize("learner", ["krr", "svm"])
def test_sums_and_products(text, learner):
    X, y = tables.circles()
    grid = {"1.tau": [0.5, 2.0], "lambda": [1e-3, 1e-2]}
    result = tables.choose(X, y, kernel=text, learner=learner, grid=grid, folds=5, extend=False)
    assert len(result.candidates) == 4
    expected = [parse(text).with_parameters(**{"1.tau": tau}) for tau in grid["1.tau"]]
    assert {each.kernel for each in result.candidates} == set(expected)
    assert set(result.table.columns) >= {"1.tau", "lambda"}
    margin = result.model.decision(X)
    np.testing.assert_array_equal(np.where(margin >= 0, "out", "in"), result.model.predict(X))


def test_progress_counts_to_the_end():
    X, y = tables.circles(30)
    calls = []
    tables.choose(X, y, grid=tables.SMALL, folds=3, extend=False, progress=lambda *call: calls.append(call))
    assert [done for done, _, _ in calls] == [3, 6, 9]
    assert {total for _, total, _ in calls} == {9}
    assert {text for _, _, text in calls} == {f"gaussian(tau={tau:g})" for tau in tables.SMALL["tau"]}


def test_a_candidate_is_scored_once():
    """Extensions and repeated kernels don't score again what is there."""
    X, y = tables.waves()
    scored = []

    class Counting(CV):
        name = "counting"

        def heldout(self, path):
            scored.extend((path.problem.kernel, lam) for lam in path.lams)
            return super().heldout(path)

    result = tables.choose(X, y, learner=Krr(), criterion=Counting(), kernel=["gaussian"] * 2, grid=WIDE_LOW, folds=5)
    assert len(scored) == len(set(scored)) == len(result.candidates)


def test_parameters_of_the_learner_are_searched():
    """Named in the grid, or without a value."""
    rows = tables.make_rows(real=True)
    named = grid_of(Gaussian(1.0), {"epsilon": [0.2, 0.1]}, rows, Svr())
    assert [each.epsilon for each in named.learners()] == [0.1, 0.2]
    assert all(each.comparable and each.h == 0.05 for each in named.learners())
    free = grid_of(Gaussian(1.0), "auto", rows, Qsvr(epsilon=None))
    np.testing.assert_allclose(
        [each.epsilon for each in free.learners()], tables.robust_spread(rows.Y) * np.r_[0, 2.0 ** np.arange(-5, 1)]
    )
    both = grid_of(Gaussian(1.0), {"h": [0.01, 0.1], "rest": "paper"}, rows, Svr(epsilon=None))
    assert len(list(both.learners())) == 14
    np.testing.assert_array_equal(both.lams, PAPER_LAM)
    assert list(grid_of(Gaussian(1.0), "auto", rows, Svr()).learners()) == [Svr()]


def test_a_learner_at_the_edge_extends_the_grid():
    axes = grid_of(Gaussian(1.0), {"h": [0.1, 0.2], "lambda": [0.1]}, learner=Svm(bias=False))
    best = Candidate(Gaussian(1.0), 0.1, learner=Svm(h=0.2, comparable=True, bias=False))
    assert best in axes
    assert Candidate(Gaussian(1.0), 0.1, learner=Svm(h=0.3, comparable=True, bias=False)) not in axes
    longer, done = axes.extended(best)
    assert longer.tuning["h"].tolist() == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    assert done == {"h": "0.1..3.2"}
    assert {each.h for each in longer.learners(near=best)} == set(longer.tuning["h"])
    assert axes.extended(Candidate(Gaussian(1.0), 0.1, learner=Svm(h=0.15, comparable=True, bias=False))) is None


def test_zero_is_no_edge():
    axes = grid_of(Gaussian(1.0), {"epsilon": [0.0, 0.1, 0.2], "lambda": [0.1]}, learner=Svr())
    at = {e: Candidate(Gaussian(1.0), 0.1, learner=Svr(epsilon=e, comparable=True)) for e in (0.0, 0.1, 0.2)}
    assert axes.extended(at[0.0]) is None
    assert axes.extended(at[0.2])[0].tuning["epsilon"].tolist() == [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    X, y = tables.waves()
    grid = {"tau": [1.0], "lambda": [1e-6, 1e-3, 1.0], "epsilon": [0.0, 5.0, 10.0]}
    result = tables.choose(X, y, learner="qsvr", grid=grid, folds=5)
    assert result.best.learner.epsilon == 0.0
    assert result.warnings == []


def test_ties_go_to_the_wider_tube_at_last():
    narrow, wide = (candidate(learner=Svr(epsilon=epsilon)) for epsilon in (0.1, 0.2))
    assert min([narrow, wide], key=lambda each: each.order) is wide
    assert min([candidate(learner=Svr(epsilon=0.1), tau=2.0), wide], key=lambda each: each.order).kernel.tau == 2.0


@pytest.mark.parametrize(
    ("learner", "grid", "data", "best"),
    [
        ("svr(bias=false)", {"epsilon": [0.05, 0.2, 0.8]}, tables.waves, "absolute error"),
        ("qsvr(bias=false, epsilon=None)", {}, tables.waves, "squared error"),
        ("svm(h=None)", {}, tables.circles, "hinge loss"),
        ("svm", {"h": [0.05, 0.5]}, tables.circles, "hinge loss"),
    ],
)
def test_a_search_over_the_learner(learner, grid, data, best):
    X, y = data()
    options = {"grid": tables.SMALL | grid, "folds": 5, "extend": False, "verify": 4, "clip": False}
    result = tables.choose(X, y, learner=learner, **options)
    learners = {each.learner for each in result.candidates}
    assert len(result.candidates) == 9 * len(learners)
    assert len(learners) > 1
    assert result.data["measure"] == f"mean held-out {best}"
    name = next(iter(grid or {"epsilon": None, "h": None}.keys() & result.best.learner.parameters))
    assert result.table[f"learner.{name}"].tolist() == [each.learner.parameters[name] for each in result.candidates]
    lines = result.summary().splitlines()
    assert lines[0].startswith(f"selected: {result.learner}({'epsilon' if data is tables.waves else 'h'}=")
    assert f"mean held-out {best};" in result.summary()
    assert "  learners are compared by that and not by their losses, which depend on " in result.summary()
    assert max(map(len, lines)) <= 120
    entry = result.to_dict()["candidates"][3]
    assert entry["learner_parameters"][name] == result.candidates[3].learner.parameters[name]
    # The score of the choice is the measure of what it holds out, whatever its loss.
    regression = data is tables.waves
    targets = (y - np.median(y)) / tables.robust_spread(y[None]) if regression else np.where(y == "out", 1.0, -1.0)
    expected = result.best.learner.measure.value(targets, result.outputs).mean()
    assert result.best.verified == pytest.approx(expected, rel=1e-6)


def test_all_learners_share_one_problem():
    problems = {}

    class Noting(CV):
        name = "noting"

        def heldout(self, path):
            problems.setdefault(path.problem.kernel, set()).add(id(path.problem))
            return super().heldout(path)

    X, y = tables.circles()
    grid = tables.SMALL | {"h": [0.05, 0.5]}
    result = tables.choose(X, y, criterion=Noting(), grid=grid, folds=5, extend=False, verify=0)
    assert len(result.candidates) == 18
    assert all(len(each) == 1 for each in list(problems.values())[1:])


def test_a_search_extends_the_learners():
    X, y = tables.circles()
    grid = {"tau": [1.0], "lambda": [0.01], "h": [1e-5, 2e-5]}
    result = tables.choose(X, y, grid=grid, folds=5)
    assert any("extended h to" in text or "h = " in text for text in result.warnings)
    assert len({each.learner.h for each in result.candidates}) > 2


def test_a_learner_without_parameters_is_not_searched():
    with pytest.raises(OptionError, match=r"no free parameter 'h'; free here: tau, lambda$"):
        grid_of(Gaussian(), {"h": [0.1]}, learner=Klr(bias=False))
