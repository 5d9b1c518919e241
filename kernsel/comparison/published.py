"""What a paper prints, and what is found for it here."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """A figure that a paper prints.

    Parameters
    ----------
    protocol, place : str
        The paper, and the table and section in it.
    what : {"error", "mse", "seconds"}
    error : float
        Standard error of the mean; NaN where none is printed.
    """

    protocol: str
    place: str
    case: str
    table: str
    method: str
    what: str
    mean: float
    error: float


@dataclass(frozen=True)
class Published:
    """A figure that a paper prints, and what is found here.

    Parameters
    ----------
    table : str
        The name of the table here.
    mean, error : float
        Found here, and its standard error.
    """

    printed: Printed
    table: str
    mean: float
    error: float

    @property
    def apart(self) -> float:
        """The difference, in standard errors of it; NaN where they are not known."""
        spread = math.hypot(self.error, self.printed.error)
        return (self.mean - self.printed.mean) / spread if spread > 0 else math.nan
