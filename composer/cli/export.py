"""`arco export`: a model as a file that others can run."""

from __future__ import annotations

import argparse
from pathlib import Path

from composer.atomic_files import save
from composer.cli.arguments import Problem, add_recipe, sound_recipe


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """A recipe, a format and a file."""
    add_recipe(parser)
    parser.add_argument("--to", choices=["python"], default="python", help="the format (default: python)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where to write it, - for the terminal (default: the recipe's name and .py)"
    )
    parser.set_defaults(run=export)


def export(arguments: argparse.Namespace) -> int:
    """Write it."""
    recipe = sound_recipe(arguments.recipe, arguments)
    text = recipe.export()
    if arguments.output == "-":
        print(text, end="")
        return 0
    file = Path(arguments.output or f"{recipe.name}.py")
    if arguments.output is None and file.exists():
        raise Problem(f"arco export: {file} exists", f"-o {file} replaces it")
    write_whole(file, text)
    print(f"wrote {file}")
    return 0


def write_whole(file: Path, text: str) -> None:
    """Write a file so that it is never seen half written."""
    try:
        save(file, text.encode())
    except OSError as error:
        raise Problem(f"arco: {file} cannot be written: {(error.strerror or str(error)).lower()}") from None
