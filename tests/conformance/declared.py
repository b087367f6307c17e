"""Recipes from a block's declaration alone: fields drawn by their forms, inputs from its ports; the composer says which fit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

import composer
from blocks.core import Library, Part, fields, is_node, ports
from blocks.core.fields import (
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
    formula_field,
)
from blocks.masks.mask import Mask, Pair
from composer.graph.type_patterns import pattern
from composer.graph.typed import TypedProgram
from composer.graph.types import TensorType
from composer.language.expressions.parser import names
from composer.language.recipe.writer import write
from tests.conformance.features import of_field
from tests.conformance.inputs import DRAWS, length

RUNNING = ("batch", "time", "source")
"""Axes whose lengths are known only when the model runs; every other one is drawn."""
ENOUGH: Mapping[tuple[str, str], tuple[Any, ...]] = {
    ("learned_positions", "max_length"): ("23", "29"),
    ("rotary", "sections"): ("none", ["1", "1"], ["2", "1", "1"]),
    ("rotary", "arrangement"): ("consecutive",),
    ("select", "index"): ("0", "1", "-1"),
    ("split", "into"): (["a", "b"], ["left", "middle", "right"]),
    ("rearrange", "pattern"): ("b t (h d) -> b h t d", "b t d -> d b t", "b t (g h d) -> b (h t) (d g)"),
    ("rearrange", "sizes"): (["2"], ["3"], ["2", "1"], ["1", "4"]),
    ("einsum", "pattern"): ("b t d, b s d -> b t s", "b t d -> b d", "b t d, b t e -> b t d e", "b t d, b t d -> b"),
    ("state", "next"): ("block",),
    ("roll", "by"): ({"last": "1"}, {"time": "-1"}, {"last": "-2", "time": "3"}, {"time": "0"}),
    ("shift", "by"): ("1", "2", "7", "0", "-1"),
    ("slice", "start"): ("0", "1"),
    ("slice", "step"): ("1", "2"),
    ("slice", "stop"): ("-1", "2", "none"),
    ("top_k", "k"): ("1", "2", "4"),
    ("new_axis", "name"): ("head", "copies", "source"),
    ("new_axis", "size"): ("1", "3"),
    ("gather", "shared"): ("0", "1", "2"),
    ("scatter", "shared"): ("0", "2"),
    ("pad", "value"): ("0", "1", "0.5"),
    ("constant", "over"): ({"i": "3", "j": "4"}, {"i": "2"}, {"i": "time", "j": "2"}),
    ("constant", "value"): ("i", "3 * i - 1", "(i >= 1) / 2", "exp(-abs(i - 1))", "i % 2 + (i < 1 or i > 2)"),
    ("rearrange", "lengths"): ({"h": "2"}, {"d": "3"}, {"g": "2", "d": "1"}),
    ("split", "sizes"): (["2", "1"], ["3", "1"], ["4", "2", "2"], ["3", "5"]),
    **{(f"{kind}_pool1d", "kernel_size"): ("1", "2", ["3"]) for kind in ("max", "mean")},
    **{(kind, "during"): ("training",) for kind in ("normal", "uniform", "bernoulli")},
    **{(kind, "dilation"): ("1", "2", ["2"]) for kind in ("max_pool1d", "conv_transpose1d")},
    **{(kind, "dilation"): ("1", "2", ["1", "2"]) for kind in ("conv2d", "conv_transpose2d", "max_pool2d")},
    ("new_axis", "length_of"): ("first", "last"),
    ("slice", "axis"): ("time",),
    ("slice", "length_of"): ("none", "time"),
    ("conv2d", "stride"): ("1", ["2", "1"], ["3", "1"]),
    ("compute", "axes"): (
        {"xs_0": "a b c", "xs_1": "a b c"},
        {"xs_0": "a b c", "xs_1": "a b d"},
        {"xs_0": "a b c", "xs_1": "b a c"},
        {"xs_0": "a b c", "xs_1": "a b d", "->": "a b d c"},
    ),
    **{
        (kind, "axes"): (["a b c", "a b c"], ["a b c", "a b d"], ["a b c", "a b d", "a b c"])
        for kind in ("add", "multiply", "weighted_sum")
    },
}
"""Fields whose right values no declaration can say: at least as many positions as any test has, kernels
that fit into few, places, names. Strides of `conv2d` are no longer than an image is wide: in bfloat16, torch's gradient of the
weights reads memory that nothing has written where they are longer, if there is padding."""
TURNED = {"type": "rotary", "sections": ["1", "3"]}
BESIDE: Mapping[tuple[str, str], Mapping[str, Any]] = {
    **{(kind, "coordinates"): {"head_dim": "8", "positions": TURNED} for kind in ("attention", "cross_attention")},
    **{(kind, "memory_coordinates"): {"head_dim": "8", "positions": TURNED} for kind in ("attention", "cross_attention")},
    ("latent_attention", "coordinates"): {"rope_dim": "8", "positions": TURNED},
}
"""Fields without which a block refuses an input at an optional port."""
FORMULAS = (
    "xs_0 * sigmoid(xs_1)",
    "where(xs_0 > 0.3, sqrt(abs(xs_0) + 0.1), xs_1 / 3)",
    "exp(float32(-abs(xs_0))) + xs_1 ** 2",
    "min(xs_0, xs_1) - max(xs_1, 0.5) * 2",
    "where(xs_0 > xs_1, xs_0 // 3, 2 * xs_1) % 5",
    "xs_0 and not xs_1 or xs_1 != xs_0",
)
"""Formulas of two inputs: of floats, of ints, of booleans."""
WHOLE, REAL = (1, 2, 3, 4, 6, 8, 12), (0.25, 0.5, 1.5, 3.0)
EDGES = {"bool[batch, key]": "valid", "int[batch, key]": "documents", "int[batch]": "length", "bool[batch, query, key]": "pairs"}
"""The model's inputs that the edges of a mask read, by their types."""
INPUTS = {
    "valid": "bool[batch, time]?",
    "documents": "int[batch, time]?",
    "length": "int[batch]?",
    "pairs": "bool[batch, time, time]?",
}
TRIES = 2000


