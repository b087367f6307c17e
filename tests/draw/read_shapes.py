"""What a picture says of the shapes of passes that differ, `B × 512 … 16 × 8² … 1024²`, held against every pass."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from blocks.core import size
from composer.graph.typed import TypedGroup, TypedProgram, TypedRepeat
from composer.graph.types import TensorType
from composer.graph.visit import every_node, every_pass, walk
from tests.draw.read_back import SVG, Picture, plain, split_rows

AT_WIRE, ABOVE = 10.0, 40.0
"""Pixels from a wire to a shape beside it, and from the box that gives it."""
MAX_LISTED = 3
"""Passes whose sizes are all told."""
SQUARE = re.compile(r"(\d)²")
IN_PARENTHESES = re.compile(r"\((?:[^()]|\([^()]*\))*\)")
NUMBER = re.compile(r"\d+")


def missized(svg: str, picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every shape of several passes that is not that of what the box or the frame below it gives in these, in order."""
    for text in ET.fromstring(svg).findall(f"{SVG}text[@class='m shape']"):
        said = (text.text or "").partition(" · ")[0]
        sizes = [one for axis in said.split(" × ") for one in unsquared(axis)]
        if not any(" … " in one or ", " in IN_PARENTHESES.sub("", one) for one in sizes):
            continue
        path, some = below(picture, float(text.get("x", "0")), float(text.get("y", "0")))
        given = given_in_passes(typed, path)
        if not any(tells(sizes, passes) for one in given for passes in (subsets(one) if some else [one])):
            yield f"{path}: `{said}` is not what it gives: {given}"


def unsquared(axis: str) -> list[str]:
    """Return the axes that one stands for: `8² … 64²` are two that are equal."""
    return [SQUARE.sub(r"\1", axis)] * (2 if SQUARE.search(axis) else 1)


def below(picture: Picture, x: float, y: float) -> tuple[str, bool]:
    """Return the box or the frame from which a wire with a shape comes, and whether it is of some passes alone."""
    places = [(one.path, one.place) for one in (*picture.boxes, *picture.frames)]
    found = [
        (place.top - y, path, place)
        for path, place in places
        if 0 < x - (place.left + place.right) / 2 < AT_WIRE and 0 < place.top - y < ABOVE
    ]
    if not found:
        return "", False
    _, path, place = min(found, key=lambda one: one[0])
    return path, any(frame.place.holds(place) and split_rows(frame.lines)[0] for frame in picture.frames)


def given_in_passes(typed: TypedProgram, path: str) -> list[list[list[str]]]:
    """Return the sizes of what a node gives in each pass of each of the repeats around it, if they are the same in all passes of
    the others, in the first ones of these or in all but those.
    """
    shapes: dict[tuple[int, ...], list[str]] = {}
    for visit in walk(typed.root, every_pass, every_node):
        if plain(visit.path) != plain(path):
            continue
        match visit.node:
            case TypedRepeat(passes=passes_of):
                outputs = passes_of[-1].outputs
            case TypedGroup(graph=graph):
                outputs = graph.outputs
            case node:
                outputs = node.outputs
        type_ = next(iter(outputs.values()))
        if isinstance(type_, TensorType):
            index = tuple(int(step) for step in visit.path.split(".") if step.isdigit())
            shapes[index] = [f"({one})" if re.search(r" (?![^(]*\))", one) else one for one in map(size, type_.sizes)]
    found = []
    for level in range(len(next(iter(shapes), ()))):
        for inner in (lambda _: True, lambda rest: not any(rest), any):
            passes: dict[int, list[list[str]]] = {}
            for index, sizes in shapes.items():
                if inner(index[:level] + index[level + 1 :]):
                    passes.setdefault(index[level], []).append(sizes)
            if passes and all(one == each[0] for each in passes.values() for one in each):
                found.append([each[0] for _, each in sorted(passes.items())])
    return found


def subsets(passes: list[list[str]]) -> Iterator[list[list[str]]]:
    """Yield some passes of all, in order."""
    for count in range(len(passes), 1, -1):
        yield from (list(some) for some in combinations(passes, count))


def tells(said: Sequence[str], passes: Sequence[Sequence[str]]) -> bool:
    """Return whether sizes say what passes have: each axis one size of all, each of a few, or the first and the last of more
    between which all others are.
    """
    if any(len(sizes) != len(said) for sizes in passes):
        return False
    for one, axis in zip(said, zip(*passes, strict=True), strict=True):
        listed = ", ".join(axis) if len(axis) <= MAX_LISTED else f"{axis[0]} … {axis[-1]}"
        numbers = [[int(number) for number in NUMBER.findall(each.replace("\u00a0", ""))] for each in axis]
        sorted_one_way = any(all(a <= b for a, b in pairwise(numbers[::order])) for order in (1, -1))
        said_so = {axis[0]} if len({*axis}) == 1 else {listed}
        if (
            len(axis) > MAX_LISTED
            and len({*axis}) > 1
            and all(b[0] * numbers[0][0] == a[0] * numbers[1][0] for a, b in pairwise(numbers))
        ):
            said_so.add(f"{axis[0]}, {axis[1]}, … {axis[-1]}")  # each is as many times the one before
        if one not in said_so or not (len(axis) <= MAX_LISTED or sorted_one_way):
            return False
    return True
