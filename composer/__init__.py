"""Neural networks from recipes: check, count, draw, compare, compile to PyTorch, train, generate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from composer.lazy_names import lazy_names

if TYPE_CHECKING:
    from composer import compare as compare
    from composer import decode as decode
    from composer import estimate as estimate
    from composer import evaluate as evaluate
    from composer import published as published
    from composer import train as train
    from composer import weights as weights
    from composer.cost.summary import Summary as Summary
    from composer.diagnostics import Diagnostic as Diagnostic
    from composer.diagnostics import RecipeError as RecipeError
    from composer.diff.difference import Difference as Difference
    from composer.errors import ComposerError as ComposerError
    from composer.loading import load as load
    from composer.lower import Model as Model
    from composer.recipe import Recipe as Recipe
    from composer.train import param_groups as param_groups
    from composer.train.losses import loss as loss
    from composer.version import __version__ as __version__

_HOME = {
    "ComposerError": "errors",
    "Diagnostic": "diagnostics",
    "Difference": "diff.difference",
    "Model": "lower",
    "Recipe": "recipe",
    "RecipeError": "diagnostics",
    "Summary": "cost.summary",
    "__version__": "version",
    "compare": "compare",
    "decode": "decode",
    "estimate": "estimate",
    "evaluate": "evaluate",
    "load": "loading",
    "loss": "train",
    "param_groups": "train",
    "published": "published",
    "train": "train",
    "weights": "weights",
}
__all__ = [
    "ComposerError",
    "Diagnostic",
    "Difference",
    "Model",
    "Recipe",
    "RecipeError",
    "Summary",
    "compare",
    "decode",
    "estimate",
    "evaluate",
    "load",
    "loss",
    "param_groups",
    "published",
    "train",
    "weights",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
