"""`arco list`, `show` and `expand`: the recipes of the zoo, and a recipe as text."""

from __future__ import annotations

import argparse
import sys

from composer.cli.arguments import Parser, add_changes, add_recipe, load_recipe, sound_recipe
from composer.cli.color import painter
from composer.cli.output import add_output, emit, rows


def declare(parser: Parser, name: str) -> None:
    """Declare the arguments of one of the three commands."""
    if name == "list":
        parser.examples = [("List the recipes", "arco list")]
        parser.set_defaults(run=list_zoo)
        return
    run, does = {
        "show": (show, "The text is printed unchanged, except for what --set changes."),
        "expand": (expand, "Every edge and every slot is written out, and every param is replaced by its value."),
    }[name]
    parser.notes = does
    parser.examples = {
        "show": [
            ("Read a recipe", "arco show gpt2"),
            ("Start a recipe of your own from it", "arco show gpt2 --set n_layers=6 -o mine.yaml"),
        ],
        "expand": [("Show every edge, implied ones included", "arco expand gpt_mini")],
    }[name]
    add_recipe(parser)
    add_changes(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def list_zoo(arguments: argparse.Namespace) -> int:
    """Print the name of every recipe in the zoo with the first sentence of its `doc`."""
    from composer.loading import load
    from composer.recipe import zoo_names

    for line in rows({name: load(name).doc for name in zoo_names()}, painter(sys.stdout)):
        print(line)
    return 0


def show(arguments: argparse.Namespace) -> int:
    """Print the text of the recipe with its overrides."""
    emit(load_recipe(arguments.recipe, arguments).text, arguments.output)
    return 0


def expand(arguments: argparse.Namespace) -> int:
    """Print the recipe with every shorthand written out."""
    emit(sound_recipe(arguments.recipe, arguments).expand(), arguments.output)
    return 0
