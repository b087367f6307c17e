"""The overview: a repeat or a group as one box that says what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

from blocks.core import Look
from blocks.core.look import Hue
from composer.cost.units import short
from composer.draw.about import About
from composer.draw.brief.block import LETTERS, is_activation
from composer.draw.brief.box import MAX_LETTERS, computes, ever_shorter, in_chain, in_letters, nested
from composer.draw.brief.passes import by_first_pass, by_words, with_series
from composer.draw.brief.sentence import beside_sentence
from composer.draw.brief.words import MORE, TIMES, cut, in_few_lines, in_one_line
from composer.draw.diagram import Flow, Leaf, OpenMixture, Row
from composer.draw.edges import DiagramEdge, DiagramSource
from composer.draw.passes.values import seen_in_all
from composer.draw.series import template
from composer.draw.style.line_breaks import BETWEEN, END, LONGEST_FACT, LONGEST_ROW, ONE_LINE, row_lines
from composer.draw.wording import shares_of

MAX_ROW_LINES = 3
"""Lines of a row of such a box where it tells more so."""
MAX_KINDS = 4
"""Kinds of passes that the box of a repeat tells one by one."""
LAYERS: frozenset[Hue] = frozenset(["attn", "cross", "rec", "moe"])
"""The colors of layers that make a model what it is."""
MAX_SENTENCE = 110
"""Letters of a sentence in two lines of a box."""
CLOSED = re.compile(r"(× (\d+) [^()]+) \((.+)\)")
"""All that a box says around a closed repeat: how often it has which passes, and what is in these."""
BARE = re.compile(rf"(?: · |, )({'|'.join(LETTERS.values())}|\w*[^G\W]LU)(?= · | [+] |, |$)")
"""A norm or an activation behind what stands before it in a row."""
DIGIT = re.compile(r"\d")
"""What a sentence about a block has that its parameters may change."""
NOTHING_INSIDE: Mapping[str, Sequence[str]] = MappingProxyType({})
"""Where no pass holds a closed box alone."""
EMPTY_WORDS = frozenset(["a", "an", "and", "of", "the", "then", "with"])
"""Words that name nothing."""
MIN_STEM = 3
"""Letters from which on a word is the beginning of a longer one: `conv`."""


def of_group(
    flows: Sequence[Flow],
    about: About,
    title: str,
    params: str,
    doc: str = "",
    passes: Sequence[Sequence[int]] = (),
    *,
    sentence: str = "",
) -> Leaf:
    """Return a group as one box, whose passes are of one or more kinds: its blocks in a few letters, with the numbers that tell
    them from others, the masks of its attention, and what its author says of
    it where there is room left; of kinds that differ in these, each for itself, with the number of its `passes`. One that only
    puts values together says in a `sentence` what for.
    """
    whole = without_rows(flows, about, title, params, doc, passes)
    formulas = formulas_in(flows)
    if sentence and len(sentence) <= MAX_SENTENCE and not DIGIT.search(sentence):
        kept = beside_sentence(flows, whole.look.facts)
        if kept is not None:
            return replace(whole, look=replace(whole.look, facts=(sentence, *kept)))
    only = only_box(flows)
    if only is not None and only.rows and whole.look.facts == (only.look.title,):  # its rows are too long for a line
        return replace(whole, rows=only.rows)
    rows = [] if doc else told_apart(flows, passes)
    if not rows:
        return replace(whole, look=replace(whole.look, facts=with_formula_ends(whole.look.facts, formulas)))
    rows = [replace(row, share=ended(row.share, formulas)) for row in rows]
    word = whole.look.known_mask  # in place of its picture, which there is not where there are rows
    in_words = replace(whole.look, facts=(word,), known_mask="", mask="") if word else replace(whole.look, facts=())
    return replace(whole, look=in_words, rows=tuple(rows))


def formulas_in(flows: Sequence[Flow]) -> frozenset[str]:
    """Return the formulas that a box around flows may tell, without their numbers."""
    leaves = (item for flow in flows for item in flow.leaves() if isinstance(item, Leaf))
    return frozenset(template(item.look.formula) for item in leaves if item.look.formula and not item.look.operation)


def with_formula_ends(facts: Sequence[str], formulas: frozenset[str]) -> tuple[str, ...]:
    """Return facts, each formula and what stands before one with an end, since the dot between facts would seem to multiply.

    >>> with_formula_ends(["Linear", "2 × Linear", "σ(a)·b", "conv", "2 × (conv · σ(a)·b)"], frozenset(["σ(a)·b"]))
    ('Linear', '2 × Linear;', 'σ(a)·b;', 'conv', '2 × (conv; σ(a)·b)')
    """
    own = [is_formula(fact, formulas) for fact in facts]
    ends = [here or then for here, then in zip(own, [*own[1:], False], strict=True)]
    return tuple(f"{ended(fact, formulas)}{END}" if end else ended(fact, formulas) for fact, end in zip(facts, ends, strict=True))


def ended(said: str, formulas: frozenset[str]) -> str:
    """Return what is told of blocks in a row, without a dot at either side of a formula in it."""
    if BETWEEN not in said:
        return said
    parts = said.split(BETWEEN)
    own = [is_formula(part, formulas) for part in parts]
    between = [f"{END} " if here or then else BETWEEN for here, then in pairwise(own)]
    return "".join(part + dot for part, dot in zip(parts, [*between, ""], strict=True))


def is_formula(said: str, formulas: frozenset[str]) -> bool:
    """Return whether what is told of a block is one of some formulas, maybe at an end of a bracket or with how often it comes."""
    alone = template(TIMES.sub("", said.rpartition(": ")[2]))
    return not formulas.isdisjoint((alone, alone.removeprefix("("), alone.removesuffix(")")))


def without_rows(flows: Sequence[Flow], about: About, title: str, params: str, doc: str, passes: Sequence[Sequence[int]]) -> Leaf:
    """Return the same with what is in all kinds of passes in one line."""
    leaves = [item for flow in flows for item in flow.leaves()]
    pictured = [(item.about.path, item.look if isinstance(item, Leaf) else item.expert) for item in leaves]
    looks = [look for _, look in pictured]
    first = main_look(leaves)
    place = next((path for path, look in pictured if look is first), "")
    alike = [look for path, look in pictured if path == place] or [first]
    icon, mask, known, causal = seen_in_all(alike)
    if is_activation(first) and len(looks) > 1:
        icon = None
    if not all(one.mask for one in alike):  # of passes in which something else stands there
        mask = known = ""
    beside = tuple(filter(None, ("" if known else mask, params)))  # which a narrow box has behind what it tells
    alone = in_one_line(ONE_LINE - len(" · ".join(("", MORE, *beside[: bool(mask and not known)]))))
    every = in_letters(flows, in_few_lines(beside), passes, alone)
    words = [said for said in every if not said_by(title, said)]
    if any(f"({one.known_mask or one.mask})" in said for one in looks if one.mask for said in words):
        mask = known = ""  # of several masks, each is told beside its block
    docs = [doc] if doc and not repeats(doc, (title, *(look.title for look in looks))) else []
    told = tuple(words if computes(flows) or not docs else docs) or (f"{len(looks)} blocks",)
    brief = nested(title, flows, passes)
    double = any(one.double for one in looks)
    look = Look(title, told, first.hue, icon, mask, known, causal, double=double, brief=brief)
    return Leaf(about, look, params, closed=True)


def only_box(flows: Sequence[Flow]) -> Leaf | None:
    """Return the box that is all there is in one flow."""
    items = [item for flow in flows for item in flow.items]
    return items[0] if len(items) == 1 and isinstance(items[0], Leaf) else None


def said_by(title: str, said: str) -> bool:
    """Return whether a title says what is told of a block: it is that, or ends with that, as `Conv ReLU`."""
    return f" {title.lower()}".endswith(f" {said.lower()}")


def main_look(leaves: Sequence[Leaf | OpenMixture]) -> Look:
    """Return the look of the block that a box around it has the color of: one with an abbreviation or a closed box that has the
    color of such a one, else that with the most parameters; where none has any, one that computes rather than one that moves
    values.
    """
    looks = [item.look if isinstance(item, Leaf) else item.expert for item in leaves]
    if first := next((seen for seen in looks if seen.short or seen.hue in LAYERS), None):
        return first

    def rank(number: int) -> tuple[int, int, int]:
        hue = looks[number].hue
        matters = {"io": 0, "pos": 0, "norm": 0, "merge": 1}.get(hue, 2 if is_activation(looks[number]) else 3)
        return leaves[number].about.parameters, matters, -number

    return looks[max(range(len(looks)), key=rank)] if looks else Look("")


def repeats(doc: str, said: Iterable[str]) -> bool:
    """Return whether a sentence says nothing but what a box and the blocks in it are called, maybe in shorter words.

    >>> repeats("A convolution and a ReLU", ("Conv ReLU", "conv 3 × 3")), repeats("A gate for each task", ("Gate",))
    (True, False)
    """
    known = {word for one in said for word in re.findall(r"[a-z]+", one.lower()) if len(word) >= MIN_STEM}
    told = [word for word in re.findall(r"\w+", doc.lower()) if word not in EMPTY_WORDS]
    return all(any(word.startswith(one) or one.startswith(word) for one in known) for word in told)


def told_apart(flows: Sequence[Flow], passes: Sequence[Sequence[int]]) -> list[Row]:
    """Return a row for each kind of passes that differ in their blocks, or in the numbers of these, as full as there is room for;
    nothing where they do not, are too many, or a chain of widths tells all.
    """
    if len(flows) < 2 or not passes:
        return []
    flows, passes = by_first_pass(flows, passes)
    words: Sequence[tuple[str, ...]] = []
    wide: list[Row] = []
    for words in ever_shorter(flows):
        if (chain := in_chain(words, passes, flows)) and in_one_line(MAX_LETTERS)(chain):
            return []
        rows = rows_of(with_series(words, passes), passes)
        longest = max((len(row.share) for row in rows), default=0)
        if rows and longest <= MAX_LETTERS:
            return wide if len(wide) == len(rows) else rows
        if all(has_room_in_row(row.share) for row in rows):
            wide = wide or rows
    shares = [len(f"{share}: ") for share in shares_of(passes)]
    whole = zip(with_series(words, passes), shares, strict=False)  # there may be no words
    rooms = [(said, in_one_line(MAX_LETTERS - share)) for said, share in whole]
    return rows_of([said if said and fits(said) else cut(said, fits) for said, fits in rooms], passes)


def has_room_in_row(said: str) -> bool:
    """Return whether there is room for what a row says in as many lines as it may have."""
    lines = row_lines(said)
    return len(lines) <= MAX_ROW_LINES and all(len(line) <= (LONGEST_FACT if lines[1:] else LONGEST_ROW) for line in lines)


def told_alike(boxes: Sequence[Leaf], inside: Mapping[str, Sequence[str]] = NOTHING_INSIDE) -> list[Leaf]:
    """Return the boxes of the passes of a repeat, each of which may hold a closed one, given what that says by their paths: where
    some tell the passes of that in rows and others in a line, all with rows.
    """
    if not any(box.rows for box in boxes):
        return [*boxes]
    found = []
    for box in boxes:
        lone = CLOSED.fullmatch(box.look.facts[0]) if len(box.look.facts) == 1 and not box.rows else None
        if lone is not None:
            every = int(lone[2])
            kinds = lone[3].split("; ")
            share = "both" if every == 2 else f"all {every}"
            whole = f"{share}: {BETWEEN.join(inside.get(box.about.path, ()))}"
            alone = (
                whole if len(whole) > len(share) + 2 and END not in whole and has_room_in_row(whole) else f"{share}: {lone[3]}"
            )
            said = kinds if len(kinds) > 1 else [alone]
            box = replace(box, look=replace(box.look, facts=(lone[1],)), rows=tuple(Row(one, Look(""), 1) for one in said))
        found.append(box)
    return evenly_told(found)


def evenly_told(boxes: Sequence[Leaf]) -> list[Leaf]:
    """Return the boxes of the passes of a repeat without norms and activations in their rows for which some boxes had no room: it
    would seem that these have none.
    """
    every = [{word for row in box.rows for word in BARE.findall(row.share)} for box in boxes]
    uneven = set[str]().union(*every) - set[str].intersection(*every)

    def without(said: str) -> str:
        return BARE.sub(lambda word: "" if word[1] in uneven else word[0], said)

    told = ((box, tuple(replace(row, share=without(row.share)) for row in box.rows)) for box in boxes)
    return [replace(box, rows=rows) for box, rows in told] if uneven else [*boxes]


def rows_of(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]]) -> list[Row]:
    """Return a row for all passes that say the same; nothing for one kind, for too many, and where one says nothing."""
    kinds = by_words(words, passes)
    shares = shares_of([*kinds.values()])
    told = zip(shares, kinds.items(), strict=True)
    rows = [Row(f"{share}: {' · '.join(said)}", Look(""), len(own)) for share, (said, own) in told]
    return rows if 1 < len(rows) <= MAX_KINDS and () not in kinds else []


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
