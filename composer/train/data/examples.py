"""Rows of a table as examples: their values as numbers and tokens, a tenth of them held out, and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from composer.graph.alignments import alignments
from composer.graph.dims import Dim
from composer.graph.typed import TypedProgram
from composer.language.tasks import TASKS
from composer.language.wording import counted
from composer.train.data.fields import BatchField, FieldKind, fields_of
from composer.train.data.forecasting.series import ForecastSeries
from composer.train.data.images import centered, file_shape, read_image
from composer.train.data.marks import BLANK, END, START
from composer.train.data.order import drawn_by_weight
from composer.train.data.prefixes import prefix_input
from composer.train.data.speech.recordings import recording_length
from composer.train.data.speech.transcripts import (
    check_blank,
    check_known,
    is_transcript,
    names_recordings,
    recordings,
    too_short,
)
from composer.train.data.tables import ColumnValues, Table
from composer.train.data.text import TextData
from composer.train.data.tokenizers import MarkedTokenizer, PiecesTokenizer, Tokenizer
from composer.train.errors import TrainingError
from composer.train.losses import IGNORED, Batch
from composer.train.settings import TrainSettings

EVERY = 10
"""One of so many rows is held out."""
Rows = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int64]
Values = Callable[[Rows], dict[str, Tensor]]
"""The entries of a batch of rows."""


@dataclass(frozen=True, eq=False)
class ExampleData:
    """Examples from the rows of a table, of which every tenth is held out."""

    path: Path
    sha256: str
    """Checksum of the table; it must be the same when a run is resumed."""
    train: Rows
    """The rows to train on."""
    validation: Rows
    """The rows that are held out."""
    values: tuple[Values, ...]
    labels: Mapping[str, tuple[str, ...]]
    """For each entry that is the number of a class, the names of the classes."""
    left_out: int = 0
    """How many rows have more tokens than a sequence."""
    cut: int = 0
    """How many rows have a text that is cut to the length of a sequence."""
    more_paths: tuple[Path, ...] = ()
    """The paths after the first, if the table was read from several."""
    too_short: tuple[str, ...] = ()
    """Where the rows stand that have fewer frames than their transcripts need, which are left out too."""
    sources: tuple[int, ...] = ()
    """How many rows are trained on of each of the tables that are one below the other; empty if they are side by side."""
    mixture: tuple[tuple[int, float], ...] = ()
    """For each table, in order, how many of its rows are trained on and its weight, the share of the rows that are drawn from it,
    up to a factor; empty if all rows are equally likely."""
    series: ForecastSeries | None = None
    """What is forecast, if the examples are windows of series, whose numbers are those of their first rows; None for rows."""

    @property
    def weights(self) -> list[float]:
        """The weight of each table; none if all rows are equally likely."""
        return [weight for _, weight in self.mixture]

    @property
    def name(self) -> str:
        """The path, and how many others there are."""
        return f"{self.path} and {len(self.more_paths)} more" if self.more_paths else str(self.path)

    def batch(self, rows: Rows) -> Batch:
        """Return some of the rows as a batch.

        Args:
            rows: The numbers of the rows.
        """
        found: dict[str, Tensor] = {}
        for values in self.values:
            found |= values(rows)
        return found


@dataclass(frozen=True)
class Examples:
    """Learn from examples: each batch has rows of a table, drawn at random, or of several tables by their weights."""

    windows: ClassVar[bool] = False

    def check(self, data: ExampleData, seq_len: int) -> None:
        """Raise `TrainingError` if there are too few rows.

        Args:
            data: The examples.
            seq_len: Length of a sequence; texts were cut to it when they were read.
        """
        if not len(data.train) or not len(data.validation):
            lost = f", and {counted(data.left_out, 'row')} more than {seq_len} tokens" if data.left_out else ""
            if data.too_short:
                lost += f", and {counted(len(data.too_short), 'row')} fewer frames than the transcript needs"
            rows = counted(len(data.train) + len(data.validation), "row")
            raise TrainingError(
                f"{data.name} has {rows} to learn from{lost}; there must be {EVERY} at least, to hold one out",
                hint="use more rows" + (" or a longer sequence length" if data.left_out else ""),
            )

    def draw(self, data: ExampleData, *, batch_size: int, seq_len: int, generator: torch.Generator) -> Batch:
        """Return a batch of random rows.

        Args:
            data: The examples.
            batch_size: Number of rows.
            seq_len: Length of a sequence; texts were cut to it when they were read.
            generator: The generator of the rows.
        """
        if data.mixture:
            stops = np.cumsum([count for count, _ in data.mixture])
            return data.batch(data.train[drawn_by_weight(stops, data.weights, batch_size, generator)])
        return data.batch(data.train[torch.randint(len(data.train), (batch_size,), generator=generator).numpy()])

    def held_out(self, data: ExampleData, *, batch_size: int, seq_len: int) -> Iterator[Batch]:
        """Yield the rows that are held out, in their order.

        Args:
            data: The examples.
            batch_size: Number of rows in a batch.
            seq_len: Length of a sequence; texts were cut to it when they were read.
        """
        for first in range(0, len(data.validation), batch_size):
            yield data.batch(data.validation[first : first + batch_size])

    def whole(self, data: ExampleData) -> int | None:
        """Return None: no text is predicted whole.

        Args:
            data: The examples.
        """
        return None


def rows_by_table(table: Table, rows: Rows) -> tuple[int, ...]:
    """Return how many of some rows, in their order, are of each of the tables that are one below the other; nothing of those that
    are side by side.
    """
    if len(table.paths) > 1 and not table.ends:
        return ()
    stops = np.searchsorted(rows, table.ends or (len(table),))
    return tuple(np.diff(stops, prepend=0).tolist())


TrainingData: TypeAlias = TextData | ExampleData


def text_of(table: Table, fields: Sequence[BatchField]) -> str:
    """Return all texts of a table, a line each, to learn a tokenizer from; nothing if there are none.

    Args:
        table: The table.
        fields: What is made from it.
    """
    texts: list[str] = []
    for field in fields:
        if field.kind is FieldKind.TEXT:
            for column in field.columns:
                texts += (text_at(table, column, row) for row in range(len(table)))
    return "\n".join(texts)


def text_at(table: Table, column: str, row: int) -> str:
    """Return the text in a cell, or its words with spaces between them."""
    value = table.columns[column][row]
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return " ".join(value)
    if not isinstance(value, str) or not value.strip():
        shown = (
            "empty" if value in (None, "", []) or (isinstance(value, str) and not value.strip()) else f"no text: {value!r:.40}"
        )
        raise TrainingError(f"{table.place(row)}: the column `{column}` is {shown}")
    return value


def words_of(table: Table, column: str, row: int) -> list[str]:
    """Return the words in a cell: a list of them, or a text that spaces divide."""
    value = table.columns[column][row]
    if isinstance(value, list) and value and all(isinstance(one, str | int) for one in value):
        return [str(one) for one in value]
    return text_at(table, column, row).split()


def classes_of(table: Table, field: BatchField) -> list[list[str]]:
    """Return the names of the classes in each row: one, or one for each word."""
    column = field.columns[0]
    if field.kind is FieldKind.TAGS:
        return [words_of(table, column, row) for row in range(len(table))]
    cells = table.columns[column]
    for row in range(len(table)):
        if cells[row] is None or isinstance(cells[row], list | dict) or not str(cells[row]).strip():
            raise TrainingError(f"{table.place(row)}: the column `{column}` has no class: {cells[row]!r:.40}")
    return [[str(cells[row]).strip()] for row in range(len(table))]


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of classes, each once, in the order of numbers, else of the alphabet."""
    return tuple(sorted(set(names), key=lambda name: (0, int(name), name) if name.isdecimal() else (1, 0, name)))


