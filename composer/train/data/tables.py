"""Tables to train on: CSV, TSV, JSON Lines, Parquet, NumPy arrays, IDX files, data sets that `datasets` saved, and folders of
images, one for each class.

A table has columns by name, and the same number of values in each.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from composer.atomic_files import StrPath
from composer.language.wording import counted
from composer.train.data.arrow_tables import PARQUET, dataset_columns, is_dataset, parquet_columns
from composer.train.data.documents import COMPRESSED_SUFFIXES, content_of, decoded, matching, resolved
from composer.train.errors import TrainingError
from composer.train.settings import MAX_DATA_BYTES

ColumnValues: TypeAlias = "Sequence[Any] | npt.NDArray[Any]"
"""The values of a column: texts, numbers, lists, or paths of images; or an array with a row for each."""

DELIMITERS = {".csv": ",", ".tsv": "\t"}
OTHER_DELIMITERS = ";\t|"
JSON_LINES = (".jsonl", ".ndjson")
ARRAYS = (".npz",)
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif")
IDX_DTYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
"""The types of the numbers in an IDX file, by the third byte of the file."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, from one or more files.

    Examples:
        >>> from pathlib import Path
        >>> from composer.train import read_table
        >>> written = Path("words.csv").write_text("word,language\\nthe,en\\nel,es\\n")
        >>> read_table(["words.csv"]).columns["word"]
        ['the', 'el']
    """

    paths: tuple[Path, ...]
    """Where it was read from, as given."""
    columns: Mapping[str, ColumnValues]
    sha256: str
    """Checksum of the content of its files."""
    places: Sequence[tuple[str, int]] = field(repr=False, default=())
    """The file and the line of each row; empty for arrays."""
    ends: tuple[int, ...] = field(repr=False, default=())
    """Where the rows of each of several tables end that are one below the other, such as series of one kind."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def name(self) -> str:
        """The path, and how many others there are."""
        return str(self.paths[0]) + (f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else "")

    def place(self, row: int) -> str:
        """Return where a row stands, for messages.

        Args:
            row: The number of the row, from 0.
        """
        if not self.places:
            return f"{self.name}, row {row}"
        file, line = self.places[row]
        return f"{file}, line {line}" if line else file


def is_table(source: StrPath, *, pairs: bool = False) -> bool:
    """Return whether a source of training data is a table rather than a text.

    Args:
        source: The path of a file or a folder.
        pairs: Whether a `.tsv` file has a pair of texts in each line, for translation, and no names of columns.
    """
    path = Path(source)
    suffix = suffix_of(path)
    if path.is_dir():
        return is_dataset(path) or any(True for _ in class_images(path))
    return (
        suffix in (*JSON_LINES, *ARRAYS, *PARQUET) or (suffix in DELIMITERS and not (pairs and suffix == ".tsv")) or is_idx(path)
    )


def suffix_of(path: Path) -> str:
    """Return the suffix of a path in lower case, without that of compression."""
    name = path.name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    return Path(name).suffix


def is_idx(path: Path) -> bool:
    """Return whether a path is named as the files of MNIST are: `train-images-idx3-ubyte`, `labels.idx`."""
    name = path.name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    return name.endswith((".idx", "-ubyte")) or (".idx" in name and name.endswith("ubyte"))


def class_images(folder: Path) -> list[Path]:
    """Return the images in the folders of a folder, sorted by class and name."""
    return [path for path in matching(folder, ("*", "*")) if path.suffix.lower() in IMAGE_SUFFIXES]


