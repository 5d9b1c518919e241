"""Old words: a name that changes is understood for two versions more, and says what it is called now.

A row of ``RENAMED`` is all that a change of a name needs. The test of the rows fails from the version on in which an
old word has had its time, until its row is taken out.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

from kernsel.errors import RenamedWarning
from kernsel.version import __version__

KEPT = 2
"""Minor versions that an old word is understood for, that of the change counted: renamed in 0.3, it is gone in 0.5."""


class Renamed(NamedTuple):
    """A word that is another one by now.

    Parameters
    ----------
    of : {"name", "option", "kernel", "learner", "criterion", "search", "format"}
        What it is: a name in the module ``kernsel``, an option of a selection, or a part.
    since : str
        The version of the change.
    """

    of: str
    old: str
    new: str
    since: str

    @property
    def end(self) -> tuple[int, int]:
        """The version in which the old word is gone."""
        major, minor = _minor(self.since)
        return major, minor + KEPT

    @property
    def over(self) -> bool:
        """Whether this is such a version."""
        return _minor(__version__) >= self.end


RENAMED: tuple[Renamed, ...] = ()


def current(of: str, word: str) -> str:
    """Return the word of today; where another one was asked for, warn.

    Parameters
    ----------
    of : str
        See ``Renamed``.

    Warns
    -----
    RenamedWarning
    """
    for row in RENAMED:
        if (row.of, row.old) == (of, word):
            told = (
                f"{of} {word!r} is called {row.new!r} since kernsel {row.since}, and gone in {row.end[0]}.{row.end[1]}"
            )
            warnings.warn(f"{told}; write {row.new!r}", RenamedWarning, stacklevel=3)
            return row.new
    return word


def _minor(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
