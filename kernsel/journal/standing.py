"""How far a run is: candidates scored, and the best of them so far.

A step that scores candidates tells people ``kernel``, its ``kind`` and ``parameters``, ``learner``, ``criterion``,
``board`` (the rows and the rank that scores are of: only those of one board compare) and ``scores``: lambda, score and
the reason of a failure for each candidate.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LAST = "run the same command again, and it goes on from there"


@dataclass(eq=False)
class Standing:
    """What is told of the steps so far.

    Parameters
    ----------
    candidates : int
        That were scored, at any rank, those of selections within others too.
    stages : dict of str to int
        How many steps of each kind are done.
    """

    candidates: int = 0
    stages: dict[str, int] = field(default_factory=dict)
    _best: dict[tuple[int, str], tuple[float, str]] = field(default_factory=dict)
    _board: tuple[int, str] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, record: Mapping[str, Any]) -> None:
        """Count a step, by what its record tells of it."""
        about = record.get("about")
        with self._lock:
            self.stages[record["stage"]] = self.stages.get(record["stage"], 0) + 1
            if about is None:
                return
            self.candidates += len(about["scores"])
            board = int(record["depth"]), str(about["board"])
            for lam, score, failed in about["scores"]:
                if failed is None and score < self._best.get(board, (math.inf, ""))[0]:
                    text = f"{about['learner']} on {about['kernel']}, lambda = {lam:.4g}"
                    self._best[board] = score, f"{text} ({about['criterion']} {score:.5g})"
            self._board = board

    @property
    def best(self) -> str | None:
        """The best candidate of the search that is under way, in words; what is scored at a low rank counts less."""
        if not self._best:
            return None
        of_whole = {board: best for board, best in self._best.items() if board[0] == 0} or self._best
        board = self._board if self._board in of_whole else list(of_whole)[-1]
        return of_whole[board][1]

    def describe_stop(self, path: Path | None) -> list[str]:
        """Say, where a run is stopped, what is known by now and how to go on.

        Parameters
        ----------
        path : Path or None
            Where it is kept.
        """
        best = self.best
        known = [] if best is None else [f"best so far, not verified: {best}, of {self.candidates} candidates"]
        kept = self.candidates, "candidates"
        if not self.candidates:
            kept = sum(self.stages.values()), "steps"
        return known + ([] if path is None else [f"{kept[0]} {kept[1]} are kept in {path}: {LAST}"])
