"""What a picture may say wrong, planted one by one in a true one: each is found."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import pytest

import composer
from composer.draw.build.levels import Level
from tests.draw.read_back import Model, read
from tests.draw.test_read_back import faults

LAYERS = """recipe: planted
task: causal_lm
inputs: {{tokens: "int[batch, time]"}}
graph:
  embed: {{type: embedding, vocab: 61, dim: 32}}
  layers:
    repeat: {count}
    graph:
      attn: {{type: residual, norm: layernorm, body: {{type: attention, heads: 4, mask: causal{window}}}}}
      ffn: {{type: residual, norm: layernorm, body: {{type: ffn, hidden: 72}}{dense}}}
{sparse}  head: {{type: linear, out: 61}}
  early: {{type: linear, out: 7, in: layers(3)}}
outputs: {{logits: head, early: early}}
"""
MIXTURE = """      moe:
        type: residual
        norm: layernorm
        when: layer % 3 == 2
        body: {type: moe, experts: 5, router: {type: top_k_router, top_k: 2}, expert: {type: ffn, hidden: 44}}
"""
RECIPES = {
    "windows": LAYERS.format(count=12, window=" and window(8 if layer % 4 == 0 else 16 * (layer % 4))", dense="", sparse=""),
    "router": LAYERS.format(count=6, window="", dense=", when: layer % 3 != 2", sparse=MIXTURE),
    "kinds": LAYERS.format(count=5, window=" and window(8 if layer > 1 else 16)", dense="", sparse=""),
    "formula": """recipe: formula
inputs: {q: "float[batch, time, 16]", k: "float[batch, time, 16]", allowed: "float[batch, time, time]"}
graph:
  scores: {type: einsum, pattern: "b i c, b j c -> b i j", in: [q, k]}
  masked: {compute: "scores * 0.25 - 10000 * (1 - allowed)"}
  weights: softmax
""",
    "named": """recipe: named
inputs: {x: "float[batch, time, 16]", text: "float[batch, words, 24]"}
graph:
  first: {type: residual, norm: layernorm, in: x, body: {type: cross_attention, heads: 4, in: {memory: text}}}
  wide: {type: linear, out: 32}
  second: {type: residual, norm: layernorm, body: {type: cross_attention, heads: 2, in: {memory: text}}}
  wider: {type: linear, out: 48}
  relu: relu
  third: {type: residual, norm: layernorm, body: {type: cross_attention, heads: 8, in: {memory: text}}}
outputs: {y: third}
""",
    "places": """recipe: places
inputs: {x: "float[batch, 3, 64, 64]"}
graph:
  fewer: {type: conv2d, out: 8, kernel_size: 3, stride: 2, padding: 1}
  same: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
outputs: {y: same}
""",
    "sizes": """recipe: sizes
inputs: {x: "float[batch, 64, 4, 4]"}
graph:
  many:
    repeat: 5
    each: {w: [64, 48, 48, 32, 16]}
    graph:
      larger: {type: interpolate2d, scale: 2, mode: linear}
      conv: {type: conv2d, out: w, kernel_size: 3, padding: 1}
  few:
    repeat: 2
    graph:
      smaller: {type: max_pool2d, kernel_size: 2}
      curve: gelu
""",
    "u": """recipe: u
inputs: {x: "float[batch, 3, 64, 64]"}
graph:
  down:
    repeat: 6
    each: {width: [8, 16, 24, 32, 40, 48]}
    in: x
    graph:
      conv: {type: conv2d, kernel_size: 4, stride: 2, padding: 1, out: width}
      norm: {type: batchnorm2d, when: layer > 0 and layer < 5}
      act: relu
  up:
    repeat: 5
    each: {width: [40, 32, 24, 16, 8]}
    graph:
      conv: {type: conv_transpose2d, kernel_size: 4, stride: 2, padding: 1, out: width}
      act: relu
      skip: {type: concat, axis: -3, in: [act, down(4 - layer)]}
""",
    "twice": """recipe: twice
inputs: {x: "float[batch, time, 8]"}
graph:
  a: {type: linear, out: 8, in: x}
  b: {type: concat, in: [a, a]}
  y: {type: linear, out: 4}
""",
    "tables": """recipe: tables
