"""How far a choice can be trusted: nested cross-validation, and tests that compare methods over splits or data sets."""

from kernsel.evaluation.nestedcv import Nested, OuterFold, nested
from kernsel.evaluation.significance import Paired, Ranks, friedman, paired

__all__ = ["Nested", "OuterFold", "Paired", "Ranks", "friedman", "nested", "paired"]
