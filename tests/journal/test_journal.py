"""A run that goes on from its journal ends as one that was never stopped, whatever became of the file."""

import json
import os
import resource
import threading
import time
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import kernsel
import tables
from commandline import run
from kernsel import journal
from kernsel.data import from_arrays
from kernsel.errors import JournalWarning, OptionError
from kernsel.journal import file as journal_file
from kernsel.journal import journaling, remember, run_header
from kernsel.journal.past import read_run
from kernsel.search import board
from kernsel.search.deadline import Deadline
from kernsel.selection.carry_out import encode_arrays
from kernsel.selection.plan import Plan

SLOW = ("ard", "auto", "nested")

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")

X, Y = tables.waves()
DATA = from_arrays(X, Y)
GRID = {"kernel": "gaussian", "folds": 3, "grid": {"tau": [0.5, 1.0, 2.0], "lambda": [1e-3, 1e-2]}}


def header(**options):
    return lambda: run_header("test", DATA, options)


def document(result):
    found = json.loads(result.to_json()) if hasattr(result, "to_json") else result.to_dict()
    found.pop("timing", None)
    return found


class Stop(BaseException):
    """A run is stopped."""


class Stopping:
    """Stops a run when it appends a record to its journal, at the one with this number."""

    def __init__(self, monkeypatch, number):
        self.left, self.append = number, journal_file.JournalFile.append
        monkeypatch.setattr(journal_file.JournalFile, "append", lambda file, record: self(file, record))

    def __call__(self, file, record):
        if "key" in record:
            self.left -= 1
            if self.left == 0:
                raise Stop
        self.append(file, record)


def stopped_everywhere(monkeypatch, tmp_path, call, most=8):
    """Give the documents of runs that were stopped at some of their steps and then went on."""
    path = tmp_path / "whole.journal"
    plain = document(call(None))
    assert document(call(path)) == plain
    steps = sum(b'"key"' in line for line in path.read_bytes().splitlines())
    assert steps > 1
    yield plain
    for number in np.unique(np.linspace(1, steps, most).astype(int)):
        place = tmp_path / f"{number}.journal"
        with monkeypatch.context() as patch:
            Stopping(patch, number)
            with pytest.raises(Stop):
                call(place)
        yield document(call(place))


