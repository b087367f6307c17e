"""From the recipe to the graph: what is written out, wired, put in order, and tied."""

from __future__ import annotations

import pytest

import composer
from composer.diagnostics import Diagnostic
from composer.graph.ir import BlockNode, Graph, GroupNode, Node, Pending, Program, Ref, RepeatNode, Tie
from composer.graph.passes import compile_graph
from composer.graph.passes.freeze import freeze
from tests.operations import at_most

HEAD = 'recipe: example\ninputs: {x: "float[batch, time, 8]"}\ngraph:\n'


def expanded(nodes: str, head: str = HEAD) -> tuple[Program | None, tuple[Diagnostic, ...]]:
    """Return the frozen graph of some nodes, and what is reported of them."""
    recipe = composer.load(head + nodes)
    state = compile_graph(recipe.document, recipe.library, last=freeze)
    return state.program, state.diagnostics


def graph(nodes: str, head: str = HEAD) -> Graph:
    """Return the graph of nodes that are right."""
    program, found = expanded(nodes, head)
    assert program is not None
    assert found == ()
    return program.graph


def reads(node: Node) -> dict[str, list[str]]:
    """Return what each port of a node reads."""
    assert not isinstance(node, RepeatNode)
    return {wire.port: list(map(str, wire.refs)) for wire in node.wires}


def repeat(of: Graph, name: str) -> RepeatNode:
    node = of[name]
    assert isinstance(node, RepeatNode)
    return node


# -- expand


def test_node_that_says_nothing_reads_the_one_above() -> None:
    """And the first the input."""
    found = graph("  a: relu\n  b: tanh\n")
    assert [reads(node) for node in found.nodes] == [{"x": ["x"]}, {"x": ["a"]}]


def test_residual_is_a_group_of_its_norm_its_body_and_a_sum() -> None:
    """The sum reads what the group is given and what the body made of its norm."""
    found = graph("  a: {type: residual, norm: rmsnorm, body: relu}\n")["a"]
    assert isinstance(found, GroupNode)
    norm, body, total = found.graph.nodes
    assert reads(body) == {"x": [norm.name]}
    assert sorted(name for names in reads(total).values() for name in names) == sorted(["x", body.name])


@pytest.mark.parametrize(("deep", "kind"), [("true", "tanh"), ("false", "relu")])
def test_condition_chooses_a_block(deep: str, kind: str) -> None:
    """Decided before anything else is known of the graph."""
    found = graph("  a: tanh if deep else relu\n", f"params: {{deep: {deep}}}\n{HEAD}")["a"]
    assert isinstance(found, BlockNode)
    assert found.part.kind == kind


def test_branch_that_a_condition_guards_is_not_computed() -> None:
    """Only its names are looked up; a word beside a comparison is none."""
    params = "params: {kind: {type: choice, of: [near, far], default: near}, n: 0}\n"
    out = (
        "  a: {type: linear, out: 16 + (8 // n if kind == far else 8)}\n  b: {type: linear, out: 4 if n == 0 else 8 // n + dim}\n"
    )
    found = graph(out, params + HEAD)
    assert [dict(found[name].fields)["out"].value for name in ("a", "b")] == [24, 4]  # type: ignore[union-attr]  # blocks


def test_field_that_needs_the_width_of_an_input_waits_for_it() -> None:
    """Other fields are known at once."""
    found = graph("  a: {type: linear, out: 3 * dim, bias: false}\n")["a"]
    assert isinstance(found, BlockNode)
    fields = dict(found.fields)
    assert isinstance(fields["out"], Pending)
    assert fields["bias"].value is False  # type: ignore[union-attr]  # it is known


# -- repeats


def test_passes_that_read_the_same_share_one_graph() -> None:
    """However many there are."""
    passes = repeat(graph("  a: {repeat: 5, graph: {b: relu}}\n"), "a").passes
    assert len(passes) == 5
    assert len({id(one.graph) for one in passes}) == 1


def test_passes_that_read_their_number_differ() -> None:
    """By what they make of it: two kinds for three passes."""
    found = repeat(graph("  a: {repeat: 3, graph: {b: relu if layer == 1 else tanh}}\n"), "a")
    assert [one.graph.nodes[0].part.kind for one in found.passes] == ["tanh", "relu", "tanh"]  # type: ignore[union-attr]  # blocks
    first, second, third = (one.graph for one in found.passes)
    assert first is third is not second


def test_pass_is_given_what_the_one_before_returned() -> None:
    """The first what the repeat is given."""
    found = repeat(graph("  a: {repeat: 3, graph: {b: relu}}\n"), "a")
    assert [wire.refs for one in found.passes for wire in one.wires] == [(Ref("x"),), (Ref("a", "", 0),), (Ref("a", "", 1),)]


def test_values_of_each_are_taken_in_turn() -> None:
    """From the start again where there are fewer than passes."""
    found = repeat(graph("  a: {repeat: 5, each: {n: [2, 3]}, graph: {b: {type: linear, out: n}}}\n"), "a")
    assert [dict(one.values)["n"] for one in found.passes] == [2, 3, 2, 3, 2]


