"""One block: as a box, as a mixture of experts from inside, or as what gives nothing that flows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from blocks.core import Look, Mixture
from composer.draw.build.captions import Captions, NodePlace
from composer.draw.build.expert_visits import visited
from composer.draw.build.value_sources import Sources, gathered
from composer.draw.diagram import Leaf, OpenMixture, Sink
from composer.draw.edges import DiagramEdge
from composer.draw.style.looks import look
from composer.draw.wording import counted, shape
from composer.graph.state_update import SUFFIX
from composer.graph.typed import TypedBlock, TypedNode, is_renewal

SPACIOUS_EXPERTS, DENSE_EXPERTS = 6, 4
"""Experts of which all are drawn; of more, all but the middle ones, and one less."""


def leaf(captions: Captions, node: TypedBlock, seen: Look, place: NodePlace) -> Leaf:
    """Return a block as a box."""
    if partner := captions.partner(place.first):
        seen = replace(seen, facts=(*seen.facts, partner))
    stream = node.inputs.get(next(iter(node.part.inputs), "").rstrip("?*"), ())
    came = shape(stream[0] if isinstance(stream, tuple) and stream else stream)
    gives = shape(next(iter(node.outputs.values()), ()))
    about = captions.about(node, place, (seen.title, seen.detail, seen.mask))
    about = replace(about, description=captions.description(node, place))
    after = "" if captions.depth.level == "overview" else seen.after
    return Leaf(about, seen, captions.counts.shown(place.first), gives if gives != came else "", after=after)


def sink(
    captions: Captions,
    node: TypedBlock,
    seen: Look,
    given: Mapping[str, Sources],
    place: NodePlace,
    routed: Collection[str],
) -> Sink:
    """Return what gives nothing that flows on; of a loss, whether it reads one of the mixtures that are `routed`."""
    edges = tuple(DiagramEdge(source, place.path, port, False) for port, sources in given.items() for source in gathered(sources))
    if is_renewal(node):
        return Sink(None, place.path, f"{node.name.removesuffix(SUFFIX)} in the next call", edges)
    if edges[0].source.path in routed:
        seen = replace(seen, facts=("from each router" if edges[0].source.reference else "from the router", *seen.facts))
    return Sink(leaf(captions, node, seen, place), place.path, node.name, edges)


def mixture(captions: Captions, node: TypedBlock, experts: Mixture, place: NodePlace) -> OpenMixture:
    """Return a mixture of experts with its router, its experts and what all visit."""
    expert, shared = node.slots[experts.expert], node.slots.get(experts.shared)
    assert isinstance(expert, TypedBlock)
    seen, count = look(expert), visited(experts)
    all_experts = captions.counts.total([f"{place.first}.{experts.expert}"])
    each = [f"{counted(all_experts // experts.experts)} each"] if all_experts else []
    header = (f"{experts.experts} × {seen.short or seen.title}", *each, *seen.facts)
    about = captions.about(node, place, ("Mixture of experts", *header, f"{count} of {experts.experts} visited"))
    own = captions.counts.total(place.inner(experts.expert).all)
    some = ", for example these" if count < experts.experts and captions.depth.spacious else ""
    return OpenMixture(
        replace(about, parameters=own, description=captions.description(node, place)),
        _router(captions, node, experts, place),
        seen,
        ("Sparse MoE", *header, f"{count} of {experts.experts} active{some}"),
        experts.experts,
        min(count, experts.experts),
        SPACIOUS_EXPERTS if captions.depth.spacious else DENSE_EXPERTS,
        _shared(captions, shared, place.inner(experts.shared)) if shared else None,
        tuple(node.node.requested_outputs),
    )


def _router(captions: Captions, node: TypedBlock, experts: Mixture, place: NodePlace) -> Leaf:
    """Return what chooses the experts."""
    facts = (f"{node.sizes['dim']} → {experts.experts}", *experts.facts)
    gates = [f"{one}.{name}" for one in place.all for name in experts.maps]
    about = captions.about(node, replace(place, path=place.inner("router").path), ("Router", *facts))
    about = replace(about, parameters=captions.counts.total(gates))
    return Leaf(about, Look("Router", facts, "moe"), captions.counts.shown_of(gates[: len(experts.maps)]))


def _shared(captions: Captions, shared: TypedNode, place: NodePlace) -> Leaf:
    """Return what every token visits."""
    if isinstance(shared, TypedBlock):
        return leaf(captions, shared, look(shared), place)
    about = replace(captions.about(shared, place, ("Shared expert",)), description=captions.description(shared, place))
    return Leaf(about, Look("Shared expert", hue="moe"), captions.counts.shown(place.first))
