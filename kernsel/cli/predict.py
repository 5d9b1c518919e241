"""``kernsel predict``: a saved model on a new table."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernsel.cli import console
from kernsel.cli.arguments import Asked, flag, option
from kernsel.cli.beside import read_for
from kernsel.cli.reading import is_read
from kernsel.errors import OptionError

if TYPE_CHECKING:
    import pandas as pd

    from kernsel.model.model import Model


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", readable=False, help="A model that kernsel select --model wrote.")
    ],
    table: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLE",
            readable=False,
            allow_dash=True,
            help="A table with the model's columns, in any order; files as for kernsel select, - for standard input.",
        ),
    ],
    asked: Asked,
    output: Annotated[Path | None, option("FILE", "Write the CSV to this file instead of stdout.")] = None,
    decision: Annotated[bool, flag("--decision", "Write the outputs that decide between the classes, too.")] = False,
    proba: Annotated[bool, flag("--proba", "Write the probabilities of the classes, too.")] = False,
    beyond: Annotated[bool, flag("--beyond", "Write which rows lie beyond the training data, too.")] = False,
    interval: Annotated[
        float | None, option("SHARE", "Write intervals that hold this share of the values, too.")
    ] = None,
    sets: Annotated[
        float | None, option("SHARE", "Write sets of classes that hold this share of the truth, too.", name="--set")
    ] = None,
    by: Annotated[
        str | None,
        option(
            "COL", "Let --interval and --set hold that share in each category of a column, or each class of the target."
        ),
    ] = None,
) -> None:
    """Predict the rows of a table, as CSV.

    It has a column prediction, or one for each of several targets, with one row for each row of the table. Where values
    are missing, the means of the model's table take their place, unless --missing says otherwise. Options about how the
    file is written are those of the selection where they aren't given.
    """
    with console.guarded():
        from kernsel.data.files import atomic_write, check_replaceable, check_writable

        if output is not None:
            destination = check_writable(output)
            for source in (model, *table):
                if is_read(destination, [source]):
                    raise OptionError(f"--output {output} is {source}, which is read; choose another file")
            check_replaceable(destination, b"prediction")
        from kernsel.model.model import load

        fitted = load(model)
        for option, given in (("--decision", decision), ("--proba", proba)):
            if given and fitted.labels is None:
                raise OptionError(f"{option} is for classes, but {model} is a regression; leave it out")
        if interval is not None and fitted.labels is not None:
            raise OptionError(f"--interval is for a regression, but {model} has classes; use --set or --proba")
        if sets is not None and fitted.labels is None:
            raise OptionError(f"--set is for classes, but {model} is a regression; use --interval")
        if by is not None and interval is None and sets is None:
            raise OptionError(f"--by {by} says where --interval or --set hold; give one of them, or leave it out")
        encoder = fitted.encoder
        frame = read_for(fitted, table, asked.reading)
        if encoder is not None and asked.missing is not None:
            if asked.missing == "impute" and not encoder.fills:
                raise OptionError(f"--missing impute: {model} is of an older kernsel and has no means; select it anew")
            encoder = replace(encoder, missing=asked.missing)
            fitted = replace(fitted, encoder=encoder)
        with console.prints_aside():
            predictions, far = _predictions(fitted, frame, decision, proba, interval, sets, by), None
            if beyond or fitted.reach is not None:
                far = fitted.beyond(frame)
        if beyond:
            predictions["beyond"] = far
        text = predictions.to_csv(index=False, lineterminator="\n")
        if output is None:
            sys.stdout.write(text)
        else:
            atomic_write(output, lambda stream: stream.write(text.encode()))
        if far is not None and far.any():
            console.warn(
                f"{far.sum()} of {far.size} rows lie beyond the training data, farther from their nearest row than "
                "99.9 % of the training rows: predictions there are guesses" + (" (--beyond says which)" * (not beyond))
            )


def _predictions(
    model: Model,
    frame: pd.DataFrame,
    decision: bool,
    proba: bool,
    interval: float | None,
    sets: float | None,
    by: str | None,
) -> pd.DataFrame:
    import numpy as np
    import pandas as pd

    encoder = model.encoder
    empty = None
    if encoder is not None and encoder.missing == "drop" and encoder.fills:
        empty = encoder.missing_rows(frame)
        model = replace(model, encoder=replace(encoder, missing="impute"))
    F = model.decision(frame)
    predictions = np.atleast_2d(model.outputs_to_predictions(F).T)
    names = [f" {name}" for name in model.target] if isinstance(model.target, list) else [""]
    columns = {f"prediction{name}": values for name, values in zip(names, predictions, strict=True)}
    if decision and F.ndim == 1:
        columns["decision"] = F
    elif decision:
        columns |= {f"decision {label}": F[:, i] for i, label in enumerate(model.labels or [])}
    if proba:
        P = model.outputs_to_probabilities(F)
        columns |= {f"probability {label}": P[:, i] for i, label in enumerate(model.labels or [])}
    if interval is not None:
        ends = model.predict_interval(frame, interval, by).reshape(len(frame), len(names), 2)
        for k, name in enumerate(names):
            columns |= {f"lower{name}": ends[:, k, 0], f"upper{name}": ends[:, k, 1]}
    if sets is not None:
        chosen = model.predict_set(frame, sets, by)
        columns |= {f"in set {label}": chosen[:, i].astype(np.int64) for i, label in enumerate(model.labels or [])}
    found = pd.DataFrame(columns)
    if empty is None or not empty.any():
        return found
    rows = int(empty.sum())
    console.warn(
        f"{rows} of {len(found)} rows lack{'s' * (rows == 1)} values and have no prediction, as the model was selected "
        "without such rows; --missing impute predicts them by means"
    )
    found = found.astype(object)
    found.loc[empty] = None
    return found
