"""One graph while its forward is written: its values, which of them are read, and the arguments of the modules inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedGraph, TypedRepeat
from composer.lower.emit.identifiers import parameter_names
from composer.lower.emit.skeletons import Class, Classes, Instance
from composer.lower.emit.statements import Naming
from composer.lower.passes.node_queries import Key, key_of


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs that the forward of a class takes, by their names in the recipe."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    """Those that only some instances are given."""

    @property
    def parameters(self) -> dict[str, str]:
        """The name of each parameter in Python."""
        return parameter_names([*self.required, *self.optional])


@dataclass(frozen=True, slots=True)
class Argument:
    """The argument for one parameter of a class."""

    keyword: str
    """Empty for a positional argument."""
    keys: Sequence[Key]
    many: bool
    """Whether it is a list."""


class ForwardScope:
    """One graph, given the signatures of the classes that it calls."""

    def __init__(self, classes: Classes, class_: Class, signatures: Mapping[Class, Signature], names: Mapping[str, str]) -> None:
        self.classes, self.class_, self.signatures, self.names = classes, class_, signatures, names
        self.graph, self.hoisted = class_.instances[0].graph, class_.instances[0].hoisted
        self.read = self._read()
        """Every value of this graph that something reads."""

    def _read(self) -> set[Key]:
        read = {key_of(self.graph, ref) for _, ref in self.graph.graph.outputs}
        if self.graph is self.classes.program.root:
            read |= {(name, 0, None) for name in self.classes.program.untyped.losses.values()}
        for node in self.graph.nodes:
            wires = self.class_.wires[node.name].values() if isinstance(node, TypedBlock) else wires_of(node)
            itself = isinstance(node, TypedRepeat)  # what a pass reads of the repeat itself is the loop's own business
            read.update(key_of(self.graph, ref) for wire in wires for ref in wire.refs if not (itself and ref.node == node.name))
        hoisted = [source for each in self.hoisted.local.values() for source in each.sources]
        hoisted += [ref for arguments in self.hoisted.arguments.values() for ref in arguments.values()]
        read.update(key_of(self.graph, ref) for ref in hoisted if isinstance(ref, Ref) and ref.node in self.graph.by_name)
        return read

    def key(self, ref: Ref) -> Key:
        """Return the value that a reference names, in this graph or among what is hoisted to it."""
        if ref.node in self.hoisted.local or ref.node in self.hoisted.inputs:
            return (ref.node, 0, None)
        return key_of(self.graph, ref)

    def is_list(self, key: Key) -> bool:
        """Return whether a value is a list that the graph is given, such as a range of passes."""
        return isinstance(self.graph.inputs.get(key[0]), tuple) and key[0] not in self.graph.by_name

    def results(self, name: str, graph: TypedGraph, index: int | None = None, own: Set[Key] = frozenset()) -> list[Key | None]:
        """Return the values that a graph inside returns; None for one that neither this graph nor the repeat itself (`own`)
        reads.
        """
        keys = [(name, output, index) for output in range(len(graph.graph.outputs))]
        return [key if key in self.read or key in own else None for key in keys]

    def hoisted_arguments(self, module: str) -> Mapping[str, Ref]:
        """Return the arguments of a module beside the wires of its node, by keyword."""
        return self.hoisted.arguments.get(module, {})

    def instance_of(self, graph: TypedGraph, module: str) -> Instance:
        """Return a graph inside as the module that it becomes."""
        return self.classes.instances[graph, self.hoisted.inner[module]]

    def signature_of(self, inner: Instance) -> Signature:
        """Return the signature of a module inside."""
        return self.signatures[inner.class_]

    def arguments(self, inner: Instance, given: Mapping[str, Sequence[Ref]]) -> list[Argument]:
        """Return the arguments for a module inside; those that only some instances need are keyword arguments."""
        signature = self.signature_of(inner)
        many = {item.name for item in inner.graph.graph.inputs if item.many}
        parameters = signature.parameters
        keys = {name: [self.key(ref) for ref in given.get(name, ())] for name in parameters}
        found = [Argument("", keys[name], name in many) for name in signature.required]
        return found + [Argument(parameters[name], keys[name], name in many) for name in signature.optional if keys[name]]

    def text(self, argument: Argument, name: Naming) -> str:
        """Return an argument as source, given the names of values."""
        texts = [f"*{name(key)}" if self.is_list(key) else name(key) for key in argument.keys]
        text = f"[{', '.join(texts)}]" if argument.many else texts[0] if texts else "None"
        return f"{argument.keyword}={text}" if argument.keyword else text


def aligned(places: tuple[int | None, ...]) -> str:
    """Return `[:, None]`: new axes where a value lacks them, after its own are put in the order of the output."""
    order = tuple(place for place in places if place is not None)
    moved = "" if order == tuple(sorted(order)) else f".permute{order}"
    return moved + _new_axes(places)


def _new_axes(places: tuple[int | None, ...]) -> str:
    if None not in places:
        return ""
    trimmed = list(places)
    while trimmed and trimmed[-1] is not None:
        trimmed.pop()
    kept = [":" if place is not None else "None" for place in trimmed]
    first = next((i for i, item in enumerate(kept) if item == ":"), len(kept))
    if first == len(kept) and len(trimmed) < len(places):
        return "" if all(item == "None" for item in kept) else f"[{', '.join(kept)}]"
    return f"[{', '.join(kept)}]" if ":" in kept else ""
