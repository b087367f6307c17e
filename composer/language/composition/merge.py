"""One recipe laid over another: mappings key by key, shorthands expanded, what is new in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, assert_never, get_args

from blocks.core import Library, Part, fields, ports
from blocks.core.fields import BooleanMap, FieldForm, SlotOf
from composer.diagnostics import Diagnostic
from composer.language.expressions.parser import ExpressionError, parse_expression
from composer.language.recipe.ast import ParamType
from composer.language.recipe.definitions import with_definitions
from composer.language.recipe.keys import KEYS, KeyContent, KeyPlace, kind_of_node
from composer.language.recipe.param_types import type_of_default
from composer.language.unknown_names import unknown
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar

END = ""
"""What a new key goes after that stands before all others in a change, other than a node: the last key."""
DELETED = "null"

MergeStep: TypeAlias = Callable[[YamlNode, YamlNode], YamlNode]
"""How the value under a key is merged: from the base's and the change's, the result."""


def merge(
    base: YamlMapping, change: YamlMapping, library: Library, *, from_file: bool = False
) -> tuple[YamlMapping, tuple[Diagnostic, ...]]:
    """Return the recipe `base` with `change` laid over it, and what of the change has nothing to change.

    Every key and value keeps the place where it was written. Mappings merge key by key, once their shorthands are
    expanded; a different `type` replaces a node; scalars and lists replace; `null` deletes. A new key goes right after the
    key that stands before it in the change, or in the place of the one that is deleted there; a new node before all others right
    before the first of the base's that the change names after it; and without such a key, last. A node that a change `from_file`
    names stands where the change does, so that what is said of the node quotes no line that is not valid anymore.
    """
    merger = Merger(with_definitions(change, with_definitions(base, library)), base, from_file=from_file)
    return merger.top(base, change), tuple(merger.diagnostics)


def merge_maps(base: YamlNode, change: YamlMapping, library: Library) -> tuple[YamlNode, tuple[Diagnostic, ...]]:
    """Return a map of published weights with a change laid over it, and what of the change has nothing to change."""
    merger = Merger(library, change, from_file=True)
    merged = merger.checkpoint(base, change)
    return YamlMapping(merged.entries, change.span) if isinstance(merged, YamlMapping) else merged, tuple(merger.diagnostics)


class Merger:
    """One run of `merge`: how each place of a recipe is merged."""

    def __init__(self, library: Library, base: YamlMapping, *, from_file: bool = False) -> None:
        self.library, self.from_file = library, from_file
        self.diagnostics: list[Diagnostic] = []
        params = base.get("params")
        self.params = {entry.key.text for entry in params} if isinstance(params, YamlMapping) else set()

    def top(self, base: YamlMapping, change: YamlMapping) -> YamlMapping:
        """Merge two whole recipes."""
        return self._mapping(base, change, lambda key: self._by_content(_content("recipe", key)))

    def _by_content(self, content: KeyContent) -> MergeStep:
        """Return how what a key holds is merged, wherever it stands."""
        match content:
            case "params":
                return self._named(self.param)
            case "blocks":
                return self._named(self.block)
            case "graph":
                return self.graph
            case "inputs":
                return self._named(self.input)
            case "initializers":
                return self._named(_replaced)
            case "losses":
                return self._named(self.node)
            case "node":
                return self.node
            case "checkpoints":
                return self._named(self.checkpoint)
            case "config":
                return self._keyed("config")
            case "additions":
                return _added
            case "text" | "value" | "size" | "edges" | "default":  # nodes and params handle the last two
                return self.plain
            case _:
                assert_never(content)

    def checkpoint(self, base: YamlNode, change: YamlNode) -> YamlNode:
        """Merge two maps of one model type."""
        return self._keyed("checkpoint")(base, change)

    def _keyed(self, place: KeyPlace) -> MergeStep:
        """Return how two mappings with the keys of a place are merged."""

        def merge_keyed(base: YamlNode, change: YamlNode) -> YamlNode:
            if isinstance(base, YamlMapping) and isinstance(change, YamlMapping):
                return self._mapping(base, change, lambda key: self._by_content(_content(place, key)))
            return change

        return merge_keyed

    def graph(self, base: YamlNode, change: YamlNode) -> YamlNode:
        """Merge two graphs, node by node."""
        if isinstance(base, YamlMapping) and isinstance(change, YamlMapping):
            return self._mapping(base, change, lambda key: self.node, own_keys=self.from_file, in_order=True)
        return change

    def node(self, base: YamlNode, change: YamlNode) -> YamlNode:
        """Merge two nodes, or two values of a slot."""
        if isinstance(change, YamlList) or isinstance(base, YamlList):
            return change
        if isinstance(change, YamlScalar):
            same = isinstance(base, YamlMapping) and change.text == _kind(base)
            return base if same else change
        if isinstance(base, YamlScalar):
            base = YamlMapping((YamlEntry(YamlScalar("type", base.span), base),), base.span)
        if _differ(base, change):
            return change
        part, place = self.part(base), kind_of_node(base) or "group"
        return self._mapping(base, change, lambda key: self._in_node(part, place, key))

    def part(self, node: YamlMapping) -> type[Part] | None:
        """Return the block that a node names, where it names one."""
        kind = _kind(node)
        return self.library[kind] if kind in self.library else None  # noqa: SIM401  # a library is no dict

    def _in_node(self, part: type[Part] | None, place: KeyPlace, key: str) -> MergeStep:
        content = _content(place, key)
        if content == "edges":
            return lambda base, change: self._edges(base, change, part)
        if part is not None and key in fields(part) and key not in KEYS[place]:
            return self.field(fields(part)[key].form)
        return self._by_content(content)

    def field(self, form: FieldForm) -> MergeStep:
        """Return how a field of this form is merged."""
        if isinstance(form, SlotOf):
            return self.node
        return _bools(form.names) if isinstance(form, BooleanMap) else self.plain

    def _edges(self, base: YamlNode, change: YamlNode, part: type[Part] | None) -> YamlNode:
        """Read one reference under `in` as that of the first port."""
        if not isinstance(change, YamlMapping):
            return change
        if not isinstance(base, YamlMapping):
            first = next(iter(ports(part)), "input") if part is not None else "input"
            base = YamlMapping((YamlEntry(YamlScalar(first, base.span), base),), base.span)
        return self.plain(base, change)

    def param(self, base: YamlNode, change: YamlNode) -> YamlNode:
        """Merge two declarations of one param: a short one is its default, and keeps the type of what it was, which is written
        out where the new default does not say the same.
        """
        if not isinstance(base, YamlMapping):
            if self._says_same_type(base, change):
                return change
            kind = self.type_node(base)
            typed = (YamlEntry(YamlScalar("type", base.span), kind),) if kind is not None else ()
            base = YamlMapping((YamlEntry(YamlScalar("default", base.span), base), *typed), base.span)
        if not isinstance(change, YamlMapping) or _is_block(change):
            change = YamlMapping((YamlEntry(YamlScalar("default", change.span), change),), change.span)
        holds_block = _text(base, "type") == "block"
        return self._mapping(
            base, change, lambda key: self.node if holds_block and _content("param", key) == "default" else self.plain
        )

    def _says_same_type(self, default: YamlNode, other: YamlNode) -> bool:
        """Return whether two short params are of one type, which both of their defaults say."""
        if isinstance(default, YamlList) != isinstance(other, YamlList) or is_deleted(other):
            return False
        return self.type_of(default) != "" and self.type_of(default) == self.type_of(other)

    def type_node(self, default: YamlNode) -> YamlNode | None:
        """Return what the type of a short param is in its long form, where its default says so."""
        kind = self.type_of(default)
        word = YamlScalar(kind, default.span)
        return None if not kind else YamlList((word,), default.span) if isinstance(default, YamlList) else word

    def type_of(self, default: YamlNode) -> str:
        """Return the type of a short param, or of the items of a list: that of its default; nothing where another param
        decides it.
        """
        if isinstance(default, YamlList):
            return next((kind for item in default.items if (kind := self.type_of(item))), "")
        if not isinstance(default, YamlScalar):
            return ""
        try:
            return type_of_default(parse_expression(default), self.params) or ""
        except ExpressionError:
            return ""

    def block(self, base: YamlNode, change: YamlNode) -> YamlNode:
        """Merge two definitions of one block, which are recipes but for their names."""
        return self.top(base, change) if isinstance(base, YamlMapping) and isinstance(change, YamlMapping) else change

    def input(self, base: YamlNode, change: YamlNode) -> YamlNode:
        """Merge two declarations of one input: a short one is its type."""
        if not isinstance(change, YamlMapping):
            return change
        if isinstance(base, YamlScalar):
            base = YamlMapping((YamlEntry(YamlScalar("type", base.span), base),), base.span)
        return self.plain(base, change)

    def plain(self, base: YamlNode, change: YamlNode) -> YamlNode:
        """Merge two values without a form of their own."""
        if isinstance(base, YamlMapping) and isinstance(change, YamlMapping):
            return self._mapping(base, change, lambda key: self.plain)
        return change

    def _named(self, each: MergeStep) -> MergeStep:
        """Return how two mappings from names that their authors chose are merged."""

        def merge_named(base: YamlNode, change: YamlNode) -> YamlNode:
            if isinstance(base, YamlMapping) and isinstance(change, YamlMapping):
                return self._mapping(base, change, lambda key: each)
            return change

        return merge_named

    def _mapping(
        self,
        base: YamlMapping,
        change: YamlMapping,
        place: Callable[[str], MergeStep],
        *,
        own_keys: bool = False,
        in_order: bool = False,
    ) -> YamlMapping:
        entries = {entry.key.text: entry for entry in base}
        added: dict[str, list[YamlEntry]] = {name: [] for name in [*entries, END]}
        """What is new, by the key of the base after which it goes, which may be deleted."""
        after, known = END, dict(entries)
        before = next((entry.key.text for entry in change if entry.key.text in known), END) if in_order else END
        for entry in change:
            name = entry.key.text
            if name in known:
                after = name
            if name not in entries:
                if is_deleted(entry.value):
                    self._nothing_to_delete(entry, entries)
                else:
                    added[after].append(entry)
            elif is_deleted(entry.value):
                del entries[name]
            else:
                value = place(name)(entries[name].value, entry.value)
                kept = isinstance(value, YamlMapping) and not own_keys
                entries[name] = YamlEntry(entries[name].key if kept else entry.key, value)
        leading = {before: added.pop(END)}
        merged = [
            each
            for name in [*known, END]
            for each in (*leading.get(name, ()), entries.get(name), *added.get(name, ()))
            if each is not None
        ]
        return YamlMapping(tuple(merged), base.span)

    def _nothing_to_delete(self, entry: YamlEntry, known: Iterable[str]) -> None:
        message = f"there is no `{entry.key.text}` to delete"
        hint = unknown("nothing-to-delete", entry.key.span, "key", entry.key.text, known).hint
        self.diagnostics.append(Diagnostic("nothing-to-delete", message, entry.key.span, hint=hint))


def is_deleted(node: YamlNode) -> bool:
    """Return whether a value deletes its key."""
    return isinstance(node, YamlScalar) and node.plain and node.text == DELETED


def _content(place: KeyPlace, key: str) -> KeyContent:
    known = KEYS[place].get(key)
    return known.content if known is not None else "value"


def _added(base: YamlNode, change: YamlNode) -> YamlNode:
    """Add what a second list names to the first."""
    if not isinstance(base, YamlList) or not isinstance(change, YamlList):
        return change
    there = {item.text for item in base.items if isinstance(item, YamlScalar)}
    new = (item for item in change.items if not isinstance(item, YamlScalar) or item.text not in there)
    return YamlList((*base.items, *new), change.span)


def _replaced(_: YamlNode, change: YamlNode) -> YamlNode:
    """Replace one initializer by another."""
    return change


def _bools(names: Sequence[str]) -> MergeStep:
    """Merge booleans set one by one: a single one is that of all names."""

    def merge_bools(base: YamlNode, change: YamlNode) -> YamlNode:
        if not isinstance(change, YamlMapping):
            return change
        if isinstance(base, YamlScalar):
            base = YamlMapping(tuple(YamlEntry(YamlScalar(name, base.span), base) for name in names), base.span)
        if not isinstance(base, YamlMapping):
            return change
        changed = {entry.key.text: entry for entry in change}
        kept = [changed.pop(entry.key.text, entry) for entry in base]
        return YamlMapping((*kept, *changed.values()), base.span)

    return merge_bools


def _differ(base: YamlMapping, change: YamlMapping) -> bool:
    """Return whether a change makes a node of another kind."""
    kind = _kind(change)
    if kind:
        return kind != _kind(base)
    return kind_of_node(base) in ("node", "compute") and kind_of_node(change) not in (None, kind_of_node(base))


def _is_block(change: YamlMapping) -> bool:
    """Return whether the mapping for a param is the block that it holds, and not the param's long form."""
    kind = _kind(change)
    return bool(kind) and kind not in get_args(ParamType) and "default" not in change


def _kind(node: YamlMapping) -> str:
    return _text(node, "type")


def _text(node: YamlMapping, key: str) -> str:
    value = node.get(key)
    return value.text if isinstance(value, YamlScalar) else ""
