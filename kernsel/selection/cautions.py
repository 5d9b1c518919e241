"""What should be known before a choice is used: checks of its held-out outputs and of the rows behind them.

Each caution is said once, in words, and has a code that programs can rely on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernsel import registry
from kernsel.criteria.base import Criterion
from kernsel.data import Dataset
from kernsel.data.copies import APART
from kernsel.data.names import listed
from kernsel.data.target import class_codes
from kernsel.errors import Caution
from kernsel.folds import Folds, copies_apart, keeps_copies
from kernsel.folds.partition import Partition
from kernsel.heldout.baseline import Baseline, baseline_of
from kernsel.heldout.errors import Errors
from kernsel.kernels import Kernel
from kernsel.kernels.given import negative_part
from kernsel.numerics.points import Points, is_sparse
from kernsel.types import Array, Indices

TOO_GOOD = 0.01
"""A held-out error below this share of the target's spread is said: measured targets have more noise than that."""
ROWS_OF_A_VALUE, MOST_NUMBERS, LOOKED_AT = 5, 20, 1000
"""A column of few values has so many rows of each on average, and at most so many different numbers: of more, a class
may well be an interval. So many rows are looked at first."""


def examine_kernel(kernel: Kernel, X: Points, seed: int) -> list[Caution]:
    """Return the caution that a kernel of somebody else isn't positive semidefinite, if rows of X (n, d) show it.

    Then there is no space of functions whose norm is penalised, and the "minimum" that is fitted may be none.
    """
    maker = registry.maker_of(kernel)
    if maker is None and getattr(kernel, "definite", True):
        return []
    share = negative_part(kernel, X, seed)
    if not share:
        return []
    who = f"kernel '{kernel.name}'"
    text = (
        f"{maker or who} isn't positive semidefinite: its smallest eigenvalue is {share:.2g} times the "
        "largest; fits of the square loss leave its negative part out, others may fail; set negative eigenvalues to 0, "
        "or add their size to the diagonal"
    )
    return [Caution("indefinite-kernel", text)]


class Examination(NamedTuple):
    """What was found: cautions, notes, and what JSON holds of the baseline and of copies."""

    cautions: list[Caution]
    notes: list[str]
    baseline: dict[str, Any]
    copies: dict[str, Any]


def examine(
    dataset: Dataset, folds: Folds, deals: list[Partition], every: list[Array], error: float | None
) -> Examination:
    """Examine the held-out outputs of a choice.

    Parameters
    ----------
    folds : Folds
        The first of the deals.
    deals : list of Partition
        Rows sorted by fold, for each deal of the folds.
    every : list of (k, n) arrays
        Held-out outputs on each of the deals, or on the first ones.
    error : float or None
        Of the choice.
    """
    found = baseline_of(deals, every, Errors.of(dataset))
    copied, apart = dataset.copied, copies_apart(folds, dataset)
    cautions = [*_no_better(found, dataset), *_too_good(dataset, deals[0], error), *_apart(dataset, folds, apart)]
    copies = {"rows": copied.rows, "same_target": copied.same_target, "apart": int(apart.size)}
    return Examination(cautions, _noted(dataset, folds), found.to_dict(), copies)


def weights_note(criterion: Criterion, dataset: Dataset) -> list[str]:
    """Say what weights are to a criterion, where a weight of 2 isn't a row that is there twice."""
    meaning = getattr(getattr(criterion, "about", None), "weights", "")
    return [f"weights: to {criterion.name} {meaning}"] if meaning and dataset.weights is not None else []


def _no_better(found: Baseline, dataset: Dataset) -> list[Caution]:
    """Say that a choice is no better than a constant."""
    if found.one_class is not None and dataset.labels is not None:
        return [
            Caution(
                "one-class",
                f"the choice predicts {dataset.labels[found.one_class]!r} for every held-out row: it tells no classes "
                "apart; give class_weight balanced, another kernel or learner, or better features",
            )
        ]
    if found.beaten:
        return []
    gain = f"{found.gain:.3g} +- {found.gain_se:.2g}"
    loss = "error" if dataset.labels is not None else "mean squared error"
    return [
        Caution(
            "no-better-than-baseline",
            f"the choice is no better than {found.predicts} of the training rows: its held-out {loss} is lower by "
            f"{gain}; add features or rows, or try another kernel, before it is used",
        )
    ]


