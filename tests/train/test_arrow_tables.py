"""Parquet files and saved data sets are the tables that were written; what is wrong in them is told."""

from __future__ import annotations

import json

import numpy as np
import pytest

from composer.train import TrainingError, is_table, read_table
from composer.train.data import arrow_tables

ROWS = {"text": ["été", "夏", "a, b"], "label": [1, 0, 1], "x": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    """Rather than a module that is missing."""
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(arrow_tables, "find_spec", lambda name: None)
    with pytest.raises(TrainingError, match="needs pyarrow") as caught:
        read_table([tmp_path / "t.parquet"])
    assert "[arrow]" in caught.value.hint


def test_a_parquet_file_is_read_by_its_columns(tmp_path):
    """Numbers as arrays, the rest as lists; several files below each other; not more than the limit."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for name in ("1.parquet", "2.parquet"):
        parquet.write_table(pa.table(ROWS), tmp_path / name)
    assert is_table(tmp_path / "1.parquet")
    table = read_table([tmp_path / "1.parquet", tmp_path / "2.parquet"])
    assert {name: np.asarray(cells).tolist() for name, cells in table.columns.items()} == {
        name: 2 * cells for name, cells in ROWS.items()
    }
    assert isinstance(table.columns["label"], np.ndarray)
    parquet.write_table(pa.table({"x": np.zeros(1 << 18)}), tmp_path / "zeros.parquet")
    assert (tmp_path / "zeros.parquet").stat().st_size < 1 << 16
    with pytest.raises(TrainingError, match="larger table than the limit"):
        read_table([tmp_path / "zeros.parquet"], max_bytes=1 << 16)
    whole = (tmp_path / "1.parquet").read_bytes()
    for wrong in (whole[:-9], b"", b"PAR1" + b"\0" * 40 + b"PAR1"):
        (tmp_path / "wrong.parquet").write_bytes(wrong)
        with pytest.raises(TrainingError, match=r"wrong.parquet"):
            read_table([tmp_path / "wrong.parquet"])


def saved(folder, rows, features):
    """Write rows as `save_to_disk` does, in two files."""
    pa = pytest.importorskip("pyarrow")
    folder.mkdir(parents=True)
    whole = pa.table(rows)
    names = [f"data-0000{number}-of-00002.arrow" for number in range(2)]
    for name, part in zip(names, (whole.slice(0, 2), whole.slice(2)), strict=True):
        with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_stream(file, part.schema) as writer:
            writer.write_table(part)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    return folder


def test_a_saved_data_set_is_a_table_with_the_names_of_its_classes(tmp_path):
    """A file outside of its folder is never read, and splits are named."""
    features = {"label": {"names": ["bad", "good"], "_type": "ClassLabel"}, "text": {"dtype": "string", "_type": "Value"}}
    folder = saved(tmp_path / "reviews" / "train", ROWS, features)
    assert is_table(folder)
    table = read_table([folder])
    assert [*table.columns["label"]] == ["good", "bad", "good"]
    assert ([*table.columns["text"]], [*table.columns["x"]]) == (ROWS["text"], ROWS["x"])
    (folder.parent / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(TrainingError, match="has the splits train, test"):
        read_table([folder.parent])
    for state in ({"_data_files": [{"filename": "../train/data-00000-of-00002.arrow"}]}, {"_data_files": []}, []):
        (folder / "state.json").write_text(json.dumps(state))
        with pytest.raises(TrainingError, match=r"state.json"):
            read_table([folder])
