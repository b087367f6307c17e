"""The reference of blocks, generated from their declarations."""

from __future__ import annotations

import importlib
import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from blocks.core import Builtin, Library, Part, fields
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
    field_docs,
)
from blocks.core.weights import LinearWeights, Slot, Tensor, Weight
from composer.language.wording import with_article


def reference(library: Library) -> str:
    """Return every part of a library as Markdown, grouped by package."""
    packages: dict[str, list[type[Part]]] = {}
    for part in (library[name] for name in library):
        packages.setdefault(part.__module__.rpartition(".")[0], []).append(part)
    return "\n".join(text for name in sorted(packages) for text in _package(name, packages[name]))


def entry(part: type[Part]) -> str:
    """Return one part as Markdown: its description, fields, ports and parameters."""
    paragraphs = [f"### {part.kind}", inspect.cleandoc(part.__doc__ or "")]
    if part.paper is not None:
        paragraphs.append(f"*{part.paper.title}*, {part.paper.reference}.")
    if fields(part):
        paragraphs.append("\n".join(_field_table(part)))
    if part.example:
        paragraphs.append(f"```yaml\n{example(part)}```")
    paragraphs.append("\n".join(f"- {title}: {'; '.join(items)}" for title, items in facts(part) if items))
    return "\n\n".join(text for text in paragraphs if text) + "\n"


def example(part: type[Part]) -> str:
    """Return a recipe that uses a part, as it or its family declares it."""
    return f"recipe: example\n{part.example.lstrip()}".replace("<kind>", part.kind)


def _package(name: str, parts: Iterable[type[Part]]) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"## {name.rpartition('.')[2].replace('_', ' ').capitalize()}\n"
    yield f"{inspect.cleandoc(module.__doc__ or '')}\n"
    yield from map(entry, parts)


