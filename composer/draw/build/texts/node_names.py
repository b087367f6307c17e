"""Which nodes are told by the name that their author chose: the scores of an attention that is written out are an einsum."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from blocks.core import Activation, Formula, spoken
from composer.draw.build.parameter_counts import SHARED_WITH
from composer.draw.build.simpler.named_blocks import NamedBlock
from composer.draw.build.texts.captions import PARTNER, NodePlace
from composer.draw.diagram import Flow, Group, Item, Leaf
from composer.draw.paths import lies_in, of_all_passes, of_pass
from composer.draw.paths import plain as of_no_pass
from composer.draw.series import without_repeat
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup

PLAIN = {"act", "activation", "add", "block", "body", "cat", "concat", "conv", "dense", "join", "mul", "node", "out", "sum"}
"""Names that say no more than the block does."""
HEADS = {"Classifier", "LM head"}
"""Titles that say what for."""
MAX_NAME = 14
"""Letters of a name that has room in a box beside its title."""


MAX_LONE_NAME = 20
"""Letters of a name that tells a box from others of its title."""

ROLE = re.compile(r"[a-z]{3,}(_[a-z]{3,})*")
"""A name of words, which may say what a block is for."""
LAYERS = {"act", "attention", "attn", "conv", "embed", "ffn", "layer", "mlp", "norm", "proj"}
"""Words that say what a block is made of."""
PLACES = {"one", "two", "three", "four", "first", "second", "third", "last"}
"""Words that say which of several it is."""

NO_ROLE = re.compile(r"(^|_)(act|activation)\d*(_|$)|^[a-z]{1,2}\d+$")
"""A name that tells no more of an activation than that it is one, such as `a1` or `last_act`."""


def branch_name(path: str) -> str:
    """Return the name of a node; of the body of a residual branch, that of the branch, which its author chose."""
    *around, name = path.split(".")
    return around[-1] if name == "body" and around else name


def told_apart(flow: Flow, names: Mapping[str, str], uses: Mapping[str, str]) -> Flow:
    """Return a model's blocks with the names of those of the recipe that have the title of another box or frame, or of another
    use of a block in a closed box, given the titles of all: what their author calls them tells them apart, though beside boxes
    that are there it may begin with the title. So have frames of repeats whose passes are called alike.
    """
    places: dict[str, set[str]] = {}
    called: dict[str, set[str]] = {}
    for title, path, name in titled(flow):
        places.setdefault(title, set()).add(path)
        called.setdefault(title, set()).add(names.get(path, "") or name or path[path.rfind(".") + 1 :])
    hidden: dict[str, set[str]] = {}
    for path, title in uses.items():
        hidden.setdefault(title, set()).add(names.get(path, ""))

    by_roles = {title for title, own in called.items() if all(map(is_role, own))}

    def named(item: Item) -> Item:
        if isinstance(item, Group):
            item = item.map_flows(lambda inner: inner.map_items(named))
        own = names.get(item.about.path, "") or numbered_name(item)
        if not (own and isinstance(item, Group | Leaf)):
            return item
        title = title_of(item)
        apart = len(called[title] | hidden.get(title, set())) > 1 and own.lower() not in title.lower()
        if not apart and min(len(places[title]), len(called[title])) < 2:
            return item
        if isinstance(item, Leaf):
            first = item.closed and title in by_roles
            return replace(item, name=item.name or own, by_name=first and item.name in ("", own))
        said = (spoken(own),) if title.lower() in spoken(own).lower() else (spoken(own), title) if item.count else (title, own)
        return replace(item, header=(*said, *item.header[1:]))

    return flow.map_items(named)


def is_role(name: str) -> bool:
    """Return whether a name says what a use of a block is for, and not what it is made of or which number it has.

    >>> [*map(is_role, ("prior", "write_head", "conv", "conv1", "x", "lower_norm"))]
    [True, True, False, False, False, False]
    """
    return ROLE.fullmatch(name) is not None and (LAYERS | PLACES).isdisjoint(name.split("_"))


def numbered_name(item: Item) -> str:
    """Return the name of a block that puts values together without parameters, such as a pool, if a number in it may tell which
    of several it is; nothing for another.
    """
    path = item.about.path
    if not (path[-1:].isdigit() and isinstance(item, Leaf)) or item.look.hue != "merge":
        return ""
    name = path[path.rfind(".") + 1 :]
    usual = name.rstrip("0123456789").rstrip("_") in ("", *PLAIN) or len(name) > MAX_NAME
    return "" if usual or item.closed or item.look.low or item.look.sign or item.about.parameters else name


def titled(flow: Flow) -> Iterator[tuple[str, str, str]]:
    """Yield the title, the path and the name of every box, and of every frame, of which nothing else tells a name."""
    for item in flow.items:
        if isinstance(item, Leaf):
            yield title_of(item), item.about.path, item.name
        elif isinstance(item, Group):
            yield title_of(item), item.about.path, ""
            for inner in item.flows:
                yield from titled(inner)


def title_of(item: Leaf | Group) -> str:
    """Return the title of a box or a frame; of a box around a closed repeat alone, without that."""
    return item.header[0] if isinstance(item, Group) else without_repeat(item.look.title)


def by_itself(name: str, called: Callable[[str], str], *, in_formula: bool) -> str:
    """Return the name of numbers as their title: as it is `called`, but a letter as it is, and what a formula beside them reads
    as that writes it.
    """
    return name if in_formula or len(name) == 1 else called(name)


def own_name(node: TypedGroup, place: NodePlace) -> str:
    """Return the name of a block of a recipe which may tell it from others of its kind; nothing where it is a usual one."""
    name = branch_name(place.path)
    part = node.node.part
    usual = part is None or name in (*PLAIN, part.kind) or place.path.rpartition(".")[2] != node.name or len(name) > MAX_LONE_NAME
    return "" if usual else name


def with_names_in_formulas(
    items: Sequence[Item], graph: TypedGraph, place: NodePlace, called: Mapping[str, str]
) -> Iterator[Item]:
    """Yield boxes and frames, those of a graph with their names where a formula in it reads them by these, or as what they are
    `called` by others.
    """
    read = {f"{place.path}.{name}".removeprefix("."): name for name in read_by_name(graph)}
    for item in items:
        name = read.get(item.about.path, "")
        if called and (other := called.get(of_no_pass(item.about.path), "")) and isinstance(item, Leaf):
            name, item = other, replace(item, name="")
        plain = isinstance(item, Leaf) and item.name in ("", name) and not item.look.sign and name
        if plain and isinstance(item, Leaf) and item.look.title.lower() != name.lower():
            item = replace(item, name=name, in_formula=True)
        yield item


def without_partners(flow: Flow) -> Flow:
    """Return what is in a frame that says whose weights it has, where no block says so again."""

    def bare(item: Leaf) -> Leaf:
        facts = tuple(fact for fact in item.look.facts if not PARTNER.fullmatch(fact))
        return replace(item, look=replace(item.look, facts=facts)) if facts != item.look.facts else item

    return flow.map_leaves(bare)


def with_names_of_partners(flow: Flow) -> Flow:
    """Return a diagram in which the boxes have their names whose weights others say that they have, by these names: in a repeat
    of which each pass is drawn, with the pass.
    """
    said = {path for leaf in flow.leaves() if isinstance(leaf, Leaf) for path in partners_of(leaf)}
    every = {of_all_passes(path) for path in said}

    def named(item: Leaf) -> Leaf:
        if item.look.sign:
            return item
        path = of_pass(item.about.path, "")
        if path != item.about.path:
            return replace(item, name=path) if any(lies_in(one, path) for one in said) else item
        name = branch_name(path)
        return replace(item, name=name) if path in every and not item.name and name.lower() != item.look.title.lower() else item

    return flow.map_leaves(named) if said else flow


def partners_of(leaf: Leaf) -> Iterator[str]:
    """Yield the paths of the blocks whose weights a box says that it has, as it names them."""
    yield from (found[1] for fact in leaf.look.facts if (found := PARTNER.fullmatch(fact)))
    if leaf.params.startswith(SHARED_WITH):
        yield leaf.params.removeprefix(SHARED_WITH)


def read_by_name(graph: TypedGraph) -> set[str]:
    """Return the nodes of a graph that formulas read by their names, those that a box has in place of nodes among them."""
    found = set()
    for node in graph.nodes:
        if isinstance(node, TypedBlock) and (names := names_in(node)):
            found |= {ref.node for wire in node.node.wires for ref in wire.refs if ref.node in names}
    return found


def names_in(node: TypedBlock) -> tuple[str, ...]:
    """Return what the formula in a box calls the values that it reads; nothing where there is none."""
    if isinstance(node.part, NamedBlock):
        return node.part.names
    formula = getattr(node.part, "formula", None)
    return formula.names if isinstance(formula, Formula) else ()


def shown_name(node: TypedBlock | TypedGroup, place: NodePlace, title: str, merged: str = "") -> str:
    """Return the name of a node if it tells more than its title; nothing for another. Of what is no primitive, only one without
    parameters has one, if it also tells more than the facts of what is `merged` there, such as by a pool.
    """
    name = place.path.rpartition(".")[2]
    stem = re.sub(r"[\d_]+$", "", name).lower()
    part = node.node.part if isinstance(node, TypedGroup) else node.part
    if part is None or not stem or len(name) > MAX_NAME or name != node.name or title in {*HEADS, name}:
        return ""
    role = bool(merged) and isinstance(node, TypedBlock) and not node.parameters and stem not in merged.lower()
    own = isinstance(node, TypedGroup) or part.is_primitive or role
    if issubclass(part if isinstance(part, type) else type(part), Activation) and NO_ROLE.search(name):
        return ""
    if stem in PLAIN and (part.is_primitive or stem == name):  # `conv4` tells one block of a recipe from others
        return ""
    words = {part.kind, *re.split(r"\W+", title.lower())}
    said = stem in title.lower() or any(len(word) > 2 and (word.startswith(stem) or stem.startswith(word)) for word in words)
    return name if own and not (said and len(stem) > 1) else ""
