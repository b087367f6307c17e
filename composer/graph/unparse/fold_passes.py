"""The texts of a repeat's passes as one text: what differs becomes a value of `each`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import cycle, islice, pairwise
from typing import TypeAlias

from composer.graph.unparse.node_text import (
    INPUT,
    MISSING,
    REFERENCES,
    bare,
    fresh,
    ports,
    read_outside,
    stands_for,
    value_names,
    wired_form,
    words,
)
from composer.language.expressions.functions import FUNCTIONS
from composer.language.recipe.writer import Remark, YamlData, YamlValue

ABSENT = {"when": "true", "trainable": "true", "tie": "none", "share": "false"}
"""What a key means where it is not written."""
MAX_CHOICE_CHARACTERS = 190
"""Characters of a value that chooses among several."""
MAX_NAME_CHARACTERS = 60

TextPath: TypeAlias = tuple[str, ...]


class PassesDiffer(Exception):
    """The passes are too different to be written as one graph."""


def fold(
    passes: Sequence[Mapping[str, YamlData]], index: str, inputs: Sequence[str], *, choices: bool
) -> tuple[dict[str, YamlData], dict[str, YamlData]]:
    """Return the `each` values of a repeat, and the text of any pass in terms of them; `index` is the name of its index, and
    `inputs` are those of what it is handed. With `choices`, nodes that no values of `each` can tell apart are chosen by one.

    Raises:
        PassesDiffer: where no values of `each` can tell the passes apart.
    """
    taken = {index, *(name for one in passes for name in value_names(one))}
    folder = _Folder(frozenset(taken), frozenset(inputs), choices)
    body = folder.together(list(passes), ())
    assert isinstance(body, dict)
    graph = body["graph"]
    assert isinstance(graph, dict)
    return folder.each, {**body, "graph": {**graph, **folder.picks}}


class _Folder:
    def __init__(self, taken: frozenset[str], inside: frozenset[str], choices: bool) -> None:
        self.choices = choices
        self.taken = taken
        """Names that mean something else as values."""
        self.inside = inside
        """Nodes and inputs of the graphs around what is being folded, which the values of `each` do not see."""
        self.each: dict[str, YamlData] = {}
        self.picks: dict[str, YamlData] = {}
        """Nodes that are left out, and stand for what they read: the steps of a choice that is too long for one."""

    def together(self, texts: list[YamlData], path: TextPath, bound: frozenset[str] = frozenset()) -> YamlData:
        """Return one text for what stands in the same place of every pass; `bound` are the `each` names and indices of repeats
        inside.
        """
        first = texts[0]
        if all(text is first or text == first for text in texts[1:]):
            return first
        plain = [bare(text) for text in texts]
        if REFERENCES & {*path[-2:]} or (path[-1:] == ("next",) and "graph" not in path[-2:-1]):
            return self._chosen(plain, path, bound)
        if all(map(_is_expression, plain)) and (choice := self._choice(plain, path)):
            return choice  # such as a mask, whose names are those of the place where it stands
        lists = [text for text in plain if isinstance(text, list)]
        if path[-2:-1] == ("each",) and len(lists) == len(plain) and len({*map(len, lists)}) == 1:
            # the values of a repeat inside, one by one
            return [
                self.together(list(items), (*path, str(place)), bound) for place, items in enumerate(zip(*lists, strict=True))
            ]
        if not all(isinstance(text, dict) for text in plain):
            return self._varied(plain, path, bound)
        maps: list[Mapping[str, YamlData]] = [text for text in plain if isinstance(text, dict)]
        if all("graph" in text for text in maps) and path[-1:] != ("graph",):
            maps = _with_outputs(maps)
        is_graph = bool(path) and path[-1] == "graph"
        keys = list(dict.fromkeys(key for text in maps for key in text))
        in_order = True
        if is_graph and (order := _node_order(maps)) is not None:
            keys = order
        elif is_graph:
            in_order = False
        if not is_graph and (
            _kinds(maps) > 1 or any(key not in text and key not in {*ABSENT, "in"} for text in maps for key in keys)
        ):
            return self._varied(plain, path, bound)
        if "graph" in keys and len({ports(text.get("in")) for text in maps}) > 1:
            raise PassesDiffer  # unlike a block, a graph has no port that may be empty
        if is_graph:
            maps = [*_with_all_nodes(maps, keys)]
        elif "repeat" in keys:
            maps = _with_long_lists(maps)
        if is_graph:
            self.inside |= {*keys}
        bound |= {name for text in maps if isinstance(each := text.get("each"), dict) for name in each}
        bound |= {str(text["as"]) for text in maps if not is_graph and "as" in text}
        found: dict[str, list[YamlData]] = {key: [text.get(key, ABSENT.get(key, MISSING)) for text in maps] for key in keys}
        return {
            key: self._node(values, (*path, key), bound, in_order=in_order)
            if is_graph or key in ("then", "else")
            else self.together(values, (*path, key), bound)
            for key, values in found.items()
        }

    def _node(self, texts: list[YamlData], path: TextPath, bound: frozenset[str], *, in_order: bool) -> YamlData:
        """Return one text for the nodes of one name: a choice between what is written for each where no values of `each` can tell
        them apart, or where a value would read the node above, and that is not the same for all.
        """
        before = dict(self.each), self.inside
        try:
            text = self.together(texts, path, bound)
            if in_order or isinstance(text, dict) or all(one == text for one in texts):
                return text
        except PassesDiffer:
            if not self.choices:
                raise
        if not self.choices:
            raise PassesDiffer
        self.each, self.inside = before
        kinds = [text for number, text in enumerate(texts) if text not in texts[:number]]
        name = self._name([str(kinds.index(text)) for text in texts], path)
        return _choice_of_nodes(kinds, 0, name)

    def _varied(self, texts: list[YamlValue], path: TextPath, bound: frozenset[str]) -> YamlData:
        """Return a value of `each`, read by the field that uses it, so it cannot read names that are known only there."""
        is_list = any(isinstance(text, list) for text in texts)
        if (
            REFERENCES & {*path}
            or (is_list and "each" in path)
            or any(isinstance(text, dict) and not {"if", "tie"}.isdisjoint(text) for text in texts)
            or any(words(text) & bound or {*read_outside(text)} & self.inside for text in texts)
        ):
            raise PassesDiffer
        maps = [text for text in texts if isinstance(text, dict)]
        if len(maps) == len(texts) and not all(isinstance(text.get("in", Remark("", "")), Remark) for text in maps):
            if _kinds(maps) > 1 and len({wired_form(text.get("in", MISSING)) for text in maps}) > 1:
                raise PassesDiffer  # what takes one value takes no second one, though it be none
            wired = self._chosen([bare(text.get("in", MISSING)) for text in maps], (*path, "in"), bound)
            return {"type": self._name([{key: text[key] for key in text if key != "in"} for text in maps], path), "in": wired}
        return self._name(["none" if text == MISSING else _as_value(text, path) for text in texts], path)

    def _chosen(self, texts: list[YamlValue], path: TextPath, bound: frozenset[str]) -> YamlData:
        """Return references, port by port and one by one."""
        if all(text == texts[0] for text in texts):
            return texts[0]
        if any(isinstance(text, dict) for text in texts):
            maps = [text for text in texts if isinstance(text, dict)]
            if len(maps) < len(texts):
                raise PassesDiffer
            keys = list(dict.fromkeys(key for text in maps for key in text))
            return {key: self.together([text.get(key, MISSING) for text in maps], (*path, key), bound) for key in keys}
        if any(isinstance(text, list) for text in texts):
            lists = [text if isinstance(text, list) else [text] for text in texts]
            length = max(map(len, lists))
            padded = [[*refs, *["none"] * (length - len(refs))] for refs in lists]
            each = [[bare(refs[place]) for refs in padded] for place in range(length)]
            return [self._chosen(texts, (*path, str(place)), bound) for place, texts in enumerate(each)]
        choice = self._choice(texts, path)
        if choice is None and self.choices and path[0] == "outputs":
            kinds = list(dict.fromkeys("none" if text == MISSING else str(text) for text in texts))
            name = self._name([str(kinds.index("none" if text == MISSING else str(text))) for text in texts], path)
            return self._picked(kinds, 0, name)
        if choice is None:
            raise PassesDiffer
        return choice

    def _picked(self, kinds: Sequence[str], first: int, name: str) -> str:
        """Return the one of many references that a number selects, which is `first` for the first of them."""
        if len(kinds) == 1:
            return kinds[0]
        half = len(kinds) // 2
        pick = [self._picked(kinds[:half], first, name), self._picked(kinds[half:], first + half, name)]
        for place, text in enumerate(pick):
            if " if " in text:
                pick[place] = f"{name}_from_{first + half * place}_of_{len(kinds)}"
                while pick[place] in self.inside:
                    pick[place] += "_"
                self.picks[pick[place]] = {"type": "identity", "in": text, "when": "false"}
        return f"{pick[0]} if {name} < {first + half} else {pick[1]}"

    def _choice(self, texts: Sequence[YamlValue], path: TextPath) -> str | None:
        """Return the texts, chosen by a number that `each` gives; None where that is too long to be a value."""
        words = ["none" if text == MISSING else str(text) for text in texts]
        kinds = list(dict.fromkeys(words))
        shown = [f"({kind})" if " if " in kind else kind for kind in kinds]
        if sum(map(len, shown)) + (len(shown) - 1) * (len(_each_name(path)) + len(" if _2 == 10 else ")) > MAX_CHOICE_CHARACTERS:
            return None
        name = self._name([str(kinds.index(word)) for word in words], path)
        choice = shown[-1]
        for index in reversed(range(len(shown) - 1)):
            choice = f"{shown[index]} if {name} == {index} else {choice}"
        return choice

    def _name(self, values: list[YamlData], path: TextPath) -> str:
        """Return the name of an `each` value that has these values, pass by pass."""
        shown: YamlData = values[: _period(values)]
        base = _each_name(path)
        name, count = base, 1
        while name in self.taken or (name in self.each and self.each[name] != shown):
            count += 1
            name = f"{base}_{count}"
        self.each[name] = shown
        return name


def _is_expression(text: YamlValue) -> bool:
    """Return whether a value is an expression, and not a number or a string alone."""
    return isinstance(text, str) and text != MISSING and any(sign in text for sign in "( ")


def _each_name(path: TextPath) -> str:
    """Return the name of an `each` value: where it is used."""
    name = "_".join(step for step in path if step not in ("graph", "each"))[-MAX_NAME_CHARACTERS:].lstrip("_0123456789")
    return name + "_value" * (name in FUNCTIONS)


def _as_value(text: YamlValue, path: TextPath) -> YamlValue:
    """Return a node as a value of `each`: it reads the node above, since a name cannot say what it reads."""
    if not isinstance(text, dict) or "in" not in text:
        return text
    if not isinstance(text["in"], Remark):
        raise PassesDiffer
    return {key: value for key, value in text.items() if key != "in"}


def _kinds(texts: Sequence[Mapping[str, YamlData]]) -> int:
    """Return how many kinds of node the texts describe."""
    return len({(str(text.get("type")), "graph" in text, str(text.get("repeat")), str(text.get("scan"))) for text in texts})


def _choice_of_nodes(kinds: Sequence[YamlData], first: int, name: str) -> YamlData:
    """Return a choice between nodes by a number, which is `first` for the first of them."""
    if len(kinds) == 1:
        return "none" if kinds[0] == MISSING else kinds[0]
    half = len(kinds) // 2
    then, otherwise = _choice_of_nodes(kinds[:half], first, name), _choice_of_nodes(kinds[half:], first + half, name)
    return {"if": f"{name} < {first + half}", "then": then, "else": otherwise}


def _node_order(graphs: Sequence[Mapping[str, YamlData]]) -> list[str] | None:
    """Return the nodes of all graphs in an order that is right for each, or None: a node of `each` reads the one above it."""
    sorter = TopologicalSorter[str]({name: () for graph in graphs for name in graph})
    for graph in graphs:
        for above, below in pairwise(graph):
            sorter.add(below, above)
    try:
        return list(sorter.static_order())
    except CycleError:
        return None


def _with_all_nodes(graphs: Sequence[Mapping[str, YamlData]], names: Sequence[str]) -> list[dict[str, YamlData]]:
    """Return graphs that all have the same nodes: one that a pass lacks is that of another pass, left out."""
    anywhere = {name: next(graph[name] for graph in graphs if name in graph) for name in names}
    left_out = {name: {**node, "when": "false"} for name, node in anywhere.items() if isinstance(node, Mapping)}
    return [{name: graph.get(name, left_out.get(name, MISSING)) for name in names} for graph in graphs]


def _with_outputs(holders: Sequence[Mapping[str, YamlData]]) -> list[Mapping[str, YamlData]]:
    """Return nodes with graphs inside so that each says what it returns, where not all end in the same node; a node that stands
    for none is not among those of others.
    """
    graphs = [graph if isinstance(graph := bare(holder["graph"]), Mapping) else {} for holder in holders]
    last = [[INPUT, *graph][-1] for graph in graphs]
    if len({*last}) == 1:
        return list(holders)
    named = [next(iter(outputs)) for holder in holders if isinstance(outputs := holder.get("outputs"), Mapping)]
    taken = {INPUT, *(name for graph in graphs for name in graph), *(name for one in holders for name in ports(one.get("in")))}
    own = named[0] if named else fresh("y", taken)
    with_nodes = any(graph and stands_for(graph) is None for graph in graphs)
    said: list[Mapping[str, YamlData]] = []
    for holder, graph, name in zip(holders, graphs, last, strict=True):
        value = stands_for(graph)
        nodes = {} if value is not None and with_nodes else graph
        outputs = holder.get("outputs", {own: name if value is None else value})
        said.append({**holder, "graph": nodes, "outputs": outputs})
    return said


def _with_long_lists(repeats: Sequence[Mapping[str, YamlData]]) -> list[Mapping[str, YamlData]]:
    """Return repeats whose lists of `each` values, which begin again where they end, are as long as the most passes where their
    lengths differ.
    """
    every = [each if isinstance(each := repeat.get("each"), Mapping) else {} for repeat in repeats]
    longest = max(int(str(bare(repeat["repeat"]))) for repeat in repeats)
    lengths: dict[str, set[int]] = {}
    for name, values in (pair for each in every for pair in each.items()):
        lengths.setdefault(name, set()).add(len(values) if isinstance(values, list) else 0)
    long = [
        {
            name: list(islice(cycle(values), longest)) if isinstance(values, list) and len(lengths[name]) > 1 else values
            for name, values in each.items()
        }
        for each in every
    ]
    return [{**repeat, "each": each} if each else repeat for repeat, each in zip(repeats, long, strict=True)]


def _period(values: Sequence[YamlData]) -> int:
    """Return after how many values the list begins again."""
    return next(
        period for period in range(1, len(values) + 1) if all(values[i] == values[i - period] for i in range(period, len(values)))
    )
