"""Texts as tokens, each split into training text and held-out text, and as batches of windows, none of which crosses texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from composer.atomic_files import StrPath
from composer.memo import Memo
from composer.train.data.documents import TextDocument, sources_of
from composer.train.data.order import drawn_by_weight
from composer.train.data.prepared.encoding import Ids as Ids
from composer.train.data.prepared.encoding import dtype_of, encoded
from composer.train.data.tokenizers import Tokenizer, stretches
from composer.train.errors import TrainingError

HELD_OUT = 0.1
"""Share of the text, at its end, that is used for validation and never for training."""


MOST_PIECES = 16
"""Tokens that are joined at most to have whole characters."""


@dataclass(frozen=True, eq=False)
class TextData:
    """A text as tokens, with its last tenth held out; or several, with the last tenth of each held out."""

    path: Path
    sha256: str
    """Checksum of the UTF-8 bytes of the text, or of the checksums of several; it must be the same when a run is resumed."""
    train: Ids
    validation: Ids
    characters: int
    """Length of the held-out text in characters, which makes losses comparable across tokenizers."""
    bytes: int
    """Length of the held-out text in UTF-8 bytes."""
    more_paths: tuple[Path, ...] = ()
    """The paths after the first, if the texts were read from several."""
    train_ends: tuple[int, ...] = ()
    """Where each document ends in `train`; empty if there is only one."""
    validation_ends: tuple[int, ...] = ()
    """Where each document ends in `validation`; empty if there is only one."""
    mixture: tuple[tuple[int, float], ...] = ()
    """For each source, in order, the number of its documents and its weight, the share of the windows that are drawn from it, up
    to a factor; empty if all windows are equally likely."""

    @property
    def weights(self) -> list[float]:
        """The weight of each source; none if all windows are equally likely."""
        return [weight for _, weight in self.mixture]

    @property
    def source_ends(self) -> npt.NDArray[np.int64]:
        """Where the tokens of each source with a weight end in `train`."""
        return np.asarray(self.train_extents.ends[np.cumsum([count for count, _ in self.mixture]) - 1], dtype=np.int64)

    @property
    def name(self) -> str:
        """The path, and how many others there are."""
        return f"{self.path} and {len(self.more_paths)} more" if self.more_paths else str(self.path)

    @cached_property
    def train_extents(self) -> Extents:
        """Where the documents begin and end in `train`."""
        return extents(self.train, self.train_ends)


@dataclass(frozen=True)
class Extents:
    """Where the documents of a stream of tokens begin and end."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    _windows: Memo[int, WindowPlaces] = field(default_factory=Memo, init=False, repr=False, compare=False)
    """By length: each step asks for them, and there may be millions of documents."""

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of tokens of each document."""
        return self.ends - self.starts

    def windows(self, length: int) -> WindowPlaces:
        """Return the windows of `length` tokens, each of which lies in one document."""
        return self._windows.get(length, lambda: _window_places(self, length))


class WindowPlaces(NamedTuple):
    """Where the windows of one length lie in documents; they are numbered in order."""

    ends: npt.NDArray[np.int64]
    """How many there are up to the end of each document."""
    shifts: npt.NDArray[np.int64]
    """How far behind its number a window starts, in each document."""
    total: int
    """How many there are."""


def _window_places(documents: Extents, length: int) -> WindowPlaces:
    ends = np.cumsum(np.maximum(documents.lengths - length + 1, 0))
    return WindowPlaces(ends, documents.ends - length + 1 - ends, int(ends[-1]))


def extents(stream: Ids, ends: Sequence[int]) -> Extents:
    """Return where the documents of a stream begin and end, from where they end; a stream without ends is one document."""
    stops = np.array(ends or [len(stream)], dtype=np.int64)
    return Extents(np.concatenate([np.zeros(1, dtype=np.int64), stops[:-1]]), stops)


def split(text: str) -> tuple[str, str]:
    """Return the training text and the held-out text, the last tenth of the characters.

    Args:
        text: The whole text.

    Examples:
        >>> from composer.train import split
        >>> split("0123456789")
        ('012345678', '9')
    """
    boundary = int((1 - HELD_OUT) * len(text))
    return text[:boundary], text[boundary:]


def tokenize(text: str | Sequence[TextDocument], tokenizer: Tokenizer, *, path: StrPath | Sequence[StrPath]) -> TextData:
    """Return a text as tokens, with its last tenth held out; the split is at the same character for every tokenizer.

    Of several documents, the last tenth of each is held out; of one with a single character, nothing.

    Args:
        text: The text, or documents.
        tokenizer: The tokenizer.
        path: The file that the text was read from, or several paths and patterns; a resumed run reads them again.

    Examples:
        >>> from composer.train import ByteTokenizer, tokenize
        >>> data = tokenize("0123456789", ByteTokenizer(), path="digits.txt")
        >>> len(data.train), len(data.validation)
        (9, 1)
    """
    parts = [split_off(document.text) for document in as_documents(text)]
    held_out = [validation for _, validation in parts]
    return data_of(
        text,
        path=path,
        train=[encode(train, tokenizer) for train, _ in parts],
        validation=[encode(validation, tokenizer) for validation in held_out],
        held_out=held_out,
    )


def unseen(
    text: str | Sequence[TextDocument], tokenizer: Tokenizer, *, path: StrPath | Sequence[StrPath], first: Literal[0, 1]
) -> TextData:
    """Return a text as tokens that are all held out.

    Args:
        text: The text, or documents.
        tokenizer: The tokenizer, which loses nothing.
        path: The file that the text was read from, or several paths and patterns.
        first: 1 if the beginning of a document is only read, since there is nothing before it to predict it from: its first
            token, and those that complete a character of it.

    Raises:
        TrainingError: Nothing is left to be predicted.
    """
    parts = [begun(document.text, tokenizer, at_least=first) for document in as_documents(text)]
    data = data_of(
        text,
        path=path,
        train=[train for train, _, _ in parts],
        validation=[validation for _, validation, _ in parts],
        held_out=[held_out for _, _, held_out in parts],
    )
    return predictable(data)


def predictable(data: TextData) -> TextData:
    """Return a held-out text, unless there is nothing in it to predict, which raises `TrainingError`."""
    if not len(data.validation):
        raise TrainingError(f"{data.name} is too short: there is nothing in it to predict")
    return data


def begun(text: str, tokenizer: Tokenizer, *, at_least: int) -> tuple[Ids, Ids, str]:
    """Return the fewest first tokens of a text, but `at_least` so many, that are whole characters; the others, and their text.

    That text is the whole one if the tokenizer changes the text, so that no first tokens are its beginning.
    """
    ids = encode(text, tokenizer)
    for count in range(at_least, min(len(ids), at_least + MOST_PIECES) + 1):
        if text.startswith(start := tokenizer.decode(ids[:count].tolist())):
            return ids[:count], ids[count:], text[len(start) :]
    return ids[:at_least], ids[at_least:], text


def as_documents(text: str | Sequence[TextDocument]) -> Sequence[TextDocument]:
    """Return a text as the only document."""
    return [TextDocument("", text)] if isinstance(text, str) else text


def split_off(text: str) -> tuple[str, str]:
    """Return the training text and the held-out text of a document; a single character is trained on."""
    boundary = held_out_from(len(text))
    return text[:boundary], text[boundary:]


def held_out_from(characters: int) -> int:
    """Return the place from which on a document is held out; a single character is trained on."""
    return int((1 - HELD_OUT) * characters) or characters


def data_of(
    text: str | Sequence[TextDocument],
    *,
    path: StrPath | Sequence[StrPath],
    train: Sequence[Ids],
    validation: Sequence[Ids],
    held_out: Sequence[str],
) -> TextData:
    """Return texts as `TextData`, from the tokens of each document and the texts whose tokens are held out."""
    first, *more = sources_of(path)
    several = len(train) > 1
    return TextData(
        path=Path(first),
        sha256=fingerprint(text),
        train=cast("Ids", np.concatenate(train)),
        validation=cast("Ids", np.concatenate(validation)),
        characters=sum(map(len, held_out)),
        bytes=sum(len(each.encode("utf-8")) for each in held_out),
        more_paths=tuple(map(Path, more)),
        train_ends=tuple(accumulate(map(len, train))) if several else (),
        validation_ends=tuple(accumulate(map(len, validation))) if several else (),
    )


def fingerprint(text: str | Sequence[TextDocument]) -> str:
    """Return the SHA-256 of the UTF-8 bytes of a text, in hexadecimal; of several documents, that of their checksums."""
    return fingerprint_of([hashlib.sha256(document.text.encode("utf-8")).hexdigest() for document in as_documents(text)])


def fingerprint_of(sums: Sequence[str]) -> str:
    """Return the checksum of documents from that of each, which is that of the only one."""
    return sums[0] if len(sums) == 1 else hashlib.sha256("\n".join(sums).encode("ascii")).hexdigest()


def encode(text: str, tokenizer: Tokenizer) -> Ids:
    """Return the tokens of a text, in the smallest type that holds the vocabulary."""
    return joined(encoded(stretches(text), tokenizer), tokenizer)


def joined(pieces: Iterable[Ids], tokenizer: Tokenizer) -> Ids:
    """Return the tokens of pieces of a text as one array."""
    return cast("Ids", np.concatenate([np.array([], dtype=dtype_of(tokenizer.size)), *pieces]))


def check_length(data: TextData, seq_len: int) -> None:
    """Raise `TrainingError` if no document has `seq_len` + 1 tokens, or all are too short to hold out a tenth."""
    longest = int(data.train_extents.lengths.max())
    if longest <= seq_len:
        has = f"the longest document of {data.name}" if data.train_ends else str(data.path)
        raise TrainingError(
            f"{has} has {longest} tokens to train on; a sequence length of {seq_len} needs {seq_len + 1}",
            hint="use more text or a shorter sequence length",
        )
    if len(data.validation) == 0:
        raise TrainingError(f"{data.name} is too short to hold out a tenth of it")
    first = 0
    for source, (documents, _) in zip([data.path, *data.more_paths], data.mixture, strict=False):
        if documents and int(data.train_extents.lengths[first : first + documents].max()) <= seq_len:
            message = f"no document of {source} has {seq_len + 1} tokens to train on, which a sequence length of {seq_len} needs"
            raise TrainingError(message, hint="leave the source out, or use a shorter sequence length")
        first += documents


def check_sources(data: TextData, stops: npt.NDArray[np.int64], lack: str) -> None:
    """Raise `TrainingError` if a source with a weight has nothing to draw.

    Args:
        data: The texts.
        stops: How many things can be drawn up to the end of each source.
        lack: What is said of a source that has none.
    """
    for source, count in zip([data.path, *data.more_paths], np.diff(stops, prepend=0), strict=True):
        if not count:
            raise TrainingError(f"{source} {lack}", hint="leave the source out")


def too_short(data: TextData, length: int) -> tuple[int, int]:
    """Return how many documents are shorter than a window of `length` tokens, and how many tokens they have."""
    lengths = data.train_extents.lengths
    short = lengths[lengths < length]
    return len(short), int(short.sum())


def draw_starts(data: TextData, *, length: int, count: int, generator: torch.Generator) -> npt.NDArray[np.int64]:
    """Draw the starts of `count` windows of the training text, each of which lies in one document, uniformly; with a mixture, as
    many of each source as its weight says, uniformly in it.
    """
    ends, shifts, total = data.train_extents.windows(length)
    if data.mixture:
        stops = ends[np.cumsum([count for count, _ in data.mixture]) - 1]  # of those in each source
        drawn = drawn_by_weight(stops, data.weights, count, generator)
    else:
        drawn = torch.randint(total, (count,), generator=generator).numpy()
    return np.asarray(drawn + shifts[ends.searchsorted(drawn, side="right")], dtype=np.int64)


def draw_batch(data: TextData, *, batch_size: int, seq_len: int, generator: torch.Generator) -> dict[str, Tensor]:
    """Draw `batch_size` windows with uniformly random starts: `tokens` [B, T] and, one position later, `targets` [B, T]."""
    starts = draw_starts(data, length=seq_len + 1, count=batch_size, generator=generator)
    windows = data.train[starts[:, None] + np.arange(seq_len + 1)]  # [B, T+1]
    return as_batch(windows)


def adjacent(documents: Extents, *, seq_len: int, batch_size: int) -> Iterator[tuple[npt.NDArray[np.int64], int]]:
    """Yield the starts and the length of adjacent windows, in batches: whole ones in order, then the rests of documents.

    Rests of one length make batches together, in the order of lengths.
    """
    counts = documents.lengths // seq_len
    first = np.repeat(documents.starts, counts)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)  # of a window in its document
    starts = first + number * seq_len
    for begin in range(0, len(starts), batch_size):
        yield starts[begin : begin + batch_size], seq_len
    rests, places = documents.lengths % seq_len, documents.starts + counts * seq_len
    for rest in np.unique(rests[rests > 0]).tolist():
        alike = places[rests == rest]
        for begin in range(0, len(alike), batch_size):
            yield alike[begin : begin + batch_size], rest


def held_out_batches(data: TextData, *, batch_size: int, seq_len: int) -> Iterator[dict[str, Tensor]]:
    """Yield every token of the held-out text as a target, once and in order, in adjacent windows.

    The first window of a document starts with the last token of its training text, which predicts the first held-out one.
    """
    documents = extents(data.validation, data.validation_ends)
    begun = documents.lengths > 0
    firsts, last_trained = documents.starts[begun], data.train_extents.ends[begun] - 1
    for starts, length in adjacent(documents, seq_len=seq_len, batch_size=batch_size):
        number = np.searchsorted(firsts, starts, side="right") - 1  # of the document of each window
        first = firsts[number] == starts
        before = np.where(first, data.train[last_trained[number]], data.validation[np.maximum(starts - 1, 0)])
        places = starts[:, None] + np.arange(length)
        yield as_batch(np.concatenate([before[:, None], data.validation[places]], axis=1))


def as_batch(windows: Ids) -> dict[str, Tensor]:
    """Return windows [B, T+1] as inputs [B, T] and targets [B, T]."""
    ids = windows.astype(np.int64)
    return {"tokens": torch.from_numpy(ids[:, :-1]), "targets": torch.from_numpy(ids[:, 1:])}
