"""Criteria: what scores a learner on a kernel; lower is better."""

from kernsel.criteria.base import About, HeldOutCriterion, PenalisedFit, Penalty, Scores
from kernsel.criteria.crossvalidation import CV, NewtonCV
from kernsel.criteria.influence import BIF, FBIF
from kernsel.criteria.spectral import EP, ER, SPS, SPSSurrogate
from kernsel.criteria.stability import CVKS, RKS

__all__ = [
    "BIF",
    "CV",
    "CVKS",
    "EP",
    "ER",
    "FBIF",
    "RKS",
    "SPS",
    "About",
    "HeldOutCriterion",
    "NewtonCV",
    "PenalisedFit",
    "Penalty",
    "SPSSurrogate",
    "Scores",
]
