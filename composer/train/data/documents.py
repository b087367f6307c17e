"""The texts to train on: files, folders, shell patterns and compressed files, each file a document of its own."""

from __future__ import annotations

import codecs
import gzip
import os
import shlex
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from composer.atomic_files import StrPath
from composer.train.errors import TrainingError
from composer.train.input_files import CHUNK, mode_of, opened, reason_of
from composer.train.settings import MAX_DATA_BYTES

D = TypeVar("D")

SUFFIXES = (".txt", ".text", ".md", ".rst", ".tsv")
"""How the names of text files end; a folder is searched for these, compressed or not."""
COMPRESSED_SUFFIXES = (".gz", ".zst")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""The first bytes of compressed files that are read, which no UTF-8 text begins with."""
COMPRESSED = {b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
"""The first bytes of other compressed files."""
MOST_ENTRIES = 1 << 20
"""How many files and folders are looked at for one source: a pattern may begin at the root."""
MAGIC = "*?["
"""The characters that make a path a pattern."""


@dataclass(frozen=True)
class TextDocument:
    """The text of one file.

    Examples:
        >>> from composer.train import TextDocument
        >>> TextDocument("hamlet.txt", "to be").text
        'to be'
    """

    path: StrPath
    text: str


def with_newlines(document: TextDocument) -> str:
    """Return the text of a document that is read line by line, with `\\n` where there is `\\r\\n` or `\\r`: no line has these, so
    that a tokenizer that is made for lines needs no token for them.
    """
    return document.text.replace("\r\n", "\n").replace("\r", "\n")


def read_text(path: StrPath, *, max_bytes: int = MAX_DATA_BYTES) -> str:
    """Return the text of a file, which may be compressed with gzip, or with zstd from Python 3.14 on.

    Args:
        path: The path of the file, which is no pipe or device: a resumed run reads it again.
        max_bytes: The largest size that is read, decompressed.

    Raises:
        TrainingError: There is no such file, or it is too large, empty, not UTF-8 or compressed otherwise.

    Examples:
        >>> from pathlib import Path
        >>> from composer.train import read_text
        >>> written = Path("hamlet.txt").write_text("to be")
        >>> read_text("hamlet.txt")
        'to be'
    """
    text = decoded(content_of(Path(path), limit=max_bytes, most=f"{max_bytes:,}"), path)
    if not text.strip():
        raise TrainingError(f"{path} is empty")
    return text


def read_documents(sources: Sequence[StrPath], *, max_bytes: int = MAX_DATA_BYTES) -> tuple[TextDocument, ...]:
    """Return the texts of files, folders and patterns, a document for each file.

    A folder stands for the text files below it, sorted by their paths: those with the suffixes .txt, .text, .md, .rst and .tsv,
    also compressed. In a pattern, `*`, `?` and `[…]` stand for characters of a name, and `**` for any number of folders. Hidden
    files, symbolic links and files without text are left out of both. A file that is found twice is read once.

    Args:
        sources: The paths and patterns, of which at least one.
        max_bytes: The largest size of all texts together, decompressed.

    Raises:
        TrainingError: A source has no text file, or a file cannot be read, or the texts are too large.

    Examples:
        >>> from pathlib import Path
        >>> from composer.train import read_documents
        >>> Path("plays").mkdir()
        >>> written = [Path("plays", name).write_text(name) for name in ("macbeth.txt", "hamlet.txt")]
        >>> [document.text for document in read_documents(["plays"])]
        ['hamlet.txt', 'macbeth.txt']
    """

    def read(path: Path, bound: ReadLimit) -> tuple[int, TextDocument | None]:
        content = b"".join(pieces_of(path, bound))
        text = decoded(content, path)
        return len(content), TextDocument(path, text) if text.strip() else None

    return documents_in(sources, read, max_bytes=max_bytes)


@dataclass(frozen=True)
class ReadLimit:
    """How much of a file is read, and through what."""

    limit: int
    """The largest size that is read, decompressed, whatever the file decompresses to."""
    most: str
    """The limit that was given, for errors."""
    follow: bool = True
    """Whether the path may be a symbolic link."""
    several: bool = False
    """Whether the limit is what other files have left of it."""


def documents_in(
    sources: Sequence[StrPath], read: Callable[[Path, ReadLimit], tuple[int, D | None]], *, max_bytes: int
) -> tuple[D, ...]:
    """Return what is read of the files that sources stand for, each file once.

    Args:
        sources: The paths and patterns, of which at least one.
        read: Reads a file, and returns its size and the document, or None if there is no text in it.
        max_bytes: The largest size of all texts together, decompressed.

    Raises:
        TrainingError: A source has no text file, or a file cannot be read.
    """
    documents: list[D] = []
    seen: set[Path] = set()
    left = max_bytes
    for source in map(Path, sources):
        found = found_in(source)
        named = found == [source]
        texts = False
        for path in found:
            if (whole := resolved(path)) in seen:
                texts = True
                continue
            seen.add(whole)
            size, document = read(path, ReadLimit(left, f"{max_bytes:,}", follow=named, several=left < max_bytes))
            left -= size
            if document is not None:
                documents.append(document)
                texts = True
        if not texts:
            raise TrainingError(f"{source} is empty" if named else f"{source} has only files without text")
    return tuple(documents)


def counts_by_source(sources: Sequence[StrPath], paths: Sequence[StrPath]) -> list[int]:
    """Return how many documents each source has, of documents in the order of `documents_in`.

    Args:
        sources: The paths and patterns.
        paths: The path of each document.
    """
    counts, first = [], 0
    for source in map(Path, sources):
        own = {str(path) for path in found_in(source)}
        last = first
        while last < len(paths) and str(paths[last]) in own:
            last += 1
        counts.append(last - first)
        first = last
    return counts


def sources_of(data: StrPath | Sequence[StrPath]) -> Sequence[StrPath]:
    """Return the path of a text, or several, as several."""
    return [data] if isinstance(data, str | os.PathLike) else data


def resolved(path: Path) -> Path:
    """Return a path without symbolic links; itself if it is no path of a file."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return path


