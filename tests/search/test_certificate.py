"""Certificates: what is proved of the lowest exact score, against exhaustive exact cross-validation."""

from collections import Counter
from dataclasses import replace

import joblib
import numpy as np
import pytest

import kernsel
import tables
from kernsel.criteria import NewtonCV
from kernsel.errors import OptionError
from kernsel.learners import losses
from kernsel.learners.base import Learner
from kernsel.parts import read_learner
from kernsel.paths.smooth_intervals import EnclosedSmoothPath
from kernsel.search import certificate
from kernsel.search.certificate import FAR, Certificate, Proof
from kernsel.search.deadline import NEVER, Deadline
from kernsel.selection.carry_out import select_dataset
from kernsel.selection.plan import Plan
from kernsel.selection.setting import resolve

GRID = {"tau": [0.1, 0.5, 2.0, 8.0], "lambda": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]}
FIXED = {"kernel": "gaussian", "grid": GRID, "folds": 5, "extend": False}
CLASSES, REGRESSIONS = ("svm", "l2svm", "klr"), ("svr", "qsvr")


def data(learner, n=70):
    return tables.waves(n=n) if learner in (*REGRESSIONS, "krr") else tables.circles(n=n)


def dataset(learner, **more):
    return tables.from_arrays(*data(learner), **more)


def walk_of(table, **options):
    """A search that has run on a board that encloses what it scores, and its share."""
    plan = Plan(**FIXED | options | {"certify": True})
    if units := getattr(read_learner(plan.learner, table.task), "in_robust_units", ""):
        table = table.in_robust_units(units)
    setting = resolve(table, plan, [plan.kernel])
    walk = setting.begin(None)
    walk.run()
    return walk, setting


def ends(board, key):
    """The ends of the interval that contains a candidate's exact score."""
    deals = board.enclosed[key].values()
    return [np.mean([getattr(each, name).sum() for each in deals]) for name in ("low", "high")]


CASES = [
    *({"learner": name} for name in (*CLASSES, *REGRESSIONS)),
    *({"learner": f"{name}(bias=false)"} for name in ("svm", "klr", "svr")),
    {"learner": "svm", "rank": 20},
    {"learner": "klr", "rank": 20},
    {"learner": "svr", "repeats": 2},
    {"learner": "svm", "criterion": "bif"},
    {"learner": "svr", "clip": False},
    {"learner": "l2svm", "folds": "blocks:4"},
]


@pytest.mark.parametrize("options", CASES, ids=lambda each: "-".join(map(str, each.values())))
def test_every_interval_contains_the_score_of_exact_refits(options):
    table = dataset(options["learner"].partition("(")[0])
    walk, _ = walk_of(table, **options)
    exhaustive = select_dataset(table, **FIXED | options | {"criterion": "cv"})
    found = {(c.kernel, c.lam): c.score for c in exhaustive.candidates}
    assert walk.board.enclosed
    narrow = 0
    for key in walk.board.enclosed:
        low, high = ends(walk.board, key)
        exact = found[key[0], key[2]]
        assert low <= exact * (1 + 1e-8)
        assert exact <= high * (1 + 1e-8)
        narrow += high - low <= 0.2 * exact
    assert narrow > len(walk.board.enclosed) // 4  # they say something


@pytest.mark.parametrize("weighted", [False, True])
def test_several_classes_and_weights_are_certified(weighted):
    X, y = tables.wine()
    weights = np.random.default_rng(0).exponential(size=len(y)) + 0.1 if weighted else None
    options = {**FIXED, "learner": "svm", "grid": {"tau": [1.0, 10.0], "lambda": [1e-4, 1e-3, 1e-2]}}
    table = tables.from_arrays(X, y, weights=weights)
    selection = select_dataset(table, certify=0.02, **options)
    found, scores = selection.certificate, select_dataset(table, criterion="cv", **options).candidates
    assert found.proved
    assert found.exhaustive == 3 * 5 * 6
    assert selection.minimum.value <= min(c.score for c in scores) * 1.02 * (1 + 1e-8)


@pytest.mark.parametrize("options", CASES[:8], ids=lambda each: "-".join(map(str, each.values())))
def test_the_lowest_verified_score_is_within_the_share_of_the_best_of_all(options):
    table = dataset(options["learner"].partition("(")[0])
    found = select_dataset(table, certify=True, **FIXED, **options)
    exhaustive = select_dataset(table, criterion="cv", **FIXED, **options)
    scores = {(c.kernel, c.lam): c.score for c in exhaustive.candidates}
    certificate, best = found.certificate, min(scores.values())
    assert certificate.proved
    assert certificate.candidates == len(scores)
    assert found.minimum.value <= best * (1 + 0.01) * (1 + 1e-8)
    assert scores[found.best.kernel, found.best.lam] <= best * (1 + certificate.within) * (1 + 1e-8)
    assert certificate.refits < certificate.exhaustive == len(scores) * 5


