"""The steps from the typed graph to source, each by itself: names, flattening, hoisting, classes, statements, copied source."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Callable

import pytest
import torch

import composer
from blocks.activations.self_gated import Silu
from blocks.norms.rmsnorm import RMSNorm
from composer.diagnostics import Source, Span
from composer.graph.flatten import flatten
from composer.graph.typed import TypedBlock, TypedProgram, TypedRepeat
from composer.lower.emit.block_source import HEADER, CopiedSource
from composer.lower.emit.identifiers import attribute, camel, one_line, parameter_names, safe
from composer.lower.emit.skeletons import Classes
from composer.lower.emit.statements import Statement, StatementWriter, needed
from composer.lower.passes.hoist import Hoisting
from composer.lower.passes.node_queries import Key

HEAD = 'recipe: example\ninputs: {x: "float[batch, time, 8]"}\ngraph:\n'
NOWHERE = Span(Source("r.yaml", "x"), 1, 1, 1, 2)


def typed(nodes: str) -> TypedProgram:
    return composer.load(HEAD + nodes).program


# -- names


@pytest.mark.parametrize("name", ["class", "sum", "self", "torch", "None"])
def test_safe_name_shadows_nothing(name: str) -> None:
    """No keyword, no builtin, nothing that the code around it uses."""
    found = safe(name)
    assert found.isidentifier() and not keyword.iskeyword(found) and found not in dir(builtins)
    assert found.rstrip("_") == name


def test_safe_name_is_none_that_is_taken() -> None:
    """Others stay as they are."""
    assert safe("a", {"a", "a_"}) == "a__"
    assert safe("a", {"b"}) == "a"


def test_parameters_of_a_class_have_names_of_their_own() -> None:
    """The stream is `x`, unless an input is called so."""
    assert parameter_names(["input", "memory", "del"]) == {"input": "x", "memory": "memory", "del": "del_"}
    assert len(set(parameter_names(["input", "x", "x_"]).values())) == 3


def test_attribute_path_reads_what_the_module_holds() -> None:
    """Passes by their number, and names of torch's own past them."""
    model = torch.nn.Module()
    model.layers = torch.nn.ModuleList([torch.nn.Module(), torch.nn.Module()])
    model.layers[1].add_module("up", torch.nn.ReLU())
    model.layers[1]._modules["train"] = torch.nn.Tanh()
    assert isinstance(eval(attribute("layers.1.up"), {"self": model}), torch.nn.ReLU)
    assert isinstance(eval(attribute("layers.1.train"), {"self": model}), torch.nn.Tanh)


def test_class_names_and_comments_are_of_one_piece() -> None:
    """Whatever is written in the recipe."""
    assert camel("gpt-2_mini") == "Gpt2Mini"
    assert camel("_") == "Model"
    assert one_line("a\nimport os\u2028b") == "a\\nimport os\\u2028b"


# -- flatten


def test_flattened_residual_stands_in_the_graph_around_it() -> None:
    """Its parts keep its name before theirs, and nothing reads the group any more."""
    flat = flatten(typed("  a: relu\n  r: {type: residual, norm: rmsnorm, body: tanh}\n  b: silu\n")).root
    names = [node.name for node in flat.nodes]
    assert names[0] == "a" and names[-1] == "b"
    assert names[1:-1] and all(name.startswith("r.") for name in names[1:-1])
    read = {ref.node for node in flat.nodes for wire in node.node.wires for ref in wire.refs}  # type: ignore[union-attr]  # blocks
    assert read <= {"x", *names}


def test_flattening_keeps_groups_that_a_person_wrote() -> None:
    """They become modules of their own."""
    flat = flatten(typed("  g: {graph: {a: relu, b: tanh}}\n")).root
    assert [node.name for node in flat.nodes] == ["g"]


def test_equal_passes_stay_one_graph_when_they_are_flattened() -> None:
    """So that lowering costs what the different ones cost."""
    (repeat,) = flatten(typed("  a: {repeat: 3, graph: {r: {type: residual, norm: rmsnorm, body: tanh}}}\n")).root.nodes
    assert isinstance(repeat, TypedRepeat)
    assert len({id(one) for one in repeat.passes}) == 1
    assert all(isinstance(node, TypedBlock) for node in repeat.passes[0].nodes)


# -- hoist

ATTENTION = "{type: attention, heads: 2, mask: MASK}"


def test_equal_masks_of_a_model_are_prepared_once() -> None:
    """In the outermost graph, for a block there and for all passes of a repeat."""
    causal = ATTENTION.replace("MASK", "causal")
    found = Hoisting(typed(f"  a: {causal}\n  layers: {{repeat: 3, graph: {{b: {causal}}}}}\n")).root()
    masks = [name for name, need in found.local.items() if need.label == "mask"]
    assert len(masks) == 1
    assert found.arguments["a"]["mask"].node == masks[0]
    assert all(not inner.local for inner in found.inner.values())


