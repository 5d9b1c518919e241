"""Columns from the blocks of rows of a file, without holding both the blocks and the columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def join_blocks(blocks: Iterable[pd.DataFrame]) -> dict[str, Any]:
    """Return the columns that blocks of rows make up, by name.

    Numbers are collected in one array a column, which grows where it is: memory of the size of large blocks is mapped
    elsewhere by the system, not copied.

    Parameters
    ----------
    blocks : iterable of DataFrame
        With the same columns.

    Returns
    -------
    dict of str to (n,) array, Series or None
        None for a column that holds numbers in some blocks and what isn't numbers in others: the same text would be
        one category here and another there ("01" and "1").
    """
    import pandas as pd

    columns: dict[str, Any] = {}
    for block in blocks:
        for name, column in block.items():
            columns[str(name)] = _joined(columns.get(str(name), ()), column)
    for name, each in columns.items():
        if isinstance(each, list):
            columns[name] = pd.concat(each, ignore_index=True)
    return columns


def _joined(before: Any, column: pd.Series) -> Any:
    """Add a block's column to the array or list of what came before; None once they don't fit together."""
    is_number = column.dtype.kind in "iuf"
    if isinstance(before, tuple):  # the first block
        return column.to_numpy(copy=True) if is_number else [column]
    if before is None or is_number != isinstance(before, np.ndarray):
        return None
    if not is_number:
        return [*before, column]
    n = len(before)
    grown = before.astype(np.result_type(before, column.dtype), copy=False)
    grown.resize(n + len(column), refcheck=False)  # no view of it is left: it was made here
    grown[n:] = column
    return grown
