"""A drawing with the details that it has room for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from blocks.core import spoken
from composer.draw.about import About
from composer.draw.build.group_places import GroupPlace, contents
from composer.draw.build.levels import Depth
from composer.draw.closing import boxes_inside
from composer.draw.details.choice import TELLING, Candidate, candidates, is_other_use, is_small, tells_passes, wanted
from composer.draw.details.fan import with_fan
from composer.draw.details.inside import BlockInside, count_read, inside_of, without_colors
from composer.draw.details.placing import best_spot, best_spots, covered, grown, nearest_spot
from composer.draw.details.twins import difference, on_the_skip
from composer.draw.diagram import Flow
from composer.draw.geometry import Area, Text
from composer.draw.layout.ends.named_values import with_names_above
from composer.draw.layout.ends.places import tell_places
from composer.draw.layout.ends.slants import slanted
from composer.draw.layout.fragment import Fragment, Pieces
from composer.draw.layout.page import MARGIN, body
from composer.draw.paths import INPUTS, above, is_output, is_pass, last_step, lies_in, output_path, plain, title_of
from composer.draw.scene import Box, Detail, Scene
from composer.draw.style.typography import Typography
from composer.draw.wording import each_pass

MAX_DETAILS, MAX_FREE = 3, 4
"""Blocks that are drawn from inside beside a figure by itself: of more, a reader cannot tell what it is about; and where there is
room for the last one without a larger page.
"""
HARDLY = 1.03
"""How many times larger a page may be with one more detail and still count as no larger."""
RESIDUAL = 1
"""How far a chain with one residual connection is from a chain: its detail may only fill free room."""
MIN_TOGETHER, WORTH_MOVING = 2, 0.95
"""Details from which on they are placed together, and how much of a page that must leave: else each is near its box."""
PAD, HEAD, LINE = 16.0, 40.0, 15.0
"""Between the border of a detail and its drawing; for its title; for the line below that."""


@dataclass(frozen=True, slots=True)
class Details:
    """How the details of a drawing are made."""

    diagram: Callable[[Depth], Flow]
    """What is drawn of the model, as deep as that."""
    groups: Callable[[], Sequence[GroupPlace]]
    size: Callable[[float, float], float]
    """How many times larger than a page something of a width and a height is."""
    limit: float
    """How much of that a drawing with details may be."""
    first_limit: float
    """How much of that one may be whose first detail is of the block that the model is about."""
    typography: Typography
    shapes: bool

    def beside(self, scene: Scene, flow: Flow, depth: Depth, details: Sequence[str]) -> Scene:
        """Return a drawing with details of the blocks that are closed in it: those that are named; where none is, those that are
        worth it, as long as the page has room.
        """
        alone, most = scene, len(details) or MAX_FREE
        boxes, frames = list(scene.boxes), {frame.about.path for frame in scene.frames}
        tried: set[str] = set()
        while len(scene.details) < most:
            closed = {plain(box.about.path) for box in boxes if details or not is_pass(box.about.path)}  # these tell their sizes
            found = wanted(candidates(self.groups(), closed, frames, depth.closed, passes_in(boxes)), details)
            left = [one for one in found if one.path not in tried and (details or not told_in_boxes(one, boxes))]
            if not left:
                break
            one = min(left, key=lambda one: bool(scene.details) and not (details or one.is_urgent))  # but for the first, these
            tried.add(one.path)
            twins = [] if details else [other for other in left if other.path not in tried and is_other_use(other, one)]
            if (made := self.with_detail(scene, boxes, flow, depth, one, twins, limited=not details)) is not None:
                scene = made
                frames.add(one.path)
                tried |= {other.path for other in twins if other.path in scene.details[-1].stands_for}
                boxes += scene.details[-1].inside.boxes
        areas = {plain(box.about.path): box.area for box in reversed(boxes)}
        return self.nearer(alone, self.together(alone, scene, areas), areas)

    def nearer(self, alone: Scene, scene: Scene, boxes: Mapping[str, Area]) -> Scene:
        """Return a drawing with each detail as near to its box as it can be on a page that is about as large; given the drawing
        alone and where the boxes are that details are of.
        """
        for number, one in enumerate(scene.details):
            others = (*scene.details[:number], *scene.details[number + 1 :])
            taken, page = free_page(replace(alone, details=others))
            page = reduce(grown, (other.area for other in others), page)
            whole = grown(page, one.area)
            spot = nearest_spot(taken, page, one.area, box_around(one, boxes), self.with_margin, whole)
            if spot != one.area:
                details = (*others[:number], at_place(one, spot), *others[number:])
                scene = enlarged(replace(alone, details=details))
        return scene

    def together(self, alone: Scene, scene: Scene, boxes: Mapping[str, Area]) -> Scene:
        """Return a drawing with its details placed together, where that makes the page smaller than one after the other; given
        the drawing alone and where the boxes are that details are of.
        """
        if len(scene.details) < MIN_TOGETHER:
            return scene
        taken, page = free_page(alone)
        extents = [(one.width, one.height) for one in scene.details]
        near = [box_around(one, boxes) for one in scene.details]
        from_below = sorted(range(len(near)), key=lambda number: -near[number].bottom)
        ways = []
        for order in dict.fromkeys([(*from_below,), (*range(len(near)),)]):
            spots = best_spots(taken, page, [extents[one] for one in order], [near[one] for one in order], self.with_margin)
            moved = (at_place(one, spots[order.index(number)]) for number, one in enumerate(scene.details))
            ways.append(enlarged(replace(alone, details=(*moved,))))
        better = min(ways, key=lambda one: self.size(one.width, one.height))
        return better if self.is_smaller(better, scene) else scene

    def is_smaller(self, scene: Scene, other: Scene) -> bool:
        """Return whether a drawing is so much smaller than another one that a reader sees it, and no larger for a page."""
        less = scene.width * scene.height < WORTH_MOVING * other.width * other.height
        return less and self.is_within(scene, other)

    def is_within(self, scene: Scene, other: Scene, factor: float = 1.0) -> bool:
        """Return whether a drawing is no larger for a page than so many times another one."""
        return self.size(scene.width, scene.height) <= factor * self.size(other.width, other.height)

    def with_margin(self, right: float, bottom: float) -> float:
        """Return the size of a page on which everything ends at the right and at the bottom there."""
        return self.size(right + MARGIN, bottom + MARGIN)

    def tells_all(self, scene: Scene, flow: Flow) -> bool:
        """Return whether a drawing tells all that a diagram shows from inside: where one use of a block is closed, another one is
        open, or it has a detail or a box that tells all.
        """
        inside = boxes_inside(flow)
        shown = {path for one in scene.details for path in one.stands_for} | {frame.about.path for frame in scene.frames}
        told = {one.block for one in self.groups() if one.path in shown}
        closed = {plain(box.about.path) for box in scene.boxes}
        return all(
            one.block in told or is_small(one) or told_in_boxes(Candidate((one,)), scene.boxes)
            for one in self.groups()
            if one.path in closed and inside[one.path] and one.block
        )

    def with_fan(self, scene: Scene) -> Scene:
        """Return a drawing with the fan of dilations of a repeat in it, if there is one and the page has room for it."""

        def has_room(larger: Scene) -> bool:
            return self.size(larger.width, larger.height) <= max(self.limit, HARDLY * self.size(scene.width, scene.height))

        return with_fan(scene, self.groups(), self.typography, has_room, self.with_margin, free_page(scene))

    def missing(self, scene: Scene, details: Sequence[str]) -> tuple[str, ...]:
        """Return which of the named blocks have no detail in a drawing."""
        shown = {path for one in scene.details for path in one.stands_for}
        shown |= {one.block for one in self.groups() if one.path in shown}
        return tuple(name for name in details if name not in shown)

    def possible(self, scene: Scene, flow: Flow, depth: Depth) -> tuple[str, ...]:
        """Return the names by which details of a drawing could be asked for that it has not, in the order of the data."""
        boxes = [box for one in scene.drawings for box in one.boxes]
        frames = {frame.about.path for one in scene.drawings for frame in one.frames}
        found = candidates(self.groups(), {plain(box.about.path) for box in boxes}, frames, depth.closed, passes_in(boxes))
        drawn = (one for one in found if self.with_detail(scene, boxes, flow, depth, one, limited=False) is not None)
        return tuple(self.missing(scene, [one.places[0].block or one.path for one in drawn]))

    def with_detail(
        self,
        scene: Scene,
        boxes: Sequence[Box],
        flow: Flow,
        depth: Depth,
        one: Candidate,
        twins: Sequence[Candidate] = (),
        *,
        limited: bool,
    ) -> Scene | None:
        """Return a drawing with one more detail, which tells what differs in other uses of its block if that is one box; none
        where that cannot be or the page has no room for it.
        """
        around, inside = self.insides(scene, flow, depth, one)
        closed = {plain(box.about.path): box for box in reversed(boxes)}
        closed |= {one.path: closed[one.passes]} if one.passes in closed else {}
        shown = [found for found in inside if found is not None and found.path in closed]
        if inside[0] is None or not shown:
            return None
        chosen = min(shown, key=lambda found: (found.merged, -count_read(around, found.path)))  # the first that shows most
        box = closed[chosen.path]
        title = spoken(one.places[0].block) if one.passes else title_of_box(box)
        same_title = {plain(box.about.path) for box in boxes if title_of_box(box) == title}
        said = chosen.said
        alike = all(other is not None and other.said == said for other in inside)
        kind = one.places[0]
        uses = [other for other in self.groups() if other.block == kind.block != ""]
        differs = any(other.form != kind.form or contents(other.node) != contents(kind.node) for other in uses)
        told = alike and not differs and same_title <= {place.path for place in one.places}
        within = f"inside of each {each_pass(last_step(one.passes))[0]}" if one.passes else ""
        names = within or ", ".join(filter(None, (chosen.note, "" if told else f"as in {chosen.path.removesuffix('.body')}")))
        maps = [frame.about.path for one in scene.drawings for frame in one.frames if frame.strip is not None]
        own = chosen.flow if any(lies_in(chosen.path, path) for path in maps) else without_colors(chosen.flow)
        whole = with_names_above(body(own, chosen.titles, self.typography, shapes=self.shapes), self.typography)
        pieces = whole.pieces
        boxes_there, wires_there = slanted(pieces.boxes, pieces.wires)
        pieces.boxes, pieces.wires = [*boxes_there], [*wires_there]
        tell_places(pieces, self.typography)
        differing = {other: difference(chosen, self.insides(scene, flow, depth, other)[1]) for other in twins}
        lines = [names, *(f"in {other.called}: {said}" for other, said in differing.items() if said)]
        lines.append(self.elsewhere(kind, {path for other, said in differing.items() if said for path in other.names}))
        stands_for = [place.path for other in (one, *twins) if other is one or differing[other] for place in other.places]
        placed = self.placed(scene, whole, chosen, title, [*filter(None, lines)], box, stands_for)
        return placed if not limited or self.has_room(scene, placed, one) else None

    def elsewhere(self, one: GroupPlace, told: Collection[str]) -> str:
        """Return what is said of all other uses of a block, but for those that are told, that differ from one by a map on a skip
        connection; nothing where none does, or these do in several ways.
        """
        others = [place for place in self.groups() if place.block == one.block != "" and place.path not in told]
        graph = contents(one.node)
        graphs = [contents(place.node) for place in others if place.form != one.form]
        said = {on_the_skip(graph, other) for other in graphs if graph is not None and other is not None} - {""}
        return f"in some others: {said.pop()}" if len(said) == 1 else ""

    def insides(self, scene: Scene, flow: Flow, depth: Depth, one: Candidate) -> tuple[Flow, list[BlockInside | None]]:
        """Return alike blocks from inside, each by itself, and the diagram in which they are closed."""
        own = frozenset(place.path for place in one.places)
        opened = self.diagram(replace(depth, opened=depth.opened | own, whole=own))
        holders = {held.about.path for held in scene.details for place in one.places if lies_in(place.path, held.about.path)}
        holders |= {one.passes} if one.passes else set()  # which then is a frame
        around = self.diagram(replace(depth, opened=depth.opened | holders)) if holders else flow
        return around, [inside_of(opened, around, place.path, place.node) for place in one.places]

    def has_room(self, scene: Scene, placed: Scene, one: Candidate) -> bool:
        """Return whether a page has room for one more detail; most for the first one, if that is no larger than a figure, and
        beside that for what else would stand open in the figure.
        """
        detail = placed.details[-1]
        tells = one.pulled_out or one.has_streams if scene.details else one.branching >= TELLING
        roomy = tells and self.size(detail.width, detail.height) <= self.limit
        worth = one.branching > RESIDUAL or one.pulled_out or one.passes != ""
        allowed = self.first_limit if roomy else self.limit if worth else 1.0
        allowed = allowed if len(scene.details) < MAX_DETAILS else 0.0
        return self.size(placed.width, placed.height) <= max(allowed, HARDLY * self.size(scene.width, scene.height))

    def placed(
        self,
        scene: Scene,
        whole: Fragment,
        inside: BlockInside,
        title: str,
        lines: Sequence[str],
        box: Box,
        alike: Sequence[str],
    ) -> Scene:
        """Return a drawing with a detail at its place."""
        said = [Text(0, 22, title, "title", "start", self.typography.scale)]
        said += [
            Text(0, 22 + LINE * number, line, "detail", "start", self.typography.scale) for number, line in enumerate(lines, 1)
        ]
        room = covered(whole.pieces, [])
        high, low = min(one.top for one in room), max(one.bottom for one in room)
        left, right = min(one.left for one in room), max(one.right for one in room)
        head = HEAD + LINE * len(lines)
        width = max(right - left, *(text.area.right for text in said)) + 2 * PAD
        height = low - high + head + PAD
        taken, page = free_page(scene)
        x, y = best_spot(taken, page, width, height, box.area, self.with_margin)
        moved = Pieces()
        moved.take(whole.pieces, x + PAD - left, y + head - high)
        texts = tuple(text.moved(x + PAD, y) for text in said)
        about = About(inside.path, ", ".join((f"{title} from inside", *lines)), box.about.lines)
        drawing = named(moved, inside.path, title, x + width, y + height)
        detail = Detail(about, tuple(alike), x, y, width, height, texts, drawing)
        return enlarged(replace(scene, details=(*scene.details, detail)))


def told_in_boxes(one: Candidate, boxes: Sequence[Box]) -> bool:
    """Return whether each box of closed blocks names all that is in it."""
    paths = {place.path for place in one.places}
    said = [" ".join(text.text for text in box.texts) for box in boxes if plain(box.about.path) in paths]
    return bool(said) and all(tells_passes(one, each) for each in said)


def box_around(detail: Detail, boxes: Mapping[str, Area]) -> Area:
    """Return where the box is that a detail is of, or the box around that."""
    return boxes[next(path for path in reversed(above(plain(detail.about.path))) if path in boxes)]


def passes_in(boxes: Sequence[Box]) -> set[str]:
    """Return the paths of the repeats of which boxes are passes."""
    return {plain(box.about.path) for box in boxes if is_pass(box.about.path)}


def free_page(scene: Scene) -> tuple[list[Area], Area]:
    """Return what a drawing covers, with its details, and the page below its head."""
    pieces = Pieces(list(scene.frames), list(scene.wires), [], list(scene.boxes), list(scene.merges), list(scene.references))
    taken = covered(pieces, [text.area for text in scene.texts] + [one.area for one in scene.details])
    top = max((text.area.bottom for text in scene.texts if text.role in ("heading", "facts")), default=0.0) + MARGIN
    return taken, Area(MARGIN, top, scene.width - MARGIN, scene.height - MARGIN)


def enlarged(scene: Scene) -> Scene:
    """Return a drawing with room for its details."""
    width = max(scene.width, *(one.area.right + MARGIN for one in scene.details))
    return replace(scene, width=width, height=max(scene.height, *(one.area.bottom + MARGIN for one in scene.details)))


def at_place(detail: Detail, place: Area) -> Detail:
    """Return a detail moved to a place."""
    dx, dy, old = place.left - detail.x, place.top - detail.y, detail.inside
    pieces = Pieces()
    pieces.take(
        Pieces([*old.frames], [*old.wires], [*old.dots], [*old.boxes], [*old.merges], [*old.references], [*old.texts]), dx, dy
    )
    texts = tuple(text.moved(dx, dy) for text in detail.texts)
    inside = with_pieces(replace(old, width=place.right, height=place.bottom), pieces)
    return replace(detail, x=place.left, y=place.top, texts=texts, inside=inside)


def with_pieces(scene: Scene, pieces: Pieces) -> Scene:
    """Return a drawing of some pieces."""
    return replace(
        scene,
        texts=tuple(pieces.texts),
        frames=tuple(pieces.frames),
        wires=tuple(pieces.wires),
        dots=tuple(pieces.dots),
        boxes=tuple(pieces.boxes),
        merges=tuple(pieces.merges),
        references=tuple(pieces.references),
    )


def title_of_box(box: Box) -> str:
    """Return the title of a box; of one for a pass of a repeat, without the number of the pass; of one of several uses of a
    block, without the name of this one.
    """
    if box.block:
        return box.block
    title = next((text.text for text in box.texts if text.role == "title"), "")
    number = box.about.path.rpartition(".")[2]
    return re.sub(rf"(?:, pass)? {number}$", "", title) if number.isdigit() else title


def named(pieces: Pieces, block: str, title: str, width: float, height: float) -> Scene:
    """Return the drawing of a block at a path, whose outputs have paths that no output of the model has."""

    def path(old: str) -> str:
        return output_path(f"{block}.{title_of(old)}") if is_output(old) else old

    def about(old: About) -> About:
        tip = re.sub(f"^the model's input (?:{INPUTS})?", f"{title}'s input ", old.tip)
        return replace(old, path=path(old.path), tip=re.sub("^the model's", f"{title}'s", tip))

    own = Pieces(
        pieces.frames,
        [replace(one, source=path(one.source), target=path(one.target)) for one in pieces.wires],
        pieces.dots,
        [replace(one, about=about(one.about)) for one in pieces.boxes],
        pieces.merges,
        [replace(one, source=path(one.source), target=path(one.target)) for one in pieces.references],
        pieces.texts,
    )
    return with_pieces(Scene(title, width, height, ()), own)
