"""Pictures of held-out predictions: every row's is by a fit that has not seen its fold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernsel.heldout.metrics import class_numbers
from kernsel.report.style import COLOURS, GREY, INK, MARKERS, legend_below, lines, points, words
from kernsel.selection.observed import Observed
from kernsel.selection.result import Selection
from kernsel.types import Array, Mask

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LARGEST = 10
"""Targets, or curves of classes, in one picture."""

BINS = 10
"""Of predicted probabilities, with equally many rows each."""

SAME = 9
"""Digits of a prediction, in units of the range of the targets."""

CELLS = 400
"""Points along each side of a plane in which a boundary is drawn."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Held-out rows: what was observed, and what was said of them without their fold.

    Parameters
    ----------
    targets, predictions : (m,) or (m, k) arrays
        Values, or the numbers of classes.
    outputs : (m,) or (m, k) array
    probabilities : (m, classes) array or None
    weights : (m,) array or None
    """

    targets: NDArray[Any]
    predictions: NDArray[Any]
    outputs: Array
    probabilities: Array | None
    weights: Array | None

    @classmethod
    def of(cls, selection: Selection) -> Rows:
        """Return the rows of a selection that some fold held out."""
        seen = observed(selection)
        held = np.isfinite(selection.outputs if selection.outputs.ndim == 1 else selection.outputs[:, 0])
        probabilities = selection.probabilities
        return cls(
            _numbers(seen.targets[held], selection.model.labels),
            _numbers(selection.heldout[held], selection.model.labels),
            selection.outputs[held],
            None if probabilities is None else probabilities[held],
            None if seen.weights is None else seen.weights[held],
        )


def observed(selection: Selection) -> Observed:
    """Return what was observed at the rows of a selection."""
    assert selection.observed is not None, "a selection that was made by this version knows its targets"
    return selection.observed


def draw_heldout(figure: Figure, selection: Selection) -> None:
    """Draw held-out predictions against targets: points, or for classes the outputs or the confusions."""
    labels = selection.model.labels
    if labels is None:
        _draw_errors(figure, selection, "actual_vs_predicted", "observed")
    elif len(labels) > 2:
        _draw_confusions(figure, selection)
    else:
        _draw_outputs(figure, selection)


def draw_residuals(figure: Figure, selection: Selection) -> None:
    """Draw what held-out predictions miss, over the predictions."""
    _draw_errors(figure, selection, "residual_vs_predicted", "observed less predicted")


def _draw_errors(figure: Figure, selection: Selection, kind: str, vertical: str) -> None:
    from matplotlib.ticker import MaxNLocator
    from sklearn.metrics import PredictionErrorDisplay

    rows = Rows.of(selection)
    names = [selection.model.target] if isinstance(selection.model.target, str) else selection.model.target
    pairs = zip(_columns(rows.targets), _columns(rows.predictions), strict=True)
    shown = list(zip(names, pairs, strict=True))[:LARGEST]
    wide = math.ceil(math.sqrt(len(shown)))
    if wide > 1:
        figure.set_size_inches(3.4 * wide, 3.0 * math.ceil(len(shown) / wide))
    grid = figure.subplots(math.ceil(len(shown) / wide), wide, squeeze=False).ravel()
    (look,) = points(1, len(rows.targets))
    for axes, (name, (targets, predictions)) in zip(grid, shown, strict=False):
        unit = float(np.ptp(targets)) or 1.0  # predictions that differ by rounding errors alone are one
        predictions = np.round(predictions / unit, SAME) * unit
        display = PredictionErrorDisplay(y_true=targets, y_pred=predictions)
        display.plot(ax=axes, kind=kind, scatter_kwargs=look, line_kwargs={"color": INK, "linewidth": 1.0, "zorder": 3})
        if kind.startswith("actual"):
            axes.set_aspect("equal", adjustable="box")  # the display would widen the axes beyond the values
        axes.set_xlabel(f"{words(name)}, predicted without its fold")
        axes.set_ylabel(f"{words(name)}, {vertical}" if kind.startswith("actual") else vertical)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(5))  # the display has put ticks where its values end
    for axes in grid[len(shown) :]:
        axes.set_axis_off()


def _draw_outputs(figure: Figure, selection: Selection) -> None:
    """Draw how often each class has which output."""
    rows, labels = Rows.of(selection), selection.model.labels
    assert labels is not None
    axes = figure.add_subplot()
    edges = np.histogram_bin_edges(rows.outputs, "auto").tolist()
    handles: list[Artist] = []
    for code, (colour, hatch) in enumerate(zip(COLOURS, ("///", "\\\\\\"), strict=False)):
        of = rows.targets == code
        weights = None if rows.weights is None else rows.weights[of]
        look: dict[str, Any] = {"weights": weights, "histtype": "stepfilled", "linewidth": 1.3}
        axes.hist(rows.outputs[of], edges, facecolor=(colour, 0.25), **look)
        look |= {"facecolor": "none", "edgecolor": colour, "hatch": hatch}  # apart: in an SVG one would hide the other
        handles += axes.hist(rows.outputs[of], edges, label=words(labels[code]), **look)[-1]  # type: ignore[arg-type]  # one histogram has a list
    handles.append(axes.axvline(0.0, color=INK, linestyle="--", linewidth=1.2, label="where the decision changes"))
    axes.set_xlabel(f"output without its fold (margin for {words(labels[1])}, without a unit)")
    axes.set_ylabel("rows" if rows.weights is None else "weight of rows")
    legend_below(figure, handles)


def _draw_confusions(figure: Figure, selection: Selection) -> None:
    from sklearn.metrics import ConfusionMatrixDisplay

    rows, labels = Rows.of(selection), selection.model.labels
    assert labels is not None
    axes = figure.add_subplot()
    many = len(labels) > 2 * LARGEST
    display = ConfusionMatrixDisplay.from_predictions(
        rows.targets,
        rows.predictions,
        labels=list(range(len(labels))),
        display_labels=list(map(words, labels)),
        sample_weight=rows.weights,
        ax=axes,
        cmap="cividis_r",
        include_values=not many,
        values_format=".4g",
        colorbar=many,
        xticks_rotation="vertical" if max(len(str(label)) for label in labels) * len(labels) > 40 else "horizontal",
    )
    display.ax_.set(xlabel=f"{words(selection.model.target)}, predicted without its fold")
    display.ax_.set(ylabel=f"{words(selection.model.target)}, observed")


def draw_roc(figure: Figure, selection: Selection) -> None:
    """Draw the true positive rate over the false positive rate of held-out outputs."""
    from sklearn.metrics import RocCurveDisplay

    axes = figure.add_subplot()
    curves = [
        RocCurveDisplay.from_predictions(of, score, sample_weight=weights, name=name, ax=axes)
        for name, of, score, weights in _one_against_rest(selection, probable=False)
    ]
    axes.plot([0, 1], [0, 1], color=GREY, linestyle=(0, (1, 2)), linewidth=1.2, label="chance")
    axes.set_xlabel("share of the others that are taken for the class")
    axes.set_ylabel("share of the class that is found")
    _finish_curves(figure, axes, len(curves), selection.model.labels)


def draw_precision_recall(figure: Figure, selection: Selection) -> None:
    """Draw precision over recall of held-out outputs."""
    from sklearn.metrics import PrecisionRecallDisplay

    axes = figure.add_subplot()
    curves = [
        PrecisionRecallDisplay.from_predictions(of, score, sample_weight=weights, name=name, ax=axes)
        for name, of, score, weights in _one_against_rest(selection, probable=False)
    ]
    axes.set_xlabel("recall: share of the class that is found")
    axes.set_ylabel("precision: share of what is found that is of the class")
    _finish_curves(figure, axes, len(curves), selection.model.labels)


def draw_calibration(figure: Figure, selection: Selection) -> None:
    """Draw how often a class is there over its probability, by curves that were fitted without the row's fold."""
    from sklearn.calibration import CalibrationDisplay

    axes = figure.add_subplot()
    count = 0
    for name, of, score, _ in _one_against_rest(selection, probable=True):
        CalibrationDisplay.from_predictions(
            of, score, n_bins=BINS, strategy="quantile", name=name, ax=axes, ref_line=False
        )
        count += 1
    axes.plot([0, 1], [0, 1], color=GREY, linestyle=(0, (1, 2)), linewidth=1.2, label="perfectly calibrated")
    axes.set_xlabel(f"mean probability without the fold, of {BINS} equal parts of the rows")
    axes.set_ylabel("share of rows that are of the class")
    _finish_curves(figure, axes, count, selection.model.labels, marked=True)


