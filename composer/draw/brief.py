"""What is in a closed box, in a few letters: its blocks with the numbers that tell them from others."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias

from blocks.core import Look, spoken
from composer.draw.diagram import Flow, Group, Leaf, OpenMixture
from composer.draw.series import MAX_IN_ORDER, NUMBER, REPEAT, as_chain, as_series, of_passes, one_each, one_number, template
from composer.draw.structure import (
    JOINED,
    SHORTCUT,
    behind_skip,
    exchanges,
    parallel_part,
    shortcut_of,
    side_by_side,
    with_shortcut,
)
from composer.draw.style.line_breaks import has_room
from composer.draw.wording import shares_of

MAX_LETTERS = 64
"""Letters of what a row tells of a kind of passes."""
MAX_FACT = 24
"""Letters of a fact that is told behind a title."""
ROOMS = (64, 48, 32)
"""Letters of a box with what is in it, where it is one block of a closed box itself."""
MORE = "…"
"""What stands behind the last block that is named, where something else in the box computes, too."""
SKIP = " + skip"
"""What stands behind all blocks around which the input goes."""
DROPOUT = "dropout "
"""How what training does to a value begins, which maps alone tell."""
TIMES = re.compile(r"^\d+ × ")
"""How often a block is there."""
PADDING = re.compile(r"\b(\w+_)?valid\b")
"""Which positions count, in a formula: it leaves out padding, and says nothing of what a block is."""
SCALE = re.compile(r"× (\S+)")
"""A block that multiplies by a number, which beside others reads as how often something is there."""
CHAIN = re.compile(rf"{NUMBER.pattern}(?: → {NUMBER.pattern}){{2,}}")
"""The widths of maps one after the other."""
MOVES, NORMS, BETWEEN, MAPS, OPERATIONS, MAIN = range(-1, 5)
"""How much blocks matter for what a box is."""
MAX_TURN, MAX_TURN_LETTERS = 4, 44
"""Blocks of what a box counts as one that comes several times, and letters of these, which no line breaks."""
MAX_FORMULAS = 46
"""Letters of formulas with numbers that have names: longer ones are told by these, which tell a block from others of its kind."""
PARAMETER = "Parameter"
"""The title of learned numbers before their name has its place."""
NUMBERS = ", "
"""What stands between the numbers that formulas name."""
MAX_MAPS = 4
"""Maps that are told beside operations, where there is no room for all that stands between them."""
HasRoom: TypeAlias = Callable[[Sequence[str]], bool]
"""Whether there is room for what is told of blocks."""


@dataclass(frozen=True, slots=True)
class Brief:
    """A block in a closed box."""

    forms: tuple[str, ...]
    """From the fullest to the shortest."""
    weight: int
    """What is left out last: `MAIN` for what its class calls in few letters and blocks of the recipe, then `OPERATIONS` with the
    formula whose value the box gives, `MAPS`, activations and other formulas that stand `BETWEEN` these, `NORMS` with dropout,
    and what `MOVES` values.
    """
    sides: tuple[str, ...] = ()
    """The positions that act on it."""
    computes: bool = True
    """Whether it tells passes apart that differ in it: it reads something, and is no norm or the like."""
    times: int = 1
    """How often it is there, one after the other, as a block of a repeat."""
    turn: str = ""
    """The path of that repeat, whose blocks follow one another in each pass."""
    then: str = ""
    """The activation behind it, where it stands for a box around both; or dropout."""
    behind: bool = False
    """Whether it comes behind the sum at the end of a skip connection."""
    numbers: tuple[str, ...] = ()
    """What a formula calls numbers by name, with these: `shrink 2`."""

    @property
    def kind(self) -> str:
        """What is shortened together: its shortest form without numbers, and without what goes around it."""
        return template(self.forms[-1].partition(SHORTCUT)[0])

    def shortened(self, by: int) -> str:
        """Return it in a form so much shorter than the fullest."""
        return self.forms[min(by, len(self.forms) - 1)]


def in_letters(
    flows: Sequence[Flow],
    fits: HasRoom,
    passes: Sequence[Sequence[int]] = (),
    *,
    norms: bool = False,
    in_line: HasRoom | None = None,
) -> tuple[str, ...]:
    """Return the blocks of flows, each of some passes, as full as there is room for, beside what is told in few letters with
    `norms`; where there is none, the first ones in their shortest form. Of flows whose blocks differ in more than numbers it is
    what a line has room for: in several, those of one flow would seem to follow those of another.
    """
    told: tuple[str, ...] = ()
    room = fits
    flows, passes = by_first_pass(flows, passes)
    for words in ever_shorter(flows, norms=norms):
        told = in_chain(words, passes, flows) or in_all(with_series(words, passes), passes)
        room = fits if len(told) <= max(map(len, words)) else in_line or fits
        if room(told):
            return told
    return cut(told, room)


def by_first_pass(flows: Sequence[Flow], passes: Sequence[Sequence[int]]) -> tuple[Sequence[Flow], Sequence[Sequence[int]]]:
    """Return flows, each of some passes, with these, in the order of their first passes."""
    if len(flows) != len(passes):
        return flows, passes
    pairs = sorted(zip(flows, passes, strict=True), key=lambda pair: min(pair[1]))
    return [flow for flow, _ in pairs], [own for _, own in pairs]


def in_one_line(room: int) -> HasRoom:
    """Return whether there is room for what is told of blocks in a line of so many letters, beside a sign that there are more."""
    return lambda told: len(" · ".join(one for one in told if one != MORE)) <= room


def in_few_lines(beside: Sequence[str] = ()) -> HasRoom:
    """Return whether there is room in the lines of a box for what is told of blocks, and for what stands behind it."""
    return lambda told: has_room([one for one in told if one != MORE], beside)


def cut(told: tuple[str, ...], fits: HasRoom) -> tuple[str, ...]:
    """Return the first ones of blocks for which there is room, and a sign that there are more."""
    end = f"{MORE}{SKIP}" if any(said.endswith(SKIP) for said in told) else MORE
    told = tuple(said for said in told if not said.startswith(MORE))
    while told and not fits((*told, end)):
        told = told[:-1]
    return (*told, end) if told else ()


def nested(title: str, flows: Sequence[Flow], passes: Sequence[Sequence[int]] = ()) -> tuple[str, ...]:
    """Return a box with what is in it as one block of another box, from the fullest form to its title alone; one around a single
    block that has the name of that, `conv norm` around a `conv`, is that block, and one of another name is that where there is no
    room for both.
    """
    every = [briefs(flow) for flow in flows]
    inner = {one.forms: one for own in every for one in own if one.weight == MAIN}
    only: Brief | None = None
    if len(inner) == 1 and all(sum(one.weight == MAIN for one in own) == 1 for own in every):
        (only,) = inner.values()
        if only.times > 1 or REPEAT.match(title) or any(behind_skip(flow) is not None for flow in flows):
            only = None
        elif only.forms[-1].split()[0].lower() in title.lower().split():
            return with_activation(only, every)
    found = []
    kinds = in_kinds(title, flows, passes) if REPEAT.match(title) else None
    if kinds is not None:
        return (*kinds, title)
    for room in ROOMS:
        told = [
            said for said in in_letters(flows, in_one_line(room - len(f"{title} ()")), passes) if said.lower() != title.lower()
        ]
        blocks = {one.forms[-1] for own in every for one in own if one.weight == MAIN}
        named = len(told) > (REPEAT.match(title) is None) and all(TIMES.sub("", said) in blocks for said in told)
        if (named or any(map(str.isdigit, "".join(told)))) and not told[-1].startswith(MORE) and computes(flows):
            found.append(f"{title} ({' · '.join(told).replace(' · ', ', ')})")
    return tuple(dict.fromkeys((*found, *(only.forms if only else ()), title)))


def in_kinds(title: str, flows: Sequence[Flow], passes: Sequence[Sequence[int]]) -> tuple[str, ...] | None:
    """Return a repeat with what is in each of a few kinds of passes, each with the passes that it is about, where there is room
    for that; None where all say the same but for some numbers, or where it is not known which passes are which.
    """
    if len(flows) < 2 or len(flows) != len(passes):
        return None
    flows, passes = by_first_pass(flows, passes)
    for words in ever_shorter(flows):
        if len(in_all(with_series(words, passes), passes)) <= max(map(len, words)) or in_chain(words, passes, flows):
            return None
        kinds = by_words(words, passes)
        told = [f"{share}: {', '.join(said)}" for share, said in zip(shares_of([*kinds.values()]), kinds, strict=True)]
        form = f"{title} ({'; '.join(told)})".replace(" · ", ", ")
        if len(form) <= ROOMS[0] and () not in kinds:
            return (form,)
    return ()


def by_words(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]]) -> dict[tuple[str, ...], list[int]]:
    """Return what kinds of passes say, each once, with all passes that say it."""
    kinds: dict[tuple[str, ...], list[int]] = {}
    for said, own in zip(words, passes, strict=False):  # there may be no words
        kinds.setdefault(said, []).extend(own)
    return kinds


def with_activation(one: Brief, every: Sequence[Sequence[Brief]]) -> tuple[str, ...]:
    """Return the forms of the only block of some flows that counts, each with the activation behind it in all flows."""
    behind = set()
    for own in every:
        at = next(number for number, other in enumerate(own) if other.weight == MAIN)
        behind.add(" · ".join(other.forms[-1] for other in own[at + 1 :] if other.weight == BETWEEN))
    (then, *others) = behind
    return one.forms if others or not then else tuple(f"{form} · {then}" for form in one.forms)


def with_series(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]]) -> Sequence[tuple[str, ...]]:
    """Return what flows say, each of some passes, with closed repeats that differ in numbers alone as one in each, which has all
    of these in the order of passes: `× 3, 4, 6, 3 Layer`.
    """
    if len(words) == 1 or len({*map(len, words)}) > 1:
        return words
    of_each = passes or one_each(len(words))
    series = [as_series(alike, of_each) if REPEAT.match(alike[0]) else "" for alike in zip(*words, strict=True)]
    return [tuple(both or said for both, said in zip(series, own, strict=True)) for own in words]


def in_chain(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]], flows: Sequence[Flow]) -> tuple[str, ...]:
    """Return what flows say, each of some passes, one after the other, of which the one map in each is from another width to
    another one, with all widths in order: `Linear 3 → 64 → 128`, `ReLU`; nothing for others.
    """
    if len(words) < 2 or len(words) != len(passes):
        return ()
    told = all_widths(words, passes) if len({*map(len, words)}) == 1 else with_between(words, passes)
    return told if told and all(sum(one.weight in (MAPS, MAIN) for one in briefs(flow)) == 1 for flow in flows) else ()


def all_widths(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Return what flows say, each of some of a few passes, that differ in the widths of one block alone, with all of these in
    order.
    """
    every = sorted((index, said) for said, own in zip(words, passes, strict=True) for index in own)
    indices = [index for index, _ in every]
    if indices != [indices[0] + number for number in range(len(every))] or len(every) > MAX_IN_ORDER:
        return ()
    alike = [tuple(same) for same in zip(*(said for _, said in every), strict=True)]
    differ = [len({*same}) > 1 for same in alike]
    told = tuple(as_chain(same) if other else same[0] for same, other in zip(alike, differ, strict=True))
    return told if sum(differ) == 1 and all(told) else ()


