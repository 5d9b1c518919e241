"""Criteria: what scores a learner on a kernel; lower is better."""

from kernsel.criteria.base import About, HeldOutCriterion, PenalisedFit, Scores, Slopes
from kernsel.criteria.crossvalidation import CV, NewtonCV
from kernsel.criteria.evidence import Evidence
from kernsel.criteria.influence import BIF, FBIF
from kernsel.criteria.leaveoneout import BR, ELOO, GCV, LOO

__all__ = [
    "BIF",
    "BR",
    "CV",
    "ELOO",
    "FBIF",
    "GCV",
    "LOO",
    "About",
    "Evidence",
    "HeldOutCriterion",
    "NewtonCV",
    "PenalisedFit",
    "Scores",
    "Slopes",
]
