"""Primitives that every reader of the field knows together by a name: drawn as one box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from blocks.core.formula import AppliedFunction, FormulaTree, KnownNumber, ReadValue
from composer.draw.build.levels import Depth
from composer.draw.build.simpler.everywhere import EveryGraph, graph_of
from composer.draw.build.simpler.named_blocks import CosineSimilarity, DividedBySum, NamedBlock, NearestRow, WrittenSoftmax
from composer.draw.build.simpler.polynomials import (
    CONTRACTIONS,
    FORMULAS,
    SUMS,
    Factor,
    Polynomial,
    SumsOfProducts,
    contraction,
    formula_of,
    label_counts,
    labels_read,
    refs_of,
    taken,
    with_summed,
)
from composer.draw.build.simpler.reductions import Merged, axes_of
from composer.draw.build.texts.descriptions import whole
from composer.draw.paths import plain
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedGraph
from composer.graph.types import TensorType

LARGEST, MAXIMA, UNITS = (frozenset({kind}) for kind in ("argmax", "max", "l2norm"))
"""Kinds of blocks that give the index of the largest value along an axis, that value, and vectors of unit length."""
ENDS = LARGEST | CONTRACTIONS | FORMULAS
"""Those that an idiom may end with."""
EXACT = 1e-9
"""How far numbers of one formula may be from each other that are the same."""


@dataclass(frozen=True, slots=True)
class Idiom:
    """Several nodes that are one block in a drawing."""

    part: NamedBlock
    reads: tuple[Ref, ...]
    """The values that they are given."""
    hidden: frozenset[str]
    """The nodes but for the last one."""


@dataclass(frozen=True, slots=True)
class Told:
    """A graph in which idioms are one block each."""

    graph: TypedGraph
    merged: Mapping[str, Merged]
    """What each stands for, by the path of the last node of it, without passes."""


def with_idioms(graph: TypedGraph, depth: Depth) -> Told:
    """Return a graph of a model in which several primitives that have a name together are one block, in the place of the last:
    the nearest row of a table, cosine similarities, and values divided by their sum. They stay where something else reads what
    is between them, and where an option names one of them.
    """
    finder = _Finder(depth)
    return Told(finder.changed(graph, ""), finder.found)


@dataclass(slots=True)
class _Finder(EveryGraph):
    """Looks for idioms in a graph and in all that it holds."""

    found: dict[str, Merged] = field(default_factory=dict)

    def own(self, graph: TypedGraph, prefix: str) -> TypedGraph:
        """Return a graph with the idioms among its own nodes as one block each."""
        for node in graph.nodes:
            if not isinstance(node, TypedBlock) or node.part.kind not in ENDS or graph.by_name.get(node.name) is not node:
                continue
            idiom = idiom_at(node, graph)
            if idiom is None:
                continue
            hidden = [one for one in graph.nodes if one.name in idiom.hidden]
            if not any(self.depth.points_at(plain(f"{prefix}{one.name}")) for one in (*hidden, node)):
                said = (f"{one.name} is {whole(one)}" for one in (*hidden, node))
                self.found[plain(f"{prefix}{node.name}")] = Merged(tuple(one.name for one in hidden), "; ".join(said))
                graph = _with(idiom, node, graph)
        return graph


def idiom_at(node: TypedBlock, graph: TypedGraph) -> Idiom | None:
    """Return the idiom that ends with a node of a graph."""
    if node.part.kind in LARGEST:
        return nearest_row(node, graph)
    return cosine_similarity(node, graph) if node.part.kind in CONTRACTIONS else divided_by_sum(node, graph)


def _with(idiom: Idiom, node: TypedBlock, graph: TypedGraph) -> TypedGraph:
    """Return a graph with an idiom as one block."""
    (wire,) = node.node.wires
    types = tuple(graph.type_of(ref) for ref in idiom.reads)
    block = replace(node.node, wires=(replace(wire, refs=idiom.reads),))
    first = types[0] if next(iter(idiom.part.inputs)) == wire.port else types
    one = replace(node, node=block, part=idiom.part, inputs={wire.port: first}, expansions=())  # type: ignore[dict-item]
    return graph_of(graph, [one if each is node else each for each in graph.nodes if each.name not in idiom.hidden])


def _name(ref: Ref) -> str:
    """Return what a value is called in a formula."""
    return ref.port or ref.node


# -- the nearest row of a table


def nearest_row(node: TypedBlock, graph: TypedGraph) -> Idiom | None:
    """Return the idiom of an index of the largest `-|z - c|²` along one axis of c, whichever way that is written: what does not
    depend on this axis may be left out, and all may be multiplied by a number.
    """
    sums = SumsOfProducts(graph, node)
    (ref,) = refs_of(node)
    given = node.first_input
    if ref.node not in sums.private or not isinstance(given, TensorType):
        return None
    labels = sums.labels(len(given.axes))
    along = labels[node.sizes["dim"]]
    sign, scores = sums.ordered(ref, labels)
    found = _nearest(scores, along, sign) if scores else None
    if found is None or scores is None:
        return None
    (vector, _), (table, own) = found
    if {one for product in scores for one, _ in product} != {vector, table}:
        return None  # a value that changes no index would still seem to be read
    names = (_name(vector), _name(table))
    part = NearestRow(names=names, column=own[-1] == along)
    return Idiom(part, (vector, table), sums.private) if len({*names}) == 2 else None


def _nearest(scores: Polynomial, along: int, sign: float) -> tuple[Factor, Factor] | None:
    """Return the vectors and the table of which scores are `-|z - c|²`, times a positive number, as far as they depend on an
    axis of the table.
    """
    dependent = {product: sign * times for product, times in scores.items() if along in label_counts(product)}
    square = next((product for product in dependent if len(product) == 2 and product[0] == product[1]), None)
    cross = next((product for product in dependent if product != square), ())
    if square is None or len(dependent) != 2 or len(cross) != 2:
        return None
    table, bound = square[0], [label for label in square[0][1] if label < 0]
    own, vector = cross if cross[0][0] == table[0] else cross[::-1]
    summed_over = [label for label in own[1] if label < 0]
    same_axes = own[0] == table[0] and [max(label, 0) for label in own[1]] == [max(label, 0) for label in table[1]]
    pair = sorted(table[1]) == sorted([along, *bound]) and len(bound) == len(summed_over) == 1
    alike = label_counts((vector,))[summed_over[0]] == 1 and along not in vector[1] if pair else False
    exact = dependent[square] < 0 and abs(dependent[cross] + 2 * dependent[square]) <= EXACT * dependent[cross]
    others = alike and all(label > 0 for label in vector[1] if label != summed_over[0])
    distinct = others and vector[0] != table[0] and len({*vector[1]}) == len(vector[1])
    return (vector, table) if same_axes and exact and distinct else None


# -- cosines


def cosine_similarity(node: TypedBlock, graph: TypedGraph) -> Idiom | None:
    """Return the idiom of inner products of vectors that are of unit length."""
    terms, out = contraction(node)
    over = {name for term in terms for name in term} - {*out}
    if len(terms) != 2 or len(over) != 1 or not all(over <= {*term} for term in terms):
        return None
    (name,) = over
    units = [graph.by_name.get(ref.node) for ref in refs_of(node)]
    reads: list[Ref] = []
    for unit, term in zip(units, terms, strict=True):
        if not isinstance(unit, TypedBlock) or unit.part.kind not in UNITS or unit.sizes["dim"] != term.index(name) - len(term):
            return None
        reads += refs_of(unit)
    hidden = frozenset(unit.name for unit in units if unit is not None)
    if not _only_read_by(hidden, {node.name}, graph):
        return None
    part = CosineSimilarity(names=tuple(map(_name, reads)), pattern=node.part.pattern)  # type: ignore[attr-defined]
    return Idiom(part, tuple(reads), hidden)


def _only_read_by(names: Iterable[str], ends: Iterable[str], graph: TypedGraph) -> bool:
    """Return whether nothing reads some nodes of a graph but these and others."""
    inside, known = {*names, *ends}, {*names}
    outside = [ref for node in graph.nodes if node.name not in inside for ref in refs_of(node)]
    return known.isdisjoint(ref.node for ref in (*outside, *(ref for _, ref in graph.graph.outputs)))


# -- parts of a sum


def divided_by_sum(node: TypedBlock, graph: TypedGraph) -> Idiom | None:
    """Return the idiom of values divided by their sum along axes: of exponentials that nothing else reads, the softmax."""
    match formula_of(node).tree:
        case AppliedFunction(function="/", arguments=(ReadValue(index=index), below)):
            total, added = _total(below, node)
        case _:
            return None
    value, sum_ = refs_of(node)[index], None if total is None else graph.by_name.get(refs_of(node)[total].node)
    if total is None or not isinstance(sum_, TypedBlock) or sum_.part.kind not in SUMS or refs_of(sum_) != [value]:
        return None
    if not _along(node, index, total, sum_) or not _only_read_by([sum_.name], [node.name], graph):
        return None
    argument, chain = _exponential(value, sum_, graph) if not added else (None, set[str]())
    if argument is not None and _only_read_by(chain | {sum_.name}, [node.name], graph):
        softmax = WrittenSoftmax(names=(_name(argument),), over=axes_of(sum_))
        return Idiom(softmax, (argument,), frozenset(chain | {sum_.name}))
    part = DividedBySum(names=(_name(value),), over=axes_of(sum_), added=added)
    return Idiom(part, (value,), frozenset([sum_.name]))


def _total(tree: FormulaTree, node: TypedBlock) -> tuple[int | None, str]:
    """Return which value of a formula is divided by, and what is added to it."""
    match tree:
        case ReadValue(index=index):
            return index, ""
        case AppliedFunction(
            function="+",
            arguments=(ReadValue(index=index), KnownNumber(index=number)) | (KnownNumber(index=number), ReadValue(index=index)),
        ):
            return index, f"{formula_of(node).numbers[number]:g}"
        case _:
            return None, ""


def _exponential(value: Ref, sum_: TypedBlock, graph: TypedGraph) -> tuple[Ref | None, set[str]]:
    """Return what a value is the exponential of, maybe after its largest along the same axes was subtracted, and the nodes that
    compute it; nothing for another value.
    """
    node = graph.by_name.get(value.node)
    if not isinstance(node, TypedBlock) or node.part.kind not in FORMULAS:
        return None, set()
    refs = refs_of(node)
    match formula_of(node).tree:
        case AppliedFunction(function="exp", arguments=(ReadValue(index=index),)):
            return refs[index], {node.name}
        case AppliedFunction(
            function="exp", arguments=(AppliedFunction(function="-", arguments=(ReadValue() as one, ReadValue() as two)),)
        ):
            index, other = one.index, two.index
            most = graph.by_name.get(refs[other].node)
            if isinstance(most, TypedBlock) and most.part.kind in MAXIMA and refs_of(most) == [refs[index]]:
                same = {*taken(most)} == {*taken(sum_)} and _along(node, index, other, most)
                return (refs[index], {node.name, most.name}) if same else (None, set())
        case _:
            pass
    return None, set()


def _along(node: TypedBlock, value: int, reduced: int, reduction: TypedBlock) -> bool:
    """Return whether a formula reads a value and a reduction of it with all other axes in the same places."""
    given = next(iter(node.outputs.values()))
    assert isinstance(given, TensorType)
    labels = tuple(range(1, len(given.axes) + 1))
    own, left = (labels_read(node, one, labels) for one in (value, reduced))
    within = with_summed(reduction, left, tuple(-1 - number for number in range(len(taken(reduction)))))
    return own == labels and all(a == b for a, b in zip(own, within, strict=True) if b > 0)
