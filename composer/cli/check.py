"""`arco check`: what is wrong or doubtful in recipes."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from composer.cli.arguments import Problem, add_changes, load_recipe
from composer.diagnostics import Diagnostic, as_github, as_json, concise, report
from composer.diagnostics.render import in_order

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
    parser.set_defaults(run=check)


def check(arguments: argparse.Namespace) -> int:
    """Report on all of them; 2 where one cannot be read, else 1 where one is wrong. Warnings do not count."""
    found, code = [], 0
    unreadable = []
    for source in arguments.recipes:
        try:
            recipe = load_recipe(source, arguments)
        except Problem as problem:
            unreadable.append(problem)
            continue
        diagnostics = recipe.check()
        found.extend(diagnostics)
        wrong = any(diagnostic.severity == "error" for diagnostic in diagnostics)
        code = max(code, int(wrong))
        if not diagnostics and arguments.format not in FOR_PROGRAMS:
            print(f"{source}: nothing wrong")
    if found or arguments.format == "json":
        print(FORMATS[arguments.format](in_order(found)))
    if unreadable:
        raise Problem("\n".join(map(str, unreadable)))
    return code
