"""Parameters in scikit-learn's terms: ``C = 1 / (2 n lambda)``, ``alpha = n lambda``, and a kernel's gamma."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kernsel.errors import OptionError
from kernsel.kernels import Kernel
from kernsel.protocols import Learner, SupportsConversions
from kernsel.text import listing
from kernsel.types import Array

_LAMBDA: Mapping[str, Callable[[Array, float], Array]] = {
    "C": lambda values, n: 1.0 / (2.0 * n * values),
    "alpha": lambda values, n: values / n,
}


def in_own_words(
    values: Mapping[str, Array], kernels: Sequence[Kernel], n: float, learner: Learner
) -> dict[str, Array]:
    """Return the values of a grid by kernsel's names for the parameters.

    Parameters
    ----------
    values : mapping of name to ascending array
    n : float
        Number of rows, or the sum of their weights.

    Raises
    ------
    OptionError
        ``C`` or ``alpha`` is none of the learner's terms, ``gamma`` means something else for each kernel, or a
        parameter is given by two names.
    """
    read = dict(values)
    own = {*getattr(learner, "searchable", ()), *(name for kernel in kernels for name in kernel.free)}
    for word, convert in _LAMBDA.items():
        if word not in read or word in own:
            continue
        terms = learner.conversions(n, 1.0) if isinstance(learner, SupportsConversions) else {}
        if word not in terms:
            known = listing([*(term for term in terms if term in _LAMBDA), "lambda"], "or")
            raise OptionError(f"grid: learner '{learner.name}' has no {word}; its regularisation is {known}")
        _put(read, word, "lambda", convert(_positive(word, read[word]), n))
    if "gamma" in read and "gamma" not in own:
        able = [kernel for kernel in kernels if kernel.width in kernel.free and hasattr(kernel, "from_gamma")]
        widths = {str(kernel.width) for kernel in able}
        if len(widths) > 1:
            listed = ", ".join(f"'{kernel}'" for kernel in kernels)
            raise OptionError(
                f"grid: gamma means another width for each of {listed}; give {' and '.join(sorted(widths))}"
            )
        for width in widths:
            part: Any = next(type(kernel) for kernel in able if kernel.width == width)
            made = [part.from_gamma(value) for value in _positive("gamma", read["gamma"]).tolist()]
            _put(read, "gamma", width, np.array([each.parameters[width] for each in made]))
    return read


def _positive(word: str, values: Array) -> Array:
    if values[0] <= 0:
        raise OptionError(f"grid: {word} must be greater than 0, not {values[0]:g}")
    return values


def _put(read: dict[str, Array], word: str, own: str, values: Array) -> None:
    """Put values in the place of another word's."""
    if own in read:
        raise OptionError(f"grid: {word} and {own} are one parameter; give one of them")
    del read[word]
    read[own] = np.sort(values)
