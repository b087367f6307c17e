"""Published models as folders: read against their weights, written as recipes, run with their tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from composer.lazy_names import lazy_names

if TYPE_CHECKING:
    from composer.published.exported_onnx import export_onnx as export_onnx
    from composer.published.exported_program import export_program as export_program
    from composer.published.exporting import export_folder as export_folder
    from composer.published.exporting_adapters import export_adapters as export_adapters
    from composer.published.exporting_gguf import export_gguf as export_gguf
    from composer.published.starting import start_from_published as start_from_published
    from composer.published.starting import tokenizer_to_train as tokenizer_to_train

_HOME = {
    "export_adapters": "exporting_adapters",
    "export_folder": "exporting",
    "export_gguf": "exporting_gguf",
    "export_onnx": "exported_onnx",
    "export_program": "exported_program",
    "start_from_published": "starting",
    "tokenizer_to_train": "starting",
}
__all__ = [
    "export_adapters",
    "export_folder",
    "export_gguf",
    "export_onnx",
    "export_program",
    "start_from_published",
    "tokenizer_to_train",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