def _field_table(part: type[Part]) -> Iterator[str]:
    docs = docs_of(part)
    yield "| field | takes | default | meaning |"
    yield "|---|---|---|---|"
    for name, takes, default in field_rows(part):
        cells = (f"`{name}`", takes, default, " ".join(docs.get(name, "").split()))
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def field_rows(part: type[Part]) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each field, the values it takes, and its default."""
    for name, field in fields(part).items():
        yield name, f"{form_text(field.form)}, or `none`" if field.nullable else form_text(field.form), _default(field)


def docs_of(part: type[Part]) -> dict[str, str]:
    """Return the docstring of each field, including inherited ones."""
    docs: dict[str, str] = {}
    for owner in reversed(part.__mro__):
        if issubclass(owner, Part) and owner is not Part:
            docs.update(field_docs(owner))
    return docs


def form_text(form: FieldForm) -> str:
    """Return a description of the values that a field accepts."""
    match form:
        case Integer():
            return f"integer{_bounds(form)}"
        case Real():
            return f"number{_bounds(form)}"
        case Boolean():
            return "`true` or `false`"
        case MapOf(item=item):
            return f"mapping of names to: {form_text(item)}"
        case BooleanMap(names=names):
            return f"`true`, `false`, or a mapping of {_quoted(names)} to these"
        case OneOf(of=words):
            return _quoted(words)
        case String():
            return "string"
        case AxisName():
            return "an axis by its name or length, by its place counted from the end, or `first` or `last`"
        case AxisOrAxes(item=item):
            return f"{form_text(item)}; or a list of several"
        case AxisLength():
            return "the length of an axis: a number, or the name of an axis"
        case AxisFormula():
            return "a formula over axes"
        case FormulaForm():
            return "a pointwise formula"
        case AxesForm():
            return "names of axes for each input"
        case NodeName():
            return "a node or an input"
        case NumberOrNodeRef(number=number):
            return f"{form_text(number)}, or a node or an input"
        case SlotOf(family=family):
            name = family.__name__.lower()
            return name if name.endswith("s") else with_article(name)
        case ListOf(item=item):
            return f"list of: {form_text(item)}"
        case EachAxis(item=item, words=words):
            return f"{form_text(item)}, or a list with one for each axis" + f", or {_quoted(words)}" * bool(words)


def _bounds(form: Integer | Real) -> str:
    bounds = [("≥", form.minimum), ("≤", form.maximum)]
    if isinstance(form, Real):
        bounds += [(">", form.above), ("<", form.below)]
    return " and".join(f" {sign} {bound:g}" for sign, bound in bounds if bound is not None)


def _default(field: Field) -> str:
    if field.required:
        return "required"
    if field.derived:
        return f"`{field.derived}`"
    match field.default:
        case Builtin():
            return "built in"
        case Part() as part:
            return f"`{type(part).kind}`"
        case None:
            return "none"
        case bool() as flag:
            return f"`{str(flag).lower()}`"
    return f"`{field.default:g}`" if isinstance(field.default, float) else f"`{field.default}`"


def facts(part: type[Part]) -> Iterator[tuple[str, list[str]]]:
    """Yield the ports, expansion, parameters, inputs of slots, buffers and cache slots of a part, each with its title."""
    yield "inputs", _typed(part.inputs)
    yield "outputs", _typed(part.outputs)
    yield "reads", _typed(part.node_refs)
    if part.graph:
        yield "expands into", ["other blocks, which replace it in the graph"]
    filled = " and every slot filled" * any(map(_is_empty, fields(part).values()))
    title = f"parameters with default fields{filled}" if callable(part.weights) else "parameters"
    yield title, [_weight(name, weight) for name, weight in _weights(part).items()]
    slots = [weight for weight in _weights(part).values() if isinstance(weight, Slot)]
    yield "handed to slots", list(dict.fromkeys(f"`{slot.field}` `{slot.given}`" for slot in slots))
    yield "buffers", [_weight(name, buffer) for name, buffer in _buffers(part).items()]
    if part.cache_slots and part.kind:
        yield "cached while decoding", _typed(part.cache_slots)
    if part.carry and part.kind:
        yield "carried from call to call while decoding", _typed(part.carry)


def _weights(part: type[Part]) -> Mapping[str, Weight]:
    """Return the parameters of a block with default fields, and something in the slots that are empty by default; all sizes are
    1, since only their names are shown.
    """
    if not callable(part.weights):
        return part.weights
    plain: dict[str, Any] = {
        name: _stand_in(field) if field.required or _is_empty(field) else field.default for name, field in fields(part).items()
    }
    ones: defaultdict[str, int] = defaultdict(lambda: 1)
    return part.weights(part.model_construct(**plain), ones, frozenset())


def _is_empty(field: Field) -> bool:
    """Return whether a field is a slot that is empty by default."""
    return isinstance(field.form, SlotOf) and field.default is None and not field.required


def _buffers(part: type[Part]) -> Mapping[str, Tensor]:
    if not callable(part.buffers):
        return part.buffers
    plain = {name: _stand_in(field) if field.required else field.default for name, field in fields(part).items()}
    return part.buffers(part.model_construct(**plain), {})


def _stand_in(field: Field) -> Any:
    """Return the name of a field as a placeholder for its value."""
    return (field.name,) if isinstance(field.form, ListOf) else field.name


def _weight(name: str, weight: Weight) -> str:
    match weight:
        case Tensor(shape=shape, when=when):
            return f"`{name}` `[{', '.join(map(str, shape))}]`" + (f" with `{when}`" if when else "")
        case LinearWeights(inputs=inputs, outputs=outputs, bias=bias):
            return f"`{name}.weight` `[{outputs}, {inputs}]`" + (f", `{name}.bias` `[{outputs}]`" if bias else "")
        case Slot(field=field):
            return f"`{name}.*` of the slot `{field}`"


def _typed(ports: Mapping[str, str]) -> list[str]:
    return [f"`{name}` `{type_}`" for name, type_ in ports.items()]


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
