"""What a box calls the values that it reads: names at the ends of wires, each at its own, where nothing else tells them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import composer
from blocks.core import Look
from composer.draw.about import About
from composer.draw.build.diagram_builder import build_diagram
from composer.draw.build.levels import Depth
from composer.draw.diagram import Leaf
from composer.draw.edges import DiagramEdge, DiagramSource, NodeOutput
from composer.draw.geometry import Text
from composer.draw.layout.ends.port_names import AT_FIRST, BELOW, BESIDE, HEAD, far_starts, names_at_ends, words
from composer.draw.layout.stations import WiredInput, circle
from composer.draw.paths import last_step
from composer.draw.scene import Scene, WirePath
from composer.draw.style.typography import Typography
from composer.graph.passes.roll_layers.roll_layers import folded
from tests.draw.checks import borders, overlaps
from tests.draw.read_back import read
from tests.draw.read_marks import confused

PAPERS = Path(__file__).parent / "papers"
STATES = """recipe: states
inputs: {{x: "float[batch, time, 8]"}}
blocks:
  cell:
    inputs: {{x: "float[batch, a]", slow: "float[batch, b]", fast: "float[batch, c]"}}
    graph:
      all: {{type: concat, in: [x, slow, fast]}}
      y: {{type: linear, out: 8}}
      z: {{type: tanh, in: y}}
    outputs: {{y: y, z: z}}
graph:
  start: {{type: zeros, shape: [8], in: x}}
  steps:
    scan: time
    in: {{x: x, slow: start, fast: start}}
    graph:
      step: {{type: cell, in: {{x: x, {inputs}}}}}
    outputs: {{y: step, slow: step, fast: step.z}}
outputs: {{y: steps}}
"""
FORMULA = """recipe: gauss
inputs: {{x: "float[batch, 8]"}}
graph:
  left: {{type: linear, out: 8, in: x}}
  right: {{type: linear, out: 8, in: x}}
  middle: {{type: linear, out: 8, in: x}}
  y: {{compute: {formula}, in: {{{names}}}}}
