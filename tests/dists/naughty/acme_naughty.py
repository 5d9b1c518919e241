"""Parts that keep the protocol by their looks, and misbehave when they are used."""

import sys
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernsel.criteria import CV
from kernsel.kernels import Gaussian, Kernel, Pairwise


@dataclass(frozen=True)
class Raises(CV):
    name: ClassVar[str] = "raises"

    def measure(self, Y, F):
        raise RuntimeError("the disk is on fire\nreally")


@dataclass(frozen=True)
class Exits(CV):
    name: ClassVar[str] = "exits"

    def measure(self, Y, F):
        sys.exit(7)


@dataclass(frozen=True)
class NotANumber(CV):
    name: ClassVar[str] = "not-a-number"

    def measure(self, Y, F):
        return np.full(Y.shape[1], np.nan)


@dataclass(frozen=True)
class WrongShape(CV):
    name: ClassVar[str] = "wrong-shape"

    def measure(self, Y, F):
        return np.zeros(3)


@dataclass(frozen=True)
class WrongType(CV):
    name: ClassVar[str] = "wrong-type"

    def measure(self, Y, F):
        return "very good"


@dataclass(frozen=True)
class Mutates(CV):
    name: ClassVar[str] = "mutates"

    def measure(self, Y, F):
        Y *= -1
        return (Y[0] - F[0]) ** 2


@dataclass(frozen=True)
class MutatesThePath:
    name: ClassVar[str] = "mutates-the-path"

    def score(self, path):
        path.rows.Y[:] = 0.0
        return CV().score(path)


@dataclass(frozen=True)
class NoScores:
    name: ClassVar[str] = "no-scores"

    def score(self, path):
        return [0.0] * path.lams.size


@dataclass(frozen=True)
class Prints(CV):
    name: ClassVar[str] = "prints"

    def measure(self, Y, F):
        print("hello from acme")
        return (Y[0] - F[0]) ** 2


class _Fine(Gaussian):
    """A kernel that is fine but for one method."""


@dataclass(frozen=True)
class KernelRaises(_Fine):
    name: ClassVar[str] = "kernel-raises"

    def evaluate(self, stats):
        raise ValueError("no such matrix")


@dataclass(frozen=True)
class KernelExits(_Fine):
    name: ClassVar[str] = "kernel-exits"

    def evaluate(self, stats):
        sys.exit(7)


@dataclass(frozen=True)
class KernelSleeps(_Fine):
    name: ClassVar[str] = "kernel-sleeps"

    def evaluate(self, stats):
        while True:
            time.sleep(0.01)


@dataclass(frozen=True)
class KernelLoops(_Fine):
    name: ClassVar[str] = "kernel-loops"

    def evaluate(self, stats):
        while True:
            pass


@dataclass(frozen=True)
class KernelBlocks(_Fine):
    name: ClassVar[str] = "kernel-blocks"

    def evaluate(self, stats):
        time.sleep(1e6)


@dataclass(frozen=True)
class KernelNaN(_Fine):
    name: ClassVar[str] = "kernel-nan"

    def evaluate(self, stats):
        K = super().evaluate(stats)
        K[0, -1] = K[-1, 0] = np.nan
        return K


@dataclass(frozen=True)
class KernelShape(_Fine):
    name: ClassVar[str] = "kernel-shape"

    def evaluate(self, stats):
        return super().evaluate(stats)[:-1]


@dataclass(frozen=True)
class KernelType(_Fine):
    name: ClassVar[str] = "kernel-type"

    def evaluate(self, stats):
        return super().evaluate(stats) + 1j


@dataclass(frozen=True)
class KernelDiagonal(_Fine):
    name: ClassVar[str] = "kernel-diagonal"

    def diag(self, X):
        return np.full((X.shape[0], 2), np.inf)


@dataclass(frozen=True)
class KernelMutates(Pairwise):
    name: ClassVar[str] = "kernel-mutates"
    statistic: ClassVar[str] = "sqdist"

    def profile(self, S):
        S *= -1.0
        return np.exp(S)


@dataclass(frozen=True)
class Indefinite(Kernel):
    name: ClassVar[str] = "indefinite"

    def evaluate(self, stats):
        return np.tanh(stats.inner - 2.0)

    def diag(self, X):
        return np.tanh((np.asarray(X) ** 2).sum(axis=1) - 2.0)


@dataclass(frozen=True)
class GridExits(_Fine):
    name: ClassVar[str] = "grid-exits"

    def axes(self, X):
        sys.exit(7)
