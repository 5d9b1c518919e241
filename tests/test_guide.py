"""README and guide: every block of code runs as it stands, and every option of a selection is explained."""

import ast
import contextlib
import inspect
import io
import json
import re
import runpy
import sys
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

import kernsel
from commandline import commands, run
from kernsel.cli.console import WARNINGS
from kernsel.cli.guide import CONTENTS, FOLDER, laid_out, page, topics
from kernsel.cli.guide import guide as show_guide

README = Path(__file__).parents[1] / "README.md"
PAGES = [README, *sorted(FOLDER.glob("*.md"))]

GALLERY = sorted((FOLDER / "gallery").glob("*.py"))

NOT_RUN = ("main-job", "tests", "not run:")
"""Comments above blocks that don't run here: .ci/run runs the first two."""


@dataclass(frozen=True)
class Block:
    """A block of code: its language, the comment above it, and the line where its code begins."""

    language: str
    comment: str
    code: str
    line: int


def blocks(text):
    """Return the blocks of a page in their order."""
    pattern = r"(?:^<!-- (?P<comment>.+?) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$"
    return [
        Block(m["language"], m["comment"] or "", m["code"], text.count("\n", 0, m.start("code")) + 1)
        for m in re.finditer(pattern, text, re.MULTILINE | re.DOTALL)
    ]


def in_order(expected, output):
    """Tell whether lines follow each other in the output; … stands for the rest of a line, or alone for some lines."""
    pattern = "".join(r"(.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + "\n" for line in expected)
    return re.search(pattern, output) is not None


class Page:
    """A page that is run from top to bottom: one namespace for its Python, one folder for its files."""

    def __init__(self, path):
        self.path = path
        self.names = {"__name__": "page"}
        self.output = ""

    def sh(self, block):
        """Run commands of kernsel in this process."""
        self.output = ""
        for program, *arguments in commands(block.code):
            assert program == "kernsel", f"line {block.line} runs {program}; mark the block as not run"
            self.output += run(*arguments).stdout

    def python(self, block):
        """Run statements, or write a module."""
        if block.comment.startswith("file: "):
            Path(block.comment.removeprefix("file: ")).write_text(block.code)
            return
        code = compile("\n" * (block.line - 1) + block.code, str(self.path), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(code, self.names)
        self.output = output.getvalue()

    def text(self, block):
        """Compare what is shown with what the block before has printed."""
        assert in_order(block.code.splitlines(), self.output), (
            f"line {block.line} shows what isn't printed:\n{self.output}"
        )

    def toml(self, block):
        """Read it."""
        assert tomllib.loads(block.code)

    def json(self, block):
        """Read it."""
        assert json.loads(block.code)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem if path.parent == FOLDER else path.name)
def test_every_block_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before, running = set(sys.modules), Page(path)
    for block in blocks(path.read_text()):
        if not block.comment.startswith(NOT_RUN):
            with warnings.catch_warnings():
                for kind in WARNINGS:
                    warnings.simplefilter("ignore", kind)
                getattr(running, block.language)(block)
    for name in [each for each in sys.modules if each not in before and each.startswith("kernsel_")]:
        del sys.modules[name]  # a module that the page has written


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_a_script_of_the_gallery_draws_its_picture(script, tmp_path, monkeypatch):
    import matplotlib

    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(), matplotlib.rc_context({"backend": "agg"}):
        for kind in WARNINGS:
            warnings.simplefilter("ignore", kind)
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(script))
    picture = matplotlib.image.imread(f"{script.stem}.png")
    assert picture[..., :3].std() > 0.02  # a blank page has none
    assert [path.name for path in tmp_path.iterdir()] == [f"{script.stem}.png"]


def test_the_gallery_lists_its_scripts_by_their_first_sentences():
    listed = dict(re.findall(r"^\* \[([\w.]+)\]\(gallery/\1\): (.+)$", page("gallery"), re.MULTILINE))
    assert listed == {path.name: ast.get_docstring(ast.parse(path.read_text())) for path in GALLERY}
    assert len(listed) == 10
    assert run("guide", "boundary.py").stdout == (FOLDER / "gallery" / "boundary.py").read_text()


def test_blocks_are_found_with_their_comments():
    text = "a\n\n<!-- file: m.py -->\n```python\nx = 1\n```\n\n```sh\nkernsel a \\\n  b && kernsel c # d\n```\n"
    first, second = blocks(text)
    assert first == Block("python", "file: m.py", "x = 1\n", 5)
    assert (second.comment, commands(second.code)) == ("", [["kernsel", "a", "b"], ["kernsel", "c"]])


def test_no_block_is_overlooked():
    for path in PAGES:
        assert path.read_text().count("```") == 2 * len(blocks(path.read_text())), path.name


def test_what_is_shown_is_compared():
    output = "a\nb 2\nc\nd\n"
    assert in_order(["b …", "c"], output)
    assert in_order(["a", "…", "d"], output)
    assert not in_order(["b 2", "d"], output)


def test_the_contents_name_every_page():
    assert set(topics()) == {path.stem for path in FOLDER.glob("*.md")} - {Path(CONTENTS).stem}


def test_links_lead_to_pages():
    for path in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_option_of_a_selection_is_explained():
    text = page("options") + page("tables") + page("large-data")
    shown = run("select", "--help").stdout
    options = set(re.findall(r"(?<=\s)--[a-z][a-z-]*", shown)) - {"--help"}
    assert len(options) > 40
    there = set(re.findall(r"--[a-z][a-z-]*", text))
    plain = {option.replace("--no-", "--") for option in there}
    assert {option for option in options if option not in there | plain} == set()
    words = {option.removeprefix("--").replace("-", "_") for option in there | plain} | set(re.findall(r"\w+", text))
    assert {name for name in inspect.signature(kernsel.select).parameters if name not in words} <= {"progress"}


def test_topics_are_listed_and_read():
    listed = run("guide").stdout
    assert all(topic in listed for topic in topics())
    shown = run("guide", "tables").stdout
    assert shown.startswith("# Tables\n")
    assert "```" not in shown
    assert "<!--" not in run("guide", "plugins").stdout


def test_a_page_goes_through_a_pager_on_a_terminal_only(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    paged = []
    monkeypatch.setattr("pydoc.pager", paged.append)
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stdout", stream)
        show_guide("limits")
        assert bool(stream.getvalue()) is not stream.isatty()
    assert len(paged) == 1
    assert paged[0].startswith("# Limits\n")


def test_a_misspelt_topic():
    assert "no topic 'theroy'; did you mean 'theory'?" in run("guide", "theroy", code=2).stderr
    assert "there are first-selection, " in run("guide", "xyz", code=2).stderr
    assert "'kernsel plugins svm' explains that part" in run("guide", "svm", code=2).stderr


def test_pages_are_wrapped_but_code_and_tables_are_not():
    text = (
        "# A\n\n* " + "word " * 30 + "[b](c.md) [d](https://e)\n\n| " + "x" * 60 + " |\n```sh\n" + "y " * 40 + "\n```\n"
    )
    lines = list(laid_out(text, 50))
    assert lines[0] == "# A"
    assert max(len(line) for part in lines[1:3] for line in part.splitlines()) <= 50
    assert "b [d](https://e)" in " ".join(lines[2].split())
    assert lines[4:] == ["| " + "x" * 60 + " |", "    " + "y " * 40]
