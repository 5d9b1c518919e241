"""Arguments and options that several commands have alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path,
    typer.Argument(metavar="DATA", readable=False, help="The table: CSV with header, Parquet, svmlight or .npy."),
]
Target = Annotated[
    str | None,
    typer.Option(metavar="COL", help="The column to predict, or several of numbers: a,b [default: the last one]."),
]
Task = Annotated[str, typer.Option(metavar="auto|regression|classification", help="What to learn.")]
Groups = Annotated[
    str | None, typer.Option(metavar="COL", help="A column of groups, whose rows are held out together.")
]
Weights = Annotated[str | None, typer.Option(metavar="COL", help="A column of weights of the rows.")]
ClassWeight = Annotated[str | None, typer.Option(metavar="balanced", help="Give all classes the same total weight.")]
Standardize = Annotated[bool, typer.Option("--standardize/--no-standardize", help="Scale the numeric columns.")]
Output = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result to this JSON file.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result and warnings.")]
Threads = Annotated[int | None, typer.Option(metavar="N", min=1, help="Threads to use [default: all].")]
