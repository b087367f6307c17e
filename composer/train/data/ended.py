"""Texts in which an end token stands after each line or each file, so that a language model learns where a text ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from composer.atomic_files import StrPath
from composer.train.data import text as texts
from composer.train.data.documents import TextDocument
from composer.train.data.marks import END
from composer.train.data.text import HELD_OUT, Ids, TextData
from composer.train.data.tokenizers import MarkedTokenizer
from composer.train.errors import TrainingError

EVERY = 10
"""One of so many files is held out."""


@dataclass(frozen=True)
class Ended:
    """Texts of a stream, each of which ends with an end token."""

    train: Sequence[str]
    held_out: Sequence[str]


def ended(
    text: str | Sequence[TextDocument],
    tokenizer: MarkedTokenizer,
    *,
    ends: str,
    path: StrPath | Sequence[StrPath],
    unseen: bool = False,
) -> TextData:
    """Return lines or files as tokens, each with an end token after it, which of a line stands in place of the line break.

    The last tenth of the lines of each file is held out, or every tenth file, the last one if there are fewer.

    Args:
        text: The text, or documents.
        tokenizer: The tokenizer.
        ends: What ends with an end token: `line` or `file`.
        path: The file that the text was read from, or several paths and patterns.
        unseen: Whether all is held out, and is read after an end token.

    Raises:
        TrainingError: There is only one file, of which none can be held out.
    """
    documents = texts.as_documents(text)
    parts = [of_lines(document) for document in documents] if ends == "line" else [of_files(documents, unseen=unseen)]
    if unseen:
        parts = [Ended((), [*part.train, *part.held_out]) for part in parts]
    begun = _stream([""], tokenizer)  # the end of what was before
    return texts.data_of(
        text,
        path=path,
        train=[begun if unseen else _stream(part.train, tokenizer) for part in parts],
        validation=[_stream(part.held_out, tokenizer) for part in parts],
        held_out=["".join(f"{each}\n" if ends == "line" else each for each in part.held_out) for part in parts],
    )


def learned_from(name: str, text: str, *, ends: str) -> str:
    """Return the text that a tokenizer is made from: that of characters leaves out line breaks where end tokens stand in their
    place, as they would be characters that are never trained.

    Args:
        name: The kind of tokenizer.
        text: The whole text.
        ends: What ends with an end token: `line`, `file` or `none`.
    """
    return "".join(text.splitlines()) if (name, ends) == ("characters", "line") else text


def of_lines(document: TextDocument) -> Ended:
    """Return the lines of a document that are not empty."""
    lines = [line.strip() for line in document.text.splitlines() if line.strip()]
    boundary = int((1 - HELD_OUT) * len(lines)) or 1
    return Ended(lines[:boundary], lines[boundary:])


def of_files(documents: Sequence[TextDocument], *, unseen: bool) -> Ended:
    """Return whole documents."""
    whole = [document.text.strip() for document in documents]
    if len(whole) < 2 and not unseen:
        raise TrainingError(
            "with an end token after each file, there must be two files at least, to hold one out",
            hint="name a folder of texts, or let each line be a text: --end-tokens line",
        )
    held = {*range(EVERY - 1, len(whole), EVERY)} or {len(whole) - 1}
    return Ended([each for place, each in enumerate(whole) if place not in held], [whole[place] for place in sorted(held)])


def _stream(parts: Sequence[str], tokenizer: MarkedTokenizer) -> Ids:
    """Return the tokens of texts, each with an end token."""
    end = np.array([tokenizer.mark(END)], dtype=np.uint16 if tokenizer.size <= 1 << 16 else np.uint32)
    pieces = [each for part in parts for each in (texts.encode(part, tokenizer), end)]
    return cast("Ids", np.concatenate([end[:0], *pieces]))
