"""What a model becomes as a diagram, and which ends its page has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

import composer
from blocks.core import Block, BlockView, Look, Piece
from composer.draw.build.diagram_builder import build_diagram
from composer.draw.build.levels import LEVELS, Depth, Level
from composer.draw.diagram import Leaf
from composer.draw.figure import Figure
from composer.graph.passes.roll_layers.roll_layers import folded

ALONE = 'recipe: alone\ninputs: {{x: "float[batch, time, 8]"}}\ngraph: {graph}\n'


class PairOfPorts(Block, kind="pair_of_ports"):
    """A block whose second piece reads ports whose names are parts of each other's."""

    inputs = {"x": "float[..., dim]"}
    outputs = {"y": "float[..., dim]"}

    def forward(self: Any, x: Any) -> Any:
        return x

    def inside(self, view: BlockView) -> Sequence[Piece]:
        """Return a map, and what reads it at three ports."""
        first = Piece("first", Look("First"), (("$x", ""),))
        reads = (("first", "k"), ("first", "kv"), ("$x", "q"))
        return first, Piece("second", Look("Second"), reads, gives=("y",), stream_ports=("kv",))


def test_a_piece_says_which_of_its_ports_read_the_stream() -> None:
    """Whatever the ports are called: none is known to the drawing by its name."""
    program = composer.load(ALONE.format(graph="{y: pair_of_ports}"), blocks=[PairOfPorts]).program
    edges = build_diagram(folded(program), Depth("full")).edges
    assert [edge.port for edge in edges if edge.target == "y.second" and edge.main] == ["kv"]


# -- models in which nothing computes


def ends(figure: Figure) -> list[tuple[str, str]]:
    """Return the wires of a drawing."""
    return [(wire.source, wire.target) for wire in figure.scene.wires]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "graph", ["{y: {type: dropout, p: 0}}", "{gone: {type: rmsnorm, when: false}, y: {type: dropout, p: 0}}"]
)
def test_a_model_that_returns_its_input_is_drawn(graph: str, level: Level) -> None:
    """As a wire from the input to the output."""
    figure = composer.load(ALONE.format(graph=graph)).draw(level)
    assert ends(figure) == [("x", "outputs/y")]


def test_a_dropout_alone_is_a_box_but_at_a_glance() -> None:
    """Where no box has room to say it."""
    recipe = composer.load(ALONE.format(graph="{y: {type: dropout, p: 0.1}}"))
    assert ends(recipe.draw("overview")) == [("x", "outputs/y")]
    assert ends(recipe.draw("block")) == [("x", "y"), ("y", "outputs/y")]
    assert "Dropout" in recipe.draw().html()


def test_every_input_that_is_an_output_is_drawn() -> None:
    """Also beside what computes."""
    text = """recipe: two
inputs: {x: "float[batch, time, 8]", z: "float[batch, time, 8]"}
graph: {gone: {type: rmsnorm, when: false}, norm: {type: rmsnorm, in: z}}
outputs: {a: gone, b: norm, c: z}
"""
    assert {("x", "outputs/a"), ("z", "norm"), ("norm", "outputs/b"), ("z", "outputs/c")} == drawn(composer.load(text).draw())


def drawn(figure: Figure) -> set[tuple[str, str]]:
    """Return what is wired, or stands at an output by its name."""
    return {*ends(figure), *((one.source, one.target) for one in figure.scene.references)}


@pytest.mark.parametrize("opened", [False, True])
def test_what_only_some_passes_read_leads_into_their_repeat(opened: bool) -> None:
    """Also where it is closed, and the first pass does not read it."""
    text = """recipe: some
inputs: {x: "float[batch, time, 8]", valid: "bool[batch, time]"}
graph:
  layers:
    repeat: 2
    each: {body: [{type: ffn}, {type: attention, heads: 2, mask: valid(valid)}]}
    graph: {layer: {type: residual, norm: rmsnorm, body: body}}
"""
    edges = build_diagram(folded(composer.load(text).program), Depth("block", layers=opened)).all_edges()
    assert {edge.target for edge in edges if edge.source.path == "valid"} == {"layers.layer.body" if opened else "layers"}


# -- second streams


class TwoStreams(Block, kind="two_streams"):
    """A block that reads another stream, and flags."""

    inputs = {"x": "float[batch, time, dim]", "context": "float[batch, source, dim]", "memory?": "float[batch, source, dim]"}
    outputs = {"y": "float[batch, time, dim]"}
    second_stream_inputs: ClassVar[tuple[str, ...]] = ("context",)

    def forward(self: Any, x: Any, context: Any, memory: Any = None) -> Any:
        return x


@pytest.mark.parametrize(("level", "target"), [("block", "layer.a"), ("overview", "layer")])
def test_a_block_says_which_of_its_inputs_are_another_stream(level: Level, target: str) -> None:
    """Whatever they are called, also where they go into a closed box."""
    text = """recipe: two
inputs: {x: "float[batch, time, 8]", ids: "float[batch, source, 8]"}
graph:
  first: {type: linear, out: 8, in: ids}
  second: {type: linear, out: 8, in: ids}
  layer:
    in: x
    graph: {a: {type: two_streams, in: {x: input, context: first, memory: second}}}
"""
    drawn_edges = build_diagram(folded(composer.load(text, blocks=[TwoStreams]).program), Depth(level)).all_edges()
    assert {edge.source.path for edge in drawn_edges if edge.target == target and edge.second_stream} == {"first"}
    styles = {(wire.source, wire.style) for wire in composer.load(text, blocks=[TwoStreams]).draw(level).scene.wires}
    assert styles >= {("first", "cross"), ("second", "cross")}


# -- formulas


@pytest.mark.parametrize(
    ("formula", "title", "detail"),
    [
        ("x * sigmoid(1.702 * x)", "x · σ(1.702 · x)", ""),
        (
            "where(x > 0, x * sigmoid(1.702 * x), 0.1 * x + 0.01 * x)",
            "y",
            "where(x > 0, x · σ(1.702 · x), 0.1 · x + 0.01 · x)",
        ),
    ],
)
def test_a_formula_is_drawn_as_a_paper_writes_it(formula: str, title: str, detail: str) -> None:
    """A short one as the title; a longer one below the name of its node. As it is written it is in the description."""
    (node,) = build_diagram(folded(composer.load(ALONE.format(graph=f'{{y: {{compute: "{formula}"}}}}')).program), Depth()).items
    assert isinstance(node, Leaf)
    assert (node.look.title, node.look.detail) == (title, detail)
    assert formula in node.about.description


@pytest.mark.parametrize("level", LEVELS)
def test_a_formula_in_a_slot_has_no_frame(level: Level) -> None:
    """There is nothing else to be in it."""
    graph = "{y: {type: residual, norm: rmsnorm, body: {compute: input * sigmoid(input)}}}"
    items = build_diagram(folded(composer.load(ALONE.format(graph=graph)).program), Depth(level)).items
    assert all(isinstance(item, Leaf) for item in items)
    assert "input · σ(input)" in " ".join(item.look.title for item in items if isinstance(item, Leaf))
