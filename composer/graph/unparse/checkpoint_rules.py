"""Rules of `checkpoints` written out: their sizes are numbers, as the params of the recipe are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from blocks.core import number
from composer.diagnostics import Source, Span
from composer.language.expressions.evaluator import as_float, evaluate
from composer.language.expressions.parser import names, parse_expression, paths
from composer.language.name_patterns import NamePattern, in_pieces, only_ours, pattern, with_words
from composer.language.recipe.keys import TABLE
from composer.language.recipe.writer import YamlData, data_of
from composer.language.wording import format_value
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar

SIZES = frozenset(key.name for key in TABLE if key.content == "size")
"""The keys of a rule of `checkpoints` that hold numbers."""


def published(rules: YamlNode, params: Mapping[str, Any], names: Sequence[str]) -> YamlData:
    """Return the rules of one model type, with the values of params, for the parameters of these names; its `config` sets params,
    of which none is left.
    """
    if not isinstance(rules, YamlMapping):
        return data_of(rules)
    texts = {entry.key.text: data_of(entry.value) for entry in rules if entry.key.text != "config"}
    if isinstance(ignored := rules.get("ignore"), YamlList):
        texts["ignore"] = [_ignored(item, params) for item in ignored.items]
    if isinstance(own := rules.get("rules"), YamlMapping):
        texts["rules"] = left = {ours: each for entry in own for ours, each in _applying(entry, params, names)}
        if isinstance(copies := rules.get("copies"), YamlMapping):
            read = [each for rule in left.values() for each in _read(rule)]
            texts["copies"] = {
                entry.key.text: data_of(entry.value)
                for entry in copies
                if isinstance(entry.value, YamlScalar) and any(each.match(entry.value.text) for each in read)
            }
    return texts


def _ignored(item: YamlNode, params: Mapping[str, Any]) -> YamlData:
    """Return what is ignored, in whose condition only its indices are names."""
    name, condition = (item.get("from"), item.get("when")) if isinstance(item, YamlMapping) else (None, None)
    if not isinstance(name, YamlScalar) or not isinstance(condition, YamlScalar):
        return data_of(item)
    indices = frozenset(INDEX.findall(name.text))
    held = {param: value for param, value in params.items() if param not in indices}
    return {"from": name.text, "when": with_values(condition, held)}


def with_values(scalar: YamlScalar, params: Mapping[str, Any]) -> str:
    """Return an expression in which params, and items of lists, are the values that they have."""
    text = scalar.text
    found = [path for path in paths(parse_expression(scalar)) if path.steps[0].name in params and names(path) <= params.keys()]
    items = {inner for path in found for step in path.steps for each in step.arguments or () for inner in paths(each)}
    for path in sorted((path for path in found if path not in items), key=lambda path: -path.span.column):
        start = path.span.column - scalar.part(0, 1).column
        end = path.span.end_column - scalar.part(0, 1).column
        text = f"{text[:start]}{format_value(evaluate(path, params)).strip('`')}{text[end:]}"
    return text


INDEX = re.compile(r"<(\w+)>", re.ASCII)


def _read(rule: YamlData) -> list[NamePattern]:
    """Return the published names that a rule reads, as it is written."""
    source = rule["from"] if isinstance(rule, dict) else rule
    texts = map(str, source if isinstance(source, list) else [source])
    return [_pattern(YamlScalar(text, Span(Source("", text), 1, 1, 1, len(text) + 1))) for text in texts]


def _pattern(scalar: YamlScalar) -> NamePattern:
    found = pattern(scalar)
    assert isinstance(found, NamePattern)
    return found


def _applying(rule: YamlEntry, params: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str, YamlData]]:
    """Yield what is left of a rule that applies, without its condition: words of its choices that cover nothing are left out, and
    so is a rule of which none is left.
    """
    ours = pattern(rule.key)
    assert isinstance(ours, NamePattern)
    found = [match.chosen for name in names if (match := ours.match(name))]
    covered = [sorted({chosen[place] for chosen in found}) for place in range(len(ours.choices))]
    whole = all(len(kept) == len(words) for kept, words in zip(covered, ours.choices, strict=True))
    for each in rule.value.items if isinstance(rule.value, YamlList) else (rule.value,):
        if not found or not _applies(each, params):
            continue
        written = _operations(each, params)
        source = each.get("from") if isinstance(each, YamlMapping) else each
        theirs = [
            _pattern(name)
            for name in (source.items if isinstance(source, YamlList) else [source])
            if isinstance(name, YamlScalar)
        ]
        if whole:
            yield ours.text, written
        elif isinstance(written, dict) and ("split" in written or "concat" in written):
            yield from _each_in_pieces(ours, theirs, found, written)
        elif len(ours.choices) > len(theirs[0].choices):
            (either,) = only_ours(ours, theirs[0])
            for chosen in sorted({*found}):
                mine = [[word] for word in chosen]
                yield _with_words(ours, theirs, mine, [*mine[:either], *mine[either + 1 :]], written)
        else:
            yield _with_words(ours, theirs, covered, covered, written)


def _each_in_pieces(
    ours: NamePattern, theirs: Sequence[NamePattern], found: Sequence[tuple[int, ...]], written: dict[str, YamlData]
) -> Iterator[tuple[str, YamlData]]:
    """Yield a rule in pieces for each combination of the words that name no pieces, so that no other choice is left."""
    split = in_pieces(ours, theirs[0], int(str(written["split"])))[0] if "split" in written else None
    for combination in sorted({tuple(word for place, word in enumerate(chosen) if place != split) for chosen in found}):
        mine, other = [[word] for word in combination], [[word] for word in combination]
        if split is not None:
            mine.insert(split, list(range(len(ours.choices[split]))))
        else:
            place = in_pieces(theirs[0], ours, int(str(written["concat"])))[0]
            other.insert(place, list(range(len(theirs[0].choices[place]))))
        yield _with_words(ours, theirs, mine, other, written)


def _with_words(
    ours: NamePattern,
    theirs: Sequence[NamePattern],
    mine: Sequence[Sequence[int]],
    other: Sequence[Sequence[int]],
    written: YamlData,
) -> tuple[str, YamlData]:
    """Return a rule with some words of the choices of each side."""
    words, *published = (
        [[choice[word] for word in some] for choice, some in zip(each.choices, numbers, strict=True)]
        for each, numbers in ((ours, mine), *((name, other) for name in theirs))
    )
    texts: list[YamlData] = [with_words(name.text, each) for name, each in zip(theirs, published, strict=True)]
    if not isinstance(written, dict):
        return with_words(ours.text, words), texts[0]
    operations = {**written, "from": texts if len(texts) > 1 else texts[0]}
    permutation = operations.get("permute_rotary")
    if isinstance(permutation, dict) and isinstance(named := permutation.get("of"), list):
        there, in_choices = ({word for some in each for word in some} for each in (words, [one for one in words if len(one) > 1]))
        left = [word for word in named if word in there]
        permutation = {key: value for key, value in permutation.items() if key != "of"}
        if any(word in in_choices for word in left):
            permutation["of"] = [word for word in left if word in in_choices]
        operations["permute_rotary"] = permutation
        if not left:
            del operations["permute_rotary"]
    return with_words(ours.text, words), operations


def _applies(rule: YamlNode, params: Mapping[str, Any]) -> bool:
    condition = rule.get("when") if isinstance(rule, YamlMapping) else None
    return not isinstance(condition, YamlScalar) or bool(evaluate(parse_expression(condition), params))


def _operations(rule: YamlNode, params: Mapping[str, Any]) -> YamlData:
    """Return what one rule does, or a part of it: sizes are expressions."""
    if not isinstance(rule, YamlMapping):
        return data_of(rule)
    return {
        entry.key.text: _sizes(entry.value, params) if entry.key.text in SIZES else data_of(entry.value)
        for entry in rule
        if entry.key.text != "when"
    }


def _sizes(node: YamlNode, params: Mapping[str, Any]) -> YamlData:
    match node:
        case YamlMapping():
            return _operations(node, params)
        case YamlList(items=items):
            return [_sizes(item, params) for item in items]
    return number(as_float(evaluate(parse_expression(node), params), node.span))
