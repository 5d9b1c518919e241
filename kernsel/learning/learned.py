"""What learning a kernel hands back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kernsel.kernels import Kernel
from kernsel.kernels.base import ALL, names_of
from kernsel.kernels.views import by_feature
from kernsel.types import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LearningStep:
    """One step of learning.

    Parameters
    ----------
    rows : int
        The rows that it was made on.
    value : float
        The criterion after it.
    mu : float or None
        The penalty of the relevances, where they have one.
    """

    rows: int
    value: float
    lam: float
    mu: float | None = None


class Learnt(NamedTuple):
    """What a way of learning finds: on the last rows that it saw, the relevances (p,), lambda and mu; and how."""

    theta: Array
    lam: float
    mu: float | None
    value: float
    steps: tuple[LearningStep, ...]


@dataclass(frozen=True, eq=False)
class LearnedKernel:
    """A kernel whose relevances were learnt; :func:`kernsel.select` takes ``kernel`` as it is.

    Parameters
    ----------
    kernel : Kernel
        With its relevances, for the features as a selection on the same table encodes and scales them.
    lam : float
        The regularisation that goes with them, for all rows: the ridge of the last ones learnt on, over their number.
    mu : float or None
        The penalty of the relevances in ``flkl``, in the same way.
    learner, criterion : str
        Their names.
    value : float
        The criterion, on the rows of the last step.
    steps : tuple of LearningStep
        How it came down, first on a part of the rows if they are many.
    features : tuple of str
        Names of the encoded features.
    isotropic : Kernel
        The best kernel with one relevance for all features, from which it began.
    notes : tuple of str
        What was inferred, or left out.
    """

    kernel: Any
    lam: float
    mu: float | None
    learner: str
    criterion: str
    value: float
    steps: tuple[LearningStep, ...]
    features: tuple[str, ...]
    isotropic: Kernel
    notes: tuple[str, ...]

    @property
    def relevances(self) -> pd.Series:
        """The relevances by the names that the kernel gives them: those of features, or of columns of categories.

        Of a sum or product the number of the part stands before the name, as in ``2.income``. Where the kernel has one
        for all features, each has that one.
        """
        import pandas as pd

        theta, names = np.array(self.kernel.theta), names_of(self.kernel, self.features)
        if names == [ALL]:
            theta, names = np.broadcast_to(theta, len(self.features)), list(self.features)
        return pd.Series(theta, index=names, name="relevance")

    @property
    def zero(self) -> list[str]:
        """Names of the features whose relevance is exactly 0, and those of their views: they take no part."""
        return [name for name, value in by_feature(dict(self.relevances), self.features).items() if value == 0]

    @property
    def history(self) -> pd.DataFrame:
        """The steps: on how many rows, the criterion and the regularisation after each."""
        import pandas as pd

        return pd.DataFrame([vars(step) for step in self.steps])

    def __repr__(self) -> str:
        count = len(by_feature(dict(self.relevances), self.features))
        used = f"{count - len(self.zero)} of {count} features in use"
        return f"<LearnedKernel: {self.kernel.name}, {used}, {self.criterion} = {self.value:.5g}>"
