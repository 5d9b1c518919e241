"""``kernsel relevance``: how much each feature counts, how sure that is, and whether it helps to know."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kernsel.cli import console
from kernsel.cli.arguments import Asked, Data, Groups, Json, Output, Quiet, Target, Threads, Weights
from kernsel.cli.reading import check_outputs, journaled, place_journal, read_dataset, set_threads
from kernsel.cli.writing import deliver, say_written


def relevance(
    data: Data,
    asked: Asked,
    target: Target = None,
    criterion: Annotated[
        str,
        typer.Option(
            metavar="evidence|loo|cv|br|flkl",
            help="What the relevances are learnt by; 'evidence(sigma=1)' with a prior that holds them together.",
        ),
    ] = "evidence",
    learner: Annotated[
        str | None,
        typer.Option(metavar="krr|lssvm", help="A learner [default: lssvm for classification, krr for regression]."),
    ] = None,
    kernel: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="ard, 'ard(profile=matern32)', ard-laplacian, 'ard-polynomial(degree=2)'; gaussian has one for all.",
        ),
    ] = "ard",
    resamples: Annotated[
        int, typer.Option(metavar="R", min=0, help="How often a fifth of the rows is held out to see what is sure.")
    ] = 10,
    folds: Annotated[
        str, typer.Option(metavar="N|loo|logo", help="Folds of the criteria cv and flkl, and of the start.")
    ] = "5",
    rows: Annotated[int, typer.Option(metavar="N", min=10, help="Learn on so many rows first.")] = 500,
    polish: Annotated[int, typer.Option(metavar="N", min=0, help="Then make so many steps on all, up to 2000.")] = 5,
    evaluations: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many pairs of lambda and mu flkl tries.")
    ] = 40,
    groups: Groups = None,
    weights: Weights = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of resamples, folds and parts.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the relevances to this PNG, SVG or PDF file.")
    ] = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Learn how relevant each feature of a table is.

    Relevances are those of the encoded features: numeric columns in units of their standard deviations, and one 0/1
    column for each value of a text column, or the column itself with --categories hamming.
    """
    with console.guarded():
        check_outputs(data, {"--output": output, "--plot": plot})
        place = place_journal(asked.given["journal"], data, output, {"--plot": plot})
        set_threads(threads)
        from kernsel.report.pictures import plot_relevances
        from kernsel.report.style import check_plot

        if plot is not None:
            check_plot(plot)
        chatty = not (json or quiet)
        _, dataset = read_dataset(
            data, asked.reading, asked.plan(), target, {"weights": weights, "groups": groups}, chatty
        )
        from kernsel.evaluation.relevance_study import study_on_dataset
        from kernsel.numerics.runtime import jit

        jit.announce = None if quiet else console.say
        options: dict[str, Any] = {
            "resamples": resamples,
            "criterion": criterion,
            "learner": learner,
            "kernel": kernel,
            "folds": int(folds) if folds.isdecimal() else folds,
            "rows": rows,
            "polish": polish,
            "evaluations": evaluations,
            "seed": seed,
        }
        with journaled(place, "kernsel relevance", dataset, {**asked.plan().options, **options}, quiet):
            with console.progress(quiet) as report:
                study = study_on_dataset(dataset, progress=report, **options)
            document = study.to_json()
            for note in study.learned.notes[len(dataset.notes) :] if chatty else ():
                typer.echo(f"  {note}")
            plotting = [] if plot is None else [lambda: plot_relevances(study, plot)]
            deliver(document if json else study.summary(), document, output, *plotting)
        if chatty:
            say_written(result=output, picture=plot)
