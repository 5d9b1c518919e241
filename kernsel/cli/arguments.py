"""Arguments and options that several commands have alike; those of a plan are made of its fields."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from kernsel.cli.texts import READERS
from kernsel.selection.plan import HEADINGS, WORDS, Plan

if TYPE_CHECKING:
    from kernsel.data import Reading

RESULTS, FILE, OTHERS = "What comes out", "How the file is written", "Options"
ORDER = ("Arguments", *HEADINGS.values(), RESULTS, FILE, OTHERS)
"""Headings in a command's help."""

COLUMNS = HEADINGS["columns"]

ONE_COLUMN = "COL"
"""The value of options that are given once: of several values the last one counts, and other columns are features."""


def option(values: str, text: str, heading: str = OTHERS, *, name: str | None = None, least: int | None = None) -> Any:
    """Return an option that has a value: its values in short, and what it is, under a heading of the help.

    Parameters
    ----------
    name : str, optional
        Where it isn't that of the parameter.
    least : int, optional
        Of a number.
    """
    names = [] if name is None else [name]
    return typer.Option(*names, metavar=values, help=text, min=least, rich_help_panel=heading)


def flag(name: str, text: str, heading: str = OTHERS, *, short: str | None = None) -> Any:
    """Return an option without a value.

    Parameters
    ----------
    name : str
        Its name, or both: that for yes and that for no.
    short : str, optional
        Another name, of one letter.
    """
    return typer.Option(*filter(None, [name, short]), help=text, rich_help_panel=heading)


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
    option(ONE_COLUMN, "The column to predict, or several of numbers: a,b [default: the last one].", COLUMNS),
]
Groups = Annotated[str | None, option(ONE_COLUMN, "A column of groups, whose rows are held out together.", COLUMNS)]
Weights = Annotated[str | None, option(ONE_COLUMN, "A column of weights of the rows.", COLUMNS)]
Output = Annotated[Path | None, option("FILE", "Write the result to this JSON file.", RESULTS)]
Json = Annotated[bool, flag("--json", "Print the result as one JSON document.", RESULTS)]
Quiet = Annotated[bool, flag("--quiet", "Print nothing but the result and warnings.", RESULTS, short="-q")]
Threads = Annotated[int | None, option("N", "Threads to use [default: all].", HEADINGS["size"], least=1)]

_READING: dict[str, Any] = {
    "sep": Annotated[str | None, option("CHAR", "What separates the columns: a character, tab or space.", FILE)],
    "decimal": Annotated[str | None, option("CHAR", "The decimal sign of numbers.", FILE)],
    "thousands": Annotated[str | None, option("CHAR", "The sign between thousands.", FILE)],
    "encoding": Annotated[str | None, option("NAME", "Such as utf-8, latin-1 or cp1252.", FILE)],
    "header": Annotated[bool | None, flag("--header/--no-header", "Whether the first line names the columns.", FILE)],
    "comment": Annotated[str | None, option("CHAR", "What starts a comment.", FILE)],
    "skip": Annotated[int | None, option("N", "Lines above the table.", FILE, least=0)],
    "sheet": Annotated[str | None, option("NAME|N", "The sheet of a workbook [default: the first].", FILE)],
}
"""How a table is written; what isn't given is found out."""


class Command(TyperCommand):
    """A command whose help has its options under headings, and some of whose options have a value without one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give options of numbers that stand alone, without a number after them, the value that they then have."""
        for name, words in WORDS.items():
            dashed = f"--{name.replace('_', '-')}"
            for place in (i for i, arg in enumerate(args) if words.alone is not None and arg == dashed):
                if not _is_number(args[place + 1 : place + 2]):
                    args[place] = f"{dashed}={words.alone}"
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for parameter in given:
            if parameter.metavar == ONE_COLUMN and given.count(parameter) > 1:
                name = parameter.opts[0]
                several = "; several targets are a,b" * (name == "--target")
                ctx.fail(f"{name} is given twice, and names one column: the last one{several}")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options under each heading."""
        sections: dict[str, list[Any]] = {heading: [] for heading in ORDER}
        for parameter in self.get_params(ctx):
            other = OTHERS if parameter.param_type_name == "option" else "Arguments"
            record = parameter.get_help_record(ctx)
            if record is not None:
                name, told = record
                shown = (name.partition(" <")[0], told)  # without a type of Python
                sections[getattr(parameter, "rich_help_panel", None) or other].append(shown)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def _is_number(args: list[str]) -> bool:
    """Tell whether there is an argument, and it is a number, or meant to be a share in per cent."""
    try:
        return [float(arg.removesuffix("%")) for arg in args] != []
    except ValueError:
        return False


@dataclass(frozen=True)
class Asked:
    """The options of a command that say how its table is written, and what the plan of its selection is.

    Parameters
    ----------
    given : dict
        As they are given, by name; None where an option isn't given.
    """

    given: dict[str, Any]

    @property
    def reading(self) -> Reading:
        """How the table is written."""
        from kernsel.data import Reading

        return Reading(**{name: self.given[name] for name in _READING})

    @property
    def missing(self) -> str | None:
        """What becomes of missing values."""
        value: str | None = self.given["missing"]
        return value

    def plan(self, **more: Any) -> Plan:
        """Return the plan of what is given, and of further options by their values.

        Raises
        ------
        OptionError
            A text can't be read.
        """
        told = {name: value for name, value in self.given.items() if name in WORDS and value not in (None, [])}
        return Plan(**{name: READERS[name](value) if name in READERS else value for name, value in told.items()} | more)


def with_options(command: Callable[..., None], names: Iterable[str] = ()) -> Callable[..., None]:
    """Give a command options for its table, and those of a plan, in place of its parameter ``asked``.

    Parameters
    ----------
    command : callable
        Its parameter ``asked`` gets them together, as Asked.
    names : iterable of str
        Of the options of a plan.
    """
    hints = get_type_hints(command, include_extras=True)
    of_plan = {name: _typer_option(name) for name in names}
    of_table = {name: (annotation, None) for name, annotation in _READING.items()}
    added = of_plan | of_table
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    made = {
        name: inspect.Parameter(name, kind, default=default, annotation=annotation)
        for name, (annotation, default) in added.items()
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name == "asked":
            parameters += [made[each] for each in of_plan]
        else:
            parameters.append(parameter.replace(annotation=hints[name]))
    parameters += [made[each] for each in of_table]

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        command(asked=Asked({name: given.pop(name, None) for name in added}), **given)

    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def _typer_option(name: str) -> tuple[Any, Any]:
    """Return an option of a plan as Typer has it: its annotation, and its default."""
    words, default = WORDS[name], getattr(Plan, name)
    heading = HEADINGS[words.of]
    if words.kind == "flag":
        return Annotated[bool, typer.Option(words.metavar, help=words.help, rich_help_panel=heading)], default
    kinds: dict[str, Any] = {"text": str, "texts": list[str], "whole": int, "number": float}
    told = "" if default in (None, ()) else f" [default: {default}]"
    help_text = f"{words.help.removesuffix('.')}{told}." if told else words.help
    made = option(words.metavar, help_text, heading, least=words.least)
    return Annotated[kinds[words.kind] | None, made], None
