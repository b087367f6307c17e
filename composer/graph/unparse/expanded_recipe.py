"""A typed graph as a recipe again: no shorthands, every edge, every slot, every condition decided."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from string import ascii_lowercase
from typing import Any, assert_never

from blocks.core import Builtin, Field, Formula, Init, Part, fields, number, ports
from blocks.core.axis_places import LENGTH_OF
from blocks.core.fields import AxesForm, AxisFormula, formula_field, formula_of
from blocks.masks.mask import Mask
from composer.graph.anatomy import wires_of
from composer.graph.describe import mask
from composer.graph.formula_text import formula_text, written_axes
from composer.graph.ir import AdapterPattern, FieldValue, Graph, PartValue, Ref, SlotNode, Tie, Wire
from composer.graph.parameters import buffers, in_file_order, parameters
from composer.graph.state_update import SUFFIX
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan, is_renewal
from composer.graph.unparse.axes_outside import axes_outside
from composer.graph.unparse.checkpoint_rules import published
from composer.graph.unparse.definitions import declared_again
from composer.graph.unparse.edge_text import EdgeNames, earlier, earlier_range, edges, reference
from composer.graph.unparse.fold_passes import PassesDiffer, fold
from composer.graph.unparse.formula_names import local_names, with_paths
from composer.graph.unparse.inner_names import INDEX, GraphForm, given, output_name
from composer.graph.unparse.node_text import INPUT, FormulaText, stand_in
from composer.graph.unparse.slot_uses import SlotUse, by_axes, lengths, uses
from composer.graph.unparse.visible_ties import with_visible_ties
from composer.graph.visit import every_node, every_pass, walk
from composer.language.recipe.ast import InputDecl
from composer.language.recipe.defined_block import is_defined
from composer.language.recipe.free_names import fresh
from composer.language.recipe.keys import FULL, KEYS, LANGUAGE, KeyPlace, KeyRow
from composer.language.recipe.writer import YamlData, data_of, write
from composer.language.wording import boolean
from composer.language.yaml.nodes import YamlScalar
from composer.memo import Memo


def unparse(typed: TypedProgram) -> str:
    """Return the text of a recipe that means the same, with the values that its params had.

    Raises:
        RecipeError: A tie cannot be written out.
    """
    typed = replace(typed, root=with_visible_ties(typed.root))
    way = GraphForm(params=frozenset(_lengths(typed)))
    values = {key.name: _written(key, typed, way) for key in KEYS["recipe"].values()}
    values["blocks"] = way.definitions.of([values["graph"], values["losses"]]) or None  # which the others have asked for
    return write({name: value for name, value in values.items() if value is not None})


def _written(key: KeyRow, typed: TypedProgram, way: GraphForm) -> YamlData | None:
    """Return what is written under a key of the recipe; None where the key is left out."""
    match key.writer:
        case "verbatim":
            said = typed.untyped.recipe.root.get(key.name)
            if isinstance(said, YamlScalar):
                return " ".join(said.text.split()) or None
            return None if said is None else data_of(said)
        case "computed":
            return WRITERS[key.name](typed, way)
        case "resolved":
            return None


def _adapters(rules: Sequence[AdapterPattern]) -> dict[str, YamlData]:
    return {
        rule.pattern: FULL if rule.adapter is None else {key: number(value) for key, value in asdict(rule.adapter).items()}
        for rule in rules
    }


def _graph(typed: TypedProgram, way: GraphForm) -> YamlData:
    losses = typed.untyped.losses.values()
    nodes = {name: node for name, node in _nodes(typed.root, _names(typed), way).items() if name not in losses}
    parts = {
        type(visit.node.part)
        for visit in walk(typed.root, every_pass, every_node, once=True)
        if isinstance(visit.node, TypedBlock)
    }
    fields = {part.kind: field for part in parts if (field := formula_field(part))}
    return with_paths(nodes, frozenset(_lengths(typed)), fields) if fields else nodes


def _names(typed: TypedProgram) -> EdgeNames:
    return {name: name for name in typed.root.inputs}


def _references(refs: Iterable[tuple[str, Ref]], typed: TypedProgram) -> dict[str, YamlData]:
    return {name: reference(ref, typed.root, _names(typed)) for name, ref in refs}


def _checkpoints(typed: TypedProgram) -> YamlData | None:
    found = typed.untyped.recipe.checkpoints
    if found is None:
        return None
    names = [*(row.name for row in parameters(typed)), *buffers(typed)]
    return {entry.key.text: published(entry.value, typed.untyped.params, names) for entry in found}


def _losses(typed: TypedProgram, way: GraphForm) -> YamlData | None:
    losses = typed.untyped.losses.items()
    return {name: _node(typed.root[loss], typed.root, _names(typed), way) for name, loss in losses} or None


WRITERS: Mapping[str, Callable[[TypedProgram, GraphForm], YamlData | None]] = {
    "language": lambda typed, way: str(LANGUAGE),
    "params": lambda typed, way: {name: number(length) for name, length in _lengths(typed).items()} or None,
    "inputs": lambda typed, way: {item.name: _input(item, typed) for item in typed.untyped.inputs},
    "graph": _graph,
    "outputs": lambda typed, way: _references(typed.root.graph.outputs, typed),
    "positions": lambda typed, way: _references(typed.untyped.positions, typed) or None,
    "losses": _losses,
    "init": lambda typed, way: {rule.pattern: _initializer(rule.init) for rule in typed.untyped.init} or None,
    "adapters": lambda typed, way: _adapters(typed.untyped.adapters) or None,
    "checkpoints": lambda typed, way: _checkpoints(typed),
}
"""What is written under each key of a recipe whose value is computed."""


def _initializer(init: Init) -> YamlData:
    """Return how parameters start: what is drawn, a constant or a formula."""
    found: dict[str, YamlData] = {}
    if init.is_drawn or not init.formula:
        value = number(float(init.value))
        found[init.how] = value if init.low is None else [number(init.low), value]
    return {**found, "formula": FormulaText(init.formula)} if init.formula else found


def _lengths(typed: TypedProgram) -> dict[str, int]:
    """Return the params that are the lengths of inputs' axes, which have their names from them: blocks and scans name axes."""
    axes = (axis for type_ in typed.written_inputs.values() for axis in type_.axes)
    return {axis.name: axis.size for axis in axes if axis.name in typed.untyped.params and isinstance(axis.size, int)}


