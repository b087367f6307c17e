"""What a recipe makes use of: parts with their fields, ports and outputs, and everything that the language can say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields as members
from dataclasses import is_dataclass
from typing import Any

import composer
from blocks.core import Library, fields, is_node, ports
from blocks.core.fields import AxisOrAxes, BooleanMap, Field, NodeName, NumberOrNodeRef, SlotOf
from blocks.masks.mask import Mask
from composer.diagnostics import Diagnostic, Span
from composer.graph import ir
from composer.graph.state_update import SUFFIX, Renewal
from composer.graph.typed import TypedProgram, TypedScan
from composer.language.expressions.ast import Binary, Expression, If, Number, PathStep, RefPath, Slice, Unary
from composer.language.recipe import ast as recipe
from composer.language.recipe.defined_block import is_defined
from composer.language.yaml import nodes as document

LANGUAGE = frozenset(
    {
        *(f"arithmetic:{operator}" for operator in ("+", "-", "*", "/", "//", "%", "**", "negative")),
        *(f"condition:{operator}" for operator in ("==", "!=", "<", ">", "not")),
        *(f"condition:{place}" for place in ("field", "slot", "edge", "mask", "tie", "node", "each")),
        *(f"function:{name}" for name in ("sqrt", "exp", "log", "abs", "min", "max", "floor", "round", "ceil_to")),
        *(f"edge:{way}" for way in ("implied", "one", "list", "by port", "none", "of a group", "inside a node", "from around")),
        *(f"pass:{way}" for way in ("one", "from the end", "the one before", "all", "some", "up to this one")),
        *(f"each:{way}" for way in ("expression", "list", "words", "blocks", "masks", "several")),
        *(f"node:{way}" for way in ("name", "block", "group", "repeat", "repeat in a repeat", "group in a group", "as")),
        *(f"when:{way}" for way in ("kept", "dropped", "some passes")),
        *(f"tie:{way}" for way in ("node", "parameter", "pass", "none", "around")),
        *(f"type:{way}" for way in ("optional", "default", "int", "float", "bool", "expression", "choice", "block", "mask")),
        *(f"init:{way}" for way in ("normal", "uniform", "constant", "range", "formula", "several names")),
        *(f"mask:{operator}" for operator in ("and", "or", "not", "if")),
        *(f"frozen:{way}" for way in ("block", "group")),
        *(f"scan:{way}" for way in ("carried", "nothing carried", "first to first", "widened", "from around", "last step")),
        *(f"share:{way}" for way in ("equal passes", "passes that differ", "flag")),
        *(f"loss:{way}" for way in ("by type", "of numbers", "of several", "by port", "of an optional input")),
        *(f"state:{way}" for way in ("of a node behind it", "of the model", "of a pass")),
        *("outputs:of the model", "outputs:of a group", "outputs:several carried", "positions"),
        *(
            f"block:{way}"
            for way in ("number", "slot", "mask", "axis", "optional port", "left open", "blocks", "init", "outputs")
        ),
        "uses",
        *(f"task:{name}" for name in ("causal_lm", "seq2seq_lm", "denoising", "image_to_text")),
        *("values:param of params", "values:width that changes", "values:harmful name"),
    }
)
"""What can be said beside parts: a recipe of the suite says each of these."""
HARMFUL = frozenset({"norm", "x", "self", "input_", "del", "values", "forward"})


def wanted(library: Library) -> frozenset[str]:
    """Return all that the suite must have run: what the library declares, and the language."""
    found: set[str] = set(LANGUAGE)
    for kind in library:
        part = library[kind]
        found.add(f"part:{kind}")
        for name, field in fields(part).items():
            found |= {f"field:{kind}.{name}", *of_field(kind, name, field)}
        if is_node(part):
            found |= {f"port:{kind}.{port}" for port in ports(part)}
            found |= {f"output:{kind}.{output.rstrip('?')}" for output in part.outputs}
    return frozenset(found)


def of_field(kind: str, name: str, field: Field) -> Iterator[str]:
    """Yield the ways in which a field can be written, where they mean different things."""
    match field.form:
        case SlotOf(family=family) if family is not Mask:
            yield f"slot:{kind}.{name} part"
            if is_node(family):
                yield f"slot:{kind}.{name} graph"
        case BooleanMap():
            yield f"slot:{kind}.{name} by name"
        case AxisOrAxes():
            yield from (f"slot:{kind}.{name} one", f"slot:{kind}.{name} several")
        case NumberOrNodeRef():
            yield f"slot:{kind}.{name} edge"
    if field.nullable and not isinstance(field.form, NodeName):
        yield f"slot:{kind}.{name} none"


def features(written: composer.Recipe) -> set[str]:
    """Return all that a sound recipe makes use of."""
    program = written.program.untyped
    text = written.source.text
    found = {*_of_text(program.recipe), *_of_graph(program), *_of_program(program), *_of_scans(written.program)}
    return {*found, *["uses"] * ("\nuses:" in text)}


def below(value: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """Yield every object of a tree, each once."""
    seen = set() if seen is None else seen
    if isinstance(value, tuple):
        for item in value:
            yield from below(item, seen)
    elif is_dataclass(value) and not isinstance(value, type | Span | Diagnostic | document.YamlMapping) and id(value) not in seen:
        seen.add(id(value))
        yield value
        for member in members(value):
            yield from below(getattr(value, member.name), seen)


# -- as it is written


def _of_text(parsed: recipe.ParsedRecipe) -> Iterator[str]:
    yield f"task:{parsed.task}"
    every = {"input"} | {decl.name for decl in parsed.inputs}
    for param in parsed.params:
        if param.type in ("choice", "block", "mask", "int", "float"):
            yield f"type:{param.type}"
        if isinstance(param.default, document.YamlScalar) and any(other.name in param.default.text for other in parsed.params):
            yield "values:param of params"
    for decl in parsed.inputs:
        yield f"type:{decl.type.dtype}"
        yield from ["type:optional"] * decl.optional + ["type:default"] * (decl.default is not None)
        yield from ["type:expression"] * any(isinstance(axis, Number) for axis in decl.type.axes)
    for rule in parsed.init:
        yield f"init:{rule.how}"
        yield from ["init:range"] * (rule.low is not None) + ["init:formula"] * (rule.formula is not None)
        yield from ["init:several names"] * ("|" in rule.pattern)
    yield from ["positions"] * bool(parsed.positions)
    for loss in parsed.losses:
        yield from _of_loss(loss, {decl.name for decl in parsed.inputs if decl.optional})
    yield from ["outputs:of the model"] * (len(parsed.body.outputs) > 1)
    definitions = tuple(parsed.definitions.values())
    for definition in definitions:
        yield from _of_definition(definition)
    bodies = tuple(each.body for each in definitions)
    for value in below((parsed.body, parsed.params, parsed.positions, parsed.losses, *bodies)):
        yield from _of_value(value)
        if isinstance(value, recipe.GroupDecl | recipe.RepeatDecl | recipe.ScanDecl):
            yield from _of_region(value)
    yield from _of_nodes(parsed.body, every)


def _of_definition(definition: recipe.Definition) -> Iterator[str]:
    """Yield a block that the recipe defines."""
    kinds = {"int": "number", "block": "slot", "mask": "mask"}
    yield from (f"block:{kinds[param.type]}" for param in definition.params if param.type in kinds)
    yield from ["block:optional port"] * any(item.optional for item in definition.inputs)
    yield from ["block:blocks"] * (definition.outer is not None)
    yield from ["block:init"] * bool(definition.init)
    yield from ["block:outputs"] * (len(definition.body.outputs) > 1)


def _of_loss(loss: recipe.LossDecl, optional: set[str]) -> Iterator[str]:
    assert loss.what is not None
    yield "loss:of numbers" if loss.what.part.kind == "scalar" else "loss:by type"
    edges = loss.what.options.edges
    yield from ["loss:of several"] * (len(edges[0].references or ()) > 1)
    yield from ["loss:by port"] * any(edge.port for edge in edges)
    yield from ["loss:of an optional input"] * any(item.text in optional for item in below(edges) if isinstance(item, RefPath))


def _of_value(value: Any) -> Iterator[str]:
    """Yield what one piece of text says."""
    match value:
        case recipe.NodeDecl(name=name):
            yield from ["values:harmful name"] * (name in HARMFUL)
        case recipe.UseDecl(part=part, fields=entries):
            for entry in entries:
                yield f"field:{part.kind}.{entry.name}"
                yield from _of_entry(f"slot:{part.kind}.{entry.name}", entry.value)
        case recipe.MaskValue(expression=expression):
            yield from (f"mask:{item.operator}" for item in below(expression) if isinstance(item, Binary | Unary))
            yield from ["mask:if", "condition:mask"] * any(isinstance(item, If) for item in below(expression))
        case recipe.ExpressionValue(expression=If()):
            yield "condition:field"
        case recipe.NodeOptions(edges=edges, tie=tie, trainable=trainable):
            yield from _of_edges(edges)
            yield from _of_tie(tie)
            yield from ["condition:field"] * isinstance(trainable, If)
        case Binary(operator=operator):
            yield f"arithmetic:{operator}"
            yield f"condition:{operator}"
        case Unary(operator=operator):
            yield "arithmetic:negative" if operator == "-" else "condition:not"
        case PathStep(name=name, arguments=arguments) if arguments is not None:
            yield f"function:{name}"


def _of_entry(slot: str, value: recipe.WrittenValue | None) -> Iterator[str]:
    """Yield how a field is filled."""
    match value:
        case recipe.SlotValue(what=recipe.GroupDecl()):
            yield f"{slot} graph"
        case recipe.SlotValue(what=recipe.UseDecl()):
            yield f"{slot} part"
        case recipe.SlotValue(what=recipe.BlockChoice(expression=If())):
            yield "condition:slot"
        case recipe.SlotValue(what=recipe.BlockChoice(expression=RefPath() as path)):
            yield f"{slot} {'none' if path.text == 'none' else 'part'}"
        case recipe.TextValue(text="none"):
            yield f"{slot} none"
        case recipe.TextValue():
            yield f"{slot} one"
        case recipe.ListValue():
            yield f"{slot} several"
        case recipe.BoolsValue():
            yield f"{slot} by name"
        case recipe.ExpressionValue(expression=RefPath() as path) if path.text == "none":
            yield f"{slot} none"


def _of_edges(edges: tuple[recipe.EdgeDecl, ...]) -> Iterator[str]:
    if not edges:
        yield "edge:implied"
    for edge in edges:
        if edge.port:
            yield "edge:by port"
        references = edge.references or ()
        yield "edge:one" if len(references) == 1 else "edge:list"
        for reference in references:
            for item in below(reference):
                match item:
                    case If():
                        yield "condition:edge"
                    case RefPath(steps=(PathStep(name="none"),)):
                        yield "edge:none"
                    case RefPath(steps=steps):
                        yield from ["edge:inside a node"] * (len(steps) > 1)
                        yield from (which(argument) for step in steps for argument in step.arguments or ())


def which(argument: Expression | Slice) -> str:
    """Return what the brackets of a reference choose."""
    match argument:
        case Slice(start=None, stop=None):
            return "pass:all"
        case Slice(start=None, stop=RefPath()):
            return "pass:up to this one"
        case Slice():
            return "pass:some"
        case Unary():
            return "pass:from the end"
        case Binary():
            return "pass:the one before"
    return "pass:one"


def _of_tie(tie: Any) -> Iterator[str]:
    for item in below(tie if not isinstance(tie, tuple) else tuple(expression for *_, expression in tie)):
        match item:
            case If():
                yield "condition:tie"
            case RefPath(steps=(PathStep(name="none"),)):
                yield "tie:none"
            case RefPath(steps=steps):
                yield "tie:parameter" if isinstance(tie, tuple) else "tie:node"
                yield from ["tie:pass"] * any(step.arguments for step in steps)


def _of_region(region: recipe.GroupDecl | recipe.RepeatDecl | recipe.ScanDecl) -> Iterator[str]:
    """Yield a graph in a graph."""
    inner = [node.what for node in region.body.nodes]
    if isinstance(region, recipe.GroupDecl):
        yield "node:group"
        yield from ["node:group in a group"] * any(isinstance(what, recipe.GroupDecl) for what in inner)
        yield from ["outputs:of a group"] * (len(region.body.outputs) > 1)
        yield from ["edge:of a group"] * bool(region.options.edges and region.options.edges[0].port)
        return
    if isinstance(region, recipe.ScanDecl):
        return
    yield "node:repeat"
    yield from ["node:as"] * (region.index != "layer")
    yield from ["share:flag"] * (region.share is not None)
    yield from ["node:repeat in a repeat"] * any(isinstance(what, recipe.RepeatDecl) for what in inner)
    yield from ["outputs:several carried"] * (len(region.body.outputs) > 1)
    yield from ["each:several"] * (len(region.each) > 1)
    for _, _, value in region.each:
        if isinstance(value, document.YamlScalar):
            yield "each:expression"
            yield from (f"condition:{operator}" for operator in ("==", "!=", "<", ">") if f" {operator} " in value.text)
            yield from ["condition:each"] * any(operator in value.text for operator in "=<>")
            continue
        for item in getattr(value, "items", ()):
            if isinstance(item, document.YamlMapping):
                yield "each:blocks"
            elif isinstance(item, document.YamlScalar):
                text = item.text
                yield f"each:{'list' if text.isdigit() else 'masks' if 'causal' in text or '(' in text else 'words'}"


def _of_nodes(body: recipe.GraphBody, around: set[str]) -> Iterator[str]:
    """Yield what depends on where a node stands: references and ties that leave their graph."""
    here = {node.name for node in body.nodes}
    for node in body.nodes:
        match node.what:
            case recipe.BlockChoice(expression=expression):
                yield "condition:node" if isinstance(expression, If) else "node:name"
            case recipe.UseDecl():
                yield "node:block"
            case None:
                continue
        options = node.what.options
        for item in below(options.edges):
            if isinstance(item, RefPath) and item.steps[0].name in around - here - {"input"}:
                yield "edge:from around"
        if isinstance(options.tie, RefPath) and options.tie.steps[0].name in around:
            yield "tie:around"
        for what in [node.what, *(entry.value.what for entry in getattr(node.what, "fields", ()) if slot(entry.value))]:
            if isinstance(what, recipe.GroupDecl | recipe.RepeatDecl | recipe.ScanDecl):
                yield from _of_nodes(what.body, around | here)


def slot(value: Any) -> bool:
    """Return whether a field is a slot."""
    return isinstance(value, recipe.SlotValue)


# -- as it is expanded


def _of_graph(program: ir.Program) -> Iterator[str]:
    for item in below(program.graph):
        match item:
            case ir.BlockNode(part=part):
                yield f"part:{part.kind}"
                yield from (f"port:{part.kind}.{wire.port or next(iter(ports(part)))}" for wire in item.wires)
                first = next(iter(part.outputs), "").rstrip("?")
                yield from (f"output:{part.kind}.{output}" for output in (first, *item.requested_outputs))
                yield from ["frozen:block"] * (not item.trainable)
            case ir.Pending(bindings=bindings):
                yield from ["block:axis"] * any(isinstance(bound, ir.AxisOf) for _, bound in bindings)
            case ir.GroupNode():
                if item.part is not None and is_defined(item.part):
                    yield from ["block:left open"] * (len(item.ports) < len(item.part.inputs))
                elif item.part is not None:
                    yield f"part:{item.part.kind}"
                    yield from (f"port:{item.part.kind}.{wire.port or 'x'}" for wire in item.wires)
                    yield f"output:{item.part.kind}.{next(iter(item.part.outputs))}"
                yield from ["frozen:group"] * (not item.trainable)
            case ir.Graph():
                yield from _of_states(item, program.graph)
            case ir.PartValue(part=part):
                yield f"part:{part.kind}"
                yield from (f"field:{part.kind}.{name}" for name, _ in item.fields)
                for name, value in item.fields:
                    if isinstance(value, ir.Known) and isinstance(value.value, ir.EdgePort):
                        yield f"slot:{part.kind}.{name} edge"
            case ir.RepeatNode(passes=passes):
                if item.share is not None:
                    yield f"share:{'equal passes' if len({id(one.graph) for one in passes}) == 1 else 'passes that differ'}"
                yield from ["when:some passes"] * (len({tuple(node.name for node in one.graph.nodes) for one in passes}) > 1)


def _of_states(graph: ir.Graph, root: ir.Graph) -> Iterator[str]:
    order = [node.name for node in graph.nodes]
    for node in graph.nodes:
        if isinstance(node, ir.BlockNode) and node.part is Renewal:
            yield "state:of the model" if graph is root else "state:of a pass"
            read, state = node.wires[0].refs[0].node, node.name.removesuffix(SUFFIX)
            yield from ["state:of a node behind it"] * (read in order and order.index(state) < order.index(read))


def _of_program(program: ir.Program) -> Iterator[str]:
    """Yield what the values come to."""
    graphs = [each for each in below(program.graph) if isinstance(each, ir.Graph)]
    for item in below(program.recipe.body):
        if isinstance(item, recipe.NodeDecl) and item.what is not None and item.what.options.when is not None:
            kept = any(isinstance(each, ir.Graph) and item.name in {node.name for node in each.nodes} for each in graphs)
            yield "when:kept" if kept else "when:dropped"
    for item in below(program.graph):
        if isinstance(item, ir.RepeatNode) and len({id(one.graph) for one in item.passes}) == len(item.passes) > 1:
            yield "values:width that changes"


def _of_scans(program: TypedProgram) -> Iterator[str]:
    """Yield how values go from step to step."""
    for scan in below(program.root):
        if isinstance(scan, TypedScan):
            outputs = [name for name, _ in scan.graph.graph.outputs]
            yield "scan:carried" if scan.carried else "scan:nothing carried"
            yield from ["scan:first to first"] * any(name not in outputs for name in scan.carried)
            yield from ["scan:widened"] * any(scan.widened.values())
            yield from ["scan:from around"] * any(item.captured and item.name in scan.steps for item in scan.graph.graph.inputs)
    for graph in below(program.untyped.graph):
        if isinstance(graph, ir.Graph):
            first = {node.name: node.graph.outputs[0][0] for node in graph.nodes if isinstance(node, ir.ScanNode)}
            read = [
                ref for node in graph.nodes if not isinstance(node, ir.RepeatNode) for wire in node.wires for ref in wire.refs
            ]
            for ref in (*read, *(ref for _, ref in graph.outputs)):
                yield from ["scan:last step"] * (ref.node in first and ref.port not in ("", first[ref.node]))


def covering(texts: list[str]) -> list[str]:
    """Return some of the recipes, with all the features that all of them have: each time the one that adds most."""
    have = {text: features(composer.load(text)) for text in texts}
    missing, chosen = set().union(*have.values()), []
    while missing:
        chosen.append(max(have, key=lambda text: len(have[text] & missing)))
        missing -= have[chosen[-1]]
    return chosen
