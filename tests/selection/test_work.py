"""What a selection of many rows will take, said before it, and what a time that is given leaves of it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from commandline import run
from kernsel import parts as reading
from kernsel.data import from_arrays
from kernsel.search.deadline import Deadline, limited_time
from kernsel.selection import large, limits, work
from kernsel.selection.carry_out import select_dataset
from kernsel.selection.plan import Plan

N, FEW = 420, 60
NAMED = {"kernel": ["gaussian", "exponential"], "folds": 4}


def rough(n=N):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.abs(np.sin(4 * X[:, 0])) + np.sign(X[:, 1]) + 0.1 * rng.normal(size=n)


def set_rates(monkeypatch, rates):
    for module in (limits, work):
        monkeypatch.setattr(module, "machine_rates", lambda: rates)


@pytest.fixture
def low(monkeypatch):
    """Thresholds of a few hundred rows, and the rates of a machine that is known."""
    monkeypatch.setattr(reading, "FULL_RANK_ROWS", 200)
    monkeypatch.setattr(large, "ROWS", FEW)
    monkeypatch.setattr(large, "SCORED", 10)
    monkeypatch.setattr(large, "FINITE", 5)
    set_rates(monkeypatch, limits.RATES)


def test_few_rows_and_other_losses_are_told_nothing(low):
    assert work.foretell(from_arrays(*rough(150)), Plan()) is None
    assert work.foretell(from_arrays(*rough()), Plan(learner="svr")) is None


def test_what_is_foretold_is_that_of_each_effort(low):
    data = from_arrays(*rough())
    assert work.foretell(data, Plan()).startswith("work: about 8 seconds, 0.4 GB for the whole kernel of 420 rows; ")
    assert "; --effort thorough: about 25 seconds" in work.foretell(data, Plan())
    quick = work.foretell(data, Plan(effort="quick"))
    assert quick.startswith("work: a low rank is taken; the whole kernel of 420 rows takes about 1 second")
    assert "--effort normal: about 8 seconds" in quick
    assert work.foretell(data, Plan(time="5min")).startswith("work (5min given): about 8 seconds")


def test_a_faster_machine_is_told_less(low, monkeypatch):
    rates = replace(limits.RATES, products64=10 * limits.RATES.products64)
    set_rates(monkeypatch, rates)
    assert work.foretell(from_arrays(*rough()), Plan()).startswith("work: about 1 second")


def affordable(data, within, **options):
    with limited_time(Deadline.within(within)):
        return work.affordable(data, Plan(**options))


def test_effort_comes_down_to_what_there_is_time_for(low):
    data = from_arrays(*rough())
    found, notes = affordable(data, 20.0, effort="thorough")
    assert found.effort == "normal"
    assert notes == ["time: effort normal, for the search of thorough takes about 25 seconds"]
    assert affordable(data, 2.0, effort="thorough")[0].effort == "quick"
    for within, options in [(20.0, {"kernel": "gaussian"}), (1e3, {}), (math.inf, {}), (2.0, {"effort": "quick"})]:
        options = {"effort": "thorough", **options}
        found, notes = affordable(data, within, **options)
        assert (found.effort, notes) == (options["effort"], [])


def test_where_the_whole_kernel_has_no_time_a_low_rank_is_taken_and_that_is_said(low, monkeypatch):
    data = from_arrays(*rough(), standardize=True)
    rates = replace(limits.RATES, products32=1e3, products64=1e3)
    set_rates(monkeypatch, rates)
    result = select_dataset(data, **NAMED, time="20s")
    assert result.options["rank"] != "whole"
    assert any("the whole kernel of 420 rows is not within the time that is given" in n for n in result.data["notes"])


def test_with_time_enough_the_choice_is_that_of_a_climb_to_the_end(low):
    data = from_arrays(*rough(), standardize=True)
    free, limited = (select_dataset(data, **NAMED, time=time) for time in (None, "1h"))
    assert limited.best.key == free.best.key
    assert [step["rows"] for step in limited.data["climb"]] == [step["rows"] for step in free.data["climb"]]


def test_the_climb_ends_with_the_time_and_says_what_the_next_doubling_would_take(low, monkeypatch):
    data = from_arrays(*rough(), standardize=True)
    monkeypatch.setattr(large._Ladder, "cost", lambda self, n, rates: 1e4)
    result = select_dataset(data, **NAMED, time="1h")
    assert [step["rows"] for step in result.data["climb"]] == [FEW]
    note = next(note for note in result.data["notes"] if note.startswith("whole kernel: "))
    assert "120 rows would take about 8.3 hours more, which is not in the time that is left" in note


def test_the_command_says_the_work_before_it(low, tmp_path):
    path = tmp_path / "rough.csv"
    np.savetxt(path, np.column_stack(rough()), delimiter=",", header="a,b,y", comments="")
    done = run("select", path, "--kernel", "gaussian", "--folds", "4", "--time", "5min")
    assert "kernsel: work (5min given): about" in done.stderr
    assert "work" not in run("select", path, "--kernel", "gaussian", "--folds", "4", "--quiet").stderr
