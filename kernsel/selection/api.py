"""Select a kernel model: learn what relevances have no values, search, verify, and fit the winner."""

from __future__ import annotations

import os
import warnings as python_warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kernsel.criteria.base import Criterion
from kernsel.data.choices import Names
from kernsel.errors import SelectionWarning
from kernsel.kernels import Kernel
from kernsel.numerics.points import Points
from kernsel.protocols import Learner
from kernsel.search.axes import Grid
from kernsel.selection.carry_out import carry_out, encode_arrays
from kernsel.selection.plan import WORDS, Plan
from kernsel.selection.result import Selection
from kernsel.types import Progress
from kernsel.words import understands

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd


@understands()
def select(
    X: pd.DataFrame | npt.ArrayLike | Points,
    y: npt.ArrayLike,
    *,
    learner: str | Learner | None = None,
    kernel: str | Kernel | Sequence[str | Kernel] | None = None,
    relevances: str | Any | None = None,
    effort: str = "normal",
    criterion: str | Criterion | None = None,
    folds: int | str | Any = 10,
    repeats: int = 1,
    when: str | int | npt.ArrayLike | None = None,
    purge: float | str | None = None,
    embargo: float | str | None = None,
    coordinates: Names | npt.ArrayLike = (),
    buffer: float | str | None = None,
    groups: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    copies: str = "together",
    grid: Grid = "auto",
    search: str = "auto",
    refine: str | None = None,
    budget: int | str | None = None,
    verify: int = 5,
    rank: int | float | str | None = None,
    landmarks: str | None = None,
    memory: str | int | None = None,
    time: str | float | None = None,
    candidate_timeout: str | float | None = None,
    extend: bool = True,
    pure: bool = False,
    order: float | None = None,
    eta: float | str | None = None,
    metric: str | Sequence[str] = (),
    certify: bool | float | None = None,
    select_by: str | None = None,
    choose: str | None = None,
    within: float | None = None,
    one_se: bool = False,
    clip: bool = True,
    calibration: str | None = None,
    intervals: str | None = None,
    threshold_for: str | None = None,
    task: str = "auto",
    standardize: bool = True,
    drop: Names = (),
    keep: Names = (),
    categorical: Names = (),
    numeric: Names = (),
    ordinal: Mapping[str, Sequence[str]] | None = None,
    missing: str = "impute",
    categories: str = "onehot",
    rare: int = 1,
    seed: int = 0,
    journal: str | os.PathLike[str] | None = None,
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
        is never made dense, unless that is better for it or a plugin's kernel needs it. An array or DataFrame of Dask
        stays on its workers, at a low rank: see ``kernsel guide large-data``.
    y : (n,) or (n, k) array
        Target: numbers, or labels of any kind. Several columns are targets of one regression.
    learner : str or Learner, optional
        ``lssvm`` for classes and ``krr`` for a regression by default; ``"auto"`` takes of ``lssvm``, ``l2svm``, ``klr``
        and ``svm`` the one with the least held-out error, on the kernels that the first one leads with. A parameter
        that is None, as in ``"svr(epsilon=None)"``, is searched; candidates are then compared by a measure without
        parameters.
    kernel : str, Kernel, function or list of them, optional
        ``"auto"``, the default, compares profiles (``gaussian``, ``laplacian``, ``exponential``) with one width. For a
        regression there are also more of them with a relevance for each feature, by its value and its rank, as one sum
        with ``linear``, and one with a metric that turns axes, learnt on up to 1000 rows; what is said of held-out rows
        is then by what was learnt without them. Of a kernel that is named, parameters that have a value stay; the
        others are searched. Relevances that have none, as of ``"ard"``, are learnt on all rows first. A function ``f(X,
        Z) -> K`` of two sets of rows is a kernel; with ``"precomputed"`` X is a Gram matrix (n, n), and new rows are
        their values (m, n) with all n rows.
    relevances : str or Criterion, optional
        What relevances are learnt by: ``evidence`` by default, of ``"auto"`` with the prior of ``evidence(sigma=...)``;
        for ``"ard"`` also another one of :func:`kernsel.learn_relevances`.
    effort : {"quick", "normal", "thorough"}
        Of ``"auto"``: profiles with one width only; as above; or with more profiles, learnt on up to 2000 rows, and for
        classes, too. Above 2000 rows: a low rank; the whole kernel within 4 minutes of two cores; or within 15.
    criterion : str or Criterion
        Such as ``newton-cv``, ``cv``, ``bif``, ``fbif`` or ``"bif(order=3)"``. By default ``newton-cv``, but ``cv``
        where a fold's fit is not trained on all other rows: those folds can only be refitted.
    folds : int, str, array, splitter or iterable of pairs
        A number of folds, dealt at random: stratified for classes, of whole groups if there are ``groups``.
        ``"loo"``, ``"logo"`` (leave one group out), ``"blocks:N"`` (N blocks in the order of time) or ``"time:N"`` (N
        folds in that order, each fit trained on all rows before). The fold of each row, negative for rows that are
        never held out. A splitter of scikit-learn's kind, or pairs (rows to train on, rows to hold out); a row that
        several of them hold out counts once for each. One that shuffles by no seed does so by ``seed``.
    repeats : int
        How often a number of folds is dealt: scores, errors and metrics are means over the deals. What belongs to a
        row (outputs, probabilities, intervals) is that of the first deal.
    when : str, int or (n,) array, optional
        A column of X, or an array, of dates or numbers: the order of ``blocks:N`` and ``time:N``, which is that of the
        rows by default. Rows of a time that a fold has are left out of its fit.
    purge : float or str, optional
        Rows so near in time to one of a fold are left out of the fold's fit, before and after it, without being scored:
        a number of rows, or in units of ``when``; of dates a span such as ``"7d"`` (s, min, h, d, w).
    embargo : float or str, optional
        So much more is left out after a fold of ``blocks:N``.
    coordinates : str, int or list of them, or (n, c) array, optional
        Columns of X, or an array, that say where rows are. Columns are features as well, unless ``drop`` names them.
    buffer : float or str, optional
        Rows within this distance of one of a fold are left out of the fold's fit: in units of the coordinates, or as
        ``"10km"`` (m, mi) along a great circle from latitude and longitude in degrees. A number of folds is then one
        of compact regions, where there are no groups. What is left out and not scored costs no refit.
    groups : (n,) array, optional
        Labels of any kind; rows of one group are held out together.
    weights : (n,) array, optional
        How much each row counts, in the fit and in every mean: a row of weight 2 is one that is there twice, one of
        weight 0 is left out.
    class_weight : "balanced" or mapping of label to weight, optional
        Multiplied into the weights; balanced, all classes have the same total.
    copies : {"together", "apart"}
        Whether rows that are equal in all features are dealt to one fold, so that none is held out while the fit is
        trained on its copy; where less than a quarter of the rows are distinct, they are categories and dealt apart.
    grid : {"auto", "coarse", "paper", "sobol:N", "random:N"} or mapping
        Scaled by the data, a third of its values on each axis (to ``refine``), that of FBIF18, N points for each kernel
        in the range of the automatic one, or values by the name of the parameter (of a kernel or the learner) and
        ``"lambda"``; ``"rest": "paper"`` is for what isn't named.
    search : {"auto", "grid", "halving"}
        Score every candidate, or all at a small rank, the best eighth at twice that rank, and so on, and the last few
        and their neighbours at the representation in force. By default the latter from 1000 rows, times
        outputs; from 600 where the loss isn't the square one.
    refine : {"compass", "simplex", "gradient"}, optional
        Leave the grid afterwards, from its three best minima: by compass steps, the simplex of Nelder and Mead, or,
        for the square loss, Gaussian kernels and criteria that have one, the gradient.
    budget : int or str, optional
        What ``refine`` may cost: a number of candidates (200 by default), or a time such as ``"30s"`` or ``"2min"``,
        with which the outcome depends on the machine.
    verify : int
        Leading candidates that are re-scored exactly.
    rank : int, float, "full", "whole" or None
        Number of landmarks, or their share of the rows. ``"whole"``, of the square loss, is the whole kernel in tiles,
        for up to some 40,000 dense rows; what is searched is chosen on 2000 rows in full, then on 4000, 8000, ..., and
        fitted to all. By default the whole Gram matrix up to 2000 rows, ``"whole"`` beyond where that takes minutes
        and nothing but a number of folds is asked for; else a tenth of the rows, at least 500 and at most 1000; of the
        square loss at most as many as 256 MiB hold, if those are more. ``"tol:0.001"`` takes for each kernel as many
        as leave at most that share of the trace of its Gram matrix, and at most 1000, or 2000 with
        ``"tol:0.001:2000"``.
    landmarks : {"rpcholesky", "uniform", "leverage", "kmeans"}, optional
        How they are chosen: by randomly pivoted Cholesky (the default), uniformly, by approximate ridge leverage
        scores, or as centres of k-means, which are no rows.
    memory : str or int, optional
        How much the selection may take, such as ``"2GiB"``, or a number of bytes: a Gram matrix or features that need
        more are replaced by a low rank where ``rank`` leaves that open, and else refused before they are allocated. By
        default what the machine, the container and the shell allow.
    time : str or float, optional
        How long the selection may take: ``"90s"``, ``"5min"``, ``"1h"``, or a number of seconds. A search ends with it,
        and says what it has not come to; above 2000 rows of the square loss the whole kernel is fitted if that has
        the time, and less is compared than ``effort`` says where that would take too long. The choice then depends on
        the machine. The learning of relevances, exact refits and the last fit are not cut off.
    candidate_timeout : str or float, optional
        How long the fits of one kernel and learner along lambda, or their exact refits, may take, as ``time`` is given:
        a candidate that has not returned by then has failed, and the search goes on without it. For plugins whose code
        may never return: Python can't end a thread, so what waits for the system or computes in native code goes on
        until it returns, and code that keeps Python's lock stops everything. The compiling of loops doesn't count.
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
    certify : bool or float, optional
        Prove that no candidate's exact score is below the lowest one by more than this share of it, 0.01 if True:
        intervals that contain exact scores are narrowed by refits without folds until that is so, or until ``time`` is
        over. Every candidate is scored at one rank then. For ``newton-cv`` and other mean held-out losses.
    select_by : str, optional
        The name of a scikit-learn scorer (``scoring`` is another word for it) that decides among the candidates within
        ``within`` standard errors of the lowest score: at most 30 are verified, and the one with the highest value over
        all held-out rows is taken. ``r2`` and negative squared errors leave the rule of choice with a square loss.
    choose : {"safest", "minimum", "one-se"}, optional
        What to take among candidates whose exact scores can't be told from the lowest. ``safest``, the default: of
        classes the least held-out error, then the least ``kappa ||f||^2`` with ``kappa = max_x k(x, x)``, which bounds
        every output on new rows. ``minimum``: the lowest score itself. ``one-se``: the largest lambda, then the widest
        kernel.
    within : float, optional
        How many standard errors above the lowest score candidates count as no worse: for ``safest`` 0.2 of a
        regression and 0.5 of classes by default, for ``one-se`` and ``select_by`` 1.
    one_se : bool
        Short for ``choose="one-se"``.
    clip : bool
        Keep the outputs of a regression within the range of the targets that they were trained on: in held-out scores,
        predictions and intervals. The latter two may go beyond it as far as held-out rows say, by
        `kernsel.heldout.margins`.
    calibration : {"sigmoid", "isotonic", "venn-abers", "temperature", "softmax", "none"}, optional
        How outputs become probabilities of classes: by Platt's sigmoid, the default of two classes, isotonic
        regression, that with the new row as either class (``venn-abers``), or the softmax of outputs divided by a
        number (``temperature``), fitted on held-out outputs. ``softmax``, the default of more classes, couples their
        outputs, which also decides between them: a class between others is masked where each stands alone. ``none``,
        for a learner whose outputs are log-odds.
    intervals : {"even", "local", "sets", "none"}, optional
        What the model keeps of the fits without a fold. Of a regression for prediction intervals: of ``even`` width,
        the default, or ``local``, where they are as wide as residuals near a row are large. Of classes ``sets``, for
        sets of classes with a coverage; ``none`` by default, as each fold is fitted once more.
    threshold_for : str, optional
        Predict the second of two classes from that output on which is best for a measure of held-out rows:
        ``accuracy``, ``balanced_accuracy``, ``f1``, ``f1_macro``, ``f1_weighted``, ``jaccard``, ``matthews_corrcoef``,
        or the costs of a false positive and a false negative, ``"cost(fp=1,fn=5)"``. Metrics of held-out rows are by
        thresholds that were found without them; the error is that of 0. By default the threshold is the best for
        ``select_by``, if that is one of these but accuracy; ``"none"`` keeps 0.
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
        The mean given the other numbers of the row, or a column's most frequent category, takes the place of a missing
        value; a 0/1 column beside says where, if at least 5 % are missing, and for numbers if the target differs there.
        Or the row is left out; or that is an error. A row without a target is left out or an error.
    categories : {"onehot", "hamming"}
        Each category is a 0/1 column, and has a relevance where features have some; or all categories of a column share
        one, with the factor ``exp(-2 theta [x is not z])`` in Gaussian and Laplacian kernels. With ``hamming`` a
        category that the table didn't have differs from all others.
    rare : int
        Categories of fewer rows than this are one, where a column has at least two of them.
    seed : int
        Of folds and landmarks.
    journal : path, optional
        What is found out is kept in this file meanwhile: the same call goes on from there after whatever stopped it,
        and ends with the same result. Other data or options are refused. The file stays.
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
    given = locals()
    plan = Plan(**{name: given[name] for name in WORDS})
    if hasattr(X, "__dask_graph__"):
        from kernsel.selection.ondask import select_dask

        result = select_dask(X, y, plan, weights, progress)
    else:
        result = carry_out(encode_arrays(X, y, plan, weights, groups), plan, progress)
    for text in result.warnings:
        python_warnings.warn(text, SelectionWarning, stacklevel=3)  # beyond what reads the words of options
    return result
