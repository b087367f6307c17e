"""What a picture leaves unsaid, in words: what the model is given, and all that is set in a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, TypeAlias, assert_never

from blocks.core import Builtin, Part, fields, number
from blocks.masks.mask import Mask
from composer.graph.anatomy import TYPED, regions, slots
from composer.graph.describe import edge_names, kind_of, phrase
from composer.graph.ir import SlotNode
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.visit import Fold, Inside, every_node
from composer.language.expressions.evaluator import evaluate


def described(typed: TypedProgram) -> str:
    """Return what there is to say of a whole model beside its nodes."""
    program = typed.untyped
    said = [f"task {program.recipe.task}"] if program.recipe.task else []
    for one in program.inputs:
        default = f" = {evaluate(one.default.expression, program.params)}" if one.default else "?" if one.optional else ""
        said.append(f"input {one.name} {typed.written_inputs[one.name]}{default}")
    said += [f"positions of {axis} from {ref}" for axis, ref in program.positions]
    said += [f"gives {name}" for name, _ in program.graph.outputs]
    said += [f"dropout {text}" for text in dropouts(typed.root)]
    return "; ".join(said)


Texts: TypeAlias = tuple[str, ...]


def dropouts(graph: TypedGraph) -> Texts:
    """Return where and how much there is, also where no wire has room to say it or it is 0; of a repeat, in which passes."""
    return Fold(TYPED, _dropouts, lambda _, found: tuple(chain.from_iterable(found))).graph(graph)


def _dropouts(node: TypedNode, inside: Inside[TypedGraph, Texts, Texts]) -> Texts:
    if isinstance(node, TypedBlock):
        rate = node.part.drop_rate()
        return () if rate is None else (f"{node.name} {number(rate)}",)
    where: dict[str, list[int]] = {}
    for several, texts in inside.regions:
        for text in texts:
            where.setdefault(f"{node.name}.{text}", []).extend(region.number or 0 for region in several)
    count = len(regions(node))
    return tuple(text if len(passes) == count else f"{text} in {spans(sorted(passes))}" for text, passes in where.items())


def settings(node: TypedBlock) -> Iterator[str]:
    """Yield what differs in a block from what it would be, whether the picture shows it or not; of what fills its slots, all."""
    yield from own_settings(node)
    yield from (f"{name} {whole(filled)}" for name, filled in slots(node))


def own_settings(node: TypedBlock) -> Iterator[str]:
    """Yield the same without what fills its slots."""
    edges, written = edge_names(node), dict(node.node.fields)
    for name, field in fields(type(node.part)).items():
        value = getattr(node.part, name)
        follows = bool(field.derived) and name not in written
        if not follows and not isinstance(written.get(name), SlotNode) and value != field.default:
            yield setting(name, value, edges)
    for wire in node.node.wires:
        if len(wire.refs) > 1 and node.part.inline(node.sizes) not in ("{xs: + }", "{xs: * }"):  # whose order means nothing
            yield f"{wire.port} of {' then '.join(map(str, wire.refs))}"
        else:
            yield from (f"{ref} {times} times" for ref, times in Counter(map(str, wire.refs)).items() if times > 1)


def measured(node: TypedBlock) -> Iterator[str]:
    """Yield what a block only reads the sizes of."""
    for wire in node.node.wires:
        if wire.port in node.part.shape_only_inputs:
            yield from (f"sizes of {ref}" for ref in wire.refs)


def setting(name: str, value: Any, edges: Mapping[str, str]) -> str:
    """Return a field in words, with every digit."""
    match value:
        case bool() | Mask() | Builtin():
            return phrase(name, value, edges)
        case int() | float():
            return f"{name} {number(value)}"
        case Part():
            below = fields(type(value)).items()
            inner = [setting(key, held, edges) for key, field in below if (held := getattr(value, key)) != field.default]
            return f"{name} {value.kind}" + (f" ({', '.join(inner)})" if inner else "")
        case _:
            return phrase(name, value, edges)


def whole(node: TypedNode) -> str:
    """Return a node that no picture shows by itself, with all that is in it."""
    return Fold(TYPED, _whole, _each_node, every_node).node(node, node.name)


def _whole(node: TypedNode, inside: Inside[TypedGraph, str, str]) -> str:
    match node:
        case TypedBlock():
            inner = [*own_settings(node), *(f"{name} {filled}" for name, filled in inside.slots)]
        case TypedGroup() | TypedScan():
            inner = list(inside.passes())
        case TypedRepeat(passes=passes):
            kinds: dict[str, list[int]] = {}
            for several, text in inside.regions:
                kinds.setdefault(text, []).extend(region.number or 0 for region in several)
            inner = (
                [f"{len(passes)} × {text}" for text in kinds]
                if len(kinds) == 1
                else [f"{spans(sorted(same))}: {text}" for text, same in kinds.items()]
            )
        case _:
            assert_never(node)
    return kind_of(node) + (f" ({', '.join(inner)})" if inner else "")


def _each_node(graph: TypedGraph, texts: Sequence[str]) -> str:
    """Return every node of a graph, with what it reads."""
    said = []
    for node, text in zip(graph.nodes, texts, strict=True):
        wires = [] if isinstance(node, TypedRepeat) else node.node.wires
        reads = ", ".join(str(ref) for wire in wires for ref in wire.refs)
        said.append(f"{node.name} = {text}" + (f" of {reads}" if reads else ""))
    return "; ".join(said)


def spans(numbers: Sequence[int]) -> str:
    """Return rising numbers in few words: `0–4, 6`."""
    runs = [[number for _, number in same] for _, same in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
