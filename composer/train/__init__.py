"""Training on text, into a run folder. Names are imported on first use, so that `TrainSettings` does not import torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from composer.lazy_names import lazy_names

if TYPE_CHECKING:
    from composer.train.api import resume as resume
    from composer.train.api import train as train
    from composer.train.data.documents import TextDocument as TextDocument
    from composer.train.data.documents import read_documents as read_documents
    from composer.train.data.documents import read_text as read_text
    from composer.train.data.examples import ExampleData as ExampleData
    from composer.train.data.examples import Examples as Examples
    from composer.train.data.examples import examples_of as examples_of
    from composer.train.data.fitting import fitted as fitted
    from composer.train.data.forecasting.series import ForecastSeries as ForecastSeries
    from composer.train.data.forecasting.windows import fitted_series as fitted_series
    from composer.train.data.forecasting.windows import windows_of as windows_of
    from composer.train.data.learned_tokenizers import make_tokenizer as make_tokenizer
    from composer.train.data.learned_tokenizers import train_wordpiece as train_wordpiece
    from composer.train.data.learned_tokenizers import train_words as train_words
    from composer.train.data.mixtures import mixed as mixed
    from composer.train.data.objectives import Batches as Batches
    from composer.train.data.objectives import Objective as Objective
    from composer.train.data.objectives import learnable as learnable
    from composer.train.data.objectives import marked as marked
    from composer.train.data.objectives import objective_of as objective_of
    from composer.train.data.prepared.prepare import open_prepared as open_prepared
    from composer.train.data.prepared.prepare import prepare as prepare
    from composer.train.data.prepared.token_files import PreparedText as PreparedText
    from composer.train.data.prepared.token_files import is_prepared as is_prepared
    from composer.train.data.tables import Table as Table
    from composer.train.data.tables import is_table as is_table
    from composer.train.data.tables import read_table as read_table
    from composer.train.data.text import TextData as TextData
    from composer.train.data.text import split as split
    from composer.train.data.text import tokenize as tokenize
    from composer.train.data.tokenizer_files import load_tokenizer as load_tokenizer
    from composer.train.data.tokenizer_files import save_tokenizer as save_tokenizer
    from composer.train.data.tokenizers import BPETokenizer as BPETokenizer
    from composer.train.data.tokenizers import ByteTokenizer as ByteTokenizer
    from composer.train.data.tokenizers import CharacterTokenizer as CharacterTokenizer
    from composer.train.data.tokenizers import MarkedTokenizer as MarkedTokenizer
    from composer.train.data.tokenizers import PiecesTokenizer as PiecesTokenizer
    from composer.train.data.tokenizers import Tokenizer as Tokenizer
    from composer.train.data.tokenizers import characters_of as characters_of
    from composer.train.data.tokenizers import text_as_it_comes as text_as_it_comes
    from composer.train.data.tokenizers import train_bpe as train_bpe
    from composer.train.errors import TrainingError as TrainingError
    from composer.train.following.callbacks import Callback as Callback
    from composer.train.following.callbacks import RunStart as RunStart
    from composer.train.following.trackers import TensorBoard as TensorBoard
    from composer.train.following.trackers import WeightsAndBiases as WeightsAndBiases
    from composer.train.following.watches import ActivationSizes as ActivationSizes
    from composer.train.following.watches import ExpertLoad as ExpertLoad
    from composer.train.following.watches import GradientNorms as GradientNorms
    from composer.train.following.watches import MemoryUse as MemoryUse
    from composer.train.following.watches import Utilization as Utilization
    from composer.train.growing.grow import Growth as Growth
    from composer.train.growing.grow import grow as grow
    from composer.train.interrupt import Interrupted as Interrupted
    from composer.train.loop import Result as Result
    from composer.train.losses import BatchLoss as BatchLoss
    from composer.train.losses import loss as loss
    from composer.train.losses import task_of as task_of
    from composer.train.optimization.coordinate_check import CoordinateCheck as CoordinateCheck
    from composer.train.optimization.coordinate_check import coordinate_check as coordinate_check
    from composer.train.optimization.decay_groups import param_groups as param_groups
    from composer.train.optimization.width_transfer import WidthScale as WidthScale
    from composer.train.optimization.width_transfer import mup_init as mup_init
    from composer.train.optimization.width_transfer import width_scales as width_scales
    from composer.train.progress import Display as Display
    from composer.train.progress import display as display
    from composer.train.reference import ReferenceModel as ReferenceModel
    from composer.train.reference import open_reference_model as open_reference_model
    from composer.train.run.checkpoint import Checkpoint as Checkpoint
    from composer.train.run.folder import RunFolder as RunFolder
    from composer.train.run.trained import Trained as Trained
    from composer.train.run.trained import open_run as open_run
    from composer.train.settings import TrainSettings as TrainSettings
    from composer.train.starts import Start as Start
    from composer.train.starts import freeze as freeze
    from composer.train.starts import start_from as start_from
    from composer.train.validation import Validation as Validation
    from composer.train.validation import validate as validate
    from composer.train.vectors import Vectors as Vectors
    from composer.train.vectors import load_vectors as load_vectors

_HOME = {
    "WeightsAndBiases": "following.trackers",
    "TensorBoard": "following.trackers",
    "Utilization": "following.watches",
    "MemoryUse": "following.watches",
    "ExpertLoad": "following.watches",
    "ActivationSizes": "following.watches",
    "GradientNorms": "following.watches",
    "RunStart": "following.callbacks",
    "Callback": "following.callbacks",
    "BPETokenizer": "data.tokenizers",
    "Batches": "data.objectives",
    "ByteTokenizer": "data.tokenizers",
    "CharacterTokenizer": "data.tokenizers",
    "Checkpoint": "run.checkpoint",
    "CoordinateCheck": "optimization.coordinate_check",
    "WidthScale": "optimization.width_transfer",
    "TextData": "data.text",
    "TextDocument": "data.documents",
    "Display": "progress",
    "ExampleData": "data.examples",
    "Examples": "data.examples",
    "Growth": "growing.grow",
    "Interrupted": "interrupt",
    "BatchLoss": "losses",
    "MarkedTokenizer": "data.tokenizers",
    "PiecesTokenizer": "data.tokenizers",
    "PreparedText": "data.prepared.token_files",
    "Objective": "data.objectives",
    "ReferenceModel": "reference",
    "Result": "loop",
    "RunFolder": "run.folder",
    "ForecastSeries": "data.forecasting.series",
    "Start": "starts",
    "Table": "data.tables",
    "TrainSettings": "settings",
    "Tokenizer": "data.tokenizers",
    "Trained": "run.trained",
    "TrainingError": "errors",
    "Validation": "validation",
    "Vectors": "vectors",
    "characters_of": "data.tokenizers",
    "coordinate_check": "optimization.coordinate_check",
    "display": "progress",
    "examples_of": "data.examples",
    "fitted": "data.fitting",
    "fitted_series": "data.forecasting.windows",
    "freeze": "starts",
    "grow": "growing.grow",
    "is_prepared": "data.prepared.token_files",
    "is_table": "data.tables",
    "learnable": "data.objectives",
    "load_tokenizer": "data.tokenizer_files",
    "load_vectors": "vectors",
    "loss": "losses",
    "make_tokenizer": "data.learned_tokenizers",
    "marked": "data.objectives",
    "mixed": "data.mixtures",
    "mup_init": "optimization.width_transfer",
    "objective_of": "data.objectives",
    "open_prepared": "data.prepared.prepare",
    "open_reference_model": "reference",
    "open_run": "run.trained",
    "param_groups": "optimization.decay_groups",
    "prepare": "data.prepared.prepare",
    "read_documents": "data.documents",
    "read_table": "data.tables",
    "read_text": "data.documents",
    "resume": "api",
    "save_tokenizer": "data.tokenizer_files",
    "split": "data.text",
    "start_from": "starts",
    "task_of": "losses",
    "text_as_it_comes": "data.tokenizers",
    "tokenize": "data.text",
    "train": "api",
    "train_bpe": "data.tokenizers",
    "train_wordpiece": "data.learned_tokenizers",
    "train_words": "data.learned_tokenizers",
    "validate": "validation",
    "width_scales": "optimization.width_transfer",
    "windows_of": "data.forecasting.windows",
}
__all__ = [
    "ActivationSizes",
    "BPETokenizer",
    "BatchLoss",
    "Batches",
    "ByteTokenizer",
    "Callback",
    "CharacterTokenizer",
    "Checkpoint",
    "CoordinateCheck",
    "Display",
    "ExampleData",
    "Examples",
    "ExpertLoad",
    "ForecastSeries",
    "GradientNorms",
    "Growth",
    "Interrupted",
    "MarkedTokenizer",
    "MemoryUse",
    "Objective",
    "PiecesTokenizer",
    "PreparedText",
    "ReferenceModel",
    "Result",
    "RunFolder",
    "RunStart",
    "Start",
    "Table",
    "TensorBoard",
    "TextData",
    "TextDocument",
    "Tokenizer",
    "TrainSettings",
    "Trained",
    "TrainingError",
    "Utilization",
    "Validation",
    "Vectors",
    "WeightsAndBiases",
    "WidthScale",
    "characters_of",
    "coordinate_check",
    "display",
    "examples_of",
    "fitted",
    "fitted_series",
    "freeze",
    "grow",
    "is_prepared",
    "is_table",
    "learnable",
    "load_tokenizer",
    "load_vectors",
    "loss",
    "make_tokenizer",
    "marked",
    "mixed",
    "mup_init",
    "objective_of",
    "open_prepared",
    "open_reference_model",
    "open_run",
    "param_groups",
    "prepare",
    "read_documents",
    "read_table",
    "read_text",
    "resume",
    "save_tokenizer",
    "split",
    "start_from",
    "task_of",
    "text_as_it_comes",
    "tokenize",
    "train",
    "train_bpe",
    "train_wordpiece",
    "train_words",
    "validate",
    "width_scales",
    "windows_of",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
