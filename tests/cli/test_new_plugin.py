"""Packages of one's own part: each passes its checks as it is written, and takes the place of nothing."""

import importlib
import sys
import tomllib
from pathlib import Path
from unittest import SkipTest

import pytest

from commandline import run
from kernsel import registry
from kernsel.cli.new_plugin import KINDS, package_of
from kernsel.errors import OptionError

NAME = "made-by-a-test"
MODULE = "kernsel_made_by_a_test"


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Return what imports the module and the tests of a package that is written here."""
    monkeypatch.chdir(tmp_path)

    def load(kind):
        done = run("new-plugin", kind, NAME)
        assert "install and check it" in done.stdout
        monkeypatch.syspath_prepend(tmp_path / f"kernsel-{NAME}")
        monkeypatch.syspath_prepend(tmp_path / f"kernsel-{NAME}" / "tests")
        importlib.invalidate_caches()
        return importlib.import_module(MODULE), importlib.import_module(f"test_{MODULE}")

    yield load
    for name in (MODULE, f"test_{MODULE}"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_package_passes_its_checks(kind, imported):
    module, tests = imported(kind)
    (_, checks), *_ = (mark.args for mark in tests.test_kit.pytestmark if mark.name == "parametrize")
    passed = 0
    for check in checks:
        try:
            tests.test_kit(getattr(check, "values", (check,))[0])
            passed += 1
        except (SkipTest, pytest.skip.Exception):
            pass
    assert passed >= 3
    assert module.kernsel_protocol == registry.PROTOCOL
    written = tomllib.loads(Path(f"kernsel-{NAME}/pyproject.toml").read_text())
    assert written["project"]["entry-points"] == {registry.GROUPS[kind]: {NAME: f"{MODULE}:MadeByATest"}}
    assert f"kernsel plugins {NAME}" in Path(f"kernsel-{NAME}/README.md").read_text()


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        ("kernl", NAME, "did you mean 'kernel'?"),
        ("part", NAME, "it is kernel, learner"),
        ("kernel", "My_kernel", "take up to 60 small letters"),
        ("kernel", "a" * 61, "take up to 60 small letters"),
        ("kernel", "gaussian", "there is a kernel called 'gaussian' already"),
        ("kernel", "sum", "has a meaning of its own"),
        ("kernel", "auto", "has a meaning of its own"),
        ("learner", "auto", "has a meaning of its own"),
        ("criterion", "dataclass", None),  # the class is Dataclass
        ("criterion", "newton-cv", "already"),
        ("learner", "learner", "means something else"),
        ("learner", "none", "has a meaning of its own"),
        ("learner", "histograms-of-tests", None),
    ],
)
def test_names_that_a_part_cant_have_are_refused(kind, name, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if told is None:
        assert f"kernsel_{name.replace('-', '_')}.py" in package_of(kind, name)
    else:
        assert told in run("new-plugin", kind, name, code=2).stderr
        assert not list(tmp_path.iterdir())


def test_a_name_of_a_module_that_is_there_is_refused(tmp_path, monkeypatch):
    (tmp_path / f"{MODULE}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OptionError, match="there is a module"):
        package_of("kernel", NAME)


def test_what_is_there_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(f"kernsel-{NAME}").write_text("mine")
    assert f"kernsel-{NAME} exists" in run("new-plugin", "kernel", NAME, code=2).stderr
    assert Path(f"kernsel-{NAME}").read_text() == "mine"


def test_a_package_that_cant_be_finished_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def full(path, text, encoding):
        if path.name.startswith("test_"):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert "No space left on device" in run("new-plugin", "kernel", NAME, code=2).stderr
    assert not list(tmp_path.iterdir())
