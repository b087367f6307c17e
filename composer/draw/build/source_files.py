"""The files in which a model is written, and where in them its nodes are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from composer.diagnostics import Span
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan


@dataclass(frozen=True, slots=True)
class File:
    """A file, whoever read it."""

    name: str
    text: str


LineRange: TypeAlias = tuple[File, int, int]
"""A file, and the first and the last line in it."""


def source(typed: TypedProgram) -> File:
    """Return the recipe's own file."""
    return file_of(typed.program.recipe.name_scalar.span)


def file_of(span: Span) -> File:
    """Return where something is written."""
    return File(Path(span.source.name).name, span.source.text)


def elsewhere(model: RolledProgram) -> dict[str, LineRange]:
    """Return the nodes that stand in a recipe which the model's own extends or uses, by their paths without passes."""
    found: dict[str, LineRange] = {}
    for path, node in _nodes(model.program.root, ""):
        name, whole = node.node.name_span, node.node.span
        if (file := file_of(name)) != source(model.program) and file.name.endswith((".yaml", ".yml")):
            last = whole.end_line if whole.source == name.source else name.line
            found.setdefault(path, (file, name.line, max(name.line, last)))
    return found


def files(models: Sequence[RolledProgram]) -> list[File]:
    """Return all files of some models, each once, their own first."""
    own = [source(model.program) for model in models]
    others = [file for model in models for file, _, _ in elsewhere(model).values()]
    return list(dict.fromkeys([*own, *others]))


def _nodes(graph: TypedGraph, path: str) -> Iterator[tuple[str, TypedNode]]:
    for node in graph.nodes:
        yield from _node(node, path + node.name)


def _node(node: TypedNode, path: str) -> Iterator[tuple[str, TypedNode]]:
    yield path, node
    match node:
        case TypedBlock(slots=slots):
            for name, slot in slots.items():
                if slot is not None:
                    yield from _node(slot, f"{path}.{name}")
        case TypedGroup(graph=graph) | TypedScan(graph=graph):
            yield from _nodes(graph, f"{path}.")
        case TypedRepeat(passes=passes):
            for graph in passes:
                yield from _nodes(graph, f"{path}.")
