"""The overview: a repeat or a group as one box that says what is in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from blocks.core import Look
from composer.cost.units import short
from composer.draw.about import About
from composer.draw.diagram import Flow, Leaf, OpenMixture, Row
from composer.draw.edges import DiagramEdge, DiagramSource
from composer.draw.passes.values import seen_in_all

MAX_KINDS = 4
"""Kinds of passes that the box of a repeat tells one by one."""
MAX_TITLES, MAX_LETTERS, MORE = 4, 52, " and more"
"""Kinds of blocks of a group that its box names, and the letters of their names; of more, it names some."""


def of_group(flows: Sequence[Flow], about: About, title: str, params: str, doc: str = "", passes: Sequence[int] = ()) -> Leaf:
    """Return a group as one box, whose passes are of one or more kinds: the masks of its attention, and what its author says of
    it, or else its blocks in a few letters; of kinds that differ in these, each for itself, with the number of its `passes`.
    """
    kinds: dict[tuple[str, ...], int] = {}
    for said, count in zip(told_apart(flows), passes, strict=False):
        kinds[said] = kinds.get(said, 0) + count
    rows = [Row(f"{count} of {sum(passes)}: {' · '.join(said)}", Look(""), count) for said, count in kinds.items()]
    if 1 < len(rows) <= MAX_KINDS and () not in kinds and max(len(row.share) for row in rows) <= MAX_LETTERS and not doc:
        whole = of_group(flows, about, title, params)
        word = whole.look.known_mask  # in place of its picture, which there is not where there are rows
        in_words = replace(whole.look, facts=(word,), known_mask="", mask="") if word else replace(whole.look, facts=())
        return replace(whole, look=in_words, rows=tuple(rows))
    leaves = [item for flow in flows for item in flow.leaves()]
    pictured = [(item.about.path, item.look if isinstance(item, Leaf) else item.expert) for item in leaves]
    looks = [look for _, look in pictured]
    named = [seen for seen in looks if seen.short]
    words = tuple(dict.fromkeys(word for flow in flows for word in in_letters(flow)))
    held = named_in_short(looks) or (f"{len(looks)} blocks",)
    facts = (doc,) if doc else words or held
    others = (seen for seen in looks if seen.hue not in ("norm", "merge"))
    first = next(iter(named), None) or next(others, looks[0] if looks else Look(""))
    place = next((path for path, look in pictured if look is first), "")
    alike = [look for path, look in pictured if path == place] or [first]
    seen = Look(title, facts, first.hue, *seen_in_all(alike), double=any(one.double for one in looks))
    return Leaf(about, seen, params)


def named_in_short(looks: Sequence[Look]) -> tuple[str, ...]:
    """Return the titles of blocks; of many, the first ones that are no norms, merges or activations; nothing where there are none
    or these are long.
    """
    titles = tuple(dict.fromkeys(seen.title for seen in looks))
    if len(titles) <= MAX_TITLES and len(" · ".join(titles)) <= MAX_LETTERS:
        return titles
    main = [*dict.fromkeys(seen.title for seen in looks if not seen.sign and seen.hue not in ("norm", "merge", "io", "ffn"))]
    while main and (len(main) > MAX_TITLES or len(" · ".join(main)) > MAX_LETTERS - len(MORE)):
        main.pop()
    return (*main[:-1], main[-1] + MORE) if main else ()


def in_letters(flow: Flow, also: Collection[str] = ()) -> tuple[str, ...]:
    """Return the blocks of a flow that have abbreviations, with positions behind the first one; and `also` those of titles."""
    leaves = list(flow.leaves())
    looks = [item.look if isinstance(item, Leaf) else item.expert for item in leaves]
    sides = [side.title for seen in looks if seen.short for side in seen.sides]
    words: list[str] = []
    for item, seen in zip(leaves, looks, strict=True):
        if isinstance(item, OpenMixture):
            words.append(f"MoE {item.experts} × {seen.short or seen.title}" + (" + shared" if item.shared else ""))
        elif seen.short or seen.title in also:
            words += [seen.short or seen.title, *(sides if seen.short else ())]
            sides = [] if seen.short else sides
        elif "onvolution" in seen.title and any(one.short for one in looks):
            words.append("convolution")
    return tuple(dict.fromkeys(words))


def told_apart(flows: Sequence[Flow]) -> list[tuple[str, ...]]:
    """Return the blocks of each flow in a few letters, and those without that are not in all flows."""
    titles = [set(_plain_titles(flow)) for flow in flows]
    also = {title for own in titles for title in own if not all(title in others for others in titles)}
    return [in_letters(flow, also) for flow in flows]


def _plain_titles(flow: Flow) -> Iterable[str]:
    """Return the titles of blocks without abbreviations, but for norms, merges and what reads nothing."""
    reads = {edge.target for edge in flow.all_edges()}
    looks = (leaf.look for leaf in flow.leaves() if isinstance(leaf, Leaf) and leaf.about.path in reads)
    return (one.title for one in looks if not one.short and not one.sign and one.hue not in ("norm", "merge", "io"))


def fold_norms(flow: Flow) -> Flow:
    """Return the flow with norms in the box of what reads them, where that is one block of the same column.

    Before: norm(x) a(norm) b(a)
    After:  a:norm + a(x) b(a)
    """
    items = flow.by_path
    edges = list(flow.edges)
    for path in list(items):
        item = items[path]
        if not (isinstance(item, Leaf) and item.look.hue == "norm"):
            continue
        readers = [edge for edge in edges if edge.source.path == path]
        reader = items.get(readers[0].target) if len(readers) == 1 and readers[0].main else None
        alone = isinstance(reader, Leaf) and not reader.look.sign and sum(e.target == readers[0].target for e in edges) == 1
        if not alone or any(source.path == path for _, source in flow.exits):
            continue
        assert isinstance(reader, Leaf)
        if (_trained(item) | _trained(reader)) - TOGETHER:
            continue  # such as a map with an adapter, whose own numbers it tells
        items[readers[0].target] = _joined(item, reader)
        del items[path]
        edges = list(_without(edges, path, readers[0].target))
    return flow.with_items(items.values()).with_edges(edges)


TOGETHER = {"", " frozen", ", some frozen"}
"""What is said of how parameters are trained where one box can say it of two blocks."""


def _trained(item: Leaf) -> set[str]:
    """Return what a box says behind the number of its parameters, if it tells that."""
    return {item.params.removeprefix(short(item.about.parameters))} if item.params and item.about.parameters else set()


def _joined(norm: Leaf, reader: Leaf) -> Leaf:
    both = norm.about.parameters + reader.about.parameters
    trained = _trained(norm) | _trained(reader)
    params = short(both) + (trained.pop() if len(trained) == 1 else ", some frozen" if trained else "")
    params = params if _trained(reader) else reader.params
    tip = f"{norm.look.title} + {reader.about.tip}".replace(f"{reader.params} parameters", f"{params} parameters")
    covers = (*reader.about.covers, *norm.about.covers, norm.about.path)
    about = replace(reader.about, parameters=both, tip=tip, covers=covers)
    return replace(
        reader, about=about, params=params, look=replace(reader.look, title=f"{norm.look.title} + {reader.look.title}")
    )


def _without(edges: Iterable[DiagramEdge], gone: str, reader: str) -> Iterable[DiagramEdge]:
    into: list[DiagramSource] = []
    for edge in edges:
        if edge.target == gone:
            into.append(edge.source)
        elif edge.source.path == gone:
            continue
        else:
            yield edge
    for source in into:
        yield DiagramEdge(source, reader, "", True)
