"""``kernsel mkl``: weights of kernels, and a selection with their weighted sum."""

from __future__ import annotations

import json as json_format
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from kernsel.cli import console
from kernsel.cli.arguments import Asked, Data, Groups, Json, Output, Quiet, Target, Threads, Weights, option
from kernsel.cli.beside import with_reading
from kernsel.cli.reading import announce_compiling, begin, journaled, read_dataset
from kernsel.cli.texts import read_values
from kernsel.cli.writing import File, deliver
from kernsel.errors import OptionError
from kernsel.text import to_json


def mkl(
    data: Data,
    asked: Asked,
    target: Target = None,
    kernel: Annotated[
        list[str] | None, option("NAME", "gaussian, 'linear[0, 3]' ...; repeatable [default: gaussian].")
    ] = None,
    family: Annotated[
        str,
        option(
            "single|separate|products",
            "The kernels as they are; and each on every feature alone; or a relevance for each feature.",
        ),
    ] = "single",
    grid: Annotated[
        list[str] | None, option("NAME=V,V...", "Values of a parameter, each a kernel of its own; repeatable.")
    ] = None,
    method: Annotated[
        str, option("NAME", "k-ks, simple, lp, easy, alignment, uniform or infinite; or 'NAME(key=value)'.")
    ] = "k-ks",
    learner: Annotated[
        str | None, option("NAME", "Whose fits simple, lp and infinite look at; of k-ks krr or lssvm.")
    ] = None,
    lam: Annotated[
        float | None, option("VALUE", "Lambda of those fits [default: the best one].", name="--lambda")
    ] = None,
    select: Annotated[
        str | None, option("LEARNER", "Then choose lambda for this learner on the weighted sum, and fit it.")
    ] = None,
    rows: Annotated[int, option("N", "Learn on a sample of so many rows.")] = 1000,
    groups: Groups = None,
    weights: Weights = None,
    output: Output = None,
    model: Annotated[Path | None, option("FILE", "Write the model that --select fits to this file.")] = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Learn weights of several kernels (multiple kernel learning), and select with their weighted sum."""
    with console.guarded():
        values = read_values(grid or [])
        if model is not None and select is None:
            raise OptionError("--model needs a fitted model: give --select with a learner")
        place = begin(data, asked, output, {"--model": model}, threads)
        plan = asked.plan()
        chatty = not (json or quiet)
        _, dataset = read_dataset(data, asked.reading, plan, target, {"weights": weights, "groups": groups}, chatty)
        from kernsel.learning import learn_mkl_on_dataset
        from kernsel.parts import read_learner
        from kernsel.selection.carry_out import carry_out

        chosen_by = None if select is None else read_learner(select, dataset.task)
        announce_compiling(quiet)
        options: dict[str, Any] = {
            "kernel": kernel or "gaussian",
            "family": family,
            "grid": values,
            "method": method,
            "learner": learner,
            "lam": lam,
            "folds": plan.folds,
            "rows": rows,
            "seed": plan.seed,
        }
        told = {**plan.options, **options, "select": select}
        with journaled(place, "kernsel mkl", dataset, told, quiet):
            found = learn_mkl_on_dataset(dataset, **options)
            document, summaries, warnings = found.to_dict(), [found.summary()], found.warnings
            files: list[File] = []
            if chosen_by is not None:
                with console.progress(quiet) as report:
                    chosen = carry_out(dataset, replace(plan, learner=chosen_by, kernel=found.kernel), report)
                document["selection"] = json_format.loads(chosen.to_json())
                summaries.append(chosen.summary())
                warnings = [*warnings, *chosen.warnings]
                files.append(File("model", model, with_reading(chosen.model, asked.reading).save))
            text = to_json(document)
            deliver(text if json else "\n\n".join(summaries), text, output, chatty, *files)
        for each in warnings:
            console.warn(each)
