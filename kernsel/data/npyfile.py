"""Read an array of NumPy from a file, as a memory map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from kernsel.data.layout import Reading
from kernsel.data.sources import Fit, Source
from kernsel.data.tables import array_names
from kernsel.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Npy:
    """Arrays of NumPy, as a memory map with the columns ``x0, x1, ...``."""

    name: ClassVar[str] = "npy"

    def fits(self, source: Source, reading: Reading) -> Fit:
        """Return what its name and its first bytes say."""
        return Fit.of(source, (".npy",), b"\x93NUMPY")

    def read(self, source: Source, reading: Reading, expected: list[str] | None) -> pd.DataFrame:
        """Return the table of a file."""
        reading.check_only(source, "an array")
        import pandas as pd

        try:
            array = np.load(source.path, mmap_mode="r")
        except (ValueError, EOFError) as error:  # what NumPy says of other files is about pickles
            raise DataError(f"{source.name} isn't an array of NumPy; write it by numpy.save, or give a CSV") from error
        if not isinstance(array, np.ndarray):
            array.close()
            raise DataError(f"{source.name} is an archive of arrays (.npz); write the one that is meant by numpy.save")
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise DataError(
                f"{source.name} must hold numbers in rows and columns, not {array.dtype} of shape {array.shape}"
            )
        return pd.DataFrame(array, columns=array_names(array.shape[1]), copy=False)
