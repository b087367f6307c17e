"""The parser of graphs: nodes, their kinds, and the fields of their blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import replace
from typing import Any

from blocks.core import Block, Library, Part, fields, is_node
from blocks.core.fields import AxesForm, AxisName, AxisOrAxes, BooleanMap, EachAxis, ListOf, MapOf, SlotOf, String, formula_field
from blocks.masks.mask import Mask
from composer.language.expressions.ast import Expression, If, PathStep, RefPath
from composer.language.expressions.evaluator import NONE
from composer.language.recipe.ast import (
    BlockChoice,
    BoolsValue,
    Conditional,
    ExpressionValue,
    FieldEntry,
    GivenValue,
    GraphBody,
    GroupDecl,
    ListValue,
    MapValue,
    MaskValue,
    NamedTexts,
    NodeContent,
    NodeDecl,
    RepeatDecl,
    ScanDecl,
    SlotValue,
    TextValue,
    UseDecl,
    WrittenValue,
)
from composer.language.recipe.base_parser import BaseParser, first_key
from composer.language.recipe.defined_block import is_defined
from composer.language.recipe.free_names import IDENTIFIER
from composer.language.recipe.keys import KEYS, NODE_KINDS, VALUE_WORDS, keys_of, kind_of_node
from composer.language.recipe.node_options import node_options, outputs
from composer.language.suggestions import DID_YOU_MEAN, suggest
from composer.language.unknown_names import meanings, missing_field, unknown_block
from composer.language.wording import BLOCK_IN_EXPRESSION, CHOICE_OF_BLOCKS, is_choice_of_blocks
from composer.language.yaml.nodes import AmbiguousBlocks, YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar

APART = "blocks with different fields stand apart: {if: CONDITION, then: {type: …}, else: {type: …}}"
COMPUTE = "compute"
"""The key that is short for a block with a formula, and that block."""
TAKEN = {String: "a string", AxisName: "one axis", AxisOrAxes: "an axis or a list of some"}
"""What a field takes whose value is one text."""
OPTIONS = tuple(key for key in keys_of("node") if key != "type")
"""The options of a block's node, beside its fields."""


