"""Pictures of a selection: which there are, what is refused, and what they show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import kernsel
import tables
from commandline import run
from kernsel.errors import OptionError
from kernsel.report.pictures import PICTURES, figure_of, known_of, names_for, plot_perturbations
from kernsel.report.predictions import Rows
from kernsel.report.style import LONGEST, inline_svg, words
from kernsel.report.surface import is_unreliable

pytest.importorskip("matplotlib")

QUICK = {"grid": tables.SMALL, "folds": 4, "extend": False}
STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def classes():
    return tables.choose(*tables.circles(), criterion="fbif", **QUICK)


@pytest.fixture(scope="module")
def values():
    return tables.choose(*tables.waves(), **QUICK)


def test_every_picture_that_there_is_can_be_drawn(classes, values, tmp_path):
    assert names_for(known_of(values)) == ["criterion", "heldout", "residuals"]
    of_classes = ["criterion", "heldout", "roc", "precision-recall", "calibration", "boundary"]
    assert names_for(known_of(classes)) == of_classes
    for selection in (classes, values):
        for name, form in zip(names_for(known_of(selection)), [*STARTS] * 2, strict=False):
            path = tmp_path / f"{name}.{form}"
            kernsel.plot(selection, name, path)
            assert STARTS[form] in path.read_bytes()[:100]


def test_nothing_is_clipped(classes, values):
    """Every word and every axis lies within the figure, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for selection in (classes, values):
        for name in names_for(known_of(selection)):
            figure = figure_of(selection, name)
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            box = figure.get_tightbbox(canvas.get_renderer())
            width, height = figure.get_size_inches()
            assert box.x0 >= -0.01, name
            assert box.y0 >= -0.01, name
            assert box.x1 <= width + 0.01, name
            assert box.y1 <= height + 0.01, name
            assert all(axes.get_xlabel() and axes.get_ylabel() for axes in figure.axes[:1]), name


