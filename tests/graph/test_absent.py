"""What `when` leaves out is absent: its names are checked, nothing of it is computed, and nothing else is read in its place
by mistake.
"""

import pytest
import torch

import composer
from composer.draw.build.levels import LEVELS
from composer.graph.parameters import parameters

HEAD = 'recipe: absent\nparams: {on: false, n: 0}\ninputs: {x: "float[batch, time, 16]"}\ngraph:\n'
ABSENT = {
    "a number that fits nothing": "  a: {type: attention, heads: 3, when: on}\n  b: {type: linear, out: n + 4}",
    "a number out of range": "  a: {type: ffn, hidden: n, when: n > 0}\n  b: {type: linear, out: 4, when: not on}",
    "a division by zero": "  a: {type: linear, out: 16 // n, when: n > 0}\n  b: {type: linear, out: 4, when: not on}",
    "a repeat without passes": "  a: {repeat: n, graph: {f: {type: linear, out: 16 // n}}, when: on}\n  b: rmsnorm",
    "a group with a wrong node": "  a: {graph: {f: {type: attention, heads: 3 + n}}, when: on}\n  b: rmsnorm",
    "a scan of no axis": "  a: {scan: steps, graph: {f: {type: linear, out: n}}, when: on}\n  b: rmsnorm",
    "a slot with a wrong number": "  a: {type: residual, body: {type: ffn, hidden: n}, when: on}\n  b: rmsnorm",
    "two inputs that nothing reads": (
        "  a: {type: linear, out: n + 16}\n  b: {type: add, in: [a, x], when: on}\n  c: {type: relu, in: a}"
    ),
    "no input, read by what is left out": (
        "  a: {type: parameter, shape: [16], when: on}\n  b: {type: add, in: [x, a], when: on}\n"
        "  c: {type: linear, out: n + 4, in: b if on else x}"
    ),
    "a chain": "".join(f"  a{i}: {{type: rmsnorm, in: {f'a{i - 1}' if i else 'x'}, when: on}}\n" for i in range(900))
    + "  b: {type: linear, out: n + 4, in: a899}",
}  # fmt: skip


@pytest.mark.parametrize("graph", ABSENT.values(), ids=ABSENT)
def test_of_what_is_left_out_nothing_is_computed(graph: str) -> None:
    """Neither its numbers nor its types: the model is that of the nodes that are left."""
    recipe = composer.load(HEAD + graph)
    assert [each for each in recipe.check() if each.severity == "error"] == []
    left = {name for name, node in recipe.program.root.by_name.items()}
    assert left and left <= {"a", "b", "c"} and all("when" not in line for line in recipe.expand().splitlines())
    recipe.compile()(torch.zeros(2, 3, 16))


@pytest.mark.parametrize(
    ("graph", "code", "name"),
    [
        ("  a: {type: ffn, hidden: hiden, when: on}\n  b: rmsnorm", "unknown-name", "hiden"),
        ("  a: {type: attention, heads: 0, mask: causl, when: on}\n  b: rmsnorm", "unknown-mask", "causl"),
        ("  a: {type: linear, out: 0, in: y, when: on}\n  b: rmsnorm", "unknown-node", "y"),
        ("  a: {graph: {f: {type: linear, out: 0, in: y}}, when: on}\n  b: rmsnorm", "unknown-node", "y"),
        ("  a: {graph: {f: relu}, outputs: {z: g}, when: on}\n  b: rmsnorm", "unknown-node", "g"),
        ("  a: {repeat: n, graph: {f: {type: relu, in: y}}, when: on}\n  b: rmsnorm", "unknown-node", "y"),
        ("  a: {type: relu, in: b.z, when: on}\n  b: {type: rmsnorm, in: x}", "unknown-port", "z"),
        ("  a: {type: linear, out: 8, tie: c, when: on}\n  b: rmsnorm", "unknown-node", "c"),
    ],
)  # fmt: skip
def test_the_names_in_what_is_left_out_are_checked(graph: str, code: str, name: str) -> None:
    """Each at its place; they would be wrong whenever the node is there."""
    found = [each for each in composer.load(HEAD + graph).check() if each.code != "unused-param"]
    assert [each.code for each in found] == [code]
    assert f"`{name}`" in found[0].message


def test_what_is_left_out_changes_nothing_of_what_is_left() -> None:
    """An optional output that only it reads is not computed, and a group gets no input for it."""
    graph = (
        "  a: {type: attention, heads: 4, in: x}\n  g:\n    in: a\n    graph:\n      one: relu\n"
        "      two: {type: add, in: [one, x], when: on}\n    outputs: {y: one}\n"
        "  c: {type: softmax, in: a.weights, when: on}\n  d: {type: linear, out: n + 4, bias: on, in: g}"
    )
    with_them = composer.load(HEAD + graph)
    without = composer.load(HEAD + "\n".join(line for line in graph.splitlines() if "when" not in line))
    assert with_them.expand() == without.expand()


