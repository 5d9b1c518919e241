"""Values survive being written bit by bit, and a fingerprint is that of one value alone."""

import importlib
import json
import math
import struct
import sys
from dataclasses import dataclass
from dataclasses import fields as fields_of

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from kernsel.data import from_arrays
from kernsel.folds import make_folds
from kernsel.folds.partition import Partition
from kernsel.heldout.metrics import MetricValue
from kernsel.journal import encoding
from kernsel.journal.encoding import Unwritable, decode, encode, fingerprint
from kernsel.kernels import ARD, Function, Gaussian, Linear, Sum
from kernsel.learners import Svr
from kernsel.search.candidate import Candidate


def again(value):
    return decode(json.loads(json.dumps(encode(value))))


def bits(value):
    return struct.pack("<d", value)


@given(st.floats(allow_nan=True))
def test_a_float_has_all_its_bits(value):
    found = again(value)
    assert bits(found) == bits(value) or (math.isnan(found) and math.isnan(value))
    scalar = again(np.float64(value))
    assert type(scalar) is np.float64
    assert bits(scalar) == bits(value)


@pytest.mark.parametrize(
    "array",
    [
        np.array([[0.1, -0.0, np.nan], [np.inf, 5e-324, 1.0]]),
        np.arange(6, dtype=np.float32).reshape(3, 2).T,
        np.zeros((2, 0)),
        np.array([True, False]),
        np.array(["a", "bcd"]),
        np.array(3),
    ],
)
def test_an_array_has_its_type_shape_and_bits(array):
    found = again(array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()
    assert found.flags.writeable


def test_labels_of_any_kind():
    labels = np.array(["yes", 1, None], dtype=object)
    assert again(labels).tolist() == labels.tolist()


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, (2.5, "t"), {"a": {1: True}}],
        Gaussian(0.3),
        Sum((Gaussian(2.0), Linear())),
        ARD(theta=(0.1, 1e-300)),
        Svr(epsilon=0.1),
        MetricValue(0.5, None),
    ],
)
def test_values_are_equal_and_of_one_type(value):
    found = again(value)
    assert found == value
    assert type(found) is type(value)


def test_a_candidate_has_all_its_fields():
    candidate = Candidate(Gaussian(2.0), 0.1, learner=Svr(0.2), score=0.3, metrics={"r2": MetricValue(0.5, 0.1)})
    found = again(candidate)
    assert all(getattr(found, each.name) == getattr(candidate, each.name) for each in fields_of(Candidate))


@dataclass(frozen=True)
class Foreign:
    a: int = 1


@pytest.mark.parametrize("value", [Foreign(), lambda x: x, {1, 2}, object()])
def test_what_has_no_exact_form_is_refused(value):
    with pytest.raises(Unwritable):
        encode(value)


@pytest.mark.parametrize(
    "form",
    [
        {"o": ["os:system", {"command": "true"}]},
        {"o": ["kernsel.cli:main", {}]},
        {"o": ["kernsel.journal.file:JournalFile", {"path": "x", "header": {}}]},
        {"o": ["kernsel.selection.api:os.system", {"command": "true"}]},
        {"x": 1},
        {"a": ["|O8", [1], "AAAAAAAAAAA="]},
    ],
)
def test_reading_makes_values_and_runs_nothing(form):
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        decode(form)


X = np.arange(12.0).reshape(6, 2) % 5
DATA = from_arrays(X, np.arange(6.0) ** 2)

OTHERS = [
    0.5,
    "0.5",
    [0.5],
    [[0.5]],
    None,
    True,
    np.array([1.0, 2.0]),
    np.array([[1.0, 2.0]]),
    np.array([1, 2]),
    np.array([1.0, 2.0], np.float32),
    csr_array(np.eye(2)),
    csr_array(np.diag([1.0, 2.0])),
    Gaussian(0.5),
    Gaussian(0.25),
    ARD(theta=(0.5,)),
    DATA,
    from_arrays(X, np.arange(6.0)),
    from_arrays(X, np.arange(6.0) ** 2, weights=np.arange(1.0, 7.0)),
    from_arrays(X, np.arange(6.0) ** 2, groups=np.arange(6) // 2),
    from_arrays(X, np.arange(6.0) ** 2, near={"when": np.arange(6.0)}),
    from_arrays(X, np.arange(6.0) ** 2, near={"when": np.arange(6.0) ** 2}),
    Partition.of(DATA, make_folds(2, DATA, 0), 0),
    Partition.of(DATA, make_folds(3, DATA, 0), 0),
    Partition.of(DATA, make_folds(2, DATA, 0), 1),
    Partition.of(DATA, make_folds(2, DATA, 0), 0, clip=True),
]


def test_values_that_differ_have_other_fingerprints():
    assert len({fingerprint(each) for each in OTHERS}) == len(OTHERS)


def test_a_fingerprint_is_that_of_the_values():
    assert fingerprint(DATA) == fingerprint(from_arrays(X.copy(), np.arange(6.0) ** 2))
    assert fingerprint(np.float64(0.5)) == fingerprint(0.5)
    wide = np.zeros((6, 4))
    wide[:, ::2] = X
    assert fingerprint(wide[:, ::2]) == fingerprint(X)


def test_a_function_has_none():
    with pytest.raises(Unwritable):
        fingerprint([Function(lambda X, Z: X @ Z.T)])


def test_a_class_elsewhere_has_that_of_its_code(tmp_path, monkeypatch):
    def made(body):
        (tmp_path / "acme_part.py").write_text(
            f"from dataclasses import dataclass\n@dataclass\nclass Part:\n    a: int = 1\n{body}"
        )
        monkeypatch.syspath_prepend(tmp_path)
        sys.modules.pop("acme_part", None)
        encoding._code.cache_clear()
        return importlib.import_module("acme_part").Part()

    first, second = fingerprint(made("# one\n")), fingerprint(made("# two\n"))
    assert first != second
    del sys.modules["acme_part"]
