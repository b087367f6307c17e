"""The public names of a package, each imported from its module on first use, so that only what is used is loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package.

    Args:
        package: its name, `__name__`
        homes: each name with the module that defines it, below the package, or anywhere if it starts with `composer.`; a module
            of its own is named by itself

    Raises:
        AttributeError: by the first, for a name that is not in `homes`, in the words of Python
    """

    def attribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        module = import_module(home if home.startswith("composer.") else f"{package}.{home}")
        return module if home == name else getattr(module, name)

    return attribute, lambda: sorted(sys.modules[package].__all__)
