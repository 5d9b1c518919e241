"""``kernsel select``: from a table to a verified model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernsel.cli import console
from kernsel.cli.arguments import Asked, Data, Groups, Json, Output, Quiet, Target, Threads, Weights
from kernsel.cli.reading import check_outputs, journaled, place_journal, read_dataset, set_threads
from kernsel.cli.writing import deliver, say_written
from kernsel.errors import OptionError

if TYPE_CHECKING:
    from kernsel.data import Dataset, Roles
    from kernsel.selection.plan import Plan


def select(
    data: Data,
    asked: Asked,
    target: Target = None,
    groups: Groups = None,
    weights: Weights = None,
    fold_column: Annotated[
        str | None, typer.Option(metavar="COL", help="A column with the fold of each row; negative: never held out.")
    ] = None,
    nested: Annotated[
        str | None,
        typer.Option(metavar="N|loo|logo|blocks:N|time:N", help="Repeat it without each outer fold: an honest error."),
    ] = None,
    output: Output = None,
    model: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the fitted model to this file.")] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Select and fit a kernel model for a table."""
    with console.guarded():
        if asked.given["folds"] is not None and fold_column is not None:
            raise OptionError(f"--folds {asked.given['folds']} and --fold-column {fold_column}: give one of them")
        check_outputs(data, {"--output": output, "--model": model})
        place = place_journal(asked.given["journal"], data, output, {"--model": model})
        set_threads(threads)
        from kernsel.folds import check_text, make_folds
        from kernsel.selection.kernel_source import check_names

        plan = asked.plan()
        check_names(plan)
        outer = None if nested is None else check_text(nested)
        chatty = not (json or quiet)
        aside = {"weights": weights, "groups": groups, "folds": fold_column}
        roles, dataset = read_dataset(data, asked.reading, plan, target, aside, chatty)
        if roles.folds is not None:
            plan = replace(plan, folds=roles.folds)
        if outer is not None:
            make_folds(outer, dataset, plan.seed)  # what can't be made is said before the selection, not after it
        from kernsel.numerics.runtime import jit
        from kernsel.selection.api import carry_out

        jit.announce = None if quiet else console.say
        jit.ahead = True
        with journaled(place, "kernsel select", dataset, {**plan.options, "nested": outer}, quiet):
            with console.progress(quiet) as report:
                result = carry_out(dataset, plan, report)
            if outer is not None:
                result = replace(result, nested=nested_estimate(roles, dataset, plan, outer, quiet))
            result = replace(result, options={**result.options, "read": _origin(data, asked, target, aside, outer)})
            for note in result.data["notes"][len(dataset.notes) :] if chatty else ():
                typer.echo(f"  {note}")
            document = result.to_json()
            saving = [] if model is None else [lambda: result.model.save(model)]
            deliver(document if json else result.summary(), document, output, *saving)
        if chatty:
            say_written(result=output, model=model)
        for text in result.warnings:
            console.warn(text)


def _origin(
    data: list[Path], asked: Asked, target: str | None, aside: dict[str, str | None], outer: Any
) -> dict[str, Any]:
    """Return how the table was read, as ``kernsel rerun`` reads it again."""
    table = {name: value for name, value in vars(asked.reading).items() if value is not None}
    return {"files": list(map(str, data)), "target": target, **aside, "nested": outer, "table": table}


def nested_estimate(roles: Roles, dataset: Dataset, plan: Plan, outer: Any, quiet: bool) -> Any:
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