class Declared:
    """Draws what may be written for blocks; what is written together with a wrong value is for the composer to refuse."""

    def __init__(self, library: Library, random: Random, *, causal: bool, width: int = 8) -> None:
        self.library, self.random, self.causal, self.whole = library, random, causal, (*WHOLE, width)
        self.read: set[str] = set()
        """The inputs that masks have read so far."""

    def use(self, part: type[Part], depth: int = 0, *, surely: str = "") -> dict[str, Any]:
        """Return a block with some of its fields: all that it needs, the one that is asked for, and others by chance. What is
        asked for may say in which way: `norm none`, `body graph`.
        """
        written = {"type": part.kind}
        asked, _, way = surely.partition(" ")
        for name, field in fields(part).items():
            wanted = field.required or name == asked or self.sees(field) or self.random.random() < 0.4
            value = self.value(field, part, depth, way if name == asked else "") if wanted else None
            if value is not None:
                written[name] = value
        return written

    def sees(self, field: Field) -> bool:
        """Return whether a field must be written for the model to be causal."""
        return self.causal and isinstance(field.form, SlotOf) and field.form.family is Mask

    def value(self, field: Field, part: type[Part], depth: int = 0, way: str = "") -> Any:
        """Return something for a field; None where nothing can be drawn, such as text."""
        if way == "none":
            return "none"
        if way in ("one", "several") and isinstance(field.form, AxisOrAxes):
            return self.axes() if way == "several" else self.form(field.form.item, depth)
        if way in ("part", "graph") and isinstance(field.form, SlotOf):
            return self.slot(field.form.family, depth, way)
        if field.nullable and not isinstance(field.form, NodeName) and self.random.random() < 0.15:
            return "none"
        if (part.kind, field.name) in ENOUGH:
            return self.random.choice(ENOUGH[part.kind, field.name])
        return self.form(field.form, depth)

    def form(self, form: FieldForm, depth: int) -> Any:
        match form:
            case Integer(minimum=low, maximum=high):
                return str(
                    self.random.choice([n for n in self.whole if (low is None or n >= low) and (high is None or n <= high)])
                )
            case Real(minimum=low, maximum=high, above=above, below=below):
                fit = [n for n in REAL if (low is None or n >= low) and (high is None or n <= high)]
                return str(self.random.choice([n for n in fit if (above is None or n > above) and (below is None or n < below)]))
            case Boolean():
                return self.random.choice(["true", "false"])
            case OneOf(of=words):
                return self.random.choice(words)
            case AxisLength():
                return self.random.choice(["2", "3"])
            case AxisFormula():
                return self.random.choice(["i", "2 * i"])
            case MapOf(item=item):
                return {"last": self.form(item, depth)}
            case FormulaForm():
                return self.random.choice(FORMULAS)
            case AxisName():
                return self.random.choice(["last", "time"])
            case AxisOrAxes(item=item):
                return self.random.choice([self.form(item, depth), self.axes()])
            case ListOf(item=item):
                return [self.form(item, depth) for _ in range(self.random.randint(1, 2))]
            case EachAxis(item=item, words=words):
                several = [self.form(item, depth) for _ in range(self.random.randint(1, 2))]
                return self.random.choice([self.form(item, depth), several, *words])
            case BooleanMap(names=of):
                some = self.random.sample(of, self.random.randint(1, len(of)))
                return self.random.choice(["true", "false", {name: self.random.choice(["true", "false"]) for name in some}])
            case NumberOrNodeRef(number=number):
                return self.form(number, depth)
            case SlotOf(family=family):
                return self.mask() if family is Mask else self.slot(family, depth)
        return None

    def axes(self) -> list[str]:
        """Return some axes of an input, in any order."""
        return self.random.sample(["last", "time", "first"], self.random.randint(2, 3))

    def slot(self, family: type[Part], depth: int, way: str = "") -> Any:
        """Return a part of a family by its name, with its fields, or as a graph of several."""
        known = self.library.of(family)
        simple = [kind for kind, part in known.items() if not is_node(part) or single(part)]
        if not simple:
            return None
        if way == "graph" or (not way and is_node(family) and depth == 0 and self.random.random() < 0.3):
            return {"graph": {name: self.use(known[self.random.choice(simple)], 1) for name in ("first", "then")}}
        part = known[self.random.choice(simple)]
        required = any(field.required for field in fields(part).values())
        return part.kind if not required and self.random.random() < 0.5 else self.use(part, depth + 1)

    def mask(self) -> str:
        """Return a mask that leaves a choice between keys, and hides the future where the model is causal."""
        while True:
            read = set(self.read)
            text = f"causal and {self.operand(1)}" if self.causal else self.expression(2)
            if leaves_a_choice(text):
                return text
            self.read = read

    def expression(self, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.4:
            return self.predicate()
        operator = self.random.choice(["and", "or"])
        return f"{self.operand(depth - 1)} {operator} {self.operand(depth - 1)}"

    def operand(self, depth: int) -> str:
        inner = self.expression(depth)
        inner = f"({inner})" if " " in inner else inner
        return f"not {inner}" if self.random.random() < 0.2 else inner

    def predicate(self) -> str:
        known = [part for part in self.library.of(Mask).values() if not (self.causal and part.needs_ends)]
        part = self.random.choice(known)
        arguments = []
        for name, field in fields(part).items():
            edge = isinstance(field.form, NodeName) or (isinstance(field.form, NumberOrNodeRef) and self.random.random() < 0.5)
            if edge:
                arguments.append(EDGES[part.node_refs[name]])
                self.read.add(arguments[-1])
            else:
                arguments.append(self.value(field, part))
        return f"{part.kind}({', '.join(arguments)})" if arguments else part.kind


@cache
def leaves_a_choice(text: str) -> bool:
    """Return whether most queries see more than one key, with what its edges carry and without."""
    graph = {"block": {"type": "attention", "heads": "1", "mask": text}}
    recipe = composer.load(write({"recipe": "mask", "inputs": {"x": "float[batch, time, 2]", **INPUTS}, "graph": graph}))
    mask = recipe.program.root["block"].part.mask  # type: ignore[union-attr]  # an attention
    edges = mask.edge_types()

    def seen(q: int, given: bool) -> int:
        ends = {"ends": Pair(5, 5)}
        read = [{name: example(name, q, k) if given else None for name in edges} for k in range(6)]
        return sum(bool(mask.allows(q, k, **ends, **carried)) for k, carried in enumerate(read))

    return all(sum(seen(q, given) > 1 for q in range(6)) > 3 for given in (True, False))


def example(name: str, q: int, k: int) -> Pair:
    """Return what an edge might carry at a query and at a key."""
    pairs = (q * k % 4 != 1, q * k % 4 != 1)
    values = {"valid": (q % 4 != 0, k % 4 != 0), "documents": (q // 3, k // 3), "length": (2, 2), "pairs": pairs}
    return Pair(*next(value for edge, value in values.items() if edge in name))


def single(part: type[Part]) -> bool:
    """Return whether a part has one stream coming in and one going out."""
    marks = ports(part)
    first = next(iter(marks), "")
    return marks.get(first) == "" and list(marks.values()).count("") == 1 and "float" in pattern(part.inputs[first]).dtypes


def alone(part: type[Part], library: Library, seed: int, *, causal: bool = False) -> str:
    """Return a recipe of this one block, drawn until the composer accepts it; the seed also counts through its fields, its
    optional ports and its optional outputs.
    """
    random = Random(f"{part.kind} {seed}")
    for _ in range(TRIES):
        text = write(_drawn(part, library, random, seed, causal=causal))
        recipe = composer.load(text)
        if not any(found.severity == "error" for found in recipe.check()) and _has_places(recipe.program):
            return text
    raise AssertionError(f"of {TRIES} recipes drawn for {part.kind}, the composer accepts none; the last one is\n{text}")


def _has_places(program: TypedProgram) -> bool:
    """Return whether every axis that the block gives has a place at the lengths that are drawn."""
    types = [type_ for type_ in program.root["block"].outputs.values() if isinstance(type_, TensorType)]
    return all(length(size, lengths) > 0 for type_ in types for size in type_.sizes for lengths in DRAWS)


def draws(part: type[Part]) -> int:
    """Return how many seeds it takes until everything that is declared has been written."""
    return 2 * max(3, *map(len, _choices(part)))  # twice, since a field may be written in several ways


def _choices(part: type[Part]) -> tuple[list[str], list[str], list[str]]:
    """Return the fields, each in every way that means something else, and the ports and outputs that may be left out."""
    optional = [port for port, mark in ports(part).items() if mark == "?"]
    ways = [[way.partition(".")[2] for way in of_field(part.kind, name, field)] or [name] for name, field in fields(part).items()]
    return [way for each in ways for way in each], optional, [name[:-1] for name in part.outputs if name.endswith("?")]


def _drawn(part: type[Part], library: Library, random: Random, seed: int, *, causal: bool) -> dict[str, Any]:
    field, optional, output = (of[seed % len(of)] if of else "" for of in _choices(part))
    declared = Declared(library, random, causal=causal)
    node = {**declared.use(part, surely=field), **BESIDE.get((part.kind, optional), {})}
    several_ports = not formula_field(part)
    sizes: dict[str, str] = {}
    inputs, wires = {}, {}
    for port, mark in ports(part).items():
        if port.endswith("coordinates"):  # which a block refuses without what is BESIDE, and for one of queries and keys alone
            if not optional.endswith("coordinates") or (port == "memory_coordinates" and "memory" not in wires):
                continue
        elif mark == "?" and port != optional and random.random() < 0.7:
            continue
        taken = pattern(part.inputs[port + mark])
        for expression in taken.axes:
            for name in names(expression) - set(RUNNING):
                drawn = "2" if name == "coordinate" else str(random.choice(WHOLE[1:]))
                sizes.setdefault(name, node.setdefault(name, drawn) if name in fields(part) else drawn)
        axes = [sizes.get(text, text) for text in map(_text, taken.axes)]
        leading = ["batch", "time"] if not set(axes) & {"time", "source"} else random.choice([["batch"], []])
        dtype = [*taken.dtypes, "float"][seed % (len(taken.dtypes) + 1)] if len(taken.dtypes) > 1 else taken.dtype
        if not axes and "float" in taken.dtypes and taken.leading and taken.is_shared:
            axes = [sizes.setdefault("...", str(random.choice(WHOLE[2:])))]
        if not taken.is_shared:
            last = [sizes.get("...", "3"), str(random.choice(WHOLE))]
            leading = random.choice([["batch", "time"], ["batch"], ["source"], []])
            axes = random.choice([[], last[:1], last[:1], last[1:], ["time"][: len(leading) < 2]])
        type_ = f"{dtype}[{', '.join([*(leading if taken.leading else []), *axes])}]"
        type_ += "?" if taken.dtype == "bool" else ""  # padding, which a call need not have
        several = [port] if mark != "*" else [f"{port}_{n}" for n in range(random.randint(2, 3))]
        inputs.update(dict.fromkeys(several, type_))
        if several_ports:
            wires[port] = several if mark == "*" else port
    inputs.update({name: INPUTS[name] for name in sorted(declared.read)})
    inputs = inputs or {"unused": "float[batch, time]"}
    outputs = {name: f"block.{name}" for name in (output.rstrip("?") for output in part.outputs)}
    outputs = outputs or {name: f"block.{name}" for name in node[part.named_by]}
    first = next(iter(outputs))
    read = {name: path for name, path in outputs.items() if name in (first, output) or random.random() < 0.3}
    if wires:
        node["in"] = wires
    return {"recipe": "alone", "inputs": inputs, "graph": {"block": node}, "outputs": {**read, first: "block"}}


def _text(expression: Any) -> str:
    span: Any = expression.span
    return getattr(expression, "text", None) or span.source.lines[0][span.column - 1 : span.end_column - 1]


def blocks(library: Library) -> Mapping[str, type[Part]]:
    """Return every part of a library that can be a node."""
    return {kind: part for kind, part in library._parts.items() if is_node(part)}
