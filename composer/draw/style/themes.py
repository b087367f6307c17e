"""How a picture looks: the colors and widths of what is in it, and the same as rules of CSS."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from blocks.core.look import Hue
from composer.draw.scene import Happened, Style
from composer.draw.style.palette import DARK, LIGHT, Palette
from composer.draw.style.typography import Role

WIDTHS: dict[Style, float] = {
    "main": 1.5,
    "side": 1.5,
    "cross": 1.8,
    "expert": 1.8,
    "idle": 1.0,
    "loss": 1.5,
    "loop": 1.5,
    "far": 1.2,
    "measured": 1.2,
    "rewired": 2.6,
}
CHANGES: dict[Happened, tuple[Hue, tuple[float, ...]]] = {
    "added": ("ffn", ()),
    "removed": ("loss", (7, 4)),
    "replaced": ("embed", (12, 3, 2, 3)),
    "altered": ("attn", (2, 2.5)),
    "rewired": ("pos", ()),
    "shared": ("rec", (5, 2)),
}
"""The color of a change, and the dashes of a ring by which it is told apart without colors."""
WIRES: dict[Style, Hue] = {
    "side": "pos",
    "cross": "cross",
    "expert": "moe",
    "idle": "moe",
    "loss": "loss",
    "loop": "rec",
    "rewired": CHANGES["rewired"][0],
}
"""What has the color of a block; all other wires have one of their own."""
PICTURED: tuple[Hue, ...] = ("merge", "attn")
"""The colors that a box with the picture of a product has: its own, and that of boxes whose shades tell a size."""
CLASSES: dict[Role, str] = {
    "heading": "t",
    "title": "t",
    "low": "t",
    "expert": "t",
    "row": "t",
    "facts": "u",
    "detail": "u",
    "header": "u",
    "pill": "pt",
    "badge": "bt",
    "params": "m params",
    "shape": "m shape",
    "name": "m name",
}
"""The classes of a text: the first says its color, a second what a reader may leave out; that of all others is `m`."""


@dataclass(frozen=True, slots=True)
class Theme:
    """How a picture looks, and whether it looks otherwise where the reader's screen is dark."""

    palette: Palette
    follows: bool = False
    paper: bool = True
    """Whether the page has a color of its own."""
    stroke: float = 1.0
    """Factor of all lines."""
    text_scale: float = 1.0
    """Factor of all font sizes, for which figures are laid out."""


ThemeName: TypeAlias = Literal["light", "dark", "auto", "slide"]
THEMES: dict[ThemeName, Theme] = {
    "light": Theme(LIGHT),
    "dark": Theme(DARK),
    "auto": Theme(LIGHT, follows=True),
    "slide": Theme(LIGHT, paper=False, stroke=1.35, text_scale=1.35),
}


def inks(palette: Palette) -> dict[str, str]:
    """Return the colors of texts, by their classes."""
    return {"t": palette.title, "u": palette.detail, "m": palette.muted, "pt": palette.pill.stroke, "bt": palette.paper}


def wire_color(palette: Palette, style: Style) -> str:
    """Return what color a wire has."""
    return palette.hues[WIRES[style]].stroke if style in WIRES else palette.wire


def rules(palette: Palette) -> str:
    """Return every color of a theme as rules of CSS, by the classes that things have."""
    found = [
        f".t{{fill:{palette.title}}}.u{{fill:{palette.detail}}}.m{{fill:{palette.muted}}}.paper,.off,.bg{{fill:{palette.paper}}}",
        f".gl{{stroke:{palette.paper}}}.frame>.s{{fill:{palette.frame.fill};stroke:{palette.frame.stroke}}}",
        f".wire{{fill:{palette.wire}}}.pill{{fill:{palette.pill.fill}}}.pt{{fill:{palette.pill.stroke}}}",
    ]
    for hue, paint in palette.hues.items():
        found.append(f".k-{hue}>.s{{fill:{paint.fill};stroke:{paint.stroke}}}.k-{hue} .i{{stroke:{paint.stroke}}}")
        solid = f"{{fill:{paint.stroke};stroke:{paint.stroke}}}"
        found.append(f".k-{hue} .on{solid}.k-{hue} .half{solid}")
    for style in WIDTHS:
        if style == "rewired":  # told with the changes
            continue
        found.append(wire_rules(palette, style))
    return "".join(found)


def change_rules(palette: Palette) -> str:
    """Return the rules of CSS for what marks a change."""
    found = [f".bt{{fill:{palette.paper}}}"]
    for happened, (hue, _) in CHANGES.items():
        color = palette.hues[hue].stroke
        found.append(f".c-{happened}{{stroke:{color}}}.b-{happened}>.s{{fill:{color};stroke:{palette.paper}}}")
    return "".join([*found, wire_rules(palette, "rewired")])


def detail_rules(palette: Palette) -> str:
    """Return the rule of CSS for the border of a block that is drawn from inside beside the figure."""
    return f".detail>.s{{fill:{palette.paper};stroke:{palette.frame.stroke}}}"


def picture_rules(palette: Palette) -> str:
    """Return the rules of CSS for cards behind frames, and for slices in the pictures of products."""
    slices = (f".k-{hue} .light{{fill:{palette.hues[hue].stroke}}}" for hue in PICTURED)
    return "".join((f".frame>.i{{stroke:{palette.frame.stroke}}}", *slices))


def wire_rules(palette: Palette, style: Style) -> str:
    """Return the rules of CSS for wires of a style."""
    color = wire_color(palette, style)
    return f".e-{style}>path{{stroke:{color}}}.e-{style}>polygon{{fill:{color}}}"


def within(selector: str, css: str) -> str:
    """Return rules for what is in a picture of some class alone: a notebook has several on one page."""

    def scoped(rule: re.Match[str]) -> str:
        return ",".join(f"{selector} {one}" for one in rule[1].split(",")) + rule[2]

    return re.sub(r"([^{}]+)(\{[^{}]*\})", scoped, css)
