"""`arco verify`: whether a model, and each block of the user's own, does what it declares."""

from __future__ import annotations

import argparse
import sys

from composer.cli.arguments import Parser, add_changes, add_recipe, sound_recipe
from composer.cli.color import painter
from composer.cli.output import say
from composer.diagnostics import report
from composer.printable import json_text


def declare(parser: Parser, name: str) -> None:
    """Declare a recipe and the format."""
    add_recipe(parser)
    add_changes(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="Output format")
    parser.examples = [
        ("Try a model, and the blocks of your own that it uses", "arco verify small.yaml"),
        ("Try a recipe of the package", "arco verify gpt_mini"),
        ("Print the result as JSON", "arco verify gpt_mini --format json"),
    ]
    parser.notes = "The exit code is 1 if something does not hold or the recipe has errors, and 2 if it cannot be read."
    parser.set_defaults(run=verify)


def verify(arguments: argparse.Namespace) -> int:
    """Print what does not hold, or how much holds."""
    found = sound_recipe(arguments.recipe, arguments).verify()
    if arguments.format == "json":
        print(json_text(found.to_json(), indent=2))
    elif found.ok:
        say(str(found))
    else:
        print(report(found.diagnostics, paint=painter(sys.stdout)))
    return 0 if found.ok else 1
