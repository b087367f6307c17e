"""The JSON Schema of recipes, generated from the declarations of the blocks, for completion and checks in editors.

It describes only the form of a recipe; names, shapes and edges are checked by `arco check`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from blocks.core import Block, Library, Part, fields, is_node, ports
from blocks.core.fields import (
    AxesForm,
    AxisFormula,
    AxisLength,
    AxisName,
    AxisOrAxes,
    Boolean,
    BooleanMap,
    EachAxis,
    Field,
    FieldForm,
    FormulaForm,
    Integer,
    ListOf,
    MapOf,
    NodeName,
    NumberOrNodeRef,
    OneOf,
    Real,
    SlotOf,
    String,
    formula_field,
)
from blocks.losses.loss import Loss
from blocks.masks.mask import Mask
from composer.block_reference import docs_of
from composer.draw.figure_sheet import sheet_schema
from composer.language.recipe.keys import KEYS, KeyPlace, KeyRow
from composer.language.recipe.losses import UNTYPED
from composer.language.recipe.schema_fragments import (
    EXPRESSION,
    INITIALIZER,
    NAME,
    OBJECT,
    STRING,
    STRING_OR_LIST,
    TEXT,
    Schema,
    either,
    list_of,
    mapping,
    one_item,
    ref,
)

NODES = ("compute", "choice", "group", "repeat", "scan")
"""The kinds of nodes without a type."""
OPEN = "open_"
"""Prefix of the definitions in which a type may be a block that the recipe defines."""


def schema(library: Library) -> Schema:
    """Return the schema of recipes that may name the parts of a library (JSON Schema, draft 2020-12)."""
    parts = {name: library[name] for name in library if not issubclass(library[name], Mask)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A recipe of Composer",
        "if": {"type": "object", "required": ["extends"]},
        "then": ref("change"),
        "else": ref("recipe"),
        "$defs": _with_open(
            {
                "graph": {"type": "object", "propertyNames": NAME, "additionalProperties": ref("node")},
                "node": {"anyOf": [{"type": "string"}, ref("use"), *map(ref, NODES)]},
                "use": _use(parts, [name for name, part in parts.items() if is_node(part)]),
                "compute": _object("compute"),
                "choice": _object("choice"),
                "group": _object("group"),
                "repeat": _opening(_object("repeat"), {"required": ["each"]}),
                "scan": _object("scan"),
                **{f"part_{name}": _part(part, parts) for name, part in parts.items()},
            }
        )
        | {
            "recipe": _recipe(),
            "change": _change(),
            "param": either(EXPRESSION, list_of(EXPRESSION), _object("param") | _VALUED),
            "input": _object("input"),
            "initializer": INITIALIZER,
            "adapter": _object("adapter"),
            "blocks": _blocks(),
            "loss": _loss(library),
            "figure": sheet_schema(),
            "figure_change": _removable(sheet_schema()),
            "checkpoint": _object("checkpoint") | either({"required": ["rules"]}, {"required": ["like"]}),
            "config": _object("config"),
            "config_param": _object("config param"),
            "config_constant": _object("config constant"),
            "rule": _object("rule"),
            "ignored": _object("ignored"),
            "rotary_permutation": _object("rotary permutation"),
        },
    }


def _with_open(definitions: Schema) -> Schema:
    """Return the definitions, and copies of them for recipes with blocks of their own, where a type may be one that is not in
    the library.
    """

    def opened(value: Any) -> Any:
        if isinstance(value, list):
            return [opened(item) for item in value]
        if not isinstance(value, dict):
            return value
        copy = {key: opened(inner) for key, inner in value.items()}
        if (name := str(value.get("$ref", "")).rpartition("/")[2]) in definitions:
            copy |= ref(OPEN + name)
        if "allOf" in copy:
            copy["properties"] = {"type": NAME}
        return copy

    return definitions | {OPEN + name: opened(definition) for name, definition in definitions.items()}


def _recipe() -> Schema:
    """Return the schema of a recipe without `extends`, or of a file of blocks, which has no graph."""
    return {
        "type": "object",
        "properties": _properties("recipe") | _properties("composition"),
        "additionalProperties": False,
        "allOf": [
            {
                "if": {"required": ["blocks"], "not": {"required": ["graph"]}},
                "else": {"required": [key.name for key in KEYS["recipe"].values() if key.required]},
            },
            _opening({}, either({"required": ["blocks"]}, {"required": ["uses"]}, _HOLDS_BLOCK)),
        ],
    }


_VALUED: Schema = either({"required": ["default"]}, {"required": ["required"]}) | {
    "if": {"properties": {"type": {"type": "string"}}, "required": ["type"]},
    "then": {"properties": {"default": {"not": {"type": "array"}}}},
}
"""A param has a value or must be given one; that of a single type is no list."""
_BLOCKS: Schema = either({"const": "block"}, one_item({"const": "block"}))
_HOLDS_BLOCK: Schema = {
    "required": ["params"],
    "properties": {
        "params": {
            "type": "object",
            "not": {"additionalProperties": {"not": {"required": ["type"], "properties": {"type": _BLOCKS}}}},
        }
    },
}
"""A recipe with a param that holds a block, whose name is then a type."""


def _opening(described: Schema, names: Schema) -> Schema:
    """Return a schema with a graph in which a type may be one that is not in the library, if it has `names` of its own."""
    closed = {key: value for key, value in described.get("properties", {}).items() if key != "graph"}
    ways: Schema = {
        "if": names,
        "then": {"properties": {"graph": ref("open_graph")}},
        "else": {"properties": {"graph": ref("graph")}},
    }
    return described | ({"properties": {**closed, "graph": OBJECT}} if described else {}) | ways


def _change() -> Schema:
    """Return the schema of a recipe with `extends`, which contains only changes: what they amount to depends on the base."""
    keys = KEYS["recipe"].values()
    return {
        "type": "object",
        "properties": {key.name: _described(key, _changed(key)) for key in keys} | _properties("composition"),
        "additionalProperties": False,
        "required": ["recipe"],
    }


def _changed(key: KeyRow) -> Schema:
    """Return the schema of a key in a recipe with `extends`, where `null` removes what the base has there."""
    if key.required and key.content == "text":
        return key.schema
    if key.schema == ref("figure"):
        return either(ref("figure_change"), {"type": "null"})
    return either(key.schema, {"type": "null"} if key.content == "text" else {"type": ["object", "null"]})


def _removable(form: Schema) -> Schema:
    """Return the schema of a mapping whose keys, and those of mappings in it, may be `null`, which removes what the base has."""
    found = dict(form)
    if "properties" in form:
        found["properties"] = {
            name: {"description": value.get("description", ""), **either(_removable(value), {"type": "null"})}
            for name, value in form["properties"].items()
        }
    elif isinstance(form.get("additionalProperties"), dict):
        found["additionalProperties"] = either(form["additionalProperties"], {"type": "null"})
    return found


def _properties(place: KeyPlace) -> Schema:
    """Return the schema of each key of a place, with its description."""
    return {key.name: _described(key, key.schema) for key in KEYS[place].values()}


def _described(key: KeyRow, value: Schema) -> Schema:
    """Return the schema of a key with its description."""
    return {"description": f"{key.doc[0].upper()}{key.doc[1:]}.", **value}


def _object(place: KeyPlace) -> Schema:
    """Return a mapping with the keys of a place."""
    return {
        "type": "object",
        "properties": _properties(place),
        "additionalProperties": False,
        "required": [key.name for key in KEYS[place].values() if key.required],
    }


def _blocks() -> Schema:
    """Return the blocks of a recipe's own, each with those of the keys of a recipe that make one."""
    return {"type": "object", "propertyNames": NAME, "additionalProperties": _object("block")}


