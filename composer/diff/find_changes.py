"""The changes between two models: their nodes are paired, and what differs in the pairs is collected."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from composer.diff import model_changes
from composer.diff.changes import Added, Altered, Change, FieldChange, PortChange, Removed, Replaced, Rewired
from composer.diff.flat_graph import INPUT, FlatModel, FlatNode
from composer.diff.flatten import flatten
from composer.diff.fold_passes import ChangeGroup, NamesOfBoth, NodeNames, folded, paths_of
from composer.diff.input_changes import Reads
from composer.diff.matching import by_structure, pairings
from composer.diff.normal_forms import NormalForm, NormalValue, PartForm, shown
from composer.diff.pairing import Pairing
from composer.graph.typed import TypedProgram

NOTHING = NormalValue(None, None)


@dataclass(frozen=True, slots=True)
class FoundChanges:
    """The result of comparing the graphs of two models."""

    changes: tuple[Change, ...]
    renamed: tuple[tuple[str, str], ...]
    """Nodes that are the same and have other paths."""
    params: tuple[FieldChange, ...]
    """Params of both recipes with other values."""


def find_changes(before: TypedProgram, after: TypedProgram) -> FoundChanges:
    """Return what differs between the graphs of two models."""
    ours, theirs = flatten(before), flatten(after)
    names = NodeNames(ours), NodeNames(theirs)
    pairing, changes = _best(ours, theirs, names)
    return FoundChanges(tuple(changes), tuple(_renamed(pairing, names)), tuple(_params(before, after)))


def paired(before: TypedProgram, after: TypedProgram) -> Pairing:
    """Pair the blocks of two models."""
    ours, theirs = flatten(before), flatten(after)
    return _best(ours, theirs, (NodeNames(ours), NodeNames(theirs)))[0]


def _best(ours: FlatModel, theirs: FlatModel, names: NamesOfBoth) -> tuple[Pairing, list[Change]]:
    """Return the first pairing with the fewest changes."""
    equal = by_structure(ours, theirs)
    found = [(equal, list(_changes(equal, names)))] if equal is not None else []
    if not found or found[0][1]:
        found += [(pairing, list(_changes(pairing, names))) for pairing in pairings(ours, theirs)]
    return min(found, key=lambda one: len(one[1]))


def _params(before: TypedProgram, after: TypedProgram) -> Iterator[FieldChange]:
    for name, value in before.untyped.params.items():
        other = after.untyped.params.get(name, value)
        if other != value:
            yield FieldChange(name, shown(value), shown(other))


def _renamed(pairing: Pairing, names: NamesOfBoth) -> Iterator[tuple[str, str]]:
    pairs = (
        (pairing.before.nodes[one].path, pairing.after.nodes[other].path)
        for one, other in sorted(pairing.forward.items())
        if pairing.before.nodes[one].kind != INPUT
    )
    found = ((one, other) for one, other in pairs if one != other)
    for group in folded((("", one, other) for one, other in found), names):
        ours, theirs = paths_of(group)
        yield names[0].called(ours), names[1].called(theirs)


@dataclass(frozen=True, slots=True)
class _Finding:
    """A change at one node, before equal ones are folded."""

    kind: Callable[..., Change]
    alike: Hashable
    """What must be equal for findings to be reported as one."""
    fields: tuple[FieldChange, ...] = ()
    port: PortChange | None = field(default=None, compare=False)


def _changes(pairing: Pairing, names: NamesOfBoth) -> Iterator[Change]:
    """Yield the changes for a given pairing."""
    reads = Reads(pairing)
    yield from model_changes.stated(pairing, reads.same, names)
    for group in folded(_found(pairing, reads, names), names):
        sides = [side.nodes(paths) for side, paths in zip(names, paths_of(group), strict=True) if paths]
        finding = group[0][0]
        yield finding.kind(*sides, *filter(None, (finding.fields, _ports(group, names))))
    yield from model_changes.learned(pairing, names[0])


def _found(pairing: Pairing, reads: Reads, names: NamesOfBoth) -> Iterator[tuple[_Finding, str, str]]:
    """Yield the changes node by node, with the path in each of the models."""
    for fields, one, other in model_changes.inputs(pairing):
        yield _Finding(Altered, fields, fields), one, other
    for path in _alone(pairing.before, pairing.forward):
        yield _Finding(Removed, (pairing.before.places[path].kind, names[0].detail(path))), path, ""
    for index, partner in sorted(pairing.forward.items()):
        mine, its = pairing.before.nodes[index], pairing.after.nodes[partner]
        if mine.kind != its.kind:
            kinds = (mine.kind, names[0].detail(mine.path)), (its.kind, names[1].detail(its.path))
            yield _Finding(Replaced, kinds), mine.path, its.path
        elif changed := tuple(_fields(mine, its, reads, names)):
            yield _Finding(Altered, changed, changed), mine.path, its.path
    for port, alike, one, other in reads.changes(names):
        yield _Finding(Rewired, alike, port=port), one, other
    for path in _alone(pairing.after, pairing.backward):
        yield _Finding(Added, (pairing.after.places[path].kind, names[1].detail(path))), "", path


def _ports(group: ChangeGroup[_Finding], names: NamesOfBoth) -> tuple[PortChange, ...]:
    """Return the change of a port for a group of findings; what the nodes read is folded as their names are."""
    changes = [(finding.port, ours, theirs) for finding, ours, theirs in group if finding.port is not None]
    if not changes:
        return ()
    before = zip(*([(ours, text) for text in port.before] for port, ours, _ in changes), strict=True)
    after = zip(*([(theirs, text) for text in port.after] for port, _, theirs in changes), strict=True)
    return (PortChange(changes[0][0].port, tuple(map(names[0].read, before)), tuple(map(names[1].read, after))),)


def _alone(model: FlatModel, paired: Mapping[int, int]) -> Iterator[str]:
    """Yield what only this model has: the outermost places in which no node has a partner."""
    covered = 0
    alone = [0]
    for index in range(len(model.nodes)):
        alone.append(alone[-1] + (index not in paired))
    for path, place in model.places.items():
        size = place.end - place.start
        if place.start >= covered and size and alone[place.end] - alone[place.start] == size:
            covered = place.end
            yield path


# -- fields


def _fields(one: FlatNode, two: FlatNode, reads: Reads, names: NamesOfBoth) -> Iterator[FieldChange]:
    def image(port: str) -> Any:
        """Return what a port of a mask reads, as a value of the second model."""
        return reads.image(one.edges[port]) or ("only in the first model", one.edges[port])

    for name in dict.fromkeys([*one.fields, *two.fields]):
        ours, theirs = one.fields.get(name, NOTHING), two.fields.get(name, NOTHING)
        if isinstance(ours, NormalValue) and isinstance(theirs, NormalValue) and ours.derived and theirs.derived:
            continue
        if _key(ours, image) != _key(theirs, two.edges.__getitem__):
            texts = [_text(form, node, side) for form, node, side in zip((ours, theirs), (one, two), names, strict=True)]
            yield from _fine(name, ours, theirs, texts)
    if not one.commutes:
        ways = ((str(mine.expansion), str(its.expansion)) for mine, its in zip(one.reads, two.reads, strict=False))
        yield from (FieldChange("axes", mine, its) for mine, its in ways if mine != its)


def _key(form: NormalForm, source: Callable[[str], Any]) -> Any:
    return (type(form.canonical) is bool, form.canonical) if isinstance(form, NormalValue) else form.key(source)


def _text(form: NormalForm, node: FlatNode, names: NodeNames) -> str:
    return form.shown({port: names.source(source, node.path) for port, source in node.edges.items()})


def _fine(name: str, one: NormalForm, other: NormalForm, texts: Sequence[str]) -> Iterator[FieldChange]:
    """Yield the change of a field; if both values are parts of one type, the changes of the fields in them."""
    if not (isinstance(one, PartForm) and isinstance(other, PartForm) and one.kind == other.kind):
        yield FieldChange(name, texts[0], texts[1])
        return
    for key in dict.fromkeys([*one.fields, *other.fields]):
        ours, theirs = one.fields.get(key, NOTHING), other.fields.get(key, NOTHING)
        if _key(ours, str) != _key(theirs, str):
            yield from _fine(f"{name}.{key}", ours, theirs, [ours.shown({}), theirs.shown({})])
