"""Training: text in, a run folder out. Each name is loaded when it is first used, so that naming the settings loads no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from composer.train.api import resume as resume
    from composer.train.api import train as train
    from composer.train.data.objectives import Objective as Objective
    from composer.train.data.objectives import learnable as learnable
    from composer.train.data.objectives import marked as marked
    from composer.train.data.objectives import objective_of as objective_of
    from composer.train.data.text import TextData as TextData
    from composer.train.data.text import read_text as read_text
    from composer.train.data.text import split as split
    from composer.train.data.text import tokenise as tokenise
    from composer.train.data.tokenizers import BPETokeniser as BPETokeniser
    from composer.train.data.tokenizers import ByteTokeniser as ByteTokeniser
    from composer.train.data.tokenizers import CharacterTokeniser as CharacterTokeniser
    from composer.train.data.tokenizers import MarkedTokeniser as MarkedTokeniser
    from composer.train.data.tokenizers import Tokeniser as Tokeniser
    from composer.train.data.tokenizers import characters_of as characters_of
    from composer.train.data.tokenizers import load_tokeniser as load_tokeniser
    from composer.train.data.tokenizers import save_tokeniser as save_tokeniser
    from composer.train.data.tokenizers import text_as_it_comes as text_as_it_comes
    from composer.train.data.tokenizers import train_bpe as train_bpe
    from composer.train.decay_groups import param_groups as param_groups
    from composer.train.errors import TrainingError as TrainingError
    from composer.train.interrupt import Interrupted as Interrupted
    from composer.train.loop import Result as Result
    from composer.train.losses import BatchLoss as BatchLoss
    from composer.train.losses import loss as loss
    from composer.train.losses import task_of as task_of
    from composer.train.progress import Display as Display
    from composer.train.progress import display as display
    from composer.train.run.checkpoint import Checkpoint as Checkpoint
    from composer.train.run.folder import RunFolder as RunFolder
    from composer.train.run.folder import Trained as Trained
    from composer.train.run.folder import open_run as open_run
    from composer.train.settings import TrainSettings as TrainSettings
    from composer.train.validation import Validation as Validation
    from composer.train.validation import validate as validate

_HOME = {
    "BPETokeniser": "data.tokenizers",
    "ByteTokeniser": "data.tokenizers",
    "CharacterTokeniser": "data.tokenizers",
    "Checkpoint": "run.checkpoint",
    "TextData": "data.text",
    "Display": "progress",
    "Interrupted": "interrupt",
    "BatchLoss": "losses",
    "MarkedTokeniser": "data.tokenizers",
    "Objective": "data.objectives",
    "Result": "loop",
    "RunFolder": "run.folder",
    "TrainSettings": "settings",
    "Tokeniser": "data.tokenizers",
    "Trained": "run.folder",
    "TrainingError": "errors",
    "Validation": "validation",
    "characters_of": "data.tokenizers",
    "display": "progress",
    "learnable": "data.objectives",
    "load_tokeniser": "data.tokenizers",
    "loss": "losses",
    "marked": "data.objectives",
    "objective_of": "data.objectives",
    "open_run": "run.folder",
    "param_groups": "decay_groups",
    "read_text": "data.text",
    "resume": "api",
    "save_tokeniser": "data.tokenizers",
    "split": "data.text",
    "task_of": "losses",
    "text_as_it_comes": "data.tokenizers",
    "tokenise": "data.text",
    "train": "api",
    "train_bpe": "data.tokenizers",
    "validate": "validation",
}
__all__ = [
    "BPETokeniser",
    "BatchLoss",
    "ByteTokeniser",
    "CharacterTokeniser",
    "Checkpoint",
    "Display",
    "Interrupted",
    "MarkedTokeniser",
    "Objective",
    "Result",
    "RunFolder",
    "TextData",
    "Tokeniser",
    "TrainSettings",
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
