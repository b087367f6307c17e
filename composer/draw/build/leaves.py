"""One block: as a box, as a mixture of experts from inside, or as what gives nothing that flows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from blocks.core import Look, Mixture
from composer.draw.build.captions import Caption
from composer.draw.build.expert_visits import visited
from composer.draw.build.value_sources import Sources, gathered
from composer.draw.build.wording import counted, shape
from composer.draw.diagram import DiagramEdge, Fan, Leaf, Sink
from composer.draw.style.looks import look
from composer.graph.state_update import SUFFIX
from composer.graph.typed import TypedBlock, TypedNode, is_renewal

MANY, FEW = 6, 4
"""Experts of which all are drawn; of more, all but the middle ones, and one less."""


def leaf(told: Caption, node: TypedBlock, seen: Look, path: str, places: Sequence[str]) -> Leaf:
    """A block as a box."""
    if partner := told.partner(places[0]):
        seen = replace(seen, facts=(*seen.facts, partner))
    stream = node.inputs.get(next(iter(node.part.inputs), "").rstrip("?*"), ())
    came = shape(stream[0] if isinstance(stream, tuple) and stream else stream)
    gives = shape(next(iter(node.outputs.values()), ()))
    about = told.about(node, path, places, (seen.title, seen.detail, seen.mask))
    about = replace(about, description=told.description(node, places))
    after = "" if told.depth.level == "overview" else seen.after
    return Leaf(about, seen, told.counts.shown(places[0]), gives if gives != came else "", after=after)


def sink(
    told: Caption,
    node: TypedBlock,
    seen: Look,
    given: Mapping[str, Sources],
    path: str,
    places: Sequence[str],
    routed: Collection[str],
) -> Sink:
    """What gives nothing that flows on; of a loss, whether it reads one of the mixtures that are `routed`."""
    edges = tuple(DiagramEdge(source, path, port, False) for port, sources in given.items() for source in gathered(sources))
    if is_renewal(node):
        return Sink(None, path, f"{node.name.removesuffix(SUFFIX)} in the next call", edges)
    if edges[0].source.path in routed:
        seen = replace(seen, facts=("from each router" if edges[0].source.chip else "from the router", *seen.facts))
    return Sink(leaf(told, node, seen, path, places), path, node.name, edges)


def fan(told: Caption, node: TypedBlock, mixture: Mixture, path: str, places: Sequence[str]) -> Fan:
    """A mixture of experts with its router, its experts and what all visit."""
    expert, shared = node.slots[mixture.expert], node.slots.get(mixture.shared)
    assert isinstance(expert, TypedBlock)
    seen, count = look(expert), visited(mixture)
    all_experts = told.counts.total([f"{places[0]}.{mixture.expert}"])
    each = [f"{counted(all_experts // mixture.experts)} each"] if all_experts else []
    header = (f"{mixture.experts} × {seen.short or seen.title}", *each, *seen.facts)
    about = told.about(node, path, places, ("Mixture of experts", *header, f"{count} of {mixture.experts} visited"))
    own = told.counts.total(f"{place}.{mixture.expert}" for place in places)
    some = ", for example these" if count < mixture.experts and told.depth.spacious else ""
    return Fan(
        replace(about, parameters=own, description=told.description(node, places)),
        _router(told, node, mixture, path, places),
        seen,
        ("Sparse MoE", *header, f"{count} of {mixture.experts} active{some}"),
        mixture.experts,
        min(count, mixture.experts),
        MANY if told.depth.spacious else FEW,
        _shared(told, shared, f"{path}.{mixture.shared}", [f"{place}.{mixture.shared}" for place in places]) if shared else None,
        tuple(node.node.requested_outputs),
    )


def _router(told: Caption, node: TypedBlock, mixture: Mixture, path: str, places: Sequence[str]) -> Leaf:
    """What chooses the experts."""
    facts = (f"{node.sizes['dim']} → {mixture.experts}", *mixture.facts)
    gates = [f"{place}.{name}" for place in places for name in mixture.maps]
    about = told.about(node, f"{path}.router", places, ("Router", *facts))
    about = replace(about, parameters=told.counts.total(gates))
    return Leaf(about, Look("Router", facts, "moe"), told.counts.shown_of(gates[: len(mixture.maps)]))


def _shared(told: Caption, shared: TypedNode, path: str, places: Sequence[str]) -> Leaf:
    """What every token visits."""
    if isinstance(shared, TypedBlock):
        return leaf(told, shared, look(shared), path, places)
    about = replace(told.about(shared, path, places, ("Shared expert",)), description=told.description(shared, places))
    return Leaf(about, Look("Shared expert", hue="moe"), told.counts.shown(places[0]))
