"""The library of the parts that recipes can name, an immutable value that is passed as an argument."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import ModuleType

from blocks.core.part import Part
from blocks.errors import ComposerError


class NameClash(ComposerError, ValueError):
    """Two parts have the same name."""

    def __init__(self, name: str, first: type[Part], second: type[Part]) -> None:
        self.name, self.first, self.second = name, first, second
        super().__init__(f"two parts are called {name}: one in {_file(first)}, one in {_file(second)}")


class Library:
    """An immutable mapping from names to parts.

    Examples:
        >>> from blocks.core import Norm, standard
        >>> sorted(standard().of(Norm))
        ['batchnorm', 'batchnorm2d', 'groupnorm', 'groupnorm2d', 'layernorm', 'rmsnorm']
    """

    def __init__(self, parts: Mapping[str, type[Part]]) -> None:
        self._parts = dict(parts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def __getitem__(self, name: str) -> type[Part]:
        return self._parts[name]

    def of(self, family: type[Part]) -> dict[str, type[Part]]:
        """Return the parts of a family by name, such as all norms.

        Args:
            family: A family, such as `Norm`.
        """
        return {name: part for name, part in self._parts.items() if issubclass(part, family)}

    def shadowed_by(self, parts: Iterable[type[Part]]) -> Library:
        """Return a library in which these parts replace those of the same name.

        Args:
            parts: The replacements.
        """
        return Library({**self._parts, **{part.kind: part for part in parts}})

    def with_parts(self, parts: Iterable[type[Part]]) -> Library:
        """Return a library with these parts added.

        Args:
            parts: The parts to add.

        Raises:
            NameClash: The name of a part is taken.
        """
        together = dict(self._parts)
        for part in parts:
            if part.kind in together and together[part.kind] is not part:
                raise NameClash(part.kind, together[part.kind], part)
            together[part.kind] = part
        return Library(together)


@cache
def standard() -> Library:
    """Return the library of all parts of this package and of installed packages with the entry point `composer.blocks`."""
    import blocks

    parts: list[type[Part]] = []
    for module in pkgutil.walk_packages(blocks.__path__, "blocks."):
        if not module.ispkg and not module.name.startswith("blocks.core."):
            parts.extend(parts_in(importlib.import_module(module.name)))
    return Library({}).with_parts(sorted(parts, key=lambda part: part.kind)).with_parts(_plugins())


def parts_in(module: ModuleType) -> list[type[Part]]:
    """Return the named parts that a module defines (rather than imports), in the order of its source."""
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Part) and value.kind and value.__module__ == module.__name__
    ]


def _plugins() -> list[type[Part]]:
    from importlib.metadata import entry_points

    return [part for entry in entry_points(group="composer.blocks") for part in parts_in(entry.load())]


def _file(part: type[Part]) -> str:
    try:
        return inspect.getsourcefile(part) or part.__module__
    except (OSError, TypeError):
        return part.__module__
