"""The kernels whose weights are learnt, with their Gram matrices on the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernsel.errors import OptionError, SelectionError, check_memory
from kernsel.folds.partition import Partition
from kernsel.kernels import Kernel, Sum, short
from kernsel.numerics import mkl
from kernsel.numerics.smooth import convergence
from kernsel.paths import Path, make_path
from kernsel.protocols import Learner
from kernsel.representation.problem import Problem
from kernsel.types import Array


@dataclass(frozen=True, eq=False)
class Pool:
    """Kernels on rows, each divided by its mean diagonal: unit trace, times the number of rows.

    Weights are of the kernels as divided, and can be compared; lambda means what it does for a single Gaussian kernel.

    Parameters
    ----------
    kernels : tuple of Kernel
        Without free parameters.
    """

    rows: Partition
    kernels: tuple[Kernel, ...]

    @cached_property
    def scales(self) -> Array:
        """Mean of ``k(x, x)`` over the rows, for each kernel, (m,)."""
        means = np.array([self.rows.s @ kernel.diag(self.rows.X) for kernel in self.kernels]) / self.rows.total
        for kernel, mean in zip(self.kernels, means, strict=True):
            if not (mean > 0 and np.isfinite(mean)):
                is_what = "0 on all rows" if mean == 0 else "not finite on these rows"
                raise OptionError(f"kernel '{short(kernel)}' is {is_what}: leave it out, or change its parameters")
        return means

    @cached_property
    def grams(self) -> Array:
        """Gram matrices of the kernels as divided, (m, n, n)."""
        n, m = self.rows.n, len(self.kernels)
        check_memory(
            8 * n**2 * (m + 6),
            f"learning the weights of {m} kernels on {n} rows",
            f"learn on fewer rows, such as --rows {max(n // 4, 2)}, or give fewer kernels",
        )
        G = np.empty((m, n, n))
        for i, (kernel, scale) in enumerate(zip(self.kernels, self.scales, strict=True)):
            G[i] = kernel.evaluate(self.rows.statistics)
            G[i] /= scale
            if not np.isfinite(G[i]).all():
                raise OptionError(f"kernel '{short(kernel)}' is not finite on these rows: change its parameters")
        return G

    def kernel(self, weights: Array) -> Kernel:
        """Return the sum of the kernels with ``weights`` (m,), as any kernel of the library."""
        return combined(self.kernels, weights, self.scales)

    def with_kernels(self, kernels: Sequence[Kernel]) -> Pool:
        """Return other kernels on the same rows."""
        return Pool(self.rows, tuple(kernels))

    def path(self, weights: Array, learner: Learner, lams: Iterable[float]) -> Path:
        """Return the path of a learner on the weighted sum."""
        problem = Problem(self.rows, self.kernel(weights), gram=mkl.weighted_sum(self.grams, weights))
        return make_path(problem, learner, lams)

    def fit(self, weights: Array, learner: Learner, lam: float) -> tuple[float, Array]:
        """Return the mean minimum J of the objective on the weighted sum, over outputs, and coefficients (k, n)."""
        rows, path = self.rows, self.path(weights, learner, [lam])
        if not learner.loss.square and path.fits.status.any():
            reason = convergence.REASONS[int(path.fits.status.max())]
            raise SelectionError(
                f"learner '{learner.name}' with lambda = {lam:.4g}: {reason} on the weighted sum of the kernels; give "
                "a larger lambda"
            )
        a = path.coefficients(0)
        f = a @ path.problem.gram
        outputs = f + path.intercepts(0)[:, None] if learner.bias else f
        losses = learner.loss.value(rows.Y, outputs) @ rows.s / rows.total
        return float(np.mean(losses + lam * np.einsum("ci,ci->c", a, f))), a

    def fitter(self, learner: Learner, lam: float) -> mkl.Fit:
        """Return the function of weights (m,) that gives the minimum of the objective and the energies q (m,)."""

        def fit(weights: Array) -> tuple[float, Array]:
            J, a = self.fit(weights, learner, lam)
            return J, mkl.energies(self.grams, a)

        return fit


def combined(kernels: Sequence[Kernel], weights: Array, scales: Array) -> Kernel:
    """Return ``sum_m (weights_m / scale_m) k_m``, the largest weight first, without those of weight 0."""
    parts = [float(weights[i] / scales[i]) * kernels[i] for i in descending(weights) if weights[i] > 0]
    return parts[0] if len(parts) == 1 else Sum(tuple(parts))


def descending(weights: Array) -> list[int]:
    """Return the numbers of the kernels, that of the largest weight first."""
    return [int(i) for i in np.argsort(-weights, kind="stable")]
