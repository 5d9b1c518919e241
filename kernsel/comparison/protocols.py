"""The experiments of the papers, as they describe them, for tables of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from kernsel.comparison.design import TASKS
from kernsel.comparison.methods import Method
from kernsel.comparison.published import beside, words_of_agreement
from kernsel.comparison.result import Outcome
from kernsel.errors import OptionError
from kernsel.learning import PUBLISHED
from kernsel.text import listing, meant

Options = Mapping[str, Any]
T = TypeVar("T")
Found = TypeVar("Found", bound=Outcome)


@dataclass(frozen=True)
class Claim:
    """What a paper says of two methods.

    Parameters
    ----------
    first, second : str
        The methods.
    """

    first: str
    second: str
    words: str


@dataclass(frozen=True, eq=False)
class Protocol:
    """The experiment of a paper.

    Parameters
    ----------
    options : mapping of str to mapping
        What all methods have, by task; a task that is not there is not the paper's.
    methods : mapping of str to list of Method
        By task.
    cases : mapping of str to mapping
        As in `kernsel.comparison.design.Design`.
    splits, design : mapping
        Fields of Splits and of Design.
    """

    name: str
    title: str
    options: Mapping[str, Options]
    methods: Mapping[str, Sequence[Method]]
    cases: Mapping[str, Mapping[str, Options]] = field(default_factory=lambda: {"": {}})
    splits: Options = field(default_factory=dict)
    design: Options = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()

    def beside(self, comparison: Found) -> Found:
        """Return a comparison with what the paper prints and says beside it."""
        published = beside(comparison, self.name)
        return replace(
            comparison, published=published, claims=[*words_of_agreement(published), *self._judged(comparison)]
        )

    def _judged(self, comparison: Outcome) -> list[str]:
        """Say what of the paper's claims is found on these tables."""
        found = []
        names = list(comparison.names)
        for claim in self.claims:
            i, j = names.index(claim.first), names.index(claim.second)
            found.append(f"paper: {claim.words}")
            for case in comparison.cases:
                duel = next(each for each in comparison.duels(case) if {each.first, each.second} == {i, j})
                wins = (duel.wins, duel.losses, duel.plain_wins, duel.plain_losses, duel.sure_wins, duel.sure_losses)
                if duel.first != i:
                    wins = (wins[1], wins[0], wins[3], wins[2], wins[5], wins[4])
                seconds = [np.median(r.seconds[i] / r.seconds[j]) for r in comparison.of_case(case)]
                found.append(
                    f"  here{f' ({case})' if case else ''}: {claim.first} has the lower error than {claim.second} on "
                    f"{wins[0]} and the higher on {wins[1]} of {duel.tables} tables; significantly {wins[2]} and "
                    f"{wins[3]} (paired t), {wins[4]} and {wins[5]} (corrected); {np.median(seconds):.2g} of its time"
                )
        return found


BARE = {
    "search": "grid",
    "choose": "minimum",
    "verify": 0,
    "extend": False,
    "pure": False,
    "clip": False,
    "calibration": "sigmoid",
    "rank": "full",
    "standardize": True,
    "kernel": "gaussian",
}
"""The papers score a grid and take its minimum, and no more."""

UNBIASED = "svm(h=0.05, bias=false)"
"""The machine of KSJ and FBIF18: it minimises over functions of the kernel alone, with the h of FBIF18."""

REGRESSION = {"calibration": None, "intervals": "none"}


def powers(base: float, first: int, last: int, step: int = 1) -> list[float]:
    """Return powers of a number from the first exponent to the last one."""
    return [float(base) ** k for k in range(first, last + 1, step)]


def _both(classes: T, regression: T) -> dict[str, T]:
    return dict(zip(TASKS, (classes, regression), strict=True))


def _folds(form: str, counts: Sequence[int], **options: Any) -> list[Method]:
    return [Method(form.format(k), {**options, "folds": k}) for k in counts]


