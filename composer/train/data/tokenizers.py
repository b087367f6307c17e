"""Tokenizers: bytes, characters, byte-pair encoding learned from a text, and those of published models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Protocol

import tokenizers

from composer.train.data.prepared.gpt2_words import ByteSpelling, words_of
from composer.train.data.prepared.text_stream import SAFE, stretches_in
from composer.train.errors import TrainingError

NEIGHBORS = 8
"""The tokens before another one that are enough to tell how it reads."""


class Tokenizer(Protocol):
    """Protocol of tokenizers, which map text to ids from 0 to `size` - 1 and back."""

    @property
    def size(self) -> int:
        """The number of tokens."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text.

        Args:
            text: The text.

        Raises:
            TrainingError: A character of the text has no token.
        """
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; incomplete UTF-8 characters become `\\N{REPLACEMENT CHARACTER}`.

        Args:
            ids: The ids.
        """
        ...

    def to_json(self) -> Any:
        """Return the tokenizer as dicts, lists, strings and numbers, from which `load_tokenizer` restores it."""
        ...


@dataclass(frozen=True)
class ByteTokenizer:
    """A tokenizer in which every UTF-8 byte is a token."""

    size: int = 256

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8"))

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(ids).decode("utf-8", errors="replace")

    def to_json(self) -> Any:
        return "bytes"


