"""Tables in: reading files, encoding columns, and the data set that a selection works on."""

from kernsel.data.choices import Choices, make_choices
from kernsel.data.dataset import Dataset
from kernsel.data.encoding import Encoder
from kernsel.data.layout import Reading
from kernsel.data.preparing import encode, from_arrays, prepare
from kernsel.data.reading import read_table
from kernsel.data.roles import Roles, assign_roles

__all__ = [
    "Choices",
    "Dataset",
    "Encoder",
    "Reading",
    "Roles",
    "assign_roles",
    "encode",
    "from_arrays",
    "make_choices",
    "prepare",
    "read_table",
]
