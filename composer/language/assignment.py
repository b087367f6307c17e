"""`--set PATH=VALUE`: a recipe of one entry, to be merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from blocks.core import Library, Part, fields
from blocks.core.fields import SlotOf
from composer.diagnostics import Diagnostic, Source, Span
from composer.language.define import with_definitions
from composer.language.document import Document, Entry, Listing, Mapping, Node, Scalar
from composer.language.express import ExpressionError, parse_expression
from composer.language.expression import Number, Path
from composer.language.identifiers import used
from composer.language.keys import COMMON, GROUP, LONG_PARAM, REPEAT, SCAN, TOP
from composer.language.merge import Merger, is_deleted, merge
from composer.language.read import read
from composer.language.unknown import unknown

KEY = "_: "
"""What stands before the value while it is read."""
BY_PATTERN = ("init", "weights")
"""Keys whose names may hold dots, so that all of the path that is left is one name."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One argument: where, and what."""

    path: tuple[Scalar, ...]
    value: Node


def assign(document: Document, arguments: Iterable[str], library: Library, *, name: str = "--set") -> Document:
    """The document with each `PATH=VALUE` merged into it, one after the other; what is wrong is in its diagnostics."""
    root, diagnostics = document.root, list(document.diagnostics)
    for argument in arguments:
        try:
            one = read_assignment(Source(name, argument), diagnostics)
            if root is not None and one is not None:
                change = _Locator(root, library).change(one)
                root, wrong = merge(root, change, library)
                diagnostics.extend(wrong)
        except _Wrong as error:
            diagnostics.append(error.diagnostic)
    if root is not None and document.root is not None:
        root = _without_unused(root, used(document.root), diagnostics)
    return Document(document.source, root, tuple(diagnostics), document.clashes)


def _without_unused(root: Mapping, before: frozenset[str], diagnostics: list[Diagnostic]) -> Mapping:
    """The recipe without the params that only what was replaced made use of."""
    params, now = _mapping(root.get("params")), used(root)
    idle = [entry.key for entry in params if entry.key.text in before and entry.key.text not in now]
    if not idle:
        return root
    for key in idle:
        diagnostics.append(Diagnostic("unused-param", f"nothing uses `{key.text}` any more", key.span, "warning"))
    kept = Mapping(tuple(entry for entry in params if entry.key not in idle), params.span)
    entries = (Entry(entry.key, kept) if entry.key.text == "params" else entry for entry in root)
    return _without_unused(Mapping(tuple(entries), root.span), before, diagnostics)


