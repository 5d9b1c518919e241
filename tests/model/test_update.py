"""New rows in a model: the fit on all of them, by brute force; what is kept in files; what calls for another choice."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

import kernsel
import tables
import tolerances
import twins.heldout
from commandline import run
from kernsel.errors import DataError, ModelError, OptionError, SelectionWarning
from kernsel.model.model import load
from kernsel.numerics.blocks import sums
from kernsel.numerics.blocks.features import Features

N, MORE = 240, 60
OPTIONS = {"kernel": "gaussian", "rank": 25, "folds": 4}
TARGETS = {
    "regression": lambda f: 10.0 + 3.0 * f,
    "several targets": lambda f: np.column_stack([f, 5.0 - 2.0 * f**2]),
    "two classes": lambda f: np.where(f > 0, "up", "down"),
    "three classes": lambda f: np.digitize(f, [-0.5, 0.5]),
}


def table(n=N + MORE, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    return frame, np.sin(2.0 * frame["a"].to_numpy()) + frame["b"].to_numpy() ** 2 / 2 - 0.5 + 0.1 * rng.normal(size=n)


def encoded(model, y):
    """Targets as the model's fit has them, (k, n)."""
    if model.labels is None:
        return (np.atleast_2d(np.asarray(y).T) - model.output_shift[:, None]) / model.output_scale[:, None]
    codes = np.array([model.labels.index(label) for label in np.asarray(y).tolist()])
    return np.where(codes == np.arange(len(model.bias))[:, None] + (len(model.bias) == 1), 1.0, -1.0)


def refit(model, X, y, s, at):
    """Outputs of the fit on some rows at others, by brute force: as a Gram matrix of features of rank r."""
    known = model.sufficient
    Z = model.kernel(model.encoder.transform(pd.concat([X, at])), model.rows) @ known.T
    K, n = Z[: len(X)] @ Z[: len(X)].T, len(X)
    a = twins.heldout.fit_square(K, encoded(model, y), s, known.lam, int(known.bias))
    F = a[:, :n] @ (Z[:n] @ Z[n:].T) + a[:, n:]
    if known.coupling is not None:
        F = known.coupling(F)
    return F, tolerances.weighted(s) * tolerances.exact(K, known.lam)


