"""The place in a recipe that a path names: a param, a node, or a path from a node on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from blocks.core import Library, Part, fields
from blocks.core.fields import Field, SlotOf
from composer.diagnostics import Diagnostic, Source, Span
from composer.language.composition.merge import Merger, is_deleted
from composer.language.composition.override import OverrideError
from composer.language.expressions.ast import Number, RefPath
from composer.language.expressions.parser import ExpressionError, parse_expression
from composer.language.recipe.definitions import with_definitions
from composer.language.recipe.keys import KEYS, keys_of, kind_of_node
from composer.language.recipe.losses import UNTYPED
from composer.language.unknown_names import quoted, unknown
from composer.language.wording import BOOLEANS
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar

MAX_OFFERED = 3
"""Paths that are offered for one that leads nowhere."""


class Locator:
    """Finds the place in a recipe that a path names, and completes the path."""

    def __init__(self, root: YamlMapping, library: Library) -> None:
        self.root = root
        self.merger = Merger(with_definitions(root, library), root)
        self.kinds: dict[YamlScalar, str] = {}
        """Steps into a slot where nothing is written, each with the block that the slot holds of its own."""

    def change(self, path: tuple[YamlScalar, ...], value: YamlNode) -> YamlMapping:
        """Return the recipe of one entry that sets a value.

        Raises:
            OverrideError: where the path leads nowhere, or the value is not of the param's type.
        """
        steps = list(self._top(path))
        if steps[0].text == "params" and len(steps) == 2:
            self._check_type(steps[1], value)
        for step in reversed(steps):
            kind = self.kinds.get(step)
            entries = (YamlEntry(YamlScalar("type", step.span), YamlScalar(kind, step.span)),) if kind else ()
            value = YamlMapping((*entries, YamlEntry(step, value)), step.span)
        assert isinstance(value, YamlMapping)
        return value

    def held(self, path: tuple[YamlScalar, ...]) -> YamlNode | object | None:
        """Return what stands at a path: what is written there, for a param its default, or else the default of the field; None
        without any.

        Raises:
            OverrideError: where the path leads nowhere.
        """
        node: YamlNode | object | None = self.root
        steps = list(self._top(path))
        for step in steps:
            if isinstance(node, Part):
                node = getattr(node, step.text)
                continue
            inside = mapping(_with_type(node)) if isinstance(node, YamlScalar | YamlMapping) else mapping(None)
            below, part = inside.get(step.text), self.merger.part(inside)
            field = fields(part).get(step.text) if part is not None else None
            known = field is not None and not field.required and not field.derived
            node = field.default if below is None and field is not None and known else below
        if [step.text for step in steps[:-1]] == ["params"] and isinstance(node, YamlMapping):
            return node.get("default")
        return node

    # -- the path, step by step, with what a short one leaves out

    def _top(self, path: tuple[YamlScalar, ...]) -> Iterator[YamlScalar]:
        first, *rest = path
        params, graph = mapping(self.root.get("params")), mapping(self.root.get("graph"))
        meanings = [name for name, known in (("params", params), ("graph", graph)) if first.text in known]
        if first.text in KEYS["recipe"] and self._means_key(first, rest, meanings):
            yield first
            yield from self._under(first, rest)
            return
        if len(meanings) > 1 and not (rest and self._reaches(rest[0], graph.get(first.text))):
            both = f"`{first.text}` is a param and a node"
            raise OverrideError(
                Diagnostic("ambiguous", both, first.span, hint=f"write params.{first.text} or graph.{first.text}")
            )
        if not meanings:
            known = [*(entry.key.text for entry in (*params, *graph)), *keys_of("recipe")]
            meant = list(islice(self._ending_with(path), MAX_OFFERED))
            raise OverrideError(unknown("unknown-path", first.span, "param or node", first.text, known, meant=meant))
        yield YamlScalar(meanings[-1], first.span)
        yield from self._under(YamlScalar(meanings[-1], first.span), list(path))

    def _means_key(self, first: YamlScalar, rest: list[YamlScalar], meanings: list[str]) -> bool:
        """Return whether a path begins with a key of the recipe, and not with a node or a param that has its name."""
        if not meanings or not rest:
            return "params" not in meanings
        under = mapping(self.root.get(first.text))
        return rest[0].text in under

    def _reaches(self, step: YamlScalar, node: YamlNode | None) -> bool:
        try:
            return bool(list(self._in_node([step], node, None)))
        except OverrideError:
            return False

    def _under(self, key: YamlScalar, rest: list[YamlScalar], root: YamlMapping | None = None) -> Iterator[YamlScalar]:
        """Yield the rest of a path under a key at the top of the recipe, or of a block that it defines."""
        value = (root or self.root).get(key.text)
        if not rest:
            return
        known = KEYS["recipe"].get(key.text)
        match known.content if known is not None else "value":
            case "blocks":
                yield from self._in_blocks(rest, mapping(value))
            case "graph":
                yield from self._in_graph(rest, value)
            case "params":
                yield from self._in_params(rest, mapping(value))
            case "losses":
                yield from self._in_losses(rest, mapping(value))
            case "initializers" | "checkpoints":  # a pattern may hold dots: all of the path that is left is one name
                yield YamlScalar(".".join(step.text for step in rest), _joined(rest))
            case _:
                yield from self._in_names(rest, value, key.text)

    def _in_blocks(self, rest: list[YamlScalar], blocks: YamlMapping) -> Iterator[YamlScalar]:
        name, *more = rest
        self._require(name, blocks, "block defined here", "unknown-path")
        yield name
        if more:
            yield more[0]
            yield from self._under(more[0], more[1:], mapping(blocks.get(name.text)))

    def _in_params(self, rest: list[YamlScalar], params: YamlMapping) -> Iterator[YamlScalar]:
        name, *more = rest
        self._require(name, params, "param", "unknown-param")
        yield name
        if not more:
            return
        param = params.get(name.text)
        if more[0].text in KEYS["param"]:
            yield from more
        elif isinstance(param, YamlMapping) and _text(param.get("type")) == "block":
            yield YamlScalar("default", more[0].span)
            yield from self._in_node(more, param.get("default"), None)
        else:
            raise OverrideError(
                unknown("unknown-path", more[0].span, "key", more[0].text, keys_of("param"), of=f"the param {name.text}")
            )

    def _in_losses(self, rest: list[YamlScalar], losses: YamlMapping) -> Iterator[YamlScalar]:
        name, *more = rest
        self._require(name, losses, "loss", "unknown-path")
        yield name
        yield from self._in_node(more, _typed_loss(mapping(losses.get(name.text))), None)

    def _in_graph(self, rest: list[YamlScalar], graph: YamlNode | None) -> Iterator[YamlScalar]:
        name, *more = rest
        self._require(name, mapping(graph), "node", "unknown-node")
        yield name
        yield from self._in_node(more, mapping(graph).get(name.text), None)

    def _in_node(self, rest: list[YamlScalar], node: YamlNode | None, default: Part | None) -> Iterator[YamlScalar]:
        """Yield the rest of a path in a node or a slot; `default` is what the slot holds where nothing is written."""
        if not rest:
            return
        key, *more = rest
        part, inside = self._held(node, default)
        if node is None and default is not None:
            self.kinds[key] = default.kind
        if key.text == "graph" and "graph" in inside:
            yield key
            yield from self._in_graph(more, inside.get("graph")) if more else ()
        elif part is not None and key.text in fields(part):
            yield key
            field = fields(part)[key.text]
            if isinstance(field.form, SlotOf) and more:
                yield from self._in_node(more, inside.get(key.text), _default_part(field))
            else:
                yield from more
        elif (known := KEYS[kind_of_node(inside) or "group"].get(key.text)) is not None and known.content == "node":
            yield key
            yield from self._in_node(more, inside.get(key.text), None)
        elif known is not None:
            yield key
            yield from self._in_names(more, inside.get(key.text), key.text)
        elif key.text in mapping(inside.get("graph")):
            yield YamlScalar("graph", key.span)
            yield from self._in_graph(rest, inside.get("graph"))
        else:
            raise OverrideError(self._unknown_in_node(key, inside, part))

    def _held(self, node: YamlNode | None, default: Part | None) -> tuple[type[Part] | None, YamlMapping]:
        """Return the part that a node or a slot holds, if it holds one, and what is written in it."""
        if node is None and default is not None:
            return type(default), mapping(None)
        node = _with_type(node)
        return self.merger.part(node) if isinstance(node, YamlMapping) else None, mapping(node)

    def _unknown_in_node(self, key: YamlScalar, node: YamlMapping, part: type[Part] | None) -> Diagnostic:
        if part is not None:
            return unknown("unknown-field", key.span, "field", key.text, [*fields(part), *keys_of("node")], of=part.kind)
        known = [*(entry.key.text for entry in mapping(node.get("graph"))), *keys_of(kind_of_node(node) or "group")]
        return unknown("unknown-path", key.span, "node or key", key.text, known)

    def _in_names(self, rest: list[YamlScalar], value: YamlNode | None, what: str) -> Iterator[YamlScalar]:
        for step in rest:
            if isinstance(value, YamlMapping) and what != "in":
                self._require(step, value, f"name under `{what}`", "unknown-path")
            yield step
            value = value.get(step.text) if isinstance(value, YamlMapping) else None

    def _require(self, name: YamlScalar, known: YamlMapping, what: str, code: str) -> None:
        if name.text not in known:
            raise OverrideError(unknown(code, name.span, what, name.text, [entry.key.text for entry in known]))

    # -- the paths that a shorter one may mean

    def _ending_with(self, path: tuple[YamlScalar, ...]) -> Iterator[str]:
        """Yield the paths of nodes and fields that end with a path."""
        wanted = tuple(step.text for step in path)
        for found in self.paths():
            if found[-len(wanted) :] == wanted:
                yield ".".join(found)

    def paths(self) -> Iterator[tuple[str, ...]]:
        """Yield the paths of all nodes and fields, in the order of the recipe."""
        yield from self._paths_in_graph((), self.root.get("graph"))
        for entry in mapping(self.root.get("losses")):
            yield from self._paths_in_node(("losses", entry.key.text), _typed_loss(mapping(entry.value)), None)
        for entry in mapping(self.root.get("blocks")):
            yield from self._paths_in_graph(("blocks", entry.key.text, "graph"), mapping(entry.value).get("graph"))

    def _paths_in_graph(self, above: tuple[str, ...], graph: YamlNode | None) -> Iterator[tuple[str, ...]]:
        for entry in mapping(graph):
            yield from self._paths_in_node((*above, entry.key.text), entry.value, None)

    def _paths_in_node(self, above: tuple[str, ...], node: YamlNode | None, default: Part | None) -> Iterator[tuple[str, ...]]:
        yield above
        part, inside = self._held(node, default)
        for name, field in fields(part).items() if part is not None else ():
            if isinstance(field.form, SlotOf):
                yield from self._paths_in_node((*above, name), inside.get(name), _default_part(field))
            else:
                yield (*above, name)
        yield from self._paths_in_graph(above, inside.get("graph"))

    # -- the value

    def _check_type(self, name: YamlScalar, value: YamlNode) -> None:
        """Check a value against the type of its param: a plain word is not a number, and a number is not a string."""
        declared = mapping(self.root.get("params")).get(name.text)
        type_ = declared.get("type") if isinstance(declared, YamlMapping) else declared and self.merger.type_node(declared)
        listed = isinstance(type_, YamlList)
        kind = _text(type_.items[0] if isinstance(type_, YamlList) and type_.items else type_)
        if listed and isinstance(value, YamlList):
            for item in value.items:
                self._check_item(name, item, kind)
        elif not listed:
            self._check_item(name, value, kind)

    def _check_item(self, name: YamlScalar, value: YamlNode, kind: str) -> None:
        """Check a single value, or an item of a list."""
        if not isinstance(value, YamlScalar) or is_deleted(value):
            return
        try:
            expression = parse_expression(value)
        except ExpressionError as error:
            if kind in ("int", "float", "bool"):
                raise OverrideError(error.diagnostic) from None
            return
        word = isinstance(expression, RefPath) and expression.text not in self.merger.params and not _calls(expression)
        flag = word and value.text in BOOLEANS
        number = isinstance(expression, Number)
        if kind in ("int", "float") and word:
            raise OverrideError(Diagnostic("not-a-number", f"{name.text} must be a number, not {quoted(value.text)}", value.span))
        if kind == "bool" and ((word and not flag) or number):
            raise OverrideError(
                Diagnostic(
                    "not-a-boolean", f"{name.text} must be a boolean, not {quoted(value.text)}", value.span, hint="true or false"
                )
            )
        if kind == "str" and (number or flag):
            raise OverrideError(Diagnostic("not-a-string", f"{name.text} must be a string, not {quoted(value.text)}", value.span))


def _with_type(node: YamlNode | None) -> YamlNode | None:
    """Return a node or a slot in which the type alone may be written with that as its key."""
    return YamlMapping((YamlEntry(YamlScalar("type", node.span), node),), node.span) if isinstance(node, YamlScalar) else node


def _typed_loss(loss: YamlMapping) -> YamlMapping:
    """Return a loss with its type, which may be left out."""
    kind = () if "type" in loss else (YamlEntry(YamlScalar("type", loss.span), YamlScalar(UNTYPED.kind, loss.span)),)
    return YamlMapping((*kind, *loss), loss.span)


def _default_part(field: Field) -> Part | None:
    return field.default if isinstance(field.default, Part) else None


def _calls(path: RefPath) -> bool:
    return any(step.arguments is not None for step in path.steps)


def _joined(steps: list[YamlScalar]) -> Span:
    first, last = steps[0].span, steps[-1].span
    return Span(first.source, first.line, first.column, last.end_line, last.end_column)


def mapping(node: YamlNode | None) -> YamlMapping:
    """Return a node as a mapping, an empty one where it is none."""
    return node if isinstance(node, YamlMapping) else YamlMapping((), Span(Source("", ""), 1, 1, 1, 1))


def _text(node: YamlNode | None) -> str:
    return node.text if isinstance(node, YamlScalar) else ""
