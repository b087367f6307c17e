"""Reading files that others may have written: regular files only, up to a bound, and JSON of a declared form."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pydantic import TypeAdapter, ValidationError

from composer.train.errors import TrainingError

Value = TypeVar("Value")

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a symbolic link",
}
"""What a path may be besides a file."""
CHUNK = 1 << 20


def read_bytes(path: Path, *, limit: int, hint: str = "", follow: bool = True) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    Args:
        path: The path of the file.
        limit: The largest size that is read.
        hint: What to do about a file that is larger.
        follow: Whether the path may be a symbolic link.

    Raises:
        TrainingError: There is no such file, it cannot be read, it is something else than a file, or it is larger.
    """
    with opened(path, follow=follow) as file:
        content = b"" if os.fstat(file.fileno()).st_size > limit else file.read(limit + 1)
        too_large = os.fstat(file.fileno()).st_size > limit or len(content) > limit  # some files have no size
    if too_large:
        raise TrainingError(f"{path} has more than {limit:,} bytes", hint=hint)
    return content


@contextmanager
def opened(path: Path, *, follow: bool = True) -> Iterator[BinaryIO]:
    """Open a regular file for reading, without waiting for the other end of a pipe.

    Raises:
        TrainingError: There is no such file, it cannot be read, or it is something else than a file.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        refuse_kind(path, (path.stat() if follow else path.lstat()).st_mode)
        with os.fdopen(os.open(path, flags if follow else flags | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            refuse_kind(path, os.fstat(file.fileno()).st_mode)  # it may have changed in between
            yield file
    except (OSError, ValueError) as error:
        if isinstance(error, TrainingError):
            raise
        raise TrainingError(f"cannot read {path}: {reason_of(error)}") from None


def refuse_kind(path: Path, mode: int) -> None:
    """Raise `TrainingError` unless a mode is that of a regular file."""
    if not stat.S_ISREG(mode):
        kind = KINDS.get(stat.S_IFMT(mode), "not a file")
        hint = "write its content to a file, which a resumed run can read again" if stat.S_ISFIFO(mode) else ""
        raise TrainingError(f"cannot read {path}: it is {kind}", hint=hint)


def mode_of(path: Path) -> int:
    """Return the mode of what is at a path, also of a symbolic link; 0 if there is nothing, or nothing that may be seen."""
    try:
        return path.lstat().st_mode
    except (OSError, ValueError):
        return 0


def reason_of(error: OSError | ValueError) -> str:
    """Return why a system call failed, in lower case; a `ValueError` comes from a name that no file can have."""
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()


def checksum(path: Path, *, size: int, follow: bool = True) -> str | None:
    """Return the SHA-256 of the first `size` bytes of a file, in hexadecimal; None if the file is shorter.

    Raises:
        TrainingError: The file cannot be read.
    """
    digest, left = hashlib.sha256(), size
    with opened(path, follow=follow) as file:
        while left and (chunk := file.read(min(left, CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    return None if left else digest.hexdigest()


def parse_json(content: bytes, path: Path) -> Any:
    """Return the value of a JSON text, of any form.

    Raises:
        TrainingError: It is no JSON.
    """
    if not content.strip():
        raise TrainingError(f"{path} is empty")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:  # ValueError: also bytes that are not UTF-8, and numbers of too many digits
        where = f"line {error.lineno}: {error.msg.lower()}" if isinstance(error, json.JSONDecodeError) else "it is not UTF-8 text"
        reason = "its values are nested too deeply" if isinstance(error, RecursionError) else where
        raise TrainingError(f"{path} is not JSON: {reason}") from None


def typed_json(content: bytes, kind: type[Value], path: Path) -> Value:
    """Return the value of a JSON text as a dataclass that declares its form.

    Raises:
        TrainingError: It is no JSON, or has another form.
    """
    parse_json(content, path)
    try:
        return TypeAdapter(kind).validate_json(content, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        what = "`" + place + "`: " if place else ""
        raise TrainingError(f"{path} has another form: {what}{first['msg'][0].lower()}{first['msg'][1:]}") from None
