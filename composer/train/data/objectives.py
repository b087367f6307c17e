"""What models of texts learn from: for each task, how a text becomes batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from composer.atomic_files import StrPath
from composer.memo import IdentityKey
from composer.train.data import text as texts
from composer.train.data.corruption import gaps, hidden, with_gaps
from composer.train.data.text import HELD_OUT, Ids, TextData, tokenize
from composer.train.data.tokenizers import MarkedTokenizer, Tokenizer
from composer.train.errors import TrainingError
from composer.train.losses import IGNORED, Batch

START, END, MASK = "<start>", "<end>", "<mask>"
GAPS = tuple(f"<{number}>" for number in range(100))
"""The marks of gaps; T5 has as many."""


class Objective(Protocol):
    """What a model is asked about a text."""

    windows: ClassVar[bool]
    """Whether a text is cut into windows of the sequence length, or read in pieces that it has itself."""

    def tokenize(self, text: str, *, path: StrPath) -> TextData:
        """Return a text as tokens, its last tenth held out."""
        ...

    def check(self, data: TextData, seq_len: int) -> None:
        """Raise an error where a text is too short for windows of a length.

        Raises:
            TrainingError: The text and the length of a window do not go together.
        """
        ...

    def draw(self, data: TextData, *, batch_size: int, seq_len: int, generator: torch.Generator) -> Batch:
        """Return a batch from random places of the text to train on."""
        ...

    def held_out(self, data: TextData, *, batch_size: int, seq_len: int) -> Iterator[Batch]:
        """Yield the held-out text in batches, once and the same each time."""
        ...

    def whole(self, data: TextData) -> int | None:
        """Return how many targets the held-out text has; None where batches ask for only a part of it."""
        ...


@dataclass(frozen=True)
class NextToken:
    """Each token is asked for after those before it."""

    windows: ClassVar[bool] = True
    tokenizer: Tokenizer

    def tokenize(self, text: str, *, path: StrPath) -> TextData:
        return tokenize(text, self.tokenizer, path=path)

    def check(self, data: TextData, seq_len: int) -> None:
        texts.check_length(data, seq_len)

    def draw(self, data: TextData, *, batch_size: int, seq_len: int, generator: torch.Generator) -> Batch:
        return texts.draw_batch(data, batch_size=batch_size, seq_len=seq_len, generator=generator)

    def held_out(self, data: TextData, *, batch_size: int, seq_len: int) -> Iterator[Batch]:
        return texts.held_out_batches(data, batch_size=batch_size, seq_len=seq_len)

    def whole(self, data: TextData) -> int | None:
        return len(data.validation)


@dataclass(frozen=True)
class Windows:
    """Stretches of text that are spoiled one by one, by `spoil`, of what is to be put back."""

    windows: ClassVar[bool] = True
    tokenizer: MarkedTokenizer
    spoil: Callable[[MarkedTokenizer, Tensor, torch.Generator], Batch]

    def tokenize(self, text: str, *, path: StrPath) -> TextData:
        return tokenize(text, self.tokenizer, path=path)

    def check(self, data: TextData, seq_len: int) -> None:
        texts.check_length(data, seq_len)
        if seq_len < 2 or len(data.validation) < 2:
            raise TrainingError(
                f"a window of {min(seq_len, len(data.validation))} tokens has nothing left beside the masked spans"
            )
        if GAPS[0] in self.tokenizer.marks and gaps(seq_len)[1] > len(GAPS):
            raise TrainingError(
                f"a sequence length of {seq_len} has {gaps(seq_len)[1]} masked spans; there are sentinel tokens for {len(GAPS)}"
            )

    def draw(self, data: TextData, *, batch_size: int, seq_len: int, generator: torch.Generator) -> Batch:
        starts = torch.randint(len(data.train) - seq_len + 1, (batch_size,), generator=generator).numpy()
        return self._spoiled(data.train[starts[:, None] + np.arange(seq_len)], generator)

    def held_out(self, data: TextData, *, batch_size: int, seq_len: int) -> Iterator[Batch]:
        generator = torch.Generator().manual_seed(0)
        count = len(data.validation) // seq_len
        windows = data.validation[: count * seq_len].reshape(count, seq_len)
        for first in range(0, count, batch_size):
            yield self._spoiled(windows[first : first + batch_size], generator)
        if len(data.validation) - count * seq_len >= 2:
            yield self._spoiled(data.validation[None, count * seq_len :], generator)

    def whole(self, data: TextData) -> int | None:
        return None

    def _spoiled(self, windows: Ids, generator: torch.Generator) -> Batch:
        return self.spoil(self.tokenizer, torch.from_numpy(windows.astype(np.int64)), generator)


def hide_words(tokenizer: MarkedTokenizer, windows: Tensor, generator: torch.Generator) -> Batch:
    """Return a batch for masked_lm: some words are asked for where they stand."""
    tokens, labels = hidden(windows, tokenizer.mark(MASK), tokenizer.text.size, generator)
    return {"tokens": tokens, "labels": labels}


def take_out_spans(tokenizer: MarkedTokenizer, windows: Tensor, generator: torch.Generator) -> Batch:
    """Return a batch for denoising: what is left is the source, what is gone the target; an end closes both."""
    marks, start, end = [tokenizer.mark(mark) for mark in GAPS], tokenizer.mark(START), tokenizer.mark(END)
    pairs = [with_gaps(window, marks, generator) for window in windows.tolist()]
    source = torch.tensor([[*kept, end] for kept, _ in pairs])  # all rows are of one length
    target = torch.tensor([[start, *gone, end] for _, gone in pairs])
    return {"source": source, "target": target[:, :-1], "targets": target[:, 1:]}


@dataclass(frozen=True)
class Translation:
    """Lines of two texts with a tab between: the second is asked for, given the first."""

    windows: ClassVar[bool] = False
    tokenizer: MarkedTokenizer

    def tokenize(self, text: str, *, path: StrPath) -> TextData:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        for number, line in lines:
            if line.count("\t") != 1 or not all(side.strip() for side in line.split("\t")):
                raise TrainingError(
                    f"{path}, line {number} is not a pair of texts: {line[:40]!r}",
                    hint="write one pair per line: source, tab, target",
                )
        boundary = int((1 - HELD_OUT) * len(lines))
        sides = [tuple(side.strip() for side in line.split("\t")) for _, line in lines]
        targets = "".join(target for _, target in sides[boundary:])
        return TextData(
            path=Path(path),
            sha256=hashlib.sha256(text.encode("utf-8")).hexdigest(),
            train=self._stream(sides[:boundary]),
            validation=self._stream(sides[boundary:]),
            characters=len(targets),
            bytes=len(targets.encode("utf-8")),
        )

    def _stream(self, pairs: Sequence[tuple[str, ...]]) -> Ids:
        """Return all pairs in a row: source, start, target, end."""
        dtype = np.uint16 if self.tokenizer.size <= 1 << 16 else np.uint32
        start, end = self.tokenizer.mark(START), self.tokenizer.mark(END)
        rows = [[*self.tokenizer.encode(source), start, *self.tokenizer.encode(target), end] for source, target in pairs]
        return np.concatenate([np.array([], dtype=dtype), *(np.array(row, dtype=dtype) for row in rows)])

    def check(self, data: TextData, seq_len: int) -> None:
        for stream in (data.train, data.validation):
            pairs = self.pairs(stream)
            if not pairs:
                raise TrainingError(f"{data.path} has too few pairs to hold out a tenth of them")
            longest = max(max(len(source), len(target) - 1) for source, target in pairs)  # what the model reads of each
            if longest > seq_len:
                raise TrainingError(
                    f"{data.path} has a sequence of {longest} tokens, end token included; the sequence length is {seq_len}",
                    hint="use a longer sequence length, or remove that pair",
                )

    def draw(self, data: TextData, *, batch_size: int, seq_len: int, generator: torch.Generator) -> Batch:
        pairs = self.pairs(data.train)
        rows = torch.randint(len(pairs), (batch_size,), generator=generator).tolist()
        return self._batch([pairs[row] for row in rows])

    def held_out(self, data: TextData, *, batch_size: int, seq_len: int) -> Iterator[Batch]:
        pairs = self.pairs(data.validation)
        for first in range(0, len(pairs), batch_size):
            yield self._batch(pairs[first : first + batch_size])

    def whole(self, data: TextData) -> int | None:
        return sum(len(target) - 1 for _, target in self.pairs(data.validation))

    def pairs(self, stream: Ids) -> Sequence[tuple[Ids, Ids]]:
        """Return each source with an end, and each target between a start and an end."""
        return _pairs(IdentityKey(stream), self.tokenizer.mark(START), self.tokenizer.mark(END))

    def _batch(self, pairs: Sequence[tuple[Ids, Ids]]) -> Batch:
        end = self.tokenizer.mark(END)
        sources, targets = zip(*pairs, strict=True)
        return {
            "source": together(sources, end),
            "source_valid": together([np.ones_like(source) for source in sources], 0).bool(),
            "target": together([target[:-1] for target in targets], end),
            "targets": together([target[1:] for target in targets], IGNORED),
        }


@lru_cache(maxsize=4)
def _pairs(stream: IdentityKey[Ids], start: int, end: int) -> Sequence[tuple[Ids, Ids]]:
    ids = stream.thing
    middles, ends = np.flatnonzero(ids == start), np.flatnonzero(ids == end)
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    closed = np.array([end], dtype=ids.dtype)
    return [
        (np.concatenate([ids[begin:middle], closed]), ids[middle : stop + 1])
        for begin, middle, stop in zip(begins, middles, ends, strict=True)
    ]


def together(rows: Sequence[Ids], filling: int) -> Tensor:
    """Return the rows of unequal length as one tensor [B, T]."""
    whole = torch.full((len(rows), max(map(len, rows))), filling, dtype=torch.int64)
    for place, row in enumerate(rows):
        whole[place, : len(row)] = torch.from_numpy(row.astype(np.int64))
    return whole


@dataclass(frozen=True, slots=True)
class TextTask:
    """How a task learns from a text."""

    objective: Callable[[Any], Objective]
    """What it is asked, given the tokenizer: a `MarkedTokenizer` where there are marks."""
    marks: tuple[str, ...] = ()
    """The tokens that it needs beside those of the text."""


TEXT_TASKS: Mapping[str, TextTask] = {
    "causal_lm": TextTask(NextToken),
    "masked_lm": TextTask(lambda tokenizer: Windows(tokenizer, hide_words), (MASK,)),
    "denoising": TextTask(lambda tokenizer: Windows(tokenizer, take_out_spans), (START, END, *GAPS)),
    "seq2seq_lm": TextTask(Translation, (START, END)),
}
"""The tasks that learn from a text."""


def marked(tokenizer: Tokenizer, task: str) -> Tokenizer:
    """Return a tokenizer with the marks that a task needs, such as the mask of a masked language model.

    Raises:
        TrainingError: The task learns from something other than a text.
    """
    marks = TEXT_TASKS[learnable(task)].marks
    return MarkedTokenizer(tokenizer, marks) if marks else tokenizer


def objective_of(task: str, tokenizer: Tokenizer) -> Objective:
    """Return how models of a task learn from a text: which batches they are given and what these ask for.

    Raises:
        TrainingError: The task learns from something other than a text, or the tokenizer lacks its marks.
    """
    row = TEXT_TASKS[learnable(task)]
    if row.marks and not (isinstance(tokenizer, MarkedTokenizer) and set(row.marks) <= set(tokenizer.marks)):
        raise TrainingError(
            f"the tokenizer has no special tokens for {task}", hint=f"composer.train.marked(tokenizer, {task!r}) adds them"
        )
    return row.objective(tokenizer)


def learnable(task: str | None) -> str:
    """Return a task that learns from a text.

    Raises:
        TrainingError: The recipe names no task, or one that learns from something other than a text.
    """
    if task is None or task not in TEXT_TASKS:
        *first, last = TEXT_TASKS
        known = f"{', '.join(first)} or {last}"
        raise TrainingError(f"training on text needs a recipe with the task {known}; this one has {task or 'no task'}")
    return task
