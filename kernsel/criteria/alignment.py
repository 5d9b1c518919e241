"""Criteria of the kernel alone: how well the rows lie in its feature space for the targets, whatever the learner.

They are the same for every lambda; the mean held-out loss after a Newton step, which breaks ties, chooses that. A row
of weight 2 counts as two. In the coordinates of ``S^1/2`` (``Problem.weighted``) weights are no special case: K is
``S^1/2 K S^1/2``, targets are ``S^1/2 y``, and centring takes out the direction ``q = S^1/2 1 / |S^1/2 1|``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernsel.criteria.base import About, Scores, unless_finite
from kernsel.errors import IncompatibleError
from kernsel.paths import Path
from kernsel.representation.embedding import Embedding
from kernsel.types import Array


@dataclass(frozen=True)
class KernelCriterion(ABC):
    """A measure of the kernel and the targets alone; lower is better, so that a measure of fit has its sign changed."""

    name: ClassVar[str]

    @abstractmethod
    def value(self, path: Path) -> float:
        """Return the measure for the kernel of a path, NaN if it is not defined."""

    def embedding(self, path: Path) -> Embedding:
        """Return the rows of a path in feature space, in weighted coordinates."""
        return path.representation.embedding(f"criterion '{self.name}'")

    def centred(self, path: Path) -> Embedding:
        """Return the rows of a path in feature space, centred there, in weighted coordinates."""
        root = weighted_root(path)
        return self.embedding(path).centred(root / np.linalg.norm(root))

    def score(self, path: Path) -> Scores:
        """Score a path: every lambda with the same value, and with the loss that tells them apart."""
        with np.errstate(divide="ignore", invalid="ignore"):  # constant targets, a class of one row
            score = np.full(path.lams.size, self.value(path))
        held, rows = path.newton_step(), path.rows
        loss = rows.mean(path.learner.loss.values(rows.Y, held.f).mean(axis=0))
        return Scores(score, unless_finite(score, held.failed), loss, heldout=held, norms=held.norms)


def weighted_root(path: Path) -> Array:
    """Return ``S^1/2 1``, (n,)."""
    return np.sqrt(path.rows.s)


@dataclass(frozen=True)
class Alignment(KernelCriterion):
    """Kernel-target alignment ``<K, y y'> / (||K||_F ||y y'||_F)``, from -1 to 1, with its sign changed.

    The mean over outputs (Cristianini et al. 2001).

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion alignment
    """

    name: ClassVar[str] = "alignment"
    about: ClassVar[About] = About(
        reference="Cristianini, Shawe-Taylor, Elisseeff & Kandola, On kernel-target alignment, NIPS 2001",
        cost="O(n^2), O(n c^2) at rank c, and a Newton step for each lambda",
        against="Unequal classes, or a constant added to the kernel, change it: centred alignment is better.",
    )

    def value(self, path: Path) -> float:
        """Return the negative alignment."""
        return -_alignment(self.embedding(path), path.rows.Y * weighted_root(path))


@dataclass(frozen=True)
class CenteredAlignment(KernelCriterion):
    """Alignment after K and ``y y'`` have been centred in feature space, with its sign changed.

    The mean over outputs; the centre is weighted (Cortes, Mohri & Rostamizadeh 2012).

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion centered-alignment
    """

    name: ClassVar[str] = "centered-alignment"
    about: ClassVar[About] = About(
        reference="Cortes, Mohri & Rostamizadeh, Learning kernels based on centered alignment, JMLR 13, 2012",
        cost="O(n^2), O(n c^2) at rank c, and a Newton step for each lambda",
        against="It sees the kernel's best linear predictor only, not how much regularisation it needs.",
    )

    def value(self, path: Path) -> float:
        """Return the negative centred alignment."""
        root = weighted_root(path)
        q, Y = root / np.linalg.norm(root), path.rows.Y * root
        return -_alignment(self.centred(path), Y - np.outer(Y @ q, q))


def _alignment(K: Embedding, Y: Array) -> float:
    """Return the mean over outputs of ``y' K y / (||K||_F |y|^2)``."""
    inner = np.einsum("kn,nk->k", Y, K.times(Y.T))
    return float(np.mean(inner / (K.norm * np.einsum("kn,kn->k", Y, Y))))


