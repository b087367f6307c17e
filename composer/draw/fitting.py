"""How a model fits its page: what is too large is shown in less detail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from composer.draw.build.group_places import GroupPlace, is_repeat
from composer.draw.build.levels import LEVELS, Depth, Level
from composer.draw.closing import (
    MANY_USES,
    MAX_SHARE,
    SEVERAL_USES,
    WORTH,
    closed_blocks,
    closing_order,
    fewest_closed,
    often_open,
    partly_closed,
    repeated_groups,
)
from composer.draw.diagram import Branches, Flow, Group, IrregularSubgraph, Titles
from composer.draw.layout.ends.places import with_places
from composer.draw.layout.ends.slants import with_slants
from composer.draw.layout.page import narrow_page, page
from composer.draw.layout.spine import FrameMemo
from composer.draw.paths import belongs, is_pass, plain
from composer.draw.scene import Direction, Scene
from composer.draw.style.typography import Typography
from composer.draw.turn.turned import turned
from composer.memo import Memo

MAX_PAGE_WIDTH, MAX_PAGE_HEIGHT = 1200.0, 1500.0
"""Pixels of a page that is read as a whole, with room for two columns and the wires between them, which may also lie on its side.
Where a drawing would be larger, fewer experts are shown, then mixtures of experts are closed, groups that are like others,
repeats in repeats, all repeats, and then other groups.
"""
FEW_BOXES, FEW_BOXES_FACTOR = 40, 4 / 3
"""A model of no more boxes keeps its repeats open up to so many times the page: what a model is about is in its layers, and the
smallest letters of such a drawing, shrunk to the page, are nearly 8 pixels high.
"""
SUBJECT_SHARE, SUBJECT_FACTOR = 0.4, 4 / 3
"""How much of a model is in the repeat that it is about; and how many times larger than a page, or than the drawing with this
closed where that is larger, a drawing with this open may be.
"""
OPENED_SHARE = 0.2
"""How much of a model is in a repeat that may be open where a page is too small for all: not one of many stages."""
MAX_EXCESS = 4 / 3
"""How many times larger than a page a drawing may be without a word about it."""
MAX_DETAILS_EXCESS = 1.4
"""The same with details, which are what a reader looks for: the smallest letters of it, shrunk to a page, are 7 pixels high."""
MAX_TELLING_EXCESS = 2.0
"""The same with the detail of the block that a model is about: without it, the figure does not tell what it is drawn for."""
MIN_STAGES = 2
"""Closed stages of several streams from which on these go through them as lanes."""
STREAMS_EXCESS = 1.6
"""The same with stages open that several streams go through: such a model is about these, and each by itself tells less."""
LANDSCAPE_WIDTH, LANDSCAPE_HEIGHT = 2000.0, 1125.0
"""The same where the stream runs to the right: about a slide of 1920 × 1080 pixels."""
HEAD_ROOM = 120.0
"""Pixels of it for the title, the facts below it and the margins."""
FULL_DETAIL_FACTOR = 10 / 9
"""How much larger a drawing in full detail may be: shrunk to the page, its smallest text is 9 pixels high instead of 10."""
MIN_TEXT_PIXELS, MIN_TEXT_POINTS = 10, 7
"""Height of the smallest text of a drawing in pixels, and the points below which it may not shrink where a width is asked for:
smaller print is hard to read.
"""
ROWS = (2.0, 2.5, 3.0, 4.0, 5.0, 7.0)
"""Into how many parts the length of a drawing to the right is divided, to have no row longer than a page is wide."""
MAX_PAPER_HEIGHT = 720
"""Points that a figure in a column of paper may be high: 11 inches less half an inch at either end."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """What all attempts at a drawing have in common."""

    diagram: Callable[[Depth], Flow]
    """What is drawn of the model, as deep as that."""
    titles: Titles
    typography: Typography
    shapes: bool
    """Whether shapes stand beside the wires."""
    break_after: tuple[str, ...] = ()
    """Nodes above which a column ends."""
    direction: Direction = "up"
    """Where the stream runs to."""
    groups: Callable[[], Sequence[GroupPlace]] = tuple
    """Where groups stand in the model, looked for where a drawing is too large."""
    streams: Callable[[], Collection[str]] = tuple
    """The paths of what several streams go through, looked for where a drawing has closed boxes that read several values."""
    details: bool = False
    """Whether closed blocks may be drawn from inside beside the figure."""
    frames: FrameMemo = field(default_factory=Memo, compare=False)
    """The insides of frames that some attempt has laid out in layers."""

    def on_page(self, flow: Flow, high: float | None = None) -> Scene:
        """Return the usual drawing of a diagram, its column wrapped where that is higher."""
        upright = self.direction == "up"
        scene = page(
            flow,
            self.titles,
            self.typography,
            shapes=self.shapes,
            high=high,
            break_after=self.break_after,
            upright=upright,
            frames=self.frames,
        )
        return with_places(with_slants(scene if upright else turned(scene, self.typography)), self.typography)

    def in_column(self, flow: Flow, room: float) -> Scene:
        """Return a drawing in one column, no wider than there is room if that can be."""
        scene = narrow_page(flow, self.titles, room, self.typography, shapes=self.shapes)
        return with_places(with_slants(scene), self.typography)


HARDLY_LARGER, NOTES_FACTOR = 1.02, 1.1
"""How many times larger a drawing that fits on a page may be for it that inputs are told to be such; and one that does not."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt: how much of a model it shows, and how."""

    depth: Depth
    flow: Flow
    scene: Scene
    is_wrapped: bool = False
    """Whether its stream goes on at the bottom of another column."""
    alike: Attempt | None = None
    """The same with all uses of a block closed, where only some are, or where that may leave the stream in one column."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """How a model is fitted to its page: how less and less of it is drawn, and how large that is."""

    attempts: Attempts
    draw: Callable[[Flow], tuple[Scene, bool]]
    """Draws a diagram as it fits best, and tells whether its stream is wrapped by that."""
    over: Callable[[Scene], float]
    """How many times larger than it may be a drawing is."""
    limit: float = 1.0
    """How much of that one may be with its repeats open."""

    def at(self, depth: Depth) -> Attempt:
        """Return what is drawn as deep as that."""
        return self.of(depth, self.attempts.diagram(depth))

    def of(self, depth: Depth, flow: Flow) -> Attempt:
        """Return the drawing of a diagram that is as deep as that."""
        return Attempt(depth, flow, *self.draw(flow))

    def size(self, found: Attempt) -> float:
        """Return how many times larger than it may be a drawing is."""
        return self.over(found.scene)

    def fits(self, found: Attempt) -> bool:
        """Return whether a drawing is no larger than it may be with its repeats open."""
        return self.size(found) <= self.limit

    def with_notes_of_inputs(self, found: Attempt) -> Attempt:
        """Return a drawing in which it stands behind the names of inputs that they are such, where it was left out and the page
        is hardly larger with it.
        """
        read = [*found.flow.all_edges(), *(edge for sink in found.flow.sinks for edge in sink.edges)]
        inputs = {edge.source.path for edge in read if edge.source.is_model_input}
        if found.depth.notes or found.depth.level == "overview" or len(inputs) < 2:  # the first one has a box
            return found
        depth = replace(found.depth, notes=True)
        flow = self.attempts.diagram(depth)
        if flow == found.flow:
            return found
        noted, size = self.of(depth, flow), self.size(found)
        limit = max(size, min(MAX_EXCESS, NOTES_FACTOR * size)) if size > HARDLY_LARGER else HARDLY_LARGER
        return noted if self.size(noted) <= limit else found

    def with_streams(self, found: Attempt) -> Attempt | None:
        """Return a drawing with closed stages of several streams open, so that these go through them as lanes, and all in these
        closed; none where there is only one such stage, where they cannot be drawn so, or where the page is too large.
        """
        boxes = {box.about.path for box in found.scene.boxes if not box.frame}
        read = Counter(wire.target for wire in found.scene.wires if wire.target in boxes)
        several = {path for path, count in read.items() if count > 1}
        if len(several) < MIN_STAGES or found.depth.level != "block" or found.depth.unrolled:
            return None
        stages = several.intersection(self.attempts.streams())
        if len(stages) < MIN_STAGES:
            return None
        groups = self.attempts.groups()
        inner = [one.path for one in groups if belongs(one.path, stages - {one.path}) and not is_repeat(one)]
        inner = [path for path in inner if not belongs(path, {*inner} - {path})]
        opened = found.depth.opened | stages
        lanes = self.at(replace(found.depth, opened=opened, closed=found.depth.closed.union(inner), nested=False))
        through = Counter(
            path for path, _ in {(wire.target, wire.passage) for wire in lanes.scene.wires if wire.target in stages}
        )
        return lanes if all(through[path] > 1 for path in stages) and self.size(lanes) <= STREAMS_EXCESS else None

    def with_less(self, whole: Attempt) -> Attempt:
        """Return the drawing of a diagram; where it is larger than it may be, one with captions, mixtures, groups like others and
        repeats closed, if that is smaller.
        """
        found, tried = whole, [whole.flow]
        for less in smaller_depths(whole.depth):
            closes_repeats = not (less.layers and less.nested)
            if self.size(found) <= (self.limit if closes_repeats else 1):
                break
            flow = self.attempts.diagram(less)
            repeated = repeated_groups(flow, self.attempts.groups(), less)
            for depth in (less, replace(less, closed=repeated)):
                flow = self.attempts.diagram(depth) if depth.closed else flow
                if flow not in tried and self.size(found) > 1:
                    tried.append(flow)
                    smaller = self.of(depth, flow)
                    size = self.size(smaller)
                    worth = WORTH if depth.closed and size > 1 else 1.0  # else what is closed would be so for nothing
                    found = smaller if worth * size < self.size(found) else found
        return found

    def with_subject(self, found: Attempt, subject: str) -> Attempt | None:
        """Return a drawing in which the repeat that the model is about is open, and little else; none where it is too large."""
        *_, least = smaller_depths(found.depth)
        shown = replace(least, opened=found.depth.opened | {subject}, closed=frozenset())
        flow = self.attempts.diagram(shown)
        if found.depth.closed:
            shown = replace(shown, closed=repeated_groups(flow, self.attempts.groups(), shown))
            flow = self.attempts.diagram(shown)
        opened = self.of(shown, flow)
        return opened if self.size(opened) <= SUBJECT_FACTOR * max(1.0, self.size(found)) else None

    def with_fewer_groups(self, found: Attempt, share: float = MAX_SHARE) -> Attempt:
        """Return a drawing with as few groups closed as make it fit, beside those that are like others, each of at most a share
        of all boxes.
        """
        depth = found.depth
        if self.fits(found) or depth.unrolled or depth.level == "full":
            return found
        tried = {depth.closed: found}

        def closing(more: Collection[str]) -> Attempt:
            closed = depth.closed.union(more)
            if closed not in tried:
                tried[closed] = self.at(replace(depth, closed=closed))
            return tried[closed]

        order = closing_order(found.flow, self.attempts.groups(), depth, share)
        fewer = closing(fewest_closed(order, lambda closed: self.size(closing(closed)), self.limit))
        if (depth.layers and depth.nested) or not self.fits(fewer):
            return fewer
        flow = self.attempts.diagram(replace(fewer.depth, layers=True, nested=True))
        opened = self.of(fewer.depth, flow)
        return opened if self.fits(opened) else fewer

    def with_repeats(self, whole: Attempt, found: Attempt) -> Attempt:
        """Return a drawing in which those large repeats are open again, the largest first, for which a page has room, where all
        were closed together to fit it.
        """
        if found.depth.layers or found.depth.level != "block" or not self.fits(found):
            return found
        boxes = {one.about.path: sum(1 for _ in one.flows[0].leaves()) for one in outermost_repeats(whole.flow)}
        large = [path for path, own in boxes.items() if own >= OPENED_SHARE * sum(1 for _ in whole.flow.leaves())]
        for path in sorted(large, key=boxes.__getitem__, reverse=True):
            if not is_open(found.scene, path):
                depth = replace(found.depth, opened=found.depth.opened | {path})
                flow = self.attempts.diagram(depth)
                opened = self.of(depth, flow) if flow != found.flow else found
                found = opened if self.fits(opened) else found
        return found

    def all_or_none(self, whole: Attempt, found: Attempt) -> Attempt | None:
        """Return a drawing in which all uses of a block are closed or none, as much open as fits; none where it is so already,
        and the page is not too large for many uses of one that stand open, nor the stream wrapped.
        """
        groups = self.attempts.groups()
        partly = found.depth.closed and partly_closed(found.flow, groups, found.depth)
        uses = MANY_USES if self.size(found) > 1 else SEVERAL_USES if found.is_wrapped else 0
        often = often_open(found.flow, groups, found.depth, uses) if uses and not partly else []
        if not (partly or often):
            return None
        blocks = closed_blocks(groups, found.depth).values()
        tried: list[Attempt] = []

        def at(depth: Depth) -> Attempt:
            flow = self.attempts.diagram(depth)
            again = next((one for one in tried if one.flow == flow), None)  # without mixtures, it is the same with these closed
            if again is None:
                tried.append(self.of(depth, flow))
            return again or tried[-1]

        best = at(replace(found.depth, closed=found.depth.closed.union(*blocks, *often)))
        closed, opened = best.depth.closed, best.depth.opened
        depths = [replace(less, opened=opened, closed=closed) for less in (whole.depth, *smaller_depths(whole.depth))]
        limit = self.limit
        if subject_of(at(depths[0]).flow):  # which it may be by what is closed
            limit = max(limit, SUBJECT_FACTOR)
        within_page = ((at(less), 1.0) for less in depths if less.layers and less.nested)
        allowed = ((at(less), limit) for less in depths)
        best = next((one for one, room in chain(within_page, allowed) if self.size(one) <= room), best)
        for paths in blocks if self.size(best) <= 1 else ():
            more = at(replace(best.depth, closed=best.depth.closed - paths))
            best = more if self.size(more) <= 1 else best
        return best


def fit_to_page(attempts: Attempts, flow: Flow, depth: Depth, *, less: bool = True) -> Attempt:
    """Return the drawing of a diagram; where it is larger than a page, one of `less` depth if that is smaller."""
    if attempts.direction == "right":
        return fit_to_landscape(attempts, flow, depth)
    boxes = sum(1 for _ in flow.leaves())

    def over(scene: Scene) -> float:
        return excess(scene, depth.level)

    def draw(shown: Flow) -> tuple[Scene, bool]:
        scene = attempts.on_page(shown)
        if not (shown is flow or sum(1 for _ in shown.leaves()) < boxes):
            return scene, False  # shorter captions alone end no column
        if scene.height <= MAX_PAGE_HEIGHT or over(scene) <= 1 or attempts.break_after:
            return scene, False
        wide = MAX_PAGE_WIDTH * attempts.typography.scale  # larger letters stay legible where more is shrunk to the page
        wrapped = attempts.on_page(shown, MAX_PAGE_HEIGHT - HEAD_ROOM)
        found = min(scene, wrapped, key=lambda one: max(one.width / wide, one.height / MAX_PAGE_HEIGHT))
        return found, found.width > scene.width

    fitting = Fitting(attempts, draw, over, FEW_BOXES_FACTOR if boxes <= FEW_BOXES else 1.0)
    whole = fitting.of(depth, flow)
    if not less:
        return whole
    found = fitting.with_less(whole)
    subject = subject_of(flow)
    opened = None
    if subject and depth.level == "block" and not is_open(found.scene, subject):
        opened = fitting.with_subject(found, subject)
    if opened is not None:
        fitting, found = replace(fitting, limit=SUBJECT_FACTOR), opened
    fitted = fitting.with_repeats(whole, fitting.with_fewer_groups(found))
    alike = fitting.all_or_none(whole, fitted) if attempts.details else None
    lanes = fitting.with_streams(fitted)
    if lanes is not None:
        return fitting.with_notes_of_inputs(lanes)
    noted = fitting.with_notes_of_inputs(fitted)
    return replace(noted, alike=alike and fitting.with_notes_of_inputs(alike))


def subject_of(flow: Flow) -> str:
    """Return the path of the repeat that most blocks are in, if it is what the model is about; nothing where none is."""
    counts = {one.about.path: sum(1 for _ in one.flows[0].leaves()) for one in outermost_repeats(flow)}
    most = max(counts, key=counts.__getitem__, default="")
    return most if most and counts[most] >= SUBJECT_SHARE * sum(1 for _ in flow.leaves()) else ""


def is_open(scene: Scene, repeat: str) -> bool:
    """Return whether a drawing shows the passes of a repeat: in a frame, or each as a box."""
    frames = {frame.about.path for frame in scene.frames}
    passes = (box.about.path for box in scene.boxes if is_pass(box.about.path))
    return repeat in frames or repeat in map(plain, passes)


def outermost_repeats(flow: Flow) -> Iterator[Group]:
    """Yield the repeats that are in no other."""
    for item in flow.items:
        if isinstance(item, Group) and item.count:
            yield item
        elif isinstance(item, Group | Branches | IrregularSubgraph):
            for inner in item.flows:
                yield from outermost_repeats(inner)


def fit_to_landscape(attempts: Attempts, flow: Flow, depth: Depth, room: float = LANDSCAPE_WIDTH) -> Attempt:
    """Return the drawing of a diagram to the right, in as many rows as it needs to be no wider than there is room; where it is
    larger than a page all the same, one of less depth if that is smaller.
    """

    def over(scene: Scene) -> float:
        return landscape_excess(scene, depth.level, attempts.typography, room)

    def in_rows(shown: Flow) -> tuple[Scene, bool]:
        whole = attempts.on_page(shown)
        found = [whole]
        if whole.width > room * attempts.typography.scale and not attempts.break_after:
            for rows in ROWS:
                if over(found[-1]) <= 1:
                    break
                found.append(attempts.on_page(shown, whole.width / rows))
        best = min(found, key=over) if over(found[-1]) > 1 else found[-1]
        return best, best is not whole

    fitting = Fitting(attempts, in_rows, over)
    return fitting.with_fewer_groups(fitting.with_less(fitting.of(depth, flow)))


def smaller_depths(depth: Depth) -> Iterator[Depth]:
    """Yield what may be left out, step by step, without being another level or folding what is to be unrolled."""
    if depth.unrolled:
        return
    if depth.level == "overview":
        yield depth
        return
    dense = replace(depth, spacious=False, notes=False, operations=False)
    yield dense
    yield replace(dense, experts=False)
    if depth.level != "full":
        yield replace(dense, experts=False, nested=False)
        yield replace(dense, experts=False, layers=False)


def excess(scene: Scene, level: Level) -> float:
    """Return how many times larger than it may be a drawing is."""
    return pages(scene.width, scene.height) / (FULL_DETAIL_FACTOR if level == "full" else 1.0)


def pages(width: float, height: float) -> float:
    """Return how many times larger than a page something is, which may lie on its side."""
    upright = max(width / MAX_PAGE_WIDTH, height / MAX_PAGE_HEIGHT)
    return min(upright, max(width / MAX_PAGE_HEIGHT, height / MAX_PAGE_WIDTH))


def landscape_excess(scene: Scene, level: Level, typography: Typography, room: float = LANDSCAPE_WIDTH) -> float:
    """Return the same of one whose stream runs to the right, where there is so much room."""
    more = FULL_DETAIL_FACTOR if level == "full" else 1.0
    return max(scene.width / room, scene.height / LANDSCAPE_HEIGHT) / (more * typography.scale)


def fit_to_paper(attempts: Attempts, scene: Scene, depth: Depth, width: float) -> Scene:
    """Return a drawing for a column of paper of so many points: the usual one if its letters are large enough then; else all in
    one column, less deep where it must be.
    """
    room = width * MIN_TEXT_PIXELS / MIN_TEXT_POINTS
    if scene.width <= room:
        return scene
    if attempts.direction == "right":
        return fit_to_landscape(attempts, attempts.diagram(depth), depth, room / attempts.typography.scale).scene

    def draw(flow: Flow) -> tuple[Scene, bool]:
        return attempts.in_column(flow, room), False

    def over(scene: Scene) -> float:
        return max(scene.width / room, scene.height * width / scene.width / MAX_PAPER_HEIGHT)

    fitting = Fitting(attempts, draw, over)
    for level in reversed(LEVELS[: LEVELS.index(depth.level) + 1]):
        less = replace(depth, level=level, experts=False)
        found = fitting.at(less)
        if fitting.fits(found) and not is_cut(found.scene):
            return found.scene
        repeated = frozenset() if depth.unrolled else repeated_groups(found.flow, attempts.groups(), less)
        if repeated:
            found = fitting.at(replace(less, closed=repeated))
            if fitting.fits(found) and not is_cut(found.scene):
                return found.scene
    return fitting.with_fewer_groups(found, share=1.0).scene


def is_cut(scene: Scene) -> bool:
    """Return whether a drawing has no room for all that its boxes say."""
    said = [text for box in scene.boxes for text in box.texts] + [text for frame in scene.frames for text in frame.texts]
    return any(text.text.endswith("…") for text in said)


def excess_of(scene: Scene, attempts: Attempts, level: Level, width: float | None) -> float:
    """Return how many times larger than a page a drawing is; in a column of paper of so many points, than may be there."""
    if width is not None:
        room = width * MIN_TEXT_PIXELS / MIN_TEXT_POINTS
        return max(scene.width / room, scene.height * width / scene.width / MAX_PAPER_HEIGHT)
    if attempts.direction == "right":
        return landscape_excess(scene, level, attempts.typography)
    return excess(scene, level)
