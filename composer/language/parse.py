"""Document to recipe: which keys, blocks, fields and ports there are, and every expression read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, get_args

from blocks.core import Library, Part, fields
from blocks.core.fields import AxisName, FlagsBy, ListOf, SlotOf, Text
from blocks.losses.loss import Loss
from composer.diagnostics import Diagnostic, Label, Span
from composer.language.define import BLOCKS, define, mistakes
from composer.language.defined import is_defined
from composer.language.document import Clashes, Document, Entry, Listing, Mapping, Node, Scalar
from composer.language.express import ExpressionError, parse_expression
from composer.language.expression import Expression, If, Path
from composer.language.globs import Unbalanced, pieces
from composer.language.near import near
from composer.language.recipe import (
    Body,
    Choice,
    Edge,
    ExpressionValue,
    FieldEntry,
    FlagsValue,
    GivenValue,
    Group,
    InitRule,
    InputDecl,
    ListValue,
    LossDecl,
    MaskValue,
    NodeDecl,
    Param,
    ParamType,
    Recipe,
    Repeat,
    Scan,
    Settings,
    SlotValue,
    TextValue,
    TypeDecl,
    Use,
    What,
    Written,
)
from composer.language.tasks import TASKS
from composer.language.yaml_events import UNREADABLE

LANGUAGE = 1
TOP = (
    *("recipe", "language", "doc", "source", "task", "params", "blocks"),
    *("inputs", "graph", "outputs", "positions", "losses", "init", "weights"),
)
"""Keys of the language that this composer does not build yet."""
COMMON = ("type", "in", "when", "tie", "trainable")
GROUP = ("graph", "in", "outputs", "when", "tie", "trainable")
REPEAT = ("repeat", "as", "each", "share", "graph", "in", "outputs", "when", "tie", "trainable")
SCAN = ("scan", "graph", "in", "outputs", "when", "tie", "trainable")
LONG_PARAM = ("default", "type", "required", "min", "max", "of", "doc")
WORDS = frozenset({"input", "none", "true", "false", "and", "or", "not", "if", "else"})
FUNCTIONS = frozenset({"min", "max", "abs", "sqrt", "log", "exp", "floor", "ceil", "round", "ceil_to"})
LETTERS = "letters, digits and underscores, a letter first, at most 64"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
_AXIS = re.compile(r"\s*(int|float|bool)\s*\[(.*)\]\s*(\?)?\s*", re.DOTALL)


def parse(document: Document, library: Library) -> Recipe | None:
    """The recipe that a document holds, with what is wrong in `diagnostics`; None where the document holds none, and says why."""
    if document.root is None:
        return None
    return Parser(library, list(document.diagnostics), document.clashes).recipe(document.root)


def is_node(part: type[Part]) -> bool:
    """Whether a part can stand as a node: it has outputs."""
    return bool(part.outputs) or part.types is not Part.types


def ports(part: type[Part]) -> dict[str, str]:
    """A part's input ports with their marks: `{"memory": "?", "xs": "*", "x": ""}`."""
    return {name.rstrip("?*"): name[len(name.rstrip("?*")) :] for name in part.inputs}


