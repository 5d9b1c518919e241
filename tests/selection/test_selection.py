"""The whole selection by its Python interface: what it returns, what it warns of, and what it stands."""

import gc
import json
import math
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import kernsel
import tables
import tolerances
import twins.heldout
import twins.losses
from kernsel.criteria import BIF, CV, FBIF, HeldOutCriterion, Scores
from kernsel.data import from_arrays
from kernsel.errors import DataError, IncompatibleError, OptionError, SelectionError, SelectionWarning
from kernsel.kernels import Gaussian, Laplacian
from kernsel.learners import Krr, Svm
from kernsel.paths import HeldOut, Path
from kernsel.representation.blocks import Stream
from kernsel.representation.problem import Problem
from kernsel.selection.carry_out import select_dataset

ENTRY = {
    *(
        "kernel",
        "parameters",
        "lambda",
        "learner",
        "learner_parameters",
        "criterion",
        "score",
        "verified",
        "error",
        "error_se",
    ),
    *("reliability", "scored_by", "refitted", "rank", "failed", "score_se", "metrics", "terms"),
    *("norm", "difference_se", "equivalent"),
}
DOCUMENT = {
    *("format", "version", "best", "candidates", "data", "options", "conversions", "timing", "environment"),
    "warnings",
    "cautions",
    "nested",
    "minimum",
    *("procedure", "equivalent", "compared", "threshold", "certificate"),
}
DATA = {
    *("rows", "features", "task", "target", "labels", "source", "notes", "folds", "representation", "rank"),
    *("measure", "verification", "choice", "tied", "class_weight", "holdout", "repeats", "weight", "errors"),
    *("baseline", "copies", "columns", "fingerprint", "grids", "margins"),
}
OPTIONS = {
    *(
        "learner",
        "kernels",
        "criterion",
        "grid",
        "search",
        "extend",
        "verify",
        "rank",
        "tol",
        "landmarks",
        "seed",
        "folds",
    ),
    *("choose", "within", "clip", "memory", "time"),
    *("metrics", "one_se", "select_by", "calibration", "weights", "groups", "fold_column", "class_weight", "eta"),
    *("refine", "budget", "copies", "near", "asked", "intervals", "threshold_for", "certify"),
}
QUICK = {"grid": tables.SMALL, "folds": 5, "extend": False}
FEW = {"grid": {"tau": [1.0], "lambda": [1e-2, 1e-1]}, "folds": 3, "extend": False}


def strictly(text):
    """Parse JSON as the standard has it: NaN and infinity are no numbers."""

    def refuse(constant):
        raise AssertionError(f"{constant} in JSON")

    return json.loads(text, parse_constant=refuse)


def scores(result):
    return {(each.kernel, each.lam): (each.score, each.verified) for each in result.candidates}


def same(one, other, atol=1e-10):
    """Compare two selections: the same winner, and the same scores for all candidates."""
    assert one.best.kernel == other.best.kernel
    assert one.best.lam == other.best.lam
    first, second = scores(one), scores(other)
    assert list(first) == list(second)
    for pair, values in first.items():
        np.testing.assert_allclose(
            np.array(values, dtype=float), np.array(second[pair], dtype=float), rtol=0, atol=atol
        )


# The document