@pytest.mark.parametrize(
    "options",
    [*({"learner": each} for each in ("svm", "svr", "l2svm", "klr", "qsvr")), {"learner": "klr", "rank": 20}],
    ids=lambda each: "-".join(map(str, each.values())),
)
def test_no_score_between_two_values_of_lambda_is_lower_than_is_said(options):
    table = dataset(options["learner"])
    lams = np.geomspace(1e-4, 1e-1, 7)
    options = FIXED | options
    found = select_dataset(table, certify=True, **options | {"grid": {"tau": [2.0], "lambda": lams.tolist()}})
    between = found.certificate.between
    assert 0 < between < FAR
    place = int(np.searchsorted(lams, found.minimum.lam))
    near = lams[max(place - 1, 0) : place + 2]
    fine = np.geomspace(near[0], near[-1], 60).tolist()
    exact = select_dataset(table, criterion="cv", **options | {"grid": {"tau": [2.0], "lambda": fine}})
    least = min(c.score for c in exact.candidates)
    assert least >= found.minimum.value * (1 - between) * (1 - 1e-8)


@pytest.mark.parametrize("learner", ["klr", "svm"])
def test_more_fits_half_way_leave_less_open_and_are_no_more_than_may_be(learner, monkeypatch):
    walk, _ = walk_of(dataset(learner), learner=learner)
    proof, made = Proof(walk.board, 0.01, NEVER), []
    best = proof.run()
    assert best is not None
    paths = Proof._paths

    def counted(self, kernel, learner, lams):
        made.append(lams.size)
        return paths(self, kernel, learner, lams)

    monkeypatch.setattr(Proof, "_paths", counted)
    monkeypatch.setattr(certificate, "FAR", 0.0)
    monkeypatch.setattr(certificate, "MORE", np.inf)
    found = []
    for more in (0, 8, 40):
        monkeypatch.setattr(certificate, "MOST_MORE", more)
        made.clear()
        found.append(proof.between(best.key, best.value))
        # First the fits that are there in any case; then all of a path, and those of them that are new.
        assert max(made) <= made[0] + more
        assert sum(made[2::2]) == max(made) - made[0]
    assert found[0] >= found[1] >= found[2]
    assert found[0] > found[2]


@pytest.mark.parametrize("learner", ["krr", "lssvm", "qsvr(epsilon=0)"])
def test_the_square_loss_is_proved_without_a_refit(learner):
    table = tables.from_arrays(*data("krr" if learner != "lssvm" else "lssvm"))
    found = select_dataset(table, learner=learner, certify=True, **FIXED)
    assert found.certificate.to_dict() | {"choice_within": None} == {
        "share": 0.01, "proved": True, "lowest_within": found.certificate.lowest, "choice_within": None,
        "candidates": 24, "unseen": 0, "open": 0, "refits": 0, "exhaustive": 0, "closed_form": True, "between": None,
    }  # fmt: skip
    assert found.certificate.lowest < 1e-10
    assert "closed form" in found.summary()


def test_without_time_it_says_how_far_the_proof_got():
    walk, _ = walk_of(dataset("svm"), learner="svm")
    key = min(walk.board.enclosed, key=lambda key: ends(walk.board, key)[1])
    proof = Proof(walk.board, 0.01, Deadline.within(0.0))
    before = sum(int(each[0].refits.sum()) for each in walk.board.enclosed.values())
    assert proof.run().key == key
    certificate = proof.certificate(key, 0)
    assert not certificate.proved
    assert certificate.lowest > 0.01
    assert certificate.between is None
    assert certificate.refits <= before + 5  # those of the choice alone
    assert "so far" in certificate.describe()


@pytest.mark.parametrize(
    ("lowest", "within", "text"),
    [
        (0.005, 0.005, "proved within 1 % of the best of all 121 candidates, at 24 % of exhaustive work"),
        (0.005, 0.03, "the choice, which the rule took in its place, within 3 %"),
        (0.034, 0.034, "proved within 3.4 % of the best of all 121 candidates so far"),
        (np.inf, np.inf, "nothing is proved yet of 121 candidates"),
        (20.0, 20.0, "within 21 times"),
    ],
)
def test_a_certificate_is_said_in_words(lowest, within, text):
    assert text in Certificate(0.01, lowest, within, 121, 0, 0, 290, 1210, False, None).describe()
    assert "nothing is proved" in Certificate(0.01, lowest, within, 121, 0, 0, 290, 1210, False, 1.0).describe()


def test_a_bound_is_rounded_up_and_what_was_not_scored_is_said():
    made = Certificate(0.03, 0.0201, 0.026464, 12, 420, 0, 60, 60, False, None)
    assert "within 2.7 % of the best" not in made.describe()
    assert "proved within 3 % of the best of the 12 candidates that were scored (420 were not)" in made.describe()
    far = Certificate(0.01, 0.026401, 0.03, 12, 0, 0, 60, 60, False, None).describe()
    assert "within 2.7 % of the best of all 12 candidates, at 100 % of exhaustive work" in far


