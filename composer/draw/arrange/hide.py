"""Nodes left out of a diagram: what reads one reads what it reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from composer.draw.about import About
from composer.draw.arrange.arrangement import Unarrangeable, held_parameters
from composer.draw.diagram import Flow, Group, Item
from composer.draw.edges import DiagramEdge, DiagramSource, NodeOutput, Origin
from composer.draw.paths import belongs

OPTION = "hide"


@dataclass(frozen=True, slots=True)
class Hidden:
    """A node that is not drawn."""

    about: About
    parameters: int
    """Of it and of all that is in it."""


def hide_nodes(flow: Flow, paths: Collection[str]) -> tuple[Flow, tuple[Hidden, ...]]:
    """Return a diagram without the nodes at some paths and without all that is in them, and what is gone.

    Raises:
        Unarrangeable: if nothing would be left of a frame or of the model, or what a hidden node gives has nowhere else to come
            from.
    """
    gone: dict[str, Hidden] = {}
    return _hidden(flow, paths, gone), tuple(gone.values())


def hide_inputs(flow: Flow, names: Collection[str], given: Collection[str] = ()) -> Flow:
    """Return a diagram in which inputs of the model are not named; those that are `given` by their names in an option must not be
    what a block reads first.

    Raises:
        Unarrangeable: if one of these is.
    """

    def kept(edges: tuple[DiagramEdge, ...]) -> Iterator[DiagramEdge]:
        for edge in edges:
            if not (edge.source.is_model_input and edge.source.path in names):
                yield edge
            elif edge.main and not edge.source.reference:
                if edge.source.path in given:
                    hint = "hide what reads it, or give it a label"
                    raise Unarrangeable(
                        OPTION, edge.source.path, f"`{edge.target}` computes from `{edge.source.path}` alone", hint
                    )
                yield edge

    flow = flow.with_edges(kept(flow.edges))
    sinks = (replace(sink, edges=tuple(kept(sink.edges)) or sink.edges) for sink in flow.sinks)
    return flow.map_groups(lambda inner: hide_inputs(inner, names, given)).with_sinks(sinks)


def _hidden(flow: Flow, paths: Collection[str], gone: dict[str, Hidden]) -> Flow:
    here = [item for item in flow.items if belongs(item.about.path, paths)]
    joins = _Joins(flow, {item.about.path: item for item in here})
    for item in here:
        before = gone.get(item.about.path)
        more = before.parameters if before else 0  # of other passes of the same node
        gone[item.about.path] = Hidden(item.about, more + held_parameters(item))
    left = [item for item in flow.items if not belongs(item.about.path, paths)]
    if here and not left:
        where = f"`{flow.owner}`" if flow.owner else "the model"
        hint = f"hide {where} itself" if flow.owner else "hide fewer nodes"
        raise Unarrangeable(OPTION, _entry(here[0].about.path, paths), f"nothing would be left in {where}", hint)
    flow = joins.joined(flow.with_items(left)).map_groups(lambda inner: _hidden(inner, paths, gone))
    return flow.with_sinks(sink for sink in flow.sinks if not belongs(sink.path, paths))


def _entry(path: str, paths: Collection[str]) -> str:
    """Return which entry of an option hides a node."""
    return next(one for one in paths if belongs(path, {one}))


@dataclass(frozen=True, slots=True)
class _Joins:
    """What stands in place of wires from hidden items of a flow."""

    flow: Flow
    items: Mapping[str, Item]

    def joined(self, rest: Flow) -> Flow:
        """Return the rest of the flow with its wires joined through what is gone."""
        if not self.items:
            return rest
        edges = [edge for edge in rest.edges if edge.target not in self.items]
        rest = self.edges_joined(rest.with_edges(edges))
        rest = rest.with_sinks(replace(sink, edges=tuple(self.into_sink(sink.edges)) or sink.edges) for sink in rest.sinks)
        outlet = rest.outlet and self.single(rest.outlet, "what stands above")
        exits = [(name, self.single(source, f"the output `{name}`")) for name, source in rest.exits]
        return replace(rest, outlet=outlet, exits=tuple(exits))

    def edges_joined(self, flow: Flow) -> Flow:
        """Return a flow, and what it holds, with its wires joined."""
        return flow.with_edges(self.through(flow.edges)).map_groups(self.edges_joined)

    def through(self, edges: tuple[DiagramEdge, ...]) -> list[DiagramEdge]:
        """Return edges from what is drawn, each value once for each port."""
        found: dict[tuple[Origin, str, str, str], DiagramEdge] = {}
        for edge in edges:
            for one in self.replaced(edge):
                found.setdefault((one.source.origin, one.target, one.port, one.source.reference), one)
        return list(found.values())

    def into_sink(self, edges: tuple[DiagramEdge, ...]) -> list[DiagramEdge]:
        """Return the edges of a loss, which is not said to compare a value with itself where its target is hidden."""
        own = {edge.source.origin for edge in edges if not self.hides(edge.source)}
        return [
            one for edge in edges for one in self.through((edge,)) if not self.hides(edge.source) or one.source.origin not in own
        ]

    def replaced(self, edge: DiagramEdge) -> list[DiagramEdge]:
        """Return an edge, or those that stand in its place."""
        if not self.hides(edge.source):
            return [edge]
        before = self.before(edge.source.path, frozenset())
        mains = [one for one in before if one.main]
        return [
            replace(
                edge,
                source=one.source.by_name(one.source.own_name) if edge.source.reference else one.source,
                main=edge.main and (one.main or not mains),
                back=edge.back or one.back,
                partial=edge.partial or one.partial,
            )
            for one in before
        ]

    def hides(self, source: DiagramSource) -> bool:
        """Return whether what makes a value is gone."""
        return isinstance(source.origin, NodeOutput) and belongs(source.path, self.items.keys())

    def before(self, path: str, seen: frozenset[str]) -> list[DiagramEdge]:
        """Return what flows into a hidden item from what is drawn; inputs that only say more, such as positions, are gone too."""
        path = next(one for one in self.items if belongs(path, {one}))
        item = self.items[path]
        inner = [e for flow in item.flows for e in flow.all_edges()] if isinstance(item, Group) else []
        over = [e for e in inner if not belongs(e.source.path, {path})]
        found: list[DiagramEdge] = []
        for edge in (*self.flow.edges_into(path), *over):
            flows = edge.main or edge.second_stream or not edge.source.is_model_input
            if not flows or edge.shape_only:
                continue
            if not self.hides(edge.source):
                found.append(edge)
            elif path not in seen:
                found += self.before(edge.source.path, seen | {path})
        return found

    def single(self, source: DiagramSource, reader: str) -> DiagramSource:
        """Return the one value that stands in place of another, whose shape is still told where it arrives."""
        if not self.hides(source):
            return source
        before = self.before(source.path, frozenset())
        streams = [edge for edge in before if edge.main] or before
        origins = dict.fromkeys(edge.source.origin for edge in streams)
        if len(origins) != 1:
            hint = "hide more or less than that"
            several = "several values" if origins else "no value"
            raise Unarrangeable(OPTION, source.path, f"without `{source.path}`, {reader} would read {several}", hint)
        return replace(streams[0].source, shape=source.shape)
