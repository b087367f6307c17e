"""What is made inside of a frame and read beside it: a second output, or a value of some passes, from which a wire leads out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from composer.draw.diagram import Flow, Group, Item, Leaf
from composer.draw.edges import DiagramEdge, DiagramSource, InnerOutput, NodeOutput
from composer.draw.passes.layer_exits import PASS
from composer.draw.paths import lies_in

MAX_LED = 8
"""Values that wires lead out of a frame, each in a lane of its own: of more, there is no room beside it."""


def lead_out_of_frames(flow: Flow) -> Flow:
    """Return a flow in which wires lead out of frames from what makes a value there, in its frames too, instead of its name.

    Before: a(x) b(a) c(@b.inner)
    After:  a(x) b(a) c(b.inner)
    """
    items = flow.by_path
    names: dict[DiagramEdge, Item] = {}
    for edge in flow.edges:
        holder = _holder(edge, items)
        if holder is not None:
            names[edge] = holder
    per_name = Counter((edge.source.reference, edge.target, edge.port) for edge in names)
    led = {edge: _inner(edge.source, item) for edge, item in names.items()}
    of_frame: dict[str, set[InnerOutput]] = {}
    for origin in led.values():
        of_frame.setdefault(origin.path, set()).add(origin)
    crowded = {path for path, found in of_frame.items() if len(found) > MAX_LED or len({one.made for one in found}) < len(found)}

    def wired(edge: DiagramEdge) -> DiagramEdge:
        one = led.get(edge)
        if one is None or one.path in crowded or per_name[edge.source.reference, edge.target, edge.port] > 1:
            return edge
        return edge.reading(replace(edge.source, origin=one, reference=""))

    return flow.map_edges(wired).map_groups(lead_out_of_frames)


def _holder(edge: DiagramEdge, items: Mapping[str, Item]) -> Item | None:
    """Return the frame or the closed box that a value is made in, where a wire may lead from there to its reader."""
    source = edge.source
    if not source.reference or edge.partial or edge.back or not edge.main or edge.target not in items:
        return None
    if not isinstance(source.origin, NodeOutput) or PASS.fullmatch(source.reference):
        return None
    found = next((item for path, item in items.items() if lies_in(source.path, path)), None)
    if found is None or found.about.path in (source.path, edge.target):
        return None
    if not isinstance(found, Group | Leaf) or (isinstance(found, Group) and len(found.flows) > 1):
        return None
    return found


def _inner(source: DiagramSource, item: Item) -> InnerOutput:
    assert isinstance(source.origin, NodeOutput)
    return InnerOutput(item.about.path, source.reference, source.origin, source.passes)
