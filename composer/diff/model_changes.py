"""Changes of the model as a whole: inputs, outputs, losses, the task, and how parameters start, are trained and tied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, assert_never

from composer.diff.changes import Change, FieldChange, LearnedChange, Stated, Tied
from composer.diff.flat_graph import FlatModel, FlatParameter, FlatSource, FlatValues
from composer.diff.fold_passes import NamesOfBoth, NodeNames
from composer.diff.pairing import Pairing
from composer.graph.dims import Capped, Dim, Quotient, Symbolic, TextRows, symbol
from composer.language.wording import boolean

Same = Callable[[FlatSource, FlatSource], bool]


def stated(pairing: Pairing, same: Same, names: NamesOfBoth) -> Iterator[Change]:
    """Yield the changes of the task, the outputs and the losses; `same` decides whether two values are the same."""
    ours, theirs = (model.program.untyped.recipe for model in (pairing.before, pairing.after))
    if ours.task != theirs.task:
        yield Stated("task", ours.task or "none", theirs.task or "none")
    before, after = pairing.before, pairing.after
    yield from _returned("output", before.outputs, after.outputs, names, same)
    common = (
        [name for name in before.outputs if name in after.outputs],
        [name for name in after.outputs if name in before.outputs],
    )
    if common[0] != common[1]:
        yield Stated("order of the outputs", ", ".join(common[0]), ", ".join(common[1]))
    yield from _returned("loss", before.losses, after.losses, names, same)


def _returned(what: str, before: FlatValues, after: FlatValues, names: NamesOfBoth, same: Same) -> Iterator[Change]:
    """Yield the changes of the outputs, or of the losses."""
    left = [name for name in before if name not in after]
    right = [name for name in after if name not in before]
    for name in left[:]:
        other = next((new for new in right if same(before[name][0], after[new][0])), None)
        if other is not None:
            yield Stated(f"name of the {what}", name, other)
            left.remove(name)
            right.remove(other)
    for name in before:
        if name in after and not same(before[name][0], after[name][0]):
            yield Stated(f"{what} {name}", names[0].source(before[name][0], ""), names[1].source(after[name][0], ""))
    yield from (Stated(f"{what} {name}", names[0].source(before[name][0], ""), "none") for name in left)
    yield from (Stated(f"{what} {name}", "none", names[1].source(after[name][0], "")) for name in right)


def inputs(pairing: Pairing) -> Iterator[tuple[tuple[FieldChange, ...], str, str]]:
    """Yield the changes of inputs that both models have: names, types (whatever the axes are called), defaults and order."""
    before, after = pairing.before, pairing.after
    pairs = [(index, pairing.forward[index]) for index in before.inputs if index in pairing.forward]
    ours, theirs = dict[str, Symbolic](), dict[str, Symbolic]()
    ranks = {index: place for place, index in enumerate(sorted(other for _, other in pairs))}
    for place, (index, other) in enumerate(pairs):
        one, two = _declared(before, index), _declared(after, other)
        changes = []
        if one["name"] != two["name"]:
            changes.append(FieldChange("name", one["name"], two["name"]))
        if _type(before, index, ours) != _type(after, other, theirs):
            changes.append(FieldChange("type", one["type"], two["type"]))
        if one["default"] != two["default"]:
            changes.append(FieldChange("default", one["default"], two["default"]))
        if ranks[other] != place:
            changes.append(FieldChange("place", str(place + 1), str(ranks[other] + 1)))
        if changes:
            yield tuple(changes), before.nodes[index].path, after.nodes[other].path


def _declared(model: FlatModel, index: int) -> Mapping[str, str]:
    name = model.nodes[index].path
    item = next(one for one in model.program.untyped.inputs if one.name == name)
    default = str(model.program.defaults.get(name, "none"))
    return {"name": name, "type": f"{model.program.written_inputs[name]}{'?' if item.optional else ''}", "default": default}


def _type(model: FlatModel, index: int, known: dict[str, Symbolic]) -> Any:
    """Return a type with its axes numbered in the order in which the inputs name them."""
    type_ = model.program.written_inputs[model.nodes[index].path]
    return type_.dtype, tuple(numbered(size, known) for size in type_.sizes), type_.optional


def numbered(size: Dim, known: dict[str, Symbolic]) -> Dim:
    """Return a size with the names of its axes replaced by numbers."""
    if isinstance(size, int):
        return size
    total: Dim = 0
    for monomial, coefficient in size.terms:
        product: Dim = coefficient
        for atom in monomial:
            match atom:
                case str() | Capped() | TextRows():
                    factor: Dim = known.setdefault(str(atom), symbol(f"a{len(known)}"))
                case Quotient():
                    over, under = numbered(atom.numerator, known), numbered(atom.denominator, known)
                    assert isinstance(over, Symbolic)  # its axes have other names, and no lengths yet
                    factor = over // under if atom.operator == "//" else over % under
                case _:
                    assert_never(atom)
            product = product * factor
        total = total + product
    return total


# -- parameters


def learned(pairing: Pairing, names: NodeNames) -> Iterator[Change]:
    """Yield the changes of parameters that both models have: how they start, whether they are trained, what they are tied to."""
    pairs = list(_parameters(pairing))
    for what, text in (("starts", _start), ("trained", lambda one: boolean(one.trainable))):
        found: dict[tuple[str, str], list[tuple[str, FlatParameter]]] = {}
        for path, one, other in pairs:
            if _unlike(what, one, other):
                found.setdefault((text(one), text(other)), []).append((path, one))
        yield from (LearnedChange(what, *values, _listed(names, several)) for values, several in found.items())
    yield from _ties(pairing, pairs, names)


def _unlike(what: str, one: FlatParameter, other: FlatParameter) -> bool:
    if what == "trained":
        return one.trainable != other.trainable
    return one.start != other.start and (one.set_by_recipe or other.set_by_recipe)


def _start(one: FlatParameter) -> str:
    return one.start.text("{:.6g}".format) if one.set_by_recipe else "as the block says"


def _parameters(pairing: Pairing) -> Iterator[tuple[str, FlatParameter, FlatParameter]]:
    """Yield every parameter of nodes that both models have, with its node's path in the first."""
    for index, other in pairing.forward.items():
        theirs = {one.name: one for one in pairing.after.nodes[other].learned}
        for one in pairing.before.nodes[index].learned:
            if one.name in theirs:
                yield pairing.before.nodes[index].path, one, theirs[one.name]


