"""A figure that is built up: one subject after another, all in the same places, so that flipping through looks like building."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from composer.atomic_files import save
from composer.draw.export.formats import NotDrawn, format_of, pdf_of_pages, write
from composer.draw.figure import Figure
from composer.draw.geometry import Area, Point, Text
from composer.draw.paths import belongs, is_output, lies_in, plain
from composer.draw.scene import Box, Dot, Frame, MergeCircle, Scene, WirePath
from composer.graph.anatomy import regions
from composer.graph.typed import TypedGraph, TypedRepeat

SMALL = frozenset({"norm", "pos", "io", "merge", "loss"})
"""What is told with the next block, as it is no subject of its own."""
NEAR = 1.0
"""Pixels between a dot and a wire that goes through it."""
WORDS = re.compile(r"[^a-z0-9]+")
FOLDER_FORMATS = ("svg", "png")


@dataclass(frozen=True, slots=True)
class FigureStep:
    """A figure in which everything is drawn up to some subject."""

    title: str
    """The subject that is new in it."""
    figure: Figure


@dataclass(frozen=True, slots=True)
class _Subject:
    """What comes together."""

    paths: tuple[str, ...] = ()
    """Of nodes, with all that is in them."""
    frame: str = ""
    """Path of a repeat whose border comes, with no more than one layer in it."""
    stack: str = ""
    """Path of a repeat of which all passes are told."""


def steps(figure: Figure) -> list[FigureStep]:
    """Return a figure built up from its inputs to its outputs: each block; of a repeat one layer with what is in it, then all.

    Everything keeps its place, and the last step is the figure itself.
    """
    subjects = _Subjects(figure).all()
    found: list[FigureStep] = []
    for count in range(1, len(subjects) + 1):
        last = count == len(subjects)
        scene = figure.scene if last else _Revealed(figure.scene, subjects[:count]).scene()
        found.append(FigureStep(_title(figure.scene, subjects[count - 1]), replace(figure, scene=scene)))
    return found


def save_steps(figure: Figure, path: Path, format: str | None = None) -> list[Path]:
    """Write the steps of a figure: a page for each into one PDF, slides into an HTML page, else a file for each into a folder.

    Returns:
        What was written.

    Raises:
        Missing: if a program or a package is needed that is not installed.
        NotDrawn: if the path ends like another file, or the format is not one of these.
        OSError: if a file cannot be written.
    """
    built, ending = steps(figure), format_of(path.name)
    kind = format or ending or "svg"
    if ending and kind != ending:
        raise NotDrawn(f"{path.name} ends like a file of {ending}, but the format is {kind}", "give only one of them")
    if kind == "pdf":
        save(path, pdf_of_pages([one.figure for one in built]))
        return [path]
    if kind == "html":
        from composer.draw.export.slides import slides

        save(path, slides(figure.scene.name, [(one.title, one.figure.svg()) for one in built], figure.theme).encode())
        return [path]
    if ending or kind not in FOLDER_FORMATS:
        hint = "name a folder, or a file that ends in .pdf or .html"
        raise NotDrawn(f"steps are several pictures, which a file of {kind} does not hold", hint)
    path.mkdir(parents=True, exist_ok=True)
    written = []
    for number, one in enumerate(built, 1):
        name = WORDS.sub("-", one.title.lower()).strip("-")
        written.append(path / f"{number:0{len(str(len(built)))}d}-{name[:60]}.{kind}")
        write(one.figure, written[-1])
    return written


class _Subjects:
    """In which order a figure is told: that of the graph."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        scene = figure.scene
        self.things: list[Box | MergeCircle] = [*scene.boxes, *scene.merges]
        self.frames = {frame.about.path for frame in scene.frames}

    def all(self) -> list[_Subject]:
        """Return the subjects; what is small comes with the next one if that reads it, else with the one before."""
        found: list[_Subject] = []
        waiting: tuple[str, ...] = ()
        for subject in self.within(self.figure.model.program.root, ""):
            if subject.paths and not any(_is_large(thing, subject.paths) for thing in self.things):
                waiting += subject.paths
                continue
            if found and not self.reads(subject.paths, waiting):
                found[-1] = replace(found[-1], paths=(*found[-1].paths, *waiting))
                waiting = ()
            elif subject.paths:
                subject, waiting = replace(subject, paths=(*waiting, *subject.paths)), ()
            found.append(subject)
        if waiting and found:
            found[-1] = replace(found[-1], paths=(*found[-1].paths, *waiting))
        return found or [_Subject()]

    def reads(self, paths: Sequence[str], others: Sequence[str]) -> bool:
        """Return whether a wire leads from some nodes to others."""
        wires = self.figure.scene.wires
        return any(belongs(wire.target, paths) and belongs(wire.source, others) for wire in wires)

    def within(self, graph: TypedGraph, prefix: str) -> Iterator[_Subject]:
        """Yield what is told of a graph, node by node; of what is drawn from inside, what is in it."""
        for node in graph.nodes:
            path = prefix + node.name
            inner = [region.graph for region in regions(node)]
            repeat = isinstance(node, TypedRepeat)
            if path in self.frames and inner and (repeat or any(frame.startswith(f"{path}.") for frame in self.frames)):
                yield _Subject(frame=path)
                told = {subject: None for one in (inner if repeat else inner[:1]) for subject in self.within(one, f"{path}.")}
                yield from told  # passes that differ have some nodes in common
                yield _Subject(stack=path)
            elif repeat and self.unrolled(path):
                yield from (_Subject((f"{path}.{number}",)) for number in range(len(inner)))
            else:
                yield _Subject((path,))

    def unrolled(self, path: str) -> bool:
        """Return whether the passes of a repeat are drawn one by one."""
        return any(re.match(rf"{re.escape(path)}\.\d", thing.about.path) for thing in self.things)


