"""Sequence alignment: pair the remaining nodes of two models in topological order, so that the pairs have most in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.core import Block
from composer.diff.flat_graph import INPUT, FlatModel, FlatNode
from composer.diff.pairing import Pairing

MAX_PAIRS = 16_000_000
"""Pairs of nodes that are scored; in larger models, nodes at the same path are paired."""
KIND, FIELDS, FAMILY, NAME, PATH, HOLDER = 6.0, 2.0, 3.0, 2.0, 4.0, 1.0
"""The score of what two nodes have in common: the type, the fields, the family of the block, the last step of the path, the whole
path, the type of the group around."""
FORBIDDEN = -100.0
MIN_GAIN = 6.0
"""The lowest score of two nodes that are taken for a changed one."""


def align(pairing: Pairing, order: Sequence[int], other: Sequence[int]) -> None:
    """Pair the nodes that have no partner yet, without crossings, so that the sum of the scores is the highest."""
    ours, theirs = pairing.before, pairing.after
    left = [index for index in order if index not in pairing.forward and ours.nodes[index].kind != INPUT]
    right = [index for index in other if index not in pairing.backward and theirs.nodes[index].kind != INPUT]
    if not left or not right:
        return
    if len(left) * len(right) > MAX_PAIRS:
        places = {_identity(theirs.nodes[index]): index for index in right}
        for index in left:
            if (found := places.pop(_identity(ours.nodes[index]), None)) is not None:
                pairing.join(index, found)
        return
    gains = _gains(ours, left, theirs, right)
    for row, column in _best_path(gains):
        pairing.join(left[row], right[column])


def _identity(node: FlatNode) -> tuple[str, str, bool]:
    return node.path, node.kind, node.slot_feed is None


def _gains(ours: FlatModel, left: Sequence[int], theirs: FlatModel, right: Sequence[int]) -> Any:
    """Return the score of each pair."""
    import numpy as np

    (rows, kinds), (columns, others) = (_distinct(model, nodes) for model, nodes in ((ours, left), (theirs, right)))
    table: Any = np.array([[_block_gain(one, other) for other in others] for one in kinds])
    gains = table[np.ix_(rows, columns)]
    for gain, name in ((NAME, _last_name), (PATH, _whole_path), (HOLDER, _holder)):
        numbers: dict[str, int] = {}
        a, b = (
            np.array([numbers.setdefault(name(model, index), len(numbers)) for index in nodes])
            for model, nodes in ((ours, left), (theirs, right))
        )
        gains = gains + gain * (a[:, None] == b[None, :])
    return np.where(gains >= MIN_GAIN, gains, 0.0)


def _distinct(model: FlatModel, nodes: Sequence[int]) -> tuple[list[int], list[FlatNode]]:
    """Return a number for each node that is equal in passes of a repeat, and one node for each number, so that these are scored
    once."""
    known: dict[int, int] = {}
    numbers = [known.setdefault(id(model.nodes[index].fields), len(known)) for index in nodes]
    firsts = {number: model.nodes[index] for number, index in reversed(list(zip(numbers, nodes, strict=True)))}
    return numbers, [firsts[number] for number in range(len(known))]


def _block_gain(one: FlatNode, other: FlatNode) -> float:
    if (one.slot_feed is None) != (other.slot_feed is None):
        return FORBIDDEN
    if one.kind == other.kind:
        keys = [{name: form.key(bool) for name, form in node.fields.items()} for node in (one, other)]
        same = sum(keys[1].get(name, KIND) == key for name, key in keys[0].items())
        return KIND + FIELDS * float(same) / max(1, len(keys[0]))
    family = _family(one)
    return FAMILY if family is _family(other) and family is not Block else 0.0


def _family(node: FlatNode) -> type:
    """Return the family of a block, the direct subclass of `Part`, such as the norms."""
    if node.block is None:
        return Block
    line = type(node.block.part).__mro__
    return line[[base.__name__ for base in line].index("Part") - 1]


def _last_name(model: FlatModel, index: int) -> str:
    return model.nodes[index].path.rpartition(".")[2]


def _whole_path(model: FlatModel, index: int) -> str:
    return model.nodes[index].path


def _holder(model: FlatModel, index: int) -> str:
    """Return the type of the group around a node."""
    above = model.places.get(model.nodes[index].path.rpartition(".")[0])
    return above.kind if above is not None else ""


def _best_path(gains: Any) -> list[tuple[int, int]]:
    """Return the pairs of rows and columns, both rising, whose gains sum to the most."""
    import numpy as np

    rows, columns = gains.shape
    best = np.zeros((rows + 1, columns + 1))
    for row in range(rows):
        taken = np.maximum(best[row, 1:], best[row, :-1] + gains[row])
        best[row + 1, 1:] = np.maximum.accumulate(taken)
    found, row, column = [], rows, columns
    while row and column:
        if best[row, column] == best[row - 1, column]:
            row -= 1
        elif best[row, column] == best[row, column - 1]:
            column -= 1
        else:
            row, column = row - 1, column - 1
            found.append((row, column))
    return found[::-1]
