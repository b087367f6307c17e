"""Where several columns meet, and what is read beside the stream: wide boxes, straight wires, and names only where a wire cannot
lead."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import composer
from composer.draw.scene import Box, Scene, WirePath
from tests.draw.cases import scenes
from tests.draw.checks import ends, idle_dots, starts

FORMS = Path(__file__).parent / "forms"


@cache
def form(name: str) -> Scene:
    """Return the drawing of an architecture of a well-known form."""
    return composer.load(FORMS / f"{name}.yaml").draw().scene


def box(scene: Scene, path: str) -> Box:
    """Return the one box of a block."""
    (found,) = (one for one in scene.boxes if one.about.path == path)
    return found


def wires(scene: Scene, source: str, target: str) -> list[WirePath]:
    """Return the wires from one block to another."""
    return [one for one in scene.wires if (one.source, one.target) == (source, target)]


def names(scene: Scene) -> list[str]:
    """Return what is called by its name instead of a wire."""
    return [one.text.text for one in scene.references]


def middle(one: Box) -> tuple[float, float]:
    """Return the middle of a box."""
    return round(one.x + one.width / 2, 1), round(one.y + one.height / 2, 1)


@pytest.mark.parametrize(("name", "join"), [("three_towers", "join"), ("inception", "join"), ("three_tasks", "join")])
def test_concatenation_is_as_wide_as_what_meets_in_it(name: str, join: str) -> None:
    """Each wire goes straight up into it from its column, and all columns end within its width."""
    scene = form(name)
    wide = box(scene, join)
    into = [one for one in scene.wires if one.target == join]
    assert len(into) > 2
    for one in into:
        (x, start), (end, y) = one.points[-2:]
        assert len(one.points) == 2
        assert x == end
        assert start > y
        assert wide.x < x < wide.x + wide.width


def test_small_column_of_a_concatenation_stands_beside_the_others() -> None:
    """It is no less than they are, though it is one block that reads an input of the model."""
    scene = form("three_tasks")
    assert middle(box(scene, "c1"))[1] == middle(box(scene, "u1"))[1] == middle(box(scene, "i1"))[1]
    assert box(scene, "context").y == box(scene, "user").y


def test_embeddings_of_inputs_in_a_frame_stand_in_a_row() -> None:
    """Below each the name of what it reads; inputs that only join them come into the side of the join by their names."""
    scene = form("wide_and_deep")
    row = [box(scene, f"deep.{name}_embed") for name in ("gender", "country", "language")]
    assert len({one.y for one in row}) == 1
    for one in row:
        (read,) = (reference for reference in scene.references if reference.target == one.about.path)
        assert read.text.y > one.y + one.height
        assert abs(read.text.x - middle(one)[0]) < 1
    join = box(scene, "deep.features")
    beside = sorted((one.text for one in scene.references if one.target == "deep.features"), key=lambda text: text.y)
    assert [text.text for text in beside] == ["age (input)", "installs (input)"]
    assert all(text.area.right < join.x for text in beside)


def test_input_with_a_box_is_led_to_what_reads_it() -> None:
    """And not called by its name beside a box that nothing reads."""
    scene = form("wide_and_deep")
    assert len(wires(scene, "app", "wide")) == len(wires(scene, "age", "deep.features") or wires(scene, "age", "deep")) == 1


def test_losses_are_led_what_is_near_below_them() -> None:
    """Both stand above the later of the two values, and the wire from the other one turns off to each."""
    scene = form("vqvae")
    assert names(scene) == ["x"]
    for loss in ("losses.codebook", "losses.commit"):
        (near,) = wires(scene, "code", loss)
        (far,) = wires(scene, "z", loss)
        assert near.style == far.style == "loss"
        assert box(scene, loss).y < box(scene, "code").y


def test_wire_to_a_loss_leaves_the_lane_of_its_value_at_a_fork() -> None:
    """Its dashes would lie on the other wire of the lane."""
    scene = form("vqvae")
    forks = {(dot.x, dot.y) for dot in scene.dots}
    for loss in ("losses.codebook", "losses.commit"):
        assert wires(scene, "z", loss)[0].points[0] in forks


def test_layers_that_alone_read_another_column_come_first() -> None:
    """A wire leads into their frame from the side where that column is, and nothing is called by its name."""
    scene = form("flamingo")
    (memory,) = wires(scene, "vision", "layers.cross.body")
    kinds = [one for one in scene.frames if " of 8" in "".join(text.text for text in one.texts)]
    first, second = sorted(kinds, key=lambda one: one.x)
    assert first.texts[0].text == "2 of 8"
    assert all(y == memory.points[-1][1] for (x, y) in memory.points if first.x < x < second.x)
    assert names(scene) == []


def test_random_numbers_stand_level_with_the_sum_of_two_branches() -> None:
    """Not below the branches, from where a wire would go around these."""
    scene = form("vae")
    assert abs(middle(box(scene, "noise"))[1] - middle(box(scene, "z"))[1]) < 1
    assert box(scene, "noise").x + box(scene, "noise").width < box(scene, "z").x


KL = """recipe: kl
inputs: {x: "float[batch, 32]"}
graph:
  mean: {type: linear, out: 4, in: x}
  deviation: {type: linear, out: 4, in: x}
  z: {compute: mean + deviation, in: {mean: mean, deviation: deviation}}
  out: {type: linear, out: 32}
