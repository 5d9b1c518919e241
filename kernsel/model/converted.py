"""A fitted model as a pipeline of scikit-learn, where that is exactly the model.

Kernel ridge regression without a bias has ``(K + n lambda I) a = y`` for the coefficients a of its n rows. So the
targets that it was fitted on are ``y = K a + n lambda a``, and scikit-learn's ``KernelRidge``, fitted on rows and
targets with ``alpha = n lambda``, has the coefficients a again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernsel import registry
from kernsel.errors import ModelError, PluginError
from kernsel.kernels import short
from kernsel.learners import Learner
from kernsel.numerics.points import is_sparse
from kernsel.protocols.kernels import SupportsSklearn

if TYPE_CHECKING:
    from kernsel.model.expansion import Expansion

KERNEL_RIDGE = "KernelRidge"
"""What a learner has for its ``counterpart`` if that is exactly itself."""


def to_pipeline(model: Expansion) -> Any:
    """Return a fitted pipeline of scikit-learn that predicts what the model does, before its outputs are clipped.

    It is a scaler of the columns in use, and ``KernelRidge`` within a ``TransformedTargetRegressor``; see
    ``Model.to_sklearn``.
    """
    from sklearn.base import clone
    from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if reason := _why_not(model):
        raise ModelError(f"this model is none of scikit-learn's: {reason}; {_closest(model)}")
    encoder, alpha = model.encoder, float(model.provenance["rows"]) * float(model.provenance["lambda"])
    assert encoder is not None
    assert isinstance(model.kernel, SupportsSklearn)
    ridge = KernelRidge(alpha=alpha, kernel=model.kernel.metric, **model.kernel.sklearn_parameters())
    scaled = bool(encoder.mean.any() or (encoder.scale != 1.0).any())
    scaler = StandardScaler(with_mean=bool(encoder.mean.any())) if scaled else "passthrough"
    places = [encoder.columns.index(name) for name in encoder.numeric]
    table = np.zeros((model.rows.shape[0], len(encoder.columns)))
    table[:, places] = model.rows * encoder.scale + encoder.mean
    a = model.coefficients.T
    y = model.kernel(model.rows, model.rows) @ a + alpha * a
    y = y[:, 0] if y.shape[1] == 1 else y
    target = TransformedTargetRegressor(ridge, transformer=StandardScaler())
    pipeline = make_pipeline(ColumnTransformer([("columns", scaler, places)]), target).fit(table, y)
    # The scale is the model's, not that of y: a has no part in the null space of K, and y is the target but for that.
    target.transformer_ = StandardScaler().fit(
        np.stack([model.output_shift - model.output_scale, model.output_shift + model.output_scale])
    )
    target.regressor_ = clone(ridge).fit(pipeline[0].transform(table), y)
    return pipeline


def _why_not(model: Expansion) -> str:
    """Say why scikit-learn has no such model; nothing where it has."""
    encoder, count = model.encoder, model.provenance.get("rows")
    if _learner(model).counterpart != KERNEL_RIDGE:
        return f"its learner is {model.learner}"
    if model.labels is not None:
        return "KernelRidge has no classes"
    if not isinstance(model.kernel, SupportsSklearn):
        return f"its kernel is {short(model.kernel)}"
    if encoder is None or encoder.categories:
        return "it has columns of text"
    if is_sparse(model.rows):
        return "its rows are sparse"
    if count != model.rows.shape[0]:
        return f"it keeps {model.rows.shape[0]} rows or landmarks of {count}"
    if model.provenance.get("weighted", False):
        return "its rows have weights, which it doesn't keep"
    return ""


def _learner(model: Expansion) -> Learner:
    """Return a learner of the kind that fitted the model, of which the model knows the name."""
    try:
        learner: Learner = registry.get("learner", model.learner)()
        return learner
    except PluginError as error:
        raise ModelError(f"this model is none of scikit-learn's, as its learner is not installed: {error}") from error


def _closest(model: Expansion) -> str:
    """Return the model's parameters in scikit-learn's terms."""
    learner, terms = _learner(model), model.kernel.conversions()
    if {"rows", "lambda"} <= set(model.provenance) and not model.provenance.get("weighted", False):
        ridge = learner.conversions(float(model.provenance["rows"]), float(model.provenance["lambda"]))
        terms = terms | {name: value for name, value in ridge.items() if name in ("C", "alpha")}
    listed = ", ".join(f"{name}={value:.6g}" for name, value in terms.items()) or "none"
    whose = f", for {learner.counterpart}" * bool(learner.counterpart)
    return f"its parameters in scikit-learn's terms, on columns as the model scales them: {listed}{whose}"
