"""``kernsel predict``: a saved model on a new table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernsel.cli import console
from kernsel.errors import OptionError

if TYPE_CHECKING:
    import pandas as pd

    from kernsel.model import Model


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", readable=False, help="A model that kernsel select --model wrote.")
    ],
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", readable=False, help="A table with the model's columns, in any order.")
    ],
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the CSV to this file instead of stdout.")
    ] = None,
    decision: Annotated[
        bool, typer.Option("--decision", help="Write the outputs that decide between the classes, too.")
    ] = False,
) -> None:
    """Predict the rows of a table, as CSV.

    It has a column prediction, or one for each of several targets, with one row for each row of the table.
    """
    with console.guarded():
        from kernsel.data.files import atomic_write, check_writable

        if output is not None:
            destination = check_writable(output).resolve()
            for source in (model, table):
                if destination == source.resolve():
                    raise OptionError(f"--output {output} is {source}, which is read; choose another file")
        from kernsel.data import read_table
        from kernsel.model import load

        fitted = load(model)
        if decision and fitted.labels is None:
            raise OptionError(f"--decision is for classes, but {model} is a regression; leave it out")
        frame = read_table(table, expected=fitted.encoder.columns if fitted.encoder else None)
        text = _predictions(fitted, frame, decision).to_csv(index=False, lineterminator="\n")
        if output is None:
            sys.stdout.write(text)
        else:
            atomic_write(output, lambda stream: stream.write(text.encode()))


def _predictions(model: Model, frame: pd.DataFrame, decision: bool) -> pd.DataFrame:
    import pandas as pd

    F = model.decision(frame)
    predictions = model.outputs_to_predictions(F)
    if isinstance(model.target, list):
        return pd.DataFrame(predictions, columns=[f"prediction {name}" for name in model.target])
    columns = {"prediction": predictions}
    if decision and F.ndim == 1:
        columns["decision"] = F
    elif decision:
        columns |= {f"decision {label}": F[:, i] for i, label in enumerate(model.labels or [])}
    return pd.DataFrame(columns)
