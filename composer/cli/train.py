"""`arco train`: a text and a recipe in, a run folder out."""

from __future__ import annotations

import argparse
import inspect
import sys
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.cli.arguments import Problem, add_changes, sound_recipe
from composer.cli.running import add_device, chosen_device, rebuild, refusals
from composer.language.tasks import TASKS

if TYPE_CHECKING:
    from composer.recipe import Recipe
    from composer.train import Result, TextData, Tokenizer, TrainSettings

RUNS = Path("runs")
TOKENIZERS = ("characters", "bytes", "bpe")
LARGE_STEP = 2**16
"""Tokens in one forward pass from which on a laptop is slow, and may run out of memory."""
FEW_WINDOWS = 4
"""Windows side by side in the text below which there is little to draw from."""


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """What to train on what, and every setting of the training."""
    from composer.train import TrainSettings

    parser.add_argument("recipe", metavar="RECIPE", nargs="?", help="a name from `arco list`, or the path of a .yaml file")
    add_changes(parser)
    parser.add_argument("--data", metavar="FILE", type=Path, help="the text to learn, in UTF-8; its last tenth is held out")
    parser.add_argument("--run", metavar="FOLDER", type=Path, dest="folder", help="where to keep the run (default: runs/NAME)")
    parser.add_argument("--resume", metavar="RUN", type=Path, help="go on with this run instead")
    parser.add_argument("--tokenizer", choices=TOKENIZERS, default="characters", help="what a token is (default: characters)")
    parser.add_argument("--vocabulary", metavar="N", type=int, default=4096, help="how many tokens bpe learns (default: 4096)")
    add_device(parser)
    settings = parser.add_argument_group("settings")
    docs = setting_docs(TrainSettings)
    for field in fields(TrainSettings):
        kind: Any = type(field.default)
        metavar = "N" if kind is int else "X"
        told = f"{docs[field.name]} (default: {field.default})".replace("%", "%%")
        settings.add_argument(f"--{field.name.replace('_', '-')}", metavar=metavar, type=kind, help=told)
    parser.set_defaults(run=run)


def setting_docs(settings: type[TrainSettings]) -> dict[str, str]:
    """The line under each setting."""
    lines = inspect.getsource(settings).splitlines()
    pairs = list(pairwise(lines))
    return {
        line.partition(":")[0].strip(): below.strip().strip('"').rstrip(".")
        for line, below in pairs
        if below.strip().startswith('"""')
    }


def run(arguments: argparse.Namespace) -> int:
    """Begin a run, or go on with one."""
    with refusals():
        if arguments.resume is not None:
            if arguments.recipe is not None:
                raise Problem("arco train: a resumed run has its recipe already", "leave out the recipe, or leave out --resume")
            result = resumed(arguments)
        elif arguments.recipe is None or arguments.data is None:
            missing = "a recipe" if arguments.recipe is None else "a text"
            raise Problem(f"arco train: {missing} is missing", "arco train RECIPE --data FILE, or arco train --resume RUN")
        else:
            result = started(arguments)
    print(told(result))
    return 0


def started(arguments: argparse.Namespace) -> Result:
    """A new run."""
    from composer.train import TrainSettings, learnable, marked, objective_of, read_text

    recipe, text = sound_recipe(arguments.recipe, arguments), read_text(arguments.data)
    task = learnable(recipe.task)
    tokenizer = marked(tokenizer_of(text, arguments), task)
    recipe = sized(recipe, tokenizer)
    settings = settings_of(arguments, TrainSettings(seq_len=context_of(recipe, TrainSettings().seq_len)))
    data = objective_of(task, tokenizer).tokenize(text, path=arguments.data)
    windows = task != "seq2seq_lm"  # pairs are read as they come
    if windows and arguments.seq_len is None and (doubt := long_context(settings, len(data.train))):
        print(f"warning: {doubt}", file=sys.stderr)
    return trained(recipe, tokenizer, data, settings, arguments.folder or free_folder(recipe.name), arguments.device)


def tokenizer_of(text: str, arguments: argparse.Namespace) -> Tokenizer:
    """The tokenizer that was asked for, made from the text."""
    from composer.train import ByteTokenizer, characters_of, train_bpe

    match arguments.tokenizer:
        case "characters":
            return characters_of(text)
        case "bytes":
            return ByteTokenizer()
    return train_bpe(text, size=arguments.vocabulary)


def trained(
    recipe: Recipe, tokenizer: Tokenizer, data: TextData, settings: TrainSettings, folder: Path, device: str | None
) -> Result:
    """Compile a recipe and train it."""
    from composer.train import train

    model = recipe.compile(device=chosen_device(device), seed=settings.seed)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"training {recipe.name}, {count:,} parameters, on {data.path} in {folder}")
    return train(model, tokenizer, data, settings, folder, recipe=recipe.text)


def resumed(arguments: argparse.Namespace) -> Result:
    """A run that goes on."""
    from composer.train import TrainSettings, resume

    changed = {field.name for field in fields(TrainSettings) if getattr(arguments, field.name) is not None} - {"steps"}
    if changed or arguments.set:
        raise Problem(
            "arco train: a resumed run keeps its recipe and its settings",
            "only --steps, --data, --device and --blocks go with --resume",
        )
    build = rebuild(arguments.blocks, arguments.device)
    return resume(arguments.resume, build=build, steps=arguments.steps, data=arguments.data)


def sized(recipe: Recipe, tokenizer: Tokenizer) -> Recipe:
    """The recipe with its param `vocab` set to the tokenizer's size, unless that was set by hand."""
    by_hand = any(setting.partition("=")[0].strip() in ("vocab", "params.vocab") for setting in recipe.settings)
    if by_hand or "vocab" not in recipe.program.program.params or recipe.program.program.params["vocab"] == tokenizer.size:
        return recipe
    print(f"vocab is set to the tokenizer's {tokenizer.size}")
    return replace(recipe, settings=(*recipe.settings, f"vocab={tokenizer.size}"))


def context_of(recipe: Recipe, usual: int) -> int:
    """The length of a window unless it is told: the param `context`, where the recipe has one."""
    context = recipe.program.program.params.get("context")
    return context if isinstance(context, int) else usual


def long_context(settings: TrainSettings, tokens: int) -> str:
    """What is doubtful about a recipe's own context on this text; nothing where it is fine."""
    windows, step = tokens // settings.seq_len, settings.batch_size * settings.seq_len
    if 0 < windows < FEW_WINDOWS:
        return (
            f"a context of {settings.seq_len:,}, the recipe's own, cuts the text into {windows} windows; --seq-len sets another"
        )
    if step > LARGE_STEP:
        return (
            f"a context of {settings.seq_len:,}, the recipe's own, times a batch of {settings.batch_size} makes {step:,} tokens "
            "in each step; --seq-len 256 is quick on a laptop"
        )
    return ""


def settings_of(arguments: argparse.Namespace, usual: TrainSettings) -> TrainSettings:
    """The settings with what the command line says."""
    given = {field.name: getattr(arguments, field.name) for field in fields(usual)}
    return replace(usual, **{name: value for name, value in given.items() if value is not None})


def free_folder(name: str) -> Path:
    """`runs/NAME`, or with a number where that is taken."""
    folder, count = RUNS / name, 1
    while folder.exists():
        count += 1
        folder = RUNS / f"{name}-{count}"
    return folder


def told(result: Result) -> str:
    """How a run ended, and how to hear from it."""
    ended = f"{result.step} steps in {result.seconds:.0f} s: validation {result.validation}"
    return f"{ended}\nlet it write: arco generate {result.run} --prompt TEXT" if TASKS[result.task].text else ended
