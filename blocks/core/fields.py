"""The fields of a part: what each accepts, its bounds and its default."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import annotated_types
from pydantic import Field as _field
from pydantic_core import PydanticUndefined

from blocks.core.formula import Formula
from blocks.core.part import Builtin, Part
from blocks.core.per_class import per_class

PositiveInt = Annotated[int, annotated_types.Ge(1)]
"""An integer of at least 1, such as a width or a count."""
NonNegativeInt = Annotated[int, annotated_types.Ge(0)]
Probability = Annotated[float, annotated_types.Ge(0), annotated_types.Lt(1)]
PositiveFloat = Annotated[float, annotated_types.Gt(0)]


def derived(expression: str) -> Any:
    """Return the default of a field that is computed from the block's sizes and its other fields.

    Args:
        expression: Arithmetic over names of axes and fields.

    Examples:
        >>> from blocks.core import Block, PositiveInt, derived, fields
        >>> class Wide(Block):
        ...     hidden: PositiveInt = derived("4 * dim")
        >>> fields(Wide)["hidden"].derived
        '4 * dim'
    """
    return _field(default=None, json_schema_extra={"derived": expression})


class NodeRef(str):
    """The annotation of a field that names a node, such as the argument of `valid(m)`; its value is the name of the port."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer."""

    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Real:
    """A number; bounds are inclusive, `above` and `below` exclusive."""

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None


@dataclass(frozen=True, slots=True)
class Boolean:
    """`true` or `false`."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few strings."""

    of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class String:
    """A string that is used verbatim, such as a pattern."""


@dataclass(frozen=True, slots=True)
class AxisName:
    """An axis of the first input: its name, its length, its place counted from the end, or `first` or `last`."""


AxisRef: TypeAlias = Annotated[str, AxisName()]
"""The annotation of a field that names an axis of the first input."""


@dataclass(frozen=True, slots=True)
class AxisOrAxes:
    """An axis of the first input, or a list of some."""

    item: AxisName = AxisName()


AxesRef: TypeAlias = Annotated[str | tuple[str, ...], AxisOrAxes()]
"""The annotation of a field that names an axis of the first input, or a list of some; its value is the name or the names."""


@dataclass(frozen=True, slots=True)
class AxisLength:
    """The length of an axis: a number, or the name of an axis of an input whose length is known only when the model runs."""


AxisSize: TypeAlias = Annotated[int | str, AxisLength()]
"""The annotation of a field with the length of an axis; its value is the number or the name."""


@dataclass(frozen=True, slots=True)
class AxisFormula:
    """A formula in the language of numbers, over names of its own."""


AxisFormulaText: TypeAlias = Annotated[str, AxisFormula()]
"""The annotation of a field with a formula; its value is the text in which every name that has a number is that number."""


@dataclass(frozen=True, slots=True)
class FormulaForm:
    """A pointwise formula; the values that it reads are those of the block's one port."""


@dataclass(frozen=True, slots=True)
class AxesForm:
    """Names for the axes of each input, of which equal ones are one axis: a list in the order of the inputs, or for a block with
    a formula a mapping from what it calls them.
    """


InputAxes: TypeAlias = Annotated[tuple[str, ...], AxesForm()]
"""The annotation of a field that names the axes of the inputs of a block that `broadcasts`."""


@dataclass(frozen=True, slots=True)
class NodeName:
    """A reference to a node or an input."""


@dataclass(frozen=True, slots=True)
class NumberOrNodeRef:
    """A number, or a reference to a node with the number, such as the argument of `prefix(n)`."""

    number: Integer | Real


@dataclass(frozen=True, slots=True)
class SlotOf:
    """A part of a family."""

    family: type[Part]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list."""

    item: FieldForm


@dataclass(frozen=True, slots=True)
class EachAxis:
    """One number for all axes that a block works along, or a list with one for each of them; `none` is 0."""

    item: Integer | Real
    words: tuple[str, ...] = ()
    """Words that may stand in place of the number."""


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping from names: those of axes of the first input, or names of one's own."""

    item: FieldForm
    of_axes: bool = False
    """Whether the names are those of axes."""


@dataclass(frozen=True, slots=True)
class BooleanMap:
    """One boolean for all of the names, or a mapping that sets some of them; the others keep the default."""

    names: tuple[str, ...]


