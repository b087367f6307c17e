"""Which nodes are told by the name that their author chose: the scores of an attention that is written out are an einsum."""

from __future__ import annotations

import re

from blocks.core import Activation
from composer.draw.build.captions import NodePlace
from composer.graph.typed import TypedBlock, TypedGroup

PLAIN = {"act", "activation", "add", "block", "body", "cat", "concat", "conv", "dense", "join", "mul", "node", "out", "sum"}
"""Names that say no more than the block does."""
HEADS = {"Classifier", "LM head"}
"""Titles that say what for."""
MAX_NAME = 14
"""Letters of a name that has room in a box beside its title."""


NO_ROLE = re.compile(r"(^|_)(act|activation)\d*(_|$)|^[a-z]{1,2}\d+$")
"""A name that tells no more of an activation than that it is one, such as `a1` or `last_act`."""


def branch_name(path: str) -> str:
    """Return the name of a node; of the body of a residual branch, that of the branch, which its author chose."""
    *around, name = path.split(".")
    return around[-1] if name == "body" and around else name


def shown_name(node: TypedBlock | TypedGroup, place: NodePlace, title: str) -> str:
    """Return the name of a node if it tells more than its title; nothing for another."""
    name = place.path.rpartition(".")[2]
    stem = re.sub(r"[\d_]+$", "", name).lower()
    part = node.node.part if isinstance(node, TypedGroup) else node.part
    if part is None or not stem or len(name) > MAX_NAME or name != node.name or title in HEADS:
        return ""
    own = isinstance(node, TypedGroup) or part.is_primitive
    if issubclass(part if isinstance(part, type) else type(part), Activation) and NO_ROLE.search(name):
        return ""
    if stem in PLAIN and (part.is_primitive or stem == name):  # `conv4` tells one block of a recipe from others
        return ""
    words = {part.kind, *re.split(r"\W+", title.lower())}
    said = stem in title.lower() or any(len(word) > 2 and (word.startswith(stem) or stem.startswith(word)) for word in words)
    return name if own and not (said and len(stem) > 1) else ""
