"""Columns from the blocks of rows of a file, without holding both the blocks and the columns.

Numbers are collected in arrays that grow where they are: the system maps memory of the size of large arrays elsewhere,
and copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd


def join_blocks(blocks: Iterable[pd.DataFrame]) -> dict[str, Any]:
    """Return the columns that blocks of rows make up, by name.

    Parameters
    ----------
    blocks : iterable of DataFrame
        With the same columns.

    Returns
    -------
    dict of str to (n,) array, Series or None
        None for a column that holds numbers, or truth values, in some blocks and text in others: the same text would
        be one category here and another there ("01" and "1").
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


def _joined(before: object, column: pd.Series) -> Any:
    """Add a block's column to the array or list of what came before; None once they don't fit together."""
    is_number = column.dtype.kind in "iuf"
    if isinstance(before, tuple):  # the first block
        return column.to_numpy(copy=True) if is_number else [column]
    if isinstance(before, list) and column.dtype == before[-1].dtype:
        before.append(column)
        return before
    if not (isinstance(before, np.ndarray) and is_number):
        return None
    return grown(before.astype(np.result_type(before, column.dtype), copy=False), column)


def grown(array: npt.NDArray[Any], more: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return an array with more values at its end: itself, where it is. No view of it may be left."""
    n = len(array)
    array.resize(n + len(more), refcheck=False)  # type: ignore[arg-type]  # what it is called with has a length
    array[n:] = more
    return array
