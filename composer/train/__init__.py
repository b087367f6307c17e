"""Training: text in, a run folder out."""

from composer.train.api import resume, train
from composer.train.checkpoint import Checkpoint
from composer.train.data import Data, read_text, split, tokenise
from composer.train.groups import param_groups
from composer.train.interrupt import Interrupted
from composer.train.loop import Result
from composer.train.loss import Loss, loss
from composer.train.problem import TrainingError
from composer.train.progress import Display, display
from composer.train.run import RunFolder, Trained, open_run
from composer.train.settings import Settings
from composer.train.tokenisers import (
    BPETokeniser,
    ByteTokeniser,
    CharacterTokeniser,
    Tokeniser,
    characters_of,
    load_tokeniser,
    save_tokeniser,
    text_as_it_comes,
    train_bpe,
)
from composer.train.validation import Validation, validate

__all__ = [
    "BPETokeniser",
    "ByteTokeniser",
    "CharacterTokeniser",
    "Checkpoint",
    "Data",
    "Display",
    "Interrupted",
    "Loss",
    "Result",
    "RunFolder",
    "Settings",
    "Tokeniser",
    "Trained",
    "TrainingError",
    "Validation",
    "characters_of",
    "display",
    "load_tokeniser",
    "loss",
    "open_run",
    "param_groups",
    "read_text",
    "resume",
    "save_tokeniser",
    "split",
    "text_as_it_comes",
    "tokenise",
    "train",
    "train_bpe",
    "validate",
]
