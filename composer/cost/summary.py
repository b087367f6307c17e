"""The summary of a model, and its text for a terminal of a hundred columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from composer.cost.cached import cached_words
from composer.cost.costs import Costs
from composer.cost.flops import Flops
from composer.cost.units import in_bytes, in_flops, short

WIDTH = 100
MIN_DETAIL_WIDTH = 18
"""Fewest columns for the description of a block, however deep the tree."""


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """The row of a node."""

    name: str
    block: str
    """Its type; for a repeat, the number of passes."""
    detail: str
    """A short description of its fields."""
    output: str
    """The type of its first output; empty for a part in a slot."""
    parameters: int
    """Number of parameters it owns; inside a repeat, those of one pass."""
    total: int
    """Number of parameters of all passes that the row stands for."""
    children: tuple[SummaryRow, ...] = ()


Rows: TypeAlias = tuple[SummaryRow, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a model, from `Recipe.summary`; `str` renders it as text.

    Examples:
        >>> import composer
        >>> summary = composer.load("gpt2").summary()
        >>> [row.name for row in summary.rows][:3]
        ['embed', 'positions', 'drop']
    """

    name: str
    doc: str
    paper: str
    costs: Costs
    rows: tuple[SummaryRow, ...]
    assumed: tuple[str, ...] = ()
    """The axes that have a length for want of any other."""

    def __str__(self) -> str:
        return render(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def to_json(self) -> dict[str, Any]:
        """Return the summary as dicts, lists, strings and numbers, with every figure of the text.

        Examples:
            >>> import composer
            >>> composer.load("gpt2").summary().to_json()["parameters"]
            124439808
        """
        model = self.costs
        return {
            "name": self.name,
            "doc": self.doc,
            "paper": self.paper,
            "parameters": model.parameters,
            "trainable": model.trainable,
            "active": model.active,
            "bytes": {"fp32": model.weights("fp32"), "bf16": model.weights("bf16"), "adamw": model.optimizer},
            "lengths": dict(model.lengths),
            "flops": asdict(model.flops),
            "flops_per_token": None if model.flops_per_token is None else asdict(model.flops_per_token),
            "cache_bytes_per_token": {"fp32": model.cache_per_token("fp32"), "bf16": model.cache_per_token("bf16")},
            "cache_bytes_in_windows": {"fp32": model.cache_in_windows("fp32"), "bf16": model.cache_in_windows("bf16")},
            "nodes": [asdict(row) for row in self.rows],
        }


@dataclass(frozen=True, slots=True)
class _Line:
    """A row with the tree lines before its name."""

    tree: str
    row: SummaryRow


def render(summary: Summary) -> str:
    """Return the name and the costs, then the tree."""
    return "\n".join([*_head(summary), "", *_tree(summary), ""])


def _head(summary: Summary) -> Iterator[str]:
    model = summary.costs
    yield from textwrap.wrap(f"{summary.name}: {summary.doc}" if summary.doc else summary.name, WIDTH)
    if summary.paper:
        yield from textwrap.wrap(summary.paper, WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield ""
    frozen = f", of which {model.trainable:,} are trained" if model.trainable != model.parameters else ""
    active = f", {model.active:,} ({short(model.active)}) active per token" if model.active != model.parameters else ""
    at = ", ".join(f"{axis} {length:,}" for axis, length in model.lengths.items())
    figures = {
        "parameters": f"{model.parameters:,} ({short(model.parameters)}){active}{frozen}",
        "weights": f"{in_bytes(model.weights('fp32'))} in fp32, {in_bytes(model.weights('bf16'))} in bf16",
        "AdamW": f"{in_bytes(model.optimizer)} of state",
        "forward": f"{_flops(model.flops)}{f', {at}' if at else ''}",
    }
    if len(summary.assumed) > 1:  # of several, some are seldom as long
        *others, last = summary.assumed
        figures["assumed"] = f"{model.lengths[last]:,} for {', '.join(others)} and {last}: set them, such as --at {last}=16"
    if model.flops_per_token is not None:
        figures["per token"] = _flops(model.flops_per_token)
    if cached := cached_words(model.cache_per_token("bf16"), model.cache_in_windows("bf16")):
        figures["KV cache"] = f"{cached}{',' * bool(model.cached_in_windows)} in bf16"
    for name, text in figures.items():
        yield from textwrap.wrap(f"{name:<12}{text}", WIDTH, subsequent_indent=" " * 12)


def _flops(flops: Flops) -> str:
    skipping = f" ({in_flops(flops.masked)} where masked pairs are skipped)"
    return in_flops(flops.dense) + skipping * (flops.dense != flops.masked)


def _tree(summary: Summary) -> Iterator[str]:
    lines = list(_lines(summary.rows))
    whole = max(summary.costs.parameters, 1)
    names = [f"{line.tree}{line.row.name}" for line in lines]
    outputs = [_shape(line.row.output) for line in lines]
    counts = [f"{line.row.parameters:,}" if line.row.parameters else "" for line in lines]
    name, output, count = (max(map(len, ["", *column])) for column in (names, outputs, [*counts, "parameters"]))
    middle = max(MIN_DETAIL_WIDTH, WIDTH - name - output - count - 14)  # 7 characters between the columns, 7 for the share
    yield f"{'node':<{name}}  {'block':<{middle}}  {'output':<{output}}  {'parameters':>{count}}   share"
    for line, label, shape, number in zip(lines, names, outputs, counts, strict=True):
        words = ": ".join(part for part in (line.row.block, line.row.detail) if part)
        first, *more = textwrap.wrap(_broken(words, middle), middle) or [""]
        share = f"{line.row.total / whole:7.1%}" if line.row.total else ""
        yield f"{label:<{name}}  {first:<{middle}}  {shape:<{output}}  {number:>{count}} {share}".rstrip()
        below = _continued(line)
        yield from (f"{below:<{name}}  {rest}" for rest in more)
    if any(row.block.startswith("×") for row in summary.rows):
        yield ""
        yield "Inside a repeat, parameters are those of one pass, and shares those of all passes."


def _broken(text: str, width: int) -> str:
    """Return a text in which names that are longer than a line have spaces behind dots, at which lines may end."""
    words = []
    for word in text.split(" "):
        pieces = [""]
        for part in re.findall(r"[^.]*\.|[^.]+$", word) if len(word) > width else [word]:
            if pieces[-1] and len(pieces[-1]) + len(part) > width:
                pieces.append("")
            pieces[-1] += part
        words += pieces
    return " ".join(words)


def _lines(rows: Sequence[SummaryRow], tree: str = "") -> Iterator[_Line]:
    for row in rows:
        yield from _branch(row, tree)


def _branch(row: SummaryRow, tree: str) -> Iterator[_Line]:
    yield _Line(tree, row)
    for child in row.children:
        yield from _branch(child, _passing(tree) + ("└─ " if child is row.children[-1] else "├─ "))


def _passing(tree: str) -> str:
    """Return the tree lines that continue below a row."""
    return tree.replace("├─ ", "│  ").replace("└─ ", "   ")


def _continued(line: _Line) -> str:
    """Return the tree lines beside the second line of a row."""
    return _passing(line.tree) + ("│" if line.row.children else "")


def _shape(output: str) -> str:
    """Return `float[batch, time, 768]` as `[batch, time, 768]`."""
    return output.removeprefix("float")
