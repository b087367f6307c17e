"""Where the text of a recipe comes from: whether it is named, lies in a file or is given, and the file as a Source."""

from __future__ import annotations

import stat
from pathlib import Path, PureWindowsPath
from typing import Literal, NoReturn

from composer.diagnostics import Diagnostic, RecipeError, Source, Span

MAX_FILE_BYTES = 4 * 2**20
"""Bytes of one recipe file, and characters of a text that comes from none: the largest recipe that comes with the package has
some thousands."""
ENDINGS = (".yaml", ".yml")


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

    Raises:
        RecipeError: where there is no such file, or it cannot be one of recipes.
    """
    source = Source(str(path), "")
    try:
        mode = path.stat().st_mode
        content = _content(path) if stat.S_ISREG(mode) else b""
    except FileNotFoundError:
        _refuse("missing-file", "there is no such file", source, file_hint(str(path)))
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = error.strerror if isinstance(error, OSError) else None
        _refuse("unreadable-file", f"this file cannot be read: {reason or 'no file can have this name'}", source)
    if stat.S_ISDIR(mode):
        _refuse("not-a-file", "this is a folder, not a file", source)
    if not stat.S_ISREG(mode):
        _refuse("not-a-file", "this is a device or a pipe, not a file", source)
    if len(content) > MAX_FILE_BYTES:
        _refuse("too-large", f"a recipe has at most {MAX_FILE_BYTES} bytes", source)
    try:
        return Source(source.name, content.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        _refuse_encoding(source.name, content, error.start)


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


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
    return next((f"did you mean {file}?" for file in files if (folder / file).is_file()), "")


def _refuse(code: str, message: str, source: Source, hint: str = "") -> NoReturn:
    raise RecipeError([Diagnostic(code, message, Span(source, 1, 1, 1, 1), hint=hint)])
