"""Learners: a loss, whether there is a bias, and the tasks it is for."""

from kernsel.learners.base import Learner, Tunable
from kernsel.learners.klr import Klr
from kernsel.learners.krr import Krr, Lssvm
from kernsel.learners.losses import Loss, Measure
from kernsel.learners.svm import L2Svm, Svm
from kernsel.learners.svr import Qsvr, Svr

__all__ = ["Klr", "Krr", "L2Svm", "Learner", "Loss", "Lssvm", "Measure", "Qsvr", "Svm", "Svr", "Tunable"]
