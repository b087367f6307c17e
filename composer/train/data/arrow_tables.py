"""Tables in the formats of Arrow: Parquet files, and folders that `datasets` of Hugging Face saves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from composer.train.data.documents import content_of
from composer.train.errors import TrainingError
from composer.train.input_files import mode_of

PARQUET = (".parquet",)
STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
"""The files of a saved data set: which files hold its rows, what its columns are; and of one with splits, their names."""
ROWS = 4096
"""Rows that are read at a time, so that a small file that holds a large table is refused in time."""
MAX_INFO = 1 << 24
"""Bytes of a file that describes a data set, at most."""


def is_dataset(folder: Path) -> bool:
    """Return whether a folder is a data set that `save_to_disk` wrote, or one of those with splits."""
    return bool(mode_of(folder / STATE) and mode_of(folder / INFO)) or bool(mode_of(folder / SPLITS))


def parquet_columns(path: Path, content: bytes, *, limit: int) -> dict[str, Any]:
    """Return the columns of a Parquet file.

    Args:
        path: The path of the file, for errors.
        content: Its bytes.
        limit: The largest size of the table, in bytes of memory.

    Raises:
        TrainingError: pyarrow is not installed, or the file is damaged or too large.
    """
    arrow = _arrow(path)
    import pyarrow.parquet

    with _refusals(path, "Parquet file"):
        file = pyarrow.parquet.ParquetFile(arrow.BufferReader(content))
        declared = sum(file.metadata.row_group(number).total_byte_size for number in range(file.metadata.num_row_groups))
        if declared > limit:
            raise _too_large(path)
        return _columns(path, file.schema_arrow, file.iter_batches(batch_size=ROWS), limit)


def dataset_columns(folder: Path, *, limit: int) -> tuple[dict[str, Any], str]:
    """Return the columns of a data set that `save_to_disk` wrote, with the names of classes, and a checksum of its rows.

    Args:
        folder: Its folder.
        limit: The largest size of the table, in bytes of memory.

    Raises:
        TrainingError: pyarrow is not installed, the folder has splits, or it is damaged or too large.
    """
    if mode_of(folder / SPLITS):
        splits = _json(folder / SPLITS).get("splits", [])
        raise TrainingError(
            f"{folder} has the splits {', '.join(map(str, splits))}",
            hint=f"name one of them: {folder / str(next(iter(splits), ''))}",
        )
    arrow = _arrow(folder)
    state, info = _json(folder / STATE), _json(folder / INFO)
    names = [str(each.get("filename", "")) for each in state.get("_data_files") or [] if isinstance(each, dict)]
    if state.get("_indices_files") or not names or any(Path(name).name != name for name in names):
        raise TrainingError(f"{folder / STATE} does not name the files of a whole data set", hint="save it again: save_to_disk")
    digest, batches, schema, left = hashlib.sha256(), [], None, limit
    for name in names:
        content = content_of(folder / name, limit=left, most=f"{limit:,}", follow=False)
        left -= len(content)
        digest.update(hashlib.sha256(content).digest())
        with _refusals(folder / name, "file of Arrow"):
            reader = arrow.ipc.open_stream(arrow.BufferReader(content))
            if schema is not None and not schema.equals(reader.schema):
                raise TrainingError(f"{folder / name} has other columns than {names[0]}")
            schema = reader.schema
            batches += [*reader]
    assert schema is not None
    with _refusals(folder, "data set"):
        columns = _columns(folder, schema, iter(batches), limit)
    features = info.get("features")
    for column, feature in features.items() if isinstance(features, dict) else ():
        classes = feature.get("names") if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" else None
        if isinstance(classes, list) and column in columns:
            if not all(place is not None and 0 <= place < len(classes) for place in columns[column]):
                raise TrainingError(f"the column `{column}` of {folder} has a class that is not among its {len(classes)}")
            columns[column] = [str(classes[place]) for place in columns[column]]
    return columns, digest.hexdigest()


def _columns(path: Path, schema: Any, batches: Iterable[Any], limit: int) -> dict[str, Any]:
    """Return columns by name: numbers as arrays, all else as lists."""
    import pyarrow

    read, size = [], 0
    for batch in batches:
        size += batch.nbytes
        if size > limit:
            raise _too_large(path)
        read.append(batch)
    if len(set(schema.names)) < len(schema.names):
        raise TrainingError(f"{path} has two columns of one name: {', '.join(schema.names)[:60]}")
    table = pyarrow.Table.from_batches(read, schema)
    return {name: _values(table.column(name)) for name in table.column_names}


def _values(column: Any) -> Any:
    from pyarrow import types

    plain: tuple[Callable[[Any], bool], ...] = (types.is_integer, types.is_floating, types.is_boolean)
    if not column.null_count and any(test(column.type) for test in plain):
        return column.to_numpy()
    return column.to_pylist()


def _arrow(path: Path) -> Any:
    """Return the package.

    Raises:
        TrainingError: It is not installed.
    """
    if find_spec("pyarrow") is None:
        raise TrainingError(f"{path} needs pyarrow to be read", hint='pip install "arco-composer[arrow]"')
    import pyarrow
    import pyarrow.ipc

    return pyarrow


@contextmanager
def _refusals(path: Path, what: str) -> Iterator[None]:
    """Turn the errors of pyarrow into one that a user can fix."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, MemoryError) as error:
        raise TrainingError(f"{path} is no {what} that can be read: {(str(error).splitlines() or [''])[0][:80]}") from None


def _too_large(path: Path) -> TrainingError:
    message = f"{path} holds a larger table than the limit of bytes allows"
    return TrainingError(message, hint="raise the limit with --max-data-bytes, in Python `max_bytes`")


def _json(path: Path) -> Mapping[str, Any]:
    """Return the object in a file of JSON.

    Raises:
        TrainingError: It is none.
    """
    try:
        found = json.loads(content_of(path, limit=MAX_INFO, most=f"{MAX_INFO:,}", follow=False))
    except (ValueError, RecursionError) as error:
        if isinstance(error, TrainingError):
            raise
        raise TrainingError(f"{path} is not JSON") from None
    if not isinstance(found, dict):
        raise TrainingError(f"{path} is no object of JSON")
    return found
