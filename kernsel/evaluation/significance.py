"""Compare methods by their errors: two over splits of one data set, several over many data sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernsel.errors import OptionError
from kernsel.types import Array


@dataclass(frozen=True)
class Paired:
    """The outcome of :func:`paired`.

    Parameters
    ----------
    difference : float
        Mean of the first errors minus the second: below 0 where the first method is better.
    t : float
        Student's t of it; 0 where all differences are 0.
    p : float
        Two-sided.
    """

    difference: float
    t: float
    p: float


def paired(first: npt.ArrayLike, second: npt.ArrayLike, test_share: float | None = None) -> Paired:
    """Compare the errors of two methods on the same splits by a paired t-test.

    With the differences ``x_1 ... x_J`` of J splits, their mean and variance s^2 (over J - 1),
    ``t = mean / sqrt((1/J + c) s^2)`` with J - 1 degrees of freedom. Training sets of random splits overlap, so that
    their errors are not independent: ``c = n_test / n_train`` corrects for that (Nadeau & Bengio 2003, eq. 15). With
    ``c = 0`` it is the ordinary test, which finds differences too often.

    Parameters
    ----------
    first, second : (J,) array
        Errors, split by split.
    test_share : float, optional
        Share of the rows that a split tests on, ``c / (1 + c)``; None for the ordinary test of independent pairs.

    Raises
    ------
    OptionError
        The errors aren't pairs of finite numbers, at least two.
    """
    x = _errors(first) - _errors(second)
    if x.ndim != 1 or x.size < 2:
        raise OptionError(f"paired: errors of two methods on the same splits, at least 2, not of shape {x.shape}")
    if test_share is not None and not 0 < test_share < 1:
        raise OptionError(f"paired: test_share is the share of the rows to test on, between 0 and 1, not {test_share}")
    from scipy.stats import t as student  # takes a while to import

    overlap = 0.0 if test_share is None else test_share / (1 - test_share)
    mean, spread = float(x.mean()), math.sqrt((1 / x.size + overlap) * float(x.var(ddof=1)))
    if spread == 0:  # all differences are the same
        return Paired(mean, math.copysign(math.inf, mean) if mean else 0.0, 0.0 if mean else 1.0)
    t = mean / spread
    return Paired(mean, t, float(2 * student.sf(abs(t), x.size - 1)))


@dataclass(frozen=True, eq=False)
class Ranks:
    """The outcome of :func:`friedman`.

    Parameters
    ----------
    mean_ranks : (k,) array
        Of the methods; 1 is best.
    statistic : float
        F of Iman & Davenport.
    p : float
        That the methods are all alike.
    critical_difference : float
        Nemenyi's: mean ranks that differ by less don't differ significantly.
    level : float
        Of that.
    """

    mean_ranks: Array
    statistic: float
    p: float
    critical_difference: float
    level: float


def friedman(errors: npt.ArrayLike, level: float = 0.05) -> Ranks:
    """Compare k methods over N data sets by their ranks (Demsar 2006, section 3.2).

    With the mean ranks R_j (ties share theirs), ``chi^2 = 12 N / (k (k + 1)) [sum_j R_j^2 - k (k + 1)^2 / 4]``, here
    ``F = (N - 1) chi^2 / (N (k - 1) - chi^2)`` with k - 1 and (k - 1)(N - 1) degrees of freedom (Iman & Davenport
    1980), and Nemenyi's critical difference ``q sqrt(k (k + 1) / (6 N))`` with q from the studentised range over the
    root of 2.

    Parameters
    ----------
    errors : (N, k) array
        Lower is better.

    Raises
    ------
    OptionError
        There are fewer than two data sets or methods, or an error isn't finite.
    """
    E = _errors(errors)
    if E.ndim != 2 or min(E.shape) < 2:
        raise OptionError(f"friedman: errors of at least 2 methods on at least 2 data sets, not of shape {E.shape}")
    if not 0 < level < 1:
        raise OptionError(f"friedman: level is a probability, such as 0.05, not {level}")
    from scipy import stats  # takes a while to import

    N, k = E.shape
    R = stats.rankdata(E, axis=1).mean(axis=0)
    chi2 = 12 * N / (k * (k + 1)) * (float(R @ R) - k * (k + 1) ** 2 / 4)
    rest = N * (k - 1) - chi2
    F = (N - 1) * chi2 / rest if rest > 1e-12 * N else math.inf  # all data sets agree
    q = float(stats.studentized_range.ppf(1 - level, k, np.inf)) / math.sqrt(2)
    p = float(stats.f.sf(F, k - 1, (k - 1) * (N - 1)))
    return Ranks(R, F, p, q * math.sqrt(k * (k + 1) / (6 * N)), level)


def _errors(values: npt.ArrayLike | Sequence[float]) -> Array:
    errors = np.asarray(values, dtype=np.float64)
    if not np.isfinite(errors).all():
        raise OptionError("errors to compare must be finite numbers: leave out what failed, for all methods")
    return errors


@dataclass(frozen=True, eq=False)
class Marks:
    """The outcome of :func:`mark`.

    Parameters
    ----------
    best : int
        The method with the least mean error.
    t, corrected, wilcoxon : (k,) arrays
        One-sided p of each method: that its errors are no greater than the best one's. By Student's paired t, by that
        corrected for overlapping training sets (Nadeau & Bengio 2003), and by Wilcoxon's signed ranks; 1 for the best.
    """

    best: int
    t: Array
    corrected: Array
    wilcoxon: Array


def mark(errors: npt.ArrayLike, test_share: float) -> Marks:
    """Find the best of some methods on the splits of one data set, and how sure it is that each other one is worse.

    Parameters
    ----------
    errors : (J, k) array
        Split by split, at least two; lower is better.
    test_share : float
        Share of the rows that a split tests on.
    """
    E = _errors(errors)
    best = int(E.mean(axis=0).argmin())
    found = [sure_worse(column, E[:, best], test_share) for column in E.T]
    t, corrected, wilcoxon = np.array(found).T
    return Marks(best, t, corrected, wilcoxon)


def sure_worse(errors: Array, others: Array, test_share: float) -> tuple[float, float, float]:
    """Return the one-sided p that errors are no greater than others, by the three tests of `Marks`.

    Parameters
    ----------
    errors, others : (J,) arrays
        On the same splits.
    """
    plain, corrected = (_one_sided(paired(errors, others, share)) for share in (None, test_share))
    return plain, corrected, signed_ranks(errors, others)


def _one_sided(found: Paired) -> float:
    """Return the p against "no greater" of a two-sided test."""
    return found.p / 2 if found.t > 0 else 1 - found.p / 2


def signed_ranks(errors: Array, others: Array) -> float:
    """Return Wilcoxon's one-sided p that errors are no greater than others; differences of 0 are left out."""
    from scipy.stats import wilcoxon  # takes a while to import

    x = errors - others
    return float(wilcoxon(x, alternative="greater").pvalue) if x.any() else 1.0


def groups_alike(ranks: Ranks) -> list[tuple[int, ...]]:
    """Return the largest groups of methods whose mean ranks don't differ significantly, each from best to worst.

    They are the bars of a critical-difference diagram (Demsar 2006, Figure 1).
    """
    order = np.argsort(ranks.mean_ranks, kind="stable").tolist()
    found: list[tuple[int, ...]] = []
    for i, first in enumerate(order):
        reach = ranks.mean_ranks[first] + ranks.critical_difference
        group = tuple(each for each in order[i:] if ranks.mean_ranks[each] <= reach)
        if len(group) > 1 and not (found and set(group) <= set(found[-1])):
            found.append(group)
    return found
