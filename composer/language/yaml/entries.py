"""The items of a list and the entries of a mapping: each key once, each with a value, none of them split at a comma."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeGuard

from composer.diagnostics import Diagnostic, Label
from composer.language.yaml.flow_style import MAX_PIECES, cut_value, is_cut, rejoin
from composer.language.yaml.nodes import YamlEntry, YamlNode, YamlScalar

Note = Callable[[Diagnostic], None]
MERGE = "<<"


def items(nodes: Sequence[YamlNode | None], note: Note, *, flow: bool) -> Iterator[YamlNode]:
    """Yield a list's items; `note` takes what is wrong with them."""
    place = 0
    while place < len(nodes):
        item, taken = nodes[place], 1
        if flow and is_cut(item):
            item, taken = rejoin(nodes[place : place + MAX_PIECES])
            note(cut_value(item))
        place += taken
        if is_empty(item):
            note(Diagnostic("empty-value", "a list item is empty", item.span, hint="write `none` for no value"))
        elif item:
            yield item


def entries(nodes: Sequence[YamlNode | None], note: Note, *, flow: bool) -> Iterator[YamlEntry]:
    """Yield a mapping's entries, from keys and values in turn; `note` takes what is wrong with them."""
    kept: dict[str, YamlScalar] = {}
    place = 0
    while place < len(nodes):
        key, value = nodes[place : place + 2]
        place += 2
        if flow and is_cut(value):
            value, taken = rejoin(nodes[place - 1 : place - 1 + MAX_PIECES])
            note(cut_value(value))
            place = _after(nodes, place - 1 + taken)
        elif flow and is_cut(key):
            whole, taken = rejoin(nodes[place - 2 : place - 2 + MAX_PIECES])
            note(cut_value(whole))
            place = _after(nodes, place - 2 + taken)
            continue
        if key is None:
            continue
        if wrong := _wrong(key, value, kept):
            note(wrong)
        elif value and isinstance(key, YamlScalar):
            kept[key.text] = key
            yield YamlEntry(key, value)


def _after(nodes: Sequence[YamlNode | None], place: int) -> int:
    """Return the next key at or behind a place that is more than a piece of the value before it."""
    place += place % 2
    while place < len(nodes) and is_empty(nodes[place + 1]) and not _has_colon(nodes[place]):
        place += 2
    return place


def _wrong(key: YamlNode, value: YamlNode | None, kept: dict[str, YamlScalar]) -> Diagnostic | None:
    """Return what is wrong with a key or its value."""
    if not isinstance(key, YamlScalar):
        return Diagnostic("key-not-text", "a key must be a string, not a list or a mapping", key.span)
    if is_empty(key):
        return Diagnostic("empty-key", "a key is missing before this", key.span)
    if key.text == MERGE and key.plain:
        return Diagnostic(
            "merge-key",
            "`<<` merges mappings in YAML, which recipes do not support",
            key.span,
            hint="write the keys out",
        )
    if key.text in kept:
        return Diagnostic(
            "duplicate-key", f"`{key.text}` occurs twice", key.span, labels=(Label(kept[key.text].span, "first here"),)
        )
    if not is_empty(value):
        return None
    if _has_colon(key):
        return Diagnostic(
            "empty-value", f"`{key.text}` has no value", key.span, hint="write one after the colon, or leave the key out"
        )
    hint = f"write `{key.text}: …`; if it belongs to the value before the comma, quote this value, or give it a line of its own"
    return Diagnostic("empty-value", f"`{key.text}` has no value", key.span, hint=hint)


def is_empty(node: YamlNode | None) -> TypeGuard[YamlScalar]:
    """Return whether nothing is written where a node should be."""
    return isinstance(node, YamlScalar) and node.plain and not node.text


def _has_colon(key: YamlNode | None) -> bool:
    """Return whether a colon follows a key, so that it is no mere piece of a value."""
    if not isinstance(key, YamlScalar):
        return True
    return key.span.source.lines[key.span.end_line - 1][key.span.end_column - 1 :].lstrip().startswith(":")
