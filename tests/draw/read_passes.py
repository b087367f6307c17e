"""Which passes of a repeat a picture says are read, held against what each node of the model reads."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product
from math import dist

from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref
from composer.graph.passes.roll_layers.roll_layers import folded
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode, TypedProgram, TypedRepeat
from composer.graph.visit import every_node, every_pass, walk
from tests.draw.read_back import DrawnWire, Picture, parallel, plain
from tests.draw.read_ports import read_in

SAID = re.compile(
    r"(?:of )?((?:all \d+|both|last|all earlier) [a-z_ ]+|[a-z_ ]+ \d+(?: … \d+)?)(?: of (?:last|all \d+|both) [a-z_ ]+)?"
)
"""What stands at a wire, or in a loss: which passes give what is read."""
JOINED = re.compile(r"(?:\w+\(\d+(?::\d+)?\)(?:\.\w+(?:\(\d+(?::\d+)?\))?)*(?:, )?)+")
"""What several values of a repeat are called together: `down(0:4).layers(0:2), down(0:3)`."""
NEXT = re.compile(r"next [a-z_ ]+")
"""What stands at the end of a wire that leads to the next pass alone."""
AT_WORDS = 45.0
"""Pixels between an arrowhead and where the words begin, end or have their middle that it leads to."""
COUNTED = re.compile(r"(\d+) values")
SKIPS = re.compile(r"skips: ([^·]+)")
"""What the box of a pass tells of the values of others that its concatenations take, in their order."""


def readings(typed: TypedProgram) -> set[str]:
    """Return every way to say which passes of a repeat something in a model reads."""
    found: set[str] = set()
    graphs = [typed.root, *(one for visit in walk(typed.root, every_pass, every_node) for one in held(visit.node))]
    for graph in graphs:
        repeats = {node.name: node for node in graph.nodes if isinstance(node, TypedRepeat)}
        lists: list[tuple[str, Iterable[Ref]]] = [("", [ref]) for _, ref in graph.graph.outputs]
        for node in graph.nodes:
            if isinstance(node, TypedRepeat):
                lists_of = [(index, wire.refs) for index, one in enumerate(node.node.passes) for wire in one.wires if index > 1]
                own = [(index, [ref.index for ref in refs if ref.node == node.name]) for index, refs in lists_of]
                if any(read == [*range(index)] for index, read in own):
                    found.add(f"all earlier {words(node.name)[1]}")
            lists += [(node.name, wire.refs) for wire in wires_of(node.node)]
            lists += [(node.name, refs) for refs in read_by_passes(node)]
        for reader, refs in lists:
            for name, repeat in repeats.items():
                last = len(repeat.passes) - 1
                own_refs = [ref for ref in refs if ref.node == name and name != reader]
                for port in {ref.port for ref in own_refs}:
                    read = sorted({last if ref.index is None else ref.index for ref in own_refs if ref.port == port})
                    found.update(phrases(name, read, last))
        for node in graph.nodes:
            of_passes = [one.wires for one in node.node.passes] if isinstance(node, TypedRepeat) else [wires_of(node.node)]
            for wires in of_passes:
                every = [ref for wire in wires for ref in wire.refs]
                for name, repeat in repeats.items():
                    found.update(inner_phrases(repeat, [ref for ref in every if ref.node == name != node.name]))
    return found


def read_by_passes(node: TypedNode) -> list[tuple[Ref, ...]]:
    """Return what the passes of a repeat that read no pass of it read at each port, where each reads one value."""
    if not isinstance(node, TypedRepeat) or not parallel(node):
        return []
    ports: dict[str, list[tuple[Ref, ...]]] = {}
    for one, graph in zip(node.node.passes, node.passes, strict=True):
        for wire in one.wires:
            if wire.port in read_in(graph):
                ports.setdefault(wire.port, []).append(wire.refs)
    return [sum(found, ()) for found in ports.values() if len(found) == len(node.passes) and {*map(len, found)} == {1}]


def inner_phrases(repeat: TypedRepeat, refs: Iterable[Ref]) -> Iterator[str]:
    """Yield what may be said of the passes of a repeat in one pass of another one that are read."""
    read: dict[tuple[int, str, str], set[int]] = {}
    lasts: dict[tuple[int, str, str], int] = {}
    for ref in refs:
        index = len(repeat.passes) - 1 if ref.index is None else ref.index
        graph = repeat.passes[index]
        inner = dict(graph.graph.outputs).get(ref.port)
        maker = graph.by_name.get(inner.node) if inner else None
        if inner is not None and inner.index is not None and isinstance(maker, TypedRepeat):
            key = (index, inner.node, inner.port)
            read.setdefault(key, set()).add(inner.index)
            lasts[key] = len(maker.passes) - 1
    for key, numbers in read.items():
        yield from phrases(key[1], sorted(numbers), lasts[key])


def held(node: object) -> tuple[TypedGraph, ...]:
    """Return the graphs in a node."""
    if isinstance(node, TypedRepeat):
        return tuple(node.passes)
    graph = getattr(node, "graph", None)
    return (graph,) if isinstance(graph, TypedGraph) else ()


def words(name: str) -> tuple[str, str]:
    """Return what one pass and several passes are called."""
    said = name.replace("_", " ")
    return (said[:-1], said) if said.endswith("s") else ("pass", "passes")


def phrases(name: str, read: list[int], last: int) -> Iterator[str]:
    """Yield what may be said of the passes that are read, range by range."""
    one, several = words(name)
    starts = [index for index in read if index - 1 not in read]
    ends = [index for index in read if index + 1 not in read]
    for first, final in zip(starts, ends, strict=True):
        if first == final:
            yield f"last {one}" if first == last else f"{one} {first}"
        elif (first, final) == (0, last):
            yield f"both {several}" if last == 1 else f"all {last + 1} {several}"
        else:
            yield f"{several} {first} … {final}"


def read_together(typed: TypedProgram) -> list[set[str]]:
    """Return what each node reads of passes, of one repeat, as a recipe calls it, and what of that is one value of each pass; of
    a repeat all that its passes read, and what each pass reads of another pass, as that calls it; and all of it without what the
    last pass gives first, to which a wire may lead.
    """
    found: list[set[str]] = []
    graphs = [typed.root, *(one for visit in walk(typed.root, every_pass, every_node) for one in held(visit.node))]
    for node in (node for graph in graphs for node in graph.nodes):
        passes = node.node.passes if isinstance(node, TypedRepeat) else ()
        wires = [wire for one in passes for wire in one.wires] or wires_of(node.node)
        refs = [ref for wire in wires for ref in wire.refs if ref.node != node.name]
        for name in {ref.node for ref in refs if ref.index is not None}:
            every = {ref for ref in refs if ref.node == name}
            numbered = {ref for ref in every if ref.index is not None}
            last = max(ref.index for ref in numbered if ref.index is not None)
            for whole in (every, numbered):
                found += [{*map(str, whole)}, {str(ref) for ref in whole if ref.port or ref.index not in (None, last)}]
        plain = {str(ref): re.sub(r"\(\d+\)", "()", str(ref)) for ref in refs if ref.index is not None}
        found += [{ref for ref in plain if plain[ref] == name} for name in {*plain.values()}]
        of_each = [[ref for wire in one.wires for ref in wire.refs if ref.node != node.name and ref.port] for one in passes]
        of_one = {(index, ref.node, ref.index) for index, refs in enumerate(of_each) for ref in refs}  # what is a box's own
        found += [{ref.port for ref in of_each[at] if (ref.node, ref.index) == (name, index)} for at, name, index in of_one]
    return found


def expanded(said: str) -> set[str]:
    """Return each of the values that have a name together."""
    found = set()
    for name in said.split(", "):
        pieces = re.split(r"\((\d+(?::\d+)?)\)", name)
        bounds = [[*map(int, piece.split(":"))] for piece in pieces[1::2]]
        for numbers in product(*(range(one[0], one[-1] if len(one) > 1 else one[0] + 1) for one in bounds)):
            ends = [f"({number})" for number in numbers]
            found.add("".join(word + end for word, end in zip(pieces[::2], [*ends, ""], strict=True)))
    return found


def misjoined(texts: Iterable[str], typed: TypedProgram) -> Iterator[str]:
    """Yield every name of several values that are not what a node reads of a repeat."""
    known = read_together(typed)
    for text in texts:
        counted = COUNTED.fullmatch(text)
        if counted and int(counted[1]) not in map(len, known):
            yield f"`{text}`: none reads so many"
        joined = JOINED.fullmatch(text)
        if joined and not (expanded(text) in known if ":" in text or ", " in text else any(text in one for one in known)):
            yield f"`{text}` is not what is read: {known}"
        first, between, last = text.partition(" … ")
        if between and JOINED.fullmatch(first) and JOINED.fullmatch(last):
            every = sorted({ref for one in known for ref in one if template(ref) == template(first)}, key=passes_of)
            if first == last or not {first, last} <= {*every}:
                yield f"`{text}`: what is read is {every}"


def template(name: str) -> str:
    """Return a name of a value of a pass without the number of the pass."""
    return re.sub(r"\(\d+\)", "()", name, count=1)


def passes_of(name: str) -> list[int]:
    """Return the numbers of passes in a name."""
    return [*map(int, re.findall(r"\((\d+)", name))]


def misled_on(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every wire that is said to lead to the next pass alone, in a frame of no repeat or of one of which this does not
    hold.
    """
    known: dict[str, list[tuple[TypedRepeat, TypedGraph | None]]] = {}
    for program in (typed, folded(typed).program):  # of layers that are written one by one too
        for visit in walk(program.root, every_pass, every_node):
            if isinstance(visit.node, TypedRepeat):
                known.setdefault(plain(visit.path), []).append((visit.node, visit.graph))
    for x, y, text in picture.texts:
        if NEXT.fullmatch(text):
            around = [frame for frame in picture.frames if frame.path and frame.place.touches(x, y, 0.0)]
            inner = min(around, key=lambda frame: frame.place.right - frame.place.left, default=None)
            path = plain(inner.path) if inner is not None else ""
            led = [wire for wire in led_to(picture, x, y) if plain(wire.target) == path]
            given = [wire.source for wire in led] or [""]
            repeats = known.get(path, [])
            called = all(text in {f"next {words(node.name)[0]}", f"next {node.node.index}"} for node, _ in repeats)
            whole = all(is_handed_on(node, graph, ports_of(node, path, one)) for one in given for node, graph in repeats)
            if not (repeats and called and whole):
                yield f"`{text}`: the value goes elsewhere"
            elif not led:
                yield f"`{text}`: no arrow leads there"


