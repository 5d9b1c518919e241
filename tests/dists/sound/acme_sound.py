"""A criterion as it should be, with parameters of every type."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal


@dataclass(frozen=True)
class Sound:
    name: ClassVar[str] = "sound"
    cost: float
    folds: int = 10
    fit: Literal["newton", "exact"] = "newton"
    limit: float | None = None
    pure: bool = False
    weights: tuple[float, ...] = ()
    calls: list = field(default_factory=list, init=False)

    def __post_init__(self):
        if self.cost < 0:
            raise ValueError("the cost is negative\nand that is all")

    def score(self, path):
        return path
