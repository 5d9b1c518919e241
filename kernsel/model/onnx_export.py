"""A model as a graph of ONNX, in double precision: encode, distances, profile, product.

With the m rows r_j of the model, every kernel is a profile of one of the statistics ``<x, r_j>``, ``|x - r_j|^2`` and
``sum |x - r_j|``, or a sum, product or multiple of such. So the graph is a few matrix products and elementwise nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.data.choices import HAMMING
from kernsel.errors import ModelError, OptionError
from kernsel.heldout.calibration import Isotonic, Sigmoid
from kernsel.heldout.vennabers import VennAbers
from kernsel.kernels import Kernel, On, Product, Scale, Sum
from kernsel.kernels.logs import Log
from kernsel.kernels.ranks import Rank
from kernsel.numerics import gram
from kernsel.numerics.points import dense
from kernsel.protocols.kernels import Formula, SupportsFactors, SupportsFormula, SupportsTurning, SupportsViews
from kernsel.types import Array

if TYPE_CHECKING:
    from kernsel.model.expansion import Expansion


OPSET, OPSET_ML, IR = 17, 3, 8
"""Versions of 2022, which every runtime of today reads."""


def to_graph(model: Expansion) -> Any:
    """Return the model as an ``onnx.ModelProto``: see ``Model.to_onnx``."""
    try:
        import onnx
    except ImportError as error:
        raise OptionError("a graph of ONNX needs the package onnx: pip install 'kernsel[onnx]'") from error
    graph = _Graph(onnx)
    K = _kernel(graph, model.kernel, _encoded(graph, model), dense(model.rows))
    F = graph.add("Add", graph.add("MatMul", K, graph.constant(model.coefficients.T)), graph.constant(model.bias))
    if model.labels is None:
        _values(graph, model, F)
    else:
        _classes(graph, model, F)
    made = onnx.helper.make_graph(graph.nodes, "kernsel", graph.inputs, graph.outputs, graph.constants)
    versions = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", OPSET_ML)]
    proto = onnx.helper.make_model(
        made, opset_imports=versions, ir_version=IR, producer_name="kernsel", doc_string=repr(model)
    )
    onnx.checker.check_model(proto)
    return proto


class _Graph:
    """Nodes in their order, with names that are made for them."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def add(self, operation: str, *inputs: str, name: str | None = None, domain: str = "", **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        name = name or f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operation, list(inputs), [name], domain=domain, **attributes))
        return name

    def constant(self, values: npt.ArrayLike) -> str:
        """Add an array, and return its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def input(self, name: str, kind: str, width: int) -> str:
        """Add an input (n, width)."""
        self.inputs.append(self._described(name, kind, [None, width]))
        return name

    def output(self, name: str, kind: str, shape: list[int | None]) -> None:
        """Declare what a node made an output."""
        self.outputs.append(self._described(name, kind, shape))

    def _described(self, name: str, kind: str, shape: list[int | None]) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, getattr(self.onnx.TensorProto, kind), shape)

    def cast(self, value: str, kind: str) -> str:
        """Add a conversion of type."""
        return self.add("Cast", value, to=getattr(self.onnx.TensorProto, kind))


def _encoded(graph: _Graph, model: Expansion) -> str:
    """Add the inputs and the encoding, (n, d)."""
    encoder = model.encoder
    if encoder is None:
        return graph.input("X", "DOUBLE", model.rows.shape[1])
    if encoder.law is not None or encoder.gaps:
        raise ModelError(
            "what fills in missing values, given the others of a row, has no graph in ONNX: select with missing='drop' "
            "or fill them in before"
        )
    columns = encoder.numeric if encoder.categories else encoder.columns
    parts = []
    if encoder.numeric:
        X = graph.input("X", "DOUBLE", len(columns))
        if tuple(columns) != tuple(encoder.numeric):
            places = np.array([columns.index(name) for name in encoder.numeric], dtype=np.int64)
            X = graph.add("Gather", X, graph.constant(places), axis=1)
        if encoder.fills and encoder.missing != "refuse":
            means = graph.constant(np.array([encoder.fills[name] for name in encoder.numeric], dtype=np.float64))
            X = graph.add("Where", graph.add("IsNaN", X), means, X)
        centred = graph.add("Sub", X, graph.constant(encoder.mean))
        parts.append(graph.add("Div", centred, graph.constant(encoder.scale)))
    for column, known in encoder.categories.items():
        parts += _categories(graph, column, known, encoder.pooled.get(column, ()), encoder.coding == HAMMING)
    return graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _categories(graph: _Graph, column: str, known: Sequence[str], rare: Sequence[str], hamming: bool) -> list[str]:
    """Add a column of text and its coding: the categories, whether it is a rare one, and whether it is a new one."""
    text = graph.input(column, "STRING", 1)

    def among(values: Sequence[str]) -> str:
        coded = graph.add("OneHotEncoder", text, domain="ai.onnx.ml", cats_strings=list(values), zeros=1)
        flat = graph.add("Reshape", coded, graph.constant(np.array([-1, len(values)], dtype=np.int64)))
        return graph.cast(flat, "DOUBLE")

    def any_of(coded: str) -> str:
        return graph.add("ReduceSum", coded, graph.constant(np.array([1])), keepdims=1)

    parts = [among(known)]
    if rare:
        parts.append(any_of(among(rare)))
    if hamming:
        parts.append(graph.add("Sub", graph.constant(1.0), any_of(among([*known, *rare]))))
    return parts


def _kernel(graph: _Graph, kernel: Kernel, X: str, rows: Array) -> str:
    """Add the kernel of new rows with those of the model, (n, m)."""
    if isinstance(kernel, Sum | Product):
        first, *others = (_kernel(graph, part, X, rows) for part in kernel.parts)
        for other in others:
            first = graph.add("Add" if isinstance(kernel, Sum) else "Mul", first, other)
        return first
    if isinstance(kernel, Scale):
        return graph.add("Mul", _kernel(graph, kernel.part, X, rows), graph.constant(float(kernel.factor)))
    if isinstance(kernel, On):
        places = np.array(kernel.features, dtype=np.int64)
        some = graph.add("Gather", X, graph.constant(places), axis=1)
        return _kernel(graph, kernel.part, some, np.ascontiguousarray(rows[:, places]))
    if isinstance(kernel, SupportsViews) and kernel.views:
        return _kernel(graph, kernel.plain, _with_views(graph, kernel, X), kernel.with_views_beside(rows))
    if isinstance(kernel, SupportsTurning):
        turned = graph.add("MatMul", X, graph.constant(np.ascontiguousarray(kernel.array)))
        return _kernel(graph, kernel.alone, turned, kernel.turned(rows))
    if not isinstance(kernel, SupportsFormula) or kernel.statistic not in gram.STATISTICS:
        raise ModelError(f"kernel '{kernel.name}' has no graph in ONNX: it says no formula of a statistic")
    if isinstance(kernel, SupportsFactors):
        factors = kernel.column_factors
        X, rows = graph.add("Mul", X, graph.constant(factors)), rows * factors
    return _profile(graph, kernel.formula(), _statistic(graph, kernel.statistic, X, rows))


def _with_views(graph: _Graph, kernel: SupportsViews, X: str) -> str:
    """Add the views of features as further columns, (n, d + r)."""
    beside = []
    for view in kernel.views:
        column = graph.add("Gather", X, graph.constant(np.array([view.feature])), axis=1)
        if isinstance(view, Rank):
            beside.append(_pieces(graph, view.values, view.ranks, column))
        elif isinstance(view, Log):
            shifted = graph.add("Add", column, graph.constant(view.shift))
            logs = graph.add("Log", graph.add("Max", shifted, graph.constant(view.least)))
            centred = graph.add("Sub", logs, graph.constant(view.centre))
            beside.append(graph.add("Div", centred, graph.constant(view.spread)))
        else:
            raise ModelError(
                f"a kernel with a feature's{view.ending} has no graph in ONNX: leave that out of the kernel"
            )
    return graph.add("Concat", X, *beside, axis=1)


def _statistic(graph: _Graph, statistic: str, X: str, rows: Array) -> str:
    """Add inner products, squared distances, or sums of absolute differences, (n, m)."""
    if statistic == "l1":
        each = graph.add("Sub", graph.add("Unsqueeze", X, graph.constant(np.array([1]))), graph.constant(rows[None]))
        return graph.add("ReduceSum", graph.add("Abs", each), graph.constant(np.array([2])), keepdims=0)
    inner = graph.add("MatMul", X, graph.constant(np.ascontiguousarray(rows.T)))
    if statistic == "inner":
        return inner
    norms = graph.add("ReduceSum", graph.add("Mul", X, X), graph.constant(np.array([1])), keepdims=1)
    both = graph.add("Add", norms, graph.constant((rows**2).sum(axis=1)))
    apart = graph.add("Sub", both, graph.add("Mul", inner, graph.constant(2.0)))
    return graph.add("Max", apart, graph.constant(0.0))


def _profile(graph: _Graph, formula: Formula, S: str) -> str:
    """Add a formula of statistics, element by element."""
    return _PROFILES[formula.code](graph, formula, S)


def _exponential(graph: _Graph, formula: Formula, S: str) -> str:
    """Add ``(1 + b u + c u^2) exp(-u)``, ``u = a s``."""
    u = graph.add("Mul", S, graph.constant(float(formula.a)))
    decay = graph.add("Exp", graph.add("Neg", u))
    if formula.b == formula.c == 0:
        return decay
    slope = graph.add("Add", graph.constant(float(formula.b)), graph.add("Mul", u, graph.constant(float(formula.c))))
    return graph.add("Mul", decay, graph.add("Add", graph.add("Mul", u, slope), graph.constant(1.0)))


def _of_root(graph: _Graph, formula: Formula, S: str) -> str:
    """Add the same with ``u = a sqrt(s)``."""
    return _exponential(graph, formula, graph.add("Sqrt", S))


def _power(graph: _Graph, formula: Formula, S: str) -> str:
    """Add ``(a s + b)^c``, c a whole number."""
    line = graph.add("Mul", S, graph.constant(float(formula.a)))
    return graph.add("Pow", graph.add("Add", line, graph.constant(float(formula.b))), graph.constant(float(formula.c)))


def _inverse(graph: _Graph, formula: Formula, S: str) -> str:
    """Add ``(1 + a s)^-c``."""
    line = graph.add("Mul", S, graph.constant(float(formula.a)))
    return graph.add("Pow", graph.add("Add", line, graph.constant(1.0)), graph.constant(-float(formula.c)))


_PROFILES: dict[int, Callable[[_Graph, Formula, str], str]] = {
    gram.AS_IT_IS.code: lambda graph, formula, S: S,
    gram.exponential(1.0).code: _exponential,
    gram.exponential(1.0, root=True).code: _of_root,
    gram.power(1.0, 0.0, 1).code: _power,
    gram.inverse(1.0, 1.0).code: _inverse,
}


def _values(graph: _Graph, model: Expansion, F: str) -> None:
    """Add the predictions of a regression, (n, k)."""
    if model.limits is not None:
        low, high = model.limits
        F = graph.add("Min", graph.add("Max", F, graph.constant(low)), graph.constant(high))
    scaled = graph.add("Mul", F, graph.constant(model.output_scale))
    graph.add("Add", scaled, graph.constant(model.output_shift), name="predictions")
    graph.output("predictions", "DOUBLE", [None, len(model.coefficients)])


def _classes(graph: _Graph, model: Expansion, F: str) -> None:
    """Add labels, outputs and probabilities of classes."""
    labels, kind = _labels(model)
    outputs = len(model.coefficients)
    graph.add("Identity", F, name="decisions")
    graph.output("decisions", "DOUBLE", [None, outputs])
    if outputs == 1:
        threshold = 0.0 if model.threshold is None else model.threshold.value
        chosen = graph.cast(graph.add("GreaterOrEqual", F, graph.constant(threshold)), "INT64")
        chosen = graph.add("Reshape", chosen, graph.constant(np.array([-1])))
    else:
        chosen = graph.add("ArgMax", F, axis=1, keepdims=0)
    graph.add("Gather", graph.constant(labels), chosen, name="labels")
    graph.output("labels", kind, [None])
    if model.calibration is None:
        return
    kind_of, curves_of = model.calibration.kind, model.calibration.curves
    if outputs > 1 and kind_of in ("softmax", "temperature"):
        slope = curves_of[0].slope if curves_of and isinstance(curves_of[0], Sigmoid) else 1.0
        scaled = graph.add("Mul", F, graph.constant(slope))
        graph.add("Softmax", scaled, axis=1, name="probabilities")
        graph.output("probabilities", "DOUBLE", [None, outputs])
        return
    first = np.arange(outputs, dtype=np.int64)[:, None]
    columns = [graph.add("Gather", F, graph.constant(each), axis=1) for each in first]
    curves = [_curve(graph, curve, f) for curve, f in zip(curves_of, columns, strict=True)]
    if outputs == 1:
        graph.add("Concat", graph.add("Sub", graph.constant(1.0), curves[0]), curves[0], axis=1, name="probabilities")
    else:
        P = graph.add("Concat", *curves, axis=1)
        total = graph.add("ReduceSum", P, graph.constant(np.array([1])), keepdims=1)
        some = graph.add("Greater", total, graph.constant(0.0))
        shares = graph.add("Div", P, graph.add("Where", some, total, graph.constant(1.0)))
        graph.add("Where", some, shares, graph.constant(np.full(outputs, 1 / outputs)), name="probabilities")
    graph.output("probabilities", "DOUBLE", [None, max(2, outputs)])


def _labels(model: Expansion) -> tuple[npt.NDArray[Any], str]:
    """Return the labels as an array that a graph can hold, and its type there."""
    labels = model.labels or []
    if all(isinstance(label, str) for label in labels):
        return np.array(labels, dtype=object), "STRING"
    if all(isinstance(label, int) for label in labels):  # truth values become 0 and 1
        return np.array(labels, dtype=np.int64), "INT64"
    if all(isinstance(label, float) for label in labels):
        return np.array(labels, dtype=np.float64), "DOUBLE"
    raise ModelError(f"the labels {labels!r} have no type in ONNX: make them all text, or all numbers")


def _curve(graph: _Graph, curve: Sigmoid | Isotonic | VennAbers, f: str) -> str:
    """Add a curve of calibration at outputs (n, 1)."""
    if isinstance(curve, VennAbers):
        raise ModelError("calibration venn-abers has no graph in ONNX: select with sigmoid or isotonic")
    if isinstance(curve, Sigmoid):
        line = graph.add("Mul", f, graph.constant(float(curve.slope)))
        return graph.add("Sigmoid", graph.add("Add", line, graph.constant(float(curve.offset))))
    at, p = np.array(curve.f, dtype=np.float64), np.array(curve.p, dtype=np.float64)
    if at.size == 1:
        return graph.add("Add", graph.add("Mul", f, graph.constant(0.0)), graph.constant(float(p[0])))
    return _pieces(graph, at, p, f)


def _pieces(graph: _Graph, at: Array, values: Array, x: str) -> str:
    """Add straight pieces at x (n, 1): ``values_0 + sum_j slope_j * (how far x is within piece j)``."""
    lengths = np.diff(at)
    within = graph.add("Max", graph.add("Sub", x, graph.constant(at[:-1])), graph.constant(0.0))
    within = graph.add("Min", within, graph.constant(lengths))
    rise = graph.add("MatMul", within, graph.constant((np.diff(values) / lengths)[:, None]))
    return graph.add("Add", rise, graph.constant(float(values[0])))
