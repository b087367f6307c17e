"""Rules held against the model of their recipe, without a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from composer.diagnostics import Diagnostic, Label, Span
from composer.graph.typed import TypedProgram
from composer.language.name_patterns import ANYTHING, NamePattern, components_of, without_numbers
from composer.language.suggestions import did_you_mean, suggest
from composer.language.unknown_names import unknown
from composer.language.yaml.nodes import YamlEntry, YamlMapping
from composer.weights.fit import Fit, first_of_each, fit, uncovered
from composer.weights.left_out_names import Misspelled, Names, PatternComponent
from composer.weights.model_names import ModelNames, names_of, typical_passes
from composer.weights.rule_reader import RuleReader
from composer.weights.rules import Rule, Rules

CODE = "checkpoints-unknown-name"
LIKE_ANOTHER = "name one whose model has these nodes, or remove what does not fit: `RULE: null`"
REMOVED = "published weights do not fit the changed model as it is; `checkpoints: null` removes the rules"


def mistakes(checkpoints: YamlMapping, params: Mapping[str, Any] | None = None) -> list[Diagnostic]:
    """Return the errors in the rules under `checkpoints:` that do not depend on a model.

    Args:
        checkpoints: The value of `checkpoints:` in a recipe, `Recipe.checkpoints`.
        params: The values of the recipe's params; None if they are not known.

    Examples:
        >>> import composer
        >>> from composer.weights import mistakes
        >>> mistakes(composer.load("gpt2").checkpoints)
        []
    """
    reader = RuleReader(params)
    for entry in checkpoints:
        reader.rules(entry)
    return reader.diagnostics


def as_variant(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the one warning for a changed model that rules do not fit: a variant need not be loadable."""
    return [replace(each, severity="warning", hint=REMOVED) for each in found[:1]]


def each_map(checkpoints: YamlMapping) -> Iterator[tuple[YamlEntry, YamlMapping]]:
    """Yield the map of each model type, also as a `checkpoints` that has no other."""
    yield from ((entry, YamlMapping((entry,), entry.key.span)) for entry in checkpoints)


def at_map(found: Sequence[Diagnostic], entry: YamlEntry) -> list[Diagnostic]:
    """Return the errors in a map, those in the map of another recipe that it is like as one, at this one.

    Args:
        found: The errors.
        entry: The map under its model type.
    """
    here = entry.key.span.source.name
    others = [each for each in found if each.span.source.name != here]
    if not others:
        return list(found)
    first, *more = others
    message = f"the map that {entry.key.text} is like does not fit this recipe: {first.message}"
    labels = (Label(first.span, "this"), *(Label(each.span, "nor this") for each in more))
    one = Diagnostic(first.code, message, entry.key.span, first.severity, labels=labels, hint=LIKE_ANOTHER)
    return [each for each in found if each not in others] + [one]


