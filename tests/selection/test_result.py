"""What a selection shows to people: the summary and the table."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tables
from kernsel.kernels import Gaussian, Linear

QUICK = {"grid": tables.SMALL, "folds": 5, "extend": False}


@pytest.fixture(scope="module")
def classes():
    return tables.choose(*tables.circles(), criterion="fbif", **QUICK)


@pytest.fixture(scope="module")
def values():
    return tables.choose(*tables.waves(scale=1000.0), **QUICK)


def rows_of(summary):
    """The lines of the table of candidates in a summary, and its heading."""
    lines = summary.splitlines()
    first = next(i for i, line in enumerate(lines) if line.split()[:2] == ["kernel", "lambda"])
    last = next(i for i, line in enumerate(lines) if i > first and line.startswith("  ") and line[2] != " ")
    return lines[first], lines[first + 1 : last]


def test_the_summary_of_classes(classes):
    lines = classes.summary().splitlines()
    best = classes.best
    assert lines[0] == f"selected: svm on gaussian(tau={best.kernel.tau:.4g}), lambda = {best.lam:.4g}"
    assert re.fullmatch(r"  in scikit-learn's terms: gamma = \S+, C = \S+ \(SVC adds a bias\)", lines[1])
    share = r"\d+\.\d %"
    whole = rf"  error of the whole selection: {share} misclassified \(90 %: {share} to {share}\)"
    assert re.fullmatch(whole, lines[2])
    assert lines[3] == "  without features, by the largest class of the training rows: 45.0 % +- 6.5"
    assert re.fullmatch(r"  held-out error of the choice itself: \d+\.\d % \+- \d+\.\d \(5 folds\)", lines[4])
    assert re.fullmatch(
        r"  how sure: \d of 9 candidates do as well, as far as can be told \(paired held-out losses, 90 %\)", lines[5]
    )
    assert lines[6] == ""
    heading, table = rows_of(classes.summary())
    assert heading.split() == ["kernel", "lambda", "fbif", "verified", "error", "+-", "s.e.", "norm", "rho"]
    assert table[0].startswith(">  gaussian(tau=")
    assert all(line.startswith("   gaussian(tau=") for line in table[1:])
    assert f"{best.verified:.5g}" in table[0]
    assert "fbif: mean held-out huber-hinge loss" in classes.summary()
    notes = lines[lines.index("60 rows, 2 features") :]
    assert "  representation: full Gram matrix, n = 60" in notes
    assert any(line.startswith("  choice: ") for line in notes)
    without = classes.summary(notes=False).splitlines()
    assert without == lines[: lines.index("60 rows, 2 features")] + lines[-1:]
    assert re.fullmatch(r"9 candidates, in \d+\.\d\d s", lines[-1])


def test_the_summary_marks_who_scored(classes):
    marked = [each for each in classes.candidates if each.scored_by is not None]
    assert marked
    assert f"*: scored by newton-cv, as rho is too large for fbif ({len(marked)} candidates)" in classes.summary()
    for line, candidate in zip(rows_of(classes.summary())[1], classes.candidates, strict=False):
        assert (f"{candidate.score:.5g}*" in line) == (candidate.scored_by is not None)
        assert line.endswith(f"{candidate.reliability:.2f}")


def test_a_ratio_above_1_has_no_size(classes):
    lost = [replace(each, reliability=ratio) for each, ratio in zip(classes.candidates, (7e7, np.inf, 1.0, 0.5))]  # noqa: B905
    lines = rows_of(replace(classes, candidates=lost, best=lost[0]).summary())[1]
    assert [line.split("  ")[-1].strip() for line in lines] == ["> 1", "> 1", "1.00", "0.50"]


def test_the_summary_of_a_regression(values):
    lines = values.summary().splitlines()
    assert lines[0].startswith("selected: krr on gaussian(tau=")
    assert re.fullmatch(r"  in scikit-learn's terms: gamma = \S+, alpha = \S+ \(KernelRidge\)", lines[1])
    number = r"-?\d\S*"
    whole = rf"  error of the whole selection: {number} RMSE in units of 'y' \(90 %: {number} to {number}\)"
    assert re.fullmatch(whole, lines[2])
    assert lines[3].startswith("  without features, by the mean of the training rows: ")
    assert re.fullmatch(r"  held-out error of the choice itself: \S+ \+- \S+ \(5 folds\)", lines[4])
    assert lines[4].split()[6] == f"{values.best.error:.4g}"
    assert all(line.endswith("exact") for line in rows_of(values.summary())[1])
    assert "*" not in values.summary()


def test_a_summary_without_verification_and_conversions():
    result = tables.choose(*tables.circles(), kernel="linear", learner="krr", verify=0, folds=5, extend=False)
    lines = result.summary().splitlines()
    assert lines[1].startswith("  in scikit-learn's terms: alpha = ")
    assert all(" - " in line for line in rows_of(result.summary())[1])


def test_failures_are_counted_and_not_shown():
    result = tables.choose(*tables.waves(), grid={"tau": [1.0], "lambda": [0.1, 1.0]}, folds=5, extend=False)
    failed = type(result.best)(Gaussian(9.0), 1.0, learner=result.best.learner, failed="it broke")
    broken = [*result.candidates, failed]
    changed = type(result)(**{**vars_of(result), "candidates": broken})
    assert changed.summary().splitlines()[-1].startswith("3 candidates, 1 of them failed, in ")
    assert "tau=9" not in changed.summary()
    entry = changed.to_dict()["candidates"][-1]
    assert (entry["score"], entry["verified"], entry["failed"]) == (None, None, "it broke")


def vars_of(result):
    return {name: getattr(result, name) for name in type(result).__dataclass_fields__}


def test_lines_of_the_summary_are_short(classes, values):
    for result in (classes, values):
        assert max(map(len, result.summary().splitlines())) <= 120


def test_the_table_has_a_row_for_every_candidate(classes):
    table = classes.table
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == [
        *("kernel", "tau", "lambda", "score", "verified", "score_se", "error", "error_se", "reliability"),
        *("scored_by", "refitted", "rank", "norm", "difference_se", "equivalent", "failed"),
    ]
    assert len(table) == len(classes.candidates) == 9
    assert table.loc[0, "tau"] == classes.best.kernel.tau
    assert table["lambda"].tolist() == [each.lam for each in classes.candidates]
    assert table["score"].tolist() == [each.score for each in classes.candidates]
    assert table["verified"].notna().sum() >= 5
    assert table["failed"].isna().all()
    assert classes.table is table


def test_the_table_of_several_kernels():
    result = tables.choose(*tables.circles(30), kernel=[Gaussian() + Linear(), "linear"], folds=3, extend=False)
    table = result.table
    assert set(table["kernel"]) == {"sum", "linear"}
    assert table["1.tau"].isna().tolist() == (table["kernel"] == "linear").tolist()


def test_repr(classes):
    best = classes.best
    assert repr(classes) == f"<Selection: svm on gaussian(tau={best.kernel.tau:.4g}), lambda = {best.lam:.4g}>"
