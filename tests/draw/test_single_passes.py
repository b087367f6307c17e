"""Repeats of few passes that others read one by one, or that all differ in their sizes: a closed box for each pass, with ordinary
wires; mirrored ones as a U.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from composer.draw.build.levels import Level
from composer.draw.export.views import all_views
from composer.draw.scene import Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.read_back import Model, lies, loose, read
from tests.draw.read_passes import misread
from tests.draw.test_drawings import assert_every_edge

SIDES = """recipe: sides
inputs: {x: "float[batch, 8]"}
graph:
  stages:
    repeat: 3
    as: stage
    graph:
      layers: {repeat: 2 + stage, graph: {map: {type: linear, out: 8 * 2 ** stage}, act: relu}}
  side0: {type: linear, out: 3, in: stages(0)}
  side1: {type: linear, out: 3, in: stages(1)}
  side2: {type: linear, out: 3, in: stages}
  all: {type: concat, axis: -1, in: [side0, side1, side2]}
outputs: {y: all}
"""
MIRRORED = """recipe: mirrored
inputs: {image: "float[batch, 8, 16, 16]", time: "float[batch, 4]"}
graph:
  wide: {type: linear, out: 8, in: time}
  silu: silu
  t: {type: linear, out: 8}
  stem: {type: conv2d, out: 8, kernel_size: 3, padding: 1, in: image}
  down:
    repeat: 3
    as: level
    graph:
      layers:
        repeat: 2
        graph:
          conv: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
          timed: {compute: conv + t, axes: {conv: b c h w, t: b c}}
  middle:
    graph:
      first: {type: conv2d, out: 8, kernel_size: 1, in: down}
      second: {type: conv2d, out: 8, kernel_size: 1}
  up:
    repeat: 3
    as: step
    graph:
      join: {type: concat, axis: -3, in: [input, "down(2 - step).layers(1)"]}
      conv: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
      other: {type: concat, axis: -3, in: [conv, "down(2 - step).layers(0)"]}
      back: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
  head: {type: conv2d, out: 3, kernel_size: 1}
outputs: {logits: head}
"""
LAST = """recipe: last
inputs: {x: "float[batch, 8]"}
graph:
  updates:
    repeat: 3
    graph:
      map: {type: linear, out: 8, in: input}
      sum: {type: add, in: [input, map]}
      more: {type: linear, out: 5}
    outputs: {state: sum, told: more}
  head: {type: linear, out: 3, in: updates.told}
outputs: {y: head}
"""
WIDTHS = """recipe: widths
inputs: {x: "float[batch, 8]"}
graph:
  layers:
    repeat: 3
    each: {width: [24, 48, 16]}
    graph:
      map: {type: linear, out: width}
      act: relu
      drop: {type: dropout, p: 0.2}
  head: {type: linear, out: 5}
outputs: {y: head}
"""
NAMED = """recipe: named
inputs: {x: "float[batch, 8]"}
blocks:
  dense:
    inputs: {x: "float[batch, dim]"}
    params: {out: {type: int, required: true}}
    graph: {map: {type: linear, out: out}, norm: layernorm}
graph:
  mlp2: {repeat: 2, each: {out: [24, 48]}, graph: {dense: {type: dense, out: out}}}
  up3: {repeat: 2, each: {out: [24, 16]}, graph: {map: {type: linear, out: out}, act: relu}}