def select(X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        return kernsel.select(X, y, **(OPTIONS | options)).model


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("learner", ["krr", "lssvm"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("streamed", [False, True], ids=["", "blocks"])
def test_an_update_is_the_fit_on_all_rows(target, learner, weighted, streamed):
    X, f = table()
    y, s = TARGETS[target](f), np.random.default_rng(1).uniform(0.5, 2.0, N + MORE) if weighted else np.ones(N + MORE)
    given = {"weights": s[:N]} if weighted else {}
    given |= {"rank": tables.in_blocks(25)} if streamed else {}
    model = select(X[:N], y[:N], learner=learner, **given)
    assert ("coupling" in model.sufficient.to_arrays()[1]) is False
    assert (model.sufficient.coupling is not None) == (target == "three classes")
    updated = model.update(X[N:], y[N:], s[N:] if weighted else None)
    at, _ = table(50, seed=5)
    expected, atol = refit(model, X, y, s, at)
    np.testing.assert_allclose(np.atleast_2d(updated.decision(at).T), expected, rtol=0, atol=atol + magnified(model))
    assert updated.provenance["rows"] == N + MORE
    assert model.provenance["rows"] == N
    if target == "regression":
        Y = encoded(model, y)
        low, high = model.limits
        wider = [np.minimum(low, Y.min(axis=1)), np.maximum(high, Y.max(axis=1))]
        np.testing.assert_allclose(updated.limits, wider, rtol=0, atol=1e-12)


def magnified(model):
    """Error of outputs from coefficients ``T w``: rounding in the kernel's values, times the size of T."""
    return 100 * tolerances.EPS * np.linalg.norm(model.sufficient.T, 2)


def test_two_updates_are_one_and_so_is_their_order():
    X, f = table()
    model = select(X[:N], f[:N])
    once = model.update(X[N:], f[N:])
    for cuts in ([N, N + 1, N + MORE], [N, N + 40, N + MORE]):
        parts = [(X[lo:hi], f[lo:hi]) for lo, hi in pairwise(cuts)]
        for order in (parts, parts[::-1]):
            step = model
            for more in order:
                step = step.update(*more)
            for one, other in zip(once.sufficient.sums, step.sufficient.sums, strict=True):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)
            assert [each["rows"] for each in step.provenance["updates"]] == [len(more[1]) for more in order]


def test_threads_of_blas_change_no_bit():
    X, f = table(N + 400)
    model, found = select(X[:N], f[:N], rank=150), []
    for count in (1, 2):
        with threadpool_limits(count, user_api="blas"):
            found.append(model.update(X[N:], f[N:]).coefficients)
    np.testing.assert_array_equal(*found)


def test_a_row_of_weight_two_is_a_row_twice():
    X, f = table()
    model = select(X[:N], f[:N], weights=np.ones(N))
    once = model.update(X[N:], f[N:], np.full(MORE, 2.0))
    ones = np.ones(MORE)
    twice = model.update(X[N:], f[N:], ones).update(X[N:], f[N:], ones)
    np.testing.assert_allclose(once.coefficients, twice.coefficients, rtol=1e-6)
    with pytest.raises(OptionError, match="rows have weights: give those of the new ones"):
        model.update(X[N:], f[N:])


def test_classes_keep_their_weights():
    X, f = table()
    y = np.where(f > 0.5, "rare", "frequent")
    model = select(X[:N], y[:N], learner="lssvm", class_weight={"rare": 3.0})
    assert model.sufficient.factors.tolist() == [1.0, 3.0]
    at, _ = table(50, seed=5)
    expected, atol = refit(model, X, y, np.where(y == "rare", 3.0, 1.0), at)
    found = model.update(X[N:], y[N:]).decision(at)
    np.testing.assert_allclose(found, expected[0], rtol=0, atol=3 * atol + magnified(model))


@pytest.mark.parametrize("rows", [3, 700])
def test_sums_of_pieces_are_brute_force(rows):
    """Few rows are finished one by one; of many the sums are, in pieces that threads share."""
    X, _ = table(rows)
    X, points = X.to_numpy(), table(20, seed=3)[0].to_numpy()
    kernel = kernsel.kernels.Gaussian(2.0)
    L = np.linalg.cholesky(kernel(points, points))
    T = np.ascontiguousarray(np.linalg.inv(L).T)
    rng = np.random.default_rng(0)
    Y, s = rng.normal(size=(2, rows)), rng.uniform(0.5, 2.0, rows)
    Z, Y1 = kernel(X, points) @ T, np.vstack([Y, np.ones(rows)])
    for sample in (None, X[:50]):
        found = sums.statistics(Features(kernel, points, T, sample), X, Y, s)
        for one, other in zip(found, ((Z.T * s) @ Z, (Y1 * s) @ Z, (Y1 * s) @ Y1.T), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * rows)
        assert found.total == pytest.approx(s.sum())


@pytest.mark.parametrize("target", TARGETS)
def test_sums_survive_the_file(tmp_path, target):
    X, f = table()
    y = TARGETS[target](f)
    options = {"class_weight": "balanced"} if "classes" in target else {}
    model = select(X[:N], y[:N], **options)
    model.save(tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    (header, arrays), (known, kept) = model.sufficient.to_arrays(), again.sufficient.to_arrays()
    assert header == known
    for name, array in arrays.items():
        np.testing.assert_array_equal(kept[name], array)
    at, _ = table(50, seed=5)
    np.testing.assert_array_equal(again.update(X[N:], y[N:]).decision(at), model.update(X[N:], y[N:]).decision(at))
    r, k = len(model.sufficient.T), len(model.bias)
    assert arrays["sums_packed"].size == r * (r + 1)
    assert arrays["sums_right"].shape == (k + 1, r)


def test_models_without_sums_say_so(tmp_path):
    X, f = table()
    model = select(X[:N], f[:N])
    replace(model, sufficient=None).save(tmp_path / "old.npz")  # a file of before there were sums
    old = load(tmp_path / "old.npz")
    np.testing.assert_array_equal(old.predict(X), model.predict(X))
    whole = select(X[:N], f[:N], rank="full")
    smooth = select(X[:N], np.where(f[:N] > 0, 1, 0), learner="svm")
    for each in (old, whole, smooth):
        assert each.sufficient is None
        with pytest.raises(ModelError, match="keeps no sums over its rows .* select again on old and new rows"):
            each.update(X[N:], f[N:])


@pytest.mark.parametrize("change", ["shape", "kind", "outputs", "lambda"])
def test_sums_of_others_are_no_sums(change):
    X, f = table()
    model = select(X[:N], f[:N])
    header, arrays = model.sufficient.to_arrays()
    contents = dict(arrays)
    if change == "shape":
        contents["sums_packed"] = arrays["sums_packed"][:-1]
    elif change == "kind":
        del contents["sums_right"]
    elif change == "outputs":
        contents["sums_targets"] = np.ones((5, 5))
    else:
        header["lam"] = -1.0
    with pytest.raises(ValueError, match="sums"):
        type(model.sufficient).of_arrays(header, contents)


def test_rows_of_one_kind_are_no_reason_for_another_choice():
    X, f = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error", SelectionWarning)
        model = select(X[:N], f[:N]).update(X[N:], f[N:])
    (last,) = model.provenance["updates"]
    assert last["loss"] < 2 * last["loss_expected"]


def test_other_rows_call_for_another_choice():
    X, f = table()
    model = select(X[:N], f[:N])
    with pytest.warns(SelectionWarning, match="times the loss that held-out rows of the selection had"):
        model.update(X[N:], f[N:] + 2.0)
    known = replace(model.sufficient, lam=0.3)
    fit = known.expansion()
    far = replace(model, sufficient=known, coefficients=fit.coefficients, bias=fit.bias)
    with pytest.warns(SelectionWarning, match="with lambda = 0.075 the 60 new rows would have had .* less loss"):
        far.update(X[N:], f[N:])


def test_losses_are_those_of_the_fit_without_the_rows():
    X, f = table()
    model = select(X[:N], f[:N])
    found = model.update(X[N:], f[N:]).provenance["updates"][0]["loss"]
    F = np.clip(model.decision(X[N:]), *model.limits[:, 0])
    assert found == pytest.approx(np.mean((F - encoded(model, f[N:])[0]) ** 2), rel=1e-8)


def test_rows_that_lack_something():
    X, f = table()
    model = select(X[:N], f[:N])
    y = f[N:].copy()
    y[:10] = np.nan
    assert model.update(X[N:], y).provenance["rows"] == N + MORE - 10
    X = X.copy()
    X.iloc[:5, 0] = np.nan
    dropping = select(X[:N], f[:N], missing="drop")
    assert dropping.provenance["rows"] == N - 5
    assert dropping.update(X[:20], f[:20]).provenance["updates"][0]["rows"] == 15
    refusing = select(X[5:N], f[5:N], missing="refuse")
    with pytest.raises(DataError, match="'y'"):
        refusing.update(X[N:], y)
    with pytest.raises(DataError, match="none of the 10 rows is left"):
        model.update(X[:10], np.full(10, np.nan))


def test_rows_that_cant_be_added():
    X, f = table()
    y = np.where(f > 0, "up", "down")
    model = select(X[:N], y[:N], learner="lssvm")
    with pytest.raises(DataError, match="classes that the model doesn't know .'level'; it has 'down', 'up'.: select"):
        model.update(X[N:], np.where(f[N:] > 0, "level", "up"))
    with pytest.raises(DataError, match="60 rows and 'y' has 3; they must have as many"):
        model.update(X[N:], y[:3])
    with pytest.raises(DataError, match="it lacks 'c'"):
        model.update(X[N:].drop(columns="c"), y[N:])
    of_numbers = select(X[:N], f[:N])
    with pytest.raises(DataError, match="holds text .* but the model is a regression"):
        of_numbers.update(X[N:], y[N:])
    with pytest.raises(DataError, match="1 target, and y has 2 columns"):
        of_numbers.update(X[N:], np.ones((MORE, 2)))
    with pytest.raises(DataError, match="row 1 has -1"):
        of_numbers.update(X[N:], f[N:], -np.ones(MORE))


def test_the_command(tmp_path):
    X, f = table()
    frame = X.assign(y=f, w=1.0)
    frame[:N].to_csv(tmp_path / "old.csv", index=False)
    frame[N:].iloc[:, ::-1].to_csv(tmp_path / "new.csv", index=False)
    choice = ["--target", "y", "--weights", "w", "--kernel", "gaussian", "--rank", "25", "--folds", "4"]
    run("select", tmp_path / "old.csv", *choice, "--model", tmp_path / "old.npz")
    shown = run(
        "update", tmp_path / "old.npz", tmp_path / "new.csv", "--weights", "w", "--output", tmp_path / "new.npz"
    )
    assert f"{MORE} new rows, {N + MORE} in all" in shown.stdout
    model = load(tmp_path / "old.npz").update(X[N:], f[N:], np.ones(MORE))
    np.testing.assert_array_equal(load(tmp_path / "new.npz").coefficients, model.coefficients)


@pytest.mark.parametrize("several", [False, True], ids=["", "several targets"])
def test_margins_stay_as_wide_as_the_range(several, tmp_path):
    rng = np.random.default_rng(3)
    X, more = rng.normal(size=(60, 3)), 3.0 * rng.normal(size=(40, 3))
    slopes = np.array([[3.0, -2.0, 1.0], [0.0, 1.0, 1.0]]).T
    y, others = X @ slopes + 0.1 * rng.normal(size=(60, 2)), more @ slopes
    if not several:
        y, others = y[:, 0], others[:, 0]
    selection = kernsel.select(X, y, kernel="linear", rank=3)
    margins = np.array(selection.data["margins"])
    assert margins.any()
    selection.model.save(tmp_path / "before.npz")
    model = load(tmp_path / "before.npz")
    within = model.update(X[:5], y[:5])
    np.testing.assert_allclose(within.limits, model.limits, rtol=0, atol=1e-12)
    for updated in (within.update(more, others), model.update(more[:20], others[:20]).update(more[20:], others[20:])):
        Y = encoded(model, np.concatenate([y, others]))
        width = np.ptp(Y, axis=1)
        wanted = [Y.min(axis=1) - margins[0] * width, Y.max(axis=1) + margins[1] * width]
        np.testing.assert_allclose(updated.limits, wanted, rtol=0, atol=1e-12)
