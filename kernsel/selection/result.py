"""What a selection hands back: the winner, every candidate, the model, and how to print them.

The JSON document is a contract, version 1: keys may be added, none changes its name or meaning.
"""

from __future__ import annotations

import dataclasses
import math
import platform
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernsel.errors import codes_of
from kernsel.kernels import short
from kernsel.model.model import Model
from kernsel.numerics.runtime.threads import threads
from kernsel.search.candidate import Candidate
from kernsel.text import aligned, finite_or_none, listing, to_json
from kernsel.types import Array
from kernsel.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from kernsel.heldout.metrics import MetricValue
    from kernsel.search.certificate import Certificate
    from kernsel.selection.observed import Observed
    from kernsel.selection.procedure import Comparison, Procedure

FORMAT, VERSION = "kernsel-selection", 1
RUNNERS_UP = 4
WIDTH = 110
LISTED = 6


@dataclass(frozen=True, eq=False)
class Selection:
    """The outcome of :func:`kernsel.select`.

    Parameters
    ----------
    best : Candidate
        The winner.
    candidates : list of Candidate
        All candidates, best first, the failed last.
    learner, criterion : str
        Their names.
    model : Model
        The winner fitted on all rows.
    heldout : (n,) array, or (n, k) for k targets
        Predictions for each row by fits without its fold, in the order of the data: values in the target's units, or
        labels. NaN or None for rows that no fold held out. Of repeated folds those of the first deal.
    outputs : (n,) or (n, k) array
        The held-out outputs f behind them; for classes the margin of the decision.
    probabilities : (n, classes) array or None
        Held-out probabilities of the classes, in the order of the labels: each row's by a calibration that was fitted
        without its fold, so that their Brier score and log-loss are honest. NaN for a row that is never held out.
    warnings : list of str
        What should be known before the choice is used; each is a ``Caution`` with a ``code``.
    conversions : dict
        The winner's parameters in the conventions of other libraries.
    data, options, timing, environment : dict
        What was selected on, how, in how many seconds, and with which software.
    nested : Nested or None
        The error of the whole selection, if it was asked for: see :func:`kernsel.nested`.
    minimum : Candidate or None
        The candidate with the lowest exact score: the winner, or another one that the rule of choice passed over.
    procedure : Procedure or None
        The error of the whole selection by its held-out losses; None where losses of all candidates are not known, as a
        note says.
    comparison : Comparison or None
        The candidates that can't be told apart by their paired held-out losses: among all, or among the verified ones
        where losses of others are not known; None where neither is.
    observed : Observed or None
        The targets beside which held-out predictions are read, and their weights.
    certificate : Certificate or None
        What is proved of the lowest exact score, if ``certify`` was asked for.
    """

    best: Candidate
    candidates: list[Candidate]
    learner: str
    criterion: str
    model: Model
    heldout: NDArray[Any]
    outputs: Array
    probabilities: Array | None
    warnings: list[str]
    conversions: Mapping[str, float]
    data: Mapping[str, Any]
    options: Mapping[str, Any]
    timing: Mapping[str, float]
    environment: Mapping[str, Any]
    nested: Any = None
    minimum: Candidate | None = None
    procedure: Procedure | None = None
    comparison: Comparison | None = None
    observed: Observed | None = field(default=None, repr=False)
    certificate: Certificate | None = None

    @cached_property
    def table(self) -> pd.DataFrame:
        """All candidates, best first, one column a parameter; ``attrs`` holds the error of the whole selection."""
        import pandas as pd

        table = pd.DataFrame(
            {
                "kernel": candidate.kernel.name,
                **candidate.kernel.parameters,
                **{f"learner.{name}": value for name, value in candidate.tuned.items()},
                "lambda": candidate.lam,
                **{key: value for key, value in self._entry(candidate).items() if key in _MEASURED},
                **candidate.terms,
                **{name: metric.value for name, metric in candidate.metrics.items()},
                **{f"{name}_se": metric.se for name, metric in candidate.metrics.items()},
            }
            for candidate in self.candidates
        )
        table.attrs["procedure"] = None if self.procedure is None else self.procedure.to_dict()
        return table

    @property
    def relevances(self) -> pd.Series | None:
        """The relevance of each encoded feature, by its name, where they were learnt for this selection; else None."""
        import pandas as pd

        learnt = self.data.get("relevances")
        return None if learnt is None else pd.Series(learnt["theta"], name="relevance", dtype=np.float64)

    def _entry(self, candidate: Candidate) -> dict[str, Any]:
        known = self.comparison
        return {
            "kernel": candidate.kernel.spec(),
            "parameters": candidate.kernel.parameters,
            "lambda": candidate.lam,
            "learner": self.learner,
            "learner_parameters": dataclasses.asdict(candidate.learner),
            "criterion": self.criterion,
            "score": finite_or_none(candidate.score),
            "verified": finite_or_none(candidate.verified),
            "score_se": finite_or_none(candidate.score_se),
            "error": finite_or_none(candidate.error),
            "error_se": finite_or_none(candidate.error_se),
            "reliability": finite_or_none(candidate.reliability),
            "scored_by": candidate.scored_by,
            "refitted": candidate.refitted,
            "rank": candidate.rank,
            "norm": finite_or_none(candidate.norm),
            **({"difference_se": None, "equivalent": None} if known is None else known.pair(candidate)._asdict()),
            "failed": candidate.failed,
            "terms": dict(candidate.terms),
            "metrics": {name: {"value": m.value, "se": m.se} for name, m in candidate.metrics.items()},
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the model and the held-out values, as JSON can hold it."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "best": self._entry(self.best),
            "candidates": [self._entry(candidate) for candidate in self.candidates],
            "minimum": None if self.minimum is None else self._entry(self.minimum),
            "data": dict(self.data),
            "options": dict(self.options),
            "conversions": dict(self.conversions),
            "timing": dict(self.timing),
            "environment": dict(self.environment),
            "warnings": list(map(str, self.warnings)),
            "cautions": codes_of(self.warnings),
            "nested": None if self.nested is None else self.nested.to_dict(),
            "procedure": None if self.procedure is None else self.procedure.to_dict(),
            "equivalent": None if self.comparison is None else self.comparison.equivalent,
            "compared": None if self.comparison is None else self.comparison.compared,
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "threshold": None if self.model.threshold is None else self.model.threshold.to_json(),
        }

    def to_json(self) -> str:
        """Return ``to_dict`` as one JSON document."""
        return to_json(self.to_dict())

    def summary(self, notes: bool = True) -> str:
        """Return the result for people: the answer and how sure it is, the leading candidates, and notes.

        Parameters
        ----------
        notes : bool
            Whether to say how the result came about: what the table is, what was inferred and which rule chose.
        """
        rows = [self._line(candidate) for candidate in self.candidates[: 1 + RUNNERS_UP] if candidate.failed is None]
        heads = ("", *self._parts(), "lambda", self.criterion, "verified", "error +- s.e.", "norm", "rho")
        return "\n".join(
            [
                *self._answer(),
                "",
                *aligned([heads, *rows]),
                *self._footnotes(),
                *([] if self.nested is None else ["", self.nested.summary()]),
                *(["", *self._notes()] if notes else []),
                "",
                self._count(),
            ]
        )

    def _answer(self) -> list[str]:
        """Say what was chosen, what it errs, what a constant errs, and how sure that is."""
        counterpart = getattr(self.best.learner, "counterpart", "")
        of_many = len(self.conversions) > LISTED  # those of the parts of a long sum
        shown = {name: value for name, value in self.conversions.items() if not (of_many and "." in name)}
        terms = ", ".join(f"{name} = {value:.4g}" for name, value in shown.items())
        threshold = self.model.threshold
        moved = threshold is not None and threshold.value != 0.0
        own, holdout = self._error(self.best), self.data["holdout"] + ", by a threshold of 0" * moved
        known = self.procedure is not None
        return [
            f"selected: {self.choice()}",
            *[f"  in scikit-learn's terms: {terms}" + (f" ({counterpart})" if counterpart else "")] * bool(terms),
            *self._whole(),
            *[f"  held-out error: {own} {self.measure()} ({holdout})"] * (not known),
            *self._baseline(),
            *[f"  held-out error of the choice itself: {own} ({holdout})"] * known,
            *self._unseen(),
            *[f"  how sure: {told}" for told in [self.equivalents()] if told],
            *self._proved(),
            *self._by_target(),
            *([] if threshold is None else [f"  {threshold.describe()}"]),
            *(
                f"  held-out {name}: {_figure(metric)}{self._of_many(name)}"
                for name, metric in self.best.metrics.items()
            ),
        ]

    def _of_many(self, name: str) -> str:
        """Say of the metric that decided that its value is the highest of many."""
        known = sum(name in candidate.metrics for candidate in self.candidates)
        decided = self.options["select_by"] == name and known > 1
        return f", the highest of {known}, so a little too high; nested tells an honest one" if decided else ""

    def _notes(self) -> list[str]:
        """Say what the table is, what was inferred, and how the choice was made."""
        source, d = self.data["source"], self.data["features"]
        table = f"{source}: " * bool(source) + f"{self.data['rows']} rows, {d} feature{'s' * (d != 1)}"
        notes = [
            *self.data["notes"],
            f"representation: {self.data['representation']}",
            f"choice: {self.data['choice']}",
        ]
        return [table, *(line for note in notes for line in textwrap.wrap(note, WIDTH, **_INDENTED))]

    def _footnotes(self) -> list[str]:
        """Say what the columns of the table of candidates are, and what it doesn't show."""
        legend = (
            f"{self.criterion}: {self.data['measure']}; verified: {self.data['verification']}; norm: bounds outputs on "
            "new rows; rho: near 1 least sure, or exact (kernsel guide first-selection)"
        )
        lines = textwrap.wrap(legend, WIDTH, **_INDENTED)
        if self.data.get("relevances", {}).get("unseen") or self.options["calibration"] == "softmax":
            lines.append(
                "  the error of the choice is of outputs made anew after the search, those below it of the search's"
            )
        elif self.data.get("margins"):
            lines.append(
                "  the error of the choice is of outputs that may leave the range, those below it of outputs within"
            )
        if self.best.tuned:
            names = listing(self.best.tuned)
            lines.append(f"  learners are compared by that and not by their losses, which depend on {names}")
        if instead := [candidate.scored_by for candidate in self.candidates if candidate.scored_by is not None]:
            lines.append(
                f"  *: scored by {instead[0]}, as rho is too large for {self.criterion} ({len(instead)} candidates)"
            )
        if refitted := sum(candidate.refitted for candidate in self.candidates):
            lines.append(
                f"  {refitted} folds of all candidates were refitted, as their Newton step could not be trusted"
            )
        if left := [candidate.rank for candidate in self.candidates if candidate.rank is not None]:
            lines.append(f"  {len(left)} candidates were left behind at rank {_span(left)}")
        return lines

    def _count(self) -> str:
        """Say how many candidates there were, and how long they took."""
        failed = sum(candidate.failed is not None for candidate in self.candidates)
        return (
            f"{len(self.candidates)} candidate{'s' * (len(self.candidates) > 1)}"
            + (f", {failed} of them failed" if failed else "")
            + f", in {self.timing['total']:.2f} s"
            + (f", {before:.0f} s of it before this run" if (before := self.timing.get("before")) else "")
        )

    def choice(self) -> str:
        """Say which learner, kernel and lambda were chosen."""
        tuned = f"({_values(self.best.tuned)})" if self.best.tuned else ""
        return f"{self.learner}{tuned} on {short(self.best.kernel)}, lambda = {self.best.lam:.4g}"

    def _parts(self) -> list[str]:
        """What the candidates differ in, besides lambda."""
        return ["kernel", self.learner] if self.best.tuned else ["kernel"]

    def measure(self) -> str:
        """Say what the error is, with its unit."""
        if self.data["task"] == "classification":
            return "misclassified" + " (by the class weights)" * bool(self.data.get("class_weight"))
        target = self.data["target"]
        several = isinstance(target, list)
        return "RMSE in standard deviations of the targets" if several else f"RMSE in units of {target!r}"

    def _unseen(self) -> list[str]:
        """What the error is of where relevances were learnt without the rows that are held out."""
        learnt = self.data.get("relevances", {})
        return ["    by relevances that were learnt without the rows held out"] * bool(learnt.get("unseen"))

    def _baseline(self) -> list[str]:
        """What a constant errs, and what it is."""
        known = self.data.get("baseline")
        if known is None:
            return []
        return [
            f"  without features, by {known['predicts']} of the training rows: "
            f"{self.figure(known['error'], known['error_se'])}"
        ]

    def _whole(self) -> list[str]:
        """What the whole selection errs."""
        known = self.procedure
        if known is None:
            return []
        ends = f"{100 * known.level:g} %: {self.figure(known.low)} to {self.figure(known.high)}"
        return [f"  error of the whole selection: {self.figure(known.error)} {self.measure()} ({ends})"]

    def _proved(self) -> list[str]:
        """What is proved of the lowest exact score."""
        if self.certificate is None:
            return []
        return textwrap.wrap(f"certificate: {self.certificate.describe()}", WIDTH, **_INDENTED)

    def equivalents(self) -> str:
        """Say how many candidates can't be told from the lowest, and among how many; nothing if it isn't known."""
        known = self.comparison
        if known is None:
            return ""
        scored = sum(candidate.failed is None for candidate in self.candidates)
        among = f"{known.compared} candidate{'s' * (known.compared != 1)}"
        if self.procedure is None:
            among = f"the {known.compared} verified candidates"
        elif known.compared < scored:
            among += f" that could be compared, of {scored},"
        how = f", as far as can be told (paired held-out losses, {100 * known.level:g} %)"
        return f"{known.equivalent} of {among} do{'es' * (known.compared == 1)} as well{how}"

    def _by_target(self) -> list[str]:
        """The errors of several targets."""
        errors = self.data["errors"] or {}
        listed = ", ".join(f"{name} {error:.4g}" for name, error in errors.items())
        return [f"  each in its own units: {listed}"] if listed else []

    def _line(self, candidate: Candidate) -> tuple[str, ...]:
        return (
            ">" if candidate is self.best else "",
            short(candidate.kernel),
            *([_values(candidate.tuned)] if self.best.tuned else []),
            f"{candidate.lam:.4g}",
            f"{candidate.score:.5g}" + "*" * (candidate.scored_by is not None),
            "-" if candidate.verified is None else f"{candidate.verified:.5g}",
            self._error(candidate),
            "-" if candidate.norm is None else f"{candidate.norm:.3g}",
            self._ratio(candidate),
        )

    def _ratio(self, candidate: Candidate) -> str:
        """The ratio rho; above 1 its size says nothing."""
        if candidate.reliability is None:
            return "exact" if candidate.exact else "-"
        return f"{candidate.reliability:.2f}" if candidate.reliability <= 1 else "> 1"

    def _error(self, candidate: Candidate) -> str:
        return self.figure(candidate.error, candidate.error_se)

    def figure(self, error: float | None, se: float | None = None) -> str:
        """Return an error in the unit of this task, with its standard error if there is one."""
        if error is None:
            return "-"
        if self.data["task"] == "regression":
            text, form, factor = f"{error:.4g}", ".2g", 1
        else:
            text, form, factor = f"{100 * error:.1f} %", ".1f", 100
        return text if se is None or math.isnan(se) else f"{text} +- {factor * se:{form}}"

    def __repr__(self) -> str:
        return f"<Selection: {self.choice()}>"


_INDENTED: Any = {"initial_indent": "  ", "subsequent_indent": "    "}

_MEASURED = {
    "score",
    "score_se",
    "verified",
    "error",
    "error_se",
    "reliability",
    "scored_by",
    "refitted",
    "rank",
    "norm",
    "difference_se",
    "equivalent",
    "failed",
}


def _span(ranks: list[int]) -> str:
    return f"{min(ranks)} to {max(ranks)}" if min(ranks) < max(ranks) else str(ranks[0])


def _figure(metric: MetricValue) -> str:
    if metric.value is None:
        return "not defined"
    return f"{metric.value:.4g}" + (f" +- {metric.se:.2g}" if metric.se is not None else "")


def describe_candidate(candidate: Candidate) -> str:
    """Say which candidate it is."""
    tuned = _values(candidate.tuned)
    return f"{short(candidate.kernel)}, {tuned + ', ' if tuned else ''}lambda = {candidate.lam:.4g}"


def _values(parameters: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={value:.4g}" for name, value in parameters.items())


def environment() -> dict[str, Any]:
    """Return the software, the threads and the machine that a result is from."""
    import numba
    import scipy

    return {
        "kernsel": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "threads": threads(),
        "platform": platform.platform(),
    }
