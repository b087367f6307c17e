"""What boxes say that stand for several primitives, held against the model: the primitives are computed one by one, from random
numbers, and so is what the box says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from string import ascii_letters

import torch

from blocks.core import Formula
from composer.draw.paths import plain
from composer.graph.anatomy import regions, wires_of
from composer.graph.formula_text import formula_text
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedGraph, TypedProgram
from composer.graph.types import TensorType, each_of
from tests.draw.read_back import Picture

NEAREST = re.compile(r"argmin over k of \|(\w+) − (\w+)ₖ\|²")
SHARE = re.compile(r"(\w+…?) / (?:Σ (\w+…?)|\(Σ (\w+…?) \+ (\S+)\))")
HIDDEN_KINDS = frozenset({"compute", "einsum", "sum", "max", "l2norm", "scale"})
"""What may be no box beside what reads it."""
ENDS = frozenset({"argmax", "compute", "einsum"})
"""What such a box may be instead of."""
NUMBERS = {"two": 2, "three": 3}
FUNCTIONS = {
    "exp": torch.exp, "sqrt": torch.sqrt, "abs": torch.abs, "max": lambda *of: torch.maximum(*map(torch.as_tensor, of)),
    "min": lambda *of: torch.minimum(*map(torch.as_tensor, of)), "float32": lambda x: x, "float": lambda x: x,
    "stop_gradient": lambda x: x, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "softplus": torch.nn.functional.softplus,
    "log": torch.log,
}  # fmt: skip


def misnamed_idioms(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every box for several primitives that computes something else than it says."""
    shown = shown_by(picture)
    for box in picture.boxes if shown else ():
        for path, node, graph in blocks_with_others(typed, shown):
            said = "\n".join(box.lines)
            if path == plain(box.path) and not box.merged and not told(said, node, graph, path, shown):
                yield f"{path}: it says `{said}`, which it does not compute"


def shown_by(picture: Picture) -> set[str]:
    """Return the paths of what has a box, by itself or with others, and of what is around it."""
    return with_holders({path for box in picture.boxes for path in (plain(box.path), *map(plain, box.merged))})


def with_holders(paths: Iterable[str]) -> set[str]:
    """Return paths with those of what is around."""
    return {path[:end] for path in paths for end, sign in enumerate(f"{path}.") if sign == "."}


def blocks_with_others(typed: TypedProgram, shown: set[str]) -> list[tuple[str, TypedBlock, TypedGraph]]:
    """Return the blocks that have a box which stands for primitives that lead to it, too, with their paths and graphs."""
    return [*_in_graph(typed.root, "", shown)]


def _in_graph(graph: TypedGraph, prefix: str, shown: set[str]) -> Iterator[tuple[str, TypedBlock, TypedGraph]]:
    for node in graph.nodes:
        path = f"{prefix}{node.name}"
        if path in shown and isinstance(node, TypedBlock) and hidden_below(node, graph, prefix, shown):
            yield path, node, graph
        for region in regions(node)[:1]:
            yield from _in_graph(region.graph, f"{path}.", shown)


def hidden_below(node: TypedBlock, graph: TypedGraph, prefix: str, shown: set[str]) -> set[str]:
    """Return the primitives that lead to a node of a graph and are no boxes; nothing where it is none that tells others."""
    found, waiting = set[str](), [node] if node.part.kind in ENDS else []
    while waiting:
        for wire in waiting.pop().node.wires:
            for ref in wire.refs:
                before = graph.by_name.get(ref.node)
                if isinstance(before, TypedBlock) and before.part.kind in HIDDEN_KINDS and f"{prefix}{ref.node}" not in shown:
                    waiting += [before] if ref.node not in found else []
                    found.add(ref.node)
    return found


def told(said: str, node: TypedBlock, graph: TypedGraph, path: str, shown: set[str]) -> bool:
    """Return whether what a box says is what its primitives compute."""
    prefix = path.removesuffix(node.name)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        computed = Computed(graph, hidden_below(node, graph, prefix, shown))
        given = computed.of(node)
    known = {(ref.port or ref.node): value for ref, value in computed.given.items()}
    return any(torch.allclose(given.double(), one.double(), atol=1e-9) for one in claims(said, known) if one.shape == given.shape)


