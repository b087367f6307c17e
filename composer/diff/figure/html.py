"""Two models as one HTML page that works offline: both drawings, a list of the changes, and both recipes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, TypeVar

from composer.diff.changes import Change, DifferenceData
from composer.diff.figure.layout import SIGNS, MarkedDrawings, annotated_scene, marked_drawings
from composer.diff.figure.places import HAPPENED, FoundPlaces, path_of
from composer.diff.figure.sides import SIDES
from composer.diff.find_changes import paired
from composer.diff.pairing import Pairing
from composer.diff.render import caption, changed_costs, notes, summary_line, unchanged_costs
from composer.draw.build.levels import LEVELS, Level
from composer.draw.build.source_files import File, elsewhere, file_of, source
from composer.draw.export.html import SCRIPTS, Pictures, document, page_file
from composer.draw.export.node_facts import facts, implied
from composer.draw.export.svg import svg
from composer.draw.export.views import View, closing, openable
from composer.draw.paths import above, plain
from composer.draw.scene import Box, Frame, MergeCircle, Scene, WirePath
from composer.draw.style.palette import DARK, LIGHT, Palette
from composer.draw.style.themes import CHANGES, ThemeName, change_rules
from composer.printable import markup

T = TypeVar("T")


def html(difference: DifferenceData, level: Level, theme: ThemeName) -> str:
    """Return the page; `level` is the one that it shows first."""
    pages = {each: marked_drawings(difference, each) for each in LEVELS}
    pairing = paired(*difference.models)
    shown = (View(each, (), page, more=marked(page, pairing)) for each, page in pages.items())
    views = {view.key: view for view in shown}
    for each, deeper in pairwise(LEVELS):
        inside = {box.about.path for box in views[deeper].figure.scene.boxes}
        inner = openable(views[each].figure.scene, {path for one in inside for path in above(one)})
        views[each].opens = {path: deeper for path in inner if path not in inside}
    for view in views.values():
        view.closes |= closing(view, views)
        view.copied = svg(annotated_scene(difference, view.level))
    data = {
        "sides": SIDES,
        "models": [difference.before, difference.after],
        "facts": by_side(facts(one.model) for one in pages["full"].pictures),
        "changes": list(map(change, difference.changes)),
    }
    unwritten = by_side(implied(one.model) for one in pages["full"].pictures)
    return document(
        pages[level].scene.name,
        Pictures(list(views.values()), level, theme, unwritten),
        {side: one.model for side, one in zip(SIDES, pages["full"].pictures, strict=True)},
        data,
        changed=changed(difference, pages["full"]),
        panel=panel(difference),
        hint=" Click a change, or <kbd>n</kbd> for the next and <kbd>p</kbd> for the one before, to see it in both.",
        style=page_file("changes.css") + signs(LIGHT) + dark_signs(),
        scripts=(*SCRIPTS, "changes.js"),
    )


def by_side(maps: Iterable[Mapping[str, T]]) -> dict[str, T]:
    """Return one map for both models, whose paths begin with the side."""
    return {side + path: value for side, one in zip(SIDES, maps, strict=True) for path, value in one.items()}


# -- data for the script


def change(one: Change) -> dict[str, str]:
    """Return a change in words, with its sign."""
    where, what = caption(one)
    happened = HAPPENED[type(one)]
    return {"happened": happened, "sign": SIGNS[happened], "where": where, "what": what}


def marked(page: MarkedDrawings, pairing: Pairing) -> dict[str, Any]:
    """Return the marks of a picture: each change by its number with the paths and the wires that show it, and which paths stand
    for the same node.
    """
    return {
        "changes": [
            {
                "change": number,
                "places": list(dict.fromkeys(places(one, page))),
                "wires": list(dict.fromkeys(wires(one, page))),
            }
            for one, number in zip(page.found, page.order, strict=True)
        ],
        "partners": dict(partners(pairing, page)),
    }


def places(found: FoundPlaces, page: MarkedDrawings) -> Iterator[str]:
    """Yield the paths of the elements that show a change; with a frame, of all that is in it."""
    for side, spots, picture in zip(SIDES, found.spots, page.pictures, strict=True):
        for spot in spots or ():
            if isinstance(spot, WirePath):
                continue
            yield side + path_of(spot)
            if isinstance(spot, Frame):
                inside = f"{path_of(spot)}."
                yield from (side + one.about.path for one in blocks(picture.scene) if one.about.path.startswith(inside))


def blocks(scene: Scene) -> tuple[Box | MergeCircle, ...]:
    """Return the boxes and merges of a scene."""
    return (*scene.boxes, *scene.merges)


def wires(found: FoundPlaces, page: MarkedDrawings) -> Iterator[int]:
    """Yield the wires that show a change, by their indices in the common scene."""
    first = 0
    for spots, picture in zip(found.spots, page.pictures, strict=True):
        drawn = picture.scene.wires
        yield from (first + drawn.index(spot) for spot in spots or () if isinstance(spot, WirePath))
        first += len(drawn)


def partners(pairing: Pairing, page: MarkedDrawings) -> Iterator[tuple[str, str]]:
    """Yield the paths of the same node on both sides; for parts of blocks, and for groups, those of the same name."""
    before, after = (one.model.names.called for one in page.pictures)
    nodes = ((pairing.before.nodes[one].path, pairing.after.nodes[other].path) for one, other in pairing.forward.items())
    there = {plain(before(one)): plain(after(other)) for one, other in nodes}
    ours, theirs = ([one.about.path for one in blocks(picture.scene)] for picture in page.pictures)
    taken = set(there.values())
    for path in dict.fromkeys(ours):
        head = next((one for one in reversed(above(path)) if one in there), "")
        other = there[head] + path.removeprefix(head) if head else path
        if other in theirs and (head or other not in taken):
            yield SIDES[0] + path, SIDES[1] + other


# -- beside the picture


def panel(difference: DifferenceData) -> str:
    """Return the summary line, the costs, and the place of the list of changes."""
    costs = [*changed_costs(difference), *((what, f"{text}, unchanged") for what, text in unchanged_costs(difference))]
    rows = "".join(f"<tr><th>{markup(what)}<td>{markup(text)}" for what, text in costs)
    said = "".join(f"<p>{markup(note)}" for note in notes(difference))
    return (
        '<section id="differences" aria-label="What differs" tabindex="0"><details>'
        f"<summary>{markup(summary_line(difference))}</summary><table>{rows}</table>{said}</details>"
        '<ol id="changes"></ol></section>'
    )


def changed(difference: DifferenceData, page: MarkedDrawings) -> dict[File, set[int]]:
    """Return the lines of the recipes in which something differs."""
    found: dict[File, set[int]] = {}
    for number, picture in enumerate(page.pictures):
        model, own = picture.model, source(picture.model.program)
        other = elsewhere(model)
        things = [one.about for one in blocks(picture.scene)]
        written = {one.path: (own, *one.lines) if one.lines else other.get(one.path) for one in things}
        for one in page.found:
            for lines in filter(None, map(written.get, map(path_of, one.spots[number] or ()))):
                found.setdefault(lines[0], set()).update(range(lines[1], lines[2] + 1))
        names = {param.name for param in difference.params}
        for param in model.program.untyped.recipe.params:
            if param.name in names:
                found.setdefault(file_of(param.span), set()).add(param.span.line)
    return found


def dark_signs() -> str:
    """Return the colors of all signs where the page is dark, which paper is not."""
    return f"@media screen{{html[data-theme=dark]{{{signs(DARK)}#picture{{{change_rules(DARK)}}}}}}}"


def signs(palette: Palette) -> str:
    """Return the colors of the signs in the list."""
    colors = (f".c-{happened}{{background:{palette.hues[hue].stroke}}}" for happened, (hue, _) in CHANGES.items())
    return f"#changes{{{''.join(colors)}}}"
