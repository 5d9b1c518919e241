"""Criteria: what scores a learner on a kernel; lower is better."""

from kernsel.criteria.alignment import FSM, Alignment, CenteredAlignment, Separability
from kernsel.criteria.base import About, HeldOutCriterion, PenalisedFit, Scores
from kernsel.criteria.crossvalidation import CV, NewtonCV
from kernsel.criteria.influence import BIF, FBIF
from kernsel.criteria.margins import GACV, RadiusMargin, Span, XiAlpha

__all__ = [
    "BIF",
    "CV",
    "FBIF",
    "FSM",
    "GACV",
    "About",
    "Alignment",
    "CenteredAlignment",
    "HeldOutCriterion",
    "NewtonCV",
    "PenalisedFit",
    "RadiusMargin",
    "Scores",
    "Separability",
    "Span",
    "XiAlpha",
]
