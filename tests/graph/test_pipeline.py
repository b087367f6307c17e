"""The passes: each does what its docstring shows."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator

import pytest

from blocks.core import standard
from composer.diagnostics import Source
from composer.graph.passes import PASSES, compile_graph
from composer.graph.passes.compilation import Compilation, GraphPass
from composer.graph.passes.expand.builders import GraphBuilder
from composer.graph.passes.roll_layers.roll_layers import roll_layers
from composer.graph.typed import TypedBlock, TypedRepeat
from composer.graph.visit import walk
from composer.language.recipe.ast import UseDecl
from composer.language.yaml.reader import read

HEAD = 'recipe: example\nlanguage: 1\n{params}inputs: {{x: "float[batch, time, 8]"}}\n'


def example(documented: Callable[..., object]) -> tuple[str, list[str]]:
    """Return what stands below `Before` and `After` in a docstring."""
    found = re.search(r"Before:\n(.*)After:\n(.*)", inspect.getdoc(documented) or "", re.DOTALL)
    assert found is not None, f"{documented.__name__} has no example"
    before, after = (textwrap.dedent(part) for part in found.groups())
    return before, after.strip().partition("\n\n")[0].splitlines()


def declarations(state: Compilation) -> Iterator[str]:
    """Yield each node as it was parsed."""
    assert state.parsed is not None
    for node in state.parsed.body.nodes:
        assert isinstance(node.what, UseDecl)
        yield f"{node.name}: a use of {node.what.part.kind} with {', '.join(entry.name for entry in node.what.fields)}"


def builders(state: Compilation) -> Iterator[str]:
    """Yield each node as it was written out."""
    assert state.expansion is not None
    for node in state.expansion.root.nodes.values():
        assert node.graph is not None
        yield f"{node.name}: a group of {', '.join(name for name, one in node.graph.nodes.items() if not one.elided)}"


def wires(state: Compilation) -> Iterator[str]:
    """Yield what each port of a node reads."""
    assert state.expansion is not None
    yield from _wires(state.expansion.root, "")


def _wires(graph: GraphBuilder, prefix: str) -> Iterator[str]:
    for node in graph.nodes.values():
        inside = node.graph.capture_wires if node.graph else {}
        for wire in (*node.wires.values(), *inside.values()):
            yield f"{prefix}{node.name}.{wire.port} reads {', '.join(map(str, wire.refs))}"
        if node.graph:
            yield from _wires(node.graph, f"{prefix}{node.name}.")


def order(state: Compilation) -> Iterator[str]:
    """Yield the nodes in one line."""
    assert state.program is not None
    yield ", ".join(node.name for node in state.program.graph.nodes)


def types(state: Compilation) -> Iterator[str]:
    """Yield the type of what each node gives."""
    assert state.typed is not None
    yield from (f"{visit.path}: {next(iter(visit.node.outputs.values()))}" for visit in walk(state.typed.root))


def united(state: Compilation) -> Iterator[str]:
    """Yield the passes of each repeat that are one object."""
    assert state.typed is not None
    for node in state.typed.root.nodes:
        assert isinstance(node, TypedRepeat)
        for graph in dict.fromkeys(node.passes):
            same = [str(index) for index, one in enumerate(node.passes) if one is graph]
            if len(same) > 1:
                yield f"{node.name}: passes {' and '.join(same)} are one"


def adapted(state: Compilation) -> Iterator[str]:
    """Yield the nodes with adapters."""
    assert state.typed is not None
    for visit in walk(state.typed.root):
        if isinstance(visit.node, TypedBlock) and visit.node.adapters:
            yield f"{visit.path} has {' and '.join(each.name for each in visit.node.parameters if each.role == 'adapter')}"


def diagnostics(state: Compilation) -> Iterator[str]:
    """Yield what is told."""
    yield from (f"{each.severity}[{each.code}]: {each.message}" for each in state.diagnostics)


SHOWN: dict[str, Callable[[Compilation], Iterator[str]]] = {
    "parse": declarations,
    "expand": builders,
    "resolve": wires,
    "freeze": order,
    "infer": types,
    "unite_passes": united,
    "adapt": adapted,
}
"""How a state is shown after a pass; without one, by what the pass has found."""


@pytest.mark.parametrize("each", PASSES, ids=lambda each: each.__name__)
def test_a_pass_does_what_its_docstring_shows(each: GraphPass) -> None:
    """A few lines of a recipe, and what has become of them."""
    before, after = example(each)
    text = HEAD.format(params="params: {width: 8}\n" if "width" in before else "") + before
    state = compile_graph(read(Source("example", text)), standard(), each)
    assert list(SHOWN.get(each.__name__, diagnostics)(state)) == after


def test_layers_written_one_by_one_become_a_repeat() -> None:
    """As the docstring shows."""
    before, after = example(roll_layers)
    typed = compile_graph(read(Source("example", HEAD.format(params="") + before)), standard()).typed
    assert typed is not None
    rolled, names = roll_layers(typed)
    (layers,) = rolled.root.nodes
    assert isinstance(layers, TypedRepeat)
    (inner,) = layers.passes[0].nodes
    assert [f"{layers.name}: {len(layers.passes)} passes of {inner.name}"] == after
    assert names.called("a2.body.up.weight") == "layers.1.a.body.up.weight"


OWN = """recipe: own
inputs: {{x: "float[batch, 8, high, wide]"}}
blocks:
  mix:
    inputs: {{a: "float[batch, channels, high, wide]", b: "float[batch, channels, high, wide]"}}
    graph:
      conv: {{type: conv2d, in: a, out: 8, kernel_size: 3, padding: 1}}
      sum: {{type: add, in: [conv, b]}}
    outputs: {{y: sum, z: conv}}
graph:
  layers:
    repeat: 2
    in: {{h: x, c: x}}
    graph:
      inner:
        repeat: 3
        in: {{h: h, c: c}}
        graph: {{m: {{type: mix, in: {{a: h, b: c}}}}{more}}}
        outputs: {{h: {given}, c: {carried}}}
    outputs: {{h: inner.h, c: inner.c}}
"""


@pytest.mark.parametrize(
    ("given", "carried", "more", "kinds"),
    [
        ("m.y", "m.z", "", [1, 1]),
        ("m.y", "h", "", [1, 1]),
        ("m.y", "c", "", [1, 1]),
        ("other", "m.z", ", other: {compute: m / (1 + abs(h))}", [1, 1]),
        ("other", "m.z", ", other: {compute: m + layer}", [1, 3]),
    ],
)
def test_passes_that_differ_in_names_of_axes_alone_are_one(given: str, carried: str, more: str, kinds: list[int]) -> None:
    """Of a block of one's own, which names an axis anew in each pass, in a repeat in a repeat."""
    text = OWN.format(given=given, carried=carried, more=more)
    state = compile_graph(read(Source("example", text)), standard())
    assert state.typed is not None and not [*diagnostics(state)]
    (layers,) = state.typed.root.nodes
    assert isinstance(layers, TypedRepeat)
    found = [len({*node.passes}) for graph in {*layers.passes} for node in graph.nodes if isinstance(node, TypedRepeat)]
    assert [len({*layers.passes}), *found] == kinds