def _loss(library: Library) -> Schema:
    """Return a loss: its fields, and its ports beside `in`; without a type, it is of the numbers that it reads."""
    kinds = library.of(Loss)
    by_type = [
        {"if": {"properties": {"type": {"const": name}}, "required": ["type"]}, "then": _loss_of(part)}
        for name, part in kinds.items()
    ]
    untyped = {"if": {"not": {"required": ["type"]}}, "then": _loss_of(UNTYPED)}
    return {"type": "object", "properties": {"type": {"enum": list(kinds)}}, "allOf": [*by_type, untyped]}


def _loss_of(part: type[Part]) -> Schema:
    docs = docs_of(part)
    own = {name: _field(field, docs.get(name, ""), {}) for name, field in fields(part).items()}
    known: Schema = {
        "properties": {**_properties("loss"), "type": {"const": part.kind}, **dict.fromkeys(ports(part), STRING_OR_LIST), **own},
        "additionalProperties": False,
    }
    return known | either({"required": ["in"]}, {"required": ["input"]}) if "input" in ports(part) else known


def _use(parts: Mapping[str, type[Part]], nodes: Iterable[str]) -> Schema:
    """Return a node with a type: the fields are those of the block that the type names."""
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": either({"enum": list(nodes)}, _CONDITIONAL)},
        "allOf": [_when_typed(name) for name in parts],
    }


