"""Kernels that are learnt, not chosen from a grid."""

from kernsel.learning.learned import LearnedKernel, Step
from kernsel.learning.relevances import PUBLISHED, learn_on_dataset, learn_relevances

__all__ = ["PUBLISHED", "LearnedKernel", "Step", "learn_on_dataset", "learn_relevances"]
