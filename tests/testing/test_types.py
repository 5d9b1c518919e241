"""Parts as a type checker sees them: kernsel's own, those of plugins, and those of ``kernsel new-plugin``."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernsel.cli.new_plugin import KINDS, package_of

PLUGINS = sorted((Path(__file__).parents[2] / "plugins").glob("*/kernsel_*.py"))
FITTING = """
import kernsel_made_criterion, kernsel_made_format, kernsel_made_kernel, kernsel_made_learner, kernsel_made_search
from kernsel import criteria, kernels, learners
from kernsel.criteria.base import Criterion, SupportsGradient
from kernsel.data.arrowfile import Feather, Parquet
from kernsel.data.csvfile import Text
from kernsel.data.npyfile import Npy
from kernsel.data.reading import Format
from kernsel.data.sheets import Workbook
from kernsel.data.svmlight import Svmlight
from kernsel.kernels.base import Learnable
from kernsel.protocols import Kernel, Learner
from kernsel.search.strategies import Grid, Halving
from kernsel.search.walk import Search
from kernsel_cost_sensitive import CostSensitive
from kernsel_histograms import ChiSquared, Intersection
from kernsel_optuna import Optuna
from kernsel_quantile import Quantile

some_kernels: list[Kernel[kernels.Statistics]] = [
    kernels.ARD(), kernels.ARDLaplacian(), kernels.ARDPolynomial(), kernels.Constant(), kernels.Exponential(),
    kernels.Gaussian(), kernels.Laplacian(), kernels.Linear(), kernels.Matern32(), kernels.Matern52(),
    kernels.Polynomial(), kernels.RationalQuadratic(), kernels.Gaussian() + kernels.Linear() * 2.0,
    ChiSquared(), Intersection(), kernsel_made_kernel.MadeKernel(),
]
learnable: list[Learnable] = [kernels.ARD(), kernels.ARDLaplacian(), kernels.ARDPolynomial(), kernels.Gaussian()]
some_learners: list[Learner] = [
    learners.Klr(), learners.Krr(), learners.L2Svm(), learners.Lssvm(), learners.Qsvr(), learners.Svm(), learners.Svr(),
    Quantile(), kernsel_made_learner.MadeLearner(),
]
some_criteria: list[Criterion] = [
    criteria.BIF(), criteria.BR(), criteria.CV(), criteria.CVKS(), criteria.CenteredAlignment(), criteria.ELOO(),
    criteria.EP(), criteria.Evidence(), criteria.FBIF(), criteria.FSM(), criteria.GACV(), criteria.GCV(),
    criteria.LOO(), criteria.NewtonCV(), criteria.RKS(), criteria.RadiusMargin(), criteria.SPS(), criteria.Span(),
    criteria.XiAlpha(), CostSensitive(), kernsel_made_criterion.MadeCriterion(),
]
with_gradient: list[SupportsGradient] = [criteria.CV(), criteria.LOO(), criteria.BR(), criteria.Evidence()]
some_searches: list[Search] = [Grid(), Halving(), Optuna(), kernsel_made_search.MadeSearch()]
some_formats: list[Format] = [
    Feather(), Npy(), Parquet(), Svmlight(), Text(), Workbook(), kernsel_made_format.MadeFormat(),
]
"""
MISTAKEN = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from kernsel.criteria import Criterion, Scores
from kernsel.data.layout import Reading
from kernsel.data.reading import Format
from kernsel.data.sources import Source
from kernsel.kernels import Statistics
from kernsel.protocols import Kernel, Learner
from kernsel.search.axes import Axes
from kernsel.search.board import Board
from kernsel.search.choice import Rule
from kernsel.search.walk import Search, Walk
from numpy.typing import NDArray


@dataclass(frozen=True)
class OfScores:
    name: ClassVar[str] = "of-scores"

    def score(self, path: Scores) -> Scores:
        return path


@dataclass(frozen=True)
class WithoutRule:
    name: ClassVar[str] = "without-rule"

    def begin(self, board: Board, grids: list[Axes], extend: bool) -> Walk:
        return Walk(board, grids, extend)


@dataclass(frozen=True)
class OfText:
    name: ClassVar[str] = "of-text"

    def fits(self, source: str, reading: Reading) -> int:
        return 0

    def read(self, source: Source, reading: Reading, expected: list[str] | None) -> object:
        return None


criterion: Criterion = OfScores()
search: Search = WithoutRule()
format_: Format = OfText()
learner: Learner = OfScores()


def gram(kernel: Kernel[Statistics], X: NDArray[np.float64]) -> NDArray[np.float64]:
    return kernel.evaluate(X)


def last(search: Search, board: Board, rule: Rule) -> int:
    return search.begin(board, [], True, rule)
"""


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Return what ``mypy --strict`` finds in parts that fit, in plugins, and in parts that don't fit."""
    folder = tmp_path_factory.mktemp("typed")
    for kind in KINDS:
        for place, text in package_of(kind, f"made-{kind}").items():
            if "/" not in place and place.endswith(".py"):
                (folder / place).write_text(text)
    for plugin in PLUGINS:
        (folder / plugin.name).write_text(plugin.read_text())
    (folder / "fitting.py").write_text(FITTING)
    (folder / "mistaken.py").write_text(MISTAKEN)
    # What plugins need besides, such as Optuna, need not be here.
    command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--config-file", "", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.splitlines()


def test_parts_of_all_kinds_and_plugins_are_what_is_asked_for(checked):
    assert len(PLUGINS) >= 4
    assert not [line for line in checked if re.match(r"\S+\.py:\d+: error", line) and "mistaken.py" not in line]


def test_parts_that_do_not_fit_are_found(checked):
    numbers = {int(line.split(":")[1]) for line in checked if line.startswith("mistaken.py") and ": error" in line}
    wrong = (
        "criterion: ",
        "search: ",
        "format_: ",
        "learner: ",
        "    return kernel.evaluate",
        "    return search.begin",
    )
    lines = MISTAKEN.splitlines()
    assert numbers == {i for i, line in enumerate(lines, 1) if line.startswith(wrong)}
