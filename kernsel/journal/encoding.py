"""Values as JSON and back, bit by bit; and fingerprints of values, by which a step of a run is known again.

A number, text or list is itself in JSON, as Python writes a float with all the digits that it has. What JSON has no
form for is an object of one key that says what it is: ``f`` a number that isn't finite, ``t`` a tuple, ``d`` a
dictionary, ``a`` an array of NumPy, ``s`` a scalar of NumPy, ``o`` a dataclass or named tuple of kernsel. Reading makes
these and nothing else.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import importlib
import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kernsel.numerics.points import is_sparse

OWN = "kernsel."
"""Where the classes are from that may be read back."""

PLAIN = "biufSU"
"""Kinds of arrays whose bytes are their values."""

DIGEST = 16
"""Bytes of a fingerprint: two values of 2^64 have the same one by chance."""


class Unwritable(Exception):
    """A value has no exact form here: it is of a plugin's class, or a function."""


def encode(value: object) -> Any:
    """Return what JSON holds for a value; Unwritable if it has no exact form."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is float:
        return {"f": repr(value)}
    if type(value) is list:
        return [encode(each) for each in value]
    if type(value) is tuple:
        return {"t": [encode(each) for each in value]}
    if type(value) is dict:
        return {"d": [[encode(key), encode(each)] for key, each in value.items()]}
    if isinstance(value, np.generic) and value.dtype.kind in PLAIN:
        return {"s": [value.dtype.str, _text(value.tobytes())]}
    if type(value) is np.ndarray and value.dtype.kind in PLAIN:
        return {"a": [value.dtype.str, list(value.shape), _text(np.ascontiguousarray(value))]}
    if type(value) is np.ndarray and value.dtype == object:
        return {"a": ["|O", list(value.shape), [encode(each) for each in value.ravel()]]}
    names = _fields(value)
    if names is None or not type(value).__module__.startswith(OWN):
        raise Unwritable(f"{type(value).__name__} has no exact form")
    place = f"{type(value).__module__}:{type(value).__qualname__}"
    return {"o": [place, {name: encode(getattr(value, name)) for name in names}]}


def decode(form: object) -> Any:
    """Return the value that ``encode`` made a form of; ValueError, TypeError, KeyError or so if it is none."""
    if isinstance(form, list):
        return [decode(each) for each in form]
    if not isinstance(form, dict):
        return form
    ((kind, content),) = form.items()
    return _READERS[kind](content)


def _text(data: Any) -> str:
    return base64.b64encode(data).decode()


def _fields(value: object) -> list[str] | None:
    """Return the names of what a dataclass or a named tuple is made from; None if it is neither."""
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value) if field.init]
    return list(value._fields) if isinstance(value, tuple) and hasattr(value, "_fields") else None


def _array(content: Any) -> Any:
    dtype, shape, data = content
    if dtype == "|O":
        array = np.empty(len(data), object)
        array[:] = [decode(each) for each in data]
        return array.reshape(shape)
    return np.frombuffer(base64.b64decode(data), np.dtype(dtype)).reshape(shape).copy()


def _scalar(content: Any) -> Any:
    dtype, data = content
    return np.frombuffer(base64.b64decode(data), np.dtype(dtype))[0]


def _object(content: Any) -> Any:
    place, values = content
    module, _, name = place.partition(":")
    kind: Any = importlib.import_module(module) if module.startswith(OWN) else None
    for part in name.split("."):
        kind = getattr(kind, part)
    if not isinstance(kind, type) or not (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")):
        raise ValueError(f"{place} holds no values")
    return kind(**{each: decode(form) for each, form in values.items()})


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "f": float,
    "t": lambda content: tuple(map(decode, content)),
    "d": lambda content: {decode(key): decode(each) for key, each in content},
    "a": _array,
    "s": _scalar,
    "o": _object,
}


_known: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Fingerprints of what has an identity: that of many rows is taken once."""


def fingerprint(value: object) -> str:
    """Return a text that is another one for another value; Unwritable for what has no identity, such as a function.

    Parameters
    ----------
    value : object
        Numbers, texts, arrays, sparse rows, dataclasses of all these, what says by its ``identity`` which of its fields
        count, and lists and mappings.
    """
    hasher = hashlib.blake2b(digest_size=DIGEST)
    _feed(hasher.update, value)
    return hasher.hexdigest()


def _feed(update: Callable[[Any], None], value: Any) -> None:
    if value is None or isinstance(value, bool | str | int | float | np.bool_ | np.number):
        plain = value.item() if isinstance(value, np.generic) else value
        update(json.dumps(plain).encode() + b";")
    elif isinstance(value, np.ndarray) and value.dtype != object:
        update(f"a{value.dtype.str}{value.shape};".encode())
        update(np.ascontiguousarray(value).view(np.uint8) if value.size else b"")
    elif hasattr(value, "to_numpy"):  # a column of pandas, or several
        _feed(update, (list(getattr(value, "columns", ())), value.to_numpy()))
    elif is_sparse(value):
        _feed(update, (value.shape, value.data, value.indices, value.indptr))
    elif hasattr(type(value), "identity"):
        if value not in _known:
            _known[value] = fingerprint(value.identity)
        update(f"i{type(value).__qualname__}{_known[value]};".encode())
    elif isinstance(value, Mapping):
        _feed(update, list(value.items()))
    elif (names := _fields(value)) is not None:
        update(f"o{type(value).__module__}:{type(value).__qualname__}{_code(type(value).__module__)};".encode())
        for name in names:
            _feed(update, getattr(value, name))
    elif isinstance(value, list | tuple | np.ndarray):
        update(f"l{len(value)};".encode())
        for each in value:
            _feed(update, each)
    else:
        raise Unwritable(f"{type(value).__name__} has no identity")


@functools.cache
def _code(module: str) -> str:
    """Return what says whether the code of a class is another one by now; nothing of kernsel's, which has a version."""
    if module.startswith(OWN):
        return ""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        raise Unwritable(f"nobody knows whether the code of {module} is what it was")
    return hashlib.blake2b(Path(file).read_bytes(), digest_size=DIGEST).hexdigest()