class Parser:
    """Reads nodes of a document by what their place wants, and collects what is wrong."""

    def __init__(self, library: Library, diagnostics: list[Diagnostic], clashes: Clashes | None = None) -> None:
        self.library = library
        self.diagnostics = diagnostics
        self.clashes = clashes or {}
        self.defined = 0
        """Blocks that the recipe defines, as far as they are read."""
        self.refused = [found.span for found in diagnostics]
        """What could not be read, so that it is not missed as well."""

    # -- the whole recipe

    def recipe(self, root: Mapping) -> Recipe:
        """The recipe under the top mapping."""
        self._keys(root, TOP, "a recipe", also=("extends", "uses"))
        definitions = define(self, root.get("blocks"))
        self.diagnostics.extend(endless := mistakes(definitions))
        name = root.get("recipe")
        if name is None and not _misspelt(root, "recipe"):
            self._error(
                "missing-key", _start(root), "a recipe starts with its name", hint="write `recipe: my_model` as the first line"
            )
        title = self._scalar(name, "the recipe's name is one word") if name is not None else None
        if title is not None and not _NAME.fullmatch(title.text):
            self._error("bad-name", title.span, f"{_short(title.text)} cannot be the name of a recipe", hint=LETTERS)
        self._language(root.get("language"))
        task = self._task(root.get("task"))
        graph = root.get("graph")
        if graph is None and not _misspelt(root, "graph"):
            self._error(
                "missing-key", _start(root), "a recipe needs a graph", hint="write `graph:` with the model's nodes below it"
            )
        inputs = root.get("inputs")
        if inputs is None and not _misspelt(root, "inputs"):
            self._error(
                "missing-key", _start(root), "a recipe needs inputs", hint='such as `inputs: {tokens: "int[batch, time]"}`'
            )
        weights = root.get("weights")
        if weights is not None and not isinstance(weights, Mapping):
            self._entries(weights, "weights")
        return Recipe(
            name=title.text if title else "",
            doc=self._text(root.get("doc")),
            source=self._text(root.get("source")),
            task=task.text if task else "",
            task_span=task.span if task else None,
            params=tuple(self._params(root.get("params"))),
            inputs=tuple(self._inputs(inputs)),
            body=self.body(graph, root.entry("outputs")) if graph is not None else Body((), (), root.span),
            positions=tuple(self._named_references(root.entry("positions"), "positions")),
            losses=tuple(self._losses(root.get("losses"), task.text if task else "")),
            init=tuple(self._init(root.get("init"))),
            weights=weights if isinstance(weights, Mapping) else None,
            root=root,
            name_scalar=title or Scalar("", root.span),
            library=self.library,
            definitions={each.part: each for each in definitions},
            clashes=self.clashes,
            readable=not endless
            and self.defined <= BLOCKS
            and not any(isinstance(root.get(part), Scalar | Listing) for part in ("params", "inputs", "graph", "blocks")),
            diagnostics=tuple(self.diagnostics),
        )

    def _language(self, node: Node | None) -> None:
        scalar = self._scalar(node, "the language's version is a number") if node is not None else None
        if scalar is not None and scalar.text != str(LANGUAGE):
            newer = scalar.text.isdigit() and int(scalar.text[:9]) > LANGUAGE
            known = "newer than this composer reads" if newer else "none that this composer knows"
            message = f"language {scalar.text[:20]} is {known}"
            self._error("language-version", scalar.span, message, hint=f"this composer reads language {LANGUAGE}")

    def _task(self, node: Node | None) -> Scalar | None:
        scalar = self._scalar(node, "a task is one word") if node is not None else None
        if scalar is None or scalar.text in TASKS:
            return scalar
        self._unknown("unknown-task", scalar.span, "task", scalar.text, TASKS)
        return None

    def _params(self, node: Node | None) -> Iterable[Param]:
        for entry in self._entries(node, "params"):
            if not self._declares(entry.key, "a param"):
                continue
            value = entry.value
            if (
                isinstance(value, Mapping)
                and "type" in value
                and value.get("default") is None
                and "required" not in value
                and self._is_block(value)
            ):
                self._error("param-form", value.span, "a param that holds a block is written in its long form",
                            hint=f"{entry.key.text}: {{type: block, default: {{…}}}}")  # fmt: skip
                continue
            if isinstance(value, Mapping):
                if param := self._long_param(entry, value):
                    yield param
            elif isinstance(value, Listing):
                self._error(
                    "param-form",
                    value.span,
                    "a param is one value",
                    hint="a list that changes from pass to pass stands under `each` of a repeat",
                )
            else:
                yield Param(entry.key.text, entry.key.span, None, value)

    def _is_block(self, node: Mapping) -> bool:
        kind = node.get("type")
        return isinstance(kind, Scalar) and kind.text in self.library and kind.text not in get_args(ParamType)

    def _long_param(self, entry: Entry, value: Mapping) -> Param | None:
        self._keys(value, LONG_PARAM, "a param")
        kind = self._scalar(value.get("type"), "the type of a param is one word")
        type_: Any = None
        if kind is not None:
            if kind.text in get_args(ParamType):
                type_ = kind.text
            else:
                self._unknown("unknown-param-type", kind.span, "type of param", kind.text, get_args(ParamType))
        default = value.get("default")
        required = self._scalar(value.get("required"), "`required` is a flag")
        if required is not None and required.text not in ("true", "false"):
            self._error(
                "not-a-flag", required.span, f"{_short(required.text)} is no flag", hint="`required: true`, or leave it out"
            )
            if default is None:
                return None
        elif default is None and not (isinstance(required, Scalar) and required.text == "true"):
            self._error(
                "param-form", entry.key.span, f"{entry.key.text} has no default", hint="write `default: …`, or `required: true`"
            )
        of = value.get("of")
        words = tuple(item.text for item in of.items if isinstance(item, Scalar)) if isinstance(of, Listing) else ()
        if type_ == "choice" and not words:
            self._error("param-form", value.span, "a choice names what may be chosen", hint="of: [first, second]")
        return Param(
            entry.key.text,
            entry.key.span,
            type_,
            default,
            required=isinstance(required, Scalar) and required.text == "true",
            minimum=self._expression(value.get("min")),
            maximum=self._expression(value.get("max")),
            of=words,
            doc=self._text(value.get("doc")),
        )

    def _inputs(self, node: Node | None, *, block: bool = False) -> Iterable[InputDecl]:
        """The inputs of a recipe, or of a block in one."""
        for entry in self._entries(node, "inputs"):
            if not self._declares(entry.key, "an input", functions=False):
                continue
            value, default, optional = entry.value, None, False
            if isinstance(value, Mapping):
                self._keys(value, ("type", "default", "doc"), "an input")
                default = self._expression(value.get("default"))
                given = value.get("type")
                if block and "default" in value:
                    message = "only an input of the whole model has a default, since a block takes what it is given"
                    self._error("input-default", value.span, message, hint="give the model such an input, and hand it in")
                    default = None
                if given is None:
                    hint = f'{entry.key.text}: {{type: "int[batch, time]", default: 0}}'
                    self._error("missing-key", entry.key.span, f"the input `{entry.key.text}` has no type", hint=hint)
                    continue
                value = given
            if isinstance(value, Listing):
                self._error("bad-type", value.span, "a type is `dtype[axes]`", hint='inside braces, quote it: "int[batch, time]"')
                continue
            scalar = self._scalar(value, "a type is written as `int[batch, time]`")
            if scalar is None:
                continue
            if scalar.text.rstrip().endswith("?"):
                optional = True
            declared = self.type_of(scalar)
            if declared is not None and declared.leading and not block:
                message = "an input of the model names all its axes, so `...` cannot stand among them"
                self._error("bad-type", scalar.span, message, hint="such as float[batch, time, dim]")
            elif declared is not None:
                yield InputDecl(entry.key.text, entry.key.span, declared, optional, default)

    def type_of(self, scalar: Scalar) -> TypeDecl | None:
        """A type from its text."""
        match = _AXIS.fullmatch(scalar.text)
        if match is None:
            self._error(
                "bad-type",
                scalar.span,
                f"{_short(scalar.text)} is no type",
                hint="a type is `int`, `float` or `bool` with its axes: int[batch, time]",
            )
            return None
        axes: list[Expression] = []
        leading = False
        start = match.start(2)
        for piece in _pieces(match.group(2)):
            text = piece.strip()
            at = start + len(piece) - len(piece.lstrip())
            start += len(piece) + 1
            if text == "..." and not axes and not leading:
                leading = True
                continue
            if not text and match.group(2).strip() == "":
                continue
            expression = self._expression(Scalar(text, scalar.part(at, at + len(text))))
            if expression is not None:
                axes.append(expression.expression)
        dtype: Any = match.group(1)
        return TypeDecl(dtype, tuple(axes), leading, scalar.span, scalar.text.strip().rstrip("?").rstrip())

    def _init(self, node: Node | None) -> Iterable[InitRule]:
        for entry in self._entries(node, "init"):
            value = entry.value
            try:
                pieces(entry.key.text)
            except Unbalanced:
                hint = "words to choose from stand between round brackets: *.(q|k).weight"
                self._error("init-pattern", entry.key.span, "the brackets of this pattern do not match", hint=hint)
                continue
            if isinstance(value, Mapping) and len(value.entries) == 1:
                how = value.entries[0].key
                if how.text in ("normal", "uniform", "constant"):
                    number = self._expression(value.entries[0].value)
                    kind: Any = how.text
                    if number is not None:
                        yield InitRule(entry.key.text, entry.key.span, kind, number)
                else:
                    self._unknown("unknown-init", how.span, "initialiser", how.text, ("normal", "uniform", "constant"))
            else:
                self._error(
                    "init-form",
                    value.span,
                    "an initialiser is a name with its number",
                    hint="{normal: 0.02}, {uniform: 0.1} or {constant: 0}",
                )

    def _losses(self, node: Node | None, task: str) -> Iterable[LossDecl]:
        for entry in self._entries(node, "losses"):
            if entry.key.text == task:
                self._error("name-taken", entry.key.span, f"`{task}` is the loss of the task", hint="name this one differently")
            if self._declares(entry.key, "a loss", functions=False):
                use = self._loss(entry) if isinstance(entry.value, Mapping) else None
                if not isinstance(entry.value, Mapping):
                    hint = f"{entry.key.text}: {{in: node}} or {{type: cross_entropy, in: node, target: labels}}"
                    self._error("value-form", entry.value.span, "a loss is a mapping", hint=hint)
                yield LossDecl(entry.key.text, entry.key.span, use)

    def _loss(self, entry: Entry) -> Use | None:
        """A loss: what is not a field of its type may be one of its ports."""
        node = entry.value
        assert isinstance(node, Mapping)
        kind = self._scalar(node.get("type"), "the type of a loss is one word") if "type" in node else Scalar("scalar", node.span)
        if kind is None:
            return None
        known = list(self.library.of(Loss))
        if kind.text not in known:
            if kind.text in self.library:
                hint = f"give a node's number to one: {entry.key.text}: {{in: node}}, or choose among {', '.join(known)}"
                self._error("not-a-loss", kind.span, f"{kind.text} is no loss", hint=hint)
            else:
                self._unknown("unknown-block", kind.span, "loss", kind.text, known)
            return None
        part = self.library[kind.text]
        edges = self._loss_edges(node, part)
        if "input" in ports(part) and "input" not in edges:
            self._error("missing-key", entry.key.span, f"the loss `{entry.key.text}` is given nothing to judge", hint="in: node")
            return None
        inside = Mapping((Entry(Scalar("in", node.span), Mapping(tuple(edges.values()), node.span)),), node.span)
        own = tuple(each for each in node if each.key.text in fields(part))
        others = Mapping(
            tuple(each for each in node if each.key.text not in {"type", "in", *ports(part), *fields(part)}), node.span
        )
        self._keys(others, tuple(fields(part)), f"the loss {kind.text}", also=("type", "in", *ports(part)))
        use = self._use(Mapping((Entry(Scalar("type", kind.span), kind), *inside, *own), node.span))
        assert isinstance(use, Use)
        return replace(use, settings=replace(use.settings, misread=use.settings.misread or bool(others.entries)))

    def _loss_edges(self, node: Mapping, part: type[Part]) -> dict[str, Entry]:
        """The entries of a loss that name what flows in, port by port: those under `in`, and those beside it."""
        found: dict[str, Entry] = {}
        given = node.entry("in")
        if given is not None and isinstance(given.value, Mapping):
            found |= {each.key.text: each for each in given.value}
        elif given is not None:
            first = next(iter(ports(part)))
            found[first] = Entry(Scalar(first, given.key.span), given.value)
        for each in node:
            if each.key.text in found and each.key.text in ports(part):
                self._error("one-value", each.key.span, f"port {each.key.text} takes one value, and `in` gives it one already")
            elif each.key.text in ports(part):
                found[each.key.text] = each
        return found

    # -- graphs and nodes

    def body(self, node: Node, outputs: Entry | None = None) -> Body:
        """The nodes of a graph."""
        nodes = []
        for entry in self._entries(node, "graph"):
            if self._declares(entry.key, "a node", functions=False):
                nodes.append(NodeDecl(entry.key.text, entry.key.span, self.what(entry.value)))
        if not nodes and isinstance(node, Mapping) and not node.entries and not self._holds_refused(node):
            self._error("empty-graph", node.span, "a graph needs at least one node")
        return Body(tuple(nodes), tuple(self._named_references(outputs, "outputs")), node.span)

    def what(self, node: Node) -> What | None:
        """What a node or a slot holds: a block by name, a block with fields, a group, or a repeat."""
        if isinstance(node, Scalar):
            written = self._expression(node)
            return Choice(written.expression, node.span) if written else None
        if isinstance(node, Listing):
            self._error("node-form", node.span, "a node is a block, not a list", hint="write {type: …}")
            return None
        if "repeat" in node:
            return self._repeat(node)
        if "scan" in node:
            return self._scan(node)
        if "type" in node:
            return self._use(node)
        if "graph" in node:
            return self._group(node)
        hint = "write {type: …}, {graph: …} or {repeat: …, graph: …}"
        first = node.entries[0].key if node.entries else None
        misspelt = [(entry.key, meant) for entry in node if (meant := near(entry.key.text, ("type", "graph", "repeat", "scan")))]
        if misspelt:
            first, hint = misspelt[0][0], f"did you mean {misspelt[0][1][0]}?"
        elif first is not None and first.text in self.library:
            hint = f"write {{type: {first.text}, …}}"
        if not self._holds_refused(node):
            self._error("missing-type", first.span if first else node.span, "a node needs the type of its block", hint=hint)
        return None

    def _group(self, node: Mapping) -> Group | None:
        self._keys(node, GROUP, "a group", also=("repeat", "scan", "type"))
        graph = node.get("graph")
        assert graph is not None
        return Group(self.body(graph, node.entry("outputs")), self._settings(node), node.span)

    def _repeat(self, node: Mapping) -> Repeat | None:
        self._keys(node, REPEAT, "a repeat")
        count_node, graph = node.get("repeat"), node.get("graph")
        count = self._expression(count_node)
        if graph is None:
            self._error("missing-key", _start(node), "a repeat needs a graph", hint="graph: with what each pass does")
        if count is None or graph is None:
            return None
        index = self._scalar(node.get("as"), "the index of a repeat is one name") if "as" in node else None
        if index is not None and not self._declares(index, "the index"):
            index = None
        each = [
            (e.key.text, e.key.span, e.value)
            for e in self._entries(node.get("each"), "each")
            if self._declares(e.key, "an `each` value")
        ]
        return Repeat(
            count,
            index.text if index else "layer",
            index.span if index else count.span,
            tuple(each),
            self.body(graph, node.entry("outputs")),
            self._settings(node),
            node.span,
            self._expression(node.get("share")),
        )

    def _scan(self, node: Mapping) -> Scan | None:
        self._keys(node, SCAN, "a scan")
        axis, graph = self._scalar(node.get("scan"), "the axis of a scan is one name"), node.get("graph")
        if graph is None:
            self._error("missing-key", _start(node), "a scan needs a graph", hint="graph: with what each step does")
        if axis is None or graph is None:
            return None
        return Scan(axis.text, axis.span, self.body(graph, node.entry("outputs")), self._settings(node), node.span)

    def _use(self, node: Mapping) -> What | None:
        kind = self._scalar(node.get("type"), "a block's type is one word")
        if kind is None:
            return None
        if kind.text not in self.library:
            self.diagnostics.extend(unknown_block(kind.span, kind.text, self.library, self.clashes))
            return None
        part = self.library[kind.text]
        known = fields(part)
        written = []
        for entry in node:
            name = entry.key.text
            if name in COMMON:
                continue
            if name not in known:
                self._unknown(
                    "unknown-field",
                    entry.key.span,
                    f"field of {kind.text}",
                    name,
                    [*known, *(COMMON[1:] if is_node(part) else ())],
                )
                continue
            written.append(FieldEntry(name, entry.key.span, self.written(entry.value, part, name)))
        strange = [entry.key.text for entry in node if entry.key.text not in known and entry.key.text not in COMMON]
        meant = {offered[0] for name in strange if (offered := near(name, [*known, *COMMON[1:]]))}
        missing = [name for name, field in known.items() if field.required and name not in node and name not in meant]
        if missing and not self._holds_refused(node):
            self.diagnostics.append(missing_field(kind.span, kind.text, missing))
        return Use(part, kind.span, tuple(written), self._settings(node, part), node.span)

    def written(self, node: Node, part: type[Part], name: str) -> Written | None:
        """What is written for a field, read as the field's form wants it."""
        if is_defined(part):
            return GivenValue(node, node.span)
        form = fields(part)[name].form
        return self._form(node, form, name)

    def _form(self, node: Node, form: Any, name: str) -> Written | None:
        match form:
            case Text() | AxisName():
                scalar = self._scalar(node, f"`{name}` is text")
                return TextValue(scalar.text, scalar.span) if scalar else None
            case ListOf():
                if not isinstance(node, Listing):
                    self._error("value-form", node.span, f"`{name}` is a list", hint=f"{name}: [first, second]")
                    return None
                items = [self._form(item, form.item, name) for item in node.items]
                return ListValue(tuple(item for item in items if item is not None), node.span)
            case FlagsBy() if isinstance(node, Mapping):
                self._keys(node, form.names, f"`{name}`")
                flags = [(entry.key.text, self._expression(entry.value)) for entry in node]
                return FlagsValue(tuple((key, value) for key, value in flags if value), node.span)
            case SlotOf(family=family) if not is_node(family) and family.__name__ == "Mask":
                written = self._expression(node) if isinstance(node, Scalar) else None
                if not isinstance(node, Scalar):
                    self._error("mask-form", node.span, "a mask is an expression", hint="mask: causal and window(1024)")
                return MaskValue(written.expression, node.span) if written else None
            case SlotOf():
                what = self.what(node)
                return SlotValue(what, node.span) if what else None
            case _:
                return self._expression(node, name)

    def _settings(self, node: Mapping, part: type[Part] | None = None) -> Settings:
        edges, before = node.entry("in"), len(self.diagnostics)
        read = tuple(self._edges(edges.value, part)) if edges else ()
        misread = len(self.diagnostics) > before
        when, trainable = self._expression(node.get("when")), self._expression(node.get("trainable"))
        return Settings(
            read,
            edges.value.span if edges else None,
            when.expression if when else None,
            self._tie(node.get("tie")),
            trainable.expression if trainable else None,
            misread,
        )

    def _edges(self, node: Node, part: type[Part] | None) -> Iterable[Edge]:
        if isinstance(node, Mapping):
            known = ports(part) if part else None
            for entry in node:
                if known is not None and entry.key.text not in known:
                    self._unknown(
                        "unknown-port", entry.key.span, f"port of {part.kind if part else 'the group'}", entry.key.text, known
                    )
                    continue
                if known is None and not self._declares(entry.key, "an input", functions=False, given=True):
                    continue
                yield Edge(entry.key.text, entry.key.span, self._references(entry.value))
        else:
            yield Edge("", node.span, self._references(node))

    def _references(self, node: Node) -> tuple[Expression, ...] | None:
        items = node.items if isinstance(node, Listing) else (node,)
        written = [self._expression(item, "in") for item in items]
        found = tuple(one.expression for one in written if one is not None and self._is_reference(one.expression))
        return found if len(found) == len(items) else None

    def _is_reference(self, expression: Expression) -> bool:
        match expression:
            case Path():
                return True
            case If(then=then, otherwise=otherwise):
                return self._is_reference(then) and self._is_reference(otherwise)
            case _:
                self._error(
                    "bad-reference",
                    expression.span,
                    "an edge names a node or an input",
                    hint="compute with a node of its own, such as {type: add, in: [a, b]}",
                )
                return False

    def _tie(self, node: Node | None) -> Any:
        if node is None:
            return None
        if isinstance(node, Mapping):
            written = [(entry.key.text, entry.key.span, self._expression(entry.value)) for entry in node]
            return tuple(
                (name, span, value.expression) for name, span, value in written if value and self._is_reference(value.expression)
            )
        value = self._expression(node, "tie")
        return value.expression if value and self._is_reference(value.expression) else None

    def _named_references(self, entry: Entry | None, what: str) -> Iterable[tuple[str, Span, Expression]]:
        if entry is None:
            return
        if not isinstance(entry.value, Mapping):
            written = self._expression(entry.value) if what == "outputs" and isinstance(entry.value, Scalar) else None
            if written is not None and isinstance(written.expression, Path):
                yield written.expression.steps[-1].name, entry.value.span, written.expression
            else:
                self._error("value-form", entry.value.span, f"`{what}` maps names to references", hint=f"{what}: {{name: node}}")
            return
        for item in self._entries(entry.value, what):
            value = self._expression(item.value, what)
            if (
                value is not None
                and self._is_reference(value.expression)
                and self._declares(item.key, "an output", functions=False)
            ):
                yield item.key.text, item.key.span, value.expression

    # -- small readings

    def _expression(self, node: Node | None, name: str = "") -> ExpressionValue | None:
        if node is None:
            return None
        if not isinstance(node, Scalar):
            what = f"`{name}` is one value" if name else "one value is wanted here"
            self._error("value-form", node.span, f"{what}, not a {'list' if isinstance(node, Listing) else 'mapping'}")
            return None
        try:
            return ExpressionValue(parse_expression(node), node.span)
        except ExpressionError as error:
            self.diagnostics.append(error.diagnostic)
            return None

    def _scalar(self, node: Node | None, wanted: str) -> Scalar | None:
        if node is None or isinstance(node, Scalar):
            return node
        self._error("value-form", node.span, f"{wanted}, not a {'list' if isinstance(node, Listing) else 'mapping'}")
        return None

    def _text(self, node: Node | None) -> str:
        scalar = self._scalar(node, "this is text")
        return " ".join(scalar.text.split()) if scalar else ""

    def _entries(self, node: Node | None, what: str) -> Iterable[Entry]:
        if node is None:
            return ()
        if isinstance(node, Mapping):
            return node.entries
        self._error("value-form", node.span, f"`{what}` is a mapping", hint=f"{what}: with one name on each line below it")
        return ()

    def _keys(self, node: Mapping, known: Sequence[str], what: str, also: Sequence[str] = ()) -> None:
        """Reports the keys that are not known; `also` are those that a misspelt one may have meant."""
        for entry in node:
            if entry.key.text not in known:
                offered = known if not near(entry.key.text, also) else (*known, *also)
                self._unknown("unknown-key", entry.key.span, f"key of {what}", entry.key.text, offered)

    def _declares(self, key: Scalar, what: str, *, functions: bool = True, given: bool = False) -> bool:
        if UNREADABLE in key.text:
            return False
        if not _NAME.fullmatch(key.text):
            self._error("bad-name", key.span, f"{_short(key.text)} cannot be the name of {what}", hint=LETTERS)
            return False
        if (key.text in WORDS and not (given and key.text == "input")) or (functions and key.text in FUNCTIONS):
            self._error("reserved-name", key.span, f"`{key.text}` is a word of the language and cannot be the name of {what}")
            return False
        if key.text == "training" and what in ("a node", "a loss"):
            self._error("reserved-name", key.span, "every torch module keeps under `training` whether it is in training mode")
            return False
        return True

    def _holds_refused(self, node: Mapping) -> bool:
        """Whether a key or a value of a mapping could not be read, which has been reported."""
        span = node.span
        start, end = (span.line, span.column), (span.end_line, span.end_column)
        return any(start <= (each.line, each.column) < end for each in self.refused if each.source is span.source)

    def _unknown(self, code: str, span: Span, what: str, name: str, known: Iterable[str]) -> None:
        if UNREADABLE not in name:
            self.diagnostics.append(unknown(code, span, what, name, known))

    def _error(self, code: str, span: Span, message: str, *, hint: str = "", labels: tuple[Label, ...] = ()) -> None:
        self.diagnostics.append(Diagnostic(code, message, span, hint=hint, labels=labels))


