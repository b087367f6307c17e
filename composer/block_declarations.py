"""What is wrong with the declarations of a block of the user's own, as far as it shows without a recipe; located at its class."""

from __future__ import annotations

import ast
import inspect
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from blocks.core import UNIT, UNIT_BUFFER, Part, fields, is_node, ports
from blocks.core.weights import LinearWeights, Slot, Tensor, Weight
from composer.diagnostics import Diagnostic, Source, Span
from composer.diagnostics.python_source import line_span, shown
from composer.graph.type_patterns import TypePattern, declared, pattern
from composer.language.expressions.functions import FUNCTIONS
from composer.language.expressions.parser import ExpressionError, names
from composer.language.suggestions import did_you_mean, suggest

TYPED = ("inputs", "outputs", "node_refs", "cache_slots", "carry")
"""Declarations that map names to types."""
KNOWN_LATER = ("constants", "output_types")
"""Methods that may give names sizes which no declaration shows."""


class WrongDeclaration(NamedTuple):
    """A declaration that cannot be right."""

    declaration: str
    message: str
    hint: str = ""


def declaration_mistakes(part: type[Part]) -> list[Diagnostic]:
    """Return what is wrong with the declarations of a block: types that are none, names that nothing gives a size, ports, outputs
    and fields that do not exist, a `forward` that takes others.
    """
    return [
        Diagnostic("block-file", f"{part.kind}: {found.message}", place_of(part, found.declaration), hint=found.hint)
        for found in _mistakes(part)
    ]


def _mistakes(part: type[Part]) -> Iterator[WrongDeclaration]:
    try:
        known = set(fields(part))
    except Exception as error:  # an annotation of a field can be anything
        yield WrongDeclaration(part.kind, f"a field is not one that recipes can set: {' '.join(str(error).split())}")
        return
    types, wrong = _types(part)
    yield from wrong
    if wrong:
        return
    inputs = types["inputs"].values()
    known |= {name for type_ in inputs for axis in type_.axes for name in names(axis)} | {*part.axis_defaults}
    leading = any(type_.leading for type_ in inputs) or bool(part.position_inputs)
    if is_node(part) and not any(_overrides(part, method) for method in KNOWN_LATER):  # other parts have the sizes of their block
        yield from _sizes(part, types, known, leading=leading)
    yield from _names(part, known)
    yield from _unit(part)
    yield from _forward(part)


def _types(part: type[Part]) -> tuple[dict[str, dict[str, TypePattern]], list[WrongDeclaration]]:
    """Return the declared types by declaration and name, and those that are none."""
    found: dict[str, dict[str, TypePattern]] = {}
    wrong: list[WrongDeclaration] = []
    for declaration in TYPED:
        found[declaration] = {}
        for name, text in getattr(part, declaration).items():
            try:
                found[declaration][name.rstrip("?*")] = pattern(text)
            except (ValueError, AttributeError, ExpressionError) as error:
                told = error.diagnostic.message if isinstance(error, ExpressionError) else f"{text!r} is not a type"
                hint = 'such as "float[batch, time, dim]"; the dtypes are float, int and bool'
                wrong.append(WrongDeclaration(declaration, f"`{name}`: {told}", hint))
    return found, wrong


def _sizes(
    part: type[Part], types: Mapping[str, Mapping[str, TypePattern]], known: set[str], *, leading: bool
) -> Iterator[WrongDeclaration]:
    """Yield names of axes in what the block gives, keeps and learns, that neither an input nor a field gives a size."""
    for declaration in ("outputs", "cache_slots", "carry"):
        for name, type_ in types[declaration].items():
            used = [each for axis in type_.axes for each in names(axis)]
            yield from _without_size(declaration, f"`{name}`", used, known)
            if declaration == "outputs" and type_.leading and not leading:
                yield WrongDeclaration(declaration, f"`{name}` has `...`, and no input has")
    weights = part.weights if isinstance(part.weights, Mapping) else {}
    for name, weight in weights.items():
        try:
            used = [each for text in _texts(weight) for each in names(declared(text))]
        except ExpressionError as error:
            yield WrongDeclaration("weights", f"`{name}`: {error.diagnostic.message}")
            continue
        yield from _without_size("weights", f"`{name}`", used, known)
    for field in fields(part).values():
        if field.derived:
            yield from _without_size(field.name, f"`{field.name}`", names(declared(field.derived)), known)


def _texts(weight: Weight) -> Iterator[str]:
    """Yield the expressions of sizes in the declaration of a parameter."""
    match weight:
        case Tensor(shape=shape):
            yield from (axis for axis in shape if isinstance(axis, str))
        case LinearWeights(inputs=width, outputs=out):
            yield from (width, out)
        case Slot():
            return


def _without_size(declaration: str, what: str, used: Iterable[str], known: set[str]) -> Iterator[WrongDeclaration]:
    for name in dict.fromkeys(used):
        if name not in known and name not in FUNCTIONS:
            offered = suggest(name, known)
            hint = did_you_mean(offered) if offered else "sizes are named by the axes of `inputs` and by fields"
            yield WrongDeclaration(declaration, f"{what} has `{name}`, to which neither an input nor a field gives a size", hint)


