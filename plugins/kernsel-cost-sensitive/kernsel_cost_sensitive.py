"""A criterion for kernsel: the mean cost of held-out mistakes, where the two kinds of mistake cost differently."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kernsel.criteria import NewtonCV
from kernsel.errors import IncompatibleError, OptionError

kernsel_protocol = 1
Array = NDArray[np.float64]


@dataclass(frozen=True)
class CostSensitive(NewtonCV):
    """Score by (1/n) sum_i c(y_i) [y_i f_i < 0], with c(-1) = fp and c(+1) = fn; an output of 0 is half a mistake.

    Parameters
    ----------
    fp, fn : float
        Costs of a false positive and of a false negative, at least 0. The positive class is the second label.

    Notes
    -----
    Cost: That of newton-cv.

    Needs: Classes. With more than two, the costs of the one-against-rest decisions are added.

    Against: Mistakes are counted, so that many candidates are tied.

    Examples
    --------
    ::

        kernsel example breast-cancer demo.csv
        kernsel select demo.csv --criterion "cost-sensitive(fp=1, fn=5)"
    """

    name: ClassVar[str] = "cost-sensitive"
    fp: float = 1.0
    fn: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.fp < np.inf and 0 <= self.fn < np.inf and self.fp + self.fn > 0):
            raise OptionError(f"the costs fp={self.fp}, fn={self.fn} must be finite, not negative and not both zero")

    def measure(self, Y: Array, F: Array) -> Array:
        """Return the cost (n,) of each row, summed over one-against-rest decisions; NaN stays NaN."""
        if not (abs(Y) == 1).all():
            raise IncompatibleError(f"criterion {self.name!r} needs a classification task; for a regression take 'cv'")
        costs: Array = (np.where(Y > 0, self.fn, self.fp) * (1 - np.sign(Y * F)) / 2).sum(axis=0)
        return costs