MIXED = """recipe: mixed
task: causal_lm
params: {dense: 2}
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 64, dim: 16}
  layers:
    repeat: 5
    graph:
      attn: {type: residual, norm: rmsnorm, body: {type: attention, heads: 2, mask: causal}}
      dense: {type: residual, norm: rmsnorm, body: {type: gated_ffn, hidden: 24}, when: layer < dense}
      experts:
        type: residual
        norm: rmsnorm
        body: {type: moe, experts: 8, expert: {type: gated_ffn, hidden: 8}, router: {type: top_k_router, top_k: 2}}
        when: layer >= dense
  norm: rmsnorm
  head: {type: linear, out: 64}
outputs: {logits: head}
losses:
  balance: {in: balance}
"""


def test_dense_layers_then_experts() -> None:
    """With plain `when`: the figure has the router, the experts and the active parameters, and the loss reads the layers that
    have experts.
    """
    one = '  balance: {type: weighted_sum, in: "layers(2:).experts.body.load_balancing"}\n'
    recipe = composer.load(MIXED.replace("outputs:", one + "outputs:"))
    assert recipe.check() == []
    names = [each.name for each in parameters(recipe.program)]
    assert [f"layers.{i}.dense.body.up.weight" in names for i in range(5)] == [True, True, False, False, False]
    assert [f"layers.{i}.experts.body.gate.weight" in names for i in range(5)] == [False, False, True, True, True]
    words = recipe.draw("block").svg()
    assert "Router" in words and "Expert" in words and "active" in words
    for level in LEVELS:
        recipe.draw(level).svg()
    again = composer.load(recipe.expand())
    assert [each.name for each in parameters(again.program)] == names


@pytest.mark.parametrize(("count", "found"), [(40, set()), (120, {"too-deep"})])
def test_a_long_way_through_what_is_left_out_is_refused(count: int, found: set[str]) -> None:
    """From group to group, each of which passes on what the next one does."""
    lines = [
        f"  g{i}: {{in: x, graph: {{n: {{type: relu, in: {f'g{i + 1}.n' if i < count - 1 else 'x'}, when: false}}, m: relu}}}}"
        for i in range(count)
    ]
    ends = [
        f"  first: {{type: linear, out: 8, in: g0.n}}\n  end: {{type: add, in: [{', '.join(f'g{i}' for i in range(count))}]}}"
    ]
    text = (
        'recipe: far\ninputs: {x: "float[batch, time, 16]"}\ngraph:\n'
        + "\n".join([*lines, *ends])
        + "\noutputs: {y: first, z: end}\n"
    )
    assert {each.code for each in composer.load(text).check() if each.severity == "error"} == found


def test_a_scan_takes_its_length_from_what_is_there() -> None:
    """An optional input, written first, of which a step gets nothing where it is absent."""
    recipe = composer.load("""
recipe: counted
inputs: {seen: "bool[batch, time]?", x: "float[batch, time, 8]", start: "float[batch, 8]"}
graph:
  steps:
    scan: time
    in: {h: start, flag: seen, step: x}
    graph: {sum: {type: add, in: [h, step]}}
    outputs: {h: sum}
""")
    x, start = torch.randn(2, 5, 8), torch.randn(2, 8)
    model = recipe.compile()
    torch.testing.assert_close(model(x=x, start=start).steps, x.cumsum(1) + start[:, None])
    torch.testing.assert_close(model(torch.ones(2, 5, dtype=torch.bool), x, start).steps, x.cumsum(1) + start[:, None])


OPTIONAL = """
recipe: absent
inputs: {{x: "float[batch, time, 8]", kept: "bool[batch, time]?"}}
blocks:
  inner:
    inputs: {{x: "float[batch, time, dim]", real: "bool[batch, time]?"}}
    graph: {{look: {{type: attention, heads: 2, mask: valid(real), in: x}}}}
  outer:
    inputs: {{x: "float[batch, time, dim]", real: "bool[batch, time]?"}}
    graph:
{graph}
graph: {{a: {{type: linear, out: 8, in: x}}, b: {{type: outer, in: {{x: a{given}}}}}}}
"""
WAYS_ON = {
    "a block": "a: {type: inner, in: {x: x, real: real}}",
    "a condition": "a: {type: inner, in: {x: x, real: real if 1 > 2 else none}}",
    "what is left out": "m: {compute: not real, when: false}\n      a: {type: inner, in: {x: x, real: m}}",
    "a group": "a: {in: {x: x, real: real}, graph: {f: {type: inner, in: {x: x, real: real}}}}",
    "a repeat": "a: {repeat: 2, in: {x: x, real: real}, graph: {f: {type: inner, in: {x: x, real: real}}}}",
}


