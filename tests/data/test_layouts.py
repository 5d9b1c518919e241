"""Tables as people have them: every layout is found out and said, or one line says which option helps."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import types
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernsel.data import Reading, prepare, read_table
from kernsel.data.decimals import Marks
from kernsel.data.tables import SparseTable
from kernsel.errors import DataError, OptionError

NAN = float("nan")
X3 = ["x1", "x2", "x3"]
NO_HEADER = "the first line holds data, not names: the columns are called x1, x2, x3"

READ = {
    # name: (text, columns, rows, what the notes say)
    "plain": ("a,b\n1,2\n3,4\n", ["a", "b"], [[1, 2], [3, 4]], []),
    "numbers only": ("1,2,3\n4,5,6\n", X3, [[1, 2, 3], [4, 5, 6]], [NO_HEADER]),
    "text and numbers without a header": (
        "M,0.455,15\nF,0.53,9\nM,0.44,10\n",
        X3,
        [["M", 0.455, 15], ["F", 0.53, 9], ["M", 0.44, 10]],
        [NO_HEADER],
    ),
    "labels last without a header": (
        "5.1,3.5,setosa\n4.9,3,setosa\n7,3.2,other\n",
        X3,
        [[5.1, 3.5, "setosa"], [4.9, 3, "setosa"], [7, 3.2, "other"]],
        [NO_HEADER],
    ),
    "words only without a header": (
        "p,x,p\ne,x,s\np,b,s\n",
        X3,
        [["p", "x", "p"], ["e", "x", "s"], ["p", "b", "s"]],
        [NO_HEADER],
    ),
    "words only with a header": ("u,v\na,b\na,c\n", ["u", "v"], [["a", "b"], ["a", "c"]], []),
    "years as names": (
        "land,2019,2020\nfr,1.5,2\nde,2,3\n",
        ["land", "2019", "2020"],
        [["fr", 1.5, 2], ["de", 2, 3]],
        [],
    ),
    "a count of the columns as names": (
        "0,1,2,3,4\n5.5,2,3,1,2\n1,2,3.5,4,4\n",
        ["0", "1", "2", "3", "4"],
        [[5.5, 2, 3, 1, 2], [1, 2, 3.5, 4, 4]],
        [],
    ),
    "semicolons": ("a;b\n1;2\n", ["a", "b"], [[1, 2]], ["columns are separated by ';'"]),
    "bars": ("a|b\n1|2\n", ["a", "b"], [[1, 2]], ["columns are separated by '|'"]),
    "spaces": ("a  b c\n 1 2   3\n4 5 6 \n", ["a", "b", "c"], [[1, 2, 3], [4, 5, 6]], ["separated by spaces"]),
    "spaces, tabs and quotes": (
        '18.0   8   307.0\t"a b"\n15.0   8   ?\t"c d"\n16.0   8   304.0\t"a b"\n',
        ["x1", "x2", "x3", "x4"],
        [[18, 8, 307, "a b"], [15, 8, NAN, "c d"], [16, 8, 304, "a b"]],
        ["separated by spaces", "called x1, x2, ..., x4"],
    ),
    "names of rows": (
        '"y","x1"\n"1",2,3\n"2",4,5\n',
        ["y", "x1"],
        [[2, 3], [4, 5]],
        ["numbers the rows; it is left out"],
    ),
    "names of rows as text": (
        '"y" "x1"\n"Fiat 128" 2 3\n"Volvo" 4 5\n',
        ["y", "x1"],
        [[2, 3], [4, 5]],
        ["has another value in every row; it is left out"],
    ),
    "comments": ("# made by me\na,b\n1,2\n# more\n3,4 # here\n", ["a", "b"], [[1, 2], [3, 4]], ["# starts comments"]),
    "names in a comment": (
        "# a b\n1.5 2\n3 4\n",
        ["a", "b"],
        [[1.5, 2], [3, 4]],
        ["the last comment above the table names"],
    ),
    "a hash as a name": ("#,b,y\n5,2,1\n3,4,0\n8,1,1\n", ["#", "b", "y"], [[5, 2, 1], [3, 4, 0], [8, 1, 1]], []),
    "separators at the end": ("a;b;\n1;2;\n3;4;\n", ["a", "b"], [[1, 2], [3, 4]], ["by ';'"]),
    "separators at the end of data": ("a;b\n1;2;\n3;4;\n", ["a", "b"], [[1, 2], [3, 4]], ["by ';'"]),
    "two separators at the end": ("a;b;;\n1;2;;\n3;4;;\n", ["a", "b"], [[1, 2], [3, 4]], ["by ';'"]),
    "separators at the end without a header": ("1;2;\n3;4;\n", ["x1", "x2"], [[1, 2], [3, 4]], ["called x1, x2"]),
    "a title": ("My table\n\na,b\n1,2\n3,4\n", ["a", "b"], [[1, 2], [3, 4]], ["1 line above the table left out"]),
    "a title of a spreadsheet": (
        "Title,,\na,b,c\n1,2,3\n4,5,6\n",
        ["a", "b", "c"],
        [[1, 2, 3], [4, 5, 6]],
        ["1 line above"],
    ),
    "Excel's hint": ("sep=;\na;b\n1;2\n", ["a", "b"], [[1, 2]], ["separated by ';'"]),
    "latin-1": ("größe,b\n1,é\n2,é\n".encode("latin-1"), ["größe", "b"], [[1, "é"], [2, "é"]], ["encoded in cp1252"]),
    "latin-1 later": (
        b"a,b\n" + b"1,2\n" * 40000 + b"1,\xe9\n",
        ["a", "b"],
        [[1, "2"]] * 40000 + [[1, "é"]],
        ["encoded in cp1252, as it isn't UTF-8"],
    ),
    "neither UTF-8 nor Windows": (b"a,b\n\x81,2\nx,3\n", ["a", "b"], [["\x81", 2], ["x", 3]], ["encoded in latin-1"]),
    "utf-8 with a mark": ("größe,b\n1,2\n".encode("utf-8-sig"), ["größe", "b"], [[1, 2]], []),
    "utf-16": ("größe,b\n1,2\n3,4\n".encode("utf-16"), ["größe", "b"], [[1, 2], [3, 4]], ["encoded in utf-16"]),
    "gaps": ("a,b,c\n1,?,x\n2,na,?\n.,3,x\n-,4,.\n", ["a", "b", "c"], None, []),
    "a class of plus and minus": (
        "a,1,+\nb,2,-\na,3,-\n",
        X3,
        [["a", 1, "+"], ["b", 2, "-"], ["a", 3, "-"]],
        [NO_HEADER],
    ),
    "decimal commas": ("a;b\n1,5;2\n2,25;3\n", ["a", "b"], [[1.5, 2], [2.25, 3]], ["numbers have a decimal comma"]),
    "decimal commas and tabs": ("a\tb\n1,5\t2\n2,25\t3\n", ["a", "b"], [[1.5, 2], [2.25, 3]], ["a decimal comma"]),
    "decimal commas and spaces": ("1,5 2,5\n2,25 3,5\n", ["x1", "x2"], [[1.5, 2.5], [2.25, 3.5]], ["a decimal comma"]),
    "quoted decimal commas": ('a,b\n"1,5",2\n"2,25",3\n', ["a", "b"], [[1.5, 2], [2.25, 3]], ["a decimal comma"]),
    "decimal commas and points of thousands": (
        "u;v\n137;1,37\n1.096;10,96\n",
        ["u", "v"],
        [[137, 1.37], [1096, 10.96]],
        ["numbers have a decimal comma; '.' separates thousands"],
    ),
    "dates with points beside thousands": (
        "d;u;v\n31.12.2024;137;1,37\n01.01.2025;1.096;10,96\n",
        ["d", "u", "v"],
        [["31.12.2024", 137, 1.37], ["01.01.2025", 1096, 10.96]],
        ["numbers have a decimal comma; '.' separates thousands"],
    ),
    "points of millions": (
        "u;v\n1.137.000;1\n2.096.500;2\n",
        ["u", "v"],
        [[1137000, 1], [2096500, 2]],
        ["'.' separates"],
    ),
    "commas of thousands": (
        'a,b\n"1,096",2.5\n"2,345",3\n',
        ["a", "b"],
        [[1096, 2.5], [2345, 3]],
        ["',' separates thousands"],
    ),
    "a comma with three decimals": (
        "a;b\n0,125;1\n1,096;2\n",
        ["a", "b"],
        [[0.125, 1], [1.096, 2]],
        ["a decimal comma"],
    ),
    "spaces of thousands": ("a;b\n1 096,5;2\n3;3\n", ["a", "b"], [[1096.5, 2], [3, 3]], ["' ' separates thousands"]),
    "apostrophes of thousands": ("a;b\n1'096.5;2\n3;3\n", ["a", "b"], [[1096.5, 2], [3, 3]], ["separates thousands"]),
    "one point and three digits": ("a;b\n1.096;2\n3.125;3\n", ["a", "b"], [[1.096, 2], [3.125, 3]], ["by ';'"]),
    "spaces of thousands at which no line ends": (
        "a;b\n1\xa0096,5;2\n3;3\n",
        ["a", "b"],
        [[1096.5, 2], [3, 3]],
        ["separates thousands"],
    ),
    "signs of currency and per cent": (
        'a,p,b\n"$1,096.50",4.5%,2\n-$20.25, 3 %,3\n,1%,4\n',
        ["a", "p", "b"],
        [[1096.5, 4.5, 2], [-20.25, 3, 3], [NAN, 1, 4]],
        ["',' separates thousands; numbers are read without their sign: 'a' $, 'p' %"],
    ),
    "signs behind numbers with decimal commas": (
        "a;b\n1.096,50 €;2\n-20,25 €;3\n",
        ["a", "b"],
        [[1096.5, 2], [-20.25, 3]],
        ["a decimal comma; '.' separates thousands; numbers are read without their sign: 'a' €"],
    ),
    "signs of several currencies": (
        "a,b\n$5,2\n€6,3\n",
        ["a", "b"],
        [["$5", 2], ["€6", 3]],
        [],
    ),
    "titles of two fields, and a header of years": (
        '"Source","Bank",\n\n"Updated","2024-01-01",\n\n"Land","1960","1961","1962",\n"A","1.5","2","3",\n"B","2","3","1",\n',
        ["Land", "1960", "1961", "1962"],
        [["A", 1.5, 2, 3], ["B", 2, 3, 1]],
        ["2 lines above the table left out"],
    ),
    "tabs behind spaces, and commas in one field": (
        "unit,geo\\time\t2018 \t2019 \nPC,AT\t1.5 \t2.5 \nPC,BE\t3 \t: \nPC,DE\t4 \t5.5 \n",
        ["unit,geo\\time", "2018", "2019"],
        [["PC,AT", 1.5, "2.5 "], ["PC,BE", 3, ": "], ["PC,DE", 4, "5.5 "]],
        ["columns are separated by tabs"],
    ),
    "texts between apostrophes": (
        "'40-49','a, b','3',1.5\n'50-59',?,'1',2\n'40-49','a, b','2',3\n",
        ["x1", "x2", "x3", "x4"],
        [["40-49", "a, b", 3, 1.5], ["50-59", NAN, 1, 2], ["40-49", "a, b", 2, 3]],
        ["' quotes texts; the first line holds data"],
    ),
    "texts with apostrophes": (
        "n,b\nO'Brien,2\n'90s,3\n",
        ["n", "b"],
        [["O'Brien", 2], ["'90s", 3]],
        [],
    ),
    "a comma in names": ('n,b\n"Doe, J",2\n"Roe, K",3\n', ["n", "b"], [["Doe, J", 2], ["Roe, K", 3]], []),
}


@pytest.mark.parametrize("case", READ)
def test_layouts_are_found_out_and_said(tmp_path, case):
    content, columns, rows, said = READ[case]
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    frame = read_table(path)
    assert list(frame.columns) == columns
    notes = " ".join(frame.attrs["notes"])
    assert all(text in notes for text in said), notes
    assert bool(said) == bool(notes)
    if rows is not None:
        pd.testing.assert_frame_equal(frame, pd.DataFrame(rows, columns=columns), check_dtype=False)


def test_what_stands_for_a_gap_is_none_of_the_categories(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,y\n" + "".join(f"{a},{b},{c},{i / 7}\n" for i, (a, b, c) in enumerate(
        [("1", "?", "x"), ("2", "na", "?"), (".", "3", "x"), ("-", "4", "z"), ("5", "5", "."), (" ?", "7", "x ")]
    )))  # fmt: skip
    data = prepare(read_table(path))
    assert [entry["missing"] for entry in data.columns] == pytest.approx([0.5, 1 / 3, 1 / 3])
    assert data.encoder.numeric == ("a", "b")
    assert data.encoder.gaps == ("c",)
    assert not {"?", "-", ".", "na"} & set(data.encoder.categories["c"])


SAID = {
    "sep": ("a:b\n1:2\n", {"sep": ":"}, [[1, 2]]),
    "a word for it": ("a\tb c\n1\t2\n", {"sep": "tab"}, [[1, 2]]),
    "decimal": ("a;b\n1,096;2\n3,125;4\n", {"decimal": ","}, [[1.096, 2], [3.125, 4]]),
    "thousands": ("a;b\n1,096;2\n3,125;4\n", {"thousands": ","}, [[1096, 2], [3125, 4]]),
    "thousands alone": ("a;b\n1.096;2\n3.125;4\n", {"thousands": "."}, [[1096, 2], [3125, 4]]),
    "thousands beside dates": ("a;b\n1.096;1.2.2024\n", {"thousands": "."}, [[1096, "1.2.2024"]]),
    "encoding": (b"\xe4,b\n1,2\n", {"encoding": "latin-1"}, [[1, 2]]),
    "no header": ("a,b\n1,2\n", {"header": False}, [["a", "b"], ["1", "2"]]),
    "header": ("1,2\n3,4\n", {"header": True}, [[3, 4]]),
    "comment": ("! hello\na,b\n1,2\n", {"comment": "!"}, [[1, 2]]),
    "skip": ("u,v,w\n1,2\na,b\n1,2\n", {"skip": 2}, [[1, 2]]),
}


@pytest.mark.parametrize("case", SAID)
def test_what_is_given_is_not_guessed(tmp_path, case):
    content, given, rows = SAID[case]
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert read_table(path, reading=Reading(**given)).values.tolist() == rows


REFUSED = {
    "one or a thousand": (
        "a;b\n1,096;2\n3,125;4\n",
        {},
        DataError,
        "'1,096' in column 'a' can be 1.096 or 1096; give --dec",
    ),
    "no character": ("a,b\n1,2\n", {"sep": "::"}, OptionError, "--sep '::' must be one character or tab, space"),
    "comments": ("a,b\n1,2\n", {"comment": "//"}, OptionError, "--comment '//' must be one character"),
    "twice": ("a,b\n1,2\n", {"decimal": ",", "thousands": ","}, OptionError, "are both ','"),
    "encoding": ("a,b\n1,2\n", {"encoding": "utf-9"}, OptionError, "--encoding utf-9 is unknown"),
    "another encoding": (b"\xe4,b\n1,2\n", {"encoding": "utf-8"}, DataError, "(byte 0xe4); give its encoding, such as"),
    "skipped": ("a,b\n1,2\n", {"skip": 9}, DataError, "is empty"),
    "a sheet of text": ("a,b\n1,2\n", {"sheet": "2"}, DataError, "is no workbook, so it has no sheet '2'"),
    "comments only": ("# a\n# b\n", {}, DataError, "has no line that isn't a comment"),
    "JSON": (
        '{"a": [1, 2],\n "b": [2, 3]}\n',
        {},
        DataError,
        "is JSON; convert it to CSV, for instance by pandas.read_js",
    ),
    "JSON in lines": ('{"a":1,"b":2}\n{"a":2,"b":3}\n', {}, DataError, "is JSON; convert it to CSV"),
    "records of JSON": ('[\n {"a":1,"b":2},\n {"a":2,"b":3}\n]\n', {}, DataError, "is JSON; convert it to CSV"),
    "lists of JSON": ("[[1, 2],\n [2, 3]]\n", {}, DataError, "is JSON; convert it to CSV"),
    "a page": ("<!DOCTYPE html>\n<p>a,b</p>\n", {}, DataError, "is HTML or XML; get the table itself, as CSV"),
    "arff": ("@relation r\n@data\n1,2\n", {}, DataError, "is an ARFF file; convert it to CSV"),
    "other numbers of fields": ("a b\n1 2 3\n4 5\n6 7\n", {}, DataError, "line 2: 3 fields where the header has 2"),
    "running text": (
        "A title\n\nThis text has some lines, of words.\nOthers, too, and more.\nEach\nof another, so it seems\n",
        {},
        DataError,
        "isn't a table: its lines have 1 to 7 fields, whatever separates them; give a CSV file, or say how to read it",
    ),
    "a name that is lacking": ("a,,y\n1,2,3\n3,4,4\n", {}, DataError, "column 2 has no name"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_with_the_option_that_helps(tmp_path, case):
    content, given, error, message = REFUSED[case]
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(error) as caught:
        read_table(path, reading=Reading(**given))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


RAW = b"a,b\n1,2\n3,4\n"
PACKED = {"t.csv.gz": gzip.compress(RAW), "t.bz2": bz2.compress(RAW), "t": lzma.compress(RAW)}


@pytest.mark.parametrize("name", PACKED)
def test_compressed_files_are_told_by_their_first_bytes(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(PACKED[name])
    assert read_table(path).values.tolist() == [[1, 2], [3, 4]]
    path.write_bytes(PACKED[name][:-9])
    with pytest.raises(DataError, match="damaged|can't read"):
        read_table(path)


def test_an_archive_holds_one_table(tmp_path):
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/in.csv", RAW)
    assert read_table(path).values.tolist() == [[1, 2], [3, 4]]
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other.csv", RAW)
    with pytest.raises(DataError, match=r"is an archive of 2 files \(folder/in.csv, other.csv\); unpack it"):
        read_table(path)


def test_the_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(RAW)))
    frame = read_table("-")
    assert frame.values.tolist() == [[1, 2], [3, 4]]
    assert frame.attrs["source"] == "standard input"


def test_several_files_and_patterns(tmp_path):
    for i, text in enumerate(["a;b\n1,5;x\n", "a;b\n2;y\n3,25;x\n"]):
        (tmp_path / f"part{i}.csv").write_text(text)
    parts = [tmp_path / "part0.csv", tmp_path / "part1.csv"]
    for paths in (parts, tmp_path / "part*.csv"):
        frame = read_table(paths)
        assert frame.values.tolist() == [[1.5, "x"], [2.0, "y"], [3.25, "x"]]
        assert "2 files of 1, 2 rows together" in frame.attrs["notes"]
    assert frame.attrs["source"].endswith("part0.csv and 1 more")
    with pytest.raises(DataError, match="is given twice"):
        read_table([parts[0], parts[0]])
    with pytest.raises(DataError, match="no file matches"):
        read_table(tmp_path / "none*.csv")
    parts[1].write_text("a;c\n2;y\n")
    with pytest.raises(DataError, match=r"hasn't the columns of .*part0.csv in their order \(first other: 'c'\)"):
        read_table(parts)
    parts[1].write_text("a;b\n2;7\n")
    with pytest.raises(DataError, match="column 'b' holds numbers in some of the files and text in others"):
        read_table(parts)


def test_svmlight_is_told_by_its_lines(tmp_path):
    path = tmp_path / "heart_scale"
    path.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    table = read_table(path)
    assert isinstance(table, SparseTable)
    assert "svmlight" in table.attrs["notes"][0]
    path.write_text("# c\n1 3:0.5 1:2 # d\n\n-1 2:1\n")
    assert read_table(path).X.toarray().tolist() == [[2, 0, 0.5, 1], [0, 1, 0, -1]]
    wider = tmp_path / "a2a.t"
    wider.write_text("1 5:1\n")
    both = read_table([path, wider])
    assert both.names == ("f1", "f2", "f3", "f4", "f5", "target")
    assert both.X.toarray().tolist() == [[2, 0, 0.5, 0, 0, 1], [0, 1, 0, 0, 0, -1], [0, 0, 0, 0, 1, 1]]
    path.write_text("1 3:0.5 1:2 3:1\n")
    with pytest.raises(DataError, match="a row has the feature 3 twice"):
        read_table(path)
    times = tmp_path / "t.txt"
    times.write_text("1 12:30 x\n2 13:30 y\n")
    assert list(read_table(times).columns) == X3


WORKBOOKS = {"xlsx": "openpyxl", "ods": "odf"}


@pytest.mark.parametrize("kind", WORKBOOKS)
def test_workbooks(tmp_path, kind):
    pytest.importorskip(WORKBOOKS[kind])
    path = tmp_path / "t"
    table = pd.DataFrame({"a": [1.5, None, 3.0], "b": ["x", "?", "y"], "c": [1, 2, 4]})
    with pd.ExcelWriter(path.with_suffix(f".{kind}"), engine=WORKBOOKS[kind]) as book:
        table.to_excel(book, sheet_name="one", index=False, startrow=2)
        pd.DataFrame([["My title", None], ["u", "v"], [1, 2]]).to_excel(
            book, sheet_name="two", index=False, header=False
        )
    path = path.with_suffix(f".{kind}").rename(path)  # under any name
    frame = read_table(path)
    pd.testing.assert_frame_equal(frame, table.replace("?", None), check_dtype=False)
    assert "sheet 'one' is read, the first one; besides there are 'two'" in frame.attrs["notes"][0]
    assert [dtype.kind for dtype in frame.dtypes.iloc[[0, 2]]] == ["f", "i"]
    for sheet in ("two", "2"):
        second = read_table(path, reading=Reading(sheet=sheet))
        assert (list(second.columns), second.values.tolist()) == (["u", "v"], [[1, 2]])
    with pytest.raises(DataError, match="has no sheet 'three'; its sheets are 'one', 'two'"):
        read_table(path, reading=Reading(sheet="three"))


@pytest.mark.parametrize(
    ("name", "what"), [("a.xlsx", "a workbook"), ("a.svm", "an svmlight file"), ("a.npy", "an array")]
)
def test_options_of_text_say_nothing_of_other_files(tmp_path, name, what):
    path = tmp_path / name
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
        pd.DataFrame({"a": [1], "b": [2]}).to_excel(path)
    elif name.endswith("npy"):
        np.save(path, np.ones((2, 2)))
    else:
        path.write_text("1 1:2\n2 1:3\n")
    with pytest.raises(DataError, match=f"{name} is {what}, of which --decimal says nothing; leave it out"):
        read_table(path, reading=Reading(decimal=","))
    for header, option in () if name.endswith("xlsx") else ((True, "header"), (False, "no-header")):
        with pytest.raises(DataError, match=f"of which --{option} says nothing; leave it out"):
            read_table(path, reading=Reading(header=header))


def test_files_of_two_formats(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.svm").write_text("1 1:2\n2 1:3\n")
    with pytest.raises(DataError, match=r"b.svm isn't of the format of the first file, text; give files of one kind"):
        read_table([tmp_path / "a.csv", tmp_path / "b.svm"])


def test_a_workbook_of_an_old_excel_and_a_damaged_one(tmp_path):
    path = tmp_path / "t.xls"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600)
    with pytest.raises(DataError, match="is a workbook of an old Excel; save it as .xlsx or CSV"):
        read_table(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<no")
    with pytest.raises(DataError, match="is a damaged workbook|needs openpyxl"):
        read_table(path)


@pytest.mark.parametrize("form", ["file", "stream"])
def test_arrow(tmp_path, form):
    pyarrow = pytest.importorskip("pyarrow")
    table = pd.DataFrame({"a": [1.5, None], "b": ["x", "y"]})
    path = tmp_path / "t.arrow"
    arrow = pyarrow.Table.from_pandas(table)
    new = pyarrow.ipc.new_file if form == "file" else pyarrow.ipc.new_stream
    with new(path, arrow.schema) as writer:
        writer.write_table(arrow)
    pd.testing.assert_frame_equal(read_table(path), table)
    path.write_bytes(b"ARROW1 and no more")
    with pytest.raises(DataError, match="isn't a Feather file, or a damaged one"):
        read_table(path)


@pytest.mark.parametrize(
    ("texts", "said", "decided"),
    [
        (["1.096", "10,96"], {}, (",", ".")),
        (["1,096", "10.96"], {}, (".", ",")),
        (["1,096"], {}, None),
        (["1.096"], {}, (".", None)),
        (["1.096", "10,96", "1.5"], {}, (".", None)),
        (["1.096", "1.5"], {"decimal": ","}, (",", None)),
        (["1.096"], {"decimal": ","}, (",", ".")),
        (["1.234.567"], {}, (",", ".")),
        (["-1.234,5e3"], {}, (",", ".")),
        (["1.2.3", "12.03.2020"], {}, (".", None)),
        (["1,096"], {"thousands": ","}, (".", ",")),
    ],
)
def test_marks_decide_together(texts, said, decided):
    marks = Marks()
    marks.add(texts)
    assert marks.decide(said.get("decimal"), said.get("thousands")) == decided


# Text that is neither a number, nor a gap, nor a date, in any of the layouts.
WORDS = st.text("abcxyzäé", min_size=2, max_size=6).filter(lambda text: text not in ("na", "ab"))
NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: round(x, 2))


@st.composite
def layouts(draw):
    n = draw(st.integers(3, 8))
    columns = [[draw(NUMBERS) for _ in range(n)]]
    kinds = draw(st.lists(st.booleans(), min_size=1, max_size=4))
    columns += [[draw(WORDS if text else NUMBERS) for _ in range(n)] for text in kinds]
    sep = draw(st.sampled_from(",;\t| "))
    header = draw(st.booleans())
    decimal = draw(st.sampled_from("." if sep == "," or (sep == " " and not header) else ".,"))  # "0,5 word" is either
    end = draw(st.sampled_from(["\n", "\r\n"]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "utf-16"]))
    return columns, {
        "sep": sep,
        "decimal": decimal,
        "end": end,
        "encoding": encoding,
        "header": header,
        "comment": draw(st.booleans()),
        "trailing": draw(st.booleans()) and sep != " ",
        "names": draw(st.booleans()),
    }


@given(layouts())
@settings(max_examples=150, deadline=None)
def test_a_table_that_is_written_in_any_layout_is_read_back(tmp_path_factory, table):
    columns, way = table
    d, n = len(columns), len(columns[0])
    sep = way["sep"]
    names = [f"col{j}" for j in range(d)]

    def field(value):
        return value if isinstance(value, str) else f"{value:.2f}".replace(".", way["decimal"])

    lines = [sep.join(names)] if way["header"] else []
    if way["header"] and way["names"]:
        lines = [sep.join(f'"{name}"' for name in names)]
    for i in range(n):
        row = [field(column[i]) for column in columns]
        if way["header"] and way["names"]:  # as R writes them
            row = [f'"{i + 1}"', *row]
        lines.append(sep.join(row) + sep * (way["trailing"] and not way["names"]))
    if way["comment"]:
        lines.insert(0, "# written")  # as many words as there are columns would name them
    path = tmp_path_factory.mktemp("layouts") / "t.csv"
    path.write_bytes((way["end"].join(lines) + way["end"]).encode(way["encoding"]))
    header = None if way["header"] or all(isinstance(column[0], float) for column in columns) else False
    frame = read_table(path, reading=Reading(header=header))
    expected = pd.DataFrame(
        dict(zip(names if way["header"] else [f"x{j + 1}" for j in range(d)], columns, strict=True))
    )
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False, rtol=1e-12)
    assert np.isfinite(frame.iloc[:, 0]).all()
