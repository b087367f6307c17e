"""What is in a closed box, in a few letters: its blocks with the numbers that tell them from others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, permutations

from blocks.core import spoken
from composer.draw.brief.block import (
    BETWEEN,
    DROPOUT,
    MAIN,
    MAPS,
    MOVES,
    NORMS,
    NUMBERS,
    OPERATIONS,
    Brief,
    brief_of,
    is_held,
    scaled,
    worth_telling,
)
from composer.draw.brief.passes import CHAIN, all_widths, by_first_pass, by_words, in_all, with_between, with_series
from composer.draw.brief.words import MORE, TIMES, HasRoom, as_said, cut, in_one_line, in_short, with_less
from composer.draw.diagram import Flow, Group, Leaf, OpenMixture
from composer.draw.edges import grouped
from composer.draw.series import REPEAT
from composer.draw.structure import Parallel, behind_skip, exchanges, parallel_part, parallel_parts, shortcut_of, side_by_side
from composer.draw.wording import shares_of

OWN_SKIPS = {"+": " with skip", "‖": " ‖ skip"}
"""What stands behind a box around which alone its input goes, by the sign where both meet."""
WITH_INPUT = " with the input"
"""What stands behind the last operation if it reads what comes into all."""
MAX_LETTERS = 64
"""Letters of what a row tells of a kind of passes."""
ROOMS = (64, 48, 32)
"""Letters of a box with what is in it, where it is one block of a closed box itself."""
MAX_FORMULAS = 46
"""Letters of formulas with numbers that have names: longer ones are told by these, which tell a block from others of its kind."""


def in_letters(
    flows: Sequence[Flow],
    fits: HasRoom,
    passes: Sequence[Sequence[int]] = (),
    in_line: HasRoom | None = None,
) -> tuple[str, ...]:
    """Return the blocks of flows, each of some passes, as full as there is room for; where there is none, the first ones in
    their shortest form. Of flows whose blocks differ in more than numbers it is
    what a line has room for: in several, those of one flow would seem to follow those of another.
    """
    told: tuple[str, ...] = ()
    room = fits
    flows, passes = by_first_pass(flows, passes)
    for words in ever_shorter(flows):
        told = in_chain(words, passes, flows) or in_all(with_series(words, passes), passes)
        room = fits if len(told) <= max(map(len, words)) else in_line or fits
        if room(told):
            return told
    return cut(told, room)


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


def with_activation(one: Brief, every: Sequence[Sequence[Brief]]) -> tuple[str, ...]:
    """Return the forms of the only block of some flows that counts, each with the norm and the activation behind it in all."""
    behind = set()
    for own in every:
        at = next(number for number, other in enumerate(own) if other.weight == MAIN)
        behind.add(" · ".join(in_short(other).forms[-1] for other in own[at + 1 :] if other.weight in (NORMS, BETWEEN)))
    (then, *others) = behind
    return one.forms if others or not then else tuple(f"{form} · {then}" for form in one.forms)


def in_chain(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]], flows: Sequence[Flow]) -> tuple[str, ...]:
    """Return what flows say, each of some passes, one after the other, of which the one map in each is from another width to
    another one, with all widths in order: `Linear 3 → 64 → 128`, `ReLU`; nothing for others.
    """
    if len(words) < 2 or len(words) != len(passes):
        return ()
    told = all_widths(words, passes) if len({*map(len, words)}) == 1 else with_between(words, passes)
    return told if told and all(sum(one.weight in (MAPS, MAIN) for one in briefs(flow)) == 1 for flow in flows) else ()


def ever_shorter(flows: Sequence[Flow]) -> Iterator[list[tuple[str, ...]]]:
    """Yield the blocks of each flow: all, then without norms, then those alone that matter, then the longest ones with less and
    less; where blocks other than norms are left out, with a sign of that, and the skip connection around all.
    """
    every = [briefs(flow) for flow in flows]
    skips = [
        behind_skip(flow) is not None and any(one.weight >= MAPS for one in own) for flow, own in zip(flows, every, strict=True)
    ]
    for kept, by in with_less(every):
        yield [as_said(some, by, own, around) for some, own, around in zip(kept, every, skips, strict=True)]


def computes(flows: Sequence[Flow]) -> bool:
    """Return whether anything in flows does more than to move values."""
    return any(one.weight > MOVES for flow in flows for one in briefs(flow))


def briefs(flow: Flow) -> list[Brief]:
    """Return the blocks of a flow, but for merges; those with a mask tell it where another block has another one, and where the
    box has the picture of cross-attention.
    """
    fed = joins_from_outside(flow)
    skipped, again = with_own_skips(flow), reads_input_again(flow)
    leaves = [
        item
        for item in flow.leaves()
        if isinstance(item, OpenMixture) or item.about.path in fed or not (item.look.sign or item.look.quiet)
    ]
    leaves = norms_at_readers(leaves, flow)
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
        if isinstance(item, Leaf) and item.after.startswith(DROPOUT) and one.weight > NORMS:
            one = replace(one, then=" · ".join(filter(None, (one.then, item.after))))
        ends = skipped.get(item.about.path, WITH_INPUT if item.about.path in again else "")
        forms = tuple(f"{scaled(form)}{ends}" for form in one.forms)
        found.append(replace(one, forms=forms, behind=item.about.path in behind))
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


def with_own_skips(flow: Flow) -> dict[str, str]:
    """Return what is said of the closed boxes in a flow around which alone goes what they read, to a sum of both or to where both
    are put together, by their paths.
    """
    wires = [edge for edge in flow.all_edges() if not (edge.shape_only or edge.back)]
    reads = grouped(wires, lambda edge: edge.target)
    leaves = {leaf.about.path: leaf for leaf in flow.leaves() if isinstance(leaf, Leaf)}
    whole = flow.entry if behind_skip(flow) is not None else None
    found: dict[str, str] = {}
    for path, leaf in leaves.items():
        said = OWN_SKIPS.get(leaf.look.sign or "", "")
        sources = [edge.source for edge in reads.get(path, ())] if said else []
        for own, other in permutations(sources, 2) if len(sources) == 2 else ():
            box = leaves.get(own.path)
            read = {edge.source.origin for edge in reads.get(own.path, ()) if edge.main}
            if box is not None and box.closed and other.origin in read and other.origin != whole:
                found[own.path] = said
    return found


def reads_input_again(flow: Flow) -> set[str]:
    """Return the path of the operation at the end of a flow that reads what comes into it with what others make of that."""
    last = next((one for one in flow.items if flow.outlet is not None and one.about.path == flow.outlet.path), None)
    if not isinstance(last, Leaf) or not last.look.operation:
        return set()
    wires = [edge for edge in flow.edges if not (edge.shape_only or edge.back)]
    into = [edge.source.origin for edge in wires if edge.target == last.about.path]
    others = any(edge.source.origin == flow.entry and edge.target != last.about.path for edge in wires)
    return {last.about.path} if others and flow.entry in into and len({*into}) > 1 else set()


def norms_at_readers(leaves: Sequence[Leaf | OpenMixture], flow: Flow) -> list[Leaf | OpenMixture]:
    """Return the blocks of a flow with each norm before the first one that reads it, where it does not stand behind what it
    reads: rather than beside what another stream does.
    """
    pairs = {(edge.source.path, edge.target) for edge in flow.all_edges() if not edge.back}
    before = {leaf.about.path: last.about.path for last, leaf in pairwise(leaves)}
    norms = {
        leaf.about.path: leaf
        for leaf in leaves
        if isinstance(leaf, Leaf) and leaf.look.hue == "norm" and (before.get(leaf.about.path, ""), leaf.about.path) not in pairs
    }
    found: dict[str, Leaf | OpenMixture] = {}
    for leaf in leaves:
        found |= {path: norm for path, norm in norms.items() if (path, leaf.about.path) in pairs and path not in found}
        if leaf.about.path not in norms:
            found[leaf.about.path] = leaf
    return [*(found | norms).values()]


def with_turns(found: list[Brief], leaves: Sequence[Leaf | OpenMixture]) -> list[Brief]:
    """Return the blocks of a box in which one closed box alone does more than to move values, or attention between such as move
    values more than to normalize them, with how values are moved before and after that: this is what the box around it is for. A
    block that stands elsewhere too is told by its name.
    """
    places = [place for place, one in enumerate(found) if one.weight > MOVES and one.weight != NORMS]
    turned = [isinstance(leaf, Leaf) and leaf.look.low for leaf in leaves]
    if len(places) != 1 or not any(turned):
        return found
    (at,), only = places, leaves[places[0]]
    if not isinstance(only, Leaf):
        return found
    boxed = only.closed and all(one.weight != NORMS for one in found)
    if not boxed and not (only.look.hue == "attn" and any(turned[:at]) and any(turned[at + 1 :])):
        return found
    again = only.elsewhere
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
    for part in parallel_parts(flow):
        by_path = with_branches(by_path, part)
    return by_path


def with_branches(by_path: dict[str, Brief], part: Parallel) -> dict[str, Brief]:
    """Return blocks by their paths, with those of some branches as one, where each of these has a block that is told."""
    own = [[path for path in branch if path in by_path and worth_telling(by_path[path])] for branch in part.branches]
    if not all(own) or any(by_path[path].times > 1 for branch in own for path in branch):
        return by_path
    forms = [[by_path[path].forms for path in branch] for branch in own]
    around = shortcut_of(forms) if part.sign == "+" and part.forked else None
    if around is not None:
        return with_shortcut(by_path, part, around, own[1 - around][-1])
    first, *others = (path for path in (*(path for branch in part.branches for path in branch), part.join) if path in by_path)
    sides = tuple(side for branch in own for path in branch for side in by_path[path].sides)
    whole = Brief(side_by_side(forms, part.sign), MAIN, sides, branched=in_branches(by_path, part))
    return {path: whole if path == first else one for path, one in by_path.items() if path not in others}


def in_branches(by_path: Mapping[str, Brief], part: Parallel) -> tuple[tuple[str, ...], ...]:
    """Return branches with the norms and activations in them, then without norms, each in a full form and a short one; nothing
    where the box tells none of such elsewhere, which would seem to be all there are.
    """
    inside = {part.join}.union(*part.branches)
    small = {path: one.weight for path, one in by_path.items() if one.weight in (NORMS, BETWEEN)}
    if {small[path] for path in small.keys() & inside}.isdisjoint(small[path] for path in small.keys() - inside):
        return ()
    told = []
    for least in (NORMS, BETWEEN):
        every = [[by_path[path] for path in branch if path in by_path] for branch in part.branches]
        forms = [[in_short(one).forms for one in branch if one.weight >= least] for branch in every]
        told.append(side_by_side([[(one[0], one[-1]) for one in branch] for branch in forms], part.sign)[:2])
    return tuple(told)


def with_shortcut(by_path: Mapping[str, Brief], part: Parallel, around: int, last: str) -> dict[str, Brief]:
    """Return blocks by their paths, with one of two branches, a map and the norm behind it, as the shortcut around the `last`
    block that is told of the other one, and with what comes behind this and before the sum in one with it.
    """
    branch, other = part.branches[1 - around], part.branches[around]
    behind = branch[branch.index(last) + 1 :]
    first, *norms = (by_path[path] for path in other if path in by_path)
    said = [in_short(one).forms[-1] for one in norms]
    forms = (", ".join(filter(None, (form.removeprefix("conv "), *first.then.split(" · "), *said))) for form in first.forms)
    then = filter(None, (by_path[last].then, *(in_short(by_path[path]).forms[-1] for path in behind if path in by_path)))
    whole = replace(by_path[last], then=" · ".join(then), shortcut=tuple(dict.fromkeys(forms)))
    gone = {part.join, *other, *behind}  # what would seem to come behind the sum
    return {path: whole if path == last else one for path, one in by_path.items() if path not in gone}
