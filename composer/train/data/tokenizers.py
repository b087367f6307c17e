"""Text to token ids and back: bytes, characters, or pieces learned from the text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import tokenizers

from composer.atomic_files import StrPath
from composer.train.errors import TrainingError


class Tokenizer(Protocol):
    """Text as numbers from 0 to `size` - 1."""

    @property
    def size(self) -> int:
        """How many tokens there are."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text.

        Raises:
            TrainingError: The text has a character that no token stands for.
        """
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some tokens; bytes that are no whole character become `\\N{REPLACEMENT CHARACTER}`."""
        ...

    def to_json(self) -> Any:
        """Return what `load_tokenizer` builds the tokenizer from, as dicts, lists, strings and numbers."""
        ...


@dataclass(frozen=True)
class ByteTokenizer:
    """Every byte of the UTF-8 text is a token."""

    size: int = 256

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8"))

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(ids).decode("utf-8", errors="replace")

    def to_json(self) -> Any:
        return "bytes"


@dataclass(frozen=True)
class CharacterTokenizer:
    """Every character of a fixed list is a token."""

    characters: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.characters)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The place of each character in the list."""
        return {character: index for index, character in enumerate(self.characters)}

    def encode(self, text: str) -> list[int]:
        try:
            return [self.ids[character] for character in text]
        except KeyError as unknown:
            character = unknown.args[0]
            raise TrainingError(
                f"the character {character!r} (U+{ord(character):04X}) is not among the {self.size} of this model's vocabulary",
                hint="leave it out, or train with a byte or BPE tokenizer, which can encode every character",
            ) from None

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.characters[index] for index in ids)

    def to_json(self) -> Any:
        return list(self.characters)


@dataclass(frozen=True, eq=False)
class BPETokenizer:
    """Byte-pair encoding over bytes: frequent pieces of words are tokens, and so is every single byte."""

    pieces: tokenizers.Tokenizer

    @property
    def size(self) -> int:
        return self.pieces.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        return self.pieces.encode(text).ids

    def decode(self, ids: Sequence[int]) -> str:
        return self.pieces.decode(list(ids), skip_special_tokens=False)

    def to_json(self) -> Any:
        return json.loads(self.pieces.to_str())


@dataclass(frozen=True)
class MarkedTokenizer:
    """A tokenizer of text, and marks beside it: tokens that no text has, such as a start, with names to show them by."""

    text: Tokenizer
    marks: tuple[str, ...]

    @property
    def size(self) -> int:
        return self.text.size + len(self.marks)

    def mark(self, name: str) -> int:
        """Return the token of a mark, by its name."""
        return self.text.size + self.marks.index(name)

    def encode(self, text: str) -> list[int]:
        return self.text.encode(text)

    def encode_marked(self, text: str) -> list[int]:
        """Return the tokens of a text in which the names of marks, such as `<mask>`, stand for the marks."""
        pieces = re.split(f"({'|'.join(map(re.escape, self.marks))})", text)
        return [token for piece in pieces for token in ([self.mark(piece)] if piece in self.marks else self.encode(piece))]

    def decode(self, ids: Sequence[int]) -> str:
        runs = groupby(ids, key=lambda index: index >= self.text.size)
        return "".join(
            "".join(self.marks[index - self.text.size] for index in run) if marks else self.text.decode(list(run))
            for marks, run in runs
        )

    def to_json(self) -> Any:
        return {"text": self.text.to_json(), "marks": list(self.marks)}


def characters_of(text: str) -> CharacterTokenizer:
    """Return a tokenizer with one token for each character that occurs in a text, in the order of their code points.

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
        size: The largest number of tokens: the 256 bytes, and the pairs worth joining.

    Raises:
        TrainingError: The size is below 256.
    """
    if size < 256:
        raise TrainingError(
            f"a vocabulary of {size} cannot hold the 256 bytes", hint="use 256 or more, or the character tokenizer"
        )
    pieces = tokenizers.Tokenizer(tokenizers.models.BPE())
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    pieces.train_from_iterator(stretches(text), trainer)
    return BPETokenizer(pieces)


def stretches(text: str, length: int = 1 << 20) -> Iterator[str]:
    """Yield the text in pieces of whole lines of about `length` characters, so that no list of ids holds all of it."""
    start = 0
    while start < len(text):
        line_end = text.find("\n", start + length)
        end = line_end + 1 if line_end >= 0 else len(text)
        yield text[start:end]
        start = end


def save_tokenizer(tokenizer: Tokenizer, path: StrPath) -> None:
    """Write a tokenizer as JSON, which `load_tokenizer` reads.

    Examples:
        >>> from composer.train import characters_of, load_tokenizer, save_tokenizer
        >>> save_tokenizer(characters_of("banana"), "tokenizer.json")
        >>> load_tokenizer("tokenizer.json").size
        3
    """
    Path(path).write_text(json.dumps(tokenizer.to_json(), ensure_ascii=False) + "\n", encoding="utf-8")


def load_tokenizer(path: StrPath) -> Tokenizer:
    """Return the tokenizer of a file: one that `save_tokenizer` wrote, or a byte-level BPE of the `tokenizers` library.

    Raises:
        TrainingError: The file cannot be read, or holds no such tokenizer.
    """
    tokenizer = from_json(json.loads(Path(path).read_text(encoding="utf-8")))
    if tokenizer is None:
        raise TrainingError(f"{path} is not a tokenizer")
    return tokenizer


def from_json(content: Any) -> Tokenizer | None:
    """Return the tokenizer whose `to_json` this is; None where it is none's."""
    match content:
        case "bytes":
            return ByteTokenizer()
        case list() as characters:
            return CharacterTokenizer(tuple(characters))
        case {"text": text, "marks": [*marks]}:
            inner = from_json(text)
            return None if inner is None else MarkedTokenizer(inner, tuple(marks))
        case dict() as pieces:
            return BPETokenizer(tokenizers.Tokenizer.from_str(json.dumps(pieces)))
    return None


def text_as_it_comes(tokenizer: Tokenizer, ids: Iterable[int]) -> Iterator[str]:
    """Yield the text of a stream of tokens, piece by piece; bytes are held back until they make a whole character.

    Args:
        tokenizer: What made the tokens.
        ids: The tokens, perhaps still being generated.

    Examples:
        >>> from composer.train import ByteTokenizer, text_as_it_comes
        >>> "".join(text_as_it_comes(ByteTokenizer(), "née".encode()))
        'née'
    """
    waiting: list[int] = []
    shown = 0  # characters of the waiting tokens' text that are out already
    for index in ids:
        waiting.append(index)
        text = tokenizer.decode(waiting)
        whole = text.rstrip("\N{REPLACEMENT CHARACTER}")
        yield whole[shown:]
        shown = len(whole)
        if whole == text:
            waiting, shown = [], 0
    yield tokenizer.decode(waiting)[shown:]
