"""`arco list` and `arco show`: the recipes that come with the package."""

from __future__ import annotations

import argparse
import textwrap

from composer.cli.arguments import add_recipe, load_recipe

WIDTH = 100


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """The arguments of either command."""
    if name == "list":
        parser.set_defaults(run=list_zoo)
        return
    add_recipe(parser)
    parser.set_defaults(run=show)


def list_zoo(arguments: argparse.Namespace) -> int:
    """Every name with the first sentence of its recipe."""
    from composer.recipe import load, zoo_names

    names = zoo_names()
    widest = max(map(len, names))
    for name in names:
        print(f"{name:<{widest}}  {textwrap.shorten(load(name).doc, WIDTH - widest - 2, placeholder=' …')}")
    return 0


def show(arguments: argparse.Namespace) -> int:
    """The text, with what was set in it."""
    print(load_recipe(arguments.recipe, arguments).text, end="")
    return 0