@dataclass(frozen=True)
class FSM(KernelCriterion):
    """Feature space-based kernel matrix evaluation measure: ``(std_+ + std_-) / |m_+ - m_-|``, lower is better.

    m are the means of the two classes in feature space, and std the standard deviations of their rows along the line
    through them, ``std_c^2 = sum_c <phi(x_i) - m_c, e>^2 / (n_c - 1)``, ``e = (m_+ - m_-) / |m_+ - m_-|`` (Nguyen & Ho
    2008). Of several classes the mean over each against the others. With weights the sum is weighted and divided by
    ``s_c (n_c - 1) / n_c``, s_c the weight of the n_c rows.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion fsm
    """

    name: ClassVar[str] = "fsm"
    about: ClassVar[About] = About(
        reference="Nguyen & Ho, An efficient kernel matrix evaluation measure, Pattern Recognition 41, 2008",
        cost="O(n^2), O(n c) at rank c, and a Newton step for each lambda",
        needs="classes",
        against="It falls to 0, its least value, as a kernel narrows to the identity: bound the grid.",
        weights="deviations have n - 1 in their divisors, which counts rows",
    )

    def value(self, path: Path) -> float:
        """Return the mean measure."""
        need_classes(self.name, path)
        K, root = self.centred(path), weighted_root(path)
        return float(np.mean([_fsm(K, root, y) for y in path.rows.Y]))


def _fsm(K: Embedding, root: Array, y: Array) -> float:
    """Return the measure of one class (y > 0) against the others."""
    sides = [np.where(side, root, 0.0) for side in (y > 0, y < 0)]
    means = [v / (v @ v) for v in sides]
    direction = means[0] - means[1]
    along = K.times(direction)  # root_i <phi(x_i), m_+ - m_->
    square = direction @ along
    total = 0.0
    for v, mean in zip(sides, means, strict=True):
        n = np.count_nonzero(v)
        off = np.where(v > 0, along, 0.0) - v * (mean @ along)
        total += np.sqrt(off @ off / square / (v @ v) * n / np.float64(n - 1))
    return float(total / np.sqrt(square))


@dataclass(frozen=True)
class Separability(KernelCriterion):
    """Class separability ``tr S_b / tr S_w`` in feature space, with its sign changed.

    The scatter between classes is ``tr S_b = sum_c s_c |m_c - m|^2``, that within them
    ``tr S_w = sum_c sum_c s_i |phi(x_i) - m_c|^2`` (Wang 2008; Xiong, Swamy & Ahmad 2005), for any number of classes.

    Examples
    --------
    ::

        kernsel example wine wine.csv
        kernsel select wine.csv --kernel gaussian --folds 5 --criterion separability
    """

    name: ClassVar[str] = "separability"
    about: ClassVar[About] = About(
        reference="Wang, Feature selection with kernel class separability, IEEE PAMI 30, 2008",
        cost="O(n^2), O(n c) at rank c, and a Newton step for each lambda",
        needs="classes",
        against="It sees the distance of the classes' means only: classes of several clusters look inseparable.",
    )

    def value(self, path: Path) -> float:
        """Return the negative ratio."""
        need_classes(self.name, path)
        K, Y = self.centred(path), path.rows.Y
        members = (Y if len(Y) > 1 else np.vstack([Y, -Y])) > 0
        V = np.where(members, weighted_root(path), 0.0)
        sizes = np.einsum("cn,cn->c", V, V)
        between = (np.einsum("cn,nc->c", V, K.times(V.T)) / sizes).sum()
        return float(-between / (K.trace - between))


def need_classes(criterion: str, path: Path) -> None:
    """Raise IncompatibleError if the targets of a path are not coded classes."""
    Y = path.rows.Y
    if not (np.abs(Y) == 1.0).all() or (len(Y) > 1 and ((Y > 0).sum(axis=0) != 1).any()):
        raise IncompatibleError(
            f"criterion '{criterion}' needs classes, and these targets are those of a regression: "
            "use alignment or centered-alignment, or the criterion newton-cv"
        )
