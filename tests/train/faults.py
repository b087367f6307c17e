"""Faults of a disk, put into the one writer of runs: errors of the system, short writes, and the death of the process."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from composer.train.run import disk

CALLS = ("open", "write", "fsync", "ftruncate", "replace", "makedirs", "unlink", "lstat", "close")
"""The system calls of the writer."""
ERRORS = ("ENOSPC", "EDQUOT", "EACCES", "EROFS", "EIO", "ENOENT")

Fault = Callable[[str, Callable[..., Any], tuple[Any, ...]], Any]
"""What happens in the place of a system call, given its name, the call and its arguments."""


class Counter:
    """Lets the calls of the writer through, and puts a fault in the place of one of them, or of all from there on."""

    def __init__(self, fault: Fault | None = None, *, at: int = 0, lasting: bool = False) -> None:
        self.fault, self.at, self.lasting = fault, at, lasting
        self.names: list[str] = []

    def __call__(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.names.append(name)
            number = len(self.names)
            if self.fault is not None and (number == self.at or (self.lasting and number > self.at > 0)):
                return self.fault(name, lambda *given: call(*given, **options), arguments)
            return call(*arguments, **options)

        return counted


@contextmanager
def on_disk(counter: Counter) -> Iterator[Counter]:
    """Put a counter between the writer and the system, which does not wait for the disk meanwhile: no power fails in tests."""
    wrapped = {name: counter(name, getattr(os, name) if name != "fsync" else lambda file: None) for name in CALLS}
    plain = {name: getattr(os, name) for name in dir(os) if name not in wrapped}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "os", SimpleNamespace(**plain, **wrapped))
        patch.setattr(disk, "shutil", SimpleNamespace(rmtree=counter("rmtree", shutil.rmtree)))
        yield counter


def failing(name: str) -> Fault:
    """Return the fault of a system call that fails; a file is closed all the same."""
    number = getattr(errno, name)

    def fail(call_name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if call_name == "close":
            call(*arguments)
        raise OSError(number, os.strerror(number))

    return fail


def short(call_name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Write one byte of those that are given; any other call is as it is."""
    return call(arguments[0], arguments[1][:1]) if call_name == "write" else call(*arguments)


def torn(call_name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Write half, and then have no space left."""
    if call_name == "write":
        call(arguments[0], arguments[1][: len(arguments[1]) // 2])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def killed(call_name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Kill the process, in a write after half of it."""
    if call_name == "write":
        call(arguments[0], arguments[1][: len(arguments[1]) // 2])
    os.kill(os.getpid(), signal.SIGKILL)


FAULTS: dict[str, Fault] = {**{name: failing(name) for name in ERRORS}, "short": short, "torn": torn}