def ports_of(node: TypedRepeat, path: str, source: str) -> tuple[str, ...]:
    """Return as which outputs a repeat gives what a block in it makes: its first one where it is none by itself."""
    name = plain(source).removeprefix(f"{path}.").partition(".")[0]
    outputs = node.passes[0].graph.outputs
    first = next(iter(node.passes[0].outputs))
    found = [port for port, ref in outputs if ref.node == name] or [first]
    return (*found, *([""] if first in found or not all(found) else []))


def led_to(picture: Picture, x: float, y: float) -> list[DrawnWire]:
    """Return the wires whose arrowheads point at words."""
    return [wire for wire in picture.wires if wire.tip and dist(wire.tip, (x, y)) < AT_WORDS]


def is_handed_on(node: TypedRepeat, graph: TypedGraph | None, ports: Collection[str]) -> bool:
    """Return whether every pass of a repeat reads what the one before gives at some ports, and nothing else reads it of the last
    one but with the others.
    """
    last = len(node.passes) - 1
    for index, one in enumerate(node.node.passes):
        refs = [ref for wire in one.wires for ref in wire.refs if ref.node == node.name and ref.port in ports]
        if index and index - 1 not in [ref.index for ref in refs]:
            return False
    others = [other for other in graph.nodes if other is not node] if graph else []
    lists = [refs for other in others for refs in read_by_passes(other) or [wire.refs for wire in wires_of(other.node)]]
    lists += [(ref,) for _, ref in graph.graph.outputs] if graph else []
    for together in lists:
        read = [ref.index for ref in together if ref.node == node.name and ref.port in ports]
        if None in read or (last in read and last - 1 not in read):
            return False
    return last > 0


