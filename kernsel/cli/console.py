"""What all commands share: how they print errors, warnings and progress, and how they end."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO

import typer
from typer.core import TyperGroup

from kernsel import errors
from kernsel.system import interrupts
from kernsel.system.memory import addresses_left
from kernsel.words import OPTIONS, instead_of

if TYPE_CHECKING:
    from kernsel.types import Progress

LEAST_ADDRESSES = 7 * 2**28
"""Python with NumPy, SciPy, LLVM and their threads takes 1.1 GB of addresses, compiling some hundreds of MB more."""

NO_MEMORY = "the memory doesn't suffice; use fewer rows, or a smaller --rank"
BROKEN_PIPE = 141
WARNINGS = tuple(kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, UserWarning))

USAGE_ERROR: Any = typer.BadParameter.__base__
"""Click's UsageError: some versions of Typer need Click, others have one of their own."""


@contextmanager
def guarded() -> Iterator[None]:
    """Run a command: errors and warnings of kernsel become one line each on stderr, errors end with exit code 2.

    Ctrl-C ends with 130 and one line, SIGTERM with 143, and a reader that closes the pipe ends the command in silence,
    as for any tool.
    """
    with warnings.catch_warnings():
        for kind in WARNINGS:
            warnings.simplefilter("always", kind)
        warnings.showwarning = _Printer(warnings.showwarning)
        try:
            _check_addresses()
            with interrupts.raised(), _written():
                yield
        except errors.KernselError as error:
            say(f"error: {error}")
            raise typer.Exit(2) from error
        except MemoryError as error:
            say(f"error: {NO_MEMORY}")
            raise typer.Exit(2) from error
        except KeyboardInterrupt as error:
            say("; ".join(["interrupted", *getattr(error, "__notes__", ())]))
            raise typer.Exit(interrupts.exit_code()) from error
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            say(f"error: {NO_MEMORY}")
            raise typer.Exit(2) from error
        except (Exception, SystemExit) as error:
            if interrupts.came():
                say("interrupted")
                raise typer.Exit(interrupts.exit_code()) from error
            from kernsel import registry  # imports the metadata of distributions, which --help does without

            reason = registry.blame(error)
            if reason is None:
                raise
            say(f"error: {reason}; tell its authors, or do without it")
            raise typer.Exit(2) from error


@contextmanager
def _written() -> Iterator[None]:
    """End a command whose output can't be written: in silence if it is read by nobody, else with exit code 2."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        _drop_output()
        raise typer.Exit(BROKEN_PIPE) from error
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        _drop_output()
        say(f"error: the output can't be written ({error.strerror}); make room, or write it elsewhere")
        raise typer.Exit(2) from error


def _drop_output() -> None:
    """Write what is still buffered to nowhere: it would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _stdout_number())


def _check_addresses() -> None:
    """Refuse to begin where the libraries alone would run out of addresses: they abort, or wait for ever."""
    left = addresses_left()
    if left is not None and left < LEAST_ADDRESSES:
        raise errors.OptionError(
            f"the shell leaves {left / 2**20:.0f} MB of addresses (ulimit -v), and the libraries and what they compile "
            f"take more; allow {LEAST_ADDRESSES // 2**20 + 256} MB, or limit the memory by a container"
        )


class Group(TyperGroup):
    """The commands; a command line that can't be read is one line on stderr and exit code 2, like any other error."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command that is asked for, and end the process."""
        try:
            with _written():  # --help and --version are no commands
                code = super().main(*args, **{**options, "standalone_mode": False})
        except typer.Exit as end:
            code = end.exit_code
        except USAGE_ERROR as error:
            context = getattr(error, "ctx", None)
            help_of = context.command_path if context is not None else "kernsel"
            word = str(getattr(error, "option_name", "")).lstrip("-").replace("-", "_")
            own = f"it is --{OPTIONS[word].replace('_', '-')} here" if word in OPTIONS else instead_of(word)
            what = own or f"{help_of} --help says what there is"
            say(f"error: {error.format_message().rstrip('.')} ({what})")
            sys.exit(2)
        sys.exit(code)


def _stdout_number() -> int:
    return sys.stdout.fileno()


def say(text: str) -> None:
    """Print one line on stderr."""
    typer.echo(f"kernsel: {' '.join(text.split())}", err=True)


def warn(text: str) -> None:
    """Print one line of warning on stderr."""
    say(f"warning: {text}")


class _Printer:
    """Prints the warnings of kernsel in one line, each once, and hands on all others."""

    def __init__(self, other: Callable[..., Any]) -> None:
        self.other = other
        self.seen: set[str] = set()

    def __call__(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, WARNINGS):
            self.other(message, category, filename, lineno, file, line)
        elif str(message) not in self.seen:
            self.seen.add(str(message))
            warn(str(message))


@contextmanager
def prints_aside() -> Iterator[None]:
    """Send to stderr what a plugin prints: stdout is for what the command was asked for."""
    with redirect_stdout(sys.stderr):
        yield


def is_watched() -> bool:
    """Tell whether somebody sees what is printed while a command works."""
    return sys.stderr.isatty()


@contextmanager
def progress(quiet: bool) -> Iterator[Progress | None]:
    """Give a function ``(done, total, text)`` that draws a bar on stderr, or None where nobody would see it."""
    if quiet or not is_watched():
        with prints_aside():
            yield None
        return
    with prints_aside(), typer.progressbar(length=1, file=sys.stderr, show_pos=True) as bar:

        def report(done: int, total: int, text: str) -> None:
            bar.length, bar.label = total, text
            bar.update(done - bar.pos)

        yield report
