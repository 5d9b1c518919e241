"""The experiments of the papers, as they describe them, for tables of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from kernsel.comparison.design import TASKS
from kernsel.comparison.published import Published
from kernsel.comparison.result import Outcome
from kernsel.learning import PUBLISHED
from kernsel_papers.printed import beside, words_of_agreement

kernsel_protocol = 1

Options = Mapping[str, Any]
Methods = Mapping[str, Options]
T = TypeVar("T")


class Claim(NamedTuple):
    """What a paper says of two methods."""

    first: str
    second: str
    words: str


@dataclass(frozen=True)
class Paper:
    """What the experiments of all papers have: printed figures and claims, to be set beside a comparison."""

    name: ClassVar[str]
    cases: ClassVar[Mapping[str, Mapping[str, Options]]] = {"": {}}
    claims: ClassVar[tuple[Claim, ...]]

    def beside(self, found: Outcome) -> tuple[Sequence[Published], Sequence[str]]:
        """Return what the paper prints, and what it says, beside what is found."""
        published = beside(found, self.name)
        return published, [*words_of_agreement(published), *self._judged(found)]

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

FOR_SQUARE = {"learner": "krr", "fitted": UNBIASED}
"""Of criteria that need the square loss: they choose for krr, and the machine is fitted with the choice."""

REGRESSION = {"calibration": None, "intervals": "none"}


def powers(base: float, first: int, last: int, step: int = 1) -> list[float]:
    """Return powers of a number from the first exponent to the last one."""
    return [float(base) ** k for k in range(first, last + 1, step)]


def _both(classes: T, regression: T) -> dict[str, T]:
    return dict(zip(TASKS, (classes, regression), strict=True))


def _options(learner: str, **more: Any) -> dict[str, Options]:
    """Return the options of all methods of a paper that has both tasks; its regressions are by krr."""
    return _both({**BARE, "learner": learner, **more}, {**BARE, **REGRESSION, "learner": "krr", **more})


def _for_square(methods: Methods, *names: str) -> Methods:
    return {name: {**(FOR_SQUARE if name in names else {}), **options} for name, options in methods.items()}


def _paired(counts: Sequence[int], ways: Methods) -> Methods:
    """Return for each number k of folds all the ways, each named ``k-WAY``."""
    return {f"{k}-{way}": {**options, "folds": k} for k in counts for way, options in ways.items()}


def _first_level(*names: str) -> Methods:
    found = {
        name: {"learned": {"kernel": kernel, "criterion": criterion, "learner": "lssvm"}}
        for name, (kernel, criterion) in PUBLISHED.items()
    }
    return {name: found[name] for name in names or found}


def _weighted(way: str, family: str) -> Options:
    learner = "svm(bias=true)"
    return {"learner": learner, "weighted": {"method": way, "family": family, "learner": learner, "folds": 5}}


@dataclass(frozen=True)
class KS14(Paper):
    """Preventing over-fitting of cross-validation with kernel stability (Liu & Liao 2014), Section 6."""

    name = "ks14"
    title = "KS14, Section 6: Preventing Over-Fitting of Cross-Validation with Kernel Stability (Liu & Liao 2014)"
    options: ClassVar = {"classification": {**BARE, "learner": "lssvm", "grid": {"tau": powers(2, -10, 10)}}}
    methods: ClassVar = {
        "classification": {
            **_paired((5, 10), {"CV": {"criterion": "cv"}, "KS": {"criterion": "cvks(eta=1, cv=cv)"}}),
            **{name.upper(): {"criterion": name} for name in ("eloo", "br", "ep")},
        }
    }
    cases: ClassVar = {
        f"lambda = {lam:g}": {"classification": {"grid": {"lambda": [lam]}}} for lam in powers(10, -4, -1)
    }
    splits: ClassVar = {"count": 10, "train": 0.7}
    design: ClassVar = {"test": "t"}
    claims = (
        Claim("5-KS", "5-CV", "for each lambda k-KS has the lower error than k-CV on 8 or more of 9 tables"),
        Claim("10-KS", "10-CV", "the same of 10 folds"),
        Claim("5-KS", "BR", "k-KS has the lower error than BR on 6 or more of 9 tables"),
        Claim("BR", "ELOO", "BR is comparable or better than ELOO on most tables"),
    )


RIDGES = (0.1, 1, 10, 100)
"""Values of n lambda in KSJ."""

KSJ_METHODS: Methods = {
    **_paired((5, 10), {"CVKS": {"criterion": "cvks(cv=cv)", "eta": "cv"}}),
    "RKS": {"criterion": "rks", "eta": "cv"},
    "ELOO": {"criterion": "eloo"},
    **_paired((5, 10), {"CV": {"criterion": "cv"}}),
    "BR": {"criterion": "br"},
    "SPS": {"criterion": "sps", "eta": "cv"},
}

KSJ_KERNELS: Methods = {
    "gaussian": {"kernel": "gaussian", "grid": {"tau": powers(2, -15, 15)}},
    "polynomial": {"kernel": "polynomial(gamma=1)", "grid": {"degree": list(range(1, 11))}},
}


@dataclass(frozen=True)
class KSJ(Paper):
    """Kernel stability for model selection in kernel-based algorithms (Liu, Liao, Zhang, Ren & Wang), Section VII."""

    name = "ksj"
    title = (
        "KSJ, Section VII: Kernel Stability for Model Selection in Kernel-Based Algorithms (Liu, Liao, Zhang, "
        "Ren & Wang)"
    )
    options: ClassVar = _options(UNBIASED)
    methods: ClassVar = _both(_for_square(KSJ_METHODS, "ELOO", "BR"), KSJ_METHODS)
    cases: ClassVar = {
        f"{name}, n lambda = {ridge:g}": {task: {**KSJ_KERNELS[name], "ridges": [ridge]} for task in TASKS}
        for name in KSJ_KERNELS
        for ridge in RIDGES
    }
    splits: ClassVar = {"count": 50, "train": 0.7}
    design: ClassVar = {"test": "t", "measure": "mse"}
    claims = (
        Claim("5-CVKS", "5-CV", "k-CVKS is significantly better than k-CV on 4 of 9 tables of classes, on 4 or "
              "more of 9 regressions, and worse on none"),
        Claim("RKS", "SPS", "RKS is significantly better than SPS on 7 of 9 tables of classes"),
        Claim("5-CVKS", "BR", "k-CVKS is significantly better than BR on 4 or more of 9 tables, and worse on none"),
        Claim("BR", "ELOO", "BR is comparable or better than ELOO on most tables"),
        Claim("5-CVKS", "RKS", "RKS and CVKS are comparable"),
    )  # fmt: skip


FBIF18_METHODS: Methods = {
    **_paired((5, 10), {"FBIF": {"criterion": "fbif(landmarks=0.1)", "pure": True}, "CV": {"criterion": "cv"}}),
    "ELOO": {"criterion": "eloo"},
    "ER": {"criterion": "er"},
}


@dataclass(frozen=True)
class FBIF18(Paper):
    """Fast cross-validation (Liu, Lin, Ding, Wang & Liao 2018), Section 5."""

    name = "fbif18"
    title = "FBIF18, Section 5: Fast Cross-Validation (Liu, Lin, Ding, Wang & Liao 2018)"
    options: ClassVar = _options(UNBIASED, grid={"tau": powers(2, -15, 15), "lambda": powers(2, -15, 15, 2)})
    methods: ClassVar = _both(_for_square(FBIF18_METHODS, "ELOO"), FBIF18_METHODS)
    splits: ClassVar = {"count": 50, "train": 0.7}
    design: ClassVar = {"test": "t", "measure": "mse"}
    claims = (
        Claim("5-FBIF", "5-CV", "neither is significantly better; FBIF is at least 5 times faster"),
        Claim("10-FBIF", "10-CV", "neither is significantly better; FBIF is at least 10 times faster"),
        Claim("5-FBIF", "ELOO", "significantly better on 6 of 18 tables, worse on sonar; at least 2 times faster"),
        Claim("5-FBIF", "ER", "significantly better on 5 of 18 tables, worse on sonar; at least 2 times faster"),
    )


BIF14_METHODS: Methods = {
    "EP": {"criterion": "ep"},
    "ELOO": {"criterion": "eloo"},
    **_paired((5, 10, 20), {"CV": {"criterion": "cv"}, "BIF": {"criterion": "bif(order=3)", "pure": True}}),
}


@dataclass(frozen=True)
class BIF14(Paper):
    """Approximation of cross-validation by the Bouligand influence function (Liu, Jiang & Liao 2014), Section 6."""

    name = "bif14"
    title = (
        "BIF14, Section 6: Efficient Approximation of Cross-Validation for Kernel Methods using Bouligand "
        "Influence Function (Liu, Jiang & Liao 2014)"
    )
    options: ClassVar = _options("lssvm", grid={"tau": powers(2, -6, 8), "lambda": powers(2, -7, 2)})
    methods: ClassVar = _both(BIF14_METHODS, BIF14_METHODS)
    splits: ClassVar = {"count": 10, "train": 0.5}
    design: ClassVar = {"test": "t", "measure": "mse"}
    claims = (
        Claim("5-BIF", "5-CV", "BIF-kCV has the errors of kCV on 12 of 20 tables, and nearly those on the others; "
              "it is faster"),
        Claim("5-BIF", "EP", "BIF-kCV has the lower error than EP on 16 of 20 tables"),
        Claim("5-BIF", "ELOO", "of classes comparable; the lower error on 8 of 10 regressions"),
    )  # fmt: skip


@dataclass(frozen=True)
class FLKL(Paper):
    """Kernel learning at the first level of inference (Cawley & Talbot 2014), Section 3."""

    name = "flkl"
    title = "FLKL, Section 3: Kernel Learning at the First Level of Inference (Cawley & Talbot 2014)"
    options: ClassVar = {"classification": {**BARE, "learner": "lssvm"}}
    methods: ClassVar = {"classification": _first_level()}
    splits: ClassVar = {"count": 100, "train": 0.7}
    design: ClassVar = {"test": "wilcoxon", "rank_level": 0.1}
    claims = (
        Claim("ARD-FLKL", "ARD-XVAL", "significantly better by mean ranks over 14 tables"),
        Claim("ARD-FLKL", "ARD-LOO", "significantly better by mean ranks over 14 tables"),
        Claim("RBF-FLKL", "RBF-LOO", "not significantly different, and slightly worse"),
        Claim("ARD-FLKL", "RBF-XVAL", "not significantly different"),
        Claim("ARD-FLKL", "ARD-BR", "not significantly different"),
    )


@dataclass(frozen=True)
class FLKLAndMKL(FLKL):
    """First-level learning beside multiple kernel learning (Cawley & Talbot 2014), Section 3.7."""

    name = "flkl-mkl"
    title = "FLKL, Section 3.7: first-level learning beside multiple kernel learning (Cawley & Talbot 2014)"
    methods: ClassVar = {
        "classification": {
            **_first_level("RBF-XVAL", "ARD-FLKL"),
            "MKL-separate": _weighted("simple", "separate"),
            "IKL-products": _weighted("infinite", "products"),
        }
    }
    claims = (
        Claim("ARD-FLKL", "MKL-separate", "not significantly different by mean ranks over 13 tables"),
        Claim("ARD-FLKL", "IKL-products", "not significantly different by mean ranks over 13 tables"),
    )