def _input(item: InputDecl, typed: TypedProgram) -> YamlData:
    type_, lengths = typed.written_inputs[item.name], _lengths(typed)
    axes = ", ".join(each.name if each.name in lengths else str(each.size).replace("·", " * ") for each in type_.axes)
    written = f"{type_.dtype}[{axes}]{'?' if item.optional else ''}"
    if item.name not in typed.defaults:
        return written
    return {"type": written, "default": _value(typed.defaults[item.name], {})}


def _nodes(graph: TypedGraph, names: EdgeNames, way: GraphForm) -> dict[str, YamlData]:
    """Return the nodes of a graph in the order of the file; graphs in it are written in a way."""
    return {node.name: _node(node, graph, names, way) for node in in_file_order(graph) if not is_renewal(node)}


def _node(node: TypedNode, around: TypedGraph, names: EdgeNames, way: GraphForm) -> dict[str, YamlData]:
    match node:
        case TypedBlock() if (formula := formula_of(node.part)) is not None:
            return _formula(node, formula, around, names, way) | _in_order("node", _options(node))
        case TypedBlock():
            text = _block(node, around, names, way)
            if (renewal := around.by_name.get(node.name + SUFFIX)) is not None and node.part.renewed_by:
                text[node.part.renewed_by] = reference(renewal.node.wires[0].refs[0], around, names)  # type: ignore[union-attr]  # a block
            return text | _in_order("node", _options(node))
        case TypedGroup() if way.defines and is_defined(node.node.part):
            return _in_order("node", _definition(node, around, names, way=way) | _options(node))
        case TypedGroup():
            return _in_order("group", _group(node, around, names, way=way) | _options(node))
        case TypedScan():
            return _in_order("scan", _scan(node, around, names, way=way) | _options(node))
        case TypedRepeat():
            key = node, around, tuple(names.items()), way
            text = way.written.get(key, partial(_repeat, node, around, names, way=way))
            return _in_order("repeat", text | _options(node))
        case _:
            assert_never(node)