FieldForm: TypeAlias = (
    Integer
    | Real
    | Boolean
    | OneOf
    | String
    | AxisName
    | AxisOrAxes
    | AxisLength
    | AxisFormula
    | FormulaForm
    | AxesForm
    | NodeName
    | NumberOrNodeRef
    | SlotOf
    | ListOf
    | EachAxis
    | MapOf
    | BooleanMap
)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a part."""

    name: str
    form: FieldForm
    required: bool
    default: Any
    """The default; meaningless if the field is `derived` or `required`."""
    derived: str
    """The expression of the default, or an empty string."""
    nullable: bool
    """Whether the field accepts `none`."""


@per_class
def fields(part: type[Part]) -> Mapping[str, Field]:
    """Return the fields of a part by name, in the order of their declaration.

    Args:
        part: The class of the part.

    Examples:
        >>> from blocks.core import fields, standard
        >>> fields(standard()["linear"])["bias"].default
        True
    """
    if part.declared is not None:
        return part.declared
    return {name: _describe(name, info) for name, info in part.model_fields.items()}


def _describe(name: str, info: Any) -> Field:
    extra = info.json_schema_extra or {}
    options = [option for option in _options(info.annotation) if option not in (type(None), Builtin)]
    flags = next((option for option in options if get_origin(option) is dict), None)
    lists = next((option for option in options if get_origin(option) is tuple), None)
    form = _form(flags or options[0], info.metadata)
    if lists is not None and len(options) > 1 and not isinstance(form, AxisOrAxes):
        words = tuple(word for option in options if get_origin(option) is Literal for word in get_args(option))
        item = _form(get_args(lists)[0], [])
        assert isinstance(item, Integer | Real)
        form = EachAxis(item, words)
    if isinstance(form, Integer | Real) and NodeRef in options:
        form = NumberOrNodeRef(form)
    default = None if info.default is PydanticUndefined else info.default
    return Field(
        name=name,
        form=form,
        required=info.is_required(),
        default=default,
        derived=extra.get("derived", ""),
        nullable=type(None) in _options(info.annotation) or (default is None and not info.is_required() and not extra),
    )


def _options(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _form(annotation: Any, metadata: list[Any]) -> FieldForm:
    if get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        metadata = [*metadata, *more]
    if get_origin(annotation) is Literal:
        return OneOf(get_args(annotation))
    if annotation is Formula:
        return FormulaForm()
    if axes := next((item for item in metadata if isinstance(item, AxesForm)), None):
        return axes
    if get_origin(annotation) is tuple:
        return ListOf(_form(get_args(annotation)[0], []))
    if get_origin(annotation) is dict:
        key, item = get_args(annotation)
        if get_origin(key) is Literal:
            return BooleanMap(get_args(key))
        return MapOf(_form(item, []), isinstance(_form(key, []), AxisName))
    if annotation is bool:
        return Boolean()
    if annotation is int:
        return Integer(_bound(metadata, annotated_types.Ge, "ge"), _bound(metadata, annotated_types.Le, "le"))
    if annotation is float:
        return Real(
            _bound(metadata, annotated_types.Ge, "ge"),
            _bound(metadata, annotated_types.Le, "le"),
            _bound(metadata, annotated_types.Gt, "gt"),
            _bound(metadata, annotated_types.Lt, "lt"),
        )
    if annotation is NodeRef:
        return NodeName()
    if own := next((item for item in metadata if isinstance(item, AxisName | AxisOrAxes | AxisLength | AxisFormula)), None):
        return own
    if annotation is str:
        return String()
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return SlotOf(annotation)
    raise TypeError(f"a field cannot be a {annotation}")


def _bound(metadata: list[Any], kind: type, name: str) -> Any:
    return next((getattr(item, name) for item in metadata if isinstance(item, kind)), None)


@per_class
def formula_field(part: type[Part]) -> str:
    """Return the field with the formula of a part; an empty string for a part without one.

    Args:
        part: The class of the part.

    Examples:
        >>> from blocks.core import standard
        >>> from blocks.core.fields import formula_field
        >>> formula_field(standard()["compute"]), formula_field(standard()["linear"])
        ('formula', '')
    """
    return next((name for name, field in fields(part).items() if isinstance(field.form, FormulaForm)), "")


def length_maps(part: Part) -> list[dict[str, Any]]:
    """Return the maps of a part from names of axes to their lengths.

    Args:
        part: The part.
    """
    forms = {name: field.form for name, field in fields(type(part)).items()}
    return [getattr(part, name) for name, form in forms.items() if isinstance(form, MapOf) and isinstance(form.item, AxisLength)]


def formula_of(part: Part) -> Formula | None:
    """Return the formula of a part; None for a part without one.

    Args:
        part: The part.

    Examples:
        >>> from blocks.core import Formula
        >>> from blocks.core.fields import formula_of
        >>> from blocks.core.formula import ReadValue
        >>> from blocks.primitives.compute import Compute
        >>> formula_of(Compute.model_construct(formula=Formula(ReadValue(0), text="x"))).text
        'x'
    """
    name = formula_field(type(part))
    return getattr(part, name) if name else None


@per_class
def field_docs(part: type[object]) -> Mapping[str, str]:
    """Return the string below each field in the source of the class, which is parsed on first use."""
    body = ast.parse(textwrap.dedent(inspect.getsource(part))).body[0]
    assert isinstance(body, ast.ClassDef)
    docs: dict[str, str] = {}
    for pair in pairwise(body.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=text)):
                docs[name] = inspect.cleandoc(str(text))
    return docs
