"""The elements of two drawings on one page, whose paths begin with the side."""

from __future__ import annotations

from dataclasses import replace

from composer.draw.layout.fragment import Pieces
from composer.draw.scene import Scene

SIDES = "before:", "after:"
"""The prefixes of paths of the two drawings."""


def sided(scene: Scene, side: str) -> Pieces:
    """Return the elements of a drawing, with the side in their paths."""
    texts = [text for text in scene.texts if text.role not in ("heading", "facts")]
    return Pieces(
        [
            replace(one, about=replace(one.about, path=side + one.about.path), key=side + one.key, frame=of(side, one.frame))
            for one in scene.frames
        ],
        [replace(one, source=of(side, one.source), target=of(side, one.target)) for one in scene.wires],
        list(scene.dots),
        [replace(one, about=replace(one.about, path=side + one.about.path), frame=of(side, one.frame)) for one in scene.boxes],
        [replace(one, about=replace(one.about, path=side + one.about.path), frame=of(side, one.frame)) for one in scene.merges],
        [
            replace(
                one,
                about=replace(one.about, path=side + one.about.path),
                source=of(side, one.source),
                target=of(side, one.target),
            )
            for one in scene.references
        ],
        texts,
    )


def of(side: str, path: str) -> str:
    """Return a path, or the key of a frame, with the side; an empty one stays empty."""
    return side + path if path else ""
