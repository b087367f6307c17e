"""`arco summary`: the layers of a model and their costs."""

from __future__ import annotations

import argparse

from composer.cli.arguments import Parser, add_changes, add_recipe, lengths, sound_recipe
from composer.cli.output import say
from composer.printable import json_text


def declare(parser: Parser, name: str) -> None:
    """Declare a recipe, the lengths of its axes, and the format."""
    add_recipe(parser)
    add_changes(parser)
    parser.add_argument(
        "--at", metavar="AXIS=LENGTH", action="append", default=[], help="Length of an axis, such as time=512 or time=512,batch=8"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="Output format")
    parser.examples = [
        ("Count the parameters, FLOPs and memory of a model", "arco summary gpt2"),
        ("Measure at other lengths", "arco summary llama3 --at time=4096 --at batch=8"),
        ("Try a change", "arco summary gpt_mini --set n_layers=2"),
        ("Print the numbers as JSON", "arco summary gpt_mini --format json"),
    ]
    parser.set_defaults(run=summary)


def summary(arguments: argparse.Namespace) -> int:
    """Print the model as a tree, with its costs."""
    from composer.cost.lengths import axes

    recipe = sound_recipe(arguments.recipe, arguments)
    measured = recipe.summary(lengths(arguments.at, axes(recipe.program), "summary"))
    if arguments.format == "json":
        say(json_text(measured.to_json(), indent=2))
    else:
        say(str(measured))
    return 0
