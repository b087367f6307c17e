"""What stands at the source of a value that is read by its name, and how often a block reads a value by one wire."""

from __future__ import annotations

import pytest

import composer
from composer.draw.scene import Scene
from tests.draw.read_back import Model, read
from tests.draw.read_marks import uncounted, unnamed
from tests.draw.test_read_back import faults

TWICE = """recipe: twice
inputs: {{x: "float[batch, time, 8]"}}
graph:
  a: {{type: linear, out: 8, in: x}}
  y: {{type: {block}, in: {read}}}
  z: {{type: linear, out: 4}}
"""
TOKENS = """recipe: tokens
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 8}
  y: {type: linear, out: 8}
  head: {type: linear, out: 11}
outputs: {logits: head}
losses:
  again: {type: cross_entropy, in: head, target: tokens}
"""
MIXED = """recipe: mixed
inputs: {x: "float[batch, time, 8]"}
blocks:
  mix:
    inputs: {a: "float[batch, time, wide]", b: "float[batch, time, wide]", c: "float[batch, time, wide]"}
    graph:
      s: {type: parameter, shape: [3]}
      layers: {type: stack, axis: first, in: [a, b, c]}
      y: {type: einsum, pattern: "l, l b t d -> b t d", in: [s, layers]}
graph:
  start: {type: linear, out: 8, in: x}
  forward:
    repeat: 2
    in: {x: start}
    graph:
      lstm: {type: lstm, hidden: 8, in: x}
  turned: {type: flip, axis: time, in: start}
  backward:
    repeat: 2
    in: {x: turned}
    graph:
      lstm: {type: lstm, hidden: 8, in: x}
  back0: {type: flip, axis: time, in: backward(0)}
  back1: {type: flip, axis: time, in: backward(1)}
  layer0: {type: concat, in: [start, start]}
  layer1: {type: concat, in: [forward(0), back0]}
  layer2: {type: concat, in: [forward(1), back1]}
  mix: {type: mix, in: {a: layer0, b: layer1, c: layer2}}
outputs: {y: mix}
"""

HOPS = """recipe: hops
inputs: {x: "int[batch, time]"}
blocks:
  bag:
    inputs: {x: "int[batch, time]"}
    graph:
      embed: {type: embedding, vocab: 40, dim: 8}
      y: {type: mean, axis: time}
graph:
  start: {type: embedding, vocab: 30, dim: 8, in: x}
  first: {type: mean, axis: time}
  hop:
    repeat: 3
    as: hop
    in: {u: first, x: x}
    graph:
      words: {type: bag, in: x}
      next: {type: add, in: [u, words]}
    outputs: {u: next}
  w: {type: linear, out: 40, bias: false, in: hop, tie: {weight: hop.words.embed.weight}}
outputs: {y: w}
"""
TWINS = """recipe: twins
inputs: {a: "float[batch, time, 8]", b: "float[batch, time, 8]"}
blocks:
  tower:
    inputs: {x: "float[batch, time, 8]"}
    graph:
      up: {type: linear, out: 32}
      norm: layernorm
      y: {type: linear, out: 8}
graph:
  left: {type: tower, in: a}
  right: {type: tower, in: b, tie: left}
  a_long_name_of_it: {type: linear, out: 8, in: left}
  other: {type: linear, out: 8, in: right, tie: a_long_name_of_it}
  y: {type: add, in: [a_long_name_of_it, other]}
"""


def said(scene: Scene) -> list[str]:
    """Return what stands on a page by itself."""
    return [text.text for text in scene.texts]


@pytest.mark.parametrize(
    ("block", "read", "told"),
    [
        ("add", "[a, a]", ["2 ×"]),
        ("concat", "[a, a]", ["2 ×"]),
        ("concat", "[a, a, a]", ["3 ×"]),
        ('einsum, pattern: "b t d, b t d -> b t d"', "[a, a]", ["2 ×"]),
        ("add", "[a, x]", []),
        ("concat", "[a, a, x]", []),  # which tells an order
    ],
)
def test_a_wire_that_brings_a_value_several_times_says_so(block: str, read: str, told: list[str]) -> None:
    """One arrowhead would be one value."""
    scene = composer.load(TWICE.format(block=block, read=read)).draw().scene
    assert [one for one in said(scene) if one.endswith(" ×")] == told


def test_a_circle_whose_value_goes_by_its_name_has_that() -> None:
    """No wire leaves it, and it would seem to be read by nobody."""
    recipe = composer.load(MIXED)
    figure = recipe.draw()
    by_name = {one.source for one in figure.scene.references if one.target and one.about.path == one.source}
    circles = {merge.about.path for merge in figure.scene.merges} & by_name
    assert circles
    named = {one.source for one in figure.scene.references if not one.target}
    assert all(path in named or path in said(figure.scene) for path in circles)
    assert faults(figure.svg(), recipe, Model(recipe.program)) == []


def test_the_box_of_an_input_has_the_name_by_which_it_is_read_elsewhere() -> None:
    """There, nothing says that it has no box."""
    scene = composer.load(TOKENS).draw().scene
    assert [one.text.text for one in scene.references] == ["tokens"]
    assert "tokens" in said(scene)


def test_a_name_that_is_gone_is_found() -> None:
    """As is how often a wire brings its value."""
    recipe = composer.load(MIXED)
    svg = recipe.draw().svg()
    picture = read(svg)
    picture.texts = []
    assert [*uncounted(picture, recipe.program)]
    circles = [box.path for box in picture.boxes if not box.lines]
    gone = [one for one in picture.references if picture_target(one[3], one[2], circles)]
    picture.references = [(x, 0.0, path, name) for x, _, path, name in gone]
    assert [*unnamed(picture)]


def picture_target(name: str, path: str, circles: list[str]) -> bool:
    """Return whether a name in place of a wire is that of a circle."""
    return name == path and path in circles


@pytest.mark.parametrize(("unroll", "name"), [(False, "words"), (True, "hop(2).words")])
def test_weights_of_one_pass_are_told_with_its_number(unroll: bool, name: str) -> None:
    """The path alone may be that of any of them; where each pass is drawn, the box has the number too."""
    scene = composer.load(HOPS).draw(unroll=unroll).scene
    boxes = {box.about.path: [text.text for text in box.texts] for box in scene.boxes}
    assert any("weight = hop(2).words.embed" in text for text in boxes["w"])
    assert [path for path, texts in boxes.items() if name in texts] == ["hop.2.words" if unroll else "hop.words"]


def test_a_frame_with_shared_weights_says_so_once() -> None:
    """What is in it says no more than that; a box alone says whose weights it has, and that one has its name."""
    scene = composer.load(TWINS).draw(open=["left", "right"]).scene
    texts = {box.about.path: [text.text for text in box.texts] for box in scene.boxes}
    assert not [text for text in texts["right.up"] + texts["right.norm"] if "=" in text]
    assert "a_long_name_of_it" in texts["a_long_name_of_it"]
    assert any("= a_long_name_of_it" in text for text in texts["other"])
