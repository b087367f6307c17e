"""A part's fields as the language sees them: what may be written, between which bounds, with which default."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import annotated_types
from pydantic import Field as _field
from pydantic_core import PydanticUndefined

from blocks.core.part import Own, Part

Size = Annotated[int, annotated_types.Ge(1)]
"""A width or a count of at least one."""
Count = Annotated[int, annotated_types.Ge(0)]
Probability = Annotated[float, annotated_types.Ge(0), annotated_types.Lt(1)]
Positive = Annotated[float, annotated_types.Gt(0)]


def derived(expression: str) -> Any:
    """A default that is computed from the block's sizes and other fields: `hidden: Size = derived("4 * dim")`."""
    return _field(default=None, json_schema_extra={"derived": expression})


class Edge(str):
    """The annotation of a field that names a node: the argument of `valid(m)`. Holds the port that carries it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number."""

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
class Flag:
    """`true` or `false`."""


@dataclass(frozen=True, slots=True)
class Word:
    """One of a few words."""

    of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """Text as it is written, such as a pattern."""


@dataclass(frozen=True, slots=True)
class AxisName:
    """The name of an axis of the first input, or `last`."""


Axis: TypeAlias = Annotated[str, AxisName()]
"""The annotation of a field that names an axis."""


@dataclass(frozen=True, slots=True)
class EdgeName:
    """A reference to a node or an input."""


@dataclass(frozen=True, slots=True)
class OrEdge:
    """A number, or a reference to a node that gives it: the argument of `prefix(n)`."""

    number: Integer | Real


@dataclass(frozen=True, slots=True)
class SlotOf:
    """A part of a family."""

    family: type[Part]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list."""

    item: Form


@dataclass(frozen=True, slots=True)
class FlagsBy:
    """One flag for all of the names, or a mapping that sets them one by one; the others keep the default."""

    names: tuple[str, ...]


Form: TypeAlias = Integer | Real | Flag | Word | Text | AxisName | EdgeName | OrEdge | SlotOf | ListOf | FlagsBy


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a part."""

    name: str
    form: Form
    required: bool
    default: Any
    """The value where nothing is written; meaningless where `derived` or `required`."""
    derived: str
    """The expression that gives the default, or nothing."""
    nullable: bool
    """Whether `none` may be written."""


@cache
def fields(part: type[Part]) -> Mapping[str, Field]:
    """The fields of a part, in the order of their declaration."""
    if part.declared is not None:
        return part.declared
    return {name: _describe(name, info) for name, info in part.model_fields.items()}


def _describe(name: str, info: Any) -> Field:
    extra = info.json_schema_extra or {}
    options = [option for option in _options(info.annotation) if option not in (type(None), Own)]
    flags = next((option for option in options if get_origin(option) is dict), None)
    form = _form(flags or options[0], info.metadata)
    if isinstance(form, Integer | Real) and Edge in options:
        form = OrEdge(form)
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


def _form(annotation: Any, metadata: list[Any]) -> Form:
    if get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        metadata = [*metadata, *more]
    if get_origin(annotation) is Literal:
        return Word(get_args(annotation))
    if get_origin(annotation) is tuple:
        return ListOf(_form(get_args(annotation)[0], []))
    if get_origin(annotation) is dict:
        return FlagsBy(get_args(get_args(annotation)[0]))
    if annotation is bool:
        return Flag()
    if annotation is int:
        return Integer(_bound(metadata, annotated_types.Ge, "ge"), _bound(metadata, annotated_types.Le, "le"))
    if annotation is float:
        return Real(
            _bound(metadata, annotated_types.Ge, "ge"),
            _bound(metadata, annotated_types.Le, "le"),
            _bound(metadata, annotated_types.Gt, "gt"),
            _bound(metadata, annotated_types.Lt, "lt"),
        )
    if annotation is Edge:
        return EdgeName()
    if annotation is str:
        return next((item for item in metadata if isinstance(item, AxisName)), Text())
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return SlotOf(annotation)
    raise TypeError(f"a field cannot be a {annotation}")


def _bound(metadata: list[Any], kind: type, name: str) -> Any:
    return next((getattr(item, name) for item in metadata if isinstance(item, kind)), None)


@cache
def field_docs(part: type[Part]) -> Mapping[str, str]:
    """The line under each field in the source of the class; read only when asked for."""
    body = ast.parse(textwrap.dedent(inspect.getsource(part))).body[0]
    assert isinstance(body, ast.ClassDef)
    docs: dict[str, str] = {}
    for pair in pairwise(body.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=text)):
                docs[name] = inspect.cleandoc(str(text))
    return docs
