"""The statements of one forward: in the order of the graph, each value freed at its last use."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from composer.diagnostics import Span
from composer.lower.emit.identifiers import STREAM, safe
from composer.lower.passes.node_queries import Key

UNLESS_WRITING = "if self.cache is None:  # not while a text is being written"

Naming: TypeAlias = Callable[[Key], str]
"""Tells how a value is called in the text."""
LOSSES: Key = ("", 0, None)
"""The recipe's own losses, which `forward` collects under a name of their own."""


@dataclass(slots=True)
class Statement:
    """One call and the values that it gives."""

    gives: Sequence[Key | None]
    """None for an output that nothing reads."""
    uses: Sequence[Key]
    """In the order of the call."""
    write: Callable[[Naming], str]
    """The expression, given each value's name."""
    place: Span
    node: str
    loop: LoopStatement | None = None
    steps: ScanStatement | None = None
    name: str = ""
    """What to call the value; nothing for the stream's usual names."""


@dataclass(slots=True)
class LoopStatement:
    """The passes of a repeat, written as a loop."""

    rows: Callable[[Naming], list[tuple[str, str]]]
    """What differs from pass to pass, a tuple under a name each, given values' names."""
    header: Callable[[str], str]
    """The `for` line, given the module's name."""
    module: str
    carried: Sequence[tuple[Key, Key]]
    """For each value that goes from pass to pass: what the first pass takes, and what the last one gives."""
    call: Callable[[Naming, str, dict[Key, str]], str]
    """The call, given outer values' names, the module's name, and the carried values' names."""
    outputs: int
    carried_outputs: list[int]
    """Which output each carried value is."""
    collected: list[tuple[int, str]] = field(default_factory=list)
    """Outputs kept from every pass, each with the list that holds them."""


@dataclass(slots=True)
class ScanStatement:
    """The steps of a scan, written as a loop."""

    walked: Mapping[Key, str]
    """What arrives step by step, with what to call one."""
    rows: Callable[[Naming], list[str]]
    """What each of them is taken from, given outer values' names."""
    carried: Mapping[Key, tuple[str, int]]
    """What goes from step to step: what to call it, and which output it is."""
    start: Callable[[str, Naming], str]
    """What it is before the first step."""
    call: Callable[[Naming], str]
    outputs: Sequence[str]
    place: int
    """Where the axis stands in what all steps give together."""
    end: Callable[[Naming], str] | None
    """What is left to the next call, where texts are written along the axis."""


@dataclass(frozen=True, slots=True)
class LossValue:
    """One of the recipe's own losses."""

    name: str
    key: Key
    optional: Sequence[Key]
    """The model's inputs without which it cannot be computed, and which may be absent."""


