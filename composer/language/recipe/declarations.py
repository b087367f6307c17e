"""What a recipe, or a block in one, declares beside its graph: params, inputs and initializers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from blocks.core import Library
from composer.language.patterns import Unbalanced, parsed
from composer.language.python_names import TAKEN
from composer.language.recipe.ast import AdapterRule, InitRule, InputDecl, Param, ParamType
from composer.language.recipe.base_parser import BaseParser
from composer.language.recipe.keys import FULL, VALUE_WORDS, keys_of
from composer.language.recipe.type_syntax import type_of
from composer.language.unknown_names import quoted
from composer.language.wording import BOOLEANS
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar

TYPES = get_args(ParamType)
INITIALIZERS = ("normal", "uniform", "constant")
INIT_HINT = "{normal: 0.02}, {uniform: 0.1}, {constant: 0} or {formula: log(i + 1)}"


def params(reader: BaseParser, node: YamlNode | None, library: Library) -> Iterator[Param]:
    """Yield the params under a key."""
    for entry in reader.entries(node, "params"):
        if not reader.declares(entry.key, "a param", VALUE_WORDS):
            continue
        match entry.value:
            case YamlMapping() as value if _is_block(value, library):
                hint = f"{entry.key.text}: {{type: block, default: {{…}}}}"
                reader.error("param-form", value.span, "a param that holds a block is written in its long form", hint=hint)
            case YamlMapping() as value:
                if param := _long_param(reader, entry.key, value):
                    yield param
            case YamlList() as value:
                if _short_list(reader, entry.key, value):
                    yield Param(entry.key.text, entry.key.span, None, value, listed=True)
            case value:
                yield Param(entry.key.text, entry.key.span, None, value)


def _short_list(reader: BaseParser, name: YamlScalar, node: YamlList) -> bool:
    """Return whether a list declares a param by itself: its items say of which type they are."""
    if not node.items:
        hint = f"{name.text}: {{type: [int], default: []}}"
        reader.error("param-form", node.span, "a list without items does not say of which type they are", hint=hint)
        return False
    for item in node.items:
        if not isinstance(item, YamlScalar):
            if isinstance(item, YamlList):
                hint = "write their items one after the other, with another list of where each starts"
                reader.error("param-form", item.span, "an item is a single value; there are no lists of lists", hint=hint)
                return False
            hint = f"{name.text}: {{type: [block], default: […]}}"
            reader.error("param-form", item.span, "an item is a single value; a list of blocks is written in the long form",
                         hint=hint)  # fmt: skip
            return False
    return True


def _is_block(node: YamlMapping, library: Library) -> bool:
    """Return whether a block stands where a param says how it is read."""
    kind = node.get("type")
    named = isinstance(kind, YamlScalar) and kind.text in library and kind.text not in TYPES
    return named and node.get("default") is None and "required" not in node


def _long_param(reader: BaseParser, name: YamlScalar, node: YamlMapping) -> Param | None:
    reader.keys(node, keys_of("param"), "a param")
    type_: Any = None
    written, default = node.get("type"), node.get("default")
    listed = isinstance(default if written is None else written, YamlList)
    if isinstance(written, YamlList):
        if len(written.items) != 1:
            reader.error("param-form", written.span, "a list has items of one type", hint="such as `type: [int]`")
            return None
        (written,) = written.items
    if kind := reader.scalar(written, "the type of a param is one word, or `[int]` for a list"):
        if kind.text in TYPES:
            type_ = kind.text
        else:
            reader.unknown("unknown-param-type", kind.span, "type of param", kind.text, TYPES)
    elif isinstance(default, YamlList) and not _short_list(reader, name, default):
        return None
    flag = reader.scalar(node.get("required"), "`required` must be a boolean")
    required = flag is not None and BOOLEANS.get(flag.text, False)
    if flag is not None and flag.text not in BOOLEANS:
        hint = "`required: true`, or leave it out"
        reader.error("not-a-boolean", flag.span, f"{quoted(flag.text)} is not a boolean", hint=hint)
        if default is None:
            return None
    elif default is None and not required:
        hint = "write `default: …`, or `required: true`"
        reader.error("param-form", name.span, f"{name.text} has no default", hint=hint)
    of = node.get("of")
    choices = [reader.scalar(item, "a choice is among single values") for item in of.items] if isinstance(of, YamlList) else []
    if type_ == "choice" and not choices:
        reader.error("param-form", node.span, "a choice needs the values to choose from", hint="of: [first, second]")
    if type_ not in ("block", "mask") and not listed and isinstance(default, YamlList | YamlMapping):
        hint = (
            f"a list is declared by its type: {{type: [{type_ or 'int'}], default: …}}"
            if isinstance(default, YamlList)
            else "a block is written in the long form: {type: block, default: …}"
        )
        reader.error("value-form", default.span, f"`{name.text}` takes a single value", hint=hint)
    if listed and isinstance(default, YamlMapping):
        hint = f"{name.text}: [first, second]"
        reader.error("not-a-list", default.span, f"`{name.text}` takes a list", hint=hint)
    if type_ not in ("block", "mask", None) and listed and isinstance(default, YamlList):
        for item in default.items:
            if not isinstance(item, YamlScalar):
                reader.error("value-form", item.span, f"an item of `{name.text}` is a single value")
    return Param(
        name.text,
        name.span,
        type_,
        default,
        required=required,
        listed=listed,
        minimum=reader.expression(node.get("min")),
        maximum=reader.expression(node.get("max")),
        of=tuple(choice.text for choice in choices if choice is not None),
        doc=reader.text(node.get("doc")),
    )


def inputs(reader: BaseParser, node: YamlNode | None) -> Iterator[InputDecl]:
    """Yield the inputs of a recipe: all their axes are known, and one may have a default."""
    for entry in reader.entries(node, "inputs"):
        declared = _input(reader, entry)
        if declared is None:
            continue
        if declared.name in TAKEN:
            message = f"`{declared.name}` means something else in Python, and inputs are arguments of the model"
            reader.error("reserved-name", declared.span, message, hint=f"rename it, such as `{declared.name}_`")
        elif declared.type.leading:
            message = "an input of the model names all its axes, so `...` cannot be used"
            reader.error("bad-type", declared.type.span, message, hint="such as float[batch, time, dim]")
        else:
            yield declared


def ports(reader: BaseParser, node: YamlNode | None) -> Iterator[InputDecl]:
    """Yield the inputs of a block that a recipe defines."""
    for entry in reader.entries(node, "inputs"):
        if isinstance(entry.value, YamlMapping) and "default" in entry.value:
            message = "only inputs of the whole model can have a default, not those of a block"
            reader.error(
                "input-default",
                entry.value.span,
                message,
                hint="declare the input with its default on the model, and wire it to the block",
            )
        if declared := _input(reader, entry):
            yield declared


def _input(reader: BaseParser, entry: YamlEntry) -> InputDecl | None:
    name, value, default = entry.key, entry.value, None
    if not reader.declares(name, "an input"):
        return None
    if isinstance(value, YamlMapping):
        reader.keys(value, keys_of("input"), "an input")
        default = reader.expression(value.get("default"))
        given = value.get("type")
        if given is None:
            hint = f'{name.text}: {{type: "int[batch, time]", default: 0}}'
            reader.error("missing-key", name.span, f"the input `{name.text}` has no type", hint=hint)
            return None
        value = given
    if isinstance(value, YamlList):
        reader.error("bad-type", value.span, "a type is `dtype[axes]`", hint='inside braces, quote it: "int[batch, time]"')
        return None
    scalar = reader.scalar(value, "a type is written as `int[batch, time]`")
    declared = type_of(reader, scalar) if scalar else None
    if scalar is None or declared is None:
        return None
    return InputDecl(name.text, name.span, declared, scalar.text.rstrip().endswith("?"), default)


def init(reader: BaseParser, node: YamlNode | None) -> Iterator[InitRule]:
    """Yield the initializers, pattern by pattern, each with its number."""
    for pattern, value in ((entry.key, entry.value) for entry in reader.entries(node, "init")):
        if not _balanced(reader, pattern, "*.(q|k).weight"):
            continue
        if isinstance(value, YamlMapping) and (rule := _initializer(reader, pattern, value)):
            yield rule
        elif not isinstance(value, YamlMapping):
            reader.error("init-form", value.span, "an initializer is a name with its number", hint=INIT_HINT)


def _initializer(reader: BaseParser, pattern: YamlScalar, value: YamlMapping) -> InitRule | None:
    """Return a rule: what is drawn, a constant, or a formula, of the places alone or of what is drawn."""
    formula, condition = value.entry("formula"), value.entry("when")
    drawn = [entry for entry in value.entries if entry is not formula and entry is not condition]
    for entry in drawn:
        if entry.key.text not in INITIALIZERS:
            reader.unknown("unknown-init", entry.key.span, "initializer", entry.key.text, (*INITIALIZERS, "formula", "when"))
            return None
    if len(drawn) > 1 or not (drawn or formula) or (formula and drawn and drawn[0].key.text == "constant"):
        reader.error("init-form", value.span, "an initializer is a name with its number", hint=INIT_HINT)
        return None
    computed = None if formula is None else reader.expression(formula.value)
    when = None if condition is None else reader.expression(condition.value)
    if (formula and computed is None) or (condition and when is None):
        return None
    if not drawn:
        return InitRule(pattern.text, pattern.span, "constant", None, None, computed, when)
    how: Any = drawn[0].key.text
    written, low = drawn[0].value, None
    if how == "uniform" and isinstance(written, YamlList):
        if len(written.items) != 2:
            reader.error("init-form", written.span, "a range has two ends", hint="{uniform: [0.9, 0.999]}")
            return None
        low, written = reader.expression(written.items[0]), written.items[1]
        if low is None:
            return None
    number = reader.expression(written)
    return None if number is None else InitRule(pattern.text, pattern.span, how, number, low, computed, when)


def adapters(reader: BaseParser, node: YamlNode | None) -> Iterator[AdapterRule]:
    """Yield what is trained, pattern by pattern: adapters of linear maps, or what is trained as a whole."""
    for pattern, value in ((entry.key, entry.value) for entry in reader.entries(node, "adapters")):
        if not _balanced(reader, pattern, "*.(q|v)"):
            continue
        if isinstance(value, YamlScalar) and value.text == FULL:
            yield AdapterRule(pattern.text, pattern.span, None)
            continue
        if not isinstance(value, YamlMapping):
            hint = f"{{rank: 8, alpha: 16}}, or {FULL} for what is trained as a whole"
            reader.error("adapter-form", value.span, "an adapter is a mapping with its rank", hint=hint)
            continue
        reader.keys(value, keys_of("adapter"), "an adapter")
        if "rank" not in value:
            reader.error("missing-key", pattern.span, "an adapter needs `rank`", hint="such as {rank: 8, alpha: 16}")
            continue
        rank, *others = (reader.expression(value.get(key), key) for key in ("rank", "alpha", "dropout"))
        if rank is not None:
            yield AdapterRule(pattern.text, pattern.span, rank, *others)


def _balanced(reader: BaseParser, pattern: YamlScalar, example: str) -> bool:
    """Return whether the brackets of a pattern match; that they do not is reported."""
    try:
        parsed(pattern.text)
    except Unbalanced:
        hint = f"alternatives are written in parentheses: {example}"
        reader.error("init-pattern", pattern.span, "the brackets of this pattern do not match", hint=hint)
        return False
    return True