def test_function_under_each_is_computed_where_a_block_has_its_name_too() -> None:
    """`max` of numbers is no mask."""
    found = repeat(graph('  a: {repeat: 2, each: {n: [2, 8], m: "max(n, 4)"}, graph: {b: {type: linear, out: m + 1}}}\n'), "a")
    assert [dict(one.values)["m"] for one in found.passes] == [4, 8]


# -- wire


def test_value_from_around_a_group_becomes_an_input_of_it() -> None:
    """And a wire at its holder, so that the graph inside is closed."""
    found = graph("  a: relu\n  b: tanh\n  g: {graph: {c: silu, d: {type: add, in: [c, a]}}}\n")["g"]
    assert isinstance(found, GroupNode)
    (captured,) = (item.name for item in found.graph.inputs if item.captured)
    assert reads(found)[captured] == ["a"]
    assert captured in [name for names in reads(found.graph["d"]).values() for name in names]


def test_value_from_inside_a_group_becomes_an_output_of_it() -> None:
    """Under its path; what the group returns stays the first."""
    found = graph("  g: {graph: {c: silu, d: relu}}\n  e: {type: add, in: [g, g.c]}\n")
    group = found["g"]
    assert isinstance(group, GroupNode)
    assert [ref.node for _, ref in group.graph.outputs] == ["d", "c"]
    assert reads(found["e"]) == {"xs": ["g", "g.c"]}


def test_name_that_nothing_has_is_told_at_its_place() -> None:
    """With the near one that there is."""
    _, (wrong,) = expanded("  first: relu\n  b: {type: tanh, in: frist}\n")
    assert (wrong.code, wrong.span.line, wrong.hint) == ("unknown-node", 5, "did you mean first?")


# -- freeze


def test_nodes_stand_after_what_they_read() -> None:
    """And else as they are written."""
    found = graph("  a: {type: relu, in: c}\n  b: {type: tanh, in: x}\n  c: {type: silu, in: b}\n  d: {type: add, in: [a, b]}\n")
    assert [node.name for node in found.nodes] == ["b", "c", "a", "d"]


def test_cycle_is_told_with_its_whole_path() -> None:
    """From the node that is written first."""
    program, (wrong,) = expanded("  a: {type: relu, in: c}\n  b: {type: tanh, in: a}\n  c: {type: silu, in: b}\n")
    assert program is None
    assert wrong.code == "cycle"
    assert wrong.message.startswith("a → b → c → a")


def test_equal_graphs_of_one_place_are_one_object() -> None:
    """Those of two uses of a block, whatever these are called; equal groups that are written twice are two."""
    head = HEAD.replace("graph:", 'blocks:\n  own: {inputs: {x: "float[...]"}, graph: {a: relu, b: tanh}}\ngraph:')
    nodes = {"one": "own", "two": "own", "three": "{graph: {a: relu, b: tanh}}", "four": "{graph: {a: relu, b: tanh}}"}
    found = graph("".join(f"  {name}: {node}\n" for name, node in nodes.items()), head)
    one, two, three, four = (found[name].graph for name in nodes)  # type: ignore[union-attr]  # groups
    assert one is two
    assert len({one, three, four}) == 3


def test_group_that_does_not_read_what_it_is_given_is_not_wired_to_it() -> None:
    """Where nothing was written."""
    found = graph("  a: relu\n  g: {graph: {z: {type: parameter, shape: [8]}}}\n  s: {type: add, in: [a, g]}\n")["g"]
    assert reads(found) == {}


# -- ties


@pytest.mark.parametrize(
    ("tie", "path"),
    [("a", ("a",)), ("layers(1).up", ("layers", 1, "up")), ("layers.up", ("layers", 2, "up"))],
)
def test_tie_leads_from_the_graph_around_to_a_node(tie: str, path: tuple[str | int, ...]) -> None:
    """Of a repeat, the last pass where none is named."""
    nodes = "  a: {type: linear, out: 8}\n  layers: {repeat: 3, graph: {up: {type: linear, out: 8}}}\n"
    found = graph(f"{nodes}  g: {{graph: {{b: {{type: linear, out: 8, tie: {tie}}}}}}}\n")["g"]
    assert isinstance(found, GroupNode)
    (made,) = found.graph["b"].ties
    assert isinstance(made, Tie)
    assert (made.up, made.path, made.parameter) == (1, path, "")


# -- what is read


def codes(nodes: str) -> list[tuple[str, str, str]]:
    """Return what is reported of some nodes: code, message and hint."""
    return [(each.code, each.message, each.hint) for each in expanded(nodes)[1]]


