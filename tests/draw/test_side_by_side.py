"""Parallel things beside each other: branches with frames, ways of their own to one sum, both sides of a U, and heads."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from composer.draw.layout.beside import layered
from composer.draw.scene import Box, Frame, Scene
from tests.draw.checks import borders, ends, idle_dots, inside, overlaps, starts
from tests.draw.read_back import Model, lies
from tests.draw.read_back import read as read_back
from tests.draw.test_drawings import assert_every_edge

PAGE, PAGE_HEIGHT = 1200, 1500
"""Pixels."""


def boxes(scene: Scene) -> dict[str, Box]:
    return {box.about.path: box for box in scene.boxes}


def middle(thing: Box | Frame) -> float:
    return round(thing.x + thing.width / 2, 1)


def framed(count: int) -> Scene:
    """Return the figure of so many branches of three blocks, each in a frame."""
    inner = "{conv: {type: conv2d, out: 16, kernel_size: 3, padding: same}, norm: batchnorm2d, act: relu}"
    branches = "".join(f"  b{n}: {{in: stem, graph: {inner}}}\n" for n in range(count))
    names = ", ".join(f"b{n}" for n in range(count))
    text = (
        "recipe: branches\ninputs: {image: 'float[batch, 3, 32, 32]'}\ngraph:\n"
        "  stem: {type: conv2d, out: 32, kernel_size: 3, padding: same}\n"
        f"{branches}  join: {{type: concat, axis: -3, in: [{names}]}}\noutputs: {{y: join}}\n"
    )
    return composer.load(text).draw().scene


@pytest.mark.parametrize("count", [2, 4, 5, 8])
def test_branches_with_frames_stand_in_one_row_on_a_page(count: int) -> None:
    """Up to eight of them, level and in their order; nothing that they say is cut."""
    scene = framed(count)
    assert len({round(frame.y) for frame in scene.frames}) == 1
    assert [frame.about.path for frame in sorted(scene.frames, key=middle)] == [f"b{n}" for n in range(count)]
    assert scene.width <= PAGE
    assert not [text.text for box in scene.boxes for text in box.texts if text.text.endswith("…")]
    said = " ".join(text.text for text in boxes(scene)["b0.conv"].texts)
    assert all(word in said for word in ("Convolution", "32 → 16", "kernel 3 × 3", "4.62 K"))


def test_more_branches_than_a_page_has_room_for_stay_a_column() -> None:
    """Their letters would be too small."""
    assert len({middle(frame) for frame in framed(12).frames}) == 1


MEMORIES = """recipe: memory
inputs: {story: "int[batch, sentences, length]", question: "int[batch, query]"}
graph:
  ask: {type: embedding, vocab: 50, dim: 8, in: question}
  u: {type: sum, axis: query}
  hops:
    repeat: 3
    in: {u: u}
    graph:
      a: {type: embedding, vocab: 50, dim: 8, in: story}
      m: {type: sum, axis: length}
      c: {type: embedding, vocab: 50, dim: 8, in: story}
      values: {type: sum, axis: length}
      match: {type: einsum, pattern: "b d, b s d -> b s", in: [u, m]}
      p: softmax
      o: {type: einsum, pattern: "b s, b s d -> b d", in: [p, values]}
      next: {type: add, in: [u, o]}
    outputs: {u: next}
outputs: {y: hops}
"""


def test_two_memories_stand_beside_the_stream_that_reads_them() -> None:
    """Each in a line of its own, which begins with the name of what it reads, just below its reader."""
    scene = composer.load(MEMORIES).draw().scene
    at = {path: middle(box) for path, box in boxes(scene).items()}
    stream = at["hops.match"]
    assert stream == at["hops.p"] == at["hops.o"] == at["u"]
    assert at["hops.a"] == at["hops.m"] != stream
    assert at["hops.c"] == at["hops.values"] != stream
    assert boxes(scene)["hops.c"].y < boxes(scene)["hops.m"].y
    for path in ("hops.a", "hops.c"):
        (said,) = (one.text for one in scene.references if one.target == path)
        assert said.text == "story (input)"
        assert said.area.top > boxes(scene)[path].area.bottom
        assert (said.area.left + said.area.right) / 2 == pytest.approx(at[path], abs=0.1)


def test_second_outputs_have_their_names_where_they_leave() -> None:
    """Those of a split, each beside its wire above the box."""
    text = """recipe: parts
