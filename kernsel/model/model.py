"""The fitted predictor: what a selection leaves behind, and how it is kept in a file.

With the m rows r_j and the coefficients a of the model, the output number i of a row x is

    f_i(x) = b_i + sum_j a_ij k(x, r_j),

and the prediction is ``f * scale + shift`` for a regression, with f within the range of the training targets, the
second label where f >= 0 (else the first) for two classes, and the label of the largest output (the first of equals)
for more.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.data.columns import Floats, as_matrix
from kernsel.data.encoding import Encoder
from kernsel.data.files import atomic_write
from kernsel.data.target import chosen_classes
from kernsel.errors import DataError, KernselError, ModelError, OptionError
from kernsel.heldout.calibration import Calibration
from kernsel.heldout.intervals import MOST, Intervals
from kernsel.kernels import short
from kernsel.model.checks import check_model
from kernsel.model.extrapolation import nearest
from kernsel.model.file import FORMAT, VERSION, Arrays, check_shapes, read_arrays, rows_from, rows_to, write_arrays
from kernsel.numerics.points import Points, as_points, dense
from kernsel.paths.whole import cross_matrix

if TYPE_CHECKING:
    import pandas as pd

BLOCK_BYTES = 64 * 2**20
"""The kernel between new rows and the model's is computed in blocks of about this size."""

TILED = 2000
"""Rows of a model from which the kernel is multiplied tile by tile, which is twice as fast."""

_ARRAYS = ("coefficients", "bias", "output_shift", "output_scale")
_OF_INTERVALS = ("coefficients", "biases", "residuals", "starts", "weights")

_UNUSABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError, MemoryError)
"""What building a model of the parts of a file raises if they are of other types, or don't fit together."""