@pytest.mark.parametrize("above", ["a: relu", "a: {type: linear, out: 3}", "a: {graph: {b: relu}}"])
@pytest.mark.parametrize(
    "below",
    [
        "g: {graph: {p: {type: relu, in: x}}}",
        "g: {graph: {p: {graph: {q: {type: relu, in: x}}}}}",
        "g: {graph: {p: {type: relu, in: x}, q: {type: tanh, when: false}}}",
    ],
)
def test_a_group_that_does_not_read_what_stands_above_does_not_keep_it_alive(above: str, below: str) -> None:
    """Its implied edge leads nowhere, at any depth."""
    hint = "`g` below it reads nothing of it: read `input` there, or remove `a`"
    assert codes(f"  {above}\n  {below}\n") == [("dead-node", "nothing reads `a`", hint)]


@pytest.mark.parametrize(
    "below",
    [
        "g: {in: a, graph: {p: {type: relu, in: x}}}",
        "g: {graph: {p: {type: add, in: [x, input]}}}",
        "g: {graph: {p: {graph: {q: {type: relu}}}}}",
        "g: {graph: {p: {type: relu, in: x}}, outputs: {y: p, z: input}}",
        "g: {graph: {p: {type: relu, in: x}, q: {type: tanh, in: input, when: false}}}\n  h: {type: add, in: [g, g.p]}",
    ],
)
def test_a_group_that_reads_what_stands_above_keeps_it_alive(below: str) -> None:
    """In a node, in a graph inside, as an output, through what is left out; and where the edge is written."""
    assert codes(f"  a: relu\n  {below}\n") == []


def test_names_of_values_that_cross_borders_are_not_seen() -> None:
    """Neither by a second reader of the same value, nor by one that spells its name."""
    twice = "  a: {repeat: 3, graph: {b: {type: weighted_sum, in: [input, 'a(:)']}, c: {type: weighted_sum, in: [b, 'a(:)']}}}\n"
    assert codes(twice) == []
    crossing = (
        "  a: {graph: {b: relu, c: relu}}\n  d: {graph: {e: {type: add, in: [input, a.b]}, f: {type: add, in: [e, a_b]}}}\n"
    )
    assert [(code, message) for code, message, _ in codes(crossing)] == [("unknown-node", "there is no node called `a_b`")]
    reads_other = (
        "  a: {graph: {b: relu, c: relu}}\n  a_b: {type: tanh, in: x}\n"
        "  d: {in: a, graph: {e: {type: add, in: [input, a.b]}, f: {type: add, in: [e, a_b]}}}\n"
    )
    group = graph(reads_other)["d"]
    assert isinstance(group, GroupNode)
    assert reads(group) == {"input": ["a"], "a_b": ["a.b"], "a_b_2": ["a_b"]}


def test_values_of_each_take_no_longer_for_being_many() -> None:
    """Each sees those before it, whether it is computed from the one above, names it, or stands by itself."""

    def every(first: str, other: str) -> str:
        lines = "".join(f"      e{number}: {other.format(number - 1) if number else first}\n" for number in range(4000))
        return f"  layers:\n    repeat: 3\n    each:\n{lines}    graph: {{a: {{type: scale, by: e3999}}}}\n"

    with at_most(2_500_000):
        sums, alone = expanded(every("[1, 2, 3]", "e{} + 1")), expanded(every("1", "[1, 2, 3]"))
        blocks = expanded(every("[gelu, relu, gelu]", "{{type: e{}}}").replace("{type: scale, by: e3999}", "e0"))
    assert [program is not None and len(repeat(program.graph, "layers").passes) for program, _ in (sums, alone, blocks)] == [
        3
    ] * 3


CHAIN = """recipe: example
blocks:
  own:
    params: {PARAMS}
    inputs: {x: "float[batch, time, dim]"}
    graph: {a: {type: linear, out: LAST}}
inputs: {x: "float[batch, time, 8]"}
graph:
"""


@pytest.mark.parametrize(
    ("count", "written", "code"),
    [
        (12, "p{1} + p{2}", ""),
        (40, "p{1} + p{2}", "expression-too-long"),
        (50, "p{1} + 1", ""),
        (900, "p{1} + 1", "expression-too-deep"),
    ],
)
def test_numbers_computed_from_sizes_in_many_ways_are_computed_once(count: int, written: str, code: str) -> None:
    """A size may lead to a number in ways without number; with more than can be held, that is said."""
    starts = 2 if "{2}" in written else 1
    defaults = ["dim"] * starts + [written.format(n, n - 1, n - 2) for n in range(starts, count)]
    params = ", ".join(f"p{n}: {{type: int, default: {default}}}" for n, default in enumerate(defaults))
    head = CHAIN.replace("PARAMS", params).replace("LAST", f"p{count - 1}")
    with at_most(4_000_000):
        program, found = expanded("  b: own\n", head)
    assert [each.code for each in found] == ([code] if code else [])
    assert program is not None and program.sound == (not code)


def test_masks_that_name_one_another_without_end_are_refused_as_numbers_too() -> None:
    """As they are where a mask is asked for."""
    params = "".join(f"  p{n}: {{type: mask, default: {f'not p{n - 1}' if n else 'causal'}}}\n" for n in range(1500))
    _, found = expanded("  a: {type: linear, out: p1499}\n", HEAD.replace("inputs:", f"params:\n{params}inputs:"))
    assert [each.code for each in found] == ["too-deep"]
