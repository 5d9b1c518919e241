"""Kernels that are learnt, not chosen from a grid."""

from kernsel.learning.infinite import Infinite
from kernsel.learning.learned import LearnedKernel, LearningStep
from kernsel.learning.methods import KKS, Alignment, Easy, Lp, Method, Simple, Uniform
from kernsel.learning.mkl import METHODS, learn_mkl, learn_mkl_on_dataset
from kernsel.learning.relevances import PUBLISHED, learn_on_dataset, learn_relevances
from kernsel.learning.weighted import WeightedKernel

__all__ = [
    "KKS",
    "METHODS",
    "PUBLISHED",
    "Alignment",
    "Easy",
    "Infinite",
    "LearnedKernel",
    "LearningStep",
    "Lp",
    "Method",
    "Simple",
    "Uniform",
    "WeightedKernel",
    "learn_mkl",
    "learn_mkl_on_dataset",
    "learn_on_dataset",
    "learn_relevances",
]