def _in_order(place: KeyPlace, text: dict[str, YamlData]) -> dict[str, YamlData]:
    """Return what is written for a node, in the order of the keys of its place."""
    return {name: text[name] for name in KEYS[place] if name in text}


def _options(node: TypedNode) -> dict[str, YamlData]:
    """Return the options of a node."""
    text: dict[str, YamlData] = {}
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


def _block(node: TypedBlock, around: TypedGraph, names: EdgeNames, way: GraphForm) -> dict[str, YamlData]:
    """Return a block with its fields and its edges."""
    read = {wire.port: ", ".join(reference(ref, around, names) for ref in wire.refs) for wire in node.node.wires}
    text: dict[str, YamlData] = {"type": node.part.kind}
    slots = {name: value.node.name for name, value in node.node.fields if isinstance(value, SlotNode)}
    written, several = dict(node.node.fields), way.uses.get(node, ())
    for name, field in fields(type(node.part)).items():
        value = getattr(node.part, name)
        if name in slots:
            text[name] = _filled(node, name, way)
        elif name in written and not (value is None and field.default is None):
            own, *others = (_field(one, name, field, read, way) for one in (node, *(use.node for use in several)))
            text[name] = by_axes(others, own, lengths(several, way.params, defined=way.defined)) if several else own
    if way.axis_names is not None:
        text |= _placed(node)
    declared = ports(type(node.part))
    wires = [wire for wire in node.node.wires if wire.port in declared]
    return text | edges(
        wires,
        "" if way.by_port else next(iter(declared), ""),
        around,
        names,
        variadic={port for port in declared if declared[port] == "*"},
    )


def _field(node: TypedNode, name: str, field: Field, read: Mapping[str, str], way: GraphForm) -> YamlData:
    """Return what is written for a field of a block."""
    assert isinstance(node, TypedBlock)
    value = getattr(node.part, name)
    outside = value if way.axis_names is None else axes_outside(node, field, value, way.axis_names)
    found = _value(outside, read, dict(node.node.fields)[name])
    return FormulaText(found) if isinstance(field.form, AxisFormula) and isinstance(found, str) else found


def _formula(node: TypedBlock, formula: Formula, around: TypedGraph, names: EdgeNames, way: GraphForm) -> dict[str, YamlData]:
    """Return a formula with names of its own for what it reads, which `in` maps to paths."""
    (wire,) = node.node.wires
    called = local_names(formula.names)
    read = {name: reference(ref, around, names) for name, ref in zip(called, wire.refs, strict=True)}
    text: dict[str, YamlData] = {
        "type": node.part.kind,
        formula_field(type(node.part)): FormulaText(formula_text(formula, called)),
    }
    if several := way.uses.get(node):
        others = [formula_text(one, called) for use in several if (one := formula_of(use.node.part)) is not None]  # type: ignore[union-attr]  # a block
        known = lengths(several, {*way.params, *called}, defined=way.defined)
        text[formula_field(type(node.part))] = by_axes(others, FormulaText(formula_text(formula, called)), known)
    if axes := _letters(node, {*called, *read.values()}):
        text["axes"] = dict(written_axes(axes, called))
    return {**text, "in": read}


def _order(way: Sequence[int | None]) -> list[int]:
    """Return where each axis of an input stands in the result."""
    return [place for _, place in sorted((own, place) for place, own in enumerate(way) if own is not None)]


