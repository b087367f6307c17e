"""What a picture calls things after their names, and what it shows as a table, held against the model."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from composer.graph.parameters import parameters
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedProgram
from composer.graph.types import TensorType
from composer.graph.visit import every_node, every_pass, walk
from tests.draw.read_back import COUNTED, SVG, DrawnBox, Model, Picture, named, plain

SOURCES = ("parameter", "constant")
"""Blocks that are called after their names: those that read nothing."""
ICON = 28.0
"""The width of a picture in a box."""
LEARNED = re.compile(r"^(?:one )?learned\b")
"""How a box says of numbers that they are trained."""


def misnamed_titles(svg: str, picture: Picture, model: Model, typed: TypedProgram) -> Iterator[str]:
    """Yield every title that is not the name of its node, every parameter that is not trained and said to be, and every table
    that is none.
    """
    blocks, groups, tables = dict[str, str](), dict[str, str](), {*tables_in(typed)}
    for visit in walk(typed.root, every_pass, every_node):
        if isinstance(visit.node, TypedBlock):
            blocks[plain(visit.path)] = visit.node.part.kind
        elif isinstance(visit.node, TypedGroup) and visit.node.node.part is not None:
            groups[plain(visit.path)] = visit.node.node.part.kind
    frozen = {plain(one.name).rpartition(".")[0] for one in parameters(typed) if not one.trainable}
    memories = {path for path, type_ in model.states.items() if len(type_.axes) == 3}
    for box in picture.boxes:
        path = plain(box.path)
        if blocks.get(path) in SOURCES and not is_name(box.lines[0], path) and letters(box.lines[0]) != blocks[path]:
            yield f"{box.path}: it is not called `{box.lines[0]}`"
        if path in frozen and any(map(LEARNED.match, box.lines)):
            yield f"{box.path}: it is not learned"
        if path in groups:
            yield from misnamed_use(box, groups[path])
    for path in drawn_tables(svg):
        if plain(path) not in tables and path not in memories:
            yield f"{path}: it is no table"


def misnamed_use(box: DrawnBox, block: str) -> Iterator[str]:
    """Yield where the title of a use of a block begins with a name that is not its own, or goes on with another block."""
    first, dot, others = box.lines[0].partition(" · ")
    if dot and not COUNTED.search(box.lines[0]) and not (is_name(first, plain(box.path)) and letters(others) == letters(block)):
        yield f"{box.path}: it is not called `{box.lines[0]}`"


def is_name(said: str, path: str) -> bool:
    """Return whether a title says the name of the node at a path."""
    return letters(said) == letters(named(path))


def letters(text: str) -> str:
    """Return a text without capitals, spaces and other signs."""
    return re.sub(r"[\W_]", "", text).lower()


def tables_in(typed: TypedProgram) -> Iterator[str]:
    """Yield the paths of the matrices that are learned of which something picks rows, or multiplies a vector by each row."""
    for visit in walk(typed.root, every_pass, every_node):
        node, graph = visit.node, visit.graph
        if isinstance(node, TypedBlock) and node.part.kind in ("gather", "einsum") and graph is not None:
            around = plain(visit.path).rpartition(".")[0]
            yield from (f"{around}.{name}".removeprefix(".") for name in rows_of(node, graph))


def rows_of(node: TypedBlock, graph: TypedGraph) -> Iterator[str]:
    """Yield which parameters of a graph a block reads row by row."""
    refs = [(wire.port, ref) for wire in node.node.wires for ref in wire.refs]
    pattern = getattr(node.part, "pattern", "")
    terms, _, out = pattern.partition("->")
    for number, (port, ref) in enumerate(refs):
        made = graph.by_name.get(ref.node)
        if not (isinstance(made, TypedBlock) and made.part.kind == "parameter"):
            continue
        (type_,) = made.outputs.values()
        if not (isinstance(type_, TensorType) and len(type_.axes) == 2):
            continue
        if pattern:
            rows, columns = terms.split(",")[number].split()
            if rows in out.split() and columns not in out.split():
                yield ref.node
        elif port == "x" and node.sizes["dim"] in (0, -2):
            yield ref.node


def drawn_tables(svg: str) -> Iterator[str]:
    """Yield the paths of the boxes that have the picture of a table: several rows, one above the other, as wide as an icon."""
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        rows = [one for one in group.findall(f"{SVG}rect[@class='bg']") if float(one.get("width", "0")) == ICON]
        if "node" in (group.get("class") or "").split() and len(rows) > 1:
            yield group.get("data-id", "")
