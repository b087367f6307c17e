"""`arco import`: a published model's `config.json` as a recipe of the zoo with its settings."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from composer.cli.arguments import Problem, add_blocks, load_recipe, misspelled
from composer.cli.export import write_whole
from composer.diagnostics import RecipeError, report


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """A file, a recipe where the file does not decide it, and where to write."""
    parser.add_argument("config", metavar="CONFIG", type=Path, help="a config.json, or the folder of a published model")
    parser.add_argument(
        "--recipe", metavar="RECIPE", help="the recipe that is set (default: that of the zoo for this model type)"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write the recipe, with what is set in it, to this file"
    )
    add_blocks(parser)
    parser.set_defaults(run=run, set=[])


def run(arguments: argparse.Namespace) -> int:
    """Print `RECIPE --set …`, or write the recipe."""
    try:
        name = arguments.recipe or recipe_for(arguments.config)
        recipe = load_recipe(name, arguments).with_config(arguments.config)
    except RecipeError as error:
        raise Problem(report(error.diagnostics), code=1) from None
    if arguments.output is None:
        print(shlex.join([name, *(word for setting in recipe.settings for word in ("--set", setting))]))
        return 0
    write_whole(arguments.output, recipe.text)
    print(f"wrote {arguments.output}")
    return 0


def recipe_for(config: Path) -> str:
    """The recipe of the zoo whose `checkpoints` know the model type.

    Raises:
        Problem: where there is none.
    """
    from composer.recipe import config_of, load, zoo_names
    from composer.weights.config import model_type_of, parsed

    kind = model_type_of(parsed(config_of(config)))
    types = {entry.key.text: name for name in zoo_names() for entry in load(name).checkpoints or ()}
    if kind is None:
        raise Problem(f"arco import: {config} does not say its model_type", "name a recipe with --recipe")
    if kind not in types:
        hint = misspelled(kind, types) or f"known are {', '.join(sorted(types))}; --recipe names one of your own"
        raise Problem(f"arco import: no recipe is known for the model type {kind}", hint)
    return types[kind]
