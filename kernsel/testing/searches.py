"""The laws of a search: it scores candidates of the grids that it is given, and nothing that it says is made up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

import kernsel
from kernsel.kernels import Gaussian, Linear
from kernsel.kernels.pairwise import Pairwise
from kernsel.search.candidate import Key
from kernsel.search.walk import Search
from kernsel.testing.base import NOTHING, Check, Laws, Subject, run_checks
from kernsel.types import Array

GRID = {"tau": [0.3, 1.0, 3.0, 10.0], "lambda": [1e-3, 1e-2, 1e-1]}
SCORES = 1e-9  # relative: other candidates beside it change the order of sums only
ROWS = 48
LAWS = Laws()


@dataclass(frozen=True)
class Failing(Pairwise):
    """A kernel that has no finite values where its parameter is above 1: ``k(x, z) = <x, z> / [scale <= 1]``."""

    name: ClassVar[str] = "failing"
    statistic: ClassVar[str] = "inner"

    scale: float | None = None

    def profile(self, S: Array) -> Array:
        """Return the kernel's values from inner products S."""
        return np.full_like(S, np.nan) if self.scale is None or self.scale > 1 else S.copy()

    def axes(self, X: ArrayLike) -> dict[str, Any]:
        """Return four values, at two of which there is no kernel."""
        return {"scale": np.array([0.25, 0.5, 2.0, 4.0])} if self.free else {}


def search_checks(search: Search, *, without: Mapping[str, str] = NOTHING) -> list[Check]:
    """Return the checks of a search.

    Parameters
    ----------
    search : Search
    without : mapping of str to str, optional
        Checks to skip, by name, each with the reason.
    """
    return LAWS.of(Subject("search", search), without)


def check_search(search: Search, **options: Any) -> dict[str, str]:
    """Run ``search_checks``; AssertionError if some fail, else those that don't apply, with the reasons."""
    return run_checks(search_checks(search, **options))


def _select(search: Any, **options: Any) -> kernsel.Selection:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=ROWS)
    rest: dict[str, Any] = {"kernel": "gaussian", "learner": "krr", "folds": 4, "grid": GRID, "extend": False}
    return kernsel.select(X, y, search=search, **rest | options)


def _scores(found: kernsel.Selection) -> dict[Key, float]:
    return {each.key: each.score for each in found.candidates}


@LAWS.add
def candidates_have_the_scores_that_a_grid_gives_them(subject: Subject) -> None:
    """None of them is off the grid where nothing may be beyond it, and the choice is among them."""
    found, whole = _select(subject.part), _select("grid")
    scores = _scores(whole)
    off = [each for each in found.candidates if each.key not in scores]
    subject.check(not off, f"{len(off)} candidates are off the grid although 'extend' is false, first {off[:1]}")
    for each in found.candidates:
        ask = f"the score of {each.kernel}, lambda = {each.lam} isn't that of a grid; have board.score make all scores"
        subject.check_close(each.score, scores[each.key], ask, rtol=SCORES)
    subject.check(found.best.verified is not None, "its choice isn't verified; score it at the representation in force")


@LAWS.add
def the_same_seed_finds_the_same(subject: Subject) -> None:
    """What is drawn comes from ``board.rows.seed`` alone."""
    one, other = _scores(_select(subject.part)), _scores(_select(subject.part))
    subject.check(one == other, "a second run scores other candidates; draw by default_rng(board.rows.seed)")


@LAWS.add
def every_kernel_is_looked_at(subject: Subject) -> None:
    """Several kernels, one of them without parameters, and a learner with a parameter to search."""
    kernels = [Gaussian(), Linear()]
    found = _select(subject.part, kernel=kernels, grid={**GRID, "epsilon": [0.0, 0.2]}, learner="svr", verify=1)
    names = {each.kernel.name for each in found.candidates}
    missing = {kernel.name for kernel in kernels} - names
    subject.check(not missing, f"no candidate of {', '.join(missing)} is scored; walk all of 'grids'")


@LAWS.add
def candidates_that_fail_are_passed_over(subject: Subject) -> None:
    """Their scores are infinite."""
    grid = {"lambda": GRID["lambda"]}
    found = _select(subject.part, kernel=[Failing(), Gaussian(1.0)], grid=grid)
    subject.check(found.best.failed is None, "its choice is a candidate that failed")


@LAWS.add
def beyond_the_grid_there_are_finite_scores_too(subject: Subject) -> None:
    """With ``extend`` it may go beyond; what it finds there is a candidate like any other."""
    found = _select(subject.part, grid="coarse", extend=True)
    subject.check(np.isfinite(found.best.score), "its choice has no finite score")
    lams = [each.lam for each in found.candidates]
    subject.check(all(0 < lam < np.inf for lam in lams), "it scores a lambda that isn't positive and finite")


@LAWS.add
def what_it_warns_of_is_text(subject: Subject) -> None:
    """``cautions`` of the walk, and every other warning of the selection."""
    wrong = [each for each in _select(subject.part).warnings if not isinstance(each, str) or not each.strip()]
    subject.check(not wrong, f"cautions has {wrong}; return texts, or kernsel.errors.Caution")
