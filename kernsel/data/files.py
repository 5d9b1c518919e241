"""Files out: checked before the work starts, written whole or not at all (standard library only)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from kernsel.errors import OptionError


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Make sure that ``path`` can be written, without touching it.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    OptionError
        It is a folder, its folder doesn't exist, or one of them can't be written.
    """
    target = Path(path)
    folder = target.parent
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
        draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with draft.open("wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise OptionError(f"can't write {path}: {error.strerror or error}; choose another place") from error


def _replaceable(target: Path) -> bool:
    """Whether a rename to ``target`` can work: it needs the folder, but a device is written straight."""
    return (target.exists() and not target.is_file()) or os.access(target.resolve().parent, os.W_OK)
