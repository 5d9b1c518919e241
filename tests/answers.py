"""All figures of some selections, in a form that workers can send."""

import kernsel
import tables

TASKS = {
    "krr": (tables.waves, {"kernel": "laplacian"}),
    "svm": (tables.circles, {"kernel": "gaussian", "learner": "svm", "grid": "coarse"}),
    "low rank": (tables.waves, {"kernel": "gaussian", "rank": 20}),
}


def answer(name, change=None):
    """Return the scores, held-out outputs, and coefficients of a selection, bit by bit; ``change`` takes the rows."""
    make, options = TASKS[name]
    X, y = make()
    found = kernsel.select(X if change is None else change(X), y, **options)
    scores = repr([(candidate.score, candidate.lam) for candidate in found.candidates])
    return scores, found.heldout.tobytes(), found.model.coefficients.tobytes()


def send(queue):
    """Put all answers into a queue of processes."""
    queue.put({name: answer(name) for name in TASKS})
