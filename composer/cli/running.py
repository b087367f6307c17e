"""Shared by the commands that run a model: the device, and errors."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Problem, unusable
from composer.diagnostics import RecipeError
from composer.train.data.tokenizer_kinds import TOKENIZER_KINDS

if TYPE_CHECKING:
    from composer.lower import Model
    from composer.published.opened import PublishedModel
    from composer.train import Tokenizer


def add_device(group: argparse._ActionsContainer) -> None:
    """Declare `--device`."""
    group.add_argument(
        "--device", metavar="DEVICE", help="Device to run on, such as cpu, cuda or cuda:1 (default: cuda if available, else cpu)"
    )


def add_int8(group: argparse._ActionsContainer) -> None:
    """Declare `--int8`."""
    group.add_argument(
        "--int8",
        action="store_true",
        help="Round matrices to 8 bits as they are read, each row with a scale: about a quarter of the memory in fp32",
    )


def add_cache(group: argparse._ActionsContainer) -> None:
    """Declare `--cache`."""
    group.add_argument(
        "--cache",
        metavar="FOLDER",
        default="default",
        help="Folder that keeps the tokens of large texts for the next time, or off (default: the one that COMPOSER_CACHE names, "
        "else the user's cache folder)",
    )


def tokenizer_at(name: str, command: str) -> Tokenizer:
    """Return the tokenizer of a run folder or a published folder.

    Raises:
        Problem: It is neither; the hint says what else names a tokenizer.
    """
    from composer.published import tokenizer_to_train
    from composer.published.folder import is_published
    from composer.train import RunFolder
    from composer.train.run.reader import read_run

    if RunFolder(Path(name)).manifest.is_file():
        return read_run(Path(name)).tokenizer
    if is_published(Path(name)):
        return tokenizer_to_train(Path(name))
    hint = f"one of {', '.join(TOKENIZER_KINDS)}, a run folder, or a published folder"
    raise Problem(f"{command}: there is no tokenizer {name}", hint)


def chosen_device(name: str | None) -> str:
    """Return the named device, or by default the GPU if there is one.

    Raises:
        Problem: torch cannot use the device.
    """
    import torch

    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0].rstrip(".")
        raise Problem(f"arco: the device {name} cannot be used: {first}", "cpu is always available") from None
    return name


def rebuild(blocks: Sequence[str], device: str | None) -> Callable[[str], Model]:
    """Return a function that compiles the recipe of a run folder with these blocks of the user.

    Raises:
        Problem: torch cannot use the device.
    """
    from composer.loading import load

    chosen = chosen_device(device)

    def build(recipe: str) -> Model:
        return load(recipe, blocks=blocks).compile(device=chosen)

    return build


def open_folder(arguments: argparse.Namespace) -> PublishedModel:
    """Return the model of a published folder, on the device of the command line, with the user's blocks.

    Raises:
        Problem: torch cannot use the device.
    """
    from composer.loading import load
    from composer.published.opened import open_published

    device = chosen_device(arguments.device)
    return open_published(
        arguments.trained,
        load=lambda folder: load(folder, blocks=arguments.blocks),
        device=device,
        int8=getattr(arguments, "int8", False),  # not all commands have it
    )


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors of training, decoding and compiling into problems of the command."""
    from composer.decode import DecodeError, PromptCacheError
    from composer.estimate import EstimateError
    from composer.lower.int8 import Int8Error
    from composer.train import TrainingError
    from composer.weights import AdapterError

    try:
        yield
    except (TrainingError, AdapterError, EstimateError, Int8Error) as error:
        raise Problem(f"arco: {error}", error.hint) from None
    except DecodeError as error:
        raise Problem(f"arco: {error}", error.hint if isinstance(error, PromptCacheError) else "") from None
    except RecipeError as error:
        if not error.diagnostics[0].span.source.text:  # a file that cannot be read
            raise unusable(error) from None
        raise Problem(found=error.diagnostics, code=1) from None
