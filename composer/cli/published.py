"""`arco import` and `embed`: a published model as a recipe or as a folder with its weights, and texts as its vectors."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from composer.cli.arguments import Parser, Problem, add_blocks, add_changes, unusable
from composer.cli.output import STANDARD, add_output, emit, say
from composer.cli.running import add_device, open_folder, refusals
from composer.diagnostics import RecipeError
from composer.language.source_file import ENDINGS
from composer.printable import json_text


def declare(parser: Parser, name: str) -> None:
    """Declare the arguments of one of the two commands."""
    if name == "embed":
        declare_embed(parser)
        return
    parser.add_argument(
        "published",
        metavar="DIR",
        type=Path,
        help="Published folder with a config.json and weights, a .gguf file, or a config.json by itself",
    )
    parser.add_argument(
        "--recipe",
        metavar="RECIPE",
        help="Set the values in this recipe (default: the one in `arco list` for this type of model)",
    )
    parser.add_argument(
        "--weights", metavar="FILE", type=Path, help="Weights that are not beside the config.json: a file, or a folder"
    )
    parser.add_argument(
        "--format",
        choices=("recipe", "options"),
        default="recipe",
        help="Print the recipe, or the name of the one that it extends with the --set options that other commands take",
    )
    add_output(
        parser, "Write the recipe to this .yaml file, or the recipe, the weights, the settings and the tokenizer to a new folder"
    )
    add_changes(parser)
    parser.examples = [
        ("Import a model with its weights", "arco import Llama-3.2-1B -o llama32"),
        ("Write the recipe of a published model", "arco import config.json -o llama32.yaml"),
        ("Show what differs from the recipe in `arco list`", "arco import config.json --format options"),
        ("Set what the file does not say", "arco import albert-chem --set dropout=0 -o chem"),
    ]
    parser.notes = "The weights are compared with the recipe by name and shape; nothing is written unless all of them fit."
    parser.set_defaults(run=run)


def declare_embed(parser: Parser) -> None:
    """Declare a published folder and texts."""
    parser.add_argument("trained", metavar="DIR", type=Path, help="Published folder of a sentence encoder")
    parser.add_argument("texts", metavar="TEXT", nargs="+", help="Texts to embed")
    parser.add_argument(
        "--format", choices=("vectors", "similarity"), default="vectors",
        help="Print the vector of each text as a line of JSON, or how similar the texts are: the cosines between them",
    )  # fmt: skip
    add_device(parser)
    add_blocks(parser)
    parser.examples = [
        ("Print the vector of a text", 'arco embed all-MiniLM-L6-v2 "A cat sat on the mat."'),
        ("Compare texts", "arco embed all-MiniLM-L6-v2 king queen bicycle --format similarity"),
    ]
    parser.notes = "Tokens are pooled and vectors normalized as the folder declares it; without a declaration, they are averaged."
    parser.set_defaults(run=run_embed)


def run_embed(arguments: argparse.Namespace) -> int:
    """Print the vectors of texts, or the cosines between them."""
    from composer.published.sentences import embed, pooling_of

    with refusals():
        published = open_folder(arguments)
        vectors = embed(published.model, published.tokenizer, pooling_of(published.folder), arguments.texts)
    if arguments.format == "vectors":
        for vector in vectors.tolist():
            say(json_text(vector))
        return 0
    unit = vectors / vectors.norm(dim=-1, keepdim=True)
    for text, row in zip(arguments.texts, (unit @ unit.T).tolist(), strict=True):
        say(f"{'  '.join(f'{value:6.3f}' for value in row)}  {text}")
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Print the recipe of a published model or the options that set it, or write a folder."""
    from composer.published.importing import imported
    from composer.published.writing import write_folder

    output = arguments.output
    name = arguments.recipe or base_of(arguments.published)
    try:
        found = imported(
            arguments.published,
            recipe=name,
            overrides=arguments.set,
            blocks=tuple(arguments.blocks),
            weights=arguments.weights,
        )
        if arguments.format == "options":
            words = [found.findings.base, *(word for each in found.overrides for word in ("--set", str(each)))]
            emit(shlex.join(words) + "\n", output)
        elif output is None or output == STANDARD or output.endswith(ENDINGS):
            if output not in (None, STANDARD):
                say("\n".join(found.findings.lines))
            emit(found.recipe.source.text, output)
        else:
            if found.folder.weights is None:
                hint = f"-o {output}.yaml writes the recipe; --weights names weights that are elsewhere"
                raise Problem("arco import: there are no weights beside the configuration for a folder", hint)
            write_folder(found, Path(output))
            say("\n".join(found.findings.lines))
            say(f"wrote {output} (recipe.yaml extends {found.findings.base})")
    except RecipeError as error:
        if not error.diagnostics[0].span.source.text:  # a file that cannot be read
            raise unusable(error) from None
        raise Problem(found=error.diagnostics, code=1) from None
    return 0


def base_of(published: Path) -> str:
    """Return the recipe of the zoo for a published model.

    Raises:
        Problem: There is none, or no `config.json` that can be read.
    """
    from composer.published.folder import published_folder
    from composer.published.importing import zoo_recipe_for

    try:
        return zoo_recipe_for(published_folder(published))
    except RecipeError as error:
        (first, *_) = error.diagnostics
        if not first.span.source.text:
            raise unusable(error) from None
        raise Problem(found=error.diagnostics, code=2 if first.code == "checkpoints-unknown-type" else 1) from None