def _one_against_rest(selection: Selection, probable: bool) -> Iterator[tuple[str, Mask, Array, Array | None]]:
    """Give the name, the truth, the score and the weights of each class against the rest; of two the second one."""
    rows, labels = Rows.of(selection), selection.model.labels
    assert labels is not None
    target = words(selection.model.target)
    scores = rows.probabilities if probable else rows.outputs
    assert scores is not None
    if len(labels) == 2:
        score = scores[:, 1] if scores.ndim > 1 else scores
        yield f"{target} = {words(labels[1])}", rows.targets == 1, score, rows.weights
        return
    sizes = np.bincount(rows.targets, minlength=len(labels))
    for code in sorted(np.argsort(-sizes, kind="stable")[:LARGEST]):
        yield f"{target} = {words(labels[code])}", rows.targets == code, scores[:, code], rows.weights


def _finish_curves(figure: Figure, axes: Axes, count: int, labels: Any, marked: bool = False) -> None:
    """Give curves their looks, and put the legend below."""
    for number, (line, look) in enumerate(zip(axes.lines[:count], lines(count), strict=True)):
        line.set(**look, linewidth=1.8)
        line.set_marker(MARKERS[number % len(MARKERS)] if marked else "")
        line.set_markersize(5)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal")
    legend = axes.get_legend()
    if legend is not None:
        legend.remove()
    if len(labels) > LARGEST:
        axes.set_title(f"the {LARGEST} largest of {len(labels)} classes")
    legend_below(figure, axes.lines, columns=2 if count > 2 else 1)


