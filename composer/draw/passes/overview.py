"""The overview: a repeat or a group as one box that says what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from blocks.core import Look
from composer.cost.units import short
from composer.draw.about import About
from composer.draw.brief import MAX_LETTERS, ever_shorter, in_letters, nested, with_series
from composer.draw.diagram import Flow, Leaf, Row
from composer.draw.edges import DiagramEdge, DiagramSource
from composer.draw.passes.values import seen_in_all

MAX_KINDS = 4
"""Kinds of passes that the box of a repeat tells one by one."""
EMPTY_WORDS = frozenset(["a", "an", "and", "of", "the", "then", "with"])
"""Words that name nothing."""
MIN_STEM = 3
"""Letters from which on a word is the beginning of a longer one: `conv`."""
MAX_WITH_MASK, MIN_LETTERS = 76, 24
"""Letters of what the widest box tells with a mask in words; and of its blocks, however long this is."""


def of_group(
    flows: Sequence[Flow], about: About, title: str, params: str, doc: str = "", passes: Sequence[Sequence[int]] = ()
) -> Leaf:
    """Return a group as one box, whose passes are of one or more kinds: its blocks in a few letters, with the numbers that tell
    them from others, the masks of its attention, and what its author says of it where there is room left; of kinds that differ
    in these, each for itself, with the number of its `passes`.
    """
    whole = without_rows(flows, about, title, params, doc, passes)
    rows = [] if doc else told_apart(flows, passes)
    if not rows:
        return whole
    word = whole.look.known_mask  # in place of its picture, which there is not where there are rows
    in_words = replace(whole.look, facts=(word,), known_mask="", mask="") if word else replace(whole.look, facts=())
    return replace(whole, look=in_words, rows=tuple(rows))


def without_rows(flows: Sequence[Flow], about: About, title: str, params: str, doc: str, passes: Sequence[Sequence[int]]) -> Leaf:
    """Return the same with what is in all kinds of passes in one line."""
    leaves = [item for flow in flows for item in flow.leaves()]
    pictured = [(item.about.path, item.look if isinstance(item, Leaf) else item.expert) for item in leaves]
    looks = [look for _, look in pictured]
    others = (seen for seen in looks if seen.hue not in ("norm", "merge"))
    first = next((seen for seen in looks if seen.short), None) or next(others, looks[0] if looks else Look(""))
    place = next((path for path, look in pictured if look is first), "")
    icon, mask, known, causal = seen_in_all([look for path, look in pictured if path == place] or [first])
    room = MAX_LETTERS if known or not mask else min(MAX_LETTERS, max(MAX_WITH_MASK - len(mask), MIN_LETTERS))
    words = [said for said in in_letters(flows, room, passes) if said.lower() != title.lower()]
    if any(f"({one.known_mask or one.mask})" in said for one in looks if one.mask for said in words):
        mask = known = ""  # of several masks, each is told beside its block
    docs = [doc] if doc and not repeats(doc, (title, *words, *(look.title for look in looks))) else []
    told = fitted([*words, *docs] if numbered(words) else docs or words, room) or (f"{len(looks)} blocks",)
    brief = nested(title, flows, passes)
    double = any(one.double for one in looks)
    return Leaf(about, Look(title, told, first.hue, icon, mask, known, causal, double=double, brief=brief), params)


def repeats(doc: str, said: Iterable[str]) -> bool:
    """Return whether a sentence says nothing but what a box and the blocks in it are called, maybe in shorter words.

    >>> repeats("A convolution and a ReLU", ("Conv ReLU", "conv 3 × 3")), repeats("A gate for each task", ("Gate",))
    (True, False)
    """
    known = {word for one in said for word in re.findall(r"[a-z]+", one.lower()) if len(word) >= MIN_STEM}
    told = [word for word in re.findall(r"\w+", doc.lower()) if word not in EMPTY_WORDS]
    return all(any(word.startswith(one) or one.startswith(word) for one in known) for word in told)


def numbered(words: Iterable[str]) -> bool:
    """Return whether a number stands in words."""
    return any(character.isdigit() for said in words for character in said)


def fitted(said: Sequence[str], room: int) -> tuple[str, ...]:
    """Return the first facts, and of the others those that the box still has room for."""
    found = [*said[:1]]
    for fact in said[1:]:
        if len(" · ".join((*found, fact))) <= room:
            found.append(fact)
    return tuple(found)


def told_apart(flows: Sequence[Flow], passes: Sequence[Sequence[int]]) -> list[Row]:
    """Return a row for each kind of passes that differ in their blocks, or in the numbers of these, as full as there is room for;
    nothing where they do not, or are too many.
    """
    if len(flows) < 2 or not passes:
        return []
    counts = [*map(len, passes)]
    for words in ever_shorter(flows):
        kinds: dict[tuple[str, ...], int] = {}
        for own, count in zip(with_series(words, passes), counts, strict=True):
            kinds[own] = kinds.get(own, 0) + count
        rows = [Row(f"{count} of {sum(counts)}: {' · '.join(said)}", Look(""), count) for said, count in kinds.items()]
        if 1 < len(rows) <= MAX_KINDS and () not in kinds and max(len(row.share) for row in rows) <= MAX_LETTERS:
            return rows
    return []


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
