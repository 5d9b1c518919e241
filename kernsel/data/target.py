"""Turn a target of any kind into the numbers that a learner is fitted to."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernsel.data.columns import (
    as_text,
    check_missing,
    check_values,
    is_text,
    missing,
    missing_values,
    numbers,
    without_gaps,
)
from kernsel.data.dates import find_format
from kernsel.data.names import check_unique, listed
from kernsel.errors import DataError, OptionError
from kernsel.types import Array, Indices, Mask

if TYPE_CHECKING:
    import pandas as pd

TASKS = ("auto", "regression", "classification")
ANOTHER = "name the column to predict (--target NAME)"
"""What to do about a column that can't be a target."""
FEW_VALUES = 10
"""A target of so few distinct whole numbers is taken for class labels."""


@dataclass(frozen=True, eq=False)
class Target:
    """A target as a learner sees it.

    Parameters
    ----------
    Y : (k, n) array
        Regression: ``(y - shift) / scale``, k = 1. Two classes: +1 for the second label, -1 for the first, k = 1.
        More classes: one row a class, +1 where it holds.
    task : str
        ``"regression"`` or ``"classification"``.
    labels : list or None
        The classes in sorted order, as Python values of the kind that the target has.
    shift, scale : (k,) arrays
        What turns the learner's output back into the target's units.
    note : str
        How the task was inferred.
    label_dtype : str or None
        NumPy's name of the type that the target has, which predicted labels are returned in.
    """

    Y: Array
    task: str
    labels: list[Any] | None
    shift: Array
    scale: Array
    note: str
    label_dtype: str | None = None

    @property
    def codes(self) -> Indices | None:
        """Numbers (n,) of the classes, or None."""
        return class_codes(self.Y) if self.labels is not None else None


def class_codes(Y: Array) -> Indices:
    """Return the numbers (n,) of the classes that Y (k, n) encodes."""
    return np.asarray(Y[0] > 0 if len(Y) == 1 else Y.argmax(axis=0), dtype=np.int64)


def chosen_classes(F: Array) -> Indices:
    """Return the numbers of the classes that outputs F (k, n) choose: at 0 the second of two, the first of equals."""
    return np.asarray(F[0] >= 0 if len(F) == 1 else F.argmax(axis=0), dtype=np.int64)


class Rest(NamedTuple):
    """What is known of a target of which only different values are there.

    Parameters
    ----------
    rows, values : int
        Number of rows, and of different values.
    mean, deviation : float
        Of numbers.
    """

    rows: int
    values: int
    mean: float
    deviation: float


def encode_targets(
    columns: Mapping[str, object],
    task: str,
    weights: Array | None = None,
    rest: Mapping[str, Rest] | None = None,
) -> Target:
    """Encode one target, or several numeric ones that are learnt together.

    Parameters
    ----------
    columns : mapping of name to (n,) array or Series
    task, weights : optional
        As in `encode_target`.
    rest : mapping of name to Rest, optional
        Of columns of different values; the encoded target is of these then.
    """
    rest = rest or {}
    if len(columns) == 1:
        ((name, column),) = columns.items()
        return encode_target(*read_target(column, name), name, task, weights, rest.get(name))
    if task == "classification":
        raise OptionError(
            f"the targets {listed(list(columns))} can't be classes: several targets are learnt by regression only; "
            "choose one of them"
        )
    each = [
        encode_target(*read_target(column, name), name, "regression", weights, rest.get(name))
        for name, column in columns.items()
    ]
    Y, shift, scale = (np.concatenate([getattr(target, part) for target in each]) for part in ("Y", "shift", "scale"))
    return Target(Y, "regression", None, shift, scale, f"task: regression of {len(each)} targets together")


