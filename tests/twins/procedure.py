"""Twins of the error of a whole selection: one draw and one candidate at a time, and the rule of choice itself."""

import math

import numpy as np
from scipy.optimize import brentq

from kernsel.search.candidate import Candidate


def taken(rule, candidates, values, errors, s, beyond):
    """The number of the candidate that a rule takes by some rows, with their weights s."""
    scored = [
        Candidate(
            c.kernel,
            c.lam,
            learner=c.learner,
            score=float(v @ s / s.sum() + b),
            score_se=c.score_se,
            error=float(e @ s / s.sum()),
            norm=c.norm,
        )
        for c, v, e, b in zip(candidates, values, errors, beyond, strict=True)
    ]
    lowest = min(scored, key=lambda c: c.order)
    return scored.index(rule.tied(scored, rule.limit(lowest))[0])


def out_of_bag(rule, candidates, table, drawn):
    """The mean loss of the rows that were not drawn, of each draw."""
    found = []
    for counts in drawn.astype(float):
        c = taken(rule, candidates, table.values, table.errors, counts * table.s, table.beyond)
        left = [i for i, count in enumerate(counts) if count == 0]
        if left:
            total = math.fsum(table.s[i] for i in left)
            found.append(math.fsum(table.s[i] * table.errors[c, i] for i in left) / total + table.shift[c])
    return np.array(found)


def largest_differences(table, at, drawn):
    """The largest standardised difference of sums over units, for each draw (B, n) of these."""
    share = table.s / table.s.sum()
    found = []
    first = [int(np.flatnonzero(table.units == u)[0]) for u in range(table.units.max() + 1)]
    for draw in drawn[:, first].astype(float):
        differences = [0.0]
        for values in table.values.astype(float):
            d = values - table.values[at]
            d = table.s * (d - d @ share)
            sums = [d[table.units == u].sum() for u in range(table.units.max() + 1)]
            size = math.sqrt(math.fsum(each**2 for each in sums))
            if size > 0:
                differences.append(math.fsum(g * each for g, each in zip(draw, sums, strict=True)) / size)
        found.append(max(differences))
    return np.array(found)


def without_skewness(z, k, c):
    """The root T of ``g(T) = z``, from the mean and the third cumulant of T: see ``loss_table.interval``."""
    mean, third = -k / (2 * c), k * (1 / c**3 - 3 / c)

    def g(T):
        # a T^2 - a k takes the third cumulant off, the mean is put right, and the cube makes g monotone
        a = -third / 6
        return T + a * T**2 - a - mean + a**2 * T**3 / 3 - z

    return brentq(g, -50, 50, xtol=1e-13)


def skewness_of_mean(table, at):
    """The third central moment of a weighted mean of independent units over the 3/2 power of the second."""
    errors, total = [float(each) for each in table.errors[at]], math.fsum(table.s)
    mean = math.fsum(s * e for s, e in zip(table.s, errors, strict=True)) / total
    sums = [
        math.fsum(table.s[i] * (errors[i] - mean) / total for i in np.flatnonzero(table.units == u))
        for u in range(table.units.max() + 1)
    ]
    return math.fsum(d**3 for d in sums) / math.fsum(d**2 for d in sums) ** 1.5
