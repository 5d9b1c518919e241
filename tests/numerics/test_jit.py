"""The compilation and its cache on disk, each case in a process of its own."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from kernsel.numerics.runtime import cache, compiling, drafts, jit, threads
from kernsel.numerics.smooth import newton

LOOPS = """
from kernsel.numerics.runtime import jit

@jit.jit(jit.f8(jit.f8))
def twice(x):
    return 2 * x

@jit.jit(jit.f8(jit.f8))
def thrice(x):
    return 3 * x
"""
RUN = """
import sys, warnings
warnings.simplefilter("always")
sys.path.insert(0, sys.argv[1])
import loops
from kernsel.numerics.runtime import compiling
compiling.announce = lambda line: print("announced:", line)
with warnings.catch_warnings(record=True) as caught:
    print(loops.twice(2.0), loops.thrice(2.0))
for warning in caught:
    print(warning.category.__name__, str(warning.message))
"""


def run(folder, script=RUN, **environment):
    """Run ``RUN``, or another script, in a new process without Numba's variables; returns its lines."""
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        env={**{k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}, **environment},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def folder(tmp_path):
    """A folder with two loops of our own, so that the installed cache stays as it is."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code/loops.py").write_text(LOOPS)
    (tmp_path / "file").touch()  # no folder can be made below a file, not even by root
    return tmp_path / "code"


def kept(place):
    return sorted(path.name.split("-")[0] for path in place.rglob("*.nbi"))


def test_the_first_run_announces_once_and_the_second_loads(folder):
    first, second = run(folder), run(folder)
    assert [line.split()[0] for line in first] == ["announced:", "4.0"]
    assert second == ["4.0 6.0"]
    assert kept(folder / "__pycache__") == ["loops.thrice", "loops.twice"]


def test_the_folder_that_the_user_names_comes_first(folder, tmp_path):
    run(folder, NUMBA_CACHE_DIR=str(tmp_path / "named"))
    assert kept(tmp_path / "named") == ["loops.thrice", "loops.twice"]
    assert not kept(folder)


def test_a_read_only_install_uses_the_cache_folder_of_the_user(folder, tmp_path):
    (folder / "__pycache__").touch()
    environment = {"XDG_CACHE_HOME": str(tmp_path / "user"), "HOME": str(tmp_path)}
    lines = run(folder, **environment)
    assert lines[-1] == "4.0 6.0"
    assert run(folder, **environment) == ["4.0 6.0"]
    assert kept(tmp_path) == ["loops.thrice", "loops.twice"]


def test_no_folder_at_all_is_one_warning(folder, tmp_path):
    (folder / "__pycache__").touch()
    nowhere = str(tmp_path / "file/below")
    lines = run(folder, NUMBA_CACHE_DIR=nowhere, XDG_CACHE_HOME=nowhere, HOME=nowhere)
    assert [line.split()[0] for line in lines] == ["announced:", "4.0", "CompilationWarning"]
    assert "NUMBA_CACHE_DIR" in lines[-1]


@pytest.mark.parametrize(("suffix", "damage"), [("nbi", None), ("nbi", b"foreign"), ("nbc", b""), ("nbc", b"foreign")])
def test_a_damaged_cache_is_written_anew(folder, suffix, damage):
    run(folder)
    (path,) = (folder / "__pycache__").glob(f"loops.twice*.{suffix}")
    path.write_bytes(path.read_bytes()[:100] if damage is None else damage)
    lines = run(folder)
    assert [line.split()[0] for line in lines] == ["announced:", "4.0"]
    assert run(folder) == ["4.0 6.0"]


@pytest.mark.compiled
def test_a_change_of_the_numerics_compiles_again(folder):
    run(folder)
    (index,) = (folder / "__pycache__").glob("loops.twice*.nbi")
    before = index.read_bytes()
    run(folder)
    assert index.read_bytes() == before
    changed = RUN.replace(
        "import loops\n",
        "import loops\nfrom kernsel.numerics.runtime import cache as c\nc._sources = lambda: 'changed'\n",
    )
    run(folder, changed)
    assert index.read_bytes() != before


@pytest.mark.parametrize("name", ["top.py", "square/inner.py", "square/deeper/inner.py"])
def test_a_change_in_any_subfolder_changes_the_key_of_the_cache(tmp_path, name):
    """Functions become part of each other's machine code across folders."""
    (tmp_path / "square/deeper").mkdir(parents=True)
    for each in ("top.py", "square/inner.py", "square/deeper/inner.py"):
        (tmp_path / each).write_text("x = 1\n")
    before = cache.hash_of(tmp_path)
    assert cache.hash_of(tmp_path) == before
    (tmp_path / name).write_text("x = 2\n")
    assert cache.hash_of(tmp_path) != before