def split_targets(y: Any) -> dict[str, Any]:
    """Return the columns of a target, Series or (n,) arrays, by name: ``y``, or ``y0, y1, ...`` if they have none."""
    if hasattr(y, "columns"):
        names = [str(column) for column in y.columns]
        check_unique(names, "y")
        if not names:
            raise DataError("y has no columns; give at least one target")
        return {name: y.iloc[:, j] for j, name in enumerate(names)}
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        return {f"y{j}": as_vector(values[:, j]) for j in range(values.shape[1])}
    return {str(getattr(y, "name", None) or "y"): y if hasattr(y, "iloc") else as_vector(y)}


def read_target(
    column: Any, name: str, words: Container[str] | None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Array | None]:
    """Return a target as given, its values as an array of one plain kind, and as numbers if they are meant as such.

    ``words`` are those such as None that are its values, where other rows have told: see `without_gaps`.
    """
    if hasattr(column, "iloc"):
        check_missing(column, name)
        floats = None if words else _numbers(column.rename(name))
        return given_column(column), plain_column(column, floats, words), floats
    given = np.asarray(column)
    values = plain_vector(given, name)
    return given, values, values.astype(np.float64) if values.dtype.kind in "iuf" else None


def _numbers(column: pd.Series) -> Array | None:
    """Return a target as numbers, None if it holds others; DataError if it has too many different dates for classes."""
    if not (is_text(column) and _are_dates(column)):
        return numbers(column, instead=ANOTHER)
    count = column.nunique()
    if 2 * count > len(column):
        raise DataError(
            f"target {column.name!r} holds {count} different dates (first: {str(column.iloc[0])[:40]!r}), which are no "
            f"numbers to predict; {ANOTHER}, or write them as numbers"
        )
    return None


def _are_dates(column: pd.Series) -> bool:
    """Say whether a text column holds dates; it doesn't matter how they are read."""
    try:
        return find_format(column.astype(str), str(column.name)) is not None
    except DataError:  # in two ways
        return True


