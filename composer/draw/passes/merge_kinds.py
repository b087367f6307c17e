"""Passes of a repeat that differ, as one drawing: the same blocks, with a row for each kind where they are not the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from blocks.core import BlockIcon, Look
from composer.cost.units import THOUSANDS
from composer.draw.about import TIP_SEPARATOR, About
from composer.draw.diagram import Branches, Flow, Group, IrregularSubgraph, Item, Leaf, OpenMixture, Row
from composer.draw.edges import DiagramEdge, DiagramSource, FrameInput, NodeOutput, Origin
from composer.draw.passes.places import by_place
from composer.graph.passes.roll_layers.stacks import MAX_FIELD_VALUES

NUMBER = re.compile(r"(\d[\d.]*)")
EACH = re.compile(r"up to \d\S*( [KMBTPE])?|\d\S*( [KMBTPE])? each")
"""How many parameters a pass has."""
OWN = re.compile(r"(up to )?\d\S*( [KMBTPE])?")
"""How many a frame has, in its header."""
MAX_ROWS = 3
"""Kinds of a block that are shown one by one."""
MAX_MAPPED_KINDS = 4
"""Kinds of passes that a map of layers can show."""


def merge_passes(flows: Sequence[Flow], passes: Sequence[int]) -> Flow | None:
    """Return one flow for several, each of so many passes of a repeat; none where they do not consist of the same nodes.

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
        item = _item(alike, passes, flows)
        if item is None:
            return None
        items.append(item)
    edges: dict[tuple[DiagramSource, str, str], list[DiagramEdge]] = {}
    for flow in flows:
        for edge in dict.fromkeys(flow.edges):
            edges.setdefault((replace(edge.source, shape=""), edge.target, edge.port), []).append(edge)
    inner = {item.about.path for item in items if isinstance(item, Group) and not item.count and len(item.flows) > 1}
    joined = (
        replace(alike[0], partial=any(e.partial for e in alike) or len(alike) < len(flows))
        for alike in edges.values()
        if alike[0].main or alike[0].target not in inner
    )
    return first.with_items(items).with_edges(joined)


def outlet(flow: Flow) -> Origin | None:
    """Return what a flow returns, whatever its shape."""
    return flow.outlet.origin if flow.outlet else None


def _item(alike: Sequence[Item], passes: Sequence[int], flows: Sequence[Flow]) -> Item | None:
    first = alike[0]
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
        found = _leaf(replace(leaves[0], about=about), leaves, passes)
    elif all(isinstance(item, Group) for item in alike):
        groups = [item for item in alike if isinstance(item, Group)]
        found = _group(groups, about, passes)
    elif all(isinstance(item, OpenMixture) for item in alike):
        mixtures = [item for item in alike if isinstance(item, OpenMixture)]
        found = _mixture(replace(mixtures[0], about=about), mixtures)
    if found is None:
        found = _instead(about.parameters, alike, passes)
    if found is None:
        found = one_of(alike, passes, flows)
    return replace(found, after=_after(alike, passes)) if isinstance(found, Leaf | Group | OpenMixture) else found


def _group(groups: Sequence[Group], about: About, passes: Sequence[int]) -> Group | None:
    """Return frames in the same place as one; repeats may have other numbers of passes, as the layers of stages."""
    counts = tuple(dict.fromkeys(group.count for group in groups))
    if len(counts) > 1 and all(count.isdigit() for count in counts):
        every = [group.count for group in groups] if {*passes} == {1} else counts  # of stages, that of each
        if any(len(group.flows) > 1 for group in groups):
            one = by_place(groups, lambda flows: merge_passes([*map(_bare, flows)], passes))
            return one and replace(one, about=replace(about, tip=_tip(groups)), header=_header(groups), count=", ".join(every))
        groups = [replace(_bare_group(group), count=", ".join(every), kinds=()) for group in groups]
    if not all(len(one.flows) == 1 and (one.count, one.kinds) == (groups[0].count, groups[0].kinds) for one in groups):
        return None
    inner = merge_passes([group.flows[0] for group in groups], passes)
    whole = replace(about, tip=_tip(groups))
    return inner and replace(groups[0], about=whole, header=_header(groups), flows=(inner,))


