"""The fitted predictor: what a selection leaves behind, and how it is kept in a file.

With the m rows r_j and the coefficients a of the model, the output number i of a row x is

    f_i(x) = b_i + sum_j a_ij k(x, r_j),

and the prediction is ``f * scale + shift`` for a regression, the second label where f >= 0 (else the first) for two
classes, and the label of the largest output for more.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.data.columns import Floats, as_matrix
from kernsel.data.encoding import Encoder
from kernsel.data.files import atomic_write
from kernsel.errors import DataError, KernselError, ModelError

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "kernsel-model"
VERSION = 1
BLOCK_BYTES = 64 * 2**20
"""The kernel between new rows and the model's is computed in blocks of about this size."""

_UNREADABLE = (
    *(ValueError, OSError, EOFError, KeyError, SyntaxError, RuntimeError, MemoryError),
    *(zlib.error, zipfile.BadZipFile, struct.error, tokenize.TokenError),
)
"""What NumPy and zipfile raise on a file that is damaged or none of theirs: flags, sizes and text in it are garbage."""

_ARRAYS = ("rows", "coefficients", "bias", "output_shift", "output_scale")


@dataclass(frozen=True, eq=False)
class Model:
    """A kernel expansion with what is needed to use it on new tables.

    Parameters
    ----------
    kernel : Kernel
        Without free parameters.
    learner : str
        Name of the learner that fitted it.
    rows : (m, d) array
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
    """

    kernel: Any
    learner: str
    rows: Floats
    coefficients: Floats
    bias: Floats
    task: str
    labels: list[Any] | None
    target: str | list[str]
    encoder: Encoder | None
    output_shift: Floats
    output_scale: Floats
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def decision(self, table: pd.DataFrame | npt.ArrayLike) -> Floats:
        """Return the outputs f of new rows.

        Parameters
        ----------
        table : DataFrame or (n, d) array
            In the columns of the table that the model was fitted on; encoding is done here.

        Returns
        -------
        (n,) array if k = 1, else (n, k)
        """
        X = self.encoder.transform(table) if self.encoder is not None else as_matrix(table)
        if X.shape[1] != self.rows.shape[1]:
            raise DataError(f"X has {X.shape[1]} columns where the model has {self.rows.shape[1]}")
        F = np.empty((len(X), len(self.bias)))
        block = max(1, BLOCK_BYTES // (8 * max(1, len(self.rows))))
        for start in range(0, len(X), block):
            part = slice(start, start + block)
            F[part] = self.kernel(X[part], self.rows) @ self.coefficients.T + self.bias
        return F[:, 0] if F.shape[1] == 1 else F

    def predict(self, table: pd.DataFrame | npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the predictions for new rows: values of a regression in the target's units, or labels.

        Parameters
        ----------
        table : DataFrame or (n, d) array
            As in `decision`.

        Returns
        -------
        (n,) array, or (n, k) for k targets
        """
        return self.outputs_to_predictions(self.decision(table))

    def outputs_to_predictions(self, F: Floats) -> npt.NDArray[Any]:
        """Turn outputs of `decision` into predictions."""
        if self.labels is None:
            return np.asarray(F * self.output_scale + self.output_shift)
        labels = np.array(self.labels, dtype=None if len({type(label) for label in self.labels}) == 1 else object)
        chosen = (F >= 0).astype(int) if F.ndim == 1 else F.argmax(axis=1)
        return np.asarray(labels[chosen])

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
            "target": self.target,
            "encoder": None if self.encoder is None else self.encoder.to_json(),
            "provenance": dict(self.provenance),
        }
        contents = {
            "header": np.array(json.dumps(header)),
            **{name: getattr(self, name) for name in _ARRAYS},
        }
        contents["checksum"] = np.array(_checksum(contents))
        atomic_write(path, lambda stream: np.savez_compressed(stream, allow_pickle=False, **contents))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model back.

        Raises
        ------
        ModelError
            There is no such file, it isn't a model, it is damaged, or a newer kernsel wrote it.
        """
        contents = _read(Path(path))
        header = _header(Path(path), contents)
        if str(contents.pop("checksum", "")) != _checksum(contents):
            raise ModelError(f"{path} is damaged: its checksum doesn't fit its contents; get another copy of it")
        from kernsel.kernels import from_spec

        try:
            kernel = from_spec(header["kernel"])
        except KernselError as error:
            raise ModelError(f"{path}: its kernel can't be had: {error}") from error
        encoder = None if header["encoder"] is None else Encoder.from_json(header["encoder"])
        arrays = {name: np.ascontiguousarray(contents[name]) for name in _ARRAYS}
        values = {name: header[name] for name in ("learner", "task", "labels", "target", "provenance")}
        fields: dict[str, Any] = arrays | values
        return cls(kernel=kernel, encoder=encoder, **fields)


load = Model.load


def _read(path: Path) -> dict[str, npt.NDArray[Any]]:
    if path.is_dir():
        raise ModelError(f"{path} is a folder; give the name of a model file")
    if not path.exists():
        raise ModelError(f"there is no file {path}; give a model that was saved with --model or Model.save")
    try:
        with path.open("rb") as stream:
            archive = np.load(stream, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("a single array")
            with archive:
                return {name: archive[name] for name in archive.files}
    except PermissionError as error:
        raise ModelError(f"can't read {path}: {error.strerror}; check its permissions") from error
    except _UNREADABLE as error:
        reason = (
            "is damaged; get another copy of it" if zipfile.is_zipfile(path) else "isn't a model of kernsel, or is cut"
        )
        raise ModelError(f"{path} {reason} ({type(error).__name__})") from error


def _header(path: Path, contents: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    try:
        header = json.loads(str(contents["header"]))
        known = header["format"] == FORMAT
        version = int(header["version"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} isn't a model of kernsel; give one that was saved with --model") from error
    if not known:
        raise ModelError(f"{path} isn't a model of kernsel (its format is {header['format']!r})")
    if version != VERSION:
        raise ModelError(f"{path} has format version {version}, this kernsel reads version {VERSION}; upgrade kernsel")
    return dict(header)


def _checksum(contents: Mapping[str, npt.NDArray[Any]]) -> str:
    """SHA-256 over names, types, shapes and bytes of all arrays, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(contents):
        array = np.ascontiguousarray(contents[name])
        digest.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
