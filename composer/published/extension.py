"""A recipe of a few lines that extends another one: what overrides change in it, and what is left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from composer.language.recipe.writer import data_of, write
from composer.language.yaml.nodes import YamlMapping
from composer.printable import printable
from composer.published.heads import HIDDEN, Cut
from composer.recipe import Recipe
from composer.weights.mapping import WeightMap, entry_of

DELETED = "null"


def changes(base: Recipe, changed: Recipe) -> tuple[dict[str, Any], list[str]]:
    """Return what overrides change in a recipe, as data for one that extends it, and each change in words: `vocab 591`."""
    before, after = base.document.root, changed.document.root
    assert before is not None and after is not None
    old, new = data_of(before), data_of(after)
    assert isinstance(old, dict) and isinstance(new, dict)
    if "params" in old and "params" in new:
        new["params"] = {name: _as_short(old["params"].get(name), value) for name, value in new["params"].items()}
    found = _difference(old, new)
    for name, value in found.get("params", {}).items():
        if isinstance(value, dict) and len(value) == 1 and isinstance(value.get("default"), str):
            found["params"][name] = value["default"]
    return found, [f"{'.'.join(path)} {value}" for path, value in _leaves(found)]


def cut_away(recipe: Recipe, made: WeightMap, kind: str, cut: Cut) -> dict[str, Any]:
    """Return the data by which a recipe ends where a checkpoint does."""
    typed = recipe.program
    outputs = {name: DELETED for name, ref in typed.root.graph.outputs if ref.node in cut.nodes and "." not in name}
    found: dict[str, Any] = {"task": "encoder"}
    if cut.inputs:
        found["inputs"] = dict.fromkeys(cut.inputs, DELETED)
    found["graph"] = dict.fromkeys(cut.nodes, DELETED)
    found["outputs"] = {**outputs, HIDDEN: cut.output}
    if cut.losses:
        found["losses"] = dict.fromkeys(cut.losses, DELETED)
    found["checkpoints"] = _fewer_rules(recipe, made, kind, cut)
    return found


def _fewer_rules(recipe: Recipe, made: WeightMap, kind: str, cut: Cut) -> dict[str, Any]:
    """Return the rules of what is left out, deleted."""
    checkpoints = recipe.checkpoints
    assert checkpoints is not None
    own = entry_of(checkpoints, kind).value
    kept = {name for name in made.ours if name.partition(".")[0] not in cut.nodes}
    read = {name for move in made.moves if move.ours[0] in kept for name in move.theirs}
    rules: dict[str, list[bool]] = {}
    for rule in made.rules.rules:
        if any(rule.ours.match(name) for name in made.ours):
            rules.setdefault(rule.ours.text, []).append(any(rule.ours.match(name) for name in kept))
    fewer: dict[str, Any] = {}
    if gone := {name: DELETED for name, used in rules.items() if not any(used)}:
        fewer["rules"] = gone
    if gone := {
        copy.name: DELETED for copy in made.rules.copies if copy.original in made.published and copy.original not in read
    }:
        whole = (
            isinstance(own, YamlMapping) and isinstance(old := own.get("copies"), YamlMapping) and len(old.entries) == len(gone)
        )
        fewer["copies"] = DELETED if whole else gone
    return {**{entry.key.text: DELETED for entry in checkpoints if entry.key.text != kind}, **({kind: fewer} if fewer else {})}


def passing_over(recipe: Recipe, kind: str, names: Collection[str]) -> dict[str, Any]:
    """Return the data by which a recipe passes over more published tensors."""
    checkpoints = recipe.checkpoints
    assert checkpoints is not None
    own = entry_of(checkpoints, kind).value
    old = data_of(node) if isinstance(own, YamlMapping) and (node := own.get("ignore")) is not None else []
    return {"checkpoints": {kind: {"ignore": [*old, *names]}}}


def merged(*several: Mapping[str, Any]) -> dict[str, Any]:
    """Return data with all of several merged key by key."""
    found: dict[str, Any] = {}
    for each in several:
        _merge(found, each)
    return found


def written(name: str, base: str, doc: str | None, data: Mapping[str, Any], remarks: Iterable[str]) -> str:
    """Return the text of a recipe that extends another, with remarks above it."""
    order = ("task", "params", "inputs", "graph", "outputs", "losses", "checkpoints")
    rest = {key: data[key] for key in (*order, *(key for key in data if key not in order)) if key in data}
    head = {"recipe": name, "extends": base, **({} if doc is None else {"doc": doc})}
    return "".join(f"# {printable(line)}\n" for line in remarks) + write({**head, **rest})


def _merge(into: dict[str, Any], data: Any) -> None:
    for key, value in data.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = dict(merged(value)) if isinstance(value, Mapping) else value


def _as_short(old: Any, new: Any) -> Any:
    """Return a param as a value alone if it was written as one."""
    return new["default"] if isinstance(old, str) and isinstance(new, dict) and "default" in new else new


def _difference(before: Any, after: Any) -> dict[str, Any]:
    """Return what is merged into a mapping to make it another."""
    found: dict[str, Any] = dict.fromkeys((key for key in before if key not in after), DELETED)
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and old.get("type") == value.get("type"):
            if inner := _difference(old, value):
                found[key] = inner
        elif not _same(old, value):
            found[key] = value
    return found


def _leaves(data: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every value with its path, without the words that are about params alone."""
    for key, value in data.items():
        inner = path if key in ("default", "type") or (key == "params" and not path) else (*path, key)
        if isinstance(value, Mapping):
            yield from _leaves(value, inner)
        else:
            yield inner, "deleted" if value == DELETED else _in_words(value)


def _in_words(value: Any) -> str:
    return f"[{', '.join(map(_in_words, value))}]" if isinstance(value, list) else str(value)


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other or float(one) == float(other))
    except (TypeError, ValueError):
        return False
