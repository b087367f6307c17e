"""Repeats that carry several values, and skip connections with blocks: where wires cross borders, and go over."""

from __future__ import annotations

import pytest

import composer
from composer.draw.about import About
from composer.draw.edges import DiagramEdge, DiagramSource, InnerOutput, NodeOutput
from composer.draw.layout.beside.borders import led_aside
from composer.draw.layout.fragment import Fragment
from composer.draw.links import LinkGraph
from composer.draw.scene import Frame, Scene
from tests.draw.cases import FORMS
from tests.draw.checks import borders, ends, overlaps, starts


def scene(name: str) -> Scene:
    return composer.load(next(path for path in FORMS if path.stem == name)).draw().scene


def through(found: Scene, frame: Frame) -> tuple[dict[str, float], dict[str, float]]:
    """Return where values come in at the lower border of a frame, and where they go out at the upper one, by what makes or reads
    them outside.
    """
    low, high = frame.y + frame.height, frame.y
    path = frame.about.path
    below = {w.source: w.points[-1][0] for w in found.wires if w.target == path and not w.to_inside and w.points[-1][1] == low}
    above = {w.target: w.points[0][0] for w in found.wires if w.points[0][1] == high and not w.target.startswith(path)}
    return below, above


@pytest.mark.parametrize(
    ("name", "read", "readers"),
    [
        ("co_attention", ["text1.add", "image1.add"], ["word_head", "region_head"]),
        ("two_tracks", ["embed", "pairs"], ["head", "pair_head"]),
        ("pyramid_layers", ["stem", "half", "quarter", "eighth"], ["head1", "head2", "head3", "head4"]),
    ],
)
def test_what_is_carried_goes_straight_through_a_frame(name: str, read: list[str], readers: list[str]) -> None:
    """In at the bottom and out at the top in the same order, in the column of its stream; nothing is led back inside."""
    found = scene(name)
    frame = next(one for one in found.frames if one.pill)
    below, above = through(found, frame)
    assert sorted(below, key=below.__getitem__) == read
    assert sorted(above, key=above.__getitem__) == readers
    assert [above[one] for one in readers] == pytest.approx([below[one] for one in read], abs=0.1)
    assert not any(wire.style == "loop" for wire in found.wires)
    assert [*overlaps(found), *borders(found), *ends(found), *starts(found)] == []


def test_links_lead_through_the_passage_of_their_value() -> None:
    """Each block reads what the recipe says, though all values cross one border."""
    links = {(link.source, link.target, link.port) for link in LinkGraph(scene("co_attention")).links}
    assert {source for source, target, port in links if (target, port) == ("layers.text_image", "x")} == {"text1.add"}
    assert {source for source, target, port in links if (target, port) == ("layers.text_image", "memory")} == {"image1.add"}
    assert {source for source, target, _ in links if target == "word_head"} == {"layers.text.add"}
    assert {source for source, target, _ in links if target == "region_head"} == {"layers.image.add"}


def test_what_nothing_reads_in_the_end_is_led_back() -> None:
    """Two streams, of which the second is read by the next layer alone."""
    both = next(path for path in FORMS if path.stem == "two_tracks").read_text(encoding="utf-8")
    kept = "  pair_head: {type: linear, out: 8, in: layers.z}\n"
    alone = both.replace(kept, "").replace(", distances: pair_head", "")
    found = composer.load(alone).draw().scene
    assert any(wire.style == "loop" for wire in found.wires)


@pytest.mark.parametrize(("name", "levels"), [("attention_unet", 2), ("gated_unet", 3)])
def test_gates_stand_on_the_skip_connections_of_a_u(name: str, levels: int) -> None:
    """In a column between the two ways, level with what joins, and read the way up from below."""
    found = scene(name)
    boxes = {box.about.path: box for box in found.boxes}
    joins = {one.about.path: one for one in found.merges}
    ways = boxes["down1"].x + boxes["down1"].width, boxes["mask"].x
    for level in range(1, levels + 1):
        gate, join = boxes[f"gate{level}"], joins[f"join{level}"]
        assert ways[0] < gate.x and gate.x + gate.width < ways[1]
        assert gate.x + gate.width / 2 == pytest.approx(boxes["gate1"].x + boxes["gate1"].width / 2)
        assert gate.y + gate.height / 2 == pytest.approx(join.y)
        into = {wire.source: wire.points for wire in found.wires if wire.target == gate.about.path}
        assert {len(points) for points in into.values()} == {2, 3}
        assert into[f"down{level}"][0][1] == into[f"down{level}"][1][1] == pytest.approx(join.y)
        (other,) = into.keys() - {f"down{level}"}
        assert into[other][-1][1] == gate.y + gate.height < into[other][0][1]
    assert [*overlaps(found), *borders(found), *ends(found), *starts(found)] == []


def test_beside_a_spine_passages_are_led_along_the_border() -> None:
    """Below it and above it, to the side where the passage is; the stream stays on the spine, and the height covers all."""
    frame = Frame(About("f"), -50, -40, 200, 40, ())
    found = Fragment(left=50, right=150, height=40, top=-40, below={"": 0, "v": 90}, above={"": ((0, -40),), "v": ((90, -40),)})
    found.pieces.frames.append(frame)
    edge = DiagramEdge(DiagramSource(NodeOutput("a")), "f", "v", True, passage="v")
    out = InnerOutput("f", "f.v", NodeOutput("f.b"), "last pass")
    led_aside(found, [edge], {out: "v"}, 1)
    (drawn,) = found.pieces.frames
    assert found.ends[edge][0][0] == found.taps[out][-1][0] == found.right == 150
    assert found.ends[edge][-1] == (90, drawn.area.bottom)
    assert found.taps[out][0] == (90, drawn.area.top)
    assert drawn.area.bottom == found.foot < found.ends[edge][0][1] <= 0
    assert -found.height <= found.taps[out][-1][1] < drawn.area.top == found.top
