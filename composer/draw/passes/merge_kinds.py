"""Passes of a repeat that differ, as one drawing: the same blocks, with a row for each kind where they are not the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from blocks.core import Look
from composer.draw.about import About
from composer.draw.diagram import Branches, Flow, Group, IrregularSubgraph, Item, Leaf, OpenMixture, Row
from composer.draw.edges import DiagramEdge, DiagramSource, FrameInput, NodeOutput, Origin, joined_places
from composer.draw.passes.places import by_place
from composer.draw.passes.values import (
    MAX_ROWS,
    all_values,
    completed,
    each_value,
    in_each,
    in_patterns,
    in_runs,
    length_of,
    of_each,
    of_nested,
    said_in_all,
    seen_in_all,
    tip_of,
)
from composer.draw.scene import Places
from composer.draw.series import in_order, one_title, shapes_in_order
from composer.draw.wording import places_in_words

MAX_MAPPED_KINDS = 4
"""Kinds of passes that a map of layers can show."""


def merge_passes(
    flows: Sequence[Flow], passes: Sequence[Sequence[int]], around: Sequence[Group] = (), *, inner: bool = False
) -> Flow | None:
    """Return one flow for several, each of some passes of a repeat; none where they do not consist of the same nodes. In these
    passes, another repeat may be `around` each of them. Those of an `inner` repeat are to be merged with those in other passes of
    the one around it, and tell their kinds rather than all passes in their order.

    Before: a:wide(x) b(a) / a:narrow(x) b(a)
    After:  a:wide|narrow(x) b(a)
    """
    first = flows[0]
    if len(flows) == 1:
        return first
    if any(len(flow.items) != len(first.items) or outlet(flow) != outlet(first) for flow in flows):
        return None
    items = []
    for alike in zip(*(flow.items for flow in flows), strict=True):
        item = _item(alike, passes, flows, around, inner=inner)
        if item is None:
            return None
        items.append(item)
    edges: dict[tuple[DiagramSource, str, str], list[DiagramEdge]] = {}
    kinds: dict[tuple[DiagramSource, str, str], list[int]] = {}
    streams: Counter[str] = Counter()
    for flow in flows:
        streams |= Counter(edge.target for edge in dict.fromkeys(flow.edges) if edge.main)
    for number, flow in enumerate(flows):
        for edge in dict.fromkeys(flow.edges):
            # of other blocks in one place, the ports may have other names; that of a join may have one value in some passes
            alone = edge.main and streams[edge.target] == 1
            port = "" if alone else edge.port
            key = replace(edge.source, shape=""), edge.target, port
            edges.setdefault(key, []).append(edge)
            kinds.setdefault(key, []).append(number)
    mixed = {item.about.path for item in items if isinstance(item, Group) and not item.count and len(item.flows) > 1}
    joined = (
        replace(
            alike[0],
            source=_source([edge.source for edge in alike], passes),
            partial=any(e.partial for e in alike) or len(alike) < len(flows),
            readers=_readers(kinds[key], passes) if len(alike) < len(flows) else alike[0].readers,
            place=joined_places(alike),
        )
        for key, alike in edges.items()
        if alike[0].main or alike[0].target not in mixed
    )
    whole = first.with_items(items).with_edges(joined)
    outlets = [flow.outlet for flow in flows if flow.outlet]
    return replace(whole, outlet=_source(outlets, passes)) if outlets else whole


def _readers(kinds: Sequence[int], passes: Sequence[Sequence[int]]) -> str:
    """Return which passes those of some kinds are; nothing for all, or where it takes more than a few words."""
    whole = sum(map(len, passes))
    own = [index for kind in kinds for index in passes[kind]]
    return places_in_words(own, whole) if len(own) < whole else ""


def _source(sources: Sequence[DiagramSource], passes: Sequence[Sequence[int]]) -> DiagramSource:
    """Return what all kinds read, with the shape of all where some know another one; nothing of that where it cannot be told."""
    shapes = [source.shape for source in sources]
    if len({*shapes}) == 1:
        return sources[0]
    return replace(sources[0], shape=shapes_in_order(shapes, passes) if len(shapes) == len(passes) and all(shapes) else "")


def _shape(items: Sequence[Leaf | Group], flows: Sequence[Flow], passes: Sequence[Sequence[int]]) -> str:
    """Return the shape of what an item gives, where it changes in some kinds: that of all passes, if they can be told as one."""
    changed = {item.shape for item in items}
    if len(changed) == 1:
        return items[0].shape
    gives = [item.shape or _given(flow, item.about.path) for item, flow in zip(items, flows, strict=True)]
    return shapes_in_order(gives, passes) if len({*gives}) > 1 else ""


def _places(leaves: Sequence[Leaf]) -> Places:
    """Return whether boxes give fewer or more places than they read, where all do so in one way."""
    return leaves[0].places if all(leaf.places == leaves[0].places for leaf in leaves) else ""


def _given(flow: Flow, path: str) -> str:
    """Return the shape of what an item of a flow gives; nothing where nothing tells it."""
    sources = (*(edge.source for edge in flow.edges), *([flow.outlet] if flow.outlet else []))
    return next((source.shape for source in sources if source.origin == NodeOutput(path)), "")


def outlet(flow: Flow) -> Origin | None:
    """Return what a flow returns, whatever its shape."""
    return flow.outlet.origin if flow.outlet else None


def _item(
    alike: Sequence[Item], passes: Sequence[Sequence[int]], flows: Sequence[Flow], around: Sequence[Group], *, inner: bool
) -> Item | None:
    first, sizes = alike[0], [*map(len, passes)]
    if len({item.about.path for item in alike}) > 1:
        return None
    about = replace(
        first.about,
        parameters=sum(item.about.parameters for item in alike),
        description=of_each([item.about.description for item in alike]),
        covers=tuple(dict.fromkeys(path for item in alike for path in item.about.covers)),
    )
    found: Item | None = None
    if all(isinstance(item, Leaf) for item in alike):
        leaves = [item for item in alike if isinstance(item, Leaf)]
        shape = _shape(leaves, flows, passes)
        first = replace(leaves[0], about=about, shape=shape, places=_places(leaves))
        found = _leaf(first, leaves, passes, around, inner=inner)
    elif all(isinstance(item, Group) for item in alike):
        groups = [item for item in alike if isinstance(item, Group)]
        shape = _shape(groups, flows, passes)
        found = _group([replace(group, shape=shape) for group in groups], about, passes, around, inner=inner)
    elif all(isinstance(item, OpenMixture) for item in alike):
        mixtures = [item for item in alike if isinstance(item, OpenMixture)]
        found = _mixture(replace(mixtures[0], about=about), mixtures)
    if found is None:
        found = _instead(about.parameters, alike, sizes)
    if found is None:
        found = one_of(alike, sizes, flows)
    return replace(found, after=_after(alike, sizes)) if isinstance(found, Leaf | Group | OpenMixture) else found


def _group(
    groups: Sequence[Group], about: About, passes: Sequence[Sequence[int]], around: Sequence[Group], *, inner: bool
) -> Group | None:
    """Return frames in the same place as one; repeats may have other numbers of passes, as the layers of stages."""
    counts = tuple(dict.fromkeys(group.count for group in groups))
    goes_on = one_word([group.goes_on for group in groups])
    groups = [replace(group, goes_on=goes_on) for group in groups]
    numbered = all(count.isdigit() for count in counts)
    around = groups if numbered else around
    if len(counts) > 1 and numbered:
        every = in_order([group.count for group in groups], passes)
        parallel = any(group.parallel for group in groups) and all(group.parallel or group.count == "1" for group in groups)
        groups = [replace(group, parallel=parallel) for group in groups]
        if any(len(group.flows) > 1 for group in groups):
            one = by_place(groups, lambda flows: merge_passes([*map(_bare, flows)], passes, inner=inner))
            return one and replace(one, about=replace(about, tip=tip_of(groups, passes)), header=_header(groups), count=every)
        groups = [replace(_bare_group(group), count=every, kinds=()) for group in groups]
    if not all(len(one.flows) == 1 and (one.count, one.kinds) == (groups[0].count, groups[0].kinds) for one in groups):
        return None
    flow = merge_passes([group.flows[0] for group in groups], passes, around, inner=inner)
    if flow is None:
        return None
    return replace(groups[0], about=replace(about, tip=tip_of(groups, passes)), header=_header(groups), flows=(flow,))


def one_word(said: Sequence[str]) -> str:
    """Return what is said of several things, if it is the same of all; else nothing."""
    return said[0] if len(set(said)) == 1 else ""


def _header(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the header of several frames; of numbers of parameters, the largest."""
    same = len({*(len(group.header) for group in groups)}) == 1
    pieces = zip(*(group.header for group in groups), strict=True) if same else iter([(groups[0].header[0],)])
    return tuple(each_value(alike, bare=True) for alike in pieces)


