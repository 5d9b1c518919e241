"""A format of files, as a plugin has it: a row in each line, as ``name=value`` after ``name=value``."""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from kernsel.data.sources import Fit


@dataclass(frozen=True)
class Pairs:
    name: ClassVar[str] = "pairs"

    def fits(self, source, reading):
        return Fit.of(source, (".pairs",), b"#pairs")

    def read(self, source, reading, expected):
        with source.open() as stream:
            lines = [line.split() for line in stream.read().decode().splitlines() if not line.startswith("#")]
        frame = pd.DataFrame([{k: float(v) for k, v in (pair.split("=") for pair in line)} for line in lines])
        frame.attrs["notes"] = []
        return frame
