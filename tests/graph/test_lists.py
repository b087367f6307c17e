"""Params that are lists: items, one for each pass, stages of their own depth, and what reads them where."""

from __future__ import annotations

import pytest

import composer
from composer.graph.parameters import parameters
from composer.graph.typed import TypedBlock, TypedProgram

STAGES = """
recipe: stages
params:
  depths: {type: [int], default: [1, 3, 2], min: 1}
  widths: [8, 16, 24]
  kinds: {type: [choice], of: [near, far], default: [near, far, far]}
  norms: {type: [block], default: [rmsnorm, {type: layernorm, eps: 1e-3}, rmsnorm]}
  looks: {type: [mask], default: [full, causal, causal and window(4)]}
  biased: [true, false, true]
inputs: {x: "float[batch, time, 8]"}
graph:
  stages:
    repeat: len(depths)
    as: stage
    each: {width: widths, look: looks, far: kinds(stage) == far}
    graph:
      widen: {type: linear, out: width, bias: biased(stage)}
      layers:
        repeat: depths(stage)
        graph:
          attn: {type: residual, norm: norms(stage), body: {type: attention, heads: 2, mask: look if far else full}}
          ffn: {type: residual, norm: {type: norms(stage)}, body: {type: ffn, hidden: 2 * widths(stage)}}
  head: {type: linear, out: widths(0) + widths(-1)}
"""


def written_out(depths: list[int], widths: list[int]) -> str:
    """Return the same model without a list: each stage, and each of its layers, by itself."""
    norms = ["rmsnorm", "{type: layernorm, eps: 1e-3}", "rmsnorm"]
    masks = ["full", "causal", "causal and window(4)"]
    lines = ["recipe: stages", 'inputs: {x: "float[batch, time, 8]"}', "graph:"]
    for stage, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        bias = "true" if stage != 1 else "false"
        lines += [
            f"  widen{stage}: {{type: linear, out: {width}, bias: {bias}}}",
            f"  layers{stage}:",
            f"    repeat: {depth}",
            "    graph:",
        ]
        body = f"{{type: attention, heads: 2, mask: {masks[stage]}}}"
        lines.append(f"      attn: {{type: residual, norm: {norms[stage]}, body: {body}}}")
        lines.append(f"      ffn: {{type: residual, norm: {norms[stage]}, body: {{type: ffn, hidden: {2 * width}}}}}")
    return "\n".join([*lines, f"  head: {{type: linear, out: {widths[0] + widths[-1]}}}"])


def codes(text: str, *settings: str) -> list[str]:
    return [found.code for found in composer.load(text, list(settings)).check() if found.severity == "error"]


@pytest.mark.parametrize("settings", [(), ("depths=[2,1,1]", "widths=[4, 12, 8]")])
def test_stages_are_what_is_written_out(settings: tuple[str, ...]) -> None:
    """Nested repeats over lists give the model in which every stage stands by itself."""
    recipe = composer.load(STAGES, list(settings))
    depths, widths = ([1, 3, 2], [8, 16, 24]) if not settings else ([2, 1, 1], [4, 12, 8])
    by_hand = composer.load(written_out(depths, widths))
    assert "the same model" in str(recipe.diff(by_hand))
    assert recipe.summary().costs.parameters == by_hand.summary().costs.parameters
    assert sum(each.numel() for each in recipe.compile().parameters()) == recipe.summary().costs.parameters


def test_expand_writes_values() -> None:
    """No list is left in the text, which is the same model."""
    recipe = composer.load(STAGES)
    text = recipe.expand()
    assert "params" not in text and "len(" not in text
    assert str(recipe.diff(composer.load(text))).endswith("the same model")


