"""What a check is, how checks are collected and run, and the laws that parts of every kind have to keep."""

from __future__ import annotations

import dataclasses
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn
from unittest import SkipTest

import numpy as np
from numpy.typing import ArrayLike

from kernsel import registry
from kernsel.errors import OptionError, PluginError, SelectionWarning
from kernsel.report.explanation import explain
from kernsel.text import meant

Draw = Callable[[Any], Any]
"""Hypothesis's ``data.draw``: a value of a strategy."""

NOTHING: Mapping[str, str] = MappingProxyType({})
"""No check is left out."""

EXAMPLES = 25
"""How many tables a check draws: a law that fails, fails on most of them, so that more would find little."""

EPS = float(np.finfo(float).eps)

DIFFERENCES = 1e-5
"""Relative: a polynomial through 9 points has errors near reach^6 / 6! in the third derivative, and EPS / reach^3."""

FITTED = 1e-7
"""On what is made of a fit, of the size 1: the solver stops on the value of J, and outputs are off by its root."""


@dataclass(frozen=True)
class Subject:
    """What is checked.

    Parameters
    ----------
    kind : {"kernel", "learner", "criterion", "search", "format"}
    part : object
        An instance of the part.
    """

    kind: str
    part: Any

    def __str__(self) -> str:
        return f"{self.kind} {self.part.name!r}"

    def fail(self, complaint: str) -> NoReturn:
        """Raise AssertionError: the part, what is wrong with it, and what to do."""
        raise AssertionError(f"{self}: {complaint}")

    def check(self, holds: object, complaint: str) -> None:
        """Fail unless something holds."""
        if not holds:
            self.fail(complaint)

    def check_close(
        self, found: ArrayLike, expected: ArrayLike, complaint: str, rtol: float = 0.0, atol: float = 0.0
    ) -> None:
        """Fail unless two arrays are equal within ``atol + rtol |expected|``; NaN equals NaN."""
        one, other = np.asarray(found), np.asarray(expected)
        if one.shape != other.shape:
            self.fail(f"{complaint} (found an array of shape {one.shape} where {other.shape} is expected)")
        far = ~np.isclose(one, other, rtol=rtol, atol=atol, equal_nan=True)
        if far.any():
            place = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(far)))
            there = f"{np.atleast_1d(one)[place]!r} where {np.atleast_1d(other)[place]!r} is expected"
            at = ", ".join(map(str, place))
            self.fail(f"{complaint} (entry {at}: {there}; {int(far.sum())} of {far.size} differ)")

    def require_installed(self) -> None:
        """Raise SkipTest unless the name leads to the very class, as it does once its package is installed."""
        if not self.installed:
            raise SkipTest(f"{self} isn't installed, so that its name leads nowhere yet: pip install its package")

    @property
    def installed(self) -> bool:
        """Whether the name leads to the very class."""
        try:
            return registry.get(self.kind, self.part.name) is type(self.part)
        except PluginError:
            return False


