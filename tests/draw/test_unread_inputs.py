"""What a repeat is given and no pass of it reads: no wire leads there, and its passes stand side by side."""

from __future__ import annotations

import composer
from tests.draw.read_back import read

LEVELS_OF_STAGES = """recipe: levels_of_stages
inputs: {x: "float[batch, 8]"}
graph:
  stages: {repeat: 3, as: stage, graph: {linear: {type: linear, out: 8 * (stage + 2)}, relu: relu}}
  levels:
    repeat: 3
    as: level
    graph:
      map: {type: linear, out: 32, in: stages(level)}
      act: gelu
  all: {type: concat, in: "levels(:)"}
  out: {type: linear, out: 4}
"""


def test_each_level_reads_its_stage_alone() -> None:
    """The last stage is the implied input of the levels, and the level before that of each other one: none reads these."""
    scene = composer.load(LEVELS_OF_STAGES).draw().scene
    wires = {(wire.source, wire.target) for wire in scene.wires}
    assert {(f"stages.{level}", f"levels.{level}") for level in range(3)} <= wires
    assert not [pair for pair in wires if pair[0].startswith("levels") and pair[1].startswith("levels")]
    assert ("stages.2", "levels.0") not in wires


def test_levels_in_one_frame_read_all_stages() -> None:
    """One wire brings all stages from the side of their frame; of the frames nothing else comes in or goes out."""
    picture = read(composer.load(LEVELS_OF_STAGES).draw("full").svg())
    said = [text for _, _, text in picture.texts]
    assert {"all 3 stages", "all 3 levels", "next stage"} <= {*said}
    assert not [wire for wire in picture.wires if wire.source == "stages" and wire.target == "levels" and wire.tip is None]
