"""What pages pack so that they are small, as text: the one place that knows how."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

GZIP = "H4sI"
"""How what gzip makes begins in base64."""
ELEMENT = re.compile(r"<(style|script)([^>]*)>(.*?)</\1>|<svg\b.*?</svg>", re.DOTALL)


def parts(page: str) -> dict[str, str]:
    """Return a page by its parts: the markup, each style, script and picture that stands in it, the pictures that its data hold,
    and the rest of the data as JSON.
    """
    found: dict[str, str] = {}

    def take(match: re.Match[str]) -> str:
        kind, attributes, content = match[1] or "picture.svg", match[2] or "", match[3] or match[0]
        if kind == "script" and ("json" in attributes or GZIP in content[:200]):
            value = opened(content)
            found.update(pictures(value))
            kind, content = "data.json", json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
        name = f"{sum(other.startswith(kind) for other in found)}-{kind}" if kind in found else kind
        found[name] = content
        return f"<{kind}/>"

    return {"markup": ELEMENT.sub(take, page), **found}


def opened(value: Any) -> Any:
    """Return data with everything in it read: JSON in a text, and what gzip and base64 made of either."""
    if isinstance(value, str):
        text = value.strip()
        if text.startswith(GZIP):
            return opened(gzip.decompress(b64decode(text)).decode())
        if text.startswith(("{", "[")):
            try:
                return opened(json.loads(text))
            except ValueError:  # such as a type without its dtype, [batch, time]
                return value
        return value
    if isinstance(value, list):
        return list(map(opened, value))
    return {name: opened(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def pictures(data: Any) -> dict[str, str]:
    """Take the pictures out of the data of a page, and return each by where it stood."""
    phrases, things = ([data.pop(name, None) for name in ("phrases", "things")]) if isinstance(data, dict) else (None, None)
    if phrases is None or things is None:
        return dict(_written(data, "picture"))
    words = data.pop("words")
    joined = ["".join(words[word] for word in phrase) for phrase in phrases]
    for view in data["views"].values():
        for name in ("picture", "copied"):
            view[name] = _together(view[name], joined, things)
    return dict(_written(data, "picture"))


def _together(rows: list[int], phrases: list[str], things: list[list[int]]) -> str:
    """Return a picture: of each of its things the phrases and, between them, the points, in tenths from
    where the thing stands.
    """
    text = []
    for thing, *corner in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        for at, part in enumerate(things[thing]):
            text.append(f"{(part + corner[at % 4 == 3]) / 10:g}" if at % 2 else phrases[part])
    return "".join(text)


def _written(data: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield every picture that stands in some data, whose place is left empty."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, value in items:
        if isinstance(value, str) and value.lstrip().startswith("<svg"):
            yield f"{path}/{name}.svg", value
            data[name] = ""
        else:
            yield from _written(value, f"{path}/{name}")
