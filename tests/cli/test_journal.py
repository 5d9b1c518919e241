"""Where a run stands, and the same run again."""

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from commandline import run
from kernsel.cli.reading import JournalPlace, journaled, place_journal
from kernsel.data import prepare, read_table
from kernsel.journal import LONG, journaling, remember
from kernsel.journal.file import line_of
from kernsel.journal.past import read_run
from kernsel.model.model import Model
from kernsel.selection import again

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

OPTIONS = [
    "--kernel",
    "gaussian",
    "--kernel",
    "linear",
    "--folds",
    "3",
    "--grid",
    "tau=0.5,2",
    "--grid",
    "lambda=0.01,0.1",
]
OPTIONS += ["--no-extend", "--quiet"]


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(40, 2))
    rows = np.column_stack([X, X[:, 0] - X[:, 1] ** 2, np.arange(40) % 4])
    (tmp_path / "t.csv").write_text("a,b,y,f\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return tmp_path / "t.csv"


@pytest.fixture
def kept(table):
    """The journal of a run that has ended."""
    run("select", "t.csv", "--target", "y", "--drop", "f", *OPTIONS, "--journal", "j", "--output", "r.json")
    return table.parent / "j"


def test_it_says_where_a_run_stands(kept):
    shown = run("journal", kept).stdout
    assert "kernsel select of t.csv: 40 rows, 2 features, target 'y', regression\n" in shown
    assert "\n  ended 20" in shown
    assert "\n  6 candidates scored; steps: 3 scored" in shown
    assert "\n  lowest score before verification: krr on gaussian(tau=" in shown
    document = json.loads(run("journal", kept, "--json").stdout)
    assert (document["state"], document["candidates"], document["damaged"]) == ("ended", 6, 0)
    assert document["begun"][0]["process"] == os.getpid()


def test_it_tells_a_run_that_is_stopped_from_one_that_runs(kept):
    lines = kept.read_bytes().splitlines(keepends=True)
    header = json.loads(lines[0][9:])
    kept.write_bytes(b"".join(lines[:-1]))
    shown = run("journal", kept).stdout
    assert f"stopped: process {os.getpid()} on " in shown
    assert "is at it no longer; the same command goes on from here" in shown
    seen = []
    with journaling(kept, lambda: header):
        seen.append(read_run(kept).state)
    kept.write_bytes(kept.read_bytes() + b"torn by the run that writes it")
    found = read_run(kept)
    assert (seen, found.state, found.damaged, len(found.begun)) == (["running"], "ended", 0, 2)
    assert "1 times gone on with" in found.summary()


def test_who_looks_is_in_nobodys_way(kept):
    """A look takes the lock for a moment; a run that begins then waits for it."""
    header = json.loads(kept.read_bytes().splitlines()[0][9:])
    ended = threading.Event()

    def look():
        while not ended.is_set():
            read_run(kept)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(20):
            with journaling(kept, lambda: header):
                pass
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize(
    ("content", "pattern"),
    [(b"", "is empty"), (b"a,b\n1,2\n", "is no journal"), (line_of({"format": "kernsel-journal"}), "is no journal")],
)
def test_what_is_no_journal(tmp_path, content, pattern):
    (tmp_path / "f").write_bytes(content)
    assert pattern in run("journal", tmp_path / "f", code=2).stderr
    assert "no file" in run("journal", tmp_path, code=2).stderr
    assert "can't read" in run("journal", tmp_path / "none", code=2).stderr


def test_optuna_reads_the_candidates(kept):
    optuna = pytest.importorskip("optuna")
    run("journal", kept, "--optuna", "o.log")
    run("journal", kept, "--optuna", "o.log")  # one that is there may be replaced
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("o.log"))
    study = optuna.load_study(study_name="kernsel select t.csv", storage=storage)
    document = json.loads((kept.parent / "r.json").read_text())
    assert sorted(trial.value for trial in study.trials) == sorted(each["score"] for each in document["candidates"])
    best = min(document["candidates"], key=lambda each: each["score"])
    expected = {"kernel": "gaussian", "learner": "krr", "lambda": best["lambda"], **best["parameters"]}
    assert study.best_params == expected
    assert {trial.params["kernel"] for trial in study.trials} == {"gaussian", "linear"}


def test_the_file_for_optuna_overwrites_nothing_else(kept, table):
    assert "is no result" in run("journal", kept, "--optuna", table, code=2).stderr
    assert "is the journal itself" in run("journal", kept, "--optuna", kept, code=2).stderr


def test_the_journal_of_a_long_run_is_beside_its_output(table):
    data, output = [table], Path("r.json")
    assert place_journal(None, data, output, {}) == JournalPlace(Path("r.journal"), LONG, keep=False)
    assert place_journal("j", data, output, {}) == JournalPlace(Path("j"), 0.0, keep=True)
    for asked, at, others in (
        ("none", output, {}),
        (None, None, {}),
        (None, output, {"--model": Path("r.journal")}),
        (None, Path("nowhere") / "r.json", {}),
    ):
        assert place_journal(asked, data, at, others) == JournalPlace(None)


