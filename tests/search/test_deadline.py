"""A time that is given: how it is written, and what a search does that has none left."""

import json
import math

import pandas as pd
import pytest

import kernsel
import tables
from commandline import run as run_command
from kernsel.data import from_arrays
from kernsel.errors import OptionError
from kernsel.search import deadline
from kernsel.search.deadline import NEVER, Deadline, deadline_in_force, limited_time
from kernsel.selection.carry_out import select_dataset
from kernsel.selection.plan import Plan
from kernsel.selection.run import run

GRID = {"tau": [0.1, 1.0, 10.0], "lambda": [1e-4, 1e-2]}
KEYS = 6


class Clock:
    """A clock that goes on by a second whenever it is looked at."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1.0
        return self.now


@pytest.fixture
def ticking(monkeypatch, use_threads):
    clock = Clock()
    monkeypatch.setattr(deadline, "time", clock)
    use_threads(1)
    return clock


def table(n=60):
    return from_arrays(*tables.waves(n))


def select_within(end, n=60, **options):
    """Select by a clock that goes on by a second whenever it is looked at."""
    with limited_time(Deadline(end)):
        return run(table(n), Plan(**{"kernel": "gaussian", "grid": GRID, "folds": 3, **options}), ["gaussian"])


def note_of(result):
    (note,) = (note for note in result.data["notes"] if note.startswith("time: "))
    return note


@pytest.mark.parametrize(("given", "seconds"), [("90s", 90), ("5min", 300), ("1.5 h", 5400), (20, 20), (0.5, 0.5)])
def test_times(ticking, given, seconds):
    found = Deadline.read(given)
    assert found.end == 1 + seconds
    assert found.is_set
    assert found.left == max(seconds - 1, 0)
    assert found.earlier(0.25).end == found.end - 0.25


@pytest.mark.parametrize(("before", "left"), [(0, 90), (60, 30), (89, 9), (1000, 9)])
def test_what_earlier_runs_took_is_of_the_time(ticking, before, left):
    """But what they found out has to be read: that is a tenth at least."""
    assert Deadline.read("90s", before).end == ticking.now + left


@pytest.mark.parametrize(
    "given", ["5", "5 days", "day", "0s", "", 0, -3, True, math.inf, math.nan, [5], "1e400s", 10**400]
)
def test_times_that_are_none(given):
    with pytest.raises(OptionError, match=r"is no time: give seconds.* \(when names a column of times\)"):
        select_dataset(table(), kernel="gaussian", time=given)


def test_without_a_time_there_is_no_deadline(ticking):
    assert Deadline.read(None) == NEVER
    assert not NEVER.is_set
    assert NEVER.left == NEVER.share(0.5).end == NEVER.earlier(5.0).end == math.inf


def test_a_share_of_the_time_is_of_what_is_left(ticking):
    ticking.now = 99.0
    assert Deadline(200.0).share(0.25).end == pytest.approx(101.0 + 0.25 * 100.0)  # the clock is looked at twice


def test_of_deadlines_in_each_other_the_earliest_counts():
    first, second = Deadline(5.0), Deadline(7.0)
    with limited_time(first):
        with limited_time(second):
            assert deadline_in_force() == first
        with limited_time(Deadline(3.0)):
            assert deadline_in_force() == Deadline(3.0)
        assert deadline_in_force() == first
    assert deadline_in_force() == NEVER


def test_a_search_without_time_scores_some_kernel_and_says_what_it_left_out(ticking):
    result = select_within(0.0, search="grid")
    assert {candidate.kernel.tau for candidate in result.candidates} == {0.1}
    assert result.best.verified is not None
    assert "4 of 6 candidates unseen" in note_of(result)
    assert "depends on the machine" in note_of(result)


def test_more_time_is_more_candidates(ticking):
    # The clock is looked at twice for the share of the search, and before each of three kernels but the first.
    counts = []
    for end in (0.0, 4.0, 1e6):
        ticking.now = 0.0
        counts.append(len(select_within(end, search="grid", extend=False).candidates))
    assert counts == [2, 4, 6]


@pytest.mark.parametrize("search", ["grid", "halving"])
def test_a_search_with_time_enough_finds_what_one_without_a_limit_finds(search):
    given = {"kernel": "gaussian", "grid": GRID, "folds": 3, "search": search, "refine": "compass"}
    free, limited = (select_dataset(table(), **given, time=time) for time in (None, "1h"))
    assert [c.key for c in limited.candidates] == [c.key for c in free.candidates]
    assert [c.score for c in limited.candidates] == [c.score for c in free.candidates]
    assert limited.data["notes"] == free.data["notes"]
    assert (free.options["time"], limited.options["time"]) == (None, "1h")


def test_halving_that_is_cut_off_takes_a_candidate_at_the_representation_in_force(ticking):
    result = select_within(0.0, 300, search="halving", rank=110, grid="auto")
    assert result.best.in_force
    assert "seen at a lower rank only" in note_of(result)


def test_the_grid_is_not_extended_after_the_time(ticking):
    narrow = {"tau": [0.1], "lambda": [1e-4, 1e-3]}
    free, limited = (select_within(end, search="grid", grid=narrow) for end in (1e6, 0.0))
    assert len(free.candidates) > len(limited.candidates) == 2


@pytest.mark.parametrize("method", ["compass", "simplex"])
def test_a_refinement_ends_with_the_time_of_the_selection_as_with_its_own(ticking, method):
    options = {"search": "grid", "refine": method, "extend": False}
    free = select_within(1e6, **options)
    ticking.now = 0.0
    of_both = select_within(20.0, **options)
    for result in (of_both, select_within(1e6, **options, budget="4s")):
        assert KEYS < len(result.candidates) < len(free.candidates)
        assert any(note.startswith("refined") and note.endswith("the time was up") for note in result.data["notes"])


def test_a_search_that_is_cut_off_is_not_refined(ticking):
    result = select_within(0.0, search="grid", refine="compass")
    assert not any(note.startswith("refined") for note in result.data["notes"])
    assert len(result.candidates) == len(GRID["lambda"])


def test_a_run_with_a_time_goes_on_from_its_journal(tmp_path):
    X, y = tables.waves(60)
    options = {"kernel": "gaussian", "grid": GRID, "folds": 3, "search": "grid", "refine": "compass", "extend": False}
    free = kernsel.select(X, y, **options)
    options |= {"journal": tmp_path / "journal", "time": "1h"}
    first = kernsel.select(X, y, **options)
    lines = (tmp_path / "journal").read_bytes().splitlines(keepends=True)
    (tmp_path / "journal").write_bytes(b"".join(lines[: len(lines) // 2]))  # stopped half way
    for again in (first, kernsel.select(X, y, **options)):
        assert [(c.key, c.value) for c in again.candidates] == [(c.key, c.value) for c in free.candidates]
        assert again.data["notes"] == free.data["notes"]
    with pytest.raises(OptionError, match="time"):
        kernsel.select(X, y, **{**options, "time": "2h"})


@pytest.fixture
def dated(tmp_path):
    X, y = tables.waves(60)
    path = tmp_path / "dated.csv"
    days = pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d")
    pd.DataFrame({"day": days, "a": X[:, 0], "b": X[:, 1], "y": y}).to_csv(path, index=False)
    return path


def test_the_command_takes_a_time_and_a_column_of_times(dated, tmp_path):
    given = (
        "--kernel gaussian --folds blocks:3 --when day --drop day --purge 2d --time 10min --nested blocks:3 --output"
    )
    run_command("select", dated, *given.split(), tmp_path / "result.json")
    document = json.loads((tmp_path / "result.json").read_text())
    assert document["options"]["time"] == "10min"
    assert document["options"]["near"] == {"when": "day", "purge": "2d"}
    assert "2d before and after left out" in document["data"]["holdout"]


@pytest.mark.parametrize("given", ["day", "5", "-3s", "5minutes", "1e3s", "inf"])
def test_the_command_says_what_a_time_is(dated, given):
    said = run_command("select", dated, "--time", given, code=2).stderr
    assert f"time {given!r} is no time: give seconds, minutes or hours, such as 90s, 5min or 1h" in said
    assert "when names a column of times" in said
