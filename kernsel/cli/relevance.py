"""``kernsel relevance``: how much each feature counts, how sure that is, and whether it helps to know."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from kernsel.cli import console
from kernsel.cli.arguments import Asked, Data, Groups, Json, Output, Quiet, Target, Threads, Weights, option
from kernsel.cli.reading import announce_compiling, begin, journaled, read_dataset
from kernsel.cli.writing import File, deliver


def relevance(
    data: Data,
    asked: Asked,
    target: Target = None,
    criterion: Annotated[
        str,
        option(
            "evidence|loo|cv|br|flkl",
            "What the relevances are learnt by; 'evidence(sigma=1)' with a prior that holds them together.",
        ),
    ] = "evidence",
    learner: Annotated[
        str | None, option("krr|lssvm", "A learner [default: lssvm for classification, krr for regression].")
    ] = None,
    kernel: Annotated[
        str,
        option(
            "NAME", "ard, 'ard(profile=matern32)', ard-laplacian, 'ard-polynomial(degree=2)'; gaussian has one for all."
        ),
    ] = "ard",
    resamples: Annotated[
        int, option("R", "How often a fifth of the rows is held out to see what is sure.", least=0)
    ] = 10,
    folds: Annotated[str, option("N|loo|logo", "Folds of the criteria cv and flkl, and of the start.")] = "5",
    rows: Annotated[int, option("N", "Learn on so many rows first.", least=10)] = 500,
    polish: Annotated[int, option("N", "Then make so many steps on all, up to 2000.", least=0)] = 5,
    evaluations: Annotated[int, option("N", "How many pairs of lambda and mu flkl tries.", least=1)] = 40,
    groups: Groups = None,
    weights: Weights = None,
    seed: Annotated[int, option("N", "Seed of resamples, folds and parts.", least=0)] = 0,
    plot: Annotated[Path | None, option("FILE", "Draw the relevances to this PNG, SVG or PDF file.")] = None,
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
        place = begin(data, asked, output, {"--plot": plot}, threads)
        chatty = not (json or quiet)
        _, dataset = read_dataset(
            data, asked.reading, asked.plan(), target, {"weights": weights, "groups": groups}, chatty
        )
        from kernsel.evaluation.relevance_study import study_on_dataset
        from kernsel.report.pictures import plot_relevances

        announce_compiling(quiet)
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
            picture = File("picture", plot, partial(plot_relevances, study))
            deliver(document if json else study.summary(), document, output, chatty, picture)
