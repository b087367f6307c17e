"""From the graph to the typed graph: sizes along the wires, one set of weights for passes, and how parameters start."""

from __future__ import annotations

from typing import Any, Literal

import pytest

import composer
from blocks.core import Block, Cost, LinearWeights, Slot
from composer.graph.passes import compile_graph
from composer.graph.passes.expand.init_rules import block_rules
from composer.graph.passes.infer.infer import infer
from composer.graph.typed import TypedGroup, TypedProgram, TypedRepeat

HEAD = 'recipe: example\ninputs: {x: "float[batch, time, 8]"}\ngraph:\n'


def typed(nodes: str, head: str = HEAD) -> TypedProgram:
    return composer.load(head + nodes).program


def test_sizes_flow_along_the_wires() -> None:
    """Each width is computed from the one before; axes that the recipe leaves open stay open."""
    found = typed("  a: {type: linear, out: 3 * dim}\n  b: relu\n  c: {type: linear, out: dim // 2}\n")
    assert [str(node.outputs["y"]) for node in found.root.nodes] == [
        "float[batch, time, 24]",
        "float[batch, time, 24]",
        "float[batch, time, 12]",
    ]


def test_inference_is_a_function_of_the_program() -> None:
    """Done again, it gives the types that it gave."""
    recipe = composer.load(HEAD + "  a: {type: linear, out: 2 * dim}\n")
    state = compile_graph(recipe.document, recipe.library, last=infer)
    again = infer(state)
    assert state.typed is not None
    assert again.typed is not None
    assert again.diagnostics == ()
    assert again.typed.root.outputs == state.typed.root.outputs


def test_equal_passes_are_typed_once() -> None:
    """Until the width changes."""
    (repeat,) = typed("  a: {repeat: 4, graph: {b: {type: linear, out: 16}}}\n").root.nodes
    assert isinstance(repeat, TypedRepeat)
    first, *others = repeat.passes
    assert first is not others[0]
    assert len({id(one) for one in others}) == 1


def test_group_has_the_type_of_its_last_node() -> None:
    """And the same nodes elsewhere, given another width, another type."""
    found = typed("  g: {graph: {a: {type: linear, out: 2 * dim}}}\n  h: {graph: {a: {type: linear, out: 2 * dim}}}\n")
    one, two = found.root.nodes
    assert isinstance(one, TypedGroup) and isinstance(two, TypedGroup)
    assert [str(next(iter(node.outputs.values()))) for node in (one, two)] == ["float[batch, time, 16]", "float[batch, time, 32]"]


@pytest.mark.parametrize(
    ("nodes", "code", "words"),
    [
        ("  a: {type: linear, out: 5}\n  b: {type: add, in: [x, a]}\n", "type-mismatch", "time, 5]"),
        ("  a: {type: attention, heads: 3, mask: full}\n", "indivisible", "heads"),
    ],
)
def test_sizes_that_do_not_fit_are_told_at_the_node(nodes: str, code: str, words: str) -> None:
    """In numbers, and no type is made up for what follows."""
    found = [each for each in composer.load(HEAD + nodes).check() if each.severity == "error"]
    assert len(found) == 1
    assert found[0].span.line == HEAD.count("\n") + nodes.count("\n")
    assert found[0].code == code
    assert words in found[0].message


# -- share


def test_one_set_of_weights_needs_passes_of_one_width() -> None:
    """Two widths are refused where `share` is written; without it they are fine."""
    nodes = "  a: {repeat: 2, share: true, graph: {b: {type: linear, out: 16}}}\n"
    (wrong,) = composer.load(HEAD + nodes).check()
    assert wrong.code == "share"
    assert "float[batch, time, 16]" in wrong.message
    assert composer.load(HEAD + nodes.replace("share: true, ", "")).check() == []


def test_state_in_passes_of_one_set_of_weights_is_refused() -> None:
    """It would have a value for each pass."""
    nodes = "  a: {repeat: 2, share: true, graph: {b: batchnorm}}\n"
    (wrong,) = composer.load(HEAD + nodes).check()
    assert (wrong.code, wrong.hint) == ("share", "move the state out of the repeat")


# -- how parameters start

DEFINED = """recipe: example
blocks:
  inner:
    inputs: {x: "float[..., dim]"}
    graph: {a: {type: linear, out: dim}}
    init: {"a.*": {normal: 0.5}}
  outer:
    inputs: {x: "float[..., dim]"}
    graph: {i: inner, b: {type: linear, out: dim}}
    init: {"*": {constant: 2}}
inputs: {x: "float[batch, time, 8]"}
graph:
  first: {repeat: 2, graph: {o: outer}}
"""


def test_patterns_of_blocks_get_the_names_that_they_have_in_the_model() -> None:
    """One for each pass, the innermost first, so that what stands around it wins."""
    rules = block_rules(composer.load(DEFINED).program.untyped.graph)
    assert [(rule.pattern, rule.init.how, rule.init.value, rule.inside, rule.written) for rule in rules] == [
        ("first.0.o.i.a.*", "normal", 0.5, "first.0.o.i.", "a.*"),
        ("first.0.o.*", "constant", 2.0, "first.0.o.", "*"),
        ("first.1.o.i.a.*", "normal", 0.5, "first.1.o.i.", "a.*"),
        ("first.1.o.*", "constant", 2.0, "first.1.o.", "*"),
    ]


