"""How the weights of kernels are learnt: one frozen value a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from kernsel.errors import IncompatibleError, OptionError, SelectionError
from kernsel.kernels import Kernel
from kernsel.learners import Krr, L2Svm
from kernsel.learning.pool import Pool
from kernsel.numerics import mkl, stability
from kernsel.numerics.square import gradients
from kernsel.parts import read_learner
from kernsel.protocols import Learner
from kernsel.types import Array


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of kernels that a method found.

    Parameters
    ----------
    kernels : tuple of Kernel
        All that have been candidates.
    weights : (m,) array
        Their weights, each of a kernel divided by its mean diagonal.
    scales : (m,) array
        Those mean diagonals.
    history : list of float
        The objective after each step.
    gap : float or None
        Duality gap: by how much the objective is at most above its minimum, relative to it; None where there is none.
    tolerance : float
        The gap that was asked for.
    """

    kernels: tuple[Kernel, ...]
    weights: Array
    scales: Array
    history: list[float] = field(default_factory=list)
    gap: float | None = None
    tolerance: float = np.inf

    @classmethod
    def of(
        cls, pool: Pool, weights: Array, history: list[float], gap: float | None = None, tolerance: float = np.inf
    ) -> Weights:
        """Return weights of the kernels of a pool."""
        return cls(pool.kernels, weights, pool.scales, history, gap, tolerance)


@dataclass(frozen=True)
class Method(ABC):
    """A way to weights, all >= 0, of kernels whose mean diagonal is 1."""

    name: ClassVar[str]
    reference: ClassVar[str]
    continuous: ClassVar[bool] = False
    """Whether kernels keep their free parameters, which the method sets itself."""

    norm: ClassVar[float] = 1.0
    """The p of ``|weights|_p = 1``; a method that leaves the choice has a field ``p``."""

    def start(self, m: int) -> Array:
        """Return equal weights (m,) of the method's norm."""
        return np.full(m, m ** (-1.0 / getattr(self, "p", self.norm)))

    def equal(self, pool: Pool) -> tuple[Pool, Array]:
        """Return the kernels, and equal weights of them, for which lambda is chosen first."""
        return pool, self.start(len(pool.kernels))

    def learner(self, learner: str | Learner | None, task: str) -> Learner | None:
        """Return the learner whose fits the method uses, or None; IncompatibleError if it can't be used."""
        return read_learner(learner, task)

    @abstractmethod
    def learn(self, pool: Pool, learner: Learner, lam: float) -> Weights:
        """Learn the weights."""


def check_number(method: Method, name: str, least: float, *, above: bool = False) -> None:
    """Raise OptionError unless a parameter of a method is a finite number from, or above, the least."""
    value = float(getattr(method, name))
    if not (least < value if above else least <= value) or not np.isfinite(value):
        wanted = f"greater than {least:g}" if above else f"of at least {least:g}"
        raise OptionError(f"method '{method.name}': {name} must be a finite number {wanted}, not {value!r}")


class _Unfitted(Method):
    """A method that looks at the kernels alone."""

    def learner(self, learner: str | Learner | None, task: str) -> Learner | None:
        if learner is not None:
            raise IncompatibleError(
                f"method '{self.name}' looks at no fits, so it has no learner: leave it out here, and give it to the "
                "selection"
            )
        return None


@dataclass(frozen=True)
class Uniform(_Unfitted):
    """The mean of the kernels, ``weights_m = 1/m``: nothing is learnt, and it is hard to beat."""

    name: ClassVar[str] = "uniform"
    reference: ClassVar[str] = "Gönen & Alpaydın 2011, Section 3.1"

    def learn(self, pool: Pool, learner: Learner, lam: float) -> Weights:
        return Weights.of(pool, self.start(len(pool.kernels)), [])


@dataclass(frozen=True)
class Alignment(_Unfitted):
    """The greatest alignment of the centred kernel with the targets, ``<K_c, y y'> / (|K_c| |y y'|)``.

    ``min_{v >= 0} v'Mv - 2 v'b``, ``weights = v / sum v``, with ``M_lm = <K_lc, K_mc>`` and ``b_m = <K_mc, y y'>``; of
    several outputs ``y y'`` is the sum. The objective is minus the alignment.
    """

    name: ClassVar[str] = "alignment"
    reference: ClassVar[str] = "Cortes, Mohri & Rostamizadeh 2012, Proposition 9"

    def learn(self, pool: Pool, learner: Learner, lam: float) -> Weights:
        weights, alignment = mkl.aligned(pool.grams, pool.rows.Y, pool.rows.s)
        if not weights.any():
            raise SelectionError("method 'alignment': no kernel is aligned with the target at all; use another method")
        return Weights.of(pool, weights, [-alignment])


@dataclass(frozen=True)
class Easy(Method):
    """EasyMKL: ``weights_m`` in proportion to ``g' Y K_m Y g``, where g are the weights of the classes' nearest points.

    g minimises ``(1 - L) g' Y Kbar Y g + L |g|^2`` over ``g >= 0`` of sum 1 in each class, Kbar the mean of the
    kernels. Up to a factor these are the coefficients of the squared hinge with a bias and the ridge
    ``n lambda = L / (1 - L)``: one fit of ``l2svm(bias=true)``. (The paper has the sum of the m kernels in place of
    their mean: there it is ``m n lambda``.) Of several classes each against the rest counts the same.
    """

    name: ClassVar[str] = "easy"
    reference: ClassVar[str] = "Aiolli & Donini 2015, equations 8 and 9"

    def learner(self, learner: str | Learner | None, task: str) -> Learner | None:
        if task != "classification":
            raise IncompatibleError(f"method 'easy' is for classification, not for a {task}: use simple, lp or k-ks")
        if learner is not None:
            raise IncompatibleError(
                "method 'easy' looks at the fits of l2svm(bias=true) always: leave the learner out here, and give it "
                "to the selection"
            )
        return L2Svm(bias=True)

    def learn(self, pool: Pool, learner: Learner, lam: float) -> Weights:
        J, a = pool.fit(self.start(len(pool.kernels)), learner, lam)
        nearest = a / np.abs(a).sum(axis=1, keepdims=True)
        q = mkl.energies(pool.grams, nearest)
        return Weights.of(pool, q / q.sum(), [J])


