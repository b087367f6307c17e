"""What is made inside of a frame and read beside it: a second output, or a value of some passes, from which a wire leads out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from composer.draw.diagram import Flow, Group, Item, Leaf
from composer.draw.edges import DiagramEdge, DiagramSource, InnerOutput, NodeOutput, Origin, joined_inputs, joined_places
from composer.draw.passes.layer_exits import PASS
from composer.draw.passes.order import inner_edges
from composer.draw.paths import lies_in
from composer.draw.wording import passes_in_words

MAX_LED = 8
"""Values that wires lead out of a frame, each in a lane of its own: of more, there is no room beside it."""
OF_PASSES = re.compile(r"\w+\(\d+\)(\.\w+(\(\d+\))?)*")
"""What a pass of a repeat gives, as it is called: `layers(3).skip`."""
NUMBER = re.compile(r"\((\d+)\)")
MAX_LETTERS = 36
"""Of what several values are called together; more of them stand beside each other in no box's way."""


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
    above = _read_above(flow, led)
    alone = _read_alone(flow, led) | above
    of_frame: dict[str, set[InnerOutput]] = {}
    for origin in led.values():
        of_frame.setdefault(origin.path, set()).add(origin)
    crowded = {path for path, found in of_frame.items() if len(found) > MAX_LED or len({one.made for one in found}) < len(found)}

    def wired(edge: DiagramEdge) -> DiagramEdge:
        one = led.get(edge)
        if one in alone:
            return edge.reading(replace(edge.source, origin=NodeOutput(one.path), reference="", passes=""))
        if one is None or one.path in crowded or per_name[edge.source.reference, edge.target, edge.port] > 1:
            return edge
        return edge.reading(replace(edge.source, origin=one, reference=""))

    flow = flow.map_edges(wired).map_groups(lead_out_of_frames)
    out = {one.path: one for one in above}
    return flow.map_items(lambda item: _led_up(item, out[item.about.path]) if item.about.path in out else item)


def _led_up(item: Item, given: InnerOutput) -> Item:
    """Return a frame of whose passes something is read above it, which is said there."""
    assert isinstance(item, Group)
    return replace(item.map_flows(lambda inner: replace(inner, outlet=DiagramSource(given.made))), shape="", after=given.passes)


def _holder(edge: DiagramEdge, items: Mapping[str, Item]) -> Item | None:
    """Return the frame or the closed box that a value is made in, where a wire may lead from there to its reader."""
    source = edge.source
    if not source.reference or edge.partial or edge.back or edge.target not in items:
        return None
    if not isinstance(source.origin, NodeOutput) or PASS.fullmatch(source.reference):
        return None
    found = _item_of(source.path, items)
    if found is None or found.about.path in (source.path, edge.target):
        return None
    if source.passes and not edge.main and not (isinstance(found, Leaf) and source.of_last_pass):
        return None
    if not isinstance(found, Group | Leaf) or (isinstance(found, Group) and len(found.flows) > 1):
        return None
    return found


def _inner(source: DiagramSource, item: Item) -> InnerOutput:
    assert isinstance(source.origin, NodeOutput)
    last = isinstance(item, Leaf) and source.of_last_pass  # what leaves a box is what the last pass gives
    return InnerOutput(item.about.path, source.reference, source.origin, "" if last else source.passes)


def _read_alone(flow: Flow, led: Mapping[DiagramEdge, InnerOutput]) -> set[InnerOutput]:
    """Return what is all that is read of the last pass of a closed repeat: as its output, it goes on above the box."""
    of_box: dict[str, set[Origin]] = {path: set() for path, item in flow.by_path.items() if isinstance(item, Leaf)}
    for edge in flow.all_edges():
        origin = led.get(edge, edge.source.origin)
        if origin.path in of_box and not (edge.source.reference and edge not in led):
            of_box[origin.path].add(origin)
    of_exits = {source.path for _, source in flow.exits}
    last = {origin for edge, origin in led.items() if edge.source.of_last_pass and origin.path not in of_exits}
    return {origin for origin in last if of_box.get(origin.path) == {origin}}


def _read_above(flow: Flow, led: Mapping[DiagramEdge, InnerOutput]) -> set[InnerOutput]:
    """Return what is all that is read of parallel passes: it goes on above their frame, as nothing else does."""
    found: set[InnerOutput] = set()
    ends = [source.path for _, source in flow.exits] + [edge.source.path for sink in flow.sinks for edge in sink.edges]
    for path, item in flow.by_path.items():
        given = {origin for origin in led.values() if origin.path == path}
        if not (isinstance(item, Group) and item.parallel and len(given) == 1) or item.after:
            continue
        (inner,) = item.flows
        others = [edge.source.path for one in flow.items if one is not item for edge in inner_edges(one)]
        others += [edge.source.path for edge in flow.edges if edge not in led]
        if inner.outlet is None and not inner.sinks and not any(lies_in(one, path) for one in (*ends, *others)):
            found |= given
    return found


