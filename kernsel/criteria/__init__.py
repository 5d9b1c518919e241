"""Criteria: what scores a learner on a kernel; lower is better."""

from kernsel.criteria.base import About, HeldOutCriterion, PenalisedFit, Scores
from kernsel.criteria.crossvalidation import CV, NewtonCV
from kernsel.criteria.influence import BIF, FBIF
from kernsel.criteria.stability import CVKS, RKS

__all__ = ["BIF", "CV", "CVKS", "FBIF", "RKS", "About", "HeldOutCriterion", "NewtonCV", "PenalisedFit", "Scores"]