def read_table(sources: Sequence[StrPath], *, max_bytes: int = MAX_DATA_BYTES) -> Table:
    """Return the table in some files: one below the other with the same columns, side by side with different ones.

    The first line of a CSV or TSV file names its columns, separated by commas or tabs, or else by semicolons or bars; a line
    of a JSON Lines file is an object with the same keys as all others. In an `.npz` file, each array is a column. An IDX file
    with one number per row is the column `label`, another one the column `image`. A folder of folders with images has the
    columns `image`, paths, and `label`, the names of the folders. Files may be compressed with gzip. A Parquet file, and a
    folder that `datasets` of Hugging Face saved with `save_to_disk`, have the columns that they name, and need pyarrow.

    Args:
        sources: The paths, of which at least one.
        max_bytes: The largest size of all files together, decompressed, without images.

    Raises:
        TrainingError: A file cannot be read, has another form, or does not fit the others.

    Examples:
        >>> from pathlib import Path
        >>> from composer.train import read_table
        >>> written = Path("iris.csv").write_text("length,species\\n5.1,setosa\\n7.0,versicolor\\n")
        >>> table = read_table(["iris.csv"])
        >>> len(table), [*table.columns]
        (2, ['length', 'species'])
    """
    tables: list[Table] = []
    seen: set[Path] = set()
    left = max_bytes
    for source in map(Path, sources):
        if (whole := resolved(source)) in seen:
            continue
        seen.add(whole)
        if source.is_dir() and is_dataset(source):
            columns, sha256 = dataset_columns(source, limit=left)
            tables.append(with_rows(Table((source,), columns, sha256)))
            left -= sum(map(size_of, columns.values()))
            continue
        if source.is_dir():
            tables.append(read_class_folders(source))
            continue
        content = content_of(source, limit=left, most=f"{max_bytes:,}", several=left < max_bytes)
        left -= len(content)
        tables.append(parsed(source, content, limit=max_bytes))
    return joined(tables)


def size_of(values: ColumnValues) -> int:
    """Return about how many bytes the values of a column take."""
    return int(values.nbytes) if isinstance(values, np.ndarray) else sum(len(str(value)) for value in values)


def with_rows(table: Table) -> Table:
    """Return a table, unless it has no rows.

    Raises:
        TrainingError: It has none.
    """
    if not table.columns or not len(table):
        raise TrainingError(f"{table.name} has no rows")
    return table


def parsed(path: Path, content: bytes, *, limit: int) -> Table:
    """Return the table in the content of a file, of at most `limit` bytes in memory if it is compressed in itself."""
    suffix = suffix_of(path)
    columns: Mapping[str, ColumnValues]
    lines: list[int] = []
    if is_idx(path):
        columns = idx_columns(path, content)
    elif suffix in PARQUET:
        columns = parquet_columns(path, content, limit=limit)
    elif suffix in ARRAYS:
        columns = array_columns(path, content)
    elif suffix in DELIMITERS:
        columns, lines = delimited_columns(path, decoded(content, path), DELIMITERS[suffix])
    elif suffix in JSON_LINES:
        columns, lines = json_columns(path, decoded(content, path))
    else:
        known = ", ".join((*DELIMITERS, *JSON_LINES, *PARQUET, *ARRAYS))
        raise TrainingError(f"{path} is no table", hint=f"tables are files that end in {known}, IDX files and folders of images")
    return with_rows(Table((path,), columns, hashlib.sha256(content).hexdigest(), [(str(path), line) for line in lines]))


def joined(tables: Sequence[Table]) -> Table:
    """Return several tables as one."""
    first, *others = tables
    if not others:
        return first
    paths = tuple(path for table in tables for path in table.paths)
    sums = hashlib.sha256("\n".join(table.sha256 for table in tables).encode("ascii")).hexdigest()
    if all(table.columns.keys() == first.columns.keys() for table in others):
        below = {name: stacked([table.columns[name] for table in tables]) for name in first.columns}
        places = [place for table in tables for place in table.places] if all(table.places for table in tables) else []
        return Table(paths, below, sums, places, tuple(accumulate(map(len, tables))))
    columns: dict[str, ColumnValues] = {}
    for table in tables:
        for name, cells in table.columns.items():
            if name in columns or len(cells) != len(first):
                here = f"{table.name} has {counted(len(cells), 'row')} and the columns {', '.join(table.columns)}"
                raise TrainingError(
                    f"{here}; {first.name} has {counted(len(first), 'row')} and the columns {', '.join(first.columns)}",
                    hint="files with the same columns are put one below the other, files with as many rows and different "
                    "columns side by side",
                )
            columns[name] = cells
    return Table(paths, columns, sums, first.places)


def stacked(parts: Sequence[ColumnValues]) -> ColumnValues:
    """Return the values of columns one below the other."""
    if all(isinstance(part, np.ndarray) for part in parts) and len({part.shape[1:] for part in parts}) == 1:  # type: ignore[union-attr]  # arrays
        return np.concatenate(parts)
    return [value for part in parts for value in part]


