"""Model files that were made to do harm: their checksum is right, and still they end in one error that says so."""

from __future__ import annotations

import io
import json
import os
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import random_array

from kernsel.data import from_arrays, prepare
from kernsel.errors import ModelError
from kernsel.heldout.calibration import Calibration, Isotonic
from kernsel.heldout.intervals import Intervals
from kernsel.kernels import ARD, Gaussian
from kernsel.model import file as modelfile
from kernsel.model.model import Model, load

N, M, FOLDS = 20, 12, 4


def save(path, *, classes=0, sparse=False, arrays=False, gaps=False):
    """Save a small model with everything that a file can hold, and return it with a table."""
    rng = np.random.default_rng(0)
    y = np.linspace(3, 9, N) if not classes else np.arange(N) % classes
    table = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "d"]).assign(
        c=np.array(["u", "v"])[rng.integers(0, 2, N)], y=y
    )
    if gaps:
        table.loc[[1, 4], "a"] = np.nan
    if sparse:
        data = from_arrays(random_array((N, 30), density=0.1, rng=rng, format="csr"), y, standardize=False)
    else:
        data = prepare(table)
    k = data.k
    intervals = Intervals(
        rng.normal(size=(FOLDS, k, M)),
        rng.normal(size=(FOLDS, k)),
        np.abs(rng.normal(size=(k, N))),
        np.linspace(0, N, FOLDS + 1).astype(np.int64),
        np.ones(N),
        np.stack([np.full((k, FOLDS), -9.0), np.full((k, FOLDS), 9.0)]),
    )
    model = Model(
        kernel=Gaussian(tau=2.0),
        learner="krr",
        rows=data.X[:M],
        coefficients=rng.normal(size=(k, M)),
        bias=rng.normal(size=k),
        task=data.task,
        labels=data.labels,
        label_dtype=data.label_dtype,
        target=data.target,
        encoder=None if arrays else data.encoder,
        output_shift=data.output_shift,
        output_scale=data.output_scale,
        provenance={"lambda": 0.1, "rows": N},
        calibration=Calibration("isotonic", (Isotonic((-1.0, 1.0), (0.1, 0.9)),) * k) if classes else None,
        intervals=None if classes else intervals,
        limits=None if classes else np.array([[-2.0] * k, [2.0] * k]),
        reach=3.0,
    )
    model.save(path)
    return model, table


def contents_of(path):
    with np.load(path) as archive:
        contents = {name: archive[name] for name in archive.files if name != "checksum"}
    return json.loads(str(contents.pop("header"))), contents


def forge(path, header, contents):
    """Write a model file with a right checksum over anything."""
    contents = {"header": np.array(json.dumps(header)), **contents}
    pickled = any(array.dtype == object for array in contents.values())
    checksum = "" if pickled else modelfile.checksum(contents)
    np.savez_compressed(path, **contents, checksum=np.array(checksum))


def refused(path, match="isn't a model|is damaged|would unpack|its kernel"):
    with pytest.raises(ModelError, match=match) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_what_was_saved_is_read_whatever_it_is(tmp_path):
    for options in ({}, {"classes": 2}, {"classes": 3}, {"sparse": True}, {"arrays": True}, {"gaps": True}):
        model, table = save(tmp_path / "m.npz", **options)
        X = model.rows if options.get("sparse") or options.get("arrays") else table
        np.testing.assert_array_equal(load(tmp_path / "m.npz").predict(X), model.predict(X))


