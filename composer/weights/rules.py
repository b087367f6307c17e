"""Rules between our names and published ones, each of which is used for loading and saving."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from composer.diagnostics import Span
from composer.language.expressions.ast import Expression, Value
from composer.language.expressions.evaluator import evaluate
from composer.language.name_patterns import NamePattern, PatternMatch


@dataclass(frozen=True)
class Permutation:
    """A permutation of the rows of each head to the other rotary layout."""

    head_dim: int
    """Number of rows of a head."""
    rotary_dim: int
    """Number of rows of a head that are rotated, from the first on."""
    pieces: tuple[str, ...]
    """The words of our choice that are permuted; all if empty."""
    ours: str
    """Our layout; the published one is the other."""


@dataclass(frozen=True)
class Rule:
    """A rule between our names and published ones. If one side is in pieces, one of its choices names them in order; the other
    choices of both sides correspond in order, and their words by position."""

    span: Span
    """Where it is written: its key, or its item in a list."""
    ours: NamePattern
    theirs: NamePattern
    reshape: tuple[int, ...] | None
    """The published shape, if it differs from ours but has the same elements in the same order."""
    transpose: bool
    """Whether matrices are published as [in, out], with our last two axes swapped."""
    axis: int
    """The axis of our tensors along which pieces are joined."""
    interleave: int
    """Number of groups, such as heads, that contain a part of each piece; 1 if the pieces are contiguous."""
    split: int | None
    """The choice of ours that names the pieces of one published tensor."""
    concat: int | None
    """The choice of theirs that names the pieces of one tensor of ours."""
    stack: str
    """The index of published names that counts along our first axis; empty without one."""
    permute: Permutation | None
    offset: float
    """The number to add to the published tensor to get ours."""
    either: int | None = None
    """The choice of ours that published names lack, since at most one of its words exists in each place."""
    spellings: tuple[NamePattern, ...] = ()
    """What `theirs` is called in other files."""

    def reads(self, name: str) -> bool:
        """Return whether a published name is one of these, in any spelling."""
        return any(each.match(name) for each in (self.theirs, *self.spellings))

    def names(self, found: PatternMatch, copies: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return our names and the published ones that correspond, given the captures in one of ours and its number of copies."""
        paired = tuple(word for place, word in enumerate(found.chosen) if place not in (self.split, self.either))
        if self.stack:
            numbers = (((self.stack, str(number)), *found.indices) for number in range(copies))
            return (self.ours.fill(found),), tuple(self.theirs.fill(PatternMatch(each, paired, found.rest)) for each in numbers)
        ours = [found.chosen] if self.split is None else self._pieces(self.ours, paired, self.split)
        theirs = [paired] if self.concat is None else self._pieces(self.theirs, paired, self.concat)
        return (
            tuple([self.ours.fill(PatternMatch(found.indices, chosen, found.rest)) for chosen in ours]),
            tuple([self.theirs.fill(PatternMatch(found.indices, chosen, found.rest)) for chosen in theirs]),
        )

    def permuted(self, found: PatternMatch) -> tuple[bool, ...]:
        """Return for each of our names that correspond whether it is permuted."""
        paired = tuple(word for place, word in enumerate(found.chosen) if place != self.split)
        ours = [found.chosen] if self.split is None else self._pieces(self.ours, paired, self.split)
        if self.permute is None:
            return (False,) * len(ours)
        return tuple(self._is_permuted({words[i] for words, i in zip(self.ours.choices, each, strict=True)}) for each in ours)

    def _is_permuted(self, words: set[str]) -> bool:
        return self.permute is not None and (not self.permute.pieces or not words.isdisjoint(self.permute.pieces))

    @staticmethod
    def _pieces(pattern: NamePattern, paired: tuple[int, ...], place: int) -> list[tuple[int, ...]]:
        """Return the words that are chosen in each of the pieces, which the choice at `place` names."""
        return [(*paired[:place], piece, *paired[place:]) for piece in range(len(pattern.choices[place]))]


@dataclass(frozen=True)
class Ignored:
    """Published tensors that are not needed."""

    names: NamePattern
    when: Expression | None = None
    """The condition over params and the indices of the name; None if all of them are ignored."""
    params: Mapping[str, Value] = field(default_factory=dict)

    def covers(self, name: str) -> bool:
        """Return whether a published tensor is one of these."""
        found = self.names.match(name)
        if found is None or self.when is None:
            return found is not None
        return evaluate(self.when, {**self.params, **{index: int(digits) for index, digits in found.indices}}) is True


@dataclass(frozen=True)
class Off:
    """A rule whose condition is false."""

    span: Span
    """Where it is written."""
    theirs: NamePattern
    condition: str
    """The condition, as it is written."""


@dataclass(frozen=True)
class Copy:
    """A published tensor that is a copy of another, such as a tied head: it must be equal to it, and is not saved."""

    name: str
    original: str
    span: Span
    """Where its name is written."""
    original_span: Span


@dataclass(frozen=True)
class Rules:
    """The rules of one model type: how its published tensors are named and stored."""

    model_type: str
    span: Span
    rules: tuple[Rule, ...]
    strip_prefix: str
    """A prefix of every name in some files, which is removed if present."""
    legacy_names: tuple[tuple[str, str], ...]
    """The last words of names in older files, each with its word in the rules."""
    ignore: tuple[Ignored, ...]
    """Published tensors that are not needed, such as masks and tables."""
    copies: tuple[Copy, ...]
    off: tuple[Off, ...] = ()
    """The rules that do not apply."""

    def plain(self, published: str) -> str:
        """Return the name of a published tensor in the rules."""
        home, dot, last = published.removeprefix(self.strip_prefix).rpartition(".")
        return home + dot + dict(self.legacy_names).get(last, last)

    def passes_over(self, published: str) -> bool:
        """Return whether a published tensor needs no rule."""
        return any(copy.name == published for copy in self.copies) or any(each.covers(published) for each in self.ignore)
