"""Blocks of the user, from Python files or classes given to `--blocks` or `load`."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from blocks.core import Library, NameClash, Part, standard
from blocks.core.library import parts_in
from composer.block_declarations import declaration_mistakes
from composer.diagnostics import Diagnostic, RecipeError, Source, Span
from composer.diagnostics.python_source import class_span, line_span

Blocks = Sequence["type[Part] | Path | str"]
"""Block classes, or Python files that define some."""


def library_with(blocks: Blocks) -> Library:
    """Return the standard library with these blocks added.

    Raises:
        RecipeError: A file cannot be read or executed, a declaration cannot be right, or the name of a block is taken.
    """
    library = standard()
    files: set[Path] = set()
    for own in blocks:
        file = Path(own).resolve() if isinstance(own, str | Path) else None
        if file in files:  # given twice
            continue
        files |= set() if file is None else {file}
        parts = parts_of(Path(own)) if isinstance(own, str | Path) else [own]
        if wrong := [found for part in parts for found in declaration_mistakes(part)]:
            raise RecipeError(wrong)
        library = with_own(library, parts)
    return library


def with_own(library: Library, parts: Sequence[type[Part]]) -> Library:
    """Return a library with blocks of the user added.

    Raises:
        RecipeError: The name of a block is taken.
    """
    try:
        return library.with_parts(parts)
    except NameClash as clash:
        raise RecipeError([Diagnostic("name-clash", str(clash), class_span(clash.second))]) from None


def parts_of(file: Path) -> list[type[Part]]:
    """Return the blocks that a Python file defines; the file is executed, so it must be trusted.

    Raises:
        RecipeError: The file cannot be read or executed, or defines no block.
    """
    source = _read(file)
    name = f"composer_blocks_{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise RecipeError([Diagnostic("block-file", "a file of blocks ends in .py", Span(source, 1, 1, 1, 1))])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pydantic and pickle look up the module of a class
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        number, words = _place(error, str(spec.origin))
        message = f"{type(error).__name__}: {' '.join(words.split())}"
        raise RecipeError([Diagnostic("block-file", message, line_span(source, number))]) from error
    parts = parts_in(module)
    if not parts:
        hint = 'class MyBlock(Block, kind="my_block"): …'
        raise RecipeError([Diagnostic("block-file", "this file defines no block", line_span(source, 1), hint=hint)])
    return parts


def _read(file: Path) -> Source:
    try:
        return Source(str(file), file.read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or "it is no file").lower()
        raise RecipeError([_unreadable(file, f"this file cannot be read: {reason}")]) from None
    except UnicodeDecodeError:
        raise RecipeError([_unreadable(file, "this file is not UTF-8 text")]) from None


def _unreadable(file: Path, message: str) -> Diagnostic:
    return Diagnostic("block-file", message, Span(Source(str(file), ""), 1, 1, 1, 1))


def _place(error: BaseException, file: str) -> tuple[int, str]:
    """Return the line of the file where an error was raised, and its message."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno or 1, error.msg
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file and frame.lineno]
    return lines[-1] if lines else 1, str(error)
