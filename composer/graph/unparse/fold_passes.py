"""The texts of a repeat's passes as one text: what differs becomes a value of `each`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from blocks.core import standard
from composer.graph.unparse.align_passes import first_input, node_order, read_above, with_all_nodes, with_long_lists, with_outputs
from composer.graph.unparse.node_text import (
    INPUT,
    MISSING,
    REFERENCES,
    FormulaText,
    bare,
    left_out,
    ports,
    read_outside,
    value_names,
    wired_form,
    words,
)
from composer.language.expressions.functions import FUNCTIONS
from composer.language.expressions.lexer import MAX_CHARACTERS
from composer.language.recipe.writer import Remark, YamlData, YamlValue

ABSENT = {"when": "true", "trainable": "true", "tie": "none", "share": "false"}
"""What a key means where it is not written."""
BLOCK = frozenset({"type", "graph", "repeat", "scan"})
"""Keys that only a block has."""
MAX_CHOICE_CHARACTERS = 190
"""Characters of a value that chooses among several."""
SHORT_NAME = "v"
"""The name of an `each` value in an expression that would be too long with the usual one."""
LONGEST_NUMBER = len("_10")
"""What may tell several such values apart."""
MAX_NAME_CHARACTERS = 60

NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
"""A number in a formula."""

TextPath: TypeAlias = tuple[str, ...]
"""Keys, and after a mark the names of nodes and of `each` values, which may be called like keys."""
NAMED = "."


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
    folder = _Folder(frozenset(taken), inputs, choices)
    body = folder.together(list(passes), ())
    assert isinstance(body, dict)
    graph = body["graph"]
    assert isinstance(graph, dict)
    return folder.each, {**body, "graph": {**graph, **folder.picks}}


class _Folder:
    def __init__(self, taken: frozenset[str], inputs: Sequence[str], choices: bool) -> None:
        self.choices = choices
        self.first = next(iter(inputs), INPUT)
        """What the first input of a pass is called."""
        self.taken = taken
        """Names that mean something else as values."""
        self.inside = frozenset(inputs)
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
        if REFERENCES & {*path[-2:]} or path[-1:] == ("next",):
            return self._chosen(plain, path, bound)
        formulas = [text for text in plain if isinstance(text, FormulaText)]
        if len(formulas) == len(plain):
            return self._formula(formulas, path)
        if all(map(_is_expression, plain)) and (choice := self._choice(plain, path)):
            return choice  # such as a mask, whose names are those of the place where it stands
        lists = [text for text in plain if isinstance(text, list)]
        if len(lists) == len(plain) and len({*map(len, lists)}) == 1:  # of a field, or the values of a repeat inside
            return [
                self.together(list(items), (*path, str(place)), bound) for place, items in enumerate(zip(*lists, strict=True))
            ]
        if not all(isinstance(text, dict) for text in plain):
            return self._varied(plain, path, bound)
        maps: list[Mapping[str, YamlData]] = [text for text in plain if isinstance(text, dict)]
        if all("graph" in text for text in maps):
            maps = with_outputs(maps)
        keys = list(dict.fromkeys(key for text in maps for key in text))
        if _kinds(maps) > 1 or any(key not in text and key not in {*ABSENT, "in"} for text in maps for key in keys):
            return self._varied(plain, path, bound)
        if "graph" in keys and len({ports(text.get("in")) for text in maps}) > 1:
            raise PassesDiffer  # unlike a block, a graph has no port that may be empty
        if "repeat" in keys:
            maps = with_long_lists(maps)
        bound |= {name for text in maps if isinstance(each := text.get("each"), dict) for name in each}
        bound |= {str(text["as"]) for text in maps if "as" in text}
        found: dict[str, list[YamlData]] = {key: [text.get(key, ABSENT.get(key, MISSING)) for text in maps] for key in keys}
        folded: dict[str, YamlData] = {}
        for key, values in found.items():
            if key in ("then", "else"):
                folded[key] = self._node(values, (*path, key), bound, fits=False)
            elif key == "graph":
                folded[key] = self._graph(values, [first_input(text) if path else self.first for text in maps], path, bound)
            else:
                step = NAMED + key if path[-1:] == ("each",) else key
                folded[key] = self.together(values, (*path, step), bound)
        return folded

    def _graph(self, texts: Sequence[YamlData], inputs: Sequence[str], path: TextPath, bound: frozenset[str]) -> YamlData:
        """Return one graph with the nodes of all; `inputs` are what the first input of each is called."""
        graphs = [graph for text in texts if isinstance(graph := bare(text), dict)]
        if all(graph == graphs[0] for graph in graphs):
            return graphs[0]
        path = (*path, "graph")
        names = node_order(graphs)
        self.inside |= {*names}
        wanted = [read_above(graph, first) for graph, first in zip(graphs, inputs, strict=True)]
        above = [*inputs]
        found: dict[str, YamlData] = {}
        for name, texts in zip(names, zip(*with_all_nodes(graphs, names), strict=True), strict=True):
            fits = all(one.get(name, there) == there for one, there in zip(wanted, above, strict=True))
            found[name] = text = self._node(list(texts), (*path, NAMED + name), bound, fits=fits)
            for place, graph in enumerate(graphs):
                if name in graph:
                    above[place] = name
                elif isinstance(text, dict):
                    above[place] = MISSING  # what a node passes on that is left out may be anything
        return found

    def _node(self, texts: list[YamlData], path: TextPath, bound: frozenset[str], *, fits: bool) -> YamlData:
        """Return one text for the nodes of one name: a choice between what is written for each where no values of `each` can tell
        them apart, or where a value would read the node above, and that does not fit.
        """
        before = dict(self.each), self.inside
        for said in (texts, [*map(_said, texts)]):
            try:
                text = self.together(said, path, bound)
                if fits or isinstance(text, dict) or text == "none":
                    return text
            except PassesDiffer:
                if not self.choices:
                    raise
            self.each, self.inside = dict(before[0]), before[1]
        if not self.choices or (not fits and any(isinstance(text, str) and text != MISSING for text in texts)):
            raise PassesDiffer
        kinds = [text for number, text in enumerate(texts) if text not in texts[:number]]
        name = self._name([str(kinds.index(text)) for text in texts], path)
        return _choice_of_nodes(kinds, 0, name)

    def _varied(self, texts: list[YamlValue], path: TextPath, bound: frozenset[str]) -> YamlData:
        """Return a value of `each`, read by the field that uses it, so it cannot read names that are known only there. It may be
        a block or a list of blocks, and no list or mapping of numbers or words.
        """
        is_list = any(isinstance(text, list) for text in texts)
        if (
            REFERENCES & {*path}
            or (is_list and "each" in path)
            or any(map(_is_collection, texts))
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
                self.picks[pick[place]] = left_out(text)
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

    def _formula(self, texts: Sequence[FormulaText], path: TextPath) -> YamlData:
        """Return one formula, in which values of `each` stand for the numbers that differ; a choice where more differs."""
        pieces = [NUMBER.split(text) for text in texts]
        if any(one[::2] != pieces[0][::2] for one in pieces):
            if (choice := self._choice(texts, path)) is None:
                raise PassesDiffer
            return FormulaText(choice)
        places = [*zip(*pieces, strict=True)]
        same_length = sum(len(alike[0]) for alike in places if len(set(alike)) == 1)
        named = sum(len(set(alike)) > 1 for alike in places)
        bases = [base for base in (_each_name(path), SHORT_NAME)
                 if same_length + named * (len(base) + LONGEST_NUMBER) <= MAX_CHARACTERS]  # fmt: skip
        if not bases:
            raise PassesDiffer
        base = bases[0]
        same = (alike[0] if len(set(alike)) == 1 else self._name([*alike], path, base) for alike in places)
        return FormulaText("".join(same))

    def _name(self, values: list[YamlData], path: TextPath, base: str = "") -> str:
        """Return the name of an `each` value that has these values, pass by pass."""
        shown: YamlData = values[: _period(values)]
        base = base or _each_name(path)
        name, count = base, 1
        while name in self.taken or (name in self.each and self.each[name] != shown):
            count += 1
            name = f"{base}_{count}"
        self.each[name] = shown
        return name


def _is_expression(text: YamlValue) -> bool:
    """Return whether a value is an expression, and not a number or a string alone."""
    return isinstance(text, str) and text != MISSING and any(sign in text for sign in "( ")


def _is_collection(text: YamlValue) -> bool:
    """Return whether a value is a list or a mapping of numbers or words, as the fields `shape`, `by` and `axes` take."""
    items = text if isinstance(text, list) else list(text.values()) if isinstance(text, dict) and not BLOCK & text.keys() else []
    return bool(items) and not any(isinstance(bare(item), dict) for item in items)


def _each_name(path: TextPath) -> str:
    """Return the name of an `each` value: where it is used."""
    said = "_".join(re.sub(r"\W", "_", step.removeprefix(NAMED)) for step in path if step not in ("graph", "each"))
    name = said[-MAX_NAME_CHARACTERS:].lstrip("_0123456789")
    return name + "_value" * (name in FUNCTIONS or name in standard())


def _as_value(text: YamlValue, path: TextPath) -> YamlValue:
    """Return a node as a value of `each`: it reads the node above, since a name cannot say what it reads."""
    if not isinstance(text, dict) or "in" not in text:
        return text
    if not isinstance(text["in"], Remark):
        raise PassesDiffer
    return {key: value for key, value in text.items() if key != "in"}


def _said(text: YamlData) -> YamlData:
    """Return a node that says what it reads."""
    return {**text, "in": bare(text["in"])} if isinstance(text, dict) and "in" in text else text


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


def _period(values: Sequence[YamlData]) -> int:
    """Return after how many values the list begins again."""
    return next(
        period for period in range(1, len(values) + 1) if all(values[i] == values[i - period] for i in range(period, len(values)))
    )
