"""The ways to make a tokenizer from a text, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TokenizerKind:
    """A way to make a tokenizer from a text."""

    doc: str
    """What its tokens are."""
    size: int | None = None
    """The size of the vocabulary where none is given; None if it follows from the text."""


TOKENIZER_KINDS: Mapping[str, TokenizerKind] = {
    "characters": TokenizerKind("every character of the text"),
    "bytes": TokenizerKind("every byte of UTF-8"),
    "bpe": TokenizerKind("bytes, and frequent pairs joined again and again, as in GPT-2", 4096),
    "wordpiece": TokenizerKind("words in pieces, as in BERT", 4096),
    "words": TokenizerKind("frequent words; all others are unknown", 10_000),
}
SIZED = tuple(name for name, kind in TOKENIZER_KINDS.items() if kind.size is not None)
"""Those whose vocabulary has a size that is chosen."""
