"""What is compared: selections that differ in their options, and other people's estimators by their import path."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kernsel import registry
from kernsel.errors import OptionError
from kernsel.parts import read_kernel
from kernsel.selection.kernel_source import AUTO, kernels_given
from kernsel.selection.plan import WORDS, Plan
from kernsel.text import first_line, parse
from kernsel.words import read_options

VARIED = {
    "criteria": "criterion",
    "learners": "learner",
    "kernels": "kernel",
    "searches": "search",
    "rules": "choose",
}
"""The options of a selection that lists of values may be given for, by the name of the list."""

FOUND = ("learned", "weighted")
"""What a method may have in place of a search."""

KERNELS = "kernels"
"""What is told of a weighted sum: how many kernels have a weight."""

OWN = ("fitted", *FOUND, "ridges")
"""What a method may have besides the options of a selection."""


SHOWN = 4
"""Values of a grid that are told one by one."""


@dataclass(frozen=True, eq=False)
class Method:
    """One way to get from training rows to a model.

    Parameters
    ----------
    name : str
        Its column in the tables.
    options : mapping
        Of a selection, see :func:`kernsel.select`. Besides, ``fitted`` names the learner that is fitted with the kernel
        and lambda chosen, where that is another one than they are chosen for; ``learned`` holds the options of
        :func:`kernsel.learn_relevances`, and ``weighted`` those of :func:`kernsel.learn_mkl`, by which the kernel is
        found in place of a search, and lambda too where they look at fits; ``ridges`` holds the values of n lambda that
        are searched, n the number of rows to train on.
    against : str or estimator or None
        In place of a selection, an estimator of scikit-learn's kind, or the import path of one.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    against: Any = None

    @property
    def identity(self) -> tuple[Any, ...]:
        """What tells its results from another one's: the name doesn't matter."""
        return self.against, dict(self.options)

    @property
    def learning(self) -> str | None:
        """Which of ``FOUND`` it has."""
        return next((name for name in FOUND if self.options.get(name) is not None), None)

    def within(self, options: Mapping[str, object]) -> Method:
        """Return it with further options; its own ones count, and of grids the values of each parameter."""
        return replace(self, options=merged(options, self.options))

    def told(self, shared: Mapping[str, object]) -> str:
        """Return what it is in one line, but for the options that it shares with others."""
        if self.against is not None:
            return str(self.against)
        own = {name: value for name, value in self.options.items() if name not in shared}
        return words_of_options(own) or "select"


def words_of_options(options: Mapping[str, object]) -> str:
    """Return options in one line, of many values of a grid the first and the last."""
    return ", ".join(f"{name}={_words(value)}" for name, value in options.items())


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return f"({words_of_options(value)})"
    if isinstance(value, list) and len(value) > SHOWN:
        return f"{value[0]:g}..{value[-1]:g} ({len(value)} values)"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


def shared_options(methods: Iterable[Method]) -> dict[str, Any]:
    """Return the options that all selections among some methods have alike."""
    options = [method.options for method in methods if method.against is None]
    every = options[0] if options else {}
    return {name: value for name, value in every.items() if all(each.get(name) == value for each in options)}


