"""The kit itself: each wrong part is caught by the check of that name, in words that help; sound ones pass."""

import math
import subprocess
import sys
from dataclasses import dataclass, field, replace
from typing import ClassVar
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest

from kernsel import testing
from kernsel.criteria import About, NewtonCV, Scores
from kernsel.data.sources import Fit
from kernsel.errors import OptionError, SelectionError
from kernsel.kernels import Gaussian, Kernel, Pairwise
from kernsel.kernels.statistics import width_axis
from kernsel.learners import Learner, Loss
from kernsel.numerics.runtime import jit
from kernsel.search.walk import Walk


@dataclass(frozen=True)
class Cauchy(Pairwise):
    """``k(x, z) = 1 / (1 + |x - z|^2 / ell^2)``.

    Parameters
    ----------
    ell : float or None
        Length.
    """

    name: ClassVar[str] = "cauchy"
    statistic: ClassVar[str] = "sqdist"
    positive: ClassVar[tuple[str, ...]] = ("ell",)

    ell: float | None = None

    def profile(self, S):
        return 1 / (1 + S / self.ell**2)

    def axes(self, X):
        return {"ell": width_axis(X, "sqdist", root=True)} if self.free else {}


def cauchy(**attributes):
    """A kernel like Cauchy with some attributes of its own."""
    return dataclass(frozen=True)(type("Changed", (Cauchy,), {"__doc__": Cauchy.__doc__, **attributes}))()


def sparse_are_other(self, X, Z=None):
    return Cauchy(self.ell)(X, Z) + 0.1 * hasattr(X, "nnz")


def into_its_input(self, X):
    X *= 0
    return np.ones(len(X))


KERNELS = {
    "values_are_numbers_in_arrays_of_the_right_shape": (
        cauchy(diag=lambda self, X: np.ones((len(X), 1))),
        r"diag\(X\) is float64 of shape \(12, 1\) for 12 rows",
    ),
    "gram_matrices_are_symmetric_and_positive_semidefinite": (
        cauchy(profile=lambda self, S: np.minimum(S, 1.0)),
        "has the eigenvalue -.*; use another formula, or set definite = False",
    ),
    "the_ways_to_a_gram_matrix_agree": (
        cauchy(diag=lambda self, X: np.full(X.shape[0], 2.0)),
        r"diag\(X\) isn't the diagonal of k\(X\); .*\(entry 0: .*2\.0.* where .*1\.0.* is expected; .*differ\)",
    ),
    "the_order_of_rows_is_the_order_of_entries": (
        cauchy(__call__=lambda self, X, Z=None: Cauchy(self.ell)(X, Z) + np.arange(len(X))[:, None]),
        "let a value depend on its two rows alone",
    ),
    "a_gram_matrix_is_the_callers_own": (
        cauchy(profile=lambda self, S: S),
        "evaluate returns an array that can't be written to; return a new one",
    ),
    "sparse_rows_are_dense_ones": (cauchy(__call__=sparse_are_other), "mend it, or leave out sparse = True"),
    "parameters_are_replaced_one_by_one": (
        cauchy(with_parameters=lambda self, **values: replace(self, ell=values.get("ell", self.ell))),
        "it takes a parameter that it doesn't have; raise kernsel.errors.OptionError",
    ),
    "a_free_parameter_is_asked_for": (
        cauchy(evaluate=lambda self, stats: np.ones((12, 12)), diag=lambda self, X: np.ones(12)),
        "begin with self.require_fixed",
    ),
    "axes_ascend_and_each_value_is_allowed": (
        cauchy(axes=lambda self, X: {"ell": np.array([2.0, 1.0])}),
        "in ascending order",
    ),
    "it_says_what_it_is": (cauchy(__doc__="A kernel"), "its docstring has no first sentence; say what it is"),
}


def expect(checks, name, message):
    """Run the check of a name, which must fail with the message."""
    (check,) = (each for each in checks if each.name == name)
    with pytest.raises(AssertionError, match=message) as caught:
        check()
    assert "'" in str(caught.value).split(":")[0]  # it begins with the part


