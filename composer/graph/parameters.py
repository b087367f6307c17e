"""The parameters of a model by their full names, and which of them are tied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, islice, takewhile
from math import prod

from composer.diagnostics import MAX_ERRORS, Diagnostic, Span
from composer.graph.anatomy import regions, slots
from composer.graph.ir import AdapterPattern, Tie
from composer.graph.typed import (
    TypedBlock,
    TypedGraph,
    TypedNode,
    TypedParameter,
    TypedProgram,
    TypedRepeat,
)
from composer.graph.visit import Visit, walk
from composer.language.patterns import matches
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

    @property
    def numel(self) -> int:
        """Number of elements of the tensor."""
        return prod(self.parameter.shape)


def holders(name: str) -> list[str]:
    """Return the paths of all that hold a parameter or a node, the outermost first.

    Examples:
        >>> holders("layers.3.attn.weight")
        ['layers', 'layers.3', 'layers.3.attn']
    """
    steps = name.split(".")
    return [".".join(steps[:end]) for end in range(1, len(steps))]


def covers(pattern: str, name: str) -> bool:
    """Return whether a pattern matches the name of a parameter, or of what holds it.

    Examples:
        >>> covers("head", "head.weight"), covers("*.head", "head.weight")
        (True, False)
    """
    return any(matches(pattern, each) for each in (name, *holders(name)))


def is_trained(name: str, parameter: TypedParameter, adapters: Sequence[AdapterPattern]) -> bool:
    """Return whether a parameter is trained in a recipe with adapters: only these are, and what is named to be trained whole."""
    return parameter.role == "adapter" or any(rule.adapter is None and covers(rule.pattern, name) for rule in adapters)


def owned(table: Iterable[NamedParameter]) -> dict[str, int]:
    """Return the number of parameters at each path and below it, at the empty one of all; a tied tensor counts at its owner."""
    found: dict[str, int] = {}
    for entry in table:
        if not entry.tied_to:
            for path in ("", *holders(entry.name), entry.name):
                found[path] = found.get(path, 0) + entry.numel
    return found


def numel(table: Iterable[NamedParameter]) -> int:
    """Return the number of elements of all tensors; a tied one counts once."""
    return sum(entry.numel for entry in table if not entry.tied_to)


def parameters(typed: TypedProgram) -> tuple[NamedParameter, ...]:
    """Return all parameters in the order of the file; a model without mistakes in its ties (see `tie_mistakes`)."""
    return _resolved(typed)[0]


def parameters_of(graph: TypedGraph) -> dict[str, TypedParameter]:
    """Return the parameters below a graph by their names there, tied or not."""
    return {f"{visit.path}.{each.name}": each for visit, block in _blocks(graph) for each in block.parameters}


def tie_mistakes(typed: TypedProgram) -> tuple[Diagnostic, ...]:
    """Return the mistakes of ties: what they name is not there, or cannot be one tensor."""
    if not any(visit.node.node.ties for visit in walk(typed.root, nodes=in_file_order, once=True)):
        return ()  # most models have none, and names of all passes are many
    return _resolved(typed)[1]


def buffers(typed: TypedProgram) -> dict[str, TypedParameter]:
    """Return what the model keeps from call to call and does not learn, by its names in the `state_dict`."""
    return buffers_of(typed.root)


def buffers_of(graph: TypedGraph) -> dict[str, TypedParameter]:
    """Return the buffers below a graph, by their names there."""
    return {f"{visit.path}.{each.name}": each for visit, block in _blocks(graph) for each in block.buffers}


def _blocks(graph: TypedGraph) -> Iterator[tuple[Visit, TypedBlock]]:
    """Yield every block below a graph, in the order of the file."""
    for visit in walk(graph, nodes=in_file_order):
        if isinstance(visit.node, TypedBlock):
            yield visit, visit.node


@dataclass(frozen=True, slots=True)
class _PlacedTie:
    tie: Tie
    at: Visit
    """The node that is tied."""


class _Mistake(Exception):
    def __init__(self, message: str, hint: str = "", code: str = "tie", *, own: bool = False) -> None:
        super().__init__(message)
        self.message, self.hint, self.code = message, hint, code
        self.own = own
        """Whether the name of the node's own parameter is wrong."""


@dataclass(frozen=True, slots=True)
class _Table:
    """The parameters and ties of a model in the order of the file, so that those below one node are adjacent."""

    names: list[str] = field(default_factory=list)
    parameters: dict[str, tuple[TypedParameter, bool]] = field(default_factory=dict)
    """Each with whether it is trained."""
    places: dict[str, int] = field(default_factory=dict)
    """Where a name stands among the names."""
    starts: dict[str, int] = field(default_factory=dict)
    """Where among the names those below a node begin."""
    ties: list[_PlacedTie] = field(default_factory=list)

    def under(self, node: str) -> dict[str, str]:
        """Return the parameters below a node: the name there to the full one."""
        prefix, holder = f"{node}.", node if node in self.starts else node.rpartition(".")[0]  # that of a pass is its repeat
        rest = dropwhile(lambda name: not name.startswith(prefix), islice(self.names, self.starts[holder], None))
        return {name[len(prefix) :]: name for name in takewhile(lambda name: name.startswith(prefix), rest)}

    def shape(self, name: str) -> tuple[int, ...]:
        return self.parameters[name][0].shape

    def shown(self, name: str) -> str:
        return f"[{', '.join(map(str, self.shape(name)))}]"


def _resolved(typed: TypedProgram) -> tuple[tuple[NamedParameter, ...], tuple[Diagnostic, ...]]:
    found: tuple[tuple[NamedParameter, ...], tuple[Diagnostic, ...]] = typed.found.get("parameters", lambda: _table(typed))
    return found