class StatementWriter:
    """Turns statements into lines, choosing names."""

    def __init__(self, inputs: Sequence[tuple[Key, str]], keep_inputs: bool, outputs: Sequence[Key]) -> None:
        self.names: dict[Key, str] = dict(inputs)
        self.fixed = {name for _, name in inputs} if keep_inputs else set()
        self.outputs = list(outputs)
        self.made: set[str] = set()
        """Variables that nodes gave; what the caller holds, or what many nodes share, is not worth a `del`."""
        self.lines: list[tuple[str, Span | None, str]] = []

    def write(
        self,
        statements: Sequence[Statement],
        result: Callable[[Naming], str],
        losses: Mapping[str, LossValue],
    ) -> list[tuple[str, Span | None, str]]:
        """Return the lines of the body, each with its place in the recipe and its node. What only `losses`, by their nodes, need
        comes last, and is left out while a text is being written.
        """
        asked = only_for([loss.key for loss in losses.values()], self.outputs, statements)
        changing = [one for one in statements if not one.gives]  # states, when all have seen what they were
        statements = [*(one for one in statements if one not in asked and one not in changing), *asked, *changing]
        last: dict[Key, int] = {}
        for position, statement in enumerate(statements):
            for key in statement.uses:
                last[key] = position
        for key in self.outputs:
            last[key] = len(statements)
        for position, statement in enumerate(statements):
            if asked and statement is asked[0]:
                self.lines += [(f"{self.names[LOSSES]} = {{}}", None, ""), (UNLESS_WRITING, None, "")]
            before = len(self.lines)
            dying = [key for key in dict.fromkeys(statement.uses) if last[key] == position and key in self.names]
            if (
                position == len(statements) - 1
                and list(statement.gives) == self.outputs
                and len(self.outputs) == 1
                and statement.loop is None
                and statement.steps is None
            ):
                written = statement.write(self.names.__getitem__)
                text = result(lambda _, written=written: written)  # type: ignore[misc]  # mypy cannot type a default of a lambda
                self.lines.append((f"return {text}", statement.place, statement.node))
                return self.lines
            self._one(statement, dying, last, losses)
            if statement in asked:
                self.lines[before:] = [(f"    {text}", place, node) for text, place, node in self.lines[before:]]
        self.lines.append((f"return {result(self.names.__getitem__)}", None, ""))
        return self.lines

    def _one(self, statement: Statement, dying: list[Key], last: dict[Key, int], losses: Mapping[str, LossValue]) -> None:
        if statement.loop is not None:
            self._loop(statement, statement.loop, dying, last)
            return
        if statement.steps is not None:
            self._steps(statement, statement.steps, dying, last)
            return
        text = statement.write(self.names.__getitem__)
        if (loss := losses.get(statement.node)) is not None and statement.gives == [loss.key]:
            there = [f"{self.names[key]} is not None" for key in loss.optional]
            if there:
                self.lines.append((f"if {' and '.join(there)}:", statement.place, statement.node))
            indent, held = "    " * bool(there), self.names[LOSSES]
            self.lines.append((f"{indent}{held}[{loss.name!r}] = {text}", statement.place, statement.node))
            self._forget([self.names.pop(key) for key in dying])
            return
        free = [self.names.pop(key) for key in dying]
        reusable = [name for name in free if name not in self.fixed and name in {*STREAM} and name not in self.names.values()]
        targets = []
        for key in statement.gives:
            if key is None or (key not in last):
                targets.append("_")
                continue
            name = reusable.pop(0) if reusable and not statement.name else self._new(statement)
            self.names[key] = name
            if not statement.name:
                self.made.add(name)
            targets.append(name)
        self.lines.append((f"{', '.join(targets)} = {text}" if targets else text, statement.place, statement.node))
        self._forget(free)

    def _forget(self, free: list[str]) -> None:
        gone = [name for name in dict.fromkeys(free) if name in self.made and name not in self.names.values()]
        if gone:
            self.lines.append((f"del {', '.join(gone)}", None, ""))

    def _loop(self, statement: Statement, loop: LoopStatement, dying: list[Key], last: dict[Key, int]) -> None:
        carried: dict[Key, str] = {}
        for (before, after), _ in zip(loop.carried, loop.carried_outputs, strict=True):
            current = self.names[before]
            alone = list(self.names.values()).count(current) == 1 and list(statement.uses).count(before) == 1
            if before in dying and current not in self.fixed and alone:
                carried[after] = current
                dying.remove(before)
                del self.names[before]
            else:
                name = self._new(statement, extra=set(carried.values()))
                self.lines.append((f"{name} = {current}", statement.place, statement.node))
                carried[after] = name
        taken = {*self.names.values(), *carried.values()}
        for _, name in loop.collected:
            self.lines.append((f"{name} = []", statement.place, statement.node))
        for name, text in loop.rows(self.names.__getitem__):
            self.fixed.add(name)
            self.lines.append((f"{name} = {text}", statement.place, statement.node))
        module = safe(loop.module, taken | self.fixed)
        self.lines.append((loop.header(module), statement.place, statement.node))
        kept = dict(loop.collected)
        targets = []
        for output in range(loop.outputs):
            if output in loop.carried_outputs:
                targets.append(carried[loop.carried[loop.carried_outputs.index(output)][1]])
            else:
                targets.append(f"{kept[output]}_" if output in kept else "_")
        text = loop.call(self.names.__getitem__, module, carried)
        self.lines.append((f"    {', '.join(targets)} = {text}", statement.place, statement.node))
        for output, name in loop.collected:
            self.lines.append((f"    {name}.append({targets[output]})", statement.place, statement.node))
        free = [self.names.pop(key) for key in dying if key in self.names]
        for after, name in carried.items():
            self.names[after] = name
            self.made.add(name)
        for output, name in loop.collected:
            self.fixed.add(name)
            for key in last:
                if key[0] == statement.node and key[1] == output and key not in self.names:
                    self.names[key] = f"{name}[{key[2]}]"
        self._forget(free)

    def _steps(self, statement: Statement, scan: ScanStatement, dying: list[Key], last: dict[Key, int]) -> None:
        own: list[str] = []

        def fresh(wanted: str) -> str:
            own.append(safe(wanted, {*self.names.values(), *self.fixed, *own}))
            return own[-1]

        def line(text: str) -> None:
            self.lines.append((text, statement.place, statement.node))

        outer = self.names.__getitem__
        carried = {key: fresh(wanted) for key, (wanted, _) in scan.carried.items()}
        returned = {output: carried[key] for key, (_, output) in scan.carried.items()}
        for key, (wanted, _) in scan.carried.items():
            line(f"{carried[key]} = {scan.start(wanted, outer)}")
        walked = {key: fresh(wanted) for key, wanted in scan.walked.items()}
        read = [key is not None and key in last for key in statement.gives]
        for index, name in enumerate(scan.outputs):
            if read[index]:
                returned.setdefault(index, "")
                returned[index] = returned[index] or fresh(re.sub(r"\W", "_", name) or "y")
        kept = fresh(f"{statement.node.rpartition('.')[2]}_steps") if read[0] else ""
        if kept:
            line(f"{kept} = []")
        rows = scan.rows(outer)
        together = rows[0] if len(rows) == 1 else f"zip({', '.join(rows)})"
        line(f"for {', '.join(walked.values())} in {together}:")
        inside = {**self.names, **carried, **walked}
        targets = [returned.get(index, "_") for index in range(len(scan.outputs))]
        line(f"    {', '.join(targets)} = {scan.call(inside.__getitem__)}")
        if kept:
            line(f"    {kept}.append({returned[0]})")
        if scan.end is not None:
            line(scan.end(inside.__getitem__))
        free = [self.names.pop(key) for key in dying]
        self.made.update(own)
        for index, given in enumerate(statement.gives):
            if given is not None and read[index]:
                self.names[given] = returned[index] if index else self._new(statement, extra=own)
        if kept and (first := statement.gives[0]) is not None:
            self.made.add(self.names[first])
            line(f"{self.names[first]} = torch.stack({kept}, {scan.place})")
        self._forget([*free, *own])

    def _new(self, statement: Statement, extra: Collection[str] = ()) -> str:
        taken = {*self.names.values(), *self.fixed, *extra}
        if statement.name:
            return safe(statement.name, taken)
        for name in STREAM:
            if name not in taken:
                return name
        return safe(statement.node.rpartition(".")[2] or "value", taken)


def only_for(keys: Sequence[Key], others: Sequence[Key], statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements that only these values need, and neither the others nor a state."""
    wanted, kept = set(keys), {*others, *(key for one in statements if not one.gives for key in one.uses)}
    found = []
    for statement in reversed(statements):
        given = set(statement.gives)
        if given & kept:
            kept.update(statement.uses)
        elif given & wanted:
            wanted.update(statement.uses)
            found.append(statement)
    return found[::-1]