inputs: {x: "float[batch, time, 8]"}
graph:
  maps: {type: linear, out: 24}
  parts: {type: split, into: [a, b, c], sizes: [8, 8, 8]}
  q: {type: linear, out: 8, in: parts.a}
  k: {type: linear, out: 8, in: parts.b}
  v: {type: linear, out: 8, in: parts.c}
  qk: {type: multiply, in: [q, k]}
  kv: {type: multiply, in: [k, v]}
  vq: {type: multiply, in: [v, parts.b]}
  all: {type: concat, in: [qk, kv, vq]}
outputs: {y: all}
"""
    scene = composer.load(text).draw().scene
    top = boxes(scene)["parts"].y
    for name, readers in (("b", {"k", "vq"}), ("c", {"v"})):
        ((x, y),) = {wire.points[0] for wire in scene.wires if wire.source == "parts" and wire.target in readers}
        (said,) = (one for one in scene.texts if one.text == name)
        assert y == pytest.approx(top)
        assert top - 20 < said.area.bottom < top
        assert x < said.area.left < x + 10
    assert len({round(boxes(scene)[path].y) for path in ("q", "k", "v")}) == 1


def u_net(between: int) -> Scene:
    """Return the figure of a U with so many blocks at the turn."""
    kinds = ("{type: linear, out: 8}", "gelu", "layernorm", "silu", "tanh")  # equal ones would be layers of a repeat
    turn = "".join(f"  turn{n}: {kinds[n]}\n" for n in range(between))
    text = (
        "recipe: u\ninputs: {x: 'float[batch, time, 8]'}\ngraph:\n"
        "  down1: {type: linear, out: 8}\n  pool1: tanh\n  down2: {type: linear, out: 8}\n"
        f"{turn}  join2: {{type: add, in: [turn{between - 1}, down2]}}\n  up2: {{type: linear, out: 8}}\n"
        "  join1: {type: add, in: [up2, down1]}\n  up1: {type: linear, out: 8}\noutputs: {y: up1}\n"
    )
    return composer.load(text).draw().scene


@pytest.mark.parametrize("between", [1, 2, 3, 5])
def test_u_turns_at_the_bottom_of_both_sides(between: int) -> None:
    """Half of what is there stands on the way down, both end level, and the wire goes over below them."""
    scene = u_net(between)
    at = boxes(scene)
    left = [n for n in range(between) if middle(at[f"turn{n}"]) == middle(at["down1"])]
    assert left == list(range(between // 2))
    last, first = at[f"turn{left[-1]}" if left else "down2"], at[f"turn{len(left)}"]
    (wire,) = (one for one in scene.wires if (one.source, one.target) == (last.about.path, first.about.path))
    low = max(y for _, y in wire.points)
    assert low > max(last.area.bottom, first.area.bottom)
    assert low < scene.height
    assert not left or last.area.bottom == pytest.approx(first.area.bottom)
    skips = [one for one in scene.wires if one.target in ("join1", "join2") and one.source.startswith("down")]
    assert len(skips) == 2
    assert all(one.points[-1][1] == pytest.approx(one.points[-2][1]) for one in skips)


def test_losses_of_heads_are_level_and_the_trunk_is_below_the_middle_one() -> None:
    """Whatever is in a head, also a frame."""
    text = """recipe: heads
