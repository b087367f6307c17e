"""`arco list`, `show`, `expand` and `export`: which recipes there are, and one of them as a text."""

from __future__ import annotations

import argparse
import sys

from composer.cli.arguments import Parser, add_changes, add_recipe, load_recipe, sound_recipe
from composer.cli.color import painter
from composer.cli.output import add_output, emit, rows


def declare(parser: Parser, name: str) -> None:
    """Declare the arguments of one of the four."""
    if name == "list":
        parser.examples = [("List the recipes", "arco list")]
        parser.set_defaults(run=list_zoo)
        return
    run, does = {
        "show": (show, "The text is printed as it stands, with what --set changes in it."),
        "expand": (expand, "Every edge and every slot is written out, and every param is replaced by its value."),
        "export": (export, "The source is the code that trains and runs, with the lines of the recipe beside it."),
    }[name]
    parser.notes = does
    parser.examples = {
        "show": [
            ("Read a recipe", "arco show gpt2"),
            ("Start a recipe of your own from it", "arco show gpt2 --set n_layers=6 -o mine.yaml"),
        ],
        "expand": [("See every edge that shorthands leave out", "arco expand gpt_mini")],
        "export": [
            ("Read the code of a model", "arco export gpt_mini"),
            ("Write it to a file", "arco export gpt_mini --set n_layers=2 -o model.py"),
        ],
    }[name]
    add_recipe(parser)
    add_changes(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def list_zoo(arguments: argparse.Namespace) -> int:
    """Print every name with the first sentence of its recipe."""
    from composer.recipe import load, zoo_names

    for line in rows({name: load(name).doc for name in zoo_names()}, painter(sys.stdout)):
        print(line)
    return 0


def show(arguments: argparse.Namespace) -> int:
    """Print the text, with what was set in it."""
    emit(load_recipe(arguments.recipe, arguments).text, arguments.output)
    return 0


def expand(arguments: argparse.Namespace) -> int:
    """Print the recipe without shorthands."""
    emit(sound_recipe(arguments.recipe, arguments).expand(), arguments.output)
    return 0


def export(arguments: argparse.Namespace) -> int:
    """Print the source of the model."""
    emit(sound_recipe(arguments.recipe, arguments).export(), arguments.output)
    return 0
