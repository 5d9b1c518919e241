"""Every public function, class, method and property is documented, in numpydoc's form."""

import importlib
import inspect
import pkgutil

import pytest
from numpydoc.validate import validate

import kernsel

CHECKS = {
    # Sections are known ones, in order, and there is a docstring, maybe an inherited one.
    *("GL06", "GL07", "GL08", "GL09", "GL10"),
    # The summary is one sentence.
    *("SS01", "SS02", "SS03", "SS04"),
    # What is documented is in the signature, in its order, with types.
    *("PR02", "PR03", "PR04", "PR10"),
}

MODULES = [m.name for m in pkgutil.walk_packages(kernsel.__path__, "kernsel.") if not m.name.endswith("__main__")]


def public(holder, module):
    """Return the names of what ``holder`` itself defines and shows."""
    return [
        name
        for name, value in vars(holder).items()
        if not name.startswith("_")
        and (inspect.isroutine(value) or inspect.isclass(value) or isinstance(value, property))
        and getattr(value, "__module__", module) == module
    ]


def inherits_its_docstring(owner, member):
    """Tell whether ``member`` has no docstring of its own because it does what a base class says."""
    docs = [getattr(vars(base)[member], "__doc__", None) for base in owner.__mro__ if member in vars(base)]
    return not docs[0] and any(docs)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    paths = []
    for part in public(module, name):
        paths.append(f"{name}.{part}")
        owner = getattr(module, part)
        if inspect.isclass(owner):
            members = [each for each in public(owner, name) if not inherits_its_docstring(owner, each)]
            paths += [f"{name}.{part}.{member}" for member in members]
    errors = [f"{path}: {code} {text}" for path in paths for code, text in validate(path)["errors"] if code in CHECKS]
    assert not errors, "\n".join(errors)