def marks_of(program: TypedProgram) -> tuple[str, ...]:
    """Return the special tokens that examples for a model need."""
    if alignments(program):
        return (BLANK,)
    task = program.untyped.recipe.task
    if not task or not TASKS[task].text:
        return ()
    return (END,) if TASKS[task].continues else (START, END)


def examples_of(
    table: Table,
    program: TypedProgram,
    tokenizer: Tokenizer,
    *,
    columns: Sequence[str] = (),
    seq_len: int,
    labels: Mapping[str, Sequence[str]] | None = None,
    unseen: bool = False,
    sample_rate: int = TrainSettings.sample_rate,
) -> ExampleData:
    """Return the rows of a table as examples for a model, of which every tenth is held out.

    A text of several tokens more than a sequence is cut if it is classified or embedded; if all of it is to be told or labeled,
    its row is left out. So is a recording that has fewer frames than its transcript needs.

    Args:
        table: The table.
        program: The model's graph, `Recipe.program`.
        tokenizer: The tokenizer of texts, with the special tokens of the task.
        columns: `NAME=COLUMN` for each entry of a batch whose column has another name.
        seq_len: The largest number of tokens.
        labels: The names of classes for each entry that has some, if a trained model numbers them; by default those of the table.
        unseen: Whether all rows are held out, to evaluate a model on them.
        sample_rate: How many samples a second of a recording must have.

    Raises:
        TrainingError: A column is missing, or a value cannot be read or does not fit the model.
    """
    fields = fields_of(program, table.columns, columns, source=table.name)
    return _Reader(table, program, tokenizer, fields, seq_len, labels or {}, sample_rate).data(unseen=unseen)


