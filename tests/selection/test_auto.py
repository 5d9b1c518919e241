"""The kernel that a selection chooses by itself, and kernels with a relevance for each feature."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import kernsel
import tables
from commandline import run
from kernsel.data import from_arrays
from kernsel.errors import SelectionError, SelectionWarning
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.journal.encoding import decode, encode
from kernsel.kernels import ARD, parse
from kernsel.learners import Krr, Lssvm
from kernsel.learning import better, profile
from kernsel.learning.profile import learn_profile
from kernsel.learning.summed import LEAST, learn_sum
from kernsel.learning.together import learn_together
from kernsel.numerics.runtime import threads
from kernsel.selection import auto as automatic
from kernsel.selection import kernel_source, sums
from kernsel.selection import learnt as learnt_kernels
from kernsel.selection.carry_out import select_dataset
from kernsel.selection.compared import learnt_profiles
from kernsel.selection.learnt import kind_of

FEW = {"grid": {"lambda": [1e-4, 1e-3, 1e-2]}, "folds": 3, "extend": False}


def hidden(n=80, d=6, seed=0, classes=False):
    """Two of d features matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    return X, np.where(y > 0, "up", "down") if classes else 10 * y


def noisy(n=40, d=10, seed=1):
    """One of d features matters, as much as the noise: few rows for so many relevances."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + rng.normal(size=n)


def anyway(rows, apart, learner, blocks, learn, seed):
    """Learn what else there is without rows that decide whether that is better."""
    return learn(rows, apart, learner, seed)


@pytest.fixture(scope="module")
def chosen():
    return select_dataset(from_arrays(*hidden(), standardize=True), **FEW)


def test_the_default_learns_relevances_where_features_differ(chosen):
    assert kind_of(chosen.best.kernel).startswith("ard")
    assert set(chosen.relevances.nlargest(2).index) == {"x0", "x1"}
    lowest = [each["score"] for each in chosen.data["compared"]]
    assert lowest == sorted(lowest)
    kinds = {(each["kernel"], each["relevances"]) for each in chosen.data["compared"]}
    assert {("gaussian", None), ("laplacian", None), ("exponential", None)} <= kinds
    assert any("evidence" in by for _, by in kinds if by)
    assert "by relevances that were learnt without the rows held out" in chosen.summary()
    assert any(note.startswith("kernel: ard") for note in chosen.data["notes"])
    assert not any("too good" in text for text in chosen.warnings)
    json.loads(chosen.to_json())


@pytest.mark.parametrize("classes", [False, True])
def test_held_out_rows_are_predicted_by_relevances_learnt_without_them(classes):
    n = 150 if classes else 60
    data = from_arrays(*hidden(n, 8 if classes else 4, classes=classes), standardize=True)
    options = {"learner": "lssvm", "effort": "thorough"} if classes else {"learner": "krr"}
    result = select_dataset(data, **options, **FEW)
    kernel, lam = result.best.kernel, result.best.lam
    assert kind_of(kernel).startswith("ard")
    with threads.one_blas_thread():
        learnt = automatic.candidates(
            data, result.best.learner, "thorough" if classes else "normal", automatic.PRIORS[data.task], 0
        ).find(kernel)
        rows = Partition.of(data, make_folds(3, data, 0), 0, clip=True)
        F, square = np.zeros(n), Lssvm() if classes else Krr()
        for fold in range(3):
            kept, held = rows.kept(fold), slice(rows.starts[fold], rows.starts[fold + 1])
            some = rows.taken(np.flatnonzero(kept), np.arange(kept.sum() + 1))
            apart = learnt.profile if classes else learnt.profile.apart
            profiles = [learn_profile(some, each.kernel, square, each.sigma) for each in apart.profiles]
            anew = learn_sum(some, profiles, square, apart.linear, (*apart.weights, apart.straight))
            k = (anew if classes else learn_together(some, anew, square)).kernel.times(learnt.factor)
            X, y, m = rows.X[kept], rows.Y[0, kept], int(kept.sum())
            A = np.zeros((m + 1, m + 1))
            A[:m, :m] = k(X) + m * lam * np.eye(m)
            A[m, :m] = A[:m, m] = classes
            A[m, m] = 1 - classes
            a = np.linalg.solve(A, np.append(y, 0.0))
            F[rows.order[held]] = k(rows.X[held], X) @ a[:m] + a[m]
            if not classes:
                below, above = np.array(result.data["margins"] or [[0.0], [0.0]])[:, 0] * np.ptp(y)
                F[rows.order[held]] = np.clip(F[rows.order[held]], y.min() - below, y.max() + above)
    y = data.Y[0]
    np.testing.assert_allclose(result.outputs, F, atol=1e-6)
    error = (F * y <= 0).mean() if classes else np.sqrt(((F - y) ** 2).mean()) * data.output_scale[0]
    assert result.best.error == pytest.approx(error, rel=1e-6)


def test_no_row_has_a_part_in_the_relevances_that_predict_it(monkeypatch):
    data = from_arrays(*hidden(60, 4), standardize=True)
    seen = []

    def spy(rows, *others, **options):
        seen.append(rows.Y[0].copy())
        return learn_profile(rows, *others, **options)

    monkeypatch.setattr(sums, "learn_if_better", anyway)
    monkeypatch.setattr(profile, "learn_profile", spy)
    result = select_dataset(data, **FEW)
    assert result.data["relevances"]["unseen"]
    number = make_folds(3, data, 0).number
    parts = sum(kind_of(part) != "linear" for part in getattr(result.best.kernel, "parts", "1"))
    assert len(seen) == 3 * parts
    for fold in range(3):
        without = [Y for Y in seen if not np.isin(data.Y[0, number == fold], Y).any()]
        assert [len(Y) for Y in without] == parts * [(number != fold).sum()]


def test_the_error_of_over_fitted_relevances_is_not_too_good():
    errors = []
    for seed in range(6):
        X, y = noisy(seed=seed)
        far = np.random.default_rng(100 + seed).normal(size=(500, 10))
        result = tables.choose(X, y, kernel="auto", relevances="evidence", folds=5)
        if result.relevances is not None:
            truth = np.sqrt(((result.model.predict(far) - far[:, 0]) ** 2).mean() + 1.0)
            errors.append((result.best.error, truth))
    claimed, truth = np.mean(errors, axis=0)
    assert claimed > 0.8 * truth


def test_a_quick_choice_compares_widths_only():
    result = tables.choose(*hidden(40, 3), kernel="auto", effort="quick", **FEW)
    assert {each["kernel"] for each in result.data["compared"]} == {"gaussian", "laplacian", "exponential"}
    assert result.relevances is None
    many = tables.choose(*hidden(40, 3), kernel="auto", effort="thorough", **FEW)
    assert len(many.data["compared"]) > 5


def test_a_smooth_target_keeps_a_smooth_kernel():
    X = np.random.default_rng(0).uniform(-2, 2, size=(120, 1))
    result = tables.choose(X, np.sin(3 * X[:, 0]), kernel="auto", effort="quick", folds=5)
    assert result.best.kernel.name == "gaussian"
    assert result.data["compared"][0]["kernel"] == "gaussian"


@pytest.fixture(scope="module")
def heavy():
    """A target that depends on the rank of a feature of heavy tails, and on another feature."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(2 * rng.normal(size=200)), rng.normal(size=(200, 2))])
    X[:, 0] += 30 * (X[:, 0] > 3)  # with a gap
    return X, np.sin(4 * np.argsort(np.argsort(X[:, 0])) / 200) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=200)


