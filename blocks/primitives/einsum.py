"""Einstein summation over named axes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import ascii_letters
from typing import Any

from blocks.core import Block, BlockError, BlockView, Cost, Look, Sizes, torch
from blocks.primitives.stack_split import of_port


class Einsum(Block, kind="einsum"):
    """Einstein summation over named axes: `batch query dim, batch key dim -> batch query key` multiplies along equal names and
    sums over those that the output lacks.

    There are one or two inputs, with a name for each of their axes; a name occurs once in an input. Names are local to the
    pattern, whatever the wired axes are called.
    """

    pattern: str
    """The axes of each input, separated by a comma, then `->` and the axes of the output."""

    is_primitive = True
    example = """
inputs: {q: "float[batch, time, 8]", k: "float[batch, source, 8]"}
graph: {y: {type: einsum, pattern: "b t d, b s d -> b t s", in: [q, k]}}
"""
    inputs = {"xs*": "float[...]"}
    outputs = {"y": "float[...]"}
    causal_forms = ("`scaled_dot_product` with `mask: causal` for queries and keys",)

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        given = of_port(inputs["xs"])
        terms, out = operands(self.pattern)
        if len(terms) != len(given):
            raise BlockError(f"the pattern has {len(terms)} inputs, and {len(given)} are wired", field="pattern")
        lengths: dict[str, Any] = {}
        for index, (names, x) in enumerate(zip(terms, given, strict=True)):
            if len(names) != len(x.axes):
                raise BlockError(f"takes {' '.join(names)}, not {x}", port="xs", index=index, code="type-mismatch")
            for name, axis in zip(names, x.axes, strict=True):
                if lengths.setdefault(name, axis.size) != axis.size:
                    message = f"takes {' '.join(names)} with {name} = {lengths[name]}, not {x}"
                    raise BlockError(message, port="xs", index=index, code="type-mismatch")
        if strange := next((name for name in out if name not in lengths), None):
            raise BlockError(f"no input has an axis `{strange}`", field="pattern")
        letter = dict(zip(lengths, ascii_letters, strict=False))
        written = ["".join(letter[name] for name in names) for names in (*terms, out)]
        equation = f"{','.join(written[:-1])}->{written[-1]}"
        return {"equation": equation, "lengths": lengths} | {f"axis_{name}": size for name, size in lengths.items()}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        first = of_port(inputs["xs"])[0]
        axes = [replace(first.axes[0], name=name, size=sizes["lengths"][name]) for name in operands(self.pattern)[1]]
        return {"y": replace(first, axes=tuple(axes))}

    def over_steps(self, places: Sequence[int | None], place: int) -> Einsum:
        terms, out = operands(self.pattern)
        steps = next(name for name in ("steps", *(f"steps_{n}" for n in range(99))) if all(name not in term for term in terms))
        wider = [_with(names, steps, own) for names, own in zip((*terms, out), (*places, place), strict=True)]
        left, right = ", ".join(map(" ".join, wider[:-1])), " ".join(wider[-1])
        return self.model_copy(update={"pattern": f"{left} -> {right}"})

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        lengths, out = sizes["lengths"], operands(self.pattern)[1]
        every = list(lengths.values())
        return [size for name, size in lengths.items() if name not in out or every.count(size) > 1]

    def read_by_rows(self, sizes: Sizes) -> Sequence[tuple[str, int]]:
        terms, out = operands(self.pattern)
        return [("xs", place) for place, term in enumerate(terms) if {*term[-2:]} - {*out} == {*term[-1:]} and len(term) > 1]

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        """Return the cost of a matrix product, or None if no axis of both inputs is summed."""
        terms, out = operands(self.pattern)
        shared = set(terms[0]).intersection(*terms[1:])
        if len(terms) < 2 or shared <= set(out):
            return Cost("0")
        return Cost(" * ".join(["2", *(f"axis_{name}" for name in sizes["lengths"] if name in shared or name in out)]))

    def look(self, view: BlockView) -> Look:
        terms, out = operands(self.pattern)
        title = _in_words(terms, out)
        operation = (title.lower(),) if len(terms) > 1 else ()
        return Look(title, (self.pattern.replace("->", "→"),), "merge", operation=operation)

    def forward(self: Any, *xs: torch.Tensor) -> torch.Tensor:
        return torch.einsum(self.equation, *xs)


def _in_words(terms: Sequence[Sequence[str]], out: Sequence[str]) -> str:
    """Return what a sum over products is called where it has a name of its own."""
    summed = {name for names in terms for name in names} - {*out}
    if len(terms) == 1:
        return "Sum" if summed else "Transpose"
    left, right = terms
    if summed == {left[-1]} == {right[-1]}:
        return "Inner product"
    if summed:
        return "Matrix product" if summed <= {*left} & {*right} else "Sum of products"
    return "Product" if {*left} & {*right} else "Outer product"


def _with(names: Sequence[str], steps: str, place: int | None) -> Sequence[str]:
    return names if place is None else (*names[:place], steps, *names[place:])


def operands(pattern: str) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return the names of each input's axes, and of the output's.

    Raises:
        BlockError: The pattern is malformed.
    """
    left, arrow, right = pattern.partition("->")
    terms, out = [tuple(term.split()) for term in left.split(",")], tuple(right.split())
    sound = arrow and len(terms) <= 2 and all(terms) and all(re.fullmatch(r"[A-Za-z_]\w*", n) for n in (*sum(terms, ()), *out))
    if not sound:
        raise BlockError(
            "a pattern lists the axes of one or two inputs, separated by a comma, then `->` and the axes of the output",
            field="pattern",
            hint="pattern: batch query dim, batch key dim -> batch query key",
        )
    for names in (*terms, out):
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise BlockError(f"`{twice}` occurs twice in `{' '.join(names)}`", field="pattern")
    return terms, out
