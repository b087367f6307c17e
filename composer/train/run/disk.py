"""The one writer of the files of a run: whole files, appended lines, folders and their removal, each of them durable.

A file is written aside, flushed to the disk and renamed, and so is a folder, so that what has its own name is complete, even
after a power failure. Every function raises `OSError` with the path that it was about.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from composer.train.run.manifest import Seal

ASIDE = ".aside-"
"""Prefix of the names of unfinished files and folders, which are read only where a manifest has their checksum."""
Content = Iterable[bytes | memoryview]
WITHOUT_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF})
"""What a file system answers that cannot flush a folder."""


def aside_of(path: Path) -> Path:
    """Return the path under which a file is written before it is renamed."""
    return path.with_name(f"{ASIDE}{path.name}")


def write_new(path: Path, content: Content) -> Seal:
    """Write a new file, replacing an unfinished one, flush it to the disk, and return its size and checksum."""
    remove(path)
    digest, size = hashlib.sha256(), 0
    with _open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as file:
        for piece in content:
            digest.update(piece)
            size += len(piece)
            _write(path, file, memoryview(piece))
        _about(path, os.fsync, file)
    return Seal(size, digest.hexdigest())


def replace(path: Path, content: bytes) -> Seal:
    """Write a file atomically: readers see either the old content or the new one."""
    seal = write_new(aside_of(path), [content])
    rename(aside_of(path), path)
    return seal


def append(path: Path, content: bytes) -> None:
    """Append to a file, which is created if there is none; `flush` makes it durable."""
    with _open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
        _refuse_shared(path, file)
        _write(path, file, memoryview(content))


def truncate(path: Path, size: int) -> None:
    """Cut a file to a size, and flush it to the disk."""
    with _open(path, os.O_WRONLY | os.O_CREAT) as file:
        _refuse_shared(path, file)
        _about(path, os.ftruncate, file, size)
        _about(path, os.fsync, file)


def flush(path: Path) -> None:
    """Wait until a file is on the disk."""
    with _open(path, os.O_WRONLY | os.O_CREAT) as file:
        _about(path, os.fsync, file)


def rename(old: Path, new: Path) -> None:
    """Rename a file or a folder, replacing a file, and flush the folder that contains it."""
    _about(new, os.replace, old, new)
    flush_folder(new.parent)


def make_folder(path: Path) -> None:
    """Create a folder, with those that contain it; one that exists is kept."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link", str(path))
    _about(path, os.makedirs, path, exist_ok=True)


def flush_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can do that."""
    if os.name == "nt":
        return
    with _open(path, os.O_RDONLY, follow=True) as file:
        try:
            os.fsync(file)
        except OSError as error:
            if error.errno not in WITHOUT_SYNC:
                raise OSError(error.errno, error.strerror, str(path)) from None


def remove(path: Path) -> None:
    """Remove a file, a folder with everything in it, or a symbolic link, but not what the link points at; nothing is no error."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)  # noqa: PTH108  # every system call is one of `os`, where tests put faults
    except FileNotFoundError:
        return


@contextmanager
def _open(path: Path, flags: int, *, follow: bool = False) -> Iterator[int]:
    """Open a file by its own name, not through a symbolic link."""
    flags |= getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
    file = _about(path, os.open, path, flags, 0o666)
    try:
        yield file
    finally:
        _about(path, os.close, file)


def _write(path: Path, file: int, content: memoryview) -> None:
    """Write all of a content, however little the system takes at once."""
    rest = content.cast("B")
    while rest:
        written = _about(path, os.write, file, rest)
        if not written:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        rest = rest[written:]


def _refuse_shared(path: Path, file: int) -> None:
    """Raise `OSError` for a file with a second name, which would change with this one."""
    if os.fstat(file).st_nlink > 1:
        raise OSError(errno.EMLINK, "it is a hard link to another file", str(path))


def _about(path: Path, call: Callable[..., int | None], *arguments: object, **options: object) -> int:
    """Return what a system call returns, 0 for None; its error has the path."""
    try:
        return call(*arguments, **options) or 0
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
