"""Candidate kernels of multiple kernel learning, from a few that are named.

The families of Gehler & Nowozin 2008 (Section 4; the names are those of FLKL, Section 3.4):

* ``single``: the kernels as they are, on all features;
* ``separate``: these, and each of them on every feature alone;
* ``products``: a relevance for each feature, ``exp(-sum_r theta_r (x_r - z_r)^2)`` in place of the Gaussian kernel. So
  many numbers have no grid; the method ``infinite`` sets them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from kernsel.errors import OptionError
from kernsel.kernels import Kernel, On, parse
from kernsel.protocols.kernels import SupportsAnisotropy
from kernsel.search.axes import read_axis
from kernsel.text import listing, meant
from kernsel.types import Array

FAMILIES = ("single", "separate", "products")

MOST = 10_000
"""Kernels of a family beyond this number are refused: so many weights are not learnt from their Gram matrices."""


def family_of(kernels: Sequence[Kernel], family: str, d: int) -> list[Kernel]:
    """Return the kernels of a family on d features; free parameters stay free.

    Raises
    ------
    OptionError
        There is no such family, or it has no such kernel.
    """
    if family not in FAMILIES:
        hint = meant(family, FAMILIES) or f": use {listing(FAMILIES, 'or')}"
        raise OptionError(f"family {family!r} is unknown{hint}")
    if family == "products":
        return [_with_relevances(kernel) for kernel in kernels]
    alone = [On((j,), kernel) for kernel in kernels for j in range(d) if d > 1] if family == "separate" else []
    return [*kernels, *alone]


def _with_relevances(kernel: Kernel) -> Kernel:
    text = kernel.anisotropic if isinstance(kernel, SupportsAnisotropy) else None
    if text is not None:
        return parse(text)
    raise OptionError(
        "family products has kernels with a relevance for each feature: kernels of distances and polynomial, without a "
        f"width or gamma, not '{kernel}'"
    )


def on_grid(kernels: Sequence[Kernel], grid: Mapping[str, ArrayLike], X: Array) -> list[Kernel]:
    """Give the free parameters of kernels all values of a grid, each different kernel once.

    Parameters
    ----------
    grid : mapping of str to sequence of float
        Values by the name of a parameter; what has none gets those of the data, ``kernel.axes(X)``.
    X : (n, d) array

    Raises
    ------
    OptionError
        A parameter has no values, or there are too many kernels.
    """
    names = {name for kernel in kernels for name in kernel.free}
    for name in grid:
        if name not in names:
            raise OptionError(
                f"grid: no kernel has a free parameter {name!r}; free here: {listing(sorted(names) or ['none'])}"
            )
    given = {name: read_axis(name, values) for name, values in grid.items()}
    found: dict[Kernel, None] = {}
    for kernel in kernels:
        axes = {name: given.get(name, axis) for name, axis in kernel.axes(X).items()}
        values = [axis.tolist() for axis in axes.values()]
        if len(found) + math.prod(map(len, values)) > MOST:
            raise OptionError(
                f"these kernels are more than {MOST} with their grids: give fewer values by grid, or the method "
                "infinite, which has none"
            )
        for point in itertools.product(*values):
            found[kernel.with_parameters(**dict(zip(axes, point, strict=True)))] = None
    for kernel in found:
        kernel.require_fixed()
    return list(found)
