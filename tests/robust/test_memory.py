"""How much memory there is: of the machine, the shell, the container, and what was asked for."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import kernsel
from kernsel.errors import OptionError, check_memory
from kernsel.parts import read_memory
from kernsel.selection import carry_out
from kernsel.system import memory

MIB = 2**20


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function that makes a machine of 8 GiB whose control groups have these limits, by their places."""
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory, "_machine", lambda: [8192 * MIB])

    def make(groups, **limits):
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc" / "cgroup").write_text(groups)
        for name, text in limits.items():
            file = tmp_path / "groups" / name.replace("__", "/").replace("_max", ".max").replace("_limit", ".limit")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    return make


@pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")  # of a grid that isn't extended
def test_memory_that_runs_out_is_halved_once(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 2))
    seen, real = [], carry_out.run

    def run(*args):
        seen.append(memory.memory_limit())
        if len(seen) <= fails:
            raise MemoryError
        return real(*args)

    monkeypatch.setattr(carry_out, "run", run)
    given = {"kernel": "gaussian(tau=1)", "extend": False, "memory": 900 * MIB}
    fails = 1
    found = kernsel.select(X, X[:, 0], **given)
    assert seen == [900 * MIB, 450 * MIB]
    assert "memory: it ran out, and the search was begun anew within 450 MiB" in found.data["notes"]
    fails = 4
    with pytest.raises(MemoryError):
        kernsel.select(X, X[:, 0], **given)
    assert len(seen) == 4


def test_limits_of_control_groups_of_version_2(machine):
    machine("0::/a/b\n", a__memory_max=f"{512 * MIB}\n", a__b__memory_max="max\n")
    assert memory.memory_limit() == 512 * MIB  # that of a group counts for those in it


def test_limits_of_control_groups_of_version_1(machine):
    machine("5:cpu:/x\n4:memory,hugetlb:/x\n0::/\n", memory__x__memory_limit_in_bytes=f"{256 * MIB}\n")
    assert memory.memory_limit() == 256 * MIB


def test_a_container_sees_its_own_group_as_the_root(machine):
    machine("0::/docker/abc\n", memory_max=f"{128 * MIB}\n")
    assert memory.memory_limit() == 128 * MIB


def test_no_limits_but_the_machine(machine):
    machine("garbage\n0::/\n", memory_max="max\n")
    assert memory.memory_limit() == 8192 * MIB


def test_what_was_asked_for(monkeypatch):
    monkeypatch.setattr(memory, "_asked", [])
    with memory.limited_memory(300 * MIB):
        assert memory.memory_limit() <= 300 * MIB
        with pytest.raises(OptionError, match=r"it needs about 400 MB of memory, and there are 300 MB: do without"):
            check_memory(400 * MIB, "it", "do without")
        with pytest.raises(OptionError, match=r"needs about 40 GB"):
            check_memory(40 * 2**30, "it", "do without")
        check_memory(200 * MIB, "it", "do without")
    check_memory(400 * MIB, "it", "do without")


def test_blocks_that_overlap_leave_no_limit_behind():
    """As those of two threads do: the first one to begin is the first one to end."""
    before = memory.memory_limit()
    first, second = memory.limited_memory(300 * MIB), memory.limited_memory(200 * MIB)
    first.__enter__()
    second.__enter__()
    assert memory.memory_limit() <= 200 * MIB
    first.__exit__(None, None, None)
    assert memory.memory_limit() <= 200 * MIB
    second.__exit__(None, None, None)
    assert memory.memory_limit() == before


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GiB", 2**31),
        ("500 MB", 5 * 10**8),
        ("1.5g", 15 * 10**8),
        (2**30, 2**30),
        ("20000000B", 2 * 10**7),
        (None, None),
    ],
)
def test_sizes_are_read(text, size):
    assert read_memory(text) == size


@pytest.mark.parametrize("text", ["much", "-1GB", "2 GX", True, "1kB"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(OptionError, match="memory"):
        read_memory(text)


def test_a_gram_matrix_that_does_not_fit_gives_way_to_a_low_rank_or_is_refused():
    X = np.random.default_rng(0).normal(size=(900, 2))
    options = {"kernel": "gaussian", "grid": {"tau": [2.0], "lambda": [1e-3]}, "folds": 3, "extend": False}
    assert kernsel.select(X, X[:, 0], **options).options["rank"] is None
    low = kernsel.select(X, X[:, 0], memory="30MB", **options)
    assert low.options["rank"] == 500
    assert low.options["memory"] == "30MB"
    with pytest.raises(OptionError, match=r"the whole Gram matrix of 900 rows needs about 37 MB"):
        kernsel.select(X, X[:, 0], memory="30MB", rank="full", **options)


def limited(mib, *command):
    """Run Python under a limit on its addresses."""
    shell = f'ulimit -v {mib * 1024}; exec "$@"'
    return subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, *command], capture_output=True, text=True, timeout=60
    )


def test_what_is_left_of_the_addresses():
    done = limited(
        700, "-c", "from kernsel.system import memory; print(memory.memory_limit(), memory.addresses_left())"
    )
    limit, left = map(int, done.stdout.split())
    assert 400 * MIB < limit == left < 700 * MIB


def test_too_few_addresses_are_one_line(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n" + "\n".join(f"{i},{i * i}" for i in range(2000)))
    done = limited(1024, "-m", "kernsel", "select", tmp_path / "t.csv", "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "MB of addresses (ulimit -v)" in done.stderr