def test_the_picture_of_the_criterion_has_the_choice_and_the_grid(classes):
    figure = figure_of(classes, "criterion")
    labels = {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    assert "the choice" in labels
    assert ("approximation not to be trusted" in labels) == any(map(is_unreliable, classes.candidates))
    assert "can't be told from the lowest" in labels
    assert "grid as it began" not in labels
    extended = tables.choose(*tables.waves(), grid={"tau": [9.0, 27.0], "lambda": [0.1, 1.0]}, folds=4)
    assert any("extended" in text for text in extended.warnings)
    figure = figure_of(extended, "criterion")
    assert "grid as it began" in {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    image = np.ma.filled(figure.axes[0].collections[0].get_array(), np.nan)
    assert {round(c.value, 9) for c in extended.candidates} == {round(float(each), 9) for each in np.unique(image)}


def test_other_selections():
    X, y = tables.waves()
    curves = tables.choose(X, y, kernel="linear", folds=4, extend=False)
    assert figure_of(curves, "criterion").axes[0].get_xscale() == "log"
    learnt = tables.choose(X, y, kernel="ard", folds=4, grid={"lambda": [0.01, 0.1]}, extend=False)
    assert figure_of(learnt, "relevances").axes[0].get_yticklabels()[0].get_text() == learnt.relevances.idxmax()
    halved = tables.choose(*tables.waves(600), search="halving", folds=4)
    assert "rank" in names_for(known_of(halved))
    assert [text.get_text() for text in figure_of(halved, "rank").axes[0].get_xticklabels()][-1] == "the whole kernel"
    several = tables.choose(X, np.column_stack([y, -y]), folds=4, grid=tables.SMALL, extend=False)
    assert len(figure_of(several, "residuals").axes) == 2
    three = tables.choose(
        *tables.wine(), learner="lssvm", grid={"tau": [10.0], "lambda": [1e-3]}, folds=4, extend=False
    )
    assert len(figure_of(three, "roc").axes[0].lines) == 4
    figure_of(three, "heldout")
    figure_of(three, "calibration")


def test_rows_are_those_that_were_held_out():
    X, y = tables.circles()
    y = y.astype(object)
    folds = np.arange(60) % 5 - 1  # a fifth is never held out
    weights = np.where(np.arange(60) < 10, 0.0, 2.0)
    result = kernsel.select(X, y, kernel="gaussian(tau=1)", folds=folds, weights=weights)
    rows = Rows.of(result)
    held = (folds >= 0) & (weights > 0)
    assert rows.targets.tolist() == [["in", "out"].index(each) for each in y[held]]
    assert (rows.weights == 2).all()
    assert result.observed.targets[weights > 0].tolist() == y[weights > 0].tolist()
    wrong = (rows.targets != rows.predictions).mean()
    assert wrong == pytest.approx(result.best.error, abs=1e-12)
    np.testing.assert_allclose(result.observed.features[weights > 0], X[weights > 0], rtol=0, atol=1e-12)


def test_targets_are_in_their_own_units():
    X, y = tables.waves(scale=1000.0)
    result = kernsel.select(X, y, kernel="gaussian(tau=1)", folds=4)
    np.testing.assert_allclose(result.observed.targets, y, rtol=1e-12)
    assert np.sqrt(((result.observed.targets - result.heldout) ** 2).mean()) == pytest.approx(result.best.error)


def test_what_there_is_not_is_refused(values, tmp_path, monkeypatch):
    with pytest.raises(OptionError, match="'roc' is for classes; here there are criterion, heldout and residuals"):
        kernsel.plot(values, "roc")
    with pytest.raises(OptionError, match="no picture is called 'residual'; did you mean 'residuals'?"):
        kernsel.plot(values, "residual")
    with pytest.raises(OptionError, match=r"its name must end with one of .png, .svg, .pdf"):
        kernsel.plot(values, "criterion", tmp_path / "a.gif")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(OptionError, match="pictures need matplotlib"):
        kernsel.plot(values, "criterion")


def test_names_of_a_table_are_no_signs():
    assert words("$x$_1") == r"\$x\$_1"
    assert words("_hidden")[0] != "_"
    assert len(words("x" * 99)) == 40
    X, y = tables.circles()
    frame = pd.DataFrame(X, columns=["$x", "<b>&_"])
    selection = kernsel.select(frame, np.where(y == "in", "_$", "a\nb"), kernel="gaussian(tau=1)", folds=4)
    for name in names_for(known_of(selection)):
        assert "<script" not in inline_svg(figure_of(selection, name))


def test_a_page_has_its_own_colour_for_words(values):
    svg = inline_svg(figure_of(values, "residuals"))
    assert svg.startswith("<svg")
    assert "currentColor" in svg
    assert svg == inline_svg(figure_of(replace(values), "residuals"))  # no dates, no chance


def test_a_figure_does_not_change_how_others_look(values):
    import matplotlib

    before = dict(matplotlib.rcParams)
    kernsel.plot(values, "criterion")
    assert dict(matplotlib.rcParams) == before


def test_rows_that_move_the_kernel(tmp_path):
    found = kernsel.stability(tables.waves()[0], "gaussian(tau=1)")
    plot_perturbations(found, tmp_path / "rows.svg")
    assert "<svg" in (tmp_path / "rows.svg").read_text()


@pytest.fixture
def table(tmp_path):
    X, y = tables.waves()
    path = tmp_path / "t.csv"
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_csv(path, index=False)
    return path


FIXED = ["--kernel", "gaussian(tau=2)", "--no-extend", "--quiet"]


def test_pictures_on_the_command_line(table, tmp_path):
    one, two = tmp_path / "one.png", tmp_path / "two.svg"
    done = run("select", table, *FIXED[:-1], "--plot", f"criterion={one}", "--plot", f"residuals={two}")
    assert done.stdout.splitlines()[-2:] == [f"criterion written to {one}", f"residuals written to {two}"]
    assert one.read_bytes()[:4] == STARTS["png"]
    assert "<svg" in two.read_text()
    rows = tmp_path / "rows.png"
    run("stability", table, "--kernel", "gaussian(tau=2)", "--lambda", 0.1, "--repeats", 1, "--quiet", "--plot", rows)
    assert rows.read_bytes()[:4] == STARTS["png"]


@pytest.mark.parametrize(
    ("plots", "message"),
    [
        (["roc=a.png"], "picture 'roc' is for classes; here there are criterion, heldout and residuals"),
        (["relevances=a.png"], "picture 'relevances' is for a choice with a relevance for each feature"),
        (["rank=a.png"], "picture 'rank' is for a search at several ranks"),
        (["rok=a.png"], "no picture is called 'rok'; did you mean 'roc'?"),
        (["criterion"], "--plot criterion: write NAME=FILE"),
        (["criterion=a.png", "criterion=b.png"], "--plot criterion is given twice"),
        (["criterion=a.bmp"], "its name must end with one of"),
        (["criterion=a.png", "heldout=a.png"], "--plot criterion and --plot heldout are both a.png"),
    ],
    ids=str,
)
def test_pictures_that_can_not_be_are_refused_before_the_search(table, tmp_path, monkeypatch, plots, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kernsel.selection.carry_out.carry_out", lambda *_: pytest.fail("the search began"))
    options = [word for each in plots for word in ("--plot", each)]
    assert message in run("select", table, *FIXED, *options, code=2).stderr


def test_a_picture_takes_the_place_of_pictures_alone(table, tmp_path):
    mine = tmp_path / "mine.png"
    mine.write_text("not a picture")
    assert "exists and is no result" in run("select", table, *FIXED, "--plot", f"criterion={mine}", code=2).stderr
    assert mine.read_text() == "not a picture"
    for _ in range(2):
        run("select", table, *FIXED, "--plot", f"criterion={tmp_path / 'ours.svg'}")


def test_long_names_that_begin_alike_are_told_apart():
    first, second = (words(f"{'a very long name of a feature, as exported, '}{number}") for number in (1, 2))
    assert first != second
    assert len(first) == LONGEST


def test_the_help_names_every_picture():
    shown = " ".join(run("select", "--help").stdout.split()).replace("- ", "-")
    assert all(name in shown for name in PICTURES)