def test_passes_of_one_set_of_weights_start_once() -> None:
    """Their parameters have no number of a pass in their names."""
    found = block_rules(composer.load(DEFINED.replace("repeat: 2,", "repeat: 2, share: true,")).program.untyped.graph)
    assert [pattern for pattern, *_ in found] == ["first.o.i.a.*", "first.o.*"]


def test_the_axes_of_a_block_have_its_own_names_inside() -> None:
    """As its inputs declare them, for what goes along an axis; outside, they are those of what it is given."""
    text = """recipe: named
inputs: {data: "float[batch, time, 8]"}
blocks:
  mix:
    inputs: {x: "float[batch, steps, width]"}
    graph:
      start: {type: zeros, shape: [width]}
      mean: {type: mean, axis: steps, in: x}
      walk: {scan: steps, in: {x: x, h: start}, graph: {sum: {type: add, in: [x, h]}}, outputs: {y: sum, h: sum}}
      y: {type: add, in: [walk, mean]}
graph:
  first: mix
  second: {type: softmax, axis: time}
"""
    recipe = composer.load(text)
    assert recipe.check() == []
    assert str(recipe.program.root["second"].outputs["y"]) == "float[batch, time, 8]"


@pytest.mark.parametrize(
    "graph",
    [
        "  a: {type: parameter, shape: [width]}\n  b: {type: add, in: [a, x]}",
        "  a: {type: linear, out: 2 * width}\n  b: {type: linear, out: width}",
        "  a: {type: zeros, shape: [width], in: x}\n  b: {type: ffn, hidden: width // 2}",
    ],
)
def test_what_follows_from_a_wrong_input_of_a_block_is_not_said(graph: str) -> None:
    """The lengths of its axes are not known then, and nobody needs to be told."""
    inside = "".join(f"    {line}\n" for line in graph.splitlines())
    text = (
        'recipe: wrong\ninputs: {data: "int[batch, time]"}\nblocks:\n  mix:\n    inputs: {x: "float[batch, steps, width]"}\n'
        f"    graph:\n{inside}graph:\n  y: mix\n"
    )
    assert [(each.code, each.span.line) for each in composer.load(text).check()] == [("type-mismatch", 10)]


class OfMemory(Block, kind="of_memory"):
    """A block whose parts need an axis of a port that may be left open."""

    what: Literal["weight", "output", "slot", "cost", "typo"]
    """Which part."""
    inner: Block | None = None
    """A block on the memory."""

    inputs = {"x": "float[batch, time, dim]", "memory?": "float[batch, source, memory_dim]"}
    outputs = {"y": "float[batch, time, dim]"}

    def weights(self, sizes: Any, wired: frozenset[str]) -> Any:
        return {
            "weight": {"map": LinearWeights("memory_dim", "dim")},
            "slot": {"inner": Slot("inner", "float[batch, source, memory_dim]")},
            "typo": {"map": LinearWeights("dmi", "dim")},
        }.get(self.what, {})

    def output_types(self, inputs: Any, sizes: Any) -> Any:
        return {"y": "float[batch, source, dim]"} if self.what == "output" else None

    def cost(self, sizes: Any, wired: frozenset[str]) -> Cost | None:
        return Cost("2 * batch * source * dim") if self.what == "cost" else None

    def forward(self: Any, x: Any, memory: Any = None) -> Any:
        return x


@pytest.mark.parametrize("what", ["weight", "output", "slot", "cost"])
def test_an_axis_of_a_port_that_is_left_open_is_missed_at_the_node(what: str) -> None:
    """Whatever declares something of its length; so is one that a definition is not given."""
    inner = ", inner: gelu" if what == "slot" else ""
    node = f"  a: {{type: of_memory, what: {what}{inner}, in: {{x: x}}}}\n"
    text = f"recipe: example\ninputs: {{x: 'float[batch, time, 8]', m: 'float[batch, source, 6]?'}}\ngraph:\n{node}"
    found = [each for each in composer.load(text, blocks=[OfMemory]).check() if each.severity == "error"]
    assert [(each.code, each.span.line) for each in found] == [("missing-port", 4)]
    assert "`axis_defaults`" in found[0].hint
    optional = composer.load(text.replace("{x: x}", "{x: x, memory: m}"), blocks=[OfMemory])
    assert [each.code for each in optional.check() if each.severity == "error"] == ([] if what == "cost" else ["optional-edge"])


def test_a_size_that_nothing_has_is_named() -> None:
    """As one that is misspelled in a block of one's own."""
    text = "recipe: example\ninputs: {x: 'float[batch, time, 8]'}\ngraph:\n  a: {type: of_memory, what: typo, in: x}\n"
    (found,) = composer.load(text, blocks=[OfMemory]).check()
    assert (found.code, found.span.line) == ("rejected", 4) and "`dmi`" in found.message
