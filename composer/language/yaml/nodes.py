"""YAML as text with places: what `read` makes and `parse` takes."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as TypingMapping
from dataclasses import dataclass, field
from typing import TypeAlias

from composer.diagnostics import Diagnostic, Source, Span


@dataclass(frozen=True, slots=True, eq=False)
class YamlScalar:
    """A value as it is written; the field that uses it decides what it means."""

    text: str
    span: Span
    plain: bool = True
    """Whether it stands without quotes."""

    def part(self, start: int, end: int) -> Span:
        """Return the span of the characters `start` to `end` of the text; the whole span where escapes or line
        ends hide the columns.
        """
        quote = 0 if self.plain else 1
        hidden = self.span.end_column - self.span.column != len(self.text) + 2 * quote
        return self.span if hidden else self.span.part(start + quote, end + quote)


@dataclass(frozen=True, slots=True, eq=False)
class YamlList:
    """A YAML sequence."""

    items: tuple[YamlNode, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class YamlEntry:
    """A key with its value."""

    key: YamlScalar
    value: YamlNode


@dataclass(frozen=True, slots=True, eq=False)
class YamlMapping:
    """A YAML mapping, in the order of the file, each key once."""

    entries: tuple[YamlEntry, ...]
    span: Span

    def __iter__(self) -> Iterator[YamlEntry]:
        return iter(self.entries)

    def __contains__(self, key: object) -> bool:
        for entry in self.entries:  # noqa: SIM110  # asked so often that a generator shows
            if entry.key.text == key:
                return True
        return False

    def entry(self, key: str) -> YamlEntry | None:
        """Return the entry with this key."""
        for entry in self.entries:
            if entry.key.text == key:
                return entry
        return None

    def get(self, key: str) -> YamlNode | None:
        """Return the value of this key."""
        for entry in self.entries:
            if entry.key.text == key:
                return entry.value
        return None


AmbiguousBlocks: TypeAlias = TypingMapping[str, tuple[Span, Span]]
YamlNode: TypeAlias = YamlScalar | YamlList | YamlMapping


@dataclass(frozen=True, slots=True)
class Document:
    """One recipe text, read: its top mapping (None where nothing usable was found) and what was wrong with it."""

    source: Source
    root: YamlMapping | None
    diagnostics: tuple[Diagnostic, ...]
    ambiguous_blocks: AmbiguousBlocks = field(default_factory=dict)
    """Names of blocks that two of the files it uses give to different ones, each with the two places."""