def _ks14() -> Protocol:
    paired: list[Method] = []
    for k in (5, 10):
        paired += [
            Method(f"{k}-CV", {"criterion": "cv", "folds": k}),
            Method(f"{k}-KS", {"criterion": "cvks(eta=1, cv=cv)", "folds": k}),
        ]
    methods = [*paired, *(Method(name.upper(), {"criterion": name}) for name in ("eloo", "br", "ep"))]
    options = {**BARE, "learner": "lssvm", "grid": {"tau": powers(2, -10, 10)}}
    return Protocol(
        name="ks14",
        title="KS14, Section 6: Preventing Over-Fitting of Cross-Validation with Kernel Stability (Liu & Liao 2014)",
        options={"classification": options},
        methods={"classification": methods},
        cases={f"lambda = {lam:g}": {"classification": {"grid": {"lambda": [lam]}}} for lam in powers(10, -4, -1)},
        splits={"count": 10, "train": 0.7},
        design={"test": "t"},
        claims=(
            Claim("5-KS", "5-CV", "for each lambda k-KS has the lower error than k-CV on 8 or more of 9 tables"),
            Claim("10-KS", "10-CV", "the same of 10 folds"),
            Claim("5-KS", "BR", "k-KS has the lower error than BR on 6 or more of 9 tables"),
            Claim("BR", "ELOO", "BR is comparable or better than ELOO on most tables"),
        ),
    )


RIDGES = (0.1, 1, 10, 100)
"""Values of n lambda in KSJ."""


def _ksj() -> Protocol:
    both = [
        *_folds("{}-CVKS", (5, 10), criterion="cvks(cv=cv)", eta="cv"),
        Method("RKS", {"criterion": "rks", "eta": "cv"}),
        Method("ELOO", {"criterion": "eloo"}),
        *_folds("{}-CV", (5, 10), criterion="cv"),
        Method("BR", {"criterion": "br"}),
        Method("SPS", {"criterion": "sps", "eta": "cv"}),
    ]
    square = {"learner": "krr", "fitted": UNBIASED}
    classes = [each.within(square) if each.name in ("ELOO", "BR") else each for each in both]
    kernels: dict[str, Options] = {
        "gaussian": {"kernel": "gaussian", "grid": {"tau": powers(2, -15, 15)}},
        "polynomial": {"kernel": "polynomial(gamma=1)", "grid": {"degree": list(range(1, 11))}},
    }
    cases = {
        f"{name}, n lambda = {ridge:g}": {task: {**options, "ridges": [ridge]} for task in TASKS}
        for name, options in kernels.items()
        for ridge in RIDGES
    }
    return Protocol(
        name="ksj",
        title="KSJ, Section VII: Kernel Stability for Model Selection in Kernel-Based Algorithms (Liu, Liao, Zhang, "
        "Ren & Wang)",
        options=_both({**BARE, "learner": UNBIASED}, {**BARE, **REGRESSION, "learner": "krr"}),
        methods=_both(classes, both),
        cases=cases,
        splits={"count": 50, "train": 0.7},
        design={"test": "t", "measure": "mse"},
        claims=(
            Claim("5-CVKS", "5-CV", "k-CVKS is significantly better than k-CV on 4 of 9 tables of classes, on 4 or "
                  "more of 9 regressions, and worse on none"),
            Claim("RKS", "SPS", "RKS is significantly better than SPS on 7 of 9 tables of classes"),
            Claim("5-CVKS", "BR", "k-CVKS is significantly better than BR on 4 or more of 9 tables, and worse on none"),
            Claim("BR", "ELOO", "BR is comparable or better than ELOO on most tables"),
            Claim("5-CVKS", "RKS", "RKS and CVKS are comparable"),
        ),
    )  # fmt: skip


def _fbif18() -> Protocol:
    paired: list[Method] = []
    for k in (5, 10):
        paired += [
            Method(f"{k}-FBIF", {"criterion": "fbif(landmarks=0.1)", "pure": True, "folds": k}),
            Method(f"{k}-CV", {"criterion": "cv", "folds": k}),
        ]
    both = [*paired, Method("ELOO", {"criterion": "eloo"}), Method("ER", {"criterion": "er"})]
    square = {"learner": "krr", "fitted": UNBIASED}
    classes = [each.within(square) if each.name == "ELOO" else each for each in both]
    grid = {"tau": powers(2, -15, 15), "lambda": powers(2, -15, 15, 2)}
    return Protocol(
        name="fbif18",
        title="FBIF18, Section 5: Fast Cross-Validation (Liu, Lin, Ding, Wang & Liao 2018)",
        options=_both(
            {**BARE, "learner": UNBIASED, "grid": grid}, {**BARE, **REGRESSION, "learner": "krr", "grid": grid}
        ),
        methods=_both(classes, both),
        splits={"count": 50, "train": 0.7},
        design={"test": "t", "measure": "mse"},
        claims=(
            Claim("5-FBIF", "5-CV", "neither is significantly better; FBIF is at least 5 times faster"),
            Claim("10-FBIF", "10-CV", "neither is significantly better; FBIF is at least 10 times faster"),
            Claim("5-FBIF", "ELOO", "significantly better on 6 of 18 tables, worse on sonar; at least 2 times faster"),
            Claim("5-FBIF", "ER", "significantly better on 5 of 18 tables, worse on sonar; at least 2 times faster"),
        ),
    )


