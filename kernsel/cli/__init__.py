"""The command line: thin commands over the library, one a file.

Nothing numerical is imported before a command needs it, so that ``--help`` and ``--version`` are quick.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from kernsel.cli.arguments import Command, with_options
from kernsel.cli.compare import compare
from kernsel.cli.console import Group
from kernsel.cli.curve import curve
from kernsel.cli.estimate import estimate
from kernsel.cli.example import example
from kernsel.cli.guide import guide
from kernsel.cli.journal import journal
from kernsel.cli.mkl import mkl
from kernsel.cli.new_plugin import new_plugin
from kernsel.cli.plugins import plugins
from kernsel.cli.predict import predict
from kernsel.cli.relevance import relevance
from kernsel.cli.rerun import rerun
from kernsel.cli.select import select
from kernsel.cli.stability import stability
from kernsel.cli.update import update
from kernsel.cli.warmup import warmup
from kernsel.selection.plan import COLUMNS, WORDS
from kernsel.system import interrupts

app = typer.Typer(
    cls=Group,
    invoke_without_command=True,  # it shows the help
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _command in (
    with_options(select, WORDS),
    with_options(predict, ["missing"]),
    with_options(relevance, ["task", "standardize", "journal", *COLUMNS]),
    with_options(mkl, ["task", "folds", "class_weight", "seed", "journal", "standardize", *COLUMNS]),
    with_options(compare, WORDS),
    with_options(curve, WORDS),
    with_options(stability, ["task", "rank", "seed", "standardize", *COLUMNS]),
    with_options(estimate, ["task", *COLUMNS]),
    example,
    guide,
    journal,
    plugins,
    new_plugin,
    rerun,
    with_options(update),
    warmup,
):
    app.command(cls=Command)(_command)


def main() -> None:
    """Run the command line; exits with 0, 2 for an error that the user can mend, 130 or 143 after a stop."""
    try:
        app(prog_name="kernsel")
    except SystemExit as end:
        # Python would wait for threads that are in the middle of a fit, or take the code away that they run in.
        if isinstance(end.code, int) and (end.code == interrupts.exit_code() or _left_behind()):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code)
        raise


def _left_behind() -> bool:
    """Tell whether a candidate that never returned is still at work; what runs it may not have been imported."""
    patience = sys.modules.get("kernsel.numerics.runtime.patience")
    return patience is not None and patience.any_left_behind()


def _version(wanted: bool) -> None:
    if wanted:
        from kernsel import __version__

        typer.echo(f"kernsel {__version__}")
        raise typer.Exit


@app.callback()
def _kernsel(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Select kernel models: kernel, its parameters and the regularisation, by fast and exact cross-validation."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)
