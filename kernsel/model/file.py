"""The arrays of a model file: their sizes are checked before anything is allocated, their contents before any is used.

A model file is an ``.npz``: a zip archive of one ``.npy`` a member. A checksum tells a damaged file from a whole one;
it doesn't tell a file that was made to do harm, for whoever makes one can compute it. So a file holds no code, no
pickle, nothing that takes more room than its size lets expect, and no number that an index, a loop or a shape would
trip over.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from kernsel.data.columns import MAX_FEATURES
from kernsel.errors import ModelError
from kernsel.numerics.points import Points, as_points, is_sparse
from kernsel.system.memory import memory_limit

Arrays = Mapping[str, npt.NDArray[Any]]

FORMAT, VERSION = "kernsel-model", 1

SMALL, RATIO = 2**26, 100
"""A file may unpack to 64 MiB, and to a hundred times its own size more: numbers don't compress so well, zeros do."""

_ARCHIVE = (
    *(ValueError, OSError, EOFError, KeyError, SyntaxError, RuntimeError, MemoryError),
    *(zlib.error, zipfile.BadZipFile, struct.error, tokenize.TokenError),
)
"""What NumPy and zipfile raise on a file that is damaged or none of theirs: flags, sizes and text in it are garbage."""

_TEXT, _REAL, _WHOLE = ("U",), ("f8",), ("i4", "i8")
_MEMBERS: dict[str, tuple[tuple[str, ...], int]] = {
    "header": (_TEXT, 0),
    "checksum": (_TEXT, 0),
    "rows": (_REAL, 2),
    "rows_data": (_REAL, 1),
    "rows_indices": (_WHOLE, 1),
    "rows_indptr": (_WHOLE, 1),
    "rows_shape": (_WHOLE, 1),
    "coefficients": (_REAL, 2),
    "bias": (_REAL, 1),
    "output_shift": (_REAL, 1),
    "output_scale": (_REAL, 1),
    "limits": (_REAL, 2),
    "margins": (_REAL, 2),
    "intervals_coefficients": (_REAL, 3),
    "intervals_biases": (_REAL, 2),
    "intervals_residuals": (_REAL, 2),
    "intervals_starts": (_WHOLE, 1),
    "intervals_weights": (_REAL, 1),
    "intervals_limits": (_REAL, 3),
    "intervals_classes": (_WHOLE, 1),
    "intervals_strata": (_WHOLE, 2),
    "scale_coefficients": (_REAL, 3),
    "scale_biases": (_REAL, 2),
    "scale_floors": (_REAL, 1),
    "sums_packed": (_REAL, 2),
    "sums_right": (_REAL, 2),
    "sums_targets": (_REAL, 2),
    "sums_coupling": (_REAL, 2),
    "sums_factors": (_REAL, 1),
}
"""The types that each array of a file may have, and its number of dimensions."""

_OF_SPARSE = ("data", "indices", "indptr", "shape")


def write_arrays(stream: BinaryIO, header: Mapping[str, object], arrays: Arrays, small: int = SMALL) -> None:
    """Write a header and arrays, with a checksum over all of it.

    What would look like a bomb, as it unpacks to more than ``small`` bytes and ``RATIO`` times its size, is not
    compressed.
    """
    contents: dict[str, Any] = {"header": np.array(json.dumps(header)), **arrays}
    contents["checksum"] = np.array(checksum(contents))
    np.savez_compressed(stream, **contents)  # NumPy 2.0 has no allow_pickle
    if stream.seekable() and sum(each.nbytes for each in contents.values()) > small + RATIO * stream.tell():
        stream.seek(0)
        stream.truncate()
        np.savez(stream, **contents)  # NumPy 2.0 would take allow_pickle for an array


