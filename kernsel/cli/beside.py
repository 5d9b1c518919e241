"""Tables that are read beside a saved model: as that of its selection was, where nothing else is said."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernsel.cli import console
from kernsel.errors import DataError, KernselError

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

    Where the table has the model's columns only without the options of the selection, it is read without them. Lines
    that it was read without are left out of this one if they aren't rows of it.

    Parameters
    ----------
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
        plain = _read_if(files, expected, reading)
        if plain is not None and (table is None or not lacking(plain)):
            return plain
    elif "skip" in kept and encoder is not None:
        unskipped = Reading(**{name: value for name, value in kept.items() if name != "skip"}, **given)
        longer = _read_if(files, expected, unskipped)
        if longer is not None and not lacking(longer):
            _check_skipped(table, longer, kept["skip"])
    if not quiet:
        console.say(f"read as the table of the selection was, by {_options(kept)}; options given here come first")
    if table is None:
        assert fault is not None
        raise fault
    return table


def _read_if(
    files: Sequence[Path], expected: Sequence[str] | None, reading: Reading
) -> pd.DataFrame | SparseTable | None:
    """Return a table, None if it can't be read so."""
    from kernsel.data import read_table

    try:
        return read_table(files, expected, reading)
    except KernselError:
        return None


def _check_skipped(table: pd.DataFrame | SparseTable, longer: pd.DataFrame | SparseTable, skip: int) -> None:
    """Raise a DataError if what is skipped may be rows: text stands only where it stands in the table without them.

    Parameters
    ----------
    table, longer : DataFrame or SparseTable
        Without these lines, and with them.
    skip : int
        Number of lines that the table of the selection was read without.
    """
    from kernsel.data.columns import is_text
    from kernsel.data.tables import column_of, names_of

    more = len(longer) - len(table)
    both = set(names_of(table)) & set(names_of(longer))
    titles = any(is_text(column_of(longer, name)) > is_text(column_of(table, name)) for name in both)
    if more > 0 and not titles:
        what = "line of this one is as its rows are" if more == 1 else f"{more} lines of this one are as its rows are"
        raise DataError(
            f"{table.attrs.get('source', 'the table')}: the table of the selection was read by --skip {skip}, but the "
            f"first {what}; give --skip 0 if they belong to it, --skip {skip} if not"
        )


def _given(reading: Reading) -> dict[str, Any]:
    """Return what is given of how a table is written."""
    return {name: value for name, value in vars(reading).items() if value is not None}


def _options(given: Mapping[str, object]) -> str:
    """Return what is given as it stands on a command line."""
    words = []
    for name, value in given.items():
        if name == "header":
            words.append("--header" if value else "--no-header")
        else:
            words.append(f"--{name} {shlex.quote(str(value))}")
    return " ".join(words)
