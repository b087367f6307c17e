"""A mask: one predicate of a query position and a key position."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from blocks.core import BlockView, Look, NodeRef, Part, declaration, fields
from blocks.core.fields import NodeName, NumberOrNodeRef
from blocks.core.look import Cells
from blocks.masks.areas import All, Band, BlockBand, MaskArea, area_of

CELLS = 8
"""Positions to a side of a mask's picture."""


class Mask(Part):
    """Who may look.

    Everything else about a mask follows from `allows`: the dense matrix, the number of visible pairs, the picture. A mask that
    can say more declares it beside its predicate: its `structure` where a fast kernel knows one, its `area` where that is
    counted more quickly than pair by pair, and what its numbers `shrink` to in a picture.
    """

    needs_ends: ClassVar[bool] = False
    """Whether it asks for the `ends`, which are not known while a text is written."""
    one_sequence: ClassVar[bool] = False
    """Whether an edge of it is read at queries and at keys, which then are positions of one sequence."""
    shrinks: ClassVar[Mapping[str, int] | None] = None
    """The most that its numbers are in a picture of few positions, so that its form is seen; what is not named stays. None: every
    number is at most half of them."""
    spoken: ClassVar[bool] = True
    """Whether a picture says it in words; what it reads stands beside the block in any case."""
    familiar: ClassVar[str] = ""
    """A word for it where its picture is so well known that it needs none."""
    width_field: ClassVar[str] = ""
    """The number that hides nothing where it is as large as the longest text."""
    precedence: ClassVar[int] = 3
    """How tightly its expression binds: `or` 0, `and` 1, `not` 2, a predicate 3."""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        """Return whether the query at position `q` sees the key at position `k`: elementwise on ints or on tensors that
        broadcast, hence `&`, `|` and `^ True`. Each edge arrives as a `Pair`, or as None where its optional input is absent: then
        the predicate is true. `ends` is the last position of the queries and of the keys, a `Pair` too.
        """
        raise NotImplementedError

    @declaration
    def structure(self) -> Structure | None:
        """Return what a fast kernel needs to know, where that says all of the mask; None where only the matrix will do."""
        return None

    @declaration
    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        """Return where it lets be seen among so many queries and keys, from which the visible pairs are counted; `unknown` where
        only data decides.
        """
        if self.edge_types():
            return unknown
        if structure := self.structure():
            return structure.area
        ends = Pair(queries - 1, keys - 1)
        return area_of(lambda q, k: bool(self.allows(q, k, ends=ends)), queries, keys)

    @declaration
    def equivalent(self) -> Mask:
        """Return the mask that this one is compared as; two ways to write one predicate are the same."""
        return self

    @property
    def hides_nothing(self) -> bool:
        """Whether every query sees every key."""
        return self.structure() == EVERYTHING

    # -- what it reads

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
        """Return what it says where nothing that it reads is given, such predicates being true; None where all is seen then."""
        return None if self.edge_types() or self.hides_nothing else self

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
        """Return what the edge of a field carries in a picture; None for what no example is known of, as if it were absent."""
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
        """Return who sees whom among a few positions, by the predicate; `absent` are the edges that may be left out, which then
        are: their predicates are true.
        """
        return _cells(self, absent)

    @declaration
    def samples(self, q: int, k: int) -> dict[str, Pair | None]:
        """Return what each of its edges, and of those of its parts, carries in a picture."""
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
        return replace(look, mask=words, known_mask=known, icon=self.cells(view.optional))

    # -- as an expression

    @declaration
    def expression(self) -> str:
        """Return it as text of the recipe language; an edge under the name that its field holds."""
        arguments = ", ".join(str(getattr(self, name)) for name in type(self).model_fields)
        return f"{self.kind}({arguments})" if arguments else self.kind

    @declaration
    def words(self) -> str:
        """Return it as a picture says it: `window 512`."""
        text = self.expression()
        return text.replace("(", " ").rstrip(")") if len(type(self).model_fields) == 1 and self.kind else text

    @declaration
    def with_edges(self, names: Mapping[str, str]) -> Mask:
        """Return it with other names for its edges, such as what they read, in order to be shown; `none` for what is left out."""
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
        """Return what an operator joins, its own kind among them dissolved; nothing for a predicate."""
        return ()

    @declaration
    def conjuncts(self) -> list[Mask]:
        """Return what all must allow: `a and b and c` as a list, without what hides nothing."""
        return [] if self.hides_nothing else [self]

    @declaration
    def holds(self, seen: Callable[[Mask], bool]) -> bool:
        """Return whether it allows a pair, as `seen` says it of each predicate."""
        return self.hides_nothing or seen(self)


@cache
def _cells(mask: Mask, absent: frozenset[str]) -> Cells:
    small, last = mask.shrunk(), Pair(CELLS - 1, CELLS - 1)

    def sees(q: int, k: int) -> bool:
        carried = {edge: None if edge in absent else sample for edge, sample in small.samples(q, k).items()}
        return bool(small.allows(q, k, ends=last, **carried))

    return Cells(tuple(tuple(sees(q, k) for k in range(CELLS)) for q in range(CELLS)))


@dataclass(frozen=True, slots=True)
class Structure:
    """What fast kernels know of a mask: a query sees what all of these allow."""

    causal: bool = False
    """Nothing after its own position."""
    width: int | None = None
    """Keys less than this far away."""
    chunk: int | None = None
    """Its own of the chunks, each of so many positions."""
    documents: NodeRef | None = None
    """Its own document, by the number that this edge has for each position."""

    def meet(self, other: Structure) -> Structure | None:
        """Return what both allow; None where that is no such structure."""
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
        """Where it lets be seen, of a structure without documents."""
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
    """What is known at the query and at the key, such as what an edge carries there, ready to broadcast to [B, T, S]."""

    def __init__(self, query: Any, key: Any) -> None:
        self.query, self.key = query, key


class Ends:
    """The last position of queries [..., T, 1] and of keys [..., 1, S], looked for only where a mask asks."""

    def __init__(self, q: Any, k: Any) -> None:
        self.q, self.k = q, k

    @property
    def query(self) -> Any:
        return self.q.amax(dim=-2, keepdim=True)

    @property
    def key(self) -> Any:
        return self.k.amax(dim=-1, keepdim=True)