def _too_good(dataset: Dataset, rows: Partition, error: float | None) -> list[Caution]:
    """Say that an error is below what measured targets allow, or that a column alone tells the class."""
    if error is None:
        return []
    if dataset.labels is not None:
        return _tells_classes(dataset, error)
    Y, s = rows.Y[:, : rows.held], rows.s[: rows.held] / rows.s[: rows.held].sum()
    spread = Errors.of(dataset).unit * float(np.sqrt(((Y - (Y @ s)[:, None]) ** 2 @ s).mean()))
    if not error < TOO_GOOD * spread:
        return []
    return [
        Caution(
            "error-too-small",
            f"the held-out error is {100 * error / spread:.2g} % of the target's standard deviation: features may hold "
            "the target, or what it is computed from, such as the parts of a sum; leave out what isn't known when "
            "predictions are made",
        )
    ]


def _tells_classes(dataset: Dataset, error: float) -> list[Caution]:
    """Say that each value of a column of few values is of one class, or all rows of one class lack values."""
    if error >= TOO_GOOD or is_sparse(dataset.X) or dataset.encoder.similarities:
        return []
    encoder, codes = dataset.encoder, class_codes(dataset.Y)
    few = dataset.n // ROWS_OF_A_VALUE
    numeric = zip(encoder.numeric, dataset.X.T[: len(encoder.numeric)], strict=True)
    coded = zip(encoder.categories, encoder.categories_of(dataset.X), strict=True) if encoder.categories else ()
    names = [name for name, values in numeric if _is_one_class(values, codes, min(few, MOST_NUMBERS))]
    names += [name for name, values in coded if _is_one_class(values, codes, few)]
    absent = zip(encoder.gaps, dataset.X.T[dataset.d - len(encoder.gaps) :], strict=True)
    names += [name for name, values in absent if name not in names and _is_one_class(values, codes, few)]
    if not names:
        return []
    one = len(names) == 1
    return [
        Caution(
            "error-too-small",
            f"column{'s' * (not one)} {listed(names)} alone tell{'s' * one} the class of every row: leave out what "
            "isn't known when predictions are made (drop)",
        )
    ]


def _is_one_class(values: NDArray[Any], codes: Indices, few: int) -> bool:
    """Say whether values (n,) are few, and rows of the same value of the same class."""
    if len(np.unique(values[:LOOKED_AT])) > few:
        return False
    levels, places = np.unique(values, return_inverse=True)
    least, most = np.full(len(levels), codes.max()), np.zeros(len(levels), np.int64)
    np.minimum.at(least, places, codes)
    np.maximum.at(most, places, codes)
    return len(levels) <= few and bool((least == most).all())


def _apart(dataset: Dataset, folds: Folds, apart: Indices) -> list[Caution]:
    """Say that copies of training rows are held out."""
    if not apart.size or _categories(dataset, folds):
        return []
    if dataset.groups is not None:
        advice = "let copies be of one group"
    elif folds.dealt:
        advice = "let copies be together" if dataset.copies == APART else "give fewer folds"
    else:
        advice = "give a number of folds, which keep copies together"
    share = f"{apart.size} of {int(np.count_nonzero(folds.number >= 0))} held-out rows"
    return [
        Caution(
            "copies-apart",
            f"{share} have all features in common with a row that their fit is trained on: the held-out error is too "
            f"low for new rows; {advice}, or keep one of each with a weight",
        )
    ]


def _categories(dataset: Dataset, folds: Folds) -> bool:
    """Say whether copies were left apart because few rows are distinct."""
    return folds.dealt and dataset.groups is None and dataset.copies != APART and dataset.copied.few_distinct


def _noted(dataset: Dataset, folds: Folds) -> list[str]:
    """Say which rows are copies, and what became of them."""
    copied = dataset.copied
    if not copied.rows:
        return []
    same = "all" if copied.same_target == copied.rows else str(copied.same_target)
    found = (
        f"copies: {copied.rows} of {dataset.n} rows have all features in common with an earlier one, {same} of these "
    )
    found += "the target too"
    if _categories(dataset, folds):
        return [found + "; so few are distinct that new rows will repeat them as well: copies are in any fold"]
    together = folds.dealt and dataset.groups is None and keeps_copies(dataset, folds.starts.size - 1)
    return [found + "; copies are in one fold" * together]
