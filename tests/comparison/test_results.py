"""Marks, ranks, duels, and the forms they are written in: from trials that are made up."""

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from kernsel.comparison.comparison import Comparison
from kernsel.comparison.formats import SIGNS, WRITERS, as_html, as_latex, as_markdown, as_text
from kernsel.comparison.pictures import plot_choices, plot_differences
from kernsel.comparison.result import BEST, MAYBE, SAME, WORSE, TableResult
from kernsel.comparison.trials import Trial
from kernsel.errors import OptionError


def made(errors, table="t", case="", task="classification"):
    """Return a result with these errors (J, k)."""
    errors = np.asarray(errors, float)
    trials = [
        [Trial(float(e), 1.0 + j, "krr", "gaussian(tau=2)", {"tau": 2.0**j}, 0.1 * (s + 1)) for j, e in enumerate(row)]
        for s, row in enumerate(errors)
    ]
    return TableResult(case, table, task, "y", 100, 70, 30, trials, errors)


def compared(results, test="t", **more):
    names = [f"m_{j}" for j in range(results[0].errors.shape[1])]
    given = {"test": test, "level": 0.05, "rank_level": 0.05, "measure": "rmse", "splits": len(results[0].errors)}
    return Comparison(names, [f"choose={name}" for name in names], results, **{**given, **more})


@pytest.fixture
def graded():
    """Four methods: the best, one like it, one a little worse, and one much worse."""
    rng = np.random.default_rng(0)
    base = 0.2 + 0.02 * rng.normal(size=10)
    noise = [0.01 * rng.normal(size=10) for _ in range(3)]
    columns = [
        base,
        base + noise[0] - noise[0].mean() + 0.001,
        base + 0.006 + noise[1] - noise[1].mean(),
        base + 0.2 + noise[2],
    ]
    return compared([made(np.column_stack(columns))])


def test_marks_are_those_of_scipy(graded):
    result = graded.results[0]
    E = result.errors
    assert result.words("t", 0.05) == [BEST, SAME, MAYBE, WORSE]
    for j in (1, 2, 3):
        expected = scipy.stats.ttest_rel(E[:, j], E[:, 0], alternative="greater").pvalue
        assert result.marks.t[j] == pytest.approx(expected, rel=1e-9)
        expected = scipy.stats.wilcoxon(E[:, j], E[:, 0], alternative="greater").pvalue
        assert result.marks.wilcoxon[j] == pytest.approx(expected)
    factor = np.sqrt((1 / 10 + 3 / 7) / (1 / 10))
    t = scipy.stats.ttest_rel(E[:, 2], E[:, 0]).statistic / factor
    assert result.marks.corrected[2] == pytest.approx(scipy.stats.t.sf(t, 9))


def test_equal_methods_are_not_worse():
    result = made([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]])
    assert result.words("t", 0.05) == [BEST, SAME]
    assert result.words("wilcoxon", 0.05) == [BEST, SAME]


def test_one_split_has_no_marks():
    found = compared([made([[0.1, 0.2]])])
    assert found.results[0].words("t", 0.05) == [None, None]
    assert "10.00  " in as_text(found.pages)
    assert "±" not in as_text(found.pages)


def test_duels_count_tables():
    rng = np.random.default_rng(1)
    a = 0.2 + 0.01 * rng.normal(size=(8, 1))
    better, equal = made(np.hstack([a, a + 0.1]), "one"), made(np.hstack([a, a]), "two")
    failed = made(np.hstack([a, np.full((8, 1), np.nan)]), "three")
    (duel,) = compared([better, equal, failed]).duels("")
    assert (duel.tables, duel.wins, duel.losses) == (2, 1, 0)
    assert (duel.sure_wins, duel.plain_wins, duel.sure_losses) == (1, 1, 0)


@pytest.mark.parametrize("write", [as_text, as_markdown, as_latex, as_html])
def test_every_form_has_every_figure(graded, write):
    text = write(graded.pages)
    for j in range(4):
        assert f"{100 * graded.results[0].means[j]:.2f}" in text
        assert f"{100 * graded.results[0].deviations[j]:.2f}" in text


def test_marks_are_seen(graded):
    mean = f"{100 * graded.results[0].means[0]:.2f}"
    deviation = f"{100 * graded.results[0].deviations[0]:.2f}"
    assert f"{mean} ± {deviation} {SIGNS[BEST]}" in as_text(graded.pages)
    assert f"**{mean} ± {deviation}**" in as_markdown(graded.pages)
    assert rf"\textbf{{{mean} $\pm$ {deviation}}}" in as_latex(graded.pages)
    assert f"<td class=best>{mean} ± {deviation}</td>" in as_html(graded.pages)


def test_signs_of_latex_and_html_are_escaped():
    found = replace(compared([made([[0.1, 0.2], [0.1, 0.3]], table="a_b & 5%<x>")]), names=["m_0", "x<y"])
    latex = as_latex(found.pages)
    assert r"a\_b \& 5\%$<$x$>$" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}")
    assert not re.search(r"(?<!\\)_", latex)
    assert "a_b &amp; 5%&lt;x&gt;" in as_html(found.pages)


def test_files_by_the_ending_of_their_names(graded, tmp_path):
    for ending in WRITERS:
        graded.save(tmp_path / f"tables{ending}")
        assert (tmp_path / f"tables{ending}").read_text() == WRITERS[ending](graded)
    with pytest.raises(OptionError, match="must end with .txt, .md"):
        graded.save(tmp_path / "tables.doc")
    assert len((tmp_path / "tables.csv").read_text().splitlines()) == 1 + 4 * 10


def test_pictures(graded, tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(OptionError, match="two tables or more"):
        plot_differences(graded, tmp_path / "a.png")
    tables = [made(np.random.default_rng(s).random((3, 4)), f"t{s}") for s in range(6)]
    found = compared(tables)
    plot_differences(found, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert text.startswith("<?xml")
    plot_choices(found, "tau", tmp_path / "b.svg")
    assert (tmp_path / "b.svg").stat().st_size > 1000
    with pytest.raises(OptionError, match="no method chose 'gamma'; there are lambda, tau"):
        plot_choices(found, "gamma", tmp_path / "c.svg")