def encode_target(
    given: npt.NDArray[Any],
    values: npt.NDArray[Any],
    floats: Array | None,
    name: str,
    task: str,
    weights: Array | None,
    rest: Rest | None = None,
) -> Target:
    """Infer the task, if it is ``"auto"``, and encode the target for it.

    Parameters
    ----------
    given : (n,) array
        The target in its own type, which labels are returned in.
    values : (n,) array
        Without missing values: truth values, text, categories or numbers.
    floats : (n,) array or None
        The values as numbers, if they are meant as numbers.
    name : str
        For messages.
    task : str
        One of ``TASKS``.
    weights : (n,) array or None
        Of the rows, for mean and deviation.
    rest : Rest or None
        Of all rows, where the values are different ones.
    """
    if task not in TASKS:
        raise OptionError(f"unknown task {task!r}; it is one of {', '.join(TASKS)}")
    if floats is not None:
        check_values(floats, name)
    try:
        labels, codes = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise DataError(f"target {name!r} mixes values of different kinds ({error}); make them all text") from error
    if len(labels) == 1:
        what = "class" if task == "classification" else "value"
        only = f"target {name!r} has one {what} only ({_native(labels[0])!r}), so there is nothing to learn"
        raise DataError(f"{only}; {ANOTHER}")
    rows, count = (len(values), len(labels)) if rest is None else (rest.rows, rest.values)
    kind, reason = _infer(labels, count, floats, rows)
    if task == "auto":
        note = f"task: {kind}, because the target {reason}"
        if floats is not None and np.array_equal(floats, np.round(floats)):
            other = "regression" if kind == "classification" else "classification"
            note += f" (set the task to {other} if that is wrong)"
        task = kind
    else:
        note = f"task: {task}, as asked for"
    if task == "regression":
        return _regression(values, floats, name, weights, note, rest)
    if count > max(2, rows // 2) or count > len(labels):
        way = ANOTHER if floats is None else "choose the task regression or another target"
        what = "has" if floats is not None else "is text with"
        raise DataError(f"target {name!r} {what} {count} distinct values in {rows} rows, too many for classes; {way}")
    try:
        return _classes(given, labels, codes, note)
    except TypeError as error:
        raise DataError(f"target {name!r} holds values that can't be labels ({error}); give numbers or text") from error


def _infer(labels: npt.NDArray[Any], count: int, floats: Array | None, n: int) -> tuple[str, str]:
    if floats is None:
        what = {"b": "truth values", "O": "text", "U": "text", "T": "text"}.get(labels.dtype.kind, "categories")
        return "classification", f"holds {what} ({count} distinct)"
    if count == 2:
        return "classification", "has 2 distinct values"
    if count <= FEW_VALUES and np.array_equal(floats, np.round(floats)):
        if 2 * count <= n:
            return "classification", f"holds {count} distinct whole numbers"
        return "regression", f"holds {count} distinct whole numbers in only {n} rows"
    return "regression", f"has {count} distinct numbers"


def _regression(
    values: npt.NDArray[Any],
    floats: Array | None,
    name: str,
    weights: Array | None,
    note: str,
    rest: Rest | None,
) -> Target:
    if floats is None:
        if values.dtype.kind not in "biuf":
            raise DataError(
                f"target {name!r} holds text (first: {str(values[0])[:40]!r}) but regression needs numbers; "
                "choose the task classification or another target"
            )
        floats = values.astype(np.float64)
    if floats.min() == floats.max():  # as values they differ, see the caller
        raise DataError(
            f"the values of target {name!r} differ by less than is left of numbers as large as {floats[0]:.6g}; "
            "subtract one of them from all"
        )
    shift, scale = mean_and_scale(floats, weights) if rest is None else (rest.mean, rest.deviation)
    Y = np.ascontiguousarray(((floats - shift) / scale)[None])
    return Target(Y, "regression", None, np.array([shift]), np.array([scale]), note)


def _classes(given: npt.NDArray[Any], labels: npt.NDArray[Any], codes: npt.NDArray[np.intp], note: str) -> Target:
    k = 1 if len(labels) == 2 else len(labels)
    Y = np.where(codes == 1, 1.0, -1.0)[None] if k == 1 else np.where(codes == np.arange(k)[:, None], 1.0, -1.0)
    first = np.unique(codes, return_index=True)[1]
    # Texts of one number, such as 1 and 1.0, are one class, whose label then is the number.
    alike = given.dtype.kind not in "OUT" or len(set(given.tolist())) == len(labels)
    names = [_native(label) for label in (given[first] if alike else labels)]
    dtype = dtype_name(given if alike else labels)
    return Target(np.ascontiguousarray(Y), "classification", names, np.zeros(k), np.ones(k), note, dtype)


def dtype_name(values: npt.NDArray[Any]) -> str:
    """Return a name that ``numpy.dtype`` reads the type of an array from; texts are of any length."""
    return {"O": "O", "U": "U", "T": "T"}.get(values.dtype.kind, values.dtype.str)


def _native(label: object) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def mean_and_scale(values: Array, weights: Array | None = None) -> tuple[float, float]:
    """Return mean and standard deviation (divisor n) of unequal values, weighted; nothing over- or underflows."""
    shares = None if weights is None else weights / weights.sum()
    mean = float(np.average(values, weights=shares))
    deviation = np.abs(values - mean)
    largest = float(deviation.max())
    return mean, largest * float(np.sqrt(np.average((deviation / largest) ** 2, weights=shares)))


def median_and_spread(values: Array, weights: Array | None = None) -> tuple[float, float, str]:
    """Return median and robust spread of unequal values, and which measure of spread that is, in words.

    The spread is ``1.4826 median |v - median|``, the standard deviation if values are normal. Where more than half of
    all values are equal, it is ``(q_75 - q_25) / 1.349`` with the quartiles q; where these are equal too, the standard
    deviation. Weights count as repeated rows do.
    """
    s = np.ones(values.size) if weights is None else weights

    def quantiles(share: float, centre: float | None) -> tuple[float, float]:
        return _quantiles(values if centre is None else np.abs(values - centre), s, share)

    return find_spread(quantiles, lambda: mean_and_scale(values, weights)[1])


def find_spread(
    quantiles: Callable[[float, float | None], tuple[float, float]], deviation: Callable[[], float]
) -> tuple[float, float, str]:
    """Return what `median_and_spread` does, by quantiles of the values, or of their distances from a centre.

    Parameters
    ----------
    quantiles : callable
        For a share and a centre the least value that this share of the weight is at or below, and that more is.
    deviation : callable
        For the standard deviation.
    """
    median = float(np.mean(quantiles(0.5, None)))
    spread = 1.4826 * float(np.mean(quantiles(0.5, median)))
    if spread > 0:
        return median, spread, "1.4826 times its median absolute deviation"
    spread = (quantiles(0.75, None)[0] - quantiles(0.25, None)[0]) / 1.349
    if spread > 0:
        return median, spread, "1 / 1.349 of its interquartile range, as half of it has one value"
    return median, deviation(), "its standard deviation, as most of it has one value"


def _quantiles(values: Array, s: Array, share: float) -> tuple[float, float]:
    """Return the least value that this share of the weight is at or below, and that more than this share is."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(s[order])
    at = [np.searchsorted(sums, share * sums[-1], side=side) for side in ("left", "right")]
    lower, upper = values[order[np.minimum(at, values.size - 1)]]
    return float(lower), float(upper)


def as_vector(y: npt.ArrayLike) -> npt.NDArray[Any]:
    """Convert a target to one dimension, or say why not."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"y must be one column, but its shape is {values.shape}")
    if values.dtype.kind in "cmM":
        raise DataError(f"y holds {values.dtype} values; give numbers or labels")
    return values


def target_gaps(column: object, words: Container[str] | None = None) -> Mask:
    """Return where a target is missing, (n,); ``words`` as in `read_target`."""
    if hasattr(column, "iloc"):
        return np.asarray(without_gaps(column, words).isna())
    values = np.asarray(column)
    if values.dtype.kind != "U":
        return missing(values)
    import pandas as pd

    return np.asarray(without_gaps(pd.Series(values, dtype=object), words).isna())


def given_column(target: pd.Series) -> npt.NDArray[Any]:
    """Return a column without missing values in its own type, as far as NumPy has it; text is of objects."""
    import pandas as pd

    dtype = target.dtype.categories.dtype if isinstance(target.dtype, pd.CategoricalDtype) else target.dtype
    plain = getattr(dtype, "numpy_dtype", dtype)  # of pandas' own integers, numbers and truth values
    return np.asarray(target.to_numpy(plain if isinstance(plain, np.dtype) else np.dtype(object)))


def plain_column(target: pd.Series, floats: Array | None, words: Container[str] | None) -> npt.NDArray[Any]:
    """Return the target's values as an array of one plain kind; ``words`` as in `read_target`."""
    import pandas as pd

    if isinstance(target.dtype, pd.CategoricalDtype):
        target = target.astype(target.cat.categories.dtype)
    if pd.api.types.is_bool_dtype(target.dtype):
        return np.asarray(target, dtype=bool)
    if pd.api.types.is_integer_dtype(target.dtype):
        unsigned = pd.api.types.is_unsigned_integer_dtype(target.dtype)
        return np.asarray(target, dtype=np.uint64 if unsigned else np.int64)
    if pd.api.types.is_float_dtype(target.dtype):
        return np.asarray(target, dtype=np.float64)
    return as_text(target, words) if floats is None else floats


def plain_vector(values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Turn an array of objects into numbers or truth values if that is what it holds."""
    if values.dtype.kind != "O":
        return values
    gaps = missing(values)
    if gaps.any():
        raise DataError(missing_values(gaps, name))
    if all(isinstance(value, bool | np.bool_) for value in values):
        return values.astype(bool)
    if all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values):
        return values.astype(np.float64)
    return values
