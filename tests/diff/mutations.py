"""Recipes that differ from a given one in a single place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from composer.diagnostics import Source
from composer.language.recipe.writer import data_of, write
from composer.language.yaml.reader import read

Path = tuple[str | int, ...]
OTHER_BLOCK = {
    "rmsnorm": "layernorm",
    "layernorm": "rmsnorm",
    "gelu_tanh": "silu",
    "silu": "gelu",
    "gelu": "relu",
    "relu": "tanh",
    "sigmoid": "tanh",
    "tanh": "sigmoid",
    "add": "multiply",
    "multiply": "add",
    "ffn": "gated_ffn",
    "gated_ffn": "ffn",
    "rnn": "gru",
    "gru": "lstm",
    "lstm": "gru",
    "mean": "max",
    "max": "mean",
}
NOT_THE_MODEL = frozenset({"recipe", "language", "doc", "paper", "checkpoints"})


def data(text: str) -> dict[str, Any]:
    """Return a recipe as mappings, lists and text."""
    root = read(Source("mutated", text)).root
    assert root is not None
    found = data_of(root)
    assert isinstance(found, dict)
    return found


def mutations(text: str) -> Iterator[tuple[str, str]]:
    """Yield what is done, and the recipe after it; many are no sound recipes."""
    whole = data(text)
    for path, value in _below(whole, ()):
        if path and path[0] in NOT_THE_MODEL:
            continue
        for what, new in _instead(path, value, whole):
            other = deepcopy(whole)
            _put(other, path, new)
            yield f"{'.'.join(map(str, path))}: {what}", write(other)
        if isinstance(value, dict) and path[-1:] == ("graph",):
            yield from _graph(path, value, whole)
    for key in ("task", "init", "positions", "losses"):
        if key in whole:
            yield f"without {key}", write({name: value for name, value in whole.items() if name != key})


def _below(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _below(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _below(inner, (*path, index))


DELETED = object()


def _put(whole: Any, path: Path, new: Any) -> None:
    for step in path[:-1]:
        whole = whole[step]
    if new is DELETED:
        del whole[path[-1]]
    else:
        whole[path[-1]] = new


def _instead(path: Path, value: Any, whole: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield other values for one place."""
    key = path[-1] if path else ""
    if isinstance(value, dict):
        if "type" in value and len(path) > 1 and "graph" in path:
            yield "not trained", {**value, "trainable": "false"}
            if value["type"] in OTHER_BLOCK:
                yield "another block", {**value, "type": OTHER_BLOCK[value["type"]]}
        return
    if isinstance(value, list):
        if len(value) > 1:
            yield "one less", value[:-1]
            yield "the other way round", value[::-1]
        return
    if re.fullmatch(r"\d+", value):
        yield "one more", str(int(value) + 1)
        yield "twice", str(2 * int(value))
    elif re.fullmatch(r"-?[\d.]+(e-?\d+)?", value):
        yield "half as much", repr(float(value) / 2)
    elif value in ("true", "false"):
        yield "the opposite", "false" if value == "true" else "true"
    elif key != "type" and value in OTHER_BLOCK:
        yield "another block", OTHER_BLOCK[value]
    if key == "mask":
        yield "narrower", f"({value}) and window(2)"
        yield "not", f"not ({value})"
        for piece in re.split(r" and ", value) if " or " not in value and "(" not in value.replace("valid(valid)", "") else ():
            rest = [one for one in value.split(" and ") if one != piece]
            if rest:
                yield f"without {piece}", " and ".join(rest)
    if key == "tie" or (len(path) > 1 and path[-2] == "tie"):
        yield "no tie", DELETED
    if key == "in" or (len(path) > 1 and path[-2] == "in") or (len(path) > 2 and path[-3] == "in"):
        graph = _around(whole, path)
        for name in ["input", *graph]:
            if name != value:
                yield f"reads {name}", name
    if isinstance(value, str) and path[:1] == ("inputs",) and value.endswith("?"):
        yield "required", value[:-1]
    if path[:1] == ("outputs",) and len(path) == 2:
        for name in whole["graph"]:
            if name != value:
                yield f"returns {name}", name


def _around(whole: Any, path: Path) -> list[str]:
    """Return the nodes beside the one that a path lies in."""
    last = max((place for place, step in enumerate(path) if step == "graph"), default=None)
    if last is None:
        return []
    for step in path[: last + 1]:
        whole = whole[step]
    return list(whole)


def _graph(path: Path, graph: dict[str, Any], whole: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a graph without one of its nodes, what reads it reading what it read; or with one more."""
    for name, node in graph.items():
        place = f"{'.'.join(map(str, path))}.{name}"
        source = node.get("in") if isinstance(node, dict) else None
        source = next(iter(source.values()), None) if isinstance(source, dict) else source
        source = source[0] if isinstance(source, list) else source
        other = deepcopy(whole)
        below = other
        for step in path:
            below = below[step]
        del below[name]
        text = write(_renamed_reads(other, path, name, source) if isinstance(source, str) else other)
        yield f"{place}: dropped", text
        for new in ("silu", "dropout", "rmsnorm"):
            added = {"type": new, "p": "0.25"} if new == "dropout" else {"type": new}
            other = deepcopy(whole)
            below = other
            for step in path[:-1]:
                below = below[step]
            below["graph"] = dict(
                pair
                for key, value in below["graph"].items()
                for pair in ([(key, value), ("put_between", {**added, "in": name})] if key == name else [(key, value)])
            )
            moved = _renamed_reads(other, path, name, "put_between", but="put_between")
            if isinstance(moved.get("outputs"), dict) and len(path) == 1:
                moved["outputs"] = {key: "put_between" if value == name else value for key, value in moved["outputs"].items()}
            yield f"{place}: {new} after it", write(moved)


def _renamed_reads(whole: dict[str, Any], path: Path, name: str, source: str, but: str = "") -> dict[str, Any]:
    graph: Any = whole
    for step in path:
        graph = graph[step]
    for key, node in graph.items():
        if key != but and isinstance(node, dict) and "in" in node:
            node["in"] = _replaced(node["in"], name, source)
    return whole


def _replaced(value: Any, name: str, source: str) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(inner, name, source) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, name, source) for inner in value]
    return source if value == name else value
