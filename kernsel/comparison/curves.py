"""The curves that the papers draw, on one's own tables: each a function whose result is printed, written and drawn.

=========================  =============================================================================
:func:`bif_order`          how far outputs of the influence series of order r are from exact refits (BIF14, Figure 1)
:func:`fbif_landmarks`     the same of the first order with c landmarks (FBIF18)
:func:`eta_sweep`          test error against the weight of a penalty (KS14, Figure 1; KSJ, Figure 2)
:func:`rank_sweep`         score and test error against the rank of the kernel matrix
:func:`flkl_surface`       cross-validation over lambda and mu of first-level learning (FLKL, Figure 1)
=========================  =============================================================================

Boxes of what was chosen over splits (FLKL, Figure 4) are drawn by ``Comparison.plot_choices``, those of relevances
(Figure 5) by ``kernsel relevance --plot``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from kernsel.comparison.api import plan_experiment
from kernsel.comparison.comparison import Comparison
from kernsel.comparison.draws import Draws, Within, line_of
from kernsel.comparison.lines import Curve, Surface
from kernsel.comparison.result import TableResult
from kernsel.comparison.tables import encode_tables
from kernsel.comparison.trials import Trial
from kernsel.errors import OptionError, SelectionError
from kernsel.folds.partition import Partition
from kernsel.journal import journaling
from kernsel.learning.flkl import CrossValidation
from kernsel.learning.relevances import LEARNERS
from kernsel.learning.start import Start, check_learnable, choose_start, deal_rows
from kernsel.parts import read_kernel, read_learner
from kernsel.protocols import Learner
from kernsel.selection.plan import OF_TABLE, WORDS, Plan
from kernsel.text import listing
from kernsel.types import Progress
from kernsel.words import read_options

ETAS = tuple(2.0**k for k in range(-5, 11))
"""The weights of a penalty that KSJ looks at, and those between."""

LAMBDAS = tuple(10.0**k for k in range(-6, 1))
MUS = tuple(10.0**k for k in range(-6, 2))

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def bif_order(
    tables: Any,
    *,
    orders: Sequence[int] = tuple(range(1, 11)),
    folds: int | Sequence[int] = (5, 10, 20),
    splits: int = 10,
    train: float = 0.5,
    groups: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
    within: Within | None = None,
    **options: Any,
) -> Curve:
    """Measure how far the influence series of order r is from exact refits, at the parameters that these choose.

    ``(1/n) sum_i |f^BIF_i - f^exact_i|^2`` of held-out outputs, with kernel and lambda chosen by exact cross-validation
    over the same folds (BIF14, Figure 1).

    Parameters
    ----------
    tables : mapping of str to pair, or pair
        As :func:`kernsel.compare` takes them; each is a panel.
    orders : sequence of int
        Orders of the series. Above 1 they need a loss that is piecewise quadratic.
    folds : int or sequence of int
        Each number of folds is a line.
    splits : int
        How often a share of the rows is drawn.
    train : float
        That share; BIF14 takes half of the rows.
    groups : array, or mapping of str to array, optional
        The group of each row, as :func:`kernsel.compare` takes them: folds hold whole groups out.
    progress : callable, optional
        Called as ``progress(done, total, text)``.
    within : callable, optional
        Called with the encoded tables by their names when all is checked; the work is done within the context that it
        returns, with the ``progress`` that this gives.
    **options : optional
        Of :func:`kernsel.select`.

    Returns
    -------
    Curve
        Means over the draws, and standard deviations.
    """
    if any(isinstance(order, bool) or order % 1 or order < 1 for order in _ascending(orders, "the order")):
        raise OptionError(f"orders are whole numbers from 1, not {listing(map(str, orders))}")
    orders = sorted(map(int, orders))
    draws = Draws(tables, groups, folds, splits, train, seed, options)
    lines = draws.lines(orders, lambda path, order: path.influence(int(order)), within or _told(progress))
    return Curve(lines, "order r", "mean square discrepancy", log_y=True)


def fbif_landmarks(
    tables: Any,
    *,
    shares: Sequence[float] = SHARES,
    folds: int | Sequence[int] = (5, 10),
    splits: int = 10,
    train: float = 0.7,
    groups: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
    within: Within | None = None,
    **options: Any,
) -> Curve:
    """Measure how far the first-order series with a Nystrom inverse is from exact refits, against its landmarks c.

    Parameters
    ----------
    tables : mapping of str to pair, or pair
        As :func:`kernsel.compare` takes them; each is a panel.
    shares : sequence of float
        Values of c as shares of the rows; FBIF18 takes 0.1.
    folds : int or sequence of int
        Each number of folds is a line.
    splits : int
        How often a share of the rows is drawn.
    train : float
        That share.
    groups : array, or mapping of str to array, optional
        The group of each row, as :func:`kernsel.compare` takes them: folds hold whole groups out.
    progress : callable, optional
        Called as ``progress(done, total, text)``.
    within : callable, optional
        Called with the encoded tables by their names when all is checked; the work is done within the context that it
        returns, with the ``progress`` that this gives.
    **options : optional
        Of :func:`kernsel.select`.

    Returns
    -------
    Curve
        Means over the draws, and standard deviations.
    """
    if not all(0 < share <= 1 for share in shares):
        raise OptionError(f"shares are landmarks as shares of the rows, above 0 to 1, not {listing(map(str, shares))}")
    if options.get("rank", "full") != "full":
        raise OptionError(
            f"rank {options['rank']!r}: landmarks are of the inverse alone, beside the full matrix; leave the rank out"
        )
    draws = Draws(tables, groups, folds, splits, train, seed, options)
    values = _ascending(shares, "the share")
    lines = draws.lines(values, lambda path, share: path.nystrom_influence(share), within or _told(progress))
    return Curve(lines, "landmarks, as a share of the rows", "mean square discrepancy", log_x=10, log_y=True)


def eta_sweep(
    tables: Any,
    *,
    criteria: Sequence[Any] | Mapping[str, Mapping[str, Any]] = (),
    etas: Sequence[float] = ETAS,
    within: Within | None = None,
    **options: Any,
) -> Curve:
    """Measure the test error of what a penalised criterion chooses, against the weight eta of its penalty.

    Parameters
    ----------
    tables : mapping of str to pair, or pair
        As :func:`kernsel.compare` takes them; each is a panel.
    criteria : sequence, or mapping of str to mapping
        Each is a line; of a mapping, options of a selection by the line's name. By default ``cvks`` over 5 and over 10
        folds, or over those of ``folds``.
    within : callable, optional
        Called with the encoded tables by their names when all is checked; the work is done within the context that it
        returns, with the ``progress`` that this gives.
    **options : optional
        Of :func:`kernsel.compare`, but for those that say what is compared. The kernel is a Gaussian by default.

    Returns
    -------
    Curve
        Its ``comparison`` has all that was tried.

    References
    ----------
    KS14, Figure 1; KSJ, Figure 2.
    """
    etas = _check_values(etas, "eta", options)
    if "criterion" in options:
        criteria = [options.pop("criterion"), *criteria]
    if not criteria:
        counts = [options.pop("folds")] if "folds" in options else (5, 10)
        criteria = {f"{k}-CVKS": {"criterion": "cvks", "folds": k} for k in counts}
    if not isinstance(criteria, Mapping):
        criteria = {str(each): {"criterion": each} for each in criteria}
    lines = {
        name: {f"{name} eta={float(eta)!r}": {**each, "eta": float(eta)} for eta in etas}
        for name, each in criteria.items()
    }
    methods = {name: method for line in lines.values() for name, method in line.items()}
    return _swept(_compare(tables, methods, options, within), lines, etas, "eta")


def rank_sweep(
    tables: Any,
    *,
    ranks: Sequence[int | float] = (25, 50, 100, 200, 400),
    within: Within | None = None,
    **options: Any,
) -> Curve:
    """Measure the test error of a selection against the rank of its kernel matrix, beside the score that it reports.

    Parameters
    ----------
    tables : mapping of str to pair, or pair
        As :func:`kernsel.compare` takes them; each is a panel.
    ranks : sequence of int or float
        Numbers of landmarks, or shares of the rows.
    within : callable, optional
        Called with the encoded tables by their names when all is checked; the work is done within the context that it
        returns, with the ``progress`` that this gives.
    **options : optional
        Of :func:`kernsel.compare`, but for those that say what is compared. The kernel is a Gaussian by default.

    Returns
    -------
    Curve
        Two lines a table: the test error, and the held-out error that selections report. Its ``comparison`` has all
        that was tried.
    """
    ranks = _check_values(ranks, "rank", options)
    line = {f"rank {rank}": {"rank": rank} for rank in ranks}
    comparison = _compare(tables, line, options, within)
    places = [list(comparison.names).index(method) for method in line]
    reported = []
    for each in comparison.results:
        errors = np.array([[_reported(split[j]) for j in places] for split in each.trials])
        reported.append(line_of(_panel(each), "held-out error, as reported", ranks, errors))
    curve = _swept(comparison, {"test error": line}, ranks, "rank")
    return replace(curve, lines=(*curve.lines, *reported))


def _told(progress: Progress | None) -> Within:
    """Return a context in which the work tells its progress, and no more."""
    return lambda _: nullcontext(progress)


def _check_values(values: Sequence[float], axis: str, options: Mapping[str, Any]) -> list[float]:
    """Return values in ascending order; raise OptionError where they are but one, or their option is fixed as well."""
    if axis in options:
        raise OptionError(f"{axis} {options[axis]!r}: the curve is over {axis}; leave it out, and give values of it")
    return _ascending(values, axis, 2)


def _ascending(values: Sequence[float], axis: str, least: int = 1) -> list[float]:
    """Return finite values in ascending order, none twice; raise OptionError for others, or where they are too few."""
    found = sorted(values)
    if not all(map(math.isfinite, found)) or len(set(found)) < max(len(found), least):
        most = "two or more" if least > 1 else "some"
        raise OptionError(f"values of {axis}, {listing(map(str, values))}: give {most}, all of them finite, none twice")
    return found


def _reported(trial: Trial) -> float:
    return math.nan if trial.reported is None else trial.reported


def flkl_surface(
    table: Any,
    *,
    lambdas: Sequence[float] = LAMBDAS,
    mus: Sequence[float] = MUS,
    kernel: str | Sequence[str] = "ard",
    folds: int = 5,
    groups: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
    within: Within | None = None,
    **options: Any,
) -> Surface:
    """Compute the k-fold cross-validation of first-level learning over lambda and the penalty mu of the relevances.

    Parameters
    ----------
    table : pair, or mapping of str to pair
        Features and target of one table, as :func:`kernsel.compare` takes it.
    lambdas, mus : sequences of float
        In kernsel's units: FLKL's are n times as large.
    kernel : str
        ``ard``, or ``gaussian`` with one relevance for all features.
    groups : array, or mapping of str to array, optional
        The group of each row, as :func:`kernsel.compare` takes them: folds hold whole groups out.
    progress : callable, optional
        Called as ``progress(done, total, text)``.
    within : callable, optional
        Called with the encoded tables by their names when all is checked; the work is done within the context that it
        returns, with the ``progress`` that this gives.
    **options : optional
        Of a table, as :func:`kernsel.select` has them.

    Returns
    -------
    Surface

    References
    ----------
    Cawley & Talbot 2014, Figure 1 (b).
    """
    known = [name for name, words in WORDS.items() if words.of in OF_TABLE]
    plan = Plan(**read_options("flkl_surface", options, known))
    datasets = encode_tables(table, plan, groups)
    if len(datasets) > 1:
        raise OptionError(f"a surface is of one table, and there are {len(datasets)}; give one")
    (dataset,) = datasets.values()
    lambdas, mus = _ascending(lambdas, "lambda", 2), _ascending(mus, "mu", 2)
    if min(lambdas[0], mus[0]) <= 0:
        raise OptionError("a surface is over positive values of lambda and mu; its axes are logarithmic")
    learner = read_learner(LEARNERS[dataset.task], dataset.task)
    if not isinstance(kernel, str):
        if len(kernel) != 1:
            raise OptionError(f"a surface is of one kernel, not {len(kernel)}: ard, or gaussian")
        (kernel,) = kernel
    rows = deal_rows(dataset.dense("a surface over lambda and mu"), folds, seed)
    asked = check_learnable(read_kernel(kernel), learner)
    z = []
    with (within or _told(progress))(datasets) as report:
        start = choose_start(dataset, rows, asked, learner)
        for done, lam in enumerate(lambdas, 1):
            z.append(_scores(rows, start, learner, lam, mus))
            if report is not None:
                report(done, len(lambdas), f"lambda = {lam:g}")
    if np.isnan(z).all():
        raise SelectionError("first-level learning could be scored nowhere here: give larger values of lambda")
    return Surface(
        np.array(lambdas), np.array(mus), np.array(z), "lambda", "mu", f"mean squared error over {folds} folds"
    )


def _scores(rows: Partition, start: Start, learner: Learner, lam: float, mus: Sequence[float]) -> list[float]:
    """Return the cross-validation of first-level learning at one lambda; NaN where it can't be computed."""
    score = CrossValidation(rows, start.kernel, learner, start.box(rows, 0.0))
    found = []
    for mu in mus:
        try:
            found.append(score(lam, mu))
        except (np.linalg.LinAlgError, SelectionError):
            found.append(math.nan)
    return found


