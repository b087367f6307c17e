"""Texts piece by piece, so that no text is ever whole in memory: what they hold, and their pieces for tokenizers."""

from __future__ import annotations

import codecs
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from composer.atomic_files import StrPath
from composer.train.data.documents import ReadLimit, documents_in, not_text, pieces_of
from composer.train.errors import TrainingError

STRETCH = 1 << 20
"""Characters after which a stretch of text ends at the end of its line; a tokenizer never joins what two stretches have."""
PIECE = 1 << 16
"""Characters of a piece of a stretch, at least."""
SAFE = re.compile(r"(?<=\S)\n(?=\S)|(?<=[A-Za-z])(?= [A-Za-z])")
"""Places where the patterns of `gpt2_words` and of learned words cut in any case: after a line, and before a space."""
CODE_POINTS = 0x110000


@dataclass(frozen=True)
class ScannedText:
    """What a file of text holds."""

    path: str
    sha256: str
    """Of the UTF-8 bytes of the text, without a byte order mark."""
    bytes: int
    characters: int
    follow: bool
    """Whether the path may be a symbolic link."""


@dataclass(frozen=True)
class Scan:
    """What the files of some sources hold."""

    documents: Sequence[ScannedText]
    alphabet: str
    """Every character of the texts once, in the order of code points."""

    @property
    def bytes(self) -> int:
        """The size of all texts together."""
        return sum(document.bytes for document in self.documents)

    @property
    def characters(self) -> int:
        """The length of all texts together."""
        return sum(document.characters for document in self.documents)


def scan(sources: Sequence[StrPath], *, max_bytes: int, advance: Callable[[int], None]) -> Scan:
    """Return what the files of some sources hold, which are the documents of `read_documents`.

    Args:
        sources: The paths and patterns.
        max_bytes: The largest size of all texts together, decompressed.
        advance: Is called with the number of bytes that were read.

    Raises:
        TrainingError: As `read_documents`.
    """
    met = np.zeros(CODE_POINTS, dtype=bool)

    def read(path: Path, bound: ReadLimit) -> tuple[int, ScannedText | None]:
        digest, size, characters, raw = hashlib.sha256(), 0, 0, 0
        blank, spaces = True, set[str]()  # a text of white space alone is none, and adds nothing to the alphabet

        def counted() -> Iterator[bytes]:
            nonlocal raw
            for piece in pieces_of(path, bound):
                raw += len(piece)
                advance(len(piece))
                yield piece

        for text in decoded_pieces(counted(), path):
            encoded = text.encode("utf-8")
            digest.update(encoded)
            size, characters = size + len(encoded), characters + len(text)
            if blank and not text.strip():
                spaces.update(text)
                continue
            blank = False
            met[np.frombuffer(encoded, np.uint8) if text.isascii() else code_points(text)] = True
        if not blank:
            met[[*map(ord, spaces)]] = True
        found = ScannedText(str(path), digest.hexdigest(), size, characters, bound.follow)
        return raw, None if blank else found

    documents = documents_in(sources, read, max_bytes=max_bytes)
    return Scan(documents, "".join(map(chr, np.flatnonzero(met).tolist())))


def texts_of(document: ScannedText) -> Iterator[str]:
    """Yield the text of a scanned file again, piece by piece.

    Raises:
        TrainingError: It cannot be read any more, or is not what it was.
    """
    changed = TrainingError(f"{document.path} has changed while it was read", hint="start again when nothing writes to it")
    digest, left = hashlib.sha256(), document.bytes
    path = Path(document.path)
    for text in decoded_pieces(pieces_of(path, ReadLimit(sys.maxsize - 1, "", follow=document.follow)), path):
        encoded = text.encode("utf-8")
        digest.update(encoded)
        left -= len(encoded)
        if left < 0:
            raise changed
        yield text
    if digest.hexdigest() != document.sha256:
        raise changed


def code_points(text: str) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """Return the code points of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32, copy=False)


def decoded_pieces(pieces: Iterable[bytes], path: Path) -> Iterator[str]:
    """Yield UTF-8 bytes as text, without a byte order mark.

    Raises:
        TrainingError: They are not UTF-8; the message says where.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    begins, lines = b"", 0
    for piece in chain((piece for piece in pieces if piece), [b""]):
        begins = begins or piece[:8]
        try:
            text = decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            raise not_text(path, error, begins=begins, lines=lines) from None
        lines += piece.count(b"\n")
        if text:
            yield text


def characters_from(texts: Iterable[str], start: int, stop: int | None) -> Iterator[str]:
    """Yield the characters of a text from one place to another.

    Args:
        texts: The pieces of the text.
        start: The place of the first character.
        stop: The place behind the last one; None for the end.
    """
    at = 0
    for text in texts:
        part = text[max(start - at, 0) : None if stop is None else max(stop - at, 0)]
        at += len(text)
        if part:
            yield part
        if stop is not None and at >= stop:
            return


def stretches_in(texts: Iterable[str], *, safe: re.Pattern[str] | None = None) -> Iterator[str]:
    """Yield a text in stretches of whole lines, as `stretches` does of a text that is whole.

    Args:
        texts: The pieces of the text.
        safe: Places where stretches may be cut further, since nothing that is joined lies on both sides of one; this keeps the
            memory flat. Without them, a stretch is whole, however long its last line is.
    """
    text, at, begun, searched = "", 0, 0, 0  # `at`: the first character not yet given; `begun`: those given of its stretch
    for piece in texts:
        text, searched, at = text[at:], max(searched - at, 0), 0
        text += piece
        while True:
            newline = text.find("\n", max(at + STRETCH - begun, searched))
            found = safe.search(text, max(at + PIECE, searched)) if safe is not None else None
            if found is not None and not 0 <= newline < found.end():
                cut, begun = found.end(), begun + found.end() - at
            elif newline >= 0:
                cut, begun = newline + 1, 0
            else:
                searched = max(len(text) - 2, 0)  # a safe place needs to see what is around it
                break
            yield text[at:cut]
            at = cut
    if at < len(text):
        yield text[at:]
