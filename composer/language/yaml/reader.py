"""Text to Document: YAML without implicit types, with the place of every key and value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import yaml

from composer.diagnostics import Diagnostic, Source, Span
from composer.language.source_file import MAX_FILE_BYTES
from composer.language.yaml.entries import MERGE, entries, items
from composer.language.yaml.error_context import ParseStop
from composer.language.yaml.errors import explain, refused_property
from composer.language.yaml.events import INVISIBLE, character_name, events, readable
from composer.language.yaml.flow_style import is_cut
from composer.language.yaml.nodes import Document, YamlList, YamlMapping, YamlNode, YamlScalar

MAX_DEPTH = 64
"""Nested lists and mappings."""
MAX_NODES = 50_000
"""Keys, values, lists and mappings of one recipe."""
MAX_DIAGNOSTICS = 50
"""Diagnostics of one text, after which reading stops."""


def read(source: Source) -> Document:
    """Return the document of a recipe text; what is wrong with it is in the document's diagnostics, and nothing is raised."""
    source = replace(source, text=source.text.removeprefix("\ufeff"))
    if len(source.text) > MAX_FILE_BYTES:
        message = f"a recipe has at most {MAX_FILE_BYTES} characters; this text has {len(source.text)}"
        return Document(source, None, (Diagnostic("too-large", message, Span(source, 1, 1, 1, 1)),))
    text, diagnostics = readable(source)
    builder = _Builder(source, diagnostics)
    root: YamlNode | None = None
    try:
        for event in events(text):
            builder.add(event)
        root = builder.root
    except _Refused:
        pass
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        diagnostics.append(explain(error, source, builder.stop()))
    if root is not None and not isinstance(root, YamlMapping):
        diagnostics.append(Diagnostic("not-a-mapping", "a recipe must be a mapping: lines of `key: value`", root.span))
    if root is None and not diagnostics:
        diagnostics.append(Diagnostic("empty-recipe", "the recipe is empty", Span(source, 1, 1, 1, 1)))
    diagnostics.sort(key=lambda each: (each.span.line, each.span.column))
    return Document(source, root if isinstance(root, YamlMapping) else None, tuple(diagnostics))


class _Refused(Exception):
    """The text cannot be read any further, which has been reported."""


@dataclass(slots=True)
class _Open:
    """A list or a mapping that is still being read."""

    listing: bool
    flow: bool
    first: Span
    """Its first character: the bracket, or the start of the first item or key."""
    nodes: list[YamlNode | None] = field(default_factory=list)
    """Items, or keys and values in turn; None where one was refused."""


class _Builder:
    """Builds nodes from events on a stack of its own, so that nesting cannot overflow Python's."""

    def __init__(self, source: Source, diagnostics: list[Diagnostic]) -> None:
        self.source = source
        self.diagnostics = diagnostics
        self.root: YamlNode | None = None
        self.open: list[_Open] = []
        self.last: YamlScalar | None = None
        self.nodes = 0
        self.documents = 0

    def add(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self.refuse_properties(event)
                self.last = YamlScalar(event.value, self.span(event), plain=not event.style)
                if event.style == '"':
                    self.check_escapes(self.last)
                self.put(self.last)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self.refuse_properties(event)
                self.start(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self.end(event)
            case yaml.AliasEvent():
                self.alias(event)
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    span = self.span(event)
                    self.note(
                        Diagnostic("several-documents", "a second document begins here", span, hint="a recipe is one document")
                    )
                    raise _Refused

    def start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        span = self.span(event)
        first = Span(self.source, span.line, span.column, span.line, span.column + 1)
        if len(self.open) == MAX_DEPTH:
            self.note(Diagnostic("too-deep", f"more than {MAX_DEPTH} lists and mappings are nested", first))
            raise _Refused
        self.open.append(_Open(isinstance(event, yaml.SequenceStartEvent), bool(event.flow_style), first))

    def end(self, event: yaml.MappingEndEvent | yaml.SequenceEndEvent) -> None:
        done = self.open.pop()
        last = self.span(event)
        if last.column == last.end_column:  # the end of a block has no width, and lies where the next one begins
            last = next((node.span for node in reversed(done.nodes) if node), done.first)
        span = Span(self.source, done.first.line, done.first.column, last.end_line, last.end_column)
        if done.listing:
            self.put(YamlList(tuple(items(done.nodes, self.note, flow=done.flow)), span))
        else:
            self.put(YamlMapping(tuple(entries(done.nodes, self.note, flow=done.flow)), span))

    def put(self, node: YamlNode | None) -> None:
        """Add a finished node to the list or mapping around it."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            place = self.last.span if self.last else Span(self.source, 1, 1, 1, 1)
            self.note(Diagnostic("too-many-nodes", f"a recipe has at most {MAX_NODES} keys and values", place))
            raise _Refused
        if self.open:
            self.open[-1].nodes.append(node)
        else:
            self.root = node

    def alias(self, event: yaml.AliasEvent) -> None:
        merged = (
            bool(self.open) and not self.open[-1].listing and self.open[-1].nodes[-1:] == [self.last] and self.is_merge(self.last)
        )
        if not merged:  # the merge key is reported itself
            self.note(refused_property("alias", self.span(event)))
        self.put(None)

    def is_merge(self, key: YamlScalar | None) -> bool:
        return key is not None and key.text == MERGE and len(self.open[-1].nodes) % 2 == 1

    def refuse_properties(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        for word, given in (("anchor", event.anchor), ("tag", event.tag)):
            if given is not None:
                place = self.span(event)
                self.note(refused_property(word, Span(self.source, place.line, place.column, place.line, place.column + 1)))

    def check_escapes(self, scalar: YamlScalar) -> None:
        """Check that no escape brings in what may not be written."""
        if found := INVISIBLE.search(scalar.text):
            self.note(Diagnostic("invisible-character", f"this value contains {character_name(found.group())}", scalar.span))

    def note(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)
        if len(self.diagnostics) >= MAX_DIAGNOSTICS:
            message = "too many errors to continue"
            self.diagnostics.append(Diagnostic("too-many-errors", message, diagnostic.span))
            raise _Refused

    def span(self, event: yaml.Event) -> Span:
        start, end = event.start_mark, event.end_mark
        assert start and end  # PyYAML marks every event
        return Span(self.source, start.line + 1, start.column + 1, end.line + 1, end.column + 1)

    def stop(self) -> ParseStop:
        """Return the brackets and quotes that are open where the parser gave up."""
        top = self.open[-1] if self.open else None
        is_key = top is None or (not top.listing and len(top.nodes) % 2 == 1)
        bracket = next((each.first for each in reversed(self.open) if each.flow and self.at(each.first) in {"[", "{"}), None)
        cut = next((node for node in reversed(top.nodes) if is_cut(node)), None) if top and top.flow else None
        return ParseStop(bracket, self.last, is_key, cut if isinstance(cut, YamlScalar) else None)

    def at(self, span: Span) -> str:
        return self.source.lines[span.line - 1][span.column - 1 :][:1]
