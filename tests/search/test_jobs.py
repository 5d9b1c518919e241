"""Candidates as jobs of joblib: the same bits, in other processes."""

import os

import joblib
import numpy as np
import pytest

import kernsel
from kernsel.search import board, jobs


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=80)


@pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")
@pytest.mark.parametrize("options", [{"learner": "krr"}, {"learner": "svr"}, {"learner": "krr", "rank": 20}])
def test_processes_score_as_threads_do(options, monkeypatch):
    X, y = table()
    options = {"kernel": "gaussian", "folds": 4, "grid": {"tau": [1.0, 4.0, 16.0], "lambda": [1e-3, 1e-1]}, **options}
    here = kernsel.select(X, y, **options)
    scored_here = []
    compute = board.Board._compute_path
    monkeypatch.setattr(board.Board, "_compute_path", lambda *given: scored_here.append(given) or compute(*given))
    with joblib.parallel_config("loky", n_jobs=2):
        assert jobs.in_force()
        there = kernsel.select(X, y, **options)
    assert not scored_here
    assert [(c.key, c.score, c.error, c.norm) for c in there.candidates] == [
        (c.key, c.score, c.error, c.norm) for c in here.candidates
    ]
    np.testing.assert_array_equal(there.model.coefficients, here.model.coefficients)
    assert there.procedure.to_dict() == here.procedure.to_dict()


@pytest.mark.parametrize(("backend", "n_jobs"), [("threading", 2), ("loky", 1), ("sequential", 1)])
def test_threads_and_single_processes_are_none(backend, n_jobs):
    with joblib.parallel_config(backend, n_jobs=n_jobs):
        assert not jobs.in_force()
    assert not jobs.in_force()


def test_a_job_is_in_another_process():
    def place(_, number):  # a local function: other processes have the tests on no path
        return number, os.getpid()

    with joblib.parallel_config("loky", n_jobs=2):
        places = list(jobs.spread(place, "of", [1, 2, 3]))
    assert [number for number, _ in places] == [1, 2, 3]
    assert os.getpid() not in {process for _, process in places}
