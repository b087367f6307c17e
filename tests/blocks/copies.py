"""Every block that Composer has, once more under another name in a stranger's file."""

from __future__ import annotations

import importlib
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from blocks.core import Activation, Block, Builtin, Expert, Norm, Part, fields, spoken, standard
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
    return _words().sub(lambda found: _originals()[found[0]], re.sub(r"\bCopied(?=[A-Z])|\bcopied_", "", text))


@cache
def _originals() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for kind, name in NAMES.items():
        for old, new in zip(re.findall("[a-z]+", kind), re.findall("[a-z]+", name), strict=True):
            if old != new:
                found |= {new: old, spoken(new): spoken(old)}
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
        lines[row - 1] = f"{lines[row - 1][:column]}Copied{lines[row - 1][column:]}"
    return re.sub(r"^from (blocks\.[a-z_0-9.]+) import (\w+)$", _import, "".join(lines), flags=re.M)


def _import(line: re.Match[str]) -> str:
    """Return an import of a block as one of its copy; others stay."""
    part = getattr(importlib.import_module(line[1]), line[2])
    return f"from {_file(line[1])} import Copied{line[2]} as {line[2]}" if part in KINDS.values() else line[0]


def _file(module: str) -> str:
    return f"copied_{module.rpartition('.')[2]}"


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
    defined = dict(_defined(recipe))
    for one in (recipe, *defined.values()):
        one["graph"] = {name: _node(node, defined, seen) for name, node in one["graph"].items()}
        for name, param in one.get("params", {}).items():
            one["params"][name] = _param(param, defined, seen)
    for name, loss in recipe.get("losses", {}).items():
        recipe["losses"][name] = _node(loss, defined, seen)
    return write(recipe)


def _defined(one: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the blocks that a recipe defines, also those that blocks define for themselves, which have names of their own."""
    for name, block in one.get("blocks", {}).items():
        yield name, block
        yield from _defined(block)


def _param(param: Any, defined: Mapping[str, Any], seen: set[str] | None) -> Any:
    if isinstance(param, str):
        return _kind(param, seen)
    return {**param, "default": _given(param.get("type"), param["default"], defined, seen)} if "default" in param else param


def _each(value: Any, defined: Mapping[str, Any], seen: set[str] | None) -> Any:
    """Return a value of each pass, or a list of such: a block or a mask for a slot, or a number."""
    if isinstance(value, list):
        return [_each(one, defined, seen) for one in value]
    if isinstance(value, dict):
        return _node(value, defined, seen)
    parts = [standard()[word] for word in re.findall(r"[a-z_0-9]+", value) if word in standard()]
    type_ = "mask" if any(issubclass(part, Mask) for part in parts) else "block" if parts else ""
    return _given(type_, value, defined, seen)


def _node(node: Any, defined: Mapping[str, Any], seen: set[str] | None) -> Any:
    if isinstance(node, str):
        return _kind(node, seen)
    node, library = dict(node), standard()
    if "graph" in node:
        node["graph"] = {name: _node(inner, defined, seen) for name, inner in node["graph"].items()}
    if "each" in node:
        node["each"] = {name: _each(value, defined, seen) for name, value in node["each"].items()}
    if (kind := node.get("type")) in library:
        node["type"] = _kind(kind, seen)
        types = {name: _type(field) for name, field in fields(library[kind]).items()}
    else:
        params = defined.get(kind, {}).get("params", {})
        types = {name: param.get("type", "") for name, param in params.items() if isinstance(param, dict)}
    for name, type_ in types.items():
        if name in node:
            node[name] = _given(type_, node[name], defined, seen)
    return node


def _type(field: Field) -> str:
    """Return the type of the param that a field would be, as far as it holds kinds."""
    if not isinstance(field.form, SlotOf):
        return ""
    return "mask" if field.form.family is Mask else "block"


def _given(type_: str, value: Any, defined: Mapping[str, Any], seen: set[str] | None) -> Any:
    """Return what a field or a param of a type is given."""
    match type_:
        case "mask":
            return re.sub(r"[a-z_0-9]+(?=\()|\b(causal|full)\b", lambda found: _kind(found[0], seen), value)
        case "block":
            return _node(value, defined, seen)
    return value


def _kind(word: str, seen: set[str] | None) -> str:
    if seen is None:
        return word
    seen.update({word} & NAMES.keys())
    return NAMES.get(word, word)