inputs: {x: "float[batch, time, 8]", words: "int[batch, time]?", tag: "int[batch, time]?", topic: "int[batch]?"}
graph:
  trunk: {type: linear, out: 8, in: x}
  a: {in: trunk, graph: {map: {type: linear, out: 8}, act: gelu, norm: layernorm, out: {type: linear, out: 30}}}
  b: {type: linear, out: 5, in: trunk}
  pool: {type: pool, mode: first, in: trunk}
  squash: tanh
  c: {type: linear, out: 4}
outputs: {a: a, b: b, c: c}
losses:
  words: {type: cross_entropy, in: a, target: words}
  tag: {type: cross_entropy, in: b, target: tag}
  topic: {type: cross_entropy, in: c, target: topic}
"""
    scene = composer.load(text).draw().scene
    losses = [box for box in scene.boxes if box.hue == "loss"]
    assert len(losses) == 3
    assert len({round(box.area.bottom, 1) for box in losses}) == 1
    assert middle(boxes(scene)["trunk"]) == middle(boxes(scene)["b"])


def pyramid() -> Scene:
    """Return the figure of a feature pyramid on three stages, each of which has a residual block."""
    body = "{conv: {type: conv2d, out: 8, kernel_size: 3, padding: same}}"
    stages = "".join(
        f"  c{n}: {{type: conv2d, out: 8, kernel_size: 2, stride: 2, in: {source}}}\n"
        f"  r{n}: {{type: residual, body: {{graph: {body}}}}}\n  lat{n}: {{type: conv2d, out: 4, kernel_size: 1, in: r{n}}}\n"
        for n, source in ((1, "image"), (2, "r1"), (3, "r2"))
    )
    levels = ((1, "sum1"), (2, "sum2"), (3, "lat3"))
    maps = "".join(f"  p{n}: {{type: conv2d, out: 4, kernel_size: 3, padding: same, in: {level}}}\n" for n, level in levels)
    text = (
        "recipe: pyramid\ninputs: {image: 'float[batch, 3, 32, 32]'}\ngraph:\n"
        f"{stages}  up3: {{type: interpolate2d, scale: 2, in: lat3}}\n  sum2: {{type: add, in: [lat2, up3]}}\n"
        "  up2: {type: interpolate2d, scale: 2}\n  sum1: {type: add, in: [lat1, up2]}\n"
        f"{maps}outputs: {{p1: p1, p2: p2, p3: p3}}\n"
    )
    return composer.load(text).draw().scene


SPANS = """recipe: spans
inputs: {{x: "float[batch, time, 12]"}}
graph:
  seen: {{type: linear, out: 20, in: x}}
  relu: relu
  model: {{type: linear, out: 20}}
  for_start: {{type: {join}, in: [seen, model]}}
  start: {{type: linear, out: 3}}
  after: {{type: linear, out: 20, in: model}}
  for_end: {{type: {join}, in: [seen, after]}}
  end: {{type: linear, out: 3}}
