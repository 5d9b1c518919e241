"""A small model in the place of a large one: the fewest landmarks that predict much the same, by brute force."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import kernsel
import tables
import tolerances
from commandline import run
from kernsel.errors import DataError, ModelError, OptionError
from kernsel.model import compression
from kernsel.model.compression import SHARE, STEPS, Projection, describe
from kernsel.model.model import load

N = 400


@pytest.fixture(scope="module")
def smooth():
    return tables.choose(*tables.waves(N), folds=5)


def new_rows(n=300, seed=1):
    return np.random.default_rng(seed).normal(size=(n, 2))


def standard_error(result):
    scale = result.model.output_scale[0]
    return 2 * result.best.error * result.best.error_se / scale**2


def in_units(model, outputs):
    return (outputs - model.output_shift[0]) / model.output_scale[0]


def difference(model, small, X):
    return np.mean((in_units(model, model.predict(X)) - in_units(model, small.predict(X))) ** 2)


def test_it_keeps_few_rows_and_predicts_much_the_same(smooth):
    model, small = smooth.model, smooth.model.compress()
    assert small.rows.shape[0] < N / 4
    kept = {row.tobytes() for row in model.rows}
    assert all(row.tobytes() in kept for row in small.rows)
    compressed = small.provenance["compressed"]
    assert compressed["rows"] == N
    assert 0 < compressed["difference"] <= 0.1 * standard_error(smooth)
    # At new rows it is what it is at rows that are left out, but for what two samples differ by.
    assert difference(model, small, new_rows()) < 3 * 0.1 * standard_error(smooth)


def test_new_rows_are_compared_as_they_are_predicted(smooth):
    model, X = smooth.model, new_rows()
    small = model.compress(0.1, X)
    assert small.provenance["compressed"]["difference"] == pytest.approx(difference(model, small, X), rel=1e-6)


@pytest.mark.parametrize("within", [0.1, 0.001])
def test_it_is_the_least_number_that_is_tried(smooth, monkeypatch, within):
    tried, inner = {}, compression.compare_outputs

    def recorded(model, projection, parts, ranks, new):
        found = inner(model, projection, parts, ranks, new)
        tried.update(zip(ranks, found, strict=True))
        return found

    monkeypatch.setattr(compression, "compare_outputs", recorded)
    r = smooth.model.compress(within).rows.shape[0]
    allowed = within * standard_error(smooth)
    assert tried[r] <= allowed
    assert all(off > allowed for rank, off in tried.items() if rank < r)
    assert max(rank for rank in tried if rank < r) >= r * (1 - 2 / STEPS)  # so near is the next one


def test_more_likeness_is_more_rows(smooth):
    sizes = [smooth.model.compress(within).rows.shape[0] for within in (1.0, 0.1, 1e-3, 1e-5)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def projection_of(model, rank, ridge, parts=None):
    A = compression.stack_coefficients(model)
    F = model.raw_outputs(model.rows, A)
    parts = compression.choose_parts(model, A) if parts is None else parts
    return Projection.of(model, F, A, rank, ridge, parts), A, F


def brute_force(model, F, A, landmarks, ridge, kept):
    """Solve for the coefficients (c, r) themselves, with the Gram matrix of the landmarks."""
    K = model.kernel(model.rows, model.rows)
    C, Kr = K[np.ix_(kept, landmarks)], K[np.ix_(landmarks, landmarks)]
    return np.linalg.solve(C.T @ C + ridge * Kr, C.T @ F[kept] + ridge * K[landmarks] @ A.T).T


def test_coefficients_are_those_of_brute_force(smooth):
    model, ridge, r = smooth.model, 0.3, 20
    found, A, F = projection_of(model, 32, ridge)
    expected = brute_force(model, F, A, found.landmarks[:r], ridge, np.arange(N))
    X = model.kernel(new_rows(), model.rows[found.landmarks[:r]])
    # Features of landmarks have the condition of their Gram matrix, whose ridge is mu times it.
    np.testing.assert_allclose(X @ found.coefficients(r).T, X @ expected.T, rtol=0, atol=1e-6)


def test_differences_are_those_of_refits_without_each_fold(smooth):
    model, ranks, ridge = smooth.model, [10, 20], 0.3
    found, A, F = projection_of(model, 32, ridge)
    parts = compression.choose_parts(model, A)
    differences = compression.compare_outputs(model, found, parts, ranks)
    K = model.kernel(model.rows, model.rows)
    for r, value in zip(ranks, differences, strict=True):
        total, count, chosen = 0.0, 0, found.landmarks[:r]
        for t, part in enumerate(parts):
            held, of_fold, bias = part.rows, model.intervals.coefficients[t, 0], model.intervals.biases[t]
            kept = np.setdiff1d(np.arange(N), held)
            c = brute_force(model, F, A, chosen, ridge, kept)[1 + t]
            f, g = K[held] @ of_fold + bias, K[np.ix_(held, chosen)] @ c + bias
            total += np.sum((np.clip(f, *model.limits[:, 0]) - np.clip(g, *model.limits[:, 0])) ** 2)
            count += held.size
        assert value == pytest.approx(total / count, rel=1e-6)


@pytest.mark.parametrize(("folds", "parts"), [(2, 1), (5, 1), (10, 2)])
def test_parts_are_folds_and_hold_no_landmark(folds, parts):
    model = tables.choose(*tables.waves(N), folds=folds).model
    found, A, F = projection_of(model, 64, 0.1)
    compared = compression.choose_parts(model, A)
    assert len(compared) == parts
    rows = np.concatenate([part.rows for part in compared])
    assert rows.size == len(set(rows)) == N * parts // folds
    assert not set(rows) & set(found.landmarks)
    for t, part in enumerate(compared):
        # The fit without a fold, at the rows of the fold: what the residuals of its intervals are of.
        held = slice(*model.intervals.starts[t : t + 2])
        assert len(part.rows) == held.stop - held.start
        np.testing.assert_allclose(F[:, part.columns], F[:, 1 + t : 2 + t])


@pytest.mark.parametrize("change", [{"folds": "loo"}, {"rank": 60}])
def test_without_fits_of_folds_a_part_of_the_rows_is_left_out(change):
    model = tables.choose(*tables.waves(N // 4), **change).model
    (part,) = compression.choose_parts(model, compression.stack_coefficients(model))
    assert part.columns == slice(1)
    assert len(part.rows) == int(np.ceil(0.2 * model.rows.shape[0]))
    assert part.bias == model.bias


def test_all_rows_give_the_model_itself(smooth):
    model = replace(smooth.model, kernel=kernsel.kernels.Exponential(1.0))
    found, A, _ = projection_of(model, N, 0.5, [])
    assert found.rank == N
    order = np.argsort(found.landmarks)
    np.testing.assert_allclose(found.coefficients(N)[:, order], A, rtol=0, atol=1e-8 * np.abs(A).max())


def test_intervals_and_what_lies_beyond_stay(smooth):
    model, small, X = smooth.model, smooth.model.compress(0.01), new_rows()
    width = np.diff(model.predict_interval(X)).mean()
    assert np.abs(model.predict_interval(X) - small.predict_interval(X)).mean() < 0.02 * width
    far = np.vstack([X, [[40.0, 40.0]]])
    assert small.beyond(far)[-1]
    assert small.beyond(far)[:-1].mean() < 0.05


def test_local_intervals_stay():
    result = tables.choose(*tables.waves(N), folds=5, intervals="local")
    small, X = result.model.compress(0.01), new_rows()
    ends, others = result.model.predict_interval(X), small.predict_interval(X)
    assert small.intervals.scale.coefficients.shape == (5, 1, small.rows.shape[0])
    assert np.abs(ends - others).mean() < 0.05 * np.diff(ends).mean()


@pytest.mark.parametrize("intervals", [None, "sets"])
@pytest.mark.parametrize("learner", ["lssvm", "klr", "svm"])
def test_classes(learner, intervals):
    X, y = tables.circles(N, flips=0.05)
    result = tables.choose(X, y, learner=learner, folds=5, intervals=intervals)
    small = result.model.compress(1.0)
    assert small.rows.shape[0] < N / SHARE
    assert small.provenance["compressed"]["difference"] <= result.best.error_se
    rows = new_rows()
    assert np.mean(result.model.predict(rows) != small.predict(rows)) < 4 * result.best.error_se
    assert np.abs(result.model.predict_proba(rows) - small.predict_proba(rows)).mean() < 0.05
    if intervals == "sets":
        assert np.mean(result.model.predict_set(rows) != small.predict_set(rows)) < 0.1


def test_three_classes_and_text_columns():
    X, y = tables.waves(N)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 0] > 0, "left", "right")})
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [-0.7, 0.7])]
    result = kernsel.select(frame, labels, kernel="gaussian", folds=5)
    small = result.model.compress(1.0)
    assert np.mean(result.model.predict(frame) == small.predict(frame)) > 0.9


def test_several_targets_and_weights():
    X, y = tables.waves(N)
    Y = np.column_stack([y, 100 * X[:, 0] * X[:, 1]])
    weights = np.random.default_rng(0).uniform(0.5, 1.5, N)
    result = kernsel.select(X, Y, weights=weights, kernel="gaussian", folds=5)
    small, rows = result.model.compress(), new_rows()
    assert small.rows.shape[0] < N / SHARE
    off = np.mean((result.model.predict(rows) - small.predict(rows)) ** 2, axis=0) / Y.var(axis=0)
    assert off.max() < 0.01


def test_it_is_saved_loaded_and_exported(smooth, tmp_path):
    small, X = smooth.model.compress(), new_rows()
    small.save(tmp_path / "small.npz")
    smooth.model.save(tmp_path / "large.npz")
    again = load(tmp_path / "small.npz")
    np.testing.assert_array_equal(again.predict(X), small.predict(X))
    np.testing.assert_array_equal(again.predict_interval(X), small.predict_interval(X))
    assert again.provenance["compressed"] == small.provenance["compressed"]
    assert (tmp_path / "small.npz").stat().st_size < (tmp_path / "large.npz").stat().st_size / 2
    # What is compressed again is one of few rows already: of its fits without a fold none lacks a row.
    assert load(tmp_path / "large.npz").compress().rows.tolist() == small.rows.tolist()


def test_it_is_exported(smooth):
    onnxruntime = pytest.importorskip("onnxruntime")
    small, X = smooth.model.compress(), new_rows()
    session = onnxruntime.InferenceSession(small.to_onnx().SerializeToString())
    (predicted,) = session.run(None, {"X": X})
    np.testing.assert_allclose(predicted[:, 0], small.predict(X), rtol=0, atol=tolerances.FITTED)


def test_one_and_two_threads_give_the_same_bits(smooth, use_threads):
    found = []
    for threads in (1, 2):
        use_threads(threads)
        small = smooth.model.compress()
        found.append((small.rows.tobytes(), small.coefficients.tobytes(), small.intervals.coefficients.tobytes()))
    assert found[0] == found[1]


def test_a_rough_kernel_needs_its_rows():
    result = tables.choose(*tables.waves(N), kernel="exponential(ell=0.5)", folds=5)
    with pytest.raises(ModelError, match=r"no small set of landmarks.* 200 of 400 rows leave .*\(within"):
        result.model.compress(1e-3)


@pytest.mark.parametrize("within", [0, -1.0, float("nan"), True, "0.1", None, float("inf")])
def test_shares_that_are_none(smooth, within):
    with pytest.raises(OptionError, match="within is a share of the standard error"):
        smooth.model.compress(within)


@pytest.mark.parametrize("provenance", [{}, {"error": "small", "error_se": 0.1}, {"error": 0.1, "error_se": None}])
def test_a_model_without_its_error_is_not_compressed(smooth, provenance):
    with pytest.raises(ModelError, match="doesn't tell its held-out error"):
        replace(smooth.model, provenance=provenance).compress()


def test_new_rows_of_another_table_are_refused(smooth):
    with pytest.raises(DataError, match="3 columns"):
        smooth.model.compress(0.1, np.zeros((5, 3)))
    with pytest.raises(OptionError, match="no rows"):
        smooth.model.compress(0.1, np.zeros((0, 2)))


def test_it_is_described(smooth):
    text = describe(smooth.model, smooth.model.compress())
    assert text.startswith("compressed: 400 rows to ")
    assert "times as fast; the mean squared difference is" in text


def written(tmp_path, X, y):
    path = tmp_path / "data.csv"
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_csv(path, index=False)
    return path


def test_the_command_writes_the_small_model(tmp_path):
    path, out = written(tmp_path, *tables.waves(N)), tmp_path / "small.npz"
    done = run("select", path, "--kernel", "gaussian", "--folds", "5", "--model", out, "--compress")
    assert "compressed: 400 rows to" in done.stdout
    assert load(out).rows.shape[0] < N / 4
    assert load(out).predict(pd.read_csv(path).drop(columns="y")).shape == (N,)


def test_the_command_keeps_a_model_that_can_not_be_small(tmp_path):
    X, _ = tables.waves(N)
    path, out = written(tmp_path, X, np.sin(4 * X).prod(axis=1)), tmp_path / "model.npz"
    done = run("select", path, "--kernel", "exponential", "--folds", "5", "--model", out, "--compress")
    assert "--compress: no small set of landmarks" in done.stderr
    assert load(out).rows.shape[0] == N


def test_the_command_says_what_compress_is_for(tmp_path):
    path = written(tmp_path, *tables.waves(40))
    assert "give --model FILE" in run("select", path, "--compress", code=2).stderr
