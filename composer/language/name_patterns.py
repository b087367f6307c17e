"""Patterns over the names of parameters: `layers.<layer>.attn.(q|k|v).*`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from composer.diagnostics import Diagnostic, Span
from composer.language.yaml.nodes import YamlScalar

PIECE = re.compile(r"<(?P<index>[a-z][a-z0-9_]*)>|\((?P<any>[\w.-]+(?:\|[\w.-]+)+)\)|(?P<literal>(?:[\w-]|\\[^\w.])+)", re.ASCII)
"""A part of a component: a backslash stands before a sign that has a meaning here, `\\*`, or that is in few names."""
INDEXED = re.compile(r"((?:[\w-]|\\.)*(?:[^\W\d]|\W))?<\w+>", re.ASCII)
"""A component with an index, which must not follow a digit: its start would be ambiguous."""
CALCULATION = re.compile(r"<[^<>]*[^\w<>][^<>]*>")
CODE = "checkpoints-pattern"
STAR = "`*` is only allowed alone, after the last dot"
COMPUTED = "`<layer>` is a number as it stands; where published names count otherwise, write a rule for each: layers.0.*: h.1.*"
OPEN = (
    "between dots, write a word, `<layer>` for digits, or a choice such as `(q|k|v)`; `*` at the end matches the rest; "
    "before any other sign of a name stands a backslash"
)
COMPONENT = re.compile(r"(?:\\.|\([^()]*\)|[^.\\]|\\$)*")
"""What stands between two dots; in a choice, a dot is one of a word's own."""
ANYTHING = r"[^.]+(?:\.[^.]+)*"
"""The regular expression of `*`: one or more components."""
TOKEN = re.compile(r"<\w+>|\([^)]*\)|\*|(?:\\.|[^<(*\\])+")


@dataclass(frozen=True)
class PatternMatch:
    """The captures of a pattern in a name."""

    indices: tuple[tuple[str, str], ...]
    """Each `<index>` with its digits."""
    chosen: tuple[int, ...]
    """For each choice of the pattern, the index of its word."""
    rest: str
    """The text that `*` matched; empty if the pattern has no `*`."""


@dataclass(frozen=True)
class NamePattern:
    """A pattern of names that differ in an index, in one of several words, or in their ends.

    A component between dots is a word; `<layer>` for digits, which are the same wherever it occurs, on both sides of a rule; a
    word that ends in digits, `expert_<expert>`; or one with a choice of words, `(q|k|v)_proj`, of which each may be several
    components, `(attn.q|gate)`. `*` at the end matches the rest of the name, one or more components. In a pattern that is matched
    only, `*` may stand for components at any place. A sign behind a backslash, `\\*`, is one of the name.
    """

    scalar: YamlScalar
    indices: frozenset[str]
    choices: tuple[tuple[str, ...], ...]
    """The words of each choice, in order."""
    rest: bool
    """Whether the pattern ends in `*`."""

    @property
    def text(self) -> str:
        """The pattern as it is written."""
        return self.scalar.text

    @property
    def span(self) -> Span:
        """Where the pattern is written."""
        return self.scalar.span

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """The pattern as a regular expression."""
        seen: set[str] = set()
        pieces = [_expression(token, place, seen) for token, place in self._places]
        if self.rest:
            pieces[-1] = f"(?P<REST>{ANYTHING})"
        return re.compile("".join(pieces), re.ASCII)

    def match(self, name: str) -> PatternMatch | None:
        """Return the captures in a name, or None if the pattern does not match."""
        match = self.expression.fullmatch(name)
        if match is None:
            return None
        groups = match.groupdict()
        chosen = tuple(words.index(groups[f"CHOICE{place}"]) for place, words in enumerate(self.choices))
        return PatternMatch(tuple(sorted((name, groups[name]) for name in self.indices)), chosen, groups.get("REST", ""))

    def fill(self, found: PatternMatch) -> str:
        """Return the name with these captures."""
        indices = dict(found.indices)
        pieces: list[str] = []
        for token, place in self._places:
            match token[0]:
                case "<":
                    pieces.append(indices[token[1:-1]])
                case "(":
                    pieces.append(self.choices[place][found.chosen[place]])
                case "*":
                    pieces.append(found.rest)
                case _:
                    pieces.append(plain(token))
        return "".join(pieces)

    @cached_property
    def _places(self) -> list[tuple[str, int]]:
        """The tokens of the text, each with the number of choices before it."""
        tokens = TOKEN.findall(self.text)
        return [(token, sum(other[0] == "(" for other in tokens[:place])) for place, token in enumerate(tokens)]