def _bare(flow: Flow) -> Flow:
    """Return a flow whose rows are in no map of layers."""

    def bare_rows(item: Item) -> Item:
        rows = [replace(row, kinds=()) for row in item.rows] if isinstance(item, Leaf) else []
        return replace(item, rows=tuple(rows)) if isinstance(item, Leaf) else item

    return flow.map_items(lambda item: _bare_group(item) if isinstance(item, Group) else bare_rows(item))


def _bare_group(group: Group) -> Group:
    return replace(group.map_flows(_bare), cells=() if not group.count else group.cells)


def _after(alike: Sequence[Item], passes: Sequence[int]) -> str:
    """Return what happens in training to what an item gives, and in how many passes where that is not the same in all."""
    counts: dict[str, int] = {}
    for item, count in zip(alike, passes, strict=True):
        end = item.join if isinstance(item, Branches | IrregularSubgraph) else item
        said = end.after if end else ""
        counts[said] = counts.get(said, 0) + count
    if len(counts) == 1:
        return next(iter(counts))
    return " · ".join(f"{said} in {count} of {sum(passes)}" for said, count in counts.items() if said)


def _instead(parameters: int, alike: Sequence[Item], passes: Sequence[int]) -> OpenMixture | None:
    """Return the mixtures in some passes and single blocks in the others, as the mixture with a row for each block."""
    mixtures = [item for item in alike if isinstance(item, OpenMixture)]
    leaves = [item for item in alike if isinstance(item, Leaf)]
    mixture = _mixture(mixtures[0], mixtures) if mixtures and len(mixtures) + len(leaves) == len(alike) else None
    if mixture is None or any(leaf.look.sign or leaf.look.sides or leaf.rows for leaf in leaves):
        return None
    kinds: dict[object, list[int]] = {}
    for number, item in enumerate(alike):
        kinds.setdefault(item.look if isinstance(item, Leaf) else None, []).append(number)
    if not 2 <= len(kinds) <= MAX_ROWS:
        return None
    rows = {}
    for look, numbers in kinds.items():
        count = sum(passes[number] for number in numbers)
        share = f"{count} of {sum(passes)}"
        rows[look] = Row(share, mixture.expert, count, tuple(numbers) if len(passes) <= MAX_MAPPED_KINDS else ())
    instead = []
    for look, numbers in kinds.items():
        if look is not None:
            same = [leaf for leaf in (alike[number] for number in numbers) if isinstance(leaf, Leaf)]
            whole = same[0].about.with_parameters(sum(leaf.about.parameters for leaf in same))
            instead.append(replace(same[0], about=whole, rows=(rows[look],)))
    about = mixture.about.with_parameters(parameters)
    return replace(mixture, about=about, row=rows[None], instead=tuple(instead))