def _header(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the header of several frames; of numbers of parameters, the largest."""
    same = len({*(len(group.header) for group in groups)}) == 1
    pieces = zip(*(group.header for group in groups), strict=True) if same else iter([(groups[0].header[0],)])
    return tuple(_each_value(list(dict.fromkeys(alike)), bare=True) for alike in pieces)


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
            one = before[0].with_items([replace(item, about=replace(item.about, parameters=both, description=said))])
            count += before[1]
        kinds[key] = one, count
        cells[key] = *cells.get(key, ()), number
    headers = tuple((f"{count} of {whole}",) for _, count in kinds.values())
    about = replace(alike[0].about, parameters=0, tip="one of several blocks, by the pass")
    mapped = tuple(cells.values()) if len(passes) <= MAX_MAPPED_KINDS else ()
    return Group(about, ("One of",), tuple(flow for flow, _ in kinds.values()), headers, mapped)


def of_each(descriptions: Sequence[str]) -> str:
    """Return the captions of each kind of pass; one where all are the same."""
    return " | ".join(dict.fromkeys(descriptions))


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


def _leaf(first: Leaf, leaves: Sequence[Leaf], passes: Sequence[int]) -> Leaf | None:
    leaves = [replace(leaf, look=look) for leaf, look in zip(leaves, completed([leaf.look for leaf in leaves]), strict=True)]
    first = replace(first, look=leaves[0].look)
    kinds: dict[Look, int] = {}
    for leaf, count in zip(leaves, passes, strict=True):
        kinds[leaf.look] = kinds.get(leaf.look, 0) + count
    params = {leaf.params for leaf in leaves}
    shared = first.params if len(params) == 1 else ""
    shape = first.shape if len({leaf.shape for leaf in leaves}) == 1 else ""
    first = replace(first, params=shared, shape=shape, about=replace(first.about, tip=_tip(leaves)))
    if len({leaf.rows for leaf in leaves}) > 1:
        return _of_nested(first, leaves, passes)
    if len(kinds) == 1:
        return first
    looks = list(kinds)
    if any(seen.sign != looks[0].sign or bool(seen.sign) for seen in looks):
        return None  # a circle has no rows
    sides = looks[0].sides if all(seen.sides == looks[0].sides for seen in looks) else ()
    whole = sum(kinds.values())
    titles = list(dict.fromkeys(seen.title for seen in looks))
    one = looks[0]
    if len(looks) > MAX_ROWS:
        facts = _span(looks) if len(titles) == 1 else (f"{len(looks)} kinds",)
        if not sides and any(seen.sides for seen in looks):
            positions = dict.fromkeys(" and ".join(side.words for side in seen.sides) or "no positions" for seen in looks)
            facts = (*facts, " or ".join(positions) if len(positions) <= MAX_ROWS else "positions vary")
        title = titles[0] if len(titles) == 1 else " / ".join(titles[:2]) + (" …" if len(titles) > 2 else "")
        seen = Look(title, facts, one.hue, *seen_in_all(looks), sides, double=one.double, short=one.short)
        return replace(first, look=seen)
    rows = []
    common = tuple(fact for fact in one.facts if all(fact in seen.facts for seen in looks)) if len(titles) == 1 else ()
    same_mask = len({seen.mask for seen in looks}) == 1
    placed = not sides and any(seen.sides for seen in looks)
    mapped = len(passes) <= MAX_MAPPED_KINDS
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
    seen = Look(title, common, one.hue, None, *masks, causal, sides, double=one.double, short=one.short)
    return replace(first, look=seen, rows=tuple(rows))


def _of_nested(first: Leaf, leaves: Sequence[Leaf], passes: Sequence[int]) -> Leaf:
    """Return a block of a repeat in a repeat, whose kinds in the passes of the inner one are others in other passes of the outer
    one: all of them, each with its share of all passes.
    """
    common = tuple(fact for fact in first.look.facts if all(fact in leaf.look.facts for leaf in leaves))
    shares: dict[tuple[str, tuple[str, ...]], tuple[Look, int]] = {}
    for leaf, count in zip(leaves, passes, strict=True):
        own = ", ".join(fact for fact in leaf.look.facts if fact not in common)
        for row in leaf.rows or (Row(f": {own}", replace(leaf.look, facts=()), 1),):
            key = row.share.partition(": ")[2], row.look.facts
            shares[key] = row.look, shares.get(key, (row.look, 0))[1] + count * row.passes
    whole = sum(count for _, count in shares.values())
    if len(shares) > MAX_ROWS or any(facts for _, facts in shares):
        said = [words for words, _ in shares]
        told = listed(said) if one_number(said) is not None else f"{len(shares)} kinds"
        return replace(first, look=replace(first.look, facts=(*common, told)), rows=())
    rows = [Row(f"{count} of {whole}: {words}", look, count) for (words, _), (look, count) in shares.items()]
    return replace(first, look=replace(first.look, facts=common), rows=tuple(rows))


def _tip(items: Sequence[Leaf | Group]) -> str:
    """Return what is said in one line, piece by piece, each piece that differs with all that it is."""
    tips = list(dict.fromkeys(item.about.tip for item in items))
    split = [tip.split(TIP_SEPARATOR) for tip in tips]
    if len({*map(len, split)}) != 1:
        return of_each(tips)
    return TIP_SEPARATOR.join(_each_value(list(dict.fromkeys(alike))) for alike in zip(*split, strict=True))


def _each_value(said: Sequence[str], *, bare: bool = False) -> str:
    """Return all that is said of one thing in several passes; of numbers of parameters that passes have, the largest, and of many
    others with units, how many there are. Where it is `bare`, any number is one of parameters.
    """
    if len(said) > 1 and all(EACH.fullmatch(one) or (bare and OWN.fullmatch(one)) for one in said):
        return f"up to {max((one.removeprefix('up to ').removesuffix(' each') for one in said), key=_counted)}"
    if one_number(said) is None:
        return of_each(said)
    if not said[0].endswith((" parameter", " parameters")):
        return listed(said)
    return of_each(said) if len(said) <= MAX_ROWS else f"{len(said)} kinds by parameters"


def _counted(said: str) -> tuple[int, float]:
    """Return a key by which numbers with units are in order."""
    number, _, unit = said.partition(" ")
    return THOUSANDS.index(f" {unit}" if unit else ""), float(number)


def seen_in_all(looks: Sequence[Look]) -> tuple[BlockIcon | None, str, str, bool]:
    """Return the icon, the mask, its word and whether any is causal, for blocks of several kinds: an icon that all have, or all
    masks that there are. The picture of one mask does for others of the same words, such as random ones.
    """
    first, masks = looks[0], tuple(dict.fromkeys(seen.mask for seen in looks))
    causal = any(seen.causal for seen in looks)
    if len(masks) == 1:
        icon = first.icon if first.mask or all(seen.icon == first.icon for seen in looks) else None
        return icon, first.mask, first.known_mask, causal
    alike: dict[tuple[str, ...], list[str]] = {}
    for mask in masks:
        alike.setdefault(tuple(NUMBER.split(mask)[::2]), []).append(mask or "no mask")
    said = [one for found in alike.values() for one in ([listed(found)] if one_number(found) is not None else found)]
    return None, " or ".join(said) if len(said) <= MAX_ROWS else f"{len(masks)} masks", "", causal


def completed(looks: Sequence[Look]) -> list[Look]:
    """Return looks with what is usual, where others say that of themselves: the dilation of 1 beside those of 2 and 4."""
    said = {template(fact) for look in looks for fact in look.facts}

    def usual(look: Look) -> list[str]:
        own = {*map(template, look.facts)}
        return [fact for fact in look.unsaid if template(fact) in said - own]

    return [replace(look, facts=(*look.facts, *usual(look))) for look in looks]


def template(fact: str) -> str:
    """Return a fact without its numbers."""
    return NUMBER.sub("#", fact)


def _span(looks: Sequence[Look]) -> tuple[str, ...]:
    """Return what all kinds say, and of the rest what the first and the last say; a number that differs with all its values."""
    first, last = looks[0].facts, looks[-1].facts
    by_template = [{template(fact): fact for fact in seen.facts} for seen in looks]
    if all(len(one) == len(first) and one.keys() == by_template[0].keys() for one in by_template):
        alike = [tuple(dict.fromkeys(one[said] for one in by_template)) for said in by_template[0]]
        return tuple(one[0] if len(one) == 1 else listed(one) for one in alike) or (f"{len(looks)} kinds",)
    if all(len(seen.facts) == len(first) for seen in looks):
        said = (tuple(dict.fromkeys(alike)) for alike in zip(*(seen.facts for seen in looks), strict=True))
        return tuple(alike[0] if len(alike) == 1 else listed(alike) for alike in said) or (f"{len(looks)} kinds",)
    common = [fact for fact in last if all(fact in seen.facts for seen in looks)]
    rest = [[fact for fact in seen.facts if fact not in common] for seen in looks]
    if all(len(own) <= 1 for own in rest) and (most := greatest([fact for own in rest for fact in own])):
        return (*common, most)
    only_last = [f"{fact} in the last" for fact in last if fact not in common]
    return (*common, *(f"{fact} in the first" for fact in first if fact not in common), *only_last)


def greatest(facts: Sequence[str]) -> str:
    """Return the facts that differ in their one number by the greatest, `dilation up to 32`; nothing for others."""
    split = {fact: re.fullmatch(r"(\D+ )(\d[\d.]*)", fact) for fact in facts}
    found = [(match[1], float(match[2]), match[2]) for match in split.values() if match]
    if len(found) < len(split) or len({name for name, _, _ in found}) != 1:
        return ""
    name, _, most = max(found, key=lambda one: one[1])
    return f"{name}up to {most}"


def listed(facts: Sequence[str]) -> str:
    """Return the facts that differ in one number with all its values, `dilation 1, 2, 4`, of many the first ones and the last;
    others from the first to the last.
    """
    place = one_number(facts)
    if place is None:
        return f"{facts[0]} … {facts[-1]}"
    split = [NUMBER.split(fact) for fact in facts]
    values = [parts[place] for parts in split]
    said = values if len(values) <= MAX_FIELD_VALUES else [*values[:3], f"… {values[-1]}"]
    return "".join([*split[0][:place], ", ".join(said), *split[0][place + 1 :]])


def one_number(facts: Sequence[str]) -> int | None:
    """Return where facts have their one number that differs, among the pieces between and beside numbers; None for others."""
    split = [NUMBER.split(fact) for fact in facts]
    alike = list(zip(*split, strict=True)) if len({*map(len, split)}) == 1 else []
    differing = [place for place, parts in enumerate(alike) if len(set(parts)) > 1]
    return differing[0] if len(differing) == 1 and differing[0] % 2 else None
