"""Claims the name of a built-in part."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Rival:
    name: ClassVar[str] = "cv"

    def score(self, path):
        return path
