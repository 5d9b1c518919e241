"""Infinite kernel learning: weights of kernels whose widths are learnt as well, one kernel after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernsel.errors import OptionError
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel
from kernsel.learning.methods import Method, Weights, check_number
from kernsel.learning.pool import Pool
from kernsel.learning.start import mean_diagonal
from kernsel.numerics import mkl
from kernsel.protocols import Learner
from kernsel.text import listing
from kernsel.types import Array

PRECISION = 1e-3
"""A free parameter is searched to this relative precision."""

ROUGH = 0.1
"""Weights are learnt to this share of the last duality gap while kernels are still to be added."""

LARGEST = 10.0
"""A relevance is at most so many times the equal ones that it starts from, and the number of features."""


@dataclass(frozen=True)
class Infinite(Method):
    """Infinite kernel learning: SimpleMKL over all values of the kernels' free parameters, by column generation.

    The weights of a few kernels are learnt, the kernel is added that violates the optimality conditions most, that of
    the largest ``a' K_theta a`` (of unit mean diagonal), and so on, until there is none. One free parameter is searched
    between the ends of its grid, from all its values; the relevances of ``ard`` by their gradient, from the best equal
    ones, where they may end at 0. The duality gap counts what was found so.

    Parameters
    ----------
    tolerance : float
        The duality gap to stop at, relative to the objective.
    most : int
        Rounds, and so kernels, at most.
    """

    name: ClassVar[str] = "infinite"
    reference: ClassVar[str] = "Gehler & Nowozin 2008, Algorithm 1"
    continuous: ClassVar[bool] = True

    tolerance: float = 0.01
    most: int = 100

    def __post_init__(self) -> None:
        check_number(self, "tolerance", 0.0, above=True)
        check_number(self, "most", 1.0)

    def equal(self, pool: Pool) -> tuple[Pool, Array]:
        templates = [Template.of(kernel, pool.rows) for kernel in pool.kernels]
        middles = pool.with_kernels([template.points[len(template.points) // 2] for template in templates])
        return super().equal(middles)

    def learn(self, pool: Pool, learner: Learner, lam: float) -> Weights:
        rows = pool.rows
        templates = [Template.of(kernel, rows) for kernel in pool.kernels]
        loss = learner.loss.expand(rows.Y, rows.s, np.zeros((len(rows.Y), 1, rows.n)))
        a = -loss[1][:, 0] / (2.0 * rows.total * lam)  # the coefficients' equation, at the outputs 0
        active = pool.with_kernels([most_violating(templates, rows, a)[0]])
        weights, history, left = np.ones(1), [], 0.0
        while True:
            rough = max(self.tolerance / 2.0, ROUGH * left)
            weights, values, _ = mkl.reduced_gradient(active.fitter(learner, lam), weights, lam, rough)
            history.append(values[-1])
            J, a = active.fit(weights, learner, lam)
            kernel, energy = most_violating(templates, rows, a)
            gap = float(lam * (energy - weights @ mkl.energies(active.grams, a)) / J)
            known = kernel in active.kernels  # its weight is not settled yet, unless that is as good as it gets
            if gap <= self.tolerance or len(history) == self.most or (known and rough == self.tolerance / 2.0):
                return Weights.of(active, weights, history, max(gap, 0.0), self.tolerance)
            left = 0.0 if known else gap
            if not known:
                kept = weights > 0.0
                used = [each for each, keep in zip(active.kernels, kept, strict=True) if keep]
                active = pool.with_kernels([*used, kernel])
                weights = np.append(weights[kept], weights.mean()) / (1.0 + weights.mean())


@dataclass(frozen=True, eq=False)
class Template:
    """A kernel of which the method sets what is free.

    Parameters
    ----------
    points : tuple of Kernel
        The kernel with every value of its grid; itself if nothing is free.
    values : (g,) array
        Those values.
    """

    kernel: Kernel
    points: tuple[Kernel, ...]
    values: Array

    @classmethod
    def of(cls, kernel: Kernel, rows: Partition) -> Template:
        """Return the template; OptionError if it leaves too much free."""
        relevant: Any = kernel if kernel.unlearnt and kernel.unlearnt == kernel.free else None
        equal: Kernel = kernel if relevant is None else relevant.isotropic
        axes = equal.axes(rows.X)
        if len(equal.free) > 1 or len(axes) < len(equal.free):
            raise OptionError(
                f"method 'infinite' sets one free parameter of a kernel, or relevances, but '{kernel}' leaves "
                f"{listing(equal.free)}: give all but one a number"
            )
        if not axes:
            return cls(kernel, (kernel,), np.zeros(0))
        ((name, values),) = axes.items()
        points = (equal.with_parameters(**{name: value}) for value in values.tolist())
        if relevant is not None:
            points = (relevant.from_isotropic(each, rows.X.shape[1]) for each in points)
        return cls(kernel, tuple(points), np.asarray(values))

    def refined(self, best: int, rows: Partition, a: Array) -> Kernel:
        """Return the kernel of largest energy near the grid's point number ``best``."""
        if self.kernel.unlearnt:
            return _by_gradient(self.points[best], rows, a)
        if self.values.dtype.kind != "f" or self.values.size < 2:
            return self.points[best]
        ends = np.log(self.values[[max(best - 1, 0), min(best + 1, self.values.size - 1)]])
        from scipy.optimize import minimize_scalar  # takes a while to import

        (name,) = self.kernel.free

        def at(log: float) -> Kernel:
            return self.kernel.with_parameters(**{name: float(np.exp(log))})

        found = minimize_scalar(
            lambda log: -energy(at(log), rows, a), bounds=ends, method="bounded", options={"xatol": PRECISION}
        )
        return at(found.x)


def most_violating(templates: Sequence[Template], rows: Partition, a: Array) -> tuple[Kernel, float]:
    """Return the kernel of the largest energy for coefficients a (k, n), and that energy."""
    grid = [[energy(kernel, rows, a) for kernel in template.points] for template in templates]
    template = max(range(len(templates)), key=lambda i: max(grid[i]))
    best = int(np.argmax(grid[template]))
    kernels = [templates[template].refined(best, rows, a), templates[template].points[best]]
    return max(((kernel, energy(kernel, rows, a)) for kernel in kernels), key=lambda each: each[1])


def energy(kernel: Kernel, rows: Partition, a: Array) -> float:
    """Return ``(1/k) sum_c a_c' K a_c`` of a kernel divided by its mean diagonal."""
    return float(np.vdot(a @ kernel.evaluate(rows.statistics), a) / len(a) / mean_diagonal(kernel, rows))


def _by_gradient(kernel: Any, rows: Partition, a: Array) -> Kernel:
    """Return the relevances of largest energy that are uphill from those of a kernel."""
    from scipy.optimize import minimize  # takes a while to import

    start, W, S = np.array(kernel.theta), a.T @ a / len(a), np.diag(rows.s / rows.total)
    first = energy(kernel, rows, a) or 1.0

    def fall(v: Array) -> tuple[float, Array]:  # not of the logarithm: with a bias the energy is 0 where theta is
        at = kernel.with_theta(v * start)
        K, scale = at.evaluate(rows.statistics), mean_diagonal(at, rows)
        size = float(np.vdot(W, K)) / scale
        slope = (at.theta_vjp(rows.X, W, K) - size * at.theta_vjp(rows.X, S, K)) / scale
        return -size / first, -slope * start / first

    bounds = [(0.0, LARGEST * start.size)] * start.size
    found = minimize(fall, np.ones(start.size), jac=True, method="L-BFGS-B", bounds=bounds)
    uphill: Kernel = kernel.with_theta(found.x * start)
    return uphill
