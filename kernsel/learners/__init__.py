"""Learners: a loss and the tasks it is for."""

from kernsel.learners.base import Learner
from kernsel.learners.krr import Krr
from kernsel.learners.losses import Loss
from kernsel.learners.svm import Svm

__all__ = ["Krr", "Learner", "Loss", "Svm"]