outputs: {{start: start, end: end}}
"""


@pytest.mark.parametrize("join", ["concat", "add", "multiply"])
def test_heads_that_read_what_is_below_their_fork_stand_side_by_side(join: str) -> None:
    """As those of BiDAF for the start and the end of an answer: a wire leads to each at its outer side; outputs are on top."""
    recipe = composer.load(SPANS.format(join=join))
    scene = recipe.draw().scene
    ends_of = boxes(scene)
    assert ends_of["outputs/start"].y == ends_of["outputs/end"].y == min(box.y for box in scene.boxes)
    (left,), (right,) = ([w for w in scene.wires if (w.source, w.target) == ("seen", one)] for one in ("for_start", "for_end"))
    assert left.points[-2][0] < left.points[-1][0] < right.points[-1][0] < right.points[-2][0]
    assert [*overlaps(scene), *borders(scene), *starts(scene), *ends(scene)] == []
    assert_every_edge("spans", recipe.program, scene)


def test_levels_of_a_pyramid_are_rows_from_the_trunk_to_the_outputs() -> None:
    """With wires straight across, though stages have sums of their own, and the last stage at the top."""
    scene = pyramid()
    drawn = boxes(scene)
    heights = {merge.about.path: merge.y for merge in scene.merges}
    assert heights["sum2"] < drawn["up2"].y < heights["sum1"]
    for number in (1, 2, 3):
        row = [drawn[f"lat{number}"], drawn[f"p{number}"], drawn[f"outputs/p{number}"]]
        levels = [box.y + box.height / 2 for box in row]
        assert max(levels) - min(levels) < 0.2
        assert abs(heights.get(f"sum{number}", levels[0]) - levels[0]) < 0.2
    across = [wire for wire in scene.wires if wire.source in ("lat1", "lat2", "sum1", "sum2") and wire.target[0] in "sp"]
    assert len(across) == 4
    assert all(len({round(y, 1) for _, y in wire.points}) == 1 for wire in across)
    assert max(drawn[f"c{n}"].area.right for n in (1, 2, 3)) < drawn["lat1"].x < drawn["up2"].x < drawn["p1"].x
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []


CONFORMER = """recipe: conformer
inputs: {x: "float[batch, frames, 80]"}
graph:
  sub1: {type: conv1d, out: 16, kernel_size: 3, stride: 2}
  act1: relu
  sub2: {type: conv1d, out: 16, kernel_size: 3, stride: 2}
  act2: relu
  first: {type: linear, out: 16}
  layers:
    repeat: 2
    graph:
      ffn1: {type: residual, norm: layernorm, scale: 0.5, body: {type: ffn, hidden: 64, activation: silu}}
      attn: {type: residual, norm: layernorm, body: {type: attention, heads: 4, positions: rotary}}
      conv:
        type: residual
        norm: layernorm
        body:
          graph:
            up: {type: linear, out: 32}
            parts: {type: split, into: [a, b]}
            gate: {type: sigmoid, in: parts.b}
            glu: {type: multiply, in: [parts.a, gate]}
            depthwise: {type: conv1d, out: 16, kernel_size: 31, groups: 16}
            norm: batchnorm
            act: silu
            down: {type: linear, out: 16}
      ffn2: {type: residual, norm: layernorm, scale: 0.5, body: {type: ffn, hidden: 64, activation: silu}}
      norm: layernorm
  last: {type: linear, out: 9}
outputs: {y: last}
"""


def test_layer_that_is_higher_than_a_page_goes_on_in_columns_inside_its_frame() -> None:
    """The stream enters below the first column, and leaves where it entered."""
    scene = composer.load(CONFORMER).draw().scene
    layer = next(frame for frame in scene.frames if frame.about.path == "layers")
    drawn = boxes(scene)
    columns = sorted({middle(box) for path, box in drawn.items() if path in ("layers.ffn1.body", "layers.ffn2.body")})
    assert len(columns) == 2
    assert scene.height <= PAGE_HEIGHT
    assert middle(drawn["first"]) == middle(drawn["last"]) == columns[0]
    assert all(inside(box.area, layer.area) for path, box in drawn.items() if path.startswith("layers."))
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []


def test_readers_of_a_value_branch_off_one_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a dot at each, and left of all boxes, however many there are; in columns, as without Graphviz."""
    monkeypatch.setattr(layered, "pure", lambda: None)
    scene = composer.load(Path(__file__).with_name("finds") / "seven_readers_of_a_tower.yaml").draw().scene
    ways = [wire for wire in scene.wires if wire.source == "act"]
    assert len(ways) == 7 and len({wire.points[-2][0] for wire in ways}) == 1
    assert len(scene.dots) == 6 and {dot.x for dot in scene.dots} == {ways[0].points[-2][0]}
    assert [*overlaps(scene), *starts(scene), *ends(scene)] == []