outputs: {x_hat: out}
losses: {kl: {type: mse, in: mean, target: deviation}}
"""


def test_branch_with_a_loss_is_still_a_branch() -> None:
    """The loss stands beside that branch, and calls a value of the other one by its name."""
    scene = composer.load(KL).draw().scene
    assert box(scene, "mean").y == box(scene, "deviation").y
    assert len(names(scene)) == 1


SIDES = """recipe: sides
inputs: {x: "float[batch, 32]", truth: "float[batch, 8]"}
graph:
  trunk: {type: linear, out: 16, in: x}
  one: {type: linear, out: 8, in: trunk}
  two: {type: linear, out: 8, in: trunk}
  three: {type: linear, out: 8, in: two}
  all: {type: concat, in: [one, two, three]}
outputs: {all: all}
losses: {side: {type: mse, in: one, target: truth}}
"""


def test_wire_to_a_loss_begins_where_a_wire_of_its_value_goes() -> None:
    """Also where that goes on in a lane alone, and turns off below."""
    scene = composer.load(SIDES).draw().scene
    (wire,) = wires(scene, "one", "losses.side")
    others = [piece for one in scene.wires if one is not wire and one.source == "one" for piece in pairwise(one.points)]
    x, y = wire.points[0]
    home = box(scene, "one")
    on_wire = any(min(a, c) <= x <= max(a, c) and min(b, d) <= y <= max(b, d) for (a, b), (c, d) in others)
    assert on_wire or (home.x < x < home.x + home.width and abs(y - home.y) < 1)


MANY_NAMES = """recipe: many_names
inputs: {x: "float[batch, 8]", a: "float[batch]", b: "float[batch]", c: "float[batch]", d: "float[batch]", e: "float[batch]"}
graph:
  trunk: {type: linear, out: 8, in: x}
  side:
    in: {a: a, b: b, c: c, d: d, e: e}
    graph:
      all: {type: stack, in: [a, b, c, d, e]}
      out: {type: linear, out: 8}
  sum: {type: add, in: [trunk, side]}
outputs: {sum: sum}
"""


def test_small_box_is_as_high_as_the_names_that_it_reads() -> None:
    """Every arrow ends at it."""
    scene = composer.load(MANY_NAMES).draw(level="overview").scene
    side = box(scene, "side")
    heights = [one.points[-1][1] for one in scene.wires if one.target == "side"]
    assert len(heights) == 5
    assert all(side.y < y <= side.y + side.height for y in heights)


WIDENING = """recipe: widening
inputs: {signal: "float[batch, 8]"}
graph:
  stages: {repeat: 6, each: {width: [8, 16, 24, 32, 40, 48]}, graph: {fc: {type: linear, out: width}, act: relu}}
  side: {type: linear, out: 4, in: "stages(0)"}
  last: {type: linear, out: 4, in: stages}
  all: {type: concat, in: [side, last]}
outputs: {all: all}
"""


def test_name_of_a_pass_stands_once_at_a_block() -> None:
    """Also where passes give values of other shapes."""
    assert names(composer.load(WIDENING).draw().scene) == ["stages(0)"]


PLACED = """recipe: placed
inputs: {tokens: "int[batch, time]", valid: "int[batch, time]"}
graph:
  count: {type: cumsum, axis: time, in: valid}
  place: {type: embedding, vocab: 50, dim: 8, in: count}
  embed: {type: embedding, vocab: 50, dim: 8, in: tokens}
  sum: {type: add, in: [embed, place]}
  head: {type: linear, out: 50}
outputs: {logits: head}
"""


def test_first_input_of_a_model_begins_a_column() -> None:
    """Though the other input goes through more blocks: it is what the model is about."""
    scene = composer.load(PLACED).draw().scene
    assert len(wires(scene, "tokens", "embed")) == 1
    assert names(scene) == []


def test_a_loss_is_as_high_as_what_it_reads() -> None:
    """Of five values of passes, each wire or name ends at its box."""
    ((_, _, scene),) = scenes("paper hed", "block")
    assert [*starts(scene), *ends(scene)] == []


@pytest.mark.parametrize("name", ["hrnet", "neural_turing_machine", "tacotron2", "wavenet"])
def test_dots_stand_where_three_ways_meet(name: str) -> None:
    """Also where a value goes up and down from where it is made, or to two blocks at one side."""
    scene = composer.load(Path(__file__).parent / f"papers/{name}.yaml").draw().scene
    assert [dot for drawing in scene.drawings for dot in idle_dots(drawing)] == []


def test_alike_sums_in_a_row_are_all_boxes_or_all_circles() -> None:
    """Where two wires from one side would lead to one of them, the others are boxes too."""
    scene = composer.load(Path(__file__).parent / "papers/hrnet.yaml").draw().scene
    boxes = [box.about.path for box in scene.boxes if "sum" in box.about.path]
    three, four = ([f"{stage}.sum{number}" for number in range(1, many + 1)] for stage, many in (("stage3", 3), ("stage4", 4)))
    assert sorted(boxes) == [*three, *four]
    assert sorted(one.about.path for one in scene.merges) == ["stage2.sum1", "stage2.sum2"]
