"""The files in which a model is written, and where in them its nodes are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from composer.diagnostics import Span
from composer.draw.paths import plain
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.typed import TypedProgram
from composer.graph.visit import every_node, every_pass, walk
from composer.printable import printable


@dataclass(frozen=True, slots=True)
class File:
    """A file, whoever read it."""

    name: str
    text: str


LineRange: TypeAlias = tuple[File, int, int]
"""A file, and the first and the last line in it."""


def source(typed: TypedProgram) -> File:
    """Return the recipe's own file."""
    return file_of(typed.untyped.recipe.name_scalar.span)


def file_of(span: Span) -> File:
    """Return where something is written."""
    return File(printable(Path(span.source.name).name), span.source.text)


def elsewhere(model: RolledProgram) -> dict[str, LineRange]:
    """Return the nodes that stand in a recipe which the model's own extends or uses, by their paths without passes."""
    found: dict[str, LineRange] = {}
    for visit in walk(model.program.root, every_pass, every_node):
        name, whole = visit.node.node.name_span, visit.node.node.span
        if (file := file_of(name)) != source(model.program) and file.name.endswith((".yaml", ".yml")):
            last = whole.end_line if whole.source == name.source else name.line
            found.setdefault(plain(visit.path), (file, name.line, max(name.line, last)))
    return found


def files(models: Sequence[RolledProgram]) -> list[File]:
    """Return all files of some models, each once, their own first."""
    own = [source(model.program) for model in models]
    others = [file for model in models for file, _, _ in elsewhere(model).values()]
    return list(dict.fromkeys([*own, *others]))
