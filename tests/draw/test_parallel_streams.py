"""Streams that exchange values: each a straight column, in order, with level wires between them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import composer
from composer.draw.edges import DiagramSource
from composer.draw.layout.beside.parallel_streams import ParallelStreams, blocked, parallel_streams
from composer.draw.passes.layers import forks_alike, kept_shapes, links_of, streams
from composer.draw.scene import Scene
from tests.draw.cases import FORMS
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.flows import flow

STEPS = """
recipe: steps
inputs: {x1: "float[batch, 4]", x2: "float[batch, 4]", x3: "float[batch, 4]", x4: "float[batch, 4]", h0: "float[batch, 8]"}
graph:
  h1: {type: rnn_cell, hidden: 8, in: {x: x1, h: h0}}
  h2: {type: rnn_cell, hidden: 8, in: {x: x2, h: h1}}
  h3: {type: rnn_cell, hidden: 8, in: {x: x3, h: h2}}
  h4: {type: rnn_cell, hidden: 8, in: {x: x4, h: h3}}
  y1: {type: linear, out: 3, in: h1}
  y2: {type: linear, out: 3, in: h2}
  y3: {type: linear, out: 3, in: h3}
  y4: {type: linear, out: 3, in: h4}
outputs: {a: y1, b: y2, c: y3, d: y4}
"""
EXCHANGES = """
recipe: exchanges
inputs: {image: "float[batch, 3, 32, 32]"}
graph:
  stem: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
  a1: {type: conv2d, out: 8, kernel_size: 3, padding: 1, in: stem}
  b1: {type: conv2d, out: 16, kernel_size: 2, stride: 2, in: stem}
  b2: {type: conv2d, out: 16, kernel_size: 3, padding: 1}
  c1: {type: conv2d, out: 32, kernel_size: 2, stride: 2, in: b2}
  c2: {type: conv2d, out: 32, kernel_size: 3, padding: 1}
  a_to_b: {type: conv2d, out: 16, kernel_size: 2, stride: 2, in: a1}
  c_to_b: {type: conv_transpose2d, out: 16, kernel_size: 2, stride: 2, in: c2}
  b_to_a: {type: conv_transpose2d, out: 8, kernel_size: 2, stride: 2, in: b2}
  b_to_c: {type: conv2d, out: 32, kernel_size: 2, stride: 2, in: b2}
  b_sum: {type: add, in: [a_to_b, b2, c_to_b]}
  a_sum: {type: add, in: [b_to_a, a1]}
  c_sum: {type: add, in: [b_to_c, c2]}
  a3: {type: conv2d, out: 2, kernel_size: 1, in: a_sum}
  b3: {type: conv2d, out: 2, kernel_size: 1, in: b_sum}
  c3: {type: conv2d, out: 2, kernel_size: 1, in: c_sum}
