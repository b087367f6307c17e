"""The letters of axes in formulas, held against which axes of values meet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from blocks.core import Formula, size
from composer.graph.typed import TypedBlock
from composer.graph.types import TensorType
from tests.draw.read_back import DrawnBox


def mislettered(box: DrawnBox, nodes: list[TypedBlock]) -> Iterator[str]:
    """Yield every formula in a box with other letters than one for each axis that some values lack or have elsewhere, where two
    values lack one of each other; a sign for outer products tells that too.
    """
    said = " ".join(box.lines)
    for node in nodes:
        formula = getattr(node.part, "formula", None)
        if not isinstance(formula, Formula) or "…" in said or "⊗" in said or not node.expansions:
            continue
        written = {name: written_at(name, said) for name in formula.names}
        axes = axes_of(node, formula)
        shared = set.intersection(*axes.values()) - moved_axes(node)
        apart = any(one - other and other - one for one, other in combinations(axes.values(), 2))
        wanted = {name: sorted(own - shared) if apart else [] for name, own in axes.items()}
        pairs = {pair for name in axes for pair in zip(wanted[name], written[name] or (), strict=False)}
        one_each = len(pairs) == len({place for place, _ in pairs}) == len({letter for _, letter in pairs})
        counts = all(given is None or len(given) == len(wanted[name]) for name, given in written.items())
        if not (one_each and counts):
            yield f"{box.path}: `{said}`: the axes of its values are {axes}"


def written_at(name: str, said: str) -> list[str] | None:
    """Return the letters behind a name; none where a text lacks the name."""
    found = re.search(rf"(?<![\w.]){re.escape(name.rpartition('.')[2])}(?![\w(])(?:\[([^\]]*)\])?", said)
    return None if found is None else (found[1] or "").split(", ") if found[1] else []


def axes_of(node: TypedBlock, formula: Formula) -> dict[str, set[int]]:
    """Return which axes of what a formula gives each of its values has, but for the batch."""
    given = next(iter(node.outputs.values()))
    assert isinstance(given, TensorType)
    batch = {place for place, length in enumerate(given.sizes) if size(length) == "B"}
    return {
        name: {place for place, own in enumerate(way) if own is not None} - batch
        for name, way in zip(formula.names, node.expansions, strict=True)
    }


def moved_axes(node: TypedBlock) -> set[int]:
    """Return which axes of what a formula gives stand at other places, counted from the last, in one value than in another."""
    lengths = [sum(own is not None for own in way) for way in node.expansions]
    return {
        place
        for place, owns in enumerate(zip(*node.expansions, strict=True))
        if len({length - own for length, own in zip(lengths, owns, strict=True) if own is not None}) > 1
    }
