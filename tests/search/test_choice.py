"""The rules of choice: what they choose, and that they believe exact scores only."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tables
from kernsel.criteria import CV, Scores
from kernsel.errors import OptionError
from kernsel.kernels import Gaussian, Linear
from kernsel.learners import Krr
from kernsel.search.candidate import Candidate
from kernsel.search.choice import MOST, Rule, choose

candidate_lists = st.lists(
    st.tuples(
        st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.01, 0.1, 1.0]), st.floats(0, 1), st.floats(-0.2, 0.2)
    ),
    min_size=1,
    max_size=9,
    unique_by=lambda each: each[:2],
)


def simplest(candidates, best, verify):
    found = choose(Rule("one-se", 1.0), [best, *(c for c in candidates if c.key != best.key)], verify, MOST)
    return found.best, found.limit


@given(candidate_lists, st.floats(0, 0.3))
def test_the_largest_lambda_within_the_limit_is_taken(drawn, se):
    exact = {(tau, lam): score + off for tau, lam, score, off in drawn}

    def verify(candidate):
        value = exact[candidate.kernel.tau, candidate.lam]
        return candidate if candidate.verified is not None else replace(candidate, verified=value)

    candidates = [Candidate(Gaussian(tau), lam, learner=Krr(), score=score) for tau, lam, score, _ in drawn]
    candidates = [replace(each, score_se=se) for each in candidates]
    best = verify(min(candidates, key=lambda each: each.score))
    candidates = [best if each.kernel == best.kernel and each.lam == best.lam else each for each in candidates]
    chosen, limit = simplest(candidates, best, verify)
    assert limit <= best.verified + se
    assert chosen.verified is not None
    assert chosen.verified <= limit
    for each in candidates:
        if each.value <= limit and exact[each.kernel.tau, each.lam] <= limit:
            assert (chosen.lam, chosen.kernel.tau) >= (each.lam, each.kernel.tau)


def test_failures_and_kernels_without_width():
    best = Candidate(Gaussian(1.0), 0.1, learner=Krr(), score=0.5, verified=0.5, score_se=0.1)
    failed = Candidate(Gaussian(1.0), 10.0, learner=Krr(), score=math.inf, failed="it broke")
    linear = Candidate(Linear(), 1.0, learner=Krr(), score=0.55)
    broken = Candidate(Gaussian(9.0), 5.0, learner=Krr(), score=0.5)

    def verify(candidate):
        if candidate is broken:
            return replace(candidate, verified=math.inf, failed="not verified")
        return replace(candidate, verified=candidate.score)

    chosen, _ = simplest([best, failed, broken, linear], best, verify)
    assert (chosen.kernel, chosen.lam, chosen.verified) == (Linear(), 1.0, 0.55)
    assert simplest([best], replace(best, score_se=None), lambda each: each)[1] == 0.5


@pytest.mark.parametrize(
    ("data", "criterion"),
    [(tables.circles(), "fbif"), (tables.circles(), "newton-cv"), (tables.waves(noise=1.0), "cv")],
    ids=["fbif", "newton-cv", "cv"],
)
def test_a_selection_by_one_standard_error(data, criterion):
    options = {"grid": tables.SMALL, "folds": 5, "extend": False, "criterion": criterion}
    lowest = tables.choose(*data, choose="minimum", **options)
    result = tables.choose(*data, one_se=True, **options)
    limit = lowest.best.verified + lowest.best.score_se
    assert (result.best.lam, result.best.kernel.tau) > (lowest.best.lam, lowest.best.kernel.tau)
    assert lowest.best.verified <= result.best.verified <= limit
    assert result.candidates[0] is result.best
    pairs = {(each.kernel, each.lam) for each in result.candidates}
    assert len(result.candidates) == len(pairs) == len(lowest.candidates)
    # Whatever is simpler is exactly worse than the limit.
    exact = tables.choose(*data, **{**options, "verify": 9})
    for each in exact.candidates:
        if (each.lam, each.kernel.tau) > (result.best.lam, result.best.kernel.tau):
            assert each.verified > limit or each.score > limit
    said = "choice: largest lambda among"
    assert said in result.summary()
    assert f"within 1 standard error ({lowest.best.score_se:.2g}) of the lowest {criterion}" in " ".join(
        result.summary().split()
    )
    assert result.options["one_se"]
    assert result.model.provenance["lambda"] == result.best.lam
    assert "standard errors" not in lowest.summary()
    assert lowest.data["choice"] == f"lowest {criterion}, verified by exact refits"


def test_the_standard_error_is_that_of_the_score():
    @dataclass(frozen=True)
    class Misses(CV):
        name: ClassVar[str] = "misses"

        def measure(self, Y, F):
            return (Y * F < 0).any(axis=0).astype(float)

    options = {"grid": tables.SMALL, "folds": 5, "extend": False}
    for each in tables.choose(*tables.circles(), criterion=Misses(), **options).candidates:
        assert each.score == pytest.approx(each.error)
        assert each.score_se == pytest.approx(each.error_se)
    result = tables.choose(*tables.circles(), criterion="cv", **options)
    values = result.best.score_se
    assert 0 < values < 0.5
    assert all(np.isfinite(each.score_se) for each in result.candidates)


@dataclass(frozen=True)
class Flat:
    """A criterion that looks at no held-out row."""

    name: ClassVar[str] = "flat"

    def score(self, path):
        return Scores(path.lams.copy(), [None] * path.lams.size)


def test_where_there_is_no_standard_error():
    X, y = tables.circles(30)
    with pytest.raises(OptionError, match="one_se needs a criterion that is a mean over held-out rows, and 'flat'"):
        tables.choose(X, y, criterion=Flat(), one_se=True)
    with pytest.raises(OptionError, match="let verify be at least 1"):
        tables.choose(X, y, one_se=True, verify=0)
    with pytest.raises(OptionError, match="there is one fold only: hold out more"):
        tables.choose(X, y, one_se=True, folds=[(np.arange(20), np.arange(20, 30))])
    grid = {"tau": [1.0], "lambda": [0.1, 1.0]}
    result = tables.choose(X, y, criterion=Flat(), folds=3, grid=grid, verify=0, extend=False)
    assert [each.score_se for each in result.candidates] == [None, None]