@dataclass(frozen=True, eq=False)
class Model:
    """A kernel expansion with what is needed to use it on new tables.

    Parameters
    ----------
    kernel : Kernel
        Without free parameters.
    learner : str
        Name of the learner that fitted it.
    rows : (m, d) array or csr_array
        Support or landmark rows, encoded.
    coefficients : (k, m) array
    bias : (k,) array
    task : str
        ``"regression"`` or ``"classification"``.
    labels : list or None
        The classes.
    target : str or list of str
        Name of the target, or of several.
    encoder : Encoder or None
        Encodes new tables. Without one, new rows are taken as they are.
    output_shift, output_scale : (k,) arrays
        Turn outputs into the units of a regression's target.
    provenance : dict
        Where it comes from: anything that JSON holds.
    calibration : Calibration or None
        Turns outputs into probabilities of the classes.
    intervals : Intervals or None
        The fits without a fold and their residuals, for prediction intervals of a regression.
    limits : (2, k) array or None
        Least and largest output of a regression that is predicted; None for no limits.
    reach : float or None
        The distance to the nearest of the model's rows that hardly any training row exceeds: see `beyond`.
    label_dtype : str or None
        NumPy's name of the type that predicted labels have; None for that of the list.
    """

    kernel: Any
    learner: str
    rows: Points
    coefficients: Floats
    bias: Floats
    task: str
    labels: list[Any] | None
    target: str | list[str]
    encoder: Encoder | None
    output_shift: Floats
    output_scale: Floats
    provenance: Mapping[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None
    intervals: Intervals | None = None
    limits: Floats | None = None
    reach: float | None = None
    label_dtype: str | None = None

    def decision(self, table: pd.DataFrame | npt.ArrayLike | Points) -> Floats:
        """Return the outputs f of new rows; for two classes, the margin of the second label, which is chosen from 0 on.

        Parameters
        ----------
        table : DataFrame, or (n, d) array or sparse matrix
            In the columns of the table that the model was fitted on; encoding is done here.

        Returns
        -------
        (n,) array if k = 1, else (n, k)
        """
        X = self._encoded(table)
        cross = cross_matrix(self.kernel, self.rows, X) if self.rows.shape[0] >= TILED else None
        if cross is not None:
            F = cross.times(np.ascontiguousarray(self.coefficients.T)) + self.bias
        else:
            F = self._by_blocks(X, lambda K, _: K @ self.coefficients.T + self.bias, self.rows.shape[0])
        return F[:, 0] if F.shape[1] == 1 else F

    def predict(self, table: pd.DataFrame | npt.ArrayLike | Points) -> npt.NDArray[Any]:
        """Return the predictions for new rows: values of a regression in the target's units, or labels.

        Parameters
        ----------
        table : DataFrame, or (n, d) array or sparse matrix
            As in `decision`.

        Returns
        -------
        (n,) array, or (n, k) for k targets
        """
        return self.outputs_to_predictions(self.decision(table))

    def predict_proba(self, table: pd.DataFrame | npt.ArrayLike | Points) -> Floats:
        """Return the probabilities of the classes for new rows.

        They are calibrated apart from the outputs' signs: a row near the boundary may be predicted as one label and
        have a probability of just over 1/2 for the other.

        Parameters
        ----------
        table : DataFrame, or (n, d) array or sparse matrix
            As in `decision`.

        Returns
        -------
        (n, classes) array
            In the order of ``labels``; rows sum to 1.

        Raises
        ------
        ModelError
            The model is of a regression, or has no calibration.
        """
        return self.outputs_to_probabilities(self.decision(table))

    def predict_interval(self, table: pd.DataFrame | npt.ArrayLike | Points, coverage: float = 0.9) -> Floats:
        """Return prediction intervals for new rows of a regression: see ``heldout.intervals``.

        Parameters
        ----------
        table : DataFrame, or (n, d) array or sparse matrix
            As in `decision`.
        coverage : float
            The share of rows whose truth should lie within, between 0 and 1; guaranteed is
            ``2 * coverage - 1`` (for k folds less ``sqrt(2 / n)``).

        Returns
        -------
        (n, 2) array if k = 1, else (n, k, 2)
            Lower and upper ends in the target's units, infinite if there are too few rows for the coverage.

        Raises
        ------
        OptionError
            The coverage isn't between 0 and 1.
        ModelError
            The model is of classes, or its fits without a fold were not kept.
        """
        if not isinstance(coverage, numbers.Real) or not 0 < coverage < 1:
            raise OptionError(f"the coverage of an interval must lie between 0 and 1, not {coverage!r}; 0.9 is usual")
        if self.labels is not None:
            raise ModelError(f"{self.target!r} has classes: they have no intervals, but probabilities")
        if self.intervals is None:
            raise ModelError(
                "this model has no prediction intervals, as the coefficients of its folds were not kept (they are up "
                f"to {MOST:.0e} numbers); select with fewer folds, or with a lower rank"
            )
        intervals = self.intervals
        widest = max(self.rows.shape[0], intervals.weights.size, intervals.biases.size)
        ends = self._by_blocks(self._encoded(table), lambda K, _: intervals.bounds(K, coverage), widest)
        ends = ends * self.output_scale[:, None] + self.output_shift[:, None]
        return ends[:, 0] if ends.shape[1] == 1 else ends

    def beyond(self, table: pd.DataFrame | npt.ArrayLike | Points) -> npt.NDArray[np.bool_]:
        """Tell which new rows lie beyond the training data: nothing is known there, and predictions are guesses.

        Those are farther from the nearest of the model's rows than 99.9 % of the training rows are from the nearest
        other one, in the kernel's distance ``d(x, r)^2 = k(x, x) + k(r, r) - 2 k(x, r)``.

        Parameters
        ----------
        table : DataFrame, or (n, d) array or sparse matrix
            As in `decision`.

        Returns
        -------
        (n,) array of bool

        Raises
        ------
        ModelError
            An older kernsel made the model, and the distance is not in it; or the kernel is a given Gram matrix.
        """
        if self.kernel.known_rows_only:
            raise ModelError(f"kernel '{self.kernel.name}' doesn't know how far new rows are from the training data")
        if self.reach is None:
            raise ModelError("this model doesn't say how far its training data reach; select it anew")
        distances = self._by_blocks(
            self._encoded(table),
            lambda K, X: nearest(K, self.kernel.diag(X), self.kernel.diag(self.rows)),
            self.rows.shape[0],
        )
        return np.asarray(distances > self.reach)

    def _encoded(self, table: Any) -> Points:
        """Return the rows of a table as those of the model are."""
        X: Points = self.encoder.transform(table) if self.encoder is not None else as_matrix(table)
        if X.shape[1] != self.rows.shape[1]:
            raise DataError(f"X has {X.shape[1]} columns where the model has {self.rows.shape[1]}")
        return X

    def _by_blocks(self, X: Points, work: Callable[[Floats, Points], Floats], width: int) -> Floats:
        """Apply ``work`` to the kernel between new rows and the model's, and to the rows, in blocks ``width`` wide."""
        block = max(1, BLOCK_BYTES // (8 * max(1, width)))
        # One block at least, so that no rows give a result of the right shape.
        starts = range(0, max(1, X.shape[0]), block)
        form = as_points if self.kernel.sparse else dense
        blocks = (form(X[start : start + block]) for start in starts)
        return np.concatenate([work(self.kernel(rows, self.rows), rows) for rows in blocks])

    def outputs_to_predictions(self, F: Floats) -> npt.NDArray[Any]:
        """Turn outputs of `decision` into predictions."""
        if self.labels is None:
            within = F if self.limits is None else np.clip(F, *(self.limits if F.ndim > 1 else self.limits[:, 0]))
            return np.asarray(within * self.output_scale + self.output_shift)
        mixed = "O" if len({type(label) for label in self.labels}) > 1 else None
        labels = np.array(self.labels, dtype=self.label_dtype or mixed)
        chosen = chosen_classes(np.atleast_2d(F.T))
        return np.asarray(labels[chosen])

    def outputs_to_probabilities(self, F: Floats) -> Floats:
        """Turn outputs of `decision` into probabilities of the classes."""
        if self.labels is None:
            raise ModelError(f"{self.target!r} is a regression: it has no probabilities, but prediction intervals")
        if self.calibration is None:
            raise ModelError("this model was made without a calibration and has no probabilities; select it anew")
        return self.calibration.probabilities(np.atleast_2d(F.T))

    def to_sklearn(self) -> Any:
        """Return the model as a fitted pipeline of scikit-learn, for kernel ridge regression without a bias.

        Its predictions are those of the model before they are kept within the range of the training target.

        Returns
        -------
        Pipeline
            A scaler, and ``KernelRidge`` with ``alpha = n lambda`` and the kernel's gamma; columns are found by place.

        Raises
        ------
        ModelError
            scikit-learn has no such model: another learner, another kernel, columns of text, weighted rows, landmarks.
            The message has the parameters of the closest one.
        """
        from kernsel.model.converted import to_pipeline  # which needs scikit-learn, as a model itself does not

        return to_pipeline(self)

    def to_onnx(self) -> Any:
        """Return the model as a graph of ONNX in double precision, for programs without Python.

        Returns
        -------
        onnx.ModelProto
            Inputs are ``X`` (n, d), the columns of the table in their order, or of a model with columns of text the
            numeric ones in use and an input (n, 1) for each text column. Outputs are ``predictions`` (n, k) of a
            regression; ``labels`` (n,), ``decisions`` (n, k) and ``probabilities`` (n, classes) of classes, with 0 and
            1 for truth values. Write it with ``Path(...).write_bytes(model.to_onnx().SerializeToString())``.

        Raises
        ------
        OptionError
            The package onnx is not installed.
        ModelError
            The kernel says no formula of a statistic, or labels are of mixed types.
        """
        from kernsel.model.onnx_export import to_graph  # which needs the package onnx

        return to_graph(self)

    def __repr__(self) -> str:
        """Say in three lines what the model is, what it predicts, and what of it is kept."""
        m, d = self.rows.shape[0], self.rows.shape[1] if self.encoder is None else len(self.encoder.features)
        lam = self.provenance.get("lambda")
        target = self.target if isinstance(self.target, str) else ", ".join(self.target)
        what = "regression" if self.labels is None else f"{len(self.labels)} classes"
        extras = {"probabilities": self.calibration, "prediction intervals": self.intervals}
        kept = [name for name, part in extras.items() if part is not None]
        return "\n".join(
            [
                f"<Model: {self.learner} on {short(self.kernel)}" + ("" if lam is None else f", lambda = {lam:.4g}"),
                f"  for {what} of {target!r} by {d} features, fitted on {self.provenance.get('rows', '?')} rows",
                f"  keeps {m} rows" + f", and what {' and '.join(kept)} take" * bool(kept) + ">",
            ]
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file: arrays and JSON in an ``.npz``, no pickle, with a checksum over all of it.

        Raises
        ------
        OptionError
            The file can't be written; an old one is as it was.
        """
        header = {
            "format": FORMAT,
            "version": VERSION,
            "kernel": self.kernel.spec(),
            "learner": self.learner,
            "task": self.task,
            "labels": self.labels,
            "label_dtype": self.label_dtype,
            "target": self.target,
            "encoder": None if self.encoder is None else self.encoder.to_json(),
            "provenance": dict(self.provenance),
            "reach": self.reach,
        }
        if self.calibration is not None:
            header["calibration"] = self.calibration.to_json()
        arrays = {**rows_to(self.rows), **{name: getattr(self, name) for name in _ARRAYS}}
        if self.limits is not None:
            arrays["limits"] = self.limits
        if self.intervals is not None:
            arrays |= {f"intervals_{name}": getattr(self.intervals, name) for name in _OF_INTERVALS}
            if self.intervals.limits is not None:
                arrays["intervals_limits"] = self.intervals.limits
        atomic_write(path, lambda stream: write_arrays(stream, header, arrays))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model back.

        Everything in the file is checked before it is used: see ``kernsel.model.file``.

        Raises
        ------
        ModelError
            There is no such file, it isn't a model, it is damaged, or a newer kernsel wrote it; or there is no such
            kernel here.
        """
        header, contents = read_arrays(Path(path))
        try:
            model = cls._of(header, contents)
            check_model(model)
        except KernselError as error:
            raise ModelError(f"{path}: its kernel can't be had: {error}") from error
        except _UNUSABLE as error:
            reason = shorten(f"{type(error).__name__}: {error}", 80)
            raise ModelError(
                f"{path} isn't a model of kernsel, or one that somebody changed ({reason}); get another copy of it"
            ) from error
        return model

    @classmethod
    def _of(cls, header: Mapping[str, Any], contents: Arrays) -> Model:
        """Build the model of a file."""
        from kernsel.kernels import from_spec

        rows = rows_from(contents)
        check_shapes(contents, rows.shape[0])
        values = {name: header[name] for name in ("learner", "task", "labels", "target", "provenance")}
        # Older files lack the type of labels, and what follows.
        values |= {name: header.get(name) for name in ("label_dtype", "reach")}
        values |= {name: np.ascontiguousarray(contents[name]) for name in _ARRAYS}
        if "calibration" in header:
            values["calibration"] = Calibration.from_json(header["calibration"])
        if "intervals_starts" in contents:
            kept = {name: contents[f"intervals_{name}"] for name in _OF_INTERVALS}
            values["intervals"] = Intervals(**kept, limits=contents.get("intervals_limits"))
        encoder = None if header["encoder"] is None else Encoder.from_json(header["encoder"])
        kernel = from_spec(header["kernel"])
        return cls(kernel=kernel, rows=rows, encoder=encoder, limits=contents.get("limits"), **values)


load = Model.load