def test_a_list_is_replaced_whole() -> None:
    """By an override, in Python too, and by a recipe that extends another."""
    sizes = {"widths": [8, 8, 8], "kinds": ["far", "far", "near"]}
    by_option = composer.load(STAGES, ["widths=[8, 8, 8]", "kinds=[far, far, near]"])
    assert str(composer.load(STAGES, sizes).diff(by_option)).endswith("the same model")
    assert by_option.program.untyped.params["widths"] == (8, 8, 8)
    found = composer.load(STAGES).diff(by_option)
    assert [(each.name, each.before, each.after) for each in found.params] == [
        ("widths", "[8, 16, 24]", "[8, 8, 8]"),
        ("kinds", "[near, far, far]", "[far, far, near]"),
    ]


def shapes(program: TypedProgram) -> dict[str, tuple[int, ...]]:
    return {each.name: each.parameter.shape for each in parameters(program)}


def test_lists_are_given_to_blocks_of_the_recipe() -> None:
    """As a name, as items of which some are known only with the sizes, and as the list of a field."""
    text = """
    recipe: towers
    params: {both: [4, 12]}
    blocks:
      tower:
        params: {widths: {type: [int], required: true, min: 2}, open: [true, false]}
        inputs: {x: "float[batch, time, dim]"}
        graph:
          up: {type: linear, out: widths(0) + len(widths), bias: open(1)}
          down: {type: linear, out: dim // widths(0) * widths(-1), bias: open(0)}
      holder:
        inputs: {x: "float[batch, time, dim]"}
        graph: {inner: {type: tower, widths: [dim, 3, 2 * dim], open: [false, true]}}
    inputs: {x: "float[batch, time, 8]"}
    graph:
      a: {type: tower, widths: both}
      b: holder
      back: {type: linear, out: 16}
      parts: {type: split, sizes: both, into: [one, two]}
      end: {type: linear, out: 2, in: parts.two}
    """
    found = shapes(composer.load(text).program)
    assert found["a.up.weight"] == (6, 8) and "a.up.bias" not in found
    assert found["a.down.weight"] == (24, 6) and "a.down.bias" in found
    assert found["b.inner.up.weight"] == (27, 24) and "b.inner.up.bias" in found
    assert found["b.inner.down.weight"] == (48, 27) and "b.inner.down.bias" not in found
    assert found["end.weight"] == (2, 12)


def test_the_number_of_items_is_known_before_their_sizes() -> None:
    """A block may repeat as often as a list that it is given is long, and each pass has its item."""
    text = """
    recipe: tower
    blocks:
      tower:
        params: {widths: {type: [int], required: true}}
        inputs: {x: "float[batch, time, dim]"}
        graph:
          layers:
            repeat: len(widths)
            each: {width: widths, last: layer == len(widths) - 1}
            graph: {up: {type: linear, out: width, bias: last}, down: {type: linear, out: widths(layer) + 1}}
      holder:
        inputs: {x: "float[batch, time, dim]"}
        graph: {inner: {type: tower, widths: [dim, 3, 2 * dim]}}
    inputs: {x: "float[batch, time, 8]"}
    graph: {a: holder}
    """
    found = shapes(composer.load(text).program)
    assert [found[f"a.inner.layers.{layer}.up.weight"][0] for layer in range(3)] == [8, 3, 16]
    assert [found[f"a.inner.layers.{layer}.down.weight"][0] for layer in range(3)] == [9, 4, 17]
    assert "a.inner.layers.2.up.bias" in found and "a.inner.layers.1.up.bias" not in found
    assert codes(text.replace("repeat: len(widths)", "repeat: widths(0)")) == ["not-a-value"]


def test_a_list_under_each_has_an_item_for_each_pass() -> None:
    """A written one is cycled, and so is a written list of lists."""
    text = """
    recipe: passes
    params: {wide: [8, 16], slim: [4, 4]}
    inputs: {x: "float[batch, time, 8]"}
    graph:
      layers:
        repeat: 3
        each: {width: [wide, slim], again: [8, 16]}
        graph:
          up: {type: linear, out: width(0) + len(width)}
          on: {type: linear, out: again}
    """
    found = shapes(composer.load(text).program)
    assert [found[f"layers.{layer}.up.weight"][0] for layer in range(3)] == [10, 6, 10]
    assert [found[f"layers.{layer}.on.weight"][0] for layer in range(3)] == [8, 16, 8]
    assert codes(text.replace("[wide, slim]", "wide if layer > 5 else slim").replace("width(0) + len(width)", "width")) == [
        "each-items"
    ]