def once(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the errors without those that are told already, of a rule that two maps share."""
    told: dict[tuple[str, Span, str], Diagnostic] = {}
    for each in found:
        told.setdefault((each.code, each.span, each.message), each)
    return [*told.values()]


def misfits(checkpoints: YamlMapping, typed: TypedProgram) -> list[Diagnostic]:
    """Return the errors in the rules under `checkpoints:`, and where they do not fit the model.

    Args:
        checkpoints: The value of `checkpoints:` in the recipe.
        typed: The model.
    """
    found: list[Diagnostic] = []
    for entry in checkpoints:
        reader = RuleReader(typed.untyped.params)
        rules = reader.rules(entry)
        found += reader.diagnostics or _misfits(rules, typed)
    return found


def _misfits(rules: Rules, typed: TypedProgram) -> list[Diagnostic]:
    """Return where rules do not fit a model: some passes show whether there is anything, and all of them what it is."""
    numbers = {int(number) for rule in rules.rules for number in re.findall(r"\d+", rule.ours.text + rule.theirs.text)}
    numbers |= {int(number) for copy in rules.copies for number in re.findall(r"\d+", copy.original)}
    passes = None if any(each.when is not None for each in rules.ignore) else typical_passes(typed, numbers)
    found = _against(rules, names_of(typed, passes))
    return found if passes is None or not found else _against(rules, names_of(typed))


def _against(rules: Rules, names: ModelNames) -> list[Diagnostic]:
    fitted = fit(rules, names.owned)
    lost = list(_lost(rules, names, fitted))
    told = {id(each.rule) for each in lost}
    spans = {rule.span for rule in rules.rules if id(rule) in told}
    wrong = [each.diagnostic for each in lost]
    wrong += (each for each in fitted.mistakes if not (each.code == "checkpoints-uncovered" and each.span in spans))
    meant = [each.meant for each in lost if each.meant is not None]
    if bare := [name for name in fitted.uncovered if not any(one.fullmatch(name) for one in meant)]:
        wrong.append(replace(uncovered(rules, bare), hint=_hint(bare, rules, names)))
    return first_of_each(wrong)


def _hint(bare: Sequence[str], rules: Rules, names: ModelNames) -> str:
    for name, owner in names.tied.items():
        if owner in bare and any(rule.ours.match(name) for rule in rules.rules):
            return f"{name} is tied to {owner}: write the rule for {owner}"
    return ""


@dataclass(frozen=True)
class _Lost:
    """A rule that covers nothing, or a word of a choice in it that does."""

    rule: Rule
    diagnostic: Diagnostic
    meant: re.Pattern[str] | None
    """The names that were probably meant."""


def _lost(rules: Rules, names: ModelNames, fitted: Fit) -> Iterator[_Lost]:
    """Yield an error for each rule, and each word of a choice, that covers nothing of the model and nothing that is left out."""
    chosen: dict[int, list[set[int]]] = {id(rule): [set() for _ in rule.ours.choices] for rule in rules.rules}
    used = {id(rule) for rule, _ in fitted.matches}
    tied = ((rule, found) for name in names.tied for rule in rules.rules if (found := rule.ours.match(name)))
    for rule, found in (*fitted.matches, *tied):
        used.add(id(rule))
        for words, word in zip(chosen[id(rule)], found.chosen, strict=True):
            words.add(word)
    known: list[list[str]] | None = None
    for rule in rules.rules:
        unchosen: list[tuple[int | None, int]] = [
            (place, word)
            for place, several in enumerate(rule.ours.choices)
            for word in range(len(several))
            if word not in chosen[id(rule)][place]
        ]
        for place, word in unchosen if id(rule) in used else [(None, 0)]:
            known = known or [name.split(".") for name in (*names.owned, *names.tied)]
            ways = [_lost_in(rule, steps, names, known) for steps in _ways(rule.ours, place, word)]
            if (first := ways[0]) is not None and None not in ways:
                yield first


def _lost_in(rule: Rule, steps: Sequence[PatternComponent], names: ModelNames, known: list[list[str]]) -> _Lost | None:
    """Return the error in the components of a pattern that cover nothing, unless they are about what is left out."""
    depths = {path: path.count(".") + 1 for path in names.absent if _leads_into(path.split("."), steps)}
    found = {path: names.left_out.misspelled(names.absent[path], steps[depth:]) for path, depth in depths.items()}
    if any(one is Names.RIGHT for one in found.values()):
        return None
    elsewhere = {without_numbers(".".join(name[:depth])) for depth in {*depths.values()} for name in known}
    alone = [one for path, one in found.items() if without_numbers(path) not in elsewhere]
    if any(one is Names.UNKNOWN for one in alone):
        return None
    wrong = next((one for one in alone if isinstance(one, Misspelled)), None)
    lost = _missing(rule, steps, known) if wrong is None else _Lost(rule, _no_name(wrong), None)
    return None if _chosen_otherwise(steps, names, misspelled=lost.meant is not None) else lost


def _chosen_otherwise(steps: Sequence[PatternComponent], names: ModelNames, *, misspelled: bool) -> bool:
    """Return whether a pattern is about a block that a condition over params puts in place of the one that is there; what cannot
    be known of that block is taken for right, unless the pattern may be a misspelled name of what is there.
    """
    choices = [path for path in names.choices if _leads_into(path.split("."), steps)]
    found = {names.left_out.misspelled(names.choices[path], steps[path.count(".") + 1 :]) for path in choices}
    return Names.RIGHT in found or (Names.UNKNOWN in found and not misspelled)


def _ways(pattern: NamePattern, place: int | None, word: int) -> Iterator[list[PatternComponent]]:
    """Yield the components of a pattern, with one word of the choice at `place` if that is given; of another choice, in which a
    word is several components, with each word.
    """
    every = [
        [word] if choice == place else [*range(len(words))] if any("." in each for each in words) else [None]
        for choice, words in enumerate(pattern.choices)
    ]
    yield from (_steps(pattern, chosen) for chosen in product(*every))


def _steps(pattern: NamePattern, chosen: Sequence[int | None]) -> list[PatternComponent]:
    """Return the components of a pattern, with one word of each choice where its index is given."""
    steps, start, left = [], 0, iter(zip(chosen, pattern.choices, strict=True))
    for component in components_of(pattern.text):
        parts, at, around = [component], start, ("", "")
        index, words = next(left) if "(" in component else (None, ())
        if index is not None:
            head, _, tail = component.partition("(")
            parts, around = words[index].split("."), (head, tail.partition(")")[2])
            at += len(head) + 1 + sum(len(each) + 1 for each in words[:index])
        for number, part in enumerate(parts):
            text = around[0] * (number == 0) + part + around[1] * (number == len(parts) - 1)
            expression = ANYTHING if text == "*" else re.sub(r"<\w+>", r"\\d+", text.replace("(", "(?:"))
            steps.append(PatternComponent(text, re.compile(expression, re.ASCII), pattern.scalar.part(at, at + len(part))))
            at += len(part) + 1
        start += len(component) + 1
    return steps


def _leads_into(path: Sequence[str], steps: Sequence[PatternComponent]) -> bool:
    """Return whether a pattern is about what is at a path or below it."""
    if len(steps) < len(path):
        return False
    return all(step.expression.fullmatch(name) for step, name in zip(steps, path, strict=False))


def _no_name(found: Misspelled) -> Diagnostic:
    message = f"what is left out here has no node or parameter `{found.step.text}`"
    return Diagnostic(CODE, message, found.step.span, hint=did_you_mean(found.offered) if found.offered else "")


def _missing(rule: Rule, steps: Sequence[PatternComponent], known: list[list[str]]) -> _Lost:
    """Return the error at the first component of a pattern that leads to nothing."""
    for depth, step in enumerate(steps):
        below = [name for name in known if len(name) > depth]
        known = [name for name in below if step.expression.fullmatch(name[depth])]
        if not known:
            return _without(rule, steps, depth, list(dict.fromkeys(name[depth] for name in below)))
    if inner := list(dict.fromkeys(name[len(steps)] for name in known if len(name) > len(steps))):
        message = f"`{rule.ours.text}` is no parameter; below it are {', '.join(inner[:8])}"
        found = Diagnostic(CODE, message, rule.span, hint=f"write {rule.ours.text}.*")
        return _Lost(rule, found, _names([each.expression.pattern for each in steps] + [ANYTHING]))
    return _Lost(rule, Diagnostic(CODE, "no parameter has the same number at both places", rule.span), None)


def _without(rule: Rule, steps: Sequence[PatternComponent], depth: int, there: list[str]) -> _Lost:
    """Return the error that nothing is called like the component at `depth`, where others are there."""
    step, holder = steps[depth], ".".join(each.text for each in steps[:depth])
    before, after = ([each.expression.pattern for each in part] for part in (steps[:depth], steps[depth + 1 :]))
    numbers = bool(there) and all(name.isdecimal() for name in there)
    meant: list[str] = []
    if step.text.startswith("<"):
        message = f"`{holder}` has no passes with parameters of their own that `{step.text}` could count"
        found = Diagnostic(CODE, message, step.span, hint=f"known here: {', '.join(there)}" if 0 < len(there) <= 12 else "")
    elif numbers and step.text.isdecimal():
        found = Diagnostic(CODE, f"`{holder}` has no pass {step.text}", step.span, hint=f"its passes are 0 to {len(there) - 1}")
    elif numbers:
        rest = ".".join(each.text for each in steps[depth:])
        found = Diagnostic(CODE, f"the parameters of `{holder}` have the number of their pass before `{step.text}`", step.span,
                           hint=f"write {holder}.<layer>.{rest}")  # fmt: skip
        meant = [r"\d+", step.expression.pattern]
    elif not there:
        found = Diagnostic(CODE, f"`{holder}` is a parameter and holds none", step.span)
    elif holder:
        found = unknown(CODE, step.span, "node or parameter", step.text, there, of=f"`{holder}`")
    else:
        found = unknown(CODE, step.span, "node", step.text, there)
    if not numbers and (offered := suggest(step.text, there)):
        meant = [re.escape(offered[0])]
    return _Lost(rule, found, _names([*before, *meant, *after]) if meant else None)


def _names(components: Sequence[str]) -> re.Pattern[str]:
    """Return the expression of names, given those of their components."""
    return re.compile("[.]".join(components), re.ASCII)
