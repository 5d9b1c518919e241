"""Every way to choose among the same 496 candidates, on the same rows and folds, in one run.

    python benchmarks/rivals.py [--learners krr svm svr] [--methods kernsel liquidSVM …] [--rows 2000] [--cells 12]

31 widths x 16 lambda (the grid of FBIF18), 10 folds (blocks), as many rows to test on. Each method has a process of its
own. Time is the wall clock of the selection alone, without imports and compilation; a method that would take minutes is
timed on some cells from all over the grid and multiplied. Memory is the growth of the peak resident set since the
imports, summed over worker processes.

What counts is how good the choice is. *Exact CV* is the exact 10-fold value of the chosen candidate, full rank, over
the lowest one of the grid, in two measures: the learner's loss (squared error; kernsel's Huber hinge, h = 0.05;
its Huberised epsilon-insensitive loss) and the error that people look at (RMSE, share misclassified). The table of all
exact values is by the closed form in plain NumPy for krr and by kernsel's ``cv`` in full for the others; it is kept in
the folder for temporary files. scikit-learn's SVC and SVR have a bias and tune by accuracy and R².
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LEARNERS = ("krr", "svm", "svr")


def exact_table(learner: str, n: int) -> Path:
    """Return where the exact losses and errors of the whole grid are kept."""
    return Path(tempfile.gettempdir()) / f"kernsel-benchmarks-exact-{learner}-{n}.npz"


def peaks() -> list[float]:
    """Return the peak resident set of this process and of each of its workers, in MiB."""
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    pids = [os.getpid(), *(int(pid) for file in children for pid in file.read_text().split())]
    found = []
    for pid in pids:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        found += [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")]
    return found


def child(learner: str, method: str, n: int, repeat: int, cells: int) -> dict[str, object]:
    """Run one method in this process."""
    import numpy as np
    from common import CELLS, make_task
    from rival_methods import METHODS

    from kernsel.search.axes import PAPER_LAM, PAPER_TAU

    task = make_task(learner, n)
    base = peaks()[0]
    outcome = METHODS[method][1](task, repeat, cells)
    memory = sum(max(0.0, peak - base) for peak in peaks())
    exact = np.load(exact_table(learner, n))
    loss, error = exact["loss"], exact["error"]
    own = outcome.choice
    choice = own if own is not None else CELLS[int(np.argmin(error.ravel()))]
    at = np.searchsorted(PAPER_TAU, choice[0] * 0.99), np.searchsorted(PAPER_LAM, choice[1] * 0.99)
    return {
        "seconds": outcome.seconds,
        "spread": outcome.spread,
        "extent": outcome.extent,
        "memory": memory,
        "choice": choice,
        "read off": own is None,
        "loss": float(loss[at] / loss.min()),
        "error": float(error[at] / error.min()),
        "test": outcome.error(choice) if callable(outcome.error) else outcome.error,
    }


def prepare(learner: str, n: int) -> None:
    """Compute the exact losses and errors of the whole grid, and keep them."""
    import numpy as np
    from common import CELLS, cell, make_task, select
    from rival_methods import exact_ridge
    from threadpoolctl import threadpool_limits

    from kernsel.search.axes import PAPER_TAU

    task = make_task(learner, n)
    if learner == "krr":
        with threadpool_limits(1):  # many small products; it isn't timed, and others may use the machine
            loss = exact_ridge(task)
        error = np.sqrt(loss)
    else:
        _, selection = select(task, criterion="cv", rank="full", verify=0)
        found = {cell(candidate): candidate for candidate in selection.candidates}
        shape = (PAPER_TAU.size, -1)
        loss = np.array([found[each].score for each in CELLS]).reshape(shape)
        error = np.array([found[each].error for each in CELLS]).reshape(shape)
    np.savez(exact_table(learner, n), loss=loss, error=error)


def run(limit: float | None, *arguments: str) -> tuple[str, str]:
    """Run this script in a process of its own; return what it printed, and the last line of what went wrong."""
    try:
        done = subprocess.run(
            [sys.executable, __file__, *arguments], capture_output=True, text=True, check=False, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return "", f"stopped after {limit:.0f} s"
    if done.returncode == 0:
        return done.stdout, ""
    return "", (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]


def report(learner: str, methods: list[str], args: argparse.Namespace) -> None:
    """Print the table of one learner."""
    from common import table

    sizes = ["--rows", str(args.rows), "--repeat", str(args.repeat), "--cells", str(args.cells)]
    if not exact_table(learner, args.rows).exists():
        start = time.perf_counter()
        _, wrong = run(None, "--learners", learner, "--prepare", *sizes)
        if wrong:
            raise SystemExit(f"the exact table of {learner} failed: {wrong}")
        print(f"exact table of {learner}: {time.perf_counter() - start:.0f} s", flush=True)
    found = {}
    for method in methods:
        text, wrong = run(args.limit, "--learners", learner, "--child", method, *sizes)
        found[method] = json.loads(text.splitlines()[-1]) if text else wrong
        print(f"# {learner}, {method}: {found[method]}", file=sys.stderr, flush=True)
    ours = found.get("kernsel")
    lines = []
    for method, each in found.items():
        if isinstance(each, str):
            lines.append([method, f"not run: {each}", *[""] * 8])
            continue
        tau, lam = each["choice"]
        ratio = "" if not isinstance(ours, dict) else f"{each['seconds'] / ours['seconds']:.3g}"
        memory = "" if not isinstance(ours, dict) else f"{each['memory'] / ours['memory']:.2g}"
        lines.append(
            [
                method,
                f"{each['seconds']:.3g} s" + (f" ({each['spread']})" if each["spread"] else ""),
                each["extent"],
                ratio,
                f"{each['memory']:.0f} MiB",
                memory,
                f"τ={tau:.3g}, λ={lam:.2g}" + " (exact table)" * each["read off"],
                f"{each['loss']:.3f}",
                f"{each['error']:.3f}",
                f"{each['test']:.4f}",
            ]
        )
    print(f"\n{learner}, n = {args.rows}\n")
    head = ["method", "time", "timed", "time / kernsel", "peak memory", "memory / kernsel", "choice"]
    print(table([*head, "exact CV loss / best", "exact CV error / best", "test error"], lines), flush=True)


def main() -> None:
    """Print one table a learner."""
    from common import machine
    from rival_methods import METHODS

    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--learners", nargs="+", default=LEARNERS, choices=LEARNERS)
    cli.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS), metavar="METHOD")
    cli.add_argument("--rows", type=int, default=2000)
    cli.add_argument("--repeat", type=int, default=3, help="runs of kernsel, of which the median counts")
    cli.add_argument("--cells", type=int, default=12, help="cells that slow rivals are timed on")
    cli.add_argument("--limit", type=float, default=1800, help="seconds after which a method is stopped")
    cli.add_argument("--child", help=argparse.SUPPRESS)
    cli.add_argument("--prepare", action="store_true", help=argparse.SUPPRESS)
    args = cli.parse_args()
    if args.prepare:
        prepare(args.learners[0], args.rows)
    elif args.child:
        print(json.dumps(child(args.learners[0], args.child, args.rows, args.repeat, args.cells)))
    else:
        print(machine(), flush=True)
        for learner in args.learners:
            report(learner, [name for name in args.methods if learner in METHODS[name][0]], args)


if __name__ == "__main__":
    main()
