"""A journal as it is read by others: where its run stands, for people, for programs and for Optuna."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kernsel.errors import OptionError
from kernsel.journal.file import FORMAT, VERSION, Record, is_in_use, records
from kernsel.journal.standing import Standing

CREATE_STUDY, CREATE_TRIAL = 0, 4
"""Operations in a file of Optuna's JournalStorage."""

MINIMIZE, COMPLETE, FAIL = 1, 1, 3
"""Numbers of Optuna for a direction, and for the states of trials."""


@dataclass(frozen=True, eq=False)
class Run:
    """What a journal says of its run.

    Parameters
    ----------
    header : dict
    begun : list of dict
        When and by which process it was begun, the first time and each time that it went on.
    ended : str or None
        When it ended well.
    running : bool
        Whether a process is at it.
    scored : list of dict
        The records of the steps that scored candidates.
    last : str or None
        When the last step was done.
    damaged : int
        Lines that are, but for the end that a run may be writing.
    """

    path: Path
    header: Record
    begun: list[Record]
    ended: str | None
    running: bool
    scored: list[Record]
    standing: Standing
    last: str | None
    damaged: int

    @property
    def state(self) -> str:
        """What the run does: it is running, has stopped, or has ended."""
        return "running" if self.running else "stopped" if self.ended is None else "ended"

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it, but the candidates."""
        return {
            "format": "kernsel-run",
            "version": 1,
            "journal": os.fspath(self.path),
            "state": self.state,
            **{name: self.header[name] for name in ("command", "kernsel", "data", "options")},
            "begun": self.begun,
            "ended": self.ended,
            "last": self.last,
            "candidates": self.standing.candidates,
            "steps": self.standing.stages,
            "best": self.standing.best,
            "damaged": self.damaged,
        }

    def summary(self) -> str:
        """Return where the run stands for people."""
        data, first, latest = self.header["data"], self.begun[0], self.begun[-1]
        source = data["source"] or "arrays"
        whose = f"process {latest['process']} on {latest['host']}"
        times = f", and {len(self.begun) - 1} times gone on with" if len(self.begun) > 1 else ""
        states = {
            "running": f"running: {whose}",
            "stopped": f"stopped: {whose} is at it no longer; the same command goes on from here",
            "ended": f"ended {self.ended}",
        }
        of = {stage: f" of {total}" for stage, total in latest.get("steps", {}).items()}
        steps = ", ".join(f"{count}{of.get(stage, '')} {stage}" for stage, count in self.standing.stages.items())
        told = {name: value for name, value in self.header["options"].items() if value not in UNTOLD}
        options = ", ".join(f"{name}={value}" for name, value in told.items())
        if len(options) > LONG:
            options = f"{len(told)} (--json prints them)"
        lines = [
            f"{self.header['command']} of {source}: {data['rows']} rows, {data['features']} features, target "
            f"{data['target']!r}, {data['task']}",
            f"  begun {first['begin']}{times}",
            f"  {states[self.state]}",
            f"  options: {options}",
            f"  {self.standing.candidates} candidates scored; steps: {steps or 'none yet'}",
        ]
        if self.standing.best is not None:
            what = "best so far, not verified" if self.ended is None else "lowest score before verification"
            lines.append(f"  {what}: {self.standing.best}")
        if self.last is not None:
            lines.append(f"  last step {self.last}")
        if self.damaged:
            lines.append(f"  {self.damaged} damaged lines, whose steps are computed anew")
        return "\n".join(lines)

    def optuna_lines(self) -> Iterator[str]:
        """Give the lines of a file that Optuna's JournalStorage reads: each candidate is a trial.

        Parameters of kernels are those of the trials, beside ``kernel``, ``learner`` and ``lambda``; scores are the
        criterion's values. What was scored at a lower rank says so in the attribute ``board``.
        """
        trials = [trial for record in self.scored for trial in _trials(record)]
        spaces = _spaces([trial["params"] for trial in trials])
        worker = {"worker_id": "kernsel"}
        name = f"{self.header['command']} {self.header['data']['source'] or self.path.stem}"
        yield json.dumps({"op_code": CREATE_STUDY, **worker, "study_name": name, "directions": [MINIMIZE]})
        for trial in trials:
            given = trial["params"]
            choices = {key: spaces[key]["attributes"].get("choices") for key in given}
            inner = {k: v if choices[k] is None else choices[k].index(v) for k, v in given.items()}
            distributions = {key: json.dumps(spaces[key]) for key in given}
            yield json.dumps(
                {
                    "op_code": CREATE_TRIAL,
                    **worker,
                    "study_id": 0,
                    **trial,
                    "params": inner,
                    "distributions": distributions,
                    "values": None,
                    "system_attrs": {},
                    "intermediate_values": {},
                }
            )


UNTOLD = ("None", "()", "[]", "{}")
"""Options that are not told: they aren't given."""

