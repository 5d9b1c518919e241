"""``kernsel journal``: where a run stands, while it runs or after it was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernsel.cli import console
from kernsel.cli.arguments import Json, option
from kernsel.text import to_json


def journal(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", readable=False, help="The journal of a run, such as of kernsel select.")
    ],
    optuna: Annotated[
        Path | None, option("FILE", "Write the candidates to this file, which Optuna's JournalStorage reads.")
    ] = None,
    json: Json = False,
) -> None:
    """Say where a run stands: from another terminal while it runs, or after it was stopped."""
    with console.guarded():
        from kernsel.data.files import atomic_write, check_replaceable, check_writable
        from kernsel.errors import OptionError
        from kernsel.journal.past import read_run

        if optuna is not None:
            if check_writable(optuna).resolve() == file.resolve():
                raise OptionError(f"--optuna {optuna} is the journal itself; choose another file")
            check_replaceable(optuna, b'{"op_code": 0')
        run = read_run(file)
        if optuna is not None:
            text = "".join(f"{line}\n" for line in run.optuna_lines())
            atomic_write(optuna, lambda stream: stream.write(text.encode()))
        typer.echo(to_json(run.to_dict()) if json else run.summary())
        if optuna is not None and not json:
            typer.echo(f"candidates written to {optuna}")
