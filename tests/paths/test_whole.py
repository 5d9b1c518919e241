"""The whole kernel in tiles gives what the whole Gram matrix gives, for every learner of the square loss."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import kernsel
import tables
import tolerances
from commandline import run
from kernsel.errors import IncompatibleError, OptionError
from kernsel.folds.partition import Partition
from kernsel.heldout.intervals import Intervals
from kernsel.kernels import Exponential, Gaussian, parse
from kernsel.learners import Krr, Lssvm
from kernsel.model.expansion import TILED
from kernsel.numerics.whole import costs as whole_costs
from kernsel.numerics.whole.solver import WholeKernel
from kernsel.paths import make_path
from kernsel.paths import whole as whole_paths
from kernsel.paths.whole import WholePath, cross_matrix, kernel_matrix
from kernsel.representation.problem import Problem
from kernsel.representation.ranks import Whole

LAMS = (1e-1, 1e-3)
N = 300


def make_rows(sizes, weighted=False, seed=0, outputs=2):
    """Rows in folds, those at the end in none; two targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 1]])[:outputs] + 0.3 * rng.normal(size=(outputs, N))
    s = rng.exponential(size=N) + 0.05 if weighted else None
    starts = np.r_[0, np.cumsum(sizes)]
    return Partition(X, np.ascontiguousarray(Y), starts, np.arange(N), kernsel.kernels.Statistics(X), seed, s)


def both(rows, learner, kernel=None, lams=LAMS):
    kernel = kernel or Exponential(2.0)
    return [make_path(Problem(rows, kernel, rank), learner, lams) for rank in (Whole(), None)]


def close(found, expected, slack=1.0):
    np.testing.assert_allclose(found, expected, rtol=0, atol=slack * tolerances.FITTED)


def agree(whole, full):
    """Compare fits and held-out outputs."""
    close(whole.exact().f[..., : whole.rows.held], full.exact().f[..., : whole.rows.held])
    close(whole.fits.f, full.fits.f)


FOLDS = {"five": [60] * 5, "unequal": [40, 100, 3, 157], "one": [70], "not all": [50, 80]}


@pytest.mark.parametrize("learner", [Krr(), Lssvm()], ids=["krr", "lssvm"])
@pytest.mark.parametrize("sizes", FOLDS.values(), ids=FOLDS.keys())
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_a_path_of_the_whole_kernel_is_that_of_the_gram_matrix(learner, sizes, weighted):
    rows = make_rows(sizes, weighted)
    whole, full = both(rows, learner)
    assert isinstance(whole, WholePath)
    held, expected = whole.exact(), full.exact()
    assert held.failed == [None, None]
    assert held.exact.all()
    close(held.f[..., : rows.held], expected.f[..., : rows.held])
    close(whole.exact([1]).f[:, 0, : rows.held], expected.f[:, 1, : rows.held])
    close(whole.newton_step().f, held.f)
    close(whole.fits.f, full.fits.f)
    close(whole.norms([0, 1]) / full.norms([0, 1]), 1.0)
    for k in (0, 1):
        close(whole.intercepts(k), full.intercepts(k))
        K = rows_kernel(rows)
        close(whole.coefficients(k) @ K, full.coefficients(k) @ K)
        for one, other in zip(whole.refits(k), full.refits(k), strict=True):
            close(one @ K if one.ndim == 3 else one, other @ K if one.ndim == 3 else other)
    assert whole.representation.rank == N
    assert whole.representation.lost == 0.0
    assert whole.representation.points is rows.X


@pytest.mark.parametrize("sizes", FOLDS.values(), ids=FOLDS.keys())
def test_a_kernel_of_which_few_landmarks_leave_nothing_needs_no_factor(monkeypatch, sizes):
    monkeypatch.setattr(WholeKernel, "factorise", None)
    agree(*both(make_rows(sizes), Lssvm(), Gaussian(50.0)))


@pytest.mark.parametrize("sizes", FOLDS.values(), ids=FOLDS.keys())
def test_beyond_memory_a_low_rank_takes_the_place_of_the_factor(monkeypatch, sizes):
    monkeypatch.setattr(WholeKernel, "factorise", None)
    monkeypatch.setattr(whole_paths, "has_memory", lambda needed: False)
    agree(*both(make_rows(sizes), Krr()))


def rows_kernel(rows):
    return Exponential(2.0)(rows.X)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_single_rows_are_held_out_by_the_diagonal_of_the_inverse(weighted):
    rows = make_rows([60] * 5, weighted, outputs=1)
    whole, full = (path.one_by_one for path in both(rows, Lssvm(), lams=[1e-2]))
    assert whole.route == "blocks"
    if weighted:  # ridges without each row differ by its weight, and the inverse has one for all, their mean
        spread = np.abs(rows.s - rows.s.mean()).max() / rows.total
        assert np.abs(whole.exact().f - full.exact().f).max() < spread
    else:
        close(whole.exact().f, full.exact().f)
        for one, other in zip(whole.refits(0), full.refits(0), strict=True):
            close(one, other, slack=10.0)


def test_intervals_are_made_of_the_fits_without_each_fold():
    rows = make_rows([60] * 5)
    whole, full = (Intervals.of(path, 1) for path in both(rows, Krr()))
    close(whole.residuals, full.residuals)
    K = rows_kernel(rows)[:7]
    close(whole.bounds(K, 0.9), full.bounds(K, 0.9))


