"""The colors of a drawing, by what a block is: chosen so that they differ in every color sight, and bear their texts."""

from __future__ import annotations

from dataclasses import dataclass

from blocks.core.look import Hue


@dataclass(frozen=True, slots=True)
class Paint:
    """The two colors of a shape."""

    fill: str
    stroke: str


@dataclass(frozen=True, slots=True)
class Palette:
    """Every color of a theme."""

    hues: dict[Hue, Paint]
    paper: str
    title: str
    detail: str
    muted: str
    frame: Paint
    wire: str
    pill: Paint
    """The fill of a pill, and its text."""


LIGHT = Palette(
    hues={
        "io": Paint("#F6F6F7", "#4B5563"),
        "embed": Paint("#FBD693", "#A85400"),
        "pos": Paint("#E3C6D4", "#8C2681"),
        "norm": Paint("#FAF08E", "#6C6E37"),
        "attn": Paint("#A9CFFF", "#0C68A6"),
        "cross": Paint("#A9CFFF", "#3B3A98"),
        "ffn": Paint("#BDF2CC", "#1F5336"),
        "moe": Paint("#FCB99F", "#7A2E00"),
        "rec": Paint("#9BEBFC", "#2B7272"),
        "merge": Paint("#FFFFFF", "#374151"),
        "loss": Paint("#FFFFFF", "#B42318"),
        "state": Paint("#FFFFFF", "#2B7272"),
    },
    paper="#FFFFFF",
    title="#111827",
    detail="#374151",
    muted="#4B5563",
    frame=Paint("#F9FAFB", "#9CA3AF"),
    wire="#4B5563",
    pill=Paint("#374151", "#FFFFFF"),
)
DARK = Palette(
    hues={
        "io": Paint("#2F343A", "#E2E2E2"),
        "embed": Paint("#5C3B00", "#E0A050"),
        "pos": Paint("#4A1745", "#C9A3BB"),
        "norm": Paint("#52461E", "#FDD657"),
        "attn": Paint("#00466B", "#5AA5EA"),
        "cross": Paint("#00466B", "#A9A0F5"),
        "ffn": Paint("#164029", "#7EFBA8"),
        "moe": Paint("#5A1604", "#F0807A"),
        "rec": Paint("#071F1F", "#00D1EE"),
        "merge": Paint("#111827", "#D1D5DB"),
        "loss": Paint("#0D1117", "#F97066"),
        "state": Paint("#0D1117", "#00D1EE"),
    },
    paper="#0D1117",
    title="#F3F4F6",
    detail="#D1D5DB",
    muted="#B6BDC9",
    frame=Paint("#161B22", "#4B5563"),
    wire="#9CA3AF",
    pill=Paint("#D1D5DB", "#0D1117"),
)
