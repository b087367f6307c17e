"""Heads that read a layer in the middle of a model: columns beside it, to which wires lead from the map of layers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from composer.draw.diagram import Flow, Leaf
from composer.draw.edges import DiagramEdge, DiagramSource, InnerOutput, PassOutput

PASS = re.compile(r"(\w+)\((\d+)\)")
"""A pass of a repeat, as it is called."""
MAX_EXITS = 3
"""Heads beside a model that wires lead to: of more, there is no room."""


def lead_out_of_layers(columns: Sequence[Flow]) -> list[Flow]:
    """Return the columns, those to the right that read a pass of a repeat in another one, of which a wire leads there; outputs of
    the model that a pass gives leave the repeat there.

    Before: c(@b.1) / a(x) b(a)
    After:  a(x) b(a) / c(b.1)
    """
    columns = [_with_outputs(column) for column in columns]
    homes = {path: number for number, column in enumerate(columns) for path in column.by_path}
    led = [_with_wires(column, {path for path, home in homes.items() if home != number}) for number, column in enumerate(columns)]
    heads = [number for number, column in enumerate(columns) if led[number] != column or _reads_inside(column, columns)]
    if not 0 < len(heads) <= MAX_EXITS or len(heads) == len(columns):
        return list(columns)
    rest = [column for number, column in enumerate(columns) if number not in heads]
    return [*rest, *sorted((led[number] for number in heads), key=_lowest)]


def _with_outputs(column: Flow) -> Flow:
    """Return a column whose outputs come from passes where these give them."""
    return column.with_exits(
        (name, of_pass(source) if source.reference.partition("(")[0] in column.by_path else source)
        for name, source in column.exits
    )


def of_pass(source: DiagramSource) -> DiagramSource:
    """Return a value that is called by the name of a pass as what a wire leads from."""
    name = PASS.fullmatch(source.reference)
    return source if name is None else replace(source, origin=PassOutput(name[1], name[0], int(name[2])), reference="")


def _lowest(column: Flow) -> int:
    """Return the first pass that a column reads."""
    return min((e.source.origin.index for e in column.edges if isinstance(e.source.origin, PassOutput)), default=0)


def _reads_inside(column: Flow, columns: Sequence[Flow]) -> bool:
    """Return whether a column without inputs of its own reads a value from inside of a frame in another one."""
    own = any(isinstance(item, Leaf) and item.model_input for item in column.items)
    return not own and any(isinstance(e.source.origin, InnerOutput) and e.source.path not in column.by_path for e in column.edges)


def _with_wires(column: Flow, others: set[str]) -> Flow:
    """Return a column in which wires lead to passes of repeats in other columns."""

    def led(edge: DiagramEdge) -> DiagramEdge:
        name = PASS.fullmatch(edge.source.reference)
        if not name or name[1] not in others or edge.partial or not edge.main:
            return edge
        return edge.reading(of_pass(edge.source))

    return column.map_edges(led)
