"""Kernel models as estimators of scikit-learn: ``fit`` selects kernel, parameters and lambda, and keeps the winner.

A fit minimises the criterion over kernels x parameters x lambda, as :func:`kernsel.select` does, and fits the choice on
all rows. What a grid search of scikit-learn needs around it (a scaler, a dictionary of values, a search object) is part
of the fit.
"""

from __future__ import annotations

import inspect
import textwrap
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, check_is_fitted, validate_data

from kernsel.data.tables import as_pandas
from kernsel.errors import DataError, OptionError, SelectionWarning
from kernsel.heldout.metrics import Numbered, class_numbers
from kernsel.kernels import is_precomputed
from kernsel.numerics.points import is_sparse
from kernsel.report.cv_results import cv_results
from kernsel.selection.carry_out import carry_out, encode_arrays
from kernsel.selection.plan import WORDS, Plan
from kernsel.types import Array, Progress
from kernsel.words import unknown_option

if TYPE_CHECKING or find_spec("sklearn.callback") is None:  # before scikit-learn 1.9

    class CallbackSupportMixin:
        """An estimator that knows no callbacks."""

    Method = TypeVar("Method")

    def with_callbacks(method: Method) -> Method:
        """Return the method as it is."""
        return method
else:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

_ALIASES = {"cv": "folds", "random_state": "seed", "scoring": "select_by"}
"""Parameters that are scikit-learn's words for another one."""


_AS_SELECT = "        As in :func:`kernsel.select`."


