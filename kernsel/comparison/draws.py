"""Draws of rows, at whose choice approximations of cross-validation are looked at; and means over draws as a line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np

from kernsel.comparison.lines import Line
from kernsel.comparison.tables import encode_tables
from kernsel.data import Dataset
from kernsel.errors import OptionError
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.journal import remember
from kernsel.kernels import Kernel
from kernsel.numerics.runtime.threads import one_blas_thread
from kernsel.parts import read_rank
from kernsel.paths import HeldOut, Path, make_path
from kernsel.protocols import Learner
from kernsel.representation.problem import Problem
from kernsel.selection.carry_out import carry_out
from kernsel.selection.plan import Plan
from kernsel.types import Array, Progress

LEAST_IN_FOLD = 2
"""Rows that a fold of a draw has at least, so that means over it are of more than one."""

Within = Callable[[Mapping[str, Dataset]], AbstractContextManager[Progress | None]]
"""Given the encoded tables when all is checked, returns what the work is done within, which gives its progress."""


class Draws:
    """Draws of rows of some tables, at whose choice by exact cross-validation approximations are looked at.

    Parameters
    ----------
    tables, groups, folds, splits, train, seed, options : optional
        As in :func:`kernsel.comparison.bif_order`.
    """

    def __init__(
        self,
        tables: object,
        groups: object,
        folds: int | Sequence[int],
        splits: int,
        train: float,
        seed: int,
        options: Mapping[str, object],
    ) -> None:
        if splits < 1 or not 0 < train <= 1:
            raise OptionError(f"splits is a number from 1 and train a share of the rows, not {splits!r} and {train!r}")
        self.folds: list[int] = np.atleast_1d(np.asarray(folds)).tolist()
        if not all(isinstance(k, int) and k >= 2 for k in self.folds):
            raise OptionError(f"folds of this curve are whole numbers from 2, not {folds!r}")
        asked = {"criterion": "cv", "choose": "minimum", "kernel": "gaussian", "rank": "full", **options}
        self.plan = Plan.read("kernsel.comparison", {**asked, "seed": seed})
        self.datasets = encode_tables(tables, self.plan, groups)
        self.splits, self.train = splits, train
        for name, whole in self.datasets.items():
            if (kept := self._kept(whole)) < LEAST_IN_FOLD * max(self.folds):
                raise OptionError(
                    f"table {name!r}: train {train:g} of {whole.n} rows are {kept}, and {max(self.folds)} folds need "
                    f"{LEAST_IN_FOLD * max(self.folds)}; give a larger share, or fewer folds"
                )

    @one_blas_thread()
    def lines(
        self,
        values: Sequence[float],
        approximate: Callable[[Path, float], HeldOut],
        within: Within,
    ) -> tuple[Line, ...]:
        """Return, for each table and number of folds, how far approximations of each value are from exact refits."""
        found, done = [], 0
        total = len(self.datasets) * len(self.folds) * self.splits
        with within(self.datasets) as progress:
            for name, whole in self.datasets.items():
                for k in self.folds:
                    measured = []
                    for number in range(self.splits):
                        measured.append(self._measure(self._chosen_path(whole, k, number), values, approximate))
                        done += 1
                        if progress is not None:
                            progress(done, total, f"{name} {k} folds")
                    distances, reasons = zip(*measured, strict=True)
                    found.append(line_of(name, f"{k} folds", values, np.array(distances), reasons))
        return tuple(found)

    @staticmethod
    def _measure(
        path: Path, values: Sequence[float], approximate: Callable[[Path, float], HeldOut]
    ) -> tuple[list[float], list[str | None]]:
        """Return how far each approximation is from exact refits, and why it failed where it did."""
        exact = path.exact()
        held = [approximate(path, value) for value in values]
        return [_distance(exact, each) for each in held], [exact.failed[0] or each.failed[0] for each in held]

    def _kept(self, whole: Dataset) -> int:
        """Return how many rows of a table a draw has."""
        return round(self.train * whole.n)

    def _chosen_path(self, whole: Dataset, folds: int, number: int) -> Path:
        """Return the fit that exact cross-validation chooses on one draw of the rows, at the rank asked for."""
        plan = replace(self.plan, folds=folds)
        order = np.random.default_rng((plan.seed, number)).permutation(whole.n)
        dataset = whole.take(np.sort(order[: self._kept(whole)]))

        def choose() -> tuple[Kernel, Learner, float]:
            best = carry_out(dataset, plan).best
            return best.kernel, best.learner, best.lam

        kernel, learner, lam = remember("draw", (dataset, plan.options), choose, whole=True)
        rows = Partition.of(dataset, make_folds(folds, dataset, plan.seed), plan.seed)
        rank = read_rank(plan.rank, dataset.n, plan.landmarks, learner)
        return make_path(Problem(rows, kernel, rank), learner, [lam])


def _distance(exact: HeldOut, held: HeldOut) -> float:
    """Return the mean square difference of held-out outputs, per output; NaN where either failed."""
    if exact.failed[0] is not None or held.failed[0] is not None:
        return math.nan
    return float(((held.f[:, 0] - exact.f[:, 0]) ** 2).mean())


def line_of(
    panel: str, name: str, x: Sequence[float], values: Array, reasons: Sequence[Sequence[str | None]] = ()
) -> Line:
    """Return the means of values (splits, points) as a line; ``reasons`` (splits, points) say why one failed."""
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(len(x), math.nan)
    failed = []
    for column in zip(*reasons, strict=True):
        told = [reason for reason in column if reason is not None]
        failed.append(f"failed on {len(told)} of {len(column)} splits: {told[0]}" if told else None)
    return Line(panel, name, tuple(map(float, x)), tuple(values.mean(axis=0).tolist()), tuple(spread.tolist()),
                tuple(failed))  # fmt: skip