class _Reader:
    def __init__(
        self,
        table: Table,
        program: TypedProgram,
        tokenizer: Tokenizer,
        fields: Sequence[BatchField],
        seq_len: int,
        known: Mapping[str, Sequence[str]],
        sample_rate: int,
    ) -> None:
        self.table, self.program, self.tokenizer, self.fields, self.seq_len = table, program, tokenizer, fields, seq_len
        self.task = program.untyped.recipe.task or None
        self.written = TASKS[self.task].text if self.task else ""
        self.continues = self.task is not None and TASKS[self.task].continues
        self.known, self.sample_rate = known, sample_rate
        self.labels: dict[str, tuple[str, ...]] = {}
        self.fits = np.ones(len(table), dtype=bool)
        self.cut = np.zeros(len(table), dtype=bool)
        self.transcripts: dict[str, list[list[int]]] = {}
        self.lengths: dict[Dim, list[int]] = {}

    def data(self, *, unseen: bool) -> ExampleData:
        values = [self._values(field) for field in self.fields if field.kind is not FieldKind.TAGS]
        values += [self._tags(field) for field in self.fields if field.kind is FieldKind.TAGS]
        left_out = int((~self.fits).sum())
        short = self.fits & np.array(too_short(self.program, self.transcripts, self.lengths) or [False] * len(self.table))
        kept = np.flatnonzero(self.fits & ~short)
        held = (np.arange(len(kept)) % EVERY == EVERY - 1) | unseen
        first, *more = self.table.paths
        return ExampleData(
            first,
            self.table.sha256,
            kept[~held],
            kept[held],
            tuple(values),
            self.labels,
            left_out,
            int(self.cut.sum()),
            tuple(more),
            tuple(map(self.table.place, np.flatnonzero(short).tolist())),
            sources=rows_by_table(self.table, kept[~held]),
        )

    def _values(self, field: BatchField) -> Values:
        match field.kind:
            case FieldKind.TEXT:
                return self._text(field)
            case FieldKind.CLASS:
                return self._classes(field)
            case FieldKind.IMAGE:
                return self._images(field)
            case FieldKind.RECORDING if names_recordings(self.table.columns[field.columns[0]]):
                return self._recordings(field)
            case _:
                return self._numbers(field)

    # Texts

    def _text(self, field: BatchField) -> Values:
        if any(self.tagged_by(field)):
            return lambda rows: {}  # with its tags
        if is_transcript(self.program, field.name):
            return self._transcript(field)
        encode = self.tokenizer.encode if self.written or len(field.columns) > 1 else encoder_of_wholes(self.tokenizer)
        tokens = [[self._encoded(encode, column, row) for column in field.columns] for row in range(len(self.table))]
        if field.name == self.written:
            return self._written(field, tokens)
        rows_ = [[token for part in parts for token in part] for parts in tokens]
        if self.task is not None and self.written:  # what is told depends on all of the source
            end = self._mark(END)
            rows_ = [[*row, end] for row in rows_]
            self._keep(rows_)
        else:
            self.cut |= np.array([len(row) > self.seq_len for row in rows_])
            ends = () if encode == self.tokenizer.encode else encode("")[-1:]  # a text that is cut ends as a whole one does
            rows_ = [row if len(row) <= self.seq_len else [*row[: self.seq_len - len(ends)], *ends] for row in rows_]
        return padded({field.name: rows_}, {field.name: 0}, self._padding(field.name, rows_))

    def _written(self, field: BatchField, tokens: Sequence[Sequence[list[int]]]) -> Values:
        """Return the text that a model writes, and the token that follows each; of a prompt and an answer, only in the answer."""
        end = self._mark(END)
        begin = [] if self.continues else [self._mark(START)]
        asked = [sum(map(len, parts[:-1])) for parts in tokens]  # the tokens that are given
        whole = [[*begin, *(token for part in parts for token in part), end] for parts in tokens]
        read = [row[:-1] for row in whole]
        targets = [[IGNORED] * max(given - 1, 0) + row[1:][max(given - 1, 0) :] for given, row in zip(asked, whole, strict=True)]
        self._keep(read)
        valid = self._padding(field.name, read) if "valid" in self.program.inputs else None
        batch = padded({field.name: read, "targets": targets}, {field.name: 0, "targets": IGNORED}, valid)
        prefix = prefix_input(self.program) if self.continues and len(field.columns) > 1 else None
        if prefix is None or any(each.name == prefix for each in self.fields):
            return batch
        lengths = torch.tensor(asked)  # of the prompts, whose tokens see each other
        return lambda rows: {**batch(rows), prefix: lengths[torch.from_numpy(rows)]}

    def _transcript(self, field: BatchField) -> Values:
        """Return a text that is aligned with frames, whose tokens end where none is asked for."""
        for each in alignments(self.program):
            check_blank(each, self.tokenizer)

        def encode(text: str) -> list[int]:
            tokens = self.tokenizer.encode(text)
            check_known(tokens, self.tokenizer, text)
            return tokens

        rows = [self._encoded(encode, field.columns[0], row) for row in range(len(self.table))]
        self._keep(rows)
        self.transcripts[field.name] = rows
        flags = f"{field.name}_valid"
        return padded({field.name: rows}, {field.name: IGNORED}, flags if flags in self.program.inputs else None)

    def _encoded(self, encode: Callable[[str], list[int]], column: str, row: int) -> list[int]:
        text = text_at(self.table, column, row)
        try:
            return encode(text)
        except TrainingError as error:
            raise TrainingError(f"{self.table.place(row)}: {error}", hint=error.hint) from None

    def tagged_by(self, field: BatchField) -> Iterator[BatchField]:
        """Yield the tags of a text: the words of the text that the task reads have them."""
        if self.task == "token_classification" and field.name in TASKS[self.task].inputs:
            yield from (each for each in self.fields if each.kind is FieldKind.TAGS)

    def _tags(self, field: BatchField) -> Values:
        """Return a text whose words have tags: the first token of each has its tag, the others have none."""
        (text,) = (
            each for each in self.fields if any(each.kind is FieldKind.TEXT and tags is field for tags in self.tagged_by(each))
        )
        said = [words_of(self.table, text.columns[0], row) for row in range(len(self.table))]
        tags = classes_of(self.table, field)
        number = self._numbered(field.name, [tag for row in tags for tag in row])
        read: list[list[int]] = []
        targets: list[list[int]] = []
        for row, (words, labels) in enumerate(zip(said, tags, strict=True)):
            if len(words) != len(labels):
                raise TrainingError(
                    f"{self.table.place(row)}: `{text.columns[0]}` has {counted(len(words), 'word')}, and "
                    f"`{field.columns[0]}` {counted(len(labels), 'tag')}"
                )
            pieces = [self.tokenizer.encode(word if not place else f" {word}") for place, word in enumerate(words)]
            read.append([token for piece in pieces for token in piece])
            tagged = zip(pieces, labels, strict=True)
            targets.append([one for piece, tag in tagged for one in (number[tag], *[IGNORED] * (len(piece) - 1))])
        self._keep(read)
        return padded({text.name: read, field.name: targets}, {text.name: 0, field.name: IGNORED}, self._padding(text.name, read))

    def _keep(self, rows: Sequence[Sequence[int]]) -> None:
        """Leave out the rows with more tokens than a sequence."""
        self.fits &= np.array([len(row) <= self.seq_len for row in rows])

    def _padding(self, name: str, rows: Sequence[Sequence[int] | range]) -> str | None:
        """Return the input that tells real tokens or samples from padding; None if no padding is needed."""
        own = f"{name}_valid"
        if own in self.program.inputs or name == "source":
            return own
        kinds = (FieldKind.TEXT, FieldKind.RECORDING)
        texts = [each.name for each in self.fields if each.kind in kinds and not is_transcript(self.program, each.name)]
        texts = [text for text in texts if text != "source"]
        unequal = len({len(row) for row in rows}) > 1
        if len(texts) == 1:
            return "valid" if unequal or "valid" in self.program.inputs else None
        return own if unequal else None

    def _mark(self, name: str) -> int:
        if not isinstance(self.tokenizer, MarkedTokenizer) or name not in self.tokenizer.marks:
            raise TrainingError(f"the tokenizer has no token {name}", hint="wrap it: composer.train.MarkedTokenizer")
        return self.tokenizer.mark(name)

    # Classes and numbers

    def _classes(self, field: BatchField) -> Values:
        names = [name for (name,) in classes_of(self.table, field)]
        number = self._numbered(field.name, names)
        found = torch.tensor([number[name] for name in names])
        return lambda rows: {field.name: found[torch.from_numpy(rows)]}

    def _numbered(self, entry: str, names: Sequence[str]) -> dict[str, int]:
        """Return the number of each class, and keep their names."""
        self.labels[entry] = tuple(self.known.get(entry, ())) or in_order(names)
        if unknown := sorted({*names} - {*self.labels[entry]}):
            raise TrainingError(
                f"{self.table.name} has the class {unknown[0]!r}, which is none of those that the model knows for `{entry}`: "
                f"{', '.join(self.labels[entry][:8])}{', …' if len(self.labels[entry]) > 8 else ''}"
            )
        return {name: place for place, name in enumerate(self.labels[entry])}

    def _numbers(self, field: BatchField) -> Values:
        assert field.type is not None
        parts = [self._column(field, column) for column in field.columns]
        array = parts[0] if len(parts) == 1 else np.stack(parts, axis=-1)
        expected = field.type.sizes[1:]
        if array.ndim == 1 and len(expected) == 1:
            array = array[:, None]
        self._check_shape(field, array)
        dtype = {"float": torch.float32, "int": torch.int64, "bool": torch.bool}[field.type.dtype]
        tensor = torch.from_numpy(np.ascontiguousarray(array)).to(dtype)
        return lambda rows: {field.name: tensor[torch.from_numpy(rows)]}

    def _check_shape(self, field: BatchField, array: npt.NDArray[Any]) -> None:
        assert field.type is not None
        sizes = field.type.sizes[1:]
        shape = array.shape[1:]
        fits = len(sizes) == len(shape) and all(not isinstance(a, int) or a == b for a, b in zip(sizes, shape, strict=True))
        if not fits:
            columns = counted(len(field.columns), "column")
            raise TrainingError(
                f"the model reads {field}, and {columns} of {self.table.name} ({', '.join(field.columns[:4])}"
                f"{', …' if len(field.columns) > 4 else ''}) give {['batch', *shape]}".replace("'batch'", "batch")
            )

    def _check_finite(self, column: str, array: npt.NDArray[Any]) -> None:
        """Raise `TrainingError` with the row of the first number that is not finite as a float32."""
        if array.dtype.kind != "f":
            return
        for start in range(0, len(array), CHECKED):  # no flags for all of a large array at once
            fine = np.abs(array[start : start + CHECKED].astype(np.float64)) <= LARGEST  # false of NaN
            if not fine.all():
                row, *rest = (int(place) for place in np.argwhere(~fine)[0])
                value = array[(start + row, *rest)]
                what = "a number that is too large" if np.isfinite(value) else "no finite number"
                raise TrainingError(f"{self.table.place(start + row)}: the column `{column}` has {what}: {value}")

    def _column(self, field: BatchField, column: str) -> npt.NDArray[Any]:
        """Return the numbers of a column, [N, …]; categories that are not numbers are numbered."""
        assert field.type is not None
        cells = self.table.columns[column]
        if isinstance(cells, np.ndarray) and cells.dtype.kind in "iufb":
            wanted = {"float": "iuf", "int": "iu", "bool": "b"}[field.type.dtype]
            if cells.dtype.kind not in wanted:
                raise TrainingError(f"the model reads {field}, and `{column}` of {self.table.name} is an array of {cells.dtype}")
            self._check_finite(column, cells)
            return centered(cells) if field.type.dtype == "float" and cells.dtype == np.uint8 else cells
        read = {"float": a_float, "int": an_int, "bool": a_bool}[field.type.dtype]
        if field.type.dtype == "int" and not all(is_whole(cells[row]) for row in range(len(self.table))):
            return self._categories(field, column, cells)
        rows = [self._read(read, field, column, row, cells[row]) for row in range(len(self.table))]
        if len({np.shape(row) for row in rows}) > 1:
            lengths = sorted({np.shape(row) for row in rows})
            raise TrainingError(f"the rows of `{column}` in {self.table.name} have unequal shapes: {lengths[0]}, {lengths[-1]}")
        return np.array(rows)

    def _categories(self, field: BatchField, column: str, cells: ColumnValues) -> npt.NDArray[Any]:
        names = []
        for row in range(len(self.table)):
            value = cells[row]
            if value is None or isinstance(value, list | dict) or not str(value).strip():
                raise TrainingError(f"{self.table.place(row)}: the column `{column}` has no category: {value!r:.40}")
            names.append(str(value))
        number = self._numbered(column if len(field.columns) > 1 else field.name, names)
        return np.array([number[name] for name in names])

    def _read(self, read: Callable[[object], float], field: BatchField, column: str, row: int, value: object) -> Any:
        """Return the numbers in a cell: one, or lists of them."""
        try:
            if isinstance(value, list):
                if not value:
                    raise ValueError
                return [self._read(read, field, column, row, one) for one in value]
            return read(value)
        except TrainingError:
            raise  # of a number in the list
        except OverflowError:
            message = f"{self.table.place(row)}: the column `{column}` has a number that is too large: {value!r:.40}"
            raise TrainingError(message) from None
        except (ValueError, TypeError):
            kind = {"float": "number", "int": "whole number", "bool": "truth value"}[field.type.dtype] if field.type else "number"
            shown = "is empty" if value in (None, "") else f"is no {kind}: {value!r:.40}"
            raise TrainingError(f"{self.table.place(row)}: the column `{column}` {shown}") from None

    # Recordings and images

    def _recordings(self, field: BatchField) -> Values:
        column = field.columns[0]
        cells = self.table.columns[column]
        paths = [self._path(column, row, cells[row], "recording") for row in range(len(self.table))]
        lengths = [self._length(path, row) for row, path in enumerate(paths)]
        flags = self._padding(field.name, [range(length) for length in lengths])
        assert field.type is not None
        self.lengths[field.type.sizes[1]] = lengths

        def batch(rows: Rows) -> dict[str, Tensor]:
            samples, real = recordings(paths, rows.tolist(), self.sample_rate)
            return {field.name: samples, **({} if flags is None else {flags: real})}

        return batch

    def _length(self, path: Path, row: int) -> int:
        try:
            return recording_length(path, self.sample_rate)
        except TrainingError as error:
            raise TrainingError(f"{self.table.place(row)}: {error}", hint=error.hint) from None

    def _images(self, field: BatchField) -> Values:
        assert field.type is not None
        column = field.columns[0]
        cells = self.table.columns[column]
        if isinstance(cells, np.ndarray):
            array = cells[:, None] if cells.ndim == 3 else cells  # gray images without an axis of channels
            self._check_shape(field, array)
            if array.dtype.kind not in "uif":
                raise TrainingError(f"`{column}` of {self.table.name} is an array of {array.dtype}, not of pixels")
            self._check_finite(column, array)
            return lambda rows: {field.name: torch.from_numpy(centered(array[rows]).astype(np.float32))}
        paths = [self._path(column, row, cells[row], "image") for row in range(len(self.table))]
        shape = file_shape(field.type.sizes[1:], paths)
        if shape is None:
            raise TrainingError(f"the model reads {field}, of which the recipe leaves the number of channels open")
        read_image(paths[0], shape)  # what is missing is told before anything is trained
        return lambda rows: {field.name: torch.from_numpy(np.stack([read_image(paths[row], shape) for row in rows.tolist()]))}

    def _path(self, column: str, row: int, value: object, what: str) -> Path:
        if isinstance(value, Path):
            return value
        if not isinstance(value, str) or not value.strip():
            raise TrainingError(f"{self.table.place(row)}: the column `{column}` names no {what}: {value!r:.40}")
        file = Path(self.table.places[row][0]) if self.table.places else self.table.paths[0]
        found = file.parent / value.strip()  # beside the table, unless it begins at the root
        if not found.is_file():
            raise TrainingError(f"{self.table.place(row)}: there is no {what} {found}")
        return found


