"""Things that a model is about, drawn as objects: parameters, tables and states by their names, and uses of a block."""

from __future__ import annotations

import pytest

import composer
from blocks.core import TableIcon
from composer.draw.scene import Box, Scene
from tests.draw.cases import PAPERS
from tests.draw.test_read_back import wrong

LOOKUP = """recipe: lookup
inputs: {x: "float[batch, time, 24]", image: "float[batch, 9]"}
blocks:
  nearest:
    doc: The code that is nearest to each place.
    inputs: {x: "float[batch, time, width]"}
    graph:
      narrow: {type: linear, out: 16, in: x}
      codebook: {type: parameter, shape: [96, 16]}
      along: {type: einsum, pattern: "PATTERN", in: [narrow, codebook]}
      index: {type: argmax, axis: last}
      image: {type: linear, out: width, in: narrow}
    outputs: {image: image, index: index}
graph:
  GRAPH
outputs: {y: y, picture: image}
"""
ROWS, COLUMNS = "b t c, k c -> b t k", "b t k, k c -> b t c"
ONCE = "nearest: {type: nearest, in: x}\n  y: {type: linear, out: 3}"
READ = f"{ONCE}\n  z: {{type: embedding, vocab: 96, dim: 3, in: nearest.index}}\n  sum: {{type: add, in: [y, z]}}"
USES = """recipe: uses
inputs: {{x: "float[batch, time, 24]"}}
blocks:
  look:
    inputs: {{x: "float[batch, time, width]"}}
    graph: {{a: {{type: linear, out: 32}}, act: relu, b: {{type: linear, out: width}}}}
graph:
  {first}: {{type: look, in: x}}
  {second}: look
"""


def box(scene: Scene, path: str) -> Box:
    """Return the box at a path, in the figure itself."""
    (found,) = (one for one in scene.boxes if one.about.path == path)
    return found


def said(scene: Scene, path: str) -> list[str]:
    """Return what a box says."""
    return [text.text for text in box(scene, path).texts]


def lookup(graph: str = READ, output: str = "sum") -> Scene:
    """Return the drawing of a model with a codebook."""
    text = LOOKUP.replace("PATTERN", ROWS).replace("GRAPH", graph).replace("y: y", f"y: {output}")
    return composer.load(text).draw().scene


def paper(name: str) -> Scene:
    """Return the drawing of the model of a paper."""
    return composer.load(next(path for path in PAPERS if path.stem == name)).draw().scene


def test_parameters_are_called_by_their_names() -> None:
    """As a formula beside them writes these, a letter as it is, and with the word that they are learned where they are."""
    scene = (
        composer.load("""recipe: r
inputs: {x: "float[batch, time, 24]"}
graph:
  object_queries: {type: parameter, shape: [100, 24]}
  scores: {type: einsum, pattern: "b t c, q c -> b t q", in: [x, object_queries]}
  word_bias: {type: parameter, shape: [100], trainable: false}
  biased: {compute: scores + word_bias}
  u: {type: parameter, shape: []}
  scaled: {compute: biased * u}
  places: {type: constant, over: {i: 100}, value: i / 2}
  y: {type: add, in: [scaled, places], axes: [b t q, q]}
""")
        .draw()
        .scene
    )
    assert said(scene, "object_queries") == ["Object queries", "learned 100 × 24", "2.40 K"]
    assert said(scene, "word_bias") == ["word_bias", "100", "100 frozen"]
    assert said(scene, "u") == ["u", "one learned number", "1"]
    assert said(scene, "places") == ["Places", "i / 2 · for i < 100"]
    assert [type(icon.icon) for icon in box(scene, "object_queries").icons] == [TableIcon]
    assert not box(scene, "word_bias").icons


