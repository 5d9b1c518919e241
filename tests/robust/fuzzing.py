"""Small files of every format that is read, and ways to damage them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zipfile

import numpy as np
import pandas as pd

N = 12


def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.normal(size=N).round(3),
            "b": np.arange(N),
            "when": pd.date_range("2024-01-31", periods=N).strftime("%Y-%m-%d"),
            "c": np.array(["u", "v", ""])[rng.integers(0, 3, N)],
            "y": rng.normal(size=N).round(3),
        }
    )


def written(write):
    """Return the bytes that ``write(stream)`` writes."""
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def _zip(content):
    def write(stream):
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("t.csv", content)

    return written(write)


def seeds():
    """Return the whole files by name; the formats of pyarrow only where it is installed."""
    frame = table()
    text = frame.to_csv(index=False).encode()
    found = {
        "t.csv": text,
        "semicolons.csv": frame.to_csv(index=False, sep=";", decimal=",").encode(),
        "tabs.tsv": frame.to_csv(index=False, sep="\t").encode("utf-16"),
        "quoted.csv": frame.assign(c='say "x",\n').to_csv(index=False).encode(),
        "t.csv.gz": gzip.compress(text),
        "t.csv.bz2": bz2.compress(text),
        "t.csv.xz": lzma.compress(text),
        "t.zip": _zip(text),
        "t.svmlight": b"".join(b"%d 1:%.2f 3:1e-3 7:2 # c\n" % (i % 2, i / 3) for i in range(N)),
        "t.npy": written(lambda stream: np.save(stream, np.arange(24.0).reshape(8, 3))),
        "t.xlsx": written(lambda stream: frame.to_excel(stream, index=False)),
        "t.ods": written(lambda stream: frame.to_excel(stream, index=False, engine="odf")),
    }
    try:
        found["t.parquet"] = written(lambda stream: frame.to_parquet(stream))
        found["t.feather"] = written(lambda stream: frame.to_feather(stream))
    except ImportError:
        pass
    return found


def damaged(content, seed):
    """Return bytes that are damaged in one to four places: flipped, cut, repeated, or other numbers."""
    rng, data = random.Random(seed), bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(data) + 1), rng.choice((1, 2, 4, 8, 64))
        kind = rng.randrange(8)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = data[at : at + length] * rng.choice((1, 3, 50))
        elif kind == 4:
            data[at : at + length] = bytes(rng.randrange(256) for _ in range(length))
        elif kind == 5:
            data[at : at + length] = rng.choice((b"\xff", b"\x00", b"9", b",", b'"', b"\n", b":", b"e")) * length
        elif kind == 6:
            data[at : at + 8] = rng.choice((2**31 - 1, 2**31, 2**63 - 1, 2**64 - 1, 2**32)).to_bytes(8, "little")
        else:
            words = (b"nan", b"1e999", b"-", b"\xef\xbb\xbf", b"=cmd()", b"1" * 400, b"\xe2\x88\x9e", b"99999999999:1 ")
            data[at:at] = rng.choice(words)
    return bytes(data)
