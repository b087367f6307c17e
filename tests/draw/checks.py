"""What must hold of every drawing: nothing lies on anything else, and everything is there once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from math import dist

from composer.draw.geometry import Area, Point, Text
from composer.draw.paths import lies_in
from composer.draw.scene import Scene, WirePath

EDGE = 2.0
"""Pixels that stay free along the border of the page."""
TOUCH = 1.2
"""Half a line's width: so far things may reach into each other."""
NAMED = 5.0
"""From the end of a wire to the name of what it leads to, at most."""


def texts(scene: Scene) -> list[Text]:
    """Return every text on the page."""
    found = [*scene.texts]
    for box in scene.boxes:
        found += box.texts
    for frame in scene.frames:
        found += [*frame.texts, *([frame.pill] if frame.pill else []), *(frame.strip.ticks if frame.strip else ())]
    return [*found, *(reference.text for reference in scene.references)]


def pieces(wire: WirePath) -> list[tuple[Point, Point]]:
    """Return a wire as straight pieces; a curve as twelve."""
    points = wire.points
    if wire.curved:
        points = tuple(bezier(wire.points, step / 12) for step in range(13))
    return list(pairwise(points))


def bezier(points: Sequence[Point], t: float) -> Point:
    """Return a place on a curve of four control points."""
    weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
    x, y = (sum(w * p[axis] for w, p in zip(weights, points, strict=True)) for axis in (0, 1))
    return x, y


def crosses(a: Point, b: Point, area: Area) -> bool:
    """Return whether a straight piece goes through the inside of a rectangle (Liang and Barsky)."""
    low, high = 0.0, 1.0
    dx, dy = b[0] - a[0], b[1] - a[1]
    sides = ((-dx, a[0] - area.left), (dx, area.right - a[0]), (-dy, a[1] - area.top), (dy, area.bottom - a[1]))
    for step, room in sides:
        if step == 0:
            if room <= 0:
                return False
        elif step < 0:
            low = max(low, room / step)
        else:
            high = min(high, room / step)
    return low < high - 1e-9


def goes_into(a: Point, b: Point, corners: Sequence[Point]) -> bool:
    """Return whether a straight piece goes more than a line's width into a convex shape, whose corners are told clockwise
    (Cyrus and Beck).
    """
    low, high = 0.0, 1.0
    for (x, y), (end_x, end_y) in pairwise((*corners, corners[0])):
        length = dist((x, y), (end_x, end_y))
        across = -(end_y - y) / length, (end_x - x) / length  # to the inside
        room = across[0] * (a[0] - x) + across[1] * (a[1] - y) - TOUCH
        step = across[0] * (b[0] - a[0]) + across[1] * (b[1] - a[1])
        if abs(step) < 1e-9:
            if room <= 0:
                return False
        elif step > 0:
            low = max(low, -room / step)
        else:
            high = min(high, room / -step)
    return low < high - 1e-9


def enters(a: Point, b: Point, path: str, scene: Scene) -> bool:
    """Return whether a straight piece that crosses the rectangle around a box or a circle goes into it, whatever its sides."""
    boxes = [box for box in scene.boxes if box.about.path == path]
    return not boxes or any(goes_into(a, b, box.corners) for box in boxes)


def leaning(scene: Scene) -> Iterator[str]:
    """Yield every box whose sides are slanted or not, other than it changes the number of places; what is written in one and
    leaves it; and every wire that ends beside its border.
    """
    for box in scene.boxes:
        path, corners = box.about.path, box.corners
        if (box.slant is None) != (not box.places):
            yield f"{path} gives `{box.places}` places"
        if box.slant is None:
            continue
        area = box.area
        for name, inner in [*((text.text, text.area) for text in box.texts), *(("icon", icon.area) for icon in box.icons)]:
            own = ((x, y) for x in (inner.left, inner.right) for y in (inner.top, inner.bottom))
            if any(depth(point, corners) < 0 for point in own):
                yield f"`{name}` leaves {path}"
        for wire in scene.wires:
            for end in (wire.points[0], wire.points[-1]):
                if holds(area.grown(-TOUCH), end) and abs(depth(end, corners)) > TOUCH:
                    yield f"{wire.source} → {wire.target} ends in {path}"
                at_border = holds(area.grown(TOUCH), end) and not holds(area.grown(-TOUCH), end)
                if at_border and depth(end, corners) < -TOUCH:
                    yield f"{wire.source} → {wire.target} ends beside {path}"


