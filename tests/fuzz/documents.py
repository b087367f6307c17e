"""Recipes as plain data, with paths to everything in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from composer.diagnostics import Source
from composer.language.recipe.writer import data_of, write
from composer.language.yaml.reader import read

Path: TypeAlias = tuple[str | int, ...]
Document: TypeAlias = dict[str, Any]


def document(text: str) -> Document | None:
    """Return a recipe as mappings, lists and text; None for what is no mapping."""
    root = read(Source("seed", text)).root
    data = data_of(root) if root is not None else None
    return data if isinstance(data, dict) else None


def text_of(whole: Document) -> str:
    """Return the recipe as text."""
    return write(whole)


def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield everything in a piece of data with its path, from the outside in."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))


def at(whole: Any, path: Path) -> Any:
    """Return what is at a path."""
    for step in path:
        whole = whole[step]
    return whole


def put(whole: Any, path: Path, value: Any) -> None:
    """Replace what is at a path."""
    at(whole, path[:-1])[path[-1]] = value


def delete(whole: Any, path: Path) -> None:
    """Delete what is at a path."""
    del at(whole, path[:-1])[path[-1]]


def graphs(whole: Document) -> list[Path]:
    """Return the paths of all graphs."""
    return [path for path, value in places(whole) if path and path[-1] == "graph" and isinstance(value, dict)]


def nodes(whole: Document) -> list[Path]:
    """Return the paths of all nodes of graphs."""
    return [(*path, name) for path in graphs(whole) for name in at(whole, path)]


def copied(value: Any) -> Any:
    """Return a copy of plain data."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    return [copied(inner) for inner in value] if isinstance(value, list) else value
