"""Where tables come from: files, compressed files, a glob of files, and what is piped in.

Compression is told by the first bytes, so a file may have any name. What is piped in is copied to a temporary file,
because a table is read more than once.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO, cast

from kernsel.errors import DataError
from kernsel.text import meant

STDIN = "-"
MAGIC: dict[bytes, Callable[[Path], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
"""First bytes of compressed files, and what opens them."""
ZIP = b"PK\x03\x04"

SMALL, RATIO, BUFFER = 2**26, 200, 2**16
"""A file may unpack to 64 MiB, and 200 times its own size more; it is unpacked in pieces of 64 KiB."""

AT_ONCE = 2**22
"""Bytes of a table that are read at once: 4 MiB."""

_piped: list[tuple[Any, Any]] = []
"""Streams that were piped in, and the copies of them, which last as long as the process."""


class Fit(IntEnum):
    """How sure a format is that a file is one of its own."""

    NOT = 0
    ANYTHING = 1
    """It takes whatever no other format does."""
    LOOK = 2
    """The first lines look so."""
    NAME = 3
    """The end of the name says so."""
    CONTENT = 4
    """The first bytes say so, or the files of an archive."""

    @classmethod
    def of(cls, source: Source, suffixes: Sequence[str], *magic: bytes) -> Fit:
        """Return what the name and the first bytes of a file say."""
        if magic and source.head(max(map(len, magic))).startswith(magic):
            return cls.CONTENT
        return cls.NAME if source.suffix in suffixes else cls.NOT


@dataclass(frozen=True)
class Source:
    """A file to read a table from.

    Parameters
    ----------
    name : str
        For messages.
    path : Path
        Where its bytes are.
    small : int
        Bytes that it may unpack to, beside ``RATIO`` times its size.
    at_once : int
        Bytes that are read at once, by a format that reads in blocks.
    """

    name: str
    path: Path
    small: int = SMALL
    at_once: int = AT_ONCE

    def open(self) -> BinaryIO:
        """Open the file, unpacked, at its start."""
        with self.path.open("rb") as stream:
            head = stream.read(8)
        for magic, opener in MAGIC.items():
            if head.startswith(magic):
                return self._bounded(opener(self.path))
        if head.startswith(ZIP) and (member := self.member()) is not None:
            return self._bounded(zipfile.ZipFile(self.path).open(member))
        return self.path.open("rb")

    def _bounded(self, unpacked: Any) -> BinaryIO:
        """Return an unpacked stream that ends in an error where it is longer than such a file is."""
        return cast(BinaryIO, io.BufferedReader(_Bounded(unpacked, self), BUFFER))

    @property
    def most(self) -> int:
        """The bytes that the file may unpack to."""
        return self.small + RATIO * self.path.stat().st_size

    def too_long(self) -> DataError:
        """Return the error for a file that unpacks to more than that."""
        return DataError(
            f"{self.name} unpacks to more than {self.most / 2**20:.0f} MB, over {RATIO} times its size, which tables "
            "hardly do; if it is right, unpack it first"
        )

    def head(self, size: int) -> bytes:
        """Return the first bytes, unpacked."""
        with self.open() as stream:
            return stream.read(size)

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed."""
        with self.path.open("rb") as stream:
            head = stream.read(8)
        return head.startswith(tuple(MAGIC)) or (head.startswith(ZIP) and self.member() is not None)

    @property
    def suffix(self) -> str:
        """The end of the name, in lower case, without that of the compression."""
        path = Path(self.name)
        return Path(path.stem).suffix.lower() if self.is_packed else path.suffix.lower()

    def members(self) -> list[str]:
        """Return the files in a zip archive, none if the file isn't one."""
        if not zipfile.is_zipfile(self.path):
            return []
        with zipfile.ZipFile(self.path) as archive:
            if sum(info.file_size for info in archive.infolist()) > self.most:
                raise self.too_long()
            return [name for name in archive.namelist() if not name.endswith("/") and "__MACOSX" not in name]

    def member(self) -> str | None:
        """Return the one file of a zip archive; None if this is no archive, or a workbook."""
        names = self.members()
        if not names or is_workbook(names):
            return None
        if len(names) > 1:
            raise DataError(
                f"{self.name} is an archive of {len(names)} files ({', '.join(names[:3])}{' ...' * (len(names) > 3)}); "
                "unpack it and give the one that is meant"
            )
        return names[0]


class _Bounded(io.RawIOBase):
    """An unpacked stream that counts what is read of it."""

    def __init__(self, unpacked: Any, source: Source) -> None:
        self.unpacked, self.source, self.most = unpacked, source, source.most

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self.unpacked.seekable())

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self.unpacked.seek(offset, whence))

    def tell(self) -> int:
        return int(self.unpacked.tell())

    def readinto(self, buffer: Any) -> int:
        count = int(self.unpacked.readinto(buffer))
        if self.unpacked.tell() > self.most:
            raise self.source.too_long()
        return count

    def close(self) -> None:
        self.unpacked.close()
        super().close()


def is_workbook(names: Sequence[str]) -> bool:
    """Say whether the names in an archive are those of an Excel or OpenDocument workbook."""
    return "xl/workbook.xml" in names or "xl/workbook.bin" in names or "content.xml" in names


def find_sources(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Source]:
    """Return the files that are meant.

    Parameters
    ----------
    paths : path or list of paths
        ``-`` is the standard input; what is no file but has ``*``, ``?`` or ``[`` is a pattern for several.

    Raises
    ------
    DataError
        There is no such file, it can't be read, or it is given twice.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[Source] = []
    for each in given:
        text = os.fspath(each)
        if text == STDIN:
            found.append(_read_stdin())
        elif not os.path.exists(text) and glob.has_magic(text):
            matching = sorted(glob.glob(text, recursive=True))
            if not matching:
                raise DataError(f"no file matches {text}; check the pattern and the folder")
            found += [Source(name, Path(name)) for name in matching]
        else:
            found.append(Source(text, Path(text)))
    for source in found:
        check_file(source.path)
    places = [source.path.resolve() for source in found]
    for place, source in enumerate(found):
        if places[place] in places[:place]:
            raise DataError(f"{source.name} is given twice; give every file once")
    return found


def _read_stdin() -> Source:
    """Return a copy of what is piped in: it may be read several times, the stream only once."""
    known = [copy for stream, copy in _piped if stream is sys.stdin.buffer]
    if known:
        return Source("standard input", Path(known[0].name))
    copy = tempfile.NamedTemporaryFile(prefix="kernsel-")  # noqa: SIM115 - it lasts as long as the process
    shutil.copyfileobj(sys.stdin.buffer, copy)
    copy.flush()
    _piped.append((sys.stdin.buffer, copy))
    return Source("standard input", Path(copy.name))


def check_file(path: Path) -> None:
    """Raise a DataError if a path isn't a file that can be read."""
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # the name is too long, or has a zero in it
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"can't read {str(path)[:80]}: {reason}; check the name") from error
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the name of a file in it")
    if not path.exists():
        raise DataError(f"there is no file {path}{meant(path.name, _names_in(path.parent)) or '; check the name'}")
    if not path.is_file():
        raise DataError(
            f"{path} is a pipe or a device, and a table is read more than once; save it to a file first, or pipe it in "
            "and give - as the file"
        )
    try:
        with path.open("rb") as stream:
            stream.read(1)
    except OSError as error:
        raise DataError(f"can't read {path}: {error.strerror}; check its permissions") from error


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []  # only a suggestion is lost
