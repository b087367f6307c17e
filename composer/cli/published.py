"""`arco import`, `export` and `embed`: published models as recipes, models written for others, texts as vectors."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import (
    Parser,
    Problem,
    StoreOnce,
    add_blocks,
    add_changes,
    add_recipe,
    integer,
    lengths,
    sound,
    sound_recipe,
    unusable,
)
from composer.cli.output import STANDARD, add_output, emit, say
from composer.cli.running import add_device, open_folder, refusals
from composer.diagnostics import RecipeError
from composer.language.source_file import ENDINGS
from composer.printable import json_text, printable

if TYPE_CHECKING:
    from composer.lower import Model
    from composer.recipe import Recipe
    from composer.train import Tokenizer

FORMATS = ("python", "transformers", "peft", "gguf", "onnx", "torch")
UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
SHARD = "5GB"
OPTIONS = {
    "checkpoint": ("transformers", "peft", "gguf", "onnx", "torch"),
    "model_type": ("transformers", "peft", "gguf"),
    "max_shard_size": ("transformers",),
    "dtype": ("gguf",),
    "seed": ("transformers", "peft", "gguf", "onnx", "torch"),
    "at": ("torch", "onnx"),
}
"""The formats that an option is for."""
ENDINGS_OF_FORMATS = {"gguf": ".gguf", "onnx": ".onnx", "torch": ".pt2"}
"""How the files of a format usually end."""


def declare(parser: Parser, name: str) -> None:
    """Declare the arguments of one of the three commands."""
    if name == "export":
        declare_export(parser)
        return
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
    from composer.published.folder import is_run
    from composer.published.sentences import embed, pooling_of

    if is_run(run := arguments.trained):
        hint = (
            f'in Python, `run = open_run("{run}")` of composer.train has `run.tokenizer` and `run.model`, whose outputs are the '
            f"vectors of its towers; `arco export {run} --to transformers -o FOLDER` writes an encoder as published"
        )
        raise Problem(f"arco embed: {run} is a run folder, and the vectors are those of a published sentence encoder", hint)
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


def declare_export(parser: Parser) -> None:
    """Declare what is exported, the format, and where it is written."""
    add_recipe(
        parser,
        "Name from `arco list`, path to a .yaml file, or published folder; with another format than python, also a run folder",
    )
    parser.add_argument(
        "--to",
        choices=FORMATS,
        default="python",
        help="Print one Python file, or write a folder that the `Auto…` classes of transformers load, a folder with the adapters "
        "alone for PEFT, a file for llama.cpp, for runtimes of ONNX, or for `torch.export.load`",
    )
    add_output(
        parser, "Write to this file, replacing it, instead of standard output; with --to transformers or peft, the new folder"
    )
    weights = parser.add_argument_group("Formats with weights")
    weights.add_argument(
        "--checkpoint", metavar="NAME", action=StoreOnce,
        help="Checkpoint of the run, such as step-000500 (default: the latest)",
    )  # fmt: skip
    weights.add_argument(
        "--seed", metavar="N", type=integer, action=StoreOnce,
        help="Random seed of the initial weights, for a recipe that comes without any (default: 0)",
    )  # fmt: skip
    folder = parser.add_argument_group("Published folder")
    folder.add_argument(
        "--model-type", metavar="NAME", action=StoreOnce,
        help="Model type of transformers, if the recipe has rules for several",
    )  # fmt: skip
    folder.add_argument(
        "--max-shard-size", metavar="SIZE", type=size, action=StoreOnce,
        help=f"Most bytes of weights in a file, such as 500MB (default: {SHARD})",
    )  # fmt: skip
    gguf = parser.add_argument_group("GGUF file")
    gguf.add_argument(
        "--dtype", choices=("float32", "float16", "bfloat16"), action=StoreOnce,
        help="Numbers of the matrices (default: those of the weights)",
    )  # fmt: skip
    program = parser.add_argument_group("Program of torch or ONNX")
    program.add_argument(
        "--at", metavar="AXIS=LENGTH", action="append",
        help="Length of an axis, which the program then takes alone, such as time=128",
    )  # fmt: skip
    add_changes(parser)
    parser.examples = [
        ("Read the code of a model", "arco export gpt_mini"),
        ("Write it to a file", "arco export gpt_mini --set n_layers=2 -o model.py"),
        ("Give a trained model to transformers", "arco export runs/gpt2 --to transformers -o mine"),
        (
            "Write a changed model as a published folder again",
            "arco export Llama-3.2-1B --set theta=10000 --to transformers -o mine",
        ),
        ("Run a published model in llama.cpp", "arco export Llama-3.2-1B --to gguf --dtype float16 -o llama.gguf"),
        ("Run a trained model in ONNX Runtime", "arco export runs/gpt2 --to onnx -o gpt2.onnx"),
        ("Run a trained model where only torch is installed", "arco export runs/gpt2 --to torch -o gpt2.pt2"),
    ]
    parser.notes = (
        "The Python file is the code that `arco train` runs, with comments that refer to the lines of the recipe. What the "
        "config.json of a published folder or a GGUF file cannot hold is refused by the name of the node."
    )
    parser.set_defaults(run=run_export)


def size(text: str) -> int:
    """Return a number of bytes, such as 500MB."""
    match = re.fullmatch(r"(\d+)([KMG]B)?", text)
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 500MB or 5GB")
    return int(match[1]) * UNITS[match[2] or ""]


def run_export(arguments: argparse.Namespace) -> int:
    """Print the source of the model, or write it with its weights."""
    for option, formats in OPTIONS.items():
        if getattr(arguments, option) is not None and arguments.to not in formats:
            flag = f"--{option.replace('_', '-')}"
            raise Problem(f"arco export: {flag} is for --to {' or '.join(formats)}", f"add --to {formats[0]}")
    if arguments.to == "python":
        emit(sound_recipe(arguments.recipe, arguments).export(), arguments.output)
        return 0
    if arguments.output in (None, STANDARD):
        ending = ENDINGS_OF_FORMATS.get(arguments.to)
        what, name = ("a folder", "a new one with -o FOLDER") if ending is None else ("a file", f"it with -o FILE{ending}")
        raise Problem(f"arco export: --to {arguments.to} writes {what}", f"name {name}")
    with refusals():
        model, tokenizer = opened(arguments)
        match arguments.to:
            case "transformers":
                write_folder(model, tokenizer, arguments)
            case "peft":
                from composer.published import export_adapters

                export_adapters(model, arguments.output, arguments.model_type)
            case "gguf":
                write_gguf(model, tokenizer, arguments)
            case "onnx":
                write_onnx(model, arguments)
            case _:
                write_program(model, arguments)
    initial = " (initial weights: none come with the recipe)" if tokenizer is None and model.recipe.published is None else ""
    say(f"wrote {arguments.output}{initial}")
    return 0


def write_folder(model: Model[Recipe], tokenizer: Tokenizer | None, arguments: argparse.Namespace) -> None:
    """Write a model as a published folder."""
    from composer.published.exporting import SHARD_BYTES, export_folder
    from composer.published.loaded_class import defaults_left

    most = SHARD_BYTES if arguments.max_shard_size is None else arguments.max_shard_size
    export_folder(model, arguments.output, arguments.model_type, tokenizer=tokenizer, max_shard_bytes=most)
    if left := defaults_left(Path(arguments.output), model.recipe):
        values = ", ".join(f"{key} ({json_text(value, default=str)})" for key, value in left.items())
        text = f"arco export: the rules say nothing of these keys, for which transformers has its defaults: {values}"
        print(printable(text), file=sys.stderr)


def write_gguf(model: Model[Recipe], tokenizer: Tokenizer | None, arguments: argparse.Namespace) -> None:
    """Write a model as a GGUF file."""
    import torch

    from composer.published.exporting_gguf import export_gguf

    dtype = None if arguments.dtype is None else getattr(torch, arguments.dtype)
    export_gguf(model, arguments.output, arguments.model_type, dtype=dtype, tokenizer=tokenizer)


def write_program(model: Model[Recipe], arguments: argparse.Namespace) -> None:
    """Write a model as a program of torch."""
    from composer.cost.lengths import axes
    from composer.published.exported_program import export_program

    export_program(model, arguments.output, lengths(arguments.at or (), axes(model.program), "export"))


def write_onnx(model: Model[Recipe], arguments: argparse.Namespace) -> None:
    """Write a model as an ONNX file."""
    from composer.cost.lengths import axes
    from composer.published.exported_onnx import export_onnx

    export_onnx(model, arguments.output, lengths(arguments.at or (), axes(model.program), "export"))


def opened(arguments: argparse.Namespace) -> tuple[Model[Recipe], Tokenizer | None]:
    """Return the model of a run, of a published folder or of a recipe, with the tokenizer of a run.

    Raises:
        Problem: An option does not fit what is exported, or the recipe has errors.
    """
    from composer.published.folder import is_published
    from composer.train import RunFolder

    place = Path(arguments.recipe)
    if RunFolder(place).manifest.is_file():
        return of_run(place, arguments)
    if arguments.checkpoint is not None:
        raise Problem("arco export: --checkpoint is for run folders", f"there is no run in {arguments.recipe}")
    recipe = sound_recipe(arguments.recipe, arguments)
    if recipe.published is None:
        if is_published(place):
            raise Problem(
                f"arco export: there are no weights in {place}", "arco import --weights FILE -o FOLDER brings both together"
            )
        return recipe.compile(device="cpu", seed=arguments.seed or 0), None
    if arguments.seed is not None:
        raise Problem("arco export: --seed is for initial weights", f"{arguments.recipe} has weights")
    from composer.published.exporting import published_model

    return published_model(recipe), None


def of_run(run: Path, arguments: argparse.Namespace) -> tuple[Model[Recipe], Tokenizer]:
    """Return the model of a run and its tokenizer.

    Raises:
        Problem: An option does not fit a run.
    """
    from composer.loading import load
    from composer.train import open_run

    if arguments.set or arguments.seed is not None:
        option = "--set" if arguments.set else "--seed"
        raise Problem(f"arco export: {option} is not for run folders", "the weights of a run are those of its recipe")
    built: list[Model[Recipe]] = []

    def build(recipe: str) -> Model[Recipe]:
        built.append(sound(load(recipe, blocks=arguments.blocks)).compile(device="cpu"))
        return built[-1]

    trained = open_run(run, build=build, checkpoint=arguments.checkpoint)
    return built[-1], trained.tokenizer