def _is_large(thing: Box | MergeCircle, paths: Sequence[str]) -> bool:
    """Return whether something is a subject of its own, and lies at some paths."""
    return isinstance(thing, Box) and thing.hue not in SMALL and belongs(thing.about.path, paths)


def _title(scene: Scene, subject: _Subject) -> str:
    """Return what a subject is called: as its largest block, its layer or its stack."""
    if path := subject.frame or subject.stack:
        frame = next(one for one in scene.frames if one.about.path == path)
        title = frame.texts[0].text.partition(" · ")[0] if frame.texts else path
        if not (subject.stack and frame.pill):
            return title
        said = frame.pill.text
        return f"{said} {title}" if said.startswith("× ") else f"{title}, {said}"
    frames = [frame for frame in scene.frames if belongs(frame.about.path, subject.paths) and frame.texts]
    if frames:
        return frames[0].texts[0].text.partition(" · ")[0]
    boxes = [box for box in scene.boxes if belongs(box.about.path, subject.paths)]
    named = [box for box in boxes if box.hue not in SMALL] or boxes
    if not named:
        return subject.paths[-1] if subject.paths else scene.name
    large = max(named, key=lambda box: (box.about.parameters, box.width * box.height))
    titles = [text.text for text in large.texts if text.role in ("title", "low", "expert")]
    return titles[0] if titles else large.about.path


