"""The progress bar, and where it must not be."""

from __future__ import annotations

import io
import os
import warnings

import pytest

from kernsel.cli import console
from kernsel.data.files import atomic_write, check_writable
from kernsel.errors import OptionError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_on_a_terminal_only(monkeypatch, capsys):
    with console.progress(quiet=False) as report:
        assert report is None
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with console.progress(quiet=True) as report:
        assert report is None
    with console.progress(quiet=False) as report:
        report(1, 4, "gaussian")
        report(3, 8, "gaussian")  # an extended grid has more cells
        report(8, 8, "verifying")
    assert "8/8" in screen.getvalue()
    assert "verifying" in screen.getvalue()
    assert capsys.readouterr().out == ""


def test_other_warnings_are_handed_on():
    with pytest.warns(RuntimeWarning, match="of another library"), console.guarded():
        warnings.warn("of another library", RuntimeWarning, stacklevel=1)


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "f"
    path.write_text("old")

    def full(stream):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OptionError, match="can't write .*: No space left on device"):
        atomic_write(path, full)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["f"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    atomic_write(tmp_path / "link", lambda stream: stream.write(b"new"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.skipif(os.name != "posix", reason="devices are files there")
def test_a_device_is_written_straight():
    check_writable("/dev/null")
    atomic_write("/dev/null", lambda stream: stream.write(b"new"))
    assert not os.path.isfile("/dev/null")


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OptionError, match="permission denied; choose another place"):
        check_writable(tmp_path / "f")
