"""One of two distributions that claim the same name."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Twin:
    name: ClassVar[str] = "twin"
    order: int = 1

    def score(self, path):
        return path
