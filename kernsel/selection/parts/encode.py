"""The encoder and the units of rows in parts: by sums over all of them, as ``kernsel.data.in_parts`` has these."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kernsel.data import Dataset, in_parts
from kernsel.data.choices import make_choices
from kernsel.data.copies import check_copies
from kernsel.data.encoding import Encoder
from kernsel.data.part_rows import Columns
from kernsel.data.quantiles import find_quantile
from kernsel.data.sample import read_sample
from kernsel.data.target import Target, find_spread
from kernsel.selection.drivers import Driver
from kernsel.selection.parts import work
from kernsel.selection.plan import Plan
from kernsel.types import Array


@dataclass(frozen=True)
class Encoding:
    """How all rows are encoded.

    Parameters
    ----------
    target : Target
        Task, labels and units; its encoded values are of no rows in particular.
    names : list of str
        Of the targets.
    document : list of dict
        What became of each column.
    deviation : float
        Standard deviation of the first encoded target.
    """

    columns: Columns
    target: Target
    encoder: Encoder
    names: list[str]
    notes: list[str]
    document: list[dict[str, Any]]
    copies: str
    deviation: float

    def coding(self, folds: int, seed: int) -> work.Coding:
        """Return how rows are encoded, and dealt to folds."""
        return work.Coding(self.columns, self.target, self.encoder, folds, seed)

    def dataset(self, drawn: work.Drawn) -> Dataset:
        """Return the data set of a sample of the rows."""
        return Dataset(
            X=drawn.X,
            Y=drawn.Y,
            task=self.target.task,
            labels=self.target.labels,
            label_dtype=self.target.label_dtype,
            target=self.names[0] if len(self.names) == 1 else self.names,
            encoder=self.encoder,
            output_shift=self.target.shift,
            output_scale=self.target.scale,
            notes=self.notes,
            sample=read_sample(len(drawn.X), drawn.weights, None),
            columns=self.document,
            copies=self.copies,
        )


def find_encoding(driver: Driver, parts: Sequence[object], plan: Plan) -> Encoding:
    """Return how all rows are encoded, in two passes over them, or up to six where columns aren't plain numbers.

    Parameters
    ----------
    parts : sequence
        Handles of ``Rows``.

    Raises
    ------
    DataError
        The rows can't be used; the message names the part or the column.
    """
    columns = Columns(make_choices(**plan.columns))
    view, columns = _find_columns(driver, parts, columns)
    complete = in_parts.complete(columns)
    if complete is not None:
        view, columns = _find_columns(driver, parts, complete)
    target = in_parts.find_target(view, plan.task)
    shared = driver.share(work.same, columns)
    measures: in_parts.Measures = driver.reduce(in_parts.measure, parts, in_parts.Measures.merge, shared, target)
    fit, encoder = in_parts.find_encoder(measures, columns, plan.standardize, tuple(view.targets))
    if fit.lawful:
        given = shared, encoder, measures.rows
        picked: in_parts.Picked = driver.reduce(in_parts.pick, parts, in_parts.Picked.merge, *given)
        encoder = fit.with_law(encoder, picked.numbers, picked.weights)
    notes = in_parts.notes(view, fit, encoder, target)
    return Encoding(
        columns,
        target,
        encoder,
        list(view.targets),
        notes,
        fit.document(),
        check_copies(plan.copies),
        measures.totals.targets[0].deviation,
    )


def _find_columns(driver: Driver, parts: Sequence[object], columns: Columns) -> tuple[in_parts.View, Columns]:
    """Look at all rows, and once more at the columns that aren't plain numbers."""
    view: in_parts.View = driver.reduce(in_parts.look, parts, in_parts.View.merge, driver.share(work.same, columns))
    if view.wordy:
        columns = columns._replace(words=in_parts.find_target_words(view))
        view = driver.reduce(in_parts.look, parts, in_parts.View.merge, driver.share(work.same, columns))
    if columns.choices.named and not columns.names:
        columns = columns._replace(choices=columns.choices.resolved(view.names, tuple(view.targets), "X"))
    columns = columns._replace(names=view.names)
    closer, wanted = in_parts.Closer({}), in_parts.unclear(view)
    if wanted:
        given = driver.share(work.same, columns), wanted
        closer = driver.reduce(in_parts.look_closer, parts, in_parts.Closer.merge, *given)
    return view, in_parts.find_columns(view, closer, columns)


def in_robust_units(
    driver: Driver, encoded: Sequence[object], dataset: Dataset, what: str, deviation: float
) -> tuple[list[Any], Dataset]:
    """Return handles of encoded parts, and the sample of them, with the target in units that outliers don't move.

    Median and spread are those of all rows, exactly: see ``kernsel.data.quantiles``.
    """

    def count(centre: float | None, digits: int, beginning: int) -> Array:
        found: Array = driver.reduce(work.count_digits, encoded, operator.add, centre, digits, beginning)
        return found

    def quantiles(share: float, centre: float | None) -> tuple[float, float]:
        least, more = (find_quantile(partial(count, centre), share, side) for side in (False, True))
        return least, more

    median, spread, measure = find_spread(quantiles, lambda: deviation)
    return driver.each(work.rescale, encoded, median, spread), dataset.in_units(what, median, spread, measure)
