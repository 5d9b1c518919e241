"""New rows added to a model of the square loss on landmarks: see ``kernsel.model.sufficient``."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kernsel.data.encoding import Encoder
from kernsel.data.more import encode_more
from kernsel.data.target import class_codes
from kernsel.errors import ModelError, OptionError, SelectionWarning
from kernsel.folds.partition import widened
from kernsel.model.expansion import Expansion
from kernsel.model.sufficient import Expanded, SufficientStatistics
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.types import Array

M = TypeVar("M", bound=Expansion)


class Updatable(NamedTuple):
    """What a model keeps that can be updated."""

    sufficient: SufficientStatistics
    encoder: Encoder


def check_updatable(model: Expansion) -> Updatable:
    """Return what new rows are added to; ModelError if the model keeps no such sums."""
    if model.sufficient is None or model.encoder is None:
        raise ModelError(
            "this model can't be updated: it keeps no sums over its rows that new ones could be added to; models of "
            "krr and lssvm on landmarks do, if this kernsel or a newer one saved them: select again on old and new rows"
        )
    return Updatable(model.sufficient, model.encoder)


@one_blas_thread()  # the last digit would depend on their number
def with_rows(model: M, table: object, y: Any, weights: Any = None) -> M:
    """Return the model with new rows: see ``Model.update``."""
    known, encoder = check_updatable(model)
    if known.weighted and weights is None:
        raise OptionError("the model's rows have weights: give those of the new ones, 1 for a row that counts once")
    more = encode_more(table, y, encoder, model.labels, model.output_shift, model.output_scale, weights)
    m = more.Y.shape[1]
    s = np.ones(m) if more.weights is None else more.weights
    if known.factors is not None:
        s = s * known.factors[class_codes(more.Y)]
    fit = known.uncoupled(Expanded(model.coefficients, model.bias))
    grown, losses = known.with_rows(fit, model.kernel, model.rows, more.X, more.Y, s, model.limits)
    for text in losses.warnings:
        warnings.warn(text, SelectionWarning, stacklevel=4)
    coefficients, bias = grown.coupled(grown.expansion())
    limits = None if model.limits is None else _limits_with(model.limits, model.margins, more.Y)
    before = dict(model.provenance)
    updates = [*before.get("updates", []), {"rows": m, "loss": losses.found, "loss_expected": losses.expected}]
    return replace(
        model, coefficients=coefficients, bias=bias, limits=limits, sufficient=grown,
        provenance=before | {"rows": before.get("rows", 0) + m, "updates": updates},
    )  # fmt: skip


def _limits_with(limits: Array, margins: Array | None, Y: Array) -> Array:
    """Return limits (2, k) of outputs that know new targets (k, m), as far beyond the range as they are."""
    if margins is None:
        return _range_with(limits, Y)
    width = (limits[1] - limits[0]) / (1.0 + margins.sum(axis=0))
    before = np.stack([limits[0] + margins[0] * width, limits[1] - margins[1] * width])
    return widened(_range_with(before, Y), margins)


def _range_with(limits: Array, Y: Array) -> Array:
    """Return the ends (2, k) of a range that has targets (k, m) as well."""
    return np.stack([np.minimum(limits[0], Y.min(axis=1)), np.maximum(limits[1], Y.max(axis=1))])
