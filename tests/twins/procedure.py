"""Twins of the error of a whole selection: one draw and one candidate at a time, and the rule of choice itself."""

import math

import numpy as np

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


def largest_differences(table, at, normal):
    """The largest standardised difference of sums over units, for each column of multipliers."""
    share = table.s / table.s.sum()
    found = []
    for draw in normal.T:
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
