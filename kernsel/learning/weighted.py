"""What learning weights of kernels hands back: the weights, and the weighted sum as one kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kernsel.kernels import Kernel, On, short
from kernsel.learning.methods import Method
from kernsel.learning.pool import combined, descending
from kernsel.text import aligned, to_json
from kernsel.types import Array
from kernsel.version import __version__

if TYPE_CHECKING:
    import pandas as pd


FORMAT, VERSION = "kernsel-mkl", 1


@dataclass(frozen=True, eq=False)
class WeightedKernel:
    """The outcome of :func:`kernsel.learn_mkl`: weights of kernels, and their weighted sum.

    Parameters
    ----------
    kernels : tuple of Kernel
        All that were candidates.
    weights : (m,) array
        At least 0; each is the weight of a kernel divided by its scale.
    scales : (m,) array
        Mean of ``k(x, x)`` over the rows, for each kernel.
    method : Method
    learner : str or None
        Whose fits the method looked at.
    lam : float or None
        The lambda of those fits.
    history : list of float
        The method's objective after each step.
    gap : float or None
        Duality gap, relative to the objective, for the methods that have one.
    features : tuple of str
        The names of the encoded features.
    data, options, timing : dict
        What was learnt on, how, and in how many seconds.
    warnings : list of str
        What should be known before the kernel is used.
    """

    kernels: tuple[Kernel, ...]
    weights: Array
    scales: Array
    method: Method
    learner: str | None
    lam: float | None
    history: list[float]
    gap: float | None
    features: tuple[str, ...]
    data: Mapping[str, Any]
    options: Mapping[str, Any]
    timing: Mapping[str, float]
    warnings: list[str]

    @cached_property
    def kernel(self) -> Kernel:
        """The sum of the kernels with their weights, as any kernel: for ``kernsel.select(X, y, kernel=...)``."""
        return combined(self.kernels, self.weights, self.scales)

    @cached_property
    def table(self) -> pd.DataFrame:
        """All kernels, the largest weight first: weight, scale, text, and the names of the features they see."""
        import pandas as pd

        return pd.DataFrame(
            {
                "weight": self.weights[i],
                "kernel": str(self.kernels[i]),
                "features": self._sees(self.kernels[i]),
                "scale": self.scales[i],
            }
            for i in descending(self.weights)
        )

    def _seen(self, kernel: Kernel) -> list[str]:
        return [self.features[j] for j in kernel.features] if isinstance(kernel, On) else []

    def _sees(self, kernel: Kernel) -> str:
        return ", ".join(self._seen(kernel)) or "all"

    def summary(self) -> str:
        """Return the weights for people."""
        used = [i for i in descending(self.weights) if self.weights[i] > 0]
        by = f" by the fits of {self.learner} with lambda = {self.lam:.4g}" if self.learner is not None else ""
        rows = [("", f"{self.weights[i]:.4g}", short(self.kernels[i]), self._sees(self.kernels[i])) for i in used]
        have = "has" if len(used) == 1 else "have"
        lines = [
            f"{self._method()}{by}: {len(used)} of {len(self.kernels)} kernels {have} a weight",
            "",
            *aligned([("", "weight", "kernel", "features"), *rows]),
            "",
            "  weights are of kernels divided by their mean k(x, x) over the rows",
        ]
        if self.data["learnt_on"] < self.data["rows"]:
            lines.append(f"  learnt on {self.data['learnt_on']} of {self.data['rows']} rows, drawn at random")
        if len(self.history) == 1:
            lines.append(f"  objective: {self.history[0]:.5g}")
        elif self.history:
            gap = f", at most {100 * self.gap:.2g} % above its minimum" if self.gap is not None else ""
            lines.append(f"  objective: {self.history[0]:.5g} at first, {self.history[-1]:.5g} in the end{gap}")
        return "\n".join(lines)

    def _method(self) -> str:
        values = dataclasses.asdict(self.method)
        return self.method.name + f"({', '.join(f'{name}={value:g}' for name, value in values.items())})" * bool(values)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "kernel": self.kernel.spec(),
            "text": str(self.kernel),
            "kernels": [
                {
                    "kernel": self.kernels[i].spec(),
                    "features": self._seen(self.kernels[i]) or None,
                    "weight": float(self.weights[i]),
                    "scale": float(self.scales[i]),
                }
                for i in descending(self.weights)
            ],
            "method": {"name": self.method.name, **dataclasses.asdict(self.method)},
            "learner": self.learner,
            "lambda": self.lam,
            "objective": list(self.history),
            "gap": self.gap,
            "data": dict(self.data),
            "options": dict(self.options),
            "timing": dict(self.timing),
            "environment": {"kernsel": __version__},
            "warnings": list(self.warnings),
        }

    def to_json(self) -> str:
        """Return ``to_dict`` as one JSON document."""
        return to_json(self.to_dict())

    def __repr__(self) -> str:
        return f"<WeightedKernel: {self._method()}, {(self.weights > 0).sum()} of {len(self.kernels)} kernels>"