def block_on_inputs(node: TypedBlock, inputs: Mapping[str, Sequence[str]]) -> dict[str, YamlData]:
    """Return a block with its fields, each wired port reading inputs of the recipe; `inputs` has their names by port."""
    wires = tuple(Wire(port, tuple(map(Ref, names)), node.node.span) for port, names in inputs.items())
    nowhere = TypedGraph(Graph((), (), ()), {}, (), {}, {})
    called = {name: name for names in inputs.values() for name in names}
    reader = replace(node, node=replace(node.node, wires=wires))
    if (formula := formula_of(node.part)) is not None:
        return _formula(reader, formula, nowhere, called, GraphForm())
    return _block(reader, nowhere, called, GraphForm().within({}))


def _filled(holder: TypedBlock, field: str, way: GraphForm) -> YamlData:
    """Return the node in a slot; its input comes from the holder. Where the slot is used at several widths, what differs is
    written as formulas over axes; what stands in a block that the recipe defines, if need be, as a definition.
    """
    holders = way.uses.get(holder, (SlotUse(holder, {}),))
    filled = [
        SlotUse(slot, around)
        for one, around in holders
        if isinstance(one, TypedBlock)
        for slot in one.slots.values()
        if slot is not None and slot.name == field
    ]
    plain = replace(way, in_place=False, by_port=False, indices=frozenset())
    for inside in _ways(plain, filled):
        text, *others = (_in_slot(slot.node, inside) for slot in filled)
        if all(other == text for other in others):
            return text
    raise AssertionError(f"`{field}` of {holder.part.kind} cannot be written once for all its uses")


def _ways(way: GraphForm, filled: Sequence[SlotUse]) -> Iterator[GraphForm]:
    """Yield how a slot may be written, the plainest first."""
    yield way
    several = {**way.uses, **uses(filled)}
    yield replace(way, uses=several)
    if not way.defined:
        yield replace(way, uses=several, defines=True)


def _in_slot(filled: TypedNode, way: GraphForm) -> dict[str, YamlData]:
    nowhere = TypedGraph(Graph((), (), ()), {}, (), {}, {})
    text = _node(filled, nowhere, {INPUT: INPUT}, way)
    text.pop("in", None)
    return text


def _value(value: Any, read: Mapping[str, str], source: FieldValue | None = None) -> YamlData:
    """Return a field's value; of a part, the fields that its `source` writes."""
    match value:
        case None | Builtin():
            return "none"
        case bool():
            return boolean(value)
        case int() | float():
            return number(value)
        case Mask():
            return mask(value, read)
        case Part():
            written = source.fields if isinstance(source, PartValue) else ()
            return {"type": value.kind, **{name: _value(getattr(value, name), read, inner) for name, inner in written}}
        case dict():
            return {key: _value(inner, read) for key, inner in value.items()}
        case tuple() | list():
            return [_value(item, read) for item in value]
    return str(value)


# -- graphs inside


def _group(node: TypedGroup, around: TypedGraph, names: EdgeNames, *, way: GraphForm) -> dict[str, YamlData]:
    handed, inside, apart = given(node.node.wires, node.graph, around, names, way=way)
    within = way.within(node.axis_names) if is_defined(node.node.part) else way
    body = _body(node.graph, inside | apart, way=within, read=_read(node, around, way))
    return {**edges(handed, "" if way.by_port else INPUT, around, names), **body}


def _definition(node: TypedGroup, around: TypedGraph, names: EdgeNames, *, way: GraphForm) -> dict[str, YamlData]:
    """Return a block that the recipe defines by its name, and define it: with the params that it has here, and its own axes."""
    part, wires = node.node.part, node.node.wires
    assert part is not None
    own = replace(way, by_port=False, axis_names=None, defines=False, defined=True)
    given = {wire.port: wire.port for wire in wires}
    ports = {port.port: declared_again(port) for port in node.node.ports if port.port in given}
    name = way.definitions.name(part.kind, {"inputs": ports, **_body(node.graph, given, way=own)})
    return {"type": name, **edges(wires, "" if way.by_port else next(iter(ports), ""), around, names)}


