"""Tables are read as they were written, and what is wrong in them is told with its line."""

from __future__ import annotations

import csv
import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from composer.train import TrainingError, is_table, read_table

ROWS = [{"text": 'she said "no",\nand left', "label": "a"}, {"text": "été, 夏", "label": "b"}, {"text": " ", "label": "a"}]


@pytest.fixture
def write(tmp_path):
    """Writes a file, and returns its path."""

    def put(name, content):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return put


def idx(array: np.ndarray) -> bytes:
    """Return an array of bytes as the authors of MNIST wrote theirs."""
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.csv.gz", "t.jsonl.gz"])
def test_rows_are_read_back(tmp_path: Path, name: str) -> None:
    """With quotes, line breaks inside of values, and letters beyond ASCII."""
    path = tmp_path / name
    with (gzip.open if name.endswith(".gz") else open)(path, "wt", encoding="utf-8", newline="") as file:
        if ".jsonl" in name:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
        else:
            writer = csv.DictWriter(file, ["text", "label"], delimiter="\t" if ".tsv" in name else ",")
            writer.writeheader()
            writer.writerows(ROWS)
    table = read_table([path])
    assert {column: [*cells] for column, cells in table.columns.items()} == {
        column: [row[column] for row in ROWS] for column in ("text", "label")
    }
    assert table.place(1) == f"{path}, line {2 if '.jsonl' in name else 4}"


def test_the_first_line_tells_what_separates_values(write):
    """Where it has no comma: spreadsheets write semicolons where decimals have commas."""
    assert read_table([write("t.csv", "review;stars\ngood, but long;3,5\n")]).columns == {
        "review": ["good, but long"],
        "stars": ["3,5"],
    }
    assert read_table([write("t.csv", "review\nno; not at all\n")]).columns == {"review": ["no; not at all"]}


def test_files_of_the_same_columns_are_put_below_each_other(write):
    """With the places of each, and one that is named twice is read once."""
    one, two = write("1.csv", "a,b\n1,2\n"), write("2.csv", "a,b\n3,4\n\n5,6\n")
    table = read_table([one, two, one])
    assert (table.columns["a"], table.place(2)) == (["1", "3", "5"], f"{two}, line 4")


def test_files_of_different_columns_are_put_side_by_side(write):
    """As the images and the labels of MNIST."""
    images, labels = np.arange(48, dtype=np.uint8).reshape(3, 4, 4), np.array([2, 0, 1], dtype=np.uint8)
    paths = [write("a-images-idx3-ubyte.gz", gzip.compress(idx(images))), write("labels.idx", idx(labels))]
    table = read_table(paths)
    assert table.columns.keys() == {"image", "label"}
    np.testing.assert_array_equal(table.columns["image"], images)
    np.testing.assert_array_equal(table.columns["label"], labels)
    np.savez(tmp := write("more.npz", b""), weight=np.arange(3.0))
    assert [*read_table([*paths, tmp]).columns] == ["image", "label", "weight"]


def test_a_folder_of_folders_is_a_table_of_images(write, tmp_path):
    """Sorted by class; what is no image does not count, and neither does where the folder is."""
    for name in ("pics/dog/2.png", "pics/cat/1.JPG", "pics/dog/notes.txt", "pics/dog/1.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(name, name.encode())
    table = read_table([tmp_path / "pics"])
    assert table.columns["label"] == ["cat", "dog", "dog"]
    assert [path.name for path in table.columns["image"]] == ["1.JPG", "1.png", "2.png"]
    (tmp_path / "pics").rename(tmp_path / "moved")
    assert read_table([tmp_path / "moved"]).sha256 == table.sha256
    write("moved/dog/2.png", b"other")
    assert read_table([tmp_path / "moved"]).sha256 != table.sha256


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "t.csv is empty"),
        ("t.csv", "a,b\n", "t.csv has no rows"),
        ("t.csv", "a,a\n1,2\n", "line 1 does not name the columns, each by a name of its own: 'a, a'"),
        ("t.csv", "a,\n1,2\n", "line 1 does not name the columns"),
        ("t.csv", 'a,b\n"x\ny",2\n1\n', "t.csv, line 4 has 1 value; line 1 names 2 columns"),
        ("t.csv", 'a,b\n1,"2\n', "line 2: unexpected end of data"),
        ("t.csv", b"a,b\n\xff,2\n", "is not UTF-8 text: line 2"),
        ("t.jsonl", '{"a": 1}\n{a}\n', "t.jsonl, line 2 is not JSON: '{a}'"),
        ("t.jsonl", '{"a": 1}\n[1]\n', "line 2 is no object: '[1]'"),
        ("t.jsonl", '{"a": 1, "b": 2}\n\n{"a": 1}\n', "line 3 lacks the key 'b'"),
        ("t.jsonl", '{"a": 1}\n{"a": 1, "c": 2}\n', "line 2 also has the key 'c'"),
        ("t.jsonl", "[" * 100_000, "is not JSON"),
        ("t.npz", b"PK\x03\x04", "is no file of arrays"),
        ("t.npz", b"", "is no file of arrays"),
        ("x-ubyte", b"\0\0\x07\x01", "is no IDX file: it begins with 00 00 07 01"),
        ("x.idx", b"\0\0\x08\x02\0\0\0\x02\0\0\0\x03abc", "has 15 bytes; an array of [2, 3] has 18"),
        ("x.idx", b"\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "bytes; an array of"),
        ("t.xlsx", b"PK", "t.xlsx is no table"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(write, name, content, message):
    """In one line, never with a traceback."""
    with pytest.raises(TrainingError) as refused:
        read_table([write(name, content)])
    assert message in str(refused.value)


def test_arrays_are_not_unpickled(tmp_path):
    """An array of objects could run code."""
    np.savez(tmp_path / "t.npz", a=np.array([{}, {}], dtype=object))
    with pytest.raises(TrainingError, match="is no file of arrays"):
        read_table([tmp_path / "t.npz"])


def test_tables_that_do_not_fit_are_refused(write):
    """Neither the same columns nor as many rows; and all of them together are bounded."""
    one, two, both = write("1.csv", "a,b\n1,2\n"), write("2.csv", "c\n3\n4\n"), write("3.csv", "b\n1\n")
    for other in (two, both):
        with pytest.raises(TrainingError, match=r"has \d rows? and the columns"):
            read_table([one, other])
    with pytest.raises(TrainingError, match=r"the texts up to .* have more than 9 bytes"):
        read_table([one, two], max_bytes=9)
    with pytest.raises(TrainingError, match="has no folders with images"):
        read_table([one.parent])


def test_what_is_a_table_is_told_by_the_name(tmp_path):
    """A `.tsv` file is a text of pairs for translation."""
    tables = ["a.csv", "a.CSV.gz", "a.jsonl", "a.ndjson", "a.npz", "t10k-images.idx3-ubyte", "train-labels-idx1-ubyte.gz"]
    assert all(is_table(name) for name in tables)
    assert not any(is_table(name) for name in ("a.txt", "a.txt.gz", "csv", "plays/", tmp_path))
    assert (is_table("a.tsv"), is_table("a.tsv", pairs=True)) == (True, False)
