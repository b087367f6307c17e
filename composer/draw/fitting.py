"""How a model fits its page: what is too large is shown in less detail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from composer.draw.build.levels import LEVELS, Depth, Level
from composer.draw.diagram import Branches, Flow, Group, IrregularSubgraph, Titles
from composer.draw.layout.page import narrow_page, page
from composer.draw.scene import Direction, Scene
from composer.draw.style.typography import Typography
from composer.draw.turn.turned import turned

MAX_PAGE_WIDTH, MAX_PAGE_HEIGHT = 1200.0, 1500.0
"""Pixels of a page that is read as a whole, with room for two columns and the wires between them, which may also lie on its side.
Where a drawing would be larger, fewer experts are shown, then mixtures of experts are closed, then repeats in repeats, and then
all.
"""
FEW_BOXES, FEW_BOXES_FACTOR = 40, 1.3
"""A model of no more boxes keeps its repeats open up to so many times the page: what a model is about is in its layers, and the
smallest letters of such a drawing, shrunk to the page, are nearly 8 pixels high.
"""
SUBJECT_SHARE, SUBJECT_FACTOR = 0.4, 1.3
"""How much of a model is in the repeat that it is about; and how many times larger than a page, or than the drawing with this
closed where that is larger, a drawing with this open may be.
"""
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

    def on_page(self, flow: Flow, high: float | None = None) -> Scene:
        """Return the usual drawing of a diagram, its column wrapped where that is higher."""
        scene = page(flow, self.titles, self.typography, shapes=self.shapes, high=high, break_after=self.break_after)
        return turned(scene, self.typography) if self.direction == "right" else scene

    def in_column(self, depth: Depth, room: float) -> Scene:
        """Return a drawing in one column, no wider than there is room if that can be."""
        return narrow_page(self.diagram(depth), self.titles, room, self.typography, shapes=self.shapes)


def fit_to_page(attempts: Attempts, flow: Flow, depth: Depth) -> Scene:
    """Return the drawing of a diagram; where it is larger than a page, one of less depth if that is smaller."""
    if attempts.direction == "right":
        return fit_to_landscape(attempts, flow, depth)
    scene, tried = attempts.on_page(flow), [flow]
    if scene.height > MAX_PAGE_HEIGHT and excess(scene, depth.level) > 1 and not attempts.break_after:
        wide = MAX_PAGE_WIDTH * attempts.typography.scale  # larger letters stay legible where more is shrunk to the page
        wrapped = attempts.on_page(flow, MAX_PAGE_HEIGHT - HEAD_ROOM)
        scene = min(scene, wrapped, key=lambda one: max(one.width / wide, one.height / MAX_PAGE_HEIGHT))
    few = sum(1 for _ in flow.leaves()) <= FEW_BOXES
    for less in smaller_depths(depth):
        closes_repeats = not (less.layers and less.nested)
        if excess(scene, depth.level) <= (FEW_BOXES_FACTOR if few and closes_repeats else 1):
            break
        closed = attempts.diagram(less)
        if closed not in tried:
            tried.append(closed)
            scene = min(scene, attempts.on_page(closed), key=lambda one: excess(one, depth.level))
    subject = subject_of(flow)
    if subject and subject not in {frame.about.path for frame in scene.frames} and depth.level == "block":
        *_, least = smaller_depths(depth)
        opened = attempts.on_page(attempts.diagram(replace(least, opened=depth.opened | {subject})))
        if excess(opened, depth.level) <= SUBJECT_FACTOR * max(1.0, excess(scene, depth.level)):
            return opened
    return scene


def subject_of(flow: Flow) -> str:
    """Return the path of the repeat that most blocks are in, if it is what the model is about; nothing where none is."""
    counts = {one.about.path: sum(1 for _ in one.flows[0].leaves()) for one in outermost_repeats(flow)}
    most = max(counts, key=counts.__getitem__, default="")
    return most if most and counts[most] >= SUBJECT_SHARE * sum(1 for _ in flow.leaves()) else ""


def outermost_repeats(flow: Flow) -> Iterator[Group]:
    """Yield the repeats that are in no other."""
    for item in flow.items:
        if isinstance(item, Group) and item.count:
            yield item
        elif isinstance(item, Group | Branches | IrregularSubgraph):
            for inner in item.flows:
                yield from outermost_repeats(inner)


def fit_to_landscape(attempts: Attempts, flow: Flow, depth: Depth, room: float = LANDSCAPE_WIDTH) -> Scene:
    """Return the drawing of a diagram to the right, in as many rows as it needs to be no wider than there is room; where it is
    larger than a page all the same, one of less depth if that is smaller.
    """

    def over(scene: Scene) -> float:
        more = FULL_DETAIL_FACTOR if depth.level == "full" else 1.0
        return max(scene.width / room, scene.height / LANDSCAPE_HEIGHT) / (more * attempts.typography.scale)

    def in_rows(shown: Flow) -> Scene:
        whole = attempts.on_page(shown)
        found = [whole]
        if whole.width > room * attempts.typography.scale and not attempts.break_after:
            found += [attempts.on_page(shown, whole.width / rows) for rows in ROWS]
        fitting = [scene for scene in found if over(scene) <= 1]
        return fitting[0] if fitting else min(found, key=over)

    scene, tried = in_rows(flow), [flow]
    for less in smaller_depths(depth):
        if over(scene) <= 1:
            break
        closed = attempts.diagram(less)
        if closed not in tried:
            tried.append(closed)
            scene = min(scene, in_rows(closed), key=over)
    return scene


def smaller_depths(depth: Depth) -> Iterator[Depth]:
    """Yield what may be left out, step by step, without being another level or folding what is to be unrolled."""
    if depth.level == "overview" or depth.unrolled:
        return
    dense = replace(depth, spacious=False)
    yield dense
    yield replace(dense, experts=False)
    if depth.level != "full":
        yield replace(dense, experts=False, nested=False)
        yield replace(dense, experts=False, layers=False)


def excess(scene: Scene, level: Level) -> float:
    """Return how many times larger than it may be a drawing is."""
    room = FULL_DETAIL_FACTOR if level == "full" else 1.0
    upright = max(scene.width / MAX_PAGE_WIDTH, scene.height / MAX_PAGE_HEIGHT)
    return min(upright, max(scene.width / MAX_PAGE_HEIGHT, scene.height / MAX_PAGE_WIDTH)) / room


def fit_to_paper(attempts: Attempts, scene: Scene, depth: Depth, width: float) -> Scene:
    """Return a drawing for a column of paper of so many points: the usual one if its letters are large enough then; else all in
    one column, less deep where it must be.
    """
    room = width * MIN_TEXT_PIXELS / MIN_TEXT_POINTS
    if scene.width <= room:
        return scene
    if attempts.direction == "right":
        return fit_to_landscape(attempts, attempts.diagram(depth), depth, room / attempts.typography.scale)
    for level in reversed(LEVELS[: LEVELS.index(depth.level) + 1]):
        scene = attempts.in_column(replace(depth, level=level, experts=False), room)
        said = [text for box in scene.boxes for text in box.texts] + [text for frame in scene.frames for text in frame.texts]
        cut = any(text.text.endswith("…") for text in said)
        if scene.width <= room and scene.height * width / scene.width <= MAX_PAPER_HEIGHT and not cut:
            break
    return scene