WAYS = {
    "grid": lambda path: kernsel.select(X, Y, journal=path, **GRID),
    "halving": lambda path: kernsel.select(X, Y, journal=path, **GRID | {"rank": 20, "search": "halving"}),
    "compass": lambda path: kernsel.select(X, Y, journal=path, refine="compass", **GRID),
    "simplex": lambda path: kernsel.select(X, Y, journal=path, refine="simplex", **GRID),
    "gradient": lambda path: kernsel.select(X, Y, journal=path, refine="gradient", criterion="cv", **GRID),
    "smooth": lambda path: kernsel.select(X, Y, journal=path, learner="svr", **GRID),
    "repeats": lambda path: kernsel.select(X, Y, journal=path, repeats=2, metric="r2", **GRID),
    "eta": lambda path: kernsel.select(X, Y, journal=path, criterion="rks", eta="cv", **GRID),
    "nested": lambda path: kernsel.nested(X, Y, journal=path, outer=3, **GRID),
    "ard": lambda path: kernsel.select(X, Y, journal=path, kernel="ard", folds=3),
    "auto": lambda path: kernsel.select(X, Y, journal=path, folds=3),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_run_goes_on_and_ends_as_if_never_stopped(monkeypatch, tmp_path, way):
    plain, *others = stopped_everywhere(monkeypatch, tmp_path, WAYS[way], 4 if way in SLOW else 8)
    assert len(others) > 1
    assert all(other == plain for other in others)


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    path = tmp_path / "j"
    kernsel.select(X, Y, journal=path, **GRID)
    monkeypatch.setattr(board, "make_path", None)
    with pytest.raises(TypeError, match="NoneType"):
        kernsel.select(X, Y, **GRID)
    plan = Plan(**GRID)
    with journaling(path, lambda: run_header("select", encode_arrays(X, Y, plan), plan.options)) as found:
        assert found.known > 2


def test_the_time_of_a_run_that_goes_on_is_that_of_all_its_runs(tmp_path):
    path = tmp_path / "j"
    assert "before" not in kernsel.select(X, Y, journal=path, **GRID).timing
    header, _, *steps, _ = (journal_file.record_of(line) for line in path.read_bytes().splitlines(keepends=True))
    at = "2026-11-29T{}+00:00".format
    legs = [{"begin": at("10:00:00")}, *({**step, "time": at("10:00:30")} for step in steps[:2])]
    legs += [{"begin": at("23:00:00")}, *({**step, "time": at("23:00:12")} for step in steps[2:])]
    path.write_bytes(b"".join(map(journal_file.line_of, [header, *legs])))
    result = kernsel.select(X, Y, journal=path, **GRID)
    assert result.timing["before"] == 42
    assert 42 < result.timing["total"] < 142
    assert ", 42 s of it before this run" in result.summary()


def test_a_time_is_that_of_all_runs(tmp_path, monkeypatch):
    """Of 100 s an earlier run took 30, and another one 12; of the 40 s of a refinement 12."""
    path, found = tmp_path / "j", []
    options = {**GRID, "refine": "compass", "budget": "40s", "time": "100s", "journal": path}
    within = Deadline.within_left.__func__
    monkeypatch.setattr(
        Deadline, "within_left", classmethod(lambda cls, *given: found.append(given) or within(cls, *given))
    )
    kernsel.select(X, Y, **options)
    assert found == [(100, 0), (40, 0)]
    header, _, *steps, _ = (journal_file.record_of(line) for line in path.read_bytes().splitlines(keepends=True))
    number = [step["stage"] for step in steps].index("refining")
    at = "2026-11-29T{}+00:00".format
    steps[number]["outcome"] = 30.0
    legs = [{"begin": at("10:00:00")}, *({**step, "time": at("10:00:30")} for step in steps[: number + 1])]
    legs += [{"begin": at("23:00:00")}, *({**step, "time": at("23:00:12")} for step in steps[number + 1 :])]
    path.write_bytes(b"".join(map(journal_file.line_of, [header, *legs])))
    found.clear()
    result = kernsel.select(X, Y, **options)
    assert result.timing["before"] == 42
    assert found == [(100, 42), (40, 12)]


def test_steps_are_told_apart_by_what_they_are_in_and_how_often_they_were(tmp_path):
    def steps():
        calls = iter(range(100))
        first = [remember("a", (1,), lambda: next(calls)) for _ in range(2)]
        outer = remember("b", (), lambda: [remember("a", (1,), lambda: next(calls)) for _ in range(2)])
        return [*first, *outer, remember("a", (2,), lambda: next(calls))]

    with journaling(tmp_path / "j", header()):
        assert steps() == [0, 1, 2, 3, 4]
    with journaling(tmp_path / "j", header()) as found:
        assert found.known == 6
        calls = steps()
    assert calls == [0, 1, 2, 3, 4]


def test_steps_in_other_threads_are_kept_too(tmp_path, use_threads):
    from kernsel.numerics.runtime import threads

    use_threads(2)
    for _ in range(2):
        with journaling(tmp_path / "j", header()) as found:
            done = list(threads.share_each(lambda i: remember("a", (i,), lambda: i), list(range(5))))
        assert done == [0, 1, 2, 3, 4]
    assert found.known == 5


@pytest.fixture
def kept(tmp_path):
    """A journal of three steps."""
    path = tmp_path / "kept.journal"
    with journaling(path, header(a=1)):
        for i in range(3):
            remember("step", (i,), lambda i=i: i / 7)
    return path


def replay(path, **options):
    """Return what three steps give, and how many of them were computed."""
    computed = []

    def compute(i):
        computed.append(i)
        return i / 7

    with journaling(path, header(**options or {"a": 1})):
        found = [remember("step", (i,), lambda i=i: compute(i)) for i in range(3)]
    assert found == [0.0, 1 / 7, 2 / 7]
    return computed


@pytest.mark.parametrize("cut", [1, 2, 10, 60])
def test_a_torn_end_is_cut_off(kept, cut):
    lines = kept.read_bytes().splitlines(keepends=True)
    kept.write_bytes(b"".join(lines[:5])[:-cut])
    assert replay(kept) == [2]
    assert replay(kept) == []
    assert all(journal_file.record_of(line) for line in kept.read_bytes().splitlines(keepends=True))


def is_read_or_refused(path):
    """What is read of a journal is right (``replay`` looks), or it is refused as a whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JournalWarning)
        try:
            replay(path)
        except OptionError as error:
            return "no journal" in str(error)
    return True


def test_whatever_is_lost_of_a_file_nothing_wrong_is_read(kept):
    whole = kept.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.choice(len(whole), 60, replace=False):
        kept.write_bytes(whole[:place])
        assert is_read_or_refused(kept)
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(rng.integers(8))
        kept.write_bytes(flipped)
        assert is_read_or_refused(kept)


def test_a_damaged_line_is_said_and_computed_anew(kept):
    lines = kept.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b"step", b"stop")
    kept.write_bytes(b"".join(lines))
    with pytest.warns(JournalWarning, match="1 lines of the journal .* are damaged; what they held is computed anew"):
        assert replay(kept) == [1]


def test_another_option_is_refused_by_name(kept):
    with pytest.raises(OptionError, match=r"other options \(a: 1, now 2\); give what it was begun with, remove it, or"):
        replay(kept, a=2)
    with pytest.raises(OptionError, match=r"\(b: None, now 0\)"):
        replay(kept, a=1, b=0)
    with pytest.raises(OptionError, match=r"\(b0: .*; b3: None, now 0; and 26 more\)"):
        replay(kept, a=1, **{f"b{index}": 0 for index in range(30)})


def test_many_options_do_not_hide_where_a_run_stands(tmp_path):
    replay(tmp_path / "many", **{f"option{index}": "a long value" for index in range(50)})
    assert "\n  options: 50 (--json prints them)\n" in read_run(tmp_path / "many").summary()


def test_other_data_are_refused(kept):
    other = from_arrays(X, Y + 1e-12)
    with (
        pytest.raises(OptionError, match="is of other data"),
        journaling(kept, lambda: run_header("test", other, {"a": 1})),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("VERSION", "is of version 1 of the format, and this is 'new'"), ("__version__", "of kernsel, and this is 'new'")],
)
def test_another_version_is_refused(kept, monkeypatch, name, pattern):
    monkeypatch.setattr(journal_file, name, "new")
    with pytest.raises(OptionError, match=pattern.replace("'new'", "new")):
        replay(kept)


def test_what_is_no_journal_is_refused(tmp_path):
    (tmp_path / "other").write_text("a,b\n1,2\n")
    for path, pattern in [(tmp_path / "other", "no journal"), (tmp_path, "folder"), (tmp_path / "no/j", "no folder")]:
        with pytest.raises(OptionError, match=pattern):
            replay(path)
    with pytest.raises(OptionError, match="is no file"):
        replay("/dev/full")
    assert (tmp_path / "other").read_text() == "a,b\n1,2\n"


def test_a_journal_is_of_one_run_at_a_time(kept):
    with journaling(kept, header(a=1)):
        found = []

        def other():
            try:
                with journaling(kept, header(a=1)):
                    pass
            except OptionError as error:
                found.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert f"in use by another run (process {os.getpid()})" in found[0]
    assert replay(kept) == []


def test_of_blocks_in_blocks_the_outermost_counts(tmp_path):
    with journaling(tmp_path / "a", header()) as outer, journaling(tmp_path / "b", header()) as inner:
        assert inner is outer
    assert not (tmp_path / "b").exists()


def test_a_short_run_leaves_no_file_and_a_long_one_has_all(tmp_path, monkeypatch):
    path = tmp_path / "j"
    with journaling(path, header(), delay=60.0, keep=False):
        remember("step", (0,), lambda: 0)
    assert not path.exists()
    with journaling(path, header(), delay=0.05):
        remember("step", (0,), lambda: 0)
        assert not path.exists()
        time.sleep(0.06)
        remember("step", (1,), lambda: 1)
        assert path.read_bytes().count(b'"key"') == 2
    with journaling(path, header(), delay=60.0, keep=False) as found:  # what is there is gone on from at once
        assert found.known == 2
    assert not path.exists()


@contextmanager
def files_of_at_most(size):
    """A limit on the size of files stands for the end of the disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [0, 300, 3000])