inputs: {x: "int[batch, 26]"}
params: {sizes: [5, 7, 9, 9, 3, 9]}
graph:
  few:
    repeat: len(sizes)
    as: field
    in: x
    graph:
      one: {type: select, axis: last, index: field}
      table: {type: embedding, vocab: sizes(field), dim: 4}
    outputs: {x: x, y: table}
  many:
    repeat: 26
    as: field
    in: x
    each: {vocab: (field * 7) % 24 + 2}
    graph:
      one: {type: select, axis: last, index: field}
      table: {type: embedding, vocab: vocab, dim: 4}
    outputs: {x: x, y: table}
  all: {type: concat, in: ["few(:).y", "many(:).y"]}
""",
    "passes": """recipe: passes
inputs: {x: "float[batch, time, 12]"}
graph:
  layers:
    repeat: 6
    graph:
      mix: {type: linear, out: 12}
      skip: {type: linear, out: 5}
      out: {type: residual, body: gelu, in: mix}
  total: {type: add, in: "layers(1:5).skip"}
""",
    "tables_of_rows": """recipe: tables_of_rows
inputs: {x: "float[batch, time, 24]"}
blocks:
  nearest:
    inputs: {x: "float[batch, time, width]"}
    graph:
      narrow: {type: linear, out: 16, in: x}
      codebook: {type: parameter, shape: [96, 16]}
      along: {type: einsum, pattern: "b t c, k c -> b t k", in: [narrow, codebook]}
      index: {type: argmax, axis: last}
      code: {type: gather, axis: first, in: {x: codebook, index: index}}
      wide: {type: linear, out: 24}
  look:
    inputs: {x: "float[batch, time, width]"}
    graph: {a: {type: linear, out: 32}, act: relu, b: {type: linear, out: width}}
graph:
  nearest: {type: nearest, in: x}
  places: {type: parameter, shape: [24], trainable: false}
  placed: {compute: nearest + places}
  share: {type: parameter, shape: [24]}
  left: {type: look, in: placed}
  right: {type: look, in: left}
  y: {type: add, in: [right, share]}