def _read(node: TypedNode, around: TypedGraph, way: GraphForm) -> frozenset[str]:
    """Return the outputs of a node that are read in the graph around it, or returned by it."""
    return frozenset(way.read.get(around, partial(_ports_read, around)).get(node.name, ()))


def _ports_read(graph: TypedGraph) -> dict[str, set[str]]:
    wired = (ref for node in graph.nodes for wire in wires_of(node) for ref in wire.refs)
    found: dict[str, set[str]] = {}
    for ref in (*wired, *dict(graph.graph.outputs).values()):
        found.setdefault(ref.node, set()).add(ref.port)
    return found


def _body(
    graph: TypedGraph, names: EdgeNames, *, way: GraphForm, named: str = "", read: frozenset[str] = frozenset()
) -> dict[str, YamlData]:
    """Return the nodes of a graph, and what it returns unless it is the last of them, or where it must be `named`; where no
    node is left, one that does nothing. Nodes that are `read` from outside by their own names need not be returned.
    """
    nodes, unnamed = _nodes(graph, names, way), dict(graph.graph.outputs).get("")
    if unnamed is None:
        returned = {name: reference(ref, graph, names) for name, ref in graph.graph.outputs if name.isidentifier()}
        first = next(iter(returned), "")
        said = {*nodes} & read - {first}
        returned = {name: text for name, text in returned.items() if name not in said or text != name}
        return {"graph": nodes or stand_in(INPUT), "outputs": returned}
    value = reference(unnamed, graph, names)
    passed_on = {
        name: reference(ref, graph, names) for name, ref in graph.graph.outputs if name.isidentifier() and name not in nodes
    }
    returned = {named or output_name([graph], names.values()): value, **passed_on}
    if not nodes and not named:
        return {"graph": stand_in(value), **({"outputs": returned} if passed_on else {})}
    is_last = not named and not passed_on and value == in_file_order(graph)[-1].name
    return {"graph": nodes, **({} if is_last else {"outputs": returned})}


def _placed(node: TypedBlock) -> dict[str, YamlData]:
    """Return the fields that say by places which axes are meant where the names in a block that the recipe defines do."""
    known = fields(type(node.part))
    text: dict[str, YamlData] = {}
    if any(isinstance(field.form, AxesForm) for field in known.values()) and (axes := _letters(node, ())):
        text["axes"] = list(axes)
    if LENGTH_OF in known and node.sizes["of"] is not None:
        text[LENGTH_OF] = str(node.sizes["of"])
    return text


def _letters(node: TypedBlock, taken: Collection[str]) -> list[str]:
    """Return a letter for each axis of each input of a block that matches them; nothing where they match in order."""
    if all(way == tuple(range(len(way))) for way in node.expansions):
        return []
    letters = [letter for letter in ascii_lowercase if letter not in taken]
    axes = [" ".join(letters[place] for place in _order(way)) for way in node.expansions]
    first = list(dict.fromkeys(" ".join(axes).split()))
    whole = letters[: len(node.expansions[0])]
    return axes if first == whole else [*axes, f"-> {' '.join(whole)}"]


# -- scans


def _scan(node: TypedScan, around: TypedGraph, names: EdgeNames, *, way: GraphForm) -> dict[str, YamlData]:
    wires = sorted(node.node.wires, key=lambda wire: not node.carried and wire.port not in node.steps)
    handed, inside, apart = given(wires, node.graph, around, names, way=way)
    body = _body(node.graph, inside | apart, way=way)
    axis = node.node.axis if way.axis_names is None else way.axis_names.get(node.node.axis, node.node.axis) or str(node.axis.size)
    return {"scan": axis, **edges(handed, "" if way.by_port else INPUT, around, names), **body}


# -- repeats