def found_in(source: Path) -> list[Path]:
    """Return the files that a source stands for: itself, the text files of a folder, or those that a pattern matches.

    Raises:
        TrainingError: There are none.
    """
    if source.is_dir():
        found = [path for path in matching(source, ("**", "*")) if is_text_name(path.name)]
        if not found:
            suffixes = ", ".join(SUFFIXES)
            raise TrainingError(
                f"{source} has no text file",
                hint=f"names that end in {suffixes} are looked for, also with .gz or .zst, and links are not followed; "
                "a pattern such as 'FOLDER/**/*.py' takes others",
            )
        return found
    first = next((place for place, part in enumerate(source.parts) if any(each in part for each in MAGIC)), None)
    if first is None or mode_of(source):
        return [source]
    found = matching(Path(*source.parts[:first]), source.parts[first:])
    if not found:
        raise TrainingError(f"no file matches {source}", hint="`**` stands for any number of folders; links are not followed")
    return found


def is_text_name(name: str) -> bool:
    """Return whether a name is that of a text file, compressed or not."""
    name = name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    return name.endswith(SUFFIXES)


def matching(folder: Path, parts: tuple[str, ...]) -> list[Path]:
    """Return the files below a folder whose path matches the parts of a pattern, sorted; no symbolic link is followed.

    Raises:
        TrainingError: A folder cannot be read, or there is too much in it.
    """
    met = 0
    found: set[Path] = set()
    todo = [(folder, parts)]
    done: set[tuple[Path, tuple[str, ...]]] = set()
    while todo:
        if (step := todo.pop()) in done:
            continue
        done.add(step)
        folder, (part, *rest) = step
        if part == "**":
            todo.append((folder, tuple(rest) or ("*",)))
        inside = entries(folder)
        met += len(inside)
        if met > MOST_ENTRIES:
            raise TrainingError(
                f"more than {MOST_ENTRIES:,} files and folders would be searched",
                hint="put texts together, or name a smaller folder",
            )
        for entry in inside:
            path = folder / entry.name
            hidden = entry.name.startswith(".") and not part.startswith(".")
            if hidden or not (part == "**" or fnmatchcase(entry.name, part)):
                continue
            if entry.is_dir(follow_symlinks=False):
                if part == "**" or rest:
                    todo.append((path, step[1] if part == "**" else tuple(rest)))
            elif entry.is_file(follow_symlinks=False) and part != "**" and not rest:
                found.add(path)
    return sorted(found, key=lambda path: path.parts)


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder, which may not exist.

    Raises:
        TrainingError: It cannot be read.
    """
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as error:
        raise TrainingError(f"cannot read {folder}: {reason_of(error)}") from None


def content_of(path: Path, *, limit: int, most: str, follow: bool = True, several: bool = False) -> bytes:
    """Return the content of a regular file, decompressed, of at most `limit` bytes.

    Args:
        path: The path of the file.
        limit: The largest size that is read, which never takes more memory, whatever the file decompresses to.
        most: The limit that was given, for errors.
        follow: Whether the path may be a symbolic link.
        several: Whether the limit is what other files have left of it.

    Raises:
        TrainingError: The file cannot be read, or is too large, damaged, or compressed in a way that is not read.
    """
    return b"".join(pieces_of(path, ReadLimit(limit, most, follow=follow, several=several)))


def pieces_of(path: Path, bound: ReadLimit) -> Iterator[bytes]:
    """Yield the content of a regular file, decompressed, piece by piece, so that it takes no memory.

    Args:
        path: The path of the file.
        bound: How much of it is read.

    Raises:
        TrainingError: As `content_of`.
    """
    left = bound.limit
    with opened(path, follow=bound.follow) as file:
        magic = file.read(4)
        file.seek(0)
        if magic.startswith(GZIP):
            pieces = decompressed(cast("BinaryIO", gzip.GzipFile(fileobj=file)), path, left + 1, kind="gzip")
        elif magic == ZSTD:
            pieces = decompressed(zstd_file(file, path), path, left + 1, kind="zstd")
        elif os.fstat(file.fileno()).st_size > left:
            raise too_large(path, bound)
        else:
            pieces = chunks(file, left + 1)
        for piece in pieces:
            left -= len(piece)
            if left < 0:
                raise too_large(path, bound)
            yield piece


def too_large(path: Path, bound: ReadLimit) -> TrainingError:
    """Return the error of a file that has more than may be read."""
    most = f"more than {bound.most} bytes"
    return TrainingError(
        f"the texts up to {path} have {most}" if bound.several else f"{path} has {most}",
        hint="raise the limit with --max-data-bytes, in Python `max_bytes`",
    )


def chunks(file: BinaryIO, left: int) -> Iterator[bytes]:
    """Yield up to `left` bytes of a file."""
    while left and (chunk := file.read(min(left, CHUNK))):
        left -= len(chunk)
        yield chunk


def decompressed(file: BinaryIO, path: Path, left: int, *, kind: str) -> Iterator[bytes]:
    """Yield up to `left` bytes of what a compressed file holds.

    Raises:
        TrainingError: It is cut off or damaged.
    """
    try:
        yield from chunks(file, left)
    except EOFError:
        raise TrainingError(f"{path} is cut off: its {kind} data has no end") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TrainingError(f"{path} is damaged: {str(error)[:1].lower()}{str(error)[1:]}") from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":  # a class of Python 3.14
            raise
        raise TrainingError(f"{path} is damaged: {str(error)[:1].lower()}{str(error)[1:]}") from None


def zstd_file(file: BinaryIO, path: Path) -> BinaryIO:
    """Open a file that is compressed with zstd.

    Raises:
        TrainingError: This version of Python cannot.
    """
    try:
        from compression import zstd  # type: ignore[import-not-found]  # a module of Python 3.14
    except ImportError:
        raise TrainingError(
            f"{path} is compressed with zstd, which Python reads from 3.14 on", hint="decompress it first, with `zstd -d`"
        ) from None
    return cast("BinaryIO", zstd.ZstdFile(file))


def decoded(content: bytes, path: StrPath) -> str:
    """Return UTF-8 bytes as text, without a byte order mark.

    Raises:
        TrainingError: They are not UTF-8; the message says where.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_text(path, error, begins=content[:8]) from None


def not_text(path: StrPath, error: UnicodeDecodeError, *, begins: bytes, lines: int = 0) -> TrainingError:
    """Return the error of bytes that are not UTF-8, from how the file begins, and the lines before those that were decoded."""
    if packed := next((name for magic, name in COMPRESSED.items() if begins.startswith(magic)), None):
        return TrainingError(f"{path} is compressed with {packed}", hint="decompress it first")
    line = lines + error.object.count(b"\n", 0, error.start) + 1
    encoding = "UTF-16" if begins.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "LATIN1"
    command = f"`iconv -f {encoding} -t UTF-8 {shlex.quote(str(path))} > utf8.txt` converts it"
    return TrainingError(
        f"{path} is not UTF-8 text: line {line} has the byte 0x{error.object[error.start]:02x}",
        hint=command if encoding == "UTF-16" else f"if it is Latin-1, as texts of older programs are, {command}",
    )