def test_masks_that_differ_are_prepared_each() -> None:
    """Two of them for three blocks."""
    nodes = "".join(f"  a{n}: {ATTENTION.replace('MASK', mask)}\n" for n, mask in enumerate(["causal", "window(3)", "causal"]))
    found = Hoisting(typed(nodes)).root()
    assert len([need for need in found.local.values() if need.label == "mask"]) == 2


# -- skeleton


def test_layers_of_one_form_are_instances_of_one_class() -> None:
    """What differs is an argument of its constructor."""
    nodes = "  a: {graph: {m: {type: linear, out: 5}}}\n  b: {graph: {m: {type: linear, out: 7}}}\n  c: {graph: {m: relu}}\n"
    classes = Classes(flatten(typed(nodes))).all()
    counts = sorted(len(written.instances) for written in classes)
    assert counts == [1, 1, 2]
    (shared,) = (written for written in classes if len(written.instances) == 2)
    assert shared.holes
    assert len(classes[-1].instances[0].attributes) == 3  # the model's own class is the last


# -- statements


def statement(gives: str, text: str, *uses: str) -> Statement:
    """Return a call that gives one value, its arguments written by their names."""
    keys: list[Key] = [(use, 0, None) for use in uses]

    def write(name: Callable[[Key], str]) -> str:
        return text.format(*map(name, keys))

    return Statement([(gives, 0, None)], keys, write, NOWHERE, gives)


def lines(statements: list[Statement], result: str) -> list[str]:
    """Return the body of a forward that is given `x` and returns one value."""
    writer = StatementWriter([(("x", 0, None), "x")], False, [(result, 0, None)])
    return [text for text, _, _ in writer.write(statements, lambda name: name((result, 0, None)), {}, ())]


def test_statements_compute_what_they_say() -> None:
    """Run as Python, with names used again and values deleted."""
    body = lines(
        [
            statement("a", "{0} + 1", "x"),
            statement("b", "{0} * 10", "a"),
            statement("c", "{0} - {1}", "b", "a"),
            statement("d", "{0} * {0}", "c"),
        ],
        "d",
    )
    space: dict[str, Callable[[int], int]] = {}
    exec("def f(x):\n" + "\n".join(f"    {line}" for line in body), space)
    assert space["f"](2) == (30 - 3) ** 2


def test_value_is_deleted_after_its_last_use() -> None:
    """Or its name is used again for what was computed of it; what the caller holds is not deleted."""
    body = lines([statement("a", "{0} + 1", "x"), statement("b", "{0} * 2", "a"), statement("c", "{0} - {1}", "b", "a")], "c")
    assert body == ["x = x + 1", "y = x * 2", "return y - x"]
    both = [statement(name, f"{name}({{0}})", "x") for name in "ab"]
    body = lines([*both, statement("c", "{0} - {1}", "a", "b"), statement("d", "-{0}", "c")], "d")
    assert body == ["y = a(x)", "x = b(x)", "y = y - x", "del x", "return -y"]


def test_statements_that_some_values_need_are_found() -> None:
    """With all that those read, and the updates of states; not what nothing reads."""
    one, two, other, unread = statement("a", "", "x"), statement("b", "", "a"), statement("c", "", "a"), statement("d", "", "c")
    unread.results = [None]
    assert needed([("b", 0, None)], [one, two, other, unread]) == {one, two}
    update = Statement([], [("c", 0, None)], lambda _: "", NOWHERE, "s", updates=True)
    assert needed([("a", 0, None)], [one, two, other, unread, update]) == {one, other, update}


def test_statements_that_nothing_needs_are_skipped_with_what_they_read() -> None:
    """So that a forward never reads what it has skipped."""
    head, ahead, unread = statement("a", "head({0})", "x"), statement("b", "ahead({0})", "x"), statement("c", "{0} + 1", "b")
    unread.results = [None]
    keys: list[Key] = [("a", 0, None), ("b", 0, None)]
    writer = StatementWriter([(("x", 0, None), "x")], True, keys)
    body = writer.write([ahead, unread, head], lambda name: ", ".join(map(name, keys)), {}, {keys[1]})
    assert [text for text, _, _ in body] == [
        "y = head(x)",
        "if self.cache is None:  # not while a text is being written",
        "    z = ahead(x)",
        "    _ = z + 1",
        "return y, z",
    ]


# -- copied source


def test_copied_block_needs_nothing_but_torch() -> None:
    """It computes what torch's own does."""
    copied = CopiedSource({})
    name = copied.part(Silu)
    assert not any("blocks" in line or "composer" in line for line in copied.imports)
    code = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\nfrom typing import Any\n"
    space: dict[str, object] = {}
    exec(code + "\n".join(sorted(copied.imports)) + HEADER + "\n\n".join(copied.pieces.values()), space)
    x = torch.linspace(-3, 3, 7, dtype=torch.float64)
    torch.testing.assert_close(space[name]()(x), torch.nn.functional.silu(x))  # type: ignore[operator]  # a class


def test_part_is_copied_once() -> None:
    """Asked for again, it has its name."""
    copied = CopiedSource({})
    first = copied.part(RMSNorm)
    count = len(copied.pieces)
    assert copied.part(RMSNorm) == first
    assert len(copied.pieces) == count
