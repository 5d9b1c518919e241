"""Files out: checked before the work starts, written whole or not at all (standard library only)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from kernsel.errors import OptionError

DRAFT = 40
"""Letters of a file's name that its draft has in its own, so that it isn't too long where the file's isn't."""
LONGEST = 160
"""Letters of a path in a message."""


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Make sure that ``path`` can be written, without touching it.

    Raises
    ------
    OptionError
        It is a folder, its folder doesn't exist, or one of them can't be written.
    """
    target = Path(path)
    folder = target.parent
    try:
        os.stat(target)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass  # said below
    except (OSError, ValueError) as error:  # the name is too long, or has a zero in it
        raise OptionError(f"can't write {_short(target)}: {_reason(error)}; choose another name") from error
    if target.is_dir():
        raise OptionError(f"can't write {target}: it is a folder; give the name of a file")
    if not folder.is_dir():
        raise OptionError(f"can't write {target}: there is no folder {folder}; make it first")
    if not os.access(target if target.exists() else folder, os.W_OK) or not _replaceable(target):
        raise OptionError(f"can't write {target}: permission denied; choose another place")
    return target


def atomic_write(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Call ``write`` on a new file beside ``path`` and rename it to ``path`` at the end.

    Whatever interrupts the writing, ``path`` holds its old content or the new one. A device such as ``/dev/stdout``
    can't be renamed to and is written straight.

    Raises
    ------
    OptionError
        The file can't be written; the old one is as it was.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as stream:
                write(stream)
            return
        draft = target.with_name(f".{target.name[:DRAFT]}.{os.getpid()}.tmp")
        try:
            with draft.open("wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise OptionError(f"can't write {_short(path)}: {_reason(error)}; choose another place") from error


def check_replaceable(path: Path, *starts: bytes) -> None:
    """Raise OptionError if a file exists that holds anything else than what begins in one of these ways.

    A result may take the place of an older one. What else has the same name is somebody's work, and the name a mistake.
    """
    if path.is_file() and path.stat().st_size:
        with path.open("rb") as stream:
            head = stream.read(64)
        if not any(start in head for start in starts):
            raise OptionError(
                f"{path} exists and is no result of this command; choose another name, or remove it first"
            )


def _short(path: str | os.PathLike[str]) -> str:
    """Return a path of a length that can be read."""
    text = os.fspath(path)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}...{text[-LONGEST // 4 :]}"


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def _replaceable(target: Path) -> bool:
    """Whether a rename to ``target`` can work: it needs the folder, but a device is written straight."""
    return (target.exists() and not target.is_file()) or os.access(target.resolve().parent, os.W_OK)