def _bif14() -> Protocol:
    methods = [Method("EP", {"criterion": "ep"}), Method("ELOO", {"criterion": "eloo"})]
    for k in (5, 10, 20):
        methods += [
            Method(f"{k}-CV", {"criterion": "cv", "folds": k}),
            Method(f"{k}-BIF", {"criterion": "bif(order=3)", "pure": True, "folds": k}),
        ]
    grid = {"tau": powers(2, -6, 8), "lambda": powers(2, -7, 2)}
    return Protocol(
        name="bif14",
        title="BIF14, Section 6: Efficient Approximation of Cross-Validation for Kernel Methods using Bouligand "
        "Influence Function (Liu, Jiang & Liao 2014)",
        options=_both(
            {**BARE, "learner": "lssvm", "grid": grid}, {**BARE, **REGRESSION, "learner": "krr", "grid": grid}
        ),
        methods=_both(methods, methods),
        splits={"count": 10, "train": 0.5},
        design={"test": "t", "measure": "mse"},
        claims=(
            Claim("5-BIF", "5-CV", "BIF-kCV has the errors of kCV on 12 of 20 tables, and nearly those on the others; "
                  "it is faster"),
            Claim("5-BIF", "EP", "BIF-kCV has the lower error than EP on 16 of 20 tables"),
            Claim("5-BIF", "ELOO", "of classes comparable; the lower error on 8 of 10 regressions"),
        ),
    )  # fmt: skip


def _flkl() -> Protocol:
    methods = [
        Method(name, {"learned": {"kernel": kernel, "criterion": criterion, "learner": "lssvm"}})
        for name, (kernel, criterion) in PUBLISHED.items()
    ]
    return Protocol(
        name="flkl",
        title="FLKL, Section 3: Kernel Learning at the First Level of Inference (Cawley & Talbot 2014)",
        options={"classification": {**BARE, "learner": "lssvm"}},
        methods={"classification": methods},
        splits={"count": 100, "train": 0.7},
        design={"test": "wilcoxon", "rank_level": 0.1},
        claims=(
            Claim("ARD-FLKL", "ARD-XVAL", "significantly better by mean ranks over 14 tables"),
            Claim("ARD-FLKL", "ARD-LOO", "significantly better by mean ranks over 14 tables"),
            Claim("RBF-FLKL", "RBF-LOO", "not significantly different, and slightly worse"),
            Claim("ARD-FLKL", "RBF-XVAL", "not significantly different"),
            Claim("ARD-FLKL", "ARD-BR", "not significantly different"),
        ),
    )


def _flkl_mkl() -> Protocol:
    ways = {"MKL-separate": ("simple", "separate"), "IKL-products": ("infinite", "products")}
    learner = "svm(bias=true)"
    methods = [method for method in _flkl().methods["classification"] if method.name in ("RBF-XVAL", "ARD-FLKL")]
    for name, (way, family) in ways.items():
        weighted = {"method": way, "family": family, "learner": learner, "folds": 5}
        methods.append(Method(name, {"learner": learner, "weighted": weighted}))
    return Protocol(
        name="flkl-mkl",
        title="FLKL, Section 3.7: first-level learning beside multiple kernel learning (Cawley & Talbot 2014)",
        options={"classification": {**BARE, "learner": "lssvm"}},
        methods={"classification": methods},
        splits={"count": 100, "train": 0.7},
        design={"test": "wilcoxon", "rank_level": 0.1},
        claims=(
            Claim("ARD-FLKL", "MKL-separate", "not significantly different by mean ranks over 13 tables"),
            Claim("ARD-FLKL", "IKL-products", "not significantly different by mean ranks over 13 tables"),
        ),
    )


PROTOCOLS = {"ks14": _ks14, "ksj": _ksj, "fbif18": _fbif18, "bif14": _bif14, "flkl": _flkl, "flkl-mkl": _flkl_mkl}


def read_protocol(name: str) -> Protocol:
    """Return a protocol by its name; OptionError if there is none."""
    if name not in PROTOCOLS:
        raise OptionError(f"there is no protocol {name!r}{meant(name, PROTOCOLS)} They are {listing(PROTOCOLS)}")
    return PROTOCOLS[name]()
