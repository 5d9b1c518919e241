"""Every registered part passes the checks that plugins are offered: see ``kernsel.testing``."""

import numpy as np
import pytest

from kernsel import registry
from kernsel.kernels import parse
from kernsel.testing import criterion_checks, format_checks, kernel_checks, learner_checks, search_checks

VALUES = {
    "ard-polynomial": "(degree=2)",
    "metric": "(L=(1.0, 0.3, -0.2, 0.5, 0.0, 0.7), rank=2)",  # for three features
    "er": "(q=3)",  # below the number of rows
    "fbif": "(landmarks=1.0)",  # otherwise it draws rows, which are others in another order
}
"""Values of parameters that no axis searches, or whose defaults don't suit the tables of the checks."""


def write_svmlight(frame, path):
    from sklearn.datasets import dump_svmlight_file

    dump_svmlight_file(frame.iloc[:, :-1], frame.iloc[:, -1], str(path), zero_based=False)


def write_feather(frame, path):
    pytest.importorskip("pyarrow")  # of an extra
    frame.to_feather(path)


def write_parquet(frame, path):
    pytest.importorskip("pyarrow")
    frame.to_parquet(path)


WRITERS = {
    "feather": (".feather", write_feather),
    "npy": (".npy", lambda frame, path: np.save(path, frame.to_numpy())),
    "parquet": (".parquet", write_parquet),
    "svmlight": (".svmlight", write_svmlight),
    "text": (".csv", lambda frame, path: frame.to_csv(path, index=False)),
    "workbook": (".xlsx", lambda frame, path: frame.to_excel(path, index=False)),
}


UNPACKED = {
    "npy": "it is a memory map, which a packed file can't be",
    "workbook": "it is an archive itself, of files that are asked for one by one",
}


def format_checks_of(name):
    suffix, write = WRITERS[name]
    without = {"a_packed_file_is_read_as_it_is": UNPACKED[name]} if name in UNPACKED else {}
    return format_checks(registry.build("format", name), write=write, suffix=suffix, without=without)


KIT = {
    "kernel": lambda name: kernel_checks(parse(name + VALUES.get(name, ""))),
    "learner": lambda name: learner_checks(registry.build("learner", name)),
    "criterion": lambda name: criterion_checks(registry.build("criterion", name + VALUES.get(name, ""))),
    "search": lambda name: search_checks(registry.build("search", name)),
    "format": format_checks_of,
}

CHECKS = [
    pytest.param(check, id=f"{claim.name}-{check.name}", marks=[pytest.mark.slow] * check.drawn)
    for claim in registry.claims()
    if claim.builtin
    for check in KIT[claim.kind](claim.name)
]


@pytest.mark.parametrize("check", CHECKS)
def test_every_part(check):
    check()
