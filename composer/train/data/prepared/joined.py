"""Several prepared texts as one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from composer.atomic_files import StrPath
from composer.train.data.prepared.encoding import Ids
from composer.train.data.prepared.token_files import PreparedText, as_bytes
from composer.train.data.text import TextData, fingerprint_of
from composer.train.data.tokenizers import MarkedTokenizer, Tokenizer
from composer.train.errors import TrainingError
from composer.train.input_files import reason_of

SMALL = 1 << 20
"""Bytes of text, or of tokens that are joined, below which tokens are kept in memory."""


def same_tokenizer(one: Tokenizer, other: Tokenizer) -> bool:
    """Return whether two tokenizers give the same tokens; of those with marks, their tokenizers of texts."""
    plain = (each.text if isinstance(each, MarkedTokenizer) else each for each in (one, other))
    first, second = (each.to_json() for each in plain)
    return bool(first == second)


def in_temporary_file(pieces: Iterable[Ids], dtype: np.dtype[np.integer]) -> Ids:
    """Return tokens in a file without a name, which ends with the process.

    Raises:
        TrainingError: The file cannot be written.
    """
    try:
        with tempfile.TemporaryFile(prefix="composer-") as file:
            for piece in as_bytes(pieces, dtype):
                file.write(piece)
            file.flush()
            if not file.tell():
                return cast("Ids", np.zeros(0, dtype))
            return cast("Ids", np.asarray(np.memmap(cast("BinaryIO", file), dtype=dtype, mode="r")))
    except OSError as error:
        raise TrainingError(
            f"cannot write tokens to {tempfile.gettempdir()}: {reason_of(error)}",
            hint="free space there, name another folder with TMPDIR, or one for the cache with COMPOSER_CACHE",
        ) from None


def joined_texts(parts: Sequence[PreparedText], folders: Sequence[StrPath]) -> PreparedText:
    """Return several prepared texts as one, which has the documents of all.

    Their tokens are copied into one file, which ends with the process.

    Args:
        parts: The prepared texts.
        folders: Their folders.

    Raises:
        TrainingError: They have different tokenizers, or the file cannot be written.
    """
    first, *others = parts
    if not others:
        return first
    for other, folder in zip(others, folders[1:], strict=True):
        if not same_tokenizer(first.tokenizer, other.tokenizer):
            raise TrainingError(
                f"{folders[0]} and {folder} were prepared with different tokenizers",
                hint="prepare one with that of the other: arco data prepare FILE... --tokenizer, or prepare all texts together",
            )
    texts = [part.data for part in parts]

    def together(streams: Sequence[Ids]) -> Ids:
        if sum(stream.nbytes for stream in streams) < SMALL:
            return cast("Ids", np.concatenate(streams))
        return in_temporary_file(streams, streams[0].dtype)

    def ends(streams: Sequence[Ids], of_each: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        begins = accumulate(map(len, streams[:-1]), initial=0)
        each = (stops or (len(stream),) for stream, stops in zip(streams, of_each, strict=True))
        return tuple(chain.from_iterable((begin + stop for stop in stops) for begin, stops in zip(begins, each, strict=True)))

    train, validation = [text.train for text in texts], [text.validation for text in texts]
    data = TextData(
        path=Path(folders[0]),
        sha256=fingerprint_of([text.sha256 for text in texts]),
        train=together(train),
        validation=together(validation),
        characters=sum(text.characters for text in texts),
        bytes=sum(text.bytes for text in texts),
        more_paths=tuple(map(Path, folders[1:])),
        train_ends=ends(train, [text.train_ends for text in texts]),
        validation_ends=ends(validation, [text.validation_ends for text in texts]),
    )
    return PreparedText(first.tokenizer, data)
