"""What is read of an item beside what goes on upwards: outputs of the model, second outputs, losses and states."""

from __future__ import annotations

from collections.abc import Collection
from operator import attrgetter

from composer.draw.diagram import DiagramSource, Flow, Group, Item, NodeOutput, Origin, Sink
from composer.draw.layout.outgoing_edges import OutgoingEdge, Output, Tap
from composer.draw.paths import lies_in

path_and_port = attrgetter("path", "port")


def at_side(flow: Flow, item: Item, sent: Collection[Origin]) -> list[OutgoingEdge]:
    """What leaves at an item's side, of it or of what lies in it; some of it is `sent` to other columns."""
    path = item.about.path
    names = [
        Output(source.origin, name, source.port or source.reference)
        for name, source in outputs(flow, item)
        if not is_first(source, path)
    ]
    read = [*(e.source for e in flow.edges), *([flow.outlet] if flow.outlet else [])]
    ports = {one.port for one in read if one.path == path and one.port and not one.reference}
    further = {origin.port for origin in sent if origin.path == path and origin.port} - ports
    inner = () if isinstance(item, Group) else sorted((o for o in sent if o.path.startswith(f"{path}.")), key=path_and_port)
    return [
        *names,
        *(Tap(NodeOutput(path, port)) for port in sorted(ports)),
        *(Tap(NodeOutput(path, port), said=not flow.owner) for port in sorted(further)),
        *(Tap(origin, said=False) for origin in inner),
        *(sink for sink in sinks(flow, item) if not is_first(sink.edges[0].source, path)),
    ]


def above(flow: Flow, item: Item) -> tuple[list[str], list[Sink]]:
    """The outputs of the model, by name, and the losses and states that are what an item gives first: these leave above it."""
    path = item.about.path
    names = [name for name, source in outputs(flow, item) if is_first(source, path)]
    return names, [sink for sink in sinks(flow, item) if is_first(sink.edges[0].source, path)]


def through(flow: Flow, group: Group, sent: Collection[Origin]) -> frozenset[Origin]:
    """Second outputs of blocks in a frame that are read outside of it by a wire."""
    read = [source.origin for _, source in flow.exits] + [sink.origin for sink in flow.sinks]
    return frozenset(one for one in (*sent, *read) if one.port and one.path.startswith(f"{group.about.path}."))


def outputs(flow: Flow, item: Item) -> list[tuple[str, DiagramSource]]:
    """Outputs of the model that an item gives, but for what goes on upwards."""
    return [(name, source) for name, source in flow.exits if lies_in(source.path, item.about.path)]


def sinks(flow: Flow, item: Item) -> list[Sink]:
    """What reads an item, or what lies in it, and gives nothing."""
    return [sink for sink in flow.sinks if lies_in(sink.edges[0].source.path, item.about.path)]


def is_first(source: DiagramSource, path: str) -> bool:
    """Whether a value is what an item gives first."""
    return source.path == path and not source.port and not source.reference
