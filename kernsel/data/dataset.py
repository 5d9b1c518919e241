"""The data set that a selection works on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernsel.data.columns import as_dense
from kernsel.data.copies import TOGETHER, Copies, find_copies
from kernsel.data.encoding import Encoder
from kernsel.data.sample import Sample
from kernsel.data.target import class_codes, median_and_spread
from kernsel.numerics.points import Points, is_sparse
from kernsel.numerics.runtime.once import once
from kernsel.types import Array, Indices


@dataclass(frozen=True, eq=False)
class Dataset:
    """Encoded rows, encoded targets and the way back.

    Parameters
    ----------
    X : (n, d) points
        The encoded features, dense or sparse: see ``kernsel.numerics.points``.
    Y : (k, n) array, C-contiguous
        The encoded target, see `kernsel.data.target.Target`.
    task : str
        ``"regression"`` or ``"classification"``.
    labels : list or None
        The classes; with two of them the second is +1.
    target : str or list of str
        Name of the target, or of several.
    encoder : Encoder
        What made ``X``.
    output_shift, output_scale : (k,) arrays
        A prediction in the target's units is ``output * scale + shift``.
    notes : list of str
        What was inferred, changed or left out.
    sample : Sample
        Which rows of the table as given these are, their weights and their groups.
    source : str or None
        The file that it comes from.
    label_dtype : str or None
        NumPy's name of the type that labels are returned in.
    copies : str
        Whether rows of equal features are dealt to one fold, ``"together"``, or ``"apart"`` as any other rows.
    columns : list of dict or None
        What became of each column of a DataFrame: ``name``, ``type``, ``missing`` (a share), ``was_missing`` (whether a
        feature says where a value was missing), ``left_out`` (the reason, or None), ``levels``.
    robust : bool
        Whether the target is in units that outliers don't move.
    """

    X: Points
    Y: Array
    task: str
    labels: list[Any] | None
    target: str | list[str]
    encoder: Encoder
    output_shift: Array
    output_scale: Array
    notes: list[str]
    sample: Sample
    source: str | None = None
    label_dtype: str | None = None
    copies: str = TOGETHER
    columns: list[dict[str, Any]] | None = None
    robust: bool = False

    @property
    def identity(self) -> tuple[Any, ...]:
        """What tells this data set from others."""
        sample, scale = self.sample, (self.output_shift, self.output_scale)
        labels = None if self.labels is None else list(map(repr, self.labels))
        what = self.task, labels, self.target, self.encoder.features, self.copies, *scale
        return self.X, self.Y, *what, sample.weights, sample.groups, sample.places, sample.near, self.given

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.Y.shape[1])

    @property
    def d(self) -> int:
        """Number of encoded features."""
        return len(self.encoder.features)

    @property
    def k(self) -> int:
        """Number of outputs: classes if there are more than two, else 1, or targets of a regression."""
        return len(self.Y)

    @property
    def codes(self) -> Indices | None:
        """Numbers (n,) of the classes, None for a regression."""
        return class_codes(self.Y) if self.labels is not None else None

    @property
    def weights(self) -> Array | None:
        """Weights (n,) of the rows, None where every row counts 1."""
        return self.sample.weights

    @property
    def total(self) -> float:
        """Sum of the weights: what ``n`` is without them."""
        return float(self.n if self.weights is None else self.weights.sum())

    @property
    def groups(self) -> Indices | None:
        """Group numbers (n,), None without groups."""
        return self.sample.groups

    @once
    def copied(self) -> Copies:
        """Which rows are copies of others in all features."""
        return find_copies(self.X, self.Y)

    @property
    def places(self) -> Indices:
        """Where the rows stood in the table as given, (n,)."""
        return self.sample.places

    def take(self, rows: Indices) -> Dataset:
        """Return the data set of some of its rows, encoded as they are."""
        return replace(self, X=self.X[rows], Y=np.ascontiguousarray(self.Y[:, rows]), sample=self.sample.take(rows))

    def in_robust_units(self, what: str) -> Dataset:
        """Return the data set with the target of a regression in units that outliers don't move, for ``what``.

        ``(y - median) / spread`` takes the place of ``(y - mean) / deviation``, see `median_and_spread`. Several
        targets stay in units of their standard deviations, in which their errors are added up.
        """
        if self.labels is not None or self.k > 1 or self.robust:
            return self
        return self.in_units(what, *median_and_spread(self.Y[0], self.weights))

    def in_units(self, what: str, median: float, spread: float, measure: str) -> Dataset:
        """Return the data set with a target whose median and spread, by a measure in words, are known."""
        scale, shift = self.output_scale * spread, self.output_shift + self.output_scale * median
        note = f"{what} in units of the target's robust spread, {float(scale[0]):.4g}: {measure}"
        Y = np.ascontiguousarray((self.Y - median) / spread)
        return replace(self, Y=Y, output_shift=shift, output_scale=scale, notes=[*self.notes, note], robust=True)

    def dense(self, what: str) -> Dataset:
        """Return the data set with dense rows, because ``what`` needs them; DataError if they are too large."""
        return replace(self, X=as_dense(self.X, what)) if is_sparse(self.X) else self

    @property
    def given(self) -> int:
        """Number of rows of the table as given, those of weight 0 among them."""
        return self.sample.given
