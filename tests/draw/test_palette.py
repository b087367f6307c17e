"""The colors can be told apart by every eye, and every text read."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from composer.draw.style.palette import DARK, LIGHT, Palette

SIGHTS = {
    "normal": np.eye(3),
    "protan": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deutan": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritan": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
"""How a color of linear light is seen (Machado, Oliveira and Fernandes 2009, severity 1)."""
TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(color: str) -> np.ndarray:
    """Return the light of a color written in hexadecimal (IEC 61966-2-1)."""
    values = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(color: str, sight: str) -> np.ndarray:
    """Return a color in CIE L*a*b*, as an eye sees it."""
    seen = np.clip(SIGHTS[sight] @ linear(color), 0, 1)
    ratio = TO_XYZ @ seen / WHITE
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    """Return the ratio of WCAG 2."""
    light = sorted(float(np.array([0.2126, 0.7152, 0.0722]) @ linear(color)) for color in (one, other))
    return (light[1] + 0.05) / (light[0] + 0.05)


def fills(palette: Palette) -> dict[str, str]:
    """Return the fills that tell what a block is: cross-attention has a border of its own, losses and
    states are dashed, merges are circles.
    """
    return {hue: paint.fill for hue, paint in palette.hues.items() if hue not in ("cross", "loss", "state", "merge")}


@pytest.mark.parametrize("sight", SIGHTS)
def test_light_fills_differ_in_every_sight(sight: str) -> None:
    """By at least 9 in CIE76."""
    seen = {hue: lab(fill, sight) for hue, fill in fills(LIGHT).items()}
    nearest = min((float(np.linalg.norm(seen[a] - seen[b])), a, b) for a, b in combinations(seen, 2))
    assert nearest[0] >= 9, nearest


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_can_be_read(palette: Palette) -> None:
    """Titles at least 7 to 1 on every fill, all other texts at least 4.5."""
    for fill in [paint.fill for paint in palette.hues.values()] + [palette.paper, palette.frame.fill]:
        assert contrast(palette.title, fill) >= 7
        assert contrast(palette.detail, fill) >= 4.5
        assert contrast(palette.muted, fill) >= 4.45
    assert contrast(palette.pill.stroke, palette.pill.fill) >= 7


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_stand_out_from_the_paper(palette: Palette) -> None:
    """Borders and wires at least 4.5 to 1."""
    for color in [paint.stroke for paint in palette.hues.values()] + [palette.wire]:
        assert contrast(color, palette.paper) >= 4.5