def missing_field(span: Span, kind: str, missing: Sequence[str]) -> Diagnostic:
    """The diagnostic of a block without fields that it needs."""
    wanted = " and ".join(f"`{name}`" for name in missing)
    return Diagnostic(
        "missing-field", f"{kind} needs {wanted}", span, hint=f"{{type: {kind}, {', '.join(f'{name}: …' for name in missing)}}}"
    )


def unknown_block(span: Span, name: str, known: Iterable[str], clashes: Clashes) -> list[Diagnostic]:
    """The diagnostic of a block that does not exist, or of one that two files define."""
    if UNREADABLE in name:
        return []
    if name not in clashes:
        return [unknown("unknown-block", span, "block", name, known)]
    labels = tuple(Label(place, "one of them") for place in clashes[name])
    message = f"two of the files that are used here define `{name}`, each in its own way"
    return [Diagnostic("ambiguous", message, span, labels=labels, hint="rename one of them")]


def unknown(code: str, span: Span, what: str, name: str, known: Iterable[str]) -> Diagnostic:
    """The diagnostic of a name that does not exist, with the nearest that do."""
    names = list(known)
    offered = near(name, names)
    if offered:
        hint = f"did you mean {' or '.join(offered)}?"
    elif len(names) <= 12:
        hint = f"known here: {', '.join(names)}" if names else ""
    else:
        hint = ""
    return Diagnostic(code, f"there is no {what} called {_short(name)}", span, hint=hint)


def _short(text: str) -> str:
    return f"`{text}`" if len(text) <= 40 else f"`{text[:40]}…`"


def _start(node: Mapping) -> Span:
    return node.entries[0].key.span if node.entries else node.span


def _misspelt(root: Mapping, key: str) -> bool:
    """Whether a key that is not there is meant by another, which has been reported."""
    return any(near(entry.key.text, TOP)[:1] == [key] for entry in root if entry.key.text not in TOP)


def _pieces(text: str) -> list[str]:
    pieces, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces


Report = Callable[[Diagnostic], None]
