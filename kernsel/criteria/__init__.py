"""Criteria: what scores a learner on a kernel; lower is better."""

from kernsel.criteria.alignment import FSM, Alignment, CenteredAlignment, Separability
from kernsel.criteria.base import About, Criterion, HeldOutCriterion, PenalisedFit, Penalty, Scores, Slopes
from kernsel.criteria.crossvalidation import CV, NewtonCV
from kernsel.criteria.evidence import Evidence
from kernsel.criteria.influence import BIF, FBIF
from kernsel.criteria.leaveoneout import BR, ELOO, GCV, LOO
from kernsel.criteria.margins import GACV, RadiusMargin, Span, XiAlpha
from kernsel.criteria.spectral import EP, ER, SPS, SPSSurrogate
from kernsel.criteria.stability import CVKS, RKS

__all__ = [
    "BIF",
    "BR",
    "CV",
    "CVKS",
    "ELOO",
    "EP",
    "ER",
    "FBIF",
    "FSM",
    "GACV",
    "GCV",
    "LOO",
    "RKS",
    "SPS",
    "About",
    "Alignment",
    "CenteredAlignment",
    "Criterion",
    "Evidence",
    "HeldOutCriterion",
    "NewtonCV",
    "PenalisedFit",
    "Penalty",
    "RadiusMargin",
    "SPSSurrogate",
    "Scores",
    "Separability",
    "Slopes",
    "Span",
    "XiAlpha",
]
