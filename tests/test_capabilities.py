"""Nothing is known by its name: exact copies of the built-in parts, as a plugin has them, get all that those get."""

import importlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import kernsel
from kernsel import registry
from kernsel.data import from_arrays
from kernsel.errors import IncompatibleError
from kernsel.learners import Krr, Loss
from kernsel.protocols import require
from kernsel.protocols.kernels import SupportsOperator
from kernsel.selection.limits import is_large
from kernsel.selection.plan import Plan

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

DISTS = Path(__file__).parent / "dists"
BUILT_IN = {kind: [c.name for c in registry.claims(kind) if c.builtin] for kind in ("kernel", "learner", "criterion")}
FEW = {"folds": 4, "extend": False, "grid": "coarse", "search": "grid", "verify": 2}
VALUES = {
    "ard": "(theta=(1, 0.2, 0))",
    "ard-laplacian": "(theta=(1, 0.2, 0))",
    "ard-polynomial": "(theta=(1, 0.2, 0), degree=2)",
    "metric": "(L=(0.5, 0.1, 0.2, 0.4, 0.3, -0.2), rank=2, profile=matern32)",
}
"""What isn't searched."""

LEARNERS = {"gacv": "svm", "span": "l2svm", "xi-alpha": "svm", "radius-margin": "l2svm"}
"""For criteria that are for some losses."""


@pytest.fixture(scope="module", autouse=True)
def copies():
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(DISTS / "copies")
        yield
    sys.modules.pop("acme_copies", None)
    importlib.invalidate_caches()


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=60)


def copy_of(text):
    """Return what asks for the copy of a part instead."""
    return f"acme-{text}"


def document(result):
    """Return a result as JSON without times, with the names of the copies as those of the built-in parts."""
    found = result.to_dict()
    for name in ("timing", "environment"):
        found.pop(name, None)
    return json.loads(json.dumps(found).replace("acme-", ""))


def alike(X, y, copied, **options):
    """Select with built-in parts and with copies; return both models where all that is said is the same."""
    own, theirs = (kernsel.select(X, y, **FEW | options | parts) for parts in (copied, _copies(copied)))
    assert document(own) == document(theirs)
    np.testing.assert_array_equal(own.model.predict(X), theirs.model.predict(X))
    return own.model, theirs.model


def _copies(parts):
    return {name: copy_of(text) for name, text in parts.items()}


def test_there_is_a_copy_of_every_part():
    for kind, names in BUILT_IN.items():
        assert {copy_of(name) for name in names} <= set(registry.names(kind))
        for name in names:
            theirs, own = registry.get(kind, copy_of(name)), registry.get(kind, name)
            assert not issubclass(theirs, own)


# Every part, alone


@pytest.mark.parametrize("name", BUILT_IN["kernel"])
def test_kernels(table, name):
    alike(*table, {"kernel": name + VALUES.get(name, "")}, learner="krr")


@pytest.mark.parametrize("name", BUILT_IN["learner"])
def test_learners(table, name):
    X, y = table
    regression = "regression" in registry.get("learner", name).tasks
    alike(X, y if regression else y > 0, {"learner": name}, kernel="gaussian")


@pytest.mark.parametrize("name", BUILT_IN["criterion"])
def test_criteria(table, name):
    X, y = table
    learner = LEARNERS.get(name, "lssvm")
    alike(X, y > 0, {"criterion": name}, kernel="gaussian", learner=learner)


WAYS = {"low rank": {"rank": 8}, "halving": {"search": "halving"}, "steps": {"refine": "compass", "budget": 10}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BUILT_IN["criterion"])
def test_ways_to_search(table, name, way):
    X, y = table
    parts = {"criterion": name, "kernel": "gaussian", "learner": LEARNERS.get(name, "lssvm")}
    options = FEW | WAYS[way]
    assert outcome(X, y > 0, **options | parts) == outcome(X, y > 0, **options | _copies(parts))


def outcome(X, y, **options):
    """Return the document of a selection, or why it is refused."""
    try:
        return document(kernsel.select(X, y, **options))
    except IncompatibleError as refused:
        return str(refused).replace("acme-", "")


# What only some can do, with copies of all that has a part in it


@pytest.mark.parametrize("criterion", ["loo", "newton-cv", "evidence", "br"])
def test_refinement_by_gradient(table, criterion):
    alike(*table, {"kernel": "gaussian", "learner": "krr", "criterion": criterion}, refine="gradient")


@pytest.mark.parametrize("learner", ["svm", "l2svm"])
@pytest.mark.parametrize("criterion", ["span", "xi-alpha(rho=1)", "radius-margin", "gacv"])
def test_margins(table, learner, criterion):
    X, y = table
    parts = {"learner": f"{learner}(bias=false)", "criterion": criterion, "kernel": "gaussian"}
    if (learner, criterion) == ("l2svm", "gacv"):
        with pytest.raises(IncompatibleError, match="learner 'acme-l2svm' has another"):
            kernsel.select(X, y > 0, **FEW | _copies(parts))
    else:
        alike(X, y > 0, parts)


@pytest.mark.parametrize("learner", ["krr", "svm", "lssvm"])
def test_bounds(learner):
    given = {"beta": 2.0, "kappa": 1.0, "lam": 0.1, "n": 100}
    own, theirs = (kernsel.bounds(each, **given) for each in (learner, copy_of(learner)))
    assert own.gap == theirs.gap
    assert own.cv_variance == theirs.cv_variance


