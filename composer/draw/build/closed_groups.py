"""A group as one closed box: what its author says of it, and what it gives."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace

from blocks.core import Look
from composer.draw.build.parameter_counts import SHARED_WITH
from composer.draw.build.walks import by_place, each_graph_once
from composer.draw.diagram import Flow, Leaf
from composer.draw.edges import DiagramEdge, DiagramSource, NodeOutput
from composer.draw.paths import lies_in, of_all_passes, plain
from composer.draw.series import OF, template
from composer.draw.style.line_breaks import END
from composer.draw.style.looks import look
from composer.draw.wording import shape
from composer.graph.anatomy import TYPED, Region, wires_of
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat
from composer.graph.visit import Fold, Inside, Visit, every_node, walk

MAX_DOC = 52
"""Letters of what the author of a block says of it that its box shows."""

NOISE = frozenset({"normal", "uniform"})
"""Kinds of blocks that draw numbers which are added or multiplied, and no masks of what is left out."""
WORD = re.compile(r"(?:^|(?<=, ))([^\W\d][^,()\d]*)(?=$|[,)])")
"""Something in a box that no number tells from others, such as an activation."""
BESIDE_WORD = re.compile(r", ([^\W\d][^,()\d]*)(?=[,)])")
"""The same behind something else in brackets."""
ARROW = " → "
"""What stands in a pattern between what comes in and what it gives."""
CLAUSE_WORDS = 5
"""Words from which on the beginning of a sentence says something by itself: `A class, a timestep and patches` is cut nowhere."""


ABBREVIATIONS = frozenset({"al.", "cf.", "e.g.", "eq.", "fig.", "i.e.", "sec.", "vs."})
"""Words whose stop ends no sentence by itself."""


def first_words(doc: str) -> str:
    """Return the first sentence about a block, or what comes before its first comma where that says enough by itself; nothing if
    a box has no room for it.
    """
    sentence = first_sentence(doc)
    clause = sentence.partition(",")[0]
    found = sentence if len(sentence) <= MAX_DOC else clause if len(clause.split()) >= CLAUSE_WORDS else ""
    return found if len(found) <= MAX_DOC else ""


def first_sentence(doc: str) -> str:
    """Return the first sentence about a block, without its stop, but for that of an abbreviation at its end.

    >>> first_sentence("A map, e.g. of He et al. without a bias. Fast."), first_sentence("A map of He et al. It has a bias.")
    ('A map, e.g. of He et al. without a bias', 'A map of He et al.')
    """
    words = doc.split()
    for place, word in enumerate(words, 1):
        short = word.lstrip("([").lower() in ABBREVIATIONS
        if word.endswith(".") and not (short and place < len(words) and not words[place][:1].isupper()):
            found = " ".join(words[:place])
            return found if short else found.removesuffix(".")
    return " ".join(words)


def new_shape(node: TypedNode) -> str:
    """Return the shape of what a group or a repeat gives, where it is not that of what comes into it first."""
    match node:
        case TypedGroup():
            return changed_shape(node.graph, node.graph)
        case TypedRepeat():
            return changed_shape(node.passes[0], node.passes[-1])
        case _:
            return ""


def noise_into(node: TypedGroup, path: str) -> list[DiagramEdge]:
    """Return what comes into the box of a group that its graph draws at random, by its names: noise is no value of the model, so
    that no wire leads there.
    """
    made = [one.name for one in node.graph.nodes if isinstance(one, TypedBlock) and one.part.kind in NOISE]
    sources = (DiagramSource(NodeOutput(f"{path}.{name}"), reference=name) for name in made)
    return [DiagramEdge(source, path, "", False) for source in sources]


def first_output(node: TypedNode) -> str:
    """Return what the first output of a block, a group or a repeat is called; nothing where it has no other."""
    match node:
        case TypedRepeat():
            names = [*node.passes[-1].outputs]
        case TypedGroup():
            names = [*node.graph.outputs]
        case _:
            names = [*node.outputs]
    return names[0] if len(names) > 1 else ""


def first_taken(node: TypedNode) -> str:
    """Return what a group or a repeat calls what it is handed first; nothing where it is handed nothing else."""
    graph = node.passes[0] if isinstance(node, TypedRepeat) else node.graph if isinstance(node, TypedGroup) else None
    names = [one.name for one in graph.graph.inputs if not one.captured] if graph is not None else []
    return names[0] if len(names) > 1 else ""


def changed_shape(first: TypedGraph, last: TypedGraph) -> str:
    """Return the shape of what the last of some graphs in a row gives, where it is not that of what comes into the first one."""
    gives = first_shape(last)
    return gives if gives != shape(next(iter(first.inputs.values()), ())) else ""


def first_shape(graph: TypedGraph) -> str:
    """Return the shape of what a graph gives first."""
    return shape(next(iter(graph.outputs.values()), ()))


def lone_box(node: TypedGroup, flow: Flow) -> Leaf | None:
    """Return the closed box of the repeat that is all there is in a group, given what is drawn in its frame; none for others."""
    (first, *others), items = node.graph.nodes, flow.items
    if others or not isinstance(first, TypedRepeat) or len(items) != 1 or flow.sinks:
        return None
    (item,) = items
    return item if isinstance(item, Leaf) and item.closed else None


def is_around_block(node: TypedGroup) -> bool:
    """Return whether a graph that a recipe writes in a slot is nothing but one block of the recipe, whose box tells as much."""
    nodes = node.graph.nodes
    inner = nodes[0] if len(nodes) == 1 and node.node.part is None else None
    used = isinstance(inner, TypedGroup) and inner.node.part is not None and not holds_layers(inner.graph)
    return used and len(node.graph.graph.outputs) == 1


def around_blocks(root: TypedGraph) -> frozenset[str]:
    """Return the paths without passes of the graphs that are nothing but one block of the recipe in all passes with them."""
    alone, others = set[str](), set[str]()
    for one in walk(root, each_graph_once):
        whole = isinstance(one.node, TypedGroup) and is_around_block(one.node)
        (alone if whole else others).add(plain(one.path))
    return frozenset(alone - others)


def around_box(group: Leaf, inner: Leaf) -> Leaf:
    """Return a group as the box of what is closed in it, with the title of both: `Branch · × 4 Unit`."""
    look = replace(inner.look, title=f"{group.look.title}{OF}{inner.look.title}", brief=group.look.brief)
    return replace(group, look=look, rows=inner.rows, params=inner.params, parallel=inner.parallel)


def told_once(flow: Flow) -> Flow:
    """Return a diagram in which a closed box whose parameters are all another's says no more than that, where the other one is
    there and says the same of what is in it.
    """
    told = {leaf.about.path: leaf.look for leaf in flow.leaves() if isinstance(leaf, Leaf) and leaf.closed}

    def once(item: Leaf) -> Leaf:
        if item.rows or not (item.closed and item.params.startswith(SHARED_WITH)):
            return item
        owner = told.get(of_all_passes(item.params.removeprefix(SHARED_WITH)))
        same = owner is not None and (owner.title, owner.facts) == (item.look.title, item.look.facts)
        return replace(item, look=replace(item.look, facts=())) if same else item

    return flow.map_leaves(once)


def told_evenly(flow: Flow, uses: Mapping[str, str], groups: Mapping[str, TypedGroup]) -> Flow:
    """Return a diagram in which words that one closed box has no room for, such as an activation, are left out in all that tell
    another use of its block and differ from it in nothing else but numbers; given the blocks of all uses by their paths, and what
    is in these.
    """
    alike: dict[str, dict[tuple[str, ...], list[Leaf]]] = {}
    for leaf in flow.leaves():
        if isinstance(leaf, Leaf) and leaf.closed and leaf.about.path in uses:
            alike.setdefault(uses[leaf.about.path], {}).setdefault(tuple(map(template, leaf.look.facts)), []).append(leaf)
    shorter: dict[str, tuple[str, ...]] = {}
    for told in (told for told in alike.values() if len(told) > 1):
        for leaf, other in ((leaf, other) for same in told.values() for leaf in same for (other, *_) in told.values()):
            facts = with_words_of(leaf.look.facts, other.look.facts)
            path = leaf.about.path
            if facts and kinds_in(groups[path]) == kinds_in(groups[other.about.path]):  # else, they are not there
                shorter[path] = min(facts, shorter.get(path, facts), key=lambda told: sum(map(len, told)))

    def even(item: Leaf) -> Leaf:
        facts = shorter.get(item.about.path)
        return item if facts is None else replace(item, look=replace(item.look, facts=facts))

    return flow.map_leaves(even) if shorter else flow


def with_patterns(flow: Flow, uses: Mapping[str, str], groups: Mapping[str, TypedGroup]) -> Flow:
    """Return a diagram in which closed boxes of one block that say the same, but differ in the pattern of one product, tell that;
    given the blocks of all uses by their paths, and what is in these.
    """
    alike: dict[tuple[str, tuple[str, ...]], list[Leaf]] = {}
    for leaf in flow.leaves():
        if isinstance(leaf, Leaf) and leaf.closed and leaf.about.path in uses:
            alike.setdefault((uses[leaf.about.path], leaf.look.facts), []).append(leaf)
    longer: dict[str, tuple[str, ...]] = {}
    for boxes in (boxes for boxes in alike.values() if len(boxes) > 1):
        every = [products_in(groups[box.about.path]) for box in boxes]
        differ = [at for at, own in enumerate(zip(*every, strict=False)) if len({one.facts for one in own}) > 1]
        if len(differ) == 1 and len({*map(len, every)}) == 1:
            told = zip(boxes, every, strict=True)
            longer |= {box.about.path: with_pattern(box.look.facts, own[differ[0]]) for box, own in told}

    def with_own(item: Leaf) -> Leaf:
        facts = longer.get(item.about.path)
        return item if facts is None else replace(item, look=replace(item.look, facts=facts))

    return flow.map_leaves(with_own) if longer else flow


def products_in(node: TypedGroup) -> list[Look]:
    """Return the looks of the operations with a pattern, such as products along named axes, of a group itself, in their order."""
    looks = (look(one) for one in node.graph.nodes if isinstance(one, TypedBlock))
    return [one for one in looks if one.operation and one.facts and ARROW in one.facts[0]]


def with_pattern(facts: Sequence[str], product: Look) -> tuple[str, ...]:
    """Return what a box says with the pattern of a product behind what it calls that, where it names it once."""
    (name, *_), (pattern, *_) = product.operation or ("",), product.facts or ("",)
    once = [fact.removesuffix(END) for fact in facts].count(name) == 1
    return tuple(f"{name} {pattern}{fact[len(name) :]}" if once and fact.removesuffix(END) == name else fact for fact in facts)


def with_one_sentence(flow: Flow, groups: Mapping[str, TypedGroup]) -> Flow:
    """Return a diagram in which of several closed boxes of one block the first alone says the sentence of its author, given what
    is in all blocks by their paths; the others say what else they tell, and the sentence where that is nothing.
    """
    told: set[tuple[str, str]] = set()
    again: set[str] = set()
    for leaf in flow.leaves() if len(groups) > 1 else ():
        node = groups.get(leaf.about.path)
        if not (isinstance(leaf, Leaf) and leaf.closed and leaf.look.facts and node is not None and node.node.part is not None):
            continue
        sentence, *others = leaf.look.facts
        doc = node.node.part.__doc__ or ""
        if sentence not in (first_sentence(doc), first_words(doc)):
            continue
        if (node.node.part.kind, sentence) in told and (others or leaf.params):
            again.add(leaf.about.path)
        told.add((node.node.part.kind, sentence))

    def once(item: Leaf) -> Leaf:
        return replace(item, look=replace(item.look, facts=item.look.facts[1:])) if item.about.path in again else item

    return flow.map_leaves(once) if again else flow


def kinds_in(node: TypedGroup) -> list[str]:
    """Return the kinds of all blocks in a group, in their order."""
    found = (visit.node for visit in walk(node.graph, by_place, every_node))
    return [one.node.part.kind for one in found if isinstance(one, TypedBlock)]


def with_words_of(facts: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    """Return what a box says without the words that another one leaves out, if the two differ in nothing else but numbers.

    >>> with_words_of(["Unit (conv (8 → 4), ReLU, conv (4 → 4), ReLU)"], ["Unit (conv (64 → 32), conv (32 → 32))"])
    ('Unit (conv (8 → 4), conv (4 → 4))',)
    >>> with_words_of(["conv (8 → 4)", "ReLU"], ["conv (8 → 4)", "softmax"])
    ()
    """
    said = {word for fact in facts for word in WORD.findall(fact)}
    gone = said - {word for fact in other for word in WORD.findall(fact)}
    left = tuple(BESIDE_WORD.sub(lambda found: "" if found[1] in gone else found[0], fact) for fact in facts if fact not in gone)
    return left if gone and [*map(template, left)] == [*map(template, other)] else ()


def holds_layers(graph: TypedGraph, lone: Container[str] = (), path: str = "") -> bool:
    """Return whether there is a repeat in the graph of a group, which then is a part of the model rather than one block; those
    `lone` ones that are drawn as the nodes of their pass do not count, given the path of the group.
    """
    if not Fold(TYPED, _is_layers, lambda _, out: any(out), every_node).graph(graph):
        return False
    if not lone:
        return True
    inside = walk(graph, _in_groups, every_node, prefix=f"{plain(path)}.")
    return any(isinstance(one.node, TypedRepeat) and one.path not in lone and not one.in_slot for one in inside)


def lone_repeats(root: TypedGraph) -> frozenset[str]:
    """Return the paths of the repeats in groups that have one pass wherever the group stands: they repeat nothing."""
    passes: dict[str, int] = {}
    for visit in walk(root, each_graph_once):
        if isinstance(visit.node, TypedRepeat) and visit.holder is not None and isinstance(visit.holder.node, TypedGroup):
            path = plain(visit.path)
            passes[path] = max(passes.get(path, 0), len(visit.node.passes))
    return frozenset(path for path, most in passes.items() if most == 1)


def places_of_blocks(root: TypedGraph) -> dict[str, set[str]]:
    """Return where each block of the recipe stands in the model, by paths without passes."""
    found: dict[str, set[str]] = {}
    for one in walk(root, each_graph_once):
        if isinstance(one.node, TypedGroup) and one.node.node.part is not None:
            found.setdefault(one.node.node.part.kind, set()).add(plain(one.path))
    return found


def outputs_read(root: TypedGraph) -> dict[str, set[str]]:
    """Return which outputs of nodes something reads in some pass, by their paths without passes; the first one without a name."""
    found: dict[str, set[str]] = {}
    for one in walk(root, each_graph_once):
        given = one.graph.graph.outputs if one.graph is not None else ()
        for ref in (*(ref for wire in wires_of(one.node) for ref in wire.refs), *(ref for _, ref in given)):
            found.setdefault(f"{plain(one.prefix)}{ref.node}", set()).add(ref.port)
    return found


def leading_to(flow: Flow, read: Collection[DiagramSource]) -> Flow:
    """Return what a flow holds without what leads to nothing that is `read` of it, to no loss and to no state."""
    pairs = [(edge.source.path, edge.target) for edge in flow.all_edges()]
    needed: set[str] = set()
    waiting = [source.path for source in (*read, *flow.returned())]
    while waiting:
        path = waiting.pop()
        items = [item.about.path for item in flow.items if lies_in(path, item.about.path) and item.about.path not in needed]
        needed |= {*items}
        waiting += [source for source, target in pairs if any(lies_in(target, item) for item in items)]
    return flow.without({item.about.path for item in flow.items} - needed)


def stands_elsewhere(node: TypedNode, path: str, places: Mapping[str, set[str]]) -> bool:
    """Return whether a block of the recipe, given its path without passes, stands at another path of the model too, where boxes
    call it by its name.
    """
    part = node.node.part if isinstance(node, TypedGroup) else None
    return part is not None and bool(places[part.kind] - {path})


def _is_layers(node: TypedNode, inside: Inside[TypedGraph, bool, bool]) -> bool:
    return isinstance(node, TypedRepeat) or (isinstance(node, TypedGroup) and any(inside.passes()))


def _in_groups(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    return each_graph_once(visit) if isinstance(visit.node, TypedGroup | TypedRepeat) else iter(())
