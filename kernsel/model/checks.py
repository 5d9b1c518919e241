"""Whether the parts of a model that was read from a file fit together: what isn't so ends at loading, not later."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from kernsel.data.choices import CODINGS, MISSING
from kernsel.data.decimals import SIGNS
from kernsel.data.encoding import Encoder
from kernsel.data.imputing import NormalLaw
from kernsel.data.kinds import CATEGORY, DATE, NUMBER, ORDINAL, Kind
from kernsel.data.kriging import Kriging
from kernsel.data.layout import Reading
from kernsel.heldout.calibration import KINDS, Calibration, Isotonic
from kernsel.heldout.intervals import Intervals
from kernsel.heldout.vennabers import VennAbers
from kernsel.numerics.points import dense

if TYPE_CHECKING:
    from kernsel.model.expansion import Expansion
    from kernsel.model.sufficient import SufficientStatistics

LABEL_KINDS, LABEL_BYTES = "biufOUT", 16
"""The kinds of types that labels may have, and the largest number of bytes of one: ``U1000000000`` is 4 GB a label."""


def check_model(model: Expansion) -> None:
    """Raise ValueError, TypeError or another error of Python's unless the parts of a model are such and fit together.

    Its arrays have been checked already: see ``kernsel.model.file``.
    """
    k, d = len(model.bias), model.rows.shape[1]
    names = model.target if isinstance(model.target, list) else [model.target]
    _need(_all_text([model.learner, *names]), "names that aren't text")
    _need(isinstance(model.provenance, dict), "a provenance that isn't one")
    _need(_is_number(model.provenance.get("lambda", 0.0)), "a lambda that isn't a number")
    _check_reading(model.provenance.get("reading", {}))
    _need(model.reach is None or (_is_number(model.reach) and model.reach >= 0), "a reach that isn't a distance")
    _need(model.task in ("regression", "classification"), "an unknown task")
    _need((model.labels is None) == (model.task == "regression"), "a task that doesn't fit its labels")
    if model.labels is None:
        _need(len(names) in (1, k), "another number of targets than of outputs")
        _need(model.calibration is None, "a calibration without classes")
    else:
        _check_labels(model, k)
    if model.calibration is not None:
        _check_calibration(model.calibration, k)
    if model.intervals is not None:
        _check_intervals(model, model.intervals, k)
    if model.threshold is not None:
        _need(model.labels is not None and k == 1, "a threshold without two classes")
        figures = (model.threshold.value, model.threshold.before, model.threshold.after)
        _need(all(map(_is_finite, figures)), "a threshold that isn't finite")
        _need(isinstance(model.threshold.best_for, str), "a threshold for what isn't text")
    if model.sufficient is not None:
        _check_sufficient(model, model.sufficient, k)
    if model.encoder is not None:
        _check_encoder(model.encoder)
        numbered = bool(model.encoder.similarities)  # a row of a Gram matrix begins with its own number
        _need(len(model.encoder.features) + numbered == d, "rows of other features")
    first = model.rows[:1] if model.kernel.sparse else dense(model.rows[:1])
    with np.errstate(all="ignore"):
        _need(np.shape(model.kernel(first, first)) == (1, 1), "a kernel that isn't one")
        _need(np.shape(model.kernel.diag(first)) == (1,), "a kernel without a diagonal")


def _check_reading(reading: Any) -> None:
    _need(isinstance(reading, dict), "a way of reading that isn't one")
    _need(set(reading) <= {each.name for each in fields(Reading)}, "a way of reading with unknown options")
    kinds = {"header": bool, "skip": int}
    _need(
        all(isinstance(each, kinds.get(name, str)) for name, each in reading.items()), "options of reading of no type"
    )


def _check_labels(model: Expansion, k: int) -> None:
    labels, dtype = model.labels, model.label_dtype
    _need(isinstance(labels, list) and len(labels) == (2 if k == 1 else k), "another number of labels than of outputs")
    assert labels is not None
    _need(all(isinstance(each, str | int | float) for each in labels), "labels that are neither text nor numbers")
    if dtype is not None:
        read = np.dtype(dtype)
        _need(isinstance(dtype, str) and read.kind in LABEL_KINDS and read.itemsize <= LABEL_BYTES, "labels of no type")
    _need(len(model.outputs_to_predictions(np.zeros((1, k) if k > 1 else 1))) == 1, "labels that aren't any")


def _check_intervals(model: Expansion, intervals: Intervals, k: int) -> None:
    classes, strata = intervals.classes, intervals.strata
    _need((classes is None) == (model.labels is None), "intervals of another task")
    if classes is not None:
        _need(classes.min() >= 0 and classes.max() < max(2, k) and intervals.scale is None, "sets of other classes")
    if strata is not None:
        columns = {} if model.encoder is None else model.encoder.categories
        _need(len(strata) == len(columns), "categories of other columns")
        for each, values in zip(strata, columns.values(), strict=True):
            _need(each.min() >= -1 and each.max() < len(values), "a category that isn't one")


def _check_sufficient(model: Expansion, sufficient: SufficientStatistics, k: int) -> None:
    _need(len(sufficient.T) == model.rows.shape[0], "sums of other landmarks")
    _need(len(sufficient.sums.right) == k + 1, "sums of other outputs")
    if sufficient.factors is not None:
        labels, factors = model.labels or [], sufficient.factors
        _need(len(factors) == len(labels) and bool((factors > 0).all()), "weights of other classes")


def _check_calibration(calibration: Calibration, k: int) -> None:
    _need(calibration.kind in KINDS, "an unknown calibration")
    if calibration.kind == "softmax":
        _need(k > 1, "outputs that can't be coupled")
        return
    _need(len(calibration.curves) == k, "another number of curves than of outputs")
    for curve in calibration.curves:
        if isinstance(curve, VennAbers):
            f, at, between = (np.array(each, dtype=np.float64) for each in (curve.f, curve.at, curve.between))
            _need(f.ndim == 1 and f.size > 0 and at.shape == f.shape and between.size == f.size + 1, "a cut curve")
            _need(bool((np.diff(f) > 0).all() and np.isfinite(f).all()), "outputs in no order")
            p = np.append(at, between)
            _need(bool(np.isfinite(p).all() and p.min() >= 0 and p.max() <= 1), "a curve of no probabilities")
        elif isinstance(curve, Isotonic):
            f, p = np.array([curve.f, curve.p], dtype=np.float64)
            _need(f.size > 0 and bool((np.diff(f) >= 0).all() and (np.diff(p) >= 0).all()), "a curve that falls")
            _need(bool(np.isfinite(f).all() and p.min() >= 0 and p.max() <= 1), "a curve of no probabilities")
        else:
            _need(_is_finite(curve.slope) and _is_finite(curve.offset), "a curve that isn't finite")


def _check_encoder(encoder: Encoder) -> None:
    named = (encoder.columns, encoder.numeric, encoder.ignored, encoder.gaps, encoder.categories, encoder.kinds)
    _need(all(map(_all_text, named)), "columns whose names aren't text")
    _need(all(values and _all_text(values) for values in encoder.categories.values()), "categories that aren't text")
    _need(set(encoder.used) <= set(encoder.columns), "features of no column")
    m = len(encoder.numeric)
    _need(encoder.mean.shape == encoder.scale.shape == (m,), "scales of other features")
    _need(_finite(encoder.mean) and _finite(encoder.scale) and bool((encoder.scale > 0).all()), "scales that are none")
    signs = encoder.signs or {}
    _need(_all_text(signs) and all(sign in SIGNS for sign in signs.values()), "numbers with an unknown sign")
    for kind in encoder.kinds.values():
        _check_kind(kind)
    _need(encoder.missing in MISSING, "an unknown way to treat missing values")
    fills = encoder.fills
    _need(not fills or {*encoder.numeric, *encoder.categories} <= set(fills), "features that can't be filled in")
    _need(all(_is_finite(fills[name]) for name in encoder.numeric if fills), "numbers that can't be filled in")
    _need(all(fills[name] in values for name, values in encoder.categories.items() if fills), "an unknown category")
    _need(encoder.coding in CODINGS and set(encoder.pooled) <= set(encoder.categories), "an unknown coding")
    _need(all(values and _all_text(values) for values in encoder.pooled.values()), "rare categories that aren't text")
    if encoder.law is not None:
        _check_law(encoder.law, m)


def _check_kind(kind: Kind) -> None:
    _need(kind.type in (NUMBER, CATEGORY, ORDINAL, DATE) and _all_text(kind.levels), "a column of an unknown kind")
    _need(kind.format is None or isinstance(kind.format, str), "dates of no format")
    _need(isinstance(kind.loose, bool), "a column that is neither loose nor not")


def _check_law(law: NormalLaw, m: int) -> None:
    p = m + sum(map(len, law.knots))
    _need(p > 0, "a law of nothing")
    _need(len(law.knots) == m and all(map(_is_finite, chain(*law.knots))), "a law with knots of others")
    vectors = (law.shift, law.scale, law.mean, law.ridge)
    _need(all(each.shape == (p,) for each in vectors) and law.covariance.shape == (p, p), "a law of others")
    _need(all(map(_finite, (*vectors, law.covariance))), "a law that isn't finite")
    _need(bool((law.scale > 0).all() and (law.ridge > 0).all()), "a law without scales")
    S = law.covariance
    _need(bool((S == S.T).all()) and np.linalg.eigvalsh(S)[0] + law.ridge.min() > 0, "a law without a covariance")
    if law.kriging is not None:
        _check_kriging(law.kriging, m)


def _check_kriging(kriging: Kriging, d: int) -> None:
    c = len(kriging.centres)
    _need(c > 0 and kriging.centres.shape == kriging.own.shape == (c, d), "rows near of others")
    _need(_finite(kriging.centres) and kriging.weights.shape == (c,), "rows near that are cut")
    _need(_finite(kriging.weights) and bool((kriging.weights > 0).all()), "rows near without weights")
    for each in kriging.variograms:
        _need(0 <= each.column < d and bool(kriging.own[:, each.column].any()), "a variogram of no column")
        _need(each.others.ndim == 1 and each.others.size > 0, "a variogram on no columns")
        _need(bool(((each.others >= 0) & (each.others < d) & (each.others != each.column)).all()), "columns of others")
        _need(all(map(_is_finite, (each.mean, each.width, each.ridge))), "a variogram that isn't finite")
        _need(each.width > 0 and each.ridge > 0, "a variogram without a width")


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _all_text(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _finite(values: np.ndarray[Any, Any]) -> bool:
    return bool(np.isfinite(values).all())
