"""The calls of one graph, as statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref
from composer.graph.state_update import SUFFIX
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan, is_renewal
from composer.lower.emit.calls import call
from composer.lower.emit.identifiers import attribute, parameter_names
from composer.lower.emit.statements import Key, Naming, Statement
from composer.lower.passes.loops import loop
from composer.lower.passes.node_queries import key_of
from composer.lower.passes.scan_loops import scan
from composer.lower.passes.shared_weights import modules_of

if TYPE_CHECKING:
    from composer.lower.passes.skeletons import Class, Classes, Instance


@dataclass(frozen=True, slots=True)
class Argument:
    """What one parameter of a graph's class is given."""

    word: str
    """The keyword; nothing where it stands in its place."""
    keys: Sequence[Key]
    many: bool
    """Whether it is a list."""


class Forward:
    """The statements of one graph."""

    def __init__(self, classes: Classes, written: Class, instance: Instance, names: Mapping[str, str]) -> None:
        self.classes, self.written, self.instance, self.names = classes, written, instance, names
        self.graph, self.hoisted = instance.graph, instance.hoisted
        self.prepared: set[str] = set()
        self.statements: list[Statement] = []
        self.read = self._read()
        """Every value of this graph that something reads."""

    def all(self) -> list[Statement]:
        """Return the statements of the nodes, in the order of the graph."""
        for node in self.graph.nodes:
            if not node.node.dropped:
                self.statements.extend(self._node(node))
        return self.statements

    def _node(self, node: TypedNode) -> Sequence[Statement]:
        match node:
            case TypedBlock() if is_renewal(node):
                return [self._renewal(node)]
            case TypedBlock():
                return [call(self, node)]
            case TypedGroup():
                return [self._group(node)]
            case TypedScan():
                return [scan(self, node)]
            case TypedRepeat():
                return self._repeat(node)
            case _:
                assert_never(node)

    def _read(self) -> set[Key]:
        read = {key_of(self.graph, ref) for _, ref in self.graph.graph.outputs}
        if self.graph is self.classes.program.root:
            read |= {(name, 0, None) for name in self.classes.program.program.losses.values()}
        for node in self.graph.nodes:
            wires = self.written.wires[node.name].values() if isinstance(node, TypedBlock) else wires_of(node)
            itself = isinstance(node, TypedRepeat)  # which pass it reads of itself is the loop's own business
            read.update(key_of(self.graph, ref) for wire in wires for ref in wire.refs if not (itself and ref.node == node.name))
        return read

    # -- values

    def key(self, ref: Ref) -> Key:
        """Return which value a reference is, in this graph with what is hoisted to it."""
        if ref.node in self.hoisted.local or ref.node in self.hoisted.inputs:
            return (ref.node, 0, None)
        return key_of(self.graph, ref)

    def is_list(self, key: Key) -> bool:
        """Return whether a value is a list that the graph is given, such as a range of passes."""
        return isinstance(self.graph.inputs.get(key[0]), tuple) and key[0] not in self.graph.by_name

    def given_if_read(
        self, name: str, graph: TypedGraph, index: int | None = None, own: Set[Key] = frozenset()
    ) -> list[Key | None]:
        """Return the values that a graph inside gives; None for one that neither this graph nor the
        repeat itself (`own`) reads.
        """
        keys = [(name, output, index) for output in range(len(graph.graph.outputs))]
        return [key if key in self.read or key in own else None for key in keys]

    def hoisted_for(self, module: str, reader: TypedNode) -> Mapping[str, Ref]:
        """Return the arguments of a module beside the wires of its node, prepared before its first use."""
        extra = self.hoisted.arguments.get(module, {})
        self._prepare(extra.values(), reader)
        return extra

    def _prepare(self, refs: Iterable[Ref], reader: TypedNode) -> None:
        for ref in refs:
            need = self.hoisted.local.get(ref.node)
            if need is None or ref.node in self.prepared:
                continue
            self.prepared.add(ref.node)
            sources = [source for source in need.sources if isinstance(source, Ref)]
            self._prepare(sources, reader)
            keys = [self.key(source) for source in sources]
            heads = [""] * len(need.arguments) + [f"{word}=" for word, _ in need.keywords]

            def write(name: Naming, keys: list[Key] = keys, heads: list[str] = heads, target: str = attribute(ref.node)) -> str:
                return f"{target}.prepare({', '.join(head + name(key) for head, key in zip(heads, keys, strict=True))})"

            note = f"{reader.name}, preparing its {need.label}"
            self.statements.append(Statement([(ref.node, 0, None)], keys, write, reader.node.name_span, note, name=ref.node))

    # -- nodes that are one call of a module

    def _renewal(self, block: TypedBlock) -> Statement:
        key, state = self.key(block.node.wires[0].refs[0]), block.name.removesuffix(SUFFIX)
        return Statement([], [key], lambda name: f"{attribute(state)}.renew({name(key)})", block.node.name_span, state)

    def _group(self, group: TypedGroup) -> Statement:
        given = {wire.port: wire.refs for wire in group.node.wires}
        given |= {name: (ref,) for name, ref in self.hoisted_for(group.name, group).items()}
        arguments = self.arguments(self.instance_of(group.graph, group.name), given)
        gives = self.given_if_read(group.name, group.graph)
        return self._call(group, group.name, arguments, gives)

    def _repeat(self, repeat: TypedRepeat) -> list[Statement]:
        """Return all passes as one loop, or else one by one."""
        given, inners = [], []
        for index, (one, graph) in enumerate(zip(repeat.node.passes, repeat.passes, strict=True)):
            extra = self.hoisted_for(f"{repeat.name}[{index}]", repeat)
            inners.append(self.instance_of(graph, f"{repeat.name}[{index}]"))
            given.append({**{wire.port: wire.refs for wire in one.wires}, **{name: (ref,) for name, ref in extra.items()}})
        if (together := loop(self, repeat, inners, given)) is not None:
            return [together]
        own = {self.key(ref) for one in repeat.node.passes for wire in one.wires for ref in wire.refs}
        modules = modules_of(repeat)
        return [
            self._call(
                repeat,
                modules[index],
                self.arguments(inner, given[index]),
                self.given_if_read(repeat.name, inner.graph, index, own),
            )
            for index, inner in enumerate(inners)
        ]

    def _call(self, node: TypedNode, module: str, arguments: Sequence[Argument], gives: Sequence[Key | None]) -> Statement:
        def write(name: Naming) -> str:
            return f"{attribute(module)}({', '.join(self.text(argument, name) for argument in arguments)})"

        uses = [key for argument in arguments for key in argument.keys]
        return Statement(gives, uses, write, node.node.name_span, node.name)

    # -- what modules are given

    def instance_of(self, graph: TypedGraph, module: str) -> Instance:
        """Return a graph inside as the module that it becomes."""
        return self.classes.instances[graph, self.hoisted.inner[module]]

    def arguments(self, inner: Instance, given: Mapping[str, Sequence[Ref]]) -> list[Argument]:
        """Return what each parameter of the class is given; those that only some instances need go by their keyword."""
        always, sometimes = self.classes.inputs(self.classes.by_key[inner.key])
        many = {item.name for item in inner.graph.graph.inputs if item.many}
        words = parameter_names([*always, *sometimes])
        keys = {name: [self.key(ref) for ref in given.get(name, ())] for name in words}
        found = [Argument("", keys[name], name in many) for name in always]
        return found + [Argument(words[name], keys[name], name in many) for name in sometimes if keys[name]]

    def text(self, argument: Argument, name: Naming) -> str:
        """Return an argument, given values' names."""
        texts = [f"*{name(key)}" if self.is_list(key) else name(key) for key in argument.keys]
        text = f"[{', '.join(texts)}]" if argument.many else texts[0] if texts else "None"
        return f"{argument.word}={text}" if argument.word else text