def merged(options: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with further ones, which count; of two grids that are mappings the values of each parameter."""
    both = {**options, **more}
    if isinstance(options.get("grid"), Mapping) and isinstance(more.get("grid"), Mapping):
        both["grid"] = {**options["grid"], **more["grid"]}
    return both


def make_methods(
    lists: Mapping[str, Sequence[object]], named: Mapping[str, Mapping[str, object]] | None, against: Iterable[object]
) -> list[Method]:
    """Return the methods that are asked for: all combinations of the lists, those with names, and estimators.

    Where only estimators are named, they are compared with what a selection does by itself.

    Parameters
    ----------
    lists : mapping of str to sequence
        Values by a name of ``VARIED``.
    named : mapping of str to mapping, optional
        Options of a selection by the method's name.
    against : iterable of str or estimator
    """
    varied = {VARIED[name]: list(values) for name, values in lists.items() if len(values)}
    found = []
    if varied:
        for point in itertools.product(*varied.values()):
            options = dict(zip(varied, point, strict=True))
            told = [str(options[name]) for name, values in varied.items() if len(values) > 1] or map(str, point)
            found.append(Method(" ".join(told), options))
    found += [Method(name, _checked(name, options)) for name, options in (named or {}).items()]
    others = [Method(_short(each), against=each) for each in against]
    return [*(found or [Method("kernsel")] * bool(others)), *others]


def choosable(method: Method) -> set[str]:
    """Return the names of what a method may choose: lambda, and parameters of its kernels, learner or estimator.

    Where those are chosen among all that there are, it is the names of all of them.
    """
    if method.against is not None:
        return {name.removeprefix("estimator__") for name in _parameters_of(make_estimator(method.against, 0))}
    plan = Plan(**{name: value for name, value in method.options.items() if name in WORDS})
    kernels, learner = kernels_given(plan), method.options.get("fitted", plan.learner)
    if method.learning == "learned":
        kernels = kernels_given(Plan(kernel=method.options["learned"].get("kernel", "ard")))
    if AUTO in kernels:
        kernels = _built_in("kernel")
    learners = _built_in("learner") if learner == AUTO else [] if learner is None else [learner]
    made = [registry.build("learner", each) if isinstance(each, str) else each for each in learners]
    parts = [*([] if method.learning == "weighted" else map(read_kernel, kernels)), *made]
    names = {"lambda", *[KERNELS] * (method.learning == "weighted")}.union(
        *({*getattr(each, "parameters", {}), *getattr(each, "free", ())} for each in parts)
    )
    return names.difference(*(getattr(each, "unlearnt", ()) for each in parts))  # those are no single numbers


def _built_in(kind: str) -> list[str]:
    return [claim.name for claim in registry.claims(kind) if claim.builtin]


def _parameters_of(estimator: object) -> list[str]:
    return list(estimator.get_params()) if hasattr(estimator, "get_params") else []


def check_methods(methods: Sequence[Method]) -> None:
    """Raise OptionError unless there are two methods or more, each of its own name."""
    if len(methods) < 2:
        raise OptionError(
            "there is nothing to compare: name at least two methods, such as --criteria cv,gcv, --rules safest,minimum "
            "or --against sklearn.svm:SVC, or a --protocol"
        )
    names = [method.name for method in methods]
    if twice := {name for name in names if names.count(name) > 1}:
        raise OptionError(f"two methods have the name {min(twice)!r}: give each one its own")


def _checked(name: str, options: Mapping[str, object]) -> dict[str, Any]:
    own = {key: value for key, value in options.items() if key in OWN}
    return own | read_options(f"method {name!r}", {k: v for k, v in options.items() if k not in OWN}, WORDS)


def _short(estimator: object) -> str:
    """Return the name of an estimator for a column."""
    if not isinstance(estimator, str):
        return type(estimator).__name__
    return re.sub(r"^[\w.]*:", "", estimator.strip())


def make_estimator(estimator: object, seed: int) -> Any:
    """Return a new estimator: a copy of the one that is given, or what an import path names, called.

    Parameters
    ----------
    estimator : str or estimator
        ``package.module:Name`` or ``package.module:Name(parameter=value)``.
    seed : int
        Its ``random_state``, where it has one that is None.

    Raises
    ------
    OptionError
        There is no such thing, or it refuses its parameters.
    """
    from sklearn.base import clone

    if not isinstance(estimator, str):
        if not hasattr(estimator, "fit"):
            raise OptionError(f"against: {estimator!r} has no fit; give an estimator, or its import path")
        made = clone(estimator)
    else:
        made = _imported(estimator)
    if hasattr(made, "get_params") and made.get_params().get("random_state", 0) is None:
        made.set_params(random_state=seed)
    return made


def _imported(text: str) -> Any:
    who = f"against {text!r}"
    path, values = parse(who, text)
    module, colon, name = path.partition(":")
    if not colon or not name or not module:
        raise OptionError(f"{who}: write module:Name, such as sklearn.svm:SVC or 'sklearn.svm:SVC(C=10)'")
    try:
        thing: Any = importlib.import_module(module)
    except ImportError as error:
        raise OptionError(
            f"{who}: {first_line(error)}; install it, or set PYTHONPATH to the folder of a module of your own"
        ) from error
    for part in name.split("."):
        if not hasattr(thing, part):
            raise OptionError(f"{who}: module {module} has no {name}; see its documentation for the name")
        thing = getattr(thing, part)
    try:
        made = thing(**values)
    except (TypeError, ValueError) as error:
        raise OptionError(f"{who} refuses its parameters: {first_line(error)}") from error
    if not hasattr(made, "fit") or not hasattr(made, "predict"):
        raise OptionError(
            f"{who}: what it makes has no fit and predict; name an estimator, or a function that makes one"
        )
    return made
