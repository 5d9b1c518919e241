"""The choice of a selection, fitted on all rows: its held-out outputs, their errors, probabilities, and the model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernsel.data import Dataset
from kernsel.data.target import class_codes
from kernsel.errors import OptionError
from kernsel.folds.partition import Partition, shares_of
from kernsel.heldout.calibration import Calibration, calibrate, cross_fitted
from kernsel.heldout.coupling import Coupling, couple, cross_coupled
from kernsel.heldout.intervals import Intervals, Scale, outputs_of_refits
from kernsel.heldout.threshold import Measure, Threshold, choose_threshold
from kernsel.learners.krr import Lssvm
from kernsel.model.extrapolation import reach
from kernsel.model.model import Model
from kernsel.model.sufficient import SufficientStatistics
from kernsel.numerics.points import as_points
from kernsel.paths import Path, make_path
from kernsel.representation.problem import Problem
from kernsel.representation.ranks import Whole
from kernsel.search.board import Board
from kernsel.search.candidate import Candidate, mean_metric, number_or_none
from kernsel.selection.heldout_choice import HeldOutChoice
from kernsel.selection.setting import Setting
from kernsel.types import Array
from kernsel.version import __version__

RIDGES_OF_SCALE = 10.0 ** np.arange(-3.0, 3.0)
"""Lambda for the size of residuals, times the mean of k(x, x): from rather local to a constant."""

LEAST_SCALE = 0.25
"""No interval is made narrower than this share of the mean residual would have it: sizes are but estimated."""

LEAST_WEIGHT = 1e-12
"""Of rows that no fold holds out, and have no residual; and of residuals that are all 0."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A choice, and what is reported of it.

    Parameters
    ----------
    best : Candidate
        With the figures of the outputs.
    path : Path
        Whose last fit is the choice on all rows.
    deals : list of Partition
        With the margins of outputs.
    outputs : list of (k, n) arrays
        Held-out outputs on each deal, or on the first ones.
    raw_error : float
        RMSE of the first ones before they are kept near the range of the target.
    probabilities : (n, classes) array or None
        Of held-out rows.
    """

    best: Candidate
    path: Path
    deals: list[Partition]
    outputs: list[Array]
    raw_error: float
    probabilities: Array | None
    model: Model


def fit_choice(setting: Setting, board: Board, chosen: HeldOutChoice) -> Fitted:
    """Fit the choice of a selection on all rows."""
    rows, dataset, choice = board.rows, setting.dataset, chosen.candidate
    path, deals = chosen.path, chosen.deals
    raw_error = float(np.sqrt(rows.mean(((chosen.outputs[0] - rows.Y) ** 2).mean(axis=0)))) * board.errors.unit
    outputs = [deal.clipped_apart(F) for F, deal in zip(chosen.outputs, deals, strict=False)]
    best, raw = choice, outputs[0]
    if board.metrics is not None and (chosen.anew or not choice.metrics):
        found = [board.metrics.evaluate(deal, F) for deal, F in zip(deals, outputs, strict=False)]
        shares = shares_of(deals[: len(found)])
        best = replace(best, metrics={name: mean_metric([each[name] for each in found], shares) for name in found[0]})
    coupling = None
    if setting.calibration == "softmax":
        coupling = couple(outputs[0][:, : rows.held], rows.Y[:, : rows.held], rows.s[: rows.held])
        outputs = [_coupled(F, deal) for F, deal in zip(outputs, deals, strict=False)]
    if best.error is None or chosen.anew or coupling is not None:  # unknown yet, or of other outputs
        error, error_se = board.errors.over_deals(deals, outputs)
        best = replace(best, error=number_or_none(error), error_se=number_or_none(error_se))
    calibration, probabilities = _probabilities(setting.calibration, outputs[0], rows, dataset)
    threshold = None if setting.measure is None else _threshold(setting.measure, outputs[0], rows, dataset)
    residuals_of = outputs[0] if chosen.unseen or isinstance(board.rank, Whole) else None
    intervals = _intervals(setting.intervals, path, deals[0], dataset, residuals_of, coupling)
    sufficient = _sufficient(path, dataset, raw, coupling)
    model = _make_model(path, dataset, calibration, intervals, coupling, sufficient, best)
    limits = deals[0].limits if rows.clip else None
    model = replace(model, threshold=threshold, limits=limits, margins=deals[0].margins)
    return Fitted(best, path, deals, outputs, raw_error, probabilities, model)


def _coupled(F: Array, rows: Partition) -> Array:
    """Return held-out outputs (k, n) of classes, coupled without the rows themselves."""
    held = slice(rows.held)
    return np.hstack([cross_coupled(F[:, held], rows.Y[:, held], rows.s[held], rows.starts), F[:, rows.held :]])


def _probabilities(
    kind: str | None, outputs: Array, rows: Partition, dataset: Dataset
) -> tuple[Calibration | None, Array | None]:
    """Return the calibration for new rows, and the probabilities of the held-out rows themselves, cross-fitted."""
    if kind is None:
        return None, None
    F, Y, s = outputs[:, : rows.held], rows.Y[:, : rows.held], _plain(rows, dataset)
    return calibrate(kind, F, Y, s), cross_fitted(kind, F, Y, s, rows.starts)


def _plain(rows: Partition, dataset: Dataset) -> Array:
    """Return the weights (held,) of held-out rows without those of their classes."""
    plain = dataset.sample.plain
    return np.ones(rows.held) if plain is None else np.asarray(plain[rows.order[: rows.held]])


def _threshold(measure: Measure, outputs: Array, rows: Partition, dataset: Dataset) -> Threshold:
    """Return the threshold on held-out outputs (1, n) of two classes that is best for a measure."""
    held = slice(rows.held)
    return choose_threshold(measure, outputs[0, held], rows.Y[0, held], _plain(rows, dataset), rows.starts)


def _intervals(
    kind: str, path: Path, rows: Partition, dataset: Dataset, outputs: Array | None, coupling: Coupling | None
) -> Intervals | None:
    """Return what is kept of the fits without a fold, if anything; residuals are of held-out outputs (k, n), if given.

    Classes are scored by outputs of the refits themselves: those that are known may be coupled already.
    """
    if kind == "none":
        return None
    made = Intervals.of(path, path.lams.size - 1, None if kind == "sets" else outputs, rows=rows)
    if made is None:
        return None
    if kind == "sets":
        held = outputs_of_refits(path, rows, made.coefficients, made.biases)[:, : rows.held]
        made = made.of_classes(held, class_codes(rows.Y[:, : rows.held]), coupling)
    elif kind == "local":
        made = made.in_units_of(*_scale(path, made.residuals))
    encoder = dataset.encoder
    strata = encoder.categories_of(rows.X)[:, : rows.held] if encoder.categories else None
    return replace(made, strata=strata)


def _scale(path: Path, residuals: Array) -> tuple[Scale, Array]:
    """Return fits of the size of held-out residuals (k, held) without each fold, and sigma (k, held) there.

    They are of the square loss with a bias on the kernel of the path, with the lambda of the least held-out error.
    """
    rows, k = path.rows, len(residuals)
    size = np.zeros((k, rows.n))
    size[:, : rows.held] = residuals
    weights = np.where(np.arange(rows.n) < rows.held, rows.s, LEAST_WEIGHT * rows.s)
    sized = replace(rows, Y=size, weights=rows.weights if rows.held == rows.n else weights, clip=False)
    kappa = float(rows.diagonal(path.problem.kernel).mean()) or 1.0
    problem = Problem(sized, path.problem.kernel, path.problem.rank, path.problem.landmarks)
    found = make_path(problem, Lssvm(), kappa * RIDGES_OF_SCALE)
    if type(found.representation) is not type(path.representation):  # other landmarks
        raise OptionError("intervals 'local': features of so many rows aren't held together; give a lower rank")
    held = found.exact()
    errors = [
        np.inf if failed else float(rows.mean(((held.f[:, i] - size) ** 2).mean(axis=0)))
        for i, failed in enumerate(held.failed)
    ]
    best = int(np.argmin(errors))
    floors = LEAST_SCALE * np.maximum(residuals @ rows.s[: rows.held] / rows.s[: rows.held].sum(), LEAST_WEIGHT)
    scale = Scale(*found.refits(best), floors)
    return scale, np.maximum(held.f[:, best, : rows.held], floors[:, None])


def _sufficient(path: Path, dataset: Dataset, F: Array, coupling: Coupling | None) -> SufficientStatistics | None:
    """Return what the last fit of a path keeps for new rows, if it can; F (k, n) are its held-out outputs."""
    sums, rows, sample = path.sums, path.rows, dataset.sample
    if sums is None:
        return None
    squares = ((F - rows.Y) ** 2).mean(axis=0)
    loss = float(rows.mean(squares))
    deviation = float(np.sqrt(rows.mean((squares - loss) ** 2)))
    factors = None
    if sample.by_class is not None:
        codes = class_codes(dataset.Y)
        factors = np.ones(int(codes.max()) + 1)
        factors[codes] = sample.by_class
    return SufficientStatistics(
        T=np.ascontiguousarray(path.representation.expand(np.eye(path.representation.rank)).T),
        sums=sums,
        bias=path.bias,
        lam=float(path.lams[-1]),
        loss=loss,
        deviation=deviation,
        held=rows.held,
        weighted="weights" in sample.origin,
        coupling=coupling,
        factors=factors,
    )


def _make_model(
    path: Path,
    dataset: Dataset,
    calibration: Calibration | None,
    intervals: Intervals | None,
    coupling: Coupling | None,
    sufficient: SufficientStatistics | None,
    best: Candidate,
) -> Model:
    """Return the predictor of the last fit of a path, with the errors of the choice; rows without weight are left out.

    Outputs may be coupled.
    """
    last = path.lams.size - 1
    coefficients, bias = path.coefficients(last), path.intercepts(last)
    if coupling is not None:
        coefficients, bias = coupling.A @ coefficients, coupling.A @ bias + coupling.b
    used = (coefficients != 0).any(axis=0)
    if intervals is not None:
        used |= intervals.used
    if sufficient is not None:
        used[:] = True
    elif not used.any():
        used[:1] = True
    kernel, rows, kept = path.problem.kernel, path.rows, as_points(path.representation.points[used])
    return Model(
        kernel=kernel,
        learner=path.learner.name,
        rows=kept,
        coefficients=np.ascontiguousarray(coefficients[:, used]),
        bias=bias,
        task=dataset.task,
        labels=dataset.labels,
        label_dtype=dataset.label_dtype,
        target=dataset.target,
        encoder=dataset.encoder,
        output_shift=dataset.output_shift,
        output_scale=dataset.output_scale,
        provenance={
            "kernsel": __version__,
            "lambda": float(path.lams[-1]),
            "rows": rows.n,
            "weighted": dataset.weights is not None,
            "source": dataset.source,
            "error": best.error,
            "error_se": best.error_se,
        },
        calibration=calibration,
        sufficient=sufficient,
        intervals=None if intervals is None else intervals.restricted(used),
        reach=reach(kernel, rows.X, kept, path.representation.row_numbers(used)),
    )
