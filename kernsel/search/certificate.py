"""The proof that no candidate's exact score is much below the lowest one found, with as few refits as possible.

Every candidate c has an interval ``[L_c, U_c]`` that contains its exact score: that of fits without each fold that are
solved to optimality. The lowest score found is within a share of the best of all as soon as

    min_c U_c  <=  (1 + share) min_c L_c.

Intervals are made of intervals of folds. Those of the search are from Newton steps; a refit without a fold makes the
fold's interval as narrow as its rounding errors. *Best first:* the candidate of the least ``L_c`` is next, and of its
folds those that are expected to add the most to it, as many as are needed to bring ``L_c`` to the limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kernsel.heldout.ranges import FoldRanges, least_between, range_folds
from kernsel.kernels import Kernel
from kernsel.paths.base import Path
from kernsel.protocols import Learner
from kernsel.representation.ranks import Full
from kernsel.search.board import Board
from kernsel.search.candidate import Candidate, Key
from kernsel.search.deadline import Deadline
from kernsel.types import Array, Indices, Mask

PIECES, PIECES_WITH_KINKS = 3, 5
"""Between two values of lambda fits are made at so many less one: with values four times apart these are 59 % away. Of
losses whose kinks were made smooth less is known between two fits: theirs are 32 % away."""

APART = 256.0
"""Where a value of lambda is more times the next one, fits between are too far apart to say anything."""

FAR = 0.1
"""Where what is known between two fits leaves a gap of such a share, there is one more half way."""

MORE, MOST_MORE = 4.0, 40
"""So many more fits where all rows are curved. The fewer are, the less time it takes to tell what is between: fits are
more by the square of the share of curved rows, up to the most."""

MOST_BYTES = 2**28
"""Solutions without each fold may take so much memory."""

NOTHING = 0.995
"""A score that may be lower by such a share may be anything."""

NARROW = 1e-2
"""A fold whose loss is known to such a share of the share to prove is known well enough."""

STEPS = 20
"""The least score counts in so many steps up to the limit: within a step candidates of one kernel come together."""


@dataclass(frozen=True)
class Certificate:
    """How much of the best of all candidates a choice is proved to be.

    Parameters
    ----------
    share : float
        What was asked for.
    lowest : float
        The share within which the lowest exact score is proved to be of the best one of all candidates.
    within : float
        The same of the choice, which a rule may have taken in place of the lowest.
    candidates : int
        Of which that is proved.
    unseen : int
        Others of the grid, which there was no time to score.
    open : int
        Others, whose exact score can't be told although all their folds are refitted: lambda is so small that rounding
        errors decide, or a fold's fit sees one class, whose bias may be anything.
    refits : int
        Fits without a fold that were solved to optimality. Steps of such fits, by which the search makes intervals,
        don't count.
    exhaustive : int
        Fits that exact cross-validation of all candidates takes.
    closed_form : bool
        Whether exact scores have a closed form, which takes no refits.
    between : float or None
        The share by which an exact score may be below the lowest one for a lambda between that of the lowest and the
        next values of the grid; None where that isn't known.
    """

    share: float
    lowest: float
    within: float
    candidates: int
    unseen: int
    open: int
    refits: int
    exhaustive: int
    closed_form: bool
    between: float | None

    @property
    def proved(self) -> bool:
        """Whether the lowest exact score is proved to be within the share that was asked for."""
        return self.lowest <= self.share

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds of it."""
        return {
            "share": self.share,
            "proved": self.proved,
            "lowest_within": self.lowest if math.isfinite(self.lowest) else None,
            "choice_within": self.within if math.isfinite(self.within) else None,
            "candidates": self.candidates,
            "unseen": self.unseen,
            "open": self.open,
            "refits": self.refits,
            "exhaustive": self.exhaustive,
            "closed_form": self.closed_form,
            "between": self.between,
        }

    def describe(self) -> str:
        """Return it in words."""
        between = ""
        if self.between is not None:
            where = "between its lambda and the next values of the grid"
            known = self.between < NOTHING
            between = (
                f"; {where} no exact score is lower by more than {_percent(self.between)}"
                if known
                else f"; {where}, which are too far apart, nothing is proved"
            )
        left = ""
        if self.open:
            left = f"; {self.open} more have a score that rounding errors, or a fold of one class, leave open"
        return self._describe_grid() + left + between

    def _describe_grid(self) -> str:
        """Say what is proved of the candidates."""
        among = f"the best of all {self.candidates} candidates"
        if self.unseen:
            among = f"the best of the {self.candidates} candidates that were scored ({self.unseen} were not)"
        if self.closed_form:
            done = "without a refit, for exact scores of the square loss have a closed form"
        else:
            done = f"at {100 * self.refits / max(self.exhaustive, 1):.0f} % of exhaustive work"
        if not math.isfinite(self.lowest):
            return f"nothing is proved yet of {self.candidates} candidates, {done}"
        if not self.proved:
            so_far = " so far" if self.refits < self.exhaustive else ""
            return f"the lowest exact score is proved within {_percent(self.lowest)} of {among}{so_far}, {done}"
        if self.within <= self.share:
            return f"proved within {_percent(self.share)} of {among}, {done}"
        return (
            f"the lowest exact score is proved within {_percent(self.share)} of {among}, and the choice, which the "
            f"rule took in its place, within {_percent(self.within)}, {done}"
        )


