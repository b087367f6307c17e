"""Loading and saving of published checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from composer.lazy_names import lazy_names
from composer.weights.adapters import AdapterError, merge_adapters
from composer.weights.check_rules import mistakes
from composer.weights.mapping import WeightMap, mapping
from composer.weights.published_files import PublishedCheckpoint
from composer.weights.transfer import load_published, save_published

if TYPE_CHECKING:
    from composer.lower.int8 import Int8Error as Int8Error
    from composer.lower.int8 import Int8Matrix as Int8Matrix
    from composer.lower.int8 import to_int8 as to_int8
    from composer.lower.int8 import weight_bytes as weight_bytes

_HOME = dict.fromkeys(("Int8Error", "Int8Matrix", "to_int8", "weight_bytes"), "composer.lower.int8")
"""Names that are imported when they are used, since they need torch."""
__all__ = [
    "AdapterError",
    "Int8Error",
    "Int8Matrix",
    "PublishedCheckpoint",
    "WeightMap",
    "load_published",
    "mapping",
    "merge_adapters",
    "mistakes",
    "save_published",
    "to_int8",
    "weight_bytes",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
