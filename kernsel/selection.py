"""Select a kernel model: learn what relevances have no values, search, verify, and fit the winner."""

from __future__ import annotations

import time
import warnings as python_warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kernsel.comparing import compare, learn, said, scaled
from kernsel.data import Dataset, from_arrays
from kernsel.data.choices import Names
from kernsel.data.names import listed
from kernsel.errors import IncompatibleError, OptionError, SelectionWarning
from kernsel.kernels import Kernel
from kernsel.numerics.jit import one_blas_thread
from kernsel.numerics.points import Points
from kernsel.options import check_seed, read_kernel, read_learner
from kernsel.result import Selection
from kernsel.search.axes import Grid
from kernsel.search.grid import Progress
from kernsel.searching import search_dataset

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

AUTO, LEARNT_BY, FOLDS = "auto", "evidence", 10

COMPARED = ("learner", "criterion", "grid", "search", "verify", "rank", "landmarks", "extend", "pure", "order", "eta")
"""Options that the selections on outer folds share with the whole one; the others only add to its report."""


def select(
    X: pd.DataFrame | npt.ArrayLike | Points,
    y: npt.ArrayLike,
    *,
    learner: str | Any | None = None,
    kernel: str | Kernel | Sequence[str | Kernel] = "gaussian",
    relevances: str | Any | None = None,
    criterion: str | Any | None = None,
    folds: int | str | Any = 10,
    repeats: int = 1,
    groups: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    grid: Grid = "auto",
    search: str = "auto",
    refine: str | None = None,
    budget: int | str | None = None,
    verify: int = 5,
    rank: int | float | str | None = None,
    landmarks: str | None = None,
    extend: bool = True,
    pure: bool = False,
    order: float | None = None,
    eta: float | str | None = None,
    metric: str | Sequence[str] = (),
    one_se: bool = False,
    calibration: str | None = None,
    task: str = "auto",
    standardize: bool = True,
    drop: Names = (),
    keep: Names = (),
    categorical: Names = (),
    numeric: Names = (),
    ordinal: Mapping[str, Sequence[str]] | None = None,
    missing: str = "impute",
    seed: int = 0,
    progress: Progress | None = None,
) -> Selection:
    """Choose kernel, parameters and lambda, and fit the winner.

    Minimises the criterion over kernels x parameters x lambda, re-scores the leading candidates by exact k-fold
    cross-validation, and fits the best of them on all rows: ``min (1/S) sum_i s_i V(y_i, f(x_i)) + lambda ||f||^2``
    with the weights s_i of the rows, 1 by default, and their sum S.

    Parameters
    ----------
    X : (n, d) array, sparse matrix of SciPy, or DataFrame
        Features; text columns of a DataFrame are encoded one-hot. A sparse matrix, or a DataFrame of sparse columns,
        is never made dense, unless that is better for it or a plugin's kernel needs it.
    y : (n,) or (n, k) array
        Target: numbers, or labels of any kind. Several columns are targets of one regression.
    learner : str or Learner, optional
        ``svm`` for classes and ``krr`` for a regression by default. A parameter that is None, as in
        ``"svr(epsilon=None)"``, is searched; candidates are then compared by a measure without parameters.
    kernel : str, Kernel or list of them
        Parameters that have a value stay; the others are searched. Relevances that have none, as of ``"ard"``, are
        learnt on all rows first. ``"auto"`` is ``"gaussian"``, or ``"ard"`` if its error is lower by more than a
        standard error at rows that had no part in learning the relevances.
    relevances : str or Criterion, optional
        What relevances are learnt by: ``evidence`` by default, or another one of :func:`kernsel.learn_relevances`.
    criterion : str or Criterion
        Such as ``newton-cv``, ``cv``, ``bif``, ``fbif`` or ``"bif(order=3)"``. By default ``newton-cv``, but ``cv``
        where a fold's fit is not trained on all other rows: those folds can only be refitted.
    folds : int, str, array, splitter or iterable of pairs
        A number of folds, dealt at random: stratified for classes, of whole groups if there are ``groups``.
        ``"loo"``, ``"logo"`` (leave one group out) or ``"time:N"`` (N folds in the order of the rows, each fit trained
        on all rows before). The fold of each row, negative for rows that are never held out. A splitter of
        scikit-learn's kind, or pairs (rows to train on, rows to hold out), whose rows to hold out don't overlap.
    repeats : int
        How often a number of folds is dealt: scores, errors and metrics are means over the deals. What belongs to a
        row (outputs, probabilities, intervals) is that of the first deal.
    groups : (n,) array, optional
        Labels of any kind; rows of one group are held out together.
    weights : (n,) array, optional
        How much each row counts, in the fit and in every mean: a row of weight 2 is one that is there twice, one of
        weight 0 is left out.
    class_weight : "balanced" or mapping of label to weight, optional
        Multiplied into the weights; balanced, all classes have the same total.
    grid : {"auto", "coarse", "paper", "sobol:N", "random:N"} or mapping
        Scaled by the data, a third of its values on each axis (to ``refine``), that of FBIF18, N points for each kernel
        in the range of the automatic one, or values by the name of the parameter (of a kernel or the learner) and
        ``"lambda"``; ``"rest": "paper"`` is for what isn't named.
    search : {"auto", "grid", "halving"}
        Score every candidate, or all at a small rank, the best eighth at twice that rank, and so on, and the last few
        and their neighbours at the representation in force. By default the latter from 1000 rows, times
        outputs.
    refine : {"compass", "simplex", "gradient"}, optional
        Leave the grid afterwards, from its three best minima: by compass steps, the simplex of Nelder and Mead, or,
        for the square loss, Gaussian kernels and criteria that have one, the gradient.
    budget : int or str, optional
        What ``refine`` may cost: a number of candidates (200 by default), or a time such as ``"30s"`` or ``"2min"``,
        with which the outcome depends on the machine.
    verify : int
        Leading candidates that are re-scored exactly.
    rank : int, float, "full" or None
        Number of landmarks, or their share of the rows; by default the whole Gram matrix up to 2000 rows, and a tenth
        of the rows beyond, at least 500 and at most 1000; of the square loss at most as many as 256 MiB hold, if those
        are more. ``"tol:0.001"`` takes for each kernel as many as leave at most that share of the trace of its Gram
        matrix, and at most 1000, or 2000 with ``"tol:0.001:2000"``.
    landmarks : {"rpcholesky", "uniform", "leverage", "kmeans"}, optional
        How they are chosen: by randomly pivoted Cholesky (the default), uniformly, by approximate ridge leverage
        scores, or as centres of k-means, which are no rows.
    extend : bool
        Extend the grid while the winner lies on its edge.
    pure : bool
        Leave ``bif`` and ``fbif`` as published, also where they can't be trusted.
    order : int or inf, optional
        Of ``bif``.
    eta : float or "cv", optional
        Weight of the penalty of ``rks`` and ``cvks``; ``"cv"`` chooses it by the held-out error of what it selects, on
        three folds beforehand.
    metric : str or list of str
        Names of scikit-learn scorers, such as ``"roc_auc"``: further figures from the exact held-out predictions of the
        verified candidates. They don't take part in the choice. The second of two labels is the positive one.
    one_se : bool
        Choose the largest lambda (then the widest kernel) within one standard error of the best candidate.
    calibration : {"sigmoid", "isotonic", "none"}, optional
        How outputs become probabilities of classes: by Platt's sigmoid, the default, or isotonic regression, fitted on
        held-out outputs; or not at all, for a learner whose outputs are log-odds.
    task : {"auto", "regression", "classification"}
        What to learn.
    standardize : bool
        Centre and scale the numeric features, once for all folds. Sparse ones are scaled only: divided by their
        standard deviations, with which all kernels of distances are what they would be for dense rows. Scaling makes
        rare features weigh much; text (counts, tf-idf) is better left as it is.
    drop, keep : str, int or list of them
        Columns that are no features, and the only features: by name, by a pattern such as ``id*``, those of an array
        by number.
    categorical, numeric : str, int or list of them
        Columns whose type is set; what isn't a number in a numeric one counts as missing.
    ordinal : mapping of str to list, optional
        Levels of columns, from the least to the greatest.
    missing : {"impute", "drop", "refuse"}
        A column's mean or most frequent category takes the place of a missing value, with a 0/1 column beside it that
        says where, if at least 5 % are missing; or the row is left out; or that is an error. A row without a target is
        left out or an error.
    seed : int
        Of folds and landmarks.
    progress : callable, optional
        Called as ``progress(done, total, text)``.

    Returns
    -------
    Selection
        The winner, all candidates, and the fitted model.

    Raises
    ------
    DataError, OptionError, IncompatibleError, PluginError, SelectionError
        Each says what is wrong and what to do.

    Warns
    -----
    SelectionWarning
        The choice stands, but something about it should be known; the texts are also in ``Selection.warnings``.
    """
    result = select_dataset(
        from_arrays(
            X,
            y,
            task,
            standardize,
            weights=weights,
            groups=groups,
            class_weight=class_weight,
            drop=drop,
            keep=keep,
            categorical=categorical,
            numeric=numeric,
            ordinal=ordinal,
            missing=missing,
        ),
        learner=learner,
        kernel=kernel,
        relevances=relevances,
        criterion=criterion,
        folds=folds,
        repeats=repeats,
        grid=grid,
        search=search,
        refine=refine,
        budget=budget,
        verify=verify,
        rank=rank,
        landmarks=landmarks,
        extend=extend,
        pure=pure,
        order=order,
        eta=eta,
        metric=metric,
        one_se=one_se,
        calibration=calibration,
        seed=seed,
        progress=progress,
    )
    for text in result.warnings:
        python_warnings.warn(text, SelectionWarning, stacklevel=2)
    return result


