"""Patterns over the names of parameters: `layers.<layer>.attn.(q|k|v).*`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from composer.diagnostics import Diagnostic, Span
from composer.language.yaml.nodes import YamlScalar

PIECE = re.compile(r"<(?P<index>[a-z][a-z0-9_]*)>|\((?P<any>\w+(?:\|\w+)+)\)|(?P<literal>\w+)", re.ASCII)
INDEXED = re.compile(r"(\w*[^\W\d])?<\w+>", re.ASCII)
"""A component with an index, which must not follow a digit: its start would be ambiguous."""
CODE = "checkpoints-pattern"
OPEN = "between dots, write a word, `<layer>` for digits, or a choice such as `(q|k|v)`; `*` at the end matches the rest"


@dataclass(frozen=True)
class PatternMatch:
    """The captures of a pattern in a name."""

    indices: tuple[tuple[str, str], ...]
    """Each `<index>` with its digits."""
    choice: int | None
    """The index of the alternative; None if the pattern has no choice."""
    rest: str
    """The text that `*` matched; empty if the pattern has no `*`."""


@dataclass(frozen=True)
class NamePattern:
    """A pattern of names that differ in an index, in one of several words, or in their ends.

    A component between dots is a word; `<layer>` for digits, which are the same wherever it occurs, on both sides of a rule; a
    word that ends in digits, `expert_<expert>`; or one with alternatives, `(q|k|v)_proj`. `*` at the end matches the rest of the
    name, one or more components.
    """

    text: str
    span: Span
    indices: frozenset[str]
    alternatives: tuple[str, ...]
    """The alternatives of the choice; empty without one."""
    rest: bool
    """Whether the pattern ends in `*`."""

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """The pattern as a regular expression."""
        seen: set[str] = set()
        return re.compile("".join(self._piece(piece, seen) for piece in _tokens(self.text)), re.ASCII)

    def match(self, name: str) -> PatternMatch | None:
        """Return the captures in a name, or None if the pattern does not match."""
        match = self.expression.fullmatch(name)
        if match is None:
            return None
        groups = match.groupdict()
        choice = self.alternatives.index(groups["ANY"]) if self.alternatives else None
        return PatternMatch(tuple(sorted((name, groups[name]) for name in self.indices)), choice, groups.get("REST", ""))

    def fill(self, found: PatternMatch, choice: int | None = None) -> str:
        """Return the name with these captures, optionally with another choice."""
        indices = dict(found.indices)
        place = found.choice if choice is None else choice
        return "".join(self._filled(piece, indices, place, found.rest) for piece in _tokens(self.text))

    def _piece(self, piece: str, seen: set[str]) -> str:
        match piece[0]:
            case "<":
                name = piece[1:-1]
                again = name in seen
                seen.add(name)
                return f"(?P={name})" if again else rf"(?P<{name}>\d+)"
            case "(":
                return f"(?P<ANY>{piece[1:-1]})"
            case "*":
                return r"(?P<REST>\w+(?:\.\w+)*)"
        return re.escape(piece)

    def _filled(self, piece: str, indices: Mapping[str, str], choice: int | None, rest: str) -> str:
        match piece[0]:
            case "<":
                return indices[piece[1:-1]]
            case "(":
                assert choice is not None
                return self.alternatives[choice]
            case "*":
                return rest
        return piece


def pattern(scalar: YamlScalar) -> NamePattern | Diagnostic:
    """Return the pattern of a scalar, or the error in it."""
    components = scalar.text.split(".")
    indices: set[str] = set()
    alternatives: list[tuple[str, ...]] = []
    rest = components[-1] == "*" and len(components) > 1
    start = 0
    for component in components[:-1] if rest else components:
        span, start = scalar.part(start, start + len(component)), start + len(component) + 1
        pieces = list(PIECE.finditer(component))
        if not component or "".join(piece.group() for piece in pieces) != component:
            hint = "`*` is only allowed alone, after the last dot" if "*" in component else OPEN
            return Diagnostic(CODE, f"`{component}` is not part of a name", span, hint=hint)
        if any(piece["index"] for piece in pieces) and not INDEXED.fullmatch(component):
            return Diagnostic(
                CODE, f"`{component}`: an index is only allowed alone between two dots, or at the end of a word", span
            )
        indices.update(piece["index"] for piece in pieces if piece["index"])
        alternatives.extend(tuple(piece["any"].split("|")) for piece in pieces if piece["any"])
    if len(alternatives) > 1:
        return Diagnostic(CODE, "a pattern has one choice at most", scalar.span, hint="write a rule for each")
    if alternatives and len(set(alternatives[0])) < len(alternatives[0]):
        return Diagnostic(CODE, "a choice must name each word once", scalar.span)
    return NamePattern(scalar.text, scalar.span, frozenset(indices), alternatives[0] if alternatives else (), rest)


def folded(names: Iterable[str]) -> str:
    """Return the names in one line; names that differ only in numbers become one with a count, and at most ten are shown."""
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(without_numbers(name), []).append(name)
    shown = [f"{kind} ({len(alike)})" if len(alike) > 1 else alike[0] for kind, alike in kinds.items()]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")


def without_numbers(name: str) -> str:
    """Return a name with `<n>` for each number between dots."""
    return re.sub(r"(?<=\.)\d+(?=\.)", "<n>", name)


def _tokens(text: str) -> list[str]:
    return re.findall(r"<\w+>|\([^)]*\)|\*|[^<(*]+", text)
