"""The JSON Schema of recipes, from the declarations of the blocks: with it an editor completes and checks while one writes.

A schema sees the form of a text alone: what names mean, what shapes come to and whether edges meet, `arco check` knows.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, get_args

from blocks.core import Block, Library, Part, fields, is_node, ports
from blocks.core.fields import (
    AxisName,
    Boolean,
    BooleanMap,
    Field,
    FieldForm,
    Integer,
    ListOf,
    NodeName,
    NumberOrNodeRef,
    OneOf,
    Real,
    SlotOf,
    String,
)
from blocks.losses.loss import Loss
from blocks.masks.mask import Mask
from composer.block_reference import docs_of
from composer.language.recipe.ast import ParamType
from composer.language.recipe.keys import BLOCK
from composer.language.recipe.losses import UNTYPED
from composer.language.tasks import TASKS

Schema: TypeAlias = dict[str, Any]

NAME = "[A-Za-z][A-Za-z0-9_]{0,63}"
EXPRESSION: Schema = {"type": ["string", "number", "boolean"]}
"""A number, a boolean, a string or an expression: a YAML reader of an editor gives each its own type."""
TEXT: Schema = {"type": ["string", "number"]}
EDGES: Schema = {
    "description": "What flows in: one reference for the first port, a list, or a mapping from port to reference.",
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}},
        {
            "type": "object",
            "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        },
    ],
}
SETTINGS: Mapping[str, Schema] = {
    "in": EDGES,
    "when": {"description": "The node is there only where this holds.", **EXPRESSION},
    "tie": {
        "description": "Another node whose parameters these are, or own names, each with another parameter.",
        "anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}],
    },
    "trainable": {"description": "Whether training changes it.", **EXPRESSION},
}
"""What every node may say beside its block's own fields."""
INIT: Schema = {
    "type": "object",
    "properties": dict.fromkeys(("normal", "uniform", "constant"), EXPRESSION),
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}


def schema(library: Library) -> Schema:
    """The schema of recipes that may name the parts of a library (JSON Schema, draft 2020-12)."""
    parts = {name: library[name] for name in library if not issubclass(library[name], Mask)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A recipe of Composer",
        "type": "object",
        "properties": _top(),
        "additionalProperties": False,
        "allOf": [
            {  # what is laid over another recipe says only what changes, and a file of blocks has no graph
                "if": {"not": {"anyOf": [{"required": ["extends"]}, {"required": ["blocks"], "not": {"required": ["graph"]}}]}},
                "then": {"required": ["recipe", "inputs", "graph"]},
            },
            {"if": {"required": ["extends"]}, "then": {"required": ["recipe"]}},
            {
                "if": {"anyOf": [{"required": [key]} for key in ("extends", "blocks", "uses")]},
                "then": {"if": {"not": {"required": ["extends"]}}, "then": {"properties": {"graph": _ref("open_graph")}}},
                "else": {"properties": {"graph": _ref("graph")}},
            },
        ],
        "$defs": _with_open(
            {
                "graph": {"type": "object", "propertyNames": {"pattern": f"^{NAME}$"}, "additionalProperties": _ref("node")},
                "node": {"anyOf": [{"type": "string"}, _ref("use"), _ref("group"), _ref("repeat"), _ref("scan")]},
                "use": _use(parts, [name for name, part in parts.items() if is_node(part)]),
                "group": _region({}),
                "repeat": _region(
                    {
                        "repeat": EXPRESSION,
                        "as": {"type": "string"},
                        "each": {"type": "object"},
                        "share": {"description": "Whether all passes have one set of weights.", **EXPRESSION},
                    }
                ),
                "scan": _region({"scan": {"description": "The axis along which it goes, step by step.", **TEXT}}),
                "param": _param(),
                "blocks": _blocks(),
                "loss": _loss(library),
                **{f"part_{name}": _part(part, parts) for name, part in parts.items()},
            }
        ),
    }


def _with_open(definitions: Schema) -> Schema:
    """The definitions, and the same for recipes with blocks of their own, where a type may be one that no library knows."""
    names = {name for name in definitions if name not in ("param", "blocks", "loss")}

    def opened(value: Any) -> Any:
        if isinstance(value, list):
            return [opened(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"$ref"} and (name := value["$ref"].rpartition("/")[2]) in names:
            return _ref(f"open_{name}")
        copy = {key: opened(inner) for key, inner in value.items()}
        if "allOf" in copy:
            copy["properties"] = {"type": {"type": "string", "pattern": f"^{NAME}$"}}
        return copy

    return definitions | {f"open_{name}": opened(definitions[name]) for name in names}


def _top() -> Schema:
    named: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
    return {
        "recipe": {"description": "The name.", "type": "string", "pattern": f"^{NAME}$"},
        "language": {"description": "The version of the language.", "enum": [1, "1"]},
        "doc": {"description": "A paragraph for people.", **TEXT},
        "paper": {"description": "Where the architecture was published.", **TEXT},
        "task": {"description": "What the model is for.", "enum": sorted(TASKS)},
        "extends": {"description": "A recipe that this one is laid over: its name in the zoo, or its file.", "type": "string"},
        "uses": {
            "description": "Files, or recipes of the zoo, whose blocks become block types here.",
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        },
        "params": {"description": "Hyperparameters.", "type": "object", "additionalProperties": _ref("param")},
        "blocks": _ref("blocks"),
        "inputs": {
            "description": "The model's inputs, each with its type, such as int[batch, time].",
            "type": "object",
            "additionalProperties": {
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "properties": {"type": {"type": "string"}, "default": EXPRESSION, "doc": TEXT},
                        "additionalProperties": False,
                    },
                ]
            },
        },
        "graph": {"description": "The nodes, by name.", "type": "object"},
        "outputs": {"description": "Name to reference; without it, the last node.", **named},
        "positions": {"description": "Axis to the node that holds its positions.", **named},
        "losses": {
            "description": "What is trained beside the task's loss, by name.",
            "type": "object",
            "additionalProperties": _ref("loss"),
        },
        "init": {
            "description": "Pattern over the names of parameters to how they start.",
            "type": "object",
            "additionalProperties": INIT,
        },
        "checkpoints": {"description": "How the parameters map to published checkpoints.", "type": ["object", "null"]},
    }


