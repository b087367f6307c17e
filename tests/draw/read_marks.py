"""What a picture shows without words, held against the model: where wires begin, which blocks they join, the colors of maps of
layers, in which passes a block is, the pictures of masks; and formulas, which it shows in signs.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise
from math import dist

from blocks.core.formula import Formula
from blocks.masks.mask import CELLS, Mask
from composer.draw.paths import INPUTS, output_path
from composer.graph.anatomy import wires_of
from composer.graph.formula_text import formula_text
from composer.graph.passes.roll_layers.roll_layers import folded
from composer.graph.passes.roll_layers.rolled_names import RolledNames
from composer.graph.typed import TypedBlock, TypedProgram, TypedRepeat
from composer.graph.visit import every_node, every_pass, walk
from tests.draw.edges import Made, Readers
from tests.draw.read_back import (
    EMPTY,
    OPEN,
    RANGE,
    SVG,
    Cell,
    DrawnBox,
    DrawnFrame,
    DrawnWire,
    Model,
    Picture,
    Place,
    beside,
    numbers,
    of_value,
    places_of,
    plain,
    split_rows,
)
from tests.draw.read_idioms import blocks_with_others, misnamed_idioms, shown_by
from tests.draw.read_letters import mislettered
from tests.draw.read_passes import held
from tests.draw.read_reductions import misreduced
from tests.draw.read_slants import mislanted
from tests.draw.read_squeezes import squeezed

WINDOWS = re.compile(r"\bwindow (\d+(?:, \d+)*)")
"""How far masks reach."""
NEAR = 2.0
"""Pixels between where a wire begins and what it comes from."""
BESIDE = 24.5
"""The same of a name, whose letters begin, end or have their middle there; and of a map of layers beside a frame."""
SIGNS = {"σ": "sigmoid", "√": "sqrt", "|": "abs"}
"""How a drawing writes functions."""
POWERS = str.maketrans({"²": " 2", "³": " 3"})
PLACES = re.compile(r"\d+(?:, \d+)*")
"""Which of the values that a block reads in an order comes in at an arrowhead."""
AT_TIP = 16.0
"""Pixels between such a number and the tip of the arrowhead."""
SOME_PASSES = r"some|(?:first|last)(?: \d+)?|first and last|\d+(?:st|nd|rd|th)(?: (?:–|and) \d+(?:st|nd|rd|th))*"
OF_INPUT = re.compile(rf"^sizes of |(?: \((?:{SOME_PASSES})\))?(?: at first)?(?: \((?:optional )?input\)| output)?$")
"""What stands around the name of an input in place of a wire: behind it, which passes read it, where not all do."""
STRAIGHT = re.compile(r"= ([\w.]+), with the gradient of ([\w.]+)")
"""What a formula is said to give, and whose gradient goes through it."""
FIRST_AND_LAST = re.compile(r"(\w+)\((\d+)\)\S* … \1\((\d+)\)")
"""What several passes give, in the order in which it is read."""
OF_PASSES = re.compile(
    r"(\d+) of (\d+)\b(?! active)(?:: (first and last|(?:first|last)(?: \d+)?|\d+\w\w(?: (?:–|and) \d+\w\w)?))?"
)
"""How many passes of a repeat have what is in a frame, and which."""
COUNTED_KINDS = {"add", "multiply", "concat", "stack", "einsum"}
"""Blocks that read any number of values, and none of these by a name."""
CAST = re.compile(r"float\d*|bfloat16|int|bool")
"""What a drawing leaves out of a formula."""


def unmarked(svg: str, picture: Picture, model: Model, typed: TypedProgram) -> Iterator[str]:
    """Yield everything that a picture shows and is not so."""
    yield from misled(picture, typed)
    yield from started_elsewhere(picture)
    yield from misnamed(picture, typed)
    yield from unnamed(picture)
    yield from confused(picture)
    yield from nameless(picture, typed)
    yield from uncounted(picture, typed)
    yield from misordered(picture, typed)
    yield from misnumbered(picture, typed)
    yield from misplaced(picture, typed)
    yield from miscolored_rows(picture, model)
    yield from in_other_passes(picture, model)
    yield from misdrawn(svg, picture, typed)
    yield from misreduced(picture, typed)
    yield from misnamed_idioms(picture, typed)
    yield from mislanted(picture, typed)


# -- wires


def ways_of(picture: Picture | None) -> tuple[tuple[bool, set[str] | None], ...]:
    """Return the ways in which a picture may read a graph: whether a dropout is no box, and what is drawn by itself, where
    something that cancels out is not.
    """
    shown = {plain(box.path) for box in picture.boxes} if picture else None
    return (False, None), (True, None), (True, shown)


def misled(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every wire from one block to another that reads nothing of it."""
    known: set[tuple[str, str]] = set()
    blocks: set[str] = set()
    for quiet, seen in ways_of(picture):
        truth = Readers(typed, quiet=quiet, called=folded(typed).names, shown=seen)
        known |= {(maker, reader) for maker, reader, _ in truth.pairs}
        blocks |= truth.blocks
    drawn = {plain(box.path) for box in picture.boxes if not box.merged}
    for wire in picture.wires:
        ends = plain(wire.source), plain(wire.target)
        if {*ends} <= blocks & drawn and ends[0] != ends[1] and ends not in known:
            yield f"{wire.source} → {wire.target}: it does not read that"