@pytest.mark.parametrize("name", KERNELS)
def test_a_wrong_kernel_is_caught(name):
    kernel, message = KERNELS[name]
    expect(testing.kernel_checks(kernel), name, message)


def test_a_kernel_that_changes_its_rows_is_caught():
    expect(
        testing.kernel_checks(cauchy(diag=into_its_input)),
        "values_are_numbers_in_arrays_of_the_right_shape",
        "it changes X, which belongs to its caller; work on a copy",
    )


def test_rows_are_those_that_the_kernel_is_for():
    @dataclass(frozen=True)
    class Overlap(Kernel):
        """``k(x, z) = sum_j min(x_j, z_j)`` of rows that aren't negative."""

        name: ClassVar[str] = "overlap"

        def evaluate(self, stats):
            X, Z = stats.X, stats.X if stats.Z is None else stats.Z
            assert (X >= 0).all()
            return np.minimum(X[:, None], Z[None]).sum(axis=2)

        def diag(self, X):
            return np.asarray(X).sum(axis=1)

    skipped = testing.check_kernel(Overlap(), rows=np.abs, without={"equal_parameters_make_equal_parts": "it is local"})
    assert "isn't installed" in skipped["text_and_description_build_the_kernel_again"]
    with pytest.raises(AssertionError, match=r"\d of \d+ checks failed\n"):
        testing.check_kernel(Overlap(), without={"equal_parameters_make_equal_parts": "it is local"})


@jit.pointer(jit.LOSS)
def wrong_slope(y, f, parameters):
    return (y - f) ** 2, f - y, 1.0


@jit.pointer(jit.LOSS)
def wrong_curvature(y, f, parameters):
    r = f - y
    return math.sqrt(1.0 + r * r) - 1.0, r / math.sqrt(1.0 + r * r), 1.0


@jit.pointer(jit.LOSS)
def bounded(y, f, parameters):
    e = math.exp(-((y - f) ** 2))
    return 1.0 - e, 2.0 * (f - y) * e, (2.0 - 4.0 * (y - f) ** 2) * e


@jit.pointer(jit.LOSS)
def below_zero(y, f, parameters):
    return (y - f) ** 2 - 1.0, 2.0 * (f - y), 2.0


def learner(pointer, **attributes):
    loss = property(lambda self: Loss("wrong", pointer, piecewise_quadratic=False))
    tasks = {"name": "wrong", "tasks": ("regression",), "loss": loss, "__doc__": "A wrong one."}
    return dataclass(frozen=True)(type("Wrong", (Learner,), tasks | attributes))()


LEARNERS = {
    "derivatives_are_those_of_differences": [
        (learner(wrong_slope), "dV/df .* isn't the derivative of V; derive it in f"),
        (learner(wrong_curvature), "d2V/df2 .* isn't the derivative of dV/df"),
    ],
    "losses_are_convex_and_not_negative": [
        (learner(bounded), "is negative.*the loss must be convex|isn't convex"),
        (learner(below_zero), "the loss .* is negative: .*add a constant"),
    ],
    "no_small_step_from_a_fit_lowers_the_objective": [(learner(wrong_slope), "isn't the minimum")],
    "it_is_for_known_tasks_and_refused_for_others": [
        (learner(below_zero, tasks=("ranking",)), "its tasks are .*'ranking'.*; they can be"),
    ],
    "conversions_to_other_libraries_are_finite_and_positive": [
        (learner(below_zero, conversions=lambda self, n, lam: {"C": -1.0}), "has {'C': -1.0}; leave out"),
    ],
}


@pytest.mark.parametrize(("name", "at"), [(name, at) for name in LEARNERS for at in range(len(LEARNERS[name]))])
def test_a_wrong_learner_is_caught(name, at):
    part, message = LEARNERS[name][at]
    expect(testing.learner_checks(part), name, message)


def criterion(**attributes):
    own = {"name": "wrong", "__doc__": "A wrong one."}
    return dataclass(frozen=True)(type("Wrong", (NewtonCV,), own | attributes))()


def changed(change):
    """A criterion whose scores are changed."""

    def score(self, path):
        found = NewtonCV.score(self, path)
        return Scores(change(path, found.score), found.failed)

    return criterion(score=score)


