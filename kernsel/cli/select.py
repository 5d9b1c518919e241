"""``kernsel select``: from a table to a verified model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kernsel.cli import console
from kernsel.cli.arguments import (
    RESULTS,
    Asked,
    Data,
    Groups,
    Json,
    Output,
    Quiet,
    Target,
    Threads,
    Weights,
    flag,
    option,
)
from kernsel.cli.beside import with_reading
from kernsel.cli.reading import JournalPlace, announce, announce_compiling, begin, journaled, read_dataset
from kernsel.cli.texts import read_plots
from kernsel.cli.writing import File, deliver
from kernsel.errors import KernselError, OptionError
from kernsel.selection.plan import HEADINGS

if TYPE_CHECKING:
    from kernsel.data import Dataset, Roles
    from kernsel.evaluation.nestedcv import Nested
    from kernsel.model.model import Model
    from kernsel.selection.plan import Plan
    from kernsel.selection.result import Selection


def select(
    data: Data,
    asked: Asked,
    target: Target = None,
    groups: Groups = None,
    weights: Weights = None,
    fold_column: Annotated[
        str | None, option("COL", "A column with the fold of each row; negative: never held out.", HEADINGS["folds"])
    ] = None,
    nested: Annotated[
        str | None, option("N|loo|logo|blocks:N|time:N", "Repeat it without each outer fold: an honest error.", RESULTS)
    ] = None,
    output: Output = None,
    model: Annotated[Path | None, option("FILE", "Write the fitted model to this file.", RESULTS)] = None,
    compress: Annotated[
        bool, flag("--compress", "Write a small model in its place, which predicts much the same.", RESULTS)
    ] = False,
    plot: Annotated[
        list[str] | None,
        option(
            "NAME=FILE",
            "Draw a picture to a PNG, SVG or PDF file: criterion, heldout, residuals, roc, precision-recall, "
            "calibration, rank, relevances or boundary; repeatable.",
            RESULTS,
        ),
    ] = None,
    report: Annotated[Path | None, option("FILE", "Write all of it to this page of HTML.", RESULTS)] = None,
    dask: Annotated[
        str | None, option("local|ADDRESS", "Let workers of Dask read the files, at a low rank.", HEADINGS["size"])
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Select and fit a kernel model for a table."""
    with console.guarded():
        if asked.given["folds"] is not None and fold_column is not None:
            raise OptionError(f"--folds {asked.given['folds']} and --fold-column {fold_column}: give one of them")
        if compress and model is None:
            raise OptionError("--compress is about the file of the model: give --model FILE, too")
        plots = read_plots(plot or [])
        files = {"--model": model, "--report": report, **{f"--plot {name}": path for name, path in plots.items()}}
        place = begin(data, asked, output, files, threads)
        from kernsel.folds import check_text, make_folds
        from kernsel.selection.kernel_source import check_names

        plan = asked.plan()
        check_names(plan)
        if dask is not None:
            refused = {"--groups": groups, "--fold-column": fold_column, "--nested": nested, "--report": report}
            refused |= {"--plot": ", ".join(plots) or None, "--compress": "" if compress else None}
            _on_workers(data, asked, dask, target, weights, refused, place, output, model, json, quiet)
            return
        outer = None if nested is None else check_text(nested)
        chatty = not (json or quiet)
        aside = {"weights": weights, "groups": groups, "folds": fold_column}
        roles, dataset = read_dataset(data, asked.reading, plan, target, aside, False)
        if chatty and console.is_watched():
            announce(dataset, aside=True)  # a wrong target is seen before the search, not after it
        if roles.folds is not None:
            plan = replace(plan, folds=roles.folds)
        if outer is not None:
            make_folds(outer, dataset, plan.seed)  # what can't be made is said before the selection, not after it
        if plots:
            from kernsel.report.pictures import check_pictures, known_before

            check_pictures(plots, known_before(dataset, plan))
        from kernsel.selection.carry_out import carry_out
        from kernsel.selection.work import foretell

        announce_compiling(quiet, by_another=True)
        if chatty and (work := foretell(dataset, plan)):
            console.say(work)
        with journaled(place, "kernsel select", dataset, {**plan.options, "nested": outer}, quiet):
            with console.progress(quiet) as progress:
                result = carry_out(dataset, plan, progress)
            if outer is not None:
                result = replace(result, nested=nested_estimate(roles, dataset, plan, outer, quiet))
            result = replace(result, options={**result.options, "read": _origin(data, asked, target, aside, outer)})
            result = replace(result, model=with_reading(result.model, asked.reading))
            document = result.to_json()
            fitted, told = _compressed(result.model) if compress else (result.model, "")
            shown = document if json else result.summary(notes=not quiet) + f"\n  {told}" * bool(chatty and told)
            deliver(shown, document, output, chatty, *_saving(result, fitted, model, plots, report))
        for text in result.warnings:
            console.warn(text)


