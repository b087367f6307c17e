"""Which block reads which: once from the typed graph, walked without regard to drawings, and once from what is drawn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace

from blocks.primitives.pointwise import Dropout
from composer.draw.paths import is_output, output_path, plain
from composer.draw.scene import Scene
from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref, Wire
from composer.graph.passes.roll_layers.rolled_names import UNCHANGED, RolledNames
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedProgram, TypedRepeat, TypedScan

Made = frozenset[str]
"""The blocks and inputs that a value comes from; several, where passes of a repeat differ."""

COUNTS = re.compile(r"× \d+(, \d+)*")
"""How often a frame is passed through; of stages, in each."""


class Readers:
    """Every pair of a block that makes a value and one that reads it, repeats folded."""

    def __init__(self, typed: TypedProgram, *, quiet: bool, closed: Iterable[str] = (), called: RolledNames = UNCHANGED) -> None:
        self.names = called
        """Where layers that are written one by one are drawn as one."""
        self.closed = set(closed)
        """Paths of what is drawn as one box, among them groups and repeats."""
        self.quiet = quiet
        """Whether a dropout without a box only passes on what it is given."""
        self.pairs: set[tuple[str, str, str]] = set()
        """Maker, reader, and the reader's port."""
        self.blocks: set[str] = set()
        given = {one.name: {"": frozenset([one.name])} for one in typed.untyped.inputs}
        made = self.graph(typed.root, given, "")
        for name, value in made.items():
            self.pairs |= {(one, output_path(name), "") for one in value}
        self.layers = self.closed & {steps[0] for steps in called.steps.values()}
        """Boxes in which layers stand that are written one by one."""
        self.pairs = {self.outside(*pair) for pair in self.pairs if pair[0] == pair[1] or self.box(pair[0]) != self.box(pair[1])}
        self.blocks = set(map(self.box, self.blocks))

    def box(self, path: str) -> str:
        """Return the path of the box that a node is drawn in."""
        first = path.partition(".")[0]
        return first if first in self.layers else path

    def outside(self, maker: str, reader: str, port: str) -> tuple[str, str, str]:
        """Return a pair as it is seen from outside of such boxes, whose ports have no names of their own."""
        return self.box(maker), self.box(reader), "" if self.box(reader) in self.layers else port

    def silent(self) -> Readers:
        """Return readers that keep nothing of what they meet."""
        other = copy(self)
        other.pairs, other.blocks = set(), set()
        return other

    def graph(self, graph: TypedGraph, values: dict[str, Mapping[str, Made]], prefix: str) -> dict[str, Made]:
        for node in graph.nodes:
            path = plain(self.names.called(prefix + node.name))
            if path in self.closed and not isinstance(node, TypedBlock):
                self.blocks.add(path)
                wires = [
                    w for w in wires_of(node.node) for w in [replace(w, refs=tuple(r for r in w.refs if r.node != node.name))]
                ]
                if isinstance(node, TypedGroup):  # whose main input is the one that it declares first
                    places = [one.name for one in node.graph.graph.inputs]
                    wires.sort(key=lambda wire: places.index(wire.port))
                self.pairs |= {
                    (one, path, wire.port if number else "")
                    for number, wire in enumerate(wires)
                    for one in self.wire(wire, values)
                }
                values[node.name] = {"": frozenset([path])}
            elif isinstance(node, TypedRepeat):
                self.repeat(node, values, prefix + node.name)
            elif isinstance(node, TypedBlock):
                values[node.name] = self.block(node, values, path)
            elif isinstance(node, TypedScan):
                inner = {wire.port: {"": self.wire(wire, values)} for wire in node.node.wires}
                first = self.silent().graph(node.graph, dict(inner), f"{prefix}{node.name}.")
                for name, port in node.carried.items():  # and what the step before gave
                    inner[name] = {"": inner.get(name, {}).get("", frozenset()) | first[port]}
                out = self.graph(node.graph, inner, f"{prefix}{node.name}.")
                values[node.name] = {**out, "": next(iter(out.values()))}
            else:
                inner = {wire.port: {"": self.wire(wire, values)} for wire in node.node.wires}
                out = self.graph(node.graph, inner, f"{prefix}{node.name}.")
                values[node.name] = {**out, "": next(iter(out.values()))}
        return {name: self.ref(ref, values) for name, ref in graph.graph.outputs}

    def block(self, node: TypedBlock, values: Mapping[str, Mapping[str, Made]], path: str) -> Mapping[str, Made]:
        made = {one for wire in node.node.wires for one in self.wire(wire, values)}
        if self.quiet and isinstance(node.part, Dropout) and path not in self.closed:
            return {"": frozenset(made)}
        self.pairs |= {(one, path, wire.port) for wire in node.node.wires for one in self.wire(wire, values)}
        self.blocks.add(path)
        return {"": frozenset([path])}

    def repeat(self, node: TypedRepeat, values: dict[str, Mapping[str, Made]], path: str) -> None:
        passes: dict[str, Made] = {}
        values[node.name] = passes
        for index, (one, graph) in enumerate(zip(node.node.passes, node.passes, strict=True)):
            inner = {wire.port: {"": self.wire(wire, values)} for wire in one.wires}
            box = f"{plain(path)}.{index}"
            if box in self.closed:  # each pass is a box
                self.blocks.add(box)
                main = next((given.name for given in graph.graph.inputs[:1] if not given.captured), "")
                self.pairs |= {
                    (read, box, "" if wire.port == main else wire.port) for wire in one.wires for read in self.wire(wire, values)
                }
                passes |= {f"({index}){port}": frozenset([box]) for port in ("", *graph.outputs)}
                passes[""] = frozenset([box])
                continue
            out = self.graph(graph, inner, f"{path}.{index}.")
            for port, made in {**out, "": next(iter(out.values()))}.items():
                passes[f"({index}){port}"] = passes[port] = made

    def wire(self, wire: Wire, values: Mapping[str, Mapping[str, Made]]) -> Made:
        return frozenset().union(*(self.ref(ref, values) for ref in wire.refs))

    def ref(self, ref: Ref, values: Mapping[str, Mapping[str, Made]]) -> Made:
        ports = values[ref.node]
        port = ref.port if ref.index is None else f"({ref.index}){ref.port}"
        return ports[port] if port in ports else ports[""]


