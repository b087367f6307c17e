"""Repeats as one loop, where every input of the passes comes about in a way that a loop can express."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from composer.graph.ir import Ref
from composer.graph.typed import TypedRepeat
from composer.lower.emit.constructor_trees import pattern
from composer.lower.emit.identifiers import attribute, safe
from composer.lower.emit.scope import ForwardScope, Signature
from composer.lower.emit.skeletons import Instance
from composer.lower.emit.statements import LoopStatement, Naming, Statement
from composer.lower.passes.node_queries import Key, key_of
from composer.lower.passes.shared_weights import modules_of


@dataclass(frozen=True, slots=True)
class SameValue:
    """An input that is the same for all passes."""

    refs: Sequence[Ref]


@dataclass(frozen=True, slots=True)
class Varying:
    """An input with a value of its own from outside for each pass; None for a pass that has none."""

    refs: Sequence[Ref | None]


@dataclass(frozen=True, slots=True)
class Carried:
    """An input that is an output of the previous pass, with an initial value."""

    output: int


@dataclass(frozen=True, slots=True)
class Previous:
    """An input that is an output of the previous pass, and that the first pass lacks."""

    output: int


@dataclass(frozen=True, slots=True)
class Earlier:
    """An input that is the list of an output of all earlier passes."""

    output: int


LoopInput: TypeAlias = SameValue | Varying | Carried | Previous | Earlier


def loop(
    scope: ForwardScope, repeat: TypedRepeat, inners: Sequence[Instance], given: Sequence[Mapping[str, Sequence[Ref]]]
) -> Statement | None:
    """Return all passes as one statement; None where they differ in ways that a loop cannot express."""
    outputs = [[name for name, _ in inner.graph.graph.outputs] for inner in inners]
    signatures = [scope.signature_of(inner) for inner in inners]
    if len(inners) < 2 or any(one != outputs[0] for one in outputs) or any(one != signatures[0] for one in signatures):
        return None
    lists = [{item.name for item in inner.graph.graph.inputs if item.many} for inner in inners]
    if any(one != lists[0] for one in lists):
        return None
    inputs: dict[str, LoopInput] = {}
    for name in signatures[0].parameters:
        refs = [one.get(name, ()) for one in given]
        own = [[key_of(scope.graph, ref) for ref in one if ref.node == repeat.name] for one in refs]
        found = _earlier(refs, own) if name in lists[0] else _loop_input(refs, own)
        if found is None:
            return None
        inputs[name] = found
    carried = [how.output for how in inputs.values() if isinstance(how, Carried)]
    if len(set(carried)) != len(carried):
        return None
    return _Passes(scope, repeat, inputs, signatures[0], outputs[0]).statement(given[0])


def _earlier(refs: Sequence[Sequence[Ref]], own: Sequence[Sequence[Key]]) -> Earlier | None:
    """Return how a list comes about: in a loop it holds an output of all earlier passes, in their order."""
    outputs = {output for keys in own for _, output, _ in keys}
    in_order = all([index for *_, index in keys] == list(range(count)) for count, keys in enumerate(own))
    if len(outputs) > 1 or not in_order or any(len(keys) != len(one) for keys, one in zip(own, refs, strict=True)):
        return None
    return Earlier(next(iter(outputs), 0))


def _loop_input(refs: Sequence[Sequence[Ref]], own: Sequence[Sequence[Key]]) -> LoopInput | None:
    """Return how one value comes about; `own` are those of the references that name earlier passes."""
    if not any(own):
        alike = all(one == refs[0] for one in refs)
        return SameValue(refs[0]) if alike else Varying([one[0] if one else None for one in refs])
    of_the_pass_before = all([index for *_, index in keys] == [count] for count, keys in enumerate(own[1:]))
    if own[0] or not of_the_pass_before or len({keys[0][1] for keys in own[1:]}) > 1:
        return None
    output = own[1][0][1]
    return Carried(output) if refs[0] else Previous(output)


class _Passes:
    """The source of one loop."""

    def __init__(
        self,
        scope: ForwardScope,
        repeat: TypedRepeat,
        inputs: Mapping[str, LoopInput],
        signature: Signature,
        outputs: Sequence[str],
    ) -> None:
        self.scope, self.repeat, self.inputs, self.signature, self.outputs = scope, repeat, inputs, signature, outputs
        self.count, self.last = len(repeat.passes), repeat.name.rpartition(".")[2]
        taken = scope.names.values()
        varying = [name for name, how in inputs.items() if isinstance(how, Varying)]
        self.each = {name: safe(f"each_{name}", taken) for name in varying}
        self.rows_of = {name: safe(f"{name}s", taken) for name in varying}
        self.modules = modules_of(repeat)
        self.module = attribute(repeat.name) if len({*self.modules}) == 1 else ""
        """The module of all passes; empty where they have several."""
        self.carried = {name: how.output for name, how in inputs.items() if isinstance(how, Carried)}
        self.needed = {key for key in scope.read if key[0] == repeat.name}
        kept = {how.output for how in inputs.values() if isinstance(how, Previous | Earlier)}
        kept |= {key[1] for key in self.needed if key[2] != self.count - 1 or key[1] not in self.carried.values()}
        suffixes = {output: re.sub(r"\W", "_", outputs[output]) or "passes" for output in sorted(kept)}
        self.lists = {output: safe(f"{self.last}_{suffix}", taken) for output, suffix in suffixes.items()}
        """Outputs that are needed of every pass, each with the variable of their list."""

    def statement(self, first: Mapping[str, Sequence[Ref]]) -> Statement:
        """Return the statement of the loop, given the inputs of the first pass."""
        key = self.scope.key
        uses = [key(ref) for name in self.carried for ref in first[name]]
        uses += [key(ref) for how in self.inputs.values() if isinstance(how, SameValue) for ref in how.refs]
        uses += [key(ref) for how in self.inputs.values() if isinstance(how, Varying) for ref in how.refs if ref is not None]
        pairs = [(key(first[name][0]), (self.repeat.name, output, self.count - 1)) for name, output in self.carried.items()]
        singular = self.last[:-1] if self.last.endswith("s") and len(self.last) > 2 else f"{self.last}_pass"
        written = LoopStatement(
            self.rows,
            self.header,
            singular,
            pairs,
            self.call,
            len(self.outputs),
            list(self.carried.values()),
            list(self.lists.items()),
        )
        span, name = self.repeat.node.name_span, self.repeat.name
        return Statement(sorted(self.needed), uses, lambda _: "", span, name, written)

    def rows(self, name: Naming) -> list[tuple[str, str]]:
        """Return what differs from pass to pass: for each a variable and its tuple."""
        return [
            (self.rows_of[key], pattern(["None" if ref is None else name(self.scope.key(ref)) for ref in how.refs]))
            for key, how in self.inputs.items()
            if isinstance(how, Varying)
        ]

    def header(self, module: str) -> str:
        """Return the `for` line, given the variable of the module."""
        targets, sources = list(self.each.values()), list(self.rows_of.values())
        if not self.module:
            walked = (
                attribute(self.repeat.name) if self.repeat.node.share is None else pattern(list(map(attribute, self.modules)))
            )
            targets, sources = [module, *targets], [walked, *sources]
        if not targets:
            return f"for _ in range({self.count}):"
        together = sources[0] if len(sources) == 1 else f"zip({', '.join(sources)})"
        return f"for {', '.join(targets)} in {together}:"

    def call(self, name: Naming, module: str, current: dict[Key, str]) -> str:
        """Return the call of one pass, given the variables of carried values in `current`."""
        texts = []
        for key, how in self.inputs.items():
            match how:
                case Carried(output=output):
                    text = current[self.repeat.name, output, self.count - 1]
                case Varying():
                    text = self.each[key]
                case Earlier(output=output):
                    text = self.lists[output]
                case Previous(output=output):
                    kept = self.lists[output]
                    text = f"{kept}[-1] if {kept} else None"
                case SameValue(refs=refs):
                    text = name(self.scope.key(refs[0])) if refs else "None"
            texts.append(text if key in self.signature.required else f"{self.signature.parameters[key]}={text}")
        return f"{self.module or module}({', '.join(texts)})"
