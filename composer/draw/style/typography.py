"""The letters of a drawing: which size and weight each kind of text has, and how much room texts take in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from composer.draw.style.text_metrics import text_width

Role: TypeAlias = Literal[
    "heading",
    "facts",
    "title",
    "low",
    "expert",
    "detail",
    "row",
    "params",
    "name",
    "shape",
    "note",
    "port",
    "reference",
    "tick",
    "header",
    "pill",
    "sign",
    "badge",
]
"""What a text is for, which decides how it looks."""


@dataclass(frozen=True, slots=True)
class Font:
    """Size in pixels, and weight."""

    size: float
    bold: bool = False


FONTS: dict[Role, Font] = {
    "heading": Font(20, True),
    "facts": Font(11.5),
    "title": Font(13, True),
    "low": Font(10.5, True),
    "expert": Font(11, True),
    "detail": Font(10.5),
    "row": Font(10.5, True),
    "params": Font(10),
    "name": Font(10),
    "shape": Font(10),
    "note": Font(10),
    "port": Font(10),
    "reference": Font(10),
    "tick": Font(10),
    "header": Font(11),
    "pill": Font(12.5, True),
    "sign": Font(12, True),
    "badge": Font(10, True),
}
"""At natural size, where the smallest letters are 10 pixels high."""


@lru_cache(maxsize=256)
def font(role: Role, scale: float) -> Font:
    """Return the font of a kind of text, so many times larger than usual."""
    usual = FONTS[role]
    return Font(usual.size * scale, usual.bold)


@dataclass(frozen=True, slots=True)
class Typography:
    """How large the letters are for which a drawing is laid out."""

    scale: float = 1.0
    """How many times larger than usual, in boxes and gaps of the usual height."""

    def width(self, text: str, role: Role) -> float:
        """Return the width of a text, kerning left out."""
        own = font(role, self.scale)
        return text_width(text, own.size, bold=own.bold)

    def fitted(self, text: str, role: Role, room: float) -> str:
        """Return a text, or as much of its beginning as there is room for: whole words, if these are most of it."""
        if self.width(text, role) <= room:
            return text
        begun = text
        while begun and self.width(begun + "…", role) > room:
            begun = begun[:-1]
        words = begun if text[len(begun)] == " " else begun.rpartition(" ")[0]
        return (words if 3 * len(words) > 2 * len(begun) else begun).rstrip(" ·,(") + "…"
