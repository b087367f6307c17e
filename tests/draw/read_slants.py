"""Which boxes have slanted sides in a picture, held against what their nodes make of the places of what they read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from composer.draw.style.looks import look
from composer.graph.dims import leaves, substitute
from composer.graph.passes.roll_layers.roll_layers import folded
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat
from composer.graph.types import InputTypes, PortTypes, TensorType, Type, each_of
from composer.graph.visit import every_node, every_pass, walk
from tests.draw.read_back import DrawnBox, Picture, plain

LENGTHS = (4_000, 60_000)
"""Of axes without a number."""
FAR = 1.5
"""How many times fewer places are another resolution."""
NEAR = 1.5
"""Pixels between the end of a wire and the side of a box at which it ends."""
SEVERAL = re.compile(r"× \d+ ")
"""How the title of a box begins that stands for several passes."""


def mislanted(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every box that is narrower where its stream leaves and does not give fewer places in a pass that it stands for, or
    wider and does not give more; and every one that has straight sides and gives fewer places, or more, in all passes.
    """
    truth = {**changes(folded(typed).program), **changes(typed)}
    drawn: dict[str, list[DrawnBox]] = {}
    for box in picture.boxes:
        drawn.setdefault(box.path, []).append(box)
    for path, boxes in drawn.items():
        known = truth.get(path) or truth.get(plain(path), [])
        for box in boxes:
            shown = shown_by(box, picture)
            if box.corners and (shown not in known or box.merged or (len(boxes) == 1 and len({*known}) > 1)):
                yield f"{path}: it seems to give {shown} places, and not {known}"
            several = path != plain(path) and SEVERAL.match(box.lines[0])  # of which the others may differ
            if not (box.corners or box.merged or several) and len({*known}) == 1 and known[0]:
                yield f"{path}: it seems to give as many places, and not {known[0]}"


def shown_by(box: DrawnBox, picture: Picture) -> str:
    """Return what the sides of a box say, given at which it is narrower and where wires come in, or else go out."""
    if not box.corners:
        return ""
    (a, b), (c, d), (e, f), (g, h) = box.corners
    wide, high = (c - a) / (e - g), (h - b) / (f - d)
    sides = ("top", "bottom") if wide != 1 else ("left", "right")
    narrow = sides[0] if (wide if wide != 1 else high) < 1 else sides[1]
    wires = sorted((wire for wire in picture.wires if wire.target == box.path), key=lambda wire: bool(wire.port))
    comes = [side_of(wire.tip, box, sides) for wire in wires if wire.tip]
    goes = [side_of(wire.start, box, sides) for wire in picture.wires if wire.source == box.path]
    for side in filter(None, comes):
        return "more" if narrow == side else "fewer"
    return "fewer" if narrow in goes else "more"


def side_of(point: tuple[float, float], box: DrawnBox, sides: Sequence[str]) -> str:
    """Return at which of two sides of a box a wire ends; nothing for one that ends elsewhere."""
    (x, y), place = point, box.place
    far = {"top": y - place.top, "bottom": place.bottom - y, "left": x - place.left, "right": place.right - x}
    return next((side for side in sides if abs(far[side]) <= NEAR and place.touches(x, y, NEAR)), "")


def changes(typed: TypedProgram) -> dict[str, list[str]]:
    """Return what each node makes of the places of what it reads, `fewer`, `more` or nothing, by its path: in each pass; and by
    its path without passes, in all.
    """
    found: dict[str, list[str]] = {}
    for visit in walk(typed.root, every_pass, every_node):
        for path in {visit.path, plain(visit.path)}:
            found.setdefault(path, []).append(of_node(visit.node))
        if isinstance(visit.node, TypedRepeat):
            found |= {f"{visit.path}.{index}": [of_graphs(one, one)] for index, one in enumerate(visit.node.passes)}
    return found


def of_node(node: TypedNode) -> str:
    """Return what a node makes of the places of what it reads first; a block that reads several values has none such, and one
    that puts numbers elsewhere must have all of them.
    """
    match node:
        case TypedBlock():
            read = {port: type_ for port, type_ in node.inputs.items() if port not in node.part.shape_only_inputs}
            if len(read) != 1 or (look(node).low and count(read) != count(node.outputs)):
                return ""
            return change(read, node.outputs)
        case TypedGroup():
            return of_graphs(node.graph, node.graph)
        case TypedRepeat():
            return of_graphs(node.passes[0], node.passes[-1])
    return ""


def of_graphs(first: TypedGraph, last: TypedGraph) -> str:
    """Return what some graphs in a row make of the places of what comes into the first one."""
    return change(first.inputs, last.outputs)


def count(types: InputTypes | PortTypes) -> int:
    """Return how many numbers the first of some values has."""
    return prod(lengths(each_of(next(iter(types.values())))[0], LENGTHS[1]))


def lengths(type_: Type, length: int) -> list[int]:
    """Return the lengths of the axes of a value, given that of axes without a number."""
    sizes = type_.sizes if isinstance(type_, TensorType) else ()
    return [substitute(one, dict.fromkeys((name for name in leaves(one) if isinstance(name, str)), length)) for one in sizes]


def change(read: InputTypes, given: PortTypes) -> str:
    """Return whether the first value that is given has more places than the first that is read, or fewer, in its shape alone."""
    if not read or not given:
        return ""
    (came, *others), gives = each_of(next(iter(read.values()))), next(iter(given.values()))
    if others or not (isinstance(came, TensorType) and isinstance(gives, TensorType)) or len(came.axes) != len(gives.axes):
        return ""
    if any(leaves(one) != leaves(other) for one, other in zip(came.sizes, gives.sizes, strict=True)):
        return ""
    before, after = lengths(came, LENGTHS[1]), lengths(gives, LENGTHS[1])
    if before[:1] != after[:1] or sorted(before) == sorted(after):
        return ""
    pairs = [*zip(before, after, strict=True)]
    rank = len(pairs)
    kept = {3: ({1},), 4: ({2, 3}, {1, 2}), 5: ({2, 3, 4}, {1, 3, 4}, {1, 2, 3})}.get(rank, ())
    for places in kept:
        different = [pairs[axis] for axis in places if pairs[axis][0] != pairs[axis][1]]
        if len(different) >= min(2, len(places)):
            if all(one >= FAR * other for one, other in different):
                return "fewer"
            if all(other >= FAR * one for one, other in different):
                return "more"
    return ""