def test_within_processes_of_joblib_a_certificate_is_that_of_this_process():
    table = dataset("svm")
    here = select_dataset(table, learner="svm", certify=0.01, **FIXED)
    with joblib.parallel_config("loky", n_jobs=2):
        assert select_dataset(table, learner="svm", certify=0.01, **FIXED).certificate == here.certificate


def test_a_certificate_changes_no_score_and_is_the_same_again():
    table = dataset("svm")
    plain, one, two = (select_dataset(table, learner="svm", certify=share, **FIXED) for share in (None, 0.01, 0.01))
    assert one.certificate == two.certificate
    assert plain.certificate is None
    assert {c.key: c.score for c in one.candidates} == {c.key: c.score for c in plain.candidates}
    assert plain.to_dict()["certificate"] is None
    assert plain.to_dict()["options"]["certify"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"certify": -0.1}, "between 0 and 1"),
        ({"certify": 2}, "between 0 and 1"),
        ({"certify": "much"}, "share of the lowest score"),
        ({"criterion": "cvks"}, "use newton-cv"),
        ({"criterion": "eloo"}, "use newton-cv"),
        ({"criterion": "cv"}, "leave certify out"),
        ({"search": "halving"}, "use search grid"),
        ({"rank": "whole"}, "in memory: give a lower rank"),
    ],
)
def test_what_cant_be_certified_is_refused_with_what_to_do(options, words):
    learner = "lssvm" if {"criterion", "rank"} & options.keys() and options.get("criterion") != "cv" else "svm"
    options = {"learner": learner} | options
    X, y = tables.circles(n=1050 if "search" in options else 60)
    with pytest.raises(OptionError, match=words):
        kernsel.select(X, y, **FIXED | {"certify": True} | options)


class Shifted(Learner):
    """A loss that isn't least at the target."""

    name, tasks = "shifted", ("regression",)

    @property
    def loss(self):
        return losses.Loss("shifted", _shifted)


@losses.jit.pointer(losses.jit.LOSS)
def _shifted(y, f, parameters):
    return (f - y - 1.0) ** 2, 2.0 * (f - y - 1.0), 2.0


def test_a_loss_of_which_too_little_is_known_is_refused():
    with pytest.raises(OptionError, match="'shifted' isn't known to be so"):
        kernsel.select(*tables.waves(), learner=Shifted(), certify=True, **FIXED)


def test_by_default_all_candidates_are_scored_at_one_rank():
    X, y = tables.circles(n=1050)
    grid = {"tau": [1.0], "lambda": [1e-2, 1e-1]}
    table = tables.from_arrays(X, y)
    found = select_dataset(table, learner="svm", certify=True, **FIXED | {"grid": grid, "folds": 3})
    assert found.to_dict()["options"]["search"] == "grid"
    assert found.certificate.proved


def test_newton_cv_is_the_criterion_that_is_certified_by_default():
    walk, setting = walk_of(dataset("svm"), learner="svm")
    assert isinstance(setting.criterion, NewtonCV)
    assert walk.board.encloses


def test_where_rounding_errors_decide_it_says_so():
    grid = {"tau": [2.0], "lambda": [1e-13, 1e-12, 1e-3, 1e-2]}
    found = select_dataset(dataset("svr"), learner="svr", certify=True, **FIXED | {"grid": grid}).certificate
    assert found.proved
    assert found.open > 0
    assert found.candidates + found.open == 4
    assert f"{found.open} more have a score that rounding errors" in found.describe()


def test_where_a_fold_sees_one_class_it_says_so():
    X, y = tables.circles(n=60)
    y = np.where(np.arange(60) == 0, "third", y)  # a row that one fold alone has
    grid = {"tau": [2.0], "lambda": [1e-3, 1e-2]}
    found = select_dataset(tables.from_arrays(X, y), learner="klr", certify=True, **FIXED | {"grid": grid})
    assert not found.certificate.proved
    assert "nothing is proved" in found.certificate.describe()


def test_refits_are_kept_until_their_intervals_are_sharp(monkeypatch):
    fitted, refitted = Counter(), EnclosedSmoothPath.refitted

    def counted(self, k, folds):
        fitted.update((self.problem.kernel, float(self.lams[k]), fold) for fold in folds)
        return refitted(self, k, folds)

    monkeypatch.setattr(EnclosedSmoothPath, "refitted", counted)
    monkeypatch.setattr(certificate, "NARROW", 0.0)  # no ball is narrow enough
    found = []
    for room, times in ((certificate.MOST_BYTES, 1), (0, 2)):
        monkeypatch.setattr(certificate, "MOST_BYTES", room)
        walk, _ = walk_of(dataset("l2svm"), learner="l2svm")
        proof = Proof(walk.board, 0.01, NEVER)
        best = proof.run()
        found.append(proof.certificate(best.key, 0))
        sharp = sum(each.sharp.sum() for deals in walk.board.enclosed.values() for each in deals.values())
        assert max(fitted.values()) == times
        assert 0 < sharp <= found[-1].refits
        fitted.clear()
    assert replace(found[0], between=None) == replace(found[1], between=None)
    assert found[0].proved
