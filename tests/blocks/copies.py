"""Every block that Composer has, once more under another name in a stranger's file."""

from __future__ import annotations

import importlib
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from blocks.core import Activation, Block, Builtin, Expert, Library, Norm, Part, fields, standard
from blocks.core.fields import Field, SlotOf
from blocks.core.library import parts_in
from blocks.experts.router import Router
from blocks.losses.loss import Loss
from blocks.masks.mask import Mask
from blocks.positions.positions import Positions
from blocks.positions.scaling import Scaling
from composer.language.recipe.writer import write

FAMILIES = (Activation, Block, Builtin, Expert, Loss, Mask, Norm, Part, Positions, Router, Scaling)
"""What a stranger imports: all else in a file is copied."""
KINDS = {kind: part for kind, part in standard()._parts.items() if part.__module__.startswith("blocks.")}


def swapped(kind: str) -> str:
    """Return a name of the same letters, so that it is as wide in a picture: `linear` is `linera`."""
    *_, run = [each for each in re.finditer(r"[a-z]+", kind) if len(set(each[0])) > 1]
    word = run[0]
    index = max(place for place in range(len(word) - 1) if word[place] != word[place + 1])
    word = f"{word[:index]}{word[index + 1]}{word[index]}{word[index + 2 :]}"
    return kind[: run.start()] + word + kind[run.end() :]


NAMES = {kind: swapped(kind) for kind in KINDS}


def plain(text: str) -> str:
    """Return a text in the originals' names, those of classes and files too; a kind may stand in it in words."""
    return _words().sub(lambda found: _originals()[found[0]], re.sub(r"\bOwn(?=[A-Z])|\bown_", "", text))


@cache
def _originals() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for kind, name in NAMES.items():
        for old, new in zip(re.findall("[a-z]+", kind), re.findall("[a-z]+", name), strict=True):
            if old != new:
                found |= {new: old, new.capitalize(): old.capitalize()}
    return found


@cache
def _words() -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z])({'|'.join(sorted(_originals(), key=len, reverse=True))})(?![A-Za-z])")


def copied(module: ModuleType) -> str:
    """Return a file of blocks with other names of its classes and kinds, which takes those of other files from their
    copies; families are imported.
    """
    text = inspect.getsource(module)
    for kind, name in NAMES.items():
        text = text.replace(f'kind="{kind}"', f'kind="{name}"')
    classes = {name for name, value in vars(module).items() if isinstance(value, type) and value.__module__ == module.__name__}
    own = {family.__name__ for family in FAMILIES} & classes
    for family in own:
        text = re.sub(rf"^class {family}\(.*?(?=^\S)", f"from {module.__name__} import {family}\n\n\n", text, flags=re.M | re.S)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = text.splitlines(keepends=True)
    for token in reversed([token for token in tokens if token.type == tokenize.NAME and token.string in classes - own]):
        row, column = token.start
        lines[row - 1] = f"{lines[row - 1][:column]}Own{lines[row - 1][column:]}"
    return re.sub(r"^from (blocks\.[a-z_0-9.]+) import (\w+)$", _import, "".join(lines), flags=re.M)


def _import(line: re.Match[str]) -> str:
    """Return an import of a block as one of its copy; others stay."""
    part = getattr(importlib.import_module(line[1]), line[2])
    return f"from {_file(line[1])} import Own{line[2]} as {line[2]}" if part in KINDS.values() else line[0]


def _file(module: str) -> str:
    return f"own_{module.rpartition('.')[2]}"


def copies(folder: Path) -> list[type[Part]]:
    """Return every block in its copy."""
    modules = sorted({part.__module__ for part in KINDS.values()})
    for name in modules:
        (folder / f"{_file(name)}.py").write_text(copied(importlib.import_module(name)), encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        return [part for name in modules for part in parts_in(importlib.import_module(_file(name)))]
    finally:
        sys.path.remove(str(folder))


def renamed(text: str, seen: set[str] | None) -> str:
    """Return a recipe in the copies' names; the kinds that stand in it are added to those that are `seen`. With
    None, in its own.
    """
    recipe = yaml.load(text, Loader=yaml.BaseLoader)
    graphs = [recipe, *recipe.get("blocks", {}).values()]
    for one in graphs:
        one["graph"] = {name: _node(node, standard(), seen) for name, node in one["graph"].items()}
    for name, param in recipe.get("params", {}).items():
        if isinstance(param, str):
            recipe["params"][name] = _kind(param, seen)
        elif isinstance(param, dict) and param.get("type") == "block":
            param["default"] = _node(param["default"], standard(), seen)
    for name, loss in recipe.get("losses", {}).items():
        recipe["losses"][name] = _node(loss, standard(), seen)
    return write(recipe)


def _node(node: Any, library: Library, seen: set[str] | None) -> Any:
    if isinstance(node, str):
        return _kind(node, seen)
    node = dict(node)
    if "graph" in node:
        node["graph"] = {name: _node(inner, library, seen) for name, inner in node["graph"].items()}
    if (kind := node.get("type")) in library:
        node["type"] = _kind(kind, seen)
        for name, field in fields(library[kind]).items():
            if name in node:
                node[name] = _value(node[name], field, library, seen)
    return node


def _value(value: Any, field: Field, library: Library, seen: set[str] | None) -> Any:
    if not isinstance(field.form, SlotOf):
        return value
    if field.form.family is Mask:
        return re.sub(r"[a-z_0-9]+(?=\()|\b(causal|full)\b", lambda found: _kind(found[0], seen), value)
    return _node(value, library, seen)


def _kind(word: str, seen: set[str] | None) -> str:
    if seen is None:
        return word
    seen.update({word} & NAMES.keys())
    return NAMES.get(word, word)
