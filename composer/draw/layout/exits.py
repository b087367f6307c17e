"""What is read of an item beside what goes on upwards: outputs of the model, second outputs, losses and states."""

from __future__ import annotations

from collections.abc import Collection

from composer.draw.build.node_paths import lies_in
from composer.draw.diagram import DiagramSource, Flow, Group, Item, Net, Sink
from composer.draw.layout.outgoing_edges import OutgoingEdges, Output, Tap


def at_side(flow: Flow, item: Item, sent: Collection[Net]) -> list[OutgoingEdges]:
    """What leaves at an item's side, of it or of what lies in it; some of it is `sent` to other columns."""
    path = item.about.path
    names = [
        Output((source.path, source.port or source.chip), name)
        for name, source in outputs(flow, item)
        if not is_first(source, path)
    ]
    read = [*(e.source for e in flow.edges), *([flow.outlet] if flow.outlet else [])]
    ports = {one.port for one in read if one.path == path and one.port and not one.chip}
    further = {port for sender, port in sent if sender == path and port} - ports
    inner = () if isinstance(item, Group) else sorted(net for net in sent if net[0].startswith(f"{path}."))
    return [
        *names,
        *(Tap((path, port)) for port in sorted(ports)),
        *(Tap((path, port), said=not flow.owner) for port in sorted(further)),
        *(Tap(net, said=False) for net in inner),
        *(sink for sink in sinks(flow, item) if not is_first(sink.edges[0].source, path)),
    ]


def above(flow: Flow, item: Item) -> tuple[list[str], list[Sink]]:
    """The outputs of the model, by name, and the losses and states that are what an item gives first: these leave above it."""
    path = item.about.path
    names = [name for name, source in outputs(flow, item) if is_first(source, path)]
    return names, [sink for sink in sinks(flow, item) if is_first(sink.edges[0].source, path)]


def through(flow: Flow, group: Group, sent: Collection[Net]) -> frozenset[Net]:
    """Second outputs of blocks in a frame that are read outside of it by a wire."""
    read = [source.net for _, source in flow.exits] + [sink.net for sink in flow.sinks]
    return frozenset(net for net in (*sent, *read) if net[1] and net[0].startswith(f"{group.about.path}."))


def outputs(flow: Flow, item: Item) -> list[tuple[str, DiagramSource]]:
    """Outputs of the model that an item gives, but for what goes on upwards."""
    return [(name, source) for name, source in flow.exits if lies_in(source.path, item.about.path)]


def sinks(flow: Flow, item: Item) -> list[Sink]:
    """What reads an item, or what lies in it, and gives nothing."""
    return [sink for sink in flow.sinks if lies_in(sink.edges[0].source.path, item.about.path)]


def is_first(source: DiagramSource, path: str) -> bool:
    """Whether a value is what an item gives first."""
    return source.path == path and not source.port and not source.chip
