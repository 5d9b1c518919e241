"""Criteria: what scores a learner on a kernel; lower is better."""

from kernsel.criteria.base import HeldOutCriterion, Scores
from kernsel.criteria.crossvalidation import CV, NewtonCV
from kernsel.criteria.influence import BIF, FBIF

__all__ = ["BIF", "CV", "FBIF", "HeldOutCriterion", "NewtonCV", "Scores"]
