"""A difference as text for a terminal and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from composer.cost.costs import Costs
from composer.cost.units import in_bytes, in_flops, short
from composer.diff.changes import (
    Added,
    Altered,
    Change,
    DifferenceData,
    LearnedChange,
    Nodes,
    Removed,
    Replaced,
    Rewired,
    Stated,
    Tied,
)

WIDTH = 100
SIGNS = {Added: "+", Removed: "-", Replaced: "~", Altered: "~", Rewired: ">", Tied: "=", LearnedChange: "~", Stated: "~"}
WORDS = {
    Added: "added",
    Removed: "removed",
    Replaced: "replaced",
    Altered: "altered",
    Rewired: "rewired",
    Tied: "tied",
    LearnedChange: "learned",
    Stated: "stated",
}
"""The names of the changes in JSON, which programs read; they do not depend on the names of the classes."""
MAX_PARAMETERS = 4
"""The most parameters that a change names."""


def render(difference: DifferenceData) -> str:
    """Return the summary line, the changes, the costs that differ, and notes."""
    lines = [summary_line(difference)]
    found = [(SIGNS[type(change)], *caption(change)) for change in difference.changes]
    if found:
        name = min(max(len(names) for _, names, _ in found), WIDTH // 2)
        lines.append("")
        for sign, names, words in found:
            first, *more = textwrap.wrap(words, max(WIDTH - name - 6, 30)) or [""]
            lines.append(f"{sign} {names:<{name}}  {first}".rstrip())
            lines.extend(f"{'':<{name + 4}}{rest}" for rest in more)
    if costs := dict(changed_costs(difference)):
        wide = max(map(len, costs))
        lines += ["", *(f"{what:<{wide}}  {text}" for what, text in costs.items())]
    if said := list(notes(difference)):
        lines += ["", *(line for note in said for line in textwrap.wrap(note, WIDTH, subsequent_indent="  "))]
    return "\n".join(lines)


def summary_line(difference: DifferenceData) -> str:
    """Return the first line: both names, and that they are the same model or how many changes there are."""
    head = f"{difference.before} → {difference.after}"
    if difference.equal:
        return f"{head}: the same model"
    count = len(difference.changes)
    before, after = difference.costs_before.parameters, difference.costs_after.parameters
    return f"{head}: {count} change{'s' * (count != 1)}, {_growth(before, after) or 'as many'} parameters"


def _growth(before: int, after: int) -> str:
    """Return `+0.5 %`, or `× 65` from a factor of 2 on; nothing if both are equal."""
    if before == after:
        return ""
    if not before or after >= 2 * before:
        return f"× {after / before:.3g}" if before else f"{short(after)}"
    percent = 100 * (after - before) / before
    return f"{percent:+.2g} %" if percent > -99.5 else f"{percent:.0f} %"


def changed_costs(difference: DifferenceData) -> Iterator[tuple[str, str]]:
    """Yield the costs that differ, at the lengths of the first model."""
    at = ", ".join(f"{axis} {length:,}" for axis, length in difference.costs_before.lengths.items())
    for what, before, after, unit in _costs_of(difference):
        if before != after:
            notes = [_growth(before, after), f"at {at}" * (what.startswith("FLOPs") and bool(at))]
            exact = "{:,}".format if unit(before) == unit(after) else unit
            yield what, f"{exact(before)} → {exact(after)} ({', '.join(filter(None, notes))})"


def unchanged_costs(difference: DifferenceData) -> Iterator[tuple[str, str]]:
    """Yield the costs that are the same in both models."""
    for what, before, after, unit in _costs_of(difference):
        if before == after != 0:
            yield what, unit(before)


def _costs_of(difference: DifferenceData) -> Iterator[tuple[str, int, int, Callable[[int], str]]]:
    """Yield each cost of both models; the trained parameters only if some are not trained."""
    one, other = difference.costs_before, difference.costs_after
    yield "parameters", one.parameters, other.parameters, "{:,}".format
    if (one.trainable, other.trainable) != (one.parameters, other.parameters):
        yield "trained", one.trainable, other.trainable, "{:,}".format
    yield "FLOPs per token" if _per_token(one, other) else "FLOPs", *_flops(one, other), in_flops
    yield "KV cache per token", one.cache_per_token("bf16"), other.cache_per_token("bf16"), in_bytes
    if one.cached_in_windows or other.cached_in_windows:
        yield "KV cache in windows", one.cache_in_windows("bf16"), other.cache_in_windows("bf16"), in_bytes


def _per_token(one: Costs, other: Costs) -> bool:
    return one.flops_per_token is not None and other.flops_per_token is not None


def _flops(one: Costs, other: Costs) -> tuple[int, int]:
    """Return the masked FLOPs, so that a change of a mask shows."""
    if one.flops_per_token is not None and other.flops_per_token is not None:
        return one.flops_per_token.masked, other.flops_per_token.masked
    return one.flops.masked, other.flops.masked


def notes(difference: DifferenceData) -> Iterator[str]:
    """Yield what is not a change itself: params, whose effects are the changes, and names of nodes."""
    if difference.params:
        yield "params: " + ", ".join(f"{param.name} {_sides(param.before, param.after)}" for param in difference.params)
    if count := len(difference.renamed):
        listed = ", ".join(f"{one} → {other}" for one, other in difference.renamed[:MAX_PARAMETERS])
        more = f" and {count - MAX_PARAMETERS} more" if count > MAX_PARAMETERS else ""
        yield f"called otherwise: {listed}{more}"


# -- changes


def caption(change: Change) -> tuple[str, str]:
    """Return the place of a change, and the change itself, in words."""
    match change:
        case Added(after=nodes) | Removed(before=nodes):
            return _times(nodes), f"{nodes.kind}: {nodes.detail}" if nodes.detail else nodes.kind
        case Replaced(before=before, after=after):
            return _times(before), _sides(_described(before), _described(after))
        case Altered(before=before, fields=fields):
            return _times(before), ", ".join(f"{field.name} {_sides(field.before, field.after)}" for field in fields)
        case Rewired(before=before, ports=ports):
            return _times(before), "; ".join(
                f"{port.port} reads {_other(port.before, port.after)} instead of {_listed(port.before)}" for port in ports
            )
        case Tied(before=before_, after=after_, parameters=parameters):
            first = f"shared with {before_}" if before_ else "not shared"
            return _listed(parameters[:MAX_PARAMETERS]), _sides(first, f"shared with {after_}" if after_ else "not shared")
        case LearnedChange(what=what, before=before_, after=after_, parameters=parameters):
            more = f" and {len(parameters) - MAX_PARAMETERS} more" if len(parameters) > MAX_PARAMETERS else ""
            return (
                "initial values" if what == "starts" else what,
                f"{_sides(before_, after_)}: {_listed(parameters[:MAX_PARAMETERS])}{more}",
            )
        case Stated(what=what, before=before_, after=after_):
            return what, _sides(before_, after_)


def _sides(before: str, after: str) -> str:
    """Return both sides of a change; what differs and is called alike is another one."""
    return f"{before} → {after}" if before != after else f"{before} → another {after}"


def _other(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    return f"another {_listed(after)}" if before == after else _listed(after)


def _described(nodes: Nodes) -> str:
    return f"{nodes.kind} ({nodes.detail})" if nodes.detail else nodes.kind


def _times(nodes: Nodes) -> str:
    return f"{nodes.name} ({len(nodes.paths)}×)" if len(nodes.paths) > 1 else nodes.name


def _listed(texts: tuple[str, ...]) -> str:
    return ", ".join(texts) or "nothing"


# -- for programs


def as_json(difference: DifferenceData) -> dict[str, Any]:
    """Return a difference as dicts, lists, strings and numbers, with the paths of all nodes."""
    return {
        "before": difference.before,
        "after": difference.after,
        "equal": difference.equal,
        "changes": [{"change": WORDS[type(change)], **asdict(change)} for change in difference.changes],
        "costs": {"before": _costs(difference.costs_before), "after": _costs(difference.costs_after)},
        "renamed": [{"before": one, "after": other} for one, other in difference.renamed],
        "params": [asdict(param) for param in difference.params],
    }


def _costs(costs: Costs) -> dict[str, Any]:
    return {
        "parameters": costs.parameters,
        "trainable": costs.trainable,
        "lengths": dict(costs.lengths),
        "flops": asdict(costs.flops),
        "flops_per_token": None if costs.flops_per_token is None else asdict(costs.flops_per_token),
        "cache_bytes_per_token": {"fp32": costs.cache_per_token("fp32"), "bf16": costs.cache_per_token("bf16")},
        "cache_bytes_in_windows": {"fp32": costs.cache_in_windows("fp32"), "bf16": costs.cache_in_windows("bf16")},
    }
