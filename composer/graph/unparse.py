"""A typed graph as a recipe again: no shorthands, every edge, every slot, every condition decided."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from blocks.core import Own, Part, fields, ports
from blocks.masks.mask import Mask
from blocks.primitives.state import State
from composer.graph.describe import mask, number
from composer.graph.fold import Unlike, fold
from composer.graph.ir import FieldValue, Graph, PartValue, Ref, SlotNode, Tie, Wire
from composer.graph.parameters import in_file_order
from composer.graph.renewal import SUFFIX
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan, is_renewal
from composer.language.document import Listing, Node
from composer.language.document import Mapping as YamlMapping
from composer.language.evaluate import as_float, evaluate
from composer.language.express import parse_expression
from composer.language.keys import LANGUAGE
from composer.language.recipe import InputDecl
from composer.language.write import Data, Remark, Value, data_of, write

IMPLIED = "implied"
SIZES = ("interleave", "reshape", "permute_rotary", "head_dim", "rotated", "offset")
"""What is a number in a rule of `weights`."""
INPUT = "input"
Names = Mapping[str, str]
"""How what a graph is given is called in its text: its inputs, by their names in the graph."""


def unparse(typed: TypedProgram) -> str:
    """The text of a recipe that means the same, with the values that its params had."""
    recipe = typed.program.recipe
    names = {name: name for name in typed.root.inputs}
    text: dict[str, Data] = {"recipe": recipe.name, "language": str(LANGUAGE)}
    text |= {key: value for key, value in (("doc", recipe.doc), ("source", recipe.source), ("task", recipe.task)) if value}
    if lengths := _lengths(typed):
        text["params"] = {name: number(length) for name, length in lengths.items()}
    text["inputs"] = {item.name: _input(item, typed) for item in typed.program.inputs}
    text["graph"] = {name: node for name, node in _nodes(typed.root, names).items() if name not in typed.program.losses.values()}
    text["outputs"] = {name: _reference(ref, typed.root, names) for name, ref in typed.root.graph.outputs}
    if typed.program.positions:
        text["positions"] = {axis: _reference(ref, typed.root, names) for axis, ref in typed.program.positions}
    if losses := typed.program.losses:
        text["losses"] = {name: _node(typed.root[node], typed.root, names) for name, node in losses.items()}
    if typed.program.init:
        text["init"] = {pattern: {how: number(value)} for pattern, how, value, _ in typed.program.init}
    if recipe.weights is not None:
        text["weights"] = {entry.key.text: _published(entry.value, typed.program.params) for entry in recipe.weights}
    return write(text)


def _lengths(typed: TypedProgram) -> dict[str, int]:
    """The params that are the lengths of inputs' axes, which have their names from them: blocks and scans name axes."""
    axes = (axis for type_ in typed.inputs.values() for axis in type_.axes)
    return {axis.name: axis.size for axis in axes if axis.name in typed.program.params and isinstance(axis.size, int)}


def _published(rules: Node, params: Mapping[str, Any]) -> Data:
    """The rules of one model type, with the values of params; its `config` sets those, of which none is left."""
    match rules:
        case YamlMapping():
            kept = [entry for entry in rules if entry.key.text != "config"]
            return {
                entry.key.text: _rules(entry.value, params) if entry.key.text == "rules" else data_of(entry.value)
                for entry in kept
            }
    return data_of(rules)


def _rules(rules: Node, params: Mapping[str, Any]) -> Data:
    match rules:
        case YamlMapping():
            return {entry.key.text: _operations(entry.value, params) for entry in rules}
    return data_of(rules)


def _operations(rule: Node, params: Mapping[str, Any]) -> Data:
    """What one rule does, or a part of it: sizes are expressions."""
    match rule:
        case YamlMapping():
            return {
                entry.key.text: _sizes(entry.value, params) if entry.key.text in SIZES else data_of(entry.value) for entry in rule
            }
    return data_of(rule)


def _sizes(node: Node, params: Mapping[str, Any]) -> Data:
    match node:
        case YamlMapping():
            return _operations(node, params)
        case Listing(items=items):
            return [_sizes(item, params) for item in items]
    return number(as_float(evaluate(parse_expression(node), params), node.span))


def _input(item: InputDecl, typed: TypedProgram) -> Data:
    type_, lengths = typed.inputs[item.name], _lengths(typed)
    axes = ", ".join(each.name if each.name in lengths else str(each.size).replace("·", " * ") for each in type_.axes)
    written = f"{type_.dtype}[{axes}]{'?' if item.optional else ''}"
    if item.name not in typed.defaults:
        return written
    return {"type": written, "default": _value(typed.defaults[item.name], {})}


def _nodes(graph: TypedGraph, names: Names) -> dict[str, Data]:
    """The nodes of a graph in the order of the file."""
    return {node.name: _node(node, graph, names) for node in in_file_order(graph) if not is_renewal(node)}


