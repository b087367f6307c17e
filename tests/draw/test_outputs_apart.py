"""Columns side by side above a block of several outputs, each at one of these."""

from __future__ import annotations

from pathlib import Path

import composer
from composer.draw.geometry import Text
from composer.draw.scene import Box, Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.test_read_back import wrong

TWO = """recipe: two
inputs: {x: "float[batch, 8]", y: "float[batch, 6]"}
graph:
  wide: {type: linear, out: 20, in: x}
  parts: {type: split, into: [state, context], axis: -1, sizes: [12, 8]}
  state: {type: tanh, in: parts.state}
  seen: {type: relu, in: parts.context}
  narrow: {type: linear, out: 5}
  steps:
    repeat: 3
    in: {h: y}
    graph:
      both: {type: concat, axis: -1, in: [h, narrow]}
      map: {type: linear, out: 12}
      gate: {compute: map * state}
      new: {type: linear, out: 6}
    outputs: {h: new}
outputs: {y: steps.h}
"""


def drawn(source: str) -> Scene:
    """Return the drawing of a recipe, in which nothing overlaps and all wires end somewhere."""
    scene = composer.load(source).draw(details=["none"]).scene
    assert [*overlaps(scene), *borders(scene), *ends(scene), *starts(scene)] == []
    return scene


def test_columns_may_have_several_blocks() -> None:
    """What they give goes on above all of them, that of the last one lowest: the wires do not cross."""
    scene = drawn(TWO)
    split, state, seen, narrow = (box_at(scene, path) for path in ("parts", "state", "seen", "narrow"))
    assert state.area.bottom == seen.area.bottom and narrow.area.bottom < seen.area.top
    assert split.area.left < state.area.right < narrow.area.left < split.area.right
    led = {wire.source: wire for wire in scene.wires if wire.source in ("state", "narrow") and "steps" in wire.target}
    assert min(y for _, y in led["state"].points) < min(y for _, y in led["narrow"].points) < narrow.area.top
    assert wrong(composer.load(TWO), "block") == []


def box_at(scene: Scene, path: str) -> Box:
    """Return the box of a node."""
    return next(box for box in scene.boxes if box.about.path == path)


def near(scene: Scene, said: str) -> Text:
    """Return a small text."""
    return next(text for text in scene.texts if text.text == said)


def test_what_starts_at_several_outputs_stands_side_by_side() -> None:
    """Of RAFT, the state and what the update sees of the context: above each other, one would seem to come after the other."""
    scene = composer.load(Path(__file__).parent / "papers/raft.yaml").draw().scene
    split, state, seen = (box_at(scene, path) for path in ("parts", "state", "seen"))
    assert state.area.bottom == seen.area.bottom < split.area.top and state.area.right < seen.area.left
    for box, name in ((state, "state"), (seen, "context")):
        (wire,) = (one for one in scene.wires if (one.source, one.target) == ("parts", box.about.path))
        (x, y), (_, end) = wire.points
        assert (y, end) == (split.area.top, box.area.bottom) and split.area.left < x < split.area.right
        assert abs(near(scene, name).area.right - x) < 10
    assert "B × 96 × 46 × 62" in [text.text for text in scene.texts]
