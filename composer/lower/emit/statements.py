"""The statements of one forward as lines of source: values get variables, which are deleted after their last use."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from composer.diagnostics import Span
from composer.lower.emit.identifiers import STREAM, safe
from composer.lower.passes.node_queries import Key

UNLESS_GENERATING = "if self.cache is None:  # not while a text is being written"

Naming: TypeAlias = Callable[[Key], str]
"""Returns the expression that reads a value: most often its variable."""
LOSSES: Key = ("", 0, None)
"""The mapping of the recipe's own losses, a value like those of nodes."""
SourceLines: TypeAlias = "list[tuple[str, Span | None, str]]"
"""Lines of code, each with its place in the recipe and the node that it computes."""


@dataclass(slots=True, eq=False)
class Statement:
    """One call and the values that it returns."""

    results: Sequence[Key | None]
    """The values that it returns; None for one that nothing reads."""
    uses: Sequence[Key]
    """The values that it reads, in the order of the call."""
    write: Callable[[Naming], str]
    """The expression, given each value's name."""
    place: Span
    node: str
    loop: LoopStatement | None = None
    steps: ScanStatement | None = None
    name: str = ""
    """The variable that is wanted; empty for any of `STREAM`."""
    updates: bool = False
    """Whether it gives a state its next value, and so comes after all reads of the old one."""
    caches: bool = False
    """Whether it caches something for the next call, and so is needed though nothing reads what it gives."""


@dataclass(slots=True)
class LoopStatement:
    """The passes of a repeat, written as a loop."""

    rows: Callable[[Naming], list[tuple[str, str]]]
    """What differs from pass to pass: for each a variable and its tuple, given the names of values."""
    header: Callable[[str], str]
    """The `for` line, given the variable of the module."""
    module: str
    carried: Sequence[tuple[Key, Key]]
    """For each value that goes from pass to pass: the one that the first pass takes, and the one that the last returns."""
    call: Callable[[Naming, str, dict[Key, str]], str]
    """The call, given the names of outer values, the variable of the module, and the variables of carried values."""
    outputs: int
    carried_outputs: list[int]
    """Which output each carried value is."""
    collected: list[tuple[int, str]] = field(default_factory=list)
    """Outputs that are needed of every pass, each with the variable of their list."""


@dataclass(slots=True)
class ScanStatement:
    """The steps of a scan, written as a loop."""

    walked: Mapping[Key, str]
    """The values that are taken step by step, each with the variable wanted for one step."""
    rows: Callable[[Naming], list[str]]
    """What each of them is iterated over, given the names of outer values."""
    carried: Mapping[Key, tuple[str, int]]
    """The values that go from step to step, each with the variable wanted and the position of its output."""
    start: Callable[[str, Naming], str]
    """The expression of a carried value before the first step, given the variable wanted and the names of outer values."""
    call: Callable[[Naming], str]
    outputs: Sequence[str]
    places: Sequence[int]
    """For each output that is stacked, from the first on, the position of the axis."""
    end: Callable[[Naming], str] | None
    """The statement that caches the carry for the next call; None where no text is generated along the axis."""


@dataclass(frozen=True, slots=True)
class LossValue:
    """One of the recipe's own losses."""

    name: str
    key: Key
    optional: Sequence[Key]
    """The model's inputs without which it cannot be computed, and which may be absent."""