def right_rows(self, Y, F):
    Y[0] = 1.0
    return (Y[0] - F[0]) ** 2


CRITERIA = {
    "there_is_a_score_for_each_lambda": (changed(lambda path, score: score[:1]), r"there are \(1,\) scores for 2"),
    "a_measure_is_one_number_for_each_row": (
        criterion(measure=lambda self, Y, F: ((Y - F) ** 2)[0] - F[0, 0]),
        "depends on other rows",
    ),
    "the_order_of_rows_and_of_folds_changes_nothing": (
        changed(lambda path, score: score + path.rows.X[0, 0]),
        "rows in another order have another score",
    ),
    "the_sign_of_the_labels_changes_nothing": (
        criterion(measure=lambda self, Y, F: (1 + (Y[0] > 0)) * (Y[0] - F[0]) ** 2),
        "leave this check out by 'without'",
    ),
    "a_target_twice_changes_nothing": (
        changed(lambda path, score: score * len(path.rows.Y)),
        "take the mean over targets",
    ),
    "a_path_of_one_lambda_has_the_scores_of_a_path_of_many": (
        changed(lambda path, score: score - score.min()),
        "depends on the other lambda of the path",
    ),
    "a_weight_of_two_is_a_row_twice_or_it_says_that_it_is_not": (
        changed(lambda path, score: score + path.rows.n),
        "use path.rows.s",
    ),
}


@pytest.mark.parametrize("name", CRITERIA)
def test_a_wrong_criterion_is_caught(name):
    part, message = CRITERIA[name]
    expect(testing.criterion_checks(part), name, message)


def test_a_criterion_without_a_finite_score_takes_no_selection():
    checks = {check.name: check for check in testing.criterion_checks(changed(lambda path, score: np.nan * score))}
    with pytest.raises(SelectionError, match="all 16 candidates failed; the first one: the score is not finite"):
        checks["a_selection_takes_it"]()


def test_a_measure_that_changes_its_targets_is_caught():
    expect(
        testing.criterion_checks(criterion(measure=right_rows)),
        "a_measure_is_one_number_for_each_row",
        "it changes Y, which belongs to its caller",
    )


def test_weights_that_mean_something_else_have_to():
    about = About(reference="", cost="", weights="is nothing")
    expect(
        testing.criterion_checks(criterion(about=about)),
        "a_weight_of_two_is_a_row_twice_or_it_says_that_it_is_not",
        "leave that out",
    )


def search(run, cautions=()):
    """A search whose walk runs so."""
    walk = dataclass(type("Wandering", (Walk,), {"run": run, "cautions": lambda self: cautions}))

    def begin(self, board, grids, extend, rule):
        return walk(board, grids, extend, rule)

    return dataclass(frozen=True)(type("Wrong", (), {"name": "wrong", "begin": begin, "__doc__": "A wrong one."}))()


def everything(walk):
    walk.board.score([key for axes in walk.grids for key in axes.points()])


def off_the_grid(walk):
    everything(walk)
    kernel, part, _ = walk.grids[0].points()[0]
    walk.board.score([(kernel, part, 0.123)])


def at_random(walk):
    points = [key for axes in walk.grids for key in axes.points()]
    walk.board.score([points[i] for i in np.random.default_rng().choice(len(points), 5, replace=False)])


def first_grid(walk):
    walk.board.score(walk.grids[0].points())