class _KernelEstimator(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What the classifier and the regressor share: their parameters are the options of a plan."""

    _task: ClassVar[str]
    _foreign: ClassVar[tuple[str, ...]]
    """Options of a plan that are for the other task."""

    def __init_subclass__(cls) -> None:
        """Give the class its constructor, and its documentation the names of the parameters."""
        super().__init_subclass__()
        if "_foreign" not in vars(cls):  # a class of somebody else, with a constructor of its own, or ours
            return
        defaults = {name: getattr(Plan, name) for name in WORDS if name not in ("task", *cls._foreign)}
        defaults |= {**dict.fromkeys(_ALIASES), "progress": None}
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter(name, kind, default=default) for name, default in defaults.items()]

        def construct(self: _KernelEstimator, **given: Any) -> None:
            for name, default in defaults.items():
                setattr(self, name, given.get(name, default))

        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        construct.__signature__ = inspect.Signature([own, *parameters])  # type: ignore[attr-defined]  # scikit-learn reads it
        cls.__init__ = construct  # type: ignore[assignment, method-assign]
        cls.__signature__ = inspect.Signature(parameters)
        names = ", ".join(name for name in defaults if name not in (*_ALIASES, "progress"))
        lines = [f"    {line.rstrip(',')} : optional\n{_AS_SELECT}" for line in textwrap.wrap(names, 100)]
        cls.__doc__ = (cls.__doc__ or "").replace("    {options}\n", "\n".join(lines) + "\n")

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """Make an estimator; answer parameters that it doesn't have by kernsel's words for them."""
        names = cls._get_param_names()
        for name in given:
            if name not in names:
                raise unknown_option(cls.__name__, name, names)
        made: Self = super().__new__(cls)
        return made

    def _options(self) -> dict[str, Any]:
        """Return the options of a selection, those of scikit-learn's words by kernsel's."""
        options: dict[str, Any] = self.get_params(deep=False)
        for word, own in _ALIASES.items():
            value, default = options.pop(word), getattr(Plan, own)
            if value is None:
                continue
            if not (isinstance(options[own], int | None) and options[own] == default):
                raise OptionError(f"{type(self).__name__}: {word!r} and {own!r} are one option; give one of them")
            options[own] = value
        if isinstance(options["seed"], np.random.RandomState):
            options["seed"] = int(check_random_state(options["seed"]).randint(np.iinfo(np.int32).max))
        return options

    def _select(self, X: Any, y: Any, sample_weight: Any, groups: Any, several: bool) -> None:
        """Select, and warn whoever called ``fit``."""
        self._carry_out(X, y, sample_weight, groups, several)
        for text in self.selection_.warnings:
            warnings.warn(text, SelectionWarning, stacklevel=3)

    @with_callbacks
    def _carry_out(self, X: Any, y: Any, sample_weight: Any, groups: Any, several: bool) -> None:
        """Check the data, select, and keep what came out."""
        y_numeric = self._task == "regression"
        if y is None:
            raise DataError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = self._checked(X, reset=True, y=y)
        y = _check_y(y, multi_output=several, y_numeric=y_numeric, estimator=self)
        check_consistent_length(X, y)
        if not y_numeric:
            check_classification_targets(y)
        options = self._options()
        progress = options.pop("progress")
        plan = Plan(task=self._task, **options)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
            if not sample_weight.any():
                raise DataError("sample_weight is zero for all rows: no row counts; give some a weight greater than 0")
        dataset = encode_arrays(X, y, plan, sample_weight, groups)
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        task = _Task(self, {"X": X, "y": y, "metadata": metadata}, progress)
        selection = carry_out(dataset, plan, task.progress)
        self.selection_ = selection
        self.cv_results_, self.best_index_ = cv_results(selection)
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        by = options["select_by"]
        column = "mean_test_score" if by is None else f"mean_test_{by}"
        self.best_score_ = float(self.cv_results_[column][self.best_index_])
        if not y_numeric:
            self.classes_ = np.array(selection.model.labels, dtype=y.dtype)
        task.end()

    def _checked(self, X: Any, reset: bool, **target: Any) -> Any:
        """Check features; a DataFrame stays one, as of pandas, for it may have columns of text."""
        X = as_pandas(X)
        if hasattr(X, "iloc") and hasattr(X, "columns"):
            checked = validate_data(self, X, reset=reset, skip_check_array=True, **target)
            return checked[0] if target else checked
        finite = "allow-nan" if self._takes_gaps and not is_sparse(X) else True
        least = 2 if reset else 1
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", ensure_min_samples=least, ensure_all_finite=finite
        )

    @property
    def _takes_gaps(self) -> bool:
        """Whether missing values are filled in, or rows with them left out."""
        return self.missing in ("impute", "drop") and not is_precomputed(self.kernel)

    def _new(self, X: Any) -> Any:
        """Return new rows, checked."""
        check_is_fitted(self)
        return self._checked(X, reset=False)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the predictions for new rows: labels, or values in the target's units.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or DataFrame

        Returns
        -------
        (n,) array, or (n, k) for k targets
        """
        X = self._new(X)
        return self.selection_.model.predict(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.allow_nan = self._takes_gaps
        return tags


class _Task:
    """A fit as scikit-learn's callbacks see it: a task, and in it one for each step of the search that has ended.

    Parameters
    ----------
    estimator : _KernelEstimator
    data : dict
        ``X``, ``y`` and ``metadata``, for the callbacks.
    progress : callable or None
        The user's own.
    """

    def __init__(self, estimator: Any, data: dict[str, Any], progress: Progress | None) -> None:
        self.user, self.progress = progress, progress
        self.data = {"estimator": estimator, **data}
        self.context: Any = None
        if hasattr(estimator, "_skl_callbacks"):
            self.progress = self._step
            self.context = estimator._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(**self.data)

    def _step(self, done: int, total: int, text: str) -> None:
        step = self.context.subcontext(task_name=text)
        step.call_on_fit_task_begin(**self.data)
        step.call_on_fit_task_end(**self.data)
        if self.user is not None:
            self.user(done, total, text)

    def end(self) -> None:
        """Tell that the estimator is fitted."""
        if self.context is not None:
            self.context.call_on_fit_task_end(**self.data, reconstruction_attributes={})


class _ScoredByPlan:
    """What stands before scikit-learn's mixins: ``score`` is the scorer that decides a selection, if one does."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the scorer of ``scoring`` or ``select_by`` for rows with a known target; else accuracy or R^2.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or DataFrame
        y : (n,) or (n, k) array
        sample_weight : (n,) array, optional
        """
        by = self._options()["select_by"]  # type: ignore[attr-defined]  # of the estimators below
        if by is None:
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]  # the mixins'
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if not hasattr(self, "classes_"):
            return float(get_scorer(by)(self, X, y, **weights))
        classes: Any = self.classes_
        own: Any = self
        numbered = Numbered(
            len(classes), lambda X: class_numbers(classes, own.predict(X)), own.decision_function, own.predict_proba
        )
        return float(get_scorer(by)(numbered, X, class_numbers(classes, y), **weights))


class KernelClassifier(_ScoredByPlan, ClassifierMixin, _KernelEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that selects kernel, parameters and lambda when it is fitted, see :func:`kernsel.select`.

    Parameters
    ----------
    {options}
    cv : int, str, splitter or iterable of pairs, optional
        Another word for ``folds``.
    random_state : int or RandomState, optional
        Another word for ``seed``; without it 0, so that fits are repeatable.
    scoring : str, optional
        Another word for ``select_by``; ``score`` computes it, and ``best_score_`` is its held-out value.
    progress : optional
        As in :func:`kernsel.select`.

    Attributes
    ----------
    selection_ : Selection
        All that :func:`kernsel.select` returns; ``selection_.model`` is the fitted model, and ``selection_.procedure``
        the error of the whole selection, search and all, without a refit.
    classes_ : (c,) array
    n_features_in_ : int
    feature_names_in_ : (d,) array
        Where X is a DataFrame whose columns have names.
    cv_results_ : dict
        All candidates: see :func:`kernsel.report.cv_results.cv_results`.
    best_params_ : dict
        Kernel, its parameters and lambda.
    best_score_ : float
        The negative held-out loss of the choice, by exact refits; the metric of ``scoring``, if given.
    best_index_ : int
        Its place in ``cv_results_``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernsel import KernelClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> KernelClassifier(kernel="rbf", cv=5).fit(X, y).score(X, y) > 0.97
    True
    """

    _task: ClassVar[str] = "classification"
    _foreign: ClassVar[tuple[str, ...]] = ("clip",)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Select a kernel model, and fit it on all rows.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or DataFrame
            A DataFrame may have columns of text.
        y : (n,) array
            Labels of any kind.
        sample_weight : (n,) array, optional
            How much each row counts, in fits and in every mean; 0 leaves it out.
        groups : (n,) array, optional
            Rows of one group are held out together.

        Returns
        -------
        KernelClassifier

        Raises
        ------
        DataError, OptionError, IncompatibleError, PluginError, SelectionError
            As from :func:`kernsel.select`; the first two are ValueErrors.
        """
        self._select(X, y, sample_weight, groups, several=False)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the outputs for new rows: (n,) of two classes, greater than 0 for the second; else (n, c).

        Parameters
        ----------
        X : (n, d) array, sparse matrix or DataFrame
        """
        X = self._new(X)
        return self.selection_.model.decision(X)

    def predict_proba(self, X: Any) -> Array:
        """Return the calibrated probabilities of the classes for new rows, (n, c) in the order of ``classes_``.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or DataFrame
        """
        X = self._new(X)
        return self.selection_.model.predict_proba(X)


class KernelRegressor(_ScoredByPlan, RegressorMixin, _KernelEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A regressor that selects kernel, parameters and lambda when it is fitted, see :func:`kernsel.select`.

    Parameters
    ----------
    {options}
    cv : int, str, splitter or iterable of pairs, optional
        Another word for ``folds``.
    random_state : int or RandomState, optional
        Another word for ``seed``; without it 0, so that fits are repeatable.
    scoring : str, optional
        Another word for ``select_by``; ``score`` computes it, and ``best_score_`` is its held-out value.
    progress : optional
        As in :func:`kernsel.select`.

    Attributes
    ----------
    selection_ : Selection
        All that :func:`kernsel.select` returns; ``selection_.model`` is the fitted model, and ``selection_.procedure``
        the error of the whole selection, search and all, without a refit.
    n_features_in_ : int
    feature_names_in_ : (d,) array
        Where X is a DataFrame whose columns have names.
    cv_results_ : dict
        All candidates: see :func:`kernsel.report.cv_results.cv_results`.
    best_params_ : dict
        Kernel, its parameters and lambda.
    best_score_ : float
        The negative held-out loss of the choice, by exact refits, for the standardised target; the metric of
        ``scoring``, if given.
    best_index_ : int
        Its place in ``cv_results_``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernsel import KernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> KernelRegressor(kernel="rbf", cv=5).fit(X, y).predict_interval(X[:3], coverage=0.8).shape
    (3, 2)
    """

    _task: ClassVar[str] = "regression"
    _foreign: ClassVar[tuple[str, ...]] = ("class_weight", "calibration", "threshold_for")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Select a kernel model, and fit it on all rows.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or DataFrame
            A DataFrame may have columns of text.
        y : (n,) or (n, k) array
            Numbers; several columns are targets that share kernel, parameters and lambda.
        sample_weight : (n,) array, optional
            How much each row counts, in fits and in every mean; 0 leaves it out.
        groups : (n,) array, optional
            Rows of one group are held out together.

        Returns
        -------
        KernelRegressor

        Raises
        ------
        DataError, OptionError, IncompatibleError, PluginError, SelectionError
            As from :func:`kernsel.select`; the first two are ValueErrors.
        """
        self._select(X, y, sample_weight, groups, several=True)
        return self

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Return prediction intervals for new rows, (n, 2) or (n, k, 2): see :meth:`kernsel.Model.predict_interval`.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or DataFrame
        coverage : float
            The share of rows whose truth should lie within, between 0 and 1.
        """
        X = self._new(X)
        return self.selection_.model.predict_interval(X, coverage)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
