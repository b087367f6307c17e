"""Every key of the language: where it stands, what it holds, what reads it, what writes it, and what it means.

Whatever lists keys asks here: which keys are known and which one a misspelled word may mean, how `extends` and overrides merge
two values of a key, what `uses` takes from a file, what `arco expand` writes and in which order, and the JSON schema. A new key
is a row of `TABLE` beside the function that reads it and, where its value is computed, the one that writes it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from composer.language.expressions.functions import FUNCTIONS
from composer.language.expressions.lexer import KEYWORDS
from composer.language.recipe.ast import ParamType
from composer.language.recipe.schema_fragments import (
    BOOLEAN,
    EDGES,
    EXPRESSION,
    NAME,
    OBJECT,
    PUBLISHED_VALUE,
    SIZE,
    STRING,
    STRING_OR_LIST,
    TEXT,
    TEXT_OR_LIST,
    TEXTS,
    Schema,
    either,
    list_of,
    mapping,
    names_to,
    one_item,
    one_of,
    ref,
)
from composer.language.tasks import TASKS
from composer.language.wording import BOOLEANS

LANGUAGE = 1
FULL = "full"
"""What is written in place of an adapter for what is trained as a whole."""
"""The version of the language."""

KeyPlace: TypeAlias = Literal[
    "composition", "recipe", "block", "node", "compute", "choice", "group", "repeat", "scan", "loss", "param", "input",
    "checkpoint", "config", "config param", "config constant", "rule", "ignored", "rotary permutation", "adapter",
]  # fmt: skip
"""Where keys stand; those of `composition` stand beside a recipe's own, and are worked out before the others are read."""
KeyContent: TypeAlias = Literal[
    "text",
    "value",
    "params",
    "blocks",
    "inputs",
    "graph",
    "losses",
    "initializers",
    "checkpoints",
    "edges",
    "default",
    "node",
    "size",
    "config",
    "additions",
]
"""What a key holds, which decides how two values of it are merged and where a path leads on below it: `text` names nothing of
the recipe, `value` is merged as far as it consists of mappings, a list of `additions` is added to another, and the others have
forms of their own."""
KeyWriter: TypeAlias = Literal["verbatim", "computed", "resolved"]
"""What of a key is written out by `expand`: its text as it stands, what its own function computes, or nothing, since what it says
has been carried out."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyRow:
    """A key of the language, in every place where it means the same."""

    name: str
    places: tuple[KeyPlace, ...]
    doc: str
    """What it means, in the words of the language page."""
    content: KeyContent
    schema: Schema
    """What may be written for it, as JSON Schema."""
    parser: str
    """The function that reads it, by its path inside the package."""
    writer: KeyWriter
    multiline: bool = False
    """Whether a mapping that has it is never written on one line."""
    required: bool = False
    """Whether it must be there; a recipe over another one, and a file of blocks, need less."""
    whole_model: bool = False
    """Whether it says what only a whole model can have, so that no recipe with it can be used as a block."""


_RECIPE: tuple[KeyPlace, ...] = ("recipe",)
_DEFINED: tuple[KeyPlace, ...] = ("recipe", "block")
_REGION: tuple[KeyPlace, ...] = ("group", "repeat", "scan")
_NODE: tuple[KeyPlace, ...] = ("node", "choice", "group", "repeat", "scan")
_ANY_NODE: tuple[KeyPlace, ...] = ("node", "compute", "choice", "group", "repeat", "scan")
_PARSER, _DECLARED, _GRAPHS = "language.recipe.parser.parse", "language.recipe.declarations", "language.recipe.graphs.GraphParser"
_OPTIONS, _COMPOSED = "language.recipe.node_options", "language.composition.extends.compose"
_RULES, _CONFIG = "weights.rule_reader.RuleReader.rules", "weights.config_syntax.ConfigReader.config"

# fmt: off
TABLE: tuple[KeyRow, ...] = (
    # a recipe, and a block that one defines
    KeyRow("recipe", _RECIPE, "the name: letters, digits and underscores, a letter first", "text", NAME, _PARSER, "verbatim",
        required=True),
    KeyRow("language", _RECIPE, "the version of the language, `1`", "text", one_of([LANGUAGE, str(LANGUAGE)]), _PARSER,
        "computed"),
    KeyRow("doc", _DEFINED, "a description", "text", TEXT, _PARSER, "verbatim"),
    KeyRow("paper", _DEFINED, "where the architecture was published", "text", TEXT, _PARSER, "verbatim"),
    KeyRow("task", _RECIPE, "what the model is for: the names of its inputs and outputs, and its loss", "text",
        one_of(sorted(TASKS)), _PARSER, "verbatim"),
    KeyRow("extends", ("composition",), "another recipe that this one changes", "text", STRING, _COMPOSED, "resolved"),
    KeyRow("uses", ("composition",), "files, or recipes of the zoo, whose blocks become block types here", "text",
        STRING_OR_LIST, _COMPOSED, "resolved"),
    KeyRow("params", _DEFINED, "hyperparameters and their defaults", "params", mapping(ref("param")), f"{_DECLARED}.params",
        "computed"),
    KeyRow("blocks", _DEFINED, "block definitions, composed of other blocks", "blocks", ref("blocks"),
        "language.recipe.definitions.DefinitionParser.under", "resolved"),
    KeyRow("inputs", _RECIPE, "the model's typed inputs, in the order in which they are passed", "inputs",
        mapping(either(STRING, ref("input"))), f"{_DECLARED}.inputs", "computed", required=True),
    KeyRow("inputs", ("block",), "its ports, each with its type", "inputs", mapping(either(STRING, ref("input"))),
        f"{_DECLARED}.ports", "resolved"),
    KeyRow("graph", _RECIPE, "the nodes, by name", "graph", OBJECT, f"{_GRAPHS}.body", "computed", multiline=True, required=True),
    KeyRow("graph", ("block",), "the nodes, by name", "graph", ref("open_graph"), f"{_GRAPHS}.body", "resolved",
        multiline=True, required=True),
    KeyRow("outputs", _DEFINED, "name → reference; by default, the last node under its own name", "value", mapping(STRING),
        f"{_OPTIONS}.outputs", "computed"),
    KeyRow("positions", _RECIPE, "axis → an int node with its positions, if they do not count from 0", "value",
        mapping(STRING), f"{_OPTIONS}.named_references", "computed", whole_model=True),
    KeyRow("losses", _RECIPE, "losses besides the task's, by name", "losses", mapping(ref("loss")),
        "language.recipe.losses.losses", "computed"),
    KeyRow("init", _DEFINED, "pattern over parameter names → initializer", "initializers", mapping(ref("initializer")),
        f"{_DECLARED}.init", "computed"),
    KeyRow("adapters", _RECIPE, "pattern over the names of linear maps → the adapter (LoRA) that is trained in place of their "
        "weights, or `full`; all else is frozen", "initializers", mapping(either(one_of([FULL]), ref("adapter"))),
        f"{_DECLARED}.adapters", "computed", whole_model=True),
    KeyRow("figure", _RECIPE, "how the model is drawn, by the keys of a figure sheet", "value", ref("figure"),
        "draw.figure_sheet.sheet_under", "verbatim"),
    KeyRow("checkpoints", _RECIPE, "how parameters map to published checkpoints", "checkpoints",
        mapping(ref("checkpoint")), _RULES, "computed"),

    # an adapter
    KeyRow("rank", ("adapter",), "the number of rows of A and of columns of B, in `y = x Wᵀ + alpha / rank · x Aᵀ Bᵀ`", "value",
        EXPRESSION, f"{_DECLARED}.adapters", "computed", required=True),
    KeyRow("alpha", ("adapter",), "the factor of what is added, times the rank; by default the rank, so that it is 1", "value",
        EXPRESSION, f"{_DECLARED}.adapters", "computed"),
    KeyRow("dropout", ("adapter",), "the share of what A reads that is set to zero in training", "value", EXPRESSION,
        f"{_DECLARED}.adapters", "computed"),

    # what a recipe declares by name
    KeyRow("default", ("param",), "the value if none is set", "default",
        either(EXPRESSION, OBJECT, list_of(either(EXPRESSION, OBJECT))), f"{_DECLARED}.params", "resolved"),
    KeyRow("type", ("param",), "what it holds, `[int]` for a list of integers", "value",
        either(one_of(get_args(ParamType)), one_item(one_of(get_args(ParamType)))), f"{_DECLARED}.params", "resolved"),
    KeyRow("required", ("param",), "whether it has no default and must be set", "value", BOOLEAN, f"{_DECLARED}.params",
        "resolved"),
    KeyRow("min", ("param",), "the smallest value", "value", EXPRESSION, f"{_DECLARED}.params", "resolved"),
    KeyRow("max", ("param",), "the largest value", "value", EXPRESSION, f"{_DECLARED}.params", "resolved"),
    KeyRow("of", ("param",), "the strings that a choice allows", "value", list_of(TEXT), f"{_DECLARED}.params", "resolved"),
    KeyRow("doc", ("param",), "a description in one line", "text", TEXT, f"{_DECLARED}.params", "resolved"),
    KeyRow("type", ("input",), "such as `int[batch, time]`", "value", STRING, f"{_DECLARED}.inputs", "computed", required=True),
    KeyRow("default", ("input",), "the value if none is passed", "value", EXPRESSION, f"{_DECLARED}.inputs", "computed"),
    KeyRow("doc", ("input",), "a description in one line", "text", TEXT, f"{_DECLARED}.inputs", "resolved"),

    # nodes
    KeyRow("type", ("node",), "the block", "value", STRING, f"{_GRAPHS}.use", "computed", required=True),
    KeyRow("if", ("choice",), "the condition", "value", EXPRESSION, f"{_GRAPHS}.content", "resolved", required=True),
    KeyRow("then", ("choice",), "the block where it is true", "node", ref("node"), f"{_GRAPHS}.content", "resolved",
        required=True),
    KeyRow("else", ("choice",), "the block where it is not", "node", ref("node"), f"{_GRAPHS}.content", "resolved",
        required=True),
    KeyRow("repeat", ("repeat",), "how many times the graph is passed through", "value", EXPRESSION, f"{_GRAPHS}.content",
        "computed", multiline=True, required=True),
    KeyRow("as", ("repeat",), "the name of the index, `layer` unless written", "value", STRING, f"{_GRAPHS}.content", "resolved"),
    KeyRow("each", ("repeat",), "values that change from pass to pass", "value", OBJECT, f"{_GRAPHS}.content", "computed"),
    KeyRow("share", ("repeat",), "whether all passes have one set of weights", "value", EXPRESSION, f"{_GRAPHS}.content",
        "computed"),
    KeyRow("scan", ("scan",), "the axis along which it goes, step by step", "value", TEXT, f"{_GRAPHS}.content", "computed",
        multiline=True, required=True),
    KeyRow("compute", ("compute",), "a pointwise formula, whose names are edges or numbers", "value", TEXT,
        f"{_GRAPHS}.formula", "computed", required=True),
    KeyRow("axes", ("compute",), "the names of the axes of each value, where these do not match in order", "value",
        mapping(STRING), f"{_GRAPHS}.formula", "computed"),
    KeyRow("in", ("compute",), "what names of the formula read, where these are not names of nodes", "edges", mapping(STRING),
        f"{_OPTIONS}.node_options", "computed"),
    KeyRow("in", _NODE, "the inputs: one reference for the first port, a list, or a mapping from port to reference", "edges",
        EDGES, f"{_OPTIONS}.node_options", "computed"),
    KeyRow("graph", _REGION, "the nodes inside, by name", "graph", ref("graph"), f"{_GRAPHS}.body", "computed",
        multiline=True, required=True),
    KeyRow("outputs", _REGION, "what it returns; without it, its last node", "value", mapping(STRING),
        f"{_OPTIONS}.outputs", "computed"),
    KeyRow("when", _ANY_NODE, "the node is left out unless this is true", "value", EXPRESSION, f"{_OPTIONS}.node_options",
        "computed"),
    KeyRow("tie", _NODE, "the node whose parameters are shared, or own parameters, each with the one that it shares", "value",
        either(STRING, names_to(STRING)), f"{_OPTIONS}.node_options", "computed"),
    KeyRow("trainable", _NODE, "whether training changes it", "value", EXPRESSION, f"{_OPTIONS}.node_options", "computed"),
    KeyRow("type", ("loss",), "the loss; without it, the mean of the scalars that it reads", "value", STRING,
        "language.recipe.losses.losses", "computed"),
    KeyRow("in", ("loss",), "the inputs of the loss", "edges", EDGES, "language.recipe.losses.losses", "computed"),
    KeyRow("when", ("loss",), "the loss is left out unless this is true", "value", EXPRESSION, "language.recipe.losses.losses",
        "computed"),

    # a published model type under `checkpoints`
    KeyRow("strip_prefix", ("checkpoint",), "a prefix that some files have", "value", TEXT, _RULES, "computed"),
    KeyRow("like", ("checkpoint",), "the model type, or the recipe, whose map this one changes", "value", TEXT, _COMPOSED,
        "resolved"),
    KeyRow("config", ("checkpoint",), "what each key of the published `config.json` means", "config", ref("config"), _CONFIG,
        "resolved"),
    KeyRow("rules", ("checkpoint",), "our names, each with the published one, or with a list of which one applies", "value",
        mapping(either(TEXT, ref("rule"), list_of(ref("rule")), {"type": "null"})), _RULES, "computed", multiline=True),
    KeyRow("legacy_names", ("checkpoint",), "last parts of names in older files, each with that in newer ones",
        "value", mapping(TEXT), _RULES, "computed"),
    KeyRow("ignore", ("checkpoint",), "published tensors that are not needed", "additions",
        list_of(either(TEXT, ref("ignored"))), _RULES, "computed"),
    KeyRow("copies", ("checkpoint",), "published tensors that repeat another", "value", mapping(TEXT), _RULES, "computed"),
    KeyRow("architecture", ("config",), "the class of transformers that is this model with its head", "value", TEXT, _CONFIG,
        "resolved"),
    KeyRow("params", ("config",), "paths of the recipe, each with the key that sets it", "value",
        mapping(either(TEXT_OR_LIST, ref("config_param"))), _CONFIG, "resolved"),
    KeyRow("constants", ("config",), "keys, each with the value that it must have", "value",
        mapping(either(PUBLISHED_VALUE, list_of(either(PUBLISHED_VALUE, list_of(PUBLISHED_VALUE))), ref("config_constant"))),
        _CONFIG, "resolved"),
    KeyRow("ignore", ("config",), "keys that do not change what is computed", "additions", TEXTS, _CONFIG, "resolved"),
    KeyRow("from", ("config param",), "the key, several that agree, or arithmetic over keys", "value", TEXT_OR_LIST, _CONFIG,
        "resolved"),
    KeyRow("count", ("config param",), "the key whose entries are counted", "value", TEXT_OR_LIST, _CONFIG, "resolved"),
    KeyRow("values", ("config param",), "published strings, each with ours", "value", mapping(PUBLISHED_VALUE), _CONFIG,
        "resolved"),
    KeyRow("default", ("config param",), "the value if the key is missing", "value",
        either(PUBLISHED_VALUE, list_of(PUBLISHED_VALUE)), _CONFIG, "resolved"),
    KeyRow("times", ("config param",), "the key that counts how often a single value stands in a list", "value", TEXT, _CONFIG,
        "resolved"),
    KeyRow("optional", ("config param",), "whether the recipe's own value is kept if the key is missing", "value", BOOLEAN,
        _CONFIG, "resolved"),
    KeyRow("each", ("config constant",), "what each item of the list is", "value", EXPRESSION, _CONFIG, "resolved",
        required=True),
    KeyRow("count", ("config constant",), "how many items the list has", "value", EXPRESSION, _CONFIG, "resolved", required=True),
    KeyRow("from", ("rule",), "the published name, or those that different files have", "value", TEXT_OR_LIST, _RULES, "computed",
        required=True),
    KeyRow("from", ("ignored",), "the published name", "value", TEXT, _RULES, "computed", required=True),
    KeyRow("when", ("rule",), "the rule is left out unless this is true", "value", EXPRESSION, _RULES, "computed"),
    KeyRow("when", ("ignored",), "for which indices of the name it is ignored", "size", EXPRESSION, _RULES, "computed",
        required=True),
    KeyRow("reshape", ("rule",), "the axes of the published tensor", "size", list_of(SIZE), _RULES, "computed"),
    KeyRow("transpose", ("rule",), "whether it is stored as `[in, out]`", "value", BOOLEAN, _RULES, "computed"),
    KeyRow("split", ("rule",), "how many of our tensors it holds", "value", TEXT, _RULES, "computed"),
    KeyRow("concat", ("rule",), "how many published tensors make one of ours", "value", TEXT, _RULES, "computed"),
    KeyRow("axis", ("rule",), "the axis of ours along which it is split or concatenated", "value", TEXT, _RULES, "computed"),
    KeyRow("interleave", ("rule",), "the number of groups along that axis that hold a part of each piece", "size", SIZE,
        _RULES, "computed"),
    KeyRow("stack", ("rule",), "the index of the published names that counts along our first axis", "value", TEXT, _RULES,
        "computed"),
    KeyRow("permute_rotary", ("rule",), "the heads whose rows are published in another layout of rotary positions", "size",
        either(SIZE, ref("rotary_permutation")), _RULES, "computed"),
    KeyRow("offset", ("rule",), "the constant by which ours exceeds it", "size", SIZE, _RULES, "computed"),
    KeyRow("head_dim", ("rotary permutation",), "the number of rows of a head", "size", SIZE, _RULES, "computed", required=True),
    KeyRow("rotary_dim", ("rotary permutation",), "how many of them are rotated", "size", SIZE, _RULES, "computed"),
    KeyRow("of", ("rotary permutation",), "the pieces that are permuted", "value", TEXTS, _RULES, "computed"),
    KeyRow("ours", ("rotary permutation",), "our layout", "value", TEXT, _RULES, "computed"),
)
# fmt: on
KEYS: Mapping[KeyPlace, dict[str, KeyRow]] = {
    place: {key.name: key for key in TABLE if place in key.places} for place in get_args(KeyPlace)
}
"""The keys of each place, in the order in which they are written."""
MULTILINE = frozenset(key.name for key in TABLE if key.multiline)
"""Keys whose mapping is never written on one line."""
NodeKind: TypeAlias = Literal["repeat", "scan", "node", "compute", "group", "choice"]
NODE_KINDS: Mapping[str, NodeKind] = {
    "repeat": "repeat", "scan": "scan", "type": "node", "compute": "compute", "graph": "group", "if": "choice",
}  # fmt: skip
"""The key that makes a node one of a kind; of several the first decides."""

WORDS = frozenset({"input", "none", *BOOLEANS, *KEYWORDS})
"""Words that cannot name a node."""
VALUE_WORDS = WORDS | FUNCTIONS.keys()
"""Words that cannot name a value."""


def is_text(key: str) -> bool:
    """Return whether the value of a key of a recipe is plain text, which names nothing."""
    return key in KEYS["recipe"] and KEYS["recipe"][key].content == "text"


def kind_of_node(keys: Container[str]) -> NodeKind | None:
    """Return which kind of node has these keys; None where none of them says so."""
    return next((place for key, place in NODE_KINDS.items() if key in keys), None)


def keys_of(place: KeyPlace) -> tuple[str, ...]:
    """Return the keys of a place."""
    return tuple(KEYS[place])
