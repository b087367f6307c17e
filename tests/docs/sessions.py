"""A page's examples, run in its order in one folder: files are written, commands and Python are run, outputs come back."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from composer.cli import main
from tests.docs.pages import Example

ANY = "…"
"""In an output that is shown: any text within a line, or, alone on a line, any lines."""


@dataclass(frozen=True)
class Run:
    """One command or statement: how it is written, the output that is shown, and the one that came."""

    example: Example
    written: str
    """With its prompt."""
    shown: str
    came: str

    @property
    def agrees(self) -> bool:
        """Whether the page shows what came."""
        return agree(self.shown, self.came)


def agree(shown: str, came: str) -> bool:
    """Return whether an output is the one that is shown; blanks at the ends of lines do not count."""
    lines = [line.rstrip() for line in shown.strip("\n").splitlines()]
    pattern = "".join("(?:.*\n)*?" if line == ANY else "[^\n]*".join(map(re.escape, line.split(ANY))) + "\n" for line in lines)
    text = "".join(f"{line.rstrip()}\n" for line in came.strip("\n").splitlines())
    return re.fullmatch(pattern, text) is not None


@dataclass
class Session:
    """What the examples of one page share; the working folder is the page's own."""

    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def run(self, example: Example) -> Iterator[Run]:
        """Yield all that one example does."""
        if file := example.option("file"):
            Path(file).write_text(example.text, encoding="utf-8")
        elif example.language == "console":
            yield from self._console(example)
        elif example.language == "pycon":
            yield from self._python(example)

    def _console(self, example: Example) -> Iterator[Run]:
        for part in re.split(r"^\$ ", example.text, flags=re.MULTILINE)[1:]:
            written, shown = _command(part)
            program, *words = shlex.split(written.replace("\\\n", " "))
            assert program == "arco", f"{example}: only `arco` is run"
            yield Run(example, f"$ {written}\n", shown, output(lambda words=words: main(words)))

    def _python(self, example: Example) -> Iterator[Run]:
        for part in filter(None, re.split(r"^(?=>>> )", example.text, flags=re.MULTILINE)):
            lines = part.splitlines(keepends=True)
            more = list(takewhile(lambda line: line.startswith("..."), lines[1:]))
            written, shown = [*lines[:1], *more], lines[1 + len(more) :]
            code = compile("".join(line[4:] or "\n" for line in written) + "\n", str(example), "single", dont_inherit=True)
            came = output(lambda code=code: exec(code, self.names))
            yield Run(example, "".join(written), "".join(shown), came)


def _command(text: str) -> tuple[str, str]:
    """Return a command, which goes on after a backslash at the end of a line, and the output below it."""
    lines = text.split("\n")
    end = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\"))
    return "\n".join(lines[:end]), "\n".join(lines[end:])


def output(work: Any) -> str:
    """Return what some work prints, wherever it prints it, paths with slashes; an exception is its last line,
    as in a terminal.
    """
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            work()
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
    return printed.getvalue().replace(os.sep, "/")