@dataclass(frozen=True)
class Check:
    """One check of one part: call it.

    Parameters
    ----------
    name : str
        What is true of the part if the check passes, in words.
    law : callable
    subject : Subject
    drawn : bool
        Whether the data are drawn by hypothesis, so that the check takes longer.
    """

    name: str
    law: Callable[..., None]
    subject: Subject
    drawn: bool

    @property
    def __name__(self) -> str:
        """The name, as pytest asks for it."""
        return self.name

    def __call__(self) -> None:
        """Run it; AssertionError says what is wrong and what to do, SkipTest why the check doesn't apply."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelectionWarning)  # the tables are small, which is no matter of the part
            if self.drawn:
                _draw(self.law, self.subject)
            else:
                self.law(self.subject)


@dataclass
class Laws:
    """The laws of one kind of part, in the order in which they are written."""

    laws: dict[str, tuple[Callable[..., None], bool]] = field(default_factory=dict)

    def add(self, law: Callable[..., None]) -> Callable[..., None]:
        """Take a law ``law(subject)``."""
        self.laws[law.__name__] = law, False
        return law

    def drawn(self, law: Callable[..., None]) -> Callable[..., None]:
        """Take a law ``law(subject, draw)`` that draws from strategies of hypothesis."""
        self.laws[law.__name__] = law, True
        return law

    def of(self, subject: Subject, without: Mapping[str, str]) -> list[Check]:
        """Return the checks of a part; those of ``without`` are skipped with the reason that is given."""
        every = {**COMMON.laws, **self.laws}
        for name in without:
            if name not in every:
                hint = meant(name, every) or f"; there are {', '.join(every)}"
                raise OptionError(f"{subject.kind}_checks: there is no check {name!r}{hint}")
        return [
            Check(name, _skipped(without[name]) if name in without else law, subject, drawn and name not in without)
            for name, (law, drawn) in every.items()
        ]


def run_checks(checks: Iterable[Check]) -> dict[str, str]:
    """Run checks without pytest.

    Parameters
    ----------
    checks : iterable of Check
        Such as ``kernel_checks(kernel)``.

    Returns
    -------
    dict
        The checks that don't apply, by name, each with the reason.

    Raises
    ------
    AssertionError
        Some failed: the names of all of these, each with what is wrong and what to do.
    """
    failed, skipped, done = [], {}, 0
    for check in checks:
        done += 1
        try:
            check()
        except SkipTest as reason:
            skipped[check.name] = str(reason)
        except Exception as error:  # noqa: BLE001  # a part may fail in any way
            failed.append(f"{check.name}: {error if isinstance(error, AssertionError) else repr(error)}")
    if failed:
        raise AssertionError(f"{len(failed)} of {done} checks failed\n" + "\n".join(failed))
    return skipped


def _draw(law: Callable[..., None], subject: Subject) -> None:
    """Run a law on examples of hypothesis: the same ones each time, so that a failure is a change of the part."""
    try:
        from hypothesis import HealthCheck, given, settings
        from hypothesis import strategies as st
    except ImportError as error:
        raise ImportError('this check draws tables by hypothesis: pip install "kernsel[test]"') from error

    @settings(
        max_examples=EXAMPLES,
        deadline=None,  # the first call of a loop compiles it
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.data())
    def examples(data: Any) -> None:
        law(subject, data.draw)

    examples()


def _skipped(reason: str) -> Callable[[Subject], None]:
    def law(subject: Subject) -> None:
        raise SkipTest(reason)

    return law


@contextmanager
def left_as_they_are(subject: Subject, **arrays: ArrayLike) -> Iterator[None]:
    """Fail if the block changes one of the arrays, which are named by keywords."""
    before = {name: np.array(each) for name, each in arrays.items()}
    yield
    for name, each in arrays.items():
        subject.check(
            np.array_equal(before[name], np.asarray(each), equal_nan=True),
            f"it changes {name}, which belongs to its caller; work on a copy",
        )


COMMON = Laws()


@COMMON.add
def it_is_a_frozen_dataclass_with_a_name(subject: Subject) -> None:
    """Parts are keys of tables, so that they must not change."""
    part = subject.part
    frozen = dataclasses.is_dataclass(part) and getattr(type(part), "__dataclass_params__").frozen  # noqa: B009
    subject.check(frozen, "its class isn't a frozen dataclass; write @dataclass(frozen=True) above it")
    own = "name" not in {each.name for each in dataclasses.fields(part)}
    subject.check(own, "its name is a field; write name: ClassVar[str]")


@COMMON.add
def equal_parameters_make_equal_parts(subject: Subject) -> None:
    """A copy from the same values is the same key, and a pickle leads back, for workers in other processes."""
    part = subject.part
    again = dataclasses.replace(part)
    subject.check(again == part, "a copy of the same values isn't equal to it; leave __eq__ to the dataclass")
    subject.check(hash(again) == hash(part), "a copy of the same values has another hash; leave it to the dataclass")
    kept = pickle.loads(pickle.dumps(part))
    subject.check(kept == part, "a pickle of it is another part; keep all that it is made of in its fields")


@COMMON.add
def it_says_what_it_is(subject: Subject) -> None:
    """``kernsel plugins NAME`` is made of the docstring."""
    about = explain(subject.kind, type(subject.part))
    ask = "its docstring has no first sentence; say what it is, with its formula and a full stop"
    subject.check(about.what.endswith("."), ask)
    silent = [each.name for each in about.parameters if not each.text]
    subject.check(not silent, f"its docstring doesn't explain {', '.join(silent)}; write a section Parameters")


@COMMON.add
def its_name_leads_to_it(subject: Subject) -> None:
    """The entry point has the name of the part, and the registry takes it."""
    claims = [claim for claim in registry.claims(subject.kind) if claim.name == subject.part.name]
    faults = [fault for claim in claims if claim.state != "ambiguous" and (fault := registry.find_fault(claim))]
    subject.check(not faults, "; ".join(faults))
    subject.require_installed()
