"""``kernsel compare``: which method chooses best, on the same splits of one's own tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernsel.cli import console
from kernsel.cli.arguments import RESULTS, Asked, Groups, Json, Output, Quiet, Target, Threads
from kernsel.cli.reading import announce, check_outputs, place_journal, set_threads
from kernsel.cli.writing import deliver, say_written
from kernsel.errors import OptionError
from kernsel.selection.plan import WORDS, Plan

if TYPE_CHECKING:
    from kernsel.data import Reading

WHOLE = "encoding: fitted once"
"""How a note of a table begins that is true of selections on all of its rows only."""

Tables = Annotated[
    list[Path],
    typer.Argument(metavar="DATA", readable=False, help="The tables, each a file of its own, in any form of select."),
]


def _varied(what: str, example: str) -> Any:
    return typer.Option(metavar="A,B,...", help=f"Compare {what}, such as {example}.")


def compare(
    data: Tables,
    asked: Asked,
    target: Target = None,
    groups: Groups = None,
    criteria: Annotated[str | None, _varied("criteria", "'cv,gcv,cvks(eta=1)'")] = None,
    learners: Annotated[str | None, _varied("learners", "svm,lssvm")] = None,
    kernels: Annotated[str | None, _varied("kernels", "'gaussian,laplacian,auto'")] = None,
    searches: Annotated[str | None, _varied("searches", "grid,halving")] = None,
    rules: Annotated[str | None, _varied("rules of choice", "safest,minimum,one-se")] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'NAME(OPTION=V,...)'", help="Compare a method of that name and these options too; repeatable."
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="Compare an estimator of scikit-learn's kind too: sklearn.svm:SVC, 'sklearn.svm:SVC(C=10)'; "
            "repeatable.",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="ks14|ksj|fbif18|bif14|flkl|flkl-mkl",
            help="The experiment of a paper, with its printed results beside those found.",
        ),
    ] = None,
    splits: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How often rows are split [default: 10, or the protocol's].")
    ] = None,
    train: Annotated[
        float | None,
        typer.Option(metavar="SHARE|N", help="Rows to train on [default: 0.7, or the protocol's]."),
    ] = None,
    test_rows: Annotated[int | None, typer.Option(metavar="N", min=1, help="Test on at most so many rows.")] = None,
    split_files: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Take splits from its files NAME_splits.npz: arrays train and test."),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="corrected|t|wilcoxon",
            help="The test that marks what is not significantly worse than the best [default: corrected].",
        ),
    ] = None,
    level: Annotated[float | None, typer.Option(metavar="P", help="Of the tests [default: 0.05].")] = None,
    measure: Annotated[
        str | None, typer.Option(metavar="rmse|mse", help="The error of a regression [default: rmse].")
    ] = None,
    tables: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Write the tables to this .txt, .md, .csv (every trial), .tex, .html or .json file; repeatable.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the critical-difference diagram to this PNG, SVG or PDF file.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Compare criteria, learners, kernels, searches or rules of choice, and other people's estimators, on tables.

    Every method chooses and fits a model on the same training rows of each split, and predicts the others.
    """
    with console.guarded():
        places = {"--output": output, "--plot": plot, **{f"--tables {path}": path for path in tables or ()}}
        check_outputs(data, places)
        place = place_journal(asked.given["journal"], data, output, {k: v for k, v in places.items() if v != output})
        set_threads(threads)
        from kernsel.comparison.api import plan_experiment
        from kernsel.comparison.formats import check_table
        from kernsel.comparison.methods import split_list
        from kernsel.journal import journaling
        from kernsel.numerics.runtime import jit

        for path in tables or ():
            check_table(path)
        if plot is not None:
            from kernsel.report.style import check_plot

            check_plot(plot)
            if len(data) < 2:
                raise OptionError(f"--plot {plot}: ranks are over tables, and there is one only; give two or more")
        lists = {"criteria": criteria, "learners": learners, "kernels": kernels, "searches": searches, "rules": rules}
        options = _given(asked)
        jit.announce = None if quiet else console.say
        jit.ahead = True
        given, grouped = read_tables(data, asked.reading, target, groups)
        experiment = plan_experiment(
            given,
            groups=grouped,
            protocol=protocol,
            lists={name: split_list(text or "") for name, text in lists.items()},
            methods=_methods(method or []),
            against=against or [],
            design={"test": test, "level": level, "measure": measure},
            splits={"count": splits, "train": train, "test": test_rows, "folder": split_files},
            seed=options.pop("seed", 0),
            options=options,
        )
        for table in experiment.tables if not (json or quiet) else ():
            notes = [note for note in table.dataset.notes if not note.startswith(WHOLE)]
            announce(replace(table.dataset, source=table.name, notes=notes))
        with journaling(place.path, experiment.header, place.delay, place.keep) as journal:
            if journal.known and not quiet:
                console.say(f"going on from {place.path}: {journal.known} trials are done")
            with console.progress(quiet) as report:
                found = experiment.run(report)
            document = found.to_json()
            saving: list[Callable[[], object]] = [partial(found.save, path) for path in tables or ()]
            if plot is not None:
                saving.append(partial(found.plot, plot))
            deliver(document if json else found.summary(), document, output, *saving)
        if not (json or quiet):
            say_written(result=output, picture=plot)
            for path in tables or ():
                say_written(tables=path)


def _given(asked: Asked) -> dict[str, Any]:
    """Return the options of a selection that are given, by their values."""
    plan = asked.plan()
    found = {}
    for name, words in WORDS.items():
        given = asked.given.get(name)
        if name != "journal" and (given != getattr(Plan, name) if words.kind == "flag" else given not in (None, [])):
            found[name] = getattr(plan, name)
    return found


def _methods(texts: list[str]) -> dict[str, dict[str, Any]]:
    """Read ``--method 'NAME(OPTION=V, ...)'``."""
    from kernsel.text import parse

    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, options = parse(f"--method {text!r}", text)
        if name in found:
            raise OptionError(f"--method {name} is given twice; give each method a name of its own")
        found[name] = options
    return found


def read_tables(
    data: list[Path], reading: Reading, target: str | None, groups: str | None
) -> tuple[dict[str, tuple[Any, Any]], dict[str, Any]]:
    """Return features and target of each table by its name, and the groups of its rows, where a column has them."""
    from kernsel.data import assign_roles, read_table

    found: dict[str, tuple[Any, Any]] = {}
    grouped = {}
    places = [path.resolve() for path in data]
    for path in data:
        if places.count(path.resolve()) > 1:
            raise OptionError(f"{path} is given twice; give each table once")
        roles = assign_roles(read_table([path], reading=reading), target, groups=groups)
        name = path.stem if path.stem not in found else str(path)
        found[name], grouped[name] = roles.split(), roles.groups
    return found, grouped
