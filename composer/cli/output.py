"""Output of results: to standard output, or to the file of `-o`."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from composer.atomic_files import save
from composer.cli.arguments import Problem, StoreOnce
from composer.diagnostics.render import Painter
from composer.printable import printable

WIDTH = 100
"""Columns of a line in a list."""

STANDARD = "-"
"""`-o -`: standard output, even if it is a terminal and the result is a figure."""


def add_output(
    parser: argparse._ActionsContainer, help: str = "Write to this file, replacing it, instead of standard output"
) -> None:
    """Declare `-o`."""
    parser.add_argument("-o", "--output", metavar="FILE", action=StoreOnce, help=help)


def rows(meanings: Mapping[str, str], paint: Painter, *, width: int = 0, indent: str = "") -> Iterator[str]:
    """Yield a line for each name, with as much of its meaning as fits."""
    width = width or max(map(len, meanings))
    for name, meaning in meanings.items():
        short = textwrap.shorten(meaning, WIDTH - len(indent) - width - 2, placeholder=" …")
        yield f"{indent}{paint(name, 'accent')}{' ' * (width - len(name))}  {short}"


def say(text: str) -> None:
    """Print a text of one or more lines, which may hold names and words of others."""
    print(printable(text, keep="\n"))


def generated(text: str, stream: TextIO) -> str:
    """Return a text that a model has generated as it is for a file or a pipe; in a terminal, it shows what controls one."""
    return printable(text, keep="\n\t") if stream.isatty() else text


def emit(content: str | bytes, output: str | None) -> None:
    """Print a result, or write it to the file and print the file's name.

    Raises:
        Problem: The file cannot be written.
    """
    if output not in (None, STANDARD):
        write_file(Path(output), content)
        return
    if isinstance(content, bytes):
        sys.stdout.buffer.write(content)
    else:
        sys.stdout.write(printable(content, keep="\n\t"))


def write_file(file: Path, content: str | bytes) -> None:
    """Write a file atomically and print its name.

    Raises:
        Problem: The file cannot be written; an existing one is left unchanged.
    """
    try:
        save(file, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise unwritable(file, error) from None
    say(f"wrote {file}")


def unwritable(file: Path | str, error: OSError) -> Problem:
    """Return the problem of a file that cannot be written."""
    return Problem(f"arco: {file} cannot be written: {(error.strerror or str(error)).lower()}")


def keep_off_terminal(command: str, format: str, output: str | None, example: str) -> None:
    """Refuse to print a figure to a terminal unless `-o -` asks for it.

    Raises:
        Problem: Standard output is a terminal, and there is no `-o`.
    """
    if output is None and sys.stdout.isatty():
        raise Problem(
            f"arco {command}: {format.upper()} is not printed to a terminal", f"-o {example} writes a file; -o - prints it anyway"
        )
