"""Objectives: for each task, how a text becomes batches with targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from composer.atomic_files import StrPath
from composer.graph.typed import TypedProgram
from composer.memo import IdentityKey, Memo
from composer.train.data import text as texts
from composer.train.data.documents import TextDocument, with_newlines
from composer.train.data.ended import ended
from composer.train.data.hiding.corruption import gaps, hidden, with_gaps
from composer.train.data.hiding.spans import hide_spans, hide_whole_words, infill, permute_and_infill, permute_sentences
from composer.train.data.marks import END as END
from composer.train.data.marks import GAPS as GAPS
from composer.train.data.marks import MASK as MASK
from composer.train.data.marks import START as START
from composer.train.data.order import drawn_by_weight
from composer.train.data.prefixes import prefix_input, with_prefixes
from composer.train.data.skip_gram import SkipGram, check_inputs
from composer.train.data.text import HELD_OUT, Ids, TextData, tokenize
from composer.train.data.tokenizers import MarkedTokenizer, Tokenizer
from composer.train.errors import TrainingError
from composer.train.losses import IGNORED, Batch
from composer.train.settings import TrainSettings

Data = TypeVar("Data", contravariant=True)


class Batches(Protocol[Data]):
    """Protocol of what makes batches with targets of data."""

    windows: ClassVar[bool]
    """Whether a text is cut into windows of the sequence length, rather than read line by line or row by row."""

    def check(self, data: Data, seq_len: int) -> None:
        """Raise an error if the data cannot be used with a sequence length.

        Args:
            data: The text or the examples.
            seq_len: Length of a sequence, in tokens.

        Raises:
            TrainingError: There is too little data, or one of its sequences is too long.
        """
        ...

    def draw(self, data: Data, *, batch_size: int, seq_len: int, generator: torch.Generator) -> Batch:
        """Return a training batch from random places of the data.

        Args:
            data: The text or the examples.
            batch_size: Number of sequences.
            seq_len: Length of a sequence, in tokens.
            generator: The generator of random places.
        """
        ...

    def held_out(self, data: Data, *, batch_size: int, seq_len: int) -> Iterator[Batch]:
        """Yield the held-out data in batches, the same ones each time.

        Args:
            data: The text or the examples.
            batch_size: Number of sequences in a batch.
            seq_len: Length of a sequence, in tokens.
        """
        ...

    def whole(self, data: Data) -> int | None:
        """Return the number of targets in the held-out text; None if only a part of it is predicted.

        Args:
            data: The text or the examples.
        """
        ...


class Objective(Batches[TextData], Protocol):
    """Protocol of objectives: how a task turns a text into batches with targets."""

    def tokenize(self, text: str | Sequence[TextDocument], *, path: StrPath | Sequence[StrPath]) -> TextData:
        """Return a text as tokens, with its last tenth held out, or several with the last tenth of each.

        Args:
            text: The text, or documents.
            path: The file that the text was read from, or several paths and patterns.
        """
        ...

    def unseen(self, text: str | Sequence[TextDocument], *, path: StrPath | Sequence[StrPath]) -> TextData:
        """Return a text as tokens that are all held out, to evaluate a model on it.

        Args:
            text: The text, or documents.
            path: The file that the text was read from, or several paths and patterns.

        Raises:
            TrainingError: There is nothing in the text to predict.
        """
        ...


@dataclass(frozen=True)
class NextToken:
    """Predict each token from those before it."""

    windows: ClassVar[bool] = True
    tokenizer: Tokenizer
    ends: str = "none"
    """What ends with an end token: each `line`, each `file`, or `none`."""

    def tokenize(self, text: str | Sequence[TextDocument], *, path: StrPath | Sequence[StrPath]) -> TextData:
        if isinstance(self.tokenizer, MarkedTokenizer) and self.ends != "none":
            return ended(text, self.tokenizer, ends=self.ends, path=path)
        return tokenize(text, self.tokenizer, path=path)

    def unseen(self, text: str | Sequence[TextDocument], *, path: StrPath | Sequence[StrPath]) -> TextData:
        if isinstance(self.tokenizer, MarkedTokenizer) and self.ends != "none":
            return texts.predictable(ended(text, self.tokenizer, ends=self.ends, path=path, unseen=True))
        return texts.unseen(text, self.tokenizer, path=path, first=1)

    def check(self, data: TextData, seq_len: int) -> None:
        texts.check_length(data, seq_len)

    def draw(self, data: TextData, *, batch_size: int, seq_len: int, generator: torch.Generator) -> Batch:
        return texts.draw_batch(data, batch_size=batch_size, seq_len=seq_len, generator=generator)

    def held_out(self, data: TextData, *, batch_size: int, seq_len: int) -> Iterator[Batch]:
        return texts.held_out_batches(data, batch_size=batch_size, seq_len=seq_len)

    def whole(self, data: TextData) -> int | None:
        return len(data.validation)


@dataclass(frozen=True)
class PrefixLM(NextToken):
    """Predict what follows a prefix of random length, whose tokens see each other."""

    prefix: str = ""
    """The input of the model with the lengths of prefixes."""

    def draw(self, data: TextData, *, batch_size: int, seq_len: int, generator: torch.Generator) -> Batch:
        batch = texts.draw_batch(data, batch_size=batch_size, seq_len=seq_len, generator=generator)
        return with_prefixes(batch, self.prefix, generator)

    def held_out(self, data: TextData, *, batch_size: int, seq_len: int) -> Iterator[Batch]:
        generator = torch.Generator().manual_seed(0)
        for batch in texts.held_out_batches(data, batch_size=batch_size, seq_len=seq_len):
            yield with_prefixes(batch, self.prefix, generator)

    def whole(self, data: TextData) -> int | None:
        return None


@dataclass(frozen=True)
class Windows:
    """Restore windows of text that `spoil` has corrupted."""

    windows: ClassVar[bool] = True
    tokenizer: MarkedTokenizer
    spoil: Callable[[MarkedTokenizer, Tensor, torch.Generator], Batch]
    room: int = 0
    """How many tokens of a sequence are marks that stand before or behind a window."""

    def tokenize(self, text: str | Sequence[TextDocument], *, path: StrPath | Sequence[StrPath]) -> TextData:
        return tokenize(text, self.tokenizer, path=path)

    def unseen(self, text: str | Sequence[TextDocument], *, path: StrPath | Sequence[StrPath]) -> TextData:
        return texts.unseen(text, self.tokenizer, path=path, first=0)

    def check(self, data: TextData, seq_len: int) -> None:
        texts.check_length(data, seq_len)
        longest = int(texts.extents(data.validation, data.validation_ends).lengths.max())
        if (shortest := min(seq_len - self.room, longest)) < 2:
            raise TrainingError(f"a window of {shortest} tokens is too short to mask a part of it")
        if GAPS[0] in self.tokenizer.marks and gaps(seq_len)[1] > len(GAPS):
            raise TrainingError(
                f"a sequence length of {seq_len} has {gaps(seq_len)[1]} masked spans, but there are {len(GAPS)} sentinel tokens"
            )

    def draw(self, data: TextData, *, batch_size: int, seq_len: int, generator: torch.Generator) -> Batch:
        length = seq_len - self.room
        starts = texts.draw_starts(data, length=length, count=batch_size, generator=generator)
        return self._spoiled(data.train[starts[:, None] + np.arange(length)], generator)

    def held_out(self, data: TextData, *, batch_size: int, seq_len: int) -> Iterator[Batch]:
        generator = torch.Generator().manual_seed(0)
        documents = texts.extents(data.validation, data.validation_ends)
        for starts, length in texts.adjacent(documents, seq_len=seq_len - self.room, batch_size=batch_size):
            if length >= 2:
                yield self._spoiled(data.validation[starts[:, None] + np.arange(length)], generator)

    def whole(self, data: TextData) -> int | None:
        return None

    def _spoiled(self, windows: Ids, generator: torch.Generator) -> Batch:
        return self.spoil(self.tokenizer, torch.from_numpy(windows.astype(np.int64)), generator)


def hide_words(tokenizer: MarkedTokenizer, windows: Tensor, generator: torch.Generator) -> Batch:
    """Return a batch for masked_lm, with masked tokens as targets."""
    tokens, labels = hidden(windows, tokenizer.mark(MASK), tokenizer.text.size, generator)
    return {"tokens": tokens, "labels": labels}


def take_out_spans(tokenizer: MarkedTokenizer, windows: Tensor, generator: torch.Generator) -> Batch:
    """Return a batch for denoising: the kept tokens are the source, the removed ones the target, each with an end token."""
    marks, start, end = [tokenizer.mark(mark) for mark in GAPS], tokenizer.mark(START), tokenizer.mark(END)
    pairs = [with_gaps(window, marks, generator) for window in windows.tolist()]
    source = torch.tensor([[*kept, end] for kept, _ in pairs])  # all rows are of one length
    target = torch.tensor([[start, *gone, end] for _, gone in pairs])
    return {"source": source, "target": target[:, :-1], "targets": target[:, 1:]}


@dataclass(frozen=True)
class Translation:
    """Predict the second text of a line from the first; a tab separates them."""

    windows: ClassVar[bool] = False
    tokenizer: MarkedTokenizer
    longest: int = 0
    """Tokens that a source or a target may have in training, one mark included; pairs with more are left out. 0 keeps all."""
    split: Memo[IdentityKey[Ids], Sequence[tuple[Ids, Ids]]] = field(default_factory=Memo, init=False, repr=False, compare=False)
    """The pairs of each stream."""
    ends: Memo[IdentityKey[Ids], npt.NDArray[np.int64]] = field(default_factory=Memo, init=False, repr=False, compare=False)
    """Where the pairs of each stream end."""

    def tokenize(self, text: str | Sequence[TextDocument], *, path: StrPath | Sequence[StrPath]) -> TextData:
        split = [self._pairs_of(document, document.path or path) for document in texts.as_documents(text)]
        train, validation = ([self._stream(part[side]) for part in split] for side in (0, 1))
        return texts.data_of(
            text,
            path=path,
            train=[stream for stream, _ in train],
            validation=[stream for stream, _ in validation],
            held_out=[targets for _, targets in validation],
        )

    def unseen(self, text: str | Sequence[TextDocument], *, path: StrPath | Sequence[StrPath]) -> TextData:
        split = [self._pairs_of(document, document.path or path) for document in texts.as_documents(text)]
        every = replace(self, longest=0)
        parts = [every._stream([*first, *rest]) for first, rest in split]
        data = texts.data_of(
            text,
            path=path,
            train=[self._stream([])[0] for _ in parts],
            validation=[stream for stream, _ in parts],
            held_out=[targets for _, targets in parts],
        )
        return texts.predictable(data)

    def _pairs_of(self, document: TextDocument, path: object) -> tuple[Sequence[tuple[str, ...]], Sequence[tuple[str, ...]]]:
        """Return the pairs to train on and those held out, the last tenth; a single pair is trained on."""
        lines = [(number, line) for number, line in enumerate(document.text.splitlines(), 1) if line.strip()]
        for number, line in lines:
            if line.count("\t") != 1 or not all(side.strip() for side in line.split("\t")):
                raise TrainingError(
                    f"{path}, line {number} is not a pair of texts: {line[:40]!r}",
                    hint="write one pair per line: source, tab, target",
                )
        boundary = int((1 - HELD_OUT) * len(lines)) or 1
        sides = [tuple(side.strip() for side in line.split("\t")) for _, line in lines]
        return sides[:boundary], sides[boundary:]

    def _stream(self, pairs: Sequence[tuple[str, ...]]) -> tuple[Ids, str]:
        """Return the pairs that are not too long, concatenated: source, start, target, end; and their targets as one text."""
        dtype = np.uint16 if self.tokenizer.size <= 1 << 16 else np.uint32
        start, end = self.tokenizer.mark(START), self.tokenizer.mark(END)
        encoded = [(self.tokenizer.encode(source), self.tokenizer.encode(target), target) for source, target in pairs]
        kept = [each for each in encoded if not self.longest or max(len(each[0]), len(each[1])) < self.longest]
        rows = [np.array([*source, start, *target, end], dtype=dtype) for source, target, _ in kept]
        return np.concatenate([np.array([], dtype=dtype), *rows]), "".join(target for *_, target in kept)

    def left_out(self, documents: Sequence[TextDocument], data: TextData) -> tuple[int, int]:
        """Return how many pairs of the documents are too long to be in the data, and how many there are."""
        count = sum(1 for document in documents for line in document.text.splitlines() if line.strip())
        return count - sum(len(self.pairs(stream)) for stream in (data.train, data.validation)), count

    def check(self, data: TextData, seq_len: int) -> None:
        if data.mixture:
            texts.check_sources(data, self._stops(data), "has no pair to train on")
        for stream in (data.train, data.validation):
            pairs = self.pairs(stream)
            if not pairs:
                fitting = f" of at most {self.longest} tokens" if self.longest else ""
                raise TrainingError(f"{data.name} has too few pairs{fitting} to hold out a tenth of them")
            longest = max(
                max(len(source), len(target) - 1) for source, target in pairs
            )  # the number of tokens that the model reads
            if longest > seq_len:
                raise TrainingError(
                    f"{data.name} has a sequence of {longest} tokens, end token included; the sequence length is {seq_len}",
                    hint="use a longer sequence length, or remove that pair",
                )

    def draw(self, data: TextData, *, batch_size: int, seq_len: int, generator: torch.Generator) -> Batch:
        pairs = self.pairs(data.train)
        if data.mixture:
            rows = drawn_by_weight(self._stops(data), data.weights, batch_size, generator).tolist()
        else:
            rows = torch.randint(len(pairs), (batch_size,), generator=generator).tolist()
        return self._batch([pairs[row] for row in rows])

    def _stops(self, data: TextData) -> npt.NDArray[np.int64]:
        """Return how many pairs there are up to the end of each source with a weight."""
        ends = self.ends.get(IdentityKey(data.train), lambda: np.flatnonzero(data.train == self.tokenizer.mark(END)))
        return np.asarray(np.searchsorted(ends, data.source_ends), dtype=np.int64)

    def held_out(self, data: TextData, *, batch_size: int, seq_len: int) -> Iterator[Batch]:
        pairs = self.pairs(data.validation)
        for first in range(0, len(pairs), batch_size):
            yield self._batch(pairs[first : first + batch_size])

    def whole(self, data: TextData) -> int | None:
        return sum(len(target) - 1 for _, target in self.pairs(data.validation))

    def pairs(self, stream: Ids) -> Sequence[tuple[Ids, Ids]]:
        """Return each source with an end token, and each target with start and end tokens."""
        start, end = self.tokenizer.mark(START), self.tokenizer.mark(END)
        return self.split.get(IdentityKey(stream), lambda: _pairs(stream, start, end))

    def _batch(self, pairs: Sequence[tuple[Ids, Ids]]) -> Batch:
        end = self.tokenizer.mark(END)
        sources, targets = zip(*pairs, strict=True)
        return {
            "source": together(sources, end),
            "source_valid": together([np.ones_like(source) for source in sources], 0).bool(),
            "target": together([target[:-1] for target in targets], end),
            "targets": together([target[1:] for target in targets], IGNORED),
        }


def _pairs(ids: Ids, start: int, end: int) -> Sequence[tuple[Ids, Ids]]:
    middles, ends = np.flatnonzero(ids == start), np.flatnonzero(ids == end)
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    closed = np.array([end], dtype=ids.dtype)
    return [
        (np.concatenate([ids[begin:middle], closed]), ids[middle : stop + 1])
        for begin, middle, stop in zip(begins, middles, ends, strict=True)
    ]


def together(rows: Sequence[Ids], filling: int) -> Tensor:
    """Return rows of unequal length as one padded tensor [B, T]."""
    whole = torch.full((len(rows), max(map(len, rows))), filling, dtype=torch.int64)
    for place, row in enumerate(rows):
        whole[place, : len(row)] = torch.from_numpy(row.astype(np.int64))
    return whole


@dataclass(frozen=True, slots=True)
class TextTask:
    """A task that can be trained on a text."""

    objective: Callable[[Any], Objective]
    """Returns the objective for a tokenizer, a `MarkedTokenizer` if the task has marks."""
    marks: tuple[str, ...] = ()
    """Special tokens that the task needs."""


TEXT_TASKS: Mapping[str, TextTask] = {
    "causal_lm": TextTask(NextToken),
    "masked_lm": TextTask(lambda tokenizer: Windows(tokenizer, hide_words), (MASK,)),
    "denoising": TextTask(lambda tokenizer: Windows(tokenizer, take_out_spans), (START, END, *GAPS)),
    "seq2seq_lm": TextTask(Translation, (START, END)),
}
"""The tasks that can be trained on a text."""
WHOLE_TEXT = (START, END, MASK)
"""What sources and targets need that are whole texts."""
TEXT_OBJECTIVES: Mapping[str, TextTask] = {
    "whole_words": TextTask(lambda tokenizer: Windows(tokenizer, hide_whole_words), (MASK,)),
    "spans": TextTask(lambda tokenizer: Windows(tokenizer, hide_spans), (MASK,)),
    "infilling": TextTask(lambda tokenizer: Windows(tokenizer, infill, room=1), WHOLE_TEXT),
    "permuted_sentences": TextTask(lambda tokenizer: Windows(tokenizer, permute_sentences, room=1), WHOLE_TEXT),
    "bart": TextTask(lambda tokenizer: Windows(tokenizer, permute_and_infill, room=1), WHOLE_TEXT),
    "prefix_lm": TextTask(PrefixLM),
    "skip_gram": TextTask(SkipGram),
}
"""What else can be learned from a text, by the names of `objective_kinds`."""


def text_task(task: str | None, settings: TrainSettings | None) -> TextTask:
    """Return what is learned from a text: by default what the task asks for, else the objective of the settings.

    Raises:
        TrainingError: The task cannot be trained on a text.
    """
    if settings is None:
        return TEXT_TASKS[learnable(task)]
    row = TEXT_OBJECTIVES[settings.objective] if settings.objective in TEXT_OBJECTIVES else TEXT_TASKS[learnable(task)]
    return replace(row, marks=(END,)) if settings.end_tokens != "none" else row


def marked(tokenizer: Tokenizer, task: str, settings: TrainSettings | None = None) -> Tokenizer:
    """Return a tokenizer with the special tokens of a task, such as the mask of a masked language model.

    Args:
        tokenizer: The tokenizer of the text.
        task: The name of a task.
        settings: The settings of training, which may choose another objective or have end tokens.

    Raises:
        TrainingError: The task cannot be trained on a text.

    Examples:
        >>> from composer.train import ByteTokenizer, marked
        >>> marked(ByteTokenizer(), "masked_lm").size
        257
    """
    marks = text_task(task, settings).marks
    return MarkedTokenizer(tokenizer, marks) if marks else tokenizer


def objective_of(
    task: str | None, tokenizer: Tokenizer, settings: TrainSettings | None = None, *, program: TypedProgram | None = None
) -> Objective:
    """Return the objective of a task: how a text becomes batches with targets.

    Args:
        task: The name of a task; None for skip_gram.
        tokenizer: The tokenizer, with the special tokens of the task.
        settings: The settings of training, which may choose another objective or have end tokens.
        program: The model's graph, `Recipe.program`, which the objectives prefix_lm and skip_gram look into.

    Raises:
        TrainingError: The task cannot be trained on a text, or the tokenizer lacks its special tokens.

    Examples:
        >>> from composer.train import ByteTokenizer, objective_of
        >>> type(objective_of("causal_lm", ByteTokenizer())).__name__
        'NextToken'
    """
    row = text_task(task, settings)
    if row.marks and not (isinstance(tokenizer, MarkedTokenizer) and set(row.marks) <= set(tokenizer.marks)):
        raise TrainingError(
            f"the tokenizer has no special tokens for {task}", hint=f"composer.train.marked(tokenizer, {task!r}) adds them"
        )
    objective = row.objective(tokenizer)
    if settings is None:
        return objective
    if isinstance(objective, SkipGram):
        check_inputs(program)
        return replace(objective, window=settings.window, negatives=settings.negatives)
    if isinstance(objective, PrefixLM):
        return replace(objective, prefix=needed_prefix(program))
    if isinstance(objective, Translation):
        return replace(objective, longest=settings.seq_len)
    return replace(objective, ends=settings.end_tokens) if isinstance(objective, NextToken) else objective


def reads_plain(objective: Batches[Any]) -> bool:
    """Return whether an objective reads the tokens of a text as they are, without lines or ends, so that they can be prepared."""
    return objective.windows and getattr(objective, "ends", "none") == "none"


def reads_pairs(task: str | None, settings: TrainSettings) -> bool:
    """Return whether a text is one of pairs, a source and a target in each line."""
    return task == "seq2seq_lm" and settings.objective not in TEXT_OBJECTIVES


def whole_text(task: str | None, documents: Sequence[TextDocument], settings: TrainSettings) -> str:
    """Return the text for which a tokenizer is made; of pairs, and of lines with an end token, as lines are read."""
    by_lines = reads_pairs(task, settings) or settings.end_tokens == "line"
    return "".join(with_newlines(document) if by_lines else document.text for document in documents)


def check_mixture(objective: Batches[Any], weights: Sequence[float]) -> None:
    """Raise `TrainingError` if sources have weights, and an objective cannot tell them apart."""
    if weights and getattr(objective, "ends", "none") == "file":
        raise TrainingError(
            "with an end token after each file, all files are one text, so that sources have no weights",
            hint="leave out the weights, or let each line be a text: --end-tokens line",
        )


def needed_prefix(program: TypedProgram | None) -> str:
    """Return the input with the lengths of prefixes.

    Raises:
        TrainingError: The model has none.
    """
    found = None if program is None else prefix_input(program)
    if found is None:
        raise TrainingError(
            "the recipe is no prefix language model: no mask reads the length of a prefix from an input",
            hint="write inputs: {prompt_length: int[batch]} and mask: causal or prefix(prompt_length)",
        )
    return found


def learnable(task: str | None) -> str:
    """Return the task if it can be trained on a text.

    Args:
        task: The task of a recipe; None without one.

    Raises:
        TrainingError: There is no task, or it cannot be trained on a text.

    Examples:
        >>> from composer.train import learnable
        >>> learnable("causal_lm")
        'causal_lm'
    """
    if task is None or task not in TEXT_TASKS:
        *first, last = TEXT_TASKS
        known = f"{', '.join(first)} or {last}"
        raise TrainingError(
            f"training on text needs a recipe with the task {known}; this one has {task or 'no task'}",
            hint="other recipes learn from a table: --data FILE.csv" if task != "encoder" else "",
        )
    return task
