"""Names that a package loads when they are first used stay what they are once everything is loaded."""

import pkgutil
from importlib import import_module

import pytest

import composer
import composer.lower
import composer.train


@pytest.mark.parametrize("package", [composer, composer.train, composer.lower])
def test_no_module_hides_a_lazy_name(package: object) -> None:
    """A module called like another thing that `__getattr__` gives would take its place as soon as it is imported."""
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}  # type: ignore[attr-defined]
    packages = {*getattr(package, "_PACKAGES", ())}  # which it gives themselves
    assert modules & {*package.__all__} == packages  # type: ignore[attr-defined]


def test_what_training_groups_stays_a_function() -> None:
    """Also after its module is loaded."""
    import_module("composer.train.optimization.decay_groups")
    assert callable(composer.param_groups) and callable(composer.param_groups)
