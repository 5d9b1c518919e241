"""Which rows each fold of a cross-validation holds out, and which its fit is trained on."""

from kernsel.folds.dealing import deal, deal_groups
from kernsel.folds.holdouts import Folds, check_text, make_folds

__all__ = ["Folds", "check_text", "deal", "deal_groups", "make_folds"]