def test_a_column_that_reads_no_other_stands_before_its_readers() -> None:
    """Wires lead from it to the nearest one, and the one behind that reads it by its name: the places of an encoder, which its
    decoder reads too.
    """
    scene = composer.load(Path(__file__).with_name("papers") / "detr.yaml").draw().scene
    assert {wire.target for wire in scene.wires if wire.source == "place" and wire.style != "far"} == {"encoder.attn.body"}
    assert {(one.text.text, one.target) for one in scene.references if one.source == "place"} == {
        ("place output", "decoder.cross.body")
    }
    assert any(wire.source == "encoder" and wire.target == "decoder.cross.body" for wire in scene.wires)  # it is a stream
    assert [*overlaps(scene), *starts(scene), *ends(scene)] == []


def test_uses_of_a_block_that_each_read_another_column_stand_side_by_side() -> None:
    """As lookups of one flow in the levels of a pyramid: not above each other, as if each read the one below it."""
    scene = composer.load(Path(__file__).with_name("papers") / "raft.yaml").draw().scene
    boxes = [next(box for box in scene.boxes if box.about.path == f"updates.look{number}") for number in range(4)]
    assert len({box.area.bottom for box in boxes}) == 1
    assert [box.x for box in boxes] == sorted(box.x for box in boxes)
    for number, box in enumerate(boxes):
        into = [wire for wire in scene.wires if wire.target == box.about.path]
        assert {wire.source for wire in into} == {"updates.now", f"level{number}"}
        assert len({wire.points[-1] for wire in into}) == 2 and {wire.points[-1][1] for wire in into} == {box.area.bottom}
    assert [*overlaps(scene), *starts(scene), *ends(scene), *idle_dots(scene)] == []


def test_many_outputs_of_a_repeat_have_wires() -> None:
    """None goes by its name, though they are read in another order than they are made."""
    scene = composer.load(Path(__file__).with_name("finds") / "seven_outputs_of_a_repeat.yaml").draw().scene
    assert scene.references == () and [*overlaps(scene), *starts(scene), *ends(scene)] == []


TOWERS = """recipe: towers
inputs: {{first: "float[batch, 8]", second: "float[batch, 8]"}}
graph:
  left: {{type: linear, out: 8, in: first}}
  right: {{type: linear, out: 8, in: second}}
  meet: {{type: multiply, in: [left, right]}}
  after: {{type: linear, out: 8}}
  sum: {{type: add, in: [after, {read}]}}
  more: {{type: linear, out: 8}}
outputs: {{y: more}}
"""


@pytest.mark.parametrize(("read", "side"), [("first", -1), ("second", 1)])
def test_towers_stand_beside_each_other_where_an_input_goes_on(read: str, side: int) -> None:
    """By a wire at the side of its tower."""
    recipe = composer.load(TOWERS.format(read=read))
    figure = recipe.draw()
    placed = boxes(figure.scene)
    assert placed["left"].area.right < placed["right"].area.left
    assert placed["first"].y == placed["second"].y
    (wire,) = (one for one in figure.scene.wires if one.source == read and one.target == "sum")
    assert all(side * (x - middle(placed["after"])) > 0 for x, _ in wire.points)
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(figure.scene)] == []
    assert [*lies(read_back(figure.svg()), Model(recipe.program))] == []


def test_towers_stand_beside_each_other_where_an_update_is_open() -> None:
    """Beside a column of another, with what reads one of their inputs above what they meet in."""
    placed = boxes(composer.load(Path(__file__).parent / "papers" / "raft.yaml").draw().scene)
    first, second, meet = (placed[path] for path in ("encode_first", "encode_second", "correlation"))
    assert first.area.right < second.area.left and meet.area.bottom < min(first.y, second.y)
    assert placed["context"].area.bottom < meet.y and "updates.gru" in placed


