"""Vectors of words from elsewhere, such as those of word2vec or GloVe, as the first rows of embeddings."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from composer.atomic_files import StrPath
from composer.train.data.hiding.words import INSIDE, SPACES
from composer.train.data.tokenizers import BPETokenizer, MarkedTokenizer, PiecesTokenizer, Tokenizer
from composer.train.errors import TrainingError
from composer.train.input_files import opened

LONGEST_LINE = 1 << 20
"""The largest number of bytes in a line: a word, and tens of thousands of numbers."""
MOST_BYTES = 1 << 34
"""The largest number of bytes that are read, decompressed; the largest published files have a third of it."""
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Vectors:
    """What became of the vectors of a file.

    Examples:
        >>> from composer.train import Vectors
        >>> print(Vectors("glove.txt", ("embed.weight",), 380, 400))
        vectors of glove.txt for 380 of 400 words in embed.weight
    """

    path: str
    parameters: tuple[str, ...]
    """The names of the embeddings."""
    found: int
    """How many tokens have a vector; the others keep the values that they had."""
    words: int
    """How many tokens there are, without special ones and pieces from inside of words."""

    def __str__(self) -> str:
        return f"vectors of {self.path} for {self.found:,} of {self.words:,} words in {', '.join(self.parameters)}"


@torch.no_grad()
def load_vectors(model: nn.Module, tokenizer: Tokenizer, path: StrPath) -> Vectors:
    """Load the vectors of words from a file into the embeddings of a model's tokens.

    Each line of the file has a word and its numbers, divided by spaces, as GloVe writes them; a first line with the numbers of
    words and of columns is passed over, as word2vec writes it. The file may be compressed with gzip. A word without a vector
    takes that of its lower-case form.

    Args:
        model: The model.
        tokenizer: Its tokenizer, usually one of words.
        path: The file.

    Raises:
        TrainingError: The file cannot be read or has another form, no embedding has rows for the tokens and as many columns, or
            no word has a vector.

    Examples:
        >>> import composer
        >>> from pathlib import Path
        >>> from composer.train import load_vectors, train_words
        >>> tokenizer = train_words("a good film, a good book", size=16)
        >>> model = composer.load("gpt_mini", {"vocab": tokenizer.size, "d_model": 4, "n_heads": 2}).compile(seed=0)
        >>> written = Path("small.txt").write_text("good 1 2 3 4\\nfilm 0 1 0 1\\n")
        >>> print(load_vectors(model, tokenizer, "small.txt"))
        vectors of small.txt for 2 of 5 words in embed.weight
    """
    where = Path(path)
    ids = words_of(tokenizer)
    lower: dict[str, list[int]] = {}
    for word, each in ids.items():
        lower.setdefault(word.lower(), []).extend(each)
    exact: set[int] = set()
    rows: dict[int, npt.NDArray[np.float32]] = {}
    for word, vector in vectors_in(where, {*ids, *lower}):
        for index in ids.get(word, ()):
            rows[index] = vector
            exact.add(index)
        for index in lower.get(word, ()):
            if index not in exact:
                rows[index] = vector
    if not rows:
        raise TrainingError(f"{where} has no vector for any of the {len(ids):,} words of the tokenizer")
    chosen = embeddings_of(model, tokenizer, len(next(iter(rows.values()))), where)
    for parameter in chosen.values():
        for index, vector in rows.items():
            parameter[index].copy_(torch.from_numpy(vector))
    return Vectors(str(path), tuple(chosen), len(rows), sum(map(len, ids.values())))


def words_of(tokenizer: Tokenizer) -> dict[str, list[int]]:
    """Return the tokens that are words by themselves, by their texts, without special ones and pieces from inside of words."""
    text = tokenizer.text if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    special = {*text.words.values()} if isinstance(text, PiecesTokenizer) else set()
    found: dict[str, list[int]] = {}
    for index in range(text.size):
        if isinstance(text, BPETokenizer | PiecesTokenizer):
            piece = text.pieces.id_to_token(index) or ""
            word = "" if piece in special else piece
            word = word[1:] if word.startswith(SPACES) else word
        else:
            word = text.decode([index])
        if word.strip() and not word.startswith(INSIDE):
            found.setdefault(word, []).append(index)
    return found


def embeddings_of(model: nn.Module, tokenizer: Tokenizer, columns: int, path: Path) -> dict[str, Tensor]:
    """Return the embeddings of a model that have a row for each token and so many columns.

    Raises:
        TrainingError: There are none.
    """
    roles = cast(Any, model).roles  # nn.Module types every attribute as a tensor or a module
    tables = {name: each for name, each in model.named_parameters() if roles.get(name) == "embedding" and each.dim() == 2}
    tables = {name: each for name, each in tables.items() if len(each) >= tokenizer.size}
    found: dict[str, Tensor] = {name: each for name, each in tables.items() if each.shape[1] == columns}
    if not found:
        known = ", ".join(f"{name} has {each.shape[1]}" for name, each in tables.items()) or "there is none for these tokens"
        raise TrainingError(
            f"the vectors of {path} have {columns} numbers; of the embeddings, {known}",
            hint=f"set the width of the embedding to {columns} in the recipe, or with --set",
        )
    return found


def vectors_in(path: Path, wanted: set[str]) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    """Yield the vectors of some words in a file, in its order.

    Raises:
        TrainingError: The file cannot be read, or a line has another form.
    """
    columns = 0
    for number, line in enumerate(lines_of(path), 1):
        if number == 1 and len(line.split()) == 2 and all(part.isdecimal() for part in line.split()):
            continue  # how many words and columns there are
        if not line.strip():
            continue
        columns = columns or len(line.split()) - 1
        word, *numbers = line.rstrip().rsplit(" ", columns) if columns else [line]
        if not columns or len(numbers) != columns:
            has = f"a word and {columns} numbers" if columns else "a word and its numbers"
            raise TrainingError(
                f"{path}, line {number} is not {has}: {line.strip()[:40]!r}",
                hint="vectors are read as text, as GloVe and `word2vec -binary 0` write them",
            )
        if word not in wanted:
            continue
        try:
            vector = np.array(numbers, dtype=np.float32)
        except ValueError:
            vector = np.array([np.nan])
        if not np.isfinite(vector).all():
            raise TrainingError(f"{path}, line {number}: the vector of {word!r:.40} has something else than finite numbers")
        yield word, vector


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text that may be compressed with gzip, none of them longer than a limit."""
    with opened(path) as file:
        magic = file.read(2)
        file.seek(0)
        stream = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if magic == GZIP else file
        number, total = 0, 0
        try:
            while line := stream.readline(LONGEST_LINE + 1):
                number, total = number + 1, total + len(line)
                if len(line) > LONGEST_LINE or total > MOST_BYTES:
                    raise TrainingError(
                        f"{path} has more than {MOST_BYTES:,} bytes, or more than {LONGEST_LINE:,} in line {number}",
                        hint="vectors are text, with a word on each line",
                    )
                yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise TrainingError(
                f"{path}, line {number} is not UTF-8 text: byte 0x{error.object[error.start]:02x}",
                hint="vectors are read as text, as GloVe and `word2vec -binary 0` write them",
            ) from None
        except (EOFError, gzip.BadGzipFile) as error:
            raise TrainingError(f"{path} is damaged: {str(error).lower()}") from None
