"""The things of two drawings on one page: their paths say which drawing they are of."""

from __future__ import annotations

from dataclasses import replace

from composer.draw.layout.fragment import Pieces
from composer.draw.scene import Scene

SIDES = "before:", "after:"
"""What paths of either drawing begin with."""


def sided(scene: Scene, side: str) -> Pieces:
    """Return the things of a drawing, whose paths say which one they are of."""
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
    """Return a path, or the key of a frame, that says of which drawing it is, if it leads anywhere."""
    return side + path if path else ""
