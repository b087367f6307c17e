"""Paths as callers give them, and files that are written atomically."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TypeAlias

StrPath: TypeAlias = "str | os.PathLike[str]"
"""A path as text or as an object; every public function takes both."""


def save(path: Path, content: bytes) -> None:
    """Write a file aside, and move it to its place; a pipe or a device is written to, and never replaced.

    Raises:
        OSError: where that cannot be; then an old file is as it was.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path = path.resolve()  # what a link leads to
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    aside = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        aside.write_bytes(content)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