def depth(point: Point, corners: Sequence[Point]) -> float:
    """Return how far a point is from the border of a convex shape, whose corners are told clockwise; less than 0 outside."""
    found = []
    for (x, y), (end_x, end_y) in pairwise((*corners, corners[0])):
        length = dist((x, y), (end_x, end_y))
        found.append(((end_x - x) * (point[1] - y) - (end_y - y) * (point[0] - x)) / length)
    return min(found)


def overlaps(scene: Scene) -> Iterator[str]:
    """Yield everything that lies on something else."""
    yield from leaning(scene)
    said = [(text.text, text.area) for text in texts(scene)]
    page = Area(0, 0, scene.width, scene.height).grown(-EDGE)
    for name, area in said:
        if not inside(area, page):
            yield f"`{name}` leaves the page"
    for (name, area), (other, other_area) in combinations(said, 2):
        if area.meets(other_area):
            yield f"`{name}` lies on `{other}`"
    solid = [(thing.about.path, thing.area.grown(-TOUCH)) for thing in (*scene.boxes, *scene.merges)]
    for (path, area), (other, other_area) in combinations(solid, 2):
        if area.meets(other_area.grown(TOUCH)):
            yield f"{path} lies on {other}"
    own = set()
    for box in scene.boxes:
        own |= {(text.text, text.area) for text in box.texts}
        yield from (f"`{text.text}` leaves its box" for text in box.texts if not inside(text.area, box.area))
    for name, area in said:
        if (name, area) not in own:
            yield from (f"`{name}` lies on {path}" for path, other_area in solid if area.meets(other_area))
    letters = [(name, area.grown(-0.5)) for name, area in said]
    for wire in scene.wires:
        name = f"{wire.source} → {wire.target}"
        for a, b in pieces(wire):
            yield from (f"{name} crosses `{text}`" for text, area in letters if crosses(a, b, area))
            yield from (f"{name} crosses {path}" for path, area in solid if crosses(a, b, area) and enters(a, b, path, scene))
            if not wire.curved and abs(a[0] - b[0]) > 0.05 and abs(a[1] - b[1]) > 0.05:
                yield f"{name} is not upright"
    for one_wire, other_wire in combinations(scene.wires, 2):
        if one_wire.source != other_wire.source and not (one_wire.curved or other_wire.curved) and together(one_wire, other_wire):
            yield f"{one_wire.source} → {one_wire.target} runs on {other_wire.source} → {other_wire.target}"


def borders(scene: Scene) -> Iterator[str]:
    """Yield everything that a border goes through, and what lies on an icon or on a map of layers."""
    things = [(thing.about.path, thing.area) for thing in (*scene.boxes, *scene.merges)]
    things += [(text.text, text.area) for text in texts(scene)]
    strips = [(f"layers of {frame.about.path}", frame.strip.area) for frame in scene.frames if frame.strip]
    for number, frame in enumerate(scene.frames):
        others = [(other.about.path, other.area) for other in scene.frames[number + 1 :]]
        for name, area in (*things, *strips, *others):
            if frame.area.meets(area) and not inside(area, frame.area):
                yield f"the border of {frame.about.path} goes through `{name}`"
        for text in (*frame.texts, *([frame.pill] if frame.pill else [])):
            if not inside(text.area, frame.area):
                yield f"`{text.text}` leaves its frame"
    for name, area in strips:
        yield from (f"`{other}` lies on the {name}" for other, its in things if area.meets(its))
        for wire in scene.wires:
            if any(crosses(a, b, area) for a, b in pieces(wire)):
                yield f"{wire.source} → {wire.target} crosses the {name}"
    for box in scene.boxes:
        for icon in box.icons:
            if not inside(icon.area, box.area):
                yield f"the icon of {box.about.path} leaves its box"
            yield from (f"`{text.text}` lies on an icon" for text in box.texts if icon.area.meets(text.area))


def ends(scene: Scene) -> Iterator[str]:
    """Yield every wire that ends elsewhere than at what it is said to lead to, or at the name of a loss."""
    names = {(one.source, one.target): one.text.area.grown(NAMED) for one in scene.references if one.about.path == one.target}
    things = [(thing.about.path, thing.area.grown(TOUCH)) for thing in (*scene.boxes, *scene.merges, *scene.frames)]
    for wire in scene.wires:
        areas = [area for path, area in things if wire.target and lies_in(path, wire.target)]
        areas += [names[wire.source, wire.target]] if areas and (wire.source, wire.target) in names else []
        areas += loops_into(scene, wire.target, wire.port) if areas and not wire.arrow else []
        if areas and not any(holds(area, wire.points[-1]) for area in areas):
            yield f"{wire.source} → {wire.target} ends elsewhere"


