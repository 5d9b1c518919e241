"""``kernsel select``: from a table to a verified model."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kernsel.cli import console
from kernsel.cli.arguments import (
    ClassWeight,
    Data,
    Groups,
    Json,
    Output,
    Quiet,
    Standardize,
    TableOptions,
    Target,
    Task,
    Threads,
    Weights,
)
from kernsel.cli.reading import check_outputs, read_dataset, read_rank, read_values, set_threads
from kernsel.cli.writing import deliver, say_written
from kernsel.errors import OptionError


def select(
    data: Data,
    tables: TableOptions,
    target: Target = None,
    task: Task = "auto",
    learner: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A learner, or auto for classes [default: lssvm for classes, krr for a regression]."
        ),
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="auto compares profiles and learns relevances; or gaussian, 'gaussian + 0.5*linear', ard ...; "
            "repeatable [default: auto].",
        ),
    ] = None,
    relevances: Annotated[
        str | None,
        typer.Option(
            metavar="evidence|loo|cv|br|flkl", help="What ard and auto learn relevances by [default: evidence]."
        ),
    ] = None,
    effort: Annotated[
        str,
        typer.Option(
            metavar="quick|normal|thorough",
            help="How much kernel auto compares: profiles of one width, relevances too, or more of both.",
        ),
    ] = "normal",
    criterion: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="NAME or 'NAME(key=value)' [default: newton-cv, or cv for time:N]."),
    ] = None,
    order: Annotated[str | None, typer.Option(metavar="R|inf", help="Order of the criterion bif.")] = None,
    eta: Annotated[
        str | None,
        typer.Option(metavar="VALUE|cv", help="Weight of a penalty (rks, cvks, sps, er, ep); cv: by cross-validation."),
    ] = None,
    folds: Annotated[
        str | None,
        typer.Option(
            metavar="N|loo|logo|time:N",
            help="A number of folds, leave one out, leave one group out, N in the order of the rows [default: 10].",
        ),
    ] = None,
    groups: Groups = None,
    fold_column: Annotated[
        str | None, typer.Option(metavar="COL", help="A column with the fold of each row; negative: never held out.")
    ] = None,
    repeats: Annotated[int, typer.Option(metavar="R", min=1, help="How often the folds are dealt.")] = 1,
    weights: Weights = None,
    class_weight: ClassWeight = None,
    copies: Annotated[
        str,
        typer.Option(metavar="together|apart", help="Whether rows of equal features are in one fold."),
    ] = "together",
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="auto|coarse|paper|sobol:N|random:N|NAME=V,V...",
            help="Scaled by the data, that with few values to --refine, powers of two, or N points; or values of a "
            "parameter or lambda, repeatable.",
        ),
    ] = None,
    search: Annotated[
        str,
        typer.Option(
            metavar="auto|grid|halving",
            help="Score every candidate, or halve them at growing rank [default: halving from 1000 rows].",
            show_default=False,
        ),
    ] = "auto",
    refine: Annotated[
        str | None,
        typer.Option(metavar="compass|simplex|gradient", help="Leave the grid afterwards, from its best minima."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="N|Ns|Nmin", help="What --refine may cost: candidates or a time [default: 200]."),
    ] = None,
    verify: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Leading candidates to verify by exact held-out predictions."),
    ] = 5,
    extend: Annotated[
        bool, typer.Option("--extend/--no-extend", help="Extend the grid if the winner is on its edge.")
    ] = True,
    nested: Annotated[
        str | None,
        typer.Option(metavar="N|loo|logo|time:N", help="Repeat it without each outer fold: an honest error."),
    ] = None,
    pure: Annotated[
        bool, typer.Option("--pure", help="Never replace an approximation that is unreliable by a better one.")
    ] = False,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A scikit-learn scorer to report of held-out predictions; repeatable."),
    ] = None,
    choose: Annotated[
        str | None,
        typer.Option(
            metavar="safest|minimum|one-se",
            help="Among candidates that can't be told from the best: the safest on new rows, the minimum itself, or "
            "the largest lambda [default: safest].",
        ),
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Standard errors above the best that --choose looks at [default: 0.2 of a regression, 0.5 of classes; "
            "one-se 1].",
        ),
    ] = None,
    one_se: Annotated[bool, typer.Option("--one-se", help="Short for --choose one-se.")] = False,
    clip: Annotated[
        bool,
        typer.Option("--clip/--no-clip", help="Keep outputs of a regression in the range of the target."),
    ] = True,
    calibration: Annotated[
        str | None,
        typer.Option(
            metavar="sigmoid|isotonic|softmax|none",
            help="How outputs become probabilities [default: sigmoid; softmax of more than two classes].",
        ),
    ] = None,
    rank: Annotated[
        str | None,
        typer.Option(
            metavar="K|SHARE|tol:SHARE|full|whole",
            help="Rank of the kernel matrix; tol: what leaves that share of its trace [default: full up to 2000 rows].",
        ),
    ] = None,
    landmarks: Annotated[
        str | None,
        typer.Option(
            metavar="rpcholesky|uniform|leverage|kmeans",
            help="How the landmarks of a low rank are chosen [default: rpcholesky].",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the folds and landmarks.")] = 0,
    standardize: Standardize = True,
    output: Output = None,
    model: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the fitted model to this file.")] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Select and fit a kernel model for a table."""
    with console.guarded():
        numbers = {"rank": read_rank(rank), "order": _order(order), "eta": _eta(eta)}
        options: dict[str, Any] = {"grid": _grid(grid or []), **numbers}
        if folds is not None and fold_column is not None:
            raise OptionError(f"--folds {folds} and --fold-column {fold_column}: give one of them")
        check_outputs(data, {"--output": output, "--model": model})
        set_threads(threads)
        from kernsel.folds import check_text, make_folds

        way = check_text(folds or "10")
        outer = None if nested is None else check_text(nested)
        chatty = not (json or quiet)
        aside = {"weights": weights, "groups": groups, "folds": fold_column}
        roles, dataset = read_dataset(
            data, tables, target, task, standardize, chatty, class_weight=class_weight, copies=copies, **aside
        )
        if outer is not None:
            make_folds(outer, dataset, seed)  # what can't be made is said before the selection, not after it
        from kernsel.numerics.runtime import jit
        from kernsel.selection.api import select_dataset

        jit.announce = None if quiet else console.say
        jit.ahead = True
        options |= {
            "learner": learner,
            "kernel": kernel,
            "relevances": relevances,
            "effort": effort,
            "criterion": criterion,
            "landmarks": landmarks,
            "folds": way if roles.folds is None else roles.folds,
            "repeats": repeats,
            "search": search,
            "refine": refine,
            "budget": budget,
            "verify": verify,
            "extend": extend,
            "pure": pure,
            "metric": metric or (),
            "choose": choose,
            "within": within,
            "one_se": one_se,
            "clip": clip,
            "calibration": calibration,
            "seed": seed,
        }
        with console.progress(quiet) as report:
            result = select_dataset(dataset, progress=report, **options)
        if outer is not None:
            import pandas as pd

            from kernsel.data.tables import column_of, names_of, without
            from kernsel.evaluation import nested as estimate

            targets = roles.targets or names_of(roles.frame)[-1:]
            columns = {name: column_of(roles.frame, name) for name in targets}
            with console.progress(quiet) as report:
                honest = estimate(
                    without(roles.frame, targets),
                    pd.DataFrame(columns) if len(targets) > 1 else columns[targets[0]],
                    outer=outer,
                    task=dataset.task,
                    standardize=standardize,
                    weights=roles.weights,
                    groups=roles.groups,
                    class_weight=class_weight,
                    copies=copies,
                    progress=report,
                    **tables.columns,
                    **options,
                )
            result = replace(result, nested=honest)
        for note in result.data["notes"][len(dataset.notes) :] if chatty else ():
            typer.echo(f"  {note}")
        document = result.to_json()
        saving = [] if model is None else [lambda: result.model.save(model)]
        deliver(document if json else result.summary(), document, output, *saving)
        if chatty:
            say_written(result=output, model=model)
        for text in result.warnings:
            console.warn(text)


def _order(text: str | None) -> Any:
    """Read ``--order``: None, infinity or a whole number."""
    if text is None or text == "inf":
        return None if text is None else math.inf
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise OptionError(f"--order {text} is neither a whole number from 1 nor inf")


def _eta(text: str | None) -> Any:
    """Read ``--eta``: None, ``"cv"`` or a number."""
    if text is None or text == "cv":
        return text
    try:
        return float(text)
    except ValueError as error:
        raise OptionError(f"--eta {text} is neither a number nor cv") from error


def _grid(texts: list[str]) -> Any:
    """Read ``--grid``: the grid of everything, or values by name and the grid of the rest."""
    styles = [text for text in texts if "=" not in text] or ["auto"]
    if len(styles) > 1:
        raise OptionError(f"--grid is given as {' and as '.join(styles)}; give one of them, and values as NAME=V,V...")
    values = read_values([text for text in texts if "=" in text])
    if not values:
        return styles[0]
    return values if styles == ["auto"] else {**values, "rest": styles[0]}
