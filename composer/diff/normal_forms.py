"""Normal forms of the fields of blocks: values with the same meaning are equal."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, TypeAlias

from blocks.along_axes import axis_formulas
from blocks.core import Builtin, Formula, Part, axis_places, fields, number
from blocks.core.axis_places import LENGTH_OF
from blocks.core.fields import (
    AxesForm,
    AxisFormula,
    AxisLength,
    AxisName,
    AxisOrAxes,
    BooleanMap,
    EachAxis,
    Field,
    ListOf,
    MapOf,
    SlotOf,
    String,
    length_maps,
)
from blocks.masks.mask import Mask
from composer.diff.mask_normal_forms import MaskForm
from composer.graph.describe import phrase
from composer.graph.formula_text import formula_text
from composer.graph.ir import SlotNode
from composer.graph.typed import TypedBlock
from composer.graph.types import Axis, TensorType
from composer.language.recipe.free_names import IDENTIFIER
from composer.language.wording import boolean

Plain: TypeAlias = "bool | int | float | str | tuple[Any, ...] | None"


@dataclass(frozen=True, slots=True)
class NormalValue:
    """A number, a boolean, a string, or a list of these."""

    canonical: Plain
    """The value that is compared."""
    written: Plain
    """The value that is shown."""
    derived: bool = False
    """Whether the recipe leaves it out, so that it is computed from the sizes of the inputs."""

    def ports(self) -> Iterator[str]:
        yield from ()

    def key(self, source: Callable[[str], Any]) -> Any:
        """Return a key that is equal for values of the same meaning; none for a derived value, which changes only with others."""
        return None if self.derived else (type(self.canonical) is bool, self.canonical)

    def shown(self, edges: Mapping[str, str]) -> str:
        """Return it as a recipe would write it."""
        return shown(self.written)


@dataclass(frozen=True, slots=True)
class PartForm:
    """A part that is not a node, such as rotary positions."""

    part: Part
    fields: Mapping[str, NormalForm]

    @property
    def kind(self) -> str:
        """Its name in recipes."""
        return self.part.kind

    def ports(self) -> Iterator[str]:
        for form in self.fields.values():
            yield from form.ports()

    def key(self, source: Callable[[str], Any]) -> Any:
        """Return a key that is equal for equal types with equal fields."""
        return self.kind, tuple((name, form.key(source)) for name, form in self.fields.items())

    def shown(self, edges: Mapping[str, str]) -> str:
        """Return it in a few words."""
        return phrase("", self.part, edges).strip()


NormalForm: TypeAlias = NormalValue | PartForm | MaskForm


def forms(block: TypedBlock) -> dict[str, NormalForm]:
    """Return the normal forms of the fields of a block, except for slots, whose parts are nodes."""
    written = dict(block.node.fields)
    found: dict[str, NormalForm] = {}
    for name, field in fields(type(block.part)).items():
        value = getattr(block.part, name)
        if isinstance(written.get(name), SlotNode) or name == block.part.named_by:
            continue
        derived = bool(field.derived) and name not in written
        if isinstance(field.form, AxesForm):
            found |= _matched_axes(block, name, value)
            continue
        if isinstance(field.form, BooleanMap):
            found[name] = _flags(field.form, value, {parameter.name.partition(".")[0] for parameter in block.parameters})
            continue
        found |= _axis(block, name, field) or _axes_by_place(block, name, field) or _forms(name, field, value, derived)
    for name, adapter in block.adapters.items():
        shares = f", dropout {adapter.dropout:g}" if adapter.dropout else ""
        written_adapter = f"LoRA of rank {adapter.rank}, alpha {adapter.alpha:g}{shares}"
        found[f"adapter of {name}" if name else "adapter"] = NormalValue(astuple(adapter), written_adapter)
    return found


def _flags(form: BooleanMap, value: bool | Mapping[str, bool], there: Collection[str]) -> NormalValue:
    """Return one flag for each of several maps; those that the block does not have say nothing."""
    names = [name for name in form.names if name in there] or form.names
    flags = {name: value if isinstance(value, bool) else value.get(name, False) for name in names}
    chosen = ", ".join(name for name, flag in flags.items() if flag)
    return NormalValue(tuple(flags.items()), all(flags.values()) if len({*flags.values()}) == 1 else f"of {chosen}")


def _forms(name: str, field: Field, value: Any, derived: bool) -> dict[str, NormalForm]:
    match value:
        case Mask():
            return {name: MaskForm(value)}
        case Builtin():
            return {name: NormalValue("own", "its own")}
        case Part():
            inner = {key: getattr(value, key) for key in type(value).model_fields}
            return {name: PartForm(value, _below(type(value), inner))}
        case None if isinstance(field.form, SlotOf):
            return {}  # what fills a slot is a node of its own
    if isinstance(value, Formula):
        return {name: NormalValue((value.tree, value.numbers), formula_text(value, value.names))}
    if isinstance(field.form, BooleanMap):
        return {name: _flags(field.form, value, {*field.form.names})}
    if isinstance(field.form, EachAxis):
        value = 0 if value is None else value
        alike = isinstance(value, tuple) and len({*value}) == 1
        return {name: NormalValue(value[0], value[0]) if alike else NormalValue(value, value)}
    if isinstance(field.form, String) and isinstance(value, str) and "->" in value:
        return {name: NormalValue(alphabetic(value), value)}
    return {name: NormalValue(value, value, derived)}


def ways(block: TypedBlock) -> tuple[tuple[int | None, ...], ...]:
    """Return, for each input of a block that broadcasts, which of its axes stands at each axis of the output, or none; nothing
    where all stand in order. An axis of length 1 may stand anywhere, and counts as none.
    """
    (output,) = block.outputs.values()
    assert isinstance(output, TensorType), "what broadcasts gives a tensor"
    single = [axis.size == 1 for axis in output.axes]
    if all(one or at == place for way in block.expansions for place, (at, one) in enumerate(zip(way, single, strict=True))):
        return ()
    return tuple(tuple(None if one else at for at, one in zip(way, single, strict=True)) for way in block.expansions)


def _matched_axes(block: TypedBlock, name: str, value: tuple[str, ...]) -> dict[str, NormalForm]:
    """Return how the axes of the inputs match, whatever they are called; of a sum, whose inputs have no order, its edges do."""
    if block.part.inline(block.sizes) in ("{xs: + }", "{xs: * }"):
        return {}
    return {name: NormalValue(ways(block), ", ".join(value) or "by name")}


def _below(part: type[Part], values: Mapping[str, Any]) -> dict[str, NormalForm]:
    found: dict[str, NormalForm] = {}
    for name, field in fields(part).items():
        found |= _forms(name, field, values[name], derived=False)
    return found


def _axis(block: TypedBlock, name: str, field: Field) -> dict[str, NormalForm]:
    """Return an axis by its index, or several by theirs, since their names do not matter."""
    value = getattr(block.part, name)
    named = isinstance(field.form, AxisName | AxisOrAxes) or (isinstance(field.form, String) and "->" not in value)
    place = block.sizes.get("of" if name == LENGTH_OF else "dim")
    return {name: NormalValue(place, value)} if named and isinstance(place, int | tuple) else {}


def _axes_by_place(block: TypedBlock, name: str, field: Field) -> dict[str, NormalForm]:
    """Return a list or a mapping of axes, or a formula over them, with places in place of their names."""
    value = getattr(block.part, name)
    first = block.first_input
    axes = first.axes if isinstance(first, TensorType) else ()
    match field.form, value:
        case ListOf(item=AxisName()), tuple():
            return {name: NormalValue(tuple(axis_places(axes, axis)[0] for axis in value), value)}
        case MapOf(of_axes=True), dict():
            places = sorted((axis_places(axes, str(axis))[0], each) for axis, each in value.items())
            return {name: NormalValue(tuple(places), _pairs(value))}
        case MapOf(item=AxisLength()), dict():
            lengths = tuple(
                _length(axes, axes[axis_places(axes, each)[0]]) if isinstance(each, str) else each for each in value.values()
            )
            return {name: NormalValue(lengths, _pairs(value))}
        case MapOf(), dict():  # lengths of axes that a pattern names
            texts = (text for text in vars(block.part).values() if isinstance(text, str) and "->" in text)
            letters = list(dict.fromkeys(IDENTIFIER.findall(next(texts, ""))))
            places = sorted((letters.index(axis), each) for axis, each in value.items())
            return {name: NormalValue(tuple(places), _pairs(value))}
        case AxisFormula(), str():
            called = {axis.name or str(axis.size): _length(axes, axis) for axis in axes}
            made = (axis for lengths in length_maps(block.part) for axis in lengths)
            called |= {axis: f"#{place}" for place, axis in enumerate(made)}
            return {name: NormalValue(_computed(axis_formulas.parsed(value), called), value)}
    return {}


def _computed(tree: Any, called: Mapping[str, int | str]) -> Any:
    """Return a formula over axes with the lengths of axes in place of their names, and what reads no axis as a number."""
    if not isinstance(tree, tuple):
        return called.get(tree, tree) if isinstance(tree, str) else tree
    found = (tree[0], *(_computed(operand, called) for operand in tree[1:]))
    return found if any(isinstance(operand, str | tuple) for operand in found[1:]) else axis_formulas.evaluated(found, {})


def _length(axes: Sequence[Axis], axis: Axis) -> int | str:
    """Return the length of an axis, whatever the axis is called: one that is not known by the first place that has it."""
    return axis.size if isinstance(axis.size, int) else f"@{[each.size for each in axes].index(axis.size)}"


def _pairs(value: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {held}" for key, held in value.items())


def alphabetic(pattern: str) -> str:
    """Return a pattern over axes with its names replaced in the order of their first use."""
    names: dict[str, str] = {}
    text = re.sub(r"[A-Za-z_]\w*", lambda found: names.setdefault(found[0], f"a{len(names)}"), pattern)
    return re.sub(r"\s*(->|,|\(|\))\s*", r"\1", " ".join(text.split()))


def shown(value: Any) -> str:
    """Return a plain value as a recipe would write it."""
    match value:
        case None:
            return "none"
        case bool():
            return boolean(value)
        case int() | float():
            return number(value)
        case tuple():
            return f"[{', '.join(map(shown, value))}]"
    return str(value)
