"""``kernsel example``: a real table to try things on, without the network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernsel.cli import console
from kernsel.cli.arguments import flag
from kernsel.errors import OptionError

if TYPE_CHECKING:
    import pandas as pd

NAMES = ("breast-cancer", "diabetes", "wine", "digits")


def example(
    name: Annotated[str, typer.Argument(metavar="|".join(NAMES))],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The CSV file to write.")],
    force: Annotated[bool, flag("--force", "Overwrite the file if it exists.")] = False,
) -> None:
    """Write a real table to try things on.

    scikit-learn ships it; the columns have names, and the target is the last one.
    """
    with console.guarded():
        from kernsel.data.files import atomic_write, check_writable

        if name not in NAMES:
            raise OptionError(f"there is no example {name!r}; there are {', '.join(NAMES)}")
        check_writable(file)
        if file.is_file() and not force:
            raise OptionError(f"{file} exists; choose another name, or overwrite it by --force")
        frame = _load(name)
        text = frame.to_csv(index=False, lineterminator="\n")
        atomic_write(file, lambda stream: stream.write(text.encode()))
        typer.echo(f"{file}: {len(frame)} rows, {frame.shape[1] - 1} features, target {frame.columns[-1]!r}")


def _load(name: str) -> pd.DataFrame:
    from sklearn import datasets

    if name == "diabetes":
        # In the units of the measurements, as published; scikit-learn's default is scaled.
        frame: pd.DataFrame = datasets.load_diabetes(as_frame=True, scaled=False).frame
        return frame
    bunch = {
        "breast-cancer": datasets.load_breast_cancer,
        "wine": datasets.load_wine,
        "digits": datasets.load_digits,
    }[name](as_frame=True)
    frame = bunch.frame
    frame["target"] = bunch.target_names[bunch.target]
    return frame
