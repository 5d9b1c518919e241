"""Numbers with a sign beside them are read without it, and the model knows which one it was."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from commandline import run
from kernsel import KernelRegressor
from kernsel.data import from_arrays, part_rows, prepare, read_table
from kernsel.data.encoding import Encoder
from kernsel.data.more import encode_more
from kernsel.data.signs import SIGNS_READ
from kernsel.errors import DataError
from kernsel.model.model import load
from kernsel.selection.drivers import InProcess
from kernsel.selection.parts import encode
from kernsel.selection.plan import Plan

N = 40
QUICK = (
    *("--learner", "krr", "--kernel", "gaussian", "--criterion", "cv", "--grid", "tau=4", "--grid", "lambda=0.01"),
    *("--folds", "3", "--verify", "0", "--no-extend", "--rank", "20"),
)
WRITTEN = {"%": "{}%", "$": "${}", "€": "{} €"}


def table(p="bare", y="bare"):
    """A number p, a word and a target y, with signs beside the numbers."""
    rng = np.random.default_rng(0)
    values = rng.uniform(1, 9, N).round(2)
    columns = {"p": values, "word": np.array(["a", "b"])[np.arange(N) % 2], "y": np.sin(values).round(4)}
    for name, sign in (("p", p), ("y", y)):
        if sign != "bare":
            columns[name] = [WRITTEN[sign].format(x) for x in columns[name]]
    return pd.DataFrame(columns)


def from_file(tmp_path, frame):
    """Return a table as it is read from its file: numbers, and what stood beside them."""
    frame.to_csv(tmp_path / "t.csv", index=False)
    return read_table(tmp_path / "t.csv")


AT_ODDS = {
    (
        "%",
        "bare",
    ): r"'p' holds bare numbers \(first: .*\), where the model was selected on per cent; write % beside each",
    ("bare", "%"): r"'p' holds per cent \(first: .*%\), where the model was selected on bare numbers; write them as",
    ("%", "$"): r"'p' holds numbers with \$ \(first: .*\), where the model was selected on numbers with %; convert",
    ("$", "%"): "'p' holds numbers with %",
    ("$", "€"): r"'p' holds numbers with € .*, where the model was selected on numbers with \$; convert them",
}
FINE = (("%", "%"), ("$", "$"), ("$", "bare"), ("bare", "€"), ("bare", "bare"))


@pytest.mark.parametrize(("learnt", "given"), [*AT_ODDS, *FINE])
@pytest.mark.parametrize("reading", [from_file, lambda _, frame: frame], ids=["file", "frame"])
def test_new_rows_must_have_the_signs_of_the_model_where_these_tell(tmp_path, learnt, given, reading):
    dataset = prepare(reading(tmp_path, table(learnt)))
    assert dataset.encoder.signs == ({} if learnt == "bare" else {"p": learnt})
    np.testing.assert_array_equal(dataset.X, prepare(table()).X)
    kept = Encoder.from_json(json.loads(json.dumps(dataset.encoder.to_json())))
    for rows in (table(given), from_file(tmp_path, table(given)), table(given)[3:4]):
        if (learnt, given) in AT_ODDS:
            with pytest.raises(DataError, match=AT_ODDS[learnt, given]):
                kept.transform(rows)
        else:
            kept.transform(rows)


@pytest.mark.parametrize(("learnt", "given"), [("$", "€"), ("bare", "%"), ("%", "bare"), ("$", "bare"), ("%", "%")])
def test_new_targets_must_have_the_sign_of_the_model(tmp_path, learnt, given):
    dataset = prepare(from_file(tmp_path, table(y=learnt)), "y")
    for rows in (table(y=given), from_file(tmp_path, table(y=given))):
        told = rows.drop(columns="y"), rows["y"], dataset.encoder, None, dataset.output_shift, dataset.output_scale
        if (learnt, given) == ("$", "bare") or learnt == given:
            np.testing.assert_allclose(encode_more(*told).Y, dataset.Y)
        else:
            with pytest.raises(DataError, match="'y' holds"):
                encode_more(*told)


def test_gaps_have_no_sign_and_arrays_are_bare(tmp_path):
    encoder = prepare(table("%").drop(columns="word")).encoder
    assert encoder.transform(pd.DataFrame({"p": [np.nan, np.nan]})).shape == (2, 1)
    assert encoder.transform(np.full((2, 1), np.nan)).shape == (2, 1)
    assert encoder.transform(pd.DataFrame({"p": ["?", "4.5 %"]})).shape == (2, 1)
    with pytest.raises(DataError, match="'p' holds bare numbers"):
        encoder.transform(np.ones((2, 1)))
    with pytest.raises(DataError, match="'p' holds bare numbers"):
        encoder.transform(csr_array(np.ones((2, 1))))
    prepare(table("$").drop(columns="word")).encoder.transform(np.ones((2, 1)))
    with pytest.raises(DataError, match="'p' holds bare numbers"):
        encoder.transform(table().drop(columns="word"))


def test_a_model_of_before_signs_were_kept_takes_all_of_them(tmp_path):
    encoder = prepare(from_file(tmp_path, table("%"))).encoder
    document = encoder.to_json()
    del document["signs"]
    old = Encoder.from_json(document)
    assert old.signs is None
    assert old.to_json()["signs"] is None
    np.testing.assert_array_equal(old.transform(table()), encoder.transform(table("%")))


@pytest.mark.parametrize("text", ["1,5%", "1.096,50 %", "1,096 %"])
def test_what_a_comma_means_beside_a_sign_is_not_guessed(text):
    values = [text, *["2%"] * (N - 1)]
    with pytest.raises(DataError, match="'p' holds what looks like numbers"):
        prepare(table().assign(p=values))


def test_money_with_separators_of_thousands_is_read_in_frames():
    values = [f"${1000 + 1.25 * i:,.2f}" for i in range(N)]
    dataset = prepare(table().assign(p=values))
    np.testing.assert_array_equal(dataset.X, prepare(table().assign(p=1000 + 1.25 * np.arange(N))).X)
    assert dataset.encoder.signs == {"p": "$"}
    by_hand = from_arrays(table().assign(p=values)[["p"]], table()["y"], numeric=("p",))
    assert by_hand.encoder.signs == {"p": "$"}
    assert by_hand.X[4, 0] == 1005.0


def parts(*signs):
    """Return rows in parts, as they are read from files with these signs."""
    frames = [table().drop(columns="y") for sign in signs]
    for frame, sign in zip(frames, signs, strict=True):
        frame.attrs[SIGNS_READ] = {} if sign == "bare" else {"p": sign}
    return [part_rows.Rows(i, frame, table()["y"], None) for i, frame in enumerate(frames)]


def find(rows):
    return encode.find_encoding(InProcess(), rows, Plan()).encoder


def test_parts_have_one_sign():
    for signs in (("%", "%"), ("$", "bare", "$"), ("bare", "$")):
        assert find(parts(*signs)).signs == {"p": "$" if "$" in signs else "%"}
    gaps = parts("%", "bare")
    gaps[1] = gaps[1]._replace(table=gaps[1].table.assign(p=np.nan))
    assert find(gaps).signs == {"p": "%"}
    with pytest.raises(
        DataError, match="'p' has % beside its numbers in some parts of the table and nothing in others"
    ):
        find(parts("%", "bare"))
    with pytest.raises(DataError, match=r"'p' has \$ beside its numbers in some parts of the table and € in others"):
        find(parts("$", "€"))
    written = [each._replace(table=table("%").drop(columns="y")) for each in parts("%", "%")]
    assert find(written).signs == {"p": "%"}
    with pytest.raises(DataError, match="write % beside all numbers or beside none"):
        find([written[0], parts("bare", "bare")[1]])


def test_files_of_one_table_have_one_sign(tmp_path):
    for number, sign in enumerate(("%", "bare", "%")):
        table(sign).to_csv(tmp_path / f"{number}.csv", index=False)
    table().assign(p=np.nan).to_csv(tmp_path / "3.csv", index=False)
    joined = read_table([tmp_path / f"{number}.csv" for number in (3, 0, 2)])
    assert joined.attrs[SIGNS_READ] == {"p": "%"}
    with pytest.raises(DataError, match="'p' has % beside its numbers in some files and nothing in others; make them"):
        read_table([tmp_path / "0.csv", tmp_path / "1.csv"])


def test_estimators_keep_signs():
    frame = table("%")
    X, y = frame.drop(columns="y"), frame["y"]
    model = KernelRegressor(kernel="gaussian", grid={"tau": [4.0], "lambda": [0.01]}, folds=3, verify=0).fit(X, y)
    assert model.predict(X[:3]).shape == (3,)
    with pytest.raises(DataError, match="'p' holds bare numbers"):
        model.predict(table().drop(columns="y"))


def test_predict_and_update_refuse_other_signs(tmp_path):
    names = {}
    for name, frame in {
        "learnt": table("%", "$"),
        "bare": table(y="$"),
        "money": table("%"),
        "euros": table("%", "€"),
    }.items():
        names[name] = tmp_path / f"{name}.csv"
        frame.to_csv(names[name], index=False)
    model, more = tmp_path / "m.npz", tmp_path / "n.npz"
    run("select", names["learnt"], *QUICK, "--model", model)
    assert load(model).encoder.signs == {"y": "$", "p": "%"}
    for name in ("learnt", "money", "euros"):
        run("predict", model, names[name])
    assert "'p' holds bare numbers" in run("predict", model, names["bare"], code=2).stderr
    run("update", model, names["money"], "--output", more)
    assert load(more).encoder.signs == {"y": "$", "p": "%"}
    assert "'y' holds numbers with €" in run("update", model, names["euros"], "--output", more, code=2).stderr
    assert "'p' holds bare numbers" in run("update", model, names["bare"], "--output", more, code=2).stderr
    fitted = load(model)
    replace(fitted, encoder=replace(fitted.encoder, signs={"p": "q"})).save(more)
    assert "unknown sign" in run("predict", more, names["learnt"], code=2).stderr
