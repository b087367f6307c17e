"""Training: text in, a run folder out. Each name is loaded when it is first used, so that naming the settings loads no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from composer.train.api import resume as resume
    from composer.train.api import train as train
    from composer.train.checkpoint import Checkpoint as Checkpoint
    from composer.train.data import Data as Data
    from composer.train.data import read_text as read_text
    from composer.train.data import split as split
    from composer.train.data import tokenise as tokenise
    from composer.train.groups import param_groups as param_groups
    from composer.train.interrupt import Interrupted as Interrupted
    from composer.train.loop import Result as Result
    from composer.train.losses import Loss as Loss
    from composer.train.losses import loss as loss
    from composer.train.losses import task_of as task_of
    from composer.train.objectives import Objective as Objective
    from composer.train.objectives import learnable as learnable
    from composer.train.objectives import marked as marked
    from composer.train.objectives import objective_of as objective_of
    from composer.train.problem import TrainingError as TrainingError
    from composer.train.progress import Display as Display
    from composer.train.progress import display as display
    from composer.train.run import RunFolder as RunFolder
    from composer.train.run import Trained as Trained
    from composer.train.run import open_run as open_run
    from composer.train.settings import Settings as Settings
    from composer.train.tokenisers import BPETokeniser as BPETokeniser
    from composer.train.tokenisers import ByteTokeniser as ByteTokeniser
    from composer.train.tokenisers import CharacterTokeniser as CharacterTokeniser
    from composer.train.tokenisers import MarkedTokeniser as MarkedTokeniser
    from composer.train.tokenisers import Tokeniser as Tokeniser
    from composer.train.tokenisers import characters_of as characters_of
    from composer.train.tokenisers import load_tokeniser as load_tokeniser
    from composer.train.tokenisers import save_tokeniser as save_tokeniser
    from composer.train.tokenisers import text_as_it_comes as text_as_it_comes
    from composer.train.tokenisers import train_bpe as train_bpe
    from composer.train.validation import Validation as Validation
    from composer.train.validation import validate as validate

_HOME = {
    "BPETokeniser": "tokenisers",
    "ByteTokeniser": "tokenisers",
    "CharacterTokeniser": "tokenisers",
    "Checkpoint": "checkpoint",
    "Data": "data",
    "Display": "progress",
    "Interrupted": "interrupt",
    "Loss": "losses",
    "MarkedTokeniser": "tokenisers",
    "Objective": "objectives",
    "Result": "loop",
    "RunFolder": "run",
    "Settings": "settings",
    "Tokeniser": "tokenisers",
    "Trained": "run",
    "TrainingError": "problem",
    "Validation": "validation",
    "characters_of": "tokenisers",
    "display": "progress",
    "learnable": "objectives",
    "load_tokeniser": "tokenisers",
    "loss": "losses",
    "marked": "objectives",
    "objective_of": "objectives",
    "open_run": "run",
    "param_groups": "groups",
    "read_text": "data",
    "resume": "api",
    "save_tokeniser": "tokenisers",
    "split": "data",
    "task_of": "losses",
    "text_as_it_comes": "tokenisers",
    "tokenise": "data",
    "train": "api",
    "train_bpe": "tokenisers",
    "validate": "validation",
}
__all__ = [
    "BPETokeniser",
    "ByteTokeniser",
    "CharacterTokeniser",
    "Checkpoint",
    "Data",
    "Display",
    "Interrupted",
    "Loss",
    "MarkedTokeniser",
    "Objective",
    "Result",
    "RunFolder",
    "Settings",
    "Tokeniser",
    "Trained",
    "TrainingError",
    "Validation",
    "characters_of",
    "display",
    "learnable",
    "load_tokeniser",
    "loss",
    "marked",
    "objective_of",
    "open_run",
    "param_groups",
    "read_text",
    "resume",
    "save_tokeniser",
    "split",
    "task_of",
    "text_as_it_comes",
    "tokenise",
    "train",
    "train_bpe",
    "validate",
]


def __getattr__(name: str) -> object:
    """A public name, from the module that has it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
