"""The smallest recipe that fails in the same way."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.documents import Document, at, copied, delete, places, put, text_of
from tests.fuzz.judge import judge


def minimized(text_document: Document, signature: str, property: str, seconds: float = 40.0) -> Document:
    """Return a document as small as can be found in the time that still fails with the same signature."""

    def fails(tried: Document) -> bool:
        found = judge(text_of(tried), everything=True, only=only, seconds=10.0)
        return any(each.signature == signature for each in found.failures)

    only = property if property not in ("check", "cost", "place", "hang") else ""
    return reduced(text_document, fails, time.process_time() + seconds)


def reduced(whole: Document, fails: Callable[[Document], bool], deadline: float) -> Document:
    """Return the document after every simplification that keeps it failing, until none does or the time is over."""
    best = whole
    while True:
        for tried in simpler(best):
            if time.process_time() > deadline:
                return best
            if fails(tried):
                best = tried
                break
        else:
            return best


def simpler(whole: Document) -> Iterator[Document]:
    """Yield documents that are simpler by one step: the boldest steps first."""
    found = [path for path, _ in places(whole) if path]
    for path in sorted(found, key=lambda path: (len(path), path[-1] in ("in", "type"))):
        yield _changed(whole, lambda other, path=path: delete(other, path))  # type: ignore[misc]  # a default of its own
    for path in found:
        value = at(whole, path)
        for new in _simpler_values(value):
            yield _changed(whole, lambda other, path=path, new=new: put(other, path, copied(new)))  # type: ignore[misc]  # as above


def _changed(whole: Document, change: Callable[[Document], None]) -> Document:
    other: Document = copied(whole)
    change(other)
    return other


def _simpler_values(value: Any) -> Iterator[Any]:
    """Yield what is simpler in place of a value."""
    if isinstance(value, dict):
        if "graph" in value and isinstance(value["graph"], dict):
            yield from (inner for inner in value["graph"].values())  # the node instead of what it is wrapped in
        if "body" in value:
            yield value["body"]
        if isinstance(value.get("type"), str) and len(value) > 1:
            yield value["type"]
        if isinstance(value.get("default"), str):
            yield value["default"]
    elif isinstance(value, list):
        yield from value
    elif isinstance(value, str):
        if " if " in value and " else " in value:
            yield value.partition(" if ")[0]
            yield value.rpartition(" else ")[2]
        for word in (" and ", " or "):
            if word in value:
                yield from value.split(word)
        if len(value) > 1 and not value.isidentifier() and not re.fullmatch(r"[\w.\-]+", value):
            yield "2"
        if re.fullmatch(r"\d\d+|[5-9]", value):
            yield from ("1", "2", "4")
