"""Names that a package loads when they are first used stay what they are once everything is loaded."""

import pkgutil
from importlib import import_module
from types import ModuleType

import pytest

import composer

LAZY = [
    composer,
    *(import_module(f"composer.{name}") for name in ("compare", "estimate", "evaluate", "lower", "published", "train")),
]


@pytest.mark.parametrize("package", LAZY)
def test_no_module_hides_a_lazy_name(package: ModuleType) -> None:
    """A module called like another thing that `__getattr__` gives would take its place as soon as it is imported."""
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    packages = {name for name, home in package._HOME.items() if name == home}  # themselves
    assert modules & {*package.__all__} == packages


@pytest.mark.parametrize("package", [*LAZY, composer.weights])
def test_every_public_name_is_found(package: ModuleType) -> None:
    """Also by completion; another is missing in the words of Python."""
    assert all(getattr(package, name) is not None for name in package.__all__)
    assert {*package.__all__} <= {*dir(package)}
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
        _ = package.nothing


def test_what_training_groups_stays_a_function() -> None:
    """Also after its module is loaded."""
    import_module("composer.train.optimization.decay_groups")
    assert callable(composer.param_groups) and callable(composer.param_groups)
