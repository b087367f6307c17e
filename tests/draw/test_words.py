"""What a drawing writes: numbers, shapes, names and paths, and what stands at one place for several."""

from __future__ import annotations

from dataclasses import replace

import pytest

import composer
from blocks.core import BlockView, grouped, spoken
from blocks.primitives.pointwise import Scale
from composer.cost.units import short
from composer.draw.build.parameter_counts import ParameterCounts
from composer.draw.build.titles import titles
from composer.draw.diagram import Leaf
from composer.draw.layout.fragment import straightened
from composer.draw.passes.overview import fold_norms
from composer.draw.passes.side_inputs import split_side_inputs
from composer.draw.paths import above, belongs, lies_in
from composer.draw.wording import printable, shape
from composer.graph.parameters import parameters
from composer.graph.passes.roll_layers.roll_layers import as_written
from tests.draw.flows import flow


@pytest.mark.parametrize(
    ("value", "said"), [(4096, "4096"), (14336, "14\u00a0336"), (1234567, "1\u00a0234\u00a0567"), (0.5, "0.5")]
)
def test_long_numbers_are_grouped_by_thousands(value: float, said: str) -> None:
    """From five digits on."""
    assert grouped(value) == said


def test_axes_are_written_as_letters_of_the_field() -> None:
    """A sum in brackets."""
    recipe = 'recipe: r\ninputs: {x: "float[batch, time + 1, 8]"}\ngraph: {a: relu}\n'
    assert shape(composer.load(recipe).program.inputs["x"]) == "B × (T + 1) × 8"


def test_names_that_authors_chose_stand_beside_what_is_computed() -> None:
    """The role of a map or an einsum, and of a block of one's own; no name that says what the title does."""
    recipe = composer.load("""recipe: r
inputs: {x: "float[batch, time, 8]"}
blocks:
  pair: {inputs: {x: "float[batch, time, 8]"}, graph: {up: {type: linear, out: 8}, relu: relu, down: {type: linear, out: 8}}}
graph:
  norm1: layernorm
  q: {type: linear, out: 8, in: norm1}
  key: {type: linear, out: 8, in: norm1}
  scores: {type: einsum, pattern: "b t d, b s d -> b t s", in: [q, key]}
  softmax1: {type: softmax, axis: last}
  mix: {type: einsum, pattern: "b t s, b s d -> b t d", in: [softmax1, norm1]}
  linear2: {type: linear, out: 8}
  early: pair
  attn: {type: attention, heads: 2}
  ffn: ffn
outputs: {y: ffn}
""")
    said = {box.about.path: [text.text for text in box.texts if text.role == "name"] for box in recipe.draw().scene.boxes}
    assert {path: name for path, (name,) in ((path, names) for path, names in said.items() if names)} == {
        path: path for path in ("q", "key", "scores", "mix", "early")
    }
    assert not any(text.role == "name" for box in recipe.draw("overview").scene.boxes for text in box.texts)
    column = recipe.draw(width="150pt").scene
    assert any(text.text.startswith("scores · ") for box in column.boxes for text in box.texts)


@pytest.mark.parametrize(("name", "said"), [("cross_attention", "Cross attention"), ("layer12", "Layer 12"), ("ffn_", "Ffn")])
def test_names_of_recipes_are_spoken(name: str, said: str) -> None:
    """As titles."""
    assert spoken(name) == said


def test_no_sign_is_written_that_a_page_cannot_hold() -> None:
    """And line ends are spaces."""
    assert printable("a\n\tb\x00c\ud800") == "a b\ufffdc\ufffd"


def test_path_lies_in_what_leads_to_it() -> None:
    """Step by step, and not letter by letter."""
    assert above("layers.attn.q") == ["layers", "layers.attn", "layers.attn.q"]
    assert lies_in("layers.attn.q", "layers.attn") and belongs("layers.attn.q", {"layers"})
    assert not lies_in("layers.attn2", "layers.attn") and not belongs("layers2", {"layers"})


def test_points_on_the_way_are_left_out_and_corners_stay() -> None:
    """Upwards or across."""
    assert straightened(((0, 0), (0, 5), (0, 9), (4, 9), (7, 9))) == ((0, 0), (0, 9), (7, 9))


def test_counts_are_sums_over_the_parameters_below_a_path() -> None:
    """A tied tensor counts where its owner stands, and what is frozen is said."""
    recipe = composer.load("gpt2", overrides={"norm.trainable": False})
    counts = ParameterCounts(parameters(recipe.program))
    sizes = {name: value.numel() for name, value in recipe.compile(device="meta").named_parameters()}
    below = sum(size for name, size in sizes.items() if name.startswith("layers.0.attn."))
    assert counts.total([""]) == sum(sizes.values())
    assert counts.total(["layers.0.attn"]) == below
    assert counts.shown("head") == "tied"
    assert counts.shown("norm") == f"{short(2 * 768)} frozen"


def test_block_that_reads_nothing_of_the_stream_stands_beside_its_reader() -> None:
    """The rest stays in line."""
    written = flow("a: x", "table: ids", "b: a", "sum: b, table", "c: sum")
    found = split_side_inputs(written)
    assert [item.about.path for item in found.flow.items] == ["a", "b", "sum", "c"]
    ((leaf, edge, _),) = found.beside["sum"]
    assert (leaf.about.path, edge.port) == ("table", "x1")


def test_norm_stands_in_the_box_of_its_only_reader() -> None:
    """One that two blocks read stays a box."""

    def drawn(*reads: str) -> list[str]:
        written = flow(*reads)
        first, *others = written.items
        assert isinstance(first, Leaf)
        norm = replace(first, look=replace(first.look, hue="norm"))
        return [item.about.path for item in fold_norms(replace(written, items=(norm, *others))).items]

    assert drawn("norm: x", "a: norm", "b: a") == ["a", "b"]
    assert drawn("norm: x", "a: norm", "b: a, norm") == ["norm", "a", "b"]


@pytest.mark.parametrize(("by", "title"), [(0.25, "× 0.25"), (768**-0.5, "÷ √768"), (-0.3333333, "× -0.3333"), (2.0, "× 2")])
def test_a_factor_is_a_root_only_where_that_is_shorter(by: float, title: str) -> None:
    """A number that four digits tell is drawn as it is written."""
    assert Scale(by=by).look(BlockView("s")).title == title


def test_abbreviations_in_names_stay_in_capitals() -> None:
    """Where the `doc` does not begin with a name."""
    assert titles(as_written(composer.load("rnn_lm").program)).title == "RNN LM"