def pattern(scalar: YamlScalar, *, matched_only: bool = False) -> NamePattern | Diagnostic:
    """Return the pattern of a scalar, or the error in it.

    Args:
        scalar: The text of the pattern.
        matched_only: Whether no name is made from it, so that `*` may stand at any place.
    """
    components = components_of(scalar.text)
    indices: set[str] = set()
    choices: list[tuple[str, ...]] = []
    rest = components[-1] == "*" and len(components) > 1
    start = 0
    for component in components[:-1] if rest else components:
        span, start = scalar.part(start, start + len(component)), start + len(component) + 1
        if component == "*" and matched_only and len(components) > 1:
            continue
        pieces = list(PIECE.finditer(component))
        if not component or "".join(piece.group() for piece in pieces) != component:
            alone = "`*` is only allowed alone, between two dots" if matched_only else STAR
            hint = COMPUTED if CALCULATION.search(component) else alone if "*" in component else OPEN
            return Diagnostic(CODE, f"`{component}` is not part of a name", span, hint=hint)
        if any(piece["index"] for piece in pieces) and not INDEXED.fullmatch(component):
            return Diagnostic(
                CODE, f"`{component}`: an index is only allowed alone between two dots, or at the end of a word", span
            )
        indices.update(piece["index"] for piece in pieces if piece["index"])
        words = [tuple(piece["any"].split("|")) for piece in pieces if piece["any"]]
        if odd := next((word for each in words for word in each if not all(word.split("."))), None):
            return Diagnostic(CODE, f"`{odd}` is not part of a name", span, hint="a dot stands between two words")
        if any(len(set(each)) < len(each) for each in words):
            return Diagnostic(CODE, "a choice must name each word once", span)
        if len(words) > 1:
            return Diagnostic(CODE, f"`{component}`: two choices need a dot between them", span, hint="write a rule for each")
        choices += words
    return NamePattern(scalar, frozenset(indices), tuple(choices), rest)


def components_of(text: str) -> list[str]:
    """Return the components of a pattern: what stands between its dots, but for those in a choice."""
    found, start = [], 0
    while start <= len(text):
        match = COMPONENT.match(text, start)
        assert match is not None  # of any text, nothing is a component too
        found.append(match.group())
        start = match.end() + 1
    return found


def only_ours(ours: NamePattern, theirs: NamePattern) -> list[int]:
    """Return the choices of our pattern without which both patterns have the same choices: of such a choice, one word exists."""
    sizes, others = ([len(words) for words in each.choices] for each in (ours, theirs))
    return [place for place in range(len(sizes)) if [*sizes[:place], *sizes[place + 1 :]] == others]


def in_pieces(pieces: NamePattern, other: NamePattern, count: int) -> list[int]:
    """Return the choices of a pattern that can name the pieces of one name of the other: those with as many words, without which
    both patterns have the same choices.
    """
    sizes, others = ([len(words) for words in each.choices] for each in (pieces, other))
    return [place for place, size in enumerate(sizes) if size == count and [*sizes[:place], *sizes[place + 1 :]] == others]


def with_words(text: str, words: Sequence[Sequence[str]]) -> str:
    """Return the text of a pattern with other words in its choices; a single word needs no brackets."""
    each = iter(words)
    return "".join(_choice(next(each)) if token[0] == "(" else token for token in TOKEN.findall(text))


def _choice(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"({'|'.join(words)})"


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


def _expression(token: str, place: int, seen: set[str]) -> str:
    """Return the regular expression of a token; `seen` collects the indices so far, of which each must repeat its digits."""
    match token[0]:
        case "<":
            name = token[1:-1]
            again = name in seen
            seen.add(name)
            return f"(?P={name})" if again else rf"(?P<{name}>\d+)"
        case "(":
            return f"(?P<CHOICE{place}>{'|'.join(map(re.escape, token[1:-1].split('|')))})"
        case "*":
            return ANYTHING
    return re.escape(plain(token))


def escaped(name: str) -> str:
    """Return the pattern of one name: a backslash stands before each sign that is no part of a word."""
    return re.sub(r"[^\w.-]", r"\\\g<0>", name, flags=re.ASCII)


def plain(text: str) -> str:
    """Return a piece of a pattern as names have it, without the backslashes before its signs."""
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text
