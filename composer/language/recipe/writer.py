"""The writer of recipes: data as YAML, on one line what fits on one; `read` returns the same data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from composer.language.recipe.keys import MULTILINE
from composer.language.yaml.nodes import YamlList, YamlMapping, YamlNode, YamlScalar
from composer.printable import printable, yaml_string

MAX_COLUMNS = 120
"""Columns of a line with a mapping or a list in flow style."""
_SPECIAL = re.compile(r"^[\s,\[\]{}#&*!|>'\"%@`]|^[-?:](\s|$)|:(\s|$)|\s#|[\t\n\r]|\s$|^$|^(---|\.\.\.)")
_IN_FLOW = re.compile(r"[,\[\]{}]|^[-?]")


@dataclass(frozen=True, slots=True)
class Remark:
    """Data with a comment at the end of its line."""

    data: YamlValue
    comment: str


YamlValue: TypeAlias = "str | Sequence[YamlData] | Mapping[str, YamlData]"
YamlData: TypeAlias = "YamlValue | Remark"


def write(data: Mapping[str, YamlData]) -> str:
    """Return the data as YAML text."""
    return "\n".join(_mapping(data, 0)) + "\n"


def data_of(node: YamlNode) -> YamlValue:
    """Return a document's node as plain data."""
    match node:
        case YamlScalar(text=text):
            return text
        case YamlList(items=items):
            return [data_of(item) for item in items]
        case YamlMapping():
            return {entry.key.text: data_of(entry.value) for entry in node}


def _mapping(data: Mapping[str, YamlData], depth: int) -> Iterator[str]:
    for key, value in data.items():
        yield from _entry(f"{'  ' * depth}{_scalar(key, flow=False)}:", value, depth)


def _entry(head: str, value: YamlData, depth: int) -> Iterator[str]:
    comment = ""
    if isinstance(value, Remark):
        comment, value = f"  # {value.comment}", value.data
    if isinstance(value, str):
        if "\n" in value.rstrip("\n") and _fits_block(value):
            last_end = "" if value.endswith("\n") else "-"
            yield f"{head} |{last_end}{comment}"
            yield from (f"{'  ' * (depth + 1)}{line}".rstrip() for line in value.rstrip("\n").split("\n"))
        else:
            yield f"{head} {_scalar(value, flow=False)}{comment}"
        return
    line = f"{head} {_flow(value)}"
    if not value or (depth > 0 and not _structured(value) and len(line) <= MAX_COLUMNS):
        remarks = "; ".join(dict.fromkeys(_remarks(value)))
        yield line + comment + (f"  # {remarks}" if remarks else "")
        return
    yield head + comment
    if isinstance(value, Mapping):
        yield from _mapping(value, depth + 1)
    else:
        for item in value:
            remarks = "; ".join(dict.fromkeys(_remarks(item)))
            yield f"{'  ' * (depth + 1)}- {_flow(item)}" + (f"  # {remarks}" if remarks else "")


def _structured(value: YamlData) -> bool:
    if isinstance(value, Remark):
        return _structured(value.data)
    if isinstance(value, Mapping):
        return bool(MULTILINE & value.keys()) or any(_structured(inner) for inner in value.values())
    return not isinstance(value, str) and any(_structured(item) for item in value)


def _flow(value: YamlData) -> str:
    if isinstance(value, Remark):
        return _flow(value.data)
    if isinstance(value, str):
        return _scalar(value, flow=True)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(key, flow=True)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    return "[" + ", ".join(map(_flow, value)) + "]"


def _remarks(value: YamlData) -> Iterator[str]:
    if isinstance(value, Remark):
        yield value.comment
        yield from _remarks(value.data)
    elif not isinstance(value, str):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _remarks(inner)


def _scalar(text: str, *, flow: bool) -> str:
    quoted = _SPECIAL.search(text) or (flow and _IN_FLOW.search(text))
    return yaml_string(text) if quoted or printable(text) != text else text


def _fits_block(text: str) -> bool:
    """Return whether a text of several lines can stand as it is, indented, under `|`."""
    if text.startswith((" ", "\n")) or text.endswith("\n\n") or re.search(r"[ \t]\n|[ \t]$|\t|\r", text):
        return False
    return printable(text, keep="\n") == text
