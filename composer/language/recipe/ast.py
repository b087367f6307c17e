"""The tree of a recipe: the names of blocks, fields and ports are checked, and no value is computed yet."""

from __future__ import annotations

from collections.abc import Mapping as TypingMapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from blocks.core import Library, Part
from composer.diagnostics import Diagnostic, Span
from composer.language.expressions.ast import Expression
from composer.language.yaml.nodes import AmbiguousBlocks, YamlMapping, YamlNode, YamlScalar


@dataclass(frozen=True, slots=True, eq=False)
class ExpressionValue:
    """A number, a boolean, a string or an edge: the field decides."""

    expression: Expression
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class TextValue:
    """Text as it is written."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class ListValue:
    """A list of values."""

    items: tuple[WrittenValue, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class MapValue:
    """Values by names of one's own."""

    entries: tuple[tuple[str, WrittenValue], ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class NamedTexts:
    """Texts by name."""

    texts: tuple[tuple[str, Span, TextValue], ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class BoolsValue:
    """Booleans set one by one."""

    flags: tuple[tuple[str, ExpressionValue], ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class MaskValue:
    """A mask expression."""

    expression: Expression
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class SlotValue:
    """What fills a slot."""

    what: NodeContent
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class GivenValue:
    """What is written for a param of a block that the recipe defines: the param says how it is read."""

    node: YamlNode
    span: Span


WrittenValue: TypeAlias = (
    ExpressionValue | TextValue | ListValue | MapValue | NamedTexts | BoolsValue | MaskValue | SlotValue | GivenValue
)


@dataclass(frozen=True, slots=True, eq=False)
class FieldEntry:
    """A field with what is written for it."""

    name: str
    key: Span
    value: WrittenValue | None
    """None: it could not be read, which has been reported."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgeDecl:
    """One reference, or several under one port."""

    port: str
    """The port's name; nothing for the first one."""
    key: Span
    references: tuple[Expression, ...] | None
    """None: one could not be read, which has been reported."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeOptions:
    """The options of a node, beside the fields of its block."""

    edges: tuple[EdgeDecl, ...] = ()
    edges_span: Span | None = None
    when: Expression | None = None
    tie: Expression | tuple[tuple[str, Span, Expression], ...] | None = None
    """Another node, or own parameter names, each with the parameter it is tied to."""
    trainable: Expression | None = None
    misread: bool = False
    """Whether an edge could not be read, which has been reported."""


@dataclass(frozen=True, slots=True, eq=False)
class UseDecl:
    """A block with its fields."""

    part: type[Part]
    type_span: Span
    fields: tuple[FieldEntry, ...]
    options: NodeOptions
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class BlockChoice:
    """A block by name: its type, a param or an `each` value that holds one, `none`, or a conditional between such names."""

    expression: Expression
    span: Span
    options: NodeOptions = NodeOptions()
    family: type[Part] | None = None
    """What a slot takes, where this fills one."""


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """One of two blocks, whichever a condition says."""

    condition: ExpressionValue
    then: NodeContent | None
    otherwise: NodeContent | None
    """None: it could not be read, which has been reported."""
    span: Span
    options: NodeOptions = NodeOptions()


@dataclass(frozen=True, slots=True, eq=False)
class GroupDecl:
    """A part of the model with a graph of its own."""

    body: GraphBody
    options: NodeOptions
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class RepeatDecl:
    """A graph that is passed through several times."""

    count: ExpressionValue
    index: str
    index_span: Span
    each: tuple[tuple[str, Span, YamlNode], ...]
    body: GraphBody
    options: NodeOptions
    span: Span
    share: ExpressionValue | None = None
    """Whether all passes have one set of weights."""


@dataclass(frozen=True, slots=True, eq=False)
class ScanDecl:
    """A graph that is passed through once for each step along an axis, with one set of weights."""

    axis: str
    axis_span: Span
    body: GraphBody
    options: NodeOptions
    span: Span


NodeContent: TypeAlias = UseDecl | BlockChoice | Conditional | GroupDecl | RepeatDecl | ScanDecl


@dataclass(frozen=True, slots=True, eq=False)
class NodeDecl:
    """A node of a graph as it is written."""

    name: str
    span: Span
    what: NodeContent | None
    """None: it could not be read, which has been reported."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphBody:
    """The nodes of a graph and what it returns."""

    nodes: tuple[NodeDecl, ...]
    outputs: tuple[tuple[str, Span, Expression], ...]
    span: Span


ParamType = Literal["int", "float", "bool", "str", "choice", "block", "mask"]


@dataclass(frozen=True, slots=True, eq=False)
class Param:
    """A hyperparameter: its default, and which values it may have."""

    name: str
    span: Span
    type: ParamType | None
    """None: the type of its default. Of a list, the type of its items, which `minimum`, `maximum` and `of` are about too."""
    default: YamlNode | None
    required: bool = False
    listed: bool = False
    """Whether it is a list."""
    minimum: ExpressionValue | None = None
    maximum: ExpressionValue | None = None
    of: tuple[str, ...] = ()
    doc: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class TypeDecl:
    """A type as it is written: dtype and axis expressions; `leading` where it starts with `...`."""

    dtype: Literal["int", "float", "bool"]
    axes: tuple[Expression, ...]
    leading: bool
    span: Span
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class InputDecl:
    """One input of the model."""

    name: str
    span: Span
    type: TypeDecl
    optional: bool
    default: ExpressionValue | None


@dataclass(frozen=True, slots=True, eq=False)
class InitRule:
    """A pattern over parameter names with the initializer of what it matches."""

    pattern: str
    span: Span
    how: Literal["normal", "uniform", "constant"]
    value: ExpressionValue | None
    """None where there is a formula alone."""
    low: ExpressionValue | None = None
    """The least value of `uniform`, where both are written."""
    formula: ExpressionValue | None = None
    when: ExpressionValue | None = None
    """The rule is left out unless this is true."""


@dataclass(frozen=True, slots=True, eq=False)
class AdapterRule:
    """A pattern over the names of linear maps with the adapter that they get, or over those of what is trained as a whole."""

    pattern: str
    span: Span
    rank: ExpressionValue | None
    """None: it is trained as a whole."""
    alpha: ExpressionValue | None = None
    """None: as large as the rank."""
    dropout: ExpressionValue | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A block that a recipe defines from others."""

    part: type[Part]
    """What names it: a part with its params as fields and its inputs as ports."""
    span: Span
    params: tuple[Param, ...]
    inputs: tuple[InputDecl, ...]
    body: GraphBody
    init: tuple[InitRule, ...]
    library: Library
    """The blocks that it may name."""
    outer: type[Part] | None
    """The block under whose `blocks` it is defined."""
    root: YamlMapping


@dataclass(frozen=True, slots=True, eq=False)
class LossDecl:
    """A loss of the recipe's own."""

    name: str
    span: Span
    what: UseDecl | None
    """None: it could not be read, which has been reported."""


@dataclass(frozen=True, slots=True, eq=False)
class ParsedRecipe:
    """A whole recipe, parsed."""

    name: str
    doc: str
    paper: str
    task: str
    task_span: Span | None
    params: tuple[Param, ...]
    inputs: tuple[InputDecl, ...]
    body: GraphBody
    positions: tuple[tuple[str, Span, Expression], ...]
    losses: tuple[LossDecl, ...]
    init: tuple[InitRule, ...]
    adapters: tuple[AdapterRule, ...]
    checkpoints: YamlMapping | None
    root: YamlMapping
    name_scalar: YamlScalar
    diagnostics: tuple[Diagnostic, ...]
    library: Library
    """The blocks that its graph may name."""
    definitions: TypingMapping[type[Part], Definition] = field(default_factory=dict)
    """Every block that it defines, and those that these define for themselves."""
    ambiguous_blocks: AmbiguousBlocks = field(default_factory=dict)
    """Names of blocks that two of the files it uses give to different ones, each with the two places."""
    readable: bool = True
    """Whether params, inputs and graph could be read; otherwise each name in them would be reported as missing."""