def started_elsewhere(picture: Picture) -> Iterator[str]:
    """Yield every wire that begins neither at what it is said to come from nor at another wire from there nor at its name."""
    places = [(box.path, box.place) for box in picture.boxes]
    frames = [(frame.path, frame.place) for frame in picture.frames if frame.path]
    for wire in picture.wires:
        if not wire.source or wire.idle:
            continue
        x, y = wire.start
        part = picture.part_of(x, y)
        at = [place for path, place in picture.of_part(places, part) if f"{path}.".startswith(f"{wire.source}.")]
        around = [place for path, place in picture.of_part(frames, part) if f"{wire.source}.".startswith(f"{path}.")]
        names = [(left, top) for left, top, path, _ in picture.references if path == wire.source]
        named = any(abs(x - left) < BESIDE and abs(y - top) < BESIDE for left, top in names)
        if not (at or around) or named:
            continue
        near = any(place.touches(x, y, NEAR) for place in at) or any(place.touches(x, y, BESIDE) for place in around)
        if not near and not any(on(other, x, y) for other in picture.wires if other is not wire and other.source == wire.source):
            yield f"{wire.source} → {wire.target}: it begins elsewhere"


def misnamed(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every name in place of a wire that is not that of its input, every arrow from the box of an input to
    nothing, and every name of such an input that says that there is no box.
    """
    inputs = {one.name for one in typed.untyped.inputs}
    names: dict[str, list[str]] = {}
    for _, _, path, text in picture.references:
        if path in inputs:
            names.setdefault(path, []).append(text)
    for path, said in names.items():
        yield from (f"{path}: it is called `{text}`" for text in said if OF_INPUT.sub("", text) != path)
    for wire in picture.wires:
        if wire.tip is None or wire.target or wire.source not in inputs:
            continue
        if not any(path == wire.source and dist(wire.tip, (x, y)) < BESIDE for x, y, path, _ in picture.references):
            yield f"{wire.source}: its arrow leads to no name"
        if wire.source not in names or len(names[wire.source]) < 2:
            yield f"{wire.source}: nothing reads it by its name"
        if any(text.endswith("(input)") for text in names.get(wire.source, ())):
            yield f"{wire.source}: it has a box"


def is_of_frame(path: str, name: str, picture: Picture) -> bool:
    """Return whether a name tells the frame around a box, by its title, and a value that the passes in it hand on."""
    around, _, value = name.rpartition(".")
    frames = [one for one in picture.frames if f"{path}.".startswith(f"{one.path}.")]
    titles = {line.partition(" · ")[0].lower() for one in frames for line in one.lines}
    handed_on = {word for _, _, text in picture.texts for word in text.split(", ")}
    return around.lower() in titles and value in handed_on


def unnamed(picture: Picture) -> Iterator[str]:
    """Yield every box and circle whose value is read by a name that stands nowhere at it. A name of several parts is that of the
    frame around a box, and what its passes hand on there; one of a pass before is of the same frame.
    """
    names = {(path, OF_INPUT.sub("", text)) for _, _, path, text in picture.references}
    names = {(path, name) for path, name in names if not re.match(r"[\w ]+: ", name) and not is_of_frame(path, name, picture)}
    for path, name in sorted(names):
        boxes = [one for one in picture.boxes if one.path == path and not picture.part_of(one.place.left, one.place.top)]
        said = [word for box in boxes for line in (box.name, *box.lines) for word in words(line)]
        around = {text for x, y, text in picture.texts if any(box.place.touches(x, y, BESIDE) for box in boxes)}
        around |= {text for x, y, one, text in picture.references if one == path and any(near(x, y, box.place) for box in boxes)}
        if boxes and "(" not in name and not {*words(name.rpartition(".")[2])} <= {*said} and name not in around:
            yield f"{path}: it is read as `{name}`, which it does not say"


def confused(picture: Picture) -> Iterator[str]:
    """Yield every name in place of a wire that stands at the end of a wire for something else into the same block, too."""
    into: dict[str, list[DrawnWire]] = {}
    for wire in picture.wires:
        into.setdefault(wire.target if wire.tip else "", []).append(wire)
    for x, y, path, name in picture.references:
        for wire in picture.wires if any(text == name for _, _, text in picture.texts) else ():
            if wire.source != path or not wire.target or dist(wire.start, (x, y)) > AT_TIP:
                continue
            others = [one for one in into.get(wire.target, ()) if one.source != path]
            ends = [(left, top) for left, top, text in picture.texts if text == name]
            if any(dist(one.tip or (), end) < AT_TIP for one in others for end in ends):
                yield f"{path} → {wire.target}: it is read as `{name}`, which is another value there"


def nameless(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every box that a formula of the same part of a picture reads by a name which does not stand in it, unless the picture
    has no names at all.
    """
    named = any(box.name for box in picture.boxes)
    inputs = {one.name for one in typed.untyped.inputs}
    read: dict[str, set[str]] = {}
    for visit in walk(typed.root, every_pass, every_node) if named else ():
        formula = getattr(visit.node.part, "formula", None) if isinstance(visit.node, TypedBlock) else None
        if isinstance(formula, Formula):
            refs = {ref.node for wire in wires_of(visit.node.node) for ref in wire.refs} - inputs  # whose boxes say what they are
            read.setdefault(plain(visit.path), set()).update(refs & {*formula.names})
    makers = squeezed(typed)
    at: dict[str, list[DrawnBox]] = {}
    for box in picture.boxes:
        at.setdefault(box.path, []).append(box)
    for box in picture.boxes:
        written = {*re.findall(r"\w+", " ".join(box.lines))}
        around, _, _ = box.path.rpartition(".")
        for name in sorted(read.get(plain(box.path), set()) & written if not box.merged else ()):
            part = picture.part_of(box.place.left, box.place.top)
            path = f"{around}.{name}".removeprefix(".")
            every = at.get(path, at.get(makers.get(path, ""), ()))
            boxes = [one for one in every if one.lines and picture.part_of(one.place.left, one.place.top) == part]
            said = {word for one in boxes for line in (one.name, *one.lines) for word in words(line)}
            if boxes and not {*words(name)} <= said:
                yield f"{boxes[0].path}: a formula reads it as `{name}`, which it does not say"


def words(text: str) -> list[str]:
    """Return the words of a name or a title."""
    return re.findall(r"[^\W_]+", text.lower())


def near(x: float, y: float, place: Place) -> bool:
    """Return whether a name stands at the end of an arrow from a box."""
    return place.touches(x, y, 2 * BESIDE)


def uncounted(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every block that reads a value several times by one wire that does not say so."""
    several: dict[str, set[int]] = {}
    for visit in walk(typed.root, every_pass, every_node):
        kind = visit.node.part.kind if isinstance(visit.node, TypedBlock) else ""
        refs = [ref for wire in wires_of(visit.node.node) for ref in wire.refs] if kind in COUNTED_KINDS else []
        several.setdefault(plain(visit.path), set()).add(len(refs) if len({*refs}) == 1 else 1)
    for box in picture.boxes:
        (count, *others), ends = several.get(box.path, {1}), [one for one in picture.wires if one.target == box.path and one.tip]
        inside = box.merged or picture.part_of(box.place.left, box.place.top)  # of a detail, where texts are its own
        if count > 1 and not others and len(ends) == 1 and not inside:
            near = [text for x, y, text in picture.texts if dist((x, y), ends[0].tip or ()) < AT_TIP]
            if f"{count} ×" not in near:
                yield f"{box.path}: it reads a value {count} times, and does not say so"


def misordered(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every name of several passes that no repeat reads in this order: the first one first, and the last one last."""
    ends = set()
    for visit in walk(typed.root, every_pass, every_node):
        if isinstance(visit.node, TypedRepeat):
            read: dict[tuple[str, str], list[int]] = {}
            for wire in (wire for one in visit.node.node.passes for wire in one.wires):
                for ref in (ref for ref in wire.refs if ref.index is not None and ref.node != visit.node.name):
                    read.setdefault((wire.port, ref.node), []).append(ref.index or 0)
            for (_, name), order in read.items():
                others = [index for index in order if index < max(order)]  # of the last pass, a wire may tell it
                ends |= {(name, str(one[0]), str(one[-1])) for one in (order, others) if one}
    for _, _, _, text in picture.references:
        found = FIRST_AND_LAST.match(text)
        if found and found.groups() not in ends:
            yield f"`{text}`: they are not read in this order"


def on(wire: DrawnWire, x: float, y: float) -> bool:
    """Return whether a point lies on a wire."""
    return any(Place(min(a, c), min(b, d), max(a, c), max(b, d)).touches(x, y, NEAR) for (a, b), (c, d) in pairwise(wire.corners))


def misnumbered(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every wire that begins at a layer of a map, of which its reader reads other ones, or whose name is another one's."""
    read = passes_read(typed)
    for frame in picture.frames:
        for wire in (wire for wire in picture.wires if wire.source == frame.path):
            x, y = wire.start
            begun = [index for index, layer in enumerate(frame.layers) if layer.touches(x, y, 0.5)]
            near = [text for left, top, text in picture.texts if 0 < left - x < BESIDE and 0 < y - top < NEAR * 4]
            said = [int(found[2]) for text in near if (found := RANGE.match(text)) and not found[3]]
            known = {*read.get((wire.source, wire.target), begun), *said}
            if (begun and not {*begun} & known) or (said and not {*begun} & {*said}):
                yield f"{frame.path} → {wire.target}: it begins at layer {begun}, and not at {known}"


def misplaced(picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every number at an arrowhead that is not the place of what comes in there among what its block reads in an order; and
    every block of whose arrowheads only some have a number.
    """
    orders = read_in_order(typed, picture)
    wires = [wire for wire in picture.wires if wire.tip is not None and plain(wire.target) in orders]
    said: dict[int, str] = {}
    for left, top, text in picture.texts:
        away = {number: dist((left, top), wire.tip or ()) for number, wire in enumerate(wires)}
        near = min(away, key=lambda number: away[number], default=None)
        if PLACES.fullmatch(text) and near is not None and away[near] < AT_TIP:
            said[near] = text
    for number, text in said.items():
        wire, order = wires[number], orders[plain(wires[number].target)]
        for place in map(int, text.split(", ")):
            if not any(comes_from(one, wire) for one in order.get(place, ())):
                yield f"{wire.source} → {wire.target}: it is not number {place} there"
    told = {wires[number].target for number in said}
    for path in told:
        if any(wire.target == path and number not in said for number, wire in enumerate(wires)):
            yield f"{path}: some of what comes in has no number"


def read_in_order(typed: TypedProgram, picture: Picture | None = None) -> dict[str, dict[int, set[str]]]:
    """Return what makes each of the values that blocks read in an order, counted from 1."""
    found: dict[str, dict[int, set[str]]] = {}
    for quiet, seen in ways_of(picture):
        for path, order in InOrder(typed, quiet=quiet, called=folded(typed).names, shown=seen).orders.items():
            for place, made in order.items():
                found.setdefault(path, {}).setdefault(place, set()).update(made)
    return found


class InOrder(Readers):
    """Readers that also note in which order blocks read."""

    def __init__(self, typed: TypedProgram, *, quiet: bool, called: RolledNames, shown: set[str] | None) -> None:
        self.orders: dict[str, dict[int, set[str]]] = {}
        super().__init__(typed, quiet=quiet, called=called, shown=shown)

    def block(self, node: TypedBlock, values: Mapping[str, Mapping[str, Made]], path: str) -> Mapping[str, Made]:
        """Note what a block reads."""
        refs = [ref for wire in node.node.wires for ref in wire.refs]
        for place, ref in enumerate(refs if node.part.kind in ("concat", "stack") else (), 1):
            self.orders.setdefault(path, {}).setdefault(place, set()).update(self.ref(ref, values))
        return super().block(node, values, path)


def comes_from(maker: str, wire: DrawnWire) -> bool:
    """Return whether a wire may come from what makes a value: from that, a frame around it, or, where it is made elsewhere,
    the border of a frame around its reader.
    """
    source = plain(wire.source)
    if source.startswith(INPUTS):
        return True
    if f"{plain(wire.target)}.".startswith(f"{source}."):
        return not maker.startswith(f"{source}.")
    return f"{maker}.".startswith(f"{source}.") or f"{source}.".startswith(f"{maker}.")


def passes_read(typed: TypedProgram) -> dict[tuple[str, str], set[int]]:
    """Return which passes of a repeat are read by each block, repeat, loss and output beside it."""
    found: dict[tuple[str, str], set[int]] = {}
    graphs = [("", typed.root)]
    graphs += [(f"{plain(one.path)}.", graph) for one in walk(typed.root, every_pass, every_node) for graph in held(one.node)]
    for prefix, graph in graphs:
        lasts = {node.name: len(node.passes) - 1 for node in graph.nodes if isinstance(node, TypedRepeat)}
        read = [(prefix + node.name, ref) for node in graph.nodes for wire in wires_of(node.node) for ref in wire.refs]
        read += [(output_path(name), ref) for name, ref in graph.graph.outputs if not prefix]
        for reader, ref in read:
            if ref.node in lasts:
                index = lasts[ref.node] if ref.index is None else ref.index
                found.setdefault((prefix + ref.node, reader), set()).add(index)
    return found


# -- maps of layers


def miscolored_rows(picture: Picture, model: Model) -> Iterator[str]:
    """Yield every row, or frame of some kinds, whose squares have other colors than the layers that it is about."""
    maps = [frame for frame in picture.frames if frame.cells and EMPTY not in frame.cells]
    for frame in maps:
        for inner in picture.frames:
            if inner.swatches and nearest(maps, inner.place) is frame and inner is not frame:
                shares = split_rows(inner.lines)[0] or split_rows([" · ".join(inner.lines)])[0]
                yield from miscounted(frame, inner.swatches[0], shares[0][0] if shares else None, f"the frame in {frame.path}")
    for box in picture.boxes:
        frame = nearest(maps, box.place)
        rows = split_rows(box.lines)[0]
        if box.swatches and not any(one.cells and box.path.startswith(f"{one.path}.") for one in picture.frames):
            yield f"{box.path}: no map of layers has the colors of its rows"
        if frame is None or len(rows) != len(box.swatches):
            continue
        for (count, _, said), colors in zip(rows, box.swatches, strict=True):
            yield from miscounted(frame, colors, count, f"{box.path}: `{said[0]}`")
            once = len(model.kinds.get(frame.path, ())) == 1
            for index in (index for index, color in enumerate(frame.cells) if once and color in colors):
                known = model.with_inside(box.path, model.of(box.path))
                own = [one for one in known if one.path.startswith(f"{frame.path}.{index}.")]
                listed = " ".join(said)
                if own and "," not in listed and not all(one.has(number) for one in own for number in numbers(listed)):
                    yield f"{box.path}: `{said[0]}` has the color of layer {index}"


def nearest(maps: list[DrawnFrame], place: Place) -> DrawnFrame | None:
    """Return the innermost frame with a map of layers around something."""
    around = [frame for frame in maps if frame.place.holds(place)]
    return min(around, key=lambda frame: frame.place.right - frame.place.left, default=None)


def miscounted(frame: DrawnFrame, colors: list[Cell], count: int | None, what: str) -> Iterator[str]:
    """Yield where another number of layers than is told have the colors beside it."""
    found = sum(color in colors for color in frame.cells)
    if not found or (count is not None and found != count):
        yield f"{what}: {found} of the map have the colors of {count}"


# -- passes


def in_other_passes(picture: Picture, model: Model) -> Iterator[str]:
    """Yield every block that is drawn for other passes of a repeat than have it: where nothing is said around it, for all; in a
    detail, for those that have the block which is drawn there.
    """
    told: dict[str, list[int | None]] = {}
    named: dict[str, list[tuple[int, int, list[str]]]] = {}
    for box in picture.boxes:
        if box.merged or picture.part_of(box.place.left, box.place.top):
            continue
        around = [found for frame in picture.frames if frame.place.holds(box.place) and (found := shares_of(frame))]
        around += beside(box, picture)
        told.setdefault(box.path, []).append(around[-1][-1][0] if around else None)
        named.setdefault(box.path, []).extend(found[-1] for found in around[-1:])
    for path, shares in named.items():
        yield from in_named_passes(path, *shares, model=model) if len(shares) == len(told[path]) == 1 else ()
    opened = {frame.path for frame in picture.frames}  # what is a frame in some passes
    for path, counts in told.items():
        holder = path.rpartition(".")[0]
        while holder and holder not in model.kinds:
            holder = holder.rpartition(".")[0]
        alone = holder and not any(f"{holder}.".startswith(f"{other}.") for other in model.kinds if other != holder)
        if not alone or path in opened or path not in model.by_path or plain(path) != path or path in model.counts:
            continue
        whole, found = sum(model.lengths(holder)), len(model.by_path[path])
        said = whole if counts == [None] else sum(count or 0 for count in counts)
        if None not in counts[1:] and (counts == [None] or None not in counts) and said != found:
            yield f"{path}: it is drawn for {said} of {whole} passes, and {found} have it"


def shares_of(frame: DrawnFrame) -> list[tuple[int, int, list[str]]]:
    """Return in how many passes what is in a frame is, and in which, if it says that."""
    found = OF_PASSES.match(" ".join(frame.lines[:2]))
    return [(int(found[1]), int(found[2]), [f"{found[3]}: "] if found[3] else [])] if found else []


def in_named_passes(path: str, share: tuple[int, int, list[str]], *, model: Model) -> Iterator[str]:
    """Yield what is not so of the passes that a frame around a block names: all others of that repeat lack it."""
    count, whole, said = share
    own = {int(found[1]) for one in model.by_path.get(path, ()) if (found := re.search(r"\.(\d+)\.", one.path))}
    if said and own and path.rpartition(".")[0] in model.kinds:
        places = places_of([said[0], f"{whole - count} of {whole}: "])[0]
        if places != own:
            yield f"{path}: it is in {sorted(own)}, and not `{said[0]}`"


# -- pictures and formulas


def windows(box: DrawnBox, nodes: list[TypedBlock]) -> Iterator[str]:
    """Yield the windows of masks in a box, or of all that is in it, where those of some passes are not among them."""
    rows, lines = split_rows(box.lines)
    said = {number for found in WINDOWS.findall(" · ".join(lines)) for number in numbers(found)}
    having = [{*of_value(mask)} for node in nodes if isinstance(mask := getattr(node.part, "mask", None), Mask)]
    having = [found for found in having if found]
    if said and not (rows or OPEN.search(" ".join(lines))) and not all(found & said for found in having):
        yield f"{box.path}: window {said}: the masks have {having}"


def misdrawn(svg: str, picture: Picture, typed: TypedProgram) -> Iterator[str]:
    """Yield every picture of a mask that is no mask of its block, and every formula that lacks something."""
    blocks: dict[str, list[TypedBlock]] = {}
    for visit in walk(typed.root, every_pass, every_node):
        if isinstance(visit.node, TypedBlock):
            blocks.setdefault(plain(visit.path), []).append(visit.node)
    for path, seen in drawn_masks(svg):
        own = [mask for node in blocks.get(plain(path), ()) for mask in masks_of(node)]
        if own and seen not in own:
            yield f"{path}: the picture of the mask is not so: {seen}"
    idioms = {path for path, _, _ in blocks_with_others(typed, shown_by(picture))}
    for box in picture.boxes:
        formulas = [one for node in blocks.get(plain(box.path), ()) if (one := getattr(node.part, "formula", None))]
        if formulas and not box.merged and plain(box.path) not in idioms:  # what an idiom says is computed elsewhere
            yield from incomplete(box, [one for one in formulas if isinstance(one, Formula)])
            yield from mislettered(box, blocks[plain(box.path)]) if plain(box.path) == box.path else ()
            yield from not_straight(box, [one for one in formulas if isinstance(one, Formula)])
        holder = plain(box.path).rpartition(".")[0]
        below = [node for path, own in blocks.items() if f"{path}.".startswith(f"{plain(box.path)}.") for node in own]
        drawn_once = sum(other.path == box.path for other in picture.boxes) == 1
        yield from windows(box, below) if drawn_once and plain(box.path) == box.path else ()
        yield from undone(box, blocks.get(holder, []))


def masks_of(node: TypedBlock) -> list[frozenset[tuple[int, int]]]:
    """Return the pictures that a block may have, which keys a query sees: with all inputs of its mask first, without any last."""
    mask = getattr(node.part, "mask", None)
    edges = sorted(mask.samples(CELLS, CELLS)) if isinstance(mask, Mask) else []
    absent = [frozenset(some) for count in range(len(edges) + 1) for some in combinations(edges, count)]
    pictures = [mask.cells(some).seen for some in absent] if isinstance(mask, Mask) else []
    return [
        frozenset((row, key) for row, line in enumerate(seen) for key, is_seen in enumerate(line) if is_seen) for seen in pictures
    ]


def drawn_masks(svg: str) -> Iterator[tuple[str, frozenset[tuple[int, int]]]]:
    """Yield every picture of a mask with the path of its box."""
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        empty = group.findall(f"{SVG}rect[@class='off']")
        squares = [one for one in empty if one.get("width") == one.get("height")]
        fills = [one for one in group.findall(f"{SVG}path") if one.get("class") == "on"]
        for square in squares:
            left, top, side = (float(square.get(name, "0")) for name in ("x", "y", "width"))
            cells: set[tuple[int, int]] = set()
            for x, y, wide in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", " ".join(one.get("d", "") for one in fills)):
                row, first = ((float(at) - start) / side * CELLS for at, start in ((y, top), (x, left)))
                if -0.5 < row < CELLS and -0.5 < first < CELLS:
                    cells |= {(round(row), round(first) + step) for step in range(round(float(wide) / side * CELLS))}
            yield group.get("data-id", ""), frozenset(cells)


def incomplete(box: DrawnBox, formulas: list[Formula]) -> Iterator[str]:
    """Yield every formula of which numbers, functions or values stand in no line of its box, where no line is cut."""
    said = STRAIGHT.sub("", " ".join(box.lines))
    if "…" in said:
        return
    words = {SIGNS.get(word, word) for word in re.findall(r"[^\W\d]\w*|σ|√|\|", said.translate(POWERS))}
    found = {abs(number) for number in numbers(said.translate(POWERS))}
    for formula in formulas:
        text = re.sub(r"\b[^\W\d]\w*\.", "", formula_text(formula, formula.names))  # a part goes by its own name
        wanted = {word for word in re.findall(r"[^\W\d]\w*", text) if not CAST.fullmatch(word)}
        by_name = words - wanted - {box.name}  # numbers that the recipe has a name for
        if not wanted <= words or not (by_name or {*map(abs, numbers(text))} <= found):
            yield f"{box.path}: `{said}`: of `{text}`, something is missing"


def not_straight(box: DrawnBox, formulas: list[Formula]) -> Iterator[str]:
    """Yield where a formula is said to give one value with the gradient of another and does not."""
    for gives, trains in STRAIGHT.findall(" ".join(box.lines)):
        for formula in formulas:
            text = re.sub(r"(?<=\w)\.(?=[^\W\d])", "_", formula_text(formula, formula.names))
            by_name = {name.rpartition(".")[2]: re.sub(r"\W", "_", name) for name in formula.names}
            by_name |= {name: re.sub(r"\W", "_", name) for name in formula.names}
            given = {re.sub(r"\W", "_", name): 0.5 + number for number, name in enumerate(formula.names)}
            stopped: list[float] = []  # what no gradient goes through is the same wherever the values are a little others

            def stop(value: float, kept: list[float] = stopped) -> float:
                kept.append(value)
                return value

            whole = eval(text, {"stop_gradient": stop}, given)
            slopes = {}
            for name in given:
                again = iter(stopped)
                moved = {**given, name: given[name] + 1}
                slopes[name] = eval(text, {"stop_gradient": lambda _, again=again: next(again)}, moved) - whole
            if whole != given[by_name[gives]] or slopes != {name: float(name == by_name[trains]) for name in given}:
                yield f"{box.path}: `{text}` is said to be {gives} with the gradient of {trains}"


def undone(box: DrawnBox, nodes: list[TypedBlock]) -> Iterator[str]:
    """Yield what the formula of an attention leaves out: the number that its scores are scaled by, and that they are masked."""
    line = next((line for line in box.lines if "softmax(" in line and "Q·K" in line), "")
    formula = line.partition(") V")[0]
    scaled = [getattr(node.part, "scale", None) != 1 for node in nodes]
    if line and any(scaled) and not re.search(r"/ √?\d|\d Q·K", formula):
        yield f"{box.path}: `{line}`: it has no scale"
    masked = [any(len(seen) < CELLS**2 for seen in masks_of(node)[-1:]) for node in nodes]
    if line and masked and all(masked) and "mask" not in formula:
        yield f"{box.path}: `{line}`: it has no mask"