def out_of_turn(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every list of what the concatenations of a pass take that is not what they read, one after the other."""
    passes = {
        f"{visit.path}.{index}": (graph, one)
        for visit in walk(typed.root, every_pass, every_node)
        if isinstance(visit.node, TypedRepeat)
        for index, (graph, one) in enumerate(zip(visit.node.passes, visit.node.node.passes, strict=True))
    }
    called = {box.path: {box.name, *box.lines[:1]} for box in picture.boxes}
    for box in picture.boxes:
        for said in SKIPS.findall(" · ".join(box.lines)):
            graph, own = passes.get(box.path, (None, None))
            if graph is None or own is None:
                yield f"{box.path}: `{said}`: it is no pass"
                continue
            outer = {wire.port: wire.refs[0] for wire in own.wires}
            around = "".join(f"{one}." for one in box.path.split(".")[:-2])
            captured = {one.name for one in graph.graph.inputs if one.captured}
            joins = [node for node in graph.nodes if isinstance(node, TypedBlock) and node.part.kind in ("concat", "stack")]
            read = [
                outer[ref.node] for node in joins for wire in wires_of(node.node) for ref in wire.refs if ref.node in captured
            ]
            names = [names_of(ref, around, called) for ref in read]
            told = said.strip().split(", ")
            if len(told) != len(names) or not all(one in every for one, every in zip(told, names, strict=True)):
                yield f"{box.path}: `{said}`: what they take is {[*map(str, read)]}"


def names_of(ref: Ref, around: str, called: Mapping[str, set[str]]) -> set[str]:
    """Return what a value may be called beside the box that gives it: its number among passes in that, or the name of the box."""
    if found := re.fullmatch(r"(\w+)\((\d+)\)", ref.port):
        return {f"{words(found[1])[0]} {found[2]}"}
    return called.get(f"{around}{ref.node}" + ("" if ref.index is None else f".{ref.index}"), set()) if not ref.port else set()


def misread(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every statement of a picture about the passes that are read which holds nowhere in the model."""
    yield from out_of_turn(picture, typed)
    known = readings(typed) | readings(folded(typed).program)  # of layers that are written one by one too
    texts = [text for _, _, text in picture.texts]
    texts += [fact for box in picture.boxes for line in box.lines for fact in line.split(" · ") if fact.startswith("of ")]
    yield from misjoined(texts, typed)
    yield from misled_on(picture, typed)
    for text in texts:
        if text.split(" · ")[0] != text or not (said := SAID.fullmatch(text)):
            continue
        if said[1].partition(" ")[0] in ("dropout", "shift"):
            continue
        if said[1] not in known:
            yield f"`{text}` is not what is read: {sorted(known)}"