def test_a_bypass_leads_straight_up_between_two_branches() -> None:
    """From where they part to a circle that sums all three, in the frame of a layer."""
    scene = composer.load("gpt_neox").draw().scene
    (bypass,) = (w for w in scene.wires if w.target == "layers.sum" and w.source == "layers")
    (merge,) = (one for one in scene.merges if one.about.path == "layers.sum")
    assert len(bypass.points) == 2 and bypass.points[-1] == (merge.x, merge.area.bottom)
    assert not [
        box
        for box in scene.boxes
        if box.area.grown(4).left < merge.x < box.area.grown(4).right and box.about.path[:7] == "layers."
    ]


TIED = """recipe: towers
inputs: {{anchor: "float[batch, 16]", other: "float[batch, 16]", third: "float[batch, 16]"}}
blocks:
  tower:
    inputs: {{x: "float[batch, dim]"}}
    graph:
      fc1: {{type: linear, out: 32}}
      layers: {{repeat: 2, graph: {{fc: {{type: linear, out: 32}}, relu: relu}}}}
      fc2: {{type: linear, out: 8}}
graph:
  of_anchor: {{type: tower, in: anchor}}
  of_other: {{type: tower, in: other, tie: of_anchor}}
  of_third: {{type: tower, in: third, tie: of_anchor}}
{rest}
"""


@pytest.mark.parametrize(
    "rest",
    [
        "  near: {compute: of_anchor - of_other}\n  far: {compute: of_anchor - of_third}\n  y: {compute: near * far}",
        "  a: {type: relu, in: of_anchor}\n  y: {type: concat, in: [a, of_other]}\n  z: {type: concat, in: [y, of_third]}",
    ],
)
def test_towers_that_share_weights_stand_above_their_inputs(rest: str) -> None:
    """The first one open or not, with the inputs of all in one row."""
    for opened in ((), ("of_anchor",)):
        scene = composer.load(TIED.format(rest=rest)).draw(open=opened, details=("none",)).scene
        at = boxes(scene)
        inputs = [at[path] for path in ("anchor", "other", "third")]
        assert len({box.area.bottom for box in inputs}) == 1
        assert [one.text.text for one in scene.references if one.source in ("anchor", "other", "third")] == []
        for path, given in (("of_other", "other"), ("of_third", "third")):
            tower = at[path].area if path in at else next(one.area for one in scene.frames if one.about.path == path)
            assert tower.left <= middle(at[given]) <= tower.right


STATES = """recipe: states
inputs: {source: "float[batch, words, 8]", target: "float[batch, time, 8]"}
graph:
  encoder: {type: lstm, hidden: 16, in: source}
  state: {type: rearrange, pattern: b states h -> b (states h), in: encoder.h}
  start: {type: linear, out: 16}
  keys: {type: linear, out: 16, in: encoder}
  decoder:
    scan: time
    in: {x: target, h: start}
    graph:
      cell: {type: gru_cell, hidden: 16, in: {x: x, h: h}}
      scores: {type: einsum, pattern: "b d, b s d -> b s", in: [cell, keys]}
      weights: softmax
      context: {type: einsum, pattern: "b s, b s d -> b d", in: [weights, encoder]}
    outputs: {y: context, h: cell}
outputs: {y: decoder}
"""


def test_a_wire_to_another_column_starts_at_its_block() -> None:
    """Also where the block above reads another output, and nothing goes straight up: the lane turns off it, at a dot."""
    scene = composer.load(STATES).draw().scene
    (far,) = (wire for wire in scene.wires if (wire.source, wire.target) == ("encoder", "decoder.context"))
    (encoder,) = (one.area for one in scene.boxes if one.about.path == "encoder")
    assert far.points[0][1] == encoder.top > far.points[1][1]
    (near,) = (wire for wire in scene.wires if (wire.source, wire.target) == ("encoder", "keys"))
    assert near.points[0] in [(dot.x, dot.y) for dot in scene.dots]
    assert [*overlaps(scene), *starts(scene), *ends(scene), *idle_dots(scene)] == []
