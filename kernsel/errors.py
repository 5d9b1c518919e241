"""What kernsel raises and warns of, and the refusal of what won't fit into memory.

Every message says who found what wrong, where, and what to do next, in one line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from kernsel.system.memory import memory_limit


class KernselError(Exception):
    """Any error that kernsel raises on purpose."""


class DataError(KernselError, ValueError):
    """The data can't be used as they are."""


class OptionError(KernselError, ValueError):
    """An option has a value that it can't have."""


class IncompatibleError(KernselError, TypeError):
    """Two parts don't fit together: one needs what the other doesn't offer."""


class SelectionError(KernselError, ArithmeticError):
    """No candidate could be scored."""


class ModelError(KernselError, ValueError):
    """A model file is damaged, foreign or of an unknown version."""


class CompilationError(KernselError, OSError):
    """The machine code can't be kept on disk, and was asked to be."""


class PluginError(KernselError, LookupError):
    """A part of the registry can't be had."""


class UnknownPlugin(PluginError):
    """No distribution claims that name."""


class AmbiguousPlugin(PluginError):
    """Several distributions claim that name."""


class BrokenPlugin(PluginError):
    """The distribution that claims the name can't be imported or doesn't deliver."""


class Caution(str):
    """The text of a warning, with a code that programs can rely on.

    Parameters
    ----------
    code : str
        Such as ``"one-class"``: within a version of the JSON document it doesn't change its meaning.
    text : str
        What is the matter, and what to do.
    """

    code: str

    def __new__(cls, code: str, text: str) -> Self:
        """Make the text, and keep the code beside it."""
        caution = super().__new__(cls, text)
        caution.code = code
        return caution

    def __reduce__(self) -> tuple[type[Caution], tuple[str, str]]:
        """Return what a pickle makes it from."""
        return Caution, (self.code, str(self))


def codes_of(warnings: Iterable[str]) -> list[dict[str, str]]:
    """Return code and text of each warning; the code of one that has none is ``"other"``."""
    return [{"code": getattr(each, "code", "other"), "text": str(each)} for each in warnings]


class PluginFailure(PluginError):
    """A part of a distribution failed while it was used."""


class SelectionWarning(UserWarning):
    """The selection stands, but something about it should be known."""


class ConvergenceWarning(UserWarning):
    """An iteration stopped before it reached its tolerance."""


class CompilationWarning(UserWarning):
    """The machine code can't be kept on disk."""


class JournalWarning(UserWarning):
    """What a run has found out can't be kept, or couldn't be read."""


class RenamedWarning(FutureWarning):
    """A word is called otherwise by now, and will be gone: see ``kernsel.deprecation``."""


class PluginWarning(UserWarning):
    """A plugin claims a name that a built-in part has."""


def check_memory(needed: float, what: str, instead: str) -> None:
    """Raise OptionError where something needs more bytes than the process may have: see ``kernsel.system.memory``."""
    there = memory_limit()
    if there is not None and needed > there:
        raise OptionError(f"{what} needs about {_bytes(needed)} of memory, and there are {_bytes(there)}: {instead}")


def _bytes(number: float) -> str:
    """Return a number of bytes for people."""
    return f"{number / 2**30:.0f} GB" if number >= 10 * 2**30 else f"{number / 2**20:.0f} MB"
