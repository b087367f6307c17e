"""Measuring: how well a trained model predicts text, and what it is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from composer.evaluate.evaluation import Evaluation as Evaluation
    from composer.evaluate.evaluation import evaluate as evaluate
    from composer.evaluate.translations import Translations as Translations

_HOME = {"Evaluation": "evaluation", "Translations": "translations", "evaluate": "evaluation"}
__all__ = ["Evaluation", "Translations", "evaluate"]


def __getattr__(name: str) -> object:
    """A public name, imported from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