def draw_boundary(figure: Figure, selection: Selection) -> None:
    """Draw which class is chosen where in the plane of two features, and the rows with what was observed there."""
    seen, model = observed(selection), selection.model
    features, labels = seen.features, model.labels
    assert features is not None
    assert labels is not None
    used = np.isfinite(features).all(axis=1)
    features, codes = features[used], _numbers(seen.targets[used], labels)
    low, high = features.min(axis=0), features.max(axis=0)
    margin = 0.06 * (high - low)
    x, y = (np.linspace(a, b, CELLS) for a, b in zip(low - margin, high + margin, strict=True))
    assert model.encoder is not None
    plane = (np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2) - model.encoder.mean) / model.encoder.scale
    chosen = _numbers(replace(model, encoder=None).predict(plane), labels)
    axes = figure.add_subplot()
    shades = [(COLOURS[code % len(COLOURS)], 0.16) for code in range(len(labels))]
    regions, levels = chosen.reshape(CELLS, CELLS), np.arange(len(labels) + 1) - 0.5
    axes.contourf(x, y, regions, levels=levels, colors=shades)
    for code in range(len(labels) - 1 + (len(labels) > 2)):
        axes.contour(x, y, regions == code, levels=[0.5], colors=INK, linewidths=1.0)
    handles = []
    for code, look in enumerate(points(len(labels), len(features))):
        handles.append(axes.scatter(*features[codes == code].T, label=words(labels[code]), **look))
    axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel=words(seen.names[0]), ylabel=words(seen.names[1]))
    axes.set_title(f"{words(model.target)}: predicted (shades) and observed (marks)")
    legend_below(figure, handles)


def _numbers(values: NDArray[Any], labels: list[Any] | None) -> NDArray[Any]:
    """Return the numbers of classes, and values as they are."""
    return values if labels is None else class_numbers(labels, values)


def _columns(values: NDArray[Any]) -> Iterator[Array]:
    """Give the columns of (m,) or (m, k) values."""
    yield from (values.T if values.ndim > 1 else values[None])
