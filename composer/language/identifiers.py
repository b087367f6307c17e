"""The names that a piece of a recipe may read, before anything in it is parsed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from composer.language.document import Listing, Mapping, Node, Scalar

IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def identifiers(nodes: Iterable[Node]) -> frozenset[str]:
    """Every name that some values may read, over-estimated: the identifiers in them."""
    found: set[str] = set()
    waiting, seen = list(nodes), set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # a block that several files use
            continue
        seen.add(id(node))
        match node:
            case Scalar(text=text):
                found.update(IDENTIFIER.findall(text))
            case Listing(items=items):
                waiting.extend(items)
            case Mapping(entries=entries):
                waiting.extend(entry.value for entry in entries)
    return frozenset(found)


def used(root: Mapping) -> frozenset[str]:
    """Every name that any value of a recipe, or of a block in one, may read."""
    return identifiers(entry.value for entry in root if entry.key.text not in ("recipe", "doc", "source"))
