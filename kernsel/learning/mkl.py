"""Multiple kernel learning: weights of kernels, and the weighted sum as one kernel for a selection."""

from __future__ import annotations

import numbers
import time
import warnings as python_warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernsel import text as parameters
from kernsel.criteria import NewtonCV
from kernsel.data import Dataset, from_arrays
from kernsel.errors import ConvergenceWarning, IncompatibleError, OptionError, SelectionError
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.journal import remember
from kernsel.kernels import Kernel
from kernsel.kernels.base import with_groups
from kernsel.learning.families import family_of, on_grid
from kernsel.learning.infinite import Infinite
from kernsel.learning.methods import KKS, Alignment, Easy, Lp, Method, Simple, Uniform, Weights
from kernsel.learning.pool import Pool
from kernsel.learning.start import subsample
from kernsel.learning.weighted import WeightedKernel
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.parts import read_kernel, rows_for
from kernsel.protocols import Learner
from kernsel.search.axes import RIDGES
from kernsel.types import Array

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd


METHODS: dict[str, type[Method]] = {each.name: each for each in (KKS, Simple, Lp, Easy, Alignment, Uniform, Infinite)}


def learn_mkl(
    X: pd.DataFrame | npt.ArrayLike,
    y: npt.ArrayLike,
    kernel: str | Kernel | Sequence[str | Kernel] = "gaussian",
    *,
    method: str | Method = "k-ks",
    family: str = "single",
    grid: Mapping[str, npt.ArrayLike] | None = None,
    learner: str | Learner | None = None,
    lam: float | None = None,
    folds: int | str | Any = 10,
    rows: int = 1000,
    groups: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    task: str = "auto",
    standardize: bool = True,
    seed: int = 0,
) -> WeightedKernel:
    """Learn weights of kernels: multiple kernel learning.

    ``k = sum_m weights_m k_m / c_m`` with weights >= 0 of p-norm 1 and the mean ``c_m`` of ``k_m(x, x)``; what the
    weights minimise is the method's. The result's ``kernel`` is one for :func:`kernsel.select`, which chooses lambda.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or DataFrame
        Features; text columns of a DataFrame are encoded one-hot.
    y : (n,) or (n, k) array
        Target: numbers, or labels of any kind. Several outputs share the weights.
    kernel : str, Kernel or list of them
        A parameter without a value gets those of the grid, and each is a kernel of its own.
    method : str or Method
        ``k-ks`` (cross-validation with kernel stability, ``"k-ks(eta=1, p=1)"``), ``simple`` (SimpleMKL), ``lp``
        (``"lp(p=2)"``), ``easy`` (EasyMKL), ``alignment`` (centred), ``uniform`` (their mean), or ``infinite``, which
        has no grid but learns the free parameters too.
    family : {"single", "separate", "products"}
        The kernels as they are; these and each on every feature alone; or with a relevance for each feature, for the
        method ``infinite``.
    grid : mapping of str to sequence of float, optional
        Values of free parameters by name; by default they are scaled by the data.
    learner : str or Learner, optional
        Whose fits ``simple``, ``lp`` and ``infinite`` look at, ``svm`` for classes and ``krr`` for a regression by
        default; of ``k-ks`` ``krr`` or ``lssvm``. The other methods have none to choose.
    lam : float, optional
        Lambda of those fits. By default one of a grid: weights are learnt with the best one for equal weights, and on
        from there as long as the held-out loss of what is learnt falls.
    folds : int, str, array, splitter or iterable of pairs
        As in :func:`kernsel.select`: for ``k-ks``, and where lambda is chosen.
    rows : int
        Learn on a random sample of so many rows where there are more, with the same share of each class.
    groups, weights : (n,) array, optional
        As in :func:`kernsel.select`.
    class_weight : "balanced" or mapping of label to weight, optional
        As in :func:`kernsel.select`.
    task : {"auto", "regression", "classification"}
        What to learn.
    standardize : bool
        Scale the numeric columns. A selection with the learnt kernel must do the same.
    seed : int
        Of the folds and the sample.

    Returns
    -------
    WeightedKernel
        The weights, and the weighted sum.

    Raises
    ------
    DataError, OptionError, IncompatibleError, PluginError, SelectionError
        Each says what is wrong and what to do.

    Warns
    -----
    ConvergenceWarning
        The method stopped before its tolerance; the text is also in ``WeightedKernel.warnings``.
    """
    dataset = from_arrays(X, y, task, standardize, weights=weights, groups=groups, class_weight=class_weight)
    result = learn_mkl_on_dataset(
        dataset,
        kernel=kernel,
        method=method,
        family=family,
        grid=grid,
        learner=learner,
        lam=lam,
        folds=folds,
        rows=rows,
        seed=seed,
    )
    for text in result.warnings:
        python_warnings.warn(text, ConvergenceWarning, stacklevel=2)
    return result