class _Revealed:
    """What of a scene is there once some subjects are told."""

    def __init__(self, whole: Scene, told: Sequence[_Subject]) -> None:
        self.whole = whole
        self.paths = {path for subject in told for path in subject.paths}
        self.stacks = {subject.stack for subject in told if subject.stack}
        self.framed = {subject.frame for subject in told if subject.frame}
        solid: list[Box | MergeCircle] = [*whole.boxes, *whole.merges]
        self.drawn = {one.about.path for one in solid} | {frame.about.path for frame in whole.frames}
        inputs = {wire.source for wire in whole.wires} - {one.about.path for one in solid}
        self.open = {box.about.path: box for box in whole.boxes if box.hue in ("io", "loss")}
        self.known = {*self.framed, *inputs}

    def scene(self) -> Scene:
        """Return the part that is there, in a scene of the same size."""
        whole = self.whole
        frames = [self.frame(frame) for frame in whole.frames if self.shows(frame.about.path)]
        wires = [wire for wire in whole.wires if self.shows(wire.source) and self.shows_end(wire.target)]
        return replace(
            whole,
            frames=tuple(frames),
            wires=tuple(wires),
            boxes=tuple(box for box in whole.boxes if self.shows(box.about.path)),
            merges=tuple(merge for merge in whole.merges if self.shows(merge.about.path)),
            dots=tuple(dot for dot in whole.dots if self.is_fork(dot, wires)),
            texts=tuple(text for text in whole.texts if self.shows_text(text, wires)),
            references=tuple(one for one in whole.references if self.shows_end(one.target) and self.shows_source(one.source)),
            details=tuple(one for one in whole.details if any(map(self.shows, one.stands_for))),
            fan=whole.fan if whole.fan is not None and self.shows(whole.fan.about.path) else None,
        )

    def shows(self, path: str) -> bool:
        """Return whether what has a path is there: an input with what reads it, an output and a loss with what gives it."""
        if path in self.open:
            ends = [wire.target for wire in self.whole.wires if wire.source == path and wire.target != path]
            if is_output(path) or not ends:
                ends = [wire.source for wire in self.whole.wires if wire.target == path]
            return any(end not in self.open and self.shows(end) for end in ends)
        frames = {frame.about.path for frame in self.whole.frames}
        if path in frames and not belongs(path, self.paths):
            return path in self.framed
        return belongs(path, self.paths) or (path in self.known and path not in frames)

    def shows_end(self, path: str) -> bool:
        """Return whether what a wire leads to is there; of a fork and a name, what it comes from tells."""
        return not path or self.shows(path)

    def shows_source(self, path: str) -> bool:
        """Return whether what is called by its name is there, or nothing that is drawn."""
        own = plain(path)
        return self.shows(path) or not any(lies_in(one, own) or lies_in(own, one) for one in self.drawn)

    def frame(self, frame: Frame) -> Frame:
        """Return a frame; how many passes it has is told once its layer is."""
        whole = frame.about.path in self.stacks or belongs(frame.about.path, self.paths)
        return frame if whole else replace(frame, pill=None, strip=None)

    def is_fork(self, dot: Dot, wires: Sequence[WirePath]) -> bool:
        """Return whether several wires that are there meet at a dot; or whether it is no fork, such as one for more experts."""
        meeting = [wire for wire in self.whole.wires if _distance((dot.x, dot.y), wire) <= NEAR]
        if not meeting:
            return any(
                box.hue == "moe" and abs(box.area.top - dot.y) < box.height and self.shows(box.about.path)
                for box in self.whole.boxes
            )
        return sum(wire in wires for wire in meeting) > 1

    def shows_text(self, text: Text, wires: Sequence[WirePath]) -> bool:
        """Return whether the wire beside which a text stands is there; the head and the foot always are."""
        if text.role in ("heading", "facts") or not self.whole.wires:
            return True
        area = text.area
        middle = (area.top + area.bottom) / 2
        nearest = min(
            self.whole.wires, key=lambda wire: min(_distance((x, middle), wire) for x in (area.left, text.x, area.right))
        )
        return nearest in wires


def _distance(point: Point, wire: WirePath) -> float:
    """Return how far a point is from a wire, whose pieces are upright or, of a curve, short."""
    x, y = point

    def off(area: Area) -> float:
        dx = max(area.left - x, 0.0, x - area.right)
        dy = max(area.top - y, 0.0, y - area.bottom)
        return float((dx * dx + dy * dy) ** 0.5)

    pairs = list(pairwise(wire.points))
    return min(off(Area(min(a, c), min(b, d), max(a, c), max(b, d))) for (a, b), (c, d) in pairs)
