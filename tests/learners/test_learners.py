"""Learners: their parameters, what they are for, and the same learners in scikit-learn."""

import dataclasses

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

import tables
from kernsel import registry
from kernsel.errors import IncompatibleError, OptionError
from kernsel.kernels import Gaussian, Linear
from kernsel.learners import Klr, Krr, L2Svm, Lssvm, Qsvr, Svm, Svr
from kernsel.parts import read_learner
from kernsel.paths import make_path
from kernsel.representation.problem import Problem

ALL = [Klr, Krr, L2Svm, Lssvm, Qsvr, Svm, Svr]


@pytest.mark.parametrize("kind", ALL)
def test_learners_are_found_by_their_names(kind):
    assert registry.build("learner", kind.name) == kind()


@pytest.mark.parametrize(
    ("text", "learner"),
    [
        ("svm(bias=true)", Svm(bias=True)),
        ("svm(bias=True, h=0.1)", Svm(bias=True, h=0.1)),
        ("svm(h=none)", Svm(h=None, bias=True)),
        ("l2svm(bias=true)", L2Svm(bias=True)),
        ("klr(bias=false)", Klr(bias=False)),
        ("svr(epsilon=None, h=1)", Svr(epsilon=None, h=1.0)),
        ("svr(epsilon=0, bias=false)", Svr(epsilon=0.0, bias=False)),
        ("qsvr(epsilon=0.5)", Qsvr(epsilon=0.5)),
    ],
)
def test_learners_from_text(text, learner):
    assert registry.build("learner", text) == learner


def test_who_has_a_bias():
    by_default = {kind.name: kind().bias for kind in ALL}
    assert by_default == {"klr": True, "krr": False, "l2svm": True, "lssvm": True} | {
        "qsvr": True,
        "svm": True,
        "svr": True,
    }
    assert all(kind(bias=not kind().bias).bias != kind().bias for kind in (Klr, L2Svm, Qsvr, Svm, Svr))


def test_who_is_for_what():
    tasks = {kind.name: kind.tasks for kind in ALL}
    assert {name for name in tasks if "classification" in tasks[name]} == {"klr", "krr", "l2svm", "lssvm", "svm"}
    assert {name for name in tasks if "regression" in tasks[name]} == {"krr", "lssvm", "qsvr", "svr"}
    with pytest.raises(IncompatibleError, match=r"'klr' is for classification, not for a regression; .*\(krr, lssvm, "):
        read_learner("klr", "regression")


@pytest.mark.parametrize("learner", [Svm, 5, None.__class__, object()])
def test_what_is_no_learner(learner):
    with pytest.raises(OptionError, match="a learner must be a name such as 'svm', or a Learner"):
        read_learner(learner, "classification")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *(
            (lambda h=h: Svm(h=h, bias=False), "learner 'svm': h must be a finite number greater than 0")
            for h in (0, -1, np.inf)
        ),
        (lambda: Svm(h=np.nan, bias=False), "learner 'svm': h must be a finite number greater than 0, not nan"),
        (lambda: Svr(h=0.0), "learner 'svr': h must be a finite number greater than 0, not 0.0"),
        (lambda: Svr(epsilon=-0.1), "learner 'svr': epsilon must be a finite number of at least 0, not -0.1"),
        (lambda: Qsvr(epsilon="wide"), "learner 'qsvr': epsilon must be a finite number of at least 0, not 'wide'"),
        (lambda: Svr(epsilon=None).loss, "learner 'svr': epsilon has no value; give one or search for it"),
        (lambda: Svr().with_parameters(epsilom=1.0), r"no parameter 'epsilom'; did you mean 'epsilon'\?"),
    ],
)
def test_parameters_that_make_no_sense(make, message):
    with pytest.raises(OptionError, match=message):
        make()


def test_parameters_are_as_those_of_kernels():
    assert Svr().parameters == {"epsilon": 0.1, "h": 0.05}
    assert Svr(epsilon=None).parameters == {"h": 0.05}
    assert Svr(epsilon=None).free == ("epsilon",)
    assert Svr(epsilon=None).with_parameters(epsilon=0.3) == Svr(epsilon=0.3)
    assert type(Svm(h=np.float32(0.5)).h) is float
    assert Svm(bias=False).axes(np.ones((1, 3))) == {}


@pytest.mark.parametrize(
    "learner", [Svm(h=None, bias=False), Qsvr(epsilon=None), Svr(epsilon=None), Svr(epsilon=None, h=None)]
)
@pytest.mark.parametrize("Y", [np.arange(12.0).reshape(2, 6), np.zeros((1, 5))], ids=["spread", "constant"])
def test_axes_are_values_for_what_is_free(learner, Y):
    axes = learner.axes(Y)
    assert set(axes) == set(learner.free)
    for name, axis in axes.items():
        assert axis[0] == (0.0 if name == "epsilon" else axis.min())  # 0 is an end, where nothing is beyond
        geometric = axis[axis > 0]
        np.testing.assert_allclose(geometric[1:] / geometric[:-1], geometric[1] / geometric[0])
        assert learner.with_parameters(**dict.fromkeys(learner.free, 0.5) | {name: axis[0]}).free == ()
        scaled = learner.axes(1000 * Y)[name]
        if learner.name != "svm" and Y.any():
            np.testing.assert_allclose(scaled, 1000 * axis)


