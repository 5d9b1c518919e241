"""The plan of a selection: every option that isn't data, with its default and its words on the command line, once.

What the options mean at length is said by :func:`kernsel.select`, whose signature is tested against these fields; the
command line, the estimators and nested estimates are made of them.
"""

# ruff: noqa: RUF009  # each field is made by a function that puts its words beside its default
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kernsel.errors import OptionError
from kernsel.protocols import Learner
from kernsel.words import read_options

if TYPE_CHECKING:
    import numpy.typing as npt

    from kernsel.criteria.base import Criterion
    from kernsel.data.choices import Names
    from kernsel.kernels import Kernel
    from kernsel.search.axes import Grid


class Words(NamedTuple):
    """How an option is written on the command line.

    Parameters
    ----------
    kind : {"text", "texts", "whole", "number", "flag"}
        What it takes: one text, repeated ones, a whole number, a number, or nothing.
    metavar : str
        Its values; of a flag its two forms, or its only one.
    least : int or None
        Of a whole number.
    of : str
        What the option is about: a key of ``HEADINGS``.
    alone : str or None
        The value of an option that may be given without one.
    """

    kind: str
    metavar: str
    help: str
    least: int | None = None
    of: str = "search"
    alone: str | None = None


HEADINGS = {
    "columns": "Columns",
    "table": "Task and rows",
    "parts": "What is learnt",
    "score": "How candidates are scored",
    "folds": "Folds",
    "near": "Rows near to each other",
    "search": "What is searched",
    "choice": "Which candidate is taken",
    "outputs": "What outputs become",
    "size": "Size and speed",
}
"""What options are about, with the headings that they stand under in a command's help."""

OF_TABLE = ("columns", "table")
"""What the options are about that the reading of a table is told."""


