"""A command that is stopped, in whatever way: what is written is whole, and the same command goes on."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from kernsel.model.model import load

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals"),
    pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning"),
]

KERNSEL = [sys.executable, "-m", "kernsel"]


@pytest.fixture
def folder(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    rows = np.column_stack([X, y])
    (tmp_path / "t.csv").write_text("a,b,c,y\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return tmp_path


def start(folder, *args):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*KERNSEL, *args], cwd=folder, text=True, **pipes)


def wait_for(process, path, count):
    """Wait until a journal holds so many steps, or the process has ended."""
    while process.poll() is None and not (path.exists() and path.read_bytes().count(b'"key"') >= count):
        time.sleep(0.01)


def result(path):
    document = json.loads(path.read_text())
    document.pop("timing")
    return document


SELECT = ["select", "t.csv", "--learner", "svr", "--kernel", "gaussian", "--folds", "3", "--json", "--quiet"]
SELECT += ["--output", "r.json", "--model", "m.npz"]


def test_ten_kills_and_the_result_is_that_of_a_run_that_was_never_stopped(folder):
    begun = time.monotonic()
    start(folder, *SELECT, "--journal", "none").communicate()
    seconds, whole = time.monotonic() - begun, result(folder / "r.json")
    for name in ("r.json", "m.npz"):
        (folder / name).unlink()
    draw, steps = random.Random(0), 0
    for _ in range(10):
        process = start(folder, *SELECT, "--journal", "j")
        try:
            process.wait(draw.uniform(0.0, 1.2 * seconds))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        if (folder / "r.json").exists():
            assert result(folder / "r.json") == whole
        if (folder / "m.npz").exists():
            load(folder / "m.npz")
        if (folder / "j").exists():
            now = (folder / "j").read_bytes().count(b'"key"')
            assert now >= steps - 1  # the last line may have been torn
            steps = now
    done = start(folder, *SELECT, "--journal", "j")
    done.communicate()
    assert done.returncode == 0
    assert result(folder / "r.json") == whole


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_says_the_best_so_far_and_how_to_go_on(folder, number, code):
    process = start(folder, *SELECT, "--journal", "j")
    wait_for(process, folder / "j", 2)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert out == ""
    assert err.startswith("kernsel: interrupted; best so far, not verified: svr on gaussian(tau=")
    assert err.endswith("candidates are kept in j: run the same command again, and it goes on from there\n")
    assert err.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == ["j", "t.csv"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_in_the_first_moments_is_one_line(folder, number):
    """Python itself takes a moment until it runs anything of ours."""
    for seconds in np.linspace(0.1, 1.5, 8):
        process = start(folder, *SELECT)
        time.sleep(seconds)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        if process.returncode == -signal.SIGTERM or "site" in err or "runpy" in err:
            continue  # it was Python
        assert err == "kernsel: interrupted\n" or err.startswith("kernsel: interrupted; best so far")
        assert process.returncode == 128 + number


def test_the_process_that_compiles_ahead_ends_with_the_one_that_is_killed(tmp_path):
    code = (
        "from kernsel.numerics.runtime import ahead; ahead.allowed = True; "
        "from kernsel.numerics.square import heldout; ahead.compile_ahead(*heldout.LOOPS); "
        "print(ahead._second.process.pid, flush=True); import time; time.sleep(60)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
    child = int(process.stdout.readline())
    os.kill(child, 0)
    process.kill()
    process.communicate()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            if "\nState:\tZ" in Path(f"/proc/{child}/status").read_text():
                break
        except OSError:
            break
        time.sleep(0.05)
    else:
        raise AssertionError(f"process {child} is left")


def test_what_does_not_end_is_ended(tmp_path):
    """The exception is lost, as in a callback of a library: the process ends all the same."""
    code = """
import os, signal, time
from kernsel.system import interrupts
interrupts.PATIENCE = 0.2
interrupts.end_at_once()
with interrupts.raised():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)
    except KeyboardInterrupt:
        pass
    time.sleep(30)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stderr) == (143, "kernsel: interrupted\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_that_a_library_makes_another_error_of(number, code):
    """As the modules of Pandas, SciPy or LLVM do where they are being imported."""
    call = (
        "import os, sys, time\nimport typer\nfrom kernsel.system import interrupts\nfrom kernsel.cli import console\n"
        "interrupts.end_at_once()\n"
        "try:\n"
        "    with console.guarded():\n"
        "        try:\n"
        f"            os.kill(os.getpid(), {int(number)}); time.sleep(10)\n"
        "        except KeyboardInterrupt:\n"
        "            raise ImportError('initialization failed') from None\n"
        "except typer.Exit as end:\n"
        "    sys.exit(end.exit_code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", call],
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, "kernsel: interrupted\n")


def test_a_stop_that_a_library_drops_is_raised_at_the_next_kernel():
    call = (
        "import os, signal, sys, time\nimport numpy as np\nimport typer\nimport kernsel\n"
        "from kernsel.system import interrupts\nfrom kernsel.cli import console\n"
        "interrupts.end_at_once()\n"
        "X = np.random.default_rng(0).normal(size=(30, 2))\n"
        "try:\n"
        "    with console.guarded():\n"
        "        try:\n"
        "            os.kill(os.getpid(), signal.SIGTERM); time.sleep(10)\n"
        "        except BaseException:\n"
        "            pass\n"
        "        kernsel.select(X, X[:, 0], kernel='linear', folds=3)\n"
        "except typer.Exit as end:\n"
        "    sys.exit(end.exit_code)\n"
    )
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "kernsel: interrupted\n")