ARRAYS = {
    "an index beyond the columns": lambda a: {"rows_indices": np.full_like(a["rows_indices"], 10**8)},
    "a negative index": lambda a: {"rows_indices": a["rows_indices"] - 5},
    "bounds that fall": lambda a: {"rows_indptr": a["rows_indptr"][::-1].copy()},
    "bounds beyond the values": lambda a: {"rows_indptr": a["rows_indptr"] * 1000},
    "bounds of one row more": lambda a: {"rows_indptr": np.append(a["rows_indptr"], a["rows_indptr"][-1])},
    "more columns than can be named": lambda a: {"rows_shape": np.array([M, 2**40])},
    "a negative shape": lambda a: {"rows_shape": np.array([-M, 30])},
    "three dimensions of sparse rows": lambda a: {"rows_shape": np.array([M, 30, 1])},
    "fewer columns than were encoded": lambda a: {"rows_shape": np.array([M, 29])},
    "values that are lost": lambda a: {"rows_data": a["rows_data"][:-1]},
    "a value that is no number": lambda a: {"rows_data": a["rows_data"] * np.nan},
    "values of another type": lambda a: {"rows_data": a["rows_data"].astype(np.float32)},
    "bounds of another type": lambda a: {"rows_indptr": a["rows_indptr"].astype(np.float64)},
    "rows twice": lambda a: {"rows": np.zeros((M, 30))},
}


@pytest.mark.parametrize("what", ARRAYS)
def test_sparse_rows_that_would_be_read_beyond_their_end(tmp_path, what):
    save(tmp_path / "m.npz", sparse=True)
    header, contents = contents_of(tmp_path / "m.npz")
    forge(tmp_path / "m.npz", header, contents | ARRAYS[what](contents))
    refused(tmp_path / "m.npz")


DENSE = {
    "coefficients": lambda a: a[:, :-1],
    "bias": lambda a: np.append(a, 1.0),
    "output_shift": lambda a: a[:0],
    "output_scale": lambda a: -a,
    "rows": lambda a: a[:, :-1],
    "limits": lambda a: a[:1],
    "intervals_coefficients": lambda a: a[1:],
    "intervals_biases": lambda a: a.T.copy(),
    "intervals_residuals": lambda a: np.vstack([a, a]),
    "intervals_starts": lambda a: a[::-1].copy(),
    "intervals_weights": lambda a: -a,
    "intervals_limits": lambda a: a[:, :, :1],
}


@pytest.mark.parametrize("name", DENSE)
def test_arrays_of_other_shapes_types_and_values(tmp_path, name):
    save(tmp_path / "m.npz")
    header, contents = contents_of(tmp_path / "m.npz")
    array = contents[name]
    others = [DENSE[name](array), array[None], array.astype(object), array.astype("U9"), array.astype(np.complex128)]
    if array.dtype.kind == "f":
        others += [np.full_like(array, np.nan), array.astype(np.float32)]
    for other in others:
        forge(tmp_path / "m.npz", header, contents | {name: other})
        refused(tmp_path / "m.npz")
    forge(tmp_path / "m.npz", header, {each: a for each, a in contents.items() if each != name})
    if not name.endswith("limits"):
        refused(tmp_path / "m.npz")


def changed(document, path, value):
    *above, last = path
    for name in above:
        document = document[name]
    if value is KeyError:
        del document[last]
    else:
        document[last] = value


