"""Places in Python files."""

from __future__ import annotations

import inspect
import traceback
from pathlib import Path

from composer.diagnostics.source import Source, Span


def line_span(source: Source, number: int) -> Span:
    """Return a line without the space around it."""
    text = source.lines[number - 1] if number <= len(source.lines) else ""
    start = len(text) - len(text.lstrip()) + 1
    return Span(source, number, start, number, max(start + 1, len(text.rstrip()) + 1))


def shown(file: str) -> str:
    """Return a path as a user writes it: relative to the working folder, if it is below."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def class_span(named: type) -> Span:
    """Return the first line of a class."""
    try:
        file, (_, number) = inspect.getsourcefile(named), inspect.getsourcelines(named)
        return line_span(Source(str(file), Path(str(file)).read_text(encoding="utf-8")), number)
    except (OSError, TypeError):  # a class without a file, such as in a REPL
        return Span(Source(named.__module__, ""), 1, 1, 1, 1)


def raising_span(named: type, error: Exception) -> Span | None:
    """Return the last line of a class at which an error was raised; None where it was not raised in the class."""
    try:
        file, (lines, first) = inspect.getsourcefile(named), inspect.getsourcelines(named)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        number = next(line for frame in reversed(frames) if first <= (line := frame.lineno or 0) < first + len(lines))
        return line_span(Source(shown(str(file)), Path(str(file)).read_text(encoding="utf-8")), number)
    except (OSError, TypeError, StopIteration):
        return None
