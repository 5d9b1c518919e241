"""What a selection of many rows will take, said before it, and what a time that is given leaves of it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from commandline import run
from kernsel.data import from_arrays
from kernsel.search.deadline import Deadline, limited_time
from kernsel.selection import large, limits, work
from kernsel.selection.plan import Plan

N, FEW = 420, 60
LOW = limits.Sizes(full=200, few=FEW, scored=10, finite=5)
NAMED = {"kernel": ["gaussian", "exponential"], "folds": 4}


def rough(n=N):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.abs(np.sin(4 * X[:, 0])) + np.sign(X[:, 1]) + 0.1 * rng.normal(size=n)


def set_rates(monkeypatch, rates):
    for module in (limits, work):
        monkeypatch.setattr(module, "machine_rates", lambda: rates)


@pytest.fixture
def known(monkeypatch):
    """The rates of a machine that is known."""
    set_rates(monkeypatch, limits.RATES)


def test_few_rows_and_other_losses_are_told_nothing(known):
    assert work.foretell(from_arrays(*rough(150)), Plan(), LOW) is None
    assert work.foretell(from_arrays(*rough()), Plan(learner="svr"), LOW) is None


def test_what_is_foretold_is_that_of_each_effort(known):
    data = from_arrays(*rough())
    normal = work.foretell(data, Plan(), LOW)
    assert normal.startswith("work: about 8 seconds, 0.4 GB for the whole kernel of 420 rows; ")
    assert "; --effort thorough: about 25 seconds" in normal
    quick = work.foretell(data, Plan(effort="quick"), LOW)
    assert quick.startswith("work: a low rank is taken; the whole kernel of 420 rows takes about 1 second")
    assert "--effort normal: about 8 seconds" in quick
    assert work.foretell(data, Plan(time="5min"), LOW).startswith("work (5min given): about 8 seconds")


def test_a_faster_machine_is_told_less(known, monkeypatch):
    rates = replace(limits.RATES, products64=10 * limits.RATES.products64)
    set_rates(monkeypatch, rates)
    assert work.foretell(from_arrays(*rough()), Plan(), LOW).startswith("work: about 1 second")


def affordable(data, within, **options):
    with limited_time(Deadline.within(within)):
        return work.affordable(data, Plan(**options), LOW)


def test_effort_comes_down_to_what_there_is_time_for(known):
    data = from_arrays(*rough())
    found, notes = affordable(data, 20.0, effort="thorough")
    assert found.effort == "normal"
    assert notes == ["time: effort normal, for the search of thorough takes about 25 seconds"]
    assert affordable(data, 2.0, effort="thorough")[0].effort == "quick"
    for within, options in [(20.0, {"kernel": "gaussian"}), (1e3, {}), (math.inf, {}), (2.0, {"effort": "quick"})]:
        options = {"effort": "thorough", **options}
        found, notes = affordable(data, within, **options)
        assert (found.effort, notes) == (options["effort"], [])


def test_where_the_whole_kernel_has_no_time_a_low_rank_is_taken_and_that_is_said(known, monkeypatch):
    data, plan = from_arrays(*rough()), Plan(**NAMED)
    assert work.whole_left_out(data, plan, LOW) == []
    set_rates(monkeypatch, replace(limits.RATES, products32=1e3, products64=1e3))
    with limited_time(Deadline.within(20.0)):
        assert not limits.fits_whole(data, plan)
        (note,) = work.whole_left_out(data, plan, LOW)
    assert "the whole kernel of 420 rows is not within the time that is given" in note


def choose(data, within):
    with limited_time(Deadline.within(within)):
        return large.select_large(data, Plan(**NAMED), sizes=LOW)


def test_with_time_enough_the_choice_is_that_of_a_climb_to_the_end(known):
    data = from_arrays(*rough(), standardize=True)
    free, limited = (choose(data, within) for within in (math.inf, 3600.0))
    assert limited.best.key == free.best.key
    assert [step["rows"] for step in limited.data["climb"]] == [step["rows"] for step in free.data["climb"]]


def test_the_climb_ends_with_the_time_and_says_what_the_next_doubling_would_take(known, monkeypatch):
    data = from_arrays(*rough(), standardize=True)
    monkeypatch.setattr(large.Ladder, "cost", lambda self, n, rates: 1e4)
    result = choose(data, 3600.0)
    assert [step["rows"] for step in result.data["climb"]] == [FEW]
    note = next(note for note in result.data["notes"] if note.startswith("rows: chosen on"))
    assert "120 rows would take about 8.3 hours more, which is not in the time that is left" in note


def test_the_command_says_the_work_before_it(known, tmp_path):
    path, few = tmp_path / "rough.csv", ["--kernel", "gaussian", "--effort", "quick", "--folds", "2", "--time", "1s"]
    np.savetxt(path, np.column_stack(rough(2100)), delimiter=",", header="a,b,y", comments="")
    assert "kernsel: work (1s given): a low rank is taken" in run("select", path, *few).stderr
    assert "work" not in run("select", path, *few, "--quiet").stderr