def _option(default: object, *words: Any, **more: Any) -> Any:
    return field(default=default, metadata={"words": Words(*words, **more)})


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """What a selection is asked for: see :func:`kernsel.select`."""

    learner: str | Learner | None = _option(
        None,
        "text",
        "NAME",
        "A learner, or auto for classes [default: lssvm for classes, krr for a regression].",
        of="parts",
    )
    kernel: str | Kernel | Sequence[str | Kernel] | None = _option(
        None,
        "texts",
        "NAME",
        "auto compares profiles and learns relevances; or gaussian, 'gaussian + 0.5*linear', ard ...; repeatable "
        "[default: auto].",
        of="parts",
    )
    relevances: str | Any | None = _option(
        None,
        "text",
        "evidence|loo|cv|br|flkl",
        "What ard and auto learn relevances by [default: evidence].",
        of="parts",
    )
    effort: str = _option(
        "normal",
        "text",
        "quick|normal|thorough",
        "How much kernel auto compares: profiles of one width, relevances too, or more of both.",
        of="parts",
    )
    criterion: str | Criterion | None = _option(
        None,
        "text",
        "NAME",
        "NAME or 'NAME(key=value)' [default: newton-cv, or cv for time:N].",
        of="score",
    )
    folds: int | str | Any = _option(
        10,
        "text",
        "N|loo|logo|blocks:N|time:N",
        "A number of folds, leave one out, leave one group out; in the order of time N blocks, or N folds whose fits "
        "are trained on the rows before.",
        of="folds",
    )
    repeats: int = _option(1, "whole", "R", "How often the folds are dealt.", 1, of="folds")
    when: str | int | npt.ArrayLike | None = _option(
        None, "text", "COL", "A column of times: the order of blocks:N and time:N [default: the rows' own].", of="near"
    )
    purge: float | str | None = _option(
        None, "text", "ROWS|SPAN", "Leave rows so near in time to a fold out of its fit: 5, or 7d of dates.", of="near"
    )
    embargo: float | str | None = _option(
        None, "text", "ROWS|SPAN", "Leave so many more after it out, of blocks:N.", of="near"
    )
    coordinates: Names | npt.ArrayLike = _option(
        (), "texts", "COL,...", "Columns that say where rows are; latitude and longitude in degrees.", of="near"
    )
    buffer: float | str | None = _option(
        None,
        "text",
        "DISTANCE",
        "Leave rows within this of a fold out of its fit: 10km, m, mi along a great circle, or in the units of the "
        "coordinates; folds are compact regions then.",
        of="near",
    )
    class_weight: str | Mapping[Any, float] | None = _option(
        None, "text", "balanced", "Give all classes the same total weight.", of="table"
    )
    copies: str = _option(
        "together", "text", "together|apart", "Whether rows of equal features are in one fold.", of="table"
    )
    grid: Grid = _option(
        "auto",
        "texts",
        "auto|coarse|paper|sobol:N|random:N|NAME=V,V...",
        "Scaled by the data, that with few values to --refine, powers of two, or N points; or values of a parameter or "
        "lambda, repeatable.",
    )
    search: str = _option(
        "auto",
        "text",
        "auto|grid|halving",
        "Score every candidate, or halve them at growing rank; auto halves from 1000 rows, or 600 if no square loss.",
    )
    refine: str | None = _option(
        None, "text", "compass|simplex|gradient", "Leave the grid afterwards, from its best minima."
    )
    budget: int | str | None = _option(
        None, "text", "N|Ns|Nmin", "What --refine may cost: candidates or a time [default: 200]."
    )
    verify: int = _option(
        5, "whole", "N", "Leading candidates to verify by exact held-out predictions.", 0, of="choice"
    )
    rank: int | float | str | None = _option(
        None,
        "text",
        "K|SHARE|tol:SHARE|full|whole",
        "Rank of the kernel matrix; tol: what leaves that share of its trace [default: full up to 2000 rows].",
        of="size",
    )
    landmarks: str | None = _option(
        None,
        "text",
        "rpcholesky|uniform|leverage|kmeans",
        "How the landmarks of a low rank are chosen [default: rpcholesky].",
        of="size",
    )
    memory: str | int | None = _option(
        None,
        "text",
        "SIZE",
        "Memory that the selection may take, such as 2GiB: what needs more is done at a low rank or refused [default: "
        "what machine and container allow].",
        of="size",
    )
    time: str | float | None = _option(
        None,
        "text",
        "Ns|Nmin|Nh",
        "Time that the selection may take, such as 5min; its choice then depends on the machine [default: no limit].",
        of="size",
    )
    candidate_timeout: str | float | None = _option(
        None,
        "text",
        "Ns|Nmin|Nh",
        "Time that one kernel and learner may take along lambda, such as 30s; what has not returned by then has failed "
        "[default: no limit].",
        of="size",
    )
    extend: bool = _option(True, "flag", "--extend/--no-extend", "Extend the grid if the winner is on its edge.")
    pure: bool = _option(
        False, "flag", "--pure", "Never replace an approximation that is unreliable by a better one.", of="score"
    )
    order: float | None = _option(None, "text", "R|inf", "Order of the criterion bif.", of="score")
    eta: float | str | None = _option(
        None,
        "text",
        "VALUE|cv",
        "Weight of a penalty (rks, cvks, sps, er, ep); cv: by cross-validation.",
        of="score",
    )
    metric: str | Sequence[str] = _option(
        (),
        "texts",
        "NAME",
        "A scikit-learn scorer to report of held-out predictions; repeatable.",
        of="score",
    )
    certify: bool | float | None = _option(
        None,
        "number",
        "SHARE",
        "Prove by exact refits that no candidate's exact score is below the lowest by more than this share [default: "
        "no; alone 0.01].",
        of="choice",
        alone="0.01",
    )
    select_by: str | None = _option(
        None,
        "text",
        "NAME",
        "A scikit-learn scorer that decides among verified candidates whose scores can't be told from the best.",
        of="choice",
    )
    choose: str | None = _option(
        None,
        "text",
        "safest|minimum|one-se",
        "Among candidates that can't be told from the best: the safest on new rows, the minimum itself, or the largest "
        "lambda [default: safest].",
        of="choice",
    )
    within: float | None = _option(
        None,
        "number",
        "S",
        "Standard errors above the best that --choose looks at [default: 0.2 of a regression, 0.5 of classes; 1 of "
        "one-se and --select-by].",
        of="choice",
    )
    one_se: bool = _option(False, "flag", "--one-se", "Short for --choose one-se.", of="choice")
    clip: bool = _option(
        True,
        "flag",
        "--clip/--no-clip",
        "Keep outputs of a regression in or near the range of the target.",
        of="outputs",
    )
    calibration: str | None = _option(
        None,
        "text",
        "sigmoid|isotonic|venn-abers|temperature|softmax|none",
        "How outputs become probabilities [default: sigmoid; softmax of more than two classes].",
        of="outputs",
    )
    intervals: str | None = _option(
        None,
        "text",
        "even|local|sets|none",
        "Keep what predict --interval takes, of even width or one that follows local difficulty, or what predict --set "
        "does [default: even of a regression, none of classes].",
        of="outputs",
    )
    threshold_for: str | None = _option(
        None,
        "text",
        "NAME|'cost(fp=C,fn=C)'|none",
        "Predict the second of two classes from the output on that is best for accuracy, balanced_accuracy, f1, "
        "f1_macro, f1_weighted, jaccard, matthews_corrcoef, or costs of a false positive and negative [default: for "
        "--select-by, where that is one of these but accuracy].",
        of="outputs",
    )
    task: str = _option("auto", "text", "auto|regression|classification", "What to learn.", of="table")
    standardize: bool = _option(
        True, "flag", "--standardize/--no-standardize", "Scale the numeric columns.", of="table"
    )
    drop: Names = _option((), "texts", "COL,...", "Columns that are no features; patterns as id*.", of="columns")
    keep: Names = _option((), "texts", "COL,...", "The only features.", of="columns")
    categorical: Names = _option((), "texts", "COL,...", "Columns whose values are categories.", of="columns")
    numeric: Names = _option(
        (), "texts", "COL,...", "Columns of numbers; what isn't one counts as missing.", of="columns"
    )
    ordinal: Mapping[str, Sequence[str]] | None = _option(
        None, "texts", "COL=A<B<C", "A column of ordered levels; repeatable.", of="columns"
    )
    missing: str = _option("impute", "text", "impute|drop|refuse", "What becomes of missing values.", of="columns")
    categories: str = _option(
        "onehot",
        "text",
        "onehot|hamming",
        "Whether ard and auto learn a relevance for each category or one for each column; with hamming new categories "
        "differ from all others.",
        of="columns",
    )
    rare: int = _option(1, "whole", "N", "Make one of all categories of fewer than N rows.", 1, of="columns")
    seed: int = _option(0, "whole", "N", "Seed of the folds and landmarks.", 0, of="folds")
    journal: str | os.PathLike[str] | None = _option(
        None,
        "text",
        "FILE|none",
        "Keep what is found out here: the same command goes on from there after whatever stopped it [default: beside "
        "--output, if it takes over 10 s, until the result is written].",
        of="size",
    )

    def __post_init__(self) -> None:
        """Raise an OptionError where what is yes or no is neither, or rules of choice are two."""
        for name, words in WORDS.items():
            value = getattr(self, name)
            flag = type(value).__name__ in ("bool", "bool_") or (isinstance(value, int) and value in (0, 1))
            if words.kind == "flag" and not flag:  # NumPy's bool_ is known by its name: it isn't imported here
                raise OptionError(f"{name} is True or False, not {value!r}")
        if self.choose not in (None, self.rule):
            raise OptionError(f"choose {self.choose!r} and one_se: give one of them")

    @classmethod
    def read(cls, who: str, options: Mapping[str, object]) -> Self:
        """Return the plan of some options, by their names here or in other libraries.

        Parameters
        ----------
        who : str
            What was told the options, for messages.
        options : mapping

        Raises
        ------
        OptionError
            A name is unknown, or one option is given by two names.
        """
        return cls(**read_options(who, options, WORDS))

    @property
    def rule(self) -> str | None:
        """The rule of choice, for one of which ``one_se`` is short; None: the default."""
        return "one-se" if self.one_se else self.choose

    @property
    def table(self) -> dict[str, Any]:
        """The options that the reading of a table is told, as keywords of ``kernsel.data.from_arrays``."""
        told = {name: getattr(self, name) for name, words in WORDS.items() if words.of in OF_TABLE}
        return told | {"near": self.near}

    @property
    def columns(self) -> dict[str, Any]:
        """What is said about columns, as keywords of ``kernsel.data.make_choices``."""
        return {name: getattr(self, name) for name in COLUMNS}

    @property
    def near(self) -> dict[str, Any]:
        """What is said about rows that are near to each other, by name."""
        return {name: getattr(self, name) for name, words in WORDS.items() if words.of == "near"}

    @property
    def options(self) -> dict[str, Any]:
        """All that a result may depend on: where it is kept meanwhile is left out."""
        return {name: getattr(self, name) for name in WORDS if name != "journal"}


WORDS: Mapping[str, Words] = {each.name: each.metadata["words"] for each in fields(Plan)}
"""How each option is written on the command line, by its name in Python."""

COLUMNS = tuple(name for name, words in WORDS.items() if words.of == "columns")
"""The options that say what the columns of a table are."""
