"""A table in parts is encoded as it is in one place, however it is cut."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from kernsel.data import from_arrays, part_rows, seen
from kernsel.data.columns import as_text
from kernsel.data.moments import Moments
from kernsel.data.more import encode_more
from kernsel.data.quantiles import count_next, find_quantile
from kernsel.data.target import find_spread, mean_and_scale, median_and_spread
from kernsel.errors import DataError
from kernsel.selection.drivers import InProcess
from kernsel.selection.parts import encode, work
from kernsel.selection.plan import Plan

N = 180
CUTS = {
    "one": [0, N],
    "some": [0, 17, 90, 91, 140, N],
    "rows": list(range(N + 1)),
    "empty": [0, 0, 100, 100, 100, N, N],
}


def mixed():
    """All kinds of columns: also with gaps, levels in the last rows only, and nothing at all."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])
    frame["a"] = 1e4 + frame["a"]
    frame["b"] += 0.8 * (frame["a"] - 1e4)
    frame.loc[rng.random(N) < 0.2, "b"] = np.nan
    frame["level"] = rng.choice(["u", "v", "w"], N, p=[0.7, 0.2, 0.1])
    frame.loc[N - 3 :, "level"] = "only here"
    frame.loc[rng.random(N) < 0.1, "level"] = None
    frame["id"] = np.arange(N) + 1000
    frame["name"] = [f"row {i}" for i in range(N)]
    frame["same"] = 7
    frame["nothing"] = np.nan
    frame["marked"] = [str(round(x, 3)) for x in rng.normal(size=N)]
    frame.loc[[5, 77], "marked"] = "?"
    frame["day"] = pd.date_range("2020-01-01", periods=N, freq="7h").strftime("%Y-%m-%d %H:%M")
    frame["truth"] = rng.random(N) < 0.3
    frame["count"] = np.arange(N)
    frame["code"] = rng.integers(0, 4, N)
    y = pd.Series(np.nan_to_num(frame["b"]) + 2.0 * frame["b"].isna() + 0.1 * rng.normal(size=N), name="y")
    y[[3, 100]] = np.nan
    return frame, y, np.where(rng.random(N) < 0.1, 0.0, rng.uniform(0.5, 2.0, N))


def cut(frame, y, weights, bounds):
    pieces = [slice(lo, hi) for lo, hi in pairwise(bounds)]
    return [part_rows.Rows(i, frame[p], y[p], None if weights is None else weights[p]) for i, p in enumerate(pieces)]


