"""Recipes of the zoo in which a block, a mask or another part can be seen at work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import islice

from blocks.core import Part
from composer.diagnostics import Span
from composer.graph.ir import Program
from composer.package_data import zoo
from composer.recipe import Recipe, text_of, zoo_names

FEW = 5
"""How many recipes are named."""


def zoo_examples(kind: str, most: int = FEW) -> list[str]:
    """Return recipes of the zoo that name a part in their own text and use it, the shortest first.

    Args:
        kind: The name of a part.
        most: How many at most.

    Examples:
        >>> from composer.zoo_examples import zoo_examples
        >>> zoo_examples("selective_scan")
        ['mamba', 'jamba']
    """
    word = re.compile(rf"(?<![\w-]){re.escape(kind)}(?![\w-]|\s*:)")  # not as a key
    texts = {name: (zoo() / f"{name}.yaml").read_text(encoding="utf-8") for name in zoo_names()}
    naming = sorted((name for name, text in texts.items() if word.search(text)), key=lambda name: len(texts[name]))
    return list(islice((name for name in naming if kind in parts_of(Recipe(text_of(name)).program.untyped)), most))


def parts_of(program: Program) -> frozenset[str]:
    """Return the names of all parts that a model uses."""
    return frozenset(_parts(program.graph, set()))


def _parts(value: object, seen: set[int]) -> Iterator[str]:
    """Yield the name of every part in a piece of a program, each piece of which is visited once."""
    if isinstance(value, tuple):
        for item in value:
            yield from _parts(item, seen)
    elif is_dataclass(value) and not isinstance(value, type | Span) and id(value) not in seen:
        seen.add(id(value))
        part = getattr(value, "part", None)
        if isinstance(part, type) and issubclass(part, Part) and part.kind:
            yield part.kind
        for field in fields(value):
            yield from _parts(getattr(value, field.name), seen)
