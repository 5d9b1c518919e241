"""What parts say of themselves: built-in ones all there is to know, with an example that runs; plugins by rules."""

import dataclasses
import warnings
from dataclasses import dataclass
from typing import ClassVar

import pytest

from commandline import commands, run
from kernsel import registry
from kernsel.criteria import NewtonCV
from kernsel.errors import SelectionWarning
from kernsel.report.explanation import WIDTH, explain

BUILT_IN = [claim for claim in registry.claims() if claim.builtin and claim.kind != "format"]  # files say little


@pytest.fixture(params=BUILT_IN, ids=lambda claim: claim.name)
def claim(request):
    return request.param


def test_a_built_in_part_is_explained_completely(claim):
    about = explain(claim.kind, registry.get(claim.kind, claim.name))
    assert about.what.endswith(".")
    assert "cost" in about.notes
    assert claim.kind == "criterion" or "against" in about.notes
    for each in about.parameters:
        assert each.kind, each.name
        assert each.text, each.name
    assert about.example
    assert max(map(len, about.lines())) <= WIDTH


def test_the_example_of_a_built_in_part_runs(claim, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = explain(claim.kind, registry.get(claim.kind, claim.name)).example
    *others, last = commands(example)
    assert claim.name in " ".join(last)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        for _, *arguments in (*others, last):
            run(*arguments)


@dataclass(frozen=True)
class Bare:
    name: ClassVar[str] = "bare"
    size: int = 2


@dataclass(frozen=True)
class Documented:
    """A kernel of ``x`` and
    ``z``.

    It has a reason.

    Parameters
    ----------
    ell, tau : float or None
        Two widths,
        both alike.
    shape : str
        A word.

    Notes
    -----
    Cost: much
    of it.

    Anything else is more to read.

    Against: It is made up.

    Examples
    --------
    ::

        kernsel select a.csv
          --kernel documented
    """

    positive: ClassVar[tuple[str, ...]] = ("ell",)
    integer: ClassVar[tuple[str, ...]] = ("tau",)
    words: ClassVar[dict[str, tuple[str, ...]]] = {"shape": ("round", "square")}

    shape: str
    ell: float | None = None
    tau: float | None = 1.0


@dataclass(frozen=True)
class Derived(Documented):
    """Another one.

    Parameters
    ----------
    tau : float
        Another width.
    """

    more: bool = dataclasses.field(default=True, kw_only=True)


class OwnNotes(NewtonCV):
    """A criterion.

    Notes
    -----
    Cost: little.
    """


def test_notes_of_a_criterion_count_more_than_those_of_its_base():
    assert explain("criterion", OwnNotes).notes == {"cost": "little."}
    assert explain("criterion", NewtonCV).notes["cost"] != "little."


def test_a_part_without_a_docstring_is_not_explained_by_its_signature():
    about = explain("criterion", Bare)
    assert about.what == "Its authors say nothing of it."
    assert [(p.name, p.kind, p.default, p.text) for p in about.parameters] == [("size", "int", "2", "")]


def test_a_docstring_is_read():
    about = explain("kernel", Documented)
    assert about.what == "A kernel of x and z."
    assert about.more == ("It has a reason.", "Anything else is more to read.")
    assert about.notes == {"cost": "much of it.", "against": "It is made up."}
    assert about.example == "kernsel select a.csv\n  --kernel documented"
    assert [(p.name, p.kind, p.default) for p in about.parameters] == [
        ("shape", "str, one of round or square", ""),
        ("ell", "float or None, greater than 0", "free"),
        ("tau", "float or None, whole", "1.0"),
    ]
    assert about.parameters[1].text == "Two widths, both alike."
    assert "known against it: It is made up." in list(about.lines())


def test_parameters_are_explained_by_the_nearest_class_that_does():
    found = {p.name: p.text for p in explain("kernel", Derived).parameters}
    assert found == {"shape": "A word.", "ell": "Two widths, both alike.", "tau": "Another width.", "more": ""}


def test_the_command_explains_and_helps():
    shown = run("plugins", "gaussian", "svm").stdout
    assert shown.startswith("kernel gaussian, from kernsel ")
    assert "\n\nlearner svm, from kernsel " in shown
    assert run("plugins", "rbf").stdout == run("plugins", "gaussian").stdout
    assert "'gausian'; did you mean 'gaussian'?" in run("plugins", "gausian", code=2).stderr
