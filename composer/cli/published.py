"""`arco import`: the `config.json` of a published model as a recipe."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from composer.cli.arguments import Parser, Problem, add_blocks, load_recipe, misspelled, unusable
from composer.cli.output import add_output, emit
from composer.diagnostics import Diagnostic, RecipeError


def declare(parser: Parser, name: str) -> None:
    """Declare the configuration, the recipe to set it in, and the output."""
    parser.add_argument("config", metavar="CONFIG", type=Path, help="Path to a config.json, or to the folder that contains it")
    parser.add_argument(
        "--recipe",
        metavar="RECIPE",
        help="Set the values in this recipe (default: the one in `arco list` for this type of model)",
    )
    parser.add_argument(
        "--format",
        choices=("recipe", "options"),
        default="recipe",
        help="Print the recipe, or its name with the --set options that other commands take",
    )
    add_output(parser)
    add_blocks(parser)
    parser.examples = [
        ("Write the recipe of a published model", "arco import config.json -o llama32.yaml"),
        ("Show what differs from the recipe in `arco list`", "arco import config.json --format options"),
    ]
    parser.set_defaults(run=run, set=[])


def run(arguments: argparse.Namespace) -> int:
    """Print the recipe with the values of the configuration, or the options that set them."""
    try:
        name = arguments.recipe or recipe_for(arguments.config)
        recipe = load_recipe(name, arguments).with_config(arguments.config)
    except RecipeError as error:
        if not error.diagnostics[0].span.source.text:  # a file that cannot be read
            raise unusable(error) from None
        raise Problem(found=error.diagnostics, code=1) from None
    if arguments.format == "options":
        words = [name, *(word for override in recipe.overrides for word in ("--set", str(override)))]
        emit(shlex.join(words) + "\n", arguments.output)
    else:
        emit(recipe.text, arguments.output)
    return 0


def recipe_for(config: Path) -> str:
    """Return the recipe of the zoo whose `checkpoints` list the configuration's model type.

    Raises:
        Problem: There is no such recipe.
    """
    from composer.recipe import config_of, load, zoo_names
    from composer.weights.config import model_type_of, parsed
    from composer.weights.json_places import places

    source = config_of(config)
    kind = model_type_of(parsed(source))
    types = {entry.key.text: name for name in zoo_names() for entry in load(name).checkpoints or ()}
    if kind is None:
        raise Problem(f"arco import: {config} has no model_type", "choose a recipe with --recipe")
    if kind not in types:
        hint = misspelled(kind, types) or f"the zoo has recipes for {', '.join(sorted(types))}; for others, use --recipe"
        message = f"the zoo has no recipe for the model type {kind}"
        raise Problem(found=[Diagnostic("checkpoints-unknown-type", message, places(source)["model_type"].value, hint=hint)])
    return types[kind]