def test_the_journal_of_a_long_run_is_there_until_all_is_written(table):
    dataset = prepare(read_table(table), "y")
    for delay, is_there in ((LONG, False), (0.0, True)):
        with journaled(JournalPlace(Path("r.journal"), delay, keep=False), "kernsel select", dataset, {}, True):
            assert remember("step", (), lambda: 1) == 1
            assert Path("r.journal").exists() == is_there
        assert not Path("r.journal").exists()


def test_a_journal_is_none_of_the_other_files(table):
    for option in ("--output", "--model"):
        assert "choose two files" in run("select", "t.csv", option, "j", "--journal", "j", code=2).stderr
    assert "is the table itself" in run("select", "t.csv", "--journal", "t.csv", code=2).stderr


def test_other_options_are_said_in_one_line(kept):
    said = run(
        "select", "t.csv", "--target", "y", "--drop", "f", *OPTIONS, "--seed", "1", "--journal", "j", code=2
    ).stderr
    assert "of a run with other options (seed: 0, now 1); give what it was begun with, remove it, or choose" in said


def test_a_run_that_goes_on_says_so(kept):
    options = [each for each in OPTIONS if each != "--quiet"]
    again = run("select", "t.csv", "--target", "y", "--drop", "f", *options, "--journal", "j")
    assert "kernsel: going on from j: " in again.stderr


def test_the_same_again_is_the_same(kept):
    assert run("rerun", "r.json", "--quiet").stdout == "the same: all figures are equal to the last bit\n"


@pytest.mark.parametrize(
    "options",
    [
        ["--fold-column", "f"],
        ["--folds", "3", "--weights", "f", "--order", "inf", "--criterion", "bif"],
        ["--folds", "2", "--nested", "2", "--groups", "f"],
    ],
)
def test_the_same_again_with_roles_of_columns_and_a_table_elsewhere(table, options):
    run("select", "t.csv", "--target", "y", "--kernel", "gaussian", *options, "--output", "r.json")
    table.rename("elsewhere.csv")
    assert "the same" in run("rerun", "r.json", "elsewhere.csv", "--quiet").stdout
    assert "t.csv" in run("rerun", "r.json", code=2).stderr


def test_what_differs_is_said(kept, table):
    document = json.loads((kept.parent / "r.json").read_text())
    document["best"]["error"] *= 1.5
    document["environment"]["numpy"] = "0"
    (kept.parent / "other.json").write_text(json.dumps(document))
    shown = run("rerun", "other.json", "--quiet", code=1).stdout
    assert (
        "1 value differs; the choice is the same, and numbers differ by 0.3 of their size at most\n  best.error: "
        in shown
    )
    assert "made with other software: numpy 0, now " in shown
    found = json.loads(run("rerun", "other.json", "--json", code=1).stdout)
    assert (found["same"], [each["where"] for each in found["differences"]]) == (False, ["best.error"])
    table.write_text(table.read_text().replace("0.", "1.", 1))
    assert "the data are others than those of r.json" in run("rerun", "r.json", "--quiet", code=1).stdout
    assert json.loads(run("rerun", "r.json", "--json", code=1).stdout)["same"] is False


def test_what_cannot_be_repeated(tmp_path, kept):
    document = json.loads((kept.parent / "r.json").read_text())

    def refused(change):
        made = json.loads(json.dumps(document))
        change(made)
        (tmp_path / "d.json").write_text(json.dumps(made))
        return run("rerun", tmp_path / "d.json", code=2).stderr

    assert "option kernel was a function of Python" in refused(
        lambda d: d["options"]["asked"].update(kernel={again.UNKNOWN: "function"})
    )
    assert "didn't keep the options" in refused(lambda d: d["options"].pop("asked"))
    assert "doesn't say where its table is" in refused(lambda d: d["options"].pop("read"))
    assert "isn't a result" in refused(lambda d: d.pop("options"))
    assert "can't read" in run("rerun", tmp_path / "none.json", code=2).stderr


def test_documents_are_compared_by_value():
    before = {"a": [1, 2.0, None], "b": {"c": True}, "timing": 1}
    assert list(again.differences(before, {**before, "timing": 2})) == []
    found = list(again.differences(before, {"a": [1, 3.0, None], "b": {"c": 1}, "new": 0}))
    assert [each.where for each in found] == ["a.1", "b.c", "new"]
    assert found[0].relative == pytest.approx(1 / 3)
    assert found[1].relative == np.inf


def test_a_stop_while_files_are_written_says_what_is_there(table, monkeypatch):
    def stopped(self, path):
        raise KeyboardInterrupt

    monkeypatch.setattr(Model, "save", stopped)
    done = run(
        "select", "t.csv", "--target", "y", "--drop", "f", *OPTIONS, "--output", "r.json", "--model", "m", code=130
    )
    assert done.stderr == "kernsel: interrupted; the choice is made, and 1 of 2 files are written\n"
    assert json.loads((table.parent / "r.json").read_text())["best"]
