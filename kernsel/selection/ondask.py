"""Selections on rows that workers of Dask have or read: its collections, and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from kernsel.data import Dataset, Reading, assign_roles, read_table
from kernsel.data.part_rows import Rows
from kernsel.data.sources import find_sources
from kernsel.data.tables import array_names
from kernsel.data.target import as_vector
from kernsel.errors import DataError
from kernsel.selection.cluster import connected
from kernsel.selection.drivers import OnDask
from kernsel.selection.parts.select import select_parts
from kernsel.selection.plan import Plan
from kernsel.selection.result import Selection
from kernsel.types import Progress


def is_dask(X: object) -> bool:
    """Say whether X is a collection of Dask, without importing it."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def select_dask(
    X: object, y: object, plan: Plan, weights: object = None, progress: Progress | None = None
) -> Selection:
    """Select on arrays or DataFrames of Dask, on the workers of its client, or for want of one on this machine.

    Parameters
    ----------
    X : dask array (n, d) or DataFrame
    y : dask array (n,), Series or DataFrame
        In as many parts of the rows.
    weights : dask array (n,) or Series, optional

    Returns
    -------
    Selection
        See ``kernsel.selection.parts.select``.
    """
    given = {"X": X, "y": y} | ({} if weights is None else {"weights": weights})
    for name, each in given.items():
        if not is_dask(each):
            raise DataError(f"X is a collection of Dask and {name} isn't; give both as such, in the same parts")
    pieces = {name: _pieces(each, name) for name, each in given.items()}
    if len({len(each) for each in pieces.values()}) > 1:
        counts = ", ".join(f"{name} {len(each)}" for name, each in pieces.items())
        raise DataError(f"X and y are in different numbers of parts ({counts}); rechunk them alike")
    with connected(None) as client:
        futures = {name: client.compute(each) for name, each in pieces.items()}
        together = enumerate(zip(*futures.values(), strict=True))
        parts = [client.submit(_rows, number, *each, pure=False) for number, each in together]
        return select_parts(parts, OnDask(client), plan, weights is not None, progress)


def select_files(
    paths: Sequence[str | os.PathLike[str]],
    address: str,
    plan: Plan,
    target: str | None = None,
    weights: str | None = None,
    reading: Reading | None = None,
    progress: Progress | None = None,
    begin: Callable[[Dataset], object] | None = None,
) -> Selection:
    """Select on files that the workers read, one part each.

    Parameters
    ----------
    paths : sequence of path
        Or patterns; workers must find the files at the same places.
    address : str
        Of the scheduler, or ``"local"`` for workers on this machine.
    target, weights : str, optional
        Names of columns.
    progress, begin : callable, optional
        See ``kernsel.selection.parts.select``.
    """
    names = [os.path.abspath(source.path) for source in find_sources(paths)]
    with connected(address) as client:
        read = partial(_read, target=target, weights=weights, reading=reading)
        parts = [client.submit(read, number, name, pure=False) for number, name in enumerate(names)]
        return select_parts(parts, OnDask(client), plan, weights is not None, progress, begin)


def _read(number: int, path: str, target: str | None, weights: str | None, reading: Reading | None) -> Rows:
    """Read a file, on a worker."""
    roles = assign_roles(read_table(path, reading=reading, may_be_empty=True), target, weights)
    return Rows(number, *roles.split(), roles.weights)


def _rows(number: int, X: Any, y: Any, weights: Any = None) -> Rows:
    """Return a part of a collection; the columns of arrays are called as those of an array in memory."""
    import pandas as pd

    if not hasattr(X, "columns"):
        if X.ndim != 2:
            raise DataError(f"X must have two dimensions (rows, columns), not {X.ndim}")
        X = pd.DataFrame(X, columns=list(array_names(X.shape[1])))
    if not hasattr(y, "iloc"):
        values = np.asarray(y)
        y = pd.DataFrame(values).add_prefix("y") if values.ndim == 2 and values.shape[1] > 1 else as_vector(y)
        y = y if hasattr(y, "iloc") else pd.Series(y, name="y")
    return Rows(number, X, y, weights)


def _pieces(collection: Any, name: str) -> list[Any]:
    """Return the parts of a collection, each with all columns of its rows."""
    delayed = collection.to_delayed()
    if isinstance(delayed, list):
        return delayed
    if delayed.ndim > 1 and delayed.shape[1] > 1:
        raise DataError(f"{name} is cut into parts of columns; rechunk it to parts of rows: {name}.rechunk((N, -1))")
    return list(np.ravel(delayed))
