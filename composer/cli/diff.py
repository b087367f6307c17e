"""`arco diff`: the differences between two models."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, add_changes, sound_recipe
from composer.cli.color import painter
from composer.cli.draw import LEVELS, THEMES
from composer.cli.output import STANDARD, add_output, emit, keep_off_terminal, say, unwritable
from composer.diagnostics import RecipeError
from composer.diagnostics.render import Painter, TextRole
from composer.printable import json_text, printable

if TYPE_CHECKING:
    from composer.draw.export.formats import Page

SIGNS: dict[str, TextRole] = {"-": "removed", "+": "added", "~": "warning", "=": "accent"}


def declare(parser: Parser, name: str) -> None:
    """Declare two recipes, and how to show their differences."""
    from composer.draw.export.formats import figure_formats

    parser.add_argument("before", metavar="RECIPE", help="Name from `arco list`, or path to a .yaml file")
    parser.add_argument("after", metavar="OTHER", help="The recipe to compare it with; --set changes only this one")
    output = parser.add_argument_group("Output")
    add_output(output, "Write to this file, replacing it: .svg, .png or .pdf for a figure, .html for a page, .json for programs")
    output.add_argument(
        "--format",
        choices=("text", "json", *figure_formats()),
        help="Output format (default: by the extension of the file, else text)",
    )
    output.add_argument("--level", choices=LEVELS, default="block", help="Level of detail of a figure")
    output.add_argument("--theme", choices=THEMES, default="light", help="Colors of a figure")
    add_changes(parser)
    parser.examples = [
        ("List the differences between two models", "arco diff gpt2 llama3"),
        ("Show what a change does", "arco diff gpt_mini gpt_mini --set layers.attn.norm=layernorm"),
        ("Draw both side by side", "arco diff gpt2 llama3 -o both.svg"),
    ]
    parser.notes = "The exit code is 0 if the two are the same model, 1 if they differ, and 2 if they cannot be compared."
    parser.set_defaults(run=diff)


def diff(arguments: argparse.Namespace) -> int:
    """Print the differences, or write them to a file."""
    from composer.draw.export.formats import FORMATS, figure_formats, format_of

    figures, output = figure_formats(), arguments.output or ""
    ending = Path(output).suffix.lower()
    format = arguments.format or ("json" if ending == ".json" else format_of(output) or "text")
    if format not in ("text", "json", *figures):
        endings = ", ".join(FORMATS[figure].endings[0] for figure in figures)
        raise Problem(f"arco diff: a comparison cannot be written as {ending}", f"use one of {endings}")
    unchanged = argparse.Namespace(**{**vars(arguments), "set": []})
    try:
        before, after = sound_recipe(arguments.before, unchanged), sound_recipe(arguments.after, arguments)
    except Problem as problem:
        raise Problem(problem.message, problem.hint, found=problem.found) from None  # 1 would say that they differ
    try:
        found = before.diff(after)
    except RecipeError as error:
        raise Problem(found=error.diagnostics) from None
    if before.name == after.name:
        settings = f" with {', '.join(arguments.set)}" if arguments.set else ""
        found = replace(found, before=arguments.before, after=arguments.after + settings)
    if format in figures:
        keep_off_terminal("diff", format, arguments.output, f"diff.{format}")
        _write_figure(found.draw(arguments.level, theme=arguments.theme), format, arguments.output)
    elif format == "json":
        emit(json_text(found.to_json(), indent=2) + "\n", arguments.output)
    elif arguments.output in (None, STANDARD):
        print(_colored(str(found), painter(sys.stdout)))
    else:
        emit(f"{found}\n", arguments.output)
    return int(not found.equal)


def _colored(text: str, paint: Painter) -> str:
    """Return the text with each line in the color of its sign."""
    return "\n".join(
        paint(line, SIGNS[line[0]]) if line[:1] in SIGNS and line[1:2] == " " else line
        for line in printable(text, keep="\n").split("\n")
    )


def _write_figure(page: Page, format: str, output: str | None) -> None:
    """Write the figure to a file, or print it."""
    from composer.draw.export.formats import FORMATS, NotDrawn, write, written
    from composer.draw.graphviz_programs import Missing

    try:
        if output in (None, STANDARD):
            content = written(page, format)
            emit(content if FORMATS[format].binary else content.decode(), output)
            return
        write(page, Path(output), format)
    except (Missing, NotDrawn) as no:
        raise Problem(f"arco diff: {no.message}", no.hint) from None
    except OSError as error:
        raise unwritable(output or STANDARD, error) from None
    say(f"wrote {output}")