def test_freeing_parameters_makes_comparable():
    assert Svm(bias=False).freed({"tau": 1}) == Svm(bias=False)
    assert Svm(bias=False).freed({"h": 1, "tau": 1}) == Svm(h=None, comparable=True, bias=False)
    assert Svr(epsilon=None).freed({}) == Svr(epsilon=None, comparable=True)
    assert registry.build("learner", "svm") == Svm(**dataclasses.asdict(Svm()))


LAM = 0.02


def objective(learner, K_or_norm2, Y, f):
    """``(1/n) sum V(y, f) + lam ||f||^2`` from the squared norm of f."""
    return learner.loss.value(Y[None], f[None]).mean() + LAM * K_or_norm2


def data(learner):
    """Rows in five folds, and their targets."""
    return tables.make_rows(n=60, sizes=(12,) * 5, real="regression" in learner.tasks)


SKLEARN = {
    "svm": lambda bias, p, K: SVC(kernel="precomputed", tol=1e-8, **p),
    "svr": lambda bias, p, K: SVR(kernel="precomputed", tol=1e-8, **p),
    "krr": lambda bias, p, K: KernelRidge(kernel="precomputed", **p),
    "l2svm": lambda bias, p, K: LinearSVC(loss="squared_hinge", fit_intercept=bias, tol=1e-10, max_iter=10**6, **p),
    "klr": lambda bias, p, K: LogisticRegression(fit_intercept=bias, tol=1e-10, max_iter=10**5, **p),
    "qsvr": lambda bias, p, K: LinearSVR(
        loss="squared_epsilon_insensitive", fit_intercept=bias, tol=1e-10, max_iter=10**6, **p
    ),
}


def theirs(learner, rows, y, **changed):
    """Outputs and squared norm of scikit-learn's fit with the converted parameters, on the Gram matrix or features."""
    parameters = learner.conversions(rows.n, LAM)
    parameters |= {name: value * parameters[name] for name, value in changed.items()}
    gram = learner.name in ("svm", "svr", "krr")
    X = Gaussian(1.0)(rows.X) if gram else rows.X
    model = SKLEARN[learner.name](learner.bias, parameters, None).fit(X, y)
    f = (model.predict if "regression" in learner.tasks else model.decision_function)(X)
    if not gram:
        return f, float((model.coef_**2).sum())
    a = np.zeros(rows.n)
    if learner.name == "krr":
        a = model.dual_coef_
    else:
        a[model.support_] = model.dual_coef_[0]
    return f, float(a @ X @ a)


PAIRS = [
    *(Svm(h=1e-7, bias=True), Svr(h=1e-7), Svr(epsilon=0.5, h=1e-7), Krr()),
    *(L2Svm(bias=False), Klr(bias=False), Klr(bias=True), Qsvr(bias=False), Qsvr(epsilon=0.5, bias=False)),
]


@pytest.mark.parametrize("learner", PAIRS, ids=str)
def test_scikit_learn_with_the_converted_parameters_minimises_the_objective(learner):
    """Any other regularisation there has a larger value of our objective."""
    rows = data(learner)
    y = rows.Y[0]
    f, norm2 = theirs(learner, rows, y)
    best = objective(learner, norm2, y, f)
    for name in set(learner.conversions(rows.n, LAM)) - {"epsilon"}:
        for factor in (0.5, 2.0):
            other, its_norm2 = theirs(learner, rows, y, **{name: factor})
            assert objective(learner, its_norm2, y, other) > best * (1 + 1e-5)


@pytest.mark.parametrize("learner", PAIRS, ids=str)
def test_fits_are_those_of_scikit_learn(learner):
    rows = data(learner)
    y = rows.Y[0]
    near = dataclasses.replace(learner, h=1e-4) if learner.name in ("svm", "svr") else learner
    kernel = Gaussian(1.0) if learner.name in ("svm", "svr", "krr") else Linear()
    f, _ = theirs(learner, rows, y)
    mine = make_path(Problem(rows, kernel), near, [LAM]).fits.f[0, 0]
    # The Huberised loss moves the objective by h / 4 at most, so that lam ||f - f'||^2 is no more than that.
    np.testing.assert_allclose(mine, f, atol=1e-4 if near is learner else np.sqrt(near.h / (4 * LAM)))


def test_the_counterparts_of_scikit_learn_are_named():
    assert {kind.name: kind().counterpart for kind in ALL} == {
        "klr": "LogisticRegression",
        "krr": "KernelRidge",
        "l2svm": "LinearSVC penalises the bias",
        "lssvm": "KernelRidge has no bias",
        "qsvr": "LinearSVR penalises the bias",
        "svm": "SVC",
        "svr": "SVR",
    }
    assert Svm(bias=True).counterpart == "SVC"
    assert Svr(bias=False).counterpart == "SVR adds a bias"


def test_conversions():
    assert Krr().conversions(50, 0.01) == Lssvm().conversions(50, 0.01) == {"alpha": 0.5}
    assert (
        Svm(bias=False).conversions(50, 0.01)
        == L2Svm(bias=False).conversions(50, 0.01)
        == Klr(bias=False).conversions(50, 0.01)
        == {"C": 1.0}
    )
    assert Svr(epsilon=0.2).conversions(50, 0.01) == Qsvr(epsilon=0.2).conversions(50, 0.01) == {"C": 1, "epsilon": 0.2}
