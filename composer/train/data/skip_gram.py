"""Skip-gram with negative sampling: which words stand near each other (Mikolov et al. 2013, word2vec)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from composer.atomic_files import StrPath
from composer.graph.typed import TypedProgram
from composer.memo import IdentityKey, Memo
from composer.train.data import text as texts
from composer.train.data.documents import TextDocument
from composer.train.data.order import drawn_by_weight
from composer.train.data.text import Ids, TextData
from composer.train.data.tokenizers import Tokenizer
from composer.train.errors import TrainingError
from composer.train.losses import Batch

POWER = 0.75
"""Negatives are drawn by the counts of words to this power: Mikolov et al. 2013, section 2.2."""
CENTER, CONTEXT, TARGET = "center", "context", "target"
"""The inputs of a recipe: a word, a true neighbor and some negatives, and 1 for the neighbor and 0 for the others."""


def check_inputs(program: TypedProgram | None) -> None:
    """Raise `TrainingError` unless a recipe has the inputs of skip-gram."""
    for name in (CENTER, CONTEXT, TARGET):
        if program is not None and name not in program.inputs:
            raise TrainingError(
                f"skip_gram needs a recipe with the inputs {CENTER}, {CONTEXT} and {TARGET}, and this one has no `{name}`",
                hint='inputs: {center: "int[batch]", context: "int[batch, words]", target: "float[batch, words]"}, and a loss '
                "{type: binary_cross_entropy, in: SCORES, target: target}",
            )


@dataclass(frozen=True)
class SkipGram:
    """Tell the neighbor of a word from other words."""

    windows: ClassVar[bool] = True
    tokenizer: Tokenizer
    window: int = 5
    """How far a neighbor is at most; how far, each time, is drawn uniformly."""
    negatives: int = 5
    """How many other words are drawn for each neighbor."""
    known: Memo[IdentityKey[Ids], Tensor] = field(default_factory=Memo, init=False, repr=False, compare=False)
    """The weight of each word as a negative, of each stream."""

    def tokenize(self, text: str | Sequence[TextDocument], *, path: StrPath | Sequence[StrPath]) -> TextData:
        return texts.tokenize(text, self.tokenizer, path=path)

    def unseen(self, text: str | Sequence[TextDocument], *, path: StrPath | Sequence[StrPath]) -> TextData:
        return texts.unseen(text, self.tokenizer, path=path, first=0)

    def check(self, data: TextData, seq_len: int) -> None:
        for stream, ends in ((data.train, data.train_ends), (data.validation, data.validation_ends)):
            if not len(self._centers(stream, ends)):
                raise TrainingError(f"{data.name} is too short: no word of it has a neighbor")
        if data.mixture:
            stops = self._stops(data, self._centers(data.train, data.train_ends))
            texts.check_sources(data, stops, "is too short: no word of it has a neighbor")

    def draw(self, data: TextData, *, batch_size: int, seq_len: int, generator: torch.Generator) -> Batch:
        centers = self._centers(data.train, data.train_ends)
        if data.mixture:
            drawn = drawn_by_weight(self._stops(data, centers), data.weights, batch_size, generator)
        else:
            drawn = torch.randint(len(centers), (batch_size,), generator=generator).numpy()
        chosen = centers[drawn]
        return self._batch(data.train, data.train_ends, chosen, data.train, generator)

    def held_out(self, data: TextData, *, batch_size: int, seq_len: int) -> Iterator[Batch]:
        generator = torch.Generator().manual_seed(0)
        centers = self._centers(data.validation, data.validation_ends)
        noise = data.train if len(data.train) else data.validation
        for first in range(0, len(centers), batch_size):
            yield self._batch(data.validation, data.validation_ends, centers[first : first + batch_size], noise, generator)

    def whole(self, data: TextData) -> int | None:
        return None

    def _stops(self, data: TextData, centers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many words with a neighbor there are up to the end of each source with a weight."""
        return np.asarray(np.searchsorted(centers, data.source_ends), dtype=np.int64)

    def _centers(self, stream: Ids, ends: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the places of all words that have a neighbor: those of documents with two words or more."""
        documents = texts.extents(stream, ends)
        places = np.arange(len(stream), dtype=np.int64)
        return places[np.repeat(documents.lengths >= 2, documents.lengths)]

    def _batch(
        self, stream: Ids, ends: Sequence[int], places: npt.NDArray[np.int64], noise: Ids, generator: torch.Generator
    ) -> Batch:
        documents = texts.extents(stream, ends)
        of_each = np.searchsorted(documents.ends, places, side="right")
        begins, stops = documents.starts[of_each], documents.ends[of_each]
        far = torch.randint(1, self.window + 1, (len(places),), generator=generator).numpy()
        first, last = np.maximum(places - far, begins), np.minimum(places + far, stops - 1)
        drawn = torch.rand(len(places), generator=generator, dtype=torch.float64).numpy()
        near = first + (drawn * (last - first)).astype(np.int64)  # one of the places of the window but the center's
        near = near + (near >= places)
        weights = self.known.get(IdentityKey(noise), lambda: self._weights(noise))
        others = torch.multinomial(weights, len(places) * self.negatives, replacement=True, generator=generator)
        neighbors = torch.from_numpy(stream[near].astype(np.int64))
        context = torch.cat([neighbors[:, None], others.view(-1, self.negatives)], 1)
        target = torch.zeros(context.shape)
        target[:, 0] = 1
        return {CENTER: torch.from_numpy(stream[places].astype(np.int64)), CONTEXT: context, TARGET: target}

    def _weights(self, stream: Ids) -> Tensor:
        return torch.from_numpy(np.bincount(stream, minlength=self.tokenizer.size).astype(np.float64) ** POWER)