def test_a_full_disk_is_said_once_and_the_run_goes_on(tmp_path, size):
    path = tmp_path / "j"
    plain = document(kernsel.select(X, Y, **GRID))
    said = "can't be written .*; the run goes on, and keeps nothing from here on"
    with files_of_at_most(size), pytest.warns(JournalWarning, match=said) as caught:
        found = document(kernsel.select(X, Y, journal=path, **GRID))
    assert found == plain
    assert sum(each.category is JournalWarning for each in caught) == 1
    assert path.stat().st_size <= size
    if size == 3000:  # what is whole of it is gone on from
        assert document(kernsel.select(X, Y, journal=path, **GRID)) == plain


def test_a_folder_that_cannot_be_written_is_said_before_the_work(tmp_path, monkeypatch):
    table = tmp_path / "t.csv"
    table.write_text("a,y\n" + "".join(f"{i},{i % 3}\n" for i in range(30)))
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # root may write everywhere
    result = run("select", table, "--journal", tmp_path / "j", code=2)
    assert result.stderr == f"kernsel: error: can't write {tmp_path / 'j'}: permission denied; choose another place\n"


def test_a_kernel_that_is_a_function_is_computed_anew(tmp_path):
    def k(A, B):
        return A @ B.T + 1.0

    first = document(kernsel.select(X, Y, kernel=k, folds=3, journal=tmp_path / "j"))
    assert document(kernsel.select(X, Y, kernel=k, folds=3, journal=tmp_path / "j")) == first