def test_the_key_of_the_cache_is_that_of_all_numerics():
    assert cache._sources() == cache.hash_of(Path(jit.__file__).parents[1])
    assert (Path(jit.__file__).parents[1] / "smooth/newton.py").exists()


def test_an_error_in_a_loop_is_not_taken_for_one_of_the_cache(tmp_path):
    code = """
from kernsel.numerics.runtime import jit
@jit.jit(jit.f8(jit.f8))
def wrong(x):
    return undefined_name + x
wrong(1.0)
"""
    (tmp_path / "wrong.py").write_text(code)
    done = subprocess.run([sys.executable, str(tmp_path / "wrong.py")], capture_output=True, text=True, check=False)
    assert "undefined_name" in done.stderr
    assert "CompilationWarning" not in done.stderr


@pytest.mark.compiled
def test_what_is_inlined_has_no_machine_code_of_its_own():
    """It is linked into its callers as it was written; these give the same as the function itself."""

    @jit.inline
    def half(x):
        return 0.5 * x if x > 0.0 else np.nan

    @jit.jit(jit.f8(jit.f8))
    def quarter(x):
        return half(half(x))

    assert quarter(3.0) == 0.75
    assert np.isnan(quarter(-1.0))
    (result,) = half.overloads.values()
    assert isinstance(result.library, drafts.Draft)
    assert not result.library._codegen._engine.is_symbol_defined(result.fndesc.mangled_name)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="page faults are counted as Linux does")
def test_calls_in_one_piece_take_no_new_memory_wherever_they_are():
    """At some depth CPython asks the system for memory at each call of a loop: here at none."""
    from resource import RUSAGE_SELF, getrusage

    def leaf():
        pass

    def faults(depth):
        if depth:
            return faults(depth - 1)
        before = getrusage(RUSAGE_SELF).ru_minflt
        for _ in range(200):
            leaf()
        return getrusage(RUSAGE_SELF).ru_minflt - before

    def deep(most):
        return [faults(depth) for depth in range(most)]

    assert max(compiling.in_one_piece(deep)(most=400)) < 200
    assert compiling.in_one_piece(leaf).__name__ == "leaf"
    with pytest.raises(TypeError, match="unexpected"):
        compiling.in_one_piece(deep)(least=1)


def test_work_is_shared_out_once_and_not_again_by_its_workers(use_threads):
    use_threads(3)
    seen = []
    threads.share(lambda first, step: seen.extend((job, threads.threads()) for job in range(first, 10, step)), 10)
    assert sorted(seen) == [(job, 1) for job in range(10)]
    assert threads.threads() == 3


def test_an_error_in_a_worker_reaches_the_caller(use_threads):
    use_threads(2)

    def work(first, step):
        if first == 1:
            raise ValueError("second")

    with pytest.raises(ValueError, match="second"):
        threads.share(work, 2)
    assert threads.threads() == 2


@pytest.mark.compiled
def test_a_second_process_compiles_what_will_be_needed(tmp_path):
    """It must find the modules of its parent, not what is called kernsel in the current folder."""
    (tmp_path / "kernsel").mkdir()
    (tmp_path / "kernsel" / "__init__.py").write_text("raise ImportError('the wrong one')\n")
    call = (
        f"import sys; sys.path[:] = {sys.path!r}; from kernsel.numerics.runtime import ahead; ahead.allowed = True; "
        "from kernsel.numerics.square import heldout; "
        "ahead.compile_ahead(heldout._folds, heldout.without_products); print(ahead._second.process.wait())"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", call], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "0\n", done.stderr
    assert len(list((tmp_path / "cache").rglob("*.nbi"))) == 2


@pytest.mark.compiled
def test_one_function_is_waited_for_and_not_those_after_it(tmp_path):
    call = (
        f"import sys; sys.path[:] = {sys.path!r}; from kernsel.numerics.runtime import ahead; ahead.allowed = True; "
        "from kernsel.numerics.square import heldout; ahead.compile_ahead(heldout._folds, heldout.without_block); "
        "heldout._folds.code; print(sorted(ahead._second.awaited), ahead._second.process.poll()); "
        "heldout.without_block.code; print(ahead._second.awaited); ahead._second.process.kill(); "
        "ahead._second.awaited.add('x'); ahead._second.wait_for('x'); print(ahead._second.awaited)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", call], env=environment, capture_output=True, text=True, check=False)
    waited = "['kernsel.numerics.square.heldout:without_block'] None"
    assert done.stdout.splitlines() == [waited, "set()", "set()"], done.stderr


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_whole_tasks_are_shared_out_in_order(use_threads, count):
    use_threads(2)
    done = list(threads.share_each(lambda item: (item, threads.threads()), list(range(count))))
    assert [item for item, _ in done] == list(range(count))
    assert all(threads == (1 if count >= 2 else 2) for _, threads in done)
    assert threads.threads() == 2