_CONDITIONAL: Schema = {"type": "string", "pattern": r" if .+ else |\(.+\)$"}
"""A type that a condition chooses, or an item of a list of blocks."""


def _when_typed(name: str) -> Schema:
    return {"if": {"properties": {"type": {"const": name}}, "required": ["type"]}, "then": ref(f"part_{name}")}


def _part(part: type[Part], parts: Mapping[str, type[Part]]) -> Schema:
    docs = docs_of(part)
    own = {name: _field(field, docs.get(name, ""), parts) for name, field in fields(part).items()}
    if formula_field(part):  # whose values have names
        own |= {
            name: {**own[name], **mapping(STRING)} for name, field in fields(part).items() if isinstance(field.form, AxesForm)
        }
        own["in"] = KEYS["compute"]["in"].schema
    return {
        "description": " ".join(inspect.cleandoc(part.__doc__ or "").split("\n\n")[0].split()),
        "properties": {**(_properties("node") if is_node(part) else {}), "type": {"const": part.kind}, **own},
        "additionalProperties": False,
        "required": ["type", *(name for name, field in fields(part).items() if field.required)],
    }


def _field(field: Field, doc: str, parts: Mapping[str, type[Part]]) -> Schema:
    described: Schema = {"description": " ".join(doc.split())} if doc else {}
    if isinstance(field.default, bool | int | float | str):
        described["default"] = field.default
    return described | _form(field.form, parts)


def _form(form: FieldForm, parts: Mapping[str, type[Part]]) -> Schema:
    match form:
        case Integer() | Real() | NumberOrNodeRef() | AxisLength() | AxisFormula():
            return {"type": ["number", "string"]}
        case Boolean():
            return {"type": ["boolean", "string"]}
        case OneOf(of=words):
            return {"anyOf": [{"enum": list(words)}, {"type": "string"}]}  # one of the choices, or the name of a param
        case String() | AxisName() | NodeName() | FormulaForm():
            return dict(TEXT)
        case AxesForm():
            return list_of(STRING)
        case ListOf(item=item):
            return either({"type": "array", "items": _form(item, parts)}, {"type": "string"})  # or the name of a param
        case EachAxis(item=item) | AxisOrAxes(item=item):
            return either(_form(item, parts), {"type": "array", "items": _form(item, parts)})
        case MapOf(item=item):
            return {"type": "object", "additionalProperties": _form(item, parts)}
        case BooleanMap(names=names):
            boolean = {"type": ["boolean", "string"]}
            each = {"type": "object", "properties": dict.fromkeys(names, boolean), "additionalProperties": False}
            return either(boolean, each)
        case SlotOf(family=family) if family is Mask:
            return {"type": "string"}
        case SlotOf(family=family):
            return _slot(family, parts)


def _slot(family: type[Part], parts: Mapping[str, type[Part]]) -> Schema:
    computes = is_node(family) or family is Block
    names = [name for name, part in parts.items() if issubclass(part, family) or (computes and is_node(part))]
    word: Schema = {"anyOf": [{"enum": [*names, "none"]}, {"type": "string"}]}
    filled = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": either({"enum": names}, _CONDITIONAL)},
        "allOf": [_when_typed(name) for name in names],
    }
    return {
        "anyOf": [word, filled, ref("choice"), *([ref("compute"), ref("group"), ref("repeat"), ref("scan")] if computes else [])]
    }
