"""Kernels that are learnt: the weights of a sum."""

from kernsel.learning.infinite import Infinite
from kernsel.learning.methods import KKS, Alignment, Easy, Lp, Method, Simple, Uniform
from kernsel.learning.mkl import METHODS, LearntKernel, learn_mkl, learn_mkl_dataset

__all__ = [
    "KKS",
    "METHODS",
    "Alignment",
    "Easy",
    "Infinite",
    "LearntKernel",
    "Lp",
    "Method",
    "Simple",
    "Uniform",
    "learn_mkl",
    "learn_mkl_dataset",
]
