"""The candidates of a selection as the ``cv_results_`` of scikit-learn's searches: a dictionary of arrays.

Scores are negative, so that greater is better: ``-score`` of each candidate, by exact refits where it is verified. The
standard deviation over t folds is ``sqrt(t)`` times the standard error of their mean.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from kernsel.search.candidate import Candidate
    from kernsel.selection.result import Selection


def cv_results(selection: Selection) -> tuple[dict[str, Any], int]:
    """Return the table of a selection's candidates, and the place of the chosen one in it.

    Rows are sorted by kernel, its parameters and lambda, so that the scores of a whole grid can be reshaped.

    Returns
    -------
    table : dict
        ``params``, a list of dictionaries; masked arrays ``param_*`` of the searched parameters, and of the same in
        scikit-learn's terms (``param_gamma``, ``param_C``, ``param_alpha``); ``mean_test_score``, ``std_test_score``
        (NaN where the criterion is no mean over rows, or the candidate failed) and ``rank_test_score``, 1 for the
        choice; ``mean_test_error`` and ``se_test_error`` of held-out rows; ``mean_test_NAME`` of each metric, for
        verified candidates.
    index : int
    """
    ranked = list(enumerate(selection.candidates, start=1))
    ranked.sort(key=lambda each: _place(each[1]))
    candidates = [candidate for _, candidate in ranked]
    total, folds = float(selection.data["weight"]), float(selection.data["folds"])
    params = [_params(candidate) for candidate in candidates]
    terms = [{**candidate.conversions(total), **own} for candidate, own in zip(candidates, params, strict=True)]
    table: dict[str, Any] = {"params": params}
    for name in dict.fromkeys(name for each in terms for name in each):
        table[f"param_{name}"] = _masked([each.get(name) for each in terms])
    metrics = dict.fromkeys(name for candidate in candidates for name in candidate.metrics)
    table |= {
        "mean_test_score": -_column([c.value for c in candidates]),
        "std_test_score": math.sqrt(folds) * _column([c.score_se for c in candidates]),
        "rank_test_score": np.array([rank for rank, _ in ranked], dtype=np.int32),
        "mean_test_error": _column([c.error for c in candidates]),
        "se_test_error": _column([c.error_se for c in candidates]),
        **{f"mean_test_{m}": _column([getattr(c.metrics.get(m), "value", None) for c in candidates]) for m in metrics},
    }
    return table, int(np.argmin(table["rank_test_score"]))


def _params(candidate: Candidate) -> dict[str, Any]:
    """Return what sets a candidate apart."""
    return {"kernel": candidate.kernel.name, **candidate.kernel.parameters, **candidate.tuned, "lambda": candidate.lam}


def _place(candidate: Candidate) -> tuple[Any, ...]:
    """Return the sort key of a candidate: name of the kernel, then all numbers in the order of ``params``."""
    values = [value for value in _params(candidate).values() if isinstance(value, int | float)]
    return str(type(candidate.kernel)), candidate.kernel.name, len(values), values


def _column(values: list[float | None]) -> np.ndarray[Any, np.dtype[np.float64]]:
    numbers = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    return np.where(np.isfinite(numbers), numbers, math.nan)


def _masked(values: list[Any]) -> np.ma.MaskedArray[Any, Any]:
    """Return values as a masked array: of numbers if they are some, else of objects."""
    mask = [value is None for value in values]
    number = all(isinstance(value, int | float) for value in values if value is not None)
    if number:
        return np.ma.MaskedArray([0.0 if value is None else float(value) for value in values], mask=mask)
    data = np.empty(len(values), dtype=object)
    data[:] = values
    return np.ma.MaskedArray(data, mask=mask)