""",
}
DARK, LIGHT = 'fill="#0C68A6"', 'fill="#A9CFFF"'


@cache
def drawn(name: str, level: Level) -> tuple[composer.Recipe, Model, str]:
    """Return a recipe, what is true of it, and its picture."""
    recipe = composer.load(RECIPES[name])
    return recipe, Model(recipe.program), recipe.draw(level).svg()


def instead(there: str, planted: str, number: int = 0) -> Callable[[str], str]:
    """Return how a picture is changed: something else stands in one of the places of something."""

    def plant(svg: str) -> str:
        pieces = svg.split(there)
        return there.join(pieces[: number + 1]) + planted + there.join(pieces[number + 1 :])

    return plant


def of_wire(ends: str, there: str, planted: str) -> Callable[[str], str]:
    """Return how the wire from one box to another is changed, by a pattern."""
    source, target = ends.split(" → ")

    def plant(svg: str) -> str:
        start = svg.index(f'data-a="{source}" data-b="{target}"')
        end = svg.index("</g>", start)
        return svg[:start] + re.sub(there, planted, svg[start:end], count=1) + svg[end:]

    return plant


def table_elsewhere(svg: str) -> str:
    """Return a picture in which another parameter has the picture of a table."""
    return re.sub(r'(<g class="node[^>]*data-id=)"nearest.codebook"', r'\1"share"', svg, count=1)


def next_layer(svg: str) -> str:
    """Return a picture in which a frame says that the next layer alone reads what each one returns."""
    place = next(frame.place for frame in read(svg).frames if frame.path == "layers")
    return svg.replace("</svg>", f'<text x="{place.left + 40:.1f}" y="{place.top + 40:.1f}">next layer</text></svg>')


def turned(there: str) -> Callable[[str], str]:
    """Return how one small square or cell of a map, the first that a pattern finds, gets another color."""
    return lambda svg: re.sub(there, lambda found: found[0].replace(DARK, LIGHT), svg, count=1)


def turned_over(path: str) -> Callable[[str], str]:
    """Return how a box with slanted sides is narrower at the other end."""

    def plant(svg: str) -> str:
        box = next(box for box in read(svg).boxes if box.path == path)
        (left, top), (right, _), (far, low), (near, _) = box.corners
        return with_border(svg, path, [(near, top), (far, top), (right, low), (left, low)])

    return plant


def straightened(path: str) -> Callable[[str], str]:
    """Return how a box has no slanted sides any more."""

    def plant(svg: str) -> str:
        place = next(box.place for box in read(svg).boxes if box.path == path)
        size = f'width="{place.right - place.left:.1f}" height="{place.bottom - place.top:.1f}"'
        return with_shape(svg, path, f'<rect class="s" x="{place.left:.1f}" y="{place.top:.1f}" {size}/>')

    return plant


def narrowed(svg: str, path: str, like: str) -> str:
    """Return a picture in which one box has the sides of another one below it."""
    own, other = (next(box for box in read(svg).boxes if box.path == one) for one in (path, like))
    return with_border(svg, path, [(x, y + own.place.top - other.place.top) for x, y in other.corners])


def with_border(svg: str, path: str, corners: list[tuple[float, float]]) -> str:
    """Return a picture in which the border of a box goes through other corners."""
    first, *others = [*corners[1:], corners[0]]
    pieces, at = [f"M{corners[0][0]:.1f} {corners[0][1]:.1f}"], corners[0]
    for x, y in (first, *others):
        pieces.append(f"q{x - at[0]:.1f} {y - at[1]:.1f} {x - at[0]:.1f} {y - at[1]:.1f}")
        at = x, y
    return with_shape(svg, path, f'<path class="s" d="{"".join(pieces)}z"/>')


def with_shape(svg: str, path: str, shape: str) -> str:
    """Return a picture in which a box has another border."""
    start = svg.index(f'data-id="{path}"')
    end = svg.index("<text", start)
    return svg[:start] + re.sub(r"<(?:path|rect)[^>]*/>", shape, svg[start:end], count=1) + svg[end:]


FAULTS: dict[str, tuple[str, Level, Callable[[str], str]]] = {
    "kinds of a repeat dropped": ("windows", "block", lambda svg: re.sub(r"window 8, 16, 32, 48|8, 16, 32, 48", "window 8", svg)),
    "one window of all in the overview": ("windows", "overview", lambda svg: svg.replace("window 8, 16, 32, 48", "window 8")),
    "one value of several dropped": ("windows", "overview", lambda svg: svg.replace("8, 16, 32, 48", "8, 16, 48")),
    "a router in every layer": ("router", "block", instead(">2 of 6<", "><")),
    "a router in other layers": ("router", "block", instead(">2 of 6<", ">3 of 6<")),
    "a feed-forward network in every layer": ("router", "block", instead(">4 of 6<", "><")),
    "a count of layers": ("router", "block", instead(">× 6<", ">× 5<")),
    "a share in the overview": ("router", "overview", instead("4 of 6: ", "5 of 6: ")),
    "a value of some layers": ("router", "overview", instead("hidden 44", "hidden 72")),
    "a picture of a mask": (
        "router",
        "block",
        lambda svg: re.sub(r'(class="on"[^>]* d="M[^h]*h)[\d.]+', r"\g<1>28", svg, count=1),
    ),
    "a cell of a map": ("router", "block", turned(r'<rect class="on"[^>]*width="12"[^>]*>')),
    "a square of a frame": ("router", "block", turned(r'<rect class="on"[^>]*width="9"[^>]*>')),
    "a square of a row": ("kinds", "block", turned(r'<rect class="on"[^>]*width="\d"[^>]*>')),
    "an arrowhead": ("router", "block", of_wire("head → outputs/logits", r"<polygon[^>]*/>", "")),
    "an arrowhead elsewhere": ("router", "block", of_wire("tokens → embed", r'points="[\d.]+', 'points="3')),
    "a wire that begins elsewhere": ("router", "block", of_wire("head → outputs/logits", r'd="M[\d.]+', 'd="M3')),
    "a wire from another box": (
        "router",
        "block",
        of_wire("layers.attn.norm → layers.attn.body", r'a="[\w.]+"', 'a="layers.attn.add"'),
    ),
    "a wire between blocks that do not meet": (
        "router",
        "block",
        of_wire("layers.attn.body → layers.attn.add", r'b="[\w.]+"', 'b="layers.ffn.norm"'),
    ),
    "the index of a pass that is read": ("router", "block", instead(">layers(3)<", ">layers(2)<")),
    "the layer at which a wire begins": ("router", "block", of_wire("layers → early", r'd="M([\d.]+) [\d.]+', r'd="M\1 290')),
    "the name of an input that has a box": ("named", "block", instead(">text<", ">x<")),
    "what is read by its name": ("named", "block", instead(">text<", ">x<", 2)),
    "an input with a box that is said to have none": ("named", "block", instead(">text<", ">text (input)<")),
    "the size of an input that has a box": ("named", "block", instead(">B × words × 24", ">B × words × 25")),
    "the passes of values that are read": ("passes", "block", instead(">layers 1 … 4<", ">layers 0 … 4<")),
    "who alone reads what layers return": ("passes", "block", instead(">next layer<", ">next stage<")),
    "a reader of the last layer that is not told": ("windows", "block", next_layer),
    "the size of the last pass": ("sizes", "block", instead("8² … 128²", "8² … 256²")),
    "the channels of the first pass": ("sizes", "block", instead("B × 64 … 16 ×", "B × 48 … 16 ×")),
    "sizes in another order": ("sizes", "block", instead("64, 32 × 64, 32", "32, 64 × 32, 64")),
    "an axis too few": ("sizes", "block", instead("64, 32 × 64, 32", "64, 32")),
    "sizes at another box": ("sizes", "block", instead("B × 64 … 32 ×", "B × 64 … 16 ×")),
    "a box that seems to give more places": ("places", "block", turned_over("fewer")),
    "a box that seems to give as many places": ("places", "block", straightened("fewer")),
    "a box that seems to give fewer places": ("places", "block", lambda svg: narrowed(svg, "same", like="fewer")),
    "values in another order": ("tables", "block", instead("5, 7, 9, 9, 3, 9", "5, 9, 7, 9, 3, 9")),
    "the value of another pass as the last": ("tables", "block", instead("… 9", "… 19")),
    "passes in another order": ("u", "block", instead(">down(4) … down(0)<", ">down(0) … down(4)<")),
    "other passes of a frame": ("u", "block", instead(">4 of 6: 2nd – 5th<", ">4 of 6: first 4<")),
    "how often a value is read": ("twice", "block", instead(">2 ×<", "><")),
    "a formula without its scale": ("formula", "block", lambda svg: svg.replace(" · 0.25", "")),
    "a formula without its mask": ("formula", "block", lambda svg: svg.replace(" − 10000 · (1 − allowed)", "")),
    "a box without the name that a formula reads": ("formula", "block", instead(">scores<", "><")),
    "the name of a parameter": ("tables_of_rows", "block", instead(">Codebook<", ">Places<")),
    "the name of what a formula reads": ("tables_of_rows", "block", instead(">places<", ">place<")),
    "the shape of a table": ("tables_of_rows", "block", instead("learned 96 × 16", "learned 16 × 69")),
    "parameters that are told beside a box": ("tables_of_rows", "block", instead(">808<", ">2.34 K<")),
    "frozen numbers that are said to be learned": ("tables_of_rows", "block", instead(">24<", ">learned 24<")),
    "the name of a use of a block": ("tables_of_rows", "block", instead(">Left · Look<", ">Right · Look<")),
    "a table of something else": ("tables_of_rows", "block", lambda svg: table_elsewhere(svg)),
    "an attention without its scale": ("router", "full", lambda svg: svg.replace(" / √8", "")),
    "an attention without its mask": ("router", "full", lambda svg: svg.replace(" + mask)", ")")),
}


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("level", ["overview", "block", "full"])
def test_nothing_is_found_in_pictures_without_faults(name: str, level: Level) -> None:
    """At each level."""
    recipe, model, svg = drawn(name, level)
    assert faults(svg, recipe, model) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_is_planted_is_found(fault: str) -> None:
    """Whatever a reader would take from it."""
    name, level, plant = FAULTS[fault]
    recipe, model, svg = drawn(name, level)
    assert plant(svg) != svg
    assert faults(plant(svg), recipe, model)


def test_values_that_come_again_are_told_for_each_pass() -> None:
    """A set of them would read as a list of all passes; of many, the last one is that of the last pass."""
    _, _, svg = drawn("tables", "block")
    assert ">5, 7, 9, 9, 3, 9 × 4<" in svg and ">2, 9, 16, … 9 × 4<" in svg


@pytest.mark.parametrize("said", ["layers(0) … layers(0)", "layers(1).skip … layers(7).skip"])
def test_ends_of_passes_that_are_not_read_are_found(said: str) -> None:
    """Several values go by the names of the first and the last one."""
    recipe, model, svg = drawn("passes", "block")
    changed = svg.replace(">layers 1 … 4<", f">{said}<")
    assert changed != svg
    assert faults(changed, recipe, model)