def claims(said: str, known: Mapping[str, torch.Tensor]) -> Iterator[torch.Tensor]:
    """Yield what a box may mean, which is one thing but for axes of the same length."""
    if (found := NEAREST.search(said)) and known.keys() == {found[1], found[2]}:
        vectors, table = known[found[1]], known[found[2]]
        rows = table if "Nearest row" in said else table.T
        for axis in range(vectors.dim()):
            if vectors.shape[axis] == rows.shape[1]:
                yield ((vectors.movedim(axis, -1)[..., None, :] - rows) ** 2).sum(-1).argmin(-1)
    elif "Cosine similarity" in said:
        sides = next(line for line in said.split("\n") if "→" in line).split(" → ")
        terms = [term.split() for term in sides[0].split(", ")]
        values = [*known.values()] if len(known) > 1 else 2 * [*known.values()]
        (over,) = {name for term in terms for name in term} - {*sides[1].split()}
        units = [one / one.norm(dim=term.index(over), keepdim=True) for one, term in zip(values, terms, strict=True)]
        yield einsum([*terms, sides[1].split()], units)
    elif found := SHARE.search(said):
        (name, value), more = next(iter(known.items())), float(found[4] or 0)
        if len(known) == 1 and is_name(found[1], name) and is_name(found[2] or found[3], name):
            yield from (value / (value.sum(axes, keepdim=True) + more) for axes in axes_in(said, value.dim()))
    elif "Softmax" in said and len(known) == 1:
        (value,) = known.values()
        yield from (value.exp() / value.exp().sum(axes, keepdim=True) for axes in axes_in(said, value.dim()))


def is_name(said: str, name: str) -> bool:
    """Return whether a word is a name, or the beginning of one for which there was no room."""
    return name.startswith(said[:-1]) if said.endswith("…") else said == name


def axes_in(said: str, rank: int) -> Iterator[tuple[int, ...]]:
    """Yield the axes that words may mean."""
    words = said.partition("over ")[2].partition("\n")[0]
    several = re.fullmatch(r"the last(?: (two|three))? ax[ei]s", words)
    if several:
        yield tuple(range(-NUMBERS.get(several[1], 1), 0))
    else:
        yield from combinations(range(-rank, 0), len(re.split(r", | and ", words)))


def einsum(terms: list[list[str]], values: list[torch.Tensor]) -> torch.Tensor:
    """Return a sum of products, the last term being what is given."""
    letters = dict(zip(dict.fromkeys(name for term in terms for name in term), ascii_letters, strict=False))
    *given, out = ("".join(letters[name] for name in term) for term in terms)
    return torch.einsum(f"{','.join(given)}->{out}", *values)


class Computed:
    """Computes nodes of a graph from random numbers."""

    def __init__(self, graph: TypedGraph, hidden: set[str]) -> None:
        self.graph, self.hidden = graph, hidden
        self.given: dict[Ref, torch.Tensor] = {}
        """What values are that are seen."""
        self.sizes: dict[str, int] = {}

    def value(self, ref: Ref) -> torch.Tensor:
        """Return a value."""
        node = self.graph.by_name.get(ref.node)
        if ref.node in self.hidden and isinstance(node, TypedBlock):
            return self.of(node)
        if ref not in self.given:
            (type_,) = each_of(self.graph.type_of(ref))
            assert isinstance(type_, TensorType)
            self.given[ref] = torch.rand([self.length(size) for size in type_.sizes], dtype=torch.float64) + 0.1
        return self.given[ref]

    def length(self, size: object) -> int:
        """Return how long an axis is: each as long as those of the same size, and no other."""
        return self.sizes.setdefault(str(size), 1 if size == 1 else 2 + len(self.sizes))

    def of(self, node: TypedBlock) -> torch.Tensor:
        """Return what a node gives."""
        values = [self.value(ref) for wire in wires_of(node.node) for ref in wire.refs]
        kind, dim = node.part.kind, node.sizes.get("dim")
        if kind == "einsum":
            left, right = node.part.pattern.split("->")  # type: ignore[attr-defined]  # of an einsum
            return einsum([*(term.split() for term in left.split(",")), right.split()], values)
        if kind == "compute":
            return self.formula(node, values)
        (value,) = values
        match kind:
            case "scale":
                return value * node.part.by  # type: ignore[attr-defined,no-any-return]  # of a scale
            case "l2norm":
                return value / value.norm(dim=dim, keepdim=True)
            case "max":
                return value.amax(dim)
            case "argmax":
                return value.argmax(dim)
        return value.sum(dim)

    def formula(self, node: TypedBlock, values: list[torch.Tensor]) -> torch.Tensor:
        """Return what a formula gives."""
        formula = node.part.formula  # type: ignore[attr-defined]  # of a formula
        assert isinstance(formula, Formula)
        aligned = []
        for number, value in enumerate(values):
            way = node.expansions[number] if node.expansions else tuple(range(value.dim()))
            moved = value.permute([own for own in way if own is not None])
            aligned.append(moved[tuple(None if own is None else slice(None) for own in way)])
        names = [f"value_{number}" for number in range(len(values))]
        result = eval(formula_text(formula, names), {**FUNCTIONS}, dict(zip(names, aligned, strict=True)))
        assert isinstance(result, torch.Tensor)
        return result
