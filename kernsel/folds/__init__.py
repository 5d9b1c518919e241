"""Which rows each fold of a cross-validation holds out, and which its fit is trained on."""

from kernsel.folds.dealing import deal, deal_copies, deal_groups
from kernsel.folds.holdouts import Folds, check_text, copies_apart, keeps_copies, make_deals, make_folds

__all__ = [
    "Folds",
    "check_text",
    "copies_apart",
    "deal",
    "deal_copies",
    "deal_groups",
    "keeps_copies",
    "make_deals",
    "make_folds",
]
