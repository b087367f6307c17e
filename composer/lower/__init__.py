"""Typed graph to Python source that reads as if a person had written it, and source to a plain torch module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from composer.lazy_names import lazy_names

if TYPE_CHECKING:
    from composer.lower.build import compile as compile
    from composer.lower.emit.module_source import lower as lower
    from composer.lower.model import Model as Model
    from composer.lower.model import Module as Module

_HOME = {"compile": "build", "Model": "model", "lower": "emit.module_source", "Module": "model"}
__all__ = ["Model", "Module", "compile", "lower"]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