def one_of(alike: Sequence[Item], passes: Sequence[int], flows: Sequence[Flow]) -> Group | None:
    """Return different blocks in the same place, as a frame in which they stand side by side."""
    path, whole = alike[0].about.path, sum(passes)
    kinds: dict[object, tuple[Flow, int]] = {}
    cells: dict[object, tuple[int, ...]] = {}
    for number, (item, count, flow) in enumerate(zip(alike, passes, flows, strict=True)):
        streams = [e for e in flow.edges if e.target == path and e.main]
        if len(streams) != 1 or any(e.source.path == path and e.source.port for e in flow.edges):
            return None
        entry = FrameInput(path)
        edges = tuple(e.reading(DiagramSource(entry, e.source.shape)) if e.main else e for e in flow.edges_into(path))
        one = Flow(entry, (item,), edges, DiagramSource(NodeOutput(path)))
        key: object = item.look if isinstance(item, Leaf) else len(kinds)
        before = kinds.get(key)
        if before is not None:
            assert isinstance(item, Leaf)
            both = before[0].items[0].about.parameters + item.about.parameters
            said = of_each([before[0].items[0].about.description, item.about.description])
            places = _places([item, *(other for other in before[0].items if isinstance(other, Leaf))])
            whole_of_both = replace(item.about, parameters=both, description=said)
            one = before[0].with_items([replace(item, about=whole_of_both, places=places)])
            count += before[1]
        kinds[key] = one, count
        cells[key] = *cells.get(key, ()), number
    headers = tuple((f"{count} of {whole}",) for _, count in kinds.values())
    about = replace(alike[0].about, parameters=0, tip="one of several blocks, by the pass")
    mapped = tuple(cells.values()) if len(passes) <= MAX_MAPPED_KINDS else ()
    return Group(about, ("One of",), tuple(flow for flow, _ in kinds.values()), headers, mapped)