outputs: {{y: y{unread}}}
"""


def named(scene: Scene, path: str) -> Iterator[tuple[WirePath, Text]]:
    """Yield the wires into a box that have a name at their end, with it."""
    for wire in (one for one in scene.wires if one.target == path and one.arrow):
        (_, before), (x, y) = wire.points[-2:]
        level = abs(before - y) < 0.1
        for text in (one for one in scene.texts if one.role == "port"):
            beside = abs(text.y - y + 3) < 0.1 and abs(abs(text.x - x) - HEAD) < 0.1
            below = abs(text.y - y - BELOW) < 0.1 and abs(text.x - x - BESIDE) < 0.1
            if beside if level else below:
                yield wire, text


@pytest.mark.parametrize(
    ("paper", "box", "names"),
    [
        ("neural_turing_machine", "steps.write_head", ["before", "memory"]),
        ("neural_turing_machine", "steps.read_head", ["before", "memory"]),
        ("neural_turing_machine", "steps.controller", ["h, c"]),
        ("tacotron2", "decoder.attend", ["before", "memory"]),
        ("raft", "updates", ["level0", "level1", "level2", "level3", "seen"]),
    ],
)
def test_names_stand_at_the_ends_of_their_wires(paper: str, box: str, names: list[str]) -> None:
    """Each at the wire that comes in as that, with nothing on it."""
    scene = composer.load(PAPERS / f"{paper}.yaml").draw(details=["none"]).scene
    found = [*named(scene, box)]
    assert sorted(text.text for _, text in found) == names
    assert all(wire.port in ("", text.text.removesuffix(f" {AT_FIRST}")) for wire, text in found)  # none of a stream
    assert [*overlaps(scene), *borders(scene)] == []


def test_a_formula_names_what_it_reads_otherwise() -> None:
    """At the wires from the outputs that its author gives it."""
    scene = composer.load(PAPERS / "planet.yaml").draw(highlight=["parts"]).scene  # else, the split is left out
    given = {"p_std": "prior_std", "q_std": "std", "q_mean": "mean", "p_mean": "prior_mean"}
    found = [*named(scene, "divergence")]
    assert {text.text for _, text in found} == given.keys()
    for wire, text in found:
        x, y = wire.points[0]
        (start,) = (one for one in scene.texts if 0 < y - one.y < 12 and 0 <= one.area.left - x < 12)
        assert start.text == given[text.text]


@pytest.mark.parametrize(
    ("formula", "names", "told"),
    [
        ("a * b + c", "a: left, b: right, c: middle", ["a", "b", "c"]),
        ("left * b + c", "left: left, b: right, c: middle", []),
        ("left * right + middle", "left: left, right: right, middle: middle", []),
        ("a * b + middle", "a: left, b: left, middle: middle", []),
    ],
)
def test_what_sources_tell_is_not_said_again(formula: str, names: str, told: list[str]) -> None:
    """A formula in the words of most nodes that it reads needs no names at its wires."""
    unread = "".join(f", {one}: {one}" for one in ("left", "right", "middle") if f": {one}" not in names)
    flow = build_diagram(
        folded(composer.load(FORMULA.format(formula=formula, names=names, unread=unread)).program), Depth(operations=False)
    )
    assert [*names_at_ends(flow.edges_into("y"), flow.by_path).values()] == told


@pytest.mark.parametrize(
    ("inputs", "names"),
    [("slow: slow, fast: fast", ["slow, fast"]), ("slow: slow, fast: slow", ["fast", "slow", "slow, fast"])],
)
def test_states_are_named(inputs: str, names: list[str]) -> None:
    """With what they start with, which is one for both; one value as two inputs, too, whose box has no detail then."""
    figure = composer.load(STATES.format(inputs=inputs)).draw()
    assert sorted(text.text for _, text in named(figure.scene, "steps.step")) == names


@pytest.mark.parametrize("name", ["transformer", "llama3", "bart", "gpt2"])
def test_attention_has_no_names(name: str) -> None:
    """Colors tell its memory, and masks their own inputs."""
    scene = composer.load(name).draw().scene
    assert [text.text for box in scene.boxes for _, text in named(scene, box.about.path)] == []


def test_words_are_those_of_the_source() -> None:
    """Whatever stands between them."""
    assert words("start_memory at first") == {"start", "memory", "at", "first"}
    assert words("memory") <= words("new_memory")
    assert not words("memory_place") <= words("place")


def test_names_do_not_decide_how_streams_in_a_frame_are_laid_out() -> None:
    """Two streams that read each other stay side by side where one of them says what it reads at first."""
    scene = composer.load(PAPERS / "evoformer.yaml").draw(details=["none"]).scene
    assert {"Single", "Distogram", "Pair"} <= {text.text for box in scene.boxes for text in box.texts}


def test_a_circle_says_what_only_the_first_pass_reads() -> None:
    """At the end of a wire from elsewhere, which comes in at its side."""
    edge = DiagramEdge(DiagramSource(NodeOutput("start"), at_first=True), "join", "b", main=False)
    join = Leaf(About("join"), Look("Add", (), "merge", sign="+"))
    drawn = circle(join, Typography(), [WiredInput(edge)], names=far_starts([edge]))
    assert [(text.text, text.anchor) for text in drawn.pieces.texts] == [("at first", "end")]
    assert drawn.left > circle(join, Typography(), [WiredInput(edge)]).left


@pytest.mark.parametrize(("paper", "box", "name"), [("vq_vae", "quantize", "image"), ("tacotron2", "decoder.attend", "context")])
def test_a_first_output_has_its_name_where_others_have(paper: str, box: str, name: str) -> None:
    """At the left of the wire above the box, whose other side has the shape."""
    text = (PAPERS / f"{paper}.yaml").read_text(encoding="utf-8").replace("repeat: 2", "repeat: 1")  # not at the end of a column
    scene = composer.load(text).draw(details=["none"]).scene
    (area,) = (one.area for one in scene.boxes if one.about.path == box)
    (said,) = (one for one in scene.texts if (one.role, one.text) == ("port", name))
    middle = (area.left + area.right) / 2
    assert middle - 10 < said.area.right < middle and area.top - 20 < said.y < area.top


def test_a_first_output_without_a_name_of_its_own_has_none() -> None:
    """Nor has that of an LSTM cell whose state is read."""
    scene = composer.load(PAPERS / "neural_turing_machine.yaml").draw(details=["none"]).scene
    assert "y" not in {one.text for one in scene.texts}


def test_an_output_of_a_box_has_the_name_that_it_has_there() -> None:
    """Above its arrow, where that is another than the name of the output of the model; paths stand in recipes."""
    scene = composer.load(PAPERS / "vq_vae.yaml").draw(details=["none"]).scene
    (wire,) = (one for one in scene.wires if one.target == "outputs/codes")
    (x, y), (tip, _) = wire.points
    (said,) = (one for one in scene.texts if one.text == "index")
    assert x < said.area.left < said.area.right < tip and 0 < y - said.y < 5
    (named,) = (one.text.text for one in scene.references if one.target == "outputs/codes")
    assert named == "codes"


SAME_NAME = """recipe: same_name
inputs: {x: "float[batch, 8]", y: "float[batch, 8]"}
graph:
  g: {type: linear, out: 8, in: x}
  f: {type: linear, out: 8, in: y}
  back: {type: linear, out: 8, in: g}
