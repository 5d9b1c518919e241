"""The commands around a selection: what goes to stdout, what to stderr, and the exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import types
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import commandline
from kernsel import __version__
from kernsel.cli import app
from kernsel.cli.arguments import ORDER
from kernsel.data import prepare
from kernsel.errors import SelectionError, SelectionWarning
from kernsel.heldout.calibration import Calibration, Sigmoid
from kernsel.heldout.intervals import Intervals
from kernsel.kernels import Linear
from kernsel.model.model import Model
from kernsel.selection.plan import HEADINGS, WORDS, Plan


def run(*args, code=0):
    result = commandline.run(*args, code=code)
    if code == 2 and result.stderr.startswith("kernsel:"):
        assert result.stdout == ""
    return result


def linear_model(dataset) -> Model:
    return Model(
        kernel=Linear(),
        learner="krr",
        rows=np.eye(dataset.d),
        coefficients=np.linalg.lstsq(dataset.X, dataset.Y.T)[0].T.copy(),
        bias=np.zeros(dataset.k),
        task=dataset.task,
        labels=dataset.labels,
        target=dataset.target,
        encoder=dataset.encoder,
        output_shift=dataset.output_shift,
        output_scale=dataset.output_scale,
    )


@dataclass
class Result:
    model: Any
    data: dict
    options: dict
    warnings: tuple = ("the winner is on the edge",)

    @classmethod
    def of(cls, dataset, plan):
        notes = [*dataset.notes, "a note of the selection"]
        return cls(linear_model(dataset), {"notes": notes}, {name: getattr(plan, name) for name in WORDS})

    def to_json(self):
        options = {name: repr(self.options[name]) for name in WORDS}
        return json.dumps({"format": "kernsel-selection", "options": options})

    def summary(self, notes):
        return "the table of the winner" + "\nand notes" * notes


@pytest.fixture
def fake(monkeypatch):
    """A selection that does no work, to test what surrounds it."""
    module = types.ModuleType("kernsel.selection.carry_out")
    module.action = lambda: None

    def carry_out(dataset, plan, progress):
        module.action()
        return Result.of(dataset, plan)

    module.carry_out = carry_out
    monkeypatch.setitem(sys.modules, "kernsel.selection.carry_out", module)
    from kernsel.numerics.runtime import compiling

    monkeypatch.setattr(compiling, "announce", None)
    return module


@pytest.fixture
def data(tmp_path) -> Path:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50)})
    table["kind"] = np.where(table["a"] + table["b"] > 0, "up", "down")
    path = tmp_path / "data.csv"
    table.to_csv(path, index=False)
    return path


def test_select_prints_the_answer_and_its_notes(fake, data):
    result = run("select", data)
    assert result.stdout == "the table of the winner\nand notes\n"
    assert result.stderr == "kernsel: warning: the winner is on the edge\n"


def test_a_terminal_is_told_what_was_inferred_before_the_search(fake, data, monkeypatch):
    monkeypatch.setattr("kernsel.cli.console.is_watched", lambda: True)
    lines = run("select", data).stderr.splitlines()
    assert lines[0] == f"{data}: 50 rows, 2 features"
    assert "  target: the last column, 'kind' (name another one as the target if that is wrong)" in lines
    assert "  task: classification, because the target holds text (2 distinct)" in lines
    assert "50 rows" not in run("select", data, "--quiet").stderr


def test_quiet_leaves_the_table_and_warnings(fake, data):
    result = run("select", data, "--quiet")
    assert result.stdout == "the table of the winner\n"
    assert result.stderr == "kernsel: warning: the winner is on the edge\n"


def test_the_help_of_a_selection_stands_under_headings():
    shown = run("select", "--help").stdout
    headings = [line.removesuffix(":") for line in shown.splitlines() if re.fullmatch(r"\w.*:", line)]
    assert headings == list(ORDER)
    assert re.search(r"^  DATA  The table", shown, re.MULTILINE)  # without its type in Python
    for name, words in WORDS.items():
        under = shown.split(f"\n{HEADINGS[words.of]}:\n")[1].split("\n\n")[0]
        assert re.search(
            rf"^  {words.metavar.split('/')[0] if words.kind == 'flag' else '--' + name.replace('_', '-')}\b",
            under,
            re.MULTILINE,
        ), name


def test_json_is_all_that_stdout_gets_and_the_file_has_the_same(fake, data, tmp_path):
    result = run("select", data, "--json", "--output", tmp_path / "r.json", "--model", tmp_path / "m.npz")
    assert json.loads(result.stdout)["format"] == "kernsel-selection"
    assert (tmp_path / "r.json").read_text() == result.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "m.npz", "r.json"]


def test_options_reach_the_selection(fake, data):
    def options(*args):
        return json.loads(run("select", data, "--json", *args).stdout)["options"]

    defaults = {name: repr(getattr(Plan, name)) for name in WORDS}
    assert options() == defaults
    given = (
        "--learner krr --kernel gaussian --kernel linear --criterion bif --order inf --folds 5 --grid paper --repeats 3"
    )
    given += " --search grid --refine simplex --budget 30s"
    given += " --relevances br --metric accuracy --metric roc_auc --one-se --calibration isotonic --landmarks uniform"
    assert options(
        *given.split(), *["--verify", "0", "--no-extend", "--pure", "--rank", "0.25", "--seed", "7"]
    ) == defaults | {
        "relevances": "'br'",
        "learner": "'krr'",
        "kernel": "['gaussian', 'linear']",
        "criterion": "'bif'",
        "folds": "5",
        "repeats": "3",
        "search": "'grid'",
        "refine": "'simplex'",
        "budget": "'30s'",
        "grid": "'paper'",
        "verify": "0",
        "extend": "False",
        "pure": "True",
        "metric": "['accuracy', 'roc_auc']",
        "one_se": "True",
        "calibration": "'isotonic'",
        "seed": "7",
        "rank": "0.25",
        "landmarks": "'uniform'",
        "order": "inf",
    }
    assert options("--rank", "full", "--order", "2")["rank"] == "'full'"
    assert options("--rank", "300", "--order", "2")["order"] == "2"
    assert options("--rank", "300")["rank"] == "300"
    assert options("--rank", "tol:0.01:700")["rank"] == "'tol:0.01:700'"
    assert options("--eta", "cv")["eta"] == "'cv'"
    assert options("--eta", "0.5")["eta"] == "0.5"


def test_threads_are_set_for_the_libraries(fake, data, monkeypatch):
    for name in ("NUMBA", "OMP", "OPENBLAS", "MKL"):
        monkeypatch.setenv(f"{name}_NUM_THREADS", "2")
    monkeypatch.setenv("VECLIB_MAXIMUM_THREADS", "2")
    run("select", data, "--threads", "1")
    assert os.environ["NUMBA_NUM_THREADS"] == os.environ["OPENBLAS_NUM_THREADS"] == "1"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--rank", "0"], "--rank 0 is none of"),
        (["--rank", "1.5"], "--rank 1.5 is none of"),
        (["--rank", "nan"], "--rank nan is none of"),
        (["--rank", "much"], "--rank much is none of"),
        (["--order", "0"], "--order 0 is neither"),
        (["--order", "-inf"], "--order -inf is neither"),
        (["--task", "regress"], "unknown task 'regress'"),
        (["--target", "kin"], "has no column 'kin'; did you mean 'kind'?"),
        (["--task", "regression"], "target 'kind' holds text"),
        (["--output", "nowhere/r.json"], "can't write nowhere/r.json: there is no folder nowhere"),
        (["--model", "/"], "can't write /: it is a folder"),
        (["--output", "x", "--model", "x"], "--output and --model are both x"),
    ],
)
def test_errors_are_one_line_and_exit_2(fake, data, args, message, monkeypatch):
    monkeypatch.chdir(data.parent)
    fake.action = lambda: pytest.fail("the work must not start")
    result = run("select", data, *args, code=2)
    assert result.stderr.startswith("kernsel: error: ")
    assert message in result.stderr


def test_the_table_is_never_overwritten(fake, data):
    before = data.read_bytes()
    assert "is the table itself" in run("select", data, "--output", data, code=2).stderr
    assert "is the table itself" in run("select", data, "--model", data, code=2).stderr
    assert data.read_bytes() == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["select", "FILE", "--folds", "1"], "1"),
        (["select", "FILE", "--folds", "x"], "x"),
        (["select", "FILE", "--folds"], "'--folds' requires an argument (kernsel "),
        (["select", "FILE", "--fold"], "No such option: --fold"),
        (["select", "FILE", "--threads", "0"], "'--threads'"),
        (["select", "FILE", "FILE"], "data.csv is given twice; give every file once"),
        (["select", "FILE", "--skip", "-1"], "'--skip'"),
        (["select"], "Missing argument 'DATA' (kernsel select --help says what there is)"),
        (["selct"], "'selct'. Did you mean 'select'? (kernsel --help says what there is)"),
        (["--nothing"], "No such option: --nothing (kernsel --help says what there is)"),
    ],
)
def test_usage_errors_are_one_line_and_exit_2(fake, data, args, message):
    result = CliRunner().invoke(app, [str(data) if arg == "FILE" else arg for arg in args], prog_name="kernsel")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("kernsel: error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


def test_no_command_shows_the_help():
    result = run(code=2)
    assert result.stdout == ""
    assert all(name in result.stderr for name in ("select", "predict", "stability", "relevance", "plugins", "warmup"))


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (SelectionError("no candidate\ncould be scored"), 2, "kernsel: error: no candidate could be scored\n"),
        (KeyboardInterrupt(), 130, "kernsel: interrupted\n"),
        (MemoryError(), 2, "kernsel: error: the memory doesn't suffice; use fewer rows, or a smaller --rank\n"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_whatever_ends_the_work_leaves_nothing_behind(fake, data, tmp_path, error, code, line, monkeypatch):
    def action():
        raise error

    monkeypatch.setattr(os, "dup2", lambda *_: None)
    monkeypatch.setattr("kernsel.cli.console._stdout_number", lambda: 1)
    fake.action = action
    result = run("select", data, "--output", tmp_path / "r.json", "--model", tmp_path / "m.npz", "--quiet", code=code)
    assert result.stderr == line
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_warnings_of_kernsel_are_one_line_each_and_said_once(fake, data):
    def action():
        for _ in range(2):
            warnings.warn("the criterion\nwas overturned", SelectionWarning, stacklevel=1)

    fake.action = action
    assert run("select", data).stderr.splitlines() == [
        "kernsel: warning: the criterion was overturned",
        "kernsel: warning: the winner is on the edge",
    ]


def test_the_first_compilation_is_announced_unless_quiet(fake, data):
    from kernsel.numerics.runtime import compiling

    fake.action = lambda: compiling.announce and compiling.announce("compiling ...")
    assert "kernsel: compiling ...\n" in run("select", data, "--json").stderr
    assert "compiling" not in run("select", data, "--quiet").stderr


@pytest.fixture
def model(data, tmp_path) -> Path:
    path = tmp_path / "m.npz"
    linear_model(prepare(pd.read_csv(data))).save(path)
    return path


def test_predict_finds_columns_by_name_in_any_order(data, model, tmp_path):
    straight = run("predict", model, data)
    lines = straight.stdout.splitlines()
    assert lines[0] == "prediction"
    assert set(lines[1:]) == {"up", "down"}
    assert len(lines) == 51
    table = pd.read_csv(data)
    table[["b", "a"]].to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", model, tmp_path / "new.csv").stdout == straight.stdout
    run("predict", model, tmp_path / "new.csv", "--output", tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == straight.stdout
    decisions = run("predict", model, data, "--decision").stdout.splitlines()
    assert decisions[0] == "prediction,decision"
    assert all((float(line.split(",")[1]) >= 0) == line.startswith("up") for line in decisions[1:])


def test_predict_refuses_what_it_cannot_use(data, model, tmp_path):
    table = pd.read_csv(data)
    table.rename(columns={"a": "A"}).to_csv(tmp_path / "new.csv", index=False)
    assert "it lacks 'a'; it has besides 'A'" in run("predict", model, tmp_path / "new.csv", code=2).stderr
    assert "isn't a model" in run("predict", data, data, code=2).stderr
    assert "there is no file" in run("predict", tmp_path / "n.npz", data, code=2).stderr
    assert "which is read" in run("predict", model, data, "--output", data, code=2).stderr
    assert "which is read" in run("predict", model, data, "--output", model, code=2).stderr


def test_decision_is_for_classes(tmp_path):
    table = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20) / 3})
    table.to_csv(tmp_path / "t.csv", index=False)
    linear_model(prepare(table)).save(tmp_path / "m.npz")
    error = run("predict", tmp_path / "m.npz", tmp_path / "t.csv", "--decision", code=2).stderr
    assert "--decision is for classes" in error
    predicted = np.array(run("predict", tmp_path / "m.npz", tmp_path / "t.csv").stdout.split()[1:], dtype=float)
    np.testing.assert_allclose(predicted, table["b"], atol=1e-12)


def test_several_classes_have_a_decision_each(tmp_path):
    table = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30) % 7, "y": np.array(list("xyz"))[np.arange(30) % 3]})
    table.to_csv(tmp_path / "t.csv", index=False)
    linear_model(prepare(table)).save(tmp_path / "m.npz")
    lines = run("predict", tmp_path / "m.npz", tmp_path / "t.csv", "--decision").stdout.splitlines()
    assert lines[0] == "prediction,decision x,decision y,decision z"
    error = run("predict", tmp_path / "m.npz", tmp_path / "t.csv", "--proba", code=2).stderr
    assert "made without a calibration" in error


def test_probabilities_of_the_classes(tmp_path):
    table = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30) % 7, "y": np.array(list("xyz"))[np.arange(30) % 3]})
    table.to_csv(tmp_path / "t.csv", index=False)
    calibration = Calibration("sigmoid", (Sigmoid(2.0, 0.1), Sigmoid(1.0, 0.0), Sigmoid(3.0, -1.0)))
    fitted = replace(linear_model(prepare(table)), calibration=calibration)
    fitted.save(tmp_path / "m.npz")
    run("predict", tmp_path / "m.npz", tmp_path / "t.csv", "--proba", "--decision", "--output", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    assert list(found)[4:] == ["probability x", "probability y", "probability z"]
    np.testing.assert_allclose(found.iloc[:, 4:], fitted.predict_proba(table), rtol=1e-12)
    error = run("predict", tmp_path / "m.npz", tmp_path / "t.csv", "--interval", "0.9", code=2).stderr
    assert "--interval is for a regression" in error


def test_intervals_of_a_regression(tmp_path):
    table = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20) / 3})
    table.to_csv(tmp_path / "t.csv", index=False)
    plain = linear_model(prepare(table))
    residuals = np.linspace(0.1, 1.0, 20)[None]
    ends = Intervals(
        np.stack([plain.coefficients] * 2), np.zeros((2, 1)), residuals, np.array([0, 10, 20]), np.ones(20)
    )
    fitted = replace(plain, intervals=ends)
    fitted.save(tmp_path / "m.npz")
    run("predict", tmp_path / "m.npz", tmp_path / "t.csv", "--interval", "0.9", "--output", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    assert list(found) == ["prediction", "lower", "upper"]
    np.testing.assert_allclose(found[["lower", "upper"]], fitted.predict_interval(table, 0.9), rtol=1e-9, atol=1e-9)
    several = pd.DataFrame({"a": table["a"], "b": table["b"], "c": table["a"] ** 2})
    pair = prepare(several, ["b", "c"])
    ends = Intervals(np.ones((2, 2, 1)), np.zeros((2, 2)), residuals[[0, 0]], np.array([0, 10, 20]), np.ones(20))
    replace(linear_model(pair), intervals=ends).save(tmp_path / "pair.npz")
    run("predict", tmp_path / "pair.npz", tmp_path / "t.csv", "--interval", "0.9", "--output", tmp_path / "q.csv")
    assert list(pd.read_csv(tmp_path / "q.csv")) == [
        *("prediction b", "prediction c", "lower b", "upper b", "lower c", "upper c")
    ]
    half = residuals[0, 18] * table["b"].std(ddof=0)  # the ceil(0.9 * 21) = 19th smallest
    np.testing.assert_allclose(found["upper"], found["prediction"] + half)
    arguments = ("predict", tmp_path / "m.npz", tmp_path / "t.csv")
    assert "must lie between 0 and 1, not 90.0" in run(*arguments, "--interval", "90", code=2).stderr
    assert "--proba is for classes" in run(*arguments, "--proba", code=2).stderr
    plain.save(tmp_path / "m.npz")
    assert "has no prediction intervals" in run(*arguments, "--interval", "0.9", code=2).stderr


@pytest.mark.parametrize(
    ("name", "shape", "target"),
    [
        ("breast-cancer", (569, 31), {"benign", "malignant"}),
        ("wine", (178, 14), {"class_0", "class_1", "class_2"}),
        ("digits", (1797, 65), set(range(10))),
        ("diabetes", (442, 11), None),
    ],
)
def test_examples_are_written_and_read_back(tmp_path, name, shape, target):
    path = tmp_path / "t.csv"
    assert f"{shape[0]} rows, {shape[1] - 1} features, target 'target'" in run("example", name, path).stdout
    table = pd.read_csv(path)
    assert table.shape == shape
    assert table.columns[-1] == "target"
    assert target is None or set(table["target"]) == target
    assert prepare(table).task == ("regression" if target is None else "classification")
    assert "exists; choose another name, or overwrite it by --force" in run("example", name, path, code=2).stderr
    run("example", name, path, "--force")


def test_an_unknown_example(tmp_path):
    assert "no example 'iris'; there are breast-cancer" in run("example", "iris", tmp_path / "t.csv", code=2).stderr


def test_every_part_says_what_it_is_and_every_criterion_where_it_is_from():
    described = json.loads(run("plugins", "--describe", "--json").stdout)["plugins"]
    assert all(row["about"]["what"] for row in described)
    criteria = [row for row in described if row["kind"] == "criterion" and row["distribution"] == "kernsel"]
    assert len(criteria) > 4
    assert all(row["about"].keys() >= {"reference", "cost"} for row in criteria)
    lines = run("plugins", "--describe").stdout.splitlines()
    assert max(map(len, lines)) <= 110
    assert "criterion bif" in lines


def test_plugins_are_listed():
    listed = json.loads(run("plugins", "--json").stdout)["plugins"]
    gaussian = next(row for row in listed if row["name"] == "gaussian")
    assert (gaussian["kind"], gaussian["builtin"], gaussian["state"]) == ("kernel", True, "ok")
    lines = run("plugins").stdout.splitlines()
    assert len(lines) == len(listed) + 1


def test_a_broken_part_is_named_and_exits_1(monkeypatch):
    from kernsel import registry

    monkeypatch.setattr(
        registry, "find_fault", lambda claim: "kernel 'linear' can't be imported" if claim.name == "linear" else None
    )
    result = run("plugins", "--check", code=1)
    assert result.stderr == "kernsel: warning: kernel 'linear' can't be imported\n"
    assert any(line.split()[1:3] == ["linear", "broken"] for line in result.stdout.splitlines())


def test_version():
    assert run("--version").stdout == f"kernsel {__version__}\n"


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["select", "--help"]])
def test_help_imports_nothing_numerical(args):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "kernsel", *args], capture_output=True, text=True, check=True
    )
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "kernsel" in imported
    assert not imported & {"numpy", "scipy", "numba", "sklearn", "pandas", "rich"}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
@pytest.mark.parametrize("args", [["plugins"], ["--help"], ["select", "--help"], ["--version"]])
def test_an_output_that_is_full_is_one_line(args):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "kernsel", *args], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("kernsel: error: the output can't be written (No space left on device)")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="a pipe of the shell")
def test_a_closed_pipe_ends_in_silence(tmp_path):
    path = tmp_path / "t.csv"
    table = pd.DataFrame({"a": np.arange(30000.0), "b": np.arange(30000) / 3})
    table.to_csv(path, index=False)
    linear_model(prepare(table)).save(tmp_path / "m.npz")
    done = subprocess.run(
        f"'{sys.executable}' -m kernsel predict m.npz t.csv | head -n 1", shell=True, cwd=tmp_path, capture_output=True
    )
    assert (done.stdout, done.stderr) == (b"prediction\n", b"")
