"""Rows in parts: in this process, on two workers of Dask, and with one of these killed in the middle.

    python benchmarks/workers.py --rows 2000000
    python benchmarks/workers.py --rows 200000 --kill

CPU seconds are those of all processes: workers, scheduler and caller. "start" is all before the first row is read:
imports of the caller, and processes of workers. Results must be equal to the last bit.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

PARTS = 8


def write_parts(folder: Path, n: int) -> None:
    """Write friedman1 of 20 features in so many files."""
    import pandas as pd

    for i in range(PARTS):
        rng = np.random.default_rng(i)
        X = rng.random((n // PARTS, 20))
        y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(20)])
        frame.assign(y=y + rng.normal(size=len(y))).to_parquet(folder / f"part-{i}.parquet")


def used() -> float:
    """CPU seconds of this process, of those that it has started, and of theirs."""
    import psutil

    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        times = process.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
    return total


def choose(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Select in the way that is asked for, and say what was used."""
    from kernsel.selection.cluster import local_client
    from kernsel.selection.drivers import InProcess, OnDask
    from kernsel.selection.ondask import _read
    from kernsel.selection.parts.select import select_parts
    from kernsel.selection.plan import Plan

    plan = Plan(kernel="gaussian", learner=args.learner, folds=10, rank=args.rank)
    names = sorted(str(path) for path in folder.glob("part-*.parquet"))
    if args.way == "alone":
        before = used()
        parts = [_read(number, name, "y", None, None) for number, name in enumerate(names)]
        found = select_parts(parts, InProcess(), plan)
        return result(found, used() - before, before)
    with local_client(2) as client:
        before = used()
        parts = [client.submit(_read, number, name, "y", None, None, pure=False) for number, name in enumerate(names)]
        if args.kill:
            (victim, *_) = client.run(os.getpid).values()
            threading.Timer(args.kill, os.kill, (victim, signal.SIGKILL)).start()
        started = time.perf_counter()
        found = select_parts(parts, OnDask(client), plan)
        seconds = time.perf_counter() - started
        running = used() - before
        lost = args.kill and victim not in client.run(os.getpid).values()
        return result(found, running, before) | {"seconds": seconds, "lost a worker": bool(lost)}


def result(found: Any, running: float, start: float) -> dict[str, Any]:
    """Return figures, and a digest of the model."""
    model = found.model
    return {
        "CPU": running,
        "start": start,
        "error": found.best.error,
        "digest": [c.score for c in found.candidates],
        "coefficients": model.coefficients.tobytes().hex()[:4000],
        "timing": found.timing,
    }


def main() -> None:
    """Run each way in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rank", type=int, default=300)
    parser.add_argument("--learner", default="krr")
    parser.add_argument("--kill", type=float, default=0.0, help="seconds until a worker is killed")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--way", choices=["alone", "workers"])
    args = parser.parse_args()
    if args.way:
        warnings.simplefilter("ignore")
        print(json.dumps(choose(args.folder, args)))
        return
    with tempfile.TemporaryDirectory() as name:
        write_parts(Path(name), args.rows)
        for _ in range(args.repeats):
            runs = {}
            for way in ("alone", "workers"):
                command = [sys.executable, __file__, "--way", way, "--folder", name, "--rank", str(args.rank)]
                command += ["--learner", args.learner, *(["--kill", str(args.kill)] if way == "workers" else [])]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                runs[way] = json.loads(done.stdout)
                shown = {key: runs[way][key] for key in ("CPU", "start", "error")}
                print(way, shown, {key: runs[way].get(key) for key in ("seconds", "lost a worker")}, flush=True)
            one, other = runs["alone"], runs["workers"]
            equal = all(one[key] == other[key] for key in ("digest", "coefficients"))
            print("equal to the last bit:", equal)
            whole = [each["CPU"] + each["start"] for each in (one, other)]
            print(f"CPU {other['CPU'] / one['CPU']:.3f}, with the start {whole[1] / whole[0]:.3f}", flush=True)


if __name__ == "__main__":
    main()
