"""The page of a selection: it is whole, safe, needs nothing else, and says how to do it again."""

from __future__ import annotations

import html
import json
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import kernsel
import tables
from commandline import run
from kernsel.report.again import as_plain, asked, call, command
from kernsel.report.page import make_page

pytestmark = pytest.mark.filterwarnings("ignore::kernsel.errors.SelectionWarning")  # of the edge of a small grid

QUICK = {"grid": tables.SMALL, "folds": 4, "extend": False}
EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</td></table>&amp;"]
VOID = {"meta", "br", "img", "link"}


class Outline(HTMLParser):
    """Checks that elements close in order; gathers tags, identifiers, attributes and the words outside of scripts."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.ids, self.attributes, self.words = [], [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)


def blocks(page):
    """The command and the statements of a page."""
    return [html.unescape(each) for each in re.findall(r'<pre tabindex="0"><code>(.*?)</code></pre>', page, re.DOTALL)]


@pytest.fixture(scope="module")
def evil():
    X, y = tables.circles()
    frame = pd.DataFrame({EVIL[0]: X[:, 0], EVIL[1]: X[:, 1], "text": np.where(X[:, 0] > 0, EVIL[0], EVIL[2])})
    return kernsel.select(frame, np.where(y == "in", EVIL[1], EVIL[2]), kernel="gaussian", criterion="fbif", **QUICK)


def test_the_page_is_whole_and_needs_nothing_else(evil):
    pytest.importorskip("matplotlib")
    page = make_page(evil)
    outline = Outline(page)
    assert page.startswith("<!doctype html>\n<!-- a report of kernsel -->")
    assert outline.tags.count("script") == 1
    assert "img" not in outline.tags
    links = [value for name, value in outline.attributes if name in ("href", "src", "xlink:href") and value is not None]
    assert all(each.startswith(("#", "data:image/png;base64,")) for each in links)
    assert not any(name.startswith("on") for name, _ in outline.attributes)
    assert "@import" not in page
    assert {each[1:] for each in links if each.startswith("#")} <= set(outline.ids)
    assert len(outline.ids) == len(set(outline.ids))
    assert outline.tags.count("h1") == 1
    for heading in ("The answer", "Warnings", "Why this candidate", "Pictures", "Candidates", "How to do it again"):
        assert heading in outline.words
    assert "prefers-color-scheme: dark" in page
    assert ("lang", "en") in outline.attributes


def test_what_comes_from_a_table_is_escaped(evil):
    page = make_page(evil)
    for text in EVIL:
        assert text not in page
    assert html.escape(EVIL[0]) in page


def test_pictures_have_texts_in_their_place(evil):
    pytest.importorskip("matplotlib")
    page = make_page(evil)
    assert page.count("<figure>") == page.count('role="img"') == page.count("<figcaption>") == 5
    assert page.count('<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox') == 5
    assert len(re.findall(r'role="img" tabindex="0" aria-label="[^"]{20,}"', page)) == 5


def test_every_candidate_is_in_the_table(evil):
    page = make_page(evil)
    table = page.split('<table class="sortable">')[1].split("</table>")[0]
    assert table.count("<tr>") == 1 + len(evil.candidates)
    assert f'data-value="{evil.best.lam!r}"' in table
    assert "the choice" in table


def test_the_page_says_it_where_there_is_no_matplotlib(evil, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    page = make_page(evil)
    Outline(page)
    assert "pip install" in page
    assert "<figure>" not in page


def test_the_answer_is_that_of_the_summary(evil):
    words = " ".join(Outline(make_page(evil)).words)
    assert evil.choice() in words
    assert evil.figure(evil.procedure.error) in words
    assert f"{evil.comparison.equivalent} of 9 candidates" in words


def same(one, other):
    return (str(one.best.kernel), one.best.lam, one.best.value) == (
        str(other.best.kernel),
        other.best.lam,
        other.best.value,
    )


def test_the_page_of_a_command_says_how_to_do_it_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, y = tables.waves()
    frame = pd.DataFrame(X, columns=["a", "b c"])
    frame = frame.assign(y=y, w=rng.integers(1, 3, 60), g=np.arange(60) // 4, extra=rng.normal(size=60))
    frame.to_csv("my table.csv", index=False, sep=";")
    options = ["--target", "y", "--weights", "w", "--groups", "g", "--sep", ";", "--folds", 3, "--drop", "extra"]
    options += ["--kernel", "gaussian", "--grid", "tau=1,3", "--no-extend", "--choose", "minimum"]
    done = run("select", "my table.csv", *options, "--report", "r.html", "--output", "r.json")
    assert "report written to r.html" in done.stdout
    page = (tmp_path / "r.html").read_text()
    Outline(page)
    shell, python = blocks(page)
    assert shlex.split(shell)[:3] == ["kernsel", "select", "my table.csv"]
    names: dict = {}
    exec(python, names)
    first = run(*shlex.split(shell)[1:], "--json").stdout
    again = names["selection"]
    best = json.loads(first)["best"]
    assert (best["lambda"], best["parameters"]) == (again.best.lam, again.best.kernel.parameters)
    assert best["verified"] == pytest.approx(again.best.verified, rel=1e-10)


def test_the_call_of_a_selection_in_python_selects_again():
    X, y = tables.waves()
    first = kernsel.select(
        X,
        y,
        kernel="gaussian",
        folds=4,
        grid={"tau": [1.0, 2.0], "lambda": np.array([0.01, 0.1])},
        extend=False,
        seed=3,
    )
    names = {"X": X, "y": y}
    exec(call(first), names)
    assert same(first, names["selection"])
    shell = shlex.split(command(first))
    assert shell[:5] == ["kernsel", "select", "table.csv", "--target", "y"]
    assert "--no-extend" in shell
    assert "tau=1.0,2.0" in shell


def test_what_was_asked_is_written_out_where_it_can_be():
    X, y = tables.waves()
    learner = kernsel.learners.Svr(h=0.1)
    folds = np.arange(60) % 3
    found = kernsel.select(X, y, learner=learner, kernel="gaussian(tau=2)", folds=folds, extend=False, grid="coarse")
    given = asked(found)
    assert kernsel.registry.build("learner", given.pop("learner")) == learner
    assert given == {"kernel": "gaussian(tau=2)", "folds": folds.tolist(), "extend": False, "grid": "coarse"}
    assert asked(replace(found, options={**found.options, "asked": {}})) == {}
    assert [as_plain(value) for value in (np.inf, np.zeros(200), print, ["a", print])] == ["inf", None, None, None]


def test_a_report_takes_the_place_of_reports_alone(tmp_path):
    X, y = tables.waves()
    data = tmp_path / "t.csv"
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_csv(data, index=False)
    fixed = ("select", data, "--kernel", "gaussian(tau=2)", "--no-extend", "--quiet")
    for _ in range(2):
        run(*fixed, "--report", tmp_path / "r.html")
    thesis = tmp_path / "thesis.html"
    thesis.write_text("<h1>My work</h1>")
    assert "exists and is no result" in run(*fixed, "--report", thesis, code=2).stderr
    assert "is the table itself" in run(*fixed, "--report", data, code=2).stderr
    assert thesis.read_text() == "<h1>My work</h1>"
    assert "whose name ends with .html" in run(*fixed, "--report", tmp_path / "r.pdf", code=2).stderr
    with pytest.raises(kernsel.errors.OptionError, match=r"whose name ends with \.html"):
        kernsel.write_report(kernsel.select(X, y, kernel="gaussian(tau=2)", extend=False), tmp_path / "r.txt")


def test_what_is_proved_is_on_the_page():
    X, y = tables.circles()
    selection = kernsel.select(X, y, learner="svm", kernel="gaussian", certify=True, **QUICK)
    words = " ".join(Outline(make_page(selection)).words)
    assert "Certificate" in words
    assert selection.certificate.describe() in words
    assert "True" not in command(selection)
    assert "--certify" in shlex.split(command(selection))
