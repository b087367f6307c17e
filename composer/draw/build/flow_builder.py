"""A flow while it is read from a graph."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from composer.draw.build.value_sources import Sources
from composer.draw.diagram import Branches, IrregularSubgraph, Item, Sink, output_of
from composer.draw.edges import DiagramEdge


@dataclass(slots=True)
class FlowBuilder:
    """A graph on its way to become a flow."""

    items: list[Item] = field(default_factory=list)
    edges: list[DiagramEdge] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)

    def note_dropout(self, read: Sources, said: str) -> bool:
        """Say above an item what happens to what it gives, if that is what is read; return whether it is."""
        for index, item in enumerate(self.items):
            same = [(output_of(item), "")] == [(one.origin, one.reference) for one in read]
            if same and not isinstance(item, Branches | IrregularSubgraph):
                self.items[index] = replace(item, after=f"{item.after}, {said}" if item.after else said)
                return True
        return False