def loops_into(scene: Scene, target: str, port: str) -> list[Area]:
    """Return what loops cover that lead to what a block calls something: what it has at first joins them."""
    ports = {*port.split(", ")}
    loops = [one for one in scene.wires if one.style == "loop" and one.arrow and one.target == target]
    return [area for one in loops if ports <= {*one.port.split(", ")} for area in covered(one)]


def inside(inner: Area, outer: Area) -> bool:
    """Return whether a rectangle lies in another."""
    return (
        inner.left >= outer.left - 0.5
        and inner.right <= outer.right + 0.5
        and inner.top >= outer.top - 0.5
        and inner.bottom <= outer.bottom + 0.5
    )


def together(one: WirePath, other: WirePath) -> bool:
    """Return whether two wires share a stretch."""
    for (a, b), (c, d) in ((p, q) for p in pieces(one) for q in pieces(other)):
        for axis in (0, 1):
            across = 1 - axis
            if max(a[across], b[across], c[across], d[across]) - min(a[across], b[across], c[across], d[across]) < 0.5:
                low, high = max(min(a[axis], b[axis]), min(c[axis], d[axis])), min(max(a[axis], b[axis]), max(c[axis], d[axis]))
                if high - low > 2:
                    return True
    return False


def starts(scene: Scene) -> Iterator[str]:
    """Yield every wire that starts neither at what it is said to come from nor at another wire that leads on from there."""
    things = [(thing.about.path, thing.area.grown(TOUCH)) for thing in (*scene.boxes, *scene.merges, *scene.frames)]
    named = [wire for wire in scene.wires if wire.style == "far"]
    of_things = [wire for wire in scene.wires if wire.source and any(lies_in(path, wire.source) for path, _ in things)]
    for source in dict.fromkeys(wire.source for wire in of_things):
        areas = [area for path, area in things if lies_in(path, source)]
        areas += [line for frame in scene.frames if lies_in(source, frame.about.path) for line in border(frame.area)]
        cells = [frame.strip.area.grown(TOUCH) for frame in scene.frames if frame.strip and frame.about.path == source]
        areas += cells  # the map of its layers
        areas += [area for wire in named if wire.source == source for area in covered(wire)]
        waiting = [wire for wire in of_things if wire.source == source and wire not in named]
        while found := [wire for wire in waiting if any(holds(area, wire.points[0]) for area in areas)]:
            areas = [area for wire in found for area in covered(wire)]
            waiting = [wire for wire in waiting if wire not in found]
        yield from (f"{wire.source} → {wire.target} starts elsewhere" for wire in waiting)


def covered(wire: WirePath) -> list[Area]:
    """Return what the pieces of a wire cover."""
    return [Area(min(a, c), min(b, d), max(a, c), max(b, d)).grown(TOUCH) for (a, b), (c, d) in pieces(wire)]


def border(area: Area) -> list[Area]:
    """Return what the four lines around a rectangle cover."""
    left, top, right, bottom = area.left, area.top, area.right, area.bottom
    lines = (left, top, right, top), (left, bottom, right, bottom), (left, top, left, bottom), (right, top, right, bottom)
    return [Area(*line).grown(TOUCH) for line in lines]


def holds(area: Area, point: Point) -> bool:
    """Return whether a point lies in a rectangle."""
    return area.left <= point[0] <= area.right and area.top <= point[1] <= area.bottom


def idle_dots(scene: Scene) -> Iterator[str]:
    """Yield every dot on a wire from which fewer than three ways lead."""
    for dot in scene.dots:
        ways: set[tuple[float, float]] = set()
        for (a, b), (c, d) in (pair for wire in scene.wires for pair in pairwise(wire.points)):
            if min(a, c) - 1 <= dot.x <= max(a, c) + 1 and min(b, d) - 1 <= dot.y <= max(b, d) + 1:
                ends = ((x, y) for x, y in ((a, b), (c, d)) if abs(x - dot.x) + abs(y - dot.y) > 1)
                ways |= {((x > dot.x + 1) - (x < dot.x - 1), (y > dot.y + 1) - (y < dot.y - 1)) for x, y in ends}
        if 0 < len(ways) < 3:
            yield f"a dot at {dot.x:g}, {dot.y:g}"
