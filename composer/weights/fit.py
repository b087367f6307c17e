"""Rules applied to the names and shapes of a model: what each converts, and where they do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from blocks.core import UNIT
from composer.diagnostics import Diagnostic, Label, Span
from composer.language.name_patterns import PatternMatch, folded
from composer.language.suggestions import did_you_mean, suggest
from composer.language.wording import counted
from composer.weights.rules import Copy, Rule, Rules
from composer.weights.tensor_maps import TensorMap, TensorShape, shown

PIECES = "if one published tensor contains all of ours, write {from: …, split: N}"


@dataclass(frozen=True)
class Fit:
    """The rules of one model type on one model."""

    moves: tuple[TensorMap, ...]
    mistakes: tuple[Diagnostic, ...]
    uncovered: tuple[str, ...]
    """The model's parameters that no rule covers."""
    matches: tuple[tuple[Rule, PatternMatch], ...]
    """Each rule with what it captures in the name of a parameter that it covers."""


def fit(rules: Rules, ours: Mapping[str, TensorShape]) -> Fit:
    """Return what the rules do with parameters, given by name with their shapes."""
    moves: dict[tuple[str, ...], TensorMap] = {}
    matches: list[tuple[Rule, PatternMatch]] = []
    owners: dict[str, str] = {}
    wrong: list[Diagnostic] = []
    bare: list[str] = []
    for name in ours:
        covering = [(rule, found) for rule in rules.rules if (found := rule.ours.match(name))]
        matches += covering
        if not covering:
            bare += [name] * (not is_unit(name))
            continue
        if len(covering) > 1:
            first, second = covering[0][0], covering[1][0]
            also = (Label(first.span, "and here"),)
            wrong.append(Diagnostic("checkpoints-ambiguous", f"{name} is covered by two rules", second.span, labels=also,
                                    hint="give them conditions of which only one is true: `when: …`"))  # fmt: skip
        rule, found = covering[0]
        copies = next(iter(ours[name]), 1)
        spellings = tuple(replace(rule, theirs=each).names(found, copies)[1] for each in rule.spellings)
        move = TensorMap(*rule.names(found, copies), rule.permuted(found), rule, spellings)
        if absent := [each for each in move.ours if each not in ours]:
            message = f"{name} is a piece of a tensor with {', '.join(absent)}, which the model lacks"
            wrong.append(Diagnostic("checkpoints-uncovered", message, rule.span))
            continue
        names = (*move.theirs, *chain(*spellings))
        if taken := [each for each in names if owners.setdefault(each, move.ours[0]) != move.ours[0]]:
            message, hint = f"{owners[taken[0]]} and {move.ours[0]} both read {taken[0]}", ""
            if rule.either is not None and rule.ours.match(owners[taken[0]]):
                message = f"{message}: of a choice that the published name lacks, two words exist here"
                hint = PIECES
            wrong.append(Diagnostic("checkpoints-ambiguous", message, rule.theirs.span, hint=hint))
        moves[move.ours] = move
    published: dict[str, TensorShape] = {}
    for move in moves.values():
        try:
            shapes = move.published([ours[name] for name in move.ours])
            published |= zip(move.theirs, shapes, strict=True)
        except ValueError as no:
            wrong.append(Diagnostic("checkpoints-shape", str(no), move.rule.span))
    wrong += _unturned(list(moves.values()), ours)
    wrong += _unreachable(rules, published, moves.values())
    wrong += _copies(rules, published, matches)
    wrong += _ignored(rules, published)
    return Fit(tuple(moves.values()), tuple(wrong), tuple(bare), tuple(matches))


def is_unit(name: str) -> bool:
    """Return whether a name of the `state_dict` is that of a block's number 1, which is in no published checkpoint."""
    return name.rpartition(".")[2] == UNIT


def uncovered(rules: Rules, names: Sequence[str]) -> Diagnostic:
    """Return the error for parameters of the model that no rule covers."""
    message = f"no rule covers {counted(len(names), 'parameter')} of the model: {folded(names)}"
    return Diagnostic("checkpoints-uncovered", message, rules.span)


def _unturned(moves: Sequence[TensorMap], ours: Mapping[str, TensorShape]) -> Iterator[Diagnostic]:
    """Yield an error for each rule with `transpose` of which no tensor has two axes to swap."""
    axes: dict[int, list[TensorMap]] = {}
    for move in moves:
        if move.rule.transpose:
            axes.setdefault(id(move.rule), []).append(move)
    for several in axes.values():
        rule, first = several[0].rule, several[0].ours[0]
        if all(len(ours[name]) - bool(rule.stack) < 2 for move in several for name in move.ours):
            message = f"{first} [{shown(ours[first])}] has no two axes for `transpose` to swap"
            yield Diagnostic("checkpoints-shape", message, rule.span)


def _unreachable(rules: Rules, published: Mapping[str, TensorShape], moves: Iterable[TensorMap]) -> Iterator[Diagnostic]:
    """Yield an error for each rule whose published name never occurs, since names are changed before rules read them."""
    rule_of = {name: move.rule for move in moves for name in move.theirs}
    for name in published:
        if (plain := rules.plain(name)) != name:
            message = f"no published tensor is called {name} once `strip_prefix` and `legacy_names` are applied: it is {plain}"
            yield Diagnostic("checkpoints-form", message, rule_of[name].theirs.span, hint=f"write {plain}")


def _copies(
    rules: Rules, published: Mapping[str, TensorShape], matches: Sequence[tuple[Rule, PatternMatch]]
) -> Iterator[Diagnostic]:
    """Yield an error for each copy of what no rule reads, and for each that cannot be equal to its original."""
    used = {id(rule) for rule, _ in matches}
    for copy in rules.copies:
        if copy.name == copy.original:
            yield Diagnostic("checkpoints-form", f"{copy.name} is a copy of itself", copy.span)
        elif copy.original not in published:
            if not any(rule.theirs.match(copy.original) for rule in rules.rules if id(rule) not in used):
                yield _of_nothing(copy, published)
        elif (shape := published.get(copy.name, published[copy.original])) != published[copy.original]:
            sizes = f"{copy.name} is {shown(shape)} and {copy.original} is {shown(published[copy.original])}"
            yield Diagnostic("checkpoints-shape", f"{sizes}, so one is no copy of the other", copy.span)


def _of_nothing(copy: Copy, published: Mapping[str, TensorShape]) -> Diagnostic:
    offered = suggest(copy.original, published)
    message = f"{copy.name} is a copy of {copy.original}, which no rule reads"
    return Diagnostic("checkpoints-form", message, copy.original_span, hint=did_you_mean(offered) if offered else "")


def _ignored(rules: Rules, published: Mapping[str, TensorShape]) -> Iterator[Diagnostic]:
    """Yield an error for each published name that is ignored although a rule reads it; `*` without a condition leaves out what no
    rule reads.
    """
    for ignored in rules.ignore:
        open_ = "*" in ignored.names.text and ignored.when is None
        if not open_ and (read := next(filter(ignored.covers, published), None)):
            yield Diagnostic("checkpoints-ambiguous", f"{read} is ignored, but a rule reads it", ignored.names.span)


def first_of_each(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return only the first diagnostic with each code and position: a rule that is wrong in one layer is wrong in all."""
    firsts: dict[tuple[str, Span], Diagnostic] = {}
    for each in diagnostics:
        firsts.setdefault((each.code, each.span), each)
    return list(firsts.values())
