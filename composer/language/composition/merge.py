"""One recipe laid over another: mappings key by key, shorthands expanded, what is new in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, get_args

from blocks.core import Library, Part, fields, ports
from blocks.core.fields import FlagsBy, Form, SlotOf
from composer.diagnostics import Diagnostic
from composer.language.expressions.ast import Binary, If, Path, Unary
from composer.language.expressions.parser import ExpressionError, parse_expression
from composer.language.recipe.ast import ParamType
from composer.language.recipe.definitions import with_definitions
from composer.language.suggestions import near
from composer.language.yaml.nodes import Entry, Listing, Mapping, Node, Scalar

DELETED = "null"
FLAGS = ("true", "false")
COMPARED = frozenset({"==", "!=", "<", "<=", ">", ">=", "and", "or"})
"""Operators that give a flag."""

Merge: TypeAlias = Callable[[Node, Node], Node]
"""How the value under a key is merged: the base's, the change's, and what comes of them."""


def merge(base: Mapping, change: Mapping, library: Library) -> tuple[Mapping, tuple[Diagnostic, ...]]:
    """The recipe `base` with `change` laid over it, and what of the change has nothing to change.

    Every key and value keeps the place where it was written. Mappings merge key by key, once their shorthands are
    expanded; a different `type` replaces a node; scalars and lists replace; `null` deletes. A new key goes right after the
    key that stands before it in the change.
    """
    merger = Merger(with_definitions(change, with_definitions(base, library)), base)
    return merger.top(base, change), tuple(merger.diagnostics)


class Merger:
    """One run of `merge`: how each place of a recipe is merged."""

    def __init__(self, library: Library, base: Mapping) -> None:
        self.library = library
        self.diagnostics: list[Diagnostic] = []
        params = base.get("params")
        self.params = {entry.key.text for entry in params} if isinstance(params, Mapping) else set()

    def top(self, base: Mapping, change: Mapping) -> Mapping:
        """Two whole recipes."""
        places: dict[str, Merge] = {
            "params": self._named(self.param),
            "blocks": self._named(self.block),
            "graph": self.graph,
            "inputs": self._named(self.input),
            "init": self._named(_replaced),
            "losses": self._named(self.node),
        }
        return self._mapping(base, change, lambda key: places.get(key, self.plain))

    def graph(self, base: Node, change: Node) -> Node:
        """Two graphs, node by node."""
        return self._named(self.node)(base, change)

    def node(self, base: Node, change: Node) -> Node:
        """Two nodes, or what fills a slot twice."""
        if isinstance(change, Listing) or isinstance(base, Listing):
            return change
        if isinstance(change, Scalar):
            same = isinstance(base, Mapping) and change.text == _kind(base)
            return base if same else change
        if isinstance(base, Scalar):
            base = Mapping((Entry(Scalar("type", base.span), base),), base.span)
        if _differ(base, change):
            return change
        part = self.part(base)
        return self._mapping(base, change, lambda key: self._place(part, key))

    def part(self, node: Mapping) -> type[Part] | None:
        """The block that a node names, where it names one."""
        kind = _kind(node)
        return self.library[kind] if kind in self.library else None  # noqa: SIM401  # a library is no dict

    def _place(self, part: type[Part] | None, key: str) -> Merge:
        if key == "graph":
            return self.graph
        if key == "in":
            return lambda base, change: self._edges(base, change, part)
        if key in ("each", "outputs", "tie"):
            return self.plain
        return self.field(fields(part)[key].form) if part is not None and key in fields(part) else self.plain

    def field(self, form: Form) -> Merge:
        """How a field of this form is merged."""
        if isinstance(form, SlotOf):
            return self.node
        return _flags(form.names) if isinstance(form, FlagsBy) else self.plain

    def _edges(self, base: Node, change: Node, part: type[Part] | None) -> Node:
        """One reference under `in` is that of the first port."""
        if not isinstance(change, Mapping):
            return change
        if not isinstance(base, Mapping):
            first = next(iter(ports(part)), "input") if part is not None else "input"
            base = Mapping((Entry(Scalar(first, base.span), base),), base.span)
        return self.plain(base, change)

    def param(self, base: Node, change: Node) -> Node:
        """Two declarations of one param: a short one is its default, and keeps the type of what it was."""
        if not isinstance(base, Mapping):
            kind = self.type_of(base)
            typed = (Entry(Scalar("type", base.span), Scalar(kind, base.span)),) if kind else ()
            base = Mapping((Entry(Scalar("default", base.span), base), *typed), base.span)
        if not isinstance(change, Mapping) or _is_block(change):
            change = Mapping((Entry(Scalar("default", change.span), change),), change.span)
        holds_block = _text(base, "type") == "block"
        return self._mapping(base, change, lambda key: self.node if key == "default" and holds_block else self.plain)

    def type_of(self, default: Node) -> str:
        """The type of a short param: that of its default; nothing where another param decides it."""
        if not isinstance(default, Scalar):
            return ""
        if default.text in FLAGS:
            return "flag"
        try:
            expression = parse_expression(default)
        except ExpressionError:
            return ""
        match expression:
            case Path(steps=(step,)) if step.arguments is None:
                return "" if step.name in self.params else "word"
            case Binary(operator=operator) if operator in COMPARED:
                return "flag"
            case Unary(operator="not"):
                return "flag"
            case If():
                return ""
        return "number"

    def block(self, base: Node, change: Node) -> Node:
        """Two definitions of one block, which are recipes but for their names."""
        return self.top(base, change) if isinstance(base, Mapping) and isinstance(change, Mapping) else change

    def input(self, base: Node, change: Node) -> Node:
        """Two declarations of one input: a short one is its type."""
        if not isinstance(change, Mapping):
            return change
        if isinstance(base, Scalar):
            base = Mapping((Entry(Scalar("type", base.span), base),), base.span)
        return self.plain(base, change)

    def plain(self, base: Node, change: Node) -> Node:
        """Two values without a form of their own."""
        if isinstance(base, Mapping) and isinstance(change, Mapping):
            return self._mapping(base, change, lambda key: self.plain)
        return change

    def _named(self, each: Merge) -> Merge:
        """Two mappings from names of people's own choice."""

        def merge_named(base: Node, change: Node) -> Node:
            if isinstance(base, Mapping) and isinstance(change, Mapping):
                return self._mapping(base, change, lambda key: each)
            return change

        return merge_named

    def _mapping(self, base: Mapping, change: Mapping, place: Callable[[str], Merge]) -> Mapping:
        entries = {entry.key.text: entry for entry in base}
        before = ""
        for entry in change:
            name, known = entry.key.text, entries.get(entry.key.text)
            if is_deleted(entry.value):
                if known is None:
                    self._nothing_to_delete(entry, entries)
                entries.pop(name, None)
            elif known is None:
                entries = _inserted(entries, entry, after=before)
            else:
                value = place(name)(known.value, entry.value)
                entries[name] = Entry(known.key if isinstance(value, Mapping) else entry.key, value)
            before = name if name in entries else before
        return Mapping(tuple(entries.values()), base.span)

    def _nothing_to_delete(self, entry: Entry, known: Iterable[str]) -> None:
        offered = near(entry.key.text, known)
        hint = f"did you mean {' or '.join(offered)}?" if offered else ""
        message = f"there is no `{entry.key.text}` to delete"
        self.diagnostics.append(Diagnostic("nothing-to-delete", message, entry.key.span, hint=hint))


