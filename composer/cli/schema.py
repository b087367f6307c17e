"""`arco schema`: the JSON Schema of recipes, for editors."""

from __future__ import annotations

import argparse

from composer.cli.arguments import add_blocks, library_of


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """Blocks of one's own are part of it."""
    add_blocks(parser)
    parser.set_defaults(run=show)


def show(arguments: argparse.Namespace) -> int:
    """Print the schema."""
    import json

    from composer.json_schema import schema

    print(json.dumps(schema(library_of(arguments)), indent=2, ensure_ascii=False))
    return 0
