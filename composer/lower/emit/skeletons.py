"""One class per skeleton: graphs of the same names, blocks and wiring; what differs among them is an argument."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, assert_never

from composer.graph.anatomy import wires_of
from composer.graph.ir import Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan, is_renewal
from composer.language.recipe.defined_block import is_defined
from composer.lower.emit.block_source import Pasted
from composer.lower.emit.constructor_trees import Literal, Nested, New, Passes, Tree, resolve, unify
from composer.lower.emit.constructors import Constructors
from composer.lower.emit.identifiers import RESERVED, camel, safe
from composer.lower.passes.cache_layout import goes_on, writes_along
from composer.lower.passes.hoist import Hoisted, Hoisting, pass_names
from composer.lower.passes.node_queries import inline_fields, is_optional
from composer.lower.passes.shared_weights import modules_of
from composer.memo import Numbering


@dataclass(slots=True, eq=False)
class Instance:
    """A graph that becomes a module, with what hoisting adds to it."""

    graph: TypedGraph
    hoisted: Hoisted
    path: str
    key: int
    attributes: dict[str, Tree] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Class:
    """A class with its instances."""

    name: str
    instances: list[Instance]
    template: dict[str, Tree] = field(default_factory=dict)
    holes: list[tuple[str, list[Tree]]] = field(default_factory=list)
    remembers: bool = False
    """Whether it is a step of a scan that goes on from call to call."""
    wires: dict[str, dict[str, Wire]] = field(default_factory=dict)
    """For each block, the wires of all instances together."""


class Classes:
    """The classes of a model, inner ones first."""

    def __init__(self, typed: TypedProgram) -> None:
        self.program = typed
        self.hoisting = Hoisting(typed)
        self.pasted = Pasted()
        self.instances: dict[tuple[TypedGraph, Hoisted], Instance] = {}
        """Each is one object, which its class holds too."""
        self.by_key: dict[int, Class] = {}
        self.constructors = Constructors(
            self.pasted, lambda slot: self._nested(slot.graph, self.hoisting.graph(slot.graph, frozenset()))
        )
        self._keys: Numbering[Any] = Numbering()
        self._resolved: dict[object, Tree] = {}
        self._names: set[str] = set()

    def all(self) -> list[Class]:
        """Return every class with its constructor; the model's own is the last."""
        self._instance(self.program.root, self.hoisting.root(), camel(self.program.name))
        for written in self.by_key.values():
            self._unify(written)
        return list(self.by_key.values())

    def _instance(self, graph: TypedGraph, hoisted: Hoisted, path: str) -> Instance:
        if (graph, hoisted) in self.instances:
            return self.instances[graph, hoisted]
        for node in graph.nodes:
            self._inner(node, hoisted, path)
        key = self._key(graph, hoisted, path)
        instance = Instance(graph, hoisted, path, key)
        self.instances[graph, hoisted] = instance
        if key not in self.by_key:
            self.by_key[key] = Class(self._class_name(path), [])
        self.by_key[key].instances.append(instance)
        self._merge_wires(self.by_key[key], graph)
        for name, need in hoisted.local.items():
            instance.attributes[name] = self.constructors.prepared(need)
        for node in graph.nodes:
            self._attribute(instance, node)
        return instance

    def _inner(self, node: TypedNode, hoisted: Hoisted, path: str) -> None:
        if node.node.dropped:
            return
        match node:
            case TypedGroup():
                self._instance(node.graph, hoisted.inner[node.name], _name(node, path))
            case TypedScan():
                step = self._instance(node.graph, hoisted.inner[node.name], path + camel(node.name))
                self.by_key[step.key].remembers |= goes_on(node, writes_along(self.program))
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
        while name in self._names or name in self.pasted.taken or name in RESERVED:
            count += 1
            name = f"{path}{count}"
        self._names.add(name)
        self.pasted.taken.add(name)
        return name

    def _key(self, graph: TypedGraph, hoisted: Hoisted, path: str) -> int:
        """Return the number of a skeleton: names, blocks and wiring, without values and without optional wires from outside."""
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
                    self._extra(node, hoisted),
                    node.node.dropped,
                )
            )
        for node in graph.nodes:
            for wire in wires_of(node):
                if not (isinstance(node, TypedBlock) and is_optional(node, wire.port)):
                    optional -= {ref.node for ref in wire.refs}
        given = tuple(item for item in graph.graph.inputs if item.name not in optional)
        local = tuple((name, type(need.part), need.arguments, need.keywords) for name, need in hoisted.local.items())
        shape = (given, tuple(hoisted.inputs), local, tuple(nodes), graph.graph.outputs)
        return self._keys.of(shape)

    def _extra(self, node: TypedNode, hoisted: Hoisted) -> Any:
        if isinstance(node, TypedRepeat):
            return () if node.node.dropped else tuple(tuple(hoisted.arguments[name].items()) for name in pass_names(node))
        return tuple(hoisted.arguments.get(node.name, {}).items())

    def _kind(self, node: TypedNode, hoisted: Hoisted) -> Any:
        match node:
            case TypedBlock(part=part):
                call = part.build(node.sizes)
                inline = part.inline() if not node.slots and not node.parameters else None
                return ("block", inline or (call.function if call else type(part)), node.node.requested_outputs, node.expansions)
            case TypedGroup():
                return (
                    ("group", self.instances[node.graph, hoisted.inner[node.name]].key) if not node.node.dropped else ("dropped",)
                )
            case TypedScan():
                if node.node.dropped:
                    return ("dropped",)
                ways = (tuple(node.steps.items()), tuple(node.carried.items()), tuple(node.widened.items()), node.place)
                return ("scan", self.instances[node.graph, hoisted.inner[node.name]].key, ways)
            case TypedRepeat():
                inner = zip(pass_names(node), node.passes, strict=True)
                keys = [self.instances[graph, hoisted.inner[name]].key for name, graph in inner]
                return ("repeat", tuple(keys), node.node.share is not None and modules_of(node))
            case _:
                assert_never(node)

    def _merge_wires(self, written: Class, graph: TypedGraph) -> None:
        for node in graph.nodes:
            if isinstance(node, TypedBlock):
                known = written.wires.setdefault(node.name, {})
                for wire in node.node.wires:
                    known.setdefault(wire.port, wire)

    # -- constructors

    def _attribute(self, instance: Instance, node: TypedNode) -> None:
        if node.node.dropped or is_renewal(node):
            return
        match node:
            case TypedBlock():
                if (fields := inline_fields(node)) is not None:
                    for name in fields:
                        instance.attributes[f"{node.name}:{name}"] = Literal(getattr(node.part, name))
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

    def _unify(self, written: Class) -> None:
        taken = {"self"}

        def fresh(path: str) -> str:
            name = safe(re.sub(r"\W", "_", path), taken)
            while name in taken:
                name += "_"
            taken.add(name)
            return name

        for instance in written.instances:
            instance.attributes = {name: resolve(tree, self._resolved) for name, tree in instance.attributes.items()}
        names = list(dict.fromkeys(name for instance in written.instances for name in instance.attributes))
        for name in names:
            trees = [instance.attributes.get(name, Literal(None)) for instance in written.instances]
            written.template[name] = unify(trees, name, fresh, written.holes)
        for position, instance in enumerate(written.instances):
            keywords = tuple((name, values[position]) for name, values in written.holes)
            self._resolved[instance] = New(written.name, (), keywords)


def _name(group: TypedGroup, path: str, name: str = "") -> str:
    """Return a group's class: called after the block that a recipe defines, else after where it stands."""
    part = group.node.part
    return camel(part.kind) if part is not None and is_defined(part) else path + camel(name or group.name)
