"""What a picture leaves unsaid, in words: what the model is given, and all that is set in a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from blocks.core import Builtin, Part, fields, number
from blocks.masks.mask import Mask
from composer.graph.describe import edge_names, kind_of, phrase
from composer.graph.ir import SlotNode
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.language.expressions.evaluator import evaluate


def described(typed: TypedProgram) -> str:
    """Return what there is to say of a whole model beside its nodes."""
    program = typed.program
    said = [f"task {program.recipe.task}"] if program.recipe.task else []
    for one in program.inputs:
        default = f" = {evaluate(one.default.expression, program.params)}" if one.default else "?" if one.optional else ""
        said.append(f"input {one.name} {typed.inputs[one.name]}{default}")
    said += [f"positions of {axis} from {ref}" for axis, ref in program.positions]
    said += [f"gives {name}" for name, _ in program.graph.outputs]
    said += [f"dropout {text}" for text in dropouts(typed.root, "")]
    return "; ".join(said)


def dropouts(graph: TypedGraph, path: str) -> Iterator[str]:
    """Yield where and how much there is, also where no wire has room to say it; of a repeat, in which passes."""
    for node in graph.nodes:
        match node:
            case TypedBlock() if (rate := node.part.drop_rate()) and not node.node.dropped:
                yield f"{path}{node.name} {number(rate)}"
            case TypedGroup() | TypedScan():
                yield from dropouts(node.graph, f"{path}{node.name}.")
            case TypedRepeat(passes=passes):
                found: dict[str, list[int]] = {}
                for index, one in enumerate(passes):
                    for text in dropouts(one, f"{path}{node.name}."):
                        found.setdefault(text, []).append(index)
                yield from (text if len(where) == len(passes) else f"{text} in {spans(where)}" for text, where in found.items())


def settings(node: TypedBlock) -> Iterator[str]:
    """Yield what differs in a block from what it would be, whether the picture shows it or not; of what fills its slots, all."""
    edges, written = edge_names(node), dict(node.node.fields)
    for name, field in fields(type(node.part)).items():
        value = getattr(node.part, name)
        follows = bool(field.derived) and name not in written
        if not follows and not isinstance(written.get(name), SlotNode) and value != field.default:
            yield setting(name, value, edges)
    for wire in node.node.wires:
        if len(wire.refs) > 1 and node.part.inline() not in ("{xs: + }", "{xs: * }"):  # whose order means nothing
            yield f"{wire.port} of {' then '.join(map(str, wire.refs))}"
    for name, filled in node.slots.items():
        if filled is not None:
            yield f"{name} {whole(filled)}"


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
    return phrase(name, value, edges)


def whole(node: TypedNode) -> str:
    """Return a node that no picture shows by itself, with all that is in it."""
    match node:
        case TypedGroup(graph=graph) | TypedScan(graph=graph):
            inner = [inside(graph)]
        case TypedRepeat(passes=passes):
            kinds: dict[str, list[int]] = {}
            for index, graph in enumerate(passes):
                kinds.setdefault(inside(graph), []).append(index)
            inner = (
                [f"{len(passes)} × {text}" for text in kinds]
                if len(kinds) == 1
                else [f"{spans(same)}: {text}" for text, same in kinds.items()]
            )
        case TypedBlock():
            inner = list(settings(node))
    return kind_of(node) + (f" ({', '.join(inner)})" if inner else "")


def inside(graph: TypedGraph) -> str:
    """Return every node of a graph, with what it reads."""
    said = []
    for node in graph.nodes:
        wires = [] if isinstance(node, TypedRepeat) else node.node.wires
        reads = ", ".join(str(ref) for wire in wires for ref in wire.refs)
        said.append(f"{node.name} = {whole(node)}" + (f" of {reads}" if reads else ""))
    return "; ".join(said)


def spans(numbers: Sequence[int]) -> str:
    """Return rising numbers in few words: `0–4, 6`."""
    runs = [[number for _, number in same] for _, same in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
