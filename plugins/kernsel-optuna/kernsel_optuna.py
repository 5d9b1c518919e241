"""A search for kernsel: parameters of kernels as the samplers of Optuna propose them, with every lambda."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import optuna
from numpy.typing import NDArray

from kernsel.errors import OptionError
from kernsel.protocols import Tunable
from kernsel.search.axes import Axes, continuous
from kernsel.search.board import Board
from kernsel.search.choice import Rule
from kernsel.search.walk import Walk

kernsel_protocol = 1
Array = NDArray[np.float64]
SAMPLERS = {
    "tpe": optuna.samplers.TPESampler,
    "gp": optuna.samplers.GPSampler,
    "cmaes": optuna.samplers.CmaEsSampler,
    "random": optuna.samplers.RandomSampler,
}


@dataclass
class Sampling(Walk):
    """The search under way: one study of Optuna for each kernel, whose value is the lowest score of a path."""

    part: "Optuna" = field(default_factory=lambda: Optuna())

    def run(self) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        for axes in self.grids:
            study = optuna.create_study(sampler=SAMPLERS[self.part.sampler](seed=self.board.rows.seed))
            points = math.prod(map(len, [*axes.values.values(), *axes.tuning.values()]))
            for _ in range(min(self.part.trials, points)):
                self.score(axes, study, study.ask())

    def score(self, axes: Axes, study: optuna.Study, trial: optuna.Trial) -> None:
        kernel = axes.kernel.with_parameters(**self.proposed(axes.values, trial))
        learner = axes.learner
        if axes.tuning and isinstance(learner, Tunable):
            learner = learner.with_parameters(**self.proposed(axes.tuning, trial))
        keys = [(kernel, learner, lam) for lam in axes.lams.tolist()]  # a path costs hardly more than one lambda
        self.board.score([key for key in keys if key not in self.board.found])
        study.tell(trial, min(self.board.found[key].score for key in keys))  # infinite if all have failed

    def proposed(self, grid: Mapping[str, Array], trial: optuna.Trial) -> dict[str, float]:
        """Return a value for each parameter: between the ends of its axis, or one of the axis where it must."""
        between = {name: self.extend and continuous(name, axis) and len(axis) > 1 for name, axis in grid.items()}
        return {
            name: trial.suggest_float(name, float(axis[0]), float(axis[-1]), log=True)
            if between[name]
            else axis[trial.suggest_int(name, 0, len(axis) - 1)].item()
            for name, axis in grid.items()
        }


@dataclass(frozen=True)
class Optuna:
    """Score the parameters that a sampler of Optuna proposes, one point after another, each with every lambda.

    Parameters
    ----------
    sampler : {"tpe", "gp", "cmaes", "random"}
        By trees of Parzen estimators, a Gaussian process (needs torch), an evolution strategy (needs cmaes) or chance.
    trials : int
        Points for each kernel, at most as many as its grid has.
    """

    name: ClassVar[str] = "optuna"
    sampler: Literal["tpe", "gp", "cmaes", "random"] = "tpe"
    trials: int = 50

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS or self.trials < 1:
            raise OptionError(f"search 'optuna': sampler can be {', '.join(SAMPLERS)}, and trials must be at least 1")

    def begin(self, board: Board, grids: list[Axes], extend: bool, rule: Rule) -> Sampling:
        return Sampling(board, grids, extend, rule, self)
