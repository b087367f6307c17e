"""Every learned tensor of a model by its full name, and which of them are one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from composer.diagnostics import Diagnostic, Span
from composer.graph.ir import Tie
from composer.graph.typed import (
    TypedBlock,
    TypedGraph,
    TypedGroup,
    TypedNode,
    TypedParameter,
    TypedProgram,
    TypedRepeat,
    TypedScan,
    children,
)
from composer.language.suggestions import suggest


@dataclass(frozen=True, slots=True)
class NamedParameter:
    """One entry of the table: a name that a node's parameter has, tied or not."""

    name: str
    """In the `state_dict`: the node's path and the parameter's own name, `layers.3.attn.body.q.weight`."""
    parameter: TypedParameter
    trainable: bool
    tied_to: str = ""
    """The name that owns the tensor, where that is another one: of tied names, the first in the file."""

    @property
    def owner(self) -> str:
        """The name under which the tensor is kept."""
        return self.tied_to or self.name


def parameters(typed: TypedProgram) -> tuple[NamedParameter, ...]:
    """All parameters in the order of the file; a model without mistakes in its ties (see `tie_mistakes`)."""
    return _resolved(typed)[0]


def parameters_of(graph: TypedGraph) -> Mapping[str, TypedParameter]:
    """The parameters below a graph by their names there, tied or not."""
    table = _Table()
    _collect(graph, (), "", True, table)
    return {name: parameter for name, (parameter, _) in table.parameters.items()}


def tie_mistakes(typed: TypedProgram) -> tuple[Diagnostic, ...]:
    """Ties that name what is not there, or what cannot be one tensor."""
    return _resolved(typed)[1]


def buffers(typed: TypedProgram) -> dict[str, TypedParameter]:
    """What the model keeps from call to call and does not learn, by its names in the `state_dict`."""
    return buffers_of(typed.root)


def buffers_of(graph: TypedGraph) -> dict[str, TypedParameter]:
    """The same below a graph, by their names there."""
    return dict(_buffers(graph, ""))


def _buffers(graph: TypedGraph, prefix: str) -> Iterator[tuple[str, TypedParameter]]:
    for node in in_file_order(graph):
        if not node.node.dropped:
            yield from _buffers_below(node, prefix + node.name)


def _buffers_below(node: TypedNode, name: str) -> Iterator[tuple[str, TypedParameter]]:
    if isinstance(node, TypedBlock):
        yield from ((f"{name}.{buffer.name}", buffer) for buffer in node.buffers)
    for child, below in children(node):
        yield from _buffers_below(below, f"{name}.{child}")


@dataclass(frozen=True, slots=True)
class _Place:
    """A graph that a tie may lead to: a region of the model with its own prefix of names."""

    prefix: str
    inside: Mapping[str, TypedNode]


@dataclass(frozen=True, slots=True)
class _PlacedTie:
    tie: Tie
    node: str
    """Full name of the node that is tied."""
    places: tuple[_Place, ...]
    """The graphs around the node, outermost first."""


class _Mistake(Exception):
    def __init__(self, message: str, hint: str = "", code: str = "tie", *, own: bool = False) -> None:
        super().__init__(message)
        self.message, self.hint, self.code = message, hint, code
        self.own = own
        """Whether it is the name of the own parameter that is wrong."""