def test_a_choice_between_lists() -> None:
    """A default may be another list, or one of two."""
    text = """
    recipe: either
    params: {large: false, short: [4, 8], long: [4, 8, 16], widths: {type: [int], default: long if large else short}}
    inputs: {x: "float[batch, time, 8]"}
    graph: {layers: {repeat: len(widths), graph: {up: {type: linear, out: widths(layer)}}}}
    """
    assert len(shapes(composer.load(text).program)) == 4
    assert len(shapes(composer.load(text, ["large=true"]).program)) == 6
    assert codes(text, "widths=[8, 0.5]") == ["not-whole"]


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ("widths(3)", "no-such-item"),
        ("widths(-4)", "no-such-item"),
        ("widths(0.5)", "not-whole"),
        ("widths(kinds(0))", "not-a-number"),
        ("widths()", "argument-count"),
        ("widths(0, 1)", "argument-count"),
        ("norms(1)", "not-a-value"),
        ("len(len(widths))", "not-a-list"),
        ("len(widths(0))", "not-a-list"),
        ("widths(0)(1)", "expression-syntax"),
        ("x(0)", "unknown-name"),
    ],
)
def test_mistakes_are_located(item: str, code: str) -> None:
    """At the item, in the field."""
    text = STAGES.replace("widths(0) + widths(-1)", f'"{item}"')
    (found,) = [each for each in composer.load(text).check() if each.severity == "error"]
    assert found.code == code
    assert "head:" in found.span.source.lines[found.span.line - 1]


IMAGES = """
recipe: images
params: {kernel: [3, 5]}
inputs: {x: "float[batch, 4, 16, 16]"}
graph: {y: {type: conv2d, out: 8, kernel_size: kernel}}
"""


def test_a_list_is_one_number_for_each_axis() -> None:
    """Where a field takes a number for each axis, a param may hold them; their count is checked."""
    typed = composer.load(IMAGES).program
    node = typed.root["y"]
    assert isinstance(node, TypedBlock)
    assert node.parameters[0].shape == (8, 4, 3, 5)
    assert [each.code for each in composer.load(IMAGES.replace("[3, 5]", "[3, 5, 7]")).check()] == ["rejected"]


def test_lists_computed_from_one_another_take_no_longer_for_being_many() -> None:
    """Each item is computed once, and what would grow with every list is refused."""
    lists = "".join(f"      l{i + 1}: [l{i}(0) + l{i}(1), l{i}(0) - l{i}(1)]\n" for i in range(40))
    text = (
        'recipe: e\nblocks:\n  own:\n    inputs: {x: "float[..., d]"}\n    params:\n      l0: [d, d]\n'
        f"{lists}    graph: {{y: {{type: linear, out: l40(0)}}}}\n"
        'inputs: {x: "float[batch, time, 8]"}\ngraph: {y: {type: own}}'
    )
    assert codes(text) == ["expression-too-long"]


def test_a_word_that_is_compared_may_be_called_like_a_block() -> None:
    """Under `each`, where the same word alone is the block."""
    recipe = composer.load("""
recipe: small
params: {kinds: {default: [recurrent, attention]}}
inputs: {x: "float[batch, time, 8]"}
graph:
  layers:
    repeat: 4
    each: {attends: not kinds(layer % 2) == recurrent and kinds(layer % 2) == attention}
    graph:
      a: {type: attention, heads: 1, when: attends}
      b: {type: ffn, hidden: 4}
""")
    assert [each for each in recipe.check() if each.severity == "error"] == []
    (layers,) = recipe.program.root.nodes
    assert [[node.name for node in one.nodes] for one in layers.passes] == [["b"], ["a", "b"]] * 2