def _node(node: TypedNode, around: TypedGraph, names: Names) -> dict[str, Data]:
    match node:
        case TypedBlock():
            text = _block(node, around, names)
            if (renewal := around.by_name.get(node.name + SUFFIX)) is not None and isinstance(node.part, State):
                text["next"] = _reference(renewal.node.wires[0].refs[0], around, names)  # type: ignore[union-attr]  # a block
        case TypedGroup():
            text = _group(node, around, names)
        case TypedScan():
            text = _scan(node, around, names)
        case TypedRepeat():
            text = _repeat(node, around, names)
    return text | _settings(node)


def _settings(node: TypedNode) -> dict[str, Data]:
    """What every node may say of itself."""
    text: dict[str, Data] = {}
    if node.node.dropped:
        text["when"] = "false"
    if not node.node.trainable:
        text["trainable"] = "false"
    for tie in node.node.ties:
        if not tie.parameter:
            text["tie"] = _path(tie)
        else:
            others = text.get("tie")
            text["tie"] = {**(others if isinstance(others, dict) else {}), tie.parameter: _path(tie)}
    return text


def _path(tie: Tie) -> str:
    text = ""
    for step in tie.path:
        text += f"({step})" if isinstance(step, int) else f".{step}" if text else step
    return text


# -- blocks


def _block(node: TypedBlock, around: TypedGraph, names: Names) -> dict[str, Data]:
    """A block with its fields and its edges."""
    edges = {wire.port: ", ".join(_reference(ref, around, names) for ref in wire.refs) for wire in node.node.wires}
    text: dict[str, Data] = {"type": node.part.kind}
    slots = {name: value.node.name for name, value in node.node.fields if isinstance(value, SlotNode)}
    written = dict(node.node.fields)
    for name, field in fields(type(node.part)).items():
        value = getattr(node.part, name)
        if name in slots:
            text[name] = _filled(node, name)
        elif name in written and not (value is None and field.default is None):
            text[name] = _value(value, edges, written[name])
    declared = ports(type(node.part))
    wires = [wire for wire in node.node.wires if wire.port in declared]
    return text | _edges(
        wires, next(iter(declared), ""), around, names, variadic={port for port in declared if declared[port] == "*"}
    )


def _filled(holder: TypedBlock, field: str) -> Data:
    """What fills a slot; its input comes from the holder."""
    filled = next(slot for slot in holder.slots.values() if slot is not None and slot.name == field)
    nowhere = TypedGraph(Graph((), (), ()), {}, (), {}, {})
    text = _node(filled, nowhere, {INPUT: INPUT})
    text.pop("in", None)
    return text


def _value(value: Any, edges: Mapping[str, str], source: FieldValue | None = None) -> Data:
    """A field's value; of a part, the fields that its `source` writes."""
    match value:
        case None | Own():
            return "none"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number(value)
        case Mask():
            return mask(value, edges)
        case Part():
            written = source.fields if isinstance(source, PartValue) else ()
            return {"type": value.kind, **{name: _value(getattr(value, name), edges, inner) for name, inner in written}}
        case dict():
            return {key: _value(inner, edges) for key, inner in value.items()}
        case tuple() | list():
            return [_value(item, edges) for item in value]
    return str(value)


# -- edges


def _edges(
    wires: Sequence[Wire], first: str, around: TypedGraph, names: Names, variadic: Collection[str] = ()
) -> dict[str, Data]:
    """What stands under `in`: a reference alone for the first port, else port by port."""
    texts: dict[str, Value] = {}
    implied = {wire.port for wire in wires if wire.implied}
    for wire in wires:
        refs: list[Data] = list(_references(wire.refs, around, names))
        texts[wire.port] = refs if wire.port in variadic or len(refs) != 1 else _reference(wire.refs[0], around, names)
    if not texts:
        return {}
    if list(texts) == [first]:
        return {"in": Remark(texts[first], IMPLIED) if implied else texts[first]}
    return {"in": {port: Remark(text, f"{port} {IMPLIED}") if port in implied else text for port, text in texts.items()}}


def _references(refs: Sequence[Ref], graph: TypedGraph, names: Names) -> Iterator[str]:
    """Several references, those to passes that follow one another as a range."""
    runs: list[list[Ref]] = []
    for ref in refs:
        before = runs[-1][-1] if runs else None
        follows = before is not None and before.index is not None and Ref(before.node, before.port, before.index + 1) == ref
        runs[-1:] = [[*runs[-1], ref]] if follows else [*runs[-1:], [ref]]
    for run in runs:
        first, last = run[0], run[-1]
        node = graph.by_name.get(first.node)
        if len(run) == 1 or not isinstance(node, TypedRepeat):
            yield from (text for ref in run for text in _reference(ref, graph, names).split(", "))
        else:
            start, stop = first.index or "", "" if last.index == len(node.passes) - 1 else (last.index or 0) + 1
            yield f"{first.node}({start}:{stop}){'.' * bool(first.port)}{first.port}"