def _saving(
    result: Selection, fitted: Model, model: Path | None, plots: Mapping[str, Path], report: Path | None
) -> Iterator[File]:
    """Give each file of a result but its document."""
    yield File("model", model, fitted.save)
    if plots:
        from kernsel.report.pictures import plot

        yield from (File(name, path, partial(plot, result, name)) for name, path in plots.items())
    if report is not None:
        from kernsel.report.page import write_report

        yield File("report", report, partial(write_report, result))


def _compressed(model: Model) -> tuple[Model, str]:
    """Return a small model in the place of one, and what that is worth; the model itself where there is none."""
    from kernsel.model.compression import describe

    try:
        small = model.compress()
    except KernselError as error:  # the result is there, whatever becomes of its model
        console.warn(f"--compress: {error}")
        return model, ""
    return small, describe(model, small)


def _on_workers(
    data: list[Path],
    asked: Asked,
    address: str,
    target: str | None,
    weights: str | None,
    refused: dict[str, Any],
    place: JournalPlace,
    output: Path | None,
    model: Path | None,
    json: bool,
    quiet: bool,
) -> None:
    """Select on files that the workers of Dask read."""
    from kernsel.selection.ondask import select_files

    for name, given in refused.items():
        if given is not None:
            raise OptionError(
                f"{name} {given}".strip() + ": rows in parts don't have that yet; leave it out, or --dask"
            )
    plan = asked.plan()
    with ExitStack() as kept:

        def keep(sample: Dataset) -> None:
            kept.enter_context(journaled(place, "kernsel select --dask", sample, plan.options, quiet))

        with console.progress(quiet) as report:
            result = select_files(data, address, plan, target, weights, asked.reading, report, keep)
        read = _origin(data, asked, target, {"weights": weights}, None) | {"dask": address}
        result = replace(result, options={**result.options, "read": read})
        document = result.to_json()
        shown = document if json else result.summary()
        fitted = with_reading(result.model, asked.reading)
        deliver(shown, document, output, not (json or quiet), File("model", model, fitted.save))
    for text in result.warnings:
        console.warn(text)


def _origin(
    data: list[Path], asked: Asked, target: str | None, aside: dict[str, str | None], outer: object
) -> dict[str, Any]:
    """Return how the table was read, as ``kernsel rerun`` reads it again."""
    table = {name: value for name, value in vars(asked.reading).items() if value is not None}
    return {"files": list(map(str, data)), "target": target, **aside, "nested": outer, "table": table}


def nested_estimate(roles: Roles, dataset: Dataset, plan: Plan, outer: object, quiet: bool) -> Nested:
    """Return the nested estimate of a plan on a table."""
    from kernsel.evaluation.nestedcv import estimate_nested

    with console.progress(quiet) as report:
        return estimate_nested(
            *roles.split(),
            replace(plan, task=dataset.task),
            outer,
            weights=roles.weights,
            groups=roles.groups,
            progress=report,
        )