# -- values of several passes


def join_passes(flow: Flow) -> Flow:
    """Return a flow in which what several passes of a repeat give to one block is one value, in its frames too: a wire leads from
    the repeat if that is beside the block, and else it has one name.

    Before: a(x) b(a) c(a @b.0 @b.1)
    After:  a(x) b(a) c(a b)
    """
    items = flow.by_path
    several: dict[tuple[str, str, Origin | None], list[DiagramEdge]] = {}
    for edge in flow.edges:
        source = edge.source
        name = source.reference or source.port
        if OF_PASSES.fullmatch(name) and not (edge.partial or edge.back or source.at_first):
            closed = isinstance(_item_of(source.path, items), Leaf)
            maker = None if closed and source.reference else source.origin  # of a closed repeat, all are its own
            maker = NodeOutput(source.path) if closed and not source.reference else maker
            several.setdefault((edge.target, name.partition("(")[0], maker), []).append(edge)
    joined: dict[DiagramEdge, DiagramEdge | None] = {}
    for edges in several.values():
        names = dict.fromkeys(edge.source.reference or edge.source.port for edge in edges)
        if len(names) > 1 and not _apart(edges, items):
            joined |= dict.fromkeys(edges)
            joined[edges[0]] = _together(edges, range_of_names(names), items)
    kept = (joined.get(edge, edge) for edge in flow.edges)
    return flow.with_edges(edge for edge in kept if edge is not None).map_groups(join_passes)


def _apart(edges: Sequence[DiagramEdge], items: Mapping[str, Item]) -> bool:
    """Return whether values are several outputs of a closed repeat: each leaves it by itself."""
    if len(edges) > MAX_LED or not all(edge.source.of_last_pass for edge in edges):
        return False
    return all(isinstance(_item_of(edge.source.path, items), Leaf) for edge in edges)


def _together(edges: Sequence[DiagramEdge], name: str, items: Mapping[str, Item]) -> DiagramEdge:
    """Return what several passes give to one block as one edge."""
    first = next((edge for edge in edges if edge.main), edges[0])
    first = replace(first, input=joined_inputs(edges), place=joined_places(edges))
    ports = ", ".join(sorted({edge.port for edge in edges}))
    if not first.source.reference:  # of one pass, which has a box of its own
        origin = NodeOutput(first.source.path, _all_passes(edges) or name)
        return replace(first, source=replace(first.source, origin=origin, passes=""), port=ports)
    source, makers = first.source, {edge.source.origin for edge in edges}
    holder, made = _item_of(source.path, items), source.origin
    known = isinstance(holder, Leaf) or (isinstance(holder, Group) and len(holder.flows) == len(makers) == 1)
    one = replace(source.by_name(name), passes="")
    if holder is not None and known and holder.about.path != first.target and isinstance(made, NodeOutput):
        one = DiagramSource(InnerOutput(holder.about.path, name, made, name))
    return replace(first, source=one, port=ports)


def _all_passes(edges: Sequence[DiagramEdge]) -> str:
    """Return in words that values are those of all passes of a repeat in a pass that has a box; nothing where they are not."""
    last = {edge.source.port for edge in edges if edge.source.of_last_pass}
    numbers = {int(found[1]) for edge in edges if (found := NUMBER.search(edge.source.port))}
    alike = {NUMBER.sub("()", edge.source.port) for edge in edges}
    count = len(numbers)
    name, *others = alike
    if others or name.count("()") != 1 or numbers != {*range(count)} or last != {name.replace("()", f"({count - 1})")}:
        return ""
    return passes_in_words(name.partition("(")[0], 0, count - 1, count - 1)


def _item_of(path: str, items: Mapping[str, Item]) -> Item | None:
    """Return the item of a flow that a path is of or lies in."""
    return next((item for one, item in items.items() if lies_in(path, one)), None)


def range_of_names(names: Iterable[str]) -> str:
    """Return how values of several passes are called together, as in a recipe: `layers(0:4).skip`; or how many there are."""
    alike: dict[tuple[str, ...], set[tuple[int, ...]]] = {}
    for name in names:
        pieces = NUMBER.split(name)
        alike.setdefault(tuple(pieces[::2]), set()).add(tuple(map(int, pieces[1::2])))
    said = [_range(words, passes) for words, passes in alike.items()]
    whole = ", ".join(said)
    return whole if all(said) and len(whole) <= MAX_LETTERS else f"{sum(map(len, alike.values()))} values"


def _range(words: Sequence[str], passes: Collection[tuple[int, ...]]) -> str:
    """Return the name of values of some passes of each repeat that the words name; nothing where these are not all in a row."""
    ranges = [range(min(axis), max(axis) + 1) for axis in zip(*passes, strict=True)]
    if len(passes) < prod(map(len, ranges)):
        return ""
    numbers = [f"({one.start})" if len(one) == 1 else f"({one.start}:{one.stop})" for one in ranges]
    return "".join(word + number for word, number in zip(words, [*numbers, ""], strict=True))
