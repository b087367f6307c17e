"""A flow for the column of a paper: nothing stands beside a block, and what it says is broken into lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from composer.draw.diagram import Branches, Flow, Group, IrregularSubgraph, Item, Leaf, OpenMixture, Sink
from composer.draw.edges import DiagramEdge
from composer.draw.layout.boxes import PAD, detail_of, icon_room, whole_title
from composer.draw.series import template, without_repeat
from composer.draw.style.line_breaks import BETWEEN, apart, with_ends, without_last_end
from composer.draw.style.text_metrics import wrapped
from composer.draw.style.typography import Role, Typography

LOSS_WIDTH, MAX_LOSS_INPUTS = 78.0, 2
"""Width of losses, which stand beside the column all the same, and narrower than every box in it; and how many values one reads
by their names, which need a line each.
"""


def fit_to_width(flow: Flow, width: float, typography: Typography) -> Flow:
    """Return the flow with boxes of a width; what is given to it goes by its name alone."""
    boxes = flow.map_items(lambda item: _item(item, width, typography))
    return boxes.map_edges(_edge).map_sinks(lambda sink: _sink(sink, typography))


def _sink(sink: Sink, typography: Typography) -> Sink:
    """Return a loss with few words, and one wire for all that it reads."""
    if sink.leaf is None:
        return replace(sink, edges=tuple(map(_edge, sink.edges)))
    look, many = sink.leaf.look, len(sink.edges) > MAX_LOSS_INPUTS
    counted = (f"of {len(sink.edges)} values",) if many else ()
    leaf = replace(sink.leaf, look=replace(look, facts=(*counted, *look.facts)))
    return replace(
        sink, leaf=in_lines(leaf, LOSS_WIDTH, typography), edges=tuple(map(_edge, sink.edges[: 1 if many else MAX_LOSS_INPUTS]))
    )


def shorten_losses(flow: Flow) -> Flow:
    """Return the flow with the names of its losses alone."""
    return flow.map_sinks(lambda sink: replace(sink, leaf=None, edges=sink.edges[:1]))


def _edge(edge: DiagramEdge) -> DiagramEdge:
    return edge.reading(replace(edge.source, suffix=""))


def _item(item: Item, width: float, typography: Typography) -> Item:
    match item:
        case Leaf():
            return in_lines(item, width, typography)
        case Group() | Branches():
            return item.map_flows(lambda inner: fit_to_width(inner, width, typography))
        case OpenMixture() | IrregularSubgraph():
            return item


def in_lines(leaf: Leaf, width: float, typography: Typography) -> Leaf:
    """Return a block that is no wider than that, with all that it says line by line."""
    look = leaf.look
    if look.sign and not look.sides:
        return leaf
    if look.sides:
        beside = [side.words for side in look.sides]
        said = (*look.sides[0].facts, *beside[1:]) if look.sign else (*look.facts, *beside)
        look = replace(look, facts=said, hue=look.sides[0].hue if look.sign else look.hue, sides=(), sign=None)
    alone = replace(leaf, look=look)
    rows = [replace(row, share=re.sub(r"(?<=\d) of \d+:(?! ×)", " ×", row.share)) for row in leaf.rows]
    drawn = tuple(row for row in rows if row.look.title)
    words = [row.share for row in rows if not row.look.title]  # of a repeat that is closed, which may take several lines
    room = width - PAD - (icon_room(leaf) if not drawn else PAD)
    params = leaf.params if leaf.params != "tied" or "weight" not in detail_of(alone) else ""
    detail = " · ".join(filter(None, [leaf.name if whole_title(leaf) == look.title else "", detail_of(alone), params]))
    under = (line for one in (detail, *words) for line in lines("detail", one, room, typography))
    return replace(alone, rows=drawn, lines=(*lines("title", whole_title(leaf), room, typography), *under))


def has_short_title(leaf: Leaf, width: float, typography: Typography) -> bool:
    """Return whether the title of a block fits into one line of a small box."""
    return typography.width(without_repeat(leaf.look.title), "title") <= width - 2 * PAD


def small(leaves: Mapping[str, Leaf], width: float, typography: Typography) -> dict[str, Leaf]:
    """Return blocks that are no wider than that, with their titles and the first facts about them in a few lines, without their
    names and parameters: what one has no room for, others with its title do not tell either, so that all can be compared.
    """
    facts = {path: apart(leaf.look.detail) for path, leaf in leaves.items()}
    unsaid: dict[str, set[str]] = {}
    for path, leaf in leaves.items():
        count = next(n for n in range(len(facts[path]), -1, -1) if n == 0 or _has_room(leaf, facts[path][:n], width, typography))
        unsaid.setdefault(without_repeat(leaf.look.title), set()).update(map(template, facts[path][count:]))

    def one(path: str, leaf: Leaf) -> Leaf:
        told = [fact for fact in facts[path] if template(fact) not in unsaid[without_repeat(leaf.look.title)]]
        return replace(leaf, look=replace(leaf.look, icon=None), rows=(), lines=_small_lines(leaf, told, width, typography))

    return {path: one(path, leaf) for path, leaf in leaves.items()}


def _has_room(leaf: Leaf, facts: Sequence[str], width: float, typography: Typography) -> bool:
    """Return whether a small box has room for facts."""
    return len(_small_lines(leaf, facts, width, typography)) <= SMALL_LINES


def _small_lines(leaf: Leaf, facts: Sequence[str], width: float, typography: Typography) -> tuple[tuple[Role, str], ...]:
    """Return the title of a small box and facts about it in lines."""
    room = width - 2 * PAD
    said = lines("detail", BETWEEN.join(facts), room, typography) if facts else ()
    return *lines("title", leaf.look.title, room, typography), *said


SMALL_LINES = 5
"""Of a small box, at most."""
TURNS = re.compile(r"\d+ × \(")
"""How blocks begin that come several times in turns."""


def lines(role: Role, text: str, room: float, typography: Typography, *, turns: bool = False) -> Iterator[tuple[Role, str]]:
    """Return a text in as few lines as have room for it, broken between facts where that can be; blocks that come several times
    in `turns` may stay in one line, where boxes are as wide as they need to be.
    """

    def fits(line: str) -> bool:
        return typography.width(with_ends(line), role) <= room

    def words(fact: str) -> list[str]:
        parts = re.split(r" (?=\()|(?<=\)) |(?<=\),) ", fact)  # what stands in brackets stays in one line
        return [word for part in parts for word in ([part] if fits(part) else part.split(" "))]

    def pieces(fact: str) -> list[str]:
        if fits(fact) or (turns and TURNS.match(fact)):
            return [fact]
        return [piece for one in fact.split(BETWEEN) for piece in ([one] if fits(one) else wrapped(words(one), " ", fits))]

    facts = [piece for fact in apart(text) for piece in pieces(fact)]
    broken = wrapped(facts, BETWEEN, fits)
    told = broken if role in ("heading", "title") else without_last_end([*map(with_ends, broken)])  # a title is its author's
    return ((role, line) for line in told if line)