def test_a_table_stands_beside_the_closed_box_of_a_block() -> None:
    """Which neither tells it nor counts its parameters."""
    scene = lookup()
    assert said(scene, "nearest.codebook") == ["Codebook", "learned 96 × 16", "1.54 K"]
    assert box(scene, "nearest.codebook").about.parameters + box(scene, "nearest").about.parameters == 400 + 1536 + 408
    assert said(scene, "nearest")[-1] == "808" and not any("codebook" in line for line in said(scene, "nearest"))
    assert [one.target for one in scene.wires if one.source == "nearest.codebook"] == ["nearest"]


def test_a_table_that_leads_to_no_output_that_is_read_stays_in_its_box() -> None:
    """Nothing else of what leads there is told."""
    scene = lookup(ONCE, "y")
    assert not any(one.about.path == "nearest.codebook" for one in scene.boxes)
    assert box(scene, "nearest").about.parameters == 400 + 1536 + 408


@pytest.mark.parametrize(
    ("pattern", "graph"),
    [
        (COLUMNS, ONCE),
        (ROWS, "a: {type: nearest, in: x}\n  b: {type: nearest, in: a.image}\n  y: {type: linear, out: 3}"),
        (ROWS, "many: {repeat: 3, in: x, graph: {nearest: nearest, act: relu}}\n  y: {type: linear, out: 3}"),
    ],
)
def test_other_parameters_stay_in_their_boxes(pattern: str, graph: str) -> None:
    """A map that is written as a product, a block that stands twice, and one in a repeat."""
    text = LOOKUP.replace("shape: [96, 16]", "shape: [16, 96]") if pattern == COLUMNS else LOOKUP
    scene = composer.load(text.replace("PATTERN", pattern).replace("GRAPH", graph)).draw().scene
    assert not any(one.about.path.endswith("codebook") for one in scene.boxes)


def test_an_output_called_like_an_input_of_another_shape_tells_its_own() -> None:
    """Else a reader would take it for that."""
    text = LOOKUP.replace("PATTERN", ROWS).replace("GRAPH", READ).replace("y: y", "y: sum")
    assert "B × T × 24" in [one.text for one in composer.load(text).draw().scene.texts]
    assert "B × T × 24" not in [
        one.text for one in composer.load(text.replace("{image: image,", "{found: image,")).draw().scene.texts
    ]


@pytest.mark.parametrize(
    ("first", "second", "titles"),
    [
        ("prior", "posterior", ["Prior · Look", "Posterior · Look"]),
        ("left_look", "right_look", ["Left look", "Right look"]),
        ("conv1", "conv2", ["Look", "Look"]),
        ("prior", "norm", ["Look", "Look"]),
        ("first_of_all_others_here", "posterior", ["Look", "Look"]),
    ],
)
def test_titles_of_uses_begin_with_names_that_say_what_for(first: str, second: str, titles: list[str]) -> None:
    """Of all uses of a block or of none."""
    recipe = composer.load(USES.format(first=first, second=second))
    scene = recipe.draw().scene
    told = [next(text.text for text in box(scene, path).texts if text.role == "title") for path in (first, second)]
    assert told == titles
    assert wrong(recipe, "block") == []


def test_a_detail_of_several_uses_has_the_name_of_the_block() -> None:
    """It is the inside of all of them."""
    scene = paper("planet")
    assert said(scene, "steps.prior")[0] == "Prior · Gaussian"
    assert said(scene, "steps.posterior")[0] == "Posterior · Gaussian"
    assert [one.texts[0].text for one in scene.details] == ["Gaussian"]


def test_labels_and_figures_without_names_have_titles_of_their_own() -> None:
    """What a reader calls a box stands in place of its title."""
    recipe = composer.load(USES.format(first="prior", second="posterior"))
    assert said(recipe.draw(labels={"prior": "Belief"}).scene, "prior")[0] == "Belief"
    assert said(recipe.draw(names=False).scene, "prior")[0] == "Look"


def test_a_memory_is_a_larger_box_with_the_picture_of_a_table() -> None:
    """A state of two axes beside the batch."""
    memory = box(paper("neural_turing_machine"), "steps.memory")
    assert [type(icon.icon) for icon in memory.icons] == [TableIcon] and memory.width >= 168
