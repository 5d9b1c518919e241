"""The laws of a format of files: it knows its own, leaves those of others alone, and ends in an error on garbage."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernsel import registry
from kernsel.data import read_table
from kernsel.data.layout import Reading
from kernsel.data.reading import Format
from kernsel.data.sources import Fit, Source
from kernsel.errors import KernselError
from kernsel.testing.base import NOTHING, Check, Laws, Subject, run_checks

if TYPE_CHECKING:
    import pandas as pd

Write = Callable[["pd.DataFrame", Path], object]
LAWS = Laws()

DAMAGES = 60
"""Files with a byte changed, and as many that are cut short."""

FOREIGN = {
    "other.csv": b"a,b,target\n1,2,3\n4,5,6\n",
    "other.svmlight": b"1 1:0.5 3:2\n-1 2:1\n",
    "other.bin": bytes(range(256)),
    "empty": b"",
}
"""Files that are none of the format's own."""


@dataclass(frozen=True)
class FormatSubject(Subject):
    """A format that is checked.

    Parameters
    ----------
    kind : {"format"}
    part : Format
    write : callable
        Writes a table to a file of the format: ``write(frame, path)``.
    suffix : str
        The end of such a file's name, with its dot.
    """

    write: Write
    suffix: str

    @contextmanager
    def file(self) -> Iterator[Path]:
        """Write a table to a file that lasts as long as the block."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"table{self.suffix}"
            self.write(self.frame(), path)
            yield path

    @staticmethod
    def frame() -> pd.DataFrame:
        """Return a table of numbers, the last column of which is the target."""
        import pandas as pd

        values = np.round(np.random.default_rng(0).normal(size=(8, 3)), 3)
        return pd.DataFrame(values, columns=["f1", "f2", "target"])

    def read(self, path: Path) -> Any:
        """Return the table that the format itself reads from a file."""
        return self.part.read(Source(path.name, path), Reading(), None)


def format_checks(part: Format, *, write: Write, suffix: str, without: Mapping[str, str] = NOTHING) -> list[Check]:
    """Return the checks of a format of files.

    Parameters
    ----------
    part : Format
    write : callable
        Writes a table to a file of the format: ``write(frame, path)``.
    suffix : str
        The end of such a file's name, with its dot, such as ``".jsonl"``.
    without : mapping of str to str, optional
        Checks to skip, by name, each with the reason.
    """
    return LAWS.of(FormatSubject("format", part, write, suffix), without)


def check_format(part: Format, **options: Any) -> dict[str, str]:
    """Run ``format_checks``; AssertionError if some fail, else those that don't apply, with the reasons."""
    return run_checks(format_checks(part, **options))


def _values(table: object) -> Any:
    """Return the numbers of a table, dense."""
    return table.X.toarray() if hasattr(table, "X") else np.asarray(table, dtype=float)


@LAWS.add
def it_knows_its_own_files(subject: FormatSubject) -> None:
    """By their name or by what is in them."""
    with subject.file() as path:
        found = subject.part.fits(Source(path.name, path), Reading())
        known = sorted(map(int, Fit))
        subject.check(int(found) in known, f"fits returns {found!r}; return one of kernsel.data.sources.Fit")
        subject.check(found > Fit.NOT, f"fits says NOT of its own {path.name}; compare its suffix or first bytes")


@LAWS.add
def it_leaves_the_files_of_others_alone(subject: FormatSubject) -> None:
    """It isn't surer of them than the built-in formats are."""
    own = [registry.get("format", claim.name)() for claim in registry.claims("format") if claim.builtin]
    with tempfile.TemporaryDirectory() as folder:
        for name, content in FOREIGN.items():
            path = Path(folder) / name
            path.write_bytes(content)
            source = Source(name, path)
            found = subject.part.fits(source, Reading())
            surest = max(int(each.fits(source, Reading())) for each in own)
            subject.check(found <= surest, f"fits says {found!r} of {name}, which is none of its own; say NOT")


@LAWS.add
def what_was_written_is_read(subject: FormatSubject) -> None:
    """What is read has the numbers and columns that were written; notes are texts."""
    frame = subject.frame()
    with subject.file() as path:
        table = subject.read(path)
        subject.check(hasattr(table, "attrs"), f"read returns {type(table).__name__}; return a DataFrame")
        notes = table.attrs.get("notes", [])
        subject.check(all(isinstance(note, str) for note in notes), 'attrs["notes"] must be a list of texts')
        subject.check_close(_values(table), frame.to_numpy(), "other numbers are read than were written", atol=1e-12)


@LAWS.add
def every_command_reads_it(subject: FormatSubject) -> None:
    """By the name and the first bytes of a file."""
    subject.require_installed()
    with subject.file() as path:
        ask = f"{path.name} is read as something else; let fits be surer"
        subject.check_close(_values(read_table(path)), subject.frame().to_numpy(), ask, atol=1e-12)


@LAWS.add
def a_packed_file_is_read_as_it_is(subject: FormatSubject) -> None:
    """By gzip, as an example of all."""
    subject.require_installed()
    with subject.file() as path:
        packed = path.with_name(path.name + ".gz")
        packed.write_bytes(gzip.compress(path.read_bytes()))
        ask = "packed by gzip it is read as something else; read from source.open(), not from source.path"
        subject.check_close(_values(read_table(packed)), subject.frame().to_numpy(), ask, atol=1e-12)


@LAWS.add
def a_damaged_file_ends_in_an_error_or_a_table(subject: FormatSubject) -> None:
    """Bytes are changed, and ends cut off; nothing may hang, or end the process."""
    subject.require_installed()
    rng = np.random.default_rng(0)
    with subject.file() as path:
        whole = np.frombuffer(path.read_bytes(), np.uint8)
        for trial in range(2 * DAMAGES):
            damaged = whole.copy() if trial % 2 else whole[: rng.integers(whole.size)].copy()
            if trial % 2:
                damaged[rng.integers(whole.size, size=3)] = rng.integers(256, size=3)
            path.write_bytes(damaged.tobytes())
            try:
                read_table(path)
            except KernselError:
                continue
            except Exception as error:  # noqa: BLE001  # whatever it is, it isn't one that helps
                subject.fail(f"a damaged file ends in {error!r}; raise kernsel.errors.DataError")
