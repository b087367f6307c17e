"""The names that a piece of a recipe may read: all that it reads, and perhaps some more."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable

from composer.diagnostics import Span
from composer.language.expressions.ast import Number, RefPath
from composer.language.recipe.keys import is_text
from composer.language.yaml.nodes import YamlMapping, YamlScalar

CONTEXT = "context"
"""A param that may stand without use: the length that the model is meant for, at which costs are given."""
IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def fresh(wanted: str, taken: Collection[str]) -> str:
    """Return a name that is not taken: the wanted one, or that one with a number from 2 on."""
    more = (f"{wanted}_{count}" for count in itertools.count(2))
    return next(name for name in itertools.chain([wanted], more) if name not in taken)


def identifiers(pieces: Iterable[object]) -> frozenset[str]:
    """Return the identifiers in nodes of a document, and the names in what is parsed already."""
    found: set[str] = set()
    waiting, seen = list(pieces), set[int]()
    while waiting:
        piece = waiting.pop()
        if id(piece) in seen:  # a block that several files use
            continue
        seen.add(id(piece))
        match piece:
            case YamlScalar(text=text):
                found.update(IDENTIFIER.findall(text))
            case YamlMapping(entries=entries):
                waiting.extend([entry.value for entry in entries])
            case RefPath(steps=steps):
                for step in steps:
                    found.add(step.name)
                    waiting.append(step.arguments)
            case tuple():
                waiting.extend(piece)
            case type() | Span() | Number():
                pass
            case _:
                for name in getattr(type(piece), "__slots__", ()):
                    waiting.append(getattr(piece, name))
    return frozenset(found)


def names_read(root: YamlMapping) -> frozenset[str]:
    """Return every name that any value of a recipe, or of a block in one, may read."""
    return identifiers(entry.value for entry in root if not is_text(entry.key.text))
