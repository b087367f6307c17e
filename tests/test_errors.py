"""One base of all exceptions: who catches `ComposerError` has caught whatever Composer refuses."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from importlib import import_module

import pytest

import blocks
import composer
from blocks.core import BlockError, NameClash
from composer.decode import DecodeError
from composer.train import TrainingError

SIGNALS = {
    "Ambient", "ExpressionError", "Mismatch", "OverrideError", "Problem", "StopExpansion", "TooMuch",
    "Unbalanced", "ScanMismatch", "PassesDiffer", "NotTried", "DoesNotApply", "UnknownSize", "AxesMismatch", "TooManyMistakes",
    "NoColumnEnd", "NoInverse", "NotEqual", "Unarrangeable", "NotLinear",
}  # fmt: skip
"""Those that one module raises for another to catch; no caller of ours ever sees them."""


def exceptions() -> set[type[Exception]]:
    """Return every exception class that a module of either package defines under a public name."""
    modules = [
        import_module(module.name)
        for package in (blocks, composer)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return {
        value
        for module in modules
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == module.__name__ and name[0] != "_"
    }


def test_every_public_exception_has_the_one_base() -> None:
    """A new one derives from `ComposerError`, or is named above as a signal between modules."""
    found = exceptions()
    assert {composer.RecipeError, TrainingError, DecodeError, NameClash, BlockError} <= found
    assert {error.__name__ for error in found if not issubclass(error, composer.ComposerError)} == SIGNALS


def test_signals_are_not_offered() -> None:
    """No package lists one among its names."""
    packages = [composer, blocks, *(import_module(name) for name in ("blocks.core", "composer.train", "composer.decode"))]
    assert not SIGNALS & {name for package in packages for name in getattr(package, "__all__", ())}


@pytest.mark.parametrize(
    "refused",
    [
        lambda: composer.load("gpt"),
        lambda: composer.load("gpt2", overrides={"n_heads": 7}).summary(),
        lambda: composer.load("gpt2").draw(width="wide"),
        lambda: composer.load("gpt2").draw().save("figure.doc"),
    ],
)
def test_one_clause_catches_what_is_refused(refused: Callable[[], object]) -> None:
    """Whichever stage it comes from; each says in words what is wrong."""
    with pytest.raises(composer.ComposerError, match=r"\w+ \w+"):
        refused()


def test_exceptions_are_still_the_kinds_that_python_has() -> None:
    """A wrong value is a `ValueError` also for who knows nothing of us."""
    assert all(issubclass(error, ValueError) for error in (composer.RecipeError, TrainingError, DecodeError, NameClash))