def test_every_kernel_of_a_distance_has_compiled_tiles_and_any_other_kernel_is_called():
    X = np.random.default_rng(0).normal(size=(40, 3))
    for text in ("gaussian(tau=2)", "ard(theta=(1,0.5,0), profile=exponential)", "ard-laplacian(theta=(0,1,2))",
                 "matern32(ell=1.5)", "0.5 * gaussian(tau=1) + laplacian(sigma=2)"):  # fmt: skip
        kernel = parse(text)
        np.testing.assert_allclose(kernel_matrix(kernel, X).block((0, 40), (0, 40)), kernel(X), rtol=0, atol=1e-14)


def test_a_model_of_many_rows_predicts_in_tiles_what_it_predicts_in_blocks():
    few = tables.choose(*WAVES, rank="full", kernel="exponential(ell=2)", grid={"lambda": [1e-3]}).model
    Z = tables.waves(50, seed=4)[0]
    more, a = tables.waves(TILED, seed=5)[0], few.coefficients
    rows, none = np.concatenate([few.rows, more]), np.zeros((len(a), TILED))
    model = replace(few, rows=rows, coefficients=np.concatenate([a, none], axis=1))
    expected = few.decision(Z)
    np.testing.assert_allclose(model.decision(Z), expected, rtol=0, atol=tolerances.SUMS)
    assert model.decision(Z[:0]).shape == few.decision(Z[:0]).shape
    sparse = csr_array(Z)
    assert cross_matrix(model.kernel, model.rows, sparse) is None
    assert cross_matrix(parse("laplacian(sigma=1) + linear"), model.rows, Z) is None
    np.testing.assert_allclose(model.decision(sparse), expected, rtol=0, atol=tolerances.SUMS)


def test_a_ridge_that_is_lost_in_rounding_is_refused_with_its_reason():
    rows = make_rows([150, 150])
    path = both(rows, Krr(), Gaussian(1e4), lams=[1e-1, 1e-22])[0]
    failed = path.exact().failed
    assert failed[0] is None
    assert "too small" in failed[1]
    assert np.isfinite(path.norms([0])).all()


WAVES = tables.waves(220, seed=3)
FIXED = {"kernel": "exponential(ell=2)", "grid": {"lambda": [1e-3, 1e-2]}, "folds": 5, "search": "grid"}


@pytest.mark.parametrize("learner", ["krr", "lssvm"])
def test_a_selection_at_rank_whole_is_that_at_full_rank(learner):
    whole, full = (tables.choose(*WAVES, learner=learner, rank=rank, **FIXED) for rank in ("whole", "full"))
    assert set(whole.to_dict()) == set(full.to_dict())
    assert whole.to_dict()["data"].keys() == full.to_dict()["data"].keys()
    assert whole.best.lam == full.best.lam
    assert whole.options["rank"] == "whole"
    assert whole.data["rank"] == 220
    assert whole.data["representation"].startswith("whole kernel in tiles, n = 220")
    close(whole.outputs, full.outputs)
    close(whole.best.error, full.best.error)
    close(whole.best.norm / full.best.norm, 1.0)
    X = tables.waves(30, seed=4)[0]
    close(whole.model.predict(X), full.model.predict(X), slack=10.0)
    close(whole.model.predict_interval(X), full.model.predict_interval(X), slack=10.0)
    json.loads(whole.to_json())


def test_classes_have_probabilities_and_deals_are_averaged():
    X, y = tables.circles(200)
    whole, full = (tables.choose(X, y, learner="lssvm", rank=rank, repeats=2, **FIXED) for rank in ("whole", "full"))
    close(whole.probabilities, full.probabilities, slack=100.0)
    close(whole.best.score, full.best.score)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"learner": "svm"}, "for the square loss"),
        ({"learner": "svr(epsilon=None)"}, "for the square loss"),
        ({"criterion": "bif"}, "no influence function"),
        ({"criterion": "fbif"}, "no influence function"),
        ({"criterion": "gcv"}, "isn't made for rank whole"),
        ({"criterion": "evidence"}, "isn't made for rank whole"),
        ({"criterion": "rks"}, "never holds the Gram matrix"),
        ({"folds": "time:4"}, "leave out other rows"),
    ],
)
def test_what_the_whole_kernel_in_tiles_has_not_is_refused_with_a_way_out(options, text):
    X, y = tables.circles(60) if options.get("learner") == "svm" else tables.waves(60)
    with pytest.raises(IncompatibleError, match=text) as error:
        tables.choose(X, y, rank="whole", **{**FIXED, **options})
    assert "use " in str(error.value) or "give " in str(error.value)


def test_landmarks_of_the_whole_kernel_are_refused():
    with pytest.raises(OptionError, match="needs none"):
        tables.choose(*WAVES, rank="whole", landmarks="kmeans", **FIXED)


def test_memory_is_checked_before_the_work(monkeypatch):
    def huge(*args, **options):
        return whole_costs.Costs((), 10**18)

    monkeypatch.setattr(whole_costs, "costs", huge)
    with pytest.raises(OptionError, match="the whole kernel of 220 rows needs about"):
        tables.choose(*WAVES, rank="whole", **FIXED)


def test_the_command_takes_rank_whole(tmp_path):
    X, y = WAVES
    path = tmp_path / "waves.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")
    done = run("select", path, "--rank", "whole", "--kernel", "exponential(ell=2)", "--grid", "lambda=0.01")
    assert "whole kernel in tiles, n = 220" in done.stdout
