"""Where a graph is written: all that its equality leaves out, so that equal graphs in two places can be told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

from composer.graph.ir import Graph
from composer.memo import Memo

PLAIN = frozenset({"str", "int", "bool", "int | None", "Graph", "Span", "Span | None", "type[Part]", "type[Part] | None"})
"""Annotations of fields whose values have no fields that a comparison leaves out."""
Reader: TypeAlias = "Callable[[Any], Any] | None"
"""What gives some fields of an object; None where it has no such fields."""


class WrittenPlaces:
    """Collects what a comparison of graphs leaves out: every field with `compare=False`, at any depth. These are the spans,
    and what follows from the text that stands there.
    """

    def __init__(self) -> None:
        self.readers: Memo[type, tuple[Reader, Reader]] = Memo()
        self.known: Memo[Graph, tuple[Any, ...]] = Memo()

    def of(self, graph: Graph) -> tuple[Any, ...]:
        """Return all that a comparison of a graph's nodes leaves out, in order; a graph inside of them stands for itself."""
        return self.known.get(graph, lambda: self._of(graph))

    def _of(self, graph: Graph) -> tuple[Any, ...]:
        found: list[Any] = []
        self._collect((graph.inputs, graph.nodes), found)
        return tuple(found)

    def _collect(self, things: Iterable[Any], found: list[Any]) -> None:
        for thing in things:
            kind = type(thing)
            if kind is tuple:
                self._collect(thing, found)
                continue
            left_out, compared = self.readers.get(kind, partial(_readers, kind))
            if left_out is not None:
                found.append(left_out(thing))
            if compared is not None:
                self._collect(compared(thing), found)


def _readers(kind: type) -> tuple[Reader, Reader]:
    """Return what gives the fields of a class that a comparison leaves out, and those of which it may leave out a part."""
    if not is_dataclass(kind) or kind.__eq__ is object.__eq__:  # identity leaves nothing out
        return None, None
    left_out = [field.name for field in fields(kind) if not field.compare]
    compared = [field.name for field in fields(kind) if field.compare and field.type not in PLAIN]
    each = attrgetter(*compared) if compared else None
    return attrgetter(*left_out) if left_out else None, (lambda thing: (each(thing),)) if each and len(compared) == 1 else each
