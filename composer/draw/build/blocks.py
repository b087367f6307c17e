"""One block: as a box, as a mixture of experts or the pieces that it consists of, or as what gives nothing that flows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from blocks.core import Formula, Look, Mixture, Piece, fields, spoken
from blocks.losses.loss import Loss
from composer.cost.active import visited
from composer.cost.units import short
from composer.draw.build.closed_groups import first_output
from composer.draw.build.flow_builder import FlowBuilder
from composer.draw.build.resolution import SAME, resolution_of
from composer.draw.build.texts.captions import Captions, NodePlace
from composer.draw.build.texts.node_names import shown_name
from composer.draw.build.value_sources import NO_PLACES, NodeSources, Sources, ValueSources, merge_by_origin, of_block, sources
from composer.draw.diagram import Leaf, OpenMixture, Sink
from composer.draw.edges import DiagramEdge, DiagramSource, NodeOutput
from composer.draw.paths import lies_in, plain
from composer.draw.style.looks import look
from composer.draw.wording import shape
from composer.graph.state_update import SUFFIX
from composer.graph.typed import TypedBlock, TypedNode, is_renewal

IDENTITY = "{x}"
"""The source of what gives what it reads."""
SPACIOUS_EXPERTS, DENSE_EXPERTS = 6, 4
"""Experts of which all are drawn; of more, all but the middle ones, and one less."""


def add_block(
    captions: Captions,
    node: TypedBlock,
    given: Mapping[str, Sources],
    place: NodePlace,
    out: FlowBuilder,
    routed: set[str],
    places: Mapping[DiagramSource, str] = NO_PLACES,
) -> NodeSources:
    """Add a block as one box, or as a mixture of experts, whose path is then one of those that are `routed`; `places` tell which
    of its values each is where these have an order.
    """
    path, depth = place.path, captions.depth
    seen = look(node, captions.head(path), captions.inputs_of(plain(path)))
    if is_renewal(node) or isinstance(node.part, Loss):
        out.sinks.append(sink(captions, node, seen, given, place, routed))
        return of_block(node, path)
    shown = (depth.level != "overview" and depth.experts) or path in depth.opened
    if shown and (experts := node.part.mixture()) is not None:
        out.items.append(mixture(captions, node, experts, place))
        routed.add(path)
    else:
        out.items.append(leaf(captions, node, seen, place))
    first = next(iter(node.part.inputs), "").rstrip("?*")
    variadic = any(name.endswith("*") for name in node.part.inputs)
    for port, read_there in given.items():
        measured = port in node.part.shape_only_inputs
        if measured and depth.level != "full":
            continue  # its description names it
        main = not measured and (variadic or port == first)
        second = port in node.part.second_stream_inputs
        names = input_names(node, port, read_there) if variadic or not (main or second) else {}
        out.edges += [
            DiagramEdge(
                source,
                path,
                port,
                main,
                shape_only=measured,
                second_stream=second,
                input=names.get(source, ""),
                place=places.get(source, ""),
            )
            for source in read_there
        ]
    return of_block(node, path)


def input_names(node: TypedBlock, port: str, read_there: Sources) -> Mapping[DiagramSource, str]:
    """Return what a block calls the values that it reads at a port: a formula by its names, of one value all that it has; nothing
    for those of a mask, and of what takes any number of values.
    """
    formula = next((one for name in fields(type(node.part)) if isinstance(one := getattr(node.part, name), Formula)), None)
    if formula is not None and len(formula.names) == len(read_there):
        pairs = [*zip(read_there, formula.names, strict=True)]
        return {source: ", ".join(name for one, name in pairs if one == source) for source in read_there}
    declared = {name.rstrip("?") for name in node.part.inputs}
    return dict.fromkeys(read_there, port) if port in declared else {}


def add_pieces(
    captions: Captions,
    node: TypedBlock,
    pieces: Sequence[Piece],
    given: Mapping[str, Sources],
    place: NodePlace,
    out: FlowBuilder,
) -> NodeSources:
    """Add what a block consists of."""
    values = add_each_piece(captions, node, pieces, {f"${port}": ours for port, ours in given.items()}, place, out)
    gives: dict[str, Sources] = {port: values[piece.name] for piece in pieces for port in piece.gives}
    first = next(iter(node.outputs))
    return NodeSources({"": gives[first], **gives})


def add_each_piece(
    captions: Captions,
    node: TypedBlock,
    pieces: Sequence[Piece],
    given: Mapping[str, Sources],
    place: NodePlace,
    out: FlowBuilder,
    owner: NodePlace | None = None,
) -> dict[str, Sources]:
    """Add pieces of a block, given values by what they are read as; return these with those that the pieces give, by name. The
    parameters are those of the `owner`, by default of the place itself.
    """
    owner = owner or place
    values = dict(given)
    for piece in pieces:
        below = place.inner(piece.name).path
        if piece.look.quiet:
            values[piece.name] = values[piece.reads[0][0]]
            out.note_dropout(values[piece.name], piece.look.title.lower())
            continue
        names = tuple(f"{one}.{name}" for one in owner.all for name in piece.parameters)
        own = names[: len(piece.parameters)]
        params = captions.counts.shown_of(own)
        start = captions.start(node, owner.all, piece.parameters) if piece.parameters else ""
        seen = replace(piece.look, facts=(*piece.look.facts, start)) if start else piece.look
        about = captions.about(node, replace(place, path=below, all=names), (seen.title, seen.detail), own)
        named = (owner.inner(name).path for name in piece.parameters)
        covers = tuple(path for path in named if not lies_in(path, below))  # those named after the block alone
        about = replace(about, covers=covers, description=captions.description(node, owner) if piece is pieces[0] else "")
        out.items.append(Leaf(about, seen, params))
        for name, port in piece.reads:
            main = not port or port in piece.stream_ports
            out.edges += [DiagramEdge(source, below, port, main) for source in values.get(name, ())]
        values[piece.name] = (DiagramSource(NodeOutput(below)),)
    return values


def is_identity(node: TypedBlock) -> bool:
    """Return whether a block gives what it reads."""
    alone = not node.parameters and [*node.part.inputs] == ["x"] and len(node.outputs) == 1
    return alone and node.part.inline(node.sizes) == IDENTITY


def operands_of(node: TypedBlock, values: ValueSources) -> Mapping[str, Sources] | None:
    """Return where each value that a formula reads comes from, by its name with a `$`; nothing where a name stands for several
    values, such as those of passes that differ, or two for one, which an operation would seem to read once. None for what is
    no formula.
    """
    formula = getattr(node.part, "formula", None)
    if not isinstance(formula, Formula) or isinstance(node.part, Loss):
        return None
    refs = [ref for wire in node.node.wires for ref in wire.refs]
    found = [sources((ref,), values) for ref in refs]
    single = len({one[0] for one in found if len(one) == 1}) == len(found) == len(formula.names)
    return {f"${name}": one for name, one in zip(formula.names, found, strict=True)} if single else {}


def add_operations(
    captions: Captions,
    node: TypedBlock,
    pieces: Sequence[Piece],
    operands: Mapping[str, Sources],
    place: NodePlace,
    out: FlowBuilder,
) -> NodeSources:
    """Add the operations of a formula; what the last one gives has the shape and the name of the value of the formula."""
    values = add_each_piece(captions, node, pieces, operands, place, out)
    (last,) = values[pieces[-1].name]
    (gives,) = (shape(type_) for type_ in node.outputs.values())
    whole, end = replace(last, shape=gives, called=place.path), out.items[-1]
    assert isinstance(end, Leaf)
    out.items[-1] = replace(end, shape=gives if gives != shape(node.first_input) else "")
    return NodeSources({"": (whole,), **dict.fromkeys(node.outputs, (whole,))})


def leaf(captions: Captions, node: TypedBlock, seen: Look, place: NodePlace) -> Leaf:
    """Return a block as a box."""
    if start := captions.start(node, place.all):
        brief = tuple(f"{form}, {start}" if number == 0 else form for number, form in enumerate(seen.brief))
        seen = replace(seen, facts=(*seen.facts, start), brief=(*brief, *seen.brief[:1]))
    if partner := captions.partner(place.first):
        seen = replace(seen, facts=(*seen.facts, partner))
    stream = node.inputs.get(next(iter(node.part.inputs), "").rstrip("?*"), ())
    came = shape(stream[0] if isinstance(stream, tuple) and stream else stream)
    gives = shape(next(iter(node.outputs.values()), ()))
    about = captions.about(node, place, (seen.title, seen.detail, seen.mask))
    resolution = resolution_of(node, low=seen.low) if gives != came else SAME
    about = replace(about, description=captions.description(node, place)).saying(resolution.said)
    after = "" if captions.depth.level == "overview" else seen.after
    merged = seen.detail if seen.hue == "merge" else ""
    name = "" if captions.depth.level == "overview" else shown_name(node, place, seen.title, merged)
    params = captions.counts.shown(place.first)
    params = "" if params in seen.facts else params  # the shape of a list of numbers tells how many they are
    found = Leaf(about, seen, params, gives if gives != came else "", after=after, name=name)
    return replace(found, gives=first_output(node), places=resolution.places)


def sink(
    captions: Captions,
    node: TypedBlock,
    seen: Look,
    given: Mapping[str, Sources],
    place: NodePlace,
    routed: Collection[str],
) -> Sink:
    """Return what gives nothing that flows on; of a loss, whether it reads one of the mixtures that are `routed`."""
    edges = tuple(
        DiagramEdge(source, place.path, port, False) for port, sources in given.items() for source in merge_by_origin(sources)
    )
    if is_renewal(node):
        return Sink(None, place.path, f"{node.name.removesuffix(SUFFIX)} in the next call", edges)
    if edges[0].source.path in routed:
        seen = replace(seen, facts=("from each router" if edges[0].source.reference else "from the router", *seen.facts))
    elif len(edges) == len(given) and edges[0].source.passes:
        seen = replace(seen, facts=(*seen.facts, f"of {edges[0].source.passes}"))
    name = node.name.removeprefix("losses.")
    seen = replace(seen, title=seen.title.replace(spoken(name), captions.called(name), 1))
    return Sink(leaf(captions, node, seen, place), place.path, node.name, edges)


def mixture(captions: Captions, node: TypedBlock, experts: Mixture, place: NodePlace) -> OpenMixture:
    """Return a mixture of experts with its router, its experts and what all visit."""
    expert, shared = node.slots[experts.expert], node.slots.get(experts.shared)
    assert isinstance(expert, TypedBlock)
    seen, count = look(expert), visited(experts)
    all_experts = captions.counts.total([f"{place.first}.{experts.expert}"])
    each = [f"{short(all_experts // experts.experts)} each"] if all_experts else []
    called = seen.short or seen.title
    facts = [fact for fact in seen.facts if fact not in called.split()]  # `ReLU` of a `ReLU FFN`
    header = (f"{experts.experts} × {called}", *each, *facts)
    about = captions.about(node, place, ("Mixture of experts", *header, f"{count} of {experts.experts} visited"))
    own = captions.counts.total(place.inner(experts.expert).all)
    some = ", for example these" if count < experts.experts and captions.depth.spacious else ""
    return OpenMixture(
        replace(about, parameters=own, description=captions.description(node, place)),
        _router(captions, node, experts, place),
        seen,
        ("Sparse MoE", *header, f"{count} of {experts.experts} active{some}"),
        experts.experts,
        count,
        SPACIOUS_EXPERTS if captions.depth.spacious else DENSE_EXPERTS,
        _shared(captions, shared, place.inner(experts.shared)) if shared else None,
        tuple(node.node.requested_outputs),
        look(node).brief,
    )


def _router(captions: Captions, node: TypedBlock, experts: Mixture, place: NodePlace) -> Leaf:
    """Return what chooses the experts."""
    maps = [name for name in experts.maps if any(each.name.startswith(f"{name}.") for each in node.parameters)]
    facts = (*[f"{node.sizes['dim']} → {experts.experts}"] * bool(maps), *experts.facts)  # it has none where logits are given
    gates = [f"{one}.{name}" for one in place.all for name in maps]
    path = place.inner("router").path
    own = gates[: len(maps)]
    about = captions.about(node, replace(place, path=path, all=tuple(gates)), ("Router", *facts), own)
    return Leaf(about, Look("Router", facts, "moe"), captions.counts.shown_of(own))


def _shared(captions: Captions, shared: TypedNode, place: NodePlace) -> Leaf:
    """Return what every token visits."""
    if isinstance(shared, TypedBlock):
        return leaf(captions, shared, look(shared), place)
    about = replace(captions.about(shared, place, ("Shared expert",)), description=captions.description(shared, place))
    return Leaf(about, Look("Shared expert", hue="moe"), captions.counts.shown(place.first))
