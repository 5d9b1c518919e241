"""Kernels from text, ``gaussian(tau=2) + 0.5*linear``, and from the dictionaries that result files hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kernsel.errors import OptionError, UnknownPlugin
from kernsel.kernels.base import Kernel, On, Product, Scale, Sum
from kernsel.kernels.given import Precomputed
from kernsel.protocols import Value

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:[-.:][A-Za-z_]\w*)*")
"""A name as distributions write them, ``my-package:my-kernel``: kernels are never subtracted, so "-" is a letter."""

_SHOWN = 4  # numbers of a vector, or parts of a sum, in a short text

_LONG = 120  # letters of a sum, of which only the first part is shown then

_GRAMMAR = (
    "write kernels as name or name(parameter=number), joined by + and *, such as 'gaussian(tau=2) + 0.5*linear'; "
    "several numbers are in parentheses, as in 'ard(theta=(0.5, 0.1), profile=matern32)'; behind a kernel, the "
    "features it sees, from 0, as in 'linear[0, 3]'"
)

ALGEBRA = ("sum", "product", "scale", "on")
"""The names of the kernels that are made of kernels."""


def parse(text: str) -> Kernel:
    """Build a kernel from its text; the inverse of ``str(kernel)``.

    Parameters
    ----------
    text : str
        Names that the registry knows, each with or without parameters in parentheses; ``+``, ``*``, numbers and
        parentheses; features in brackets behind what is to see only these. Nothing is executed.

    Raises
    ------
    OptionError
        If the text can't be read, or names an unknown kernel or parameter.
    """
    names: list[str] = []

    def placeholder(match: re.Match[str]) -> str:
        names.append(match.group())
        return f"_{len(names) - 1}_"

    try:
        tree = ast.parse(_NAME.sub(placeholder, text).strip(), mode="eval")
        result = _build(tree.body, names)
    except (SyntaxError, RecursionError, MemoryError, _Unreadable) as error:
        # A deeply nested or overlong text makes the parser give up by the last two.
        raise OptionError(f"kernel '{text}' can't be read; {_GRAMMAR}") from error
    if not isinstance(result, Kernel):
        raise OptionError(f"kernel '{text}' is a number; {_GRAMMAR}")
    return result


def from_spec(spec: Mapping[str, Any]) -> Kernel:
    """Build a kernel from the dictionary that ``kernel.spec()`` gives.

    Raises
    ------
    OptionError
        If the dictionary is not one of those, or names an unknown kernel or parameter.
    """
    if not isinstance(spec, Mapping) or not isinstance(spec.get("kernel"), str):
        raise OptionError(f"a kernel description needs the key 'kernel', got {spec!r}")
    name = spec["kernel"]
    if name == "function":
        raise OptionError(
            f"the kernel was the Python function {spec.get('function')!r}, which no file holds; offer it as a plugin's "
            "kernel, or keep the model by pickle"
        )
    if name == Precomputed.name:
        return Precomputed()
    if "parts" in spec and name in ALGEBRA:
        parts = [from_spec(part) for part in spec["parts"]]
        return _combine(name, parts, factor=spec.get("factor"), features=spec.get("features"))
    return _named(name, dict(spec.get("parameters", {})))


def short(kernel: Kernel) -> str:
    """Return the kernel's text for people.

    Numbers have four digits; of many relevances or parts there are the first few only; those that views of
    features are read off are left out.
    """
    if isinstance(kernel, Sum):
        if len(kernel.parts) > _SHOWN:
            return f"{short(Sum(kernel.parts[: _SHOWN - 1]))} + ... ({len(kernel.parts)} kernels in all)"
        parts = list(map(short, kernel.parts))
        return f"{parts[0]} + ... ({len(parts)} kernels in all)" if sum(map(len, parts)) > _LONG else " + ".join(parts)

    def some(match: re.Match[str]) -> str:
        values = match.group().strip("(),").split(", ")
        return f"({', '.join(values[:_SHOWN])}, ... {len(values)} in all)" if len(values) > _SHOWN else match.group()

    rounded = re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda number: f"{float(number.group()):.4g}", str(kernel))
    return re.sub(r"(?<==)\([^()]*\)", some, re.sub(r", (?:quantiles|logs)=\([^()]*\)", "", rounded))


class _Unreadable(Exception):
    """The text is Python, but no kernel."""


def _named(name: str, values: dict[str, Value | None], *, text: bool = False) -> Kernel:
    from kernsel import registry

    if name == Precomputed.name:
        raise OptionError(
            "kernel 'precomputed' is for a square Gram matrix in Python, kernsel.select(K, y, kernel='precomputed'), "
            "and stands alone"
        )
    try:
        kernel = registry.get("kernel", name)
    except UnknownPlugin as error:
        raise OptionError(str(error)) from error
    if text and any(isinstance(value, str) and key not in kernel.words for key, value in values.items()):
        raise _Unreadable
    built: Kernel = kernel.build(**values)
    return built


def _build(node: ast.expr, names: list[str]) -> Kernel | float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float() as value)):
            return -value if isinstance(node.op, ast.USub) else value
        case ast.Name(id=key):
            return _named(_original(key, names), {})
        case ast.Call(func=ast.Name(id=key), args=[], keywords=keywords):
            values = dict(_keyword(keyword, names) for keyword in keywords)
            return _named(_original(key, names), values, text=True)
        case ast.Subscript(value=value, slice=listed):
            part = _build(value, names)
            elements = listed.elts if isinstance(listed, ast.Tuple) else [listed]
            features: list[Any] = [element.value for element in elements if isinstance(element, ast.Constant)]
            if not isinstance(part, Kernel) or len(features) < len(elements):
                raise _Unreadable
            return On(tuple(features), part)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() as operation, right=right):
            return _join(_build(left, names), operation, _build(right, names))
    raise _Unreadable


def _join(left: Kernel | float, operation: ast.operator, right: Kernel | float) -> Kernel | float:
    if not isinstance(operation, ast.Add):
        return left * right
    if not isinstance(left, Kernel) and not isinstance(right, Kernel):
        raise _Unreadable
    return left + right


def _keyword(keyword: ast.keyword, names: list[str]) -> tuple[str, Value | None]:
    if keyword.arg is None:
        raise _Unreadable
    name = _original(keyword.arg, names)
    match keyword.value:
        case ast.Name(id=key):
            word = _original(key, names)
            return name, None if word == "None" else word
        case ast.Constant(value=str() as key) if re.fullmatch(r"_\d+_", key):  # a word in quotes
            return name, _original(key, names)
        case ast.Tuple(elts=values) | ast.List(elts=values):
            return name, tuple(_number(value, names) for value in values)
        case value:
            return name, _number(value, names)


def _number(node: ast.expr, names: list[str]) -> float:
    number = _build(node, names)
    if isinstance(number, Kernel):
        raise _Unreadable
    return number


def _original(key: str, names: list[str]) -> str:
    return names[int(key.strip("_"))]


def _combine(name: str, parts: Sequence[Kernel], *, factor: Any = None, features: Any = None) -> Kernel:
    """Build a kernel that is made of kernels from its name, the inverse of their ``spec``."""
    if name in ("scale", "on"):
        what, value = ("a factor", factor) if name == "scale" else ("features", features)
        if value is None or len(parts) != 1:
            raise OptionError(f"kernel '{name}' needs {what} and one part")
        return Scale(value, parts[0]) if name == "scale" else On(value, parts[0])
    return {"sum": Sum, "product": Product}[name](tuple(parts))