def _mixture(first: OpenMixture, mixtures: Sequence[OpenMixture]) -> OpenMixture | None:
    """Return the mixtures that differ in nothing but the numbers that they own."""
    if any(
        (mixture.router.look, mixture.expert, mixture.header, mixture.shared and mixture.shared.look) != _said(first)
        for mixture in mixtures
    ):
        return None
    gates = sum(mixture.router.about.parameters for mixture in mixtures)
    router = replace(first.router, about=first.router.about.with_parameters(gates))
    shared = first.shared
    if shared is not None:
        count = sum(mixture.shared.about.parameters for mixture in mixtures if mixture.shared)
        shared = replace(shared, about=shared.about.with_parameters(count))
    return replace(first, router=router, shared=shared)


def _said(mixture: OpenMixture) -> tuple[object, ...]:
    return mixture.router.look, mixture.expert, mixture.header, mixture.shared and mixture.shared.look


def _leaf(
    first: Leaf, leaves: Sequence[Leaf], passes: Sequence[Sequence[int]], around: Sequence[Group], *, inner: bool
) -> Leaf | None:
    leaves = [replace(leaf, look=look) for leaf, look in zip(leaves, completed([leaf.look for leaf in leaves]), strict=True)]
    counts, lengths = [*map(len, passes)], [*map(length_of, leaves)]
    if around:
        lengths = [length * int(group.count) for length, group in zip(lengths, around, strict=True)]
    if title := one_title([leaf.look.title for leaf in leaves], passes):
        leaves = [replace(leaf, look=replace(leaf.look, title=title)) for leaf in leaves]
    first = replace(first, look=leaves[0].look)
    kinds: dict[Look, int] = {}
    for leaf, count in zip(leaves, counts, strict=True):
        kinds[leaf.look] = kinds.get(leaf.look, 0) + count
    params = {leaf.params for leaf in leaves}
    shared = first.params if len(params) == 1 else ""
    first = replace(first, params=shared, about=replace(first.about, tip=tip_of(leaves, passes)))
    if len({leaf.rows for leaf in leaves}) > 1:
        return of_nested(first, leaves, passes, lengths)
    if len(kinds) == 1:
        return first
    looks = list(kinds)
    if any(seen.sign != looks[0].sign or bool(seen.sign) for seen in looks):
        return None  # a circle has no rows
    sides = looks[0].sides if all(seen.sides == looks[0].sides for seen in looks) else ()
    whole = sum(kinds.values())
    titles = list(dict.fromkeys(seen.title for seen in looks))
    one = looks[0]
    brief = brief_of_all([seen.brief for seen in looks])
    if patterned := _with_patterns(first, leaves, passes, around) if len(looks) > MAX_ROWS else None:
        return replace(patterned, look=replace(patterned.look, brief=brief))
    each = {
        seen: [index for leaf, own in zip(leaves, passes, strict=True) if leaf.look == seen for index in own] for seen in looks
    }
    if len(looks) > MAX_ROWS or (not (around or inner) and in_runs(looks, [each[seen] for seen in looks])):
        looks.sort(key=lambda seen: min(each[seen]))  # the most frequent one is no first value
        facts = (
            all_values(looks, [each[seen] for seen in looks], whole=not inner) if len(titles) == 1 else (f"{len(looks)} kinds",)
        )
        if not sides and any(seen.sides for seen in looks):
            positions = dict.fromkeys(" and ".join(side.words for side in seen.sides) or "no positions" for seen in looks)
            facts = (*facts, " or ".join(positions) if len(positions) <= MAX_ROWS else "positions vary")
        title = titles[0] if len(titles) == 1 else " / ".join(titles[:2]) + (" …" if len(titles) > 2 else "")
        seen = Look(title, facts, one.hue, *seen_in_all(looks), sides, double=one.double, short=one.short, brief=brief)
        return replace(first, look=seen)
    rows = []
    common = said_in_all(looks, in_order=first.closed) if len(titles) == 1 else ()
    same_mask = len({seen.mask for seen in looks}) == 1
    placed = not sides and any(seen.sides for seen in looks)
    mapped = _is_mapped(passes, around)
    for seen, count in kinds.items():
        cells = tuple(number for number, leaf in enumerate(leaves) if leaf.look == seen) if mapped else ()
        named = [seen.title] if len(titles) > 1 else []
        mask = [seen.mask] if seen.mask and not same_mask else []
        own = [fact for fact in seen.facts if fact not in common]
        turned = ([side.words for side in seen.sides] or ["no positions"]) if placed else []
        share = f"{count} of {whole}"
        head = [*named, *mask] or own[:1] or turned[:1]
        rest = [said for said in (*own, *turned) if said not in head]
        said = f"{share}: {', '.join(head)}" if head else share
        rows.append(Row(said, replace(seen, facts=tuple(rest), title=share), count, cells))
    title = titles[0] if len(titles) == 1 else "One of"
    masks = (one.mask, one.known_mask) if same_mask else ("", "")
    causal = any(seen.causal for seen in looks)
    seen = Look(title, common, one.hue, None, *masks, causal, sides, double=one.double, short=one.short, brief=brief)
    return replace(first, look=seen, rows=tuple(rows))


