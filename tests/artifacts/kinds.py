"""When two contents are the same, by what they are."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

Status: TypeAlias = Literal["equal", "comments", "layout", "differs"]
GEOMETRY = {
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "cx",
    "cy",
    "r",
    "rx",
    "ry",
    "d",
    "points",
    "width",
    "height",
    "viewBox",
    "transform",
}
"""Attributes of SVG that say where something is."""
COLUMNS = {"column", "end_column", "line", "end_line"}
"""Keys of diagnostics that say where something is."""
PLACES = re.compile(r":\d+:\d+|\^+|[-─]{2,}|[│├└|…]")
"""What in a text is there for the layout: places in a recipe, carets, lines of a table."""


def equal(before: str, after: str) -> Status:
    """Compare lines of text."""
    if before.splitlines() == after.splitlines():
        return "equal"
    ours, theirs = (sorted(PLACES.sub(" ", text).split()) for text in (before, after))
    return "layout" if ours == theirs else "differs"


def python(before: str, after: str) -> Status:
    """Compare code by what it does."""
    try:
        ours, theirs = ast.parse(before), ast.parse(after)
    except SyntaxError:
        return equal(before, after)
    ours, theirs = (_undocumented(tree) for tree in (ours, theirs))
    if ast.dump(ours) == ast.dump(theirs):
        return "equal" if _comments(before) == _comments(after) else "comments"
    return "layout" if sorted(map(ast.dump, ours.body)) == sorted(map(ast.dump, theirs.body)) else "differs"


def _undocumented(tree: ast.Module) -> ast.Module:
    """Return the tree without docstrings, those below attributes too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [each for each in node.body if not _is_text(each)]
    return tree


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _comments(code: str) -> list[str]:
    """Return comments and docstrings, in order."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return [token.string for token in tokens if token.type in (tokenize.COMMENT, tokenize.STRING)]


def xml(before: str, after: str) -> Status:
    """Compare elements with their attributes and texts, in order."""
    if ET.canonicalize(before) == ET.canonicalize(after):
        return "equal"
    ours, theirs = (sorted(_things(ET.fromstring(text))) for text in (before, after))
    return "layout" if ours == theirs else "differs"


def _things(root: ET.Element) -> Iterator[str]:
    """Yield what is in a picture, wherever it is there."""
    for element in root.iter():
        attributes = {name: value for name, value in element.attrib.items() if name not in GEOMETRY}
        yield f"{element.tag} {sorted(attributes.items())} {(element.text or '').strip()} {(element.tail or '').strip()}"


def data(before: str, after: str) -> Status:
    """Compare JSON: numbers to the last bit, keys in any order."""
    ours, theirs = json.loads(before), json.loads(after)
    if _plain(ours) == _plain(theirs):
        return "equal"
    return "layout" if _plain(_unplaced(ours)) == _plain(_unplaced(theirs)) else "differs"


def _plain(value: Any) -> str:
    """Return the value as text, in which 1, 1.0 and true are three things."""
    return json.dumps(value, sort_keys=True)


def _unplaced(value: Any) -> Any:
    """Return the diagnostics without places."""
    if isinstance(value, dict):
        return {name: _unplaced(inner) for name, inner in value.items() if name not in COLUMNS}
    return list(map(_unplaced, value)) if isinstance(value, list) else value


def pixels(before: bytes, after: bytes) -> Status:
    """Compare pictures by their pixels."""
    from PIL import Image

    ours, theirs = (Image.open(io.BytesIO(content)).convert("RGBA") for content in (before, after))
    return "equal" if (ours.size, ours.tobytes()) == (theirs.size, theirs.tobytes()) else "differs"


def binary(before: bytes, after: bytes) -> Status:
    """Compare any other file."""
    return "equal" if before == after else "differs"


KINDS: dict[str, Callable[..., Status]] = {
    ".py": python,
    ".svg": xml,
    ".json": data,
    ".png": pixels,
    ".pdf": binary,
}
"""By the ending of a name; anything else is text."""
