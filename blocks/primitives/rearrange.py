"""Reordering, splitting and merging axes by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from blocks.core import Block, BlockError, BlockView, Look, Paper, PositiveInt, Sizes, torch


class Rearrange(Block, kind="rearrange"):
    """Transpose, split and merge axes in the notation of einops: `batch time (heads dim) -> batch heads time dim`.

    The left side names each axis of the input, in order; parentheses split an axis into the ones that they name, the first of
    which varies slowest. The right side has the same names; parentheses merge axes into one, which takes the name of the last.
    """

    pattern: str
    """The axes before and after `->`; names are local to the pattern, whatever the wired axes are called."""
    sizes: tuple[PositiveInt, ...] = ()
    """Sizes of the new axes in the order of the pattern: for each split, of all but its last axis."""
    lengths: dict[str, PositiveInt] = {}
    """Lengths of new axes by their names, in place of `sizes`: for each split, of all but one of its axes, such as
    `{i: window, j: window}` for `b (p i) (q j) c -> …`."""

    is_primitive = True
    paper = Paper("Einops: Clear and Reliable Tensor Manipulations with Einstein-like Notation", "ICLR 2022")
    example = """
inputs: {x: "float[batch, time, 12]"}
graph: {y: {type: rearrange, pattern: "b t (h d) -> b h t d", lengths: {h: 3}, in: x}}
"""
    inputs = {"x": "any[...]"}
    outputs = {"y": "any[...]"}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        left, right = sides(self.pattern)
        axes = sizes["..."]
        if len(left) != len(axes):
            shown = ", ".join(str(axis.size) for axis in axes)
            raise BlockError(f"the pattern takes {len(left)} axes, and the input has {len(axes)}: [{shown}]", field="pattern")
        before, after = [name for group in left for name in group], [name for group in right for name in group]
        if twice := next((name for name in before if before.count(name) > 1), None):
            raise BlockError(f"two axes are called `{twice}`", field="pattern")
        if sorted(before) != sorted(after):
            odd = sorted(set(before) ^ set(after)) or sorted(name for name in after if after.count(name) > 1)
            raise BlockError(f"`{odd[0]}` must occur once on each side of `->`", field="pattern")
        strange = next((name for name in self.lengths if not any(name in group for group in left if len(group) > 1)), None)
        if strange is not None:
            raise BlockError(f"the pattern splits no axis into `{strange}`", field="lengths")
        needed = sum(len(group) - 1 for group in left if not self.lengths.keys() & set(group))
        if len(self.sizes) != needed:
            raise BlockError(
                f"`sizes` needs an entry for each new axis of the pattern: {needed}, not {len(self.sizes)}",
                field="sizes",
                hint="" if self.sizes else self._lengths_hint(axes),
            )
        for group, axis, new in zip(left, axes, splits(left, self.sizes, self.lengths), strict=True):
            if len(new) != len(group) * (len(group) > 1) or new.count(None) > 1:
                lacking = ", ".join(name for name in group if name not in self.lengths)
                raise BlockError(f"one length of ({' '.join(group)}) may be left out, not {lacking}", field="lengths")
            whole = prod(size for size in new if size is not None)
            if isinstance(axis.size, int) and (axis.size % whole or (new and None not in new and whole != axis.size)):
                known = " · ".join(str(size) for size in new if size is not None)
                field = "lengths" if self.lengths.keys() & set(group) else "sizes"
                message = f"{axis.size} is not {'a multiple of ' * (None in new)}{known}, for `{' '.join(group)}`"
                raise BlockError(message, field=field, code="indivisible")

    def _lengths_hint(self, axes: Sequence[Any]) -> str:
        """Return how the axes get lengths that are split without any, and what to do where nobody knows one."""
        cut = [
            (group, axis)
            for group, axis in zip(sides(self.pattern)[0], axes, strict=True)
            if len(group) > 1 and not self.lengths.keys() & set(group)
        ]
        lengths = ", ".join(f"{name}: …" for group, _ in cut for name in group[:-1])
        if all(isinstance(axis.size, int) for _, axis in cut):
            return f"lengths: {{{lengths}}}"
        return (
            f"lengths: {{{lengths}}}, or do not merge these axes: a `scan` along one of them applies a graph to each of its steps"
        )

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        left, right = sides(self.pattern)
        names = [name for group in left for name in group]
        # From the last axis on, so that the indices of earlier axes stay valid for `unflatten` and `flatten`.
        sizes_of = (tuple(-1 if size is None else size for size in new) for new in splits(left, self.sizes, self.lengths))
        apart = [(index, new) for index, new in enumerate(sizes_of) if new]
        order = [names.index(name) for group in right for name in group]
        together = [(index, index + len(group) - 1) for index, group in enumerate(right) if len(group) > 1]
        return {"apart": tuple(reversed(apart)), "order": tuple(order), "together": tuple(together)}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        left, right = sides(self.pattern)
        lengths: dict[str, Any] = {}
        for group, axis, new in zip(left, sizes["..."], splits(left, self.sizes, self.lengths), strict=True):
            rest = axis.size // prod(size for size in new if size is not None)
            lengths.update(zip(group, (rest if size is None else size for size in new) if new else [axis.size], strict=True))
        axes = []
        for group in right:
            size = lengths[group[0]]
            for name in group[1:]:
                size = size * lengths[name]
            axes.append(replace(sizes["..."][0], name=group[-1], size=size))
        return {"y": replace(inputs["x"], axes=tuple(axes))}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        left, right = sides(self.pattern)
        return [axis.size for group, axis in zip(left, sizes["..."], strict=True) if len(group) > 1 and group not in right]

    def look(self, view: BlockView) -> Look:
        only_order = all(len(group) == 1 for side in sides(self.pattern) for group in side)
        return Look("Transpose" if only_order else self.called(), (self.pattern.replace("->", "→"),), "merge", low=True)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        for place, sizes in self.apart:
            x = torch.unflatten(x, place, sizes)
        x = x.permute(self.order)
        for first, last in self.together:
            x = x.flatten(first, last)
        return x


def splits(left: list[tuple[str, ...]], sizes: Sequence[int], lengths: Mapping[str, int]) -> list[tuple[int | None, ...]]:
    """Return, for each axis of the input, the sizes of the axes that it is split into, None for the one that follows.

    Args:
        left: The names of the axes of the input, grouped by parentheses.
        sizes: The sizes that are written in order.
        lengths: Those that are written by name.
    """
    rest = list(sizes)
    found: list[tuple[int | None, ...]] = []
    for group in left:
        if lengths.keys() & set(group):
            found.append(tuple(lengths.get(name) for name in group))
        else:
            found.append((*(rest.pop(0) for _ in group[1:]), *[None] * (len(group) > 1)))
    return found


def sides(pattern: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return the names of the axes before and after the arrow, grouped by parentheses.

    Raises:
        BlockError: The pattern is malformed.
    """
    pieces = pattern.split("->")
    if len(pieces) != 2 or not all(re.fullmatch(r"(\s*(\([\w\s]*\w[\w\s]*\)|\w+\b))+\s*", piece) for piece in pieces):
        raise BlockError(
            "a pattern lists names of axes on both sides of `->`, in parentheses where several are one axis",
            field="pattern",
            hint="pattern: batch time (heads dim) -> batch heads time dim",
        )
    left, right = (re.findall(r"\(([^)]*)\)|(\w+)", piece) for piece in pieces)
    return [tuple((a or b).split()) for a, b in left], [tuple((a or b).split()) for a, b in right]
