"""Searches that leave a coarse grid, and points at random, against a whole grid: the criterion reached, and the time.

    python benchmarks/gradient.py DATA.csv [DATA.csv ...] [--criteria loo cv evidence] [--searches auto gradient ...]

CSV with a header, target last; two values are classes, for ``lssvm``, others a regression for ``krr``. Of larger tables
``--rows`` are drawn. Every search is one of ``kernsel.select`` for a Gaussian kernel, by a criterion that has a
gradient, without verification. ``paper`` is the grid of FBIF18, 31 widths x 16 lambda, which the others are measured
against; ``auto`` is the automatic grid; ``coarse`` has a third of its values on each axis, and from its best minima
``gradient``, ``simplex`` and ``compass`` go on. ``sobol:41`` and ``random:41`` are points with 12 lambda each, about as
many candidates as in ``paper``; ``sobol:5`` and ``random:5`` about as many as ``gradient`` and ``compass`` look at.

Printed is by how much the criterion is above that of ``paper`` (below 0: better): of ``loo`` and ``cv``, mean squares,
in percent, of ``evidence`` in units of log likelihood; how often the criterion was computed; the CPU time of
``select`` on one thread, refit included, the least of ``--repeat`` runs, against that with ``paper``. The first table
has in brackets how often the criterion was computed, and the CPU time.
"""

from __future__ import annotations

import argparse
import os
import re
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # CPU time is then that of the work alone

import numpy as np
from common import Array, machine, table

import kernsel
from kernsel.errors import SelectionWarning

SEARCHES: dict[str, dict[str, Any]] = {
    "paper": {"grid": "paper", "extend": False},
    "auto": {"grid": "auto"},
    "coarse": {"grid": "coarse"},
    "gradient": {"grid": "coarse", "refine": "gradient"},
    "simplex": {"grid": "coarse", "refine": "simplex"},
    "compass": {"grid": "coarse", "refine": "compass"},
    "sobol:41": {"grid": "sobol:41"},
    "random:41": {"grid": "random:41"},
    "sobol:5": {"grid": "sobol:5"},
    "random:5": {"grid": "random:5"},
}
REACHED = 0.1
"""A search has reached the whole grid where it is no more than this above: percent, or units of log likelihood."""


class Run(NamedTuple):
    """What a search came to: the criterion, how often it was computed, and CPU seconds."""

    score: float
    evaluations: int
    cpu: float


def read(path: Path, rows: int) -> tuple[Array, Array, str]:
    """Return features, target and task of a table, or of so many of its rows."""
    data = np.loadtxt(path, delimiter=",", skiprows=1)
    if len(data) > rows:
        data = data[np.random.default_rng(0).choice(len(data), rows, replace=False)]
    task = "classification" if np.unique(data[:, -1]).size == 2 else "regression"
    return data[:, :-1], data[:, -1], task


def run(X: Array, y: Array, task: str, repeat: int, search: str, learner: str, criterion: str) -> Run:
    """Search, so many times."""
    times = []
    for _ in range(repeat):
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelectionWarning)
            chosen = kernsel.select(
                X, y, task=task, learner=learner, criterion=criterion, search="grid", verify=0, **SEARCHES[search]
            )
        times.append(time.process_time() - begun)
    said = re.search(r"(\d+) evaluations off the grid", " ".join(chosen.data["notes"]))
    off = int(said[1]) if said else 0
    # A gradient search adds only its ends to the candidates; what compass and simplex look at are candidates all.
    on = len(chosen.candidates) - (0 if search == "gradient" else off)
    return Run(chosen.best.score, on + off, min(times))


def above(criterion: str, one: Run, whole: Run) -> float:
    """Return by how much the score of a search is above that of the whole grid."""
    return one.score - whole.score if criterion == "evidence" else 100.0 * (one.score / whole.score - 1.0)


def main() -> None:
    """Print the tables."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("data", type=Path, nargs="+")
    cli.add_argument("--criteria", nargs="+", default=["loo", "cv", "evidence"])
    cli.add_argument("--searches", nargs="+", default=list(SEARCHES), choices=list(SEARCHES), help="paper comes first")
    cli.add_argument("--rows", type=int, default=1500)
    cli.add_argument("--repeat", type=int, default=2)
    args = cli.parse_args()
    searches = ["paper", *(search for search in args.searches if search != "paper")]
    print(machine(), flush=True)
    lines, found = [], []
    for path in args.data:
        X, y, task = read(path, args.rows)
        learner, few = "lssvm" if task == "classification" else "krr", slice(None, None, max(len(X) // 60, 1))
        for criterion in args.criteria:
            for search in searches:  # compiles, or loads what was compiled
                run(X[few], y[few], task, 1, search, learner, criterion)
            runs = {search: run(X, y, task, args.repeat, search, learner, criterion) for search in searches}
            found.append((criterion, runs))
            line = [f"{path.stem}, {learner}", criterion, f"{runs['paper'].score:.5g}"]
            for each in searches[1:]:
                excess, share = above(criterion, runs[each], runs["paper"]), runs[each].cpu / runs["paper"].cpu
                line.append(f"{excess:+.2f} ({runs[each].evaluations}, {share:.2g})")
            lines.append(line)
            print("# " + " | ".join(line), flush=True)
    print("\n" + table(["data, learner", "criterion", *searches], lines) + "\n\n" + summary(found, searches))


def summary(found: list[tuple[str, dict[str, Run]]], searches: list[str]) -> str:
    """Return a table with a line for each search over all problems."""
    lines = []
    for search in searches:
        excess = [above(criterion, runs[search], runs["paper"]) for criterion, runs in found]
        lines.append(
            [
                search,
                f"{sum(each <= REACHED for each in excess)} of {len(excess)}",
                f"{sum(each < -REACHED for each in excess)}",
                f"{max(excess):+.2f}",
                f"{np.median([runs[search].evaluations for _, runs in found]):.0f}",
                f"{np.median([runs[search].cpu / runs['paper'].cpu for _, runs in found]):.2f}",
            ]
        )
    head = ["search", "reaches paper", "better", "worst, above paper", "evaluations, median", "time / paper, median"]
    return table(head, lines)


if __name__ == "__main__":
    main()