def _repeat(node: TypedRepeat, around: TypedGraph, names: EdgeNames, *, way: GraphForm) -> dict[str, YamlData]:
    """Return every pass in the same words, as far as they go; what differs from pass to pass becomes a value of `each`. Groups
    that are not handed the same in all passes read it where it is.
    """
    by_port, in_place = replace(way, by_port=True), replace(way, by_port=True, in_place=True)
    ways = ((way, way), (way, by_port), (way, in_place), (in_place, in_place))
    index, head, each, body = _folded(node, around, names, ways)
    shared = {} if node.node.share is None else {"share": "true"}
    says: dict[str, YamlData] = {"repeat": str(len(node.passes)), **({"each": each} if each else {}), **shared}
    named = {} if index == INDEX else {"as": index}
    return {**says, **named, **edges(list(head.values()), INPUT, around, names), **body}


def _folded(
    node: TypedRepeat, around: TypedGraph, names: EdgeNames, ways: Sequence[tuple[GraphForm, GraphForm]]
) -> tuple[str, dict[str, Wire], dict[str, YamlData], dict[str, YamlData]]:
    """Return all passes of a repeat as one: the name of the index, what the first pass is handed, the values of `each` and the
    graph. Choices between whole nodes, which can always be written, come last.
    """
    for choices in (False, True):
        for itself, inside in ways:
            index, head, passes = _passes(node, around, names, itself, inside)
            try:
                return index, head, *fold(passes, index, list(head), choices=choices)
            except PassesDiffer:
                continue
    raise AssertionError(f"the passes of `{node.name}` cannot be written as one graph")


def _passes(
    node: TypedRepeat, around: TypedGraph, names: EdgeNames, way: GraphForm, inside_way: GraphForm
) -> tuple[str, dict[str, Wire], list[dict[str, YamlData]]]:
    """Return the name of the index, what the first pass is handed, and the text of every pass, in whose graphs other graphs are
    written in a way of their own. What is read from outside, and is not the same in all passes, is handed under several names.
    """
    written: Memo[Any, dict[str, YamlData]] = Memo()
    last = {graph.nodes and in_file_order(graph)[-1].name for graph in node.passes}
    each_pass, head = [], dict[str, Wire]()
    other: set[str] = set()
    nodes = {name for graph in node.passes for name in (*graph.by_name, *(item.name for item in graph.graph.inputs))}
    for one, graph in zip(node.node.passes, node.passes, strict=True):
        captured = {item.name for item in graph.graph.inputs if item.captured}
        own = [wire for wire in one.wires if wire.port in captured and all(ref.node == node.name for ref in wire.refs)]
        others = [wire for wire in one.wires if wire not in own]
        handed, inside, apart = given(others, graph, around, names, way=way, own=node.name if own else "")
        for wire in handed:
            first = head.setdefault(wire.port, wire)  # those of the first pass: what the others are handed follows from it
            outside = next((port for port in captured & inside.keys() if inside[port] == wire.port), None)
            if first.refs != wire.refs and outside is not None:
                another = fresh(wire.port, {*head, *nodes, *inside.values()})
                inside[outside] = next(
                    (name for name, known in head.items() if known.refs == wire.refs and name in other), another
                )
                other.add(inside[outside])
                head.setdefault(inside[outside], replace(wire, port=inside[outside]))
        each_pass.append((graph, own, inside, apart))
    index, read_outside = fresh(INDEX, way.indices), _read(node, around, way)
    if any(own for _, own, *_ in each_pass):
        inside_way = replace(inside_way, indices=inside_way.indices | {index})
    read = [text for *_, inside, apart in each_pass for text in (*inside.values(), *apart.values())]
    named = output_name(node.passes, read) if len(last) > 1 else ""  # what one pass returns is left out of another
    passes = []
    for place, (graph, own, inside, apart) in enumerate(each_pass):
        lists = {item.name for item in graph.graph.inputs if item.many}
        for wire in own:
            apart[wire.port] = (earlier_range if wire.port in lists else earlier)(wire.refs, node.name, index, place)
        called = inside | apart
        passes.append(
            written.get(
                (graph, tuple(called.items())), partial(_body, graph, called, way=inside_way, named=named, read=read_outside)
            )
        )
    return index, head, passes