ENCODER = ("columns", "numeric", "mean", "scale", "categories", "kinds", "fills", "gaps", "law", "missing", "ignored")
LAW = ("shift", "scale", "mean", "covariance", "ridge")
KRIGING = ("encoder", "law", "kriging")
HEADERS = [
    *((("kernel",), value) for value in (KeyError, None, "gaussian", {"kernel": "nonesuch"}, {"kernel": 3})),
    *((("kernel", "parameters"), value) for value in ({}, {"tau": "x"}, {"sigma": 1}, [1], {"tau": -1.0})),
    (("kernel",), {"kernel": "sum", "parts": []}),
    (("kernel",), {"kernel": "on", "parts": [{"kernel": "linear"}], "features": [99]}),
    (("kernel",), ARD(theta=(1.0,) * 99).spec()),
    *((("learner",), value) for value in (KeyError, 3)),
    *((("task",), value) for value in (KeyError, "clustering", "classification")),
    *((("labels",), value) for value in (KeyError, [0, 1], "ab")),
    *((("target",), value) for value in (KeyError, 3, ["y", 3], ["y", "z"])),
    *((("provenance",), value) for value in (KeyError, [], {"lambda": "much"})),
    *((("reach",), value) for value in ("far", -1.0, float("nan"), [1])),
    (("calibration",), {"kind": "sigmoid", "curves": [{"slope": 1.0, "offset": 0.0}]}),
    (("encoder",), "none"),
    *((("encoder", name), value) for name in ENCODER for value in (3, "q", [[]], {"q": 3})),
    *((("encoder", name), KeyError) for name in ("columns", "numeric", "mean", "scale", "categories")),
    *((("encoder", name), value) for name in ("mean", "scale") for value in ([1.0], [float("nan")] * 3, ["x"] * 3)),
    (("encoder", "scale"), [0.0] * 3),
    (("encoder", "numeric"), ["a", "b", "z"]),
    (("encoder", "categories"), {"c": []}),
    (("encoder", "categories"), {"c": ["u", "v", "w"]}),
    (("encoder", "kinds"), {"a": {"type": "ordinal", "levels": [1], "format": None, "loose": False}}),
    (("encoder", "kinds"), {"a": {"type": "odd", "levels": [], "format": None, "loose": False}}),
    (("encoder", "fills"), {"a": 1.0}),
    *((("encoder", "law", name), [1.0]) for name in LAW),
    *((("encoder", "law", name), KeyError) for name in LAW),
    *((("encoder", "law", name, 0), value) for name in LAW for value in ("x", float("nan"), -1.0)),
    *((("encoder", "law", "covariance", 0, 1), value) for value in (0.5, float("inf"), 1e9)),
    *((("encoder", "law", "covariance", 0, 0), value) for value in (-1.0, 0.0)),
    *((("encoder", "law", "knots"), value) for value in ([], [["x"], [], []], [[float("inf")], [], []], [1, 2, 3])),
    *((KRIGING, value) for value in (3, "q", [[]], {"q": 3})),
    *(((*KRIGING, name), value) for name in ("centres", "own", "weights") for value in (KeyError, [], [[1.0]], "q")),
    *(((*KRIGING, "weights", 0), value) for value in (0.0, -1.0, float("nan"))),
    ((*KRIGING, "centres", 0, 0), float("inf")),
    *(((*KRIGING, "variograms", 0, name), value) for name in ("width", "ridge") for value in (0.0, float("nan"), [1])),
    *(((*KRIGING, "variograms", 0, "column"), value) for value in (-1, 99, "q", None)),
    *(((*KRIGING, "variograms", 0, "others"), value) for value in ([], [99], [-1], [[0]], "q")),
]


@pytest.mark.parametrize(("place", "value"), HEADERS, ids=str)
def test_headers_that_are_none(tmp_path, place, value):
    save(tmp_path / "m.npz", gaps=True)
    header, contents = contents_of(tmp_path / "m.npz")
    changed(header, place, value)
    forge(tmp_path / "m.npz", header, contents)
    try:
        model = load(tmp_path / "m.npz")
    except ModelError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    model.predict(save(tmp_path / "n.npz")[1].drop(columns="y"))  # what is read can be used


OF_CLASSES = [
    *(("labels", value) for value in (None, [0], [0, 1, 2], [0, []], [{}, 1], 3)),
    *(("label_dtype", value) for value in ("U1000000000", "V9", "i8,i8", "(9999,)f8", "x", 3, "M8[s]")),
    *(("calibration", value) for value in (None, {}, {"kind": "sigmoid"}, {"kind": "odd", "curves": []})),
    *(
        ("calibration", {"kind": "isotonic", "curves": [curve]})
        for curve in (
            {"f": [1.0, 0.0], "p": [0.0, 1.0]},
            {"f": [0.0], "p": [0.0, 1.0]},
            {"f": [], "p": []},
            {"f": [0.0], "p": [7.0]},
        )
    ),
    ("calibration", {"kind": "sigmoid", "curves": [{"slope": float("inf"), "offset": 0.0}]}),
    ("calibration", {"kind": "softmax", "curves": []}),
    ("task", "regression"),
]


