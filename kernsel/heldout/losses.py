"""Sums over rows of their held-out losses and errors, of which those of parts of the rows add up."""

from __future__ import annotations

from typing import NamedTuple, Self

from kernsel.heldout.errors import Errors
from kernsel.heldout.standard_error import MeanSums
from kernsel.types import Array, Indices


class Figures(NamedTuple):
    """Mean held-out losses of L fits, their errors, and the standard errors of both, each (L,)."""

    loss: Array
    loss_se: Array
    error: Array
    error_se: Array


class LossSums(NamedTuple):
    """Sums over rows of the held-out losses and errors of L fits."""

    loss: MeanSums
    error: MeanSums

    @classmethod
    def of(cls, losses: Array, wrong: Array, starts: Indices, s: Array, counts: bool) -> Self:
        """Sum up the losses and errors (L, n) of rows by fold: see ``MeanSums.of``."""
        return cls(*(MeanSums.of(each, starts, s, counts) for each in (losses, wrong)))

    def merge(self, other: Self) -> Self:
        """Return the sums of these rows and others."""
        return type(self)(self.loss.merge(other.loss), self.error.merge(other.error))

    def figures(self, errors: Errors, counts: bool) -> Figures:
        """Return the means in the units that are reported."""
        error, error_se = errors.of_means(self.error.mean, self.error.standard_error(counts))
        return Figures(self.loss.mean, self.loss.standard_error(counts), error, error_se)
