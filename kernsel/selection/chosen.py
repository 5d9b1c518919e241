"""What a selection chose, read back from its document."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from kernsel import registry
from kernsel.errors import OptionError
from kernsel.kernels import Kernel, from_spec
from kernsel.protocols import Learner
from kernsel.selection.result import FORMAT, VERSION
from kernsel.text import make


class Choice(NamedTuple):
    """What a selection chose, and on what: as it is read back from its document.

    Parameters
    ----------
    learner : Learner, str or None
    target : str or None
        Several with commas between.
    aside : mapping
        Columns that are no features, by what they are: ``weights``, ``groups``, ``folds``.
    """

    kernel: Kernel | str
    lam: float
    learner: Learner | str | None = None
    target: str | None = None
    task: str = "auto"
    aside: Mapping[str, str] = MappingProxyType({})


def read_choice(path: str | os.PathLike[str]) -> Choice:
    """Read what ``kernsel select --output`` chose.

    Parameters
    ----------
    path : path
        Of the JSON document.

    Returns
    -------
    Choice
        All of it.

    Raises
    ------
    OptionError
        The file isn't such a document, or names a part that isn't installed.
    """
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise OptionError(f"{path} is no file; give a result of kernsel select --output")
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        if document["format"] != FORMAT or document["version"] != VERSION:
            raise OptionError(f"{path} is a {document['format']} of version {document['version']}, not a {FORMAT}")
        best, data, options = document["best"], document["data"], document["options"]
        name, target = best["learner"], data["target"]
        roles = {"weights": options["weights"], "groups": options["groups"], "folds": options["fold_column"]}
        learner = make(f"learner {name!r}", registry.get("learner", name), best["learner_parameters"])
        return Choice(
            from_spec(best["kernel"]),
            float(best["lambda"]),
            learner,
            target if isinstance(target, str) else ",".join(target),
            data["task"],
            {role: column for role, column in roles.items() if isinstance(column, str)},
        )
    except OSError as error:
        raise OptionError(f"can't read {path}: {error.strerror}; give a result of kernsel select --output") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"{path} isn't a result that kernsel select --output wrote") from error