SEARCHES = {
    "candidates_have_the_scores_that_a_grid_gives_them": (search(off_the_grid), "off the grid although 'extend' is"),
    "the_same_seed_finds_the_same": (search(at_random), r"draw by default_rng\(board.rows.seed\)"),
    "every_kernel_is_looked_at": (search(first_grid), "no candidate of linear is scored; walk all of 'grids'"),
    "what_it_warns_of_is_text": (search(everything, cautions=[""]), "return texts"),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_wrong_search_is_caught(name):
    part, message = SEARCHES[name]
    expect(testing.search_checks(part), name, message)


@dataclass(frozen=True)
class Lines:
    """One row a line, its numbers apart by |."""

    name: ClassVar[str] = "lines"

    def fits(self, source, reading):
        return Fit.of(source, (".lines",))

    def read(self, source, reading, expected):
        with source.open() as stream:
            frame = pd.read_csv(stream, sep="|")
        frame.attrs["notes"] = []
        return frame


def lines(**attributes):
    return dataclass(frozen=True)(type("Changed", (Lines,), {"__doc__": Lines.__doc__, **attributes}))()


FORMATS = {
    "it_knows_its_own_files": (lines(fits=lambda self, source, reading: Fit.NOT), "compare its suffix"),
    "it_leaves_the_files_of_others_alone": (lines(fits=lambda self, source, reading: Fit.CONTENT), "say NOT"),
    "what_was_written_is_read": (
        lines(read=lambda self, source, reading, expected: Lines.read(self, source, reading, expected) + 1),
        "other numbers are read than were written",
    ),
}


def format_checks(part):
    return testing.format_checks(
        part, write=lambda frame, path: frame.to_csv(path, sep="|", index=False), suffix=".lines"
    )


@pytest.mark.parametrize("name", FORMATS)
def test_a_wrong_format_is_caught(name):
    part, message = FORMATS[name]
    expect(format_checks(part), name, message)


def test_a_sound_format_passes_and_the_rest_waits_for_its_installation():
    assert {name for name, why in testing.run_checks(format_checks(Lines())).items() if "isn't installed" in why} == {
        "its_name_leads_to_it",
        "every_command_reads_it",
        "a_packed_file_is_read_as_it_is",
        "a_damaged_file_ends_in_an_error_or_a_table",
    }


def test_parts_must_be_frozen_and_leave_equality_to_the_dataclass():
    @dataclass
    class Thawed:
        """It can be changed."""

        name: ClassVar[str] = "thawed"

    @dataclass(frozen=True)
    class Named(Lines):
        """Its name is a field."""

        name: str = "lines"

    @dataclass(frozen=True)
    class Alone(Lines):
        """No two of it are equal."""

        state: object = field(default_factory=object, init=False)

    expect(format_checks(Thawed()), "it_is_a_frozen_dataclass_with_a_name", r"write @dataclass\(frozen=True\)")
    expect(format_checks(Named()), "it_is_a_frozen_dataclass_with_a_name", "write name: ClassVar")
    expect(format_checks(Alone()), "equal_parameters_make_equal_parts", "isn't equal to it")


def test_checks_have_names_for_pytest_and_reasons_for_what_is_left_out():
    checks = testing.kernel_checks(Gaussian(), without={"sparse_rows_are_dense_ones": "not today"})
    assert [check.__name__ for check in checks] == [check.name for check in checks]
    assert len({check.name for check in checks}) == len(checks)
    (left_out,) = (check for check in checks if check.name == "sparse_rows_are_dense_ones")
    with pytest.raises(SkipTest, match="not today"):
        left_out()
    with pytest.raises(OptionError, match="no check 'sparse_rows_are'; did you mean 'sparse_rows_are_dense_ones'"):
        testing.kernel_checks(Gaussian(), without={"sparse_rows_are": "?"})


def test_a_value_that_no_axis_gives_is_asked_for():
    kernel = cauchy(axes=lambda self, X: {})
    with pytest.raises(OptionError, match="no axis gives ell a value; add one, or check one with it"):
        {check.name: check for check in testing.kernel_checks(kernel)}["a_gram_matrix_is_the_callers_own"]()


MISSING = """
import sys
{block}
import kernsel
assert not [name for name in sys.modules if name.startswith("kernsel.testing")]
from kernsel import testing
assert not {{"pytest", "hypothesis"}} & {{name for name, module in sys.modules.items() if module}}
from kernsel.kernels import Linear
for check in testing.kernel_checks(Linear()):
    if check.name == "gram_matrices_are_symmetric_and_positive_semidefinite":
        check()
"""


def test_hypothesis_and_pytest_are_imported_only_where_they_are_used():
    done = [
        subprocess.run([sys.executable, "-c", MISSING.format(block=block)], capture_output=True, text=True, check=False)
        for block in ("", "sys.modules['hypothesis'] = None")
    ]
    assert done[0].returncode == 0, done[0].stderr
    assert 'this check draws tables by hypothesis: pip install "kernsel[test]"' in done[1].stderr