def delimited_columns(path: Path, text: str, delimiter: str) -> tuple[dict[str, list[Any]], list[int]]:
    """Return the columns of a CSV or TSV file, and the line in which each row ends.

    Args:
        path: The file, for errors.
        text: Its content.
        delimiter: What separates values; if the first line has none, a semicolon, a tab or a bar does that it has, as where the
            comma is that of decimals.
    """
    first = text.partition("\n")[0]
    delimiter = next((each for each in (delimiter, *OTHER_DELIMITERS) if each in first), delimiter)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    columns: dict[str, list[Any]] = {}
    lines: list[int] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        if not text.strip():
            raise TrainingError(f"{path} is empty")
        if not all(header) or len(set(header)) < len(header) or not header:
            raise TrainingError(
                f"{path}, line 1 does not name the columns, each by a name of its own: {', '.join(header)[:60]!r}"
            )
        columns = {name: [] for name in header}
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise TrainingError(
                    f"{path}, line {reader.line_num} has {counted(len(row), 'value')}; "
                    f"line 1 names {counted(len(header), 'column')}"
                )
            for name, cell in zip(header, row, strict=True):
                columns[name].append(cell)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise TrainingError(f"{path}, line {reader.line_num}: {error}", hint="JSON Lines has no limits of this kind") from None
    return columns, lines


def json_columns(path: Path, text: str) -> tuple[dict[str, list[Any]], list[int]]:
    """Return the columns of a JSON Lines file, and the line of each row."""
    columns: dict[str, list[Any]] = {}
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise TrainingError(f"{path}, line {number} is not JSON: {line.strip()[:40]!r}") from None
        if not isinstance(row, dict):
            raise TrainingError(f"{path}, line {number} is no object: {line.strip()[:40]!r}")
        if not lines:
            columns = {name: [] for name in row}
        if row.keys() != columns.keys():
            different = sorted(row.keys() ^ columns.keys())
            raise TrainingError(
                f"{path}, line {number} {'lacks' if different[0] in columns else 'also has'} the key {different[0]!r}",
                hint="all lines need the same keys",
            )
        for name, value in row.items():
            columns[name].append(value)
        lines.append(number)
    return columns, lines


def array_columns(path: Path, content: bytes) -> dict[str, ColumnValues]:
    """Return the arrays of an `.npz` file, none of which is unpickled."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            columns: dict[str, ColumnValues] = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise TrainingError(f"{path} is no file of arrays: {str(error).splitlines()[0][:80]}") from None
    for name, array in columns.items():
        if not np.ndim(array) or len(array) != len(next(iter(columns.values()))):
            raise TrainingError(
                f"{path}: the array `{name}` has the shape {list(np.shape(array))}, not a row for each of {next(iter(columns))!r}"
            )
    return columns


def idx_columns(path: Path, content: bytes) -> dict[str, ColumnValues]:
    """Return the array of an IDX file (LeCun, MNIST) as the column `image`, or `label` if it has one number per row."""
    dtype = IDX_DTYPES.get(content[2]) if content[:2] == b"\0\0" and len(content) >= 4 else None
    axes = content[3] if dtype else 0
    if dtype is None or not axes or len(content) < 4 + 4 * axes:
        raise TrainingError(f"{path} is no IDX file: it begins with {content[:4].hex(' ')}")
    shape = np.frombuffer(content, ">u4", axes, 4).tolist()
    needed = 4 + 4 * axes + math.prod(shape) * np.dtype(dtype).itemsize
    if len(content) != needed:
        raise TrainingError(f"{path} has {len(content):,} bytes; an array of {shape} has {needed:,}")
    values = np.frombuffer(content, dtype, offset=4 + 4 * axes).reshape(shape)
    return {"label" if axes == 1 else "image": values.astype(np.dtype(dtype).newbyteorder("="))}


def read_class_folders(folder: Path) -> Table:
    """Return the images in the folders of a folder: their paths, and the names of their folders."""
    images = class_images(folder)
    digest = hashlib.sha256()
    for path in images:
        content = content_of(path, limit=MAX_DATA_BYTES, most=f"{MAX_DATA_BYTES:,}", follow=False)
        digest.update(f"{path.relative_to(folder).as_posix()} {hashlib.sha256(content).hexdigest()}\n".encode())
    if not images:
        raise TrainingError(
            f"{folder} has no folders with images", hint=f"images end in {', '.join(IMAGE_SUFFIXES)}; each class is a folder"
        )
    columns: dict[str, ColumnValues] = {"image": images, "label": [path.parent.name for path in images]}
    return Table((folder,), columns, digest.hexdigest(), [(str(path), 0) for path in images])
