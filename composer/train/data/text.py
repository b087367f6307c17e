"""A text file as tokens, split into training text and held-out text, and as batches of windows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from composer.atomic_files import StrPath
from composer.train.data.tokenizers import Tokenizer, stretches
from composer.train.errors import TrainingError
from composer.train.input_files import read_bytes
from composer.train.settings import MAX_DATA_BYTES

Ids: TypeAlias = "npt.NDArray[np.uint16] | npt.NDArray[np.uint32]"

HELD_OUT = 0.1
"""Share of the text, at its end, that is used for validation and never for training."""
COMPRESSED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""The first bytes of compressed files."""


@dataclass(frozen=True, eq=False)
class TextData:
    """A text as tokens, with its last tenth held out."""

    path: Path
    sha256: str
    """Checksum of the UTF-8 bytes of the text, which must be the same when a run is resumed."""
    train: Ids
    validation: Ids
    characters: int
    """Length of the held-out text in characters, which makes losses comparable across tokenizers."""
    bytes: int
    """Length of the held-out text in UTF-8 bytes."""


def read_text(path: StrPath, *, max_bytes: int = MAX_DATA_BYTES) -> str:
    """Return the text of a file.

    Args:
        path: The path of the file, which is no pipe or device: a resumed run reads it again.
        max_bytes: The largest size that is read.

    Raises:
        TrainingError: There is no such file, or it is too large, empty or not UTF-8.

    Examples:
        >>> from pathlib import Path
        >>> from composer.train import read_text
        >>> written = Path("hamlet.txt").write_text("to be")
        >>> read_text("hamlet.txt")
        'to be'
    """
    content = read_bytes(
        Path(path),
        limit=max_bytes,
        hint="raise the limit with --max-data-bytes, in Python `max_bytes`, if there is memory for it",
    )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if packed := next((name for magic, name in COMPRESSED.items() if content.startswith(magic)), None):
            raise TrainingError(f"{path} is compressed with {packed}", hint="decompress it first") from None
        line = content.count(b"\n", 0, error.start) + 1
        raise TrainingError(f"{path} is not UTF-8 text: line {line} has the byte 0x{content[error.start]:02x}") from None
    if not text.strip():
        raise TrainingError(f"{path} is empty")
    return text


def split(text: str) -> tuple[str, str]:
    """Return the training text and the held-out text, the last tenth of the characters.

    Args:
        text: The whole text.

    Examples:
        >>> from composer.train import split
        >>> split("0123456789")
        ('012345678', '9')
    """
    boundary = int((1 - HELD_OUT) * len(text))
    return text[:boundary], text[boundary:]


def tokenize(text: str, tokenizer: Tokenizer, *, path: StrPath) -> TextData:
    """Return a text as tokens, with its last tenth held out; the split is at the same character for every tokenizer.

    Args:
        text: The text.
        tokenizer: The tokenizer.
        path: The file that the text was read from; a resumed run reads it again.

    Examples:
        >>> from composer.train import ByteTokenizer, tokenize
        >>> data = tokenize("0123456789", ByteTokenizer(), path="digits.txt")
        >>> len(data.train), len(data.validation)
        (9, 1)
    """
    train, validation = split(text)
    return TextData(
        path=Path(path),
        sha256=hashlib.sha256(text.encode("utf-8")).hexdigest(),
        train=encode(train, tokenizer),
        validation=encode(validation, tokenizer),
        characters=len(validation),
        bytes=len(validation.encode("utf-8")),
    )


def encode(text: str, tokenizer: Tokenizer) -> Ids:
    """Return the tokens of a text in two bytes each, or four if the vocabulary is larger than 2¹⁶."""
    dtype = np.uint16 if tokenizer.size <= 1 << 16 else np.uint32
    pieces = [np.array(tokenizer.encode(piece), dtype=dtype) for piece in stretches(text)]
    return np.concatenate([np.array([], dtype=dtype), *pieces])


def check_length(data: TextData, seq_len: int) -> None:
    """Raise `TrainingError` if the text has fewer than `seq_len` + 1 tokens, or too few to hold out a tenth."""
    if len(data.train) <= seq_len:
        raise TrainingError(
            f"{data.path} has {len(data.train)} tokens to train on; a sequence length of {seq_len} needs {seq_len + 1}",
            hint="use more text or a shorter sequence length",
        )
    if len(data.validation) == 0:
        raise TrainingError(f"{data.path} is too short to hold out a tenth of it")


def draw_batch(data: TextData, *, batch_size: int, seq_len: int, generator: torch.Generator) -> dict[str, Tensor]:
    """Draw `batch_size` windows with uniformly random starts: `tokens` [B, T] and, one position later, `targets` [B, T]."""
    starts = torch.randint(len(data.train) - seq_len, (batch_size,), generator=generator).numpy()
    windows = data.train[starts[:, None] + np.arange(seq_len + 1)]  # [B, T+1]
    return as_batch(windows)


def held_out_batches(data: TextData, *, batch_size: int, seq_len: int) -> Iterator[dict[str, Tensor]]:
    """Yield every token of the held-out text as a target, once and in order, in adjacent windows.

    The first window starts with the last token of the training text, which predicts the first held-out one.
    """
    stream = np.concatenate([data.train[-1:], data.validation])
    whole = len(data.validation) // seq_len  # windows of full length
    for first in range(0, whole, batch_size):
        starts = np.arange(first, min(first + batch_size, whole)) * seq_len
        yield as_batch(stream[starts[:, None] + np.arange(seq_len + 1)])
    if whole * seq_len < len(data.validation):
        yield as_batch(stream[None, whole * seq_len :])  # the rest, shorter


def as_batch(windows: Ids) -> dict[str, Tensor]:
    """Return windows [B, T+1] as inputs [B, T] and targets [B, T]."""
    tokens = torch.from_numpy(windows.astype(np.int64))
    return {"tokens": tokens[:, :-1], "targets": tokens[:, 1:]}
