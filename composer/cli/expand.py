"""`arco expand`: a recipe written out."""

from __future__ import annotations

import argparse

from composer.cli.arguments import add_recipe, sound_recipe


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """A recipe."""
    add_recipe(parser)
    parser.set_defaults(run=expand)


def expand(arguments: argparse.Namespace) -> int:
    """Print it."""
    print(sound_recipe(arguments.recipe, arguments).expand(), end="")
    return 0
