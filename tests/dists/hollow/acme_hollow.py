"""Can be imported, but does not offer what its entry points promise."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Hollow:
    name: ClassVar[str] = "hollow"


@dataclass(frozen=True)
class Named:
    name: ClassVar[str] = "another"

    def score(self, path):
        return path


def function(path):
    return path
