"""Which block reads which: once from the typed graph, walked without regard to drawings, and once from what is drawn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import TypeAlias

from blocks.core import Part
from blocks.primitives.combine import Concat
from blocks.primitives.compute import Compute
from blocks.primitives.pointwise import Dropout, Identity
from blocks.primitives.reduce import Reduction
from blocks.primitives.stack_split import Split
from composer.draw.paths import INPUTS, input_path, is_output, lies_in, output_path, plain
from composer.draw.scene import Detail, Scene
from composer.graph.anatomy import wires_of
from composer.graph.formula_text import formula_text
from composer.graph.ir import Ref, Wire
from composer.graph.passes.roll_layers.roll_layers import folded
from composer.graph.passes.roll_layers.rolled_names import UNCHANGED, RolledNames
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.types import TensorType, each_of
from composer.graph.visit import every_node, every_pass, walk
from tests.draw.read_idioms import ENDS, HIDDEN_KINDS, with_holders
from tests.draw.read_ports import read_in
from tests.draw.read_squeezes import is_squeeze

Inner: TypeAlias = TypedGroup | TypedRepeat | TypedScan
"""A node with others in it."""
Made = frozenset[str]
"""The blocks and inputs that a value comes from; several, where passes of a repeat differ."""

COUNTS = re.compile(r"× \d+(, \d+)*")
"""How often a frame is passed through; of stages, in each."""


class Readers:
    """Every pair of a block that makes a value and one that reads it, repeats folded."""

    def __init__(
        self,
        typed: TypedProgram,
        *,
        quiet: bool,
        closed: Iterable[str] = (),
        called: RolledNames = UNCHANGED,
        sizes: bool = True,
        shown: Iterable[str] | None = None,
    ) -> None:
        self.shown = None if shown is None else {*shown}
        """Paths of what is drawn by itself, where a concatenation and the split that undoes it may be left out."""
        self.ends: dict[str, TypedBlock] = {}
        """Concatenations by their paths, or by that of the closed box that gives what they give."""
        self.joined: dict[str, list[Made]] = {}
        """What each of them joins, as it is seen from outside."""
        self.sizes = sizes
        """Whether what is only measured is read."""
        self.names = called
        """Where layers that are written one by one are drawn as one."""
        self.closed = set(closed)
        """Paths of what is drawn as one box, among them groups and repeats."""
        self.for_zeros: set[str] = set()
        """What formulas of zero read that are no boxes, with all that is only there for these."""
        self.reduced: dict[str, str] = {}
        """The kinds of reductions by their paths."""
        self.primitives: dict[str, str] = {}
        """The kinds of what may be told together, by their paths."""
        self.quiet = quiet
        """Whether a dropout without a box only passes on what it is given."""
        self.pairs: set[tuple[str, str, str]] = set()
        """Maker, reader, and the reader's port."""
        self.blocks: set[str] = set()
        given = {one.name: {"": frozenset([one.name])} for one in typed.untyped.inputs}
        made = self.graph(typed.root, given, "")
        for name, value in made.items():
            self.pairs |= {(one, output_path(name), "") for one in value}
        while unread := self.for_zeros - self.shown_or_read():
            self.for_zeros = {one for one, reader, _ in self.pairs if reader in unread}
            self.pairs = {pair for pair in self.pairs if pair[1] not in unread}
        self.pass_on_hidden()
        self.layers = self.closed & {steps[0] for steps in called.steps.values()}
        """Boxes in which layers stand that are written one by one."""
        self.pairs = {self.outside(*pair) for pair in self.pairs if pair[0] == pair[1] or self.box(pair[0]) != self.box(pair[1])}
        self.blocks = set(map(self.box, self.blocks))

    def pass_on_hidden(self) -> None:
        """Let what is no box pass on what it reads: reductions, and primitives of which one box tells what they are together."""
        self.pass_on_reduced()
        waiting = {*self.primitives} - with_holders(self.shown) if self.shown is not None else set()
        ends = {path: self.end_of(path, waiting) for path in waiting}
        for path in waiting:
            if (end := ends[path]) is not None and self.primitives.get(end, "") in ENDS:
                given = [pair for pair in self.pairs if pair[1] == path]
                readers = [pair for pair in self.pairs if pair[0] == path]
                self.pairs -= {*given, *readers}
                self.pairs |= {(maker, *reader[1:]) for maker, _, _ in given for reader in readers}
                self.blocks.discard(path)

    def end_of(self, path: str, hidden: set[str]) -> str | None:
        """Return the one box that all leads to that reads something of what is no box; none where there are several or none."""
        found, waiting = set[str](), {path}
        known = {*waiting}
        while waiting:
            last = waiting.pop()
            readers = {reader for maker, reader, _ in self.pairs if maker == last}
            found |= (readers - hidden) or ({last} - {path} if not readers else set())
            waiting |= (readers & hidden) - known
            known |= readers
        return found.pop() if len(found) == 1 else None

    def pass_on_reduced(self) -> None:
        """Let what a sum or another reduction that is no box reads be read by all that reads it: a loss, or one that is alike."""
        waiting = {*self.reduced} - (self.shown or set()) if self.shown is not None else set()
        while waiting:
            path = waiting.pop()
            given = [pair for pair in self.pairs if pair[1] == path]
            readers = [pair for pair in self.pairs if pair[0] == path]
            kinds = [self.reduced.get(reader, "loss" if reader.startswith("losses.") else "") for _, reader, _ in readers]
            if len(readers) == 1 and (kinds[0] == "loss" or kinds[0] == self.reduced[path] or readers[0][1] in waiting):
                self.pairs -= {*given, *readers}
                self.pairs |= {(maker, *reader[1:]) for maker, _, _ in given for reader in readers}

    def shown_or_read(self) -> set[str]:
        """Return the paths of what is drawn by itself or read."""
        return (self.shown or set()) | {maker for maker, _, _ in self.pairs}

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
                if isinstance(node, TypedRepeat):  # which may be given what none of its passes reads
                    read = frozenset().union(*map(read_in, node.passes))
                    wires = [wire for wire in wires if wire.port in read]
                if isinstance(node, TypedGroup):  # whose main input is the one that it declares first
                    places = [one.name for one in node.graph.graph.inputs]
                    wires.sort(key=lambda wire: places.index(wire.port))
                main = next((wire.port for wire in wires), "")
                self.pairs |= {
                    (one, path, "" if wire.port == main else wire.port) for wire in wires for one in self.wire(wire, values)
                }
                noise = isinstance(node, TypedGroup) and any(map(is_noise, node.graph.nodes))
                self.pairs |= {(path, path, "")} if noise and self.shown is not None else set()  # which is named at the box
                values[node.name] = {"": frozenset([path])}
                self.note_end(node, path)
            elif isinstance(node, TypedRepeat):
                self.repeat(node, values, prefix + node.name)
            elif isinstance(node, TypedBlock):
                values[node.name] = self.block(node, values, path)
            elif isinstance(node, TypedScan):
                inner = {wire.port: {"": self.wire(wire, values)} for wire in node.node.wires}
                first = self.silent().graph(node.graph, dict(inner), f"{prefix}{node.name}.")
                for name, port in node.carried.items():  # and what the step before gave
                    made = inner.get(name, {}).get("", frozenset()) | first[port]
                    inner[name] = {"": self.state(f"{path}.{name}", made)}
                out = self.graph(node.graph, inner, f"{prefix}{node.name}.")
                values[node.name] = {**out, "": next(iter(out.values()))}
            else:
                inner = {wire.port: {"": self.wire(wire, values)} for wire in node.node.wires}
                out = self.graph(node.graph, inner, f"{prefix}{node.name}.")
                values[node.name] = {**out, "": next(iter(out.values()))}
        return {name: self.ref(ref, values) for name, ref in graph.graph.outputs}

    def state(self, path: str, made: Made) -> Made:
        """Return where what a step reads of a state comes from: from what gives that, or from the box that stands for it."""
        if self.shown is None or path not in self.shown:
            return made
        self.pairs |= {(one, path, "") for one in made}
        self.blocks.add(path)
        return frozenset([path])

    def inside(self, node: Inner, path: str, *, framed: bool) -> set[tuple[str, str, str]]:
        """Return the pairs in a block by itself, for which its inputs make what it is handed: those of its ports; of a repeat in
        its frame, those of the nodes that it reads.
        """
        if isinstance(node, TypedRepeat) and framed:
            refs = [ref for one in node.node.passes for wire in one.wires for ref in wire.refs if ref.node != node.name]
            self.repeat(node, {ref.node: {"": frozenset([input_path(path, ref.node)])} for ref in refs}, path)
            self.pass_on_hidden()
            return self.pairs
        graph = node.passes[-1] if isinstance(node, TypedRepeat) else node.graph
        wires = node.node.passes[-1].wires if isinstance(node, TypedRepeat) else node.node.wires
        first = {wire.refs: wire.port for wire in reversed(wires)}  # of ports that are handed the same
        self.graph(graph, {wire.port: {"": frozenset([input_path(path, first[wire.refs])])} for wire in wires}, f"{path}.")
        self.pass_on_hidden()
        return self.pairs

    def block(self, node: TypedBlock, values: Mapping[str, Mapping[str, Made]], path: str) -> Mapping[str, Made]:
        made = {one for wire in node.node.wires for one in self.wire(wire, values)}
        if self.quiet and isinstance(node.part, Dropout | Identity) and path not in self.closed:
            return {"": frozenset(made)}
        if self.shown is not None and path not in self.shown and is_squeeze(node):
            return {"": frozenset(made)}
        if self.shown is not None and isinstance(node.part, Concat):
            self.ends[path] = node
            self.joined[path] = [self.ref(ref, values) for wire in node.node.wires for ref in wire.refs]
            if path not in self.shown:
                return {"": frozenset([path])}
        if self.shown is not None and path not in self.shown and isinstance(node.part, Split) and len(made) == 1:
            (whole,) = made
            if undoes(node, self.ends.get(whole)):
                return dict(zip(("", *node.outputs), (self.joined[whole][0], *self.joined[whole]), strict=True))
        if self.shown is not None and path not in self.shown and is_zero(node.part):
            self.for_zeros |= made
            return {"": frozenset([path])}
        if node.part.kind in (*HIDDEN_KINDS, *ENDS):
            self.primitives[path] = node.part.kind
        if isinstance(node.part, Reduction):
            self.reduced[path] = node.part.kind
        wires = [wire for wire in node.node.wires if self.sizes or wire.port not in node.part.shape_only_inputs]
        self.pairs |= {(one, path, wire.port) for wire in wires for one in self.wire(wire, values)}
        self.blocks.add(path)
        return {"": frozenset([path])}

    def note_end(self, node: TypedNode, path: str) -> None:
        """Note the concatenation that is the last block in a closed box."""
        graph = node.passes[-1] if isinstance(node, TypedRepeat) else node.graph if isinstance(node, Inner) else None
        last = graph and graph.by_name.get(graph.graph.outputs[0][1].node)
        if isinstance(last, TypedBlock) and isinstance(last.part, Concat):
            self.ends[path] = last
            self.joined[path] = [frozenset([path])] * sum(len(wire.refs) for wire in last.node.wires)

    def repeat(self, node: TypedRepeat, values: dict[str, Mapping[str, Made]], path: str) -> None:
        passes: dict[str, Made] = {}
        values[node.name] = passes
        for index, (one, graph) in enumerate(zip(node.node.passes, node.passes, strict=True)):
            inner = {wire.port: {"": self.wire(wire, values)} for wire in one.wires}
            box = f"{plain(path)}.{index}"
            if box in self.closed:  # each pass is a box
                self.blocks.add(box)
                main = next((given.name for given in graph.graph.inputs[:1] if not given.captured), "")
                wires = [wire for wire in one.wires if wire.port in read_in(graph)]
                self.pairs |= {
                    (made, box, "" if wire.port == main else wire.port) for wire in wires for made in self.wire(wire, values)
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


def is_noise(node: TypedNode) -> bool:
    """Return whether a block draws numbers at random that are no mask."""
    return isinstance(node, TypedBlock) and node.part.kind in ("normal", "uniform")


def is_zero(part: Part) -> bool:
    """Return whether a formula without functions gives zero whatever it reads."""
    if not isinstance(part, Compute):
        return False
    text = formula_text(part.formula, part.formula.names)
    given = {re.sub(r"\W", "_", name): 0.5 + number**1.5 for number, name in enumerate(part.formula.names)}
    signs = re.fullmatch(r"[\w\s.*+()-]+", text) is not None and not re.search(r"\w\(", text)
    return signs and eval(re.sub(r"(?<=[a-z_])\.", "_", text), {}, given) == 0


def undoes(split: TypedBlock, concat: TypedBlock | None) -> bool:
    """Return whether a split takes apart what a concatenation joins, in the same order, along the same axis."""
    if concat is None:
        return False
    (made,), whole = concat.outputs.values(), split.first_input
    assert isinstance(made, TensorType) and isinstance(whole, TensorType)
    pieces = [one for types in concat.inputs.values() for one in each_of(types)]
    own = [one.axes[concat.sizes["dim"]].size for one in pieces if isinstance(one, TensorType)]
    same_axis = made.axes[concat.sizes["dim"]] == whole.axes[split.sizes["dim"]]
    return same_axis and own == [*split.sizes["parts"]] and len(made.axes) in (len(whole.axes), len(whole.axes) - 1)


def shown_in(scene: Scene) -> set[str]:
    """Return the paths of what is drawn by itself."""
    return {plain(one.about.path) for one in (*scene.boxes, *scene.merges)}


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
        before = wire.target == target and wire.style in ("far", "loop")  # what a step reads of the step before
        if source == target and source in known and wire.source != wire.target and not before:
            continue  # inside of one block
        passage = f"/{wire.passage}" if wire.passage else ""
        if source in frames:
            start = passage if wire.from_inside else ""
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


def unread(typed: TypedProgram, scene: Scene) -> list[str]:
    """Return what in the details of a drawing reads other values than in the model: of those from around the block as many as
    there, by wires from its inputs or by their names.
    """
    return [fault for one in scene.details for fault in _unread(folded(typed).program, one)]


def _unread(typed: TypedProgram, detail: Detail) -> list[str]:
    path, inside = detail.about.path, detail.inside
    nodes = (one.node for one in walk(typed.root, every_pass, every_node) if plain(one.path) == path)
    node = next(one for one in nodes if isinstance(one, Inner))
    closed = [box.about.path for box in inside.boxes]
    truth = Readers(typed, quiet=True, closed=closed, sizes=False, shown=shown_in(inside)).silent()
    framed = path in {frame.about.path for frame in inside.frames}
    wanted = _sources(truth.inside(node, path, framed=framed))
    varied = mixed(inside)
    found = _sources((one, reader, port) for one, reader, port in drawn(inside, truth.blocks) if lies_in(reader, path))
    faults = []
    for place in wanted.keys() | found.keys():
        own, seen = ({one for one in side.get(place, ()) if lies_in(one, path)} for side in (wanted, found))
        around, shown = (side.get(place, set()) - other for side, other in ((wanted, own), (found, seen)))
        by_port = {one for one in shown if one.startswith(INPUTS)}
        passed = place[0].startswith(varied)  # passes differ: some of what is drawn holds in some of them
        wrong = around and not shown if passed else own != seen or len(around) != len(shown) or not by_port <= around
        if wrong:
            faults.append(f"{place}: {sorted(own | around)} is drawn as {sorted(seen | shown)}")
    return faults


def _sources(pairs: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str], set[str]]:
    """Return what is read, by the reader and its port."""
    found: dict[tuple[str, str], set[str]] = {}
    for maker, reader, port in pairs:
        found.setdefault((reader, port), set()).add(maker)
    return found
