"""Tables that are read beside a saved model: as that of its selection was, where nothing else is said."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernsel.cli import console
from kernsel.errors import KernselError

if TYPE_CHECKING:
    import pandas as pd

    from kernsel.data import Reading
    from kernsel.data.tables import SparseTable
    from kernsel.model.model import Model


def with_reading(model: Model, reading: Reading) -> Model:
    """Return a model that keeps what was given of how its table is written; what was found out is found out anew."""
    given = _given(reading)
    return replace(model, provenance={**model.provenance, "reading": given}) if given else model


def read_for(model: Model, files: Sequence[Path], reading: Reading, quiet: bool = False) -> pd.DataFrame | SparseTable:
    """Read a table for a model, as that of its selection was read as far as nothing else is given.

    Where the table has the model's columns only without the options of the selection, it is read without them.

    Parameters
    ----------
    model : Model
    files : sequence of Path
    reading : Reading
        What is given of how the table is written.
    quiet : bool
        Whether not to say that options of the selection are used.

    Raises
    ------
    DataError
        The table can't be read.
    """
    from kernsel.data import Reading, read_table
    from kernsel.data.tables import names_of

    given, encoder = _given(reading), model.encoder
    kept = {name: value for name, value in model.provenance.get("reading", {}).items() if name not in given}
    expected = None if encoder is None else encoder.columns

    def lacking(table: pd.DataFrame | SparseTable) -> bool:
        return encoder is not None and not set(encoder.used) <= set(names_of(table))

    if not kept:
        return read_table(files, expected, reading)
    table, fault = None, None
    try:
        table = read_table(files, expected, Reading(**kept, **given))
    except KernselError as error:
        fault = error
    if table is None or lacking(table):
        try:
            plain = read_table(files, expected, reading)
        except KernselError:
            plain = None
        if plain is not None and (table is None or not lacking(plain)):
            return plain
    if not quiet:
        console.say(f"read as the table of the selection was, by {_options(kept)}; options given here come first")
    if table is None:
        assert fault is not None
        raise fault
    return table


def _given(reading: Reading) -> dict[str, Any]:
    """Return what is given of how a table is written."""
    return {name: value for name, value in vars(reading).items() if value is not None}


def _options(given: Mapping[str, Any]) -> str:
    """Return what is given as it stands on a command line."""
    words = []
    for name, value in given.items():
        if name == "header":
            words.append("--header" if value else "--no-header")
        else:
            words.append(f"--{name} {shlex.quote(str(value))}")
    return " ".join(words)
