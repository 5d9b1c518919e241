"""Arguments and options that several commands have alike."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from kernsel.data import Choices, Reading

Data = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA",
        readable=False,
        allow_dash=True,
        help="The table: text such as CSV, Excel, Parquet, Arrow, svmlight or .npy; several files of the same columns; "
        "- for the standard input.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(metavar="COL", help="The column to predict, or several of numbers: a,b [default: the last one]."),
]
Task = Annotated[str, typer.Option(metavar="auto|regression|classification", help="What to learn.")]
Groups = Annotated[
    str | None, typer.Option(metavar="COL", help="A column of groups, whose rows are held out together.")
]
Weights = Annotated[str | None, typer.Option(metavar="COL", help="A column of weights of the rows.")]
ClassWeight = Annotated[str | None, typer.Option(metavar="balanced", help="Give all classes the same total weight.")]
Standardize = Annotated[bool, typer.Option("--standardize/--no-standardize", help="Scale the numeric columns.")]
Output = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result to this JSON file.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result and warnings.")]
Threads = Annotated[int | None, typer.Option(metavar="N", min=1, help="Threads to use [default: all].")]

Columns = list[str] | None
_READING: dict[str, Any] = {
    "sep": Annotated[
        str | None, typer.Option(metavar="CHAR", help="What separates the columns: a character, tab or space.")
    ],
    "decimal": Annotated[str | None, typer.Option(metavar="CHAR", help="The decimal sign of numbers.")],
    "thousands": Annotated[str | None, typer.Option(metavar="CHAR", help="The sign between thousands.")],
    "encoding": Annotated[str | None, typer.Option(metavar="NAME", help="Such as utf-8, latin-1 or cp1252.")],
    "header": Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first line names the columns.")
    ],
    "comment": Annotated[str | None, typer.Option(metavar="CHAR", help="What starts a comment.")],
    "skip": Annotated[int | None, typer.Option(metavar="N", min=0, help="Lines above the table.")],
    "sheet": Annotated[
        str | None, typer.Option(metavar="NAME|N", help="The sheet of a workbook [default: the first].")
    ],
}
"""How a table is written; what isn't given is found out."""
_CHOICES: dict[str, Any] = {
    "drop": Annotated[Columns, typer.Option(metavar="COL,...", help="Columns that are no features; patterns as id*.")],
    "keep": Annotated[Columns, typer.Option(metavar="COL,...", help="The only features.")],
    "categorical": Annotated[Columns, typer.Option(metavar="COL,...", help="Columns whose values are categories.")],
    "numeric": Annotated[
        Columns, typer.Option(metavar="COL,...", help="Columns of numbers; what isn't one counts as missing.")
    ],
    "ordinal": Annotated[Columns, typer.Option(metavar="COL=A<B<C", help="A column of ordered levels; repeatable.")],
}
"""What is said about columns."""
_MISSING: dict[str, Any] = {
    "missing": Annotated[
        str | None,
        typer.Option(metavar="impute|drop|refuse", help="What becomes of missing values [default: impute]."),
    ]
}


@dataclass(frozen=True)
class TableOptions:
    """The options that say how a table is written, and what its columns are, as they are given.

    Parameters
    ----------
    given : dict
        By name; None where an option isn't given.
    """

    given: dict[str, Any]

    @property
    def reading(self) -> Reading:
        """How the table is written."""
        from kernsel.data import Reading

        return Reading(**{name: self.given[name] for name in _READING})

    @property
    def columns(self) -> dict[str, Any]:
        """What is said about columns and missing values, as keywords of ``from_arrays``."""
        from kernsel.data.choices import read_ordinal

        said = {name: self.given[name] for name in ("drop", "keep", "categorical", "numeric") if self.given[name]}
        if self.given["ordinal"]:
            said["ordinal"] = read_ordinal(self.given["ordinal"])
        return said | ({"missing": self.missing} if self.missing is not None else {})

    @property
    def choices(self) -> Choices:
        """What is said about columns and missing values."""
        from kernsel.data import make_choices

        return make_choices(**self.columns)

    @property
    def missing(self) -> str | None:
        """What becomes of missing values."""
        value: str | None = self.given["missing"]
        return value


def with_table_options(command: Callable[..., None], choosing: bool = True) -> Callable[..., None]:
    """Give a command the options of tables in place of its parameter ``tables``.

    Parameters
    ----------
    command : callable
        Its parameter ``tables`` gets them together, as TableOptions.
    choosing : bool
        Whether those about columns are among them.
    """
    hints = get_type_hints(command, include_extras=True)
    added = _READING | (_CHOICES if choosing else {}) | _MISSING
    own = [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(command).parameters.items()
        if name != "tables"
    ]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    options = [inspect.Parameter(name, kind, default=None, annotation=each) for name, each in added.items()]

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        command(tables=TableOptions({name: given.pop(name, None) for name in added}), **given)

    parameters = [*own, *options]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper
