"""The type of path arguments, and atomic writing of files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

StrPath: TypeAlias = "str | os.PathLike[str]"
"""A path as a string or a path object; every public function takes both."""


def save(path: Path, content: bytes) -> None:
    """Write a file atomically, by renaming a temporary one; pipes and devices are written to directly.

    Raises:
        OSError: The file cannot be written; an existing one is left unchanged.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    with aside(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def aside(path: Path, ending: str = ".part") -> Iterator[Path]:
    """Yield the path of a temporary file, which gets its name once it is written; after an error, nothing is left of it.

    Raises:
        OSError: The file cannot be written; an existing one is left unchanged.
    """
    path = path.resolve()  # write to the target of a link
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}{ending}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
