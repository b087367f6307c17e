"""`arco check`: what is wrong or doubtful in recipes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Problem, add_changes, load_recipe, sound_recipe
from composer.cli.revision import at_revision
from composer.diagnostics import Diagnostic, Label, Source, as_github, as_json, concise, report
from composer.diagnostics.render import in_order

if TYPE_CHECKING:
    from composer.recipe import Recipe

FORMATS: dict[str, Callable[[list[Diagnostic]], str]] = {
    "full": report,
    "concise": lambda found: report(found, concise),
    "json": as_json,
    "github": lambda found: "\n".join(map(as_github, found)),
}
FOR_PROGRAMS = ("json", "github")
"""Formats that hold nothing but what was found."""


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """Recipes, and how to report."""
    parser.add_argument("recipes", metavar="RECIPE", nargs="+", help="names from `arco list`, or paths of .yaml files")
    add_changes(parser)
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="full",
        help="with the line that is meant, one line each, as JSON, or as GitHub marks lines of a change (default: full)",
    )
    parser.add_argument(
        "--against",
        metavar="RECIPE|REVISION",
        help="warn of edges that changed against another recipe, or against a revision in git of the same file",
    )
    parser.epilog = (
        "The exit code is 0 where nothing is wrong, 1 where a recipe is, and 2 where one cannot be read. Warnings do not count, "
        "edges that changed among them."
    )
    parser.set_defaults(run=check)


def check(arguments: argparse.Namespace) -> int:
    """Report on all of them."""
    found, code = [], 0
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
        print(FORMATS[arguments.format](in_order(found)))
    if unreadable:
        raise Problem("\n".join(map(str, unreadable)))
    return code


def against(recipe: Recipe, source: str, arguments: argparse.Namespace) -> list[Diagnostic]:
    """The edges that changed against `--against`; what is set is set in both.

    Raises:
        Problem: where there is nothing sound to compare with.
    """
    from composer.diff.edge_changes import changed_edges
    from composer.recipe import is_recipe

    if is_recipe(arguments.against):
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


def _sound(source: str, arguments: argparse.Namespace) -> Recipe:
    try:
        return sound_recipe(source, arguments)
    except Problem as problem:
        raise Problem(
            f"arco check: --against {arguments.against}: it is wrong itself\n\n{problem.message}", problem.hint
        ) from None


def _called(name: str, label: Label) -> Label:
    """The label in a text that is shown under another name."""
    span = label.span
    return replace(label, span=replace(span, source=Source(name, span.source.text)))
