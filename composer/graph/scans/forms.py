"""How the code of a model runs its scans, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from composer.diagnostics import Span
from composer.graph.flatten import flatten
from composer.graph.scans.hoist_steps import hoist_steps
from composer.graph.typed import TypedGraph, TypedProgram, TypedScan
from composer.graph.visit import every_pass, walk


def scan_forms(typed: TypedProgram) -> Mapping[Span, str]:
    """Return how each scan runs, by where its name is written.

    Args:
        typed: The typed program.

    Examples:
        >>> import composer
        >>> from composer.graph.scans.forms import scan_forms
        >>> [*scan_forms(composer.load("seq2seq_rnn").program).values()]
        ['loop']
    """
    forms: Mapping[Span, str] = typed.found.get("scan forms", lambda: dict(_forms(typed)))
    return forms


def _forms(typed: TypedProgram) -> Iterator[tuple[Span, str]]:
    if not any(isinstance(visit.node, TypedScan) for visit in walk(typed.root, every_pass, once=True)):
        return
    flat = flatten(typed)
    written = {
        visit.node.node.name_span: frozenset(visit.node.graph.by_name)
        for visit in walk(flat.root, every_pass, once=True)
        if isinstance(visit.node, TypedScan)
    }
    for visit in walk(hoist_steps(flat).root, every_pass, once=True):
        if isinstance(visit.node, TypedScan) and visit.graph is not None:
            span = visit.node.node.name_span
            yield span, _form(visit.node, visit.graph, written[span])


def _form(scan: TypedScan, around: TypedGraph, written: frozenset[str]) -> str:
    """Return how a scan runs, given the graph around it and the names of the nodes that the recipe has in it."""
    if scan.linear:
        return "linear: all steps at once"
    names = [node.name for node in around.nodes]
    at = names.index(scan.name)
    before, after = (
        [name.removeprefix(f"{scan.name}.") for name in part if name.startswith(f"{scan.name}.")]
        for part in (names[:at], names[at:])
    )
    before = [name for name in before if name in written]
    told = [f"{' and '.join(found)} {place} it" for found, place in ((before, "before"), (after, "after")) if found]
    return ", ".join(["loop", *told])