OF_SPLITS = {"splits": "count", "train": "train", "test_rows": "test", "split_files": "folder"}
"""Options of a comparison about its splits, with their names in Splits."""


OF_TESTS = ("test", "level", "measure")
"""Options of a comparison that are fields of its Design."""


def _compare(
    tables: Any, methods: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any], within: Within | None
) -> Comparison:
    """Return the comparison of the methods of a sweep."""
    known = [*WORDS, *OF_SPLITS, *OF_TESTS, "groups", "progress"]
    asked = {"kernel": "gaussian", **read_options("this curve", options, known)}  # `auto` would learn one a point
    experiment = plan_experiment(
        tables,
        groups=asked.pop("groups", None),
        lists={},
        methods=methods,
        design={name: asked.pop(name, None) for name in OF_TESTS},
        splits={field: asked.pop(name, None) for name, field in OF_SPLITS.items()},
        seed=asked.pop("seed", 0),
        options={name: value for name, value in asked.items() if name not in ("journal", "progress")},
    )
    working = within or _told(asked.get("progress"))
    datasets = {table.name: table.dataset for table in experiment.tables}
    with working(datasets) as progress, journaling(asked.get("journal"), experiment.header):
        return experiment.run(progress)


def _swept(comparison: Comparison, lines: Mapping[str, Iterable[str]], values: Sequence[float], label: str) -> Curve:
    """Return the errors of methods as lines; those of a line are named by it, one for each value."""
    drawn = []
    for each in comparison.results:
        for name, line in lines.items():
            places = [list(comparison.names).index(method) for method in line]
            reasons = [[trial.failed for trial in (split[j] for j in places)] for split in each.trials]
            drawn.append(line_of(_panel(each), name, values, each.errors[:, places], reasons))
    return Curve(tuple(drawn), label, "test error", log_x=2, comparison=comparison)


def _panel(result: TableResult) -> str:
    return " ".join(filter(None, [result.table, result.case]))