@pytest.mark.parametrize("given", ["", ", real: none", ", real: kept if 1 > 2 else none"])
@pytest.mark.parametrize("graph", WAYS_ON.values(), ids=WAYS_ON)
def test_what_is_not_given_is_handed_on_as_nothing(graph: str, given: str) -> None:
    """Whatever is between an optional input and the port that may be empty."""
    recipe = composer.load(OPTIONAL.format(graph=f"      {graph}", given=given))
    assert [each for each in recipe.check() if each.severity == "error"] == []
    again = composer.load(recipe.expand())
    assert [each for each in again.check() if each.severity == "error"] == [] and recipe.diff(again).equal
    (value, *_) = recipe.compile(seed=1)(torch.zeros(2, 3, 8))
    assert value.shape == (2, 3, 8)


def test_what_is_found_to_be_nothing_too_late_is_refused() -> None:
    """A node below that is left out: the graph between has been written with such an input."""
    graph = "      a: {type: inner, in: {x: x, real: m}}\n      m: {compute: not real, when: false}\n      z: {type: relu, in: a}"
    found = composer.load(OPTIONAL.format(graph=graph, given="")).check()
    errors = [(each.code, each.message) for each in found if each.severity == "error"]
    assert errors == [("missing-port", "port real of inner cannot be empty")]


READS = """recipe: r
inputs: {x: "float[batch, time, 4]"}
blocks:
  down:
    params: {width: {type: TYPE, required: true}}
    inputs: {x: "float[batch, time, dim]"}
    graph:
      conv: {type: linear, out: OUT}
graph:
  stages:
    repeat: 2
    as: stage
    graph:
      down: {type: down, width: VALUE WHEN}
      n: layernorm
"""
VALUES = ["a b -> c", "[1, 2 3]", "{type: linear, out: 3 3}", '"a b"', "4 if stage 3 else 2", "zzz", "layernorm", "none"]


@pytest.mark.parametrize("out", ["width", "2 * width", "width if width > 1 else 3", "width + len(width)", "width(0)"])
@pytest.mark.parametrize("kind", ["int", "block", "string", "list"])
def test_a_mistake_in_a_value_is_told_whoever_reads_it_first(kind: str, out: str) -> None:
    """A pass whose node is left out comes before one that has it; the mistakes are those of passes that all have it."""
    for value in VALUES:
        text = READS.replace("TYPE", kind).replace("OUT", out).replace("VALUE", value)
        every, second = (mistakes(text.replace("WHEN", when)) for when in ("", ", when: stage > 0"))
        assert every == second, value


def mistakes(text: str) -> set[tuple[str, str, int, int]]:
    """Return the code, the message and the place of each error."""
    try:
        found = composer.load(text).check()
    except composer.RecipeError as error:
        found = list(error.diagnostics)
    return {(each.code, each.message, each.span.line, each.span.column) for each in found if each.severity == "error"}


LOSSES = """recipe: ahead
task: causal_lm
params: {ahead: true}
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 16}
  states: {type: gru, hidden: 16}
  after: {type: linear, out: 11, when: ahead}
  head: {type: linear, out: 11, in: states}
outputs: {logits: head}
losses:
  after: {type: cross_entropy, in: AFTER, target: tokens, shift: 2, weight: 0.3, when: ahead}
"""


def test_a_loss_is_left_out() -> None:
    """With what it alone reads: the model and its loss are those of a recipe without it."""
    recipe = composer.load(LOSSES.replace("AFTER", "after"))
    without = recipe.with_overrides({"ahead": False})
    plain = composer.load(
        "\n".join(line for line in LOSSES.splitlines() if "after" not in line and not line.startswith("losses"))
    )
    assert recipe.check() == without.check() == []
    tokens = torch.randint(11, (2, 7), generator=torch.Generator().manual_seed(0))
    with_it, found, expected = (
        composer.loss(each.compile(seed=0), {"tokens": tokens}).by_name
        for each in (recipe, without, plain.with_overrides({"ahead": None}))
    )
    assert {*with_it} == {"causal_lm", "after"} and found == expected
    assert "losses" not in without.expand() and without.summary().costs == plain.with_overrides({"ahead": None}).summary().costs


@pytest.mark.parametrize(
    ("after", "settings", "code", "name"),
    [
        ("aftr", {"ahead": False}, "unknown-node", "aftr"),
        ("after", {"losses.after.when": 3}, "not-a-boolean", "3"),
        ("after", {"graph.after.when": None, "ahead": False}, "dead-node", "after"),
    ],
)
def test_what_is_wrong_with_a_loss_that_is_left_out_is_told(
    after: str, settings: dict[str, object], code: str, name: str
) -> None:
    """Its names are checked, and what nothing else reads is dead."""
    found = composer.load(LOSSES.replace("AFTER", after), settings).check()
    assert [each.code for each in found if each.code != "dead-node" or code == "dead-node"] == [code]
    assert name in found[0].message
