"""Dealing rows to folds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernsel.folds import deal


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.data())
def test_every_row_once_and_as_even_as_can_be(labels, data):
    labels = np.array(labels)
    folds = data.draw(st.integers(2, len(labels)))
    number = deal(labels, folds, seed=0)
    assert set(number.tolist()) == set(range(folds))
    parts = [labels[number == fold] for fold in range(folds)]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for label in set(labels.tolist()):
        counts = [int((part == label).sum()) for part in parts]
        assert max(counts) - min(counts) <= 1


def test_the_seed_decides():
    labels = np.arange(40) % 2
    same = [deal(labels, 5, seed).tolist() for seed in (1, 1, 2)]
    assert same[0] == same[1]
    assert same[0] != same[2]