@pytest.mark.parametrize("criterion", ["cv", "newton-cv", "bif", "bif(order=inf)", "fbif"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_the_document_is_the_contract(criterion, task):
    X, y = tables.circles() if task == "binary" else tables.waves()
    result = tables.choose(X, y, criterion=criterion, **QUICK)
    document = strictly(result.to_json())
    assert set(document) == DOCUMENT
    assert (document["format"], document["version"]) == ("kernsel-selection", 1)
    assert set(document["data"]) == DATA
    assert set(document["options"]) == OPTIONS
    assert set(document["timing"]) == {"search", "verification", "refit", "total"}
    assert set(document["environment"]) == {
        *("kernsel", "python", "numpy", "scipy", "numba", "threads", "platform"),
    }
    assert document["best"] == document["candidates"][0]
    assert len(document["candidates"]) == 9
    for entry in document["candidates"]:
        assert set(entry) == ENTRY
        assert entry["kernel"] == {"kernel": "gaussian", "parameters": entry["parameters"]}
        assert entry["learner"] == ("svm" if task == "binary" else "krr")
        assert entry["criterion"] == criterion.partition("(")[0]
        assert entry["failed"] is None
        assert all(isinstance(entry[key], float) for key in ("lambda", "score", "score_se", "error", "error_se"))
        assert entry["reliability"] is None or 0 <= entry["reliability"] <= 1
    verified = [entry["verified"] is not None for entry in document["candidates"]]
    assert sum(verified) >= 5
    assert verified == sorted(verified, reverse=True)
    assert document["minimum"]["verified"] <= document["best"]["verified"]
    assert set(document["conversions"]) == {"gamma", "C" if task == "binary" else "alpha"}
    assert (document["data"]["rows"], document["data"]["features"], document["data"]["folds"]) == (60, 2, 5)
    assert document["data"]["labels"] == (["in", "out"] if task == "binary" else None)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == document


def test_the_document_of_awkward_values_is_strict_json():
    X, y = tables.waves()
    grid = {"tau": [1e-300, 1.0, 1e300], "lambda": [1e-300, 1e-3, 1e300]}
    result = tables.choose(X, np.float32(y), criterion=BIF(order=math.inf), grid=grid, folds=np.int64(5), extend=False)
    document = strictly(result.to_json())
    assert document["options"]["criterion"]["order"] == "inf"
    assert document["options"]["grid"] == {"tau": [1e-300, 1.0, 1e300], "lambda": [1e-300, 1e-3, 1e300]}
    assert result.best.kernel == Gaussian(1.0)
    assert result.best.lam == 1e-3


def test_the_document_says_where_weights_groups_and_folds_come_from():
    X, y = tables.circles(30)
    series = {name: pd.Series(np.arange(30) % 3 + 1, name=name) for name in ("w", "g", "f")}
    roles = {"weights": series["w"], "groups": series["g"], "class_weight": {"in": 2}}
    keys = ("weights", "groups", "fold_column", "class_weight")

    def written(folds, **roles):
        result = select_dataset(from_arrays(X, y, **roles), folds=folds, grid=FEW["grid"], extend=False)
        return [strictly(result.to_json())["options"][key] for key in keys]

    assert written(series["f"], **roles) == ["w", "g", "f", {"in": 2.0}]
    assert written(series["f"].to_numpy(), weights=np.arange(1.0, 31.0)) == [True, None, None, None]
    assert written(3, class_weight="balanced") == [None, None, None, "balanced"]


def test_a_scalar_in_the_grid_is_written_as_a_list():
    X, y = tables.circles(30)
    result = tables.choose(X, y, grid={"tau": 1.0, "lambda": np.array([0.1])}, folds=3)
    assert strictly(result.to_json())["options"]["grid"] == {"tau": [1.0], "lambda": [0.1]}


# The held-out values


@pytest.mark.parametrize("learner", ["krr", "svm"])
@pytest.mark.parametrize("criterion", ["cv", "fbif"])
def test_heldout_is_in_the_order_of_the_data(learner, criterion):
    X, y = tables.circles(40)
    result = tables.choose(X, y, learner=learner, criterion=criterion, **QUICK)
    assert result.heldout.shape == result.outputs.shape == (40,)
    assert set(result.heldout) == {"in", "out"}
    assert np.mean(result.heldout != y) == pytest.approx(result.best.error)
    np.testing.assert_array_equal(result.heldout, np.where(result.outputs >= 0, "out", "in"))
    Y = np.where(y == "out", 1.0, -1.0)
    loss = (Krr() if learner == "krr" else Svm(bias=False)).loss.value(Y[None], result.outputs[None]).mean()
    assert loss == pytest.approx(result.best.verified, rel=1e-6)


def test_heldout_is_by_fits_that_have_not_seen_the_row():
    """Leave one out, for which the folds are known: every held-out output by a fit of its own."""
    X, y = tables.waves(12)
    result = tables.choose(X, y, folds=12, grid={"tau": [1.0], "lambda": [0.1]})
    K = Gaussian(1.0)(X)
    Y = (y - y.mean()) / y.std()
    expected = twins.heldout.refits_square(K, Y, 0.1, np.arange(13))
    np.testing.assert_allclose(result.outputs, expected, atol=tolerances.exact(K, 0.1))
    np.testing.assert_allclose(result.heldout, expected * y.std() + y.mean(), atol=1e-10)


@pytest.mark.parametrize(
    "labels", [("b", "a"), (0, 1), (-1, 1), (2, 1), (True, False), ("no", "yes"), (0.5, 1.5)], ids=str
)
def test_labels_are_mapped_back(labels):
    X, y = tables.circles(40)
    named = np.array(labels)[(y == "out").astype(int)]
    result = tables.choose(X, named, task="classification", **QUICK)
    assert set(result.heldout.tolist()) == set(labels)
    assert np.mean(result.heldout != named) == pytest.approx(result.best.error)
    assert np.mean(result.model.predict(X) == named) > 0.7
    plain = tables.choose(X, np.where(y == "out", *sorted(labels)[::-1]), task="classification", **QUICK)
    assert plain.best.lam == result.best.lam


@pytest.mark.parametrize("learner", ["krr", "svm"])
def test_wine(learner):
    X, y = tables.wine()
    names = np.array(["red", "rosy", "white"])[y]
    grid = {"tau": [8.0, 32.0], "lambda": [1e-4, 1e-2]}
    result = tables.choose(X, names, learner=learner, grid=grid, extend=False)
    assert result.outputs.shape == (178, 3)
    assert result.data["labels"] == ["red", "rosy", "white"]
    assert result.best.error < 0.05
    assert np.mean(result.heldout != names) == pytest.approx(result.best.error)
    np.testing.assert_array_equal(result.heldout, np.array(result.data["labels"])[result.outputs.argmax(axis=1)])
    assert result.model.decision(X).shape == (178, 3)
    assert np.mean(result.model.predict(X) == names) > 0.98


def test_the_error_of_a_regression_is_in_the_units_of_its_target():
    X, y = tables.waves()
    one, other = (tables.choose(X, values, **QUICK) for values in (y, 1000 * y + 5e4))
    assert other.best.error == pytest.approx(1000 * one.best.error, rel=1e-9)
    assert other.best.error_se == pytest.approx(1000 * one.best.error_se, rel=1e-9)
    assert other.best.score == pytest.approx(one.best.score, rel=1e-9)  # the loss, on the standardised target
    np.testing.assert_allclose(other.heldout, 1000 * one.heldout + 5e4, rtol=1e-9)
    rmse = np.sqrt(np.mean((other.heldout - (1000 * y + 5e4)) ** 2))
    assert other.best.error == pytest.approx(rmse)
    assert rmse < 0.6 * 1000 * y.std()


# The same again


@pytest.mark.parametrize("options", [{"rank": None}, {"rank": 10}, {"criterion": "fbif"}], ids=str)
def test_the_same_seed_gives_the_same_answer(options):
    X, y = tables.circles()
    one, other, third = (tables.choose(X, y, seed=seed, **options, **QUICK) for seed in (1, 1, 2))
    same(one, other, atol=0.0)
    np.testing.assert_array_equal(one.outputs, other.outputs)
    np.testing.assert_array_equal(one.model.coefficients, other.model.coefficients)
    assert scores(third) != scores(one)


SCRIPT = """
    import itertools, json, sys
    import tables

    results = {}
    grid = {**tables.SMALL, "tau": [0.01, *tables.SMALL["tau"]]}
    for learner, criterion, rank in itertools.product(["svm", "krr", "lssvm"], ["newton-cv", "cv", "fbif"], [None, 20]):
        X, y = (tables.waves if learner == "krr" else tables.circles)(200)
        result = tables.choose(X, y, learner=learner, criterion=criterion, rank=rank, grid=grid)
        results[f"{learner} {criterion} {rank}"] = result.to_dict()["candidates"]
    json.dump(results, sys.stdout)
"""


def test_one_and_two_threads_give_the_same():
    found = []
    for threads in ("1", "2"):
        folder = os.path.dirname(os.path.abspath(tables.__file__))
        environment = {**os.environ, "NUMBA_NUM_THREADS": threads, "PYTHONPATH": folder}
        call = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
        done = subprocess.run(call, env=environment, capture_output=True, text=True, check=True, timeout=300)
        found.append(json.loads(done.stdout))
    one, two = found
    for run, candidates in one.items():
        for first, second in zip(candidates, two[run], strict=True):
            assert (first["parameters"], first["lambda"]) == (second["parameters"], second["lambda"]), run
            figures = [
                [np.nan if entry[key] is None else entry[key] for key in ("score", "verified", "error", "error_se")]
                for entry in (first, second)
            ]
            np.testing.assert_allclose(*figures, rtol=0, atol=1e-10, err_msg=run)


def memory_mapped(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


FORMS = {
    "Fortran order": lambda X, folder: np.asfortranarray(X),
    "float32": lambda X, folder: X.astype(np.float32),
    "big endian": lambda X, folder: X.astype(">f8"),
    "strided": lambda X, folder: np.repeat(X, 2, axis=0)[::2],
    "DataFrame": lambda X, folder: pd.DataFrame(X, columns=["left", "right"]),
    "read-only": lambda X, folder: read_only(X),
    "memory-mapped": memory_mapped,
    "lists": lambda X, folder: X.tolist(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("standardize", [False, True], ids=["raw", "standardised"])
@pytest.mark.parametrize("learner", ["svm", "krr", "lssvm"])
@pytest.mark.parametrize("rank", [None, 10])
def test_the_form_of_the_data_does_not_matter(form, standardize, learner, rank, tmp_path):
    X, y = (tables.waves if learner == "krr" else tables.circles)(40)
    X = X.astype(np.float32).astype(np.float64)
    before = X.copy()
    options = {"standardize": standardize, "learner": learner, "rank": rank, **FEW}
    plain = tables.choose(X, y, **options)
    other = tables.choose(FORMS[form](X, tmp_path), y, **options)
    same(plain, other)
    np.testing.assert_allclose(plain.outputs, other.outputs, atol=1e-10)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("form", [list, pd.Series, lambda y: y[:, None], lambda y: y.astype(object)])
def test_the_form_of_the_target_does_not_matter(form):
    X, y = tables.circles(40)
    same(tables.choose(X, y, **FEW), tables.choose(X, form(y), **FEW), atol=0.0)


# Verification


@dataclass(frozen=True)
class Training(HeldOutCriterion):
    """Takes the outputs at rows that the fit has seen for held-out ones: the most over-fitted looks best."""

    name: ClassVar[str] = "training"

    def heldout(self, path):
        return HeldOut.of(path.fits.f.copy(), np.zeros((1, path.lams.size), np.int64), exact=False)


GRID = {"tau": [0.003, 0.3, 3.0], "lambda": [1e-8, 1e-3, 1e-1]}


@pytest.mark.parametrize("learner", ["krr", "svm"])
def test_verification_overturns_a_criterion_that_ranks_wrongly(learner):
    X, y = tables.circles()
    options = {"learner": learner, "grid": GRID, "folds": 5, "extend": False}
    wrong = tables.choose(X, y, criterion=Training(), verify=0, **options)
    assert wrong.best.lam == 1e-8
    assert wrong.best.verified is None
    assert wrong.warnings == [] or all("overturned" not in text for text in wrong.warnings)
    right = tables.choose(X, y, criterion=Training(), verify=9, **options)
    exact = tables.choose(X, y, criterion="cv", **options)
    assert (right.best.kernel, right.best.lam) == (exact.best.kernel, exact.best.lam)
    assert right.best.verified == pytest.approx(exact.best.score, rel=1e-6)
    assert right.best is right.candidates[0]
    values = [each.verified for each in right.candidates]
    assert values == sorted(values)
    (text,) = [text for text in right.warnings if "overturned" in text]
    assert text.startswith("verification overturned the criterion: gaussian(tau=")
    assert "came first by training" in text


def test_the_leaders_alone_are_verified():
    X, y = tables.circles()
    result = tables.choose(X, y, verify=3, grid=GRID, folds=5, extend=False, choose="minimum")
    verified = [each for each in result.candidates if each.verified is not None]
    assert verified == result.candidates[:3]
    assert max(each.score for each in verified) <= min(each.score for each in result.candidates[len(verified) :])
    rest = [each.score for each in result.candidates[len(verified) :]]
    assert rest == sorted(rest)


def test_verification_goes_on_while_it_overturns():
    options = {"criterion": Training(), "grid": GRID, "folds": 5, "extend": False, "choose": "minimum"}
    every = tables.choose(*tables.circles(), verify=len(GRID["tau"]) * len(GRID["lambda"]), **options)
    result = tables.choose(*tables.circles(), verify=3, **options)
    verified = sum(each.verified is not None for each in result.candidates)
    assert verified > 3
    assert verified % 3 == 0 or verified == len(every.candidates)
    by_score = sorted((each for each in every.candidates), key=lambda each: each.score)[:verified]
    assert result.best.verified == pytest.approx(min(each.verified for each in by_score), rel=1e-6)


def test_verify_more_than_there_are():
    X, y = tables.circles(30)
    result = tables.choose(X, y, verify=1000, **QUICK)
    assert all(each.verified is not None for each in result.candidates)


def test_what_is_exact_needs_no_refits(monkeypatch):
    X, y = tables.waves()
    plain = tables.choose(X, y, criterion="newton-cv", **QUICK)
    assert [each.verified for each in plain.candidates[:5]] == [each.score for each in plain.candidates[:5]]
    assert all(each.reliability is None for each in plain.candidates)


@pytest.mark.parametrize("criterion", ["bif", "fbif"])
def test_without_verification_heldout_is_the_criterion_s_own(criterion):
    X, y = tables.circles()
    result = tables.choose(X, y, criterion=criterion, pure=True, verify=0, **QUICK)
    Y = np.where(y == "out", 1.0, -1.0)
    assert result.best.verified is None
    assert Svm(bias=False).loss.value(Y[None], result.outputs[None]).mean() == pytest.approx(
        result.best.score, rel=1e-6
    )
    assert np.mean(result.heldout != y) == pytest.approx(result.best.error)


def test_pure_is_what_misleads_and_verification_helps():
    """mathematics: rho near 1 makes the bare series follow the training fit."""
    X, y = tables.circles(150, flips=0.2)
    options = {"grid": GRID, "folds": 5, "extend": False}
    bare = tables.choose(X, y, criterion="bif", pure=True, verify=0, **options)
    trusted = tables.choose(X, y, criterion="bif", **options)
    exact = tables.choose(X, y, criterion="cv", **options)
    at = {(each.kernel, each.lam): each.score for each in exact.candidates}
    assert at[bare.best.kernel, bare.best.lam] > 1.2 * exact.best.score
    assert at[trusted.best.kernel, trusted.best.lam] == pytest.approx(exact.best.score, rel=0.02)
    assert all(each.scored_by is None for each in bare.candidates)
    assert any(each.scored_by == "newton-cv" for each in trusted.candidates)


@dataclass(frozen=True)
class Bare:
    """A criterion that makes no held-out outputs: the penalty's weight itself, best in the middle."""

    name: ClassVar[str] = "bare"
    seen: list = field(default_factory=list, compare=False)

    def score(self, path):
        return Scores(np.abs(np.log10(path.lams) + 2), [None] * path.lams.size)


@pytest.mark.parametrize("verify", [0, 2])
def test_a_criterion_without_held_out_outputs(verify):
    X, y = tables.circles()
    result = tables.choose(X, y, criterion=Bare(), verify=verify, choose="minimum", **QUICK)
    assert result.best.lam == 1e-2
    assert result.best.kernel.tau == (3.0 if verify == 0 else result.best.kernel.tau)  # ties go to the wider kernel
    assert (result.best.verified is None) == (verify == 0)
    assert result.best.error is not None  # of the choice alone, where nothing is verified
    assert result.heldout.shape == (60,)
    assert strictly(result.to_json())["best"]["reliability"] is None
    assert "bare" in result.summary()


@dataclass(frozen=True)
class Everywhere(HeldOutCriterion):
    """Fails everywhere."""

    name: ClassVar[str] = "everywhere"

    def heldout(self, path):
        return HeldOut(path.exact().f, ["no luck"] * path.lams.size, np.zeros(path.lams.size, bool))


def test_nothing_to_choose_from():
    X, y = tables.circles(30)
    with pytest.raises(SelectionError, match="all 9 candidates failed; the first one: no luck"):
        tables.choose(X, y, criterion=Everywhere(), **QUICK)


def test_a_leader_whose_verification_fails_is_no_winner(monkeypatch):
    X, y = tables.circles(40)
    quick = {**QUICK, "choose": "minimum", "criterion": Training()}
    plain = tables.choose(X, y, verify=2, **quick)
    first = min(plain.candidates, key=lambda candidate: candidate.score)
    exact = kernsel.paths.SmoothPath.exact

    def failing(path, which=None):
        held = exact(path, which)
        if which is None and path.problem.kernel == first.kernel and first.lam in path.lams:
            held.failed[list(path.lams).index(first.lam)] = "no luck"
        return held

    monkeypatch.setattr(kernsel.paths.SmoothPath, "exact", failing)
    for verify in (1, 2):  # the next one moves up
        result = tables.choose(X, y, verify=verify, **quick)
        assert result.best.failed is None
        assert sum(each.verified is not None and each.failed is None for each in result.candidates) >= verify
        assert (result.best.kernel, result.best.lam) != (first.kernel, first.lam)
        assert result.candidates[-1].failed == "not verified: no luck"
        assert any("1 of 9 candidates failed (not verified: no luck)" in text for text in result.warnings)


def test_nothing_is_chosen_if_no_verification_works(monkeypatch):
    def failing(path, which=None):
        return HeldOut(path.fits.f, ["no luck"] * path.lams.size, np.ones(path.lams.size, bool))

    monkeypatch.setattr(kernsel.paths.SmoothPath, "exact", failing)
    X, y = tables.circles(40)
    with pytest.raises(SelectionError, match="all 9 candidates failed; the first one: not verified: no luck"):
        tables.choose(X, y, verify=2, criterion=Training(), **QUICK)


def test_select_issues_the_warnings():
    X, y = tables.circles()
    with pytest.warns(SelectionWarning) as caught:
        result = kernsel.select(X, y, criterion=Training(), verify=9, grid=GRID, folds=5, extend=False)
    assert [str(each.message) for each in caught] == result.warnings
    assert any(text.startswith("verification overturned the criterion") for text in result.warnings)
    assert {each.filename for each in caught} == {__file__}


@pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")
def test_select_is_select_dataset():
    X, y = tables.circles()
    result = kernsel.select(X, y, standardize=False, learner="svm(bias=false)", **QUICK)
    same(result, tables.choose(X, y, **QUICK), atol=0.0)
    standardised = kernsel.select(1e3 * X + 7, y, learner="svm(bias=false)", **QUICK)
    centred = (X - X.mean(axis=0)) / X.std(axis=0)
    same(standardised, tables.choose(centred, y, **QUICK), atol=1e-8)


# Rank


@pytest.mark.parametrize(
    ("rank", "landmarks"), [(None, None), ("full", None), (7, 7), (0.25, 15), (1.0, 60), (1, 1), (500, 60), (0.001, 1)]
)
def test_rank(rank, landmarks):
    X, y = tables.circles()
    result = tables.choose(X, y, rank=rank, **QUICK)
    assert result.options["rank"] == landmarks
    assert result.data["rank"] == (60 if landmarks is None else landmarks)
    assert len(result.model.rows) <= (60 if landmarks is None else landmarks)
    assert result.data["representation"].startswith("full Gram" if landmarks is None else f"rank {landmarks} of n = 60")


@pytest.mark.parametrize(
    ("rank", "message"),
    [
        ("half", "rank must be a number of landmarks, a share of the rows, 'tol:' and the share of the trace"),
        (True, "rank must be a number of landmarks"),
        (math.nan, "rank must be a number of landmarks"),
        (0, "rank must be a whole number from 1, or a share of the rows up to 1.0, not 0"),
        (-3, "rank must be a whole number from 1"),
        (1.5, "rank must be a whole number from 1"),
        (0.0, "rank must be a whole number from 1"),
        ([5], "rank must be a number of landmarks"),
    ],
)
def test_ranks_that_make_no_sense(rank, message):
    X, y = tables.circles(20)
    with pytest.raises(OptionError, match=message):
        tables.choose(X, y, rank=rank, folds=2)


@pytest.mark.parametrize("kernel", ["gaussian", "ard", "auto"])
@pytest.mark.parametrize("seed", [-1, 0.5, "a", None])
def test_seeds_that_make_no_sense(seed, kernel):
    X, y = tables.circles(20)
    with pytest.raises(OptionError, match="seed must be a whole number from 0"):
        tables.choose(X, y, seed=seed, kernel=kernel)


@pytest.mark.parametrize("blocks", [False, True], ids=["held", "in blocks"])
@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("learner", ["krr", "svm"])
def test_a_selection_leaves_nothing_behind(learner, repeats, blocks):
    """What is large refers to the rows; with a way back from them it would stay until Python looks for cycles."""
    X, y = tables.circles()
    rank = tables.in_blocks(8) if blocks else 8

    def alive():
        return sum(isinstance(each, Problem | Stream | Path) for each in gc.get_objects())

    tables.choose(X, y, learner=learner, rank=rank, repeats=repeats, **QUICK)
    gc.collect()
    gc.disable()
    try:
        before = alive()
        tables.choose(X, y, learner=learner, rank=rank, repeats=repeats, **QUICK)
        assert alive() == before
    finally:
        gc.enable()


@dataclass(frozen=True)
class Gaps:
    """A plugin's criterion: whole numbers, and NaN for the largest lambda, which it doesn't call a failure."""

    name: ClassVar[str] = "gaps"
    loss: float = 1.0

    def score(self, path):
        score = np.arange(path.lams.size)
        score = np.where(path.lams == 0.1, np.nan, score) if self.loss == 1.0 else score
        return Scores(score, [None] * path.lams.size, loss=np.full(path.lams.size, self.loss))


@pytest.mark.parametrize("verify", [0, 3])
def test_a_score_that_is_no_number_is_a_failure(verify):
    X, y = tables.circles()
    result = tables.choose(X, y, criterion=Gaps(), verify=verify, **QUICK)
    failed = [each for each in result.candidates if each.lam == 0.1]
    assert failed
    assert {each.failed for each in failed} == {"the score is not finite"}
    assert result.best.failed is None
    assert isinstance(result.best.score, float)


def test_a_loss_that_is_no_number_breaks_no_tie():
    X, y = tables.circles()
    result = tables.choose(X, y, criterion=Gaps(loss=math.nan), verify=0, **QUICK)
    assert (result.best.score, result.best.lam) == (0.0, 0.1)
    assert result.best.kernel.tau == max(tables.SMALL["tau"])


@pytest.mark.parametrize("learner", ["krr", "svm"])
@pytest.mark.parametrize("criterion", ["cv", "newton-cv", "bif"])
def test_low_rank_at_every_row_is_full_rank(learner, criterion):
    X, y = tables.circles()
    full, low = (tables.choose(X, y, learner=learner, criterion=criterion, rank=rank, **QUICK) for rank in (None, 60))
    assert (full.best.kernel, full.best.lam) == (low.best.kernel, low.best.lam)
    first, second = scores(full), scores(low)
    for pair, (score, _) in first.items():
        assert second[pair][0] == pytest.approx(score, rel=1e-6)
    np.testing.assert_allclose(full.outputs, low.outputs, atol=1e-5)
    np.testing.assert_allclose(full.model.decision(X), low.model.decision(X), atol=1e-5)


def test_above_2000_rows_the_rank_is_low():
    X, y = tables.waves(2001)
    result = tables.choose(X, y, grid={"tau": [1.0], "lambda": [1e-3]}, folds=3)
    assert result.options["rank"] == 500
    assert result.data["rank"] <= 500
    assert result.data["representation"].startswith(f"rank {result.data['rank']} of n = 2001")
    assert result.best.error < 0.3


def test_a_gram_matrix_that_does_not_fit_is_refused():
    X, y = np.arange(2_000_000.0)[:, None], np.tile([0.0, 1.0], 1_000_000)
    with pytest.raises(OptionError, match="the whole Gram matrix of 2000000 rows needs about .* GB of memory"):
        tables.choose(X, y, rank="full")


# Data and options that are awkward


@pytest.mark.parametrize("folds", [1, 0, -2, 21])
def test_too_few_rows_or_folds(folds):
    X, y = tables.circles(20)
    with pytest.raises(OptionError, match=f"{folds} folds can't be made of 20 rows: use 2 to 20 folds"):
        tables.choose(X, y, folds=folds)


@pytest.mark.parametrize("learner", ["krr", "svm"])
def test_two_rows(learner):
    result = tables.choose([[0.0], [1.0]], ["a", "b"], learner=learner, folds=2, grid=tables.SMALL, extend=False)
    assert set(result.heldout) <= {"a", "b"}


def test_one_class():
    X, _ = tables.circles(20)
    with pytest.raises(DataError, match="target 'y' has one value only \\('in'\\)"):
        tables.choose(X, ["in"] * 20)


def test_a_constant_target():
    X, _ = tables.circles(20)
    with pytest.raises(DataError, match="target 'y' has one value only"):
        tables.choose(X, np.full(20, 3.5), task="regression")


@pytest.mark.parametrize("learner", ["krr", "svm"])
@pytest.mark.parametrize("rare", [1, 3])
def test_a_class_with_fewer_rows_than_folds(learner, rare):
    X, y = tables.circles(40)
    y = np.where(np.arange(40) < rare, "rare", "common")
    result = tables.choose(X, y, learner=learner, grid=tables.SMALL, extend=False)
    assert result.data["folds"] == 10
    assert result.best.failed is None
    assert result.best.error <= rare / 40 + 1e-12


@pytest.mark.parametrize("learner", ["krr", "svm"])
def test_leave_one_out(learner):
    X, y = tables.circles(25)
    result = tables.choose(X, y, learner=learner, folds=25, grid=tables.SMALL, extend=False)
    assert result.data["folds"] == 25
    assert result.best.failed is None


@pytest.mark.parametrize("learner", ["krr", "svm"])
@pytest.mark.parametrize("rank", [None, 5])
def test_all_points_equal(learner, rank):
    y = np.where(np.arange(30) < 20, "many", "few")
    result = tables.choose(np.ones((30, 2)), y, learner=learner, rank=rank, folds=5)
    assert set(result.heldout) == {"many"}
    assert result.best.error == pytest.approx(1 / 3)
    with pytest.raises(DataError, match="no column is left to learn from"):
        tables.choose(np.ones((30, 2)), y, standardize=True)


@pytest.mark.parametrize("learner", ["krr", "svm"])
@pytest.mark.parametrize("rank", [None, 20])
@pytest.mark.parametrize("criterion", ["cv", "newton-cv", "fbif"])
def test_the_same_rows_with_other_labels(learner, rank, criterion):
    X, y = tables.circles(20)
    X, y = np.repeat(X, 2, axis=0), np.tile(["in", "out"], 20)
    result = tables.choose(X, y, learner=learner, rank=rank, criterion=criterion, **QUICK)
    assert result.best.failed is None
    assert 0.3 <= result.best.error <= 1.0
    assert result.best.verified is not None


@pytest.mark.parametrize("learner", ["krr", "svm(bias=false)"])
@pytest.mark.parametrize("criterion", ["cv", "newton-cv", "bif", "fbif"])
@pytest.mark.parametrize("rank", [None, 10])
def test_lambda_from_next_to_nothing_to_next_to_infinity(learner, criterion, rank):
    X, y = tables.circles(40)
    grid = {"tau": [1.0], "lambda": [1e-300, 1e-12, 1e-2, 1e12, 1e300]}
    result = tables.choose(X, y, learner=learner, criterion=criterion, rank=rank, grid=grid, folds=5)
    assert result.best.lam == 1e-2
    assert all(math.isfinite(each.score) for each in result.candidates if each.failed is None)
    null = {each.lam: each for each in result.candidates if each.lam > 1}
    assert null[1e12].score == pytest.approx(1.0)  # outputs are 0, where both losses are 1
    # At 1e300 the square of a weight is below the smallest number: a fit may fail, but not win.
    assert null[1e300].failed is not None or null[1e300].score == pytest.approx(1.0)
    assert np.isfinite(result.model.decision(X)).all()


@pytest.mark.parametrize("learner", ["krr", "svm(bias=false)"])
@pytest.mark.parametrize("rank", [None, 10])
def test_the_model_is_the_fit_on_all_rows(learner, rank):
    X, y = tables.circles(40)
    result = tables.choose(X, y, learner=learner, rank=rank, **QUICK)
    Y = np.where(y == "out", 1.0, -1.0)
    K = result.best.kernel(X)
    if rank is not None:  # what the landmarks span
        rows = result.model.rows
        C, W = result.best.kernel(X, rows), result.best.kernel(rows)
        K = C @ np.linalg.solve(W + 1e-13 * np.eye(len(W)), C.T)
    Z = twins.heldout.features(K)
    twin = twins.losses.square if learner == "krr" else twins.losses.huber_hinge(0.05)
    expected = Z @ twins.heldout.fit(twin, Z, Y, np.ones(40), result.best.lam)
    if rank is None or learner == "krr":
        np.testing.assert_allclose(result.model.decision(X), expected, atol=1e-6)
    assert result.model.provenance["lambda"] == result.best.lam
    np.testing.assert_array_equal(result.model.predict(X), np.where(result.model.decision(X) >= 0, "out", "in"))


def test_a_model_of_an_svm_keeps_the_rows_with_weight():
    X, y = tables.circles(60, flips=0.0)
    result = tables.choose(X, y, grid={"tau": [1.0], "lambda": [1e-3]}, folds=5)
    assert 0 < len(result.model.rows) < 60
    assert (result.model.coefficients != 0).all()


def test_a_regression_predicts_in_the_units_of_its_target():
    X, y = tables.waves(80, noise=0.01, scale=1000.0)
    result = tables.choose(X, y + 1e4, folds=5)
    assert np.abs(result.model.predict(X) - (y + 1e4)).max() < 500
    assert result.best.error < 300


def test_a_saved_model_predicts_the_same(tmp_path):
    X, y = tables.wine()
    result = tables.choose(X, y, learner="krr", grid={"tau": [16.0], "lambda": [1e-3]}, task="classification")
    result.model.save(tmp_path / "model.npz")
    loaded = kernsel.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.decision(X), result.model.decision(X))


# Parts by name, by text and as objects


@pytest.mark.parametrize("kernel", ["gaussian(tau=2.0)", Gaussian(2.0)])
def test_a_fixed_kernel(kernel):
    X, y = tables.circles(30)
    result = tables.choose(X, y, kernel=kernel, folds=3)
    assert {each.kernel for each in result.candidates} == {Gaussian(2.0)}
    assert result.conversions["gamma"] == 0.25
    assert len({each.lam for each in result.candidates}) == len(result.candidates) >= 12


def test_a_free_kernel():
    X, y = tables.circles(30)
    result = tables.choose(X, y, kernel=Laplacian(), folds=3, extend=False)
    assert len({each.kernel for each in result.candidates}) == 12


@pytest.mark.parametrize(
    ("options", "learner", "criterion"),
    [
        ({"learner": "svm(h=0.5)", "criterion": "bif(order=3)"}, Svm(h=0.5, bias=True), BIF(order=3)),
        (
            {"learner": "svm", "criterion": "fbif(trust=0.1, landmarks=0.5)"},
            Svm(bias=True),
            FBIF(trust=0.1, landmarks=0.5),
        ),
        ({"learner": "krr", "criterion": "bif", "order": 2}, Krr(), BIF(order=2)),
        ({"learner": "krr", "criterion": "bif", "order": math.inf}, Krr(), BIF(order=math.inf)),
        ({"learner": "krr", "criterion": "fbif", "pure": True}, Krr(), FBIF(pure=True)),
        ({"criterion": "cv"}, Svm(bias=False), CV()),
    ],
    ids=str,
)
def test_parts_as_text_are_the_objects(options, learner, criterion):
    X, y = tables.circles(30)
    text = tables.choose(X, y, **options, **QUICK)
    objects = tables.choose(X, y, learner=learner, criterion=criterion, **QUICK)
    same(text, objects, atol=0.0)
    assert text.options["learner"]["name"] == learner.name
    assert text.options["criterion"] == objects.options["criterion"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"learner": "svmm"}, kernsel.errors.KernselError, "svmm.*did you mean 'svm'"),
        ({"learner": "svm(c=1)"}, OptionError, "has no parameter 'c'"),
        ({"learner": "svm(C=1)"}, OptionError, "no parameter 'C': the regularisation is lambda, .* lambda=0.01,0.1"),
        ({"learner": "krr(alpha=1)"}, OptionError, "no parameter 'alpha': the regularisation is lambda"),
        ({"learner": "krr(bias=true)"}, OptionError, "'krr' has no parameter 'bias': lssvm is krr with a bias"),
        ({"learner": "krr(epsilon=0.1)"}, OptionError, "no parameter 'epsilon': .* svr and qsvr have one"),
        ({"learner": "lssvm(bias=false)"}, OptionError, "no parameter 'bias': it always has one; krr is the same"),
        ({"learner": "svm(h=0)"}, OptionError, "h must be a finite number greater than 0"),
        ({"criterion": "fbiff"}, kernsel.errors.KernselError, "fbiff.*did you mean 'fbif'"),
        ({"criterion": "bif(order=0)"}, OptionError, "order must be a whole number"),
        (
            {"criterion": "cv", "order": 2},
            OptionError,
            "criterion 'cv' has no option 'order'; leave it out, or use bif",
        ),
        ({"criterion": "cv", "pure": True}, OptionError, "criterion 'cv' has no option 'pure'"),
        ({"kernel": "gausian"}, kernsel.errors.KernselError, "gausian.*did you mean 'gaussian'"),
        ({"kernel": []}, OptionError, "no kernel is given"),
        ({"verify": -1}, OptionError, "verify is the number of leading candidates to check, at least 0, not -1"),
    ],
    ids=str,
)
def test_options_that_make_no_sense(options, error, message):
    X, y = tables.circles(30)
    with pytest.raises(error, match=message):
        tables.choose(X, y, folds=3, **options)


def test_a_learner_for_another_task():
    X, y = tables.waves(30)
    with pytest.raises(IncompatibleError, match=r"learner 'svm' is for classification, not for a regression;.*\(krr"):
        tables.choose(X, y, learner="svm")
    krr = tables.choose(*tables.circles(30), learner="krr", **QUICK)
    assert krr.learner == "krr"


@dataclass(frozen=True)
class Misled(CV):
    """A criterion that likes lambda = 1 and doesn't know better."""

    name: ClassVar[str] = "misled"

    def score(self, path):
        scores = super().score(path)
        held = replace(scores.heldout, exact=np.zeros(path.lams.size, bool))
        return replace(scores, score=np.abs(np.log(path.lams)), heldout=held)


def test_a_choice_that_verification_finds_on_the_edge_extends_the_grid():
    X, y = tables.waves()
    result = tables.choose(X, y, kernel="gaussian(tau=1)", criterion=Misled(), grid={"lambda": [0.1, 1, 10]}, folds=5)
    assert any("lay on the edge of the grid: extended lambda to" in text for text in result.warnings)
    assert len(result.candidates) > 3
    assert result.best.verified == min(c.verified for c in result.candidates if c.verified is not None)
