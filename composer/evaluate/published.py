"""Evaluation of published language models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from composer.atomic_files import StrPath
from composer.evaluate.evaluation import Evaluation, check_sizes, evaluated
from composer.published.opened import PublishedModel
from composer.published.tokenizer import PublishedTokenizer
from composer.train.data.documents import TextDocument, read_documents, sources_of
from composer.train.data.objectives import NextToken
from composer.train.data.text import Ids, TextData, data_of, encode, predictable
from composer.train.errors import TrainingError
from composer.train.settings import MAX_DATA_BYTES

BATCH = 8
LONGEST = 1024
"""Length of a sequence where none is given and the model reads longer ones."""


@dataclass(frozen=True)
class WithoutSpecial:
    """The tokenizer of a published folder, without the tokens that it adds to every text."""

    pieces: PublishedTokenizer

    @property
    def size(self) -> int:
        return self.pieces.size

    def encode(self, text: str) -> list[int]:
        return self.pieces.encode(text, special=False)

    def decode(self, ids: Sequence[int]) -> str:
        return self.pieces.decode(ids)

    def to_json(self) -> Any:
        return None  # nothing is saved

    @property
    def beginning(self) -> list[int]:
        """The tokens that begin every text."""
        whole, text = self.pieces.encode("a"), self.encode("a")
        places = [place for place in range(len(whole) - len(text) + 1) if whole[place : place + len(text)] == text]
        return whole[: places[0]] if text and places else []


def evaluate_published(
    published: PublishedModel,
    data: StrPath | Sequence[StrPath],
    *,
    batch_size: int | None = None,
    seq_len: int | None = None,
    max_data_bytes: int = MAX_DATA_BYTES,
    calibration: bool = False,
) -> Evaluation:
    """Measure how well a published language model predicts a text.

    Every token of a file is predicted, but the first one if the tokenizer adds none before it.

    Args:
        published: The model with its tokenizer.
        data: The path of a text to read, or the paths and patterns of several.
        batch_size: Sequences in one forward pass; by default 8.
        seq_len: Length of a sequence, in tokens; by default the context of the model, and at most 1024.
        max_data_bytes: The largest size of the text that is read, decompressed.
        calibration: Also compare how sure the model is of tokens with how often it is right.

    Raises:
        TrainingError: The model is none of causal_lm, the text cannot be read or used, or the model's numbers are not finite.
    """
    check_sizes(batch_size=batch_size, seq_len=seq_len)
    task = published.model.recipe.task
    if task != "causal_lm":
        raise TrainingError(f"a published model of the task {task or 'none'} is not evaluated", hint="those of causal_lm are")
    tokenizer = WithoutSpecial(published.tokenizer)
    objective = NextToken(tokenizer)
    sources = sources_of(data)
    documents = read_documents(sources, max_bytes=max_data_bytes)
    start = tokenizer.beginning
    text = after(start, documents, tokenizer, path=sources) if start else objective.unseen(documents, path=sources)
    length = seq_len or min(published.context or LONGEST, LONGEST)
    return evaluated(
        published.model,
        text,
        objective,
        batch_size=batch_size or BATCH,
        seq_len=length,
        run=published.folder,
        step=None,
        held_out=False,
        calibration=calibration,
    )


def after(
    start: Sequence[int], documents: Sequence[TextDocument], tokenizer: WithoutSpecial, *, path: Sequence[StrPath]
) -> TextData:
    """Return texts that are all held out, each after the tokens that begin every text."""
    ids = [encode(document.text, tokenizer) for document in documents]
    first = cast("Ids", np.array(start, dtype=ids[0].dtype))
    texts = [document.text for document in documents]
    return predictable(data_of(documents, path=path, train=[first for _ in ids], validation=ids, held_out=texts))
