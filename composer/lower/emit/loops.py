"""Repeats as one loop, where every input of the passes is of a kind that a loop can hand on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from composer.graph.ir import Ref
from composer.graph.typed import TypedRepeat
from composer.lower.emit.constructor_trees import pattern
from composer.lower.emit.identifiers import attribute, safe
from composer.lower.emit.scope import Scope, Signature
from composer.lower.emit.skeletons import Instance
from composer.lower.emit.statements import LoopStatement, Naming, Statement
from composer.lower.passes.node_queries import Key, key_of
from composer.lower.passes.shared_weights import modules_of


@dataclass(frozen=True, slots=True)
class SameValue:
    """What all passes are given alike."""

    refs: Sequence[Ref]


@dataclass(frozen=True, slots=True)
class Varying:
    """One value from outside for each pass; None where a pass is given nothing."""

    refs: Sequence[Ref | None]


@dataclass(frozen=True, slots=True)
class Carried:
    """What the pass before returned, the first pass another value."""

    output: int


@dataclass(frozen=True, slots=True)
class Previous:
    """What the pass before returned, the first pass nothing."""

    output: int


@dataclass(frozen=True, slots=True)
class Earlier:
    """What all earlier passes returned, as a list."""

    output: int


LoopInput: TypeAlias = SameValue | Varying | Carried | Previous | Earlier


def loop(
    scope: Scope, repeat: TypedRepeat, inners: Sequence[Instance], given: Sequence[Mapping[str, Sequence[Ref]]]
) -> Statement | None:
    """Return all passes as one statement; None where they differ in more than a loop can say."""
    outputs = [[name for name, _ in inner.graph.graph.outputs] for inner in inners]
    signatures = [scope.signature_of(inner) for inner in inners]
    if len(inners) < 2 or any(one != outputs[0] for one in outputs) or any(one != signatures[0] for one in signatures):
        return None
    lists = [{item.name for item in inner.graph.graph.inputs if item.many} for inner in inners]
    if any(one != lists[0] for one in lists):
        return None
    flows: dict[str, LoopInput] = {}
    for name in signatures[0].parameters:
        refs = [one.get(name, ()) for one in given]
        own = [[key_of(scope.graph, ref) for ref in one if ref.node == repeat.name] for one in refs]
        found = _earlier(refs, own) if name in lists[0] else _flow(refs, own)
        if found is None:
            return None
        flows[name] = found
    carried = [flow.output for flow in flows.values() if isinstance(flow, Carried)]
    if len(set(carried)) != len(carried):
        return None
    return _Passes(scope, repeat, flows, signatures[0], outputs[0]).statement(given[0])


def _earlier(refs: Sequence[Sequence[Ref]], own: Sequence[Sequence[Key]]) -> Earlier | None:
    """Return how a list comes about: in a loop it holds what all earlier passes returned, in their order."""
    outputs = {output for keys in own for _, output, _ in keys}
    in_order = all([index for *_, index in keys] == list(range(count)) for count, keys in enumerate(own))
    if len(outputs) > 1 or not in_order or any(len(keys) != len(one) for keys, one in zip(own, refs, strict=True)):
        return None
    return Earlier(next(iter(outputs), 0))


def _flow(refs: Sequence[Sequence[Ref]], own: Sequence[Sequence[Key]]) -> LoopInput | None:
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
    """The texts of one loop, given values' names."""

    def __init__(
        self, scope: Scope, repeat: TypedRepeat, flows: Mapping[str, LoopInput], signature: Signature, outputs: Sequence[str]
    ) -> None:
        self.scope, self.repeat, self.flows, self.signature, self.outputs = scope, repeat, flows, signature, outputs
        self.count, self.last = len(repeat.passes), repeat.name.rpartition(".")[2]
        taken = scope.names.values()
        varying = [name for name, flow in flows.items() if isinstance(flow, Varying)]
        self.each = {name: safe(f"each_{name}", taken) for name in varying}
        self.rows_of = {name: safe(f"{name}s", taken) for name in varying}
        self.modules = modules_of(repeat)
        self.alone = attribute(repeat.name) if len({*self.modules}) == 1 else ""
        """The module of all passes, where there is one."""
        self.carried = {name: flow.output for name, flow in flows.items() if isinstance(flow, Carried)}
        self.needed = {key for key in scope.read if key[0] == repeat.name}
        kept = {flow.output for flow in flows.values() if isinstance(flow, Previous | Earlier)}
        kept |= {key[1] for key in self.needed if key[2] != self.count - 1 or key[1] not in self.carried.values()}
        suffixes = {output: re.sub(r"\W", "_", outputs[output]) or "passes" for output in sorted(kept)}
        self.lists = {output: safe(f"{self.last}_{suffix}", taken) for output, suffix in suffixes.items()}
        """Outputs kept from every pass, each with its list."""

    def statement(self, first: Mapping[str, Sequence[Ref]]) -> Statement:
        """Return the loop, of which the first pass is given these values."""
        key = self.scope.key
        uses = [key(ref) for name in self.carried for ref in first[name]]
        uses += [key(ref) for flow in self.flows.values() if isinstance(flow, SameValue) for ref in flow.refs]
        uses += [key(ref) for flow in self.flows.values() if isinstance(flow, Varying) for ref in flow.refs if ref is not None]
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
        """Return what differs from pass to pass, under a name each."""
        return [
            (self.rows_of[key], pattern(["None" if ref is None else name(self.scope.key(ref)) for ref in flow.refs]))
            for key, flow in self.flows.items()
            if isinstance(flow, Varying)
        ]

    def header(self, module: str) -> str:
        """Return the `for` line."""
        targets, sources = list(self.each.values()), list(self.rows_of.values())
        if not self.alone:
            walked = (
                attribute(self.repeat.name) if self.repeat.node.share is None else pattern(list(map(attribute, self.modules)))
            )
            targets, sources = [module, *targets], [walked, *sources]
        if not targets:
            return f"for _ in range({self.count}):"
        together = sources[0] if len(sources) == 1 else f"zip({', '.join(sources)})"
        return f"for {', '.join(targets)} in {together}:"

    def call(self, name: Naming, module: str, current: dict[Key, str]) -> str:
        """Return the code of one pass."""
        texts = []
        for key, flow in self.flows.items():
            match flow:
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
        return f"{self.alone or module}({', '.join(texts)})"
