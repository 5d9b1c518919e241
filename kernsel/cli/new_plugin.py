"""``kernsel new-plugin``: a package with a part of one's own, which passes its checks as it is."""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from kernsel.cli import console
from kernsel.errors import OptionError

KINDS = ("kernel", "learner", "criterion", "search", "format")
TEMPLATES = Path(__file__).parent / "templates"
LONGEST = 60  # a name is part of those of files

SELECT = "kernsel select demo.csv --folds 5"
MAKE = "import pandas; pandas.read_csv('demo.csv').to_json('demo.$name', orient='records', lines=True)"
USE = {
    "kernel": f"{SELECT} --kernel $name",
    "learner": f"{SELECT} --kernel gaussian --learner $name",
    "criterion": f"{SELECT} --kernel gaussian --criterion $name",
    "search": f"{SELECT} --kernel gaussian --search $name",
    "format": f'python -c "{MAKE}"\nkernsel select demo.$name --folds 5 --kernel gaussian',
}
"""Commands that use the part."""

OPTIONS = {"format": ', write=write, suffix=".$name"'}
"""What the checks are told besides the part."""

HELPERS = {
    "format": """def write(frame, path):
    frame.to_json(path, orient="records", lines=True, double_precision=15)


"""
}
"""What tests define for that."""


def new_plugin(
    kind: Annotated[str, typer.Argument(metavar="|".join(KINDS), help="What the part is.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called, such as log-cosh.")],
) -> None:
    """Write a package with a part of your own, which passes its checks as it is.

    The package is a new folder here, kernsel-NAME: a module to change, its tests, pyproject.toml and README.md.
    """
    with console.guarded():
        folder = Path(f"kernsel-{name}")
        if os.path.lexists(folder):
            raise OptionError(f"{folder} exists; choose another name, or go to another folder")
        files = package_of(kind, name)
        _write(folder, files)
        typer.echo(
            f'{folder}: {", ".join(files)}\ninstall and check it: cd {folder} && pip install -e ".[test]" && pytest'
        )


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files of a new folder, all or none; OptionError if it can't be done."""
    try:
        with TemporaryDirectory(prefix=".kernsel-", dir=folder.parent) as making:
            made = Path(making) / folder.name
            for place, text in files.items():
                (made / place).parent.mkdir(parents=True, exist_ok=True)
                (made / place).write_text(text, encoding="utf-8")
            made.rename(folder)
    except OSError as error:
        raise OptionError(f"{folder} can't be written ({error.strerror}); go to another folder") from error


def package_of(kind: str, name: str) -> dict[str, str]:
    """Return the files of a package with one part, by their places in its folder.

    Parameters
    ----------
    kind : {"kernel", "learner", "criterion", "search", "format"}
    name : str
        Of the part: small letters, digits, and single hyphens between them.

    Raises
    ------
    OptionError
        There is no such kind, or the name can't be that of a part, or is taken.
    """
    from kernsel import registry

    _check_name(kind, name)
    module = f"kernsel_{name.replace('-', '_')}"
    words = {
        "distribution": f"kernsel-{name}",
        "group": registry.GROUPS[kind],
        "kind": kind,
        "module": module,
        "name": name,
        "part": "".join(word.capitalize() for word in name.split("-")),
        "protocol": str(registry.PROTOCOL),
    }
    for key, texts in {"use": USE, "options": OPTIONS, "helpers": HELPERS}.items():
        words[key] = Template(texts.get(kind, "")).substitute(words)
    template = _template(kind)
    if keyword.iskeyword(words["part"]) or re.search(rf"\b{words['part']}\b", template):
        raise OptionError(f"the class of {name!r} would be {words['part']}, which means something else; choose another")
    if importlib.util.find_spec(module) is not None:
        raise OptionError(f"there is a module {module} already; choose another name, or uninstall it")
    return {
        "pyproject.toml": Template(_template("pyproject.toml")).substitute(words),
        "README.md": Template(_template("README.md")).substitute(words),
        f"{module}.py": Template(template).substitute(words),
        f"tests/test_{module}.py": Template(_template("test")).substitute(words),
    }


def _check_name(kind: str, name: str) -> None:
    """Raise OptionError if a part can't have the name."""
    from kernsel import registry
    from kernsel.text import meant
    from kernsel.words import own_name

    if kind not in KINDS:
        raise OptionError(
            f"there is no kind of part called {kind!r}{meant(kind, KINDS) or '; it is ' + ', '.join(KINDS)}"
        )
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or len(name) > LONGEST:
        raise OptionError(
            f"{name!r} can't be the name of a part: take up to {LONGEST} small letters and digits, with single hyphens "
            "between words, such as log-cosh"
        )
    if name in registry.names(kind) or own_name(kind, name) != name:
        raise OptionError(f"there is a {kind} called {name!r} already ('kernsel plugins {name}'); choose another name")
    reserved = ["auto", "none", "default"]
    if kind == "kernel":
        from kernsel.kernels import Precomputed
        from kernsel.kernels.text import ALGEBRA

        reserved += [*ALGEBRA, Precomputed.name, "function"]
    if name in reserved:
        raise OptionError(f"{name!r} has a meaning of its own where a {kind} is named; choose another name")


def _template(name: str) -> str:
    return (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")
