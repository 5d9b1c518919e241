"""Models: predictions, and files that survive or say that they are damaged."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kernsel.data import from_arrays, prepare
from kernsel.errors import DataError, ModelError, OptionError
from kernsel.heldout.calibration import calibrate
from kernsel.kernels import Gaussian, Linear
from kernsel.model.expansion import BLOCK_BYTES
from kernsel.model.model import Model, load

RNG = np.random.default_rng(1)
N = 30


def make(y, task="auto", kernel=None, m=20) -> tuple[Model, pd.DataFrame]:
    table = pd.DataFrame({"a": RNG.normal(5, 3, N), "c": np.array(["u", "v"])[RNG.integers(0, 2, N)], "y": y})
    data = prepare(table, task=task)
    model = Model(
        kernel=kernel or Gaussian(tau=2.0) + 0.5 * Linear(),
        learner="krr",
        rows=data.X[:m],
        coefficients=RNG.normal(size=(data.k, m)),
        bias=RNG.normal(size=data.k),
        task=data.task,
        labels=data.labels,
        target=data.target,
        encoder=data.encoder,
        output_shift=data.output_shift,
        output_scale=data.output_scale,
        provenance={"seed": 3},
    )
    return model, table


KINDS = {
    "regression": np.linspace(3, 90, N),
    "two classes": np.array(["no", "yes"])[np.arange(N) % 2],
    "truth values": np.arange(N) % 2 == 0,
    "three classes": np.arange(N) % 3,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_survives_its_file(tmp_path, kind):
    model, table = make(KINDS[kind])
    model.save(tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.decision(table), model.decision(table))
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    assert again.kernel == model.kernel
    assert (again.labels, again.task, again.target, again.learner) == (model.labels, model.task, "y", "krr")
    assert again.provenance == {"seed": 3}
    assert list(tmp_path.iterdir()) == [tmp_path / "m.npz"]


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_probabilities_survive_the_file(tmp_path, kind, calibration):
    model, table = make(KINDS[kind])
    F, Y = np.atleast_2d(model.decision(table).T), prepare(table).Y
    model = replace(model, calibration=calibrate(calibration, F, Y, np.ones(N)))
    model.save(tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    assert again.calibration == model.calibration
    P = again.predict_proba(table)
    assert P.shape == (N, len(model.labels))
    np.testing.assert_array_equal(P, model.predict_proba(table))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(P, model.outputs_to_probabilities(model.decision(table)))


def test_decisions_are_the_kernel_expansion():
    model, table = make(KINDS["three classes"])
    X = model.encoder.transform(table)
    K = model.kernel(X, model.rows)
    expected = np.array([[b + sum(a * k for a, k in zip(row, line, strict=True)) for row, b in
                          zip(model.coefficients, model.bias, strict=True)] for line in K])  # fmt: skip
    np.testing.assert_allclose(model.decision(table), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.predict(table), expected.argmax(axis=1))


def test_predictions_are_in_the_targets_units():
    model, table = make(KINDS["regression"])
    F = model.decision(table)
    y = KINDS["regression"]
    np.testing.assert_allclose(model.predict(table), F * y.std() + y.mean())


def test_an_output_of_zero_is_the_second_label():
    model, table = make(KINDS["two classes"])
    model = replace(model, coefficients=np.zeros_like(model.coefficients), bias=np.zeros(1))
    assert set(model.predict(table)) == {"yes"}
    assert set(model.outputs_to_predictions(np.array([-0.0, 0.0]))) == {"yes"}


def test_the_first_of_equal_outputs_is_the_label():
    model, table = make(KINDS["three classes"])
    model = replace(model, coefficients=np.zeros_like(model.coefficients), bias=np.array([-1.0, 0.5, 0.5]))
    assert set(model.predict(table)) == {1}


def test_blocks_of_rows_give_what_the_whole_gives():
    model, _ = make(KINDS["three classes"], kernel=Linear())
    X, a = RNG.normal(size=(BLOCK_BYTES // (8 * 1500) + 7, 2)), RNG.normal(size=(3, 1500))
    wide = replace(model, rows=RNG.normal(size=(1500, 2)), coefficients=a, encoder=None)
    np.testing.assert_allclose(wide.decision(X), X @ wide.rows.T @ a.T + wide.bias, rtol=0, atol=1e-11)


def test_arrays_in_and_no_encoder():
    data = from_arrays(RNG.normal(size=(N, 3)), KINDS["regression"])
    model, _ = make(KINDS["regression"])
    bare = replace(model, rows=data.X[:20], encoder=None)
    np.testing.assert_array_equal(bare.predict(data.X), replace(bare, encoder=data.encoder).predict(data.X))
    with pytest.raises(DataError, match="X has 2 columns where the model has 3"):
        bare.predict(np.ones((4, 2)))
    with pytest.raises(DataError, match="text columns"):
        model.predict(np.ones((4, 2)))


def test_every_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "m.npz"
    model, table = make(KINDS["regression"])
    model.save(path)
    content = path.read_bytes()
    harmless = 0
    for place in range(0, len(content), 17):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        with contextlib.suppress(ModelError):
            # Dates and attributes inside the archive are no part of the model.
            np.testing.assert_array_equal(load(path).predict(table), model.predict(table))
            harmless += 1
    assert harmless < len(content) / 17 / 3


def rewrite(path, **changes):
    with np.load(path) as archive:
        contents = {name: archive[name] for name in archive.files}
    header = json.loads(str(contents["header"]))
    contents["header"] = np.array(json.dumps(header | changes.pop("header", {})))
    np.savez(path, **(contents | changes))


def test_files_that_are_no_models(tmp_path):
    path = tmp_path / "m.npz"
    model, _ = make(KINDS["regression"])
    with pytest.raises(ModelError, match="there is no file"):
        load(path)
    with pytest.raises(ModelError, match="is a folder"):
        load(tmp_path)
    for content in (b"", b"hello\n", b"\x80\x04K\x01.", b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(ModelError, match="isn't a model of kernsel"):
            load(path)
    with path.open("wb") as stream:
        np.save(stream, np.ones(3))
    with pytest.raises(ModelError, match="isn't a model"):
        load(path)
    np.savez(path, a=np.ones(3))
    with pytest.raises(ModelError, match="isn't a model of kernsel"):
        load(path)
    np.savez(path, header=np.array([{}], dtype=object))
    with pytest.raises(ModelError, match="damaged"):
        load(path)
    model.save(path)
    rewrite(path, header={"format": "other"})
    with pytest.raises(ModelError, match="its format is 'other'"):
        load(path)
    model.save(path)
    rewrite(path, header={"version": 2})
    with pytest.raises(ModelError, match="has format version 2, this kernsel reads version 1; upgrade"):
        load(path)
    model.save(path)
    rewrite(path, bias=np.array([7.0]))
    with pytest.raises(ModelError, match="its checksum doesn't fit"):
        load(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelError, match="isn't a model of kernsel, or is cut"):
        load(path)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "m.npz"
    model, _ = make(KINDS["regression"])
    model.save(path)
    before = path.read_bytes()

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OptionError, match="can't write"):
        model.save(tmp_path / "nowhere" / "m.npz")
