"""Types as they are written: `float[..., time, 4 * dim]`."""

from __future__ import annotations

import re
from typing import Any

from composer.language.expressions.ast import Expression
from composer.language.recipe.ast import TypeDecl
from composer.language.recipe.base_parser import BaseParser
from composer.language.unknown_names import quoted
from composer.language.yaml.nodes import YamlScalar

TYPE = re.compile(r"\s*(int|float|bool)\s*\[(.*)\]\s*(\?)?\s*", re.DOTALL)
MISSING_COMMA = re.compile(r"(\w+)\s+(\w+)(?:\s+\w+)*")


def type_of(reader: BaseParser, scalar: YamlScalar) -> TypeDecl | None:
    """Return a type from its text."""
    match = TYPE.fullmatch(scalar.text)
    if match is None:
        hint = "a type is `int`, `float` or `bool` with its axes: int[batch, time]"
        reader.error("bad-type", scalar.span, f"{quoted(scalar.text)} is not a type", hint=hint)
        return None
    axes: list[Expression] = []
    leading, start = False, match.start(2)
    for piece in axes_of(match[2]):
        text = piece.strip()
        place = start + len(piece) - len(piece.lstrip())
        start += len(piece) + 1
        if text == "..." and not axes and not leading:
            leading = True
        elif missing := MISSING_COMMA.fullmatch(text):
            hint = f"{match[1]}[{', '.join(' '.join(axes_of(match[2])).split())}]"
            message = f"a comma is missing between `{missing[1]}` and `{missing[2]}`"
            reader.error("bad-type", scalar.part(place, place + len(text)), message, hint=hint)
        elif (axis := reader.expression(YamlScalar(text, scalar.part(place, place + len(text))))) is not None:
            axes.append(axis.expression)
    dtype: Any = match[1]
    return TypeDecl(dtype, tuple(axes), leading, scalar.span, scalar.text.strip().rstrip("?").rstrip())


def axes_of(text: str) -> list[str]:
    """Return what stands between the commas of a type's brackets; commas in round brackets are a function's."""
    pieces, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces if text.strip() else []
