"""The curves that the papers draw, on one's own tables: each a function that returns a table and can be drawn.

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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernsel.comparison.api import compare
from kernsel.comparison.comparison import Comparison
from kernsel.comparison.lines import Curve, Line, Surface
from kernsel.data import Dataset
from kernsel.errors import OptionError, SelectionError
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.learning.flkl import CrossValidation
from kernsel.learning.relevances import LEARNERS
from kernsel.learning.start import Start, check_learnable, choose_start, deal_rows
from kernsel.numerics.runtime.jit import one_blas_thread
from kernsel.parts import read_kernel, read_learner
from kernsel.paths import HeldOut, Path, make_path
from kernsel.protocols import Learner
from kernsel.representation.problem import Problem
from kernsel.selection.carry_out import carry_out, encode_arrays
from kernsel.selection.plan import Plan
from kernsel.selection.result import Selection

if TYPE_CHECKING:
    import pandas as pd

Array = npt.NDArray[np.float64]

ETAS = tuple(2.0**k for k in range(-5, 11))
"""The weights of a penalty that KSJ looks at, and those between."""

LAMBDAS = tuple(10.0**k for k in range(-6, 1))
MUS = tuple(10.0**k for k in range(-6, 2))

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def bif_order(
    X: pd.DataFrame | npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    orders: Sequence[int] = tuple(range(1, 11)),
    folds: Sequence[int] = (5, 10, 20),
    splits: int = 10,
    share: float = 0.5,
    seed: int = 0,
    **options: Any,
) -> Curve:
    """Measure how far the influence series of order r is from exact refits, at the parameters that these choose.

    ``(1/n) sum_i |f^BIF_i - f^exact_i|^2`` of held-out outputs, with kernel and lambda chosen by exact cross-validation
    over the same folds (BIF14, Figure 1).

    Parameters
    ----------
    X, y : table and target
        As :func:`kernsel.select` takes them.
    orders : sequence of int
        Orders of the series. Above 1 they need a loss that is piecewise quadratic.
    folds : sequence of int
        Each number of folds is a line.
    splits : int
        How often a share of the rows is drawn.
    share : float
        BIF14 takes half of the rows.
    seed : int
    **options : optional
        Of :func:`kernsel.select`.

    Returns
    -------
    Curve
        Means over the draws, and standard deviations.
    """
    lines = []
    for k in folds:
        found = [
            [_distance(path, exact, path.influence(order)) for order in orders]
            for path, exact in _chosen_paths(X, y, k, splits, share, seed, options)
        ]
        lines.append(_line("", f"{k} folds", orders, np.array(found)))
    return Curve(tuple(lines), "order r", "mean square discrepancy", log_y=True)


def fbif_landmarks(
    X: pd.DataFrame | npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    shares: Sequence[float] = SHARES,
    folds: Sequence[int] = (5, 10),
    splits: int = 10,
    share: float = 0.7,
    seed: int = 0,
    **options: Any,
) -> Curve:
    """Measure how far the first-order series with a Nystrom inverse is from exact refits, against its landmarks c.

    Parameters
    ----------
    X, y : table and target
    shares : sequence of float
        Values of c as shares of the rows; FBIF18 takes 0.1.
    folds, splits, share, seed : optional
        As in :func:`bif_order`.
    **options : optional
        Of :func:`kernsel.select`.

    Returns
    -------
    Curve
    """
    lines = []
    for k in folds:
        found = [
            [_distance(path, exact, path.nystrom_influence(c)) for c in shares]
            for path, exact in _chosen_paths(X, y, k, splits, share, seed, options)
        ]
        lines.append(_line("", f"{k} folds", shares, np.array(found)))
    return Curve(tuple(lines), "landmarks, as a share of the rows", "mean square discrepancy", log_x=10, log_y=True)


def eta_sweep(
    tables: Any,
    *,
    criteria: Mapping[str, Mapping[str, Any]] | None = None,
    etas: Sequence[float] = ETAS,
    **options: Any,
) -> tuple[Curve, Comparison]:
    """Measure the test error of what a penalised criterion chooses, against the weight eta of its penalty.

    Parameters
    ----------
    tables : mapping of str to pair, or pair
        As :func:`kernsel.compare` takes them; each is a panel.
    criteria : mapping of str to mapping
        Options of a selection by the name of each line: by default ``cvks`` over 5 and over 10 folds.
    etas : sequence of float
    **options : optional
        Of :func:`kernsel.compare`.

    Returns
    -------
    curve : Curve
    comparison : Comparison
        Of all that was tried.

    References
    ----------
    KS14, Figure 1; KSJ, Figure 2.
    """
    lines = criteria or {f"{k}-CVKS": {"criterion": "cvks", "folds": k} for k in (5, 10)}
    methods = {f"{name} eta={eta:g}": {**each, "eta": float(eta)} for name, each in lines.items() for eta in etas}
    comparison = compare(tables, methods=methods, **options)
    return _swept(comparison, list(lines), etas, "eta", 2), comparison


def rank_sweep(
    tables: Any, *, ranks: Sequence[int | float] = (25, 50, 100, 200, 400), **options: Any
) -> tuple[Curve, Comparison]:
    """Measure the test error of a selection against the rank of its kernel matrix, beside the score that it reports.

    Parameters
    ----------
    tables : mapping of str to pair, or pair
        As :func:`kernsel.compare` takes them; each is a panel.
    ranks : sequence of int or float
        Numbers of landmarks, or shares of the rows.
    **options : optional
        Of :func:`kernsel.compare`.

    Returns
    -------
    curve : Curve
        Two lines a table: the test error, and the held-out error that selections report.
    comparison : Comparison
    """
    comparison = compare(tables, methods={f"test error rank={rank:g}": {"rank": rank} for rank in ranks}, **options)
    tested = _swept(comparison, ["test error"], ranks, "rank", 2)
    reported = [
        _line(
            each.table,
            "held-out error, as reported",
            ranks,
            np.array(
                [[trial.reported if trial.reported is not None else math.nan for trial in s] for s in each.trials]
            ),
        )
        for each in comparison.results
    ]
    return replace(tested, lines=(*tested.lines, *reported)), comparison


def flkl_surface(
    X: pd.DataFrame | npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    lambdas: Sequence[float] = LAMBDAS,
    mus: Sequence[float] = MUS,
    kernel: str = "ard",
    folds: int = 5,
    seed: int = 0,
    **options: Any,
) -> Surface:
    """Compute the k-fold cross-validation of first-level learning over lambda and the penalty mu of the relevances.

    Parameters
    ----------
    X, y : table and target
    lambdas, mus : sequences of float
        In kernsel's units: FLKL's are n times as large.
    kernel : str
        ``ard``, or ``gaussian`` with one relevance for all features.
    folds : int
    seed : int
    **options : optional
        Of a table, as :func:`kernsel.select` has them.

    Returns
    -------
    Surface

    References
    ----------
    Cawley & Talbot 2014, Figure 1 (b).
    """
    dataset = encode_arrays(X, y, Plan.read("flkl_surface", options))
    learner = read_learner(LEARNERS[dataset.task], dataset.task)
    rows = deal_rows(dataset.dense("a surface over lambda and mu"), folds, seed)
    start = choose_start(dataset, rows, check_learnable(read_kernel(kernel), learner), learner)
    z = np.array([_scores(rows, start, learner, lam, mus) for lam in lambdas])
    return Surface(np.array(lambdas), np.array(mus), z, "lambda", "mu", f"mean squared error over {folds} folds")


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


def _swept(comparison: Comparison, names: Sequence[str], values: Sequence[float], label: str, base: float) -> Curve:
    """Return the errors of methods ``NAME label=value`` as lines over the values."""
    lines = []
    for each in comparison.results:
        panel = " ".join(filter(None, [each.table, each.case]))
        for name in names:
            places = [list(comparison.names).index(f"{name} {label}={value:g}") for value in values]
            lines.append(_line(panel, name, values, each.errors[:, places]))
    return Curve(tuple(lines), label, "test error", log_x=base)


def _line(panel: str, name: str, x: Sequence[float], values: Array) -> Line:
    """Return the means of values (splits, points) as a line."""
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(len(x), math.nan)
    return Line(panel, name, tuple(map(float, x)), tuple(values.mean(axis=0).tolist()), tuple(spread.tolist()))


def _distance(path: Path, exact: HeldOut, held: HeldOut) -> float:
    """Return the mean square difference of held-out outputs, per output."""
    return float(((held.f[:, 0] - exact.f[:, 0]) ** 2).mean())


@one_blas_thread()
def _chosen_paths(
    X: Any, y: Any, folds: int, splits: int, share: float, seed: int, options: Mapping[str, Any]
) -> list[tuple[Path, HeldOut]]:
    """Return, for some draws of rows, the fit that exact cross-validation chooses, and its exact held-out outputs."""
    if splits < 1 or not 0 < share <= 1:
        raise OptionError(f"splits is a number from 1 and share a share of the rows, not {splits!r} and {share!r}")
    asked = {"criterion": "cv", "choose": "minimum", "kernel": "gaussian", "rank": "full", **options}
    plan = Plan.read("curves", {**asked, "folds": folds, "seed": seed})
    whole = encode_arrays(X, y, plan)
    found = []
    for number in range(splits):
        order = np.random.default_rng((seed, number)).permutation(whole.n)
        rows = np.sort(order[: max(round(share * whole.n), 2 * folds)])
        dataset = whole.take(rows)
        found.append(_path_of(dataset, carry_out(dataset, plan), folds, seed))
    return found


def _path_of(dataset: Dataset, chosen: Selection, folds: int, seed: int) -> tuple[Path, HeldOut]:
    """Return the path of one fit, and its outputs by exact refits."""
    rows = Partition.of(dataset, make_folds(folds, dataset, seed), seed)
    path = make_path(Problem(rows, chosen.best.kernel), chosen.best.learner, [chosen.best.lam])
    return path, path.exact()