def with_between(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Return what passes say that have one block each, with all widths in order, and what comes behind it in all but the last:
    `conv 3 × 3 (32 → 32 → 128), stride 2`, `ReLU between`; nothing for others.
    """
    *before, last = (said for _, said in sorted((index, said) for said, own in zip(words, passes, strict=True) for index in own))
    if len(last) != 1 or len({said[1:] for said in before}) != 1 or len(before[0]) != len(last) + 1:
        return ()
    chain = as_chain([said[0] for said in (*before, last)])
    return (chain, f"{before[0][1]} between") if chain else ()


def in_all(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Return what flows say, each of some passes, each once; of what differs in one number, all values."""
    if len(words) == 1:
        return words[0]
    if len({*map(len, words)}) == 1:
        alike = [*zip(*words, strict=True)]
        if all(len({*same}) == 1 or one_number([*dict.fromkeys(same)]) is not None for same in alike):
            return tuple(of_passes(same, passes) for same in alike)
    return tuple(dict.fromkeys(said for own in words for said in own))


def ever_shorter(flows: Sequence[Flow], *, norms: bool = False) -> Iterator[list[tuple[str, ...]]]:
    """Yield the blocks of each flow: all, maybe with `norms` beside what is told in few letters, then those alone that matter,
    then the longest ones with less and less; where blocks other than norms are left out, with a sign of that, and the skip
    connection around all.
    """
    every = [briefs(flow) for flow in flows]
    skips = [
        behind_skip(flow) is not None and any(one.weight >= MAPS for one in own) for flow, own in zip(flows, every, strict=True)
    ]
    for kept, by in _with_less(every, norms=norms):
        yield [as_said(some, by, own, around) for some, own, around in zip(kept, every, skips, strict=True)]


def as_said(kept: Sequence[Brief], by: Mapping[str, int], every: Sequence[Brief], around: bool) -> tuple[str, ...]:
    """Return what the blocks that are kept of all say in the order in which they run, those with an input that goes around them
    before those behind the sum.
    """
    said = as_run([one for one in kept if not (around and one.behind)], by)
    more = sum(one.weight > BETWEEN for one in every) > sum(one.weight > BETWEEN for one in kept)
    whole = (*said, *[MORE] * more)
    return (*with_skip(whole), *as_run([one for one in kept if one.behind], by)) if around else whole


def _with_less(every: Sequence[Sequence[Brief]], *, norms: bool) -> Iterator[tuple[list[list[Brief]], Mapping[str, int]]]:
    """Yield which blocks are kept of all, and by how much their kinds are shortened."""
    weights = {one.weight for own in every for one in own}
    if not weights:
        return
    if max(weights) > NORMS:  # what moves values says nothing beside what computes
        every, weights = [[one for one in own if one.weight >= NORMS] for own in every], weights - {MOVES}
    common = set.intersection(*({one.forms[-1] for one in own} for own in every))
    if any(one.then for own in every for one in own):
        weights |= {BETWEEN}
    maps = max(sum(one.weight == MAPS for one in own) for own in every)
    idle = {NORMS} if max(weights) > MAPS and not norms else set()
    if idle:
        if any(DROPOUT in one.then for own in every for one in own):
            yield [[one for one in own if one.weight >= min(weights - idle)] for own in every], {}  # where there is room for all
        every = [[replace(one, then=one.then.partition(DROPOUT)[0].removesuffix(" · ")) for one in own] for own in every]
    idle |= {MAPS} if max(weights) == OPERATIONS and maps > MAX_MAPS else set()
    for least in sorted(weights - idle):
        kept = [[one for one in own if one.weight >= least or (one.computes and one.forms[-1] not in common)] for own in every]
        by: dict[str, int] = {}
        if least > BETWEEN:
            kept = [[replace(one, then="") for one in own] for own in kept]
        yield kept, by
        while least >= min(MAPS, max(weights)) and (longest := longest_kind(kept, by)):
            by[longest] = by.get(longest, 0) + 1
            yield kept, by


def computes(flows: Sequence[Flow]) -> bool:
    """Return whether anything in flows does more than to move values."""
    return any(one.weight > MOVES for flow in flows for one in briefs(flow))


def with_skip(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is told of blocks with the skip connection around them."""
    return (*words[:-1], words[-1] + SKIP) if words else ()


def longest_kind(blocks: Sequence[Sequence[Brief]], by: Mapping[str, int]) -> str:
    """Return the kind of blocks that takes most letters of those that can be shortened, of those that matter least; nothing where
    none can be.
    """
    lengths: dict[tuple[int, str], int] = {}
    for one in {one for own in blocks for one in own}:
        if by.get(one.kind, 0) < len(one.forms) - 1:
            of_kind = -one.weight, one.kind
            lengths[of_kind] = lengths.get(of_kind, 0) + len(one.shortened(by.get(one.kind, 0)))
    _, longest = max(lengths, key=lambda one: (one[0], lengths[one], one[1]), default=(0, ""))
    return longest


def as_run(blocks: Sequence[Brief], by: Mapping[str, int]) -> tuple[str, ...]:
    """Return what blocks say in the order in which they run, as often as each follows itself; those of a repeat in each pass."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for turn, own in groupby(blocks, key=lambda one: (one.turn, one.times)):
        said = [
            each
            for one in own
            for each in ((one.shortened(by.get(one.kind, 0)), one.sides), *((then, ()) for then in one.then.split(" · ") if then))
        ]
        found += said * turn[1]
    return tuple(runs(found))


def runs(blocks: Sequence[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    """Yield what blocks say, as often as each or a few follow themselves, and their positions where they first act.

    >>> [*runs([(said, ()) for said in ("conv", "conv", "ReLU", "conv", "ReLU", "pool")])]
    ['conv', '2 × (conv · ReLU)', 'pool']
    """
    placed: set[str] = set()
    words, at = [said for said, _ in blocks], 0
    while at < len(words):
        length, count = turns(words, at)
        if count == 2 and length == 1 and turns(words, at + 1)[0] > 1:  # as a block before others that come in turns
            count = 1
        yield several(words[at : at + length], count)
        for side in dict.fromkeys(side for _, sides in blocks[at : at + length] for side in sides):
            if side not in placed:
                yield side
                placed.add(side)
        at += length * count


def turns(words: Sequence[str], at: int) -> tuple[int, int]:
    """Return how many blocks from a place on come again behind themselves, and how often they are there: those that tell most."""
    best = 1, 1
    for length in range(1, MAX_TURN + 1):
        turn, count = words[at : at + length], 1
        if length > 1 and (len(" · ".join(turn)) > MAX_TURN_LETTERS or any(said.startswith("× ") for said in turn)):
            break
        while words[at + length * count : at + length * (count + 1)] == turn:
            count += 1
        if count > 1 and length * count > best[0] * best[1]:
            best = length, count
    return best


def several(turn: Sequence[str], count: int) -> str:
    """Return what blocks say that come so often, one after the other."""
    if len(turn) > 1:
        return f"{count} × ({' · '.join(runs([(said, ()) for said in turn]))})"
    (said,) = turn
    if count == 1:
        return said
    return f"{said} {count} times" if said.startswith("× ") else f"{count} × {said}"


def briefs(flow: Flow) -> list[Brief]:
    """Return the blocks of a flow, but for merges; those with a mask tell it where another block has another one, and where the
    box has the picture of cross-attention.
    """
    fed = joins_from_outside(flow)
    leaves = [
        item
        for item in flow.leaves()
        if isinstance(item, OpenMixture) or item.about.path in fed or not (item.look.sign or item.look.quiet)
    ]
    behind = behind_skip(flow) or ()
    reads = {edge.target for edge in flow.all_edges()}
    looks = [item.look for item in leaves if isinstance(item, Leaf) and item.look.mask and not item.look.double]
    differ = len({look.mask for look in looks}) > 1
    crossed = any(isinstance(item, Leaf) and item.look.double for item in leaves)
    found = []
    for item in leaves:
        one = brief_of(
            item, reads=item.about.path in reads, gives=flow.outlet is not None and item.about.path == flow.outlet.path
        )
        if isinstance(item, Leaf) and item.look in looks and differ:
            one = replace(one, forms=tuple(f"{form} ({item.look.known_mask or item.look.mask})" for form in one.forms))
        elif isinstance(item, Leaf) and item.look in looks and crossed and item.look.known_mask == "causal":
            one = replace(one, forms=tuple(f"causal {form}" for form in one.forms))
        if isinstance(item, Leaf) and item.after.startswith(DROPOUT):
            one = replace(one, then=" · ".join(filter(None, (one.then, item.after))))
        found.append(replace(one, forms=tuple(scaled(form) for form in one.forms), behind=item.about.path in behind))
    found = with_turns(found, leaves)
    if fed and any(one.weight == MAIN for one in found):  # beside maps alone, what is joined matters less than these
        found = [replace(one, weight=MAIN) if leaf.about.path in fed else one for one, leaf in zip(found, leaves, strict=True)]
    told = zip(found, leaves, strict=True)
    in_order = sorted(told, key=lambda pair: is_held(pair[0], pair[1], reads))  # tables and the like behind what computes
    by_path = {leaf.about.path: one for one, leaf in in_order if " · " not in one.forms[-1]}  # a formula reads as several blocks
    by_path = by_numbers(by_path, {leaf.about.path: leaf.look.title for leaf in leaves if isinstance(leaf, Leaf)})
    if exchanges(flow):
        return by_kind(with_groups(flow, with_repeats(flow, by_path)).values())
    return [*structured(flow, with_repeats(flow, by_path)).values()]


def with_turns(found: list[Brief], leaves: Sequence[Leaf | OpenMixture]) -> list[Brief]:
    """Return the blocks of a box in which one closed box alone does more than to move values, with how values are moved before
    and after that: this is what the box around it is for. A block that stands elsewhere too is told by its name.
    """
    computing = [leaf for one, leaf in zip(found, leaves, strict=True) if one.weight > MOVES]
    turned = [isinstance(leaf, Leaf) and leaf.look.low for leaf in leaves]
    if len(computing) != 1 or not (isinstance(computing[0], Leaf) and computing[0].closed and any(turned)):
        return found
    (again,) = (leaf.elsewhere for leaf in computing if isinstance(leaf, Leaf))
    by_name = [replace(one, forms=one.forms[-1:]) if again and one.weight > MOVES else one for one in found]
    return [
        replace(one, forms=(one.forms[-1].lower(),), weight=OPERATIONS) if low else one
        for one, low in zip(by_name, turned, strict=True)
    ]


def by_numbers(by_path: dict[str, Brief], titles: Mapping[str, str]) -> dict[str, Brief]:
    """Return blocks by their paths, in place of formulas inside of a box that are long together the numbers that they call by a
    name, once; given how the formulas are written.
    """
    naming = {path: one for path, one in by_path.items() if one.numbers and one.weight == BETWEEN}
    if sum(len(titles[path]) for path in naming) <= MAX_FORMULAS:
        return by_path
    first, *others = naming
    numbers = dict.fromkeys(number for one in naming.values() for number in one.numbers)
    told = Brief((NUMBERS.join(numbers),), OPERATIONS)
    return {path: told if path == first else one for path, one in by_path.items() if path not in others}


def joins_from_outside(flow: Flow) -> set[str]:
    """Return the paths of the concatenations in a flow of what flows with what comes from elsewhere, as on the way up of a U."""
    joins = {leaf.about.path for leaf in flow.leaves() if isinstance(leaf, Leaf) and leaf.look.sign == "‖"}
    inside = {*paths_in(flow)} if joins else set()
    wires = (edge for edge in flow.all_edges() if edge.target in joins and not edge.back)
    return {edge.target for edge in wires if edge.source.origin != flow.entry and edge.source.path not in inside}


def paths_in(flow: Flow) -> Iterator[str]:
    """Yield the paths of all that a flow holds."""
    for item in flow.items:
        yield item.about.path
        if isinstance(item, Group):
            yield from (path for inner in item.flows for path in paths_in(inner))


def by_kind(blocks: Iterable[Brief]) -> list[Brief]:
    """Return blocks in the order in which the first one of each kind stands, and in a kind those with the same in them."""
    of_kind: dict[str, dict[str, list[Brief]]] = {}
    for one in blocks:
        of_kind.setdefault(one.kind, {}).setdefault(one.forms[-2:][0], []).append(one)
    return [one for kinds in of_kind.values() for alike in kinds.values() for one in alike]


def with_groups(flow: Flow, by_path: Mapping[str, Brief]) -> dict[str, Brief]:
    """Return the blocks of a flow by their paths, with each group in it as a box of its own, which has the name of the group."""
    found = dict(by_path)
    for group in flow.items:
        if isinstance(group, Group) and not group.count:
            inside = {leaf.about.path for inner in group.flows for leaf in inner.leaves()}
            first, *others = [path for path in found if path in inside] or [""]
            if first:
                one = Brief(nested(group.header[0], group.flows), MAIN)
                found = {path: one if path == first else said for path, said in found.items() if path not in others}
    return found


def scaled(form: str) -> str:
    """Return what a block says, in words where it multiplies by a number."""
    scale = SCALE.fullmatch(form)
    return f"scaled by {scale[1]}" if scale else form


def is_held(one: Brief, item: Leaf | OpenMixture, reads: Collection[str]) -> bool:
    """Return whether a block is parameters or a table, which read nothing and stand ready before anything runs."""
    return item.about.path not in reads and (item.about.parameters > 0 or one.weight == MOVES)


def with_repeats(flow: Flow, by_path: Mapping[str, Brief]) -> dict[str, Brief]:
    """Return the blocks of a flow by their paths, with each repeat in it as one: the only block that it tells, so many times, or
    a box of its own.
    """
    found = dict(by_path)
    for group in repeats_in(flow):
        inside = {leaf.about.path for inner in group.flows for leaf in inner.leaves()}
        own = [path for path in found if path in inside]
        if not own:
            continue
        only = [path for path in own if found[path].weight == MAIN] if len(own) > 1 else own
        rest = [path for path in own if path not in only]
        alike = len(group.flows) == 1 and group.count.isdigit() and parallel_part(group.flows[0]) is None
        alike = alike and not any(REPEAT.match(found[path].forms[-1]) for path in only)  # stages of layers are no more layers
        if len(only) == 1 and alike and all(found[path].weight <= BETWEEN for path in rest):
            found |= {path: replace(found[path], times=int(group.count), turn=group.about.path) for path in own}
        else:
            one = Brief(of_repeat(group), MAIN)
            found = {path: one if path == own[0] else said for path, said in found.items() if path not in own[1:]}
    return found


def of_repeat(group: Group) -> tuple[str, ...]:
    """Return a repeat with what is in it as one block of another box, from the fullest form to the shortest; one whose passes map
    from width to width, and that has the name of all of them, with these widths alone: `MLP 64 → 128 → 1024`.
    """
    called = spoken(group.about.path.rpartition(".")[2])
    name = group.header[0] or called
    times = f"{group.count} parallel" if group.parallel else f"× {group.count}"
    passes = [[index for index, kind in enumerate(group.kinds) if kind in own] for own in group.cells]
    forms = nested(f"{times} {name}", group.flows, passes)
    if not group.widths:
        return forms
    return f"{name if name == called and not name.endswith('s') else forms[-1]} {group.widths}", forms[-1]


def widths_in_turn(flows: Sequence[Flow], passes: Sequence[Sequence[int]]) -> str:
    """Return from which width to which the passes of a repeat map, one after the other, each by its only map: `64 → 128 → 1024`;
    nothing for others.
    """
    if len(flows) < 2 or any(len(own) > 1 for own in passes):
        return ""
    flows, passes = by_first_pass(flows, passes)
    chains = (in_chain(words, passes, flows) for words in ever_shorter(flows))
    found = CHAIN.search(" · ".join(next(filter(None, chains), ())))
    return found[0] if found else ""


def repeats_in(flow: Flow) -> Iterator[Group]:
    """Yield the outermost repeats in a flow, and in the groups in it."""
    for item in flow.items:
        if isinstance(item, Group) and item.count:
            yield item
        elif isinstance(item, Group):
            yield from (one for inner in item.flows for one in repeats_in(inner))


def structured(flow: Flow, by_path: dict[str, Brief]) -> dict[str, Brief]:
    """Return blocks by their paths, with branches that meet as one, and with the shortcut around a branch behind its end."""
    part = parallel_part(flow)
    if part is None:
        return by_path
    own = [[path for path in branch if path in by_path and worth_telling(by_path[path])] for branch in part.branches]
    if not all(own) or any(by_path[path].times > 1 for branch in own for path in branch):
        return by_path
    forms = [[by_path[path].forms for path in branch] for branch in own]
    around = shortcut_of(forms) if part.sign == "+" and part.forked else None
    if around is not None:
        (shortcut,), last = own[around], own[1 - around][-1]
        both = replace(by_path[last], forms=with_shortcut(by_path[last].forms, by_path[shortcut].forms))
        branch = part.branches[1 - around]
        gone = {shortcut, part.join, *branch[branch.index(last) + 1 :]}  # what would seem to come behind the sum
        return {path: both if path == last else one for path, one in by_path.items() if path not in gone}
    first, *others = (path for path in (*(path for branch in part.branches for path in branch), part.join) if path in by_path)
    whole = Brief(
        side_by_side(forms, part.sign), MAIN, tuple(side for branch in own for path in branch for side in by_path[path].sides)
    )
    return {path: whole if path == first else one for path, one in by_path.items() if path not in others}


def worth_telling(one: Brief) -> bool:
    """Return whether a block is told where it stands in a branch: what a box is made of."""
    return one.weight > BETWEEN


def brief_of(item: Leaf | OpenMixture, *, reads: bool, gives: bool = False) -> Brief:
    """Return a block in few letters, given whether it reads something, and whether its value is what the box around it gives."""
    if isinstance(item, OpenMixture):
        return Brief(item.brief, MAIN)
    look = item.look
    if look.sign:
        return Brief((JOINED[look.sign][-1],), BETWEEN)
    sides = tuple(side.title for side in look.sides)
    if look.brief or look.short:
        forms = look.brief or (look.short,)
        then = forms[0].partition(" · ")[2]
        return Brief(tuple(form.partition(" · ")[0] for form in forms), MAIN, sides, then=then)
    if look.operation or look.formula:
        kept = reads and not PADDING.search(look.formula)
        weight = OPERATIONS if look.operation or gives else BETWEEN if kept else MOVES
        return Brief(look.operation or (look.formula,), weight, sides, numbers=named_numbers(look))
    if is_activation(look):
        plain = look.title if sum(map(str.isupper, look.title)) > 1 else look.title[:1].lower() + look.title[1:]  # not `ReLU`
        return Brief((plain,), BETWEEN if reads else MOVES, sides, computes=reads)
    number = next((fact for fact in look.facts if NUMBER.search(fact)), "").removesuffix(" + bias")
    title = item.about.path.rpartition(".")[2] if is_parameter(item) and not reads else look.title
    comma = "," if number.startswith("starts ") else ""  # else, it is what the title calls that starts there
    told = (f"{title}{comma} {number}", title) if 0 < len(number) <= MAX_FACT else (title,)
    given = not reads and not item.about.parameters and look.hue != "embed"  # such as a table that is computed
    held = {True: MAPS, False: NORMS}[" × " in number] if is_parameter(item) and not reads else MAPS  # a table or a vector
    weight = MOVES if given else {"norm": NORMS, "merge": MOVES, "io": MOVES}.get(look.hue, held)
    return Brief(told, weight, sides, computes=reads and look.hue not in ("norm", "merge", "io"))


def named_numbers(look: Look) -> tuple[str, ...]:
    """Return what a formula calls numbers by name, with these: `shrink 2`."""
    return tuple(fact.replace(" = ", " ") for fact in look.facts if " = " in fact)


def beside_sentence(flows: Sequence[Flow], told: Sequence[str]) -> tuple[str, ...] | None:
    """Return which of the blocks that a box tells of flows it has beside a sentence about what for: one that learns at most,
    parameters that are read as they are, and the numbers that formulas name. None where others are not several operations and
    formulas, which tell how; beside one that learns, several formulas.
    """
    leaves = [item for flow in flows for item in flow.leaves() if isinstance(item, Leaf)]
    tables = {form for item in leaves if is_parameter(item) for form in brief_of(item, reads=False).forms}
    learn = _forms(item for item in leaves if item.about.parameters and not is_parameter(item))
    free = [item for item in leaves if not item.about.parameters]
    formulas = _forms(item for item in free if item.look.formula or item.closed)
    steps = formulas | _forms(item for item in free if item.look.operation)
    numbers = {number for item in free if item.look.formula for number in named_numbers(item.look)}
    named = {said for said in told if {*said.split(NUMBERS)} <= numbers}  # in place of formulas
    own = [said for said in told if said != MORE and said not in (tables | named)]
    forms = [TIMES.sub("", said) for said in own]
    maps = [said for said, form in zip(own, forms, strict=True) if form in learn]
    several = len(named) + sum(form in (formulas if maps else steps) for form in forms)
    few = len(maps) <= 1 < several and not any(map(TIMES.match, maps))
    return tuple(said for said in told if said in (*tables, *named, *maps)) if few and learn | _forms(free) >= {*forms} else None


def _forms(leaves: Iterable[Leaf]) -> set[str]:
    """Return what is told of blocks, in each form."""
    return {form for item in leaves for form in brief_of(item, reads=True).forms}


def is_parameter(item: Leaf) -> bool:
    """Return whether a block is nothing but numbers that are learned, of which its name tells more than its title."""
    return item.about.parameters > 0 and (item.look.title == PARAMETER or item.array)


def is_activation(look: Look) -> bool:
    """Return whether a block is a function of each number by itself."""
    return look.hue == "ffn" and not look.short and not look.brief
