"""Tables in: reading files, encoding columns, and the data set that a selection works on."""

from kernsel.data.dataset import Dataset, from_arrays, prepare
from kernsel.data.encoding import Encoder
from kernsel.data.reading import read_table

__all__ = ["Dataset", "Encoder", "from_arrays", "prepare", "read_table"]
