"""The fitted predictor that a selection leaves behind: its file, and its forms in scikit-learn and ONNX."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.data.encoding import Encoder
from kernsel.data.files import atomic_write
from kernsel.errors import KernselError, ModelError
from kernsel.heldout.calibration import Calibration
from kernsel.heldout.intervals import Intervals, Scale
from kernsel.heldout.threshold import Threshold
from kernsel.kernels import short
from kernsel.model.checks import check_model
from kernsel.model.expansion import Expansion
from kernsel.model.file import FORMAT, VERSION, Arrays, check_shapes, read_arrays, rows_from, rows_to, write_arrays
from kernsel.model.sufficient import SufficientStatistics

if TYPE_CHECKING:
    import pandas as pd

    from kernsel.numerics.points import Points

_ARRAYS = ("coefficients", "bias", "output_shift", "output_scale")
_OF_SOME = ("limits", "margins")
_OF_INTERVALS = ("coefficients", "biases", "residuals", "starts", "weights")
_OF_SOME_INTERVALS = ("limits", "classes", "strata")

_UNUSABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError, MemoryError)
"""What building a model of the parts of a file raises if they are of other types, or don't fit together."""


class Model(Expansion):
    """A kernel expansion that can be saved, loaded, and handed on to other libraries.

    Its parameters are those of ``kernsel.model.expansion.Expansion``.
    """

    def update(
        self, X: pd.DataFrame | npt.ArrayLike | Points, y: npt.ArrayLike, weights: npt.ArrayLike | None = None
    ) -> Model:
        """Return the model of its rows and new ones together: the fit on all of them, and no search.

        It is the fit at the same landmarks, kernel and lambda, exact but for rounding, from sums that the model keeps:
        the time grows with the new rows alone. Encoding, units of the target, coupling and weights of classes stay;
        so do calibration, threshold and intervals, which are those of the selection. Limits of predictions widen.

        Parameters
        ----------
        X : DataFrame, or (m, d) array or sparse matrix
            New rows, in the columns of the table that the model was fitted on.
        y : (m,) or (m, k) array, Series or DataFrame
            Their targets, in their own units, or labels that the model knows.
        weights : (m,) array, optional
            How much each new row counts: needed where the model's rows had weights.

        Raises
        ------
        ModelError
            The model keeps no such sums.
        DataError
            The rows can't be used; the message names the column.

        Warns
        -----
        SelectionWarning
            The loss of the new rows, before they are added, says that kernel or lambda should be chosen again.
        """
        from kernsel.model.update import with_rows  # which needs the readers of tables, as a prediction does not

        return with_rows(self, X, y, weights)

    def to_sklearn(self) -> Any:
        """Return the model as a fitted pipeline of scikit-learn, for kernel ridge regression without a bias.

        Its predictions are those of the model before they are kept near the range of the training target.

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
            The kernel says no formula of a statistic, labels are of mixed types, or the model fills in missing values
            by what has no graph.
        """
        from kernsel.model.onnx_export import to_graph  # which needs the package onnx

        return to_graph(self)

    def compress(self, within: float = 0.1, table: object = None) -> Model:
        """Return a small model that predicts what this one does: landmarks among its rows, with coefficients of theirs.

        They are the fewest for which the mean loss of the small model's predictions, measured against those of this one
        (squared difference, or another class), is at most a share of the standard error of the mean held-out loss.
        Prediction intervals and probabilities stay. See ``kernsel.model.compression``.

        Parameters
        ----------
        within : float
            That share.
        table : DataFrame, or (n, d) array or sparse matrix, optional
            Rows like those that will be predicted, without a target. By default the model's own rows, by the fits
            without each fold, if it keeps these.

        Returns
        -------
        Model
            Its ``provenance["compressed"]`` has the rows that there were, and the mean loss.

        Raises
        ------
        OptionError
            ``within`` is not above 0.
        ModelError
            The model doesn't tell its error, or even half of the rows is not enough: the kernel is rough.
        """
        from kernsel.model.compression import compress

        return compress(self, within, table)

    def __repr__(self) -> str:
        """Say in three lines what the model is, what it predicts, and what of it is kept."""
        m, d = self.rows.shape[0], self.rows.shape[1] if self.encoder is None else len(self.encoder.features)
        lam = self.provenance.get("lambda")
        target = self.target if isinstance(self.target, str) else ", ".join(self.target)
        what = "regression" if self.labels is None else f"{len(self.labels)} classes"
        sets = "prediction intervals" if self.labels is None else "sets of classes"
        extras = {"probabilities": self.calibration, sets: self.intervals}
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
        if self.threshold is not None:
            header["threshold"] = self.threshold.to_json()
        if self.calibration is not None:
            header["calibration"] = self.calibration.to_json()
        arrays = {**rows_to(self.rows), **{name: getattr(self, name) for name in _ARRAYS}}
        arrays |= {name: getattr(self, name) for name in _OF_SOME if getattr(self, name) is not None}
        if self.sufficient is not None:
            header["sums"], more = self.sufficient.to_arrays()
            arrays |= more
        if self.intervals is not None:
            arrays |= {f"intervals_{name}": getattr(self.intervals, name) for name in _OF_INTERVALS}
            some = {name: getattr(self.intervals, name) for name in _OF_SOME_INTERVALS}
            arrays |= {f"intervals_{name}": value for name, value in some.items() if value is not None}
            if self.intervals.scale is not None:
                arrays |= {f"scale_{name}": value for name, value in vars(self.intervals.scale).items()}
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
        if "threshold" in header:
            values["threshold"] = Threshold.from_json(header["threshold"])
        if "calibration" in header:
            values["calibration"] = Calibration.from_json(header["calibration"])
        if "intervals_starts" in contents:
            kept: dict[str, Any] = {name: contents[f"intervals_{name}"] for name in _OF_INTERVALS}
            kept |= {name: contents.get(f"intervals_{name}") for name in _OF_SOME_INTERVALS}
            if "scale_floors" in contents:
                kept["scale"] = Scale(*(contents[f"scale_{name}"] for name in ("coefficients", "biases", "floors")))
            values["intervals"] = Intervals(**kept)
        if "sums" in header:
            values["sufficient"] = SufficientStatistics.of_arrays(header["sums"], contents)
        encoder = None if header["encoder"] is None else Encoder.from_json(header["encoder"])
        kernel = from_spec(header["kernel"])
        values |= {name: contents.get(name) for name in _OF_SOME}
        return cls(kernel=kernel, rows=rows, encoder=encoder, **values)


load = Model.load
