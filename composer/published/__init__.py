"""Published models as folders: read against their weights, written as recipes, run with their tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from composer.published.exported_onnx import export_onnx as export_onnx
    from composer.published.exported_program import export_program as export_program
    from composer.published.exporting import export_folder as export_folder
    from composer.published.exporting_gguf import export_gguf as export_gguf

__all__ = ["export_folder", "export_gguf", "export_onnx", "export_program"]


def __getattr__(name: str) -> object:
    """A public name, imported from the module that defines it."""
    if name == "export_folder":
        from composer.published.exporting import export_folder

        return export_folder
    if name == "export_gguf":
        from composer.published.exporting_gguf import export_gguf

        return export_gguf
    if name == "export_onnx":
        from composer.published.exported_onnx import export_onnx

        return export_onnx
    if name == "export_program":
        from composer.published.exported_program import export_program

        return export_program
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