@dataclass(frozen=True)
class CharacterTokenizer:
    """A tokenizer in which every character of a fixed list is a token."""

    characters: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.characters)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each character."""
        return {character: index for index, character in enumerate(self.characters)}

    def encode(self, text: str) -> list[int]:
        try:
            return [self.ids[character] for character in text]
        except KeyError as unknown:
            character = unknown.args[0]
            remove = "line ends of Windows have it: `tr -d '\\r'` removes it" if character == "\r" else "remove it"
            raise TrainingError(
                f"the character {character!r} (U+{ord(character):04X}) is not among the {self.size} of this model's vocabulary",
                hint=f"{remove}, or train with a byte or BPE tokenizer, which can encode every character",
            ) from None

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.characters[index] for index in ids)

    def to_json(self) -> Any:
        return list(self.characters)


@dataclass(frozen=True, eq=False)
class BPETokenizer:
    """A byte-level BPE tokenizer: every byte is a token, and so are frequent sequences of bytes."""

    pieces: tokenizers.Tokenizer

    @property
    def size(self) -> int:
        return self.pieces.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        return self.pieces.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        return self.pieces.decode(list(ids), skip_special_tokens=False)

    def to_json(self) -> Any:
        return json.loads(self.pieces.to_str())


@dataclass(frozen=True, eq=False)
class PiecesTokenizer:
    """A tokenizer of the `tokenizers` library, such as that of a published model, with the special tokens that it knows."""

    pieces: tokenizers.Tokenizer
    special: Mapping[str, int]
    """The ids of marks, such as `<mask>`."""
    words: Mapping[str, str]
    """The words of special tokens by what they are for: `mask_token`."""

    @cached_property
    def size(self) -> int:
        return max(self.pieces.get_vocab().values(), default=-1) + 1

    def encode(self, text: str) -> list[int]:
        return ids_in_pieces(self.pieces, text, special=False)

    def encode_whole(self, text: str) -> list[int]:
        """Return the ids of a whole text, with the special tokens that begin and end one.

        Args:
            text: The text.

        Raises:
            TrainingError: A character of the text has no token.
        """
        return ids_in_pieces(self.pieces, text)

    def decode(self, ids: Sequence[int]) -> str:
        return self.pieces.decode(list(ids), skip_special_tokens=True)

    def to_json(self) -> Any:
        return {"pieces": json.loads(self.pieces.to_str()), "special": dict(self.special), "words": dict(self.words)}


def ids_in_pieces(pieces: tokenizers.Tokenizer, text: str, *, special: bool = True) -> list[int]:
    """Return the ids of a text by a tokenizer of the `tokenizers` library.

    Args:
        pieces: The tokenizer.
        text: The text.
        special: Whether the tokens that begin and end every text are added.

    Raises:
        TrainingError: A character of the text has no token, and the vocabulary has none for the unknown.
    """
    try:
        return pieces.encode(text, add_special_tokens=special).ids
    except Exception as error:  # the library raises no narrower class
        what = next((character for character in text if not _is_known(pieces, character)), "")
        which = f"the character {what!r} (U+{ord(what):04X}) is not in" if what else f"{error} in"
        raise TrainingError(f"{which} the vocabulary of this model's tokenizer", hint="remove it from the text") from None


def _is_known(pieces: tokenizers.Tokenizer, character: str) -> bool:
    try:
        pieces.encode(character, add_special_tokens=False)
    except Exception:  # the library raises no narrower class
        return False
    return True


@dataclass(frozen=True)
class MarkedTokenizer:
    """A tokenizer with marks: special tokens that do not occur in text, such as a start token, each with a name. Those that the
    tokenizer of the text knows by itself keep their ids.
    """

    text: Tokenizer
    marks: tuple[str, ...]

    @property
    def known(self) -> Mapping[str, int]:
        """The marks that the tokenizer of the text has ids for."""
        return self.text.special if isinstance(self.text, PiecesTokenizer) else {}

    @cached_property
    def added(self) -> tuple[str, ...]:
        """The marks that have ids behind those of the text."""
        return tuple(mark for mark in self.marks if mark not in self.known)

    @property
    def size(self) -> int:
        return self.text.size + len(self.added)

    def mark(self, name: str) -> int:
        """Return the id of a mark.

        Args:
            name: The name of the mark, such as `<mask>`.
        """
        return self.known[name] if name in self.known else self.text.size + self.added.index(name)

    def encode(self, text: str) -> list[int]:
        return self.text.encode(text)

    def encode_marked(self, text: str) -> list[int]:
        """Return the ids of a text in which the names of marks, such as `<mask>`, are read as marks.

        Args:
            text: The text.
        """
        pieces = re.split(f"({'|'.join(map(re.escape, self.marks))})", text)
        return [token for piece in pieces for token in ([self.mark(piece)] if piece in self.marks else self.encode(piece))]

    def decode(self, ids: Sequence[int]) -> str:
        runs = groupby(ids, key=lambda index: index >= self.text.size)
        return "".join(
            "".join(self.added[index - self.text.size] for index in run) if marks else self.text.decode(list(run))
            for marks, run in runs
        )

    def to_json(self) -> Any:
        return {"text": self.text.to_json(), "marks": list(self.marks)}


def characters_of(text: str) -> CharacterTokenizer:
    """Return a tokenizer with a token for each character of a text, in the order of code points.

    Args:
        text: The text.

    Examples:
        >>> from composer.train import characters_of
        >>> characters_of("banana").encode("ban")
        [1, 0, 2]
    """
    return CharacterTokenizer(tuple(sorted(set(text))))


def train_bpe(text: str, *, size: int) -> BPETokenizer:
    """Return a byte-level BPE tokenizer learned from a text (Sennrich et al. 2016).

    Args:
        text: The text to learn from.
        size: The maximum number of tokens: the 256 bytes, and merged pairs.

    Raises:
        TrainingError: The size is below 256.

    Examples:
        >>> from composer.train import train_bpe
        >>> len(train_bpe("to be or not to be\\n" * 20, size=270).encode("to be"))
        2
    """
    return bpe_of(stretches(text), size=size)


def bpe_of(texts: Iterable[str], *, size: int) -> BPETokenizer:
    """Return a byte-level BPE tokenizer learned from a text, given piece by piece.

    Raises:
        TrainingError: The size is below 256.
    """
    if size < 256:
        raise TrainingError(
            f"a vocabulary of {size} cannot hold the 256 bytes", hint="use 256 or more, or the character tokenizer"
        )
    pieces = tokenizers.Tokenizer(tokenizers.models.BPE())
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    # The trainer only counts words, and is given them cut and spelled already, which takes half the time.
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.CharDelimiterSplit(" ")
    spelled = ByteSpelling()
    words = (" ".join(map(spelled.__getitem__, words_of(piece))) for piece in stretches_in(texts, safe=SAFE))
    pieces.train_from_iterator(words, trainer)
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = tokenizers.decoders.ByteLevel()
    return BPETokenizer(pieces)


def stretches(text: str, length: int = 1 << 20) -> Iterator[str]:
    """Yield the text in pieces of whole lines of about `length` characters, so that no list has to hold all ids."""
    start = 0
    while start < len(text):
        line_end = text.find("\n", start + length)
        end = line_end + 1 if line_end >= 0 else len(text)
        yield text[start:end]
        start = end


def text_as_it_comes(tokenizer: Tokenizer, ids: Iterable[int], *, after: Sequence[int] = ()) -> Iterator[str]:
    """Yield the text of a stream of ids, piece by piece; what is no whole character yet is held back.

    Args:
        tokenizer: The tokenizer of the ids.
        ids: The ids, which may still be generated.
        after: The ids of what stands before, whose end decides whether a space follows.

    Examples:
        >>> from composer.train import ByteTokenizer, text_as_it_comes
        >>> "".join(text_as_it_comes(ByteTokenizer(), "née".encode()))
        'née'
    """
    seen = list(after[-NEIGHBORS:])
    start, shown = (
        0,
        len(seen),
    )  # ids from `start` on are decoded together, since a token may read otherwise at the start of a text
    for index in ids:
        seen.append(index)
        before, text = tokenizer.decode(seen[start:shown]), tokenizer.decode(seen[start:])
        if len(text) > len(before) and not text.endswith("\N{REPLACEMENT CHARACTER}"):
            yield text[len(before) :]
            start, shown = shown, len(seen)
    if rest := tokenizer.decode(seen[start:])[len(tokenizer.decode(seen[start:shown])) :]:
        yield rest