class _Wrong(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


def read_assignment(source: Source, diagnostics: list[Diagnostic]) -> Assignment | None:
    """The path and the value of one argument, each with its place in it; None where the value cannot be read."""
    path, equals, value = source.text.partition("=")
    if not equals or not path.strip():
        whole = Span(source, 1, 1, 1, len(source.text) + 1)
        raise _Wrong(Diagnostic("assignment", "what is set is written PATH=VALUE", whole, hint="such as n_layers=6"))
    if not value.strip():
        end = Span(source, 1, len(path) + 1, 1, len(path) + 2)
        raise _Wrong(
            Diagnostic("empty-value", f"nothing is written after `{path.strip()}=`", end, hint=f"{path.strip()}=null deletes it")
        )
    place, steps = 1, []
    for piece in path.split("."):
        steps.append(Scalar(piece.strip(), Span(source, 1, place, 1, place + len(piece))))
        place += len(piece) + 1
    document = read(Source(source.name, KEY + value))
    move = _Mover(source, len(path) + 1 - len(KEY))
    diagnostics.extend(
        move.diagnostic(found) for found in document.diagnostics if found.span.column > len(KEY)
    )  # not our own key
    node = document.root.get(KEY[0]) if document.root is not None else None
    return Assignment(tuple(steps), move.node(node)) if node is not None else None


class _Mover:
    """Moves what was read from a part of a text to its place in the whole."""

    def __init__(self, source: Source, columns: int) -> None:
        self.source, self.columns = source, columns

    def span(self, span: Span) -> Span:
        first, last = (self.columns if line == 1 else 0 for line in (span.line, span.end_line))
        return Span(self.source, span.line, max(1, span.column + first), span.end_line, max(1, span.end_column + last))

    def diagnostic(self, diagnostic: Diagnostic) -> Diagnostic:
        labels = tuple(replace(label, span=self.span(label.span)) for label in diagnostic.labels)
        return replace(diagnostic, span=self.span(diagnostic.span), labels=labels)

    def node(self, node: Node) -> Node:
        match node:
            case Scalar(text=text, span=span, plain=plain):
                return Scalar(text, self.span(span), plain)
            case Listing(items=items, span=span):
                return Listing(tuple(self.node(item) for item in items), self.span(span))
            case Mapping(entries=entries, span=span):
                moved = (Entry(Scalar(e.key.text, self.span(e.key.span), e.key.plain), self.node(e.value)) for e in entries)
                return Mapping(tuple(moved), self.span(span))


class _Locator:
    """Finds the place in a recipe that a path names, and writes out the way to it."""

    def __init__(self, root: Mapping, library: Library) -> None:
        self.root = root
        self.merger = Merger(with_definitions(root, library), root)
        self.kinds: dict[Scalar, str] = {}
        """Steps into a slot where nothing is written, each with the block that the slot holds of its own."""

    def change(self, one: Assignment) -> Mapping:
        """The recipe of one entry."""
        steps = list(self._top(one.path))
        if steps[0].text == "params" and len(steps) == 2:
            self._hold_type(steps[1], one.value)
        value = one.value
        for step in reversed(steps):
            kind = self.kinds.get(step)
            entries = (Entry(Scalar("type", step.span), Scalar(kind, step.span)),) if kind else ()
            value = Mapping((*entries, Entry(step, value)), step.span)
        assert isinstance(value, Mapping)
        return value

    # -- the way, step by step, with what a short path leaves out

    def _top(self, path: tuple[Scalar, ...]) -> Iterator[Scalar]:
        first, *rest = path
        params, graph = _mapping(self.root.get("params")), _mapping(self.root.get("graph"))
        meanings = [name for name, known in (("params", params), ("graph", graph)) if first.text in known]
        if first.text in TOP and first.text not in meanings:
            yield first
            yield from self._under(first, rest)
            return
        if len(meanings) > 1 and not (rest and self._reaches(rest[0], graph.get(first.text))):
            both = f"`{first.text}` is a param and a node"
            raise _Wrong(Diagnostic("ambiguous", both, first.span, hint=f"write params.{first.text} or graph.{first.text}"))
        if not meanings:
            names = [*(entry.key.text for entry in (*params, *graph)), *TOP]
            raise _Wrong(unknown("unknown-path", first.span, "param or node", first.text, names))
        yield Scalar(meanings[-1], first.span)
        yield from self._under(Scalar(meanings[-1], first.span), list(path))

    def _reaches(self, step: Scalar, node: Node | None) -> bool:
        try:
            return bool(list(self._in_node([step], node, None)))
        except _Wrong:
            return False

    def _under(self, key: Scalar, rest: list[Scalar], root: Mapping | None = None) -> Iterator[Scalar]:
        """The rest of a path under a key at the top of the recipe, or of a block that it defines."""
        value = (root or self.root).get(key.text)
        if not rest:
            return
        if key.text == "blocks":
            name, *more = rest
            self._must_know(name, _mapping(value), "block defined here", "unknown-path")
            yield name
            if more:
                yield more[0]
                yield from self._under(more[0], more[1:], _mapping(_mapping(value).get(name.text)))
            return
        if key.text == "graph":
            yield from self._in_graph(rest, value)
        elif key.text == "params":
            yield from self._in_params(rest, _mapping(value))
        elif key.text == "losses":
            yield from self._in_losses(rest, _mapping(value))
        elif key.text in BY_PATTERN:
            yield Scalar(".".join(step.text for step in rest), _joined(rest))
        else:
            yield from self._in_names(rest, value, key.text)

    def _in_params(self, rest: list[Scalar], params: Mapping) -> Iterator[Scalar]:
        name, *more = rest
        self._must_know(name, params, "param", "unknown-param")
        yield name
        if not more:
            return
        param = params.get(name.text)
        if more[0].text in LONG_PARAM:
            yield from more
        elif isinstance(param, Mapping) and _text(param.get("type")) == "block":
            yield Scalar("default", more[0].span)
            yield from self._in_node(more, param.get("default"), None)
        else:
            raise _Wrong(unknown("unknown-path", more[0].span, f"key of the param {name.text}", more[0].text, LONG_PARAM))

    def _in_losses(self, rest: list[Scalar], losses: Mapping) -> Iterator[Scalar]:
        name, *more = rest
        self._must_know(name, losses, "loss", "unknown-path")
        yield name
        loss = _mapping(losses.get(name.text))
        kind = () if "type" in loss else (Entry(Scalar("type", loss.span), Scalar("scalar", loss.span)),)
        yield from self._in_node(more, Mapping((*kind, *loss), loss.span), None)

    def _in_graph(self, rest: list[Scalar], graph: Node | None) -> Iterator[Scalar]:
        name, *more = rest
        self._must_know(name, _mapping(graph), "node", "unknown-node")
        yield name
        yield from self._in_node(more, _mapping(graph).get(name.text), None)

    def _in_node(self, rest: list[Scalar], node: Node | None, default: Part | None) -> Iterator[Scalar]:
        """The rest of a path in a node or a slot; `default` is what the slot holds where nothing is written."""
        if not rest:
            return
        key, *more = rest
        if node is None and default is not None:
            part: type[Part] | None = type(default)
            self.kinds[key] = default.kind
        else:
            node = Mapping((Entry(Scalar("type", node.span), node),), node.span) if isinstance(node, Scalar) else node
            part = self.merger.part(node) if isinstance(node, Mapping) else None
        inside = _mapping(node)
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
        elif key.text in _keys(inside):
            yield key
            yield from self._in_names(more, inside.get(key.text), key.text)
        elif key.text in _mapping(inside.get("graph")):
            yield Scalar("graph", key.span)
            yield from self._in_graph(rest, inside.get("graph"))
        else:
            raise _Wrong(self._unknown_in_node(key, inside, part))

    def _unknown_in_node(self, key: Scalar, node: Mapping, part: type[Part] | None) -> Diagnostic:
        if part is not None:
            return unknown("unknown-field", key.span, f"field of {part.kind}", key.text, [*fields(part), *COMMON])
        known = [*(entry.key.text for entry in _mapping(node.get("graph"))), *_keys(node)]
        return unknown("unknown-path", key.span, "node or key here", key.text, known)

    def _in_names(self, rest: list[Scalar], value: Node | None, what: str) -> Iterator[Scalar]:
        for step in rest:
            if isinstance(value, Mapping) and what != "in":
                self._must_know(step, value, f"name under `{what}`", "unknown-path")
            yield step
            value = value.get(step.text) if isinstance(value, Mapping) else None

    def _must_know(self, name: Scalar, known: Mapping, what: str, code: str) -> None:
        if name.text not in known:
            raise _Wrong(unknown(code, name.span, what, name.text, [entry.key.text for entry in known]))

    # -- the value

    def _hold_type(self, name: Scalar, value: Node) -> None:
        """A number stays a number: a plain word in its place is no expression, and is said to be none."""
        declared = _mapping(self.root.get("params")).get(name.text)
        kind = _text(declared.get("type")) if isinstance(declared, Mapping) else self.merger.type_of(declared) if declared else ""
        if not isinstance(value, Scalar) or is_deleted(value):
            return
        try:
            expression = parse_expression(value)
        except ExpressionError as error:
            if kind in ("number", "int", "float", "flag"):
                raise _Wrong(error.diagnostic) from None
            return
        word = isinstance(expression, Path) and expression.text not in self.merger.params and not _calls(expression)
        flag = word and value.text in ("true", "false")
        number = isinstance(expression, Number)
        if kind in ("number", "int", "float") and word:
            raise _Wrong(Diagnostic("not-a-number", f"{name.text} is a number, and {value.text} is none", value.span))
        if kind == "flag" and ((word and not flag) or number):
            raise _Wrong(
                Diagnostic("not-a-flag", f"{name.text} is a flag, and {value.text} is none", value.span, hint="true or false")
            )
        if kind == "word" and (number or flag):
            raise _Wrong(Diagnostic("not-a-word", f"{name.text} is a word, and {value.text} is none", value.span))


def _keys(node: Mapping) -> tuple[str, ...]:
    if "type" in node:
        return COMMON
    return REPEAT if "repeat" in node else SCAN if "scan" in node else GROUP


def _calls(path: Path) -> bool:
    return any(step.arguments is not None for step in path.steps)


def _joined(steps: list[Scalar]) -> Span:
    first, last = steps[0].span, steps[-1].span
    return Span(first.source, first.line, first.column, last.end_line, last.end_column)


def _mapping(node: Node | None) -> Mapping:
    return node if isinstance(node, Mapping) else Mapping((), Span(Source("", ""), 1, 1, 1, 1))


def _text(node: Node | None) -> str:
    return node.text if isinstance(node, Scalar) else ""