def test_a_task_that_fails_ends_the_sharing(use_threads):
    use_threads(2)
    with pytest.raises(ZeroDivisionError):
        list(threads.share_each(lambda item: 1 / item, [1, 0, 2]))


def test_what_runs_is_waited_for_when_a_task_fails(use_threads):
    use_threads(2)
    begun, done = threading.Event(), []

    def work(item):
        if item == 0:
            begun.wait(10)
            raise ZeroDivisionError
        begun.set()
        time.sleep(0.1)
        done.append(item)

    with pytest.raises(ZeroDivisionError):
        list(threads.share_each(work, [0, 1]))
    assert done == [1]


def test_a_pointer_has_no_entry_for_python():
    with pytest.raises(TypeError, match="in_kernel is called by compiled loops only"):
        newton.in_kernel()


def test_blas_has_one_thread_until_the_outermost_block_is_left():
    import threadpoolctl

    def numbers():
        return [each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]

    def other():
        with threads.one_blas_thread():
            pass

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        given = numbers()
        with threads.one_blas_thread():
            with threads.one_blas_thread():
                assert set(numbers()) == {1}
            assert set(numbers()) == {1}
            thread = threading.Thread(target=other)  # what a worker leaves is no end of the block here
            thread.start()
            thread.join()
            assert set(numbers()) == {1}
        assert numbers() == given
        with pytest.raises(ZeroDivisionError), threads.one_blas_thread():
            raise ZeroDivisionError
        assert numbers() == given


PLAIN = """
import json
import numpy as np
from kernsel.learners import losses
from kernsel.numerics.runtime import cache
from kernsel.numerics.smooth import heldout, heldout_features, heldout_kernel, newton, objective

rng = np.random.default_rng(0)
X, lams, starts = rng.normal(size=(20, 2)), np.array([0.1, 0.01]), np.array([0, 7, 14, 20])
Z = np.column_stack([X, X**2])
y = np.where(X[:, 0] + 0.5 * rng.normal(size=20) > 0, 1.0, -1.0)[None]
s, loss, found = np.ones(20), losses.HUBER_HINGE, []
for G, problem, update, width in (
    (Z @ Z.T + np.eye(20), newton.in_kernel, heldout_kernel.newton_step, 21),
    (np.column_stack([Z, np.ones(20)]), newton.in_features, heldout_features.newton_step, 5),
):
    x, f, parameters = np.zeros((1, 2, width)), np.zeros((1, 2, 20)), np.array([0.05])
    which, by = np.zeros(1, np.int64), (loss.pointer, parameters)
    newton.solve_paths(problem, G[None], 1, which, y, s[None], lams, *by, True, x, f)
    v, d1, d2 = np.empty(f.shape), np.empty(f.shape), np.empty(f.shape)
    objective.expand(*by, y, s, f, v, d1, d2)
    held = heldout.HeldOut.room(np.zeros((1, 2, 20)), 3)
    stack, fits = heldout.Objective(y, s[None], lams, parameters, 1), heldout.Fit(x, f, d1, d2)
    folds = heldout.Folds.own(starts, np.array([13.0, 13.0, 14.0]), 20.0)
    heldout.update_folds(update, G, np.zeros((0, 0)), stack, loss.pointer, fits, folds, 1, 0.25, held)
    found += [f.tolist(), held.out.tolist(), held.rho.tolist()]
print(json.dumps([cache.COMPILES, found]))
"""


@pytest.mark.compiled
def test_plain_python_gives_what_compiled_loops_give():
    """BLAS is called at the same addresses; sums may be taken in another order."""
    found = []
    for plain in (True, False):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": str(int(plain))}
        done = subprocess.run(
            [sys.executable, "-c", PLAIN], env=environment, capture_output=True, text=True, check=False
        )
        assert not done.stderr
        compiles, values = json.loads(done.stdout)
        assert compiles is not plain
        found.append(np.concatenate([np.ravel(each) for each in values]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10, atol=1e-10)
