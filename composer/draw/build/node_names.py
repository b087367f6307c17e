"""Which nodes are told by the name that their author chose: the scores of an attention that is written out are an einsum."""

from __future__ import annotations

import re

from composer.draw.build.captions import NodePlace
from composer.graph.typed import TypedBlock, TypedGroup

PLAIN = {"act", "activation", "add", "block", "body", "cat", "concat", "conv", "dense", "join", "mul", "node", "out", "sum"}
"""Names that say no more than the block does."""
HEADS = {"Classifier", "LM head"}
"""Titles that say what for."""
MAX_NAME = 14
"""Letters of a name that has room in a box beside its title."""


def shown_name(node: TypedBlock | TypedGroup, place: NodePlace, title: str) -> str:
    """Return the name of a node if it tells more than its title; nothing for another."""
    name = place.path.rpartition(".")[2]
    stem = re.sub(r"[\d_]+$", "", name).lower()
    part = node.node.part if isinstance(node, TypedGroup) else node.part
    if part is None or not stem or stem in PLAIN or len(name) > MAX_NAME or name != node.name or title in HEADS:
        return ""
    own = isinstance(node, TypedGroup) or part.is_primitive
    words = {part.kind, *re.split(r"\W+", title.lower())}
    said = stem in title.lower() or any(len(word) > 2 and (word.startswith(stem) or stem.startswith(word)) for word in words)
    return name if own and not (said and len(stem) > 1) else ""
