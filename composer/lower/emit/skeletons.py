"""Skeletons: graphs of the same names, blocks and wiring become one class; what differs among them is an argument of its
constructor."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, assert_never

from composer.graph.anatomy import wires_of
from composer.graph.ir import Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan, is_renewal
from composer.language.python_names import TAKEN
from composer.language.recipe.defined_block import is_defined
from composer.lower.emit.block_source import CopiedSource
from composer.lower.emit.constructor_trees import Literal, Nested, New, Passes, Tree, nested_in, resolve, unify
from composer.lower.emit.constructors import Constructors, held_buffers
from composer.lower.emit.identifiers import camel, safe
from composer.lower.passes.always import always
from composer.lower.passes.cache_layout import carry_is_cached, growing_axis
from composer.lower.passes.hoist import Hoisted, Hoisting, pass_names
from composer.lower.passes.node_queries import folded_ports, inline_fields, inline_value, is_optional
from composer.lower.passes.shared_weights import modules_of


@dataclass(slots=True, eq=False)
class Instance:
    """A graph that becomes a module."""

    graph: TypedGraph
    hoisted: Hoisted
    """What hoisting adds to the graph."""
    class_: Class
    attributes: dict[str, Tree] = field(default_factory=dict)
    """The value of each attribute."""


@dataclass(slots=True, eq=False)
class Class:
    """A class of the generated module."""

    name: str
    instances: list[Instance] = field(default_factory=list)
    template: dict[str, Tree] = field(default_factory=dict)
    """The value of each attribute, with a hole for what differs among the instances."""
    holes: list[tuple[str, list[Tree]]] = field(default_factory=list)
    """The parameters of the constructor, each with its argument for every instance."""
    carry_is_cached: bool = False
    """Whether it is the step of a scan whose carry is cached from call to call."""
    is_called: bool = False
    """Whether its forward is called; a scan whose states are computed at once takes no steps."""
    wires: dict[str, dict[str, Wire]] = field(default_factory=dict)
    """For each block, the wires that it has in any instance, by port."""


class Classes:
    """The classes of a flat program, and the graphs that are their instances."""

    def __init__(self, typed: TypedProgram) -> None:
        self.program = typed
        self.hoisting = Hoisting(typed)
        self.copied = CopiedSource(always(typed))
        self.instances: dict[tuple[TypedGraph, Hoisted], Instance] = {}
        self.constructors = Constructors(
            self.copied, lambda slot: self._nested(slot.graph, self.hoisting.graph(slot.graph, frozenset()))
        )
        self._by_skeleton: dict[Any, Class] = {}
        self._constructor_calls: dict[object, Tree] = {}

    def all(self) -> list[Class]:
        """Return every class after those that it calls; the model's own is the last."""
        path = camel(self.program.name)
        self._instance(self.program.root, self.hoisting.root(), path, self._class_name(path))  # before all others, which yield
        ordered: dict[Class, None] = {}
        for class_ in self._by_skeleton.values():
            self._after_called(class_, ordered)
        for class_ in ordered:
            self._unify(class_)
        return list(ordered)

    def _after_called(self, class_: Class, ordered: dict[Class, None]) -> None:
        """Add a class behind those that it calls: any of its instances may hold a module that the first one lacks."""
        if class_ not in ordered:
            held = (tree for instance in class_.instances for tree in instance.attributes.values())
            for inner in (nested.instance for tree in held for nested in nested_in(tree)):
                assert isinstance(inner, Instance)
                self._after_called(inner.class_, ordered)
            ordered[class_] = None

    def _instance(self, graph: TypedGraph, hoisted: Hoisted, path: str, name: str = "", *, is_called: bool = True) -> Instance:
        if (graph, hoisted) in self.instances:
            instance = self.instances[graph, hoisted]
            instance.class_.is_called |= is_called
            return instance
        for node in graph.nodes:
            self._inner(node, hoisted, path)
        skeleton = self._skeleton(graph, hoisted)
        if skeleton not in self._by_skeleton:
            self._by_skeleton[skeleton] = Class(name or self._class_name(path))
        class_ = self._by_skeleton[skeleton]
        class_.is_called |= is_called
        instance = self.instances[graph, hoisted] = Instance(graph, hoisted, class_)
        class_.instances.append(instance)
        self._merge_wires(class_, graph)
        for name, preparation in hoisted.local.items():
            instance.attributes[name] = self.constructors.hoisted(preparation)
        for node in graph.nodes:
            self._attribute(instance, node)
        return instance

    def _inner(self, node: TypedNode, hoisted: Hoisted, path: str) -> None:
        match node:
            case TypedGroup():
                self._instance(node.graph, hoisted.inner[node.name], _name(node, path))
            case TypedScan():
                step = self._instance(node.graph, hoisted.inner[node.name], path + camel(node.name), is_called=not node.linear)
                step.class_.carry_is_cached |= carry_is_cached(node, growing_axis(self.program))
            case TypedRepeat():
                for name, graph in zip(pass_names(node), node.passes, strict=True):
                    self._instance(graph, hoisted.inner[name], path + camel(node.name))
            case TypedBlock():
                self._in_slots(node, path + camel(node.name))
            case _:
                assert_never(node)

    def _in_slots(self, block: TypedBlock, path: str) -> None:
        """Collect the graphs in a block's slots, and in the slots of what fills them."""
        for name, slot in block.slots.items():
            match slot:
                case TypedGroup():
                    self._instance(slot.graph, self.hoisting.graph(slot.graph, frozenset()), _name(slot, path, name))
                case TypedBlock():
                    self._in_slots(slot, path + camel(name))
                case TypedScan() | TypedRepeat() | None:  # in a slot, the first two stand in a group of their own
                    pass
                case _:
                    assert_never(slot)

    def _class_name(self, path: str) -> str:
        name, count = path, 1
        while name in self.copied.taken or name in TAKEN:
            count += 1
            name = f"{path}{count}"
        self.copied.taken.add(name)
        return name

    def _skeleton(self, graph: TypedGraph, hoisted: Hoisted) -> Any:
        """Return names, blocks and wiring as a key: without values, and without optional wires from outside."""
        inputs = {item.name for item in graph.graph.inputs}
        optional: set[str] = set()
        nodes = []
        for node in graph.nodes:
            wires = tuple(wires_of(node))
            if isinstance(node, TypedBlock):
                maybe = {w.port for w in wires if is_optional(node, w.port) and all(r.node in inputs for r in w.refs)}
                optional.update(ref.node for w in wires if w.port in maybe for ref in w.refs)
                wires = tuple(w for w in wires if w.port not in maybe)
            nodes.append(
                (
                    node.name,
                    self._kind(node, hoisted),
                    tuple((w.port, w.refs) for w in wires),
                    self._hoisted_arguments(node, hoisted),
                )
            )
        for node in graph.nodes:
            for wire in wires_of(node):
                if not (isinstance(node, TypedBlock) and is_optional(node, wire.port)):
                    optional -= {ref.node for ref in wire.refs}
        given = tuple(item for item in graph.graph.inputs if item.name not in optional)
        local = tuple((name, type(one.part), one.arguments, one.keywords) for name, one in hoisted.local.items())
        return (given, tuple(hoisted.inputs), local, tuple(nodes), graph.graph.outputs)

    def _hoisted_arguments(self, node: TypedNode, hoisted: Hoisted) -> Any:
        if isinstance(node, TypedRepeat):
            return tuple(tuple(hoisted.arguments[name].items()) for name in pass_names(node))
        return tuple(hoisted.arguments.get(node.name, {}).items())

    def _kind(self, node: TypedNode, hoisted: Hoisted) -> Any:
        match node:
            case TypedBlock(part=part):
                call = part.build(node.sizes)
                inline = part.inline(node.sizes) if not node.slots and not node.parameters else None
                how = inline or (call.function if call else type(part))
                folds = (len(node.leading), tuple(folded_ports(node).items()))
                return ("block", how, node.node.requested_outputs, node.expansions, folds)
            case TypedGroup():
                return ("group", self.instances[node.graph, hoisted.inner[node.name]].class_)
            case TypedScan():
                ports = tuple(node.steps.items()), tuple(node.carried.items()), tuple(node.widened.items())
                ways = (*ports, node.place, node.stacked, tuple(node.linear.items()))
                return ("scan", self.instances[node.graph, hoisted.inner[node.name]].class_, ways)
            case TypedRepeat():
                inner = zip(pass_names(node), node.passes, strict=True)
                classes = tuple(self.instances[graph, hoisted.inner[name]].class_ for name, graph in inner)
                return ("repeat", classes, node.node.share is not None and modules_of(node))
            case _:
                assert_never(node)

    def _merge_wires(self, class_: Class, graph: TypedGraph) -> None:
        for node in graph.nodes:
            if isinstance(node, TypedBlock):
                known = class_.wires.setdefault(node.name, {})
                for wire in node.node.wires:
                    known.setdefault(wire.port, wire)

    def _attribute(self, instance: Instance, node: TypedNode) -> None:
        if is_renewal(node):
            return
        match node:
            case TypedBlock():
                if (fields := inline_fields(node)) is not None:
                    for name in fields:
                        instance.attributes[f"{node.name}:{name}"] = Literal(inline_value(node, name))
                    if node.buffers:
                        instance.attributes[node.name] = held_buffers(node)
                else:
                    instance.attributes[node.name] = self.constructors.block(node)
            case TypedGroup() | TypedScan():
                instance.attributes[node.name] = self._nested(node.graph, instance.hoisted.inner[node.name])
            case TypedRepeat():
                inner = zip(pass_names(node), node.passes, strict=True)
                items = tuple(self._nested(graph, instance.hoisted.inner[name]) for name, graph in inner)
                if node.node.share is None:
                    instance.attributes[node.name] = Passes(items)
                else:
                    instance.attributes |= dict(zip(modules_of(node), items, strict=True))
            case _:
                assert_never(node)

    def _nested(self, graph: TypedGraph, hoisted: Hoisted) -> Nested:
        return Nested(self.instances[graph, hoisted])

    def _unify(self, class_: Class) -> None:
        taken = {"self", "kind"}  # `kind` is the variable of the passes of a repeat

        def fresh(path: str) -> str:
            name = safe(re.sub(r"\W", "_", path), taken)
            while name in taken:
                name += "_"
            taken.add(name)
            return name

        for instance in class_.instances:
            instance.attributes = {name: resolve(tree, self._constructor_calls) for name, tree in instance.attributes.items()}
        names = list(dict.fromkeys(name for instance in class_.instances for name in instance.attributes))
        for name in names:
            trees = [instance.attributes.get(name, Literal(None)) for instance in class_.instances]
            class_.template[name] = unify(trees, name, fresh, class_.holes)
        for position, instance in enumerate(class_.instances):
            keywords = tuple((name, values[position]) for name, values in class_.holes)
            self._constructor_calls[instance] = New(class_.name, (), keywords)


def _name(group: TypedGroup, path: str, name: str = "") -> str:
    """Return the name of a group's class: that of the block that the recipe defines, else its path."""
    part = group.node.part
    return camel(part.kind) if part is not None and is_defined(part) else path + camel(name or group.name)