class GraphParser:
    """Reads graphs in which the blocks of one library may be named."""

    def __init__(
        self,
        reader: BaseParser,
        library: Library,
        ambiguous_blocks: AmbiguousBlocks | None = None,
        values: Set[str] = frozenset(),
    ) -> None:
        self.reader, self.library, self.ambiguous_blocks = reader, library, ambiguous_blocks or {}
        self.values = values
        """The params and `each` values in sight, which may hold blocks."""

    def body(self, node: YamlNode, returned: YamlEntry | None = None) -> GraphBody:
        """Return the nodes of a graph, and what it returns."""
        nodes = [
            NodeDecl(entry.key.text, entry.key.span, self.content(entry.value))
            for entry in self.reader.entries(node, "graph")
            if self.reader.declares(entry.key, "a node")
        ]
        if isinstance(node, YamlMapping) and not node.entries and not self.reader.holds_unreadable(node):
            self.reader.error("empty-graph", node.span, "a graph needs at least one node")
        return GraphBody(tuple(nodes), tuple(outputs(self.reader, returned)), node.span)

    def content(self, node: YamlNode, family: type[Part] | None = None) -> NodeContent | None:
        """Return what a node holds, or a slot that takes a `family`: a block by name, a block with fields, a choice between
        blocks, a group, a repeat or a scan.
        """
        match node:
            case YamlScalar() if re.search(r"[{}]", node.text):
                hint = CHOICE_OF_BLOCKS if is_choice_of_blocks(node.text) else "write it without quotes"
                self.reader.error("slot-form", node.span, BLOCK_IN_EXPRESSION, hint=hint)
                return None
            case YamlScalar():
                written = self.reader.expression(node)
                return BlockChoice(written.expression, node.span, family=family) if written else None
            case YamlList():
                self.reader.error("node-form", node.span, "a node must be a block, not a list", hint="write {type: …}")
                return None
        match kind_of_node(node):
            case "repeat":
                return self._repeat(node)
            case "scan":
                return self._scan(node)
            case "node":
                return self.use(node, family)
            case "group":
                return self._group(node)
            case "compute":
                return self.formula(node)
            case "choice":
                return self._conditional(node, family)
            case None:
                if not self.reader.holds_unreadable(node):
                    self._no_type(node)
                return None

    def _no_type(self, node: YamlMapping) -> None:
        place, hint = first_key(node), "write {type: …}, {graph: …} or {repeat: …, graph: …}"
        misspelled = ((entry.key, suggest(entry.key.text, NODE_KINDS)) for entry in node)
        if found := next(((key, meant) for key, meant in misspelled if meant), None):
            place, hint = found[0].span, f"did you mean {found[1][0]}?"
        elif node.entries and (first := node.entries[0].key.text) in self.library:
            hint = f"write {{type: {first}, …}}"
        self.reader.error("missing-type", place, "a node needs the type of its block", hint=hint)

    def _conditional(self, node: YamlMapping, family: type[Part] | None) -> Conditional | None:
        self.reader.keys(node, keys_of("choice"), "a choice between blocks", also=[key for key in NODE_KINDS if key != "if"])
        condition = self.reader.expression(node.get("if"), "if")
        then, otherwise = self._branch(node, "then", family), self._branch(node, "else", family)
        options = node_options(self.reader, node)
        return None if condition is None else Conditional(condition, then, otherwise, node.span, options)

    def _branch(self, node: YamlMapping, key: str, family: type[Part] | None) -> NodeContent | None:
        if (value := node.get(key)) is not None:
            return self.content(value, family)
        strange = (entry.key.text for entry in node if entry.key.text not in KEYS["choice"])
        misspelled = any(key in meanings(name, keys_of("choice")) for name in strange)
        if not misspelled and not self.reader.holds_unreadable(node):
            message = f"a choice between blocks needs `{key}`"
            self.reader.error("missing-key", first_key(node), message, hint=f"{CHOICE_OF_BLOCKS}, where either may be `none`")
        return None

    # -- nodes with a graph of their own

    def _group(self, node: YamlMapping) -> GroupDecl | None:
        self.reader.keys(node, keys_of("group"), "a group", also=[key for key in NODE_KINDS if key != "graph"])
        graph = node.get("graph")
        assert graph is not None
        body = self.body(graph, node.entry("outputs"))
        return GroupDecl(body, node_options(self.reader, node), node.span) if isinstance(graph, YamlMapping) else None

    def _repeat(self, node: YamlMapping) -> RepeatDecl | None:
        self.reader.keys(node, keys_of("repeat"), "a repeat")
        count, graph = self.reader.expression(node.get("repeat")), node.get("graph")
        if graph is None:
            hint = "write `graph:` with the nodes of a pass below it"
            self.reader.error("missing-key", first_key(node), "a repeat needs a graph", hint=hint)
        if count is None or graph is None:
            return None
        index = self.reader.scalar(node.get("as"), "the index of a repeat is one name")
        if index is not None and not self.reader.declares(index, "the index", VALUE_WORDS):
            index = None
        each = tuple(
            (entry.key.text, entry.key.span, entry.value)
            for entry in self.reader.entries(node.get("each"), "each")
            if self.reader.declares(entry.key, "an `each` value", VALUE_WORDS)
        )
        names = {index.text if index else "layer", *(name for name, _, _ in each)}
        inside = GraphParser(self.reader, self.library, self.ambiguous_blocks, self.values | names)
        body = inside.body(graph, node.entry("outputs"))
        if not isinstance(graph, YamlMapping):
            return None
        return RepeatDecl(
            count,
            index.text if index else "layer",
            index.span if index else count.span,
            each,
            body,
            node_options(self.reader, node),
            node.span,
            self.reader.expression(node.get("share")),
        )

    def _scan(self, node: YamlMapping) -> ScanDecl | None:
        self.reader.keys(node, keys_of("scan"), "a scan")
        axis, graph = self.reader.scalar(node.get("scan"), "the axis of a scan is one name"), node.get("graph")
        if graph is None:
            hint = "write `graph:` with the nodes of a step below it"
            self.reader.error("missing-key", first_key(node), "a scan needs a graph", hint=hint)
        if axis is None or graph is None:
            return None
        body = self.body(graph, node.entry("outputs"))
        if not isinstance(graph, YamlMapping):
            return None
        return ScanDecl(axis.text, axis.span, body, node_options(self.reader, node), node.span)

    # -- blocks

    def use(self, node: YamlMapping, family: type[Part] | None = None) -> UseDecl | BlockChoice | Conditional | None:
        """Return a block with its fields; of a type that a condition chooses, each block has all of them."""
        kind = self.reader.scalar(node.get("type"), "a block's type is one word")
        if kind is None:
            return None
        if kind.text in self.library:
            return self.typed(node, kind)
        written = self.reader.expression(kind) if " " in kind.text or "(" in kind.text else None
        if written is not None and isinstance(written.expression, If):
            return self._chosen(node, written.expression, family)
        path = written.expression if written is not None and isinstance(written.expression, RefPath) else _word(kind)
        return self._named(node, path, family)

    def typed(self, node: YamlMapping, kind: YamlScalar) -> UseDecl:
        """Return a block of a type in the library with its fields."""
        part = self.library[kind.text]
        written = tuple(self._fields(node, part))
        self._missing(node, part, kind)
        return UseDecl(part, kind.span, written, node_options(self.reader, node, part), node.span)

    def _chosen(
        self, node: YamlMapping, kind: Expression, family: type[Part] | None
    ) -> UseDecl | BlockChoice | Conditional | None:
        """Return a block whose type a condition chooses."""
        if isinstance(kind, If):
            then, otherwise = self._chosen(node, kind.then, family), self._chosen(node, kind.otherwise, family)
            return Conditional(ExpressionValue(kind.condition, kind.condition.span), then, otherwise, node.span)
        path = kind if isinstance(kind, RefPath) else _word(YamlScalar("", kind.span))
        word = YamlScalar(path.text, kind.span)
        if word.text not in self.library or path.steps[0].arguments is not None:
            return self._named(node, path, family)
        before = len(self.reader.diagnostics)
        found = self.typed(node, word)
        self.reader.diagnostics[before:] = [
            each if each.hint.startswith(DID_YOU_MEAN) or each.code != "unknown-field" else replace(each, hint=APART)
            for each in self.reader.diagnostics[before:]
        ]
        return found

    def formula(self, node: YamlMapping) -> UseDecl:
        """Return the block of a formula that is written in short."""
        self.reader.keys(node, keys_of("compute"), "a formula")
        part, key = self.library[COMPUTE], node.entry(COMPUTE)
        assert key is not None
        written = [FieldEntry(formula_field(part), key.key.span, self._written(key.value, part, formula_field(part), node))]
        if (axes := node.entry("axes")) is not None:
            written.append(FieldEntry("axes", axes.key.span, self._written(axes.value, part, "axes", node)))
        return UseDecl(part, key.key.span, tuple(written), node_options(self.reader, node, part), node.span)

    def _named(self, node: YamlMapping, kind: RefPath, family: type[Part] | None) -> BlockChoice | None:
        """Return the block that a param or an `each` value holds, or an item of such a list, with its edges; its fields are
        written where it is set.
        """
        if kind.text not in self.values | {NONE}:
            known, fit = self.reader.offered([*self.library, *self.values]), self.reader.offered(fitting(self.library, family))
            self.reader.diagnostics.extend(unknown_block(kind.span, kind.text, known, self.ambiguous_blocks, [*fit]))
            return None
        for key in (entry.key for entry in node if entry.key.text not in KEYS["node"]):
            hint = f"write its fields where `{kind.text}` is set; here stand only {', '.join(OPTIONS)}"
            message = f"`{kind.text}` names a block, and its field `{key.text}` cannot be set here"
            if kind.text == NONE:
                hint = "write `if: CONDITION`, `then: {type: …}` with the fields, and `else: none`"
                message = f"`{NONE}` is no block, and has no field `{key.text}`"
            self.reader.error("slot-form", key.span, message, hint=hint)
        return BlockChoice(kind, node.span, node_options(self.reader, node), family)

    def _fields(self, node: YamlMapping, part: type[Part]) -> Iterator[FieldEntry]:
        known = fields(part)
        for key, value in ((entry.key, entry.value) for entry in node if entry.key.text not in KEYS["node"]):
            if key.text in known:
                yield FieldEntry(key.text, key.span, self._written(value, part, key.text, node))
            else:
                offered = [*known, *(OPTIONS if is_node(part) else ())]
                self.reader.unknown("unknown-field", key.span, "field", key.text, offered, of=part.kind)

    def _missing(self, node: YamlMapping, part: type[Part], kind: YamlScalar) -> None:
        """Report the required fields that are missing, except for those that a misspelled one is likely to mean."""
        known = fields(part)
        strange = [entry.key.text for entry in node if entry.key.text not in known and entry.key.text not in KEYS["node"]]
        meant = {offered for name in strange for offered in meanings(name, [*known, *OPTIONS])}
        missing = [name for name, field in known.items() if field.required and name not in node and name not in meant]
        if missing and not self.reader.holds_unreadable(node):
            forms = {name: _example(known[name].form, node) for name in missing}
            self.reader.diagnostics.append(missing_field(kind.span, kind.text, forms))

    # -- fields

    def _written(self, node: YamlNode, part: type[Part], name: str, use: YamlMapping) -> WrittenValue | None:
        if is_defined(part):
            return GivenValue(node, node.span)
        return self._read_as(fields(part)[name].form, node, name, use)

    def _read_as(self, form: Any, node: YamlNode, name: str, use: YamlMapping) -> WrittenValue | None:
        """Return what is written for the field `name` of a use, by its form."""
        match form:
            case ListOf(item=AxisName()) | AxisOrAxes() if isinstance(node, YamlList):
                words = [self.reader.scalar(item, f"each item of `{name}` is one axis") for item in node.items]
                axes = tuple(TextValue(word.text, word.span) for word in words if word is not None)
                return ListValue(axes, node.span) if len(axes) == len(words) else None
            case String() | AxisName() | AxisOrAxes():
                scalar = self.reader.scalar(node, f"`{name}` takes {TAKEN[type(form)]}")
                return TextValue(scalar.text, scalar.span) if scalar else None
            case AxesForm() if isinstance(node, YamlMapping):
                texts = [(entry.key, self.reader.scalar(entry.value, "axes are named in one text")) for entry in node]
                found = ((key.text, key.span, TextValue(text.text, text.span)) for key, text in texts if text is not None)
                return NamedTexts(tuple(found), node.span)
            case ListOf() if isinstance(node, YamlScalar) and {node.text, *IDENTIFIER.findall(node.text)[:1]} & {
                NONE,
                *self.values,
            }:
                return self.reader.expression(node, name)  # none, or a list that a param holds
            case ListOf() | AxesForm():
                if not isinstance(node, YamlList):
                    self.reader.error("value-form", node.span, f"`{name}` must be a list", hint=f"{name}: [first, second]")
                    return None
                inner = String() if isinstance(form, AxesForm) else form.item
                items = [self._read_as(inner, item, name, use) for item in node.items]
                return ListValue(tuple(item for item in items if item is not None), node.span)
            case EachAxis(item=each) if isinstance(node, YamlList):
                items = [self._read_as(each, item, name, use) for item in node.items]
                return ListValue(tuple(item for item in items if item is not None), node.span)
            case MapOf():
                if not isinstance(node, YamlMapping):
                    example = _example(form, use, node.text if isinstance(node, YamlScalar) else "1")
                    self.reader.error("value-form", node.span, f"`{name}` must be a mapping", hint=f"{name}: {example}")
                    return None
                entries = [(entry.key.text, self._read_as(form.item, entry.value, name, use)) for entry in node]
                return MapValue(tuple((key, value) for key, value in entries if value is not None), node.span)
            case BooleanMap() if isinstance(node, YamlMapping):
                self.reader.keys(node, form.names, f"`{name}`")
                flags = [(entry.key.text, self.reader.expression(entry.value)) for entry in node]
                return BoolsValue(tuple((key, value) for key, value in flags if value), node.span)
            case SlotOf(family=family) if family is Mask:
                if not isinstance(node, YamlScalar):
                    self.reader.error("mask-form", node.span, "a mask is an expression", hint="mask: causal and window(1024)")
                    return None
                written = self.reader.expression(node)
                return MaskValue(written.expression, node.span) if written else None
            case SlotOf(family=family):
                what = self.content(node, family)
                return SlotValue(what, node.span) if what else None
        return self.reader.expression(node, name)


def _example(form: Any, use: YamlMapping, value: str = "…") -> str:
    """Return what a field of a form may be given in a use: of a map of axes, the one that another field names, or another than
    that of the batch.
    """
    if not isinstance(form, MapOf):
        return value
    axis = use.get("axis")
    name = axis.text if isinstance(axis, YamlScalar) else "time"
    return f"{{{name if form.of_axes else 'name'}: {value}}}"


def _word(scalar: YamlScalar) -> RefPath:
    """Return the path that one word is."""
    return RefPath((PathStep(scalar.text, None, scalar.span, scalar.span),), scalar.span)


def fitting(library: Library, family: type[Part] | None) -> list[str]:
    """Return the parts of the family that a slot takes; nothing for a slot that takes any block."""
    return [] if family is None or family is Block else sorted(library.of(family))
