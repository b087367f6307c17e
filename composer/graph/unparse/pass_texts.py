"""What the text of a node reads: the names in it, and what is wired to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from composer.language.recipe.writer import Remark, YamlData, YamlValue

MISSING = ""
"""Where a pass has nothing under a key that others have; no text of a recipe is empty."""
REFERENCES = frozenset({"in", "outputs", "tie"})
"""Keys that hold references, which are chosen by a condition."""

ROOT = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
"""A name that is not below another."""


def words(text: YamlValue) -> frozenset[str]:
    """Return every name that a text may read."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", str(text)))


def value_names(text: YamlData, *, is_graph: bool = False) -> Iterator[str]:
    """Yield every name that is, or may be, read as a value in a text: all but those of nodes, and those that references read."""
    plain = bare(text)
    if isinstance(plain, Mapping):
        for key, value in plain.items():
            if key == "each" and not is_graph and isinstance(value, Mapping):
                yield from value
            if is_graph or key not in REFERENCES:
                yield from value_names(value, is_graph=key == "graph" and not is_graph)
    elif isinstance(plain, list):
        for item in plain:
            yield from value_names(item)
    else:
        yield from words(plain)


def read_outside(text: YamlData) -> Iterator[str]:
    """Yield every name that masks, and graphs inside, may read outside of a text; what the text itself is wired to is apart."""
    plain = bare(text)
    if isinstance(plain, Mapping) and isinstance(graph := plain.get("graph"), Mapping):
        own = {"input", *graph, *ports_of(plain.get("in"))}
        nodes = [node for written in graph.values() for node in ways(written)]
        wired = [plain.get("outputs", MISSING), *(node.get(key, MISSING) for node in nodes for key in REFERENCES)]
        roots = {name for each in wired for leaf in _leaves(each) for name in ROOT.findall(str(leaf))}
        others = {key: value for key, value in plain.items() if key not in (*REFERENCES, "graph")}
        yield from (roots | {name for each in (*nodes, others) for name in read_outside(each)}) - own
    elif isinstance(plain, Mapping):
        yield from (name for key, value in plain.items() if key not in REFERENCES for name in read_outside(value))
    elif isinstance(plain, list):
        yield from (name for value in plain for name in read_outside(value))
    else:
        yield from ROOT.findall(str(plain).partition("(")[2])


def ways(node: YamlData) -> Iterator[Mapping[str, YamlData]]:
    """Yield what a node may be: of a choice between nodes, each of them."""
    plain = bare(node)
    if isinstance(plain, Mapping) and "if" in plain:
        yield from (way for key in ("then", "else") for way in ways(plain[key]))
    elif isinstance(plain, Mapping):
        yield plain


def _leaves(text: YamlData) -> Iterator[YamlData]:
    """Yield what is written below a key, one by one."""
    plain = bare(text)
    inside = plain.values() if isinstance(plain, Mapping) else plain if isinstance(plain, list) else None
    yield from [plain] if inside is None else (leaf for each in inside for leaf in _leaves(each))


def wired_form(edges: YamlData) -> tuple[str, ...]:
    """Return what is wired, port by port; where the first alone is, whether that takes several values."""
    match bare(edges):
        case dict() as written:
            return tuple(sorted(written))
        case list():
            return ("", "*")
        case text:
            return () if text == MISSING else ("",)


def ports_of(edges: YamlData | None) -> frozenset[str]:
    """Return the ports that something is wired to; none for the first alone."""
    written = None if edges is None else bare(edges)
    return frozenset(written) if isinstance(written, Mapping) else frozenset()


def bare(text: YamlData) -> YamlValue:
    """Return a text without its remark."""
    return text.data if isinstance(text, Remark) else text
