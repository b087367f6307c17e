"""Files of tokenizers: those that this package writes, and those of the `tokenizers` library."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tokenizers

from composer.atomic_files import StrPath, save
from composer.train.data.tokenizers import (
    BPETokenizer,
    ByteTokenizer,
    CharacterTokenizer,
    MarkedTokenizer,
    PiecesTokenizer,
    Tokenizer,
)
from composer.train.errors import TrainingError
from composer.train.input_files import parse_json, read_bytes

LIMIT = 1 << 28
"""The largest size of the file of a tokenizer that is read, in bytes."""
PATTERNS = (
    # Llama 3
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    # Qwen 2
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)
"""The patterns by which a file may cut a text before its bytes are paired, besides that of GPT-2, which is built in."""
WORDS_PATTERN = r"\w+(?:['’]\w+)*|[^\w\s]"
"""The words of a text, also with an apostrophe inside, and its punctuation marks."""
KNOWN = (
    WORDS_PATTERN,
    # GPT-2
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
)
"""Patterns that cut a text as published, besides those that a tokenizer to be trained with may have."""
SEVERAL = re.compile(r"\)[*+?{]|\\[1-9]")
"""What repeats a group of a pattern, or refers to one."""
UNBOUNDED = re.compile(r"(?<!\\)(?:[*+]|\{\d*,\})")


def save_tokenizer(tokenizer: Tokenizer, path: StrPath) -> None:
    """Write a tokenizer to a JSON file, which `load_tokenizer` reads.

    Args:
        tokenizer: The tokenizer.
        path: The file to write.

    Examples:
        >>> from composer.train import characters_of, load_tokenizer, save_tokenizer
        >>> save_tokenizer(characters_of("banana"), "tokenizer.json")
        >>> load_tokenizer("tokenizer.json").size
        3
    """
    save(Path(path), content_of(tokenizer))


def content_of(tokenizer: Tokenizer) -> bytes:
    """Return the content of the file of a tokenizer."""
    return f"{json.dumps(tokenizer.to_json(), ensure_ascii=False)}\n".encode()


def load_tokenizer(path: StrPath) -> Tokenizer:
    """Return the tokenizer of a file: one that `save_tokenizer` wrote, or a byte-level BPE of the `tokenizers` library.

    Args:
        path: The file to read.

    Raises:
        TrainingError: The file cannot be read, has more than 256 MB, or does not contain such a tokenizer.

    Examples:
        >>> from composer.train import ByteTokenizer, load_tokenizer, save_tokenizer
        >>> save_tokenizer(ByteTokenizer(), "tokenizer.json")
        >>> load_tokenizer("tokenizer.json")
        ByteTokenizer(size=256)
    """
    file = Path(path)
    return tokenizer_from_json(parse_json(read_bytes(file, limit=LIMIT), file), file)


def tokenizer_from_json(content: Any, path: Path) -> Tokenizer:
    """Return the tokenizer whose `to_json` returned this.

    Args:
        content: The content of the file.
        path: The file, for errors.

    Raises:
        TrainingError: It is not a tokenizer.
    """
    match content:
        case {"text": text, "marks": [*marks]} if len(content) == 2:
            if not marks or not all(isinstance(mark, str) and mark for mark in marks) or len({*marks}) < len(marks):
                raise TrainingError(f"{path} is not a tokenizer: its marks are not different words")
            return MarkedTokenizer(plain_from_json(text, path), tuple(marks))
    return plain_from_json(content, path)


def plain_from_json(content: Any, path: Path) -> Tokenizer:
    """Return a tokenizer without marks.

    Raises:
        TrainingError: It is not one.
    """
    match content:
        case "bytes":
            return ByteTokenizer()
        case [*characters]:
            if not characters or not all(isinstance(one, str) and len(one) == 1 for one in characters):
                raise TrainingError(f"{path} is not a tokenizer: its characters are not a list of single ones")
            if any("\ud800" <= one <= "\udfff" for one in characters) or len({*characters}) < len(characters):
                raise TrainingError(f"{path} is not a tokenizer: a character is there twice, or is half of one")
            return CharacterTokenizer(tuple(characters))
        case {"pieces": dict() as pieces, "special": dict() as special, "words": dict() as words} if len(content) == 3:
            return of_pieces(pieces, special, words, path)
        case dict():
            return BPETokenizer(byte_level(content, path))
    raise TrainingError(f"{path} is not a tokenizer")


def of_pieces(content: dict[str, Any], special: dict[str, Any], words: dict[str, Any], path: Path) -> PiecesTokenizer:
    """Return a tokenizer of the `tokenizers` library with its special tokens.

    Raises:
        TrainingError: It is not one, or it cuts a text by a pattern that is not known here.
    """
    if (pattern := unknown_pattern(content)) is not None:
        raise TrainingError(f"{path} cuts a text by a pattern that is not known here: {pattern[:200]}")
    try:
        made = PiecesTokenizer(tokenizers.Tokenizer.from_str(json.dumps(content)), special, words)
    except Exception as error:  # the library raises no narrower type
        raise TrainingError(f"{path} is not a tokenizer: {str(error)[:200].lower()}") from None
    if not all(type(token) is int and 0 <= token < made.size for token in special.values()):
        raise TrainingError(f"{path} is not a tokenizer: a special token has no id of its vocabulary")
    if not all(isinstance(word, str) for word in words.values()):
        raise TrainingError(f"{path} is not a tokenizer: a special token is not a word")
    return made


def unknown_pattern(content: Any) -> str | None:
    """Return a pattern of a tokenizer that may take a time without bound, which the library does not limit; None without one."""
    level = [content]
    while level:
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                pattern = each.get("Regex")
                if isinstance(pattern, str) and pattern not in (*PATTERNS, *KNOWN) and not is_plain(pattern):
                    return pattern
                below += each.values()
            elif isinstance(each, list):
                below += [one for one in each if isinstance(one, dict | list)]
        level = below
    return None


def is_plain(pattern: str) -> bool:
    """Return whether a pattern repeats one thing at most, so that it takes no longer than the text is long."""
    return not SEVERAL.search(pattern) and len(UNBOUNDED.findall(pattern)) <= 1


def byte_level(content: dict[str, Any], path: Path) -> tokenizers.Tokenizer:
    """Return a byte-level BPE of the `tokenizers` library, which has tokens for every text.

    Patterns that cut a text are only taken as published: the library has no bound on the time that others take.

    Raises:
        TrainingError: It is another kind of tokenizer, or one that changes or cuts the text.
    """
    for key in ("truncation", "padding", "normalizer"):
        if content.get(key) is not None:
            raise TrainingError(f"{path} is not a byte-level BPE tokenizer: its {key} changes the text")
    for piece in pieces_of(content.get("pre_tokenizer"), "pretokenizers"):
        pattern = piece.get("pattern")
        if piece.get("type") not in ("ByteLevel", "Split") or (pattern is not None and pattern.get("Regex") not in PATTERNS):
            raise TrainingError(f"{path} is not a byte-level BPE tokenizer: it cuts the text by a rule that is not known here")
    try:
        made = tokenizers.Tokenizer.from_str(json.dumps(content))
    except Exception as error:  # the library raises no narrower type
        raise TrainingError(f"{path} is not a tokenizer: {str(error)[:200].lower()}") from None
    vocabulary = made.get_vocab()
    if not isinstance(made.model, tokenizers.models.BPE) or not isinstance(made.decoder, tokenizers.decoders.ByteLevel):
        raise TrainingError(f"{path} is not a byte-level BPE tokenizer")
    if made.model.dropout is not None:
        raise TrainingError(f"{path} is not a byte-level BPE tokenizer: its dropout cuts the same text differently each time")
    if not {*tokenizers.pre_tokenizers.ByteLevel.alphabet()} <= vocabulary.keys():
        raise TrainingError(f"{path} is not a byte-level BPE tokenizer: bytes are missing in its vocabulary")
    if {*vocabulary.values()} != {*range(len(vocabulary))}:
        raise TrainingError(f"{path} is not a tokenizer: its ids are not 0 to {len(vocabulary) - 1:,}")
    return made


def pieces_of(part: Any, key: str) -> Iterator[dict[str, Any]]:
    """Yield the pieces of a part of a tokenizer, which may be a sequence of some."""
    if isinstance(part, dict) and part.get("type") == "Sequence" and isinstance(part.get(key), list):
        for inner in part[key]:
            yield from pieces_of(inner, key)
    elif part is not None:
        yield part if isinstance(part, dict) and isinstance(part.get("pattern", {}), dict) else {}
