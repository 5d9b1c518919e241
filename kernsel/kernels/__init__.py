"""Kernels: frozen values that turn data into Gram matrices."""

from kernsel.kernels.ard import ARD, ARDLaplacian, ARDPolynomial
from kernsel.kernels.base import Constant, Kernel, On, Product, Scale, Sum
from kernsel.kernels.dot import Linear, Polynomial
from kernsel.kernels.given import Function, Precomputed, is_precomputed
from kernsel.kernels.metric import Metric
from kernsel.kernels.pairwise import Compiled, Pairwise
from kernsel.kernels.radial import Exponential, Gaussian, Laplacian, Matern32, Matern52, RationalQuadratic
from kernsel.kernels.statistics import Statistics
from kernsel.kernels.text import from_spec, parse, short

__all__ = [
    "ARD",
    "ARDLaplacian",
    "ARDPolynomial",
    "Compiled",
    "Constant",
    "Exponential",
    "Function",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern32",
    "Matern52",
    "Metric",
    "On",
    "Pairwise",
    "Polynomial",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Scale",
    "Statistics",
    "Sum",
    "from_spec",
    "is_precomputed",
    "parse",
    "short",
]