outputs: {y: up3}
"""
PAPERS = Path(__file__).parent / "papers"


def drawn(text: str, **options: object) -> Scene:
    """Return a drawing in which nothing is wrong."""
    recipe = composer.load(text)
    figure = recipe.draw(**options)  # type: ignore[arg-type]
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(figure.scene)] == []
    picture = read(figure.svg())
    assert [*lies(picture, Model(recipe.program)), *loose(picture), *misread(picture, recipe.program)] == []
    assert_every_edge("", recipe.program, figure.scene)
    return figure.scene


def test_each_pass_is_a_box_with_a_wire_to_what_reads_it() -> None:
    """It is called by its number and tells what is in it; no name stands in place of a wire."""
    scene = drawn(SIDES)
    wires = {(wire.source, wire.target) for wire in scene.wires if wire.arrow}
    assert {(f"stages.{index}", f"side{index}") for index in range(3)} <= wires
    assert {("stages.0", "stages.1"), ("stages.1", "stages.2")} <= wires
    assert not scene.references and not scene.frames
    lines = {box.about.path: [text.text for text in box.texts] for box in scene.boxes}
    assert "Stage 1" in lines["stages.1"] and "× 3 Layer (Linear 8 → 16 → 16 → 16, ReLU)" in lines["stages.1"]


@pytest.mark.parametrize(("there", "planted"), [("Stage 1", "Stage 2"), ("× 3 Layer", "× 2 Layer"), ("→ 32", "→ 24")])
def test_what_is_not_so_of_one_pass_is_found(there: str, planted: str) -> None:
    """Also where it is so of another one."""
    recipe = composer.load(SIDES)
    svg = recipe.draw().svg()
    assert there in svg and [*lies(read(svg.replace(there, planted)), Model(recipe.program))]


@pytest.mark.parametrize(
    ("old", "new"),
    [("in: stages(1)", "in: stages"), ("in: stages(1)", "in: stages(0)"), ("repeat: 3", "repeat: 6")],
)
def test_other_repeats_stay_frames(old: str, new: str) -> None:
    """Where one pass of alike ones before the last is read, by one or by several, and where there are many passes."""
    alike = SIDES.replace("8 * 2 ** stage", "8").replace("2 + stage", "2")
    scene = composer.load(alike.replace(old, new)).draw().scene
    assert not any(box.about.path == "stages.0" for box in scene.boxes)


@pytest.mark.parametrize(
    "option",
    [{"open": ["stages"]}, {"labels": {"stages": "Trunk"}}, {"hide": ["stages.layers.act"]}, {"unroll": {"stages": "0:1"}}],
)
def test_what_an_option_names_is_drawn_together(option: dict[str, object]) -> None:
    """As a frame, or with the other passes as one box."""
    scene = composer.load(SIDES).draw(**option).scene  # type: ignore[arg-type]
    assert not any(box.about.path == "stages.2" for box in scene.boxes)


def test_mirrored_repeats_are_a_u() -> None:
    """Levels face each other, one wire goes straight over for both layers of each, and the middle is at the bottom; what all
    read of another column has a name.
    """
    scene = drawn(MIRRORED)
    boxes = {box.about.path: box.area for box in scene.boxes}
    for index in range(3):
        (wire,) = (one for one in scene.wires if (one.source, one.target) == (f"down.{index}", f"up.{2 - index}"))
        (_, start), *_, (_, end) = wire.points
        assert abs(start - end) < 0.5 and len(wire.points) == 2
        assert boxes[f"down.{index}"].right < boxes[f"up.{2 - index}"].left
    assert boxes["middle.first"].top > boxes["up.0"].bottom
    assert boxes["down.0"].top < boxes["down.1"].top < boxes["down.2"].top
    assert [text.text for text in scene.texts].count("both layers") == 3
    assert "t" in {one.text.text for one in scene.references}


@pytest.mark.parametrize("planted", ["layers(0:3)", "layers(1:3)", "all 3 layers", "layers 1 … 2"])
def test_a_wrong_name_of_several_values_is_found(planted: str) -> None:
    """There is no such layer."""
    recipe = composer.load(MIRRORED)
    assert [*misread(read(recipe.draw().svg().replace("both layers", planted)), recipe.program)]


def test_a_pass_tells_which_of_its_concatenations_takes_what() -> None:
    """In the order in which they run, which that of the wires does not tell."""
    recipe = composer.load(MIRRORED)
    figure = recipe.draw()
    said = [text.text for box in figure.scene.boxes if box.about.path.startswith("up.") for text in box.texts]
    assert sum(text.endswith("skips: layer 1, layer 0") for text in said) == 3
    for planted in ("layer 0, layer 1", "layer 1", "layer 1, layer 2"):
        assert [*misread(read(figure.svg().replace("layer 1, layer 0", planted)), recipe.program)]


def test_what_enters_a_group_from_around_it_comes_in_from_below() -> None:
    """Where its first node reads that, though the recipe hands the group nothing."""
    scene = drawn(MIRRORED)
    assert ("middle", "middle.first") in {(wire.source, wire.target) for wire in scene.wires}


def test_all_that_is_read_of_a_closed_repeat_goes_up_from_it() -> None:
    """Without words, since the last pass is what leaves a repeat."""
    scene = drawn(LAST, level="overview")
    (wire,) = (one for one in scene.wires if (one.source, one.target) == ("updates", "head"))
    assert len(wire.points) == 2 and wire.points[0][0] == wire.points[1][0]
    assert not any("last" in text.text for text in scene.texts)


# -- passes that differ in their sizes


def words(scene: Scene) -> dict[str, list[str]]:
    """Return what every box says, by its path."""
    return {box.about.path: [text.text for text in box.texts] for box in scene.boxes}


def test_passes_of_other_sizes_are_a_box_each() -> None:
    """With the sizes of its own, and above it the shape that it gives and its dropout; the other levels show them together."""
    scene = drawn(WIDTHS)
    assert not scene.frames
    said = words(scene)
    assert said["layers.1"] == ["Layer 1", "Linear 24 → 48 · ReLU", "1.20 K"]
    above = {text.text for text in scene.texts if "dropout" in text.text}
    assert above == {f"B × {width} · dropout 0.2" for width in (16, 24, 48)}
    assert words(drawn(WIDTHS, level="overview"))["layers"][:2] == ["× 3 Layer", "Linear 8 → 24 → 48 → 16 · ReLU"]
    assert [frame.about.path for frame in drawn(WIDTHS, level="full").frames] == ["layers"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[24, 48, 16]", "[24, 24, 24]"),
        ("[24, 48, 16]", "[8, 8, 16]"),
        ("repeat: 3\n    each: {width: [24, 48, 16]}", "repeat: 5\n    each: {width: [24, 48, 16, 32, 40]}"),
        ("act: relu", "act: {type: residual, body: relu}"),
        ("act: relu", "two: {type: linear, out: 9}\n      three: {type: linear, out: width}"),
        ("act: relu", "sum: {type: add, in: [map, map]}"),
        ("act: relu", "attn: {type: attention, heads: 2}"),
    ],
)
def test_other_passes_share_a_frame(old: str, new: str) -> None:
    """Those of which some are alike, of which there are many, or that are no short chain."""
    text = WIDTHS.replace("batch, 8]", "batch, time, 8]") if "attn" in new else WIDTHS
    assert old in text
    assert [frame.about.path for frame in composer.load(text.replace(old, new)).draw().scene.frames] == ["layers"]


@pytest.mark.parametrize(
    ("level", "there", "planted"),
    [
        ("block", "Layer 1", "Layer 2"),
        ("block", "24 → 48", "24 → 40"),
        ("block", "24 → 48", "24 → 16"),
        ("overview", "8 → 24 → 48 → 16", "8 → 48 → 24 → 16"),
        ("overview", "8 → 24 → 48 → 16", "8 → 24 → 48"),
    ],
)
def test_a_wrong_size_of_a_pass_is_found(level: Level, there: str, planted: str) -> None:
    """Also where it is that of another pass, or where two are in the other order."""
    recipe = composer.load(WIDTHS)
    svg = recipe.draw(level).svg()
    assert there in svg and [*lies(read(svg.replace(there, planted)), Model(recipe.program))]


def test_a_pass_of_one_block_is_called_as_that() -> None:
    """With the name of the repeat beside it; a word that ends with a number stands apart from that of the pass."""
    said = words(drawn(NAMED.replace("norm: layernorm", "again: {type: linear, out: out}")))
    assert {"mlp2", "Dense 1", "Linear 24 → 48 · Linear 48 → 48"} <= {*said["mlp2.1"]}
    assert said["up3.0"][0] == "Up 3, pass 0"


def test_passes_of_one_block_whose_widths_are_a_chain_are_one_box() -> None:
    """With the name of the repeat, all widths in their order and what stands between the maps."""
    text = NAMED.replace("[24, 48]", "[24, 40]")
    scene = drawn(text)
    said = words(scene)
    assert {"mlp2", "× 2 Dense", "Linear 8 → 24 → 40 · LN"} <= {*said["mlp2"]} and "mlp2.0" not in said
    assert "B × 40" in {one.text for one in scene.texts}
    svg, model = composer.load(text).draw().svg(), Model(composer.load(text).program)
    for there, planted in (("8 → 24 → 40", "8 → 40 → 24"), ("8 → 24 → 40", "8 → 24 → 32"), ("× 2 Dense", "× 3 Dense")):
        assert there in svg and [*lies(read(svg.replace(there, planted)), model)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("norm: layernorm", "again: {type: linear, out: out}"),  # two maps
        ("map: {type: linear, out: out}, norm", "map: {type: linear, out: out, bias: out < 30}, norm"),  # other than in widths
    ],
)
def test_passes_that_a_chain_does_not_tell_are_a_box_each(old: str, new: str) -> None:
    """Those whose one map differs in more than its widths, or that have several maps."""
    assert old in NAMED
    assert {"mlp2.0", "mlp2.1"} <= words(composer.load(NAMED.replace(old, new)).draw().scene).keys()


def test_pass_of_a_chain_that_is_read_by_itself_is_a_box() -> None:
    """A wire leads from it to what reads it."""
    text = NAMED.replace(
        "outputs: {y: up3}", "  low: {type: linear, out: 16, in: mlp2(0)}\n  sum: {type: add, in: [up3, low]}\noutputs: {y: sum}"
    )
    scene = drawn(text)
    assert ("mlp2.0", "low") in {(wire.source, wire.target) for wire in scene.wires}


def test_options_open_the_box_of_a_chain() -> None:
    """As a frame with the nodes of a pass, or with the other passes as one box."""
    recipe = composer.load(NAMED)
    assert "mlp2" in {frame.about.path for frame in recipe.draw(open=["mlp2"]).scene.frames}
    assert "mlp2.1.dense" in words(recipe.draw(unroll={"mlp2": "1"}).scene)
    views = {view.key: view for view in all_views(recipe.draw())}
    assert views["block"].opens["mlp2"] == "block+mlp2" and views["block+mlp2"].closes["mlp2"] == "block"


def test_rows_of_passes_that_all_differ_say_which_they_are() -> None:
    """By their places: a row of another pass is found."""
    recipe = composer.load(WIDTHS.replace("act: relu", "two: {type: linear, out: 2 * width}"))
    said = [line for line in words(recipe.draw("overview").scene)["layers"] if ": " in line]
    assert [line.partition(":")[0] for line in said] == ["first", "2nd", "last"]
    svg, model = recipe.draw("overview").svg(), Model(recipe.program)
    assert not [*lies(read(svg), model)]
    for place in ("first", "3rd"):
        assert [*lies(read(svg.replace("2nd: ", f"{place}: ")), model)]
    first, second = said[0].partition(": ")[2], said[1].partition(": ")[2]
    assert [*lies(read(svg.replace(first, "?").replace(second, first).replace("?", second)), model)]


def test_stages_whose_layers_are_closed_are_a_box_each() -> None:
    """And a frame around their layers where these are open; a detail of all is drawn if it is asked for."""
    recipe = composer.load(PAPERS / "centernet.yaml")
    assert {f"stages.{index}" for index in range(4)} <= words(recipe.draw().scene).keys()
    assert not recipe.draw().scene.details
    (detail,) = recipe.draw(details=["stages"]).scene.details
    assert detail.texts[0].text == "Stage" and detail.about.path == "stages"
    assert [
        frame.about.path
        for frame in composer.load(SIDES.replace("stages(0)", "stages").replace("stages(1)", "stages")).draw().scene.frames
    ] == [
        "stages",
        "stages.layers",
    ]


@pytest.mark.parametrize(
    "there, planted",
    [
        ("first: conv 3 × 3 (64 → 128), stride 2", "first: conv 3 × 3 (64 → 128), stride 4"),
        ("+ shortcut 1 × 1 (64 → 128), stride 2, BN", "+ skip"),
        ("last: conv 3 × 3 (128 → 128)", "last: 3 × conv 3 × 3 (128 → 128)"),
        ("last: conv 3 × 3 (128 → 128) · BN", "last: conv 3 × 3 (128 → 128) · LN"),
    ],
)
def test_a_stage_tells_its_layers_in_rows(there: str, planted: str) -> None:
    """Where a line has no room for the kinds of them; a wrong one is found."""
    recipe = composer.load(PAPERS / "centernet.yaml")
    assert words(recipe.draw().scene)["stages.1"][-5:] == [
        "first: conv 3 × 3 (64 → 128), stride 2 · BN · ReLU",
        "conv 3 × 3 (128 → 128) · BN",
        "+ shortcut 1 × 1 (64 → 128), stride 2, BN · ReLU",
        "last: conv 3 × 3 (128 → 128) · BN · ReLU",
        "conv 3 × 3 (128 → 128) · BN + skip · ReLU",
    ]
    svg, model = recipe.draw().svg(), Model(recipe.program)
    assert there in svg and not [*lies(read(svg), model)]
    assert [*lies(read(svg.replace(there, planted)), model)]


def test_a_page_opens_all_passes_where_one_is_clicked() -> None:
    """And closes them again."""
    views = {view.key: view for view in all_views(composer.load(WIDTHS).draw())}
    assert {views["block"].opens[f"layers.{index}"] for index in range(3)} == {"block+layers"}
    assert views["block+layers"].closes["layers"] == "block"


EARLY = """recipe: early
inputs: {x: "float[batch, 8]"}
graph:
  stages:
    repeat: 3
    as: stage
    graph:
      layers: {repeat: 2, graph: {map: {type: linear, out: 8 * 2 ** WIDER}, act: relu}}
  wide: {type: linear, out: 8}
  low: {type: linear, out: 3, in: stages(0)}
  all: {type: concat, axis: -1, in: [wide, low]}
