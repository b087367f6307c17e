"""The folder of a prepared text: tokens in files that are mapped into memory, an index, and checksums of all of it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal, cast

import numpy as np
import numpy.typing as npt
from annotated_types import Ge
from pydantic import ConfigDict

from composer.atomic_files import StrPath
from composer.train.data.documents import sources_of
from composer.train.data.prepared.encoding import Ids, dtype_of
from composer.train.data.prepared.token_streams import TokenStreams
from composer.train.data.text import TextData
from composer.train.data.tokenizer_files import content_of, load_tokenizer
from composer.train.data.tokenizers import Tokenizer
from composer.train.errors import TrainingError
from composer.train.input_files import CHUNK, opened, parse_json, read_bytes, typed_json
from composer.train.run import disk
from composer.train.run.manifest import Seal, sealed

FORMAT = 1
"""The number of the format of prepared texts that this version writes and reads."""
INDEX = "index.json"
TRAIN, VALIDATION, DOCUMENTS, TOKENIZER = FILES = ("train.bin", "validation.bin", "documents.bin", "tokenizer.json")
"""The files of a prepared text: the tokens to train on, those held out, where the documents end in both, and the tokenizer."""
LIMIT = 1 << 24
"""The largest size of an index that is read, in bytes."""
AGAIN = "prepare the text again"


@dataclass(frozen=True, kw_only=True)
class Index:
    """What a prepared text is, and the seals of its files."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    format: int = FORMAT
    kind: Literal["tokens"] = "tokens"
    text: str
    """The checksum of the text, as that of a run."""
    vocabulary: int
    documents: Annotated[int, Ge(1)]
    characters: Annotated[int, Ge(0)]
    """Length of the held-out text in characters."""
    bytes: Annotated[int, Ge(0)]
    """Length of the held-out text in UTF-8 bytes."""
    files: dict[str, Seal]


@dataclass(frozen=True)
class PreparedText:
    """A text as tokens, and the tokenizer that they are of."""

    tokenizer: Tokenizer
    data: TextData


def is_prepared(source: StrPath) -> bool:
    """Return whether a source of training data is the folder of a prepared text.

    Args:
        source: The path of a file or a folder.
    """
    return all((Path(source) / name).is_file() for name in (INDEX, TRAIN))


def write_tokens(folder: Path, streams: TokenStreams, *, text: str) -> None:
    """Write the tokens of a text into a new folder, which then is a prepared text.

    Args:
        folder: The folder, which exists and is empty.
        streams: The tokens.
        text: The checksum of the text.

    Raises:
        OSError: The folder cannot be written.
        TrainingError: A file of the text has changed, or a character has no token.
    """
    dtype = little(dtype_of(streams.tokenizer.size))
    seals = {
        TRAIN: disk.write_new(folder / TRAIN, as_bytes(streams.train(), dtype)),
        VALIDATION: disk.write_new(folder / VALIDATION, as_bytes(streams.validation(), dtype)),
    }
    ends = np.array([streams.train_ends, streams.validation_ends], dtype="<i8")
    seals[DOCUMENTS] = disk.write_new(folder / DOCUMENTS, [ends.tobytes()])
    seals[TOKENIZER] = disk.write_new(folder / TOKENIZER, [content_of(streams.tokenizer)])
    index = Index(
        text=text,
        vocabulary=streams.tokenizer.size,
        documents=ends.shape[1],
        characters=streams.characters,
        bytes=streams.bytes,
        files=seals,
    )
    disk.write_new(folder / INDEX, [sealed(asdict(index))])
    disk.flush_folder(folder)


def little(dtype: npt.DTypeLike) -> np.dtype[np.integer]:
    """Return a type of whole numbers with the lowest byte first, as in the files."""
    return cast("np.dtype[np.integer]", np.dtype(dtype).newbyteorder("<"))


def as_bytes(pieces: Iterable[Ids], dtype: np.dtype[np.integer]) -> Iterator[memoryview]:
    """Yield tokens as the bytes of a file."""
    return (np.ascontiguousarray(ids, dtype=dtype).data.cast("B") for ids in pieces if len(ids))


