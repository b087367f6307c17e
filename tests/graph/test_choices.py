"""Which block a node or a slot holds may be chosen: by name, by type, or between blocks that are written out."""

import pytest

import composer
from composer.graph.parameters import parameters

HEAD = """recipe: choices
params: {first: 2, norm: {type: block, default: {type: rmsnorm, eps: 1e-3}}}
inputs: {x: "float[batch, time, 16]"}
graph:
  start: {type: norm, in: x}
"""
EXPERTS, DENSE = "{type: moe, experts: 4, expert: {type: ffn, hidden: 4}}", "{type: gated_ffn, hidden: 8}"
SAME = {
    "blocks in a node": (
        f"if: layer >= first, then: {EXPERTS}, else: {DENSE}",
        f"{EXPERTS[1:-1]}, when: layer >= first",
        f"{DENSE[1:-1]}, when: layer < first",
    ),
    "blocks that read a node": (
        f"if: layer >= first, then: {EXPERTS}, else: {DENSE}, in: norm_of_pass",
        f"{EXPERTS[1:-1]}, in: norm_of_pass, when: layer >= first",
        f"{DENSE[1:-1]}, in: norm_of_pass if layer < first else n0, when: layer < first",
    ),
    "a type": (
        "type: ffn if layer >= first else gated_ffn, hidden: 8",
        "type: ffn, hidden: 8, when: layer >= first",
        "type: gated_ffn, hidden: 8, when: layer < first",
    ),
    "a choice in a choice": (
        f"if: layer >= first, then: {{if: layer > 2, then: {EXPERTS}, else: none}}, else: {DENSE}",
        f"{EXPERTS[1:-1]}, when: layer > 2",
        f"{DENSE[1:-1]}, when: layer < first",
    ),
}


def repeated(*nodes: str) -> str:
    """Return a recipe of four passes with some nodes."""
    body = "".join(f"      n{number}: {{{node}}}\n" for number, node in enumerate(nodes))
    return f"{HEAD}  layers:\n    repeat: 4\n    graph:\n      norm_of_pass: {{type: norm, in: input}}\n{body}"


@pytest.mark.parametrize(("choice", "then", "otherwise"), SAME.values(), ids=SAME)
def test_a_choice_is_the_block_that_is_chosen(choice: str, then: str, otherwise: str) -> None:
    """In each pass its own: the same model as with a node for each block, of which one is left out."""
    chosen, apart = composer.load(repeated(choice)), composer.load(repeated(then, otherwise))
    assert chosen.check() == []
    shapes = [sorted(each.parameter.shape for each in parameters(recipe.program)) for recipe in (chosen, apart)]
    assert shapes[0] == shapes[1]
    again = composer.load(chosen.expand())
    assert [each.name for each in parameters(again.program)] == [each.name for each in parameters(chosen.program)]


def test_a_slot_takes_a_choice() -> None:
    """With fields of their own for each block, also in a param."""
    text = repeated("type: residual, body: {if: layer >= first, then: " + EXPERTS + ", else: " + DENSE + "}")
    names = [each.name for each in parameters(composer.load(text).program)]
    assert "layers.1.n0.body.up.weight" in names
    assert "layers.2.n0.body.expert.up.weight" in names
    held = HEAD.replace(
        "default: {type: rmsnorm, eps: 1e-3}", "default: {if: first > 3, then: rmsnorm, else: {type: layernorm, bias: false}}"
    )
    (norm,) = composer.load(held).program.root.nodes
    assert norm.part.kind == "layernorm"  # type: ignore[union-attr]  # a block


def test_what_a_param_holds_is_wired_and_left_out_where_it_is_named() -> None:
    """`type` names the param; `in`, `when`, `tie` and `trainable` belong to the node."""
    text = (
        HEAD + "  a: {type: norm, in: x, trainable: false}\n  b: {type: norm, in: {x: start}, when: first > 2}\n"
        "  c: {type: norm, in: x, tie: a}\n  d: {type: add, in: [start, a, b, c]}\n"
    )
    recipe = composer.load(text)
    nodes = recipe.program.root.by_name
    assert [str(ref) for wire in nodes["d"].node.wires for ref in wire.refs] == ["start", "a", "start", "c"]  # type: ignore[union-attr]
    table = {each.name: each for each in parameters(recipe.program)}
    assert not table["a.weight"].trainable and table["c.weight"].tied_to == "a.weight" and "b.weight" not in table


def test_an_empty_name_is_passed_by() -> None:
    """What it is given takes its place."""
    text = HEAD.replace("default: {type: rmsnorm, eps: 1e-3}", "default: none") + "  y: {type: linear, out: first, in: start}\n"
    (node,) = composer.load(text).program.root.nodes
    assert [str(wire.refs[0]) for wire in node.node.wires] == ["x"]  # type: ignore[union-attr]


def test_a_path_leads_into_a_choice() -> None:
    """As `--set` and `extends` write it."""
    text = repeated(SAME["blocks in a node"][0])
    recipe = composer.load(text, overrides=["layers.n0.else.hidden=24"])
    shapes = {each.name: each.parameter.shape for each in parameters(recipe.program)}
    assert shapes["layers.0.n0.up.weight"] == (24, 16)


@pytest.mark.parametrize(
    ("graph", "unused"),
    [
        ("y: {if: dense, then: {type: plain}, else: {type: ffn, hidden: 8}}", ["other"]),
        ("y: {type: plain if dense else ffn8}", ["other"]),
        ("y: {type: other, when: dense}\n  z: {type: ffn, hidden: 8}", []),
        ("y: {if: dense, then: {graph: {a: {type: other}}}, else: {type: ffn, hidden: 8}}", []),
        ("y: {type: ffn, hidden: 8, when: not dense}", ["plain", "other"]),
    ],
)
def test_a_block_in_a_branch_that_is_not_taken_is_used(graph: str, unused: list[str]) -> None:
    """Itself, by its name, and through another block; `other` names `plain`."""
    text = f"""
recipe: example
params: {{dense: false}}
blocks:
  plain: {{inputs: {{x: "float[..., dim]"}}, graph: {{net: {{type: linear, out: dim}}}}}}
  other: {{inputs: {{x: "float[..., dim]"}}, graph: {{net: {{type: plain}}}}}}
  ffn8: {{inputs: {{x: "float[..., dim]"}}, graph: {{net: {{type: ffn, hidden: 8}}}}}}
inputs: {{x: "float[batch, time, 8]"}}
graph:
  {graph}
"""
    found = [each.message for each in composer.load(text).check() if "ffn8" not in each.message]
    assert found == [f"nothing uses the block `{name}`" for name in unused]
