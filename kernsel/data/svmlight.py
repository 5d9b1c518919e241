"""Read the svmlight format: a target, then ``number:value`` for each feature that isn't 0."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array, hstack

from kernsel.data.blocks import grown
from kernsel.data.columns import check_features
from kernsel.data.layout import Reading
from kernsel.data.sources import Fit, Source
from kernsel.data.tables import SparseTable
from kernsel.errors import DataError
from kernsel.numerics.points import Points, as_points

SUFFIXES = (".svmlight", ".libsvm", ".svm")
TEXT = (".csv", ".tsv", ".tab", ".psv")
"""Files of these names are never taken for svmlight."""
TARGET = 2**31 - 2
"""The column of the target until it is known how many features a file has."""
SAMPLE = 2**16
ROW = re.compile(rb"\s*[-+]?[\d.][-+\d.eE]*(\s+qid:\d+)?(\s+\d+:[-+\d.eEnaif]+)*\s*(#.*)?")
"""A line of the format. (Tables with times in them, 1 12:30, have fewer such lines than all.)"""


@dataclass(frozen=True)
class Svmlight:
    """The svmlight format: a target, then ``number:value`` for each feature that isn't 0."""

    name: ClassVar[str] = "svmlight"

    def fits(self, source: Source, reading: Reading) -> Fit:
        """Return what its name says, or its first lines where nothing says that it is another text."""
        if source.suffix in SUFFIXES:
            return Fit.NAME
        other = source.suffix in TEXT or reading.sep is not None or reading.sheet is not None
        return Fit.NOT if other or not looks_like_svmlight(source) else Fit.LOOK

    def read(self, source: Source, reading: Reading, expected: list[str] | None) -> SparseTable:
        """Return the table of a file, sparse."""
        reading.check_only(source, "an svmlight file")
        table = read_svmlight(source, expected)
        if source.suffix not in SUFFIXES:
            table.attrs["notes"].append("reading: svmlight, by what the first lines look like")
        return table


def looks_like_svmlight(source: Source) -> bool:
    """Say whether all of the first lines are of the format, and most of them have features."""
    lines = source.head(SAMPLE).split(b"\n")
    lines = [line for line in lines[: max(1, len(lines) - 1)] if line.strip() and not line.lstrip().startswith(b"#")]
    having = sum(bool(re.search(rb"\s\d+:[-+.\d]", line)) for line in lines)
    return bool(lines) and 2 * having > len(lines) and all(map(ROW.fullmatch, lines))


def read_svmlight(source: Source, expected: Iterable[str] | None) -> SparseTable:
    """Read a table with the features ``f1, f2, ...`` and a last column ``target``; features stay sparse."""
    if not source.head(1):
        raise DataError(f"{source.name} is empty; give a table with rows")
    values, columns, lengths = np.empty(0), np.empty(0, np.int32), np.empty(0, np.int64)
    try:
        with source.open() as stream:
            while lines := stream.read(source.at_once):
                block = _rows(lines + stream.readline())
                values, columns = grown(values, block.data), grown(columns, block.indices)
                lengths = grown(lengths, np.diff(block.indptr))
    except (ValueError, OverflowError) as error:
        raise DataError(f"{source.name} isn't an svmlight file ({' '.join(str(error).split())[:80]})") from error
    is_target = columns == TARGET
    wanted = [int(name[1:]) for name in expected or () if name[:1] == "f" and name[1:].isdecimal()]
    width = max([1, *(index + 1 for index in wanted), int(columns.max(where=~is_target, initial=0)) + 1])
    check_features(width, source.name)
    first = 0 if 0 in wanted or (columns == 0).any() else 1
    columns[is_target] = width
    columns -= first
    names = (*(f"f{index}" for index in range(first, width)), "target")
    starts = np.concatenate([[0], np.cumsum(lengths)])
    X = csr_array((values, columns, starts), shape=(len(lengths), len(names)))
    return SparseTable(as_points(X), names, {"notes": []})


def _rows(lines: bytes) -> Points:
    """Return the rows of some lines, the target in the column ``TARGET``."""
    from sklearn.datasets import load_svmlight_file

    # Features keep the number that the file gives them; svmlight counts from 1, some writers from 0.
    try:
        X, y = load_svmlight_file(BytesIO(lines), n_features=TARGET, zero_based=True)
    except ValueError as error:
        if "sorted and unique" not in str(error):
            raise
        X, y = load_svmlight_file(BytesIO(_sorted(lines)), n_features=TARGET, zero_based=True)
    return as_points(hstack([X, csr_array(y[:, None])]))


def _sorted(lines: bytes) -> bytes:
    """Return lines with the features of each in the order of their numbers."""
    rows = []
    for line in lines.splitlines():
        head, *pairs = line.partition(b"#")[0].split()[: None if line.strip() else 0] or [b""]
        named = [pair for pair in pairs if pair.startswith(b"qid:")]
        numbered = sorted((pair for pair in pairs if pair not in named), key=lambda pair: int(pair.partition(b":")[0]))
        numbers = [int(pair.partition(b":")[0]) for pair in numbered]
        if len(set(numbers)) < len(numbers):
            twice = next(number for number in numbers if numbers.count(number) > 1)
            raise ValueError(f"a row has the feature {twice} twice")
        rows.append(b" ".join([head, *named, *numbered]))
    return b"\n".join(rows) + b"\n"