@one_blas_thread()  # sums in another order for every number of threads would lead to other weights
def learn_mkl_on_dataset(
    dataset: Dataset,
    *,
    kernel: str | Kernel | Sequence[str | Kernel] = "gaussian",
    method: str | Method = "k-ks",
    family: str = "single",
    grid: Mapping[str, npt.ArrayLike] | None = None,
    learner: str | Learner | None = None,
    lam: float | None = None,
    folds: int | str | Any = 10,
    rows: int = 1000,
    seed: int = 0,
) -> WeightedKernel:
    """Do what :func:`learn_mkl` does, on a data set that is already encoded, and without issuing its warnings.

    Parameters
    ----------
    kernel, method, family, grid, learner, lam, folds, rows, seed : optional
        As in :func:`learn_mkl`.
    """
    started = time.perf_counter()
    way = read_method(method)
    fitted = way.learner(learner, dataset.task)
    if fitted is None and lam is not None:
        raise IncompatibleError(f"method '{way.name}' looks at no fits, so it has no lambda: leave it out")
    if lam is not None and not (isinstance(lam, numbers.Real) and 0 < lam < np.inf):
        raise OptionError(f"lambda must be a finite number greater than 0, not {lam!r}")
    if family == "products" and not way.continuous:
        raise OptionError(f"family products has kernels without a grid, which method '{way.name}' needs: use infinite")
    named = [read_kernel(each) for each in (kernel if isinstance(kernel, list | tuple) else [kernel])]
    if not named:
        raise OptionError("no kernel is given: name at least one, such as gaussian")
    kernels = [with_groups(each, dataset.encoder.groups) for each in family_of(named, family, dataset.X.shape[1])]
    if not isinstance(rows, numbers.Integral) or rows < 2:
        raise OptionError(f"rows is the number of rows to learn on, a whole number from 2, not {rows!r}")
    sample = subsample(dataset, rows, seed)
    if way.continuous:
        sample = sample.dense(f"method '{way.name}'")
    sample = replace(sample, X=rows_for(named, sample.X))
    dealt = make_folds(folds, sample, seed)
    if grid and way.continuous:
        raise OptionError(f"method '{way.name}' learns free parameters and has no grid: leave it out")
    candidates = kernels if way.continuous else on_grid(kernels, grid or {}, sample.X)
    pool = Pool(Partition.of(sample, dealt, seed), tuple(candidates))
    if fitted is not None and lam is None:
        found, lam = _best(way, pool, fitted)
    else:
        found = _learn(way, pool, fitted, np.nan if lam is None else float(lam))
    return WeightedKernel(
        kernels=found.kernels,
        weights=found.weights,
        scales=found.scales,
        method=way,
        learner=None if fitted is None else fitted.name,
        lam=lam,
        history=found.history,
        gap=found.gap,
        features=tuple(dataset.encoder.features),
        data={
            "rows": dataset.n,
            "learnt_on": sample.n,
            "features": dataset.d,
            "task": dataset.task,
            "target": dataset.target,
            "source": dataset.source,
            "notes": dataset.notes,
            "holdout": dealt.text,
        },
        options={"kernels": [str(each) for each in named], "family": family, "rows": rows, "seed": seed},
        timing={"total": time.perf_counter() - started},
        warnings=_warnings(found, way),
    )


def _best(method: Method, pool: Pool, learner: Learner) -> tuple[Weights, float]:
    """Learn with the lambda of the lowest held-out loss: of equal weights first, then of what is learnt around it."""

    def losses(pool: Pool, weights: Array, lams: Array) -> Array:
        scores = NewtonCV().score(pool.path(weights, learner, lams))
        return np.where([reason is None for reason in scores.failed], scores.score, np.inf)

    def learn(k: int) -> tuple[float, Weights]:
        found = _learn(method, pool, learner, float(lams[k]))
        return float(losses(pool.with_kernels(found.kernels), found.weights, lams[k : k + 1])[0]), found

    equal, weights = method.equal(pool)
    lams = RIDGES[::-1] * weights.sum() / pool.rows.total  # descending, as those of a path
    first = int(np.argmin(losses(equal, weights, lams)))
    results = {first: learn(first)}
    for step in (1, -1):
        k = first
        while 0 <= k + step < lams.size:
            try:
                results[k + step] = learn(k + step)
            except SelectionError:  # the fits fail from there on
                break
            if results[k + step][0] >= results[k][0]:
                break
            k += step
        if k != first:
            break
    best = min(results, key=lambda k: results[k][0])
    return results[best][1], float(lams[best])


def _learn(method: Method, pool: Pool, learner: Learner, lam: float) -> Weights:
    """Learn the weights of a pool's kernels, or take them from the journal in force."""
    given = method, pool.rows, pool.kernels, learner, lam
    return remember("weights", given, lambda: method.learn(pool, learner, lam))


def _warnings(found: Weights, method: Method) -> list[str]:
    if found.gap is None or found.gap <= found.tolerance:
        return []
    return [
        f"method '{method.name}' stopped at a duality gap of {found.gap:.2g} of the objective, above the tolerance "
        f"{found.tolerance:.2g}: the weights are usable, and a larger lambda brings them nearer"
    ]


def read_method(method: str | Method) -> Method:
    """Return the method, from ``name`` or ``name(parameter=value, ...)``.

    Raises
    ------
    OptionError
        There is no such method, or it has no such parameter.
    """
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        raise OptionError(f"a method must be a name such as 'k-ks', or a Method such as KKS(), not {method!r}")
    name, values = parameters.parse(f"method {method!r}", method)
    if name not in METHODS:
        hint = parameters.meant(name, METHODS) or f"; it can be {parameters.listing(METHODS, 'or')}"
        raise OptionError(f"no method is called {name!r}{hint}")
    return parameters.make(f"method {name!r}", METHODS[name], values)
