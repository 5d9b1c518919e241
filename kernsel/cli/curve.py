"""``kernsel curve``: the curves that the papers draw, on one's own tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from kernsel.errors import OptionError
from kernsel.text import listing, meant, split_list

if TYPE_CHECKING:
    from kernsel.data import Dataset
    from kernsel.types import Progress

KINDS = {
    "eta": ("eta_sweep", "etas", ("criteria", "splits", "train", "measure")),
    "rank": ("rank_sweep", "ranks", ("splits", "train", "measure")),
    "order": ("bif_order", "orders", ("splits", "train")),
    "landmarks": ("fbif_landmarks", "shares", ("splits", "train")),
    "surface": ("flkl_surface", "lambdas", ("mus",)),
}
"""Of each curve its function in `kernsel.comparison`, what the values along its axis are called there, and what else
may be given."""


def curve(
    name: Annotated[
        str,
        typer.Argument(
            metavar="|".join(KINDS),
            help="eta: test error against the weight of a penalty; rank: that and the reported error against the rank; "
            "order: how far the influence series of that order is from exact refits; landmarks: the same of the first "
            "order with a Nystrom inverse; surface: first-level learning over lambda and mu.",
        ),
    ],
    data: TablesRead,
    asked: Asked,
    target: Target = None,
    groups: Groups = None,
    values: Annotated[
        str | None, option("V,V,...", "Values along the axis, of surface those of lambda [default: as papers].")
    ] = None,
    mus: Annotated[str | None, option("V,V,...", "Values of mu, of surface.")] = None,
    criteria: Annotated[
        str | None,
        option("A,B,...", "Criteria with a penalty, each a line of eta [default: cvks of 5 and of 10 folds]."),
    ] = None,
    splits: Annotated[int | None, option("N", "How often rows are split or drawn [default: 10].", least=1)] = None,
    train: Annotated[
        float | None, option("SHARE", "Share of the rows to train on [default: 0.7; 0.5 of order].")
    ] = None,
    measure: Measure = None,
    tables: TablesWritten = None,
    plot: Annotated[
        Path | None, option("FILE", "Draw it to this PNG, SVG or PDF file, a panel a table.", RESULTS)
    ] = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Draw a curve of the papers on tables: an error against a weight, a rank, an order or a number of landmarks.

    The kernel is a Gaussian, and relevances of features for a surface, unless --kernel names another.
    """
    with console.guarded():
        if name not in KINDS:
            raise OptionError(f"no curve is called {name!r}{meant(name, KINDS) or ';'} there are {listing(KINDS)}")
        function, axis, takes = KINDS[name]
        own: dict[str, Any] = {"splits": splits, "train": train, "measure": measure}
        own |= {"criteria": criteria and split_list(criteria), "mus": mus and _numbers("--mus", mus)}
        own = {key: value for key, value in own.items() if value is not None}
        for key in own:
            if key not in takes:
                raise OptionError(f"--{key} is not of the curve {name}: leave it out")
        if values is not None:
            own[axis] = _numbers("--values", values)
        place = begin(data, asked, output, {"--plot": plot, **of_tables(tables)}, threads)
        announce_compiling(quiet, by_another=True)
        import kernsel.comparison
        from kernsel.comparison.tables import describe_data

        own |= given_options(asked)
        given, grouped = read_tables(data, asked.reading, target, groups)
        told = {key: str(value) for key, value in own.items() if key != "splits"}  # it goes on with more of them
        with ExitStack() as run:  # the journal is open until all is written

            @contextmanager
            def work(datasets: Mapping[str, Dataset]) -> Iterator[Progress | None]:
                if not (json or quiet):
                    announce_tables(datasets)
                header = {"command": f"curve {name}", "data": describe_data(datasets), "options": told}
                run.enter_context(going_on(place, lambda: header, quiet))
                with console.progress(quiet) as report:
                    yield report

            found = getattr(kernsel.comparison, function)(given, groups=grouped, within=work, **own)
            finish(found, output, tables or (), {} if plot is None else {plot: found.plot}, json, quiet)


def _numbers(option: str, text: str) -> list[int | float]:
    """Read numbers with commas between; whole ones are whole."""
    try:
        return [int(each) if each.strip().isdecimal() else float(each) for each in text.split(",")]
    except ValueError as error:
        raise OptionError(f"{option} {text} must be numbers with commas between, like 0.5,1,2") from error
