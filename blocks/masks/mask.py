"""The base of masks: a predicate of a query position and a key position."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from blocks.core import BlockView, Look, NodeRef, Part, declaration, fields
from blocks.core.fields import NodeName, NumberOrNodeRef
from blocks.core.look import Cells
from blocks.masks.areas import All, Band, BlockBand, MaskArea, area_of

CELLS = 8
"""Positions on each side of the picture of a mask."""


class Mask(Part):
    """Which keys each query may attend to.

    Everything about a mask follows from `allows`: the dense matrix, the number of visible pairs, the picture. Optional
    declarations make it faster or clearer: `structure` if a fast kernel supports it, `area` if its pairs can be counted in closed
    form, and `shrinks` for small values in the picture.
    """

    needs_ends: ClassVar[bool] = False
    """Whether it needs the `ends`, which are unknown during generation."""
    one_sequence: ClassVar[bool] = False
    """Whether it reads an edge at both queries and keys, which must then be positions of one sequence."""
    true_hides_nothing: ClassVar[bool] = False
    """Whether its data are flags that hide nothing if all of them are true, as if they were absent."""
    shrinks: ClassVar[Mapping[str, int] | None] = None
    """The maximum of each number in a picture of few positions, so that its form is visible; fields that are not listed stay the
    same. None: every number is at most half the positions."""
    spoken: ClassVar[bool] = True
    """Whether a drawing names it in words; the data that it reads is shown beside the block in any case."""
    usual_data: ClassVar[str] = ""
    """What its data is called in most models, which needs no words behind its name."""
    familiar: ClassVar[str] = ""
    """A word for a mask whose picture is well known, so that no other text is needed."""
    width_field: ClassVar[str] = ""
    """The field that hides nothing if it is at least the length of the text."""
    precedence: ClassVar[int] = 3
    """How tightly its expression binds: `or` 0, `and` 1, `not` 2, a predicate 3."""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        """Return whether the query at position `q` sees the key at position `k`: elementwise, on ints or on tensors that
        broadcast, hence `&`, `|` and `^ True`. Each edge is passed as a `Pair`, or as None if its optional input is absent, in
        which case the predicate is true. `ends` is a `Pair` of the last positions of the queries and of the keys.
        """
        raise NotImplementedError

    @declaration
    def structure(self) -> Structure | None:
        """Return the structure that fast kernels support, if it describes the whole mask; None if the dense matrix is needed."""
        return None

    @declaration
    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        """Return the area of allowed pairs for given numbers of queries and keys, from which they are counted; `unknown` stands
        for pairs that depend on data.
        """
        if self.edge_types():
            return unknown
        if structure := self.structure():
            return structure.area
        ends = Pair(queries - 1, keys - 1)
        return area_of(lambda q, k: bool(self.allows(q, k, ends=ends)), queries, keys)

    @declaration
    def equivalent(self) -> Mask:
        """Return the normal form of this mask for comparisons: two ways to write one predicate have the same."""
        return self

    @property
    def hides_nothing(self) -> bool:
        """Whether every query sees every key."""
        return self.structure() == EVERYTHING

    # -- its data

    @declaration
    def edge_types(self) -> Mapping[str, str]:
        """Return its edges and those of its parts: the name that each field holds, and its type over `batch`, `query`, `key`."""
        found: dict[str, str] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Mask):
                found |= value.edge_types()
            elif isinstance(value, NodeRef):
                found[value] = type(self).node_refs[name]
        return found

    @declaration
    def without_edges(self) -> Mask | None:
        """Return the mask without its data, whose predicates are then true; None if nothing is hidden then."""
        return None if self.edge_types() or self.hides_nothing else self

    @declaration
    def inner(self) -> tuple[Mask, ...]:
        """Return the masks that it is made of."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return tuple(value for value in values if isinstance(value, Mask))

    @declaration
    def hides_later(self) -> bool:
        """Return whether it, or a part of it, hides later keys by its structure: it does so if it is not joined with others."""
        structure = self.structure()
        return (structure is not None and structure.causal) or any(part.hides_later() for part in self.inner())

    @declaration
    def continued(self, optional: frozenset[str]) -> Mask:
        """Return the mask for the tokens after the first call of a session, which holds every prefix that is given.

        Args:
            optional: The edges that may be absent.
        """
        changed = {name: getattr(self, name) for name in type(self).model_fields}
        changed = {name: value.continued(optional) if isinstance(value, Mask) else value for name, value in changed.items()}
        return type(self).model_construct(**changed) if self.inner() else self

    @declaration
    def prefixes(self) -> tuple[int | NodeRef, ...]:
        """Return the lengths of its prefixes: numbers, and edges with one for each row."""
        return tuple(length for part in self.inner() for length in part.prefixes())

    # -- its picture

    @declaration
    def shrunk(self) -> Mask:
        """Return the mask with its numbers made small, for a picture of `CELLS` positions."""
        changed: dict[str, Any] = {}
        for name in type(self).model_fields:
            match getattr(self, name):
                case Mask() as inner:
                    changed[name] = inner.shrunk()
                case int() as value if self.shrinks is None or name in self.shrinks:
                    changed[name] = min(value, CELLS // 2 if self.shrinks is None else self.shrinks[name])
                case value:
                    changed[name] = value
        return type(self).model_construct(**changed)

    @declaration
    def sample(self, edge: str, q: int, k: int) -> Pair | None:
        """Return example data of an edge for the picture; None without an example, as if the edge were absent."""
        match self.node_refs[edge]:
            case "bool[batch, key]":
                return Pair(q < CELLS - 2, k < CELLS - 2)  # such as padding at the end
            case "int[batch, key]":
                return Pair(q // 3, k // 3)  # such as packed documents
            case "int[batch]":
                return Pair(3, 3)
            case "bool[batch, query, key]":
                seen = (3 * q + 5 * k) % 7 < 4
                return Pair(seen, seen)
        return None

    @declaration
    def cells(self, absent: frozenset[str] = frozenset()) -> Cells:
        """Return which query sees which key among a few positions; `absent` are optional edges that are left out, whose
        predicates are true.
        """
        return _cells(self, absent)

    @declaration
    def samples(self, q: int, k: int) -> dict[str, Pair | None]:
        """Return example data of its edges and those of its parts, for the picture."""
        found: dict[str, Pair | None] = {}
        for name in type(self).model_fields:
            match getattr(self, name):
                case Mask() as inner:
                    found |= inner.samples(q, k)
                case NodeRef() as edge:
                    found[edge] = self.sample(name, q, k)
        return found

    @declaration
    def added_to(self, look: Look, view: BlockView) -> Look:
        """Return the look of a block that has this mask, with it in words and as a picture."""
        terms = [term for term in self.conjuncts() if term.spoken]
        words = ", ".join(term.with_edges(view.edges).words() for term in terms) or "full"
        known = "bidirectional" if not terms else terms[0].familiar if len(terms) == 1 else ""
        return replace(look, mask=words, known_mask=known, causal=self.hides_later(), icon=self.cells(view.optional))

    # -- as an expression

    @declaration
    def expression(self) -> str:
        """Return the mask in the recipe language, with edges under the names in its fields."""
        arguments = ", ".join(str(getattr(self, name)) for name in type(self).model_fields)
        return f"{self.kind}({arguments})" if arguments else self.kind

    @declaration
    def words(self) -> str:
        """Return the caption of the mask in drawings: `window 512`, `block window 64 (radius 1)`; `pairs` for `pairs(pairs)`."""
        if not self.kind:
            return self.expression()
        (_, first), *others = [(name, str(getattr(self, name))) for name in type(self).model_fields] or [("", "")]
        more = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in others)
        said = [self.kind.replace("_", " "), first if first != self.usual_data else "", f"({more})" if more else ""]
        return " ".join(filter(None, said))

    @declaration
    def with_edges(self, names: Mapping[str, str]) -> Mask:
        """Return the mask with other names for its edges, to be displayed; `none` for edges that are left out."""
        changed: dict[str, Any] = {}
        for name, field in fields(type(self)).items():
            match getattr(self, name):
                case Mask() as inner:
                    changed[name] = inner.with_edges(names)
                case str() as edge if isinstance(field.form, NodeName | NumberOrNodeRef):
                    changed[name] = names.get(edge, edge)
                case None if isinstance(field.form, NodeName | NumberOrNodeRef):
                    changed[name] = "none"
                case value:
                    changed[name] = value
        return type(self).model_construct(**changed)

    @declaration
    def operands(self) -> tuple[Mask, ...]:
        """Return the operands of an operator, with nested ones of the same kind flattened; nothing for a predicate."""
        return ()

    @declaration
    def conjuncts(self) -> list[Mask]:
        """Return the conjuncts of `a and b and c` as a list, without masks that hide nothing."""
        return [] if self.hides_nothing else [self]

    @declaration
    def holds(self, seen: Callable[[Mask], bool]) -> bool:
        """Return whether the mask allows a pair, given the truth of each predicate in `seen`."""
        return self.hides_nothing or seen(self)


@lru_cache(maxsize=256)
def _cells(mask: Mask, absent: frozenset[str]) -> Cells:
    small, last = mask.shrunk(), Pair(CELLS - 1, CELLS - 1)

    def sees(q: int, k: int) -> bool:
        carried = {edge: None if edge in absent else sample for edge, sample in small.samples(q, k).items()}
        return bool(small.allows(q, k, ends=last, **carried))

    return Cells(tuple(tuple(sees(q, k) for k in range(CELLS)) for q in range(CELLS)))


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of a mask for fast kernels: a query sees the keys that all of these allow."""

    causal: bool = False
    """Whether it hides keys after the query."""
    width: int | None = None
    """Distance from which on keys are hidden."""
    chunk: int | None = None
    """Length of the chunks; a query sees only its own."""
    documents: NodeRef | None = None
    """The edge with the document id of each position; a query sees only its own document."""

    def meet(self, other: Structure) -> Structure | None:
        """Return the conjunction of two structures, or None if it has no structure."""
        widths = [width for width in (self.width, other.width) if width is not None]
        chunks = {self.chunk, other.chunk} - {None}
        documents = {self.documents, other.documents} - {None}
        if len(chunks) > 1 or len(documents) > 1:
            return None
        return Structure(
            self.causal or other.causal, min(widths, default=None), next(iter(chunks), None), next(iter(documents), None)
        )

    @property
    def area(self) -> MaskArea:
        """The area of allowed pairs, for a structure without documents."""
        areas: list[MaskArea] = []
        if self.causal:
            areas.append(Band(0, None))
        if self.width is not None:
            areas.append(Band(1 - self.width, self.width - 1))
        if self.chunk is not None:
            areas.append(BlockBand(self.chunk, 0))
        return areas[0] if len(areas) == 1 else not areas or All(tuple(areas))


EVERYTHING = Structure()


class Pair:
    """A value at the query and at the key, such as those of an edge; both broadcast to [B, T, S]."""

    def __init__(self, query: Any, key: Any) -> None:
        self.query, self.key = query, key


class Ends:
    """The last positions of queries [..., T, 1] and of keys [..., 1, S], computed only if a mask needs them."""

    def __init__(self, q: Any, k: Any) -> None:
        self.q, self.k = q, k

    @property
    def query(self) -> Any:
        return self.q.amax(dim=-2, keepdim=True)

    @property
    def key(self) -> Any:
        return self.k.amax(dim=-1, keepdim=True)
