"""Texts as tokens, piece by piece: the same as a tokenizer gives for a whole text, in a fraction of the time and the memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
import tokenizers

from composer.train.data.prepared.gpt2_words import MOST_WORDS, words_of
from composer.train.data.prepared.text_stream import CODE_POINTS, SAFE, code_points, stretches_in
from composer.train.data.tokenizer_files import WORDS_PATTERN
from composer.train.data.tokenizers import (
    BPETokenizer,
    ByteTokenizer,
    CharacterTokenizer,
    MarkedTokenizer,
    PiecesTokenizer,
    Tokenizer,
)

Ids: TypeAlias = "npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]"
"""Tokens, in the smallest type that holds the vocabulary."""

TOGETHER = 8
"""Pieces that the threads of the `tokenizers` library work on at a time."""
GPT2_CUT = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
"""The pre-tokenizer that cuts a text into the words of GPT-2, as the library writes it."""
SAFE_CUTS = (
    GPT2_CUT,
    {"type": "BertPreTokenizer"},
    {"type": "Split", "pattern": {"Regex": WORDS_PATTERN}, "behavior": "Removed", "invert": True},
)
"""The pre-tokenizers of learned tokenizers, all of which cut at `SAFE` places."""


def dtype_of(size: int) -> type[np.uint8] | type[np.uint16] | type[np.uint32]:
    """Return the smallest type that holds the tokens of a vocabulary of a size."""
    return np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.uint32


def encoded(texts: Iterable[str], tokenizer: Tokenizer) -> Iterator[Ids]:
    """Yield the tokens of a text, piece by piece.

    Args:
        texts: The pieces of the text, cut anywhere.
        tokenizer: The tokenizer.

    Raises:
        TrainingError: A character of the text has no token.
    """
    plain = tokenizer.text if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    dtype = dtype_of(tokenizer.size)
    return (cast("Ids", ids.astype(dtype, copy=False)) for ids in _encoded(texts, plain))


def _encoded(texts: Iterable[str], tokenizer: Tokenizer) -> Iterator[npt.NDArray[np.integer]]:
    match tokenizer:
        case ByteTokenizer():
            return (np.frombuffer(text.encode("utf-8"), np.uint8) for text in texts)
        case CharacterTokenizer():
            return by_characters(texts, tokenizer)
        case BPETokenizer() if has_gpt2_words(tokenizer.pieces):
            return by_words(texts, tokenizer.pieces)
        case BPETokenizer() | PiecesTokenizer():
            return by_library(texts, tokenizer.pieces)
    return (np.array(tokenizer.encode(stretch), dtype=np.int64) for stretch in stretches_in(texts))


def by_characters(texts: Iterable[str], tokenizer: CharacterTokenizer) -> Iterator[npt.NDArray[np.integer]]:
    """Yield the tokens of a text whose characters are tokens.

    Raises:
        TrainingError: A character has no token.
    """
    none = tokenizer.size
    table = np.full(CODE_POINTS, none, dtype=dtype_of(none + 1))
    table[[*map(ord, tokenizer.characters)]] = np.arange(none)
    for text in texts:
        ids = table[np.frombuffer(text.encode("ascii"), np.uint8) if text.isascii() else code_points(text)]
        if (ids == none).any():
            tokenizer.encode(text)  # names the character
        yield ids


def by_words(texts: Iterable[str], pieces: tokenizers.Tokenizer) -> Iterator[npt.NDArray[np.integer]]:
    """Yield the tokens of a text that is cut into the words of GPT-2: each word is encoded when it is first met."""
    words = KnownWords(pieces)
    for piece in stretches_in(texts, safe=SAFE):
        yield words.encode(words_of(piece))


class KnownWords(dict[str, int]):
    """Words with their numbers, in the order in which they were met, and the tokens of each."""

    def __init__(self, pieces: tokenizers.Tokenizer) -> None:
        super().__init__()
        self.pieces = pieces
        self.met: list[str] = []  # words whose tokens are not known yet
        self.tokens = Growing()  # of all words, one behind the other
        self.ends = Growing([0])  # where the tokens of each end, after a first 0

    def __missing__(self, word: str) -> int:
        self.met.append(word)
        self[word] = number = len(self)
        return number

    def encode(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the tokens of words."""
        if len(self) > MOST_WORDS:
            self.clear()
            self.tokens, self.ends = Growing(), Growing([0])
        numbers = np.fromiter(map(self.__getitem__, words), dtype=np.int64, count=len(words))
        if self.met:
            lists = [found.ids for found in self.pieces.encode_batch_fast(self.met, add_special_tokens=False)]
            self.met = []
            self.ends.extend(len(self.tokens.values) + np.cumsum([len(ids) for ids in lists]))
            self.tokens.extend(np.fromiter(chain.from_iterable(lists), dtype=np.int64))
        ends = self.ends.values
        starts, lengths = ends[numbers], ends[numbers + 1] - ends[numbers]
        before = np.cumsum(lengths) - lengths  # the tokens of the words before each
        places: npt.NDArray[np.int64] = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
        return self.tokens.values[places]


class Growing:
    """An array to which numbers are appended; the room for them doubles."""

    def __init__(self, values: Sequence[int] = ()) -> None:
        self.room = np.array([*values, *[0] * 1024], dtype=np.int64)
        self.count = len(values)

    @property
    def values(self) -> npt.NDArray[np.int64]:
        """The numbers."""
        return self.room[: self.count]

    def extend(self, values: npt.NDArray[np.int64]) -> None:
        """Append numbers."""
        if self.count + len(values) > len(self.room):
            self.room = np.concatenate([self.values, np.zeros(self.count + 2 * len(values), dtype=np.int64)])
        self.room[self.count : self.count + len(values)] = values
        self.count += len(values)


def by_library(texts: Iterable[str], pieces: tokenizers.Tokenizer) -> Iterator[npt.NDArray[np.integer]]:
    """Yield the tokens that the `tokenizers` library gives, in its threads."""
    safe = cuts_safely(pieces)
    stretches = stretches_in(texts, safe=SAFE if safe else None)
    while some := [*islice(stretches, TOGETHER if safe else 1)]:
        for found in pieces.encode_batch_fast(some, add_special_tokens=False):
            yield np.array(found.ids, dtype=np.int64)


def has_gpt2_words(pieces: tokenizers.Tokenizer) -> bool:
    """Return whether a tokenizer encodes each word of GPT-2 by itself, and nothing else."""
    content = json.loads(pieces.to_str())
    return content["pre_tokenizer"] == GPT2_CUT and not content["normalizer"] and not content["added_tokens"]


def cuts_safely(pieces: tokenizers.Tokenizer) -> bool:
    """Return whether a tokenizer joins nothing across a `SAFE` place."""
    content = json.loads(pieces.to_str())
    plain = all(
        not (token["lstrip"] or token["rstrip"] or token["single_word"] or any(map(str.isspace, token["content"])))
        for token in content["added_tokens"]
    )
    return content["pre_tokenizer"] in SAFE_CUTS and plain and not content["normalizer"]
