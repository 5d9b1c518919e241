"""The mean of kernels whose relevances were learnt: where several are as good it is better than each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernsel.folds.partition import Partition
from kernsel.kernels.base import names_of
from kernsel.learning.profile import LearntProfile, Priors
from kernsel.protocols import Learner


@dataclass(frozen=True, eq=False)
class LearntMean:
    """``k = (k_1 + ... + k_p) / p``, the relevances of each k_i learnt by itself.

    A fit with k is a sum of functions of each of the kernels, so that they share the target, and errors that only some
    of them make are averaged.

    Parameters
    ----------
    profiles : tuple of LearntProfile
        At least one.
    """

    profiles: tuple[LearntProfile, ...]

    @property
    def kernel(self) -> Any:
        """The mean of the kernels."""
        share = 1.0 / len(self.profiles)
        return sum(share * each.kernel for each in self.profiles)

    @property
    def theta(self) -> tuple[float, ...]:
        """The relevances, those of one kernel after another."""
        return tuple(theta for each in self.profiles for theta in each.theta)

    def shares(self, features: Sequence[str]) -> dict[str, float]:
        """Return each relevance as a share of the largest one of its kernel, on average, by the names of features."""
        found: dict[str, float] = {}
        for each in self.profiles:
            largest = max(each.theta)
            for name, theta in zip(names_of(each.kernel, features), each.theta, strict=True):
                found[name] = found.get(name, 0.0) + theta / largest / len(self.profiles)
        return found

    @property
    def ridge(self) -> float:
        """The mean of the ridges that were learnt with the kernels."""
        return sum(each.ridge for each in self.profiles) / len(self.profiles)

    @property
    def learnt_by(self) -> str:
        """The criteria that the relevances were learnt by, in words."""
        return " and ".join(dict.fromkeys(each.learnt_by for each in self.profiles))

    @property
    def priors(self) -> Priors:
        """The prior of the relevances of each kernel."""
        return tuple(each.sigma for each in self.profiles)

    def again(self, rows: Partition, learner: Learner, priors: Priors, seed: int = 0) -> LearntMean:
        """Learn the relevances on other rows, with other priors; the descents begin at these."""
        pairs = zip(self.profiles, priors, strict=True)
        return LearntMean(tuple(each.again(rows, learner, (sigma,), seed) for each, sigma in pairs))

    def anew(self, rows: Partition, learner: Learner) -> Any:
        """Return the mean of the kernels with relevances that are learnt on other rows in the same way."""
        return self.again(rows, learner, self.priors).kernel
