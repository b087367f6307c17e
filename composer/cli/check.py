"""`arco check`: what is wrong or doubtful in recipes."""

from __future__ import annotations

import argparse

from composer.cli.arguments import Problem, add_changes, load_recipe
from composer.diagnostics import concise, full, report

STYLES = {"full": full, "concise": concise}


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """Recipes, and how to report."""
    parser.add_argument("recipes", metavar="RECIPE", nargs="+", help="names from `arco list`, or paths of .yaml files")
    add_changes(parser)
    parser.add_argument(
        "--format", choices=STYLES, default="full", help="with the line that is meant, or one line each (default: full)"
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
        if not diagnostics:
            print(f"{source}: nothing wrong")
    if found:
        print(report(found, STYLES[arguments.format]))
    if unreadable:
        raise Problem("\n".join(map(str, unreadable)))
    return code