@pytest.mark.parametrize(("name", "value"), OF_CLASSES, ids=str)
def test_labels_and_calibrations_that_are_none(tmp_path, name, value):
    save(tmp_path / "m.npz", classes=2)
    header, contents = contents_of(tmp_path / "m.npz")
    forge(tmp_path / "m.npz", header | {name: value}, contents)
    refused(tmp_path / "m.npz")


def test_a_bomb_is_refused_before_it_goes_off(tmp_path):
    save(tmp_path / "m.npz", arrays=True)
    with zipfile.ZipFile(tmp_path / "m.npz", "a") as archive:
        archive.writestr("more", b"")
        archive.getinfo("more").file_size = modelfile.SMALL + 2**26  # unpacked, it would be found to be less
    refused(tmp_path / "m.npz", "would unpack from 0 MB to 128 MB")


def test_more_than_there_is_memory_is_refused(tmp_path, monkeypatch):
    save(tmp_path / "m.npz")
    monkeypatch.setattr(modelfile, "memory_limit", lambda: 1000)
    refused(tmp_path / "m.npz", "would unpack")


def test_a_model_of_zeros_is_saved_so_that_it_is_no_bomb(tmp_path):
    model, _ = save(tmp_path / "m.npz", arrays=True)
    rows = np.zeros((M, 2**13))
    rows[:, 0] = np.arange(M)
    wide = Model(**{**vars(model), "rows": rows})
    header, contents = contents_of(tmp_path / "m.npz")
    with (tmp_path / "m.npz").open("wb") as stream:
        modelfile.write_arrays(stream, header, contents | {"rows": rows}, small=2**10)
    assert (tmp_path / "m.npz").stat().st_size > rows.nbytes
    np.testing.assert_array_equal(load(tmp_path / "m.npz").predict(rows), wide.predict(rows))


def member(archive, name, header, data=b""):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    archive.writestr(f"{name}.npy", stream.getvalue() + data)


def test_a_declared_size_is_checked_before_it_is_allocated(tmp_path):
    path = tmp_path / "m.npz"
    for shape in ((10**12,), (2**62, 2**62), (-1,), (10**12, 0)):
        save(path)
        with zipfile.ZipFile(path, "a") as archive:
            member(archive, "rows_data", {"descr": "<f8", "fortran_order": False, "shape": shape})
        refused(path)
        with zipfile.ZipFile(path, "w") as archive:
            member(archive, "header", {"descr": "<U1000000000", "fortran_order": False, "shape": ()})
        refused(path)


@pytest.mark.parametrize("name", ["evil.npy", "rows.npy", "coefficients", "../../rows.npy", "x/rows.npy"])
def test_foreign_and_repeated_members(tmp_path, name):
    path = tmp_path / "m.npz"
    save(path)
    with zipfile.ZipFile(path) as archive:
        content = archive.read("rows.npy")
    with zipfile.ZipFile(path, "a") as archive:
        if name == "rows.npy":
            with pytest.warns(UserWarning, match="Duplicate"):
                archive.writestr(name, content)
        else:
            archive.writestr(name, content)
    refused(path, "it holds")


def test_nothing_in_a_file_is_executed(tmp_path):
    class Harmful:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    save(tmp_path / "m.npz")
    header, contents = contents_of(tmp_path / "m.npz")
    for name in (*contents, "checksum", "header"):
        np.savez(tmp_path / "m.npz", **contents | {"header": np.array(json.dumps(header)), name: np.array([Harmful()])})
        refused(tmp_path / "m.npz")
    assert not (tmp_path / "harm").exists()


def test_pipes_and_devices_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "is a pipe or a device")
    refused("/dev/zero", "is a pipe or a device")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '"' * 3, "1" * 5000, "{}", "[]", "null", '{"format": "kernsel-model", "version": 1}']
)
def test_headers_that_are_no_json_of_ours(tmp_path, text):
    save(tmp_path / "m.npz")
    _, contents = contents_of(tmp_path / "m.npz")
    contents = {"header": np.array(text), **contents}
    np.savez(tmp_path / "m.npz", **contents, checksum=np.array(modelfile.checksum(contents)))
    refused(tmp_path / "m.npz")