class StatementWriter:
    """Turns the statements of one forward into lines."""

    def __init__(self, inputs: Sequence[tuple[Key, str]], keep_inputs: bool, outputs: Sequence[Key]) -> None:
        self.names: dict[Key, str] = dict(inputs)
        self.reserved = {name for _, name in inputs} if keep_inputs else set()
        """Variables that are never assigned again."""
        self.outputs = list(outputs)
        self.deletable: set[str] = set()
        """Variables that may be deleted; for what the caller holds, or many nodes share, a `del` frees nothing."""
        self.lines: SourceLines = []

    def write(
        self,
        statements: Sequence[Statement],
        result: Callable[[Naming], str],
        losses: Mapping[str, LossValue],
        left_out: Collection[Key],
    ) -> SourceLines:
        """Return the lines of the body. While a text is generated, `losses`, given by their nodes, and the outputs that are
        `left_out` are not computed: what nothing else needs comes last and is skipped then.
        """
        skipped: set[Statement] = set()
        if losses or left_out:
            skipped.update(statements)
            skipped -= needed([key for key in self.outputs if key not in left_out], statements)
        statements = sorted(statements, key=lambda one: 2 if one.updates else one in skipped)
        last: dict[Key, int] = {}
        for position, statement in enumerate(statements):
            for key in statement.uses:
                last[key] = position
        for key in self.outputs:
            last[key] = len(statements)
        for position, statement in enumerate(statements):
            if statement in skipped and (position == 0 or statements[position - 1] not in skipped):
                self.lines += [(f"{self.names[LOSSES]} = {{}}", None, "")] if losses else []
                self.lines.append((UNLESS_GENERATING, None, ""))
            before = len(self.lines)
            dead = [key for key in dict.fromkeys(statement.uses) if last[key] == position and key in self.names]
            if (
                position == len(statements) - 1
                and list(statement.results) == self.outputs
                and len(self.outputs) == 1
                and statement.loop is None
                and statement.steps is None
            ):
                call = statement.write(self.names.__getitem__)
                text = result(lambda _, call=call: call)  # type: ignore[misc]  # mypy cannot type a default of a lambda
                self.lines.append((f"return {text}", statement.place, statement.node))
                return self.lines
            self._call(statement, dead, last, losses)
            if statement in skipped:
                self.lines[before:] = [(f"    {text}", place, node) for text, place, node in self.lines[before:]]
        self.lines.append((f"return {result(self.names.__getitem__)}", None, ""))
        return self.lines

    def _call(self, statement: Statement, dead: list[Key], last: dict[Key, int], losses: Mapping[str, LossValue]) -> None:
        if statement.loop is not None:
            self._loop(statement, statement.loop, dead, last)
            return
        if statement.steps is not None:
            self._scan(statement, statement.steps, dead, last)
            return
        text = statement.write(self.names.__getitem__)
        if (loss := losses.get(statement.node)) is not None and statement.results == [loss.key]:
            there = [f"{self.names[key]} is not None" for key in loss.optional]
            if there:
                self.lines.append((f"if {' and '.join(there)}:", statement.place, statement.node))
            indent, held = "    " * bool(there), self.names[LOSSES]
            self.lines.append((f"{indent}{held}[{loss.name!r}] = {text}", statement.place, statement.node))
            self._delete([self.names.pop(key) for key in dead])
            return
        free = [self.names.pop(key) for key in dead]
        reusable = [name for name in free if name not in self.reserved and name in {*STREAM} and name not in self.names.values()]
        targets = []
        for key in statement.results:
            if key is None or (key not in last):
                targets.append("_")
                continue
            name = reusable.pop(0) if reusable and not statement.name else self._new(statement)
            self.names[key] = name
            if not statement.name:
                self.deletable.add(name)
            targets.append(name)
        self.lines.append((f"{', '.join(targets)} = {text}" if targets else text, statement.place, statement.node))
        self._delete(free)

    def _delete(self, free: list[str]) -> None:
        gone = [name for name in dict.fromkeys(free) if name in self.deletable and name not in self.names.values()]
        if gone:
            self.lines.append((f"del {', '.join(gone)}", None, ""))

    def _loop(self, statement: Statement, loop: LoopStatement, dead: list[Key], last: dict[Key, int]) -> None:
        carried: dict[Key, str] = {}
        for (before, after), _ in zip(loop.carried, loop.carried_outputs, strict=True):
            current = self.names[before]
            alone = list(self.names.values()).count(current) == 1 and list(statement.uses).count(before) == 1
            if before in dead and current not in self.reserved and alone:
                carried[after] = current
                dead.remove(before)
                del self.names[before]
            else:
                name = self._new(statement, extra=set(carried.values()))
                self.lines.append((f"{name} = {current}", statement.place, statement.node))
                carried[after] = name
        taken = {*self.names.values(), *carried.values()}
        for _, name in loop.collected:
            self.lines.append((f"{name} = []", statement.place, statement.node))
        for name, text in loop.rows(self.names.__getitem__):
            self.reserved.add(name)
            self.lines.append((f"{name} = {text}", statement.place, statement.node))
        module = safe(loop.module, taken | self.reserved)
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
        free = [self.names.pop(key) for key in dead if key in self.names]
        for after, name in carried.items():
            self.names[after] = name
            self.deletable.add(name)
        for output, name in loop.collected:
            self.reserved.add(name)
            for key in last:
                if key[0] == statement.node and key[1] == output and key not in self.names:
                    self.names[key] = f"{name}[{key[2]}]"
        self._delete(free)

    def _scan(self, statement: Statement, scan: ScanStatement, dead: list[Key], last: dict[Key, int]) -> None:
        own: list[str] = []

        def fresh(wanted: str) -> str:
            own.append(safe(wanted, {*self.names.values(), *self.reserved, *own}))
            return own[-1]

        def line(text: str) -> None:
            self.lines.append((text, statement.place, statement.node))

        outer = self.names.__getitem__
        carried = {key: fresh(wanted) for key, (wanted, _) in scan.carried.items()}
        returned = {output: carried[key] for key, (_, output) in scan.carried.items()}
        for key, (wanted, _) in scan.carried.items():
            line(f"{carried[key]} = {scan.start(wanted, outer)}")
        walked = {key: fresh(wanted) for key, wanted in scan.walked.items()}
        read = [key is not None and key in last for key in statement.results]
        for index, name in enumerate(scan.outputs):
            if read[index]:
                returned.setdefault(index, "")
                returned[index] = returned[index] or fresh(re.sub(r"\W", "_", name) or "y")
        kept = {
            index: fresh(f"{(statement.node if not index else scan.outputs[index]).rpartition('.')[2]}_steps")
            for index in range(len(scan.places))
            if read[index]
        }
        for name in kept.values():
            line(f"{name} = []")
        rows = scan.rows(outer)
        together = rows[0] if len(rows) == 1 else f"zip({', '.join(rows)})"
        line(f"for {', '.join(walked.values())} in {together}:")
        inside = {**self.names, **carried, **walked}
        targets = [returned.get(index, "_") for index in range(len(scan.outputs))]
        line(f"    {', '.join(targets)} = {scan.call(inside.__getitem__)}")
        for index, name in kept.items():
            line(f"    {name}.append({returned[index]})")
        if scan.end is not None:
            line(scan.end(inside.__getitem__))
        free = [self.names.pop(key) for key in dead]
        self.deletable.update(own)
        for index, given in enumerate(statement.results):
            if given is not None and read[index]:
                self.names[given] = self._new(statement, extra=own) if index in kept else returned[index]
                if index in kept:
                    self.deletable.add(self.names[given])
                    line(f"{self.names[given]} = torch.stack({kept[index]}, {scan.places[index]})")
        self._delete([*free, *own])

    def _new(self, statement: Statement, extra: Collection[str] = ()) -> str:
        taken = {*self.names.values(), *self.reserved, *extra}
        if statement.name:
            return safe(statement.name, taken)
        for name in STREAM:
            if name not in taken:
                return name
        return safe(statement.node.rpartition(".")[2] or "value", taken)


def needed(values: Sequence[Key], statements: Sequence[Statement]) -> set[Statement]:
    """Return the statements that some values or the updates of states need: none of them reads what another statement gives."""
    wanted = set(values)
    found = set()
    for statement in reversed(statements):
        if statement.updates or statement.caches or not wanted.isdisjoint(statement.results):
            wanted.update(statement.uses)
            found.add(statement)
    return found
