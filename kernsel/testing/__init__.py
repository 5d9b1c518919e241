"""Checks for the parts of plugins, the same that kernsel's own parts have to pass; nothing here is part of a selection.

``kernel_checks``, ``learner_checks``, ``criterion_checks``, ``search_checks`` and ``format_checks`` return small checks
with names in plain English. pytest takes them as they are::

    @pytest.mark.parametrize("check", kernel_checks(Cauchy()))
    def test_cauchy(check):
        check()

A check that doesn't apply to the part raises ``unittest.SkipTest``, which pytest shows as a skip with its reason.
``check_kernel`` and so on run all of them at once, without pytest. Some checks draw their data by hypothesis, which
``pip install "kernsel[test]"`` brings.
"""

from kernsel.testing.base import Check, run_checks
from kernsel.testing.criteria import check_criterion, criterion_checks
from kernsel.testing.formats import check_format, format_checks
from kernsel.testing.kernels import check_kernel, kernel_checks
from kernsel.testing.learners import check_learner, learner_checks
from kernsel.testing.searches import check_search, search_checks

__all__ = [
    "Check",
    "check_criterion",
    "check_format",
    "check_kernel",
    "check_learner",
    "check_search",
    "criterion_checks",
    "format_checks",
    "kernel_checks",
    "learner_checks",
    "run_checks",
    "search_checks",
]