LONG = 400
"""Letters of all options together; more of them, as those of a comparison's methods, would hide the rest."""


def read_run(path: Path) -> Run:
    """Read a journal, which a run may be writing.

    Raises
    ------
    OptionError
        It can't be read, or is no journal.
    """
    header, begun, scored, ended, last, damaged = None, list[Record](), list[Record](), None, None, 0
    standing = Standing()
    try:
        if path.exists() and not path.is_file():
            raise OptionError(f"{path} is no file; give the journal of a run")
        with path.open("rb") as stream:
            running = is_in_use(stream)
            size = os.fstat(stream.fileno()).st_size
            for end, record in records(stream):
                if header is None:
                    header = record or {}
                    if header.get("format") != FORMAT or header.get("version") != VERSION:
                        raise OptionError(f"{path} is no journal of this version of kernsel: give one of a run")
                elif record is None:
                    damaged += end < size
                elif "begin" in record:
                    begun, ended = [*begun, record], None
                elif "end" in record:
                    ended = record["end"]
                elif "stage" in record:
                    last = record["time"]
                    del record["outcome"]
                    standing.add(record)
                    scored += [record] * (record["about"] is not None)
    except OSError as error:
        raise OptionError(f"can't read {path}: {error.strerror}; give the journal of a run") from error
    if header is None or not begun:
        raise OptionError(f"{path} is empty: no run has begun there")
    return Run(path, header, begun, ended, running, scored, standing, last, damaged)


def _trials(record: Record) -> Iterator[dict[str, Any]]:
    """Give what Optuna is told of each candidate of a step."""
    about, at = record["about"], datetime.fromisoformat(record["time"]).isoformat()
    for lam, score, failed in about["scores"]:
        yield {
            "datetime_start": at,
            "datetime_complete": at,
            "state": COMPLETE if failed is None else FAIL,
            "value": score if failed is None else None,
            "params": {"kernel": about["kind"], "learner": about["learner"], "lambda": lam, **about["parameters"]},
            "user_attrs": {"kernel": about["kernel"], "criterion": about["criterion"], "board": about["board"]}
            | ({} if failed is None else {"failed": failed}),
        }


def _spaces(trials: Sequence[Mapping[str, object]]) -> dict[str, dict[str, Any]]:
    """Return the space of each parameter, by name, as Optuna writes it: one for all trials."""
    values: dict[str, dict[Any, None]] = {}
    for trial in trials:
        for name, value in trial.items():
            values.setdefault(name, {})[value] = None
    spaces: dict[str, dict[str, Any]] = {}
    for name, each in values.items():
        if any(isinstance(value, str) for value in each):
            spaces[name] = {"name": "CategoricalDistribution", "attributes": {"choices": list(each)}}
        else:
            low, high = float(min(each)), float(max(each))
            attributes = {"low": low, "high": high, "log": low > 0, "step": None}
            spaces[name] = {"name": "FloatDistribution", "attributes": attributes}
    return spaces
