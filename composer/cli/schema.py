"""`arco schema`: the JSON Schema of recipes, for editors."""

from __future__ import annotations

import argparse

from composer.cli.arguments import add_blocks, unusable
from composer.diagnostics import RecipeError


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """Blocks of one's own are part of it."""
    add_blocks(parser)
    parser.set_defaults(run=show)


def show(arguments: argparse.Namespace) -> int:
    """Print the schema."""
    import json

    from composer.extensions import library_with
    from composer.schema import schema

    try:
        library = library_with(arguments.blocks)
    except RecipeError as error:
        raise unusable(error) from None
    print(json.dumps(schema(library), indent=2, ensure_ascii=False))
    return 0
