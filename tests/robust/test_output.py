"""Output that can't be written, or would destroy something: one line, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import kernsel
from commandline import run
from kernsel.data.files import atomic_write, check_writable
from kernsel.errors import OptionError

FULL = "/dev/full"
needs_full = pytest.mark.skipif(not os.path.exists(FULL), reason="no device that is always full")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    path = tmp_path_factory.mktemp("t") / "t.csv"
    pd.DataFrame(X, columns=["a", "b"]).assign(y=X[:, 0]).to_csv(path, index=False)
    return path


def select(table, *options, code=0):
    return run("select", table, "--kernel", "gaussian(tau=2)", "--no-extend", "--quiet", *options, code=code)


@needs_full
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_full_disk_is_an_error(table, options):
    command = [sys.executable, "-m", "kernsel", "select", table, "--kernel", "gaussian(tau=2)", "--quiet", *options]
    with open(FULL, "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("kernsel: error: the output can't be written (No space left on device)")
    assert done.stderr.count("\n") == 1


@needs_full
def test_a_result_that_cannot_be_saved_is_shown(table, tmp_path):
    done = select(table, "--json", "--output", FULL, "--model", tmp_path / "m.npz", code=2)
    assert json.loads(done.stdout)["format"] == "kernsel-selection"
    assert "can't write /dev/full: No space left on device" in done.stderr
    kernsel.load(tmp_path / "m.npz")  # the other file is written
    done = select(table, "--output", tmp_path / "r.json", "--model", FULL, code=2)
    assert "selected: krr" in done.stdout
    assert json.loads((tmp_path / "r.json").read_text())["version"] == 1


def test_what_is_no_result_is_not_overwritten(table, tmp_path):
    work = tmp_path / "thesis.tex"
    work.write_text(r"\documentclass{article}")
    for option in ("--output", "--model"):
        assert f"{work} exists and is no result" in select(table, option, work, code=2).stderr
    assert work.read_text().startswith(r"\documentclass")
    model, result, predicted = tmp_path / "m.npz", tmp_path / "r.json", tmp_path / "p.csv"
    for _ in range(2):  # results take the place of older ones
        select(table, "--output", result, "--model", model)
        run("predict", model, table, "--output", predicted)
    assert "is no result" in run("predict", model, table, "--output", work, code=2).stderr
    assert "is no result" in select(table, "--output", model, code=2).stderr
    (tmp_path / "empty").touch()
    select(table, "--output", tmp_path / "empty")


@pytest.mark.parametrize("option", ["--output", "--model"])
@pytest.mark.parametrize("name", ["x" * 256, "é" * 200])
def test_names_that_are_too_long_are_said_before_the_work(table, tmp_path, option, name):
    done = select(table, option, tmp_path / name, code=2)
    assert "File name too long; choose another name" in done.stderr
    assert len(done.stderr) < 600


def test_a_name_that_is_just_not_too_long(tmp_path):
    for name in ("x" * 255, "é" * 127):
        path = check_writable(tmp_path / name)
        atomic_write(path, lambda stream: stream.write(b"it"))
        assert path.read_bytes() == b"it"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_path_with_a_zero():
    with pytest.raises(OptionError, match="null"):
        check_writable("a\0b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only(table, tmp_path):
    tmp_path.chmod(0o500)
    assert "permission denied" in select(table, "--output", tmp_path / "r.json", code=2).stderr


def test_a_cache_that_cannot_be_written_is_one_warning(tmp_path):
    (tmp_path / "file").touch()
    call = (
        "import warnings; from kernsel.numerics.runtime import compiling, jit\n"
        "compiling.cacheable = lambda *_: (_ for _ in ()).throw(RuntimeError('no locator available'))\n"
        "one, two = (jit.jit(jit.f8(jit.f8))(f) for f in (lambda x: x + 1, lambda x: x + 2))\n"
        "print(one(1.0), two(1.0))"
    )
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True)
    assert done.stdout == "2.0 3.0\n"
    assert done.stderr.count("CompilationWarning") == 1
