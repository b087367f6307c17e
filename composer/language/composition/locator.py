"""The place in a recipe that a path names: a param, a node, or a path from a node on."""

from __future__ import annotations

from collections.abc import Iterator

from blocks.core import Library, Part, fields
from blocks.core.fields import SlotOf
from composer.diagnostics import Diagnostic, Source, Span
from composer.language.composition.merge import Merger, is_deleted
from composer.language.composition.override import OverrideError
from composer.language.expressions.ast import Number, RefPath
from composer.language.expressions.parser import ExpressionError, parse_expression
from composer.language.recipe.definitions import with_definitions
from composer.language.recipe.keys import KEYS, keys_of, kind_of_node
from composer.language.recipe.losses import UNTYPED
from composer.language.unknown_names import unknown
from composer.language.yaml.nodes import YamlEntry, YamlMapping, YamlNode, YamlScalar


class Locator:
    """Finds the place in a recipe that a path names, and writes out the way to it."""

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

    # -- the way, step by step, with what a short path leaves out

    def _top(self, path: tuple[YamlScalar, ...]) -> Iterator[YamlScalar]:
        first, *rest = path
        params, graph = mapping(self.root.get("params")), mapping(self.root.get("graph"))
        meanings = [name for name, known in (("params", params), ("graph", graph)) if first.text in known]
        if first.text in KEYS["recipe"] and first.text not in meanings:
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
            raise OverrideError(unknown("unknown-path", first.span, "param or node", first.text, known))
        yield YamlScalar(meanings[-1], first.span)
        yield from self._under(YamlScalar(meanings[-1], first.span), list(path))

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
                unknown("unknown-path", more[0].span, f"key of the param {name.text}", more[0].text, keys_of("param"))
            )

    def _in_losses(self, rest: list[YamlScalar], losses: YamlMapping) -> Iterator[YamlScalar]:
        name, *more = rest
        self._require(name, losses, "loss", "unknown-path")
        yield name
        loss = mapping(losses.get(name.text))
        kind = () if "type" in loss else (YamlEntry(YamlScalar("type", loss.span), YamlScalar(UNTYPED.kind, loss.span)),)
        yield from self._in_node(more, YamlMapping((*kind, *loss), loss.span), None)

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
        if node is None and default is not None:
            part: type[Part] | None = type(default)
            self.kinds[key] = default.kind
        else:
            node = (
                YamlMapping((YamlEntry(YamlScalar("type", node.span), node),), node.span)
                if isinstance(node, YamlScalar)
                else node
            )
            part = self.merger.part(node) if isinstance(node, YamlMapping) else None
        inside = mapping(node)
        if key.text == "graph" and "graph" in inside:
            yield key
            yield from self._in_graph(more, inside.get("graph")) if more else ()
        elif part is not None and key.text in fields(part):
            yield key
            field = fields(part)[key.text]
            if isinstance(field.form, SlotOf) and more:
                held = field.default if isinstance(field.default, Part) else None
                yield from self._in_node(more, inside.get(key.text), held)
            else:
                yield from more
        elif key.text in KEYS[kind_of_node(inside) or "group"]:
            yield key
            yield from self._in_names(more, inside.get(key.text), key.text)
        elif key.text in mapping(inside.get("graph")):
            yield YamlScalar("graph", key.span)
            yield from self._in_graph(rest, inside.get("graph"))
        else:
            raise OverrideError(self._unknown_in_node(key, inside, part))

    def _unknown_in_node(self, key: YamlScalar, node: YamlMapping, part: type[Part] | None) -> Diagnostic:
        if part is not None:
            return unknown("unknown-field", key.span, f"field of {part.kind}", key.text, [*fields(part), *keys_of("node")])
        known = [*(entry.key.text for entry in mapping(node.get("graph"))), *keys_of(kind_of_node(node) or "group")]
        return unknown("unknown-path", key.span, "node or key here", key.text, known)

    def _in_names(self, rest: list[YamlScalar], value: YamlNode | None, what: str) -> Iterator[YamlScalar]:
        for step in rest:
            if isinstance(value, YamlMapping) and what != "in":
                self._require(step, value, f"name under `{what}`", "unknown-path")
            yield step
            value = value.get(step.text) if isinstance(value, YamlMapping) else None

    def _require(self, name: YamlScalar, known: YamlMapping, what: str, code: str) -> None:
        if name.text not in known:
            raise OverrideError(unknown(code, name.span, what, name.text, [entry.key.text for entry in known]))

    # -- the value

    def _check_type(self, name: YamlScalar, value: YamlNode) -> None:
        """Check a value against the type of its param: a plain word is not a number, and a number is not a string."""
        declared = mapping(self.root.get("params")).get(name.text)
        kind = (
            _text(declared.get("type"))
            if isinstance(declared, YamlMapping)
            else self.merger.type_of(declared)
            if declared
            else ""
        )
        if not isinstance(value, YamlScalar) or is_deleted(value):
            return
        try:
            expression = parse_expression(value)
        except ExpressionError as error:
            if kind in ("int", "float", "bool"):
                raise OverrideError(error.diagnostic) from None
            return
        word = isinstance(expression, RefPath) and expression.text not in self.merger.params and not _calls(expression)
        flag = word and value.text in ("true", "false")
        number = isinstance(expression, Number)
        if kind in ("int", "float") and word:
            raise OverrideError(Diagnostic("not-a-number", f"{name.text} is a number, but {value.text} is not", value.span))
        if kind == "bool" and ((word and not flag) or number):
            raise OverrideError(
                Diagnostic(
                    "not-a-boolean", f"{name.text} is a boolean, but {value.text} is not", value.span, hint="true or false"
                )
            )
        if kind == "str" and (number or flag):
            raise OverrideError(Diagnostic("not-a-string", f"{name.text} is a string, but {value.text} is not", value.span))


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