def test_an_interrupt_says_what_is_known_and_how_to_go_on(tmp_path):
    path = tmp_path / "j"

    def about(_):
        return {"scores": [(0.1, 0.5, None), (0.2, 0.25, None), (0.3, 0.0, "failed")], "kernel": "linear",
                "learner": "krr", "criterion": "cv", "board": "9 rows", "parameters": {}}  # fmt: skip

    def interrupted(path):
        with journaling(path, header()):
            if path is not None:
                remember("scored", (1,), lambda: 1, about)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted(path)
    assert caught.value.__notes__ == [
        "best so far, not verified: krr on linear, lambda = 0.2 (cv 0.25), of 3 candidates",
        f"3 candidates are kept in {path}: run the same command again, and it goes on from there",
    ]
    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted(None)
    assert not hasattr(caught.value, "__notes__")


def test_the_standing_of_a_search_is_that_of_its_last_board():
    standing = journal.Standing()
    shared = {"kernel": "linear", "learner": "krr", "criterion": "cv"}
    for depth, rows, score in [(0, "40 rows", 0.1), (0, "90 rows", 0.3), (1, "90 rows", 0.2), (0, "90 rows", 0.4)]:
        about = {**shared, "board": rows, "scores": [(1.0, score, None)]}
        standing.add({"stage": "scored", "depth": depth, "about": about})
    assert standing.best == "krr on linear, lambda = 1 (cv 0.3)"
    assert standing.candidates == 4