def assert_alike(one, other):
    """Two encoders: equal, and their numbers to 1e-12."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            assert_alike(one[name], other[name])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for each, another in zip(one, other, strict=True):
            assert_alike(each, another)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-12, abs=1e-12)
    else:
        assert one == other


OPTIONS = {
    "plain": {},
    "drop": {"missing": "drop"},
    "named": {"categorical": ("code",), "numeric": ("marked",), "drop": ("day", "na*")},
    "ordinal": {"ordinal": {"level": ("u", "v", "w", "only here")}, "keep": ("a", "level", "count")},
    "hamming": {"categories": "hamming", "rare": 5},
    "raw": {"standardize": False},
}


@pytest.mark.parametrize(
    ("options", "bounds", "weighted"),
    [*((options, "some", weighted) for options in OPTIONS for weighted in (False, True)), ("drop", "empty", True)]
    + [("plain", bounds, True) for bounds in CUTS],
)
def test_the_encoder_is_that_of_all_rows_in_one_place(options, bounds, weighted):
    frame, y, weights = mixed()
    plan = Plan(**OPTIONS[options])
    whole = from_arrays(frame, y, weights=weights if weighted else None, **plan.table)
    found = encode.find_encoding(InProcess(), cut(frame, y, weights if weighted else None, CUTS[bounds]), plan)
    assert_alike(found.encoder.to_json(), whole.encoder.to_json())
    assert found.document == whole.columns
    if not weighted and options != "drop":  # notes on rows say a little less
        assert found.notes == whole.notes
    np.testing.assert_allclose(found.target.shift, whole.output_shift, rtol=1e-12)
    np.testing.assert_allclose(found.target.scale, whole.output_scale, rtol=1e-12)
    pieces = [
        part_rows.Part.of(part, found.columns).encode(found.target, found.encoder)
        for part in cut(frame, y, weights if weighted else None, CUTS[bounds])
    ]
    np.testing.assert_allclose(np.concatenate([X for X, _ in pieces]), whole.X, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.concatenate([Y for _, Y in pieces], axis=1), whole.Y, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bounds", ["some", "empty"])
@pytest.mark.parametrize(
    "make",
    [
        lambda y: np.digitize(y, [-1.0, 0.0, 1.0]),
        lambda y: np.where(y > 0, "yes", "no"),
        lambda y: y > 0,
        lambda y: pd.Series(np.where(y > 0, "b", "a"), dtype="category"),
        lambda y: pd.DataFrame({"p": y, "q": y**2}),
        lambda y: np.round(10 * y),
    ],
)
def test_task_labels_and_units_are_those_of_all_rows(bounds, make):
    frame, y, _ = mixed()
    values = make(y.fillna(0.0).to_numpy())
    target = values if hasattr(values, "iloc") else pd.Series(values, name="y")
    whole = from_arrays(frame, target, **Plan().table)
    found = encode.find_encoding(InProcess(), cut(frame, target, None, CUTS[bounds]), Plan())
    assert (found.target.task, found.target.labels) == (whole.task, whole.labels)
    assert found.target.label_dtype == whole.label_dtype
    np.testing.assert_allclose(found.target.shift, whole.output_shift, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.target.scale, whole.output_scale, rtol=1e-12)


def test_parts_of_other_types_are_one_column():
    """As files have it: whole numbers in one part, gaps or text in another."""
    rng = np.random.default_rng(0)
    columns = [
        {"x": rng.integers(0, 9, 40), "t": np.full(40, np.nan), "k": rng.integers(0, 3, 40)},
        {"x": rng.normal(size=40), "t": rng.choice(["p", "q"], 40), "k": rng.choice(["0", "z"], 40)},
        {
            "x": np.full(40, np.nan),
            "t": rng.choice(["p", None], 40),
            "k": np.where(rng.random(40) < 0.2, np.nan, rng.integers(0, 3, 40)),
        },
    ]
    frames = [pd.DataFrame(each) for each in columns]
    y = pd.Series(rng.normal(size=120), name="y")
    parts = [part_rows.Rows(i, f, y[40 * i : 40 * i + 40], None) for i, f in enumerate(frames)]
    found = encode.find_encoding(InProcess(), parts, Plan())
    written = [frame.assign(k=as_text(frame["k"])) for frame in frames]  # in one file there is no 1.0
    whole = from_arrays(pd.concat(written, ignore_index=True), y, **Plan().table)
    assert_alike(found.encoder.to_json(), whole.encoder.to_json())
    coding = found.coding(2, 0)
    drawn = InProcess().reduce(work.draw, parts, lambda one, other: work.merge_drawn(one, other, 120), coding, 120)
    X = [part_rows.Part.of(part, found.columns).encode(found.target, found.encoder)[0] for part in parts]
    np.testing.assert_allclose(np.sort(found.dataset(drawn).X, axis=0), np.sort(np.concatenate(X), axis=0), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
def test_moments_merge_without_over_or_underflow(scale):
    rng = np.random.default_rng(1)
    values, s = scale * (rng.normal(size=300) + 1e4), rng.uniform(0.1, 3.0, 300)
    merged = Moments.of(values[:0], s[:0])
    for i in range(0, 300, 7):
        merged = merged.merge(Moments.of(values[i : i + 7], s[i : i + 7]))
    mean, deviation = mean_and_scale(values, s)
    assert merged.rows == 300
    assert merged.mean == pytest.approx(mean, rel=1e-14)
    assert merged.deviation == pytest.approx(deviation, rel=1e-11)
    assert (merged.least, merged.greatest) == (values.min(), values.max())


def test_many_values_are_counted_by_their_hashes(monkeypatch):
    monkeypatch.setattr(seen, "MOST", 400)
    rng = np.random.default_rng(2)
    texts = pd.Series([f"value {i}" for i in rng.integers(0, 20_000, 60_000)])
    parts = [seen.Different.of(texts[i : i + 7000]) for i in range(0, 60_000, 7000)]
    merged = parts[0]
    for each in parts[1:]:
        merged = merged.merge(each)
    whole = seen.Different.of(texts)
    assert not merged.complete
    assert merged.number == pytest.approx(texts.nunique(), rel=0.15)
    np.testing.assert_array_equal(merged.texts, whole.texts)
    counts = texts.value_counts()
    np.testing.assert_array_equal(merged.counts, counts[merged.texts.tolist()])


@pytest.mark.parametrize("kind", ["normal", "ties", "halves", "weights"])
def test_quantiles_of_parts_are_those_of_all_rows(kind):
    rng = np.random.default_rng(5)
    values = rng.normal(size=501)
    if kind == "ties":
        values = np.round(values)
    if kind == "halves":
        values[:300] = -0.0
    s = rng.integers(1, 5, 501) * 1.0 if kind == "weights" else np.ones(501)

    def quantiles(share, centre):
        away = values if centre is None else np.abs(values - centre)

        def count(digits, beginning):
            return sum(count_next(away[i::3], s[i::3], digits, beginning) for i in range(3))

        return find_quantile(count, share, False), find_quantile(count, share, True)

    assert find_spread(quantiles, lambda: mean_and_scale(values, s)[1]) == median_and_spread(values, s)


def bad(**columns):
    frame, y, _ = mixed()
    return frame[["a", "c"]].assign(**columns), y.fillna(0.0)


def test_what_is_wrong_is_said_with_its_part():
    frame, y = bad()
    frame.loc[120, "c"] = np.inf
    with pytest.raises(DataError, match=r"part 4: column 'c' has 1 infinite value"):
        encode.find_encoding(InProcess(), cut(frame, y, None, CUTS["some"]), Plan())
    frame, y = bad()
    parts = cut(frame, y, None, CUTS["some"])
    parts[2] = parts[2]._replace(table=parts[2].table.rename(columns={"c": "d"}))
    with pytest.raises(DataError, match="parts of the table have other columns: 'd' is in some only and 'c' is"):
        encode.find_encoding(InProcess(), parts, Plan())
    frame, y = bad()
    frame.loc[3, "c"] = np.nan
    with pytest.raises(DataError, match="missing"):
        encode.find_encoding(InProcess(), cut(frame, y, None, CUTS["some"]), Plan(missing="refuse"))
    with pytest.raises(DataError, match="one value only|one class only"):
        encode.find_encoding(InProcess(), cut(frame, y * 0, None, CUTS["some"]), Plan())
    with pytest.raises(DataError, match="the table has 0 rows"):
        encode.find_encoding(InProcess(), cut(frame, y, None, [0, 0, 0]), Plan())


def test_labels_that_are_numbers_in_some_parts_and_text_in_others():
    y = [pd.Series(values * 10, name="y") for values in (["x", "1"], [0, 1], [1.0, 0.0], ["0", "x"])]
    frame, found = pd.DataFrame({"a": np.arange(20.0) ** 2}), []
    parts = [part_rows.Rows(i, frame, each, None) for i, each in enumerate(y)]
    found = encode.find_encoding(InProcess(), parts, Plan())
    assert found.target.labels == ["0", "1", "x"]
    codes = [
        part_rows.Part.of(part, found.columns).encode(found.target, found.encoder)[1].argmax(axis=0)[:2].tolist()
        for part in parts
    ]
    assert codes == [[2, 1], [0, 1], [1, 0], [0, 2]]
    coding = found.coding(2, 0)
    drawn = InProcess().reduce(work.draw, parts, lambda one, other: work.merge_drawn(one, other, 80), coding, 80)
    assert np.bincount(drawn.Y.argmax(axis=0)).tolist() == [30, 30, 20]


def test_infinite_targets_are_named_by_part_and_row():
    frame, y, _ = mixed()
    with pytest.raises(DataError, match=r"part 4: column 'y' has 1 infinite value \(first in row 4\)"):
        encode.find_encoding(InProcess(), cut(frame, y.where(y.index != 94, np.inf), None, CUTS["some"]), Plan())


def test_no_row_is_named_where_it_is_not_known():
    """Of a column in parts there are different values, in no order of the rows."""
    frame, y, _ = mixed()
    frame["marked"] = frame["marked"].where(frame.index != 99, "x")
    message = r"holds numbers but for 1 of 176 rows \(first: 'x'\)"
    with pytest.raises(DataError, match=message):
        encode.find_encoding(InProcess(), cut(frame, y, None, CUTS["some"]), Plan())
    with pytest.raises(DataError, match=r"'level' holds no number \(first: '[uvwo]"):
        encode.find_encoding(InProcess(), cut(frame, y, None, CUTS["some"]), Plan(numeric=("level",), drop=("marked",)))


def test_rows_that_all_weigh_nothing():
    frame, y, weights = mixed()
    with pytest.raises(DataError, match="only 0 rows are left, as the others have weight 0"):
        encode.find_encoding(InProcess(), cut(frame, y, 0.0 * weights, CUTS["some"]), Plan())


def odd():
    """Columns that only all rows together tell: words that may be gaps, periods, row names, and whom rows are of."""
    rng = np.random.default_rng(5)
    months = [f"{2000 + i // 12}-{i % 12 + 1:02d}" for i in range(N)]
    frame = pd.DataFrame({"a": rng.normal(size=N), "month": months})
    frame["word"] = np.where(rng.random(N) < 0.3, "None", rng.choice(["Some", "Much"], N))
    frame["none"] = np.where(rng.random(N) < 0.3, "None", [f"Q{i % 4 + 1} {2000 + i // 4}" for i in range(N)])
    frame["order"] = np.where(rng.random(N) < 0.3, "None", rng.choice(["1", "2"], N))
    frame["gap"] = np.where(rng.random(N) < 0.3, "None", rng.choice(["1", "2", "3"], N))
    frame["element"] = [" Na"] * 20 + ["Mg", "Al"] * (N // 2 - 10)
    frame["patient"] = np.arange(N) // 4 + 100
    frame["x1"] = rng.permutation(N) * 37 + 1000
    frame["pupil"] = [f"p{i // 5}" for i in range(N)]
    frame["rownames"] = rng.permutation(N) / 8
    frame["season"] = [f"{1990 + i // 9}-{(91 + i // 9) % 100:02d}" for i in range(N)]
    return frame, pd.Series(rng.normal(size=N), name="y")


@pytest.mark.parametrize("options", [{}, {"categories": "hamming", "missing": "drop"}])
@pytest.mark.parametrize("bounds", [CUTS["one"], CUTS["some"], list(range(0, N + 1, 4))])
def test_what_only_all_rows_tell_is_told_by_parts(options, bounds):
    frame, y = odd()
    plan = Plan(**options, ordinal={"order": ("None", "1", "2")})
    whole = from_arrays(frame, y, **plan.table)
    pieces = cut(frame, y, None, bounds)
    found = encode.find_encoding(InProcess(), pieces, plan)
    assert_alike(found.encoder.to_json(), whole.encoder.to_json())
    assert found.document == whole.columns
    if not options:
        assert found.notes == whole.notes
    X = np.concatenate(
        [part_rows.Part.of(part, found.columns).encode(found.target, found.encoder)[0] for part in pieces]
    )
    np.testing.assert_allclose(X, whole.X, rtol=0, atol=1e-9)


def words_apart(first, rest):
    """Return parts whose first one has few words in its target besides None, and the table as one."""
    y = [pd.Series(first, name="y", dtype=object), *(pd.Series(each, name="y", dtype=object) for each in rest)]
    frames = [pd.DataFrame({"a": np.arange(len(each)) ** 2.0 + 10 * i}) for i, each in enumerate(y)]
    return [part_rows.Rows(i, *each, None) for i, each in enumerate(zip(frames, y, strict=True))], frames, y


WORDS = {
    "levels": (["None"] * 10, [["Some", "None", "Marked"] * 10, ["Some", "?", "Marked"] * 5]),
    "gaps": (["None", "a1"] * 5, [["1", "2", "None"] * 10, ["3", "0", "?"] * 5, ["None"] * 3]),
    "gaps beside numbers": (["None"] * 10, [[str(x) for x in np.arange(30) / 7], ["1.5", "None"]]),
}


@pytest.mark.parametrize("case", WORDS)
def test_whether_a_word_is_a_gap_of_the_target_is_decided_once_for_all_parts(case):
    parts, frames, y = words_apart(*WORDS[case])
    whole = from_arrays(pd.concat(frames, ignore_index=True), pd.concat(y, ignore_index=True), standardize=True)
    found = encode.find_encoding(InProcess(), parts, Plan())
    assert found.target.labels == whole.labels
    each = [part_rows.Part.of(part, found.columns).encode(found.target, found.encoder) for part in parts]
    np.testing.assert_allclose(np.hstack([Y for _, Y in each]), whole.Y, atol=1e-12)
    np.testing.assert_allclose(np.vstack([X for X, _ in each]), whole.X, atol=1e-12)


def test_more_rows_have_the_words_of_the_model():
    """A few new rows don't tell whether None is a class; the model does."""
    _, frames, y = words_apart(*WORDS["levels"])
    whole = from_arrays(pd.concat(frames, ignore_index=True), pd.concat(y, ignore_index=True), standardize=True)
    more = encode_more(frames[0], y[0], whole.encoder, whole.labels, whole.output_shift, whole.output_scale)
    assert more.left_out == 0
    assert (more.Y.argmax(axis=0) == whole.labels.index("None")).all()
    _, frames, y = words_apart(*WORDS["gaps beside numbers"])
    whole = from_arrays(pd.concat(frames, ignore_index=True), pd.concat(y, ignore_index=True), standardize=True)
    new = pd.Series(["None", "1.5", "None"])
    more = encode_more(frames[1][:3], new, whole.encoder, None, whole.output_shift, whole.output_scale)
    assert more.left_out == 2
