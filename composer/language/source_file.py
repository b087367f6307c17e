"""Where the text of a recipe comes from: whether it is named, lies in a file or is given, and the file as a Source."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import Literal, NoReturn

from composer.diagnostics import Diagnostic, RecipeError, Source, Span

MAX_FILE_BYTES = 4 * 2**20
"""Bytes of one recipe file, and characters of a text that comes from none: the largest recipe that comes with the package has
some thousands."""
ENDINGS = (".yaml", ".yml")
READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""How a file is opened: a pipe without a writer is not waited for."""
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def form_of(source: str) -> Literal["name", "path", "text"]:
    """Return what a recipe is given as: by its name in the zoo, by the path of its file, or by its text.

    A text has several lines. A path ends like a file of recipes or has a folder or a drive in it, on any system alike.

    >>> [form_of(source) for source in ("gpt2", "gpt2.yaml", "./gpt2", "recipe: gpt2\\n")]
    ['name', 'path', 'path', 'text']
    """
    if "\n" in source:
        return "text"
    folders = "/" in source or "\\" in source or PureWindowsPath(source).drive or source in (".", "..")
    return "path" if folders or source.endswith(ENDINGS) else "name"


def open_source(path: Path) -> Source:
    """Return the text of a recipe file, under the name by which it was asked for.

    Links are followed, since the user has named the file.

    Raises:
        RecipeError: where there is no such file, or it cannot be one of recipes.
    """
    return decoded(content_of(path, MAX_FILE_BYTES + 1), Source(str(path), ""))


def content_of(path: Path, most: int) -> bytes:
    """Return the first bytes of an ordinary file.

    Raises:
        RecipeError: where there is no such file, it cannot be read, or it is a folder, a pipe or a device.
    """
    with _refusals(path) as source:
        _refuse_special(path.stat().st_mode, source)
        return _content(os.open(path, READ), source, most)


def open_within(folder: Path, name: str) -> Source:
    """Return the text of a file that a recipe names, which lies in the folder of the recipe or below it.

    A link is followed as long as it leads to a file inside. Nothing that is put in place between judging the path and opening it
    changes that: the folders on the way, and the file, are opened one in another, and none of them may be a link by then.

    Args:
        folder: the folder of the outermost recipe.
        name: the path of the file from there, without steps up.

    Raises:
        RecipeError: where there is no such file, it cannot be one of recipes, or it lies outside.
    """
    with _refusals(folder / name) as source:
        root = Path(os.path.realpath(folder))
        inside = _inside(root, name)
        return decoded(_content(_opened_inside(root, inside), source, MAX_FILE_BYTES + 1), source)


class _Outside(Exception):
    """A link leads out of the folder."""


def _inside(root: Path, name: str) -> Path:
    """Return the real path of a file from a folder, judged by its properties alone: it is not opened.

    Raises:
        _Outside: where it does not lie there.
    """
    real = Path(os.path.realpath(root / name))
    if not real.is_relative_to(root):
        raise _Outside
    mode = os.lstat(real).st_mode
    if stat.S_ISLNK(mode):  # in a circle of links, none is real
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    _refuse_special(mode, Source(name, ""))
    return real.relative_to(root)


def _opened_inside(root: Path, inside: Path) -> int:
    """Return the descriptor of a file, opened through its folders without following a link."""
    if os.open not in os.supports_dir_fd:  # Windows: open it, then see whether that was the file that lies there now
        descriptor = os.open(root / inside, READ)
        if _same_place(root, inside, descriptor):
            return descriptor
        os.close(descriptor)
        raise _Outside
    *folders, last = inside.parts
    descriptor = os.open(root, FOLDER)
    try:
        for step, flags in [*((folder, FOLDER | NO_LINK) for folder in folders), (last, READ | NO_LINK)]:
            below = os.open(step, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
    except OSError as error:
        os.close(descriptor)
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):  # a link where there was none
            raise _Outside from None
        raise
    return descriptor


def _same_place(root: Path, inside: Path, descriptor: int) -> bool:
    real = Path(os.path.realpath(root / inside))
    return real == root / inside and os.path.samestat(real.stat(), os.fstat(descriptor))


def _refuse_special(mode: int, source: Source) -> None:
    if stat.S_ISDIR(mode):
        refuse("not-a-file", "this is a folder, not a file", source)
    if not stat.S_ISREG(mode):
        refuse("not-a-file", "this is a device or a pipe, not a file", source)


def _content(descriptor: int, source: Source, most: int) -> bytes:
    """Return the first bytes of an open file, judged once more, and close it."""
    try:
        _refuse_special(os.fstat(descriptor).st_mode, source)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)


@contextmanager
def _refusals(path: Path) -> Iterator[Source]:
    """Yield the source without a text, in which every failure to read a file is a diagnostic."""
    source = Source(str(path), "")
    try:
        yield source
    except FileNotFoundError:
        refuse("missing-file", "there is no such file", source, file_hint(str(path)))
    except _Outside:
        message = "this is a link to a file outside the folder of the recipe"
        refuse("outside-folder", message, source, "copy the file into the folder of the recipe")
    except RecipeError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = error.strerror if isinstance(error, OSError) else None
        refuse("unreadable-file", f"this file cannot be read: {reason or 'no file can have this name'}", source)


def decoded(content: bytes, source: Source) -> Source:
    """Return the source with the text of its bytes.

    Raises:
        RecipeError: where there are too many, or they are not UTF-8.
    """
    if len(content) > MAX_FILE_BYTES:
        refuse("too-large", f"a recipe has at most {MAX_FILE_BYTES} bytes", source)
    try:
        return Source(source.name, content.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        _refuse_encoding(source.name, content, error.start)


def _refuse_encoding(name: str, content: bytes, start: int) -> NoReturn:
    before = content[:start].decode("utf-8-sig", "replace")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    source = Source(name, content.decode("utf-8-sig", "replace"))
    message = f"this is not UTF-8: byte 0x{content[start]:02x}"
    raise RecipeError(
        [Diagnostic("not-utf8", message, Span(source, line, column, line, column + 1), hint="save the file as UTF-8")]
    )


def file_hint(name: str, folder: Path = Path()) -> str:
    """Return the file in a folder that a name without its ending may have meant, as a hint."""
    files = [f"{name}{ending}" for ending in ENDINGS]
    return next((f"did you mean {file}?" for file in files if stat.S_ISREG(mode_of(folder / file))), "")


def mode_of(path: Path) -> int:
    """Return the mode of a file or folder, or 0 where there is none, also for a name that none can have."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def refuse(code: str, message: str, source: Source, hint: str = "") -> NoReturn:
    """Raise a diagnostic about a file."""
    raise RecipeError([Diagnostic(code, message, Span(source, 1, 1, 1, 1), hint=hint)])
