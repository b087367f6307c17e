"""The lock of a run folder, which one process at a time holds while it trains."""

from __future__ import annotations

import os
import platform
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from composer.train.errors import TrainingError
from composer.train.input_files import reason_of

LOCKED_BYTE = 1 << 30
"""The byte that is locked on Windows, where nobody can read a locked one: far behind the text."""
HOLDER = re.compile(r"process [0-9]{1,10} on [\w.-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class Lock:
    """A lock that this process holds."""

    folder: Path
    file: int
    """The descriptor of the locked file."""

    def check(self) -> None:
        """Raise `TrainingError` unless the folder of the run is still at its path."""
        try:
            there = os.path.samestat(self.path.lstat(), os.fstat(self.file))
        except OSError:
            there = False
        if not there:
            raise TrainingError(
                f"the run folder {self.folder} was moved, deleted or replaced while it was in use",
                hint="a folder that was moved can be resumed in its new place",
            )

    @property
    def path(self) -> Path:
        """The locked file."""
        return self.folder / "lock"


@contextmanager
def locked(folder: Path) -> Iterator[Lock]:
    """Hold the lock of a run folder, which exists; the system releases the lock of a process that dies.

    Raises:
        TrainingError: Another process holds it, or the folder cannot be locked.
    """
    path = folder / "lock"
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        if path.is_symlink():
            raise TrainingError(f"{path} is a symbolic link, which no run writes", hint="delete it")
        file = os.open(path, flags, 0o666)
    except OSError as error:
        raise TrainingError(f"cannot lock {path}: {reason_of(error)}", hint="see that the run folder can be written") from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise TrainingError(f"{path} is not a file of its own, which every run writes", hint="delete it")
        try:
            acquire(file)
        except BlockingIOError:
            raise TrainingError(
                f"{folder} is in use by {holder(file)}", hint="wait until it has finished, or stop it; it saves a checkpoint"
            ) from None
        except OSError as error:
            raise TrainingError(f"cannot lock {path}: {reason_of(error)}", hint="use a disk that has file locks") from None
        sign(file)
        yield Lock(folder, file)
    finally:
        os.close(file)  # which releases the lock


def holder(file: int) -> str:
    """Return the process that a lock file names, or `another process` if it names none."""
    os.lseek(file, 0, os.SEEK_SET)
    text = os.read(file, 200).decode("ascii", "replace").strip()
    return text if HOLDER.fullmatch(text) else "another process"


def sign(file: int) -> None:
    """Write who holds the lock; a full disk does not keep anyone from holding it."""
    host = re.sub(r"[^\w.-]", "", platform.node(), flags=re.ASCII)[:64] or "this machine"
    try:
        os.ftruncate(file, 0)
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, f"process {os.getpid()} on {host}\n".encode())
    except OSError:
        return


if sys.platform == "win32":
    import msvcrt

    def acquire(file: int) -> None:
        """Lock a file without waiting.

        Raises:
            BlockingIOError: Another process has locked it.
        """
        os.lseek(file, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None

else:
    import fcntl

    def acquire(file: int) -> None:
        """Lock a file without waiting.

        Raises:
            BlockingIOError: Another process has locked it.
        """
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