@dataclass(frozen=True)
class Simple(Method):
    """SimpleMKL: ``min_{weights >= 0, sum weights = 1} min_f (1/n) sum V(y, f) + lambda ||f||^2`` by reduced gradients.

    Sparse: most weights become exactly 0.

    Parameters
    ----------
    tolerance : float
        The duality gap to stop at, relative to the objective.
    """

    name: ClassVar[str] = "simple"
    reference: ClassVar[str] = "Rakotomamonjy, Bach, Canu & Grandvalet 2008, Algorithm 1"

    tolerance: float = 0.01

    def __post_init__(self) -> None:
        check_number(self, "tolerance", 0.0, above=True)

    def learn(self, pool: Pool, learner: Learner, lam: float) -> Weights:
        found = mkl.reduced_gradient(pool.fitter(learner, lam), self.start(len(pool.kernels)), lam, self.tolerance)
        return Weights.of(pool, *found, self.tolerance)


@dataclass(frozen=True)
class Lp(Method):
    """Lp-norm MKL: SimpleMKL's objective over weights of p-norm 1, by turns of a fit and of weights in closed form.

    Not sparse for p > 1; the larger p, the nearer to equal weights.

    Parameters
    ----------
    p : float
        At least 1.
    tolerance : float
        The duality gap to stop at, relative to the objective.
    """

    name: ClassVar[str] = "lp"
    reference: ClassVar[str] = "Kloft, Brefeld, Sonnenburg & Zien 2011, equation 20"

    p: float = 2.0
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        check_number(self, "p", 1.0)
        check_number(self, "tolerance", 0.0, above=True)

    def learn(self, pool: Pool, learner: Learner, lam: float) -> Weights:
        start = self.start(len(pool.kernels))
        found = mkl.alternation(pool.fitter(learner, lam), start, lam, self.p, self.tolerance)
        return Weights.of(pool, *found, self.tolerance)


@dataclass(frozen=True)
class KKS(Method):
    """Cross-validation with kernel stability (k-KS): ``min CV_k(K) + (eta/n) max_i |K - K^i|_2``, p-norm 1.

    ``CV_k`` is the mean squared held-out residual of exact refits. It is not convex in weights; the descent starts from
    equal weights.

    Parameters
    ----------
    eta : float
        Weight of the stability, at least 0; 0 leaves cross-validation alone.
    p : float
        At least 1.
    """

    name: ClassVar[str] = "k-ks"
    reference: ClassVar[str] = "Liu & Liao 2014 (KS14), Remark 1"

    eta: float = 1.0
    p: float = 1.0

    def __post_init__(self) -> None:
        check_number(self, "eta", 0.0)
        check_number(self, "p", 1.0)

    def learner(self, learner: str | Learner | None, task: str) -> Learner | None:
        part = Krr() if learner is None else read_learner(learner, task)
        if not part.loss.square:
            raise IncompatibleError(
                f"method 'k-ks' needs the square loss; learner '{part.name}' has another: use krr or lssvm, or the "
                "method simple"
            )
        return part

    def learn(self, pool: Pool, learner: Learner, lam: float) -> Weights:
        if pool.rows.training is not None:
            raise IncompatibleError(
                "method 'k-ks' needs folds whose fits are trained on all other rows; these splits aren't: give a "
                "number of folds, or use the method simple"
            )
        parts = stability_objective(pool, learner, lam, self.eta)
        try:
            weights, history = mkl.least_maximum(parts, self.start(len(pool.kernels)), self.p)
        except np.linalg.LinAlgError as error:
            raise SelectionError(f"method 'k-ks' with lambda = {lam:.4g}: {error}; give a larger lambda") from error
        return Weights.of(pool, weights, history)


def stability_objective(pool: Pool, learner: Learner, lam: float, eta: float) -> mkl.Parts:
    """Return ``CV_k(K) + (eta/n) max_i |K - K^i|_2`` as a function of weights, with the points i as its bounds."""
    rows, G, penalty = pool.rows, pool.grams, eta / pool.rows.total

    def parts(weights: Array) -> tuple[float, Array, Array, Array]:
        K = mkl.weighted_sum(G, weights)
        error, W, _ = gradients.cross_validation(K, rows.Y, rows.s, int(learner.bias), lam, rows.starts)
        gradient = np.tensordot(G, W, 2)
        if eta == 0:
            return error, gradient, np.zeros(0), np.zeros((0, len(G)))
        scan = stability.scan_gram(K, rows.weights)
        slopes = mkl.perturbation_slopes(K, rows.s, scan)
        derivatives = np.stack([np.einsum("ij,ij->i", slopes, each) for each in G], axis=1)
        return error, gradient, penalty * stability.perturbations(scan), penalty * derivatives

    return parts