def brief_of_all(every: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return what several blocks say in few letters as one, from the fullest form to the shortest; nothing if one says nothing.

    >>> brief_of_all([("conv 3 (8 → 8)", "conv 3"), ("conv 3 (8 → 9), stride 2", "conv 3, stride 2", "conv 3")])
    ('conv 3',)
    """
    if not all(every):
        return ()
    most = max(map(len, every))  # one that has a stride has more forms
    alike = ([forms[min(at, len(forms) - 1)] for forms in every] for at in range(most))
    return tuple(dict.fromkeys(form for form in map(in_each, alike) if form))


def _is_mapped(passes: Sequence[Sequence[int]], around: Sequence[Group]) -> bool:
    """Return whether rows are in a map of passes; those of a repeat around another one with a map are not."""
    return len(passes) <= MAX_MAPPED_KINDS and not any(group.kinds for group in around)


def _with_patterns(first: Leaf, leaves: Sequence[Leaf], passes: Sequence[Sequence[int]], around: Sequence[Group]) -> Leaf | None:
    """Return a block of many kinds with a row for those that have the same parts, where some lack one, such as a stride; none
    where they differ in numbers alone.
    """
    pairs = sorted(zip(leaves, passes, range(len(leaves)), strict=True), key=lambda pair: min(pair[1]))
    looks = [leaf.look for leaf, _, _ in pairs]
    if len({(seen.title, seen.mask, seen.sides) for seen in looks}) > 1:
        return None
    common, kinds = in_patterns(looks)
    mapped, whole = _is_mapped(passes, around), sum(map(len, passes))
    rows = []
    for said, numbers in kinds.items():
        count = sum(len(pairs[number][1]) for number in numbers)
        cells = tuple(sorted(pairs[number][2] for number in numbers)) if mapped else ()
        share = f"{count} of {whole}"
        rows.append(Row(f"{share}: {said}", replace(looks[numbers[0]], facts=(), title=share), count, cells))
    return replace(first, look=replace(looks[0], facts=common), rows=tuple(rows)) if rows else None
