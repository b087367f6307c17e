"""Blocks of one kind that differ inside in a single box: one detail tells both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from composer.draw.details.inside import BlockInside
from composer.draw.diagram import Leaf
from composer.draw.series import template

MAX_DIFFERENCE = 60
"""Letters of what is said of the box that differs."""


def difference(one: BlockInside, others: Sequence[BlockInside | None]) -> str:
    """Return what the one box says in which other blocks differ inside from one, but for numbers, all in the same; nothing where
    they differ otherwise.
    """
    said = {_difference(one, other) if other is not None else "" for other in others}
    return said.pop() if len(said) == 1 else ""


def _difference(one: BlockInside, other: BlockInside) -> str:
    """Return the same of one of them: all must be wired in the same way, and the box have the only title of its kind."""
    leaves, others = list(one.leaves), list(other.leaves)
    if len(leaves) != len(others) or wires(one) != wires(other):
        return ""
    differ = [its for leaf, its in zip(leaves, others, strict=True) if told(leaf) != told(its)]
    titles = Counter(leaf.look.title for leaf in leaves)
    if len(differ) != 1 or titles[differ[0].look.title] != 1:
        return ""
    said = f"{differ[0].look.title} {differ[0].look.detail}"
    return said if len(said) <= MAX_DIFFERENCE else ""


def told(leaf: Leaf) -> object:
    """Return what a box says but for its numbers, its name and how many parameters it has."""
    look = leaf.look
    rows = [(template(row.share), row.look) for row in leaf.rows]
    return look.title, [*map(template, look.facts)], look.sign, look.mask, look.sides, rows, leaf.after


def wires(inside: BlockInside) -> Counter[object]:
    """Return what leads where in a block, its boxes by their numbers: two blocks may call them otherwise."""
    numbers = {leaf.about.path: str(number) for number, leaf in enumerate(inside.leaves)}

    def place(path: str) -> str:
        return numbers.get(path) or path.replace(inside.path, "", 1)

    found = inside.flow.all_edges()
    return Counter((place(e.source.path), e.source.port, place(e.target), e.port, e.main, e.back) for e in found)
