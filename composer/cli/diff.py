"""`arco diff`: what differs between two models."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Problem, add_changes, sound_recipe
from composer.cli.export import write_whole
from composer.diagnostics import RecipeError, report

if TYPE_CHECKING:
    from composer.draw.export.formats import Format, Page


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """Two recipes, and how to tell."""
    parser.epilog = (
        "The exit code is 0 where the two are the same model, 1 where they differ, and 2 where one cannot be compared."
    )
    parser.add_argument("before", metavar="A", help="a name from `arco list`, or the path of a .yaml file")
    parser.add_argument("after", metavar="B", help="the same; what --set changes, it changes here")
    add_changes(parser)
    parser.add_argument(
        "--format",
        choices=("text", "json", "svg", "html", "png", "pdf"),
        help="where the file's name does not tell (default: text)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="-",
        help="a file; .svg, .png or .pdf makes it a picture, .html a page to click through (default: -, the terminal)",
    )
    parser.add_argument(
        "--level", choices=("overview", "block", "full"), default="block", help="how deep a picture goes (default: block)"
    )
    parser.add_argument(
        "--theme", choices=("light", "dark", "auto", "slide"), default="light", help="how a picture looks (default: light)"
    )
    parser.set_defaults(run=diff)


def diff(arguments: argparse.Namespace) -> int:
    """Print it."""
    from composer.draw.export.formats import PRINTED, SUFFIXES

    ending = Path(arguments.output).suffix.lower()
    format = arguments.format or SUFFIXES.get(ending, "text")
    if format not in ("text", "json", *PRINTED):
        raise Problem(f"arco diff: no {ending} of two models", f"let it end in {', '.join(f'.{one}' for one in PRINTED)}")
    unchanged = argparse.Namespace(**{**vars(arguments), "set": []})
    try:
        before, after = sound_recipe(arguments.before, unchanged), sound_recipe(arguments.after, arguments)
    except Problem as problem:
        raise Problem(problem.message, problem.hint) from None  # 1 would say that they differ
    try:
        found = before.diff(after)
    except RecipeError as error:
        raise Problem(report(error.diagnostics)) from None
    if before.name == after.name:
        settings = f" with {', '.join(arguments.set)}" if arguments.set else ""
        found = replace(found, before=arguments.before, after=arguments.after + settings)
    if format in PRINTED:
        _picture(found.draw(arguments.level, theme=arguments.theme), format, arguments.output)
        return int(not found.equal)
    text = json.dumps(found.to_json(), indent=2, ensure_ascii=False) if format == "json" else str(found)
    if arguments.output != "-":
        write_whole(Path(arguments.output), text + "\n")
        print(f"wrote {arguments.output}")
    else:
        print(text)
    return int(not found.equal)


def _picture(page: Page, format: Format, output: str) -> None:
    """Write it, or print it."""
    from composer.draw.export.formats import write, written
    from composer.draw.graphviz_programs import Missing

    try:
        if output == "-":
            sys.stdout.buffer.write(written(page, format))
            return
        write(page, Path(output), format)
    except Missing as missing:
        raise Problem(f"arco diff: {missing.message}", missing.hint) from None
    except OSError as error:
        raise Problem(f"{output} cannot be written: {(error.strerror or str(error)).lower()}") from None
    print(f"wrote {output}")