def _percent(share: float) -> str:
    """Return a bound as text: two digits, rounded up, for less isn't proved."""
    if share <= 0.0:
        return "0 %"
    digit = 10.0 ** (math.floor(math.log10(share)) - 1)
    above = math.ceil(share / digit * (1.0 - 1e-12)) * digit
    return f"{100 * above:.3g} %" if share < 1.0 else f"{1 + above:.3g} times"


class Range(NamedTuple):
    """The ends of an interval that contains an exact score, and an estimate of it."""

    low: float
    high: float
    expected: float


@dataclass(eq=False)
class Proof:
    """A proof under way: intervals of all candidates of a board, narrowed by refits.

    Parameters
    ----------
    board : Board
        That ``encloses`` what it scores.
    """

    board: Board
    share: float
    until: Deadline
    solutions: dict[tuple[Key, int, int], Array] = field(default_factory=dict)
    """Of refits by candidate, deal and fold, whose intervals may have to be made sharp."""
    last: tuple[int, Path] | None = None
    """The deal and the path of the last refits: those of one kernel come one after another, and have its matrix."""

    def keys(self) -> list[Key]:
        """Return the candidates with intervals, in the order of their kernels."""
        found = self.board.found
        return [key for key in self.board.enclosed if key in found and found[key].compares]

    def run(self) -> Candidate | None:
        """Refit until the lowest score is proved, or there is no time; return the candidate of the lowest upper end."""
        keys = self.keys()
        if not keys:
            return None
        ranges, unsettled = {key: self._score(key) for key in keys}, {key: self._unsettled(key) for key in keys}
        while True:
            best = min(keys, key=lambda key: ranges[key].high)
            limit = ranges[best].high / (1.0 + self.share)
            open_keys = [key for key in keys if unsettled[key] and ranges[key].low < limit]
            if not open_keys or not self.until.left:
                return self.board.found[best]
            first = self._next(open_keys, keys, ranges, limit)
            self._refit(first, limit)
            ranges[first], unsettled[first] = self._score(first), self._unsettled(first)

    def certificate(self, choice: Key, unseen: int) -> Certificate:
        """Return what is proved of a choice by now, whose own folds are refitted first.

        Parameters
        ----------
        choice : tuple
        unseen : int
            Candidates that there was no time to score.
        """
        keys = self.keys()
        while choice in keys and self._unsettled(choice):
            self._refit(choice, math.inf)
        ranges = {key: self._score(key) for key in keys}
        best = min(keys, key=lambda key: ranges[key].high, default=None)
        lowest = math.inf if best is None else ranges[best].high
        limit = lowest / (1.0 + self.share)
        left = {key for key in keys if key not in (best, choice) and ranges[key].low < limit}
        left -= {key for key in left if self._unsettled(key)}
        least = min((ranges[key].low for key in keys if key not in left), default=0.0)
        folds = [each for key in keys for each in self.board.enclosed[key].values()]
        outputs = len(self.board.rows.Y)
        square = all(key[1].loss.square for key in keys)
        return Certificate(
            self.share,
            _excess(lowest, least),
            _excess(ranges[choice].high if choice in ranges else math.inf, least),
            len(keys) - len(left),
            unseen,
            len(left),
            int(sum(each.refits.sum() for each in folds)),
            0 if square else outputs * sum(each.refits.size for each in folds),
            square,
            None if best is None or square else self.between(best, lowest),
        )

    def between(self, key: Key, lowest: float) -> float | None:
        """Return by which share a score for a lambda between that of a candidate and the next may be below the lowest.

        Refits are made at a few lambda. Between two of them exact outputs are near interpolated ones, up to something
        of second order in their distance where V' is smooth: see ``numerics.smooth.enclosure`` and
        ``heldout.ranges.least_between``. Where that leaves a gap there are more, half way.
        """
        kernel, learner, lam = key
        lams = np.unique([each[2] for each in self.keys() if each[:2] == (kernel, learner)])
        place = int(np.searchsorted(lams, lam))
        near = lams[max(place - 1, 0) : place + 2]
        if near.size < 2 or (near[1:] / near[:-1]).max() > APART or not self.until.left:
            return None
        pieces_of_two = PIECES if getattr(learner.loss, "smoothing", None) is None else PIECES_WITH_KINKS
        self.last = None  # its matrix makes room
        points = np.unique([np.geomspace(a, b, pieces_of_two + 1) for a, b in pairwise(near.tolist())])
        paths = self._paths(kernel, learner, points)
        least, lams = self._least_between(paths, np.arange(points.size - 1)), paths[0].lams
        each = 8 * len(self.board.rows.Y) * sum(rows.n * rows.left.size for rows in self.board.deals)
        more = int(min(MORE / self._curved(paths) ** 2, MOST_MORE, MOST_BYTES // each))
        while self.until.left and more > 0:
            far = np.flatnonzero(least < (1.0 - FAR) * lowest)
            far = np.sort(far[np.argsort(least[far], kind="stable")][:more])
            if not far.size or (least < (1.0 - NOTHING) * lowest).sum() > more:  # some would stay as they are
                break
            halves = np.sqrt(lams[far] * lams[far + 1])
            finer, added = self._paths(kernel, learner, np.union1d(lams, halves)), self._paths(kernel, learner, halves)
            paths = [path.with_refits(pair) for path, *pair in zip(finer, paths, added, strict=True)]
            parent = np.repeat(np.arange(least.size), np.bincount(far, minlength=least.size) + 1)
            pieces = np.flatnonzero(np.isin(parent, far))
            least = np.maximum(least[parent], self._least_between(paths, pieces))
            lams, more = paths[0].lams, more - far.size
        return float(np.clip(1.0 - least.min() / lowest, 0.0, 1.0)) if lowest > 0.0 else 0.0

    def _curved(self, paths: Sequence[Path]) -> float:
        """Return the share of rows that are curved at the fits of paths; 1 at a low rank, where all rows take time."""
        path = paths[0]
        if not isinstance(self.board.rank, Full):
            return 1.0
        _, _, curvatures = path.learner.loss.expand(path.rows.Y, path.rows.s, path.fits.f)
        return max(float((curvatures > 0.0).mean()), 1.0 / path.rows.n)

    def _paths(self, kernel: Kernel, learner: Learner, lams: Array) -> list[Path]:
        """Return a path of each deal."""
        return [self.board.path(rows, kernel, learner, lams.tolist()) for rows in self.board.deals]

    def _least_between(self, paths: Sequence[Path], pieces: Indices) -> Array:
        """Return lower bounds (L - 1,) of scores for all lambda between each two of a path, by the means over deals.

        They are of use where those are among ``pieces``.
        """
        found = np.zeros(paths[0].lams.size - 1)
        for share, rows, path in zip(self.board.shares, self.board.deals, paths, strict=True):
            found += share * least_between(rows, path.learner.loss, *path.enclosed_between(pieces))
        return found

    def _scored_path(self, number: int, kernel: Kernel, learner: Learner, lam: float) -> tuple[Path, int]:
        """Return the path that a candidate was scored on, at one of the deals, and the number of its lambda there."""
        if self.last is not None:
            deal, path = self.last
            if (deal, path.problem.kernel, path.learner) == (number, kernel, learner) and lam in path.lams:
                return path, int(np.flatnonzero(path.lams == lam)[0])
        self.last = None  # its matrix makes room
        path, k = self.board.scored_path(number, kernel, learner, lam)
        self.last = number, path
        return path, k

    def _score(self, key: Key) -> Range:
        """Return the ends of the interval of a candidate's score, and its estimate: means over the deals."""
        shares, deals = self.board.shares, self.board.enclosed[key].items()
        low, high, expected = (
            sum(float(shares[number] * getattr(each, name).sum()) for number, each in deals)
            for name in ("low", "high", "expected")
        )
        return Range(low, high, expected)

    def _unsettled(self, key: Key) -> bool:
        """Say whether any fold could still be refitted."""
        return not key[1].loss.square and any((~self._done(each)).any() for each in self.board.enclosed[key].values())

    def _done(self, each: FoldRanges) -> Mask:
        narrow = np.isfinite(each.high) & (each.high - each.low <= NARROW * self.share * each.high)
        return np.asarray(each.sharp | (narrow & self._refitted(each)))

    def _refitted(self, each: FoldRanges) -> Mask:
        return np.asarray(each.refits >= len(self.board.rows.Y))

    def _next(self, open_keys: list[Key], keys: list[Key], ranges: dict[Key, Range], limit: float) -> Key:
        """Return whose folds are refitted next: what is expected to be lowest until it is known, then the least low."""
        hopeful = min(keys, key=lambda key: ranges[key].expected)
        if hopeful in open_keys and ranges[hopeful].expected < limit:
            return hopeful
        place = {key: number for number, key in enumerate(keys)}
        return min(open_keys, key=lambda key: (math.floor(STEPS * ranges[key].low / limit), place[key]))

    def _refit(self, key: Key, limit: float) -> None:
        """Refit folds of a candidate until its lower end is expected to be at the limit, or it is known."""
        low, _, expected = self._score(key)
        deals = self.board.enclosed[key]
        gains = [
            (float(self.board.shares[number] * (each.expected[fold] - each.low[fold])), number, int(fold))
            for number, each in deals.items()
            for fold in np.flatnonzero(~self._done(each))
        ]
        gains.sort(key=lambda gain: (-gain[0], *gain[1:]))
        chosen: dict[int, list[int]] = {}
        for gain, number, fold in gains:
            chosen.setdefault(number, []).append(fold)
            low += max(gain, 0.0)
            if low >= limit and expected >= limit:
                break
        for number, folds in chosen.items():
            self._narrow(key, number, sorted(folds))

    def _narrow(self, key: Key, number: int, folds: list[int]) -> None:
        """Refit folds of one deal, and put their intervals in the place of those before.

        Those of folds that have been refitted are made sharp.
        """
        rows, before = self.board.deals[number], self.board.enclosed[key][number]
        path, k = self._scored_path(number, *key)
        ranges = FoldRanges(*(each.copy() for each in vars(before).values()))
        new = [fold for fold in folds if (key, number, fold) not in self.solutions]
        if new:
            found = path.refitted(k, new)
            self.solutions.update({(key, number, fold): found[:, t].copy() for t, fold in enumerate(new)})
        again = self._refitted(before)
        for sharp in (False, True):
            some = [fold for fold in folds if again[fold] == sharp]
            if not some:
                continue
            refits = np.stack([self.solutions[key, number, fold] for fold in some], axis=1)
            enclosed = path.enclosed_around(k, some, refits, sharp)
            below, above = range_folds(rows, path.learner.loss, enclosed.low, enclosed.high)
            ranges.low[some] = np.maximum(ranges.low[some], below[0, some])
            ranges.high[some] = np.minimum(ranges.high[some], above[0, some])
            ranges.expected[some] = 0.5 * (ranges.low[some] + ranges.high[some])
            ranges.refits[some], ranges.sharp[some] = len(rows.Y), sharp
        self.board.enclosed[key][number] = ranges
        for fold in np.flatnonzero(self._done(ranges)):
            self.solutions.pop((key, number, int(fold)), None)
        if sum(each.nbytes for each in self.solutions.values()) > MOST_BYTES:
            self.solutions.clear()


def _excess(score: float, least: float) -> float:
    """Return the share by which a score is above the least one that another may have."""
    if score <= least:
        return 0.0
    return score / least - 1.0 if least > 0.0 else math.inf