def select_dataset(
    dataset: Dataset,
    *,
    kernel: str | Kernel | Sequence[str | Kernel] = "gaussian",
    relevances: str | Any | None = None,
    learner: str | Any | None = None,
    seed: int = 0,
    **options: Any,
) -> Selection:
    """Do what :func:`select` does, on a data set that is already encoded, and without issuing its warnings.

    Parameters
    ----------
    dataset : Dataset
        From ``kernsel.data``.
    kernel, relevances, learner, seed : optional
        As in :func:`select`.
    **options : optional
        The others of :func:`select` that don't belong to the data.

    Returns
    -------
    Selection
        As from :func:`select`.
    """
    check_seed(seed)  # here, as relevances may be learnt before the search
    options |= {"learner": learner, "seed": seed}
    given = list(kernel) if isinstance(kernel, list | tuple) else [kernel]
    if AUTO in given:
        if len(given) > 1:
            raise OptionError("kernel 'auto' chooses between gaussian and ard: leave the others out")
        return _automatic(dataset, _checked(relevances, options), options)
    kernels = [read_kernel(each) for each in given]
    if any(map(_unlearnt, kernels)):
        return _learning(dataset, kernels, _checked(relevances, options), options)
    if relevances is not None:
        raise OptionError(
            f"relevances: no kernel has any without values, to be learnt by {relevances}; use kernel ard or auto, or "
            "leave that out"
        )
    return search_dataset(dataset, kernel=kernels, **options)


