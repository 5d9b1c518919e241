"""What an import costs: the numerical libraries are loaded when something is computed, not before."""

import subprocess
import sys

import pytest

import kernsel

HEAVY = {"numba", "pandas", "scipy", "sklearn"}


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def loaded(code):
    """Return the modules that are loaded once ``code`` has run, in a fresh process."""
    return set(run(f"import sys\n{code}\nprint(*sys.modules)").splitlines()[-1].split())


def test_importing_the_package_loads_no_numerical_library():
    assert not loaded("import kernsel") & (HEAVY | {"numpy", "typer"})


def test_listing_the_parts_loads_no_numerical_library():
    assert not loaded("from kernsel import registry; registry.claims()") & (HEAVY | {"numpy", "typer"})


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["select", "--help"],
        ["relevance", "--help"],
        ["compare", "--help"],
        ["plugins"],
        ["guide"],
        ["guide", "options"],
    ],
)
def test_the_command_line_loads_no_numerical_library(arguments):
    code = f"""
sys.argv = ["kernsel", *{arguments!r}]
from kernsel.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
"""
    assert not loaded(code) & (HEAVY | {"numpy"})


def test_every_public_name_is_there():
    assert {name: getattr(kernsel, name) for name in kernsel.__all__}.keys() <= set(dir(kernsel))


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(AttributeError, match=r"no attribute 'selekt'; it has Bounds, Comparison, KernelClassifier"):
        kernsel.selekt  # noqa: B018 - looking it up is what is tested


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert kernsel.__version__ == version("kernsel")