def _reference(ref: Ref, graph: TypedGraph, names: Names) -> str:
    """What a reference in a graph is called in its text."""
    if ref.node in names and ref.node not in graph.by_name:
        return names[ref.node]
    node = graph.by_name.get(ref.node)
    index = ref.index
    if isinstance(node, TypedRepeat) and index == len(node.passes) - 1:
        index = None
    return str(Ref(ref.node, ref.port, index))


# -- graphs inside


def _group(node: TypedGroup, around: TypedGraph, names: Names) -> dict[str, Data]:
    handed, inside = _given(node.node.wires, node.graph, around, names)
    return {**_edges(handed, INPUT, around, names), "graph": _nodes(node.graph, inside), **_outputs(node.graph, inside)}


def _given(wires: Sequence[Wire], graph: TypedGraph, around: TypedGraph, names: Names) -> tuple[list[Wire], dict[str, str]]:
    """What a graph inside is handed, and what its inputs are called there. Lists are not handed but read from where they are.
    A first input that nothing returns is called `input`.
    """
    lists = {item.name for item in graph.graph.inputs if item.many}
    read = {item.name for item in graph.graph.inputs if item.captured}
    returned = dict(graph.graph.outputs)
    handed = [wire for wire in wires if wire.port not in lists]
    inside = {wire.port: wire.port for wire in handed}
    for place, wire in enumerate(handed):
        if wire.port not in returned and place == 0:
            inside[wire.port] = INPUT
        while wire.port in read and inside[wire.port] in returned:  # what is only read must not be taken for what is returned
            inside[wire.port] += "_"
    handed = [replace(wire, port=inside[wire.port]) for wire in handed]
    inside |= {wire.port: ", ".join(_references(wire.refs, around, names)) for wire in wires if wire.port in lists}
    return handed, inside


def _outputs(graph: TypedGraph, names: Names) -> dict[str, Data]:
    """What a graph returns, unless it is its last node."""
    unnamed = dict(graph.graph.outputs).get("")
    if unnamed is None:
        return {"outputs": {name: _reference(ref, graph, names) for name, ref in graph.graph.outputs if name.isidentifier()}}
    last = in_file_order(graph)[-1].name if graph.nodes else ""
    returned = _reference(unnamed, graph, names)
    return {} if returned == last else {"outputs": {"y": returned}}


# -- scans


def _scan(node: TypedScan, around: TypedGraph, names: Names) -> dict[str, Data]:
    wires = sorted(node.node.wires, key=lambda wire: not node.carried and wire.port not in node.steps)
    handed, inside = _given(wires, node.graph, around, names)
    text = {"scan": node.node.axis, **_edges(handed, INPUT, around, names), "graph": _nodes(node.graph, inside)}
    return text | _outputs(node.graph, inside)


# -- repeats


def _repeat(node: TypedRepeat, around: TypedGraph, names: Names) -> dict[str, Data]:
    """Every pass in the same words, as far as they go; what differs from pass to pass becomes a value of `each`."""
    written: dict[Any, dict[str, Data]] = {}
    passes, head = [], dict[str, Wire]()
    for index, (one, graph) in enumerate(zip(node.node.passes, node.passes, strict=True)):
        captured = {item.name for item in graph.graph.inputs if item.captured}
        earlier = [wire for wire in one.wires if wire.port in captured and any(ref.node == node.name for ref in wire.refs)]
        handed, inside = _given([wire for wire in one.wires if wire not in earlier], graph, around, names)
        inside |= {wire.port: _earlier(wire, index) for wire in earlier}
        for wire in handed:
            head.setdefault(wire.port, wire)  # those of the first pass: what the others are handed follows from it
        key = (id(graph), tuple(inside.items()))
        if key not in written:
            written[key] = {"graph": _nodes(graph, inside), **_outputs(graph, inside)}
        passes.append(written[key])
    count: Data = str(len(passes))
    try:
        each, body = fold(passes)
    except Unlike as place:
        count, each, body = Remark(str(count), f"the passes differ in {place}; this is the first"), {}, passes[0]
    own = {"repeat": count, **({"each": each} if each else {}), **({} if node.node.share is None else {"share": "true"})}
    return {**own, **_edges(list(head.values()), INPUT, around, names), **body}


def _earlier(wire: Wire, index: int) -> str:
    """References to earlier passes, counted back from pass `index`."""
    ports = {ref.port for ref in wire.refs}
    name, port = wire.refs[0].node, wire.refs[0].port
    if len(ports) == 1 and len(wire.refs) > 1 and [ref.index for ref in wire.refs] == list(range(index)):
        return f"{name}(:layer).{port}" if port else f"{name}(:layer)"
    steps = (f"{ref.node}(layer - {index - (ref.index or 0)})" + (f".{ref.port}" if ref.port else "") for ref in wire.refs)
    return ", ".join(steps)