def read_arrays(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the header of a model file, and its arrays by name.

    Raises
    ------
    ModelError
        There is no such file, it isn't a model, it is damaged, it takes more room than such a file does, or another
        version wrote it.
    """
    try:
        if path.is_dir():
            raise ModelError(f"{path} is a folder; give the name of a model file")
        if not path.exists():
            raise ModelError(f"there is no file {path}; give a model that was saved with --model or Model.save")
        if not path.is_file():
            raise ModelError(f"{path} is a pipe or a device; save the model to a file, and give that one")
    except OSError as error:  # the name is too long
        raise ModelError(f"can't read {str(path)[:80]}: {error.strerror}; check the name") from error
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            _check_sizes(path, archive)
            header = _header(path, archive)
            contents = {name: _read(archive, name) for name in _names(path, archive)}
            told, found = str(contents.pop("checksum")), checksum(contents)
    except PermissionError as error:
        raise ModelError(f"can't read {path}: {error.strerror}; check its permissions") from error
    except ModelError:
        raise
    except _ARCHIVE as error:
        reason = (
            "is damaged; get another copy of it"
            if zipfile.is_zipfile(path)
            else "isn't a model of kernsel, or is cut; give one that was saved with --model"
        )
        raise ModelError(f"{path} {reason} ({type(error).__name__})") from error
    if told != found:
        raise ModelError(f"{path} is damaged: its checksum doesn't fit its contents; get another copy of it")
    return header, contents


def rows_to(rows: Points) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that hold rows in a file."""
    if not is_sparse(rows):
        return {"rows": rows}
    return {f"rows_{part}": np.asarray(getattr(rows, part)) for part in _OF_SPARSE}


def rows_from(contents: Arrays) -> Points:
    """Return the rows that arrays of a file hold; ValueError if they can't be rows."""
    if "rows" in contents:
        _need(bool(np.isfinite(contents["rows"]).all()), "rows that aren't finite")
        return as_points(contents["rows"])
    data, indices, indptr, shape = (contents[f"rows_{part}"] for part in _OF_SPARSE)
    _need(shape.shape == (2,) and shape.min() >= 0 and shape[1] <= MAX_FEATURES, "a shape that rows can't have")
    m, d = map(int, shape)
    _need(indptr.shape == (m + 1,) and indptr[0] == 0 and bool((np.diff(indptr) >= 0).all()), "bounds of no rows")
    _need(data.shape == indices.shape == (int(indptr[-1]),), "sparse rows of another length")
    _need(bool(((indices >= 0) & (indices < d)).all()), "columns beyond the last one")
    _need(bool(np.isfinite(data).all()), "rows that aren't finite")
    return as_points(csr_array((data, indices, indptr), shape=(m, d)))


def check_shapes(contents: Arrays, m: int) -> None:
    """Raise ValueError unless all arrays are finite and have the shapes that a model with m rows has.

    See ``Model`` and ``Intervals`` for the shapes.
    """
    for name, array in contents.items():
        if name != "header":
            # The limits of an output may be infinite, which is as good as none.
            bad = np.isnan(array) if name.endswith("limits") else ~np.isfinite(array)
            _need(not bad.any(), f"{name} that aren't finite")
    k = contents["bias"].size
    _need(m >= 1 and k >= 1, "no rows or no outputs")
    wanted: dict[str, tuple[int, ...]] = {"coefficients": (k, m), "output_shift": (k,), "output_scale": (k,)}
    if "limits" in contents:
        wanted["limits"] = (2, k)
    if "margins" in contents:
        wanted["margins"] = (2, k)
        _need("limits" in contents and bool((contents["margins"] >= 0).all()), "margins of no limits, or below 0")
    if any(name.startswith("intervals_") for name in contents):
        t, n = len(contents["intervals_starts"]) - 1, contents["intervals_weights"].size
        classes = "intervals_classes" in contents
        wanted |= {"intervals_coefficients": (t, k, m), "intervals_biases": (t, k)}
        wanted |= {"intervals_residuals": (1 if classes else k, n)} | ({"intervals_classes": (n,)} if classes else {})
        if "intervals_limits" in contents:
            wanted["intervals_limits"] = (2, k, t)
        if "intervals_strata" in contents:
            _need(contents["intervals_strata"].shape[1] == n, "categories of other rows")
        if "scale_floors" in contents:
            wanted |= {"scale_coefficients": (t, k, m), "scale_biases": (t, k), "scale_floors": (k,)}
            _need(bool((contents["scale_floors"] > 0).all()), "a least width that isn't positive")
        starts = contents["intervals_starts"]
        _need(t >= 1 and n >= 1 and starts[0] == 0 and starts[-1] == n, "folds of other rows")
        _need(bool((np.diff(starts) >= 0).all()), "folds that overlap")
        _need(bool((contents["intervals_weights"] > 0).all()), "weights that aren't positive")
    for name, shape in wanted.items():
        _need(contents[name].shape == shape, f"{name} of shape {contents[name].shape} in place of {shape}")
    _need(bool((contents["output_scale"] > 0).all()), "a scale that isn't positive")


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _check_sizes(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse a file that unpacks to more than its size lets expect, or than there is memory."""
    total = sum(info.file_size for info in archive.infolist())
    limit = memory_limit()
    if total > SMALL + RATIO * path.stat().st_size or (limit is not None and total > limit):
        raise ModelError(
            f"{path} would unpack from {path.stat().st_size / 2**20:.0f} MB to {total / 2**20:.0f} MB, which no model "
            "does; get another copy of it"
        )


def _header(path: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    """Return the header, checked for format and version."""
    if "header.npy" not in archive.namelist():
        raise ModelError(f"{path} isn't a model of kernsel; give one that was saved with --model")
    text = str(_read(archive, "header"))
    try:
        header = json.loads(text)
        known = header["format"] == FORMAT
        version = int(header["version"])
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ModelError(f"{path} isn't a model of kernsel; give one that was saved with --model") from error
    if not known:
        raise ModelError(f"{path} isn't a model of kernsel (its format is {str(header['format'])[:40]!r})")
    if version != VERSION:
        raise ModelError(f"{path} has format version {version}, this kernsel reads version {VERSION}; upgrade kernsel")
    return dict(header)


def _names(path: Path, archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the arrays; ModelError if there are others than those of a model, or fewer."""
    members = [info.filename for info in archive.infolist()]
    names = [name.removesuffix(".npy") for name in members]
    foreign = [m for m, n in zip(members, names, strict=True) if m == n or n not in _MEMBERS or members.count(m) > 1]
    if foreign:
        raise ModelError(f"{path} isn't a model of kernsel: it holds {foreign[0][:40]!r}; get another copy of it")
    lacking = sorted({"checksum", "coefficients", "bias", "output_shift", "output_scale"}.difference(names))
    groups = (("rows",), tuple(f"rows_{part}" for part in _OF_SPARSE))
    if lacking or sum(set(group) <= set(names) for group in groups) != 1:
        raise ModelError(f"{path} is damaged: it lacks {', '.join(lacking) or 'its rows'}; get another copy of it")
    return names


def _read(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    """Return one array; ValueError unless its declared type and shape are of its kind, and as large as its member."""
    kinds, dimensions = _MEMBERS[name]
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = readers[version](stream)
        kind = dtype.kind if dtype.kind == "U" else f"{dtype.kind}{dtype.itemsize}"
        size = math.prod(shape) * dtype.itemsize
        if kind not in kinds or len(shape) != dimensions or size != member.file_size - stream.tell():
            raise ValueError(f"{name} is of another type or size")
    with archive.open(member) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    return np.asarray(array)


def checksum(contents: Arrays) -> str:
    """SHA-256 over names, types, shapes and bytes of all arrays, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(contents):
        array = np.asarray(contents[name], order="C")
        digest.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.reshape(-1).view(np.uint8).data if array.nbytes else b"")
    return digest.hexdigest()
