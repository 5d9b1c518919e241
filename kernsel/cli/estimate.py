"""``kernsel estimate``: what a selection of the square loss at a low rank will take, before it is begun."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from kernsel.cli import console
from kernsel.cli.arguments import Asked, Data, Json, Target, Threads, option
from kernsel.cli.reading import read_dataset, set_threads
from kernsel.errors import OptionError
from kernsel.selection.plan import Plan

SLOW = 10.0
"""Seconds of reading beside which those of the libraries don't count."""

START = 4.0
"""Seconds until libraries and compiled loops are there."""


def estimate(
    data: Data,
    rank: Annotated[int, option("N", "Landmarks.", least=1)],
    asked: Asked,
    target: Target = None,
    rows: Annotated[float | None, option("N", "Rows, if the table is a part of them, such as 1e8.", least=2)] = None,
    folds: Annotated[int, option("N", "Folds.", least=2)] = 10,
    kernels: Annotated[int, option("N", "Kernels, each width one.", least=1)] = 3,
    lambdas: Annotated[int, option("N", "Values of lambda for each.", least=1)] = 16,
    workers: Annotated[int, option("N", "Machines like this one.", least=1)] = 1,
    json: Json = False,
    threads: Threads = None,
) -> None:
    """Estimate operations, bytes, time and memory of a selection with krr or lssvm in blocks of rows, by stages.

    Rates are those of this machine, measured in a second; reading takes as long a row as it takes for this table.
    """
    with console.guarded():
        set_threads(threads)
        plan: Plan = asked.plan()
        for _ in range(2):  # the first time libraries are read as well
            start = time.perf_counter()
            _, dataset = read_dataset(data, asked.reading, plan, target, {}, chatty=False)
            reading = time.perf_counter() - start
            if reading > SLOW:
                break
        from kernsel.numerics.blocks import costs
        from kernsel.numerics.whole.costs import Work, measure_rates
        from kernsel.system.memory import memory_limit
        from kernsel.text import aligned, to_json

        n = dataset.n if rows is None else int(rows)
        if rank > n:
            raise OptionError(f"--rank {rank} is more than the {n} rows; give fewer landmarks")
        sizes = costs.Sizes(n, dataset.d, dataset.k, rank, folds, kernels, lambdas)
        rates, own = measure_rates(dataset.d), costs.rows_bytes(sizes, workers)
        encoding = max(0.0, costs.reading_bytes(sizes, workers) - own)
        read = costs.Stage(Work("read", bytes=8.0 * n * (dataset.d + dataset.k)), encoding)
        stages = [costs.Stage(Work("start"), 0.0), read, *costs.stages(sizes, workers)]
        known = [START, reading * n / dataset.n / workers]
        seconds = [*known, *(stage.seconds(rates, workers) for stage in stages[len(known) :])]
        document = {
            "format": "kernsel-estimate",
            "version": 1,
            **sizes._asdict(),
            "workers": workers,
            "stages": [
                {
                    "name": stage.work.name,
                    "flops": stage.flops,
                    "bytes": stage.work.bytes,
                    "sent": stage.sent,
                    "memory": own + stage.memory,
                    "seconds": each,
                }
                for stage, each in zip(stages, seconds, strict=True)
            ],
            "seconds": sum(seconds),
            "memory": max(own + stage.memory for stage in stages),
        }
        if json:
            typer.echo(to_json(document))
            return
        lines: list[tuple[str, ...]] = [("", "flops", "bytes", "sent", "GB on each", "seconds")]
        for stage, each in zip(stages, seconds, strict=True):
            figures = (stage.flops, stage.work.bytes, stage.sent)
            lines.append(
                (stage.work.name, *(f"{x:.1e}" for x in figures), f"{(own + stage.memory) / 1e9:.1f}", f"{each:.3g}")
            )
        typer.echo(f"{n} rows, {dataset.d} features, rank {rank}, {folds} folds, {kernels} kernels x {lambdas} lambda")
        typer.echo("\n".join(aligned(lines)))
        typer.echo(f"in all about {sum(seconds):.3g} s on {workers} worker{'s' * (workers != 1)}")
        limit = memory_limit()
        if limit is not None and document["memory"] > limit:
            console.warn(f"a worker would need {document['memory'] / 1e9:.1f} GB, and there are {limit / 1e9:.1f}")