outputs: {fine: a3, middle: b3, coarse: c3}
"""


def scene(name: str) -> Scene:
    return composer.load(next(path for path in FORMS if path.stem == name)).draw().scene


def places(found: Scene) -> dict[str, tuple[float, float]]:
    """Return where the middle of each block is."""
    boxes = {box.about.path: (box.x + box.width / 2, box.y + box.height / 2) for box in found.boxes}
    return boxes | {one.about.path: (one.x, one.y) for one in found.merges}


def columns(found: Scene, *streams: tuple[str, ...]) -> list[float]:
    """Return how far to the right each stream stands, which is one straight column."""
    at = places(found)
    xs = [{round(at[path][0], 1) for path in stream} for stream in streams]
    assert [len(one) for one in xs] == [1] * len(streams)
    return [one.pop() for one in xs]


def is_level(found: Scene, source: str, target: str) -> bool:
    """Return whether a wire goes straight from one side to the other."""
    (points,) = (wire.points for wire in found.wires if (wire.source, wire.target) == (source, target))
    return len(points) == 2 and points[0][1] == points[1][1]


def test_resolutions_are_columns_from_fine_to_coarse() -> None:
    """With what is led from one to another between them."""
    found = scene("high_resolution")
    fine, middle, coarse = columns(
        found,
        ("stem", "high1", "high2", "high_sum", "high3"),
        ("mid1", "mid2", "mid_sum", "mid3", "mid3_up"),
        ("low1", "low2", "low_up"),
    )
    assert fine < middle < coarse
    assert all(fine < places(found)[path][0] < middle for path in ("high_down", "mid_up", "mid_wide"))


def test_levels_of_a_pyramid_are_columns_with_level_wires_between_them() -> None:
    """Each from its input to its output, in the order of the inputs."""
    found = scene("bifpn")
    levels = columns(
        found,
        ("p3", "sum3", "out3", "outputs/q3"),
        ("p4", "mid4", "conv4", "sum4", "out4", "outputs/q4"),
        ("p5", "sum5", "out5", "outputs/q5"),
    )
    assert levels == sorted(levels)
    assert all(is_level(found, *pair) for pair in (("up5", "mid4"), ("conv4", "up4"), ("up4", "sum3"), ("down4", "sum5")))


def test_steps_of_an_unrolled_network_are_in_one_row() -> None:
    """The state goes level from each to the next; the input of a step is below it and its output above."""
    found = composer.load(STEPS).draw().scene
    steps = columns(found, *((f"x{n}", f"h{n}", f"y{n}", f"outputs/{name}") for n, name in enumerate("abcd", 1)))
    assert steps == sorted(steps)
    for row in ("x", "h", "y"):
        assert len({places(found)[f"{row}{n}"][1] for n in (1, 2, 3, 4)}) == 1
    assert all(is_level(found, f"h{n}", f"h{n + 1}") for n in (1, 2, 3))


def test_streams_go_on_through_sums_whatever_these_read_first() -> None:
    """The way to another shape is no stream, and the way that keeps it is."""
    found = composer.load(EXCHANGES).draw().scene
    streams = columns(found, ("a1", "a_sum", "a3"), ("b1", "b2", "b_sum", "b3"), ("c1", "c2", "c_sum", "c3"))
    assert streams == sorted(streams)


@pytest.mark.parametrize("text", [STEPS, EXCHANGES])
@pytest.mark.parametrize("direction", ["up", "right"])
def test_nothing_lies_on_anything(text: str, direction: str) -> None:
    """And every wire leads from what gives a value to what reads it."""
    found = composer.load(text).draw(direction=direction).scene
    assert [*overlaps(found), *borders(found), *ends(found), *starts(found)] == []


@pytest.mark.parametrize(
    ("name", "straight"),
    [
        ("two_tracks", ("embed", "pairs", "head", "pair_head")),
        ("co_attention", ("word_head", "region_head")),
        ("pyramid_layers", ("head1", "head2", "head3", "head4")),
    ],
)
def test_what_leads_to_a_passage_or_comes_from_it_is_straight_below_or_above(name: str, straight: tuple[str, ...]) -> None:
    """Where there is room for that beside other columns."""
    found = scene(name)
    frame = next(one for one in found.frames if one.pill).about.path
    wires = {wire.source if wire.target == frame else wire.target: wire for wire in found.wires if not wire.to_inside}
    assert [len(wires[path].points) for path in straight] == [2] * len(straight)


def laid(*reads: str) -> ParallelStreams | None:
    """Return where streams of blocks stand."""
    found = flow(*reads)
    links = links_of(found)
    return parallel_streams(streams(found, links), links, [*found.by_path], ["x", "y"])


def test_two_towers_that_only_meet_are_no_find_parallel_streams() -> None:
    """Nor with one value from one to the other; with two there are two columns, in the order of the recipe."""
    towers = ("a: x", "b: a", "c: b", "d: y", "e: d", "f: e")
    assert laid(*towers, "g: c, f") is None
    assert laid("a: x", "b: a", "c: b", "d: y", "e: d, a", "f: e", "g: c, f") is None
    found = laid("a: x", "d: y", "b: a", "c: b, d", "h: c", "e: d, b", "f: e", "g: f, h")
    assert found is not None
    assert [found.columns[path] for path in "abcdef"] == [0, 0, 0, 1, 1, 1]


def test_a_block_stands_between_the_columns_that_it_connects() -> None:
    """And beside the column that alone feeds it."""
    found = laid("a: x", "d: y", "b: a", "s: b", "e: d, s", "t: e", "c: b, t", "h: c", "f: e", "l: a")
    assert found is not None
    assert found.places["s"] == found.places["t"] == 0.5
    assert 0 < found.places["l"] < 0.5


def test_wires_of_neighbors_may_go_level() -> None:
    """Into what a column goes on with and out of what it goes on from, but not where it ends, nor between farther columns."""
    reads = ("a: x", "d: y", "b: a", "s: b", "e: d, s", "f: e", "k: f", "t: e", "c: b, t", "h: c", "g: h, k")
    found = laid(*reads)
    assert found is not None
    straight = {*found.going_on.items()}
    links = links_of(flow(*reads))
    level = {(link.source, link.target) for link in links if found.may_be_level(link, straight)}
    assert level == {("b", "s"), ("s", "e"), ("e", "t"), ("t", "c")}
    upright = replace(found, reach=0.0)
    assert not any(upright.may_be_level(link, straight) for link in links)


def test_a_level_wire_is_blocked_by_what_stands_between() -> None:
    """And by another one at the same side, but not by a wire that goes past."""
    links = links_of(flow("a: x", "c: y", "b: a, c"))
    rank = {"a": 0, "b": 0, "c": 0}
    assert {*blocked([[("a", 0), ("b", 0), ("c", 0)]], links, rank)} == set()
    assert {*blocked([[("a", 0), ("c", 0), ("b", 0)]], links, rank)} == {("a", "b"), ("c", "b")}
    assert {*blocked([[("a", 0), ("z", 0), ("b", 0), ("c", 0)]], links, rank)} == set()


def test_streams_go_on_rather_where_the_shape_stays() -> None:
    """Not with a longer way to another shape; and a way from a fork to another shape is told."""
    plain = flow("a: x", "b: a", "c: b", "d: c", "s: a", "t: s", "u: d, t")
    shapes = {"a": "8", "b": "4", "c": "4", "d": "8", "s": "8", "t": "8", "u": "8"}
    shaped = plain.map_edges(lambda edge: edge.reading(DiagramSource(edge.source.origin, shapes.get(edge.source.path, "3"))))
    links = links_of(shaped)
    kept = kept_shapes(shaped, links)
    assert ("a", "s") in kept.pairs
    assert ("a", "b") not in kept.pairs
    assert next(line for line in streams(shaped, links) if "a" in line)[:4] == ["a", "b", "c", "d"]
    assert next(line for line in streams(shaped, links, (), kept.pairs, kept.changed) if "a" in line)[:3] == ["a", "s", "t"]
    assert "b" in kept.changed
    assert "s" not in kept.changed


def test_branches_that_say_the_same_are_a_fork() -> None:
    """Where each is a column, and not where they differ."""
    fork = flow("a: x", "b: a", "c: a")
    assert forks_alike(fork, links_of(fork), {"b": 0, "c": 1})
    assert not forks_alike(fork, links_of(fork), {"b": 0})
    other = fork.map_items(lambda item: replace(item, look=replace(item.look, facts=(item.about.path,))))
    assert not forks_alike(other, links_of(other), {"b": 0, "c": 1})
