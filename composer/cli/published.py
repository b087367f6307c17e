"""`arco import`: a published model's `config.json` as a recipe."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from composer.cli.arguments import Parser, Problem, add_blocks, load_recipe, misspelled
from composer.cli.output import add_output, emit
from composer.diagnostics import RecipeError


def declare(parser: Parser, name: str) -> None:
    """Declare a file, a recipe where the file does not decide it, and where to write."""
    parser.add_argument("config", metavar="CONFIG", type=Path, help="A config.json, or the folder of a published model")
    parser.add_argument(
        "--recipe", metavar="RECIPE", help="Set the sizes in this recipe instead of the one that comes with the package"
    )
    parser.add_argument(
        "--format",
        choices=("recipe", "options"),
        default="recipe",
        help="Write the recipe, or its name with the --set options that other commands take",
    )
    add_output(parser)
    add_blocks(parser)
    parser.examples = [
        ("Write the recipe of a published model", "arco import config.json -o llama32.yaml"),
        ("See what differs from the recipe that comes with the package", "arco import config.json --format options"),
    ]
    parser.set_defaults(run=run, set=[])


def run(arguments: argparse.Namespace) -> int:
    """Print the recipe with the sizes of the file, or the options that set them."""
    try:
        name = arguments.recipe or recipe_for(arguments.config)
        recipe = load_recipe(name, arguments).with_config(arguments.config)
    except RecipeError as error:
        raise Problem(found=error.diagnostics, code=1) from None
    if arguments.format == "options":
        words = [name, *(word for override in recipe.overrides for word in ("--set", str(override)))]
        emit(shlex.join(words) + "\n", arguments.output)
    else:
        emit(recipe.text, arguments.output)
    return 0


def recipe_for(config: Path) -> str:
    """Return the recipe of the zoo whose `checkpoints` know the model type.

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
