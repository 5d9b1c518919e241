"""What kernel auto compared, and what each kernel gave: for the summary and the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernsel.kernels import Kernel
from kernsel.learning.profile import LearntProfile
from kernsel.learning.summed import LearntSum
from kernsel.learning.together import LearntTogether
from kernsel.search.candidate import Candidate
from kernsel.selection.auto import Candidates
from kernsel.selection.learnt import kind_of


def compared_kernels(learnt: Candidates, candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Return the best score of each kind of kernel that was compared, the lowest first."""
    best: dict[tuple[str, str | None], Candidate] = {}
    for candidate in candidates:
        if candidate.compares:
            known = learnt.find(candidate.kernel)
            kind = kind_of(candidate.kernel), None if known is None else known.profile.learnt_by
            if kind not in best or candidate.value < best[kind].value:
                best[kind] = candidate
    return [
        {"kernel": name, "relevances": by, "score": each.value, "score_se": each.score_se, "error": each.error}
        for (name, by), each in sorted(best.items(), key=lambda item: item[1].value)
    ]


def describe_compared(compared: Sequence[Mapping[str, Any]], chosen: Kernel) -> str:
    """Say what was compared and what each gave, for people."""
    listed = ", ".join(
        f"{each['kernel']}{' by ' + each['relevances'] if each['relevances'] else ''} {each['score']:.4g}"
        for each in compared
    )
    return f"kernel: {kind_of(chosen)}; lowest scores of those compared: {listed}"


def learnt_profiles(learnt: Candidates) -> list[dict[str, Any]]:
    """Return the profiles that relevances were learnt for, the lowest leave-one-out loss first, with their weights.

    The loss is with the relevances that each learnt by itself. The weight is that in their sum, 0 if a profile was left
    out of it; a kernel by itself has all of the weight. The linear kernel, for which nothing is learnt but the weight,
    comes last.
    """
    summed = [each.profile for each in learnt.learnt if isinstance(each.profile, LearntSum)]
    alone = [each.profile for each in learnt.learnt if isinstance(each.profile, LearntProfile)]
    weights = {each.kernel: 1.0 for each in alone}  # a sum that a journal remembers has copies of the profiles
    for each in summed:
        begun = each.apart if isinstance(each, LearntTogether) else each
        weights.update(zip((profile.kernel for profile in begun.profiles), each.weights, strict=True))
    profiles: list[dict[str, Any]] = [
        {
            "kernel": kind_of(each.kernel),
            "relevances": each.profile.learnt_by,
            "loss": each.loss,
            "weight": weights.get(each.profile.kernel, 0.0),
        }
        for each in learnt.parts
    ]
    straight = max((each.straight for each in summed), default=0.0)
    if straight:
        profiles.append({"kernel": "linear", "relevances": None, "loss": None, "weight": straight})
    return profiles


def describe_profiles(found: Sequence[Mapping[str, object]], rows: int) -> str:
    """Say which profiles have learnt relevances, how good each is, and what they weigh, for people."""
    losses = ["" if each["loss"] is None else f" {each['loss']:.4g}" for each in found]
    weights = [f"weight {each['weight']:.2g}" if each["weight"] else "left out" for each in found]
    listed = ", ".join(
        f"{each['kernel']}{loss} ({weight})" for each, loss, weight in zip(found, losses, weights, strict=True)
    )
    return f"kernel: leave-one-out losses of each by itself, learnt on {rows} rows, and weights in the sum: {listed}"
