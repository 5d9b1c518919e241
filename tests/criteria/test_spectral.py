"""Spectral criteria: against all perturbed spectra, and as sums of a fit and a penalty."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import problems
import tables
import tolerances
import twins.heldout
import twins.spectral
from kernsel import registry
from kernsel.criteria import EP, ER, SPS, SPSSurrogate
from kernsel.errors import IncompatibleError, OptionError
from kernsel.folds.partition import Partition
from kernsel.kernels import Gaussian, Laplacian, Linear, Statistics
from kernsel.learners import Krr, Lssvm, Svm
from kernsel.paths import make_path
from kernsel.representation import blocks as streaming
from kernsel.representation.problem import Problem

EVERY = (SPS(), SPSSurrogate(), ER(), EP())
LAMS = (0.1, 1e-3)

criteria = pytest.mark.parametrize("criterion", EVERY, ids=lambda criterion: criterion.name)
ranks = pytest.mark.parametrize("rank", [None, 8], ids=["full", "rank 8"])


def path_of(kernel=None, learner=None, rank=None, rows=None):
    rows = tables.make_rows() if rows is None else rows
    return make_path(Problem(rows, kernel or Gaussian(0.7), rank), learner or Krr(), LAMS)


def penalty(criterion, path):
    return float(criterion.penalty(path)[0])


@given(problems.problems(largest=5))
def test_all_perturbed_spectra_add_up_to_the_trace(problem):
    expected = twins.spectral.perturbed_spectra(problem.K)
    assert np.trace(problem.K) == pytest.approx(expected, rel=tolerances.SPECTRA)


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Linear(), Linear() + Gaussian(2.0)], ids=str)
def test_sps_and_its_surrogate_are_what_all_perturbed_spectra_say(kernel):
    path = path_of(kernel)
    K, n = path.problem.gram, path.rows.n
    assert penalty(SPS(eta=3.0), path) == pytest.approx(3 * twins.spectral.perturbed_spectra(K) / n**2)
    surrogate = penalty(SPSSurrogate(eta=3.0), path)
    assert surrogate == pytest.approx(3 * twins.spectral.first_order_changes(K) / n**2)
    assert surrogate >= penalty(SPS(eta=3.0), path)


def test_sps_cannot_tell_gaussian_kernels_apart_and_its_surrogate_can():
    sps, surrogate = (
        [penalty(criterion, path_of(Gaussian(tau))) for tau in (2.0**-15, 0.3, 2.0**15)]
        for criterion in (SPS(), SPSSurrogate())
    )
    assert sps == pytest.approx([1 / 30] * 3)
    assert np.ptp(surrogate) > 0.01


@given(st.integers(1, 40), st.floats(0.01, 100))
def test_the_ratio_of_eigenvalues_is_a_share_of_the_trace(q, tau):
    path = path_of(Gaussian(tau))
    ev = np.linalg.eigvalsh(path.problem.gram)[::-1]
    found = penalty(ER(q=q), path)
    assert found == pytest.approx(ev[q:].sum() / ev.sum(), abs=tolerances.SUMS)
    assert found > 0
    if q >= 30:
        assert found == pytest.approx(30 * tolerances.EPS * ev[0] / 30)


def test_ep_is_the_distance_of_the_two_spectra():
    path = path_of()
    rows = path.rows
    operator = twins.spectral.products_of_geometric(rows.X.var(axis=0), 0.7, 30)[:30]
    expected = np.abs(np.linalg.eigvalsh(path.problem.gram)[::-1] / 30 - operator).sum()
    assert penalty(EP(eta=2.0), path) == pytest.approx(2 * expected)


def test_ep_vanishes_where_the_data_are_what_it_supposes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) * [1.0, 3.0]
    rows = Partition(X, X[:, :1].T.copy(), np.array([0, 100, 200]), np.arange(200), Statistics(X))
    shaped = np.sign(X) * [1.0, 3.0]
    discrete = replace(rows, X=shaped, statistics=Statistics(shaped))
    assert penalty(EP(), path_of(Gaussian(4.0), rows=rows)) < 0.2
    assert penalty(EP(), path_of(Gaussian(4.0), rows=discrete)) > 0.3


@criteria
@ranks
@pytest.mark.parametrize("learner", [Krr(), Lssvm(), Svm(bias=False)], ids=lambda learner: learner.name)
def test_the_score_is_the_training_loss_and_a_penalty(criterion, rank, learner):
    path = path_of(learner=learner, rank=rank)
    scores = criterion.score(path)
    fit = learner.loss.values(path.rows.Y, path.fits.f).mean(axis=(0, 2))
    assert scores.failed == [None, None]
    np.testing.assert_allclose(scores.terms["fit"], fit)
    np.testing.assert_allclose(scores.score, fit + scores.terms["penalty"])
    assert scores.terms["penalty"][0] == scores.terms["penalty"][1] > 0


@pytest.mark.parametrize("criterion", [SPS(), SPSSurrogate(), ER(q=3)], ids=lambda criterion: criterion.name)
def test_a_row_of_weight_two_is_there_twice(criterion):
    rows = tables.make_rows()
    s = 1.0 + (np.arange(30) % 3)
    times = np.repeat(np.arange(30), s.astype(int))
    X = rows.X[times]
    twice = Partition(X, np.ascontiguousarray(rows.Y[:, times]), np.array([0, 30, 60]), np.arange(60), Statistics(X))
    weighted = criterion.score(path_of(rows=replace(rows, weights=s)))
    np.testing.assert_allclose(weighted.score, criterion.score(path_of(rows=twice)).score)


@criteria
def test_low_rank_is_near_where_little_of_the_trace_is_left(criterion):
    full, low = path_of(Gaussian(20.0)), path_of(Gaussian(20.0), rank=25)
    assert penalty(criterion, low) == pytest.approx(penalty(criterion, full), rel=tolerances.LOW_RANK)


@pytest.mark.parametrize("criterion", [SPS(), ER(), EP()], ids=lambda criterion: criterion.name)
def test_features_that_are_never_held_together_have_the_same_spectrum(criterion):
    held = path_of(rank=30)
    path = path_of(rank=tables.in_blocks(30))
    assert isinstance(path.representation, streaming.Blocks)
    assert penalty(criterion, path) == pytest.approx(penalty(criterion, held))
    with pytest.raises(IncompatibleError, match="'sps-surrogate' needs the eigenvectors of all rows"):
        SPSSurrogate().score(path)


def test_ep_needs_a_gaussian_kernel_before_anything_is_computed():
    path = path_of(Laplacian(1.0))
    with pytest.raises(IncompatibleError, match="criterion 'ep' knows the integral operator of the gaussian kernel"):
        EP().score(path)
    assert "fits" not in vars(path)


@criteria
def test_they_can_be_asked_for_by_name_and_selected_with(criterion):
    assert registry.build("criterion", criterion.name) == criterion
    chosen = tables.choose(*tables.circles(), criterion=criterion.name, grid=tables.SMALL)
    assert chosen.criterion == criterion.name
    assert set(chosen.best.terms) == {"fit", "penalty"}


def test_stand_ins_say_that_they_are():
    for criterion in (ER, EP):
        assert criterion.about.reference.startswith("a stand-in")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SPS(eta=-1.0), "criterion 'sps': eta must be a finite number of at least 0, not -1.0"),
        (lambda: EP(eta=np.nan), "criterion 'ep': eta must be a finite number"),
        (lambda: ER(eta=None).penalty(path_of()), "criterion 'er': eta has no value; give a number, or let select"),
        (lambda: ER(q=0), "criterion 'er': q must be a whole number from 1, not 0"),
        (lambda: registry.build("criterion", "er(q=2.5)"), "criterion 'er' can't have q=2.5"),
    ],
)
def test_options_that_make_no_sense(make, message):
    with pytest.raises(OptionError, match=message):
        make()