def test_features_of_heavy_tails_count_by_their_rank(heavy, tmp_path):
    X, y = heavy
    result = tables.choose(X, y, kernel="auto", folds=5, learner="krr")
    assert any("with ranks" in each["kernel"] for each in result.data["compared"])
    assert result.relevances["x0 (rank)"] == result.relevances.max() > 10 * result.relevances["x0"]
    widths = tables.choose(X, y, kernel="auto", effort="quick", folds=5, learner="krr")
    assert result.best.error < 0.95 * widths.best.error
    result.model.save(tmp_path / "model.npz")
    assert np.array_equal(kernsel.load(tmp_path / "model.npz").predict(X), result.model.predict(X))


def over_powers_of_ten(n, seed=0):
    """A target that depends on the logarithm of a feature, which its ranks say nothing of, and on another feature."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random(n), rng.normal(size=(n, 2))])
    return X, np.sin(2 * np.log(X[:, 0]) + X[:, 1]) + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def logged():
    return tables.choose(*over_powers_of_ten(120), kernel="auto", folds=5, learner="krr")


def test_features_over_powers_of_ten_count_by_their_logarithm(logged, monkeypatch, tmp_path):
    X, y = over_powers_of_ten(500, 1)
    assert logged.relevances["x0 (log)"] == logged.relevances.max() > 10 * logged.relevances["x0"]
    assert "with logs" in logged.data["compared"][0]["kernel"]
    assert logged.data["relevances"]["unseen"]
    assert "with logs" in logged.summary()
    monkeypatch.setattr(automatic, "with_logs", lambda *_: [])
    plain = tables.choose(*over_powers_of_ten(120), kernel="auto", folds=5, learner="krr")
    errors = [np.mean((each.model.predict(X) - y) ** 2) for each in (logged, plain)]
    assert errors[0] < 0.7 * errors[1]
    X[:3, 0] = 0.0, -1.0, 1e9
    logged.model.save(tmp_path / "model.npz")
    again = kernsel.load(tmp_path / "model.npz").predict(X)
    assert np.isfinite(again).all()
    assert np.array_equal(again, logged.model.predict(X))


def test_profiles_with_logarithms_are_told_with_loss_and_weight(logged):
    said = logged.data["profiles"]
    assert sum(each["weight"] for each in said) == pytest.approx(1.0)
    assert max(said, key=lambda each: each["weight"])["kernel"].endswith("logs")
    losses = [each["loss"] for each in said if each["loss"] is not None]
    assert losses == sorted(losses)


def test_logarithms_that_say_nothing_are_left_out_before_they_take_time(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((120, 3))
    data = from_arrays(X, X[:, 0] + np.sin(6 * X[:, 1]) + 0.1 * rng.normal(size=120), standardize=True)
    assert ARD((1.0,) * 3).with_logs(data.X, data.encoder.zeros).logged == (0, 1, 2)
    monkeypatch.setattr(sums, "learn_wider", pytest.fail)
    with threads.one_blas_thread():
        found = automatic.candidates(data, Krr(), "normal", automatic.PRIORS["regression"], 0)
    assert not any("logs" in kind_of(each.kernel) for each in [*found.learnt, *found.parts])


@pytest.mark.parametrize("worse", [False, True])
def test_unseen_rows_decide_on_logarithms(worse, monkeypatch):
    monkeypatch.setattr(better, "is_less", lambda *_: not worse)
    data = from_arrays(*over_powers_of_ten(120), standardize=True)
    with threads.one_blas_thread():
        found = automatic.candidates(data, Krr(), "normal", automatic.PRIORS["regression"], 0)
    assert any("logs" in kind_of(each.kernel) for each in found.learnt) is not worse
    assert any("logs" in kind_of(each.kernel) for each in found.parts) is not worse


def test_classes_have_no_logarithms(monkeypatch):
    monkeypatch.setattr(automatic, "with_logs", pytest.fail)
    X, y = over_powers_of_ten(60)
    data = from_arrays(X, y > 0, standardize=True)
    with threads.one_blas_thread():
        assert automatic.candidates(data, Lssvm(), "thorough", automatic.PRIORS["classification"], 0).parts


def test_the_sum_of_the_best_profiles_is_compared_and_learnt_anew():
    X, y = hidden(90, 4, seed=2)
    data = from_arrays(X, y, standardize=True)
    with threads.one_blas_thread():
        learnt = automatic.candidates(data, Krr(), "normal", automatic.PRIORS["regression"], 0)
        assert len({kind_of(each.kernel, views=False) for each in learnt.parts}) == automatic.KEPT
        losses = [each.loss for each in learnt.parts]
        assert losses == sorted(losses)
        summed = next(each for each in learnt.learnt if each.is_sum)
        assert {id(each) for each in summed.profile.apart.profiles} <= {id(each.profile) for each in learnt.parts}
        pairs = list(zip(summed.profile.weights, summed.profile.profiles, strict=True))
        expected = sum(weight * each.kernel.times(summed.factor)(data.X) for weight, each in pairs)
        assert summed.profile.straight > LEAST
        expected += summed.profile.straight * data.X @ data.X.T / (data.X**2).sum(axis=1).mean()
        np.testing.assert_allclose(summed.kernel(data.X), expected, rtol=1e-13, atol=1e-15)
        assert max(summed.relevances(list("abcd")).values()) <= 1
    result = select_dataset(data, **FEW)
    assert sum(each["weight"] for each in result.data["profiles"]) == pytest.approx(1.0)
    assert any("weights in the sum: " in note for note in result.data["notes"])


def test_relevances_that_were_learnt_together_are_said_with_their_weights():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (90, 3))
    y = np.sin(5 * X[:, 0]) + 2 * X[:, 1] + 2 * np.abs(X[:, 2]) + 0.05 * rng.normal(size=90)
    data = from_arrays(X, y, standardize=True)
    with threads.one_blas_thread():
        learnt = automatic.candidates(data, Krr(), "normal", automatic.PRIORS["regression"], 0)
    found = next(each.profile for each in learnt.learnt if each.is_sum)
    assert found.learnt_by.endswith("then together")
    result = select_dataset(data, **FEW)
    assert result.data["relevances"]["criterion"] == found.learnt_by
    said = {each["kernel"]: each["weight"] for each in result.data["profiles"] if each["weight"]}
    pairs = zip(found.apart.profiles, found.weights, strict=True)
    expected = {kind_of(each.kernel): weight for each, weight in pairs}
    assert said == pytest.approx(expected | ({"linear": found.straight} if found.straight else {}))


def test_rows_that_decide_on_learning_together_are_whole_groups(monkeypatch):
    X, y = hidden(90, 4, seed=2)
    groups, seen = np.repeat(np.arange(30), 3), []

    def kept(rows, apart, learner, blocks, learn, seed):
        seen.append(blocks)
        return apart

    monkeypatch.setattr(sums, "learn_if_better", kept)
    data = from_arrays(X, y, standardize=True, groups=groups)
    automatic.candidates(data, Krr(), "normal", automatic.PRIORS["regression"], 0)
    (blocks,) = seen
    assert np.array_equal(np.sort(np.concatenate(blocks)), np.arange(90))
    assert sum(np.unique(groups[block]).size for block in blocks) == 30
    few = from_arrays(X, y, standardize=True, groups=np.arange(90) % 2)
    automatic.candidates(few, Krr(), "normal", automatic.PRIORS["regression"], 0)
    assert len(seen) == 1


@pytest.mark.parametrize("together", [False, True])
def test_weights_are_those_of_a_sum_that_a_journal_remembers(together, monkeypatch):
    monkeypatch.setattr(sums, "learn_if_better", anyway if together else lambda rows, apart, *_: apart)
    data = from_arrays(*hidden(60, 3), standardize=True)
    with threads.one_blas_thread():
        learnt = automatic.candidates(data, Krr(), "normal", automatic.PRIORS["regression"], 0)
    remembered = [replace(each, profile=decode(encode(each.profile))) for each in learnt.learnt]
    found = learnt_profiles(replace(learnt, learnt=remembered))
    assert found == learnt_profiles(learnt)
    assert sum(each["weight"] for each in found) == pytest.approx(1.0)


def test_one_profile_is_no_sum_and_kernels_whose_sum_cannot_be_learnt_stay_single(monkeypatch):
    def fail(*_, **__):
        raise SelectionError("the evidence has no value")

    monkeypatch.setattr(sums, "learn_sum", fail)
    result = tables.choose(*hidden(60, 3), kernel="auto", **FEW)
    assert any("weights of a sum of kernels can't be learnt (the evidence has" in note for note in result.data["notes"])
    assert sum(each["kernel"].startswith("ard") for each in result.data["compared"]) == automatic.KEPT
    monkeypatch.setattr(automatic, "KEPT", 1)
    result = tables.choose(*hidden(60, 3), kernel="auto", **FEW)
    assert [each["weight"] for each in result.data["profiles"]] == [1.0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"grid": {"tau": [1.0, 2.0], "lambda": [1e-3, 1e-2]}}, "the grid names its width"),
        ({"grid": "paper"}, "the grid is that of its papers"),
        ({"refine": "gradient"}, "a refinement by gradient needs it"),
        ({"criterion": "gcv"}, "kernels of different kinds are compared by held-out rows, and the criterion has none"),
    ],
)
def test_where_the_gaussian_is_needed_it_is_the_default(options, reason):
    data = from_arrays(*hidden(40, 3), standardize=True)
    result = select_dataset(data, **{"folds": 3, "extend": False} | options)
    assert {c.kernel.name for c in result.candidates} == {"gaussian"}
    assert f"kernel: gaussian, for {reason}" in result.data["notes"]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (lambda X, y: (X[:, :1], y), "there is one feature only"),
        (lambda X, y: (X[:20], y[:20]), "there are fewer than 30 rows"),
        (lambda X, y: (np.tile(X, (1, 80)), y), "there are more than 300 features"),
    ],
)
def test_where_relevances_are_not_learnt_it_is_said(table, reason):
    result = tables.choose(*table(*hidden(40, 4)), kernel="auto", **FEW)
    assert f"kernel: no relevance for each feature, for {reason}" in result.data["notes"]
    assert result.relevances is None


def test_a_profile_that_cannot_be_learnt_is_left_out(monkeypatch):
    def fail(*_, **__):
        raise SelectionError("the evidence has no value")

    monkeypatch.setattr(learnt_kernels, "learn_profile", fail)
    result = tables.choose(*hidden(40, 3), kernel="auto", **FEW)
    assert result.relevances is None
    failed = [note for note in result.data["notes"] if "can't be learnt (the evidence has no value)" in note]
    assert len(failed) == len(automatic.PROFILES["normal"])


HALVES = [(np.arange(24), np.arange(24, 48)), (np.arange(24, 48), np.arange(24))]


@pytest.mark.parametrize(
    "folds", [12, "loo", "time:3", np.arange(48) % 6, HALVES], ids=["twelve", "loo", "time", "column", "pairs"]
)
def test_relevances_are_learnt_anew_with_any_folds(folds):
    data = from_arrays(*hidden(48, 3), standardize=True)
    result = select_dataset(data, **FEW | {"folds": folds})
    assert result.data["relevances"]["unseen"]
    assert np.isfinite(result.heldout).sum() == make_folds(folds, data, 0).starts[-1]


@pytest.mark.parametrize(
    "options",
    [
        {"learner": "svr(epsilon=None)", "grid": {"lambda": [1e-3, 1e-2], "epsilon": [0.01, 0.1]}},
        {"relevances": "evidence(sigma=0.7)", "rank": 20},
        {"repeats": 2, "metric": "r2"},
        {"criterion": "bif"},
    ],
    ids=["searched learner", "low rank", "repeats", "bif"],
)
def test_auto_goes_with_other_options(options):
    result = tables.choose(*hidden(50, 4), standardize=True, kernel="auto", **FEW | options)
    assert result.best.failed is None
    assert result.best.error > 0
    json.loads(result.to_json())


def test_auto_knows_several_classes_targets_and_weights():
    X, y = tables.wine()
    wine = select_dataset(from_arrays(X[::3], y[::3]), **FEW)
    assert wine.probabilities.shape == (60, 3)
    X, y = hidden(50, 4)
    weights = np.linspace(0.0, 2.0, 50)
    two = select_dataset(from_arrays(X, np.column_stack([y, X[:, 1]]), weights=weights), **FEW)
    assert set(two.data["errors"]) == {"y0", "y1"}


@pytest.mark.parametrize("kernel", ["ard", ["gaussian", "ard"], "ard-polynomial(degree=2)", "ard-laplacian"])
def test_relevances_without_values_are_learnt_on_all_rows(kernel):
    X, y = hidden(60, 4)
    with pytest.warns(SelectionWarning, match="too good"):
        result = kernsel.select(X, y, kernel=kernel, folds=4)
    name = "ard" if isinstance(kernel, list) else kernel
    learned = kernsel.learn_relevances(X, y, kernel=name)
    ratio = result.relevances[learned.relevances > 0] / learned.relevances[learned.relevances > 0]
    assert ratio.std() <= 1e-12
    assert ratio.iloc[0] in kernel_source.SCALES
    assert list(result.relevances.index[result.relevances == 0]) == learned.zero == result.data["relevances"]["zero"]
    assert result.best.kernel.name == name.partition("(")[0]
    assert result.model.predict(X).shape == y.shape


def test_relevances_look_good_on_their_own_rows_and_not_on_others():
    X, y = noisy()
    ard = tables.choose(X, y, standardize=True, kernel="ard", relevances="loo", folds=4)
    far = np.random.default_rng(7).normal(size=(2000, 10))
    assert ard.best.error < 0.8 * np.sqrt(((ard.model.predict(far) - far[:, 0]) ** 2).mean() + 1.0)


def test_relevances_that_have_values_stay():
    X, y = hidden(40, 3)
    result = tables.choose(X, y, kernel="ard(theta=(0.5, 0.1, 0))", **FEW)
    assert result.best.kernel == parse("ard(theta=(0.5, 0.1, 0))")
    assert result.relevances is None


def test_a_kernel_without_relevances_may_win_beside_one_with(monkeypatch):
    X, y = hidden(40, 3)
    monkeypatch.setattr(kernel_source, "_scaled", lambda kernel: [kernel.with_theta((1e9, 1e9, 1e9))])
    result = tables.choose(X, y, kernel=["gaussian", "ard"], **FEW)
    assert result.best.kernel.name == "gaussian"
    assert result.relevances is None
    assert result.timing["learning"] > 0
    assert not any("too good" in text for text in result.warnings)


def test_nested_estimates_learn_relevances_anew():
    X, y = noisy()
    result = kernsel.nested(X, y, outer=4, kernel="ard", relevances="loo", **FEW)
    assert result.optimism > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": ["auto", "linear"]}, "kernel 'auto' chooses among many: leave the others out"),
        ({"kernel": "gaussian", "relevances": "evidence"}, "no kernel has any without values"),
        ({"kernel": "ard(theta=(1, 1))", "relevances": "br"}, "no kernel has any without values"),
        ({"kernel": "auto", "relevances": "bif"}, "criterion 'bif' has no gradient"),
        (
            {"kernel": "auto", "relevances": "br"},
            "kernel auto learns relevances by the evidence; with br use kernel ard",
        ),
        ({"kernel": "auto", "effort": "much"}, "effort 'much' is unknown: use quick, normal, thorough"),
        ({"kernel": "ard", "relevances": "nothing"}, "nothing"),
        ({"kernel": "ard", "refine": "gradient"}, "refine gradient: relevances are learnt by their gradient already"),
    ],
)
def test_what_cannot_be_learnt_is_said(options, message):
    with pytest.raises(kernsel.errors.KernselError, match=message.replace("(", "[(]")):
        kernsel.select(*hidden(30, 2), **options)


def test_the_command_learns_relevances(tmp_path):
    X, y = hidden(50, 4)
    path = tmp_path / "data.csv"
    pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_csv(path, index=False)
    few = ("--folds", 4, "--grid", "lambda=0.0001,0.001", "--quiet")
    document = json.loads(run("select", path, *few, "--json").stdout)
    assert document["data"]["compared"][0]["kernel"].startswith("ard")
    assert set(document["data"]["relevances"]["theta"]) == set("abcd")
    assert document["data"]["relevances"]["criterion"].startswith("evidence")
    result = run("select", path, "--relevances", "br", *few, code=2)
    assert result.stderr.count("\n") == 1
