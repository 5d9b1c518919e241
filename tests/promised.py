"""What others build on, as lines of text: names, signatures, commands, documents and files.

``python tests/promised.py`` writes the lines into the folder ``promises``, after a change that is meant.
"""

import functools
import inspect
import json
import zipfile
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import typer

import kernsel
from commandline import run
from kernsel import errors, protocols, registry
from kernsel.cli import app
from kernsel.model.model import load
from kernsel.selection.again import Comparison

FOLDER = Path(__file__).parent / "promises"
MODEL = FOLDER / "model-1.npz"
"""A model that kernsel 0.1 has written."""

MODULES = ("kernsel", "kernsel.kernels", "kernsel.learners", "kernsel.criteria", "kernsel.folds", "kernsel.testing")
BASES = ("search.walk.Walk", "search.board.Board", "data.sources.Source", "data.sources.Fit")
FREE = ("asked", "environment", "features", "grids", "options.read", "relevances.theta", "timing")
"""Parts of documents whose keys depend on the data or the machine, or say nothing that has to stay."""


def rows(classes=False):
    """Return a small table."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.sin(2 * X[:, 0])
    return X, np.where(y > 0, "yes", "no") if classes else y


def plain(function):
    """Return how a function is called, without its annotations."""
    signature = inspect.signature(function)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def members(owner):
    """Give the public attributes of a class, as they are called; not those of other libraries, and of public bases."""
    own = [each for each in owner.__mro__ if each.__module__.startswith("kernsel.") and each not in public()]
    held = {name for each in (owner, *own) for name in (*vars(each), *vars(each).get("__annotations__", ()))}
    for name in sorted(held):
        value = inspect.getattr_static(owner, name, None)
        if not name.startswith("_"):
            function = getattr(value, "__func__", value)
            yield name + (plain(function) if inspect.isfunction(function) else "")


@functools.cache
def public():
    """Return the classes that are listed by themselves."""
    modules = map(import_module, MODULES)
    return {getattr(each, name) for each in modules for name in each.__all__ if inspect.isclass(getattr(each, name))}


def names():
    """Give the public names of the public modules, with their signatures; of a part what it is made from alone."""
    parts = {registry.get(kind, name) for kind in registry.GROUPS for name in registry.names(kind)}
    for place in MODULES:
        module = import_module(place)
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{place}.{name}{plain(value)}"
                if inspect.isclass(value) and value not in parts:
                    yield from (f"{place}.{name}.{member}" for member in members(value))
            else:
                yield f"{place}.{name}"
    yield from (f"kernsel.errors.{name}" for name in sorted(vars(errors)) if inspect.isclass(getattr(errors, name)))


def plugins():
    """Give what a plugin relies on: the protocol, what each kind of part has to have, and names of parts."""
    yield f"protocol {registry.PROTOCOL}"
    for kind, group in registry.GROUPS.items():
        protocol = getattr(protocols, kind.capitalize())
        yield from (f"{group}: {member}" for member in members(protocol))
        yield from (f"{group}: has {name}" for name in registry.names(kind))
    for place in BASES:
        module, _, name = place.rpartition(".")
        yield from (f"{place}.{member}" for member in members(getattr(import_module(f"kernsel.{module}"), name)))


def commands():
    """Give the commands with their arguments and options."""
    group = typer.main.get_command(app)
    for name, command in sorted(group.commands.items()):
        for each in command.params:
            option = each.param_type_name == "option"
            words = "/".join((*each.opts, *each.secondary_opts)) if option else each.name.upper()
            yield f"kernsel {name} {words}"


def keys(value, where=""):
    """Give the keys of a document on their ways; of a list those of its elements together."""
    if any(where == each or where.endswith(f".{each}") for each in FREE):
        yield where
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from keys(each, f"{where}.{key}" if where else key)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        yield from {line: None for each in value for line in keys(each, f"{where}[]")}
    else:
        yield where


def documents():
    """Give the keys of each kind of document."""
    X, y = rows()
    fixed = {"kernel": "gaussian(tau=1)", "grid": {"lambda": [0.1]}, "extend": False}
    classes = kernsel.select(*rows(classes=True), **fixed, metric="accuracy", threshold_for="f1", certify=True)
    yield from described("selection", kernsel.select(X, y, **fixed).to_json(), classes.to_json())
    yield from described("relevance", kernsel.study_relevances(X, y, kernel="ard", resamples=2).to_json())
    yield from described("mkl", kernsel.learn_mkl(X, y, ["gaussian(tau=1)", "linear"]).to_json())
    yield from described("nested", json.dumps(kernsel.nested(X, y, outer=2, **fixed).to_dict()))
    yield from described("rerun", json.dumps(Comparison.of({"a": 1}, {"a": 2}).to_dict()))
    with TemporaryDirectory() as folder:
        table = Path(folder) / "t.csv"
        np.savetxt(table, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")
        command = ("stability", table, "--kernel", "gaussian(tau=1)", "--lambda", 0.1, "--json")
        yield from described("stability", run(*command).stdout)


def described(name, *texts):
    """Give the format and the keys of documents of one kind."""
    found = [json.loads(text) for text in texts]
    if "format" in found[0]:
        yield f"{name}: {found[0]['format']} {found[0]['version']}"
    yield from (f"{name}: {line}" for line in sorted({line for each in found for line in keys(each)}))


def files():
    """Give the members of a model file, and the keys of its header."""
    for name, classes, more in (("model", False, {}), ("model of classes", True, {"intervals": "sets"})):
        model = kernsel.select(
            *rows(classes), kernel="gaussian(tau=1)", grid={"lambda": [0.1]}, extend=False, **more
        ).model
        with TemporaryDirectory() as folder:
            model.save(Path(folder) / "m.npz")
            with zipfile.ZipFile(Path(folder) / "m.npz") as archive:
                arrays = {each: np.lib.format.read_array(archive.open(each)) for each in archive.namelist()}
        header = json.loads(str(arrays.pop("header.npy")))
        yield f"{name}: {header['format']} {header['version']}"
        yield from (f"{name}: header {line}" for line in sorted(header))
        yield from (f"{name}: {each} {array.dtype.kind}{array.ndim}" for each, array in sorted(arrays.items()))


TOPICS = {"names": names, "plugins": plugins, "commands": commands, "documents": documents, "files": files}


def main():
    """Write all lines, and a model if there is none."""
    for topic, give in TOPICS.items():
        (FOLDER / f"{topic}.txt").write_text("".join(f"{line}\n" for line in give()), encoding="utf-8")
    if not MODEL.exists():
        X, y = rows()
        kernsel.select(X, y, kernel="gaussian(tau=1)", grid={"lambda": [0.1]}, extend=False).model.save(MODEL)
        np.savetxt(MODEL.with_suffix(".csv"), load(MODEL).predict(X))


if __name__ == "__main__":
    main()
