"""``kernsel select``: from a table to a verified model."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernsel.cli import console
from kernsel.cli.arguments import RESULTS, Asked, Data, Groups, Json, Output, Quiet, Target, Threads, Weights
from kernsel.cli.reading import announce, check_outputs, read_dataset, read_plots, set_threads
from kernsel.cli.writing import deliver, say_written
from kernsel.errors import OptionError
from kernsel.selection.plan import HEADINGS

if TYPE_CHECKING:
    from kernsel.data import Dataset, Roles
    from kernsel.selection.plan import Plan
    from kernsel.selection.result import Selection


def select(
    context: typer.Context,
    data: Data,
    asked: Asked,
    target: Target = None,
    groups: Groups = None,
    weights: Weights = None,
    fold_column: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="A column with the fold of each row; negative: never held out.",
            rich_help_panel=HEADINGS["folds"],
        ),
    ] = None,
    nested: Annotated[
        str | None,
        typer.Option(
            metavar="N|loo|logo|time:N",
            help="Repeat it without each outer fold: an honest error.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    output: Output = None,
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the fitted model to this file.", rich_help_panel=RESULTS)
    ] = None,
    plot: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="Draw a picture to a PNG, SVG or PDF file: criterion, heldout, residuals, roc, precision-recall, "
            "calibration, rank, relevances or boundary; repeatable.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all of it to this page of HTML.", rich_help_panel=RESULTS),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Select and fit a kernel model for a table."""
    with console.guarded():
        if asked.given["folds"] is not None and fold_column is not None:
            raise OptionError(f"--folds {asked.given['folds']} and --fold-column {fold_column}: give one of them")
        plots = read_plots(plot or [])
        pictures = {f"--plot {name}": path for name, path in plots.items()}
        check_outputs(data, {"--output": output, "--model": model, "--report": report, **pictures})
        set_threads(threads)
        from kernsel.folds import check_text, make_folds
        from kernsel.selection.kernel_source import check_names

        plan = asked.plan()
        check_names(plan)
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
        from kernsel.numerics.runtime import jit
        from kernsel.selection.api import carry_out

        jit.announce = None if quiet else console.say
        jit.ahead = True
        with console.progress(quiet) as progress:
            result = carry_out(dataset, plan, progress)
        if outer is not None:
            result = replace(result, nested=_nested(roles, dataset, plan, outer, quiet))
        document = result.to_json()
        saving = _drawing(result, plots)
        if model is not None:
            saving.insert(0, lambda: result.model.save(model))
        if report is not None:
            from kernsel.report.again import Origin
            from kernsel.report.page import write_report

            origin = Origin(shlex.join(["kernsel", *context.obj]), list(map(str, data)), asked.reading)
            saving.append(lambda: write_report(result, report, origin))
        deliver(document if json else result.summary(notes=not quiet), document, output, *saving)
        if chatty:
            say_written(result=output, model=model, **plots, report=report)
        for text in result.warnings:
            console.warn(text)


def _drawing(result: Selection, plots: Mapping[str, Path]) -> list[Callable[[], object]]:
    """Return what draws each picture of a result."""
    if not plots:
        return []
    from kernsel.report.pictures import plot

    return [partial(plot, result, name, path) for name, path in plots.items()]


def _nested(roles: Roles, dataset: Dataset, plan: Plan, outer: Any, quiet: bool) -> Any:
    """Return the nested estimate of a plan on a table."""
    import pandas as pd

    from kernsel.data.tables import column_of, names_of, without
    from kernsel.evaluation.nestedcv import estimate_nested

    targets = roles.targets or names_of(roles.frame)[-1:]
    columns = {name: column_of(roles.frame, name) for name in targets}
    with console.progress(quiet) as report:
        return estimate_nested(
            without(roles.frame, targets),
            pd.DataFrame(columns) if len(targets) > 1 else columns[targets[0]],
            replace(plan, task=dataset.task),
            outer,
            weights=roles.weights,
            groups=roles.groups,
            progress=report,
        )