@dataclass(frozen=True, slots=True)
class _Table:
    """All that is below the root, as it is met: in the order of the file, so that what is below one node stands together."""

    names: list[str] = field(default_factory=list)
    parameters: dict[str, tuple[TypedParameter, bool]] = field(default_factory=dict)
    """Each with whether it is trained."""
    places: dict[str, int] = field(default_factory=dict)
    """Where a name stands among the names."""
    below: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The first name below a node or a pass, and the end."""
    ties: list[_PlacedTie] = field(default_factory=list)

    def under(self, node: str) -> dict[str, str]:
        """The parameters below a node: the name there to the full one."""
        start, stop = self.below[node]
        return {name[len(node) + 1 :]: name for name in self.names[start:stop]}

    def shape(self, name: str) -> tuple[int, ...]:
        return self.parameters[name][0].shape

    def shown(self, name: str) -> str:
        return f"[{', '.join(map(str, self.shape(name)))}]"


def _resolved(typed: TypedProgram) -> tuple[tuple[NamedParameter, ...], tuple[Diagnostic, ...]]:
    table = _Table()
    _collect(typed.root, (), "", True, table)
    owners = {name: name for name in table.names}
    diagnostics: dict[Span, Diagnostic] = {}
    for placed in table.ties:
        try:
            for name, other in _pairs(placed, table):
                _unite(owners, name, other, table)
        except _Mistake as wrong:
            span = placed.tie.key if wrong.own else placed.tie.span
            diagnostics[span] = Diagnostic(wrong.code, wrong.message, span, hint=wrong.hint)
    kept = {name: _owner(owners, name) for name in table.names}
    frozen = {kept[name] for name, (_, trainable) in table.parameters.items() if not trainable}
    rows = []
    for name, (parameter, _) in table.parameters.items():
        owner = kept[name]
        rows.append(NamedParameter(name, parameter, owner not in frozen, owner if owner != name else ""))
    return tuple(rows), tuple(diagnostics.values())


def _collect(graph: TypedGraph, around: tuple[_Place, ...], prefix: str, trainable: bool, table: _Table) -> None:
    places = (*around, _Place(prefix, _kept(graph)))
    for node in in_file_order(graph):
        if not node.node.dropped:
            _collect_node(node, places, prefix + node.name, trainable, table)


def _collect_node(node: TypedNode, places: tuple[_Place, ...], name: str, trainable: bool, table: _Table) -> None:
    trainable = trainable and node.node.trainable
    table.ties.extend(_PlacedTie(tie, name, places) for tie in node.node.ties)
    start = len(table.names)
    match node:
        case TypedBlock(parameters=own, slots=slots):
            for parameter in own:
                full = f"{name}.{parameter.name}"
                table.places[full] = len(table.names)
                table.names.append(full)
                table.parameters[full] = (parameter, trainable)
            for slot, filled in slots.items():
                if filled is not None:
                    sealed = _Place(f"{name}.", {slot: filled})
                    _collect_node(filled, (*places, sealed), f"{name}.{slot}", trainable, table)
        case TypedGroup(graph=graph) | TypedScan(graph=graph):
            _collect(graph, places, f"{name}.", trainable, table)
        case TypedRepeat(owners=owners):
            for index, one in enumerate(owners):
                prefix, before = f"{name}.{node.prefix(index)}", len(table.names)
                _collect(one, places, prefix, trainable, table)
                table.below[prefix[:-1]] = (before, len(table.names))
    table.below[name] = (start, len(table.names))


def _kept(graph: TypedGraph) -> Mapping[str, TypedNode]:
    """The nodes that are not dropped, by name."""
    return {node.name: node for node in graph.nodes if not node.node.dropped}


def in_file_order(graph: TypedGraph) -> Sequence[TypedNode]:
    """The nodes as they are written, which is not always the order in which they compute."""
    if len({id(node.node.name_span.source) for node in graph.nodes}) > 1:  # merged from several files
        return graph.nodes
    return sorted(graph.nodes, key=lambda node: (node.node.name_span.line, node.node.name_span.column))


def _pairs(placed: _PlacedTie, table: _Table) -> Iterator[tuple[str, str]]:
    """Every name that the tie gives to one tensor, with the other name of that tensor."""
    other, rest = _target(placed)
    own, theirs = table.under(placed.node), table.under(other)
    if rest and rest not in theirs:
        raise _missing(other, rest, theirs)
    if parameter := placed.tie.parameter:
        if parameter not in own:
            raise _missing(placed.node, parameter, own, own=True)
        if not rest:
            raise _Mistake(f"`{other}` is a node, and a parameter is wanted", f"write {other}.{parameter}")
        pairs = [(own[parameter], theirs[rest])]
    elif rest:
        raise _Mistake(f"`{other}.{rest}` is a parameter, and a node is wanted", f"write tie: {{{rest}: {other}.{rest}}}")
    else:
        common = ((name, theirs[key]) for key, name in own.items() if key in theirs)
        pairs = [(name, target) for name, target in common if table.shape(name) == table.shape(target)]
        if not pairs:
            raise _nothing_in_common(placed.node, other, own, theirs, table)
    for name, target in pairs:
        if name == target:
            raise _Mistake(f"`{name}` is tied to itself")
        if table.shape(name) != table.shape(target):
            raise _shapes_differ(name, target, table)
        yield name, target


def _target(placed: _PlacedTie) -> tuple[str, str]:
    """The full name of the node that a tie names, and what its path names below it."""
    place = placed.places[-1 - placed.tie.up]
    first, *rest = placed.tie.path
    if first not in place.inside:
        raise _Mistake(f"`{first}` is empty here, so nothing can be tied to it")
    name, node = f"{place.prefix}{first}", place.inside[str(first)]
    while rest:
        if isinstance(node, TypedRepeat):
            index = rest.pop(0) if isinstance(rest[0], int) else len(node.passes) - 1
            name = f"{name}.{node.prefix(int(index))}"[:-1]
            if not rest:
                break
            below = _kept(node.passes[int(index)])
        else:
            below = dict(children(node))
        if rest[0] not in below:
            break
        step = str(rest.pop(0))
        name, node = f"{name}.{step}", below[step]
    return name, ".".join(map(str, rest))


def _missing(node: str, parameter: str, known: Mapping[str, str], *, own: bool = False) -> _Mistake:
    offered = suggest(parameter, known)
    listed = f"it has {', '.join(list(known)[:8])}" if known else "it learns nothing"
    hint = f"did you mean {' or '.join(offered)}?" if offered else listed
    return _Mistake(f"`{node}` has no parameter called `{parameter}`", hint, "unknown-parameter", own=own)


def _nothing_in_common(node: str, other: str, own: Mapping[str, str], theirs: Mapping[str, str], table: _Table) -> _Mistake:
    for key, name in own.items():
        if key in theirs:
            return _shapes_differ(name, theirs[key], table)
    return _Mistake(f"`{node}` and `{other}` have no parameter in common", "name them one by one: tie: {weight: other.weight}")


def _shapes_differ(name: str, other: str, table: _Table) -> _Mistake:
    return _Mistake(f"{name} is {table.shown(name)}, and {other} is {table.shown(other)}", code="tie-shape")


def _owner(owners: dict[str, str], name: str) -> str:
    while owners[name] != name:
        name = owners[name]
    return name


def _unite(owners: dict[str, str], name: str, other: str, table: _Table) -> None:
    """Two names for one tensor: the first in the file owns it."""
    first, second = sorted((_owner(owners, name), _owner(owners, other)), key=table.places.__getitem__)
    owners[second] = first