outputs: {y: back, x: f}
losses: {cycle: {type: l1_loss, in: back, target: x}}
"""


def test_an_input_with_the_name_of_an_output_says_that_it_is_one() -> None:
    """The output goes by an arrow to `x`, and what the loss compares with is another `x`."""
    scene = composer.load(SAME_NAME).draw().scene
    (read,) = (one for one in scene.references if one.target == "losses.cycle")
    assert read.text.text == "x (input)"


OF_SOME = """recipe: of_some
inputs: {x: "float[batch, 8]", a: "float[batch, 8]", b: "float[batch, 8]"}
graph:
  layers:
    repeat: 5
    graph:
      map: {type: linear, out: 8}
      joined: {type: concat, in: [map, a if layer == 0 else b if layer < 3 else x]}
      back: {type: linear, out: 8}
outputs: {y: layers}
"""


def test_a_name_that_some_passes_read_says_which() -> None:
    """The first pass, two in the middle, and the last two."""
    said = {one.text.text for one in composer.load(OF_SOME).draw().scene.references if one.target == "layers.joined"}
    assert {name.removesuffix(" (input)") for name in said} == {"a (first)", "b (2nd – 3rd)", "x (last 2)"}


def test_a_pass_of_another_repeat_is_called_as_in_a_recipe() -> None:
    """A number alone says nothing."""
    assert (last_step("net.stages.1"), last_step("net.stem"), last_step("stem")) == ("stages(1)", "stem", "stem")


def test_a_name_that_a_block_has_for_another_value_says_that_it_is_an_output() -> None:
    """Of a source that no wire leads from, beside a wire whose end has the same name."""
    figure = composer.load(PAPERS / "detr.yaml").draw()
    (one,) = (one for one in figure.scene.references if one.target == "decoder.cross.body")
    assert one.text.text == "place output"
    assert {wire.source: text.text for wire, text in named(figure.scene, one.target)}["place"] == "memory_place"
    assert [*overlaps(figure.scene)] == []
    assert [*confused(read(figure.svg()))] == []
    assert [*confused(read(figure.svg().replace(">place output<", ">place<")))] == [
        "place → decoder.cross.body: it is read as `place`, which is another value there"
    ]