def drawn(scene: Scene, blocks: Iterable[str]) -> Counter[tuple[str, str, str]]:
    """Return the edges of a drawing: what comes in at a frame goes on to what reads it inside, what goes
    out comes from inside.
    """
    known = set(blocks)
    frames = {frame.about.path for frame in scene.frames} - known
    repeats = {frame.about.path for frame in scene.frames if frame.pill and COUNTS.fullmatch(frame.pill.text)}
    into: dict[str, list[str]] = {}
    lines: list[tuple[str, str, str]] = []
    for wire in scene.wires:
        if not wire.source or not wire.target:
            continue
        source, target = place(wire.source, known), place(wire.target, known)
        if source == target and source in known and wire.source != wire.target:
            continue  # inside of one block
        passage = f"/{wire.passage}" if wire.passage else ""
        if source in frames:
            start = "" if wire.to_inside else passage
            source += f"{start} in" if target.startswith(f"{source}.") else f"{start} out"
        if target in frames:
            inside = source.startswith((f"{target}.", f"{target} ", f"{target}/"))
            end = "" if wire.from_inside else passage
            target += f"{end} out" if inside else f"{end} in"
        lines += [(source, target, "" if is_output(target) else port) for port in wire.port.split(", ")]
    for source, target, _ in lines:
        into.setdefault(target, []).append(source)

    def origins(name: str) -> list[str]:
        """Return blocks and inputs that a wire comes from, through frames."""
        if not name.endswith((" in", " out")):
            return [name]
        before = into.get(name, ())
        if name.endswith(" in") and name.removesuffix(" in").partition("/")[0] in repeats:
            before = [*before, f"{name.removesuffix(' in')} out"]  # what a pass returns, the next one is given
        return [one for each in before for one in origins(each)]

    inner = [line for line in lines if not line[1].endswith((" in", " out"))]
    return Counter((one, target, port) for source, target, port in inner for one in set(origins(source)))


def mixed(scene: Scene) -> tuple[str, ...]:
    """Return what lies in repeats whose passes differ: drawn as one, they seem to read what only some of them do."""
    return tuple(f"{frame.about.path}." for frame in scene.frames if frame.kinds)


def place(path: str, blocks: set[str]) -> str:
    """Return the block that a path lies in: pieces of a block are the block's."""
    steps = path.split(".")
    for end in range(len(steps), 0, -1):
        if ".".join(steps[:end]) in blocks:
            return ".".join(steps[:end])
    return path
