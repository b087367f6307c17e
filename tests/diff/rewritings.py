"""Other texts of the same model: every node called otherwise, keys in another order, repeats written out layer by layer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import composer
from blocks.core import Init
from blocks.formulas.functions import CALLABLE
from composer.graph.initial_values import layer_of, start_of
from composer.graph.parameters import parameters
from composer.graph.visit import walk
from composer.language.recipe.writer import write
from tests.diff.mutations import data

REFERENCES = ("in", "outputs", "tie", "mask", "positions", "next", "compute", "formula")
ORDERED = ("in", "inputs", "outputs", "init", "each", "graph", "over")
"""Keys whose entries have an order that means something; that of `graph` is taken care of."""


class Unfit(Exception):
    """A recipe that this rewriting is not for."""


def renamed(recipe: composer.Recipe, random: Random) -> str:
    """Return every node under another name, and every axis."""
    whole = data(recipe.expand())
    old = sorted(_node_names({"graph": whole["graph"]}))
    if {*old} & {*whole["inputs"]}:
        raise Unfit
    new = {name: f"z{number}" for number, name in enumerate(random.sample(old, len(old)))}
    written = {key: _with_names(value, new, key) for key, value in whole.items()}
    axes = {"batch": "b", "time": "t"}
    swap = lambda text: re.sub(r"\w+", lambda found: axes.get(found[0], found[0]), text)  # noqa: E731
    written["inputs"] = {name: _on_text(type_, swap) for name, type_ in written["inputs"].items()}
    written["graph"] = _on_axes(written["graph"], swap)
    if "positions" in written:
        written["positions"] = {swap(axis): ref for axis, ref in written["positions"].items()}
    return write(_with_starts(written, recipe, lambda path: ".".join(path), new))


def _node_names(graph: Any) -> set[str]:
    found = set()
    if isinstance(graph, dict):
        for key, value in graph.items():
            found |= {*value} if key == "graph" else set()
            found |= _node_names(value)
    elif isinstance(graph, list):
        found = {name for item in graph for name in _node_names(item)}
    return found


def _with_names(value: Any, new: Mapping[str, str], key: str = "", *, reference: bool = False) -> Any:
    reference = reference or key in REFERENCES
    match value:
        case dict() if key == "graph":
            return {new[name]: _with_names(node, new) for name, node in value.items()}
        case dict() if key == "tie":  # of parameters, by the nodes that have them
            paths = {name: name.rpartition(".") for name in value}
            return {f"{_renamed(paths[name][0], new)}{''.join(paths[name][1:])}": _renamed(to, new) for name, to in value.items()}
        case dict() if key == "axes":  # of what a formula reads
            return {_renamed(name, new): inner for name, inner in value.items()}
        case dict():
            group = "graph" in value
            return {
                name: _given(inner, new) if group and name == "in" else _with_names(inner, new, name, reference=reference)
                for name, inner in value.items()
            }
        case list():
            return [_with_names(item, new, reference=reference) for item in value]
        case str() if reference:
            return _renamed(value, new)
    return value


def _renamed(text: str, new: Mapping[str, str]) -> str:
    """Return references or a formula under new names; functions keep theirs."""
    words = re.compile(r"[A-Za-z_]\w*(\()?")
    kept = lambda found: found[1] and found[0][:-1] in CALLABLE  # noqa: E731
    return words.sub(
        lambda found: found[0] if kept(found) else re.sub(r"\w+", lambda name: new.get(name[0], name[0]), found[0]), text
    )


def _given(value: Any, new: Mapping[str, str]) -> Any:
    """Return what a group is given, under names that follow those of nodes."""
    if not isinstance(value, dict):
        return _with_names(value, new, reference=True)
    return {new.get(name, name): _with_names(inner, new, reference=True) for name, inner in value.items()}


def _on_text(value: Any, change: Callable[[str], str]) -> Any:
    return change(value) if isinstance(value, str) else {**value, "type": change(value["type"])}


def _on_axes(value: Any, change: Callable[[str], str], key: str = "") -> Any:
    match value:
        case dict() if key == "by":
            return {change(axis): steps for axis, steps in value.items()}
        case dict() if key == "over":
            return {axis: change(length) if isinstance(length, str) else length for axis, length in value.items()}
        case dict():
            return {name: _on_axes(inner, change, name) for name, inner in value.items()}
        case list():
            return [_on_axes(item, change, key) for item in value]
        case str() if key in ("axis", "axes", "before", "scan"):
            return change(value)
    return value


def shuffled(recipe: composer.Recipe, random: Random) -> str:
    """Return all keys in another order, nodes too, since every edge is written."""
    text = recipe.expand()
    return write(_shuffled(data(text), random, nodes="tie:" not in text and "each:" not in text))


def _shuffled(value: Any, random: Random, *, nodes: bool, key: str = "") -> Any:
    if isinstance(value, list):
        return [_shuffled(item, random, nodes=nodes) for item in value]
    if not isinstance(value, dict):
        return value
    entries = [(name, _shuffled(inner, random, nodes=nodes, key=name)) for name, inner in value.items()]
    if key == "graph" and nodes:
        first, last = entries[:-1], entries[-1:]  # without `outputs` a graph returns its last node
        return dict([*random.sample(first, len(first)), *last])
    return dict(entries if key in ORDERED else random.sample(entries, len(entries)))


def unrolled(recipe: composer.Recipe) -> str:
    """Return every repeat at the top level as that many groups, one after the other."""
    whole = data(recipe.expand())
    if "share:" in recipe.expand() or "losses" in whole:  # losses read passes
        raise Unfit
    repeats = {name: int(node["repeat"]) for name, node in whole["graph"].items() if isinstance(node, dict) and "repeat" in node}
    if not repeats or re.search(r"\(\d*:\d*\)|\blayer\b", write({"graph": whole["graph"]})):
        raise Unfit
    inside = write({"graph": [node for node in whole["graph"].values() if isinstance(node, dict)]})
    if any(re.search(rf"\b{name}: ", inside) for name in repeats):  # a node inside of another has the name too
        raise Unfit
    graph: dict[str, Any] = {}
    for name, node in whole["graph"].items():
        if name in repeats:
            graph |= {f"{name}_{index}": _of_layers(_layer(name, node, index), repeats) for index in range(repeats[name])}
        else:
            graph[name] = _of_layers(node, repeats)
    outputs = _of_layers({"outputs": whole["outputs"]}, repeats)["outputs"]
    rewritten = {**whole, "graph": graph, "outputs": outputs}

    shared = {name for name in repeats if "share" in whole["graph"][name]}

    def path(steps: list[str]) -> str:
        if steps[0] in shared:
            return ".".join([f"{steps[0]}_0", *steps[1:]])
        return ".".join([f"{steps[0]}_{steps[1]}", *steps[2:]] if steps[0] in repeats else steps)

    return write(_with_starts(rewritten, recipe, path, {}))


def _layer(name: str, node: dict[str, Any], index: int) -> dict[str, Any]:
    each = {key: value[index % len(value)] if isinstance(value, list) else value for key, value in node.get("each", {}).items()}
    layer = _with_each({key: value for key, value in node.items() if key not in ("repeat", "each", "share")}, each)
    if index and "share" in node:
        layer["tie"] = f"{name}_0"
    if index:
        before, given = f"{name}_{index - 1}", layer["in"]
        matched = [key for key in given if key in node.get("outputs", {})] if isinstance(given, dict) else []
        if not isinstance(given, dict):
            layer["in"] = before
        else:
            names = {key: f"{before}.{key}" for key in matched} or {next(iter(given)): before}
            layer["in"] = {**given, **names}
    return layer


def _with_each(value: Any, each: Mapping[str, Any]) -> Any:
    match value:
        case {"type": str() as name, **more} if isinstance(each.get(name), dict):
            return {**each[name], **_with_each(more, each)}
        case dict():
            words = {
                name: inner for name, inner in each.items() if not isinstance(inner, dict)
            }  # a node may be called as a value
            return {key: _with_each(inner, words if _refers(key, inner) else each) for key, inner in value.items()}
        case list():
            return [_with_each(item, each) for item in value]
        case str() if value in each:
            return each[value]
        case str():
            return re.sub(r"[A-Za-z_]\w*", lambda found: str(each.get(found[0], found[0])), value)
    return value


def _refers(key: str, value: Any) -> bool:
    """Return whether what stands under a key names nodes; the positions of an attention are a block, or the name of one."""
    return key in REFERENCES and (key != "positions" or (isinstance(value, dict) and "type" not in value))


def _of_layers(value: Any, repeats: Mapping[str, int], *, reference: bool = False) -> Any:
    match value:
        case dict():
            return {key: _of_layers(inner, repeats, reference=reference or key in REFERENCES) for key, inner in value.items()}
        case list():
            return [_of_layers(item, repeats, reference=reference) for item in value]
        case str() if reference:
            for name, count in repeats.items():
                value = re.sub(rf"\b{name}\((\d+)\)", rf"{name}_\1", value)
                value = re.sub(rf"\b{name}\b(?![(_])", f"{name}_{count - 1}", value)
            return value
    return value


def _with_starts(
    whole: dict[str, Any], recipe: composer.Recipe, path: Callable[[list[str]], str], new: Mapping[str, str]
) -> dict[str, Any]:
    """Return initial values for each parameter by its name, which patterns over the old names would miss."""
    typed = recipe.program
    names = {"": ""}
    for visit in walk(typed.root):
        own = visit.path.removeprefix(visit.prefix)
        called = own if visit.graph is None else new.get(own, own)  # what fills a slot keeps its name
        above = f"{names[visit.holder.path]}." if visit.holder else ""
        names[visit.path] = f"{above}{visit.region.name if visit.region else ''}{called}"
    starts = {}
    for entry in parameters(typed):
        rule = start_of(typed.untyped, entry)
        if rule and not entry.tied_to:
            home = entry.name.removesuffix(f".{entry.parameter.name}")
            starts[path([*names[home].split("."), entry.parameter.name])] = _written(rule, layer_of(entry.name))
    kept = {key: value for key, value in whole.items() if key not in ("init", "checkpoints")}
    return {**kept, "init": starts} if starts else kept


def _written(start: Init, layer: int | None) -> dict[str, Any]:
    """Return an initializer as a recipe writes it, for a parameter that may be in another layer, or in none."""
    value = repr(start.value) if start.low is None else [repr(start.low), repr(start.value)]
    drawn = {start.how: value} if start.is_drawn or not start.formula else {}
    return {**drawn, "formula": re.sub(r"\blayer\b", str(layer), start.formula)} if start.formula else drawn