def _table(typed: TypedProgram) -> tuple[tuple[NamedParameter, ...], tuple[Diagnostic, ...]]:
    """Return all parameters, and the mistakes of ties."""
    table = _collected(typed.root)
    owners = {name: name for name in table.names}
    diagnostics: dict[Span, Diagnostic] = {}
    for placed in table.ties:
        if len(diagnostics) == MAX_ERRORS:
            break
        try:
            for name, other in _pairs(placed, table):
                _union(owners, name, other, table)
        except _Mistake as wrong:
            span = placed.tie.key if wrong.own else placed.tie.span
            diagnostics[span] = Diagnostic(wrong.code, wrong.message, span, hint=wrong.hint)
    kept = {name: _owner(owners, name) for name in table.names}
    frozen = {kept[name] for name, (_, trainable) in table.parameters.items() if not trainable}
    if adapters := typed.untyped.adapters:
        frozen |= {*kept.values()} - {
            kept[name] for name, (one, _) in table.parameters.items() if is_trained(name, one, adapters)
        }
    rows = []
    for name, (parameter, _) in table.parameters.items():
        owner = kept[name]
        rows.append(NamedParameter(name, parameter, owner not in frozen, owner if owner != name else ""))
    return tuple(rows), tuple(diagnostics.values())


def _collected(root: TypedGraph) -> _Table:
    table = _Table()
    trainable: dict[str, bool] = {}
    for visit in walk(root, nodes=in_file_order):
        path, node, holder = visit.path, visit.node, visit.holder
        trainable[path] = node.node.trainable and (holder is None or trainable[holder.path])
        table.starts[path] = len(table.names)
        if node.node.ties:
            table.ties.extend(_PlacedTie(tie, visit) for tie in node.node.ties)
        if isinstance(node, TypedBlock):
            for parameter in node.parameters:
                name = f"{path}.{parameter.name}"
                table.places[name] = len(table.names)
                table.names.append(name)
                table.parameters[name] = (parameter, trainable[path])
    return table


def _below(visit: Visit) -> Mapping[str, TypedNode]:
    """Return the nodes beside a node and itself, by name; what fills a slot stands alone."""
    return {visit.path.removeprefix(visit.prefix): visit.node} if visit.graph is None else visit.graph.by_name


def in_file_order(graph: TypedGraph) -> Sequence[TypedNode]:
    """Return the nodes as they are written, which is not always the order in which they compute."""
    if len({id(node.node.name_span.source) for node in graph.nodes}) > 1:  # merged from several files
        return graph.nodes
    return sorted(graph.nodes, key=lambda node: (node.node.name_span.line, node.node.name_span.column))


def _pairs(placed: _PlacedTie, table: _Table) -> Iterator[tuple[str, str]]:
    """Yield every name that the tie gives to one tensor, with the other name of that tensor."""
    other, rest = _target(placed)
    own, theirs = table.under(placed.at.path), table.under(other)
    if rest and rest not in theirs:
        raise _missing(other, rest, theirs)
    if parameter := placed.tie.parameter:
        if parameter not in own:
            raise _missing(placed.at.path, parameter, own, own=True)
        if not rest:
            raise _Mistake(f"`{other}` is a node, but a parameter is expected", f"write {other}.{parameter}")
        pairs = [(own[parameter], theirs[rest])]
    elif rest:
        raise _Mistake(f"`{other}.{rest}` is a parameter, but a node is expected", f"write tie: {{{rest}: {other}.{rest}}}")
    else:
        common = ((name, theirs[key]) for key, name in own.items() if key in theirs)
        pairs = [(name, target) for name, target in common if table.shape(name) == table.shape(target)]
        if not pairs:
            raise _nothing_in_common(placed.at.path, other, own, theirs, table)
    for name, target in pairs:
        if name == target:
            raise _Mistake(f"`{name}` is tied to itself")
        if table.shape(name) != table.shape(target):
            raise _shapes_differ(name, target, table)
        yield name, target


def _target(placed: _PlacedTie) -> tuple[str, str]:
    """Return the full name of the node that a tie names, and what its path names below it."""
    place = next(islice(placed.at.around, placed.tie.up, None))
    first, beside = placed.tie.path[0], _below(place)
    if first not in beside:
        raise _Mistake(f"`{first}` is not there, so nothing can be tied to it")
    name, _, rest = descended(placed.tie.path, beside)
    return place.prefix + name, ".".join(map(str, rest))


def descended(path: Sequence[str | int], beside: Mapping[str, TypedNode]) -> tuple[str, TypedNode, list[str | int]]:
    """Return the node that a path leads to from the nodes where it begins, after its name from there; and what the path names
    below it.
    """
    first, *rest = path
    name, node = str(first), beside[str(first)]
    while rest:
        inner = regions(node)
        if isinstance(node, TypedRepeat):
            region = inner[int(rest.pop(0)) if isinstance(rest[0], int) else -1]
            name = f"{name}.{region.name}"[:-1]
            if not rest:
                break
            below = region.graph.by_name
        else:
            below = inner[0].graph.by_name if inner else dict(slots(node))
        if rest[0] not in below:
            break
        step = str(rest.pop(0))
        name, node = f"{name}.{step}", below[step]
    return name, node, rest


def _missing(node: str, parameter: str, known: Mapping[str, str], *, own: bool = False) -> _Mistake:
    offered = suggest(parameter, known)
    listed = f"it has {', '.join(list(known)[:8])}" if known else "it has no parameters"
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


def _union(owners: dict[str, str], name: str, other: str, table: _Table) -> None:
    """Merge the sets of two names of one tensor: the first in the file owns it."""
    first, second = sorted((_owner(owners, name), _owner(owners, other)), key=table.places.__getitem__)
    owners[second] = first