def _unlearnt(kernel: Kernel) -> bool:
    """Tell whether a kernel has relevances without values."""
    return "theta" in kernel.free


def _checked(relevances: Any, options: Mapping[str, Any]) -> Any:
    """Return what relevances are learnt by; raise before the work where that, or the refinement, can't be."""
    from kernsel.learning.relevances import FIRST_LEVEL, read_gradient

    if options.get("refine") == "gradient":
        raise IncompatibleError(
            "refine gradient: relevances are learnt by their gradient already; for what is left, lambda, use compass "
            "or simplex"
        )
    by = relevances or LEARNT_BY
    if by != FIRST_LEVEL:
        read_gradient(by)
    return by


@one_blas_thread()
def _learning(dataset: Dataset, kernels: Sequence[Kernel], relevances: Any, options: dict[str, Any]) -> Selection:
    """Learn the relevances of kernels on all rows; select among these kernels, at several scales, and the others."""
    started = time.perf_counter()
    part = read_learner(options["learner"], dataset.task)
    learned = {k: learn(dataset, k, part, relevances, options["seed"]) for k in kernels if _unlearnt(k)}
    seconds = time.perf_counter() - started
    ready = {k: scaled(learned[k].kernel) if k in learned else [k] for k in kernels}
    result = search_dataset(dataset, kernel=[each for scales in ready.values() for each in scales], **options)
    chosen = next((each for k, each in learned.items() if result.best.kernel in ready[k]), None)
    if chosen is None:
        return _told(result, seconds)
    theta = dict(zip(chosen.features, result.best.kernel.scales, strict=True))
    zero = [name for name, value in theta.items() if value == 0]
    left = f"relevances: {len(zero)} of {len(theta)} features are exactly 0" + (f" ({listed(zero)})" if zero else "")
    warning = (
        f"relevances were learnt by {chosen.criterion} on all rows, those that folds hold out too: held-out errors, "
        "probabilities and intervals of this choice are too good; kernel auto and nested estimates hold rows out of "
        "the learning as well"
    )
    return _told(
        result,
        seconds,
        notes=[*chosen.notes[len(dataset.notes) :], left],
        warnings=[warning],
        relevances={"criterion": chosen.criterion, "theta": theta, "zero": zero},
    )


@one_blas_thread()
def _automatic(dataset: Dataset, relevances: Any, options: dict[str, Any]) -> Selection:
    """Select with one relevance for all features; then with one for each, if that is better where it is unseen."""
    isotropic, ard = read_kernel("gaussian"), read_kernel("ard")
    result = search_dataset(dataset, kernel=isotropic, **options)
    if dataset.d == 1:
        return _told(result, 0.0, notes=["kernel: one relevance for all features, for there is one only"])
    started = time.perf_counter()
    grid = options.get("grid", "auto")
    if isinstance(grid, Mapping):
        options = {**options, "grid": {name: axis for name, axis in grid.items() if name not in isotropic.free}}
    shared = {name: options[name] for name in COMPARED if name in options}
    folds, seed, progress = options.get("folds", FOLDS), options["seed"], options.get("progress")
    comparison = compare(dataset, result, ard, relevances, folds, seed, progress, shared)
    seconds = time.perf_counter() - started
    if comparison.better:
        seconds += result.timing["total"]
        result = _learning(dataset, [ard], relevances, options)
    return _told(result, seconds, notes=[said(comparison, dataset.task, dataset.d)], comparison=comparison.to_dict())


def _told(
    result: Selection, seconds: float, notes: Sequence[str] = (), warnings: Sequence[str] = (), **data: Any
) -> Selection:
    """Return a selection with what else is known of it, after so many seconds more."""
    timing = result.timing
    learning = timing.get("learning", 0.0) + seconds
    return replace(
        result,
        data={**result.data, "notes": [*result.data["notes"], *notes], **data},
        warnings=[*result.warnings, *warnings],
        timing={**timing, "learning": learning, "total": timing["total"] + seconds},
    )
