"""Criteria: what scores a learner on a kernel; lower is better."""

from kernsel.criteria.base import About, HeldOutCriterion, PenalisedFit, Scores, Slopes
from kernsel.criteria.crossvalidation import CV, NewtonCV
from kernsel.criteria.evidence import Evidence
from kernsel.criteria.influence import BIF, FBIF
from kernsel.criteria.leaveoneout import BR, ELOO, GCV, LOO
from kernsel.criteria.stability import CVKS, RKS

__all__ = [
    "BIF",
    "BR",
    "CV",
    "CVKS",
    "ELOO",
    "FBIF",
    "GCV",
    "LOO",
    "RKS",
    "About",
    "Evidence",
    "HeldOutCriterion",
    "NewtonCV",
    "PenalisedFit",
    "Scores",
    "Slopes",
]