def _starred(names: NodeNames, path: str, one: FlatParameter) -> str:
    return f"{names.pattern(path)}.{one.name}"


def _listed(names: NodeNames, several: Iterable[tuple[str, FlatParameter]]) -> tuple[str, ...]:
    """Return the names of parameters, each once for all passes of a repeat and for layers in a row."""
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for path, one in several:
        alike.setdefault((names.rolled[path][0], one.name), []).append((path, _starred(names, path, one)))
    return tuple(dict.fromkeys(text for said in alike.values() for text in names.each(said)))


def _ties(pairing: Pairing, pairs: list[tuple[str, FlatParameter, FlatParameter]], names: NodeNames) -> Iterator[Change]:
    """Yield the changes of ties. A tied tensor goes by the first of its names that both models have."""
    first: dict[str, tuple[str, FlatParameter]] = {}
    other_first: dict[str, tuple[str, FlatParameter]] = {}
    found: dict[tuple[str, str], list[tuple[str, FlatParameter]]] = {}
    for path, one, other in pairs:
        mine, its = first.setdefault(one.owner, (path, one)), other_first.setdefault(other.owner, (path, one))
        if (mine[0], mine[1].name) != (its[0], its[1].name):
            own = path, one.name
            seen = ["" if (home, each.name) == own else _seen(names, path, home, each) for home, each in (mine, its)]
            found.setdefault((seen[0], seen[1]), []).append((path, one))
    yield from (Tied(*values, _listed(names, several)) for values, several in found.items())


def _seen(names: NodeNames, path: str, home: str, one: FlatParameter) -> str:
    """Return the name of a tensor seen from a node, with stars if it belongs to the same pass."""
    same_pass = names.passes(home) and names.passes(home) == names.passes(path)
    return _starred(names, home, one) if same_pass else f"{home}.{one.name}"