def is_deleted(node: Node) -> bool:
    """Whether a value says that its key goes."""
    return isinstance(node, Scalar) and node.plain and node.text == DELETED


def _replaced(_: Node, change: Node) -> Node:
    """One initialiser takes the place of another."""
    return change


def _inserted(entries: dict[str, Entry], entry: Entry, *, after: str) -> dict[str, Entry]:
    names = list(entries)
    place = names.index(after) + 1 if after in entries else len(names)
    pairs = list(entries.items())
    return dict([*pairs[:place], (entry.key.text, entry), *pairs[place:]])


def _flags(names: Sequence[str]) -> Merge:
    """Flags set one by one: a single one is that of all names."""

    def merge_flags(base: Node, change: Node) -> Node:
        if not isinstance(change, Mapping):
            return change
        if isinstance(base, Scalar):
            base = Mapping(tuple(Entry(Scalar(name, base.span), base) for name in names), base.span)
        if not isinstance(base, Mapping):
            return change
        changed = {entry.key.text: entry for entry in change}
        kept = [changed.pop(entry.key.text, entry) for entry in base]
        return Mapping((*kept, *changed.values()), base.span)

    return merge_flags


def _differ(base: Mapping, change: Mapping) -> bool:
    """Whether a change makes a node of another kind."""
    kind = _kind(change)
    if kind:
        return kind != _kind(base)
    kinds = {key for key in ("graph", "repeat", "scan") if key in change}
    return bool(kinds) and "type" in base


def _is_block(change: Mapping) -> bool:
    """Whether the mapping for a param is the block that it holds, and not the param's long form."""
    kind = _kind(change)
    return bool(kind) and kind not in get_args(ParamType) and "default" not in change


def _kind(node: Mapping) -> str:
    return _text(node, "type")


def _text(node: Mapping, key: str) -> str:
    value = node.get(key)
    return value.text if isinstance(value, Scalar) else ""
