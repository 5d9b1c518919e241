"""``kernsel compare``: which method chooses best, on the same splits of one's own tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from kernsel.cli import console
from kernsel.cli.arguments import RESULTS, Asked, Groups, Json, Output, Quiet, Target, Threads, option
from kernsel.cli.comparing import (
    Measure,
    TablesRead,
    TablesWritten,
    announce_tables,
    finish,
    given_options,
    of_tables,
    read_tables,
)
from kernsel.cli.reading import announce_compiling, begin, going_on
from kernsel.cli.texts import read_plots
from kernsel.errors import OptionError
from kernsel.text import parse, split_list


def _varied(what: str, example: str) -> Any:
    return option("A,B,...", f"Compare {what}, such as {example}.")


def compare(
    data: TablesRead,
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
        option("'NAME(OPTION=V,...)'", "Compare a method of that name and these options too; repeatable."),
    ] = None,
    against: Annotated[
        list[str] | None,
        option(
            "MODULE:NAME",
            "Compare an estimator of scikit-learn's kind too: sklearn.svm:SVC, 'sklearn.svm:SVC(C=10)'; repeatable.",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        option(
            "NAME",
            "The experiment of a paper, printed results beside those found; kernsel-papers has six.",
        ),
    ] = None,
    splits: Annotated[
        int | None, option("N", "How often rows are split [default: 10, or the protocol's].", least=1)
    ] = None,
    train: Annotated[float | None, option("SHARE|N", "Rows to train on [default: 0.7, or the protocol's].")] = None,
    test_rows: Annotated[int | None, option("N", "Test on at most so many rows.", least=1)] = None,
    split_files: Annotated[
        Path | None, option("FOLDER", "Take splits from its files NAME_splits.npz: arrays train and test.")
    ] = None,
    test: Annotated[
        str | None,
        option(
            "corrected|t|wilcoxon",
            "The test that marks what is not significantly worse than the best [default: corrected].",
        ),
    ] = None,
    level: Annotated[float | None, option("P", "Of the tests [default: 0.05].")] = None,
    measure: Measure = None,
    tables: TablesWritten = None,
    chosen: Annotated[
        list[str] | None,
        option(
            "NAME=FILE",
            "Draw boxes of the values of tau, lambda or another parameter that each method chose over the splits; "
            "repeatable.",
            RESULTS,
        ),
    ] = None,
    plot: Annotated[
        Path | None, option("FILE", "Draw the critical-difference diagram to this PNG, SVG or PDF file.", RESULTS)
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
        boxes = read_plots(chosen or [], "--chosen", "tau=boxes.png")
        pictures = {"--plot": plot, **{f"--chosen {name}": path for name, path in boxes.items()}}
        if plot is not None and len(data) < 2:
            raise OptionError(f"--plot {plot}: ranks are over tables, and there is one only; give two or more")
        place = begin(data, asked, output, {**pictures, **of_tables(tables)}, threads)
        announce_compiling(quiet, by_another=True)
        from kernsel.comparison.api import plan_experiment

        lists = {"criteria": criteria, "learners": learners, "kernels": kernels, "searches": searches, "rules": rules}
        options = given_options(asked)
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
        experiment.check_chosen(boxes)
        if not (json or quiet):
            announce_tables({table.name: table.dataset for table in experiment.tables})
        with going_on(place, experiment.header, quiet, "trials"):
            with console.progress(quiet) as report:
                found = experiment.run(report)
            draws: dict[Path, Any] = {path: partial(found.plot_choices, name) for name, path in boxes.items()}
            draws |= {} if plot is None else {plot: found.plot}
            finish(found, output, tables or (), draws, json, quiet)


def _methods(texts: list[str]) -> dict[str, dict[str, Any]]:
    """Read ``--method 'NAME(OPTION=V, ...)'``."""
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, options = parse(f"--method {text!r}", text)
        if name in found:
            raise OptionError(f"--method {name} is given twice; give each method a name of its own")
        found[name] = options
    return found
