"""What a repeat carries from pass to pass beside its stream, and what else goes through the border of a frame."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from composer.draw.diagram import Flow, Group, Passage
from composer.draw.edges import DiagramEdge, DiagramSource, FrameInput, InnerOutput, NodeOutput, Origin, PassOutput
from composer.draw.passes.heads import output_leaf
from composer.draw.paths import above, lies_in

Opens: TypeAlias = Callable[[Group, Group], bool]
"""Returns whether a frame is drawn so, given it as it is and with its passages."""


def open_passages(flow: Flow, opens: Opens) -> Flow:
    """Return a flow in which all that a repeat carries goes through the border of its frame, in at the bottom and out at the top,
    as its stream does, where the repeat is drawn so: then no wire leads back; and so all that a group or each pass of a repeat
    takes in and gives. What several frames give to each other goes from border to border where all of these are drawn so.
    """
    apart: set[str] = set()
    while True:
        found, given, opened = _opened(flow, opens, apart)
        if given <= opened:
            return found
        apart |= given - opened


def _opened(flow: Flow, opens: Opens, apart: Collection[str]) -> tuple[Flow, set[str], set[str]]:
    """Return a flow with passages; the frames whose values come into others through these, none of which stands `apart`; and all
    that have passages.
    """
    given, opened = set[str](), set[str]()
    for group in [item for item in reversed(flow.items) if isinstance(item, Group)]:
        for by_name in (apart, flow.by_path):
            whole = _Passages(group, flow, by_name)
            found = whole.opened()
            if found is not None and opens(group, found[0]):
                flow = found[1]
                given |= whole.frames
                opened.add(group.about.path)
                break
            if not whole.frames:
                break
    return flow, given, opened


@dataclass(slots=True)
class _Passages:
    """What goes through the border of a repeat or a group, while it is looked for."""

    group: Group
    flow: Flow
    """Around it."""
    by_name: Collection[str]
    """Frames whose values it calls by their names."""
    into: dict[tuple[Origin, Origin | None], Passage] = field(default_factory=dict)
    """By what the first pass is given, and what the one before gives later ones."""
    given: dict[str, list[DiagramEdge]] = field(default_factory=dict)
    """Of each passage, the edges in the frame that read what comes in."""
    frames: set[str] = field(default_factory=set)
    """Of which values come in."""

    def opened(self) -> tuple[Group, Flow] | None:
        """Return the frame with its passages, and the flow around it; none where nothing else comes into it than its stream, or
        where something goes through the border elsewhere.
        """
        group, path = self.group, self.group.about.path
        inner = group.flows[0]
        outlet = inner.outlet
        if len(group.flows) > 1 or outlet is None or outlet.reference or outlet.port or inner.sinks:
            return None
        if not self.read(inner) or not self.into:
            return None
        out = self.read_around(outlet)
        if out is None:
            return None
        into = [replace(one, read=one.made is None or one.made.origin in out) for one in self.into.values()]
        passages = [Passage("", outlet), *into]
        passages.sort(key=self.place)
        leaves = [one.made.origin for one in passages if one.made]
        passages += [Passage(_port(path, origin), DiagramSource(origin), enters=False) for origin in out if origin not in leaves]
        leaves = [one.made.origin for one in passages if one.made]
        if any(origin.port or origin.path not in inner.by_path for origin in leaves):
            return None  # it lies in a frame, or is a second output
        if len({*leaves}) < len(leaves) or len({one.port for one in passages}) < len(passages):
            return None  # one block gives two of them
        entered = replace(group, flows=(self.entered(inner),), passages=tuple(passages))
        return entered, self.around(entered, outlet)

    def read(self, inner: Flow) -> bool:
        """Find what comes in, and what makes it for the next pass; return whether each value that comes in is told apart."""
        path = self.group.about.path
        first: dict[tuple[str, str], list[DiagramEdge]] = {}
        back: dict[tuple[str, str], list[DiagramEdge]] = {}
        for edge in inner.all_edges():
            if edge.back and not edge.source.reference:
                back.setdefault((edge.target, edge.port), []).append(edge)
            elif not lies_in(edge.source.path, path) and self.comes_in(edge.source):
                first.setdefault((edge.target, edge.port), []).append(edge)
        if not back.keys() <= first.keys():
            return False
        for place, edges in first.items():
            before = back.get(place, [])
            if len(edges) > 1 or len(before) > 1 or (edges[0].source.at_first and not before):
                return False
            if before and edges[0].partial and not self.first_apart:
                return False
            made, source = before[0].source if before else None, self.led_out(edges[0].source)
            self.frames |= {source.path} if edges[0].source.reference else set()
            key = (source.origin, made.origin if made else None)
            one = self.into.setdefault(key, Passage(_port(path, made.origin if made else source.origin), made))
            self.given.setdefault(one.port, []).append(edges[0])
        return True

    def comes_in(self, source: DiagramSource) -> bool:
        """Return whether a wire may lead a value in: one leads to it already, or out of the frame beside this one that it is made
        in.
        """
        return not source.reference or self.led_out(source) is not source

    def led_out(self, source: DiagramSource) -> DiagramSource:
        """Return a value that is made in another frame as a wire leads out of that; any other as it is."""
        made = source.origin
        holder = next((item for item in self.flow.items if source.reference and lies_in(source.path, item.about.path)), None)
        if not isinstance(holder, Group) or not isinstance(made, NodeOutput) or holder.about.path in (made.path, *self.by_name):
            return source
        if len(holder.flows) > 1 or not (source.of_last_pass if holder.count else not source.passes):
            return source
        return replace(source, origin=InnerOutput(holder.about.path, source.reference, made, source.passes), reference="")

    @property
    def first_apart(self) -> bool:
        """Return whether passes are of two kinds, of which one is the first pass alone."""
        kinds = self.group.kinds
        return len({*kinds}) == 2 and kinds.count(kinds[0]) == 1

    def place(self, passage: Passage) -> int:
        """Return a key by which passages are in the order of what they come from."""
        paths = list(self.flow.by_path)
        of_port = {port: edges[0].source.path for port, edges in self.given.items()}
        of_port[""] = next((e.source.path for e in self.flow.edges_into(self.group.about.path) if e.main), "")
        source = of_port.get(passage.port, "")
        return next((paths.index(path) for path in above(source) if path in paths), -1)

    def read_around(self, outlet: DiagramSource) -> list[Origin] | None:
        """Return what is made inside and read around the frame; none where that is not of the last pass."""
        path = self.group.about.path
        found: dict[Origin, None] = {}
        for edge in self.flow.all_edges():
            origin = edge.source.origin
            if edge.source.reference or origin.path != path:
                continue
            if isinstance(origin, InnerOutput) and self.is_last(origin.passes):
                found[origin.made] = None
            elif isinstance(origin, InnerOutput | PassOutput):
                return None
        for _, source in self.flow.exits:
            if lies_in(source.path, path) and source.path != path:
                if not isinstance(source.origin, NodeOutput) or not self.is_last(source.passes):
                    return None
                found[source.origin] = None
        if any(lies_in(edge.source.path, path) and edge.source.path != path for sink in self.flow.sinks for edge in sink.edges):
            return None
        return list(found)

    def is_last(self, passes: str) -> bool:
        """Return whether these are the last pass of a repeat; a group has one pass."""
        return passes.startswith("last ") or not (self.group.count or passes)

    def entered(self, inner: Flow) -> Flow:
        """Return what is in the frame, which reads what comes in from the border alone."""
        path = self.group.about.path
        ports = {edge: port for port, edges in self.given.items() for edge in edges}
        carried = {one.port for one in self.into.values() if one.made}

        def from_border(edge: DiagramEdge) -> DiagramEdge:
            port = ports[edge]
            source = DiagramSource(FrameInput(path, port), edge.source.shape)
            return replace(edge, source=source, partial=edge.partial and port not in carried)

        def changed(flow: Flow) -> Flow:
            edges = (
                from_border(edge) if edge in ports else edge
                for edge in flow.edges
                if not edge.back or edge.source.reference or edge.source.path not in inner.by_path
            )
            ordered = sorted(dict.fromkeys(edges), key=lambda edge: edge.source.path != path)  # what is carried leads
            return flow.with_edges(ordered).map_groups(changed)

        return changed(inner)

    def around(self, group: Group, outlet: DiagramSource) -> Flow:
        """Return the flow around the frame, with the edges of all that comes in, and boxes for the outputs of the model."""
        path = group.about.path
        edges: list[DiagramEdge] = []
        for edge in self.flow.edges:
            origin = edge.source.origin
            if isinstance(origin, InnerOutput) and origin.path == path and origin.made == outlet.origin:
                edge = edge.reading(replace(edge.source, origin=NodeOutput(path)))
            edges.append(edge)
        for port, several in self.given.items():
            source = replace(self.led_out(several[0].source), at_first=False)
            main = any(edge.main for edge in several)
            second = not main and any(edge.second_stream for edge in several)
            edges.append(DiagramEdge(source, path, port, main, second_stream=second, passage=port))
        flow = self.flow.with_items(group if item.about.path == path else item for item in self.flow.items).with_edges(edges)
        for name, source in flow.exits:
            if lies_in(source.path, path) and source.path != path and isinstance(source.origin, NodeOutput):
                end = output_leaf(name, source)
                whole = source.origin == outlet.origin
                inner = InnerOutput(path, source.reference, source.origin, source.passes)
                edge = DiagramEdge(
                    replace(source, origin=NodeOutput(path) if whole else inner, reference=""), end.about.path, "", True
                )
                flow = flow.with_items((*flow.items, end)).with_edges((*flow.edges, edge))
                flow = flow.with_exits(one for one in flow.exits if one != (name, source))
        return flow


def _port(path: str, origin: Origin) -> str:
    """Return what a value is called at the border of a frame: what makes it there, or else outside."""
    own = f"{origin.path}.{origin.port}" if origin.port else origin.path
    return own.removeprefix(f"{path}.")
