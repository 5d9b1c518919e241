"""The file of a journal: one line a record, appended, each with its checksum.

A line is the CRC-32 of a JSON text, a space, and the text. The first one is the header: the version of the format and
of kernsel, the data and the options. The others say that a run begins or ends, or hold the outcome of a step. What is
torn or damaged has another checksum and doesn't count; what is torn at the end is cut off before anything is appended.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from kernsel.data.files import check_writable
from kernsel.errors import JournalWarning, OptionError
from kernsel.version import __version__

try:
    import fcntl
except ImportError:  # not on Windows: nothing keeps two runs apart there
    fcntl = None  # type: ignore[assignment]

FORMAT, VERSION = "kernsel-journal", 1

TOLD = 4
"""Options that are told, of those that are others than before."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk that has no room left: a run goes on without a journal, as it would if the room ended later."""

SYNC = 1.0
"""Seconds: what is older is on the disk for good, once a step has ended; what is younger may be lost with the power."""

TRIALS, PAUSE = 10, 0.02
"""How often, and at what intervals in seconds, a run tries to have its journal for itself."""

CHECKSUM = 8
"""Hexadecimal digits of a checksum."""

Record = dict[str, Any]


def line_of(record: Record) -> bytes:
    """Return the line of a record."""
    body = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def record_of(line: bytes) -> Record | None:
    """Return the record of a line; None if the line is torn or damaged."""
    body = line[CHECKSUM + 1 : -1]
    if not line.endswith(b"\n") or line[: CHECKSUM + 1] != b"%08x " % zlib.crc32(body):
        return None
    try:
        record = json.loads(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def records(stream: IO[bytes]) -> Iterator[tuple[int, Record | None]]:
    """Give where each line of a journal ends, and its record, or None where that is damaged."""
    place = 0
    for line in stream:
        place += len(line)
        yield place, record_of(line)


def is_in_use(stream: IO[bytes], keep: bool = False) -> bool:
    """Tell whether a run writes to a journal; where none does, ``keep`` it for this one until it is closed.

    A run that is killed holds it no longer.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(stream, (fcntl.LOCK_EX if keep else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    if not keep:
        fcntl.flock(stream, fcntl.LOCK_UN)
    return False


def now() -> str:
    """Return the time as people read it."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _stamp(record: Record) -> datetime | None:
    """Return when a record was written; the header doesn't say."""
    told = next((record[name] for name in ("begin", "time", "end") if name in record), None)
    return None if told is None else datetime.fromisoformat(told)


class JournalFile:
    """A journal that is written: lines wait in memory for some seconds if they may, and are appended from then on.

    Parameters
    ----------
    header : dict
        Data and options; a file that is there must have the same. ``steps``, how many there are of each stage, may
        differ.
    delay : float
        Seconds that a run lasts before there is a file, unless there is one already.
    """

    def __init__(self, path: Path, header: Record, delay: float = 0.0) -> None:
        self.path, self.header = path, {"format": FORMAT, "version": VERSION, "kernsel": __version__, **header}
        steps = self.header.pop("steps", {})  # a run that goes on may have more
        self._places: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()
        self._stream: IO[bytes] | None = None
        self._waiting: list[bytes] | None = [line_of(self.header)]
        self._begun, self._synced, self._delay = time.monotonic(), 0.0, delay
        self.before = 0.0
        """Seconds of the runs that were stopped, each until its last step was done."""
        check_writable(path)
        if path.exists() and not path.is_file():
            raise OptionError(f"journal {path} is no file; choose another name")
        try:
            if path.exists() or not delay:
                self._open()
        except OSError as error:
            if error.errno not in FULL:
                raise OptionError(f"can't write {path}: {error.strerror}; choose another place") from error
            self._give_up(error)
        self.append({"begin": now(), "process": os.getpid(), "host": socket.gethostname(), "steps": steps})

    def _open(self) -> None:
        """Open the file, or make it, for this run alone; find its records, and cut off what is torn."""
        stream = open(self.path, "a+b", buffering=0)  # noqa: SIM115  # closed with the journal
        try:
            self._lock_file(stream)
            stream.seek(0)
            self._read(stream)
        except BaseException:
            stream.close()
            raise
        self._stream = stream

    def _lock_file(self, stream: IO[bytes]) -> None:
        for _ in range(TRIALS):  # who looks whether it is in use holds it for a moment
            if not is_in_use(stream, keep=True):
                return
            time.sleep(PAUSE)
        stream.seek(0)
        begun = [record for _, record in records(stream) if record is not None and "begin" in record]
        whose = f" (process {begun[-1]['process']})" if begun else ""
        raise OptionError(
            f"journal {self.path} is in use by another run{whose}; wait for its end, or give this one another journal"
        )

    def _read(self, stream: IO[bytes]) -> None:
        """Find the records of a file that is there; it has the header of this run, or OptionError is raised."""
        place = kept = damaged = 0
        last: datetime | None = None
        for end, record in records(stream):
            if place == 0:
                check_header(self.path, record, self.header)
            elif record is not None and "key" in record:
                self._places[record["key"]] = place, end - place
            if record is not None:
                kept = end
                stamp = _stamp(record)
                if stamp and last and "begin" not in record:
                    self.before += max((stamp - last).total_seconds(), 0.0)  # a clock may be set back
                last = stamp or last
            else:
                damaged += 1
            place = end
        if damaged > (kept < place):
            warnings.warn(
                f"{damaged} lines of the journal {self.path} are damaged; what they held is computed anew",
                JournalWarning,
                stacklevel=6,
            )
        if kept < place:  # what is damaged before the end is passed over; the end would run into the next line
            stream.truncate(kept)
        if place:
            self._waiting = (self._waiting or [])[1:]  # the header is there

    @property
    def known(self) -> int:
        """How many steps were there before this run."""
        return len(self._places)

    def elapsed(self) -> float:
        """Return the seconds of all runs so far, of this one from its beginning."""
        return self.before + time.monotonic() - self._begun

    def find(self, key: str) -> Record | None:
        """Return the record of a step that was there before this run, or None."""
        with self._lock:
            if key not in self._places or self._stream is None:
                return None
            place, length = self._places[key]
            self._stream.seek(place)
            return record_of(self._stream.read(length))

    def append(self, record: Record) -> None:
        """Write a record; where that can't be, warn, once, and write none from then on."""
        line = line_of(record)
        with self._lock:
            if self._waiting is None:  # it has ended, or can't be written
                return
            self._waiting.append(line)
            try:
                if self._stream is None and time.monotonic() >= self._begun + self._delay:
                    self._open()
                if self._stream is not None:
                    self._write(self._stream)
            except (OSError, OptionError) as error:
                self._give_up(error)

    def _write(self, stream: IO[bytes]) -> None:
        """Append what waits."""
        left = memoryview(b"".join(self._waiting or []))
        while left:
            left = left[stream.write(left) or 0 :]
        self._waiting = []
        if time.monotonic() >= self._synced + SYNC:
            os.fsync(stream.fileno())
            self._synced = time.monotonic()

    def _give_up(self, error: Exception) -> None:
        self._drop()
        reason = getattr(error, "strerror", None) or error
        warnings.warn(
            f"the journal {self.path} can't be written ({reason}); the run goes on, and keeps nothing from here on",
            JournalWarning,
            stacklevel=4,
        )

    def _drop(self) -> None:
        stream, self._stream, self._waiting = self._stream, None, None
        if stream is not None:
            with suppress(OSError):
                stream.close()

    @property
    def is_written(self) -> bool:
        """Whether there is a file that the run can go on from."""
        return self._stream is not None

    def close(self, remove: bool = False) -> None:
        """End the writing; the file is on the disk for good then, or removed."""
        with self._lock:
            if self._stream is not None:
                with suppress(OSError):
                    if remove:
                        self.path.unlink(missing_ok=True)
                    else:
                        os.fsync(self._stream.fileno())
            self._drop()


def check_header(path: Path, found: Record | None, wanted: Record) -> None:
    """Raise OptionError where a journal is of another run: it says what changed.

    Parameters
    ----------
    found : dict or None
        The header of the file, None if it is damaged.
    wanted : dict
        That of the run.
    """
    instead = "give what it was begun with, remove it, or choose another journal"
    if found is None or found.get("format") != FORMAT:
        raise OptionError(f"{path} is no journal of kernsel, or its first line is damaged; remove it or choose another")
    for name in ("version", "kernsel"):
        if found.get(name) != wanted[name]:
            what = "of the format" if name == "version" else "of kernsel"
            raise OptionError(
                f"journal {path} is of version {found.get(name)} {what}, and this is {wanted[name]}; {instead}"
            )
    if found.get("command") != wanted["command"]:
        raise OptionError(f"journal {path} is of {found.get('command')}, and this is {wanted['command']}; {instead}")
    before, after = found.get("options", {}), wanted["options"]
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if changed:
        listed = "; ".join(f"{name}: {before.get(name)}, now {after.get(name)}" for name in changed[:TOLD])
        listed += f"; and {len(changed) - TOLD} more" * (len(changed) > TOLD)
        raise OptionError(f"journal {path} is of a run with other options ({listed}); {instead}")
    if found.get("data", {}).get("fingerprint") != wanted["data"]["fingerprint"]:
        raise OptionError(f"journal {path} is of other data: the data have changed since; {instead}")