def _names(part: type[Part], known: set[str]) -> Iterator[WrongDeclaration]:
    """Yield ports, outputs, axes and fields that are named in a declaration and do not exist."""
    inputs, outputs = set(ports(part)), {name.rstrip("?") for name in part.outputs}
    named: dict[str, tuple[str, Iterable[str], set[str]]] = {
        "shape_only_inputs": ("input", part.shape_only_inputs, inputs),
        "training_inputs": ("input", part.training_inputs, inputs),
        "second_stream_inputs": ("input", part.second_stream_inputs, inputs),
        "so_far_inputs": ("input", part.so_far_inputs, inputs),
        "position_inputs": ("input", part.position_inputs, inputs),
        "masked_slots": ("cache slot", part.masked_slots, set(part.cache_slots)),
        "kept_axes": ("axis", part.kept_axes, known),
        "mean_outputs": ("output", part.mean_outputs, outputs),
        "node_refs": ("field", part.node_refs, set(fields(part))),
    }
    for declaration in ("renewed_by", "vocab_field", "length_field", "new_axis_field", "named_by"):
        named[declaration] = ("field", [name] if (name := getattr(part, declaration)) else [], set(fields(part)))
    masks: tuple[str, tuple[str, Iterable[str], set[str]]]
    masks = "masked_slots", ("field", part.masked_slots.values(), set(fields(part)))
    for declaration, (kind, given, there) in (*named.items(), masks):
        for name in given:
            if name not in there:
                offered = suggest(name, there)
                yield WrongDeclaration(declaration, f"there is no {kind} `{name}`", did_you_mean(offered) if offered else "")


def _unit(part: type[Part]) -> Iterator[WrongDeclaration]:
    """Yield a tensor of the block's own that has the name of the number from which it would know the dtype of the model."""
    for declaration in ("weights", "buffers"):
        held = getattr(part, declaration)
        if isinstance(held, Mapping) and held.get(UNIT, UNIT_BUFFER[UNIT]) != UNIT_BUFFER[UNIT]:
            message = f"`{UNIT}` is the name of the buffer of `UNIT_BUFFER`, which rules for published weights leave out"
            yield WrongDeclaration(declaration, message, "give it another name")


def _forward(part: type[Part]) -> Iterator[WrongDeclaration]:
    """Yield the parameters of `forward` that no port fills, and ports that it does not take."""
    if not is_node(part) or part.graph:
        return
    if part.forward is None:
        if not _overrides(part, "build") and not _overrides(part, "inline"):
            yield WrongDeclaration(part.kind, "it has outputs, and neither a `forward` nor a `graph`", "def forward(self, x): …")
        return
    if _overrides(part, "per_call"):  # which names more arguments
        return
    taken = list(inspect.signature(part.forward).parameters.values())[1:]
    every = any(each.kind is each.VAR_KEYWORD for each in taken)
    names_taken = {each.name for each in taken}
    for each in taken:
        plain = each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        if plain and each.default is each.empty and each.name not in ports(part):
            hint = f"its ports are {', '.join(f'`{port}`' for port in ports(part)) or 'none'}"
            yield WrongDeclaration("forward", f"`forward` needs `{each.name}`, and there is no such port", hint)
    for port, mark in ports(part).items():
        read = port in names_taken or every or port in part.shape_only_inputs or mark == "*"
        if not read:
            yield WrongDeclaration("forward", f"`forward` does not take the port `{port}`", f"def forward(self, {port}, …)")


def _overrides(part: type[Part], method: str) -> bool:
    return getattr(part, method) is not getattr(Part, method)


def place_of(part: type[Part], declaration: str, error: Exception | None = None) -> Span:
    """Return where a class declares something; where it does not, the line of the class. An error is placed where it was raised,
    if that is in the file of the class.
    """
    try:
        file = inspect.getsourcefile(part) or ""
        lines, first = inspect.getsourcelines(part)
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, TypeError):  # a class without a file, such as one of a REPL
        return Span(Source(part.__name__, ""), 1, 1, 1, 1)
    number = first
    raising = _line_that_raised(error, lines) if error is not None else None
    if raising is not None:
        number += raising
    else:
        body = ast.parse(inspect.cleandoc("\n" + "".join(lines))).body[0]
        number += next((node.lineno - 1 for node in getattr(body, "body", []) if declaration in _declared_by(node)), 0)
    return line_span(Source(shown(file), text), number)


def _line_that_raised(error: Exception, lines: list[str]) -> int | None:
    """Return the line of a class that raised an error, counted from 0; the generated module has a copy of the line."""
    texts = [line.strip() for line in lines]
    found = [
        texts.index(frame.line.strip())
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.line and frame.line.strip() in texts
    ]
    return found[-1] if found else None


def _declared_by(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a class body gives a value."""
    match node:
        case ast.FunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            several = [inner for target in targets for inner in getattr(target, "elts", [target])]
            return [target.id for target in several if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []
