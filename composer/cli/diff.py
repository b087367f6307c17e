"""`arco diff`: what differs between two models."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from composer.cli.arguments import Problem, add_changes, sound_recipe
from composer.cli.export import write_whole
from composer.diagnostics import RecipeError, report


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """Two recipes, and how to tell."""
    parser.epilog = (
        "The exit code is 0 where the two are the same model, 1 where they differ, and 2 where one cannot be compared."
    )
    parser.add_argument("before", metavar="A", help="a name from `arco list`, or the path of a .yaml file")
    parser.add_argument("after", metavar="B", help="the same; what --set changes, it changes here")
    add_changes(parser)
    parser.add_argument("--format", choices=["text", "json"], default="text", help="for people or for programs (default: text)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: the terminal)")
    parser.set_defaults(run=diff)


def diff(arguments: argparse.Namespace) -> int:
    """Print it."""
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
    text = json.dumps(found.to_json(), indent=2, ensure_ascii=False) if arguments.format == "json" else str(found)
    if arguments.output:
        write_whole(Path(arguments.output), text + "\n")
        print(f"wrote {arguments.output}")
    else:
        print(text)
    return int(not found.equal)
