"""What a run has found out, kept on disk while it runs: the same run goes on from there after whatever stopped it.

A run is made of steps: a path of fits scored, a profile learnt, an outer fold done. :func:`remember` returns the
outcome of a step, computed, or from the journal that is in force where it is there. Every part of kernsel is
deterministic, and an outcome is kept bit by bit; so a run that goes on ends as one that was never stopped.

A step is known by a fingerprint of what it is made from: its rows, kernel, learner and so on, the step that it is a
part of, and how often there was such a step in that before. What has no fingerprint, as a Python function for a kernel,
is computed anew.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kernsel.journal.encoding import Unwritable, decode, encode, fingerprint
from kernsel.journal.file import JournalFile, now
from kernsel.journal.standing import Standing

if TYPE_CHECKING:
    from kernsel.data import Dataset

READABLE = 200
"""Letters of an option's value that are told as they are; a longer one is told by its fingerprint."""

Outcome = TypeVar("Outcome")

NONE = "none"
"""Written for no journal, where there would be one."""

LONG = 10.0
"""Seconds after which a run counts as a long one, and is kept where nothing else is asked for."""


@dataclass(eq=False)
class Journal:
    """What is known of a run: in a file, or without one only how far it is."""

    file: JournalFile | None
    standing: Standing

    @property
    def known(self) -> int:
        """How many steps were done before this run."""
        return 0 if self.file is None else self.file.known


@dataclass(eq=False)
class _Step:
    """A step of a run, or the run itself, in which further steps are."""

    journal: Journal
    key: str = ""
    depth: int = 0
    made: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def key_of(self, stage: str, given: Sequence[object]) -> str:
        """Return the key of a step in this one."""
        key = fingerprint((self.key, stage, *given))
        with self.lock:
            self.made[key] += 1
            return f"{key}-{self.made[key]}"


_step: ContextVar[_Step | None] = ContextVar("step", default=None)


def remember(
    stage: str,
    given: Sequence[object],
    compute: Callable[[], Outcome],
    about: Callable[[Outcome], Mapping[str, Any]] | None = None,
    whole: bool = False,
) -> Outcome:
    """Return the outcome of a step: from the journal in force if it is there, else computed, and kept.

    Parameters
    ----------
    stage : str
        The name of the step.
    given : sequence
        All that the outcome depends on: see ``encoding.fingerprint``.
    compute : callable
        Without arguments; what it does besides is not done where the outcome is known.
    about : callable, optional
        Returns what people are told of an outcome: see ``standing``.
    whole : bool
        Whether it is done in one go: steps in it are not kept. So a time that it measures is that of all of it.
    """
    step = _step.get()
    if step is None:
        return compute()
    file, key = step.journal.file, None
    if file is not None:
        with suppress(Unwritable):
            key = step.key_of(stage, given)
    found = None if file is None or key is None else file.find(key)
    if found is not None:
        outcome: Outcome = decode(found["outcome"])
    else:
        journal = Journal(None, Standing()) if whole else step.journal
        outcome = _computed(compute, _Step(journal, key or step.key, step.depth + 1))
    record = {"stage": stage, "depth": step.depth, "about": None if about is None else about(outcome)}
    step.journal.standing.add(record)
    if file is not None and key is not None and found is None:
        with suppress(Unwritable):
            file.append({**record, "key": key, "time": now(), "outcome": encode(outcome)})
    return outcome


def is_kept() -> bool:
    """Say whether a file keeps what is found out."""
    step = _step.get()
    return step is not None and step.journal.file is not None


def seconds_before() -> float:
    """Return the seconds of earlier runs that the one in force goes on from; 0 in a step, whose time they are not."""
    step = _step.get()
    return 0.0 if step is None or step.depth or step.journal.file is None else step.journal.file.before


def seconds_since(stage: str, given: Sequence[object]) -> float:
    """Return the seconds of earlier runs that passed after this stage was come to first; 0 without any.

    Parameters
    ----------
    given : sequence
        All that tells the stage from others: see ``encoding.fingerprint``.
    """
    step = _step.get()
    if step is None or step.depth or step.journal.file is None:
        return 0.0
    return max(seconds_before() - remember(stage, given, step.journal.file.elapsed), 0.0)


def run_header(command: str, dataset: Dataset, options: Mapping[str, object]) -> dict[str, Any]:
    """Return what tells a run from others.

    Parameters
    ----------
    options : mapping
        Of any values; one that has no text of its own is told by its fingerprint.
    """
    data = {"fingerprint": fingerprint(dataset), "rows": dataset.n, "features": dataset.d}
    data |= {"source": dataset.source, "target": dataset.target, "task": dataset.task}
    return {"command": command, "data": data, "options": {name: _told(value) for name, value in options.items()}}


def _told(value: object) -> str:
    """Return a text that is another one for another value, as far as that can be told."""
    text = str(value)
    if len(text) <= READABLE and " at 0x" not in text and "..." not in text:
        return text
    try:
        return f"{type(value).__name__} {fingerprint(value)[:8]}"
    except Unwritable:
        return type(value).__name__


def _computed(compute: Callable[[], Outcome], inner: _Step) -> Outcome:
    token = _step.set(inner)
    try:
        return compute()
    finally:
        _step.reset(token)


@contextmanager
def journaling(
    path: str | os.PathLike[str] | None, header: Callable[[], Mapping[str, Any]], delay: float = 0.0, keep: bool = True
) -> Iterator[Journal]:
    """Keep what the block finds out in a file, and go on from what is there; of blocks in blocks the outermost counts.

    Parameters
    ----------
    path : path or None
        Without one only how far it is is known.
    header : callable
        Returns ``command``, ``data`` and ``options`` of the run: a file that is there must have the same.
    delay : float
        Seconds that the run lasts before the file is made.
    keep : bool
        Whether the file stays where the block has ended well.

    Raises
    ------
    OptionError
        The file can't be written, is another run's, or is in use.
    """
    outer = _step.get()
    if outer is not None:
        yield outer.journal
        return
    file = None if path is None or path == NONE else JournalFile(Path(path), dict(header()), delay)
    journal, ended = Journal(file, Standing()), False
    token = _step.set(_Step(journal))
    try:
        yield journal
        ended = True
    except KeyboardInterrupt as error:
        known = hasattr(error, "__notes__")  # where it was stopped: the search had ended
        for line in () if known else journal.standing.describe_stop(file.path if file and file.is_written else None):
            error.add_note(line)
        raise
    finally:
        _step.reset(token)
        if file is not None:
            if ended and keep:
                file.append({"end": now()})
            file.close(remove=ended and not keep)