def padded(rows: Mapping[str, Sequence[Sequence[int]]], filling: Mapping[str, int], valid: str | None) -> Values:
    """Return rows of unequal length as padded entries of a batch, and which positions of the first are real."""
    arrays = {name: [np.array(row, dtype=np.int64) for row in each] for name, each in rows.items()}

    def batch(chosen: Rows) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for name, each in arrays.items():
            parts = [each[row] for row in chosen.tolist()]
            whole = np.full((len(parts), max(map(len, parts))), filling[name], dtype=np.int64)
            for place, part in enumerate(parts):
                whole[place, : len(part)] = part
            found[name] = torch.from_numpy(whole)
            if valid is not None and valid not in found:
                lengths = np.array([len(part) for part in parts])
                found[valid] = torch.from_numpy(np.arange(whole.shape[1]) < lengths[:, None])
        return found

    return batch


LARGEST = float(np.finfo(np.float32).max)
"""The largest number that a model reads."""
CHECKED = 1024
"""Rows of an array that are looked at together."""


def a_float(value: object) -> float:
    """Return a finite number that a cell writes.

    Raises:
        ValueError: It writes none.
        OverflowError: It is larger than float32 holds.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError
    number = float(value)
    if not np.isfinite(number):
        raise ValueError
    if abs(number) > LARGEST:
        raise OverflowError
    return number


def an_int(value: object) -> int:
    """Return a whole number that a cell writes.

    Raises:
        ValueError: It writes none.
        OverflowError: It has more than 64 bits.
    """
    if not is_whole(value):
        raise ValueError
    number: int = int(value)  # type: ignore[call-overload]  # is_whole
    if not -(2**63) <= number < 2**63:
        raise OverflowError
    return number


def a_bool(value: object) -> bool:
    """Return a truth value that a cell writes.

    Raises:
        ValueError: It writes none.
    """
    known = {"true": True, "false": False, "1": True, "0": False}
    word = str(value).strip().lower()
    if word not in known:
        raise ValueError
    return known[word]


def is_whole(value: object) -> bool:
    """Return whether a cell writes a whole number, or lists of them."""
    if isinstance(value, list):
        return bool(value) and all(is_whole(one) for one in value)
    if isinstance(value, str):
        return value.strip().removeprefix("-").isdecimal()
    return isinstance(value, int) and not isinstance(value, bool)


def shape_in(table: Table, field: BatchField) -> tuple[int, ...] | None:
    """Return the shape that a row of a table has for a field of numbers or pixels; None for texts, classes and image files."""
    if field.kind not in (FieldKind.NUMBERS, FieldKind.IMAGE) or field.type is None:
        return None
    first = table.columns[field.columns[0]]
    if isinstance(first, np.ndarray):
        shape = first.shape[1:]
        shape = (1, *shape) if field.kind is FieldKind.IMAGE and len(shape) == 2 else shape
    elif field.kind is FieldKind.IMAGE:
        return None
    else:
        shape = np.shape(first[0]) if isinstance(first[0], list) else ()
    if len(field.columns) > 1:
        shape = (*shape, len(field.columns))
    return (1,) if shape == () and len(field.type.axes) == 2 else tuple(map(int, shape))


def encoder_of_wholes(tokenizer: Tokenizer) -> Callable[[str], list[int]]:
    """Return what encodes a whole text, as one to be classified: with the special tokens around it that a published tokenizer
    adds.
    """
    text = tokenizer.text if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    return text.encode_whole if isinstance(text, PiecesTokenizer) else tokenizer.encode
