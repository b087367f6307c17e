"""`arco check`: what is wrong or doubtful in recipes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, add_changes, load_recipe, sound_recipe, tell
from composer.cli.color import painter
from composer.cli.revision import at_revision
from composer.diagnostics import Diagnostic, Label, Source, as_github, as_json, concise, report
from composer.diagnostics.render import Painter, in_order
from composer.language.source_file import ENDINGS, form_of

if TYPE_CHECKING:
    from composer.recipe import Recipe

FORMATS: dict[str, Callable[[list[Diagnostic], Painter], str]] = {
    "full": lambda found, paint: report(found, paint=paint),
    "concise": lambda found, paint: report(found, concise, paint=paint),
    "json": lambda found, _: as_json(found),
    "github": lambda found, _: "\n".join(map(as_github, found)),
}
FOR_PROGRAMS = ("json", "github")
"""Formats that say nothing of recipes without mistakes."""


def declare(parser: Parser, name: str) -> None:
    """Declare recipes, and how to report on them."""
    parser.add_argument("recipes", metavar="RECIPE", nargs="+", help="Names from `arco list`, or paths of .yaml files")
    add_changes(parser)
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="full",
        help="Quote the line of each mistake, write a line each, or write for programs and for GitHub's annotations",
    )
    parser.add_argument(
        "--against",
        metavar="RECIPE|REVISION",
        help="Warn of edges that changed against another recipe, or against a Git revision of the same file",
    )
    parser.examples = [
        ("Check a recipe, and show every mistake at its place", "arco check small.yaml"),
        ("Check a change before you make it", "arco check small.yaml --set n_layers=12"),
        ("Annotate the lines of a pull request", "arco check --format github small.yaml"),
        ("List the edges that differ from another recipe's", "arco check small.yaml --against gpt_mini"),
    ]
    parser.notes = "The exit code is 1 where a recipe is wrong, and 2 where one cannot be read. Warnings do not count."
    parser.set_defaults(run=check)


def check(arguments: argparse.Namespace) -> int:
    """Report on all of the recipes."""
    paint, found, code = painter(sys.stdout), [], 0
    unreadable = []
    for source in arguments.recipes:
        try:
            recipe = load_recipe(source, arguments)
        except Problem as problem:
            unreadable.append(problem)
            continue
        diagnostics = recipe.check()
        wrong = any(diagnostic.severity == "error" for diagnostic in diagnostics)
        code = max(code, int(wrong))
        if arguments.against and not wrong:
            diagnostics += against(recipe, source, arguments)
        found.extend(diagnostics)
        if not diagnostics and arguments.format not in FOR_PROGRAMS:
            print(f"{source}: nothing wrong")
    if found or arguments.format == "json":
        print(FORMATS[arguments.format](in_order(found), paint))
    for each in unreadable:
        tell(each)
    return 2 if unreadable else code


def against(recipe: Recipe, source: str, arguments: argparse.Namespace) -> list[Diagnostic]:
    """Return the edges that changed against `--against`; what is set is set in both.

    Raises:
        Problem: where there is nothing sound to compare with.
    """
    from composer.diff.edge_changes import changed_edges

    if names_recipe(arguments.against):
        return changed_edges(_sound(arguments.against, arguments).program, recipe.program)
    file = Path(source)
    if not file.is_file():
        raise Problem(
            f"arco check: --against {arguments.against}: {source} is no file that git could know", "name another recipe"
        )
    with at_revision(file, arguments.against) as earlier:
        found = changed_edges(_sound(str(earlier), arguments).program, recipe.program)
    shown = f"{source} at {arguments.against}"
    return [replace(each, labels=tuple(map(partial(_called, shown), each.labels)), hint=each.hint.replace(str(earlier), shown))
            for each in found]  # fmt: skip


def names_recipe(word: str) -> bool:
    """Return whether a word names a recipe rather than a revision of git, which may have slashes in its name too."""
    from composer.recipe import zoo_names

    match form_of(word):
        case "name":
            return word in zoo_names()
        case "path":
            return word.endswith(ENDINGS) or Path(word).is_file()
        case "text":
            return False


def _sound(source: str, arguments: argparse.Namespace) -> Recipe:
    try:
        return sound_recipe(source, arguments)
    except Problem as problem:
        message = f"arco check: --against {arguments.against}: it is wrong itself"
        raise Problem(message, problem.hint, found=problem.found) from None


def _called(name: str, label: Label) -> Label:
    """Return the label in a text that is shown under another name."""
    span = label.span
    return replace(label, span=replace(span, source=Source(name, span.source.text)))