outputs: {y: all}
"""


@pytest.mark.parametrize(("wider", "apart"), [("stage", True), ("0", False)])
def test_single_early_pass_that_is_read_has_a_wire_where_all_differ_in_their_sizes(wider: str, apart: bool) -> None:
    """Of alike ones, a frame says what they have in common."""
    scene = composer.load(EARLY.replace("WIDER", wider)).draw().scene
    assert any(wire.source == "stages.0" and wire.target == "low" for wire in scene.wires) == apart


def test_passes_of_which_some_have_rows_all_have_rows() -> None:
    """Stages of a trunk, of which the first one alone keeps its width and its size."""
    scene = drawn((Path(__file__).parent / "papers/centernet.yaml").read_text())
    lines = {box.about.path: [text.text for text in box.texts if text.role != "params"] for box in scene.boxes}
    both = ["both: conv 3 × 3 (64 → 64) · BN · ReLU", "conv 3 × 3 (64 → 64) · BN + skip · ReLU"]
    assert lines["stages.0"] == ["Stage 0", "× 2 Layer", *both]
    assert lines["stages.1"][1] == "× 2 Layer" and lines["stages.1"][5].startswith("last: conv 3 × 3 (128 → 128)")


def test_stages_of_which_the_last_one_ends_early_are_boxes_above_each_other() -> None:
    """In a frame for each kind of them, the last one would seem to stand beside the others; as in DenseNet."""
    recipe = composer.load("""recipe: dense
inputs: {image: "float[batch, 8, 16, 16]"}
blocks:
  grown:
    inputs: {x: "float[batch, channels, height, width]"}
    graph: {norm: batchnorm2d, relu: relu, conv: {type: conv2d, out: 4, kernel_size: 3, padding: 1}}
graph:
  stages:
    repeat: 3
    as: stage
    graph:
      dense: {repeat: 2 + stage, graph: {new: grown, all: {type: concat, axis: -3, in: [input, new]}}}
      half: {type: conv2d, out: 12 + 4 * stage, kernel_size: 1, when: stage < 2}
outputs: {y: stages}
""")
    picture = read(recipe.draw().svg())
    assert not [*lies(picture, Model(recipe.program))]
    boxes = {box.path: box for box in picture.boxes}
    assert {"stages.0", "stages.1", "stages.2"} <= {*boxes} and not picture.frames
    assert "× 2 Dense (Grown" in boxes["stages.0"].lines[1] and "‖ skip" in boxes["stages.0"].lines[1]
