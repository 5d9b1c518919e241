"""The spectrum of the integral operator of the Gaussian kernel under a normal distribution of the data.

``(L f)(x) = E_z exp(-|x - z|^2 / (2 tau)) f(z)`` is a product over independent attributes. That of one attribute of
variance v has a geometric spectrum (Rasmussen & Williams 2006, eq. 4.40): with ``w = sqrt(1 + 4 v / tau)`` and
``B = (w - 1) / (w + 1)`` its eigenvalues are ``(1 - B) B^k`` for k = 0, 1, ...
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice

import numpy as np

SEEN = 1e-300
"""An attribute that varies less than this, beside the width, has one eigenvalue, 1."""


def gaussian_operator(variances: np.ndarray, tau: float, count: int) -> np.ndarray:
    """Return the ``count`` largest eigenvalues, descending; there are infinitely many, and their sum is 1.

    With ``c_r = -log B_r`` the logarithms of all products are those of the first less a sum of ``k_r c_r``, and the
    largest products belong to the smallest sums.

    Parameters
    ----------
    variances : (d,) array
        Of the attributes; one of variance 0 changes nothing.
    tau : float
        Squared width of the kernel.
    """
    ratios = 4.0 * variances / tau
    above = ratios / (np.sqrt(1.0 + ratios) + 1.0)  # w - 1, with all its digits where the kernel is wide
    first = -np.log1p(above / 2.0).sum()
    rates = np.log1p(2.0 / above[above > SEEN])
    sums = np.fromiter(islice(smallest_sums(np.sort(rates).tolist()), count), np.float64)
    found: np.ndarray = np.zeros(count)
    found[: sums.size] = np.exp(first - sums)
    return found


def smallest_sums(rates: list[float]) -> Iterator[float]:
    """Yield the sums of all multisets of positive numbers, ascending, the m-th in O(log m) steps.

    A multiset, written in ascending order, has two children: its last member once more, and its last member replaced
    by the next number. So every multiset is reached once, from one that is not larger, and none needs to be stored:
    its sum and its last member tell those of its children.

    Parameters
    ----------
    rates : list of float, ascending
    """
    yield 0.0
    heap = [(rates[0], 0)] if rates else []
    while heap:
        total, last = heap[0]
        yield total
        heapq.heapreplace(heap, (total + rates[last], last))
        if last + 1 < len(rates):
            heapq.heappush(heap, (total - rates[last] + rates[last + 1], last + 1))
