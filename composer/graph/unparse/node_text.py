"""What the text of a node says: names that it reads, ports that it wires."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from composer.language.recipe.writer import Remark, YamlData, YamlValue


class FormulaText(str):
    """The text of a formula: it is no value, so that no name can stand for it."""

    __slots__ = ()


MISSING = ""
"""Where a pass has nothing under a key that others have; no text of a recipe is empty."""
INPUT, STAND_IN = "input", "same"
"""What the first input of a graph is called, and the node of a graph that has none."""
REFERENCES = frozenset({"in", "outputs", "tie"})
"""Keys that hold references, which are chosen by a condition."""


ROOT = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
"""A name that is not below another."""


def words(text: YamlValue) -> frozenset[str]:
    """Return every name that a text may read."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", str(text)))


def value_names(text: YamlData, *, is_graph: bool = False) -> Iterator[str]:
    """Yield every name that is, or may be, read as a value in a text: all but those of nodes, and those that references read."""
    read = bare(text)
    if isinstance(read, Mapping):
        for key, value in read.items():
            if key == "each" and not is_graph and isinstance(value, Mapping):
                yield from value
            if is_graph or key not in REFERENCES:
                yield from value_names(value, is_graph=key == "graph" and not is_graph)
    elif isinstance(read, list):
        for item in read:
            yield from value_names(item)
    else:
        yield from words(read)


def read_outside(text: YamlData) -> Iterator[str]:
    """Yield every name that masks, and graphs inside, may read outside of a text; what the text itself is wired to is apart."""
    read = bare(text)
    if isinstance(read, Mapping) and isinstance(graph := read.get("graph"), Mapping):
        own = {"input", *graph, *ports(read.get("in"))}
        nodes = [node for written in graph.values() for node in ways(written)]
        wired = [read.get("outputs", MISSING), *(node.get(key, MISSING) for node in nodes for key in REFERENCES)]
        roots = {name for each in wired for leaf in leaves(each) for name in ROOT.findall(str(leaf))}
        others = {key: value for key, value in read.items() if key not in (*REFERENCES, "graph")}
        yield from (roots | {name for each in (*nodes, others) for name in read_outside(each)}) - own
    elif isinstance(read, Mapping):
        yield from (name for key, value in read.items() if key not in REFERENCES for name in read_outside(value))
    elif isinstance(read, list):
        yield from (name for value in read for name in read_outside(value))
    else:
        yield from ROOT.findall(str(read).partition("(")[2])


def ways(node: YamlData) -> Iterator[Mapping[str, YamlData]]:
    """Yield what a node may be: of a choice between nodes, each of them."""
    plain = bare(node)
    if isinstance(plain, Mapping) and "if" in plain:
        yield from (way for key in ("then", "else") for way in ways(plain[key]))
    elif isinstance(plain, Mapping):
        yield plain


def leaves(text: YamlData) -> Iterator[YamlData]:
    """Yield what is written below a key, one by one."""
    read = bare(text)
    inside = read.values() if isinstance(read, Mapping) else read if isinstance(read, list) else None
    yield from [read] if inside is None else (leaf for each in inside for leaf in leaves(each))


def wired_form(edges: YamlData) -> tuple[str, ...]:
    """Return what is wired, port by port; where the first alone is, whether that takes several values."""
    match bare(edges):
        case dict() as written:
            return tuple(sorted(written))
        case list():
            return ("", "*")
        case text:
            return () if text == MISSING else ("",)


def ports(edges: YamlData | None) -> frozenset[str]:
    """Return the ports that something is wired to; none for the first alone."""
    written = None if edges is None else bare(edges)
    return frozenset(written) if isinstance(written, Mapping) else frozenset()


def bare(text: YamlData) -> YamlValue:
    """Return a text without its remark."""
    return text.data if isinstance(text, Remark) else text


def left_out(value: str) -> dict[str, YamlData]:
    """Return a node that is left out, so that it is the value that it reads."""
    return {"type": "identity", "in": value, "when": "false"}


def is_left_out(node: YamlData) -> bool:
    """Return whether a node is left out in any case."""
    return isinstance(node, Mapping) and node.get("when") == "false"


def stand_in(value: str) -> dict[str, YamlData]:
    """Return the nodes of a graph that returns a value and has no nodes: one that does nothing."""
    return {STAND_IN: left_out(value)}


def stands_for(graph: Mapping[str, YamlData]) -> str | None:
    """Return what a graph without nodes of its own returns; None for any other."""
    node = bare(graph.get(STAND_IN, MISSING))
    value = node.get("in", MISSING) if isinstance(node, Mapping) else MISSING
    return value if isinstance(value, str) and graph == stand_in(value) else None