def test_the_operator(table):
    alike(*table, {"kernel": "gaussian", "criterion": "ep"}, learner="krr")
    with pytest.raises(IncompatibleError, match="that of 'acme-laplacian': use a gaussian kernel"):
        kernsel.select(*table, kernel="acme-laplacian", criterion="acme-ep", learner="krr", **FEW)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "polynomial(degree=2)"])
def test_families_with_a_relevance_for_each_feature(table, kernel):
    options = {"family": "products", "method": "infinite", "lam": 0.1}
    own, theirs = (kernsel.learn_mkl(*table, kernel=each, **options) for each in (kernel, copy_of(kernel)))
    np.testing.assert_array_equal(own.weights, theirs.weights)
    assert own.kernel == theirs.kernel  # those with relevances are the built-in ones that they name


@pytest.mark.parametrize("kernel", ["gaussian", "ard", "ard-laplacian"])
@pytest.mark.parametrize("criterion", ["evidence", "loo"])
def test_relevances_by_gradient(table, kernel, criterion):
    own, theirs = (
        kernsel.learn_relevances(*table, kernel=k, criterion=c, learner="krr")
        for k, c in ((kernel, criterion), (copy_of(kernel), copy_of(criterion)))
    )
    np.testing.assert_array_equal(own.relevances, theirs.relevances)
    assert theirs.kernel.name == copy_of(kernel)


def test_relevances_within_a_selection(table):
    alike(*table, {"kernel": "ard", "relevances": "evidence(sigma=1)"}, learner="krr")
    alike(*table, {"relevances": "evidence(sigma=1)"}, learner="krr")


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "linear", "polynomial(degree=2)"])
def test_pipelines_of_scikit_learn(table, kernel):
    X, y = table
    own, theirs = alike(X, y, {"kernel": kernel, "learner": "krr"}, clip=False)
    np.testing.assert_array_equal(theirs.to_sklearn().predict(X), own.to_sklearn().predict(X))


@pytest.mark.parametrize("name", BUILT_IN["kernel"])
def test_graphs_of_onnx(table, name):
    pytest.importorskip("onnx")
    own, theirs = alike(*table, {"kernel": name + VALUES.get(name, "")}, learner="krr")
    assert own.to_onnx().graph == theirs.to_onnx().graph


@pytest.mark.parametrize("name", BUILT_IN["kernel"])
def test_compiled_tiles(table, name):
    X, _ = table
    own, theirs = (registry.build("kernel", f"{each}{VALUES.get(name, '')}") for each in (name, copy_of(name)))
    if own.free:
        values = dict.fromkeys(own.free, 2)
        own, theirs = own.with_parameters(**values), theirs.with_parameters(**values)
    assert (own.compiled(X) is None) == (theirs.compiled(X) is None)
    np.testing.assert_array_equal(own(X), theirs(X))


def test_the_whole_kernel_in_tiles(table):
    parts = {"kernel": "gaussian", "learner": "krr", "criterion": "newton-cv"}
    alike(*table, parts, rank="whole")


def test_the_way_of_many_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2100, 2))
    dataset = from_arrays(X, X[:, 0] + rng.normal(size=2100))

    def goes(**parts):
        return is_large(dataset, Plan(**{"learner": "krr", "kernel": "gaussian", "rank": "whole", **parts}))

    for name, large in {"newton-cv": True, "cv": True, "loo": False, "bif": False}.items():
        assert goes(criterion=name) == goes(criterion=copy_of(name)) == large
    for name, large in {"gaussian": True, "ard": False}.items():
        assert goes(kernel=name) == goes(kernel=copy_of(name)) == large
    assert goes(learner="acme-krr")


def test_words_of_other_libraries(table):
    X, y = table
    alike(X, y > 0, {"kernel": "gaussian", "learner": "svm"}, grid={"gamma": [0.1, 0.5], "C": [1.0, 10.0]})


def test_log_odds(table):
    X, y = table
    alike(X, y > 0, {"learner": "klr"}, kernel="gaussian", calibration="none")


def test_require_refuses_what_lacks_a_capability():
    gaussian, linear = registry.build("kernel", "gaussian"), registry.build("kernel", "linear")
    assert require(gaussian, SupportsOperator, "not raised") is gaussian
    assert require(linear, lambda kernel: kernel.name == "linear", "not raised") is linear
    with pytest.raises(IncompatibleError, match="linear has none"):
        require(linear, SupportsOperator, "linear has none")


@dataclass(frozen=True)
class Least:
    """A learner with what every learner must have, and nothing else."""

    name: ClassVar[str] = "least"
    tasks: ClassVar[tuple[str, ...]] = ("regression",)
    bias: ClassVar[bool] = False
    loss: ClassVar[Loss] = Krr().loss


def test_a_learner_without_terms_of_scikit_learn(table):
    own, bare = (kernsel.select(*table, kernel="matern32(ell=2)", learner=each, **FEW) for each in ("krr", Least()))
    assert own.best.score == bare.best.score
    assert bare.conversions == {}
    assert "scikit-learn's terms" in own.summary()
    assert "scikit-learn" not in bare.summary()


def test_one_candidate_is_counted_as_one(table):
    result = kernsel.select(*table, **FEW | {"grid": {"lambda": [0.1]}, "kernel": "gaussian(tau=1)"})
    assert "\n1 candidate, in " in result.summary()