def _blocks() -> Schema:
    """Blocks of a recipe's own, each with those of the keys of a recipe that make one."""
    keys = {key: value for key, value in _top().items() if key in BLOCK}
    block = {
        "type": "object",
        "properties": {**keys, "graph": _ref("open_graph")},
        "additionalProperties": False,
        "required": ["graph"],
    }
    return {
        "description": "Blocks made of other blocks, by name.",
        "type": "object",
        "propertyNames": {"pattern": f"^{NAME}$"},
        "additionalProperties": block,
    }


def _param() -> Schema:
    long = {
        "type": "object",
        "properties": {
            "default": {"anyOf": [EXPRESSION, {"type": "object"}]},
            "type": {"enum": list(get_args(ParamType))},
            "required": {"type": "boolean"},
            "min": EXPRESSION,
            "max": EXPRESSION,
            "of": {"type": "array", "items": TEXT},
            "doc": TEXT,
        },
    }
    return {"anyOf": [EXPRESSION, long]}


def _loss(library: Library) -> Schema:
    """A loss: its fields, and its ports beside `in`; without a type, it is of the numbers that it reads."""
    kinds = library.of(Loss)
    by_type = [
        {"if": {"properties": {"type": {"const": name}}, "required": ["type"]}, "then": _loss_of(part)}
        for name, part in kinds.items()
    ]
    untyped = {"if": {"not": {"required": ["type"]}}, "then": _loss_of(kinds[UNTYPED])}
    return {"type": "object", "properties": {"type": {"enum": list(kinds)}}, "allOf": [*by_type, untyped]}


def _loss_of(part: type[Part]) -> Schema:
    docs = docs_of(part)
    own = {name: _field(field, docs.get(name, ""), {}) for name, field in fields(part).items()}
    return {
        "properties": {"type": {"const": part.kind}, "in": EDGES, **dict.fromkeys(ports(part), EDGES), **own},
        "additionalProperties": False,
    }


def _region(own: Schema) -> Schema:
    """A node with a graph of its own."""
    return {
        "type": "object",
        "properties": {**own, "graph": _ref("graph"), "outputs": {"type": "object"}, **SETTINGS},
        "additionalProperties": False,
        "required": [*list(own)[:1], "graph"],
    }


def _use(parts: Mapping[str, type[Part]], nodes: Iterable[str]) -> Schema:
    """A node with a type: the fields are those of the block that the type names."""
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": list(nodes)}},
        "allOf": [_when_typed(name) for name in parts],
    }


def _when_typed(name: str) -> Schema:
    return {"if": {"properties": {"type": {"const": name}}, "required": ["type"]}, "then": _ref(f"part_{name}")}


def _part(part: type[Part], parts: Mapping[str, type[Part]]) -> Schema:
    docs = docs_of(part)
    own = {name: _field(field, docs.get(name, ""), parts) for name, field in fields(part).items()}
    return {
        "description": " ".join(inspect.cleandoc(part.__doc__ or "").split("\n\n")[0].split()),
        "properties": {"type": {"const": part.kind}, **own, **(SETTINGS if is_node(part) else {})},
        "additionalProperties": False,
        "required": ["type", *(name for name, field in fields(part).items() if field.required)],
    }


def _field(field: Field, doc: str, parts: Mapping[str, type[Part]]) -> Schema:
    told: Schema = {"description": " ".join(doc.split())} if doc else {}
    if isinstance(field.default, bool | int | float | str):
        told["default"] = field.default
    return told | _form(field.form, parts)


def _form(form: FieldForm, parts: Mapping[str, type[Part]]) -> Schema:
    match form:
        case Integer() | Real() | NumberOrNodeRef():
            return {"type": ["number", "string"]}
        case Boolean():
            return {"type": ["boolean", "string"]}
        case OneOf(of=words):
            return {"anyOf": [{"enum": list(words)}, {"type": "string"}]}  # the words to choose from, or a name that holds one
        case String() | AxisName() | NodeName():
            return dict(TEXT)
        case ListOf(item=item):
            return {"type": "array", "items": _form(item, parts)}
        case BooleanMap(names=names):
            flag: Schema = {"type": ["boolean", "string"]}
            each = {"type": "object", "properties": dict.fromkeys(names, flag), "additionalProperties": False}
            return {"anyOf": [flag, each]}
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
        "properties": {"type": {"enum": names}},
        "allOf": [_when_typed(name) for name in names],
    }
    return {"anyOf": [word, filled, *([_ref("group"), _ref("repeat"), _ref("scan")] if computes else [])]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}
