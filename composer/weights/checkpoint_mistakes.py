"""What is said of a checkpoint that does not fit: the rule that is wrong, where one is, and what to write there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from composer.diagnostics import Diagnostic
from composer.language.name_patterns import folded, without_numbers
from composer.language.suggestions import did_you_mean, suggest
from composer.language.wording import counted
from composer.weights.rules import Rule, Rules
from composer.weights.tensor_maps import TensorMap, TensorShape

SIZES = "set the recipe's params to the checkpoint's sizes"


def shape_hint(move: TensorMap, place: int, shape: TensorShape, ours: Sequence[TensorShape]) -> str:
    """Return what to change for a published tensor of another shape: an operation of its rule if one fits, or else the params.

    Args:
        move: The rule at one place of the model.
        place: The place of the tensor in the published names of `move`.
        shape: Its shape in the checkpoint.
        ours: The shapes of our tensors.
    """
    rule = move.rule
    turned = replace(rule, transpose=not rule.transpose)
    if _gives(move, turned, place, ours) == shape:
        return "the axes are swapped: " + ("remove `transpose`" if rule.transpose else "write `transpose: true`")
    if rule.split is not None or rule.concat is not None:
        for axis in range(max(map(len, ours))):
            if axis != rule.axis and _gives(move, replace(rule, axis=axis), place, ours) == shape:
                return f"the pieces are along another axis: write `axis: {axis}`"
    wanted = move.published(ours)[place]
    if math.prod(shape) == math.prod(wanted):
        return f"both have as many numbers: if these are in the same order, write `reshape: [{', '.join(map(str, shape))}]`"
    return SIZES


def _gives(move: TensorMap, rule: Rule, place: int, ours: Sequence[TensorShape]) -> TensorShape | None:
    """Return the shape of a published tensor with another rule; None where it does not fit the model."""
    try:
        return replace(move, rule=rule).published(ours)[place]
    except ValueError:
        return None


def misspelled(
    moves: Sequence[TensorMap], published: Mapping[str, TensorShape], missing: Sequence[str], strange: Mapping[str, TensorShape]
) -> Iterator[tuple[Diagnostic, frozenset[str]]]:
    """Yield an error for each published name of a rule of which none is there, but tensors of its shapes with a name near it, and
    the names of both.

    Args:
        moves: Each rule at its places.
        published: The shapes that the rules give, by published name.
        missing: The published names that the checkpoint lacks.
        strange: The shapes of the tensors in the checkpoint that the rules do not know, by name.
    """
    kinds, there = _kinds(missing), _kinds(strange)
    complete = {kind for kind, names in _kinds(published).items() if len(names) == len(kinds.get(kind, ()))}
    rule_of = {without_numbers(name): move.rule for move in moves for name in move.theirs}
    for kind in (kind for kind in kinds if kind in complete):
        lacking = kinds[kind]
        wanted = {published[name] for name in lacking}
        offered = _near(kind, [other for other, names in there.items() if {strange[name] for name in names} <= wanted])
        if len(offered) == 1:
            message = f"the checkpoint lacks {counted(len(lacking), 'tensor')}: {folded(lacking)}"
            hint = did_you_mean(offered)
            found = Diagnostic("checkpoints-missing", message, rule_of[kind].theirs.span, hint=hint)
            yield found, frozenset([*lacking, *there[offered[0]]])


def _near(kind: str, others: Sequence[str]) -> list[str]:
    """Return the names that may be meant: those with one other word, which is near, or else those with a few other letters."""
    words = kind.split(".")
    found = []
    for other in others:
        pairs = [pair for pair in zip(words, other.split("."), strict=False) if pair[0] != pair[1]]
        if len(other.split(".")) == len(words) and len(pairs) == 1 and suggest(pairs[0][0], [pairs[0][1]]):
            found.append(other)
    return found or suggest(kind, others)


OLDER = (
    ("weight", "gamma"), ("bias", "beta"), ("parametrizations.weight.original0", "weight_g"),
    ("parametrizations.weight.original1", "weight_v"),
)  # fmt: skip
"""How names end today, each with how they ended in older versions of torch and transformers."""


def older(
    moves: Sequence[TensorMap], missing: Sequence[str], strange: Mapping[str, TensorShape]
) -> Iterator[tuple[Diagnostic, frozenset[str]]]:
    """Yield an error for each rule whose tensors are there by names as older files have them, and the names of both.

    Args:
        moves: Each rule at its places.
        missing: The published names that the checkpoint lacks.
        strange: The shapes of the tensors in the checkpoint that the rules do not know, by name.
    """
    ends = {name: (new, old) for name in missing for pair in OLDER for new, old in (pair, pair[::-1])
            if f".{name}".endswith(f".{new}") and name.removesuffix(new) + old in strange}  # fmt: skip
    rules = {name: move.rule for move in moves for name in move.theirs}
    for rule in dict.fromkeys(rules[name] for name in ends):
        pairs = dict.fromkeys(pair for name, pair in ends.items() if rules[name] is rule)
        names = {name: name.removesuffix(new) + old for name, (new, old) in ends.items() if rules[name] is rule}
        message = f"the checkpoint lacks {counted(len(names), 'tensor')}: {folded(names)}; it has {folded(names.values())}"
        words = ", ".join(f"{old}: {new}" for new, old in pairs)
        renamed = "" if "." in words else f"write `legacy_names: {{{words}}}` beside `rules`, or "
        hint = f"{renamed}give the rule both names: `from: [{rule.theirs.text}, …]`"
        yield Diagnostic("checkpoints-missing", message, rule.theirs.span, hint=hint), frozenset([*names, *names.values()])


def idle(rules: Rules, strange: Sequence[str]) -> Iterator[tuple[Diagnostic, frozenset[str]]]:
    """Yield an error for each rule that reads tensors which no parameter has, and their names: its condition is false, or the
    model lacks what it is for.

    Args:
        rules: The rules.
        strange: Names in the checkpoint that no parameter of the model has.
    """
    left = [*strange]
    for off in rules.off:
        if names := [name for name in left if off.theirs.match(name)]:
            message = f"no rule covers {counted(len(names), 'published tensor')}: {folded(names)}"
            hint = f"the rule for {them(names)} is off, as `{off.condition}` is false: set the params so that it is true"
            yield Diagnostic("checkpoints-unexpected", message, off.span, hint=hint), frozenset(names)
            left = [name for name in left if name not in {*names}]
    for rule in rules.rules:
        if names := [name for name in left if rule.reads(name)]:
            several = counted(len(names), "published tensor")
            message = f"the model has no parameter for {several} that this rule reads: {folded(names)}"
            hint = f"set the params so that the model has {rule.ours.text}, or list {them(names)} under `ignore`"
            yield Diagnostic("checkpoints-unexpected", message, rule.span, hint=hint), frozenset(names)
            left = [name for name in left if name not in {*names}]


def with_indices(names: Sequence[str]) -> str:
    """Return the names in one line: of those that differ only in numbers, the numbers at each place, `h.<4-7>.w (4)`."""
    shown = []
    for kind, alike in _kinds(names).items():
        numbers = [sorted({*map(int, each)}) for each in zip(*(NUMBER.findall(name) for name in alike), strict=True)]
        places = iter(map(_ranges, numbers))
        text = re.sub("<n>", lambda _: next(places), kind)  # noqa: B023  # used at once
        shown.append(f"{text} ({len(alike)})" if len(alike) > 1 else alike[0])
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")


NUMBER = re.compile(r"(?<=\.)\d+(?=\.)", re.ASCII)
"""What `without_numbers` replaces."""


def _ranges(numbers: Sequence[int]) -> str:
    """Return sorted numbers for a message: `<0-3,8>`; of one, the number."""
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    spans = [str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True)]
    text = ",".join(spans[:4]) + (",…" if len(spans) > 4 else "")
    return text if len(numbers) == 1 else f"<{text}>"


def _kinds(names: Sequence[str] | Mapping[str, object]) -> dict[str, list[str]]:
    """Return names by what they are without their numbers."""
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(without_numbers(name), []).append(name)
    return kinds


def them(names: Sequence[str]) -> str:
    """Return the pronoun for names: `it` for one."""
    return "it" if len(names) == 1 else "them"
