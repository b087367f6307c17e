"""Loading and saving of published checkpoints."""

from composer.weights.adapters import AdapterError, merge_adapters
from composer.weights.check_rules import mistakes
from composer.weights.mapping import WeightMap, mapping
from composer.weights.published_files import PublishedCheckpoint
from composer.weights.transfer import load_published, save_published

__all__ = [
    "AdapterError",
    "PublishedCheckpoint",
    "WeightMap",
    "load_published",
    "mapping",
    "merge_adapters",
    "mistakes",
    "save_published",
]