def open_tokens(folder: Path, *, path: StrPath | Sequence[StrPath], whole: bool = False) -> PreparedText:
    """Return a prepared text, whose tokens stay in their files.

    Args:
        folder: The folder.
        path: Where the text is from: the folder, or paths and patterns.
        whole: Whether its files are known to be what the index says, and are not read.

    Raises:
        TrainingError: It is none, or is damaged; or its tokens are not those of its tokenizer.
    """
    index = read_index(folder)
    for name in FILES:
        check_file(folder / name, index.files[name], whole=whole)
    tokenizer = load_tokenizer(folder / TOKENIZER)
    if tokenizer.size != index.vocabulary:
        raise TrainingError(f"{folder / INDEX} has the vocabulary {index.vocabulary:,}, its tokenizer {tokenizer.size:,}")
    dtype = little(dtype_of(tokenizer.size))
    train, validation = (mapped(folder / name, dtype) for name in (TRAIN, VALIDATION))
    ends = mapped(folder / DOCUMENTS, np.dtype("<i8"))
    if len(ends) != 2 * index.documents:
        raise TrainingError(f"{folder / DOCUMENTS} has not the ends of {index.documents:,} documents", hint=AGAIN)
    ends = ends.reshape(2, -1)
    if not whole:
        for tokens, stops in ((train, ends[0]), (validation, ends[1])):
            check_tokens(folder, tokens, stops, index.vocabulary)
    several = index.documents > 1
    first, *more = sources_of(path)
    data = TextData(
        path=Path(first),
        sha256=index.text,
        train=cast("Ids", train),
        validation=cast("Ids", validation),
        characters=index.characters,
        bytes=index.bytes,
        more_paths=tuple(map(Path, more)),
        train_ends=tuple(ends[0].tolist()) if several else (),
        validation_ends=tuple(ends[1].tolist()) if several else (),
    )
    return PreparedText(tokenizer, data)


def read_index(folder: Path) -> Index:
    """Return the index of a prepared text.

    Raises:
        TrainingError: It is damaged, or has another format.
    """
    path = folder / INDEX
    content = read_bytes(path, limit=LIMIT, follow=False)
    values = parse_json(content, path)
    if not isinstance(values, dict) or values.get("kind") != "tokens":
        raise TrainingError(f"{path} is not the index of a prepared text", hint=AGAIN)
    if values.get("format") != FORMAT:
        what = f"the format {values.get('format')!r:.40}; this version of Composer reads the format {FORMAT}"
        raise TrainingError(f"{path} has {what}", hint=AGAIN)
    values.pop("sha256", None)
    if sealed(values) != content:
        raise TrainingError(f"{path} is damaged: its content differs from its checksum", hint=AGAIN)
    index = typed_json(json.dumps(values).encode("utf-8"), Index, path)
    if different := sorted(index.files.keys() ^ {*FILES}):
        said = "does not seal" if different[0] in FILES else "seals an unknown"
        raise TrainingError(f"{path} {said} {different[0]!r:.80}", hint=AGAIN)
    return index


def check_file(path: Path, seal: Seal, *, whole: bool) -> None:
    """Raise `TrainingError` unless a file is what its seal says; one that is known to be whole is only looked at."""
    with opened(path, follow=False) as file:
        size = os.fstat(file.fileno()).st_size
        if size != seal.bytes:
            raise TrainingError(f"{path} is damaged: it has {size:,} bytes instead of {seal.bytes:,}", hint=AGAIN)
        digest = hashlib.sha256()
        while not whole and (chunk := file.read(CHUNK)):
            digest.update(chunk)
    if not whole and digest.hexdigest() != seal.sha256:
        raise TrainingError(f"{path} is damaged: its checksum differs from the index", hint=AGAIN)


def check_tokens(folder: Path, tokens: npt.NDArray[np.integer], ends: npt.NDArray[np.integer], vocabulary: int) -> None:
    """Raise `TrainingError` unless tokens are of a vocabulary, and documents end one after the other, the last at the end."""
    if ends[-1] != len(tokens) or ends[0] < 0 or (np.diff(ends) < 0).any():
        raise TrainingError(f"{folder / DOCUMENTS} has ends of documents that are not in their order", hint=AGAIN)
    for start in range(0, len(tokens), CHUNK):
        if (largest := int(tokens[start : start + CHUNK].max())) >= vocabulary:
            raise TrainingError(f"{folder} has the token {largest:,}, its tokenizer only {vocabulary:,} tokens", hint=AGAIN)


def mapped(path: Path, dtype: np.dtype[np.integer]) -> npt.NDArray[np.integer]:
    """Return the numbers of a file, mapped into memory."""
    with opened(path, follow=False) as file:
        size = os.fstat(file.fileno()).st_size
        if size % dtype.itemsize:
            raise TrainingError(f"{path} is damaged: it ends within a number", hint=AGAIN)
        if not size:
            return np.zeros(0, dtype)
        return np.asarray(np.memmap(file, dtype=dtype, mode="r"))
