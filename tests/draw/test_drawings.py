"""What holds of every drawing, at every level."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from composer.draw.build.levels import LEVELS, Level
from composer.draw.export.svg import svg
from composer.draw.figure import draw
from composer.draw.scene import Detail, Scene
from composer.draw.style.themes import THEMES
from composer.draw.style.typography import FONTS
from composer.graph.parameters import parameters
from composer.graph.passes.roll_layers.roll_layers import folded
from composer.graph.typed import TypedProgram
from tests.draw.cases import CASES, FORMS, MORE_CASES, each_case, each_level, each_of, scenes
from tests.draw.checks import borders, ends, overlaps, starts, texts
from tests.draw.edges import Readers, drawn, mixed, shown_in, unread
from tests.zoo import each_representative

SVG = "{http://www.w3.org/2000/svg}"
BUDGET = {"overview": 8, "block": 16, "full": 25}
"""Boxes above each other."""
MAX_WITH_DETAILS, MAX_WITH_SUBJECT = 1.4, 2.0
"""How many times larger than a page a figure with its details is at most; and one whose first detail is no larger than that,
which may be what the model is about.
"""
SHRUNK = {
    "switch": 8.0, "mamba2": 8.3, "qwen3_next": 6.3, "jamba": 6.5, "swin": 3.9, "resnet": 2.7, "clip": 7.7, "convnext": 8.0,
    "modernbert": 6.8, "spanbert": 7.5, "dit": 8.1, "recurrent_gemma": 6.4, "rwkv": 7.2, "longformer": 8.1, "deberta_v2": 6.7,
    "mae": 5.0, "uvit": 4.9, "xlnet": 5.8, "transformer_xl": 5.9, "show_attend_tell": 5.7, "perceiver": 5.5, "linformer": 7.4,
    "hyper_connections": 4.9, "mixture_of_depths": 6.0, "task_moe": 5.6, "wav2vec2": 4.9,
}  # fmt: skip
"""Smallest letters of what does not fit otherwise: attentions from inside, experts, and a loss between two columns; a column of
many blocks that split and merge channels; four stages side by side, each of layers of two kinds; layers of three kinds; two
encoders side by side, and a condition beside the layers that read it; a layer of which both halves mix each input by itself; two
attentions side by side; an attention of primitives, with positions beside it; patches that are sorted, left out and put back;
two stacks of layers above each other, with a third between them; relative attention of primitives; the same to a memory too; a
decoder step beside an image; attentions into latents, among them and out of them; attention of projected keys and values; streams
that each half of a layer mixes; a layer for some of the tokens beside one for all; two layers of two kinds beside each other;
convolutions, the frames that they leave, and layers that read both.
"""
TALLER = {
    ("rwkv", "full"): 30, ("mae", "full"): 36, ("xlnet", "full"): 32, ("uvit", "full"): 32, ("transformer_xl", "full"): 30,
    ("perceiver", "full"): 34, ("hyper_connections", "full"): 29, ("mixture_of_depths", "full"): 35,
    ("show_attend_tell", "block"): 17, ("wav2vec2", "overview"): 15, ("wav2vec2", "block"): 18, ("wav2vec2", "full"): 26,
}  # fmt: skip
"""Boxes above each other of what has more: a layer with five maps, each behind a mean of a token and the one before; patches that
are sorted, left out, put back and compared, between two stacks of layers; layers below, in and above the middle, all opened; two
attentions that are joined; latents that read a text and then attend to each other; streams that are mixed before
and after each half of a layer; tokens that are chosen, gathered and put back around a layer; frames that are
counted from the flags of samples.
"""


@each_level
@each_case
def test_nothing_lies_on_anything_else(case: str, level: Level) -> None:
    """No text on a text, no box on a box, no wire through either, no wire along another, no border through anything, all of it
    on the page.
    """
    for name, _, scene in scenes(case, level):
        assert [*overlaps(scene), *borders(scene)] == [], name


@each_level
@each_case
def test_every_wire_leads_from_its_source_to_its_target(case: str, level: Level) -> None:
    """Also where blocks stand side by side, which may read what none of the others does."""
    for name, _, scene in scenes(case, level):
        assert [*starts(scene), *ends(scene)] == [], name


@each_level
@each_of(
    [case for case in CASES if not case.startswith("find")], [*(case for case in CASES if case.startswith("find")), *MORE_CASES]
)
def test_slides_have_larger_letters_in_the_same_boxes(case: str, level: Level) -> None:
    """Which touch nothing either."""
    for name, typed, usual in scenes(case, level):
        slide = draw(typed, level, theme="slide").scene
        assert [*overlaps(slide), *borders(slide)] == [], name
        assert all(text.font.size == 1.35 * FONTS[text.role].size for text in texts(slide)), name
        if slide.width > 0.9 * usual.width and columns(slide) == columns(usual):
            assert slide.height < 1.15 * usual.height, name


def columns(scene: Scene) -> list[list[str]]:
    """Return which boxes stand above one another, column by column from the left."""
    found: dict[int, list[str]] = {}
    for box in sorted(scene.boxes, key=lambda box: box.area.top):
        found.setdefault(round(box.area.left + box.area.right), []).append(box.about.path)
    return [found[middle] for middle in sorted(found)]


@each_level
@each_case
def test_every_parameter_is_drawn_once(case: str, level: Level) -> None:
    """The parameters of all things on the page are those of the model."""
    for name, typed, scene in scenes(case, level):
        whole = sum(_numbers(entry.parameter.shape) for entry in parameters(typed) if not entry.tied_to)
        things = [*scene.boxes, *scene.merges, *scene.frames]
        assert sum(thing.about.parameters for thing in things) == whole, name


@each_case
def test_every_edge_is_drawn_once(case: str) -> None:
    """What reads what, followed through frames, is what the typed graph says."""
    for name, typed, scene in scenes(case, "block"):
        assert_every_edge(name, typed, scene)


def assert_every_edge(name: str, typed: TypedProgram, scene: Scene) -> None:
    """Assert that what is drawn reads what the typed graph says, and nothing else; in details too."""
    closed = [box.about.path for box in scene.boxes]
    truth = Readers(typed, quiet=True, closed=closed, called=folded(typed).names, sizes=False, shown=shown_in(scene))
    seen = Counter(truth.outside(*pair) for pair in drawn(scene, truth.blocks).elements())
    assert truth.pairs - set(seen) == set(), name
    inside = mixed(scene)
    more = {pair for pair in set(seen) - truth.pairs if not any(path.startswith(inside) for path in pair[:2])}
    assert more == set(), name
    twice = {
        pair for pair, count in seen.items() if count > 1 and pair[2] not in ("xs", "input")
    }  # a list may hold several of one
    assert {pair for pair in twice if not any(path.startswith(inside) for path in pair[:2])} == set(), name
    assert unread(typed, scene) == [], name


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    "level", [level if level == "block" else pytest.param(level, marks=pytest.mark.exhaustive) for level in LEVELS]
)
@each_case
def test_svg_names_everything(case: str, level: Level, theme: str) -> None:
    """It is XML; every block has a title and a path, every wire both its ends; the picture says what it is."""
    for name, _, scene in scenes(case, level):
        root = ET.fromstring(svg(scene, theme))
        assert root.get("role") == "img", name
        assert root.get("aria-label")
        for group in root.iter(f"{SVG}g"):
            kind = group.get("class", "").split()
            if "node" in kind:
                assert group.get("data-id")
                assert group.find(f"{SVG}title") is not None
        edges = [group for group in root.iter(f"{SVG}g") if "edge" in group.get("class", "").split()]
        wires = [wire for one in scene.drawings for wire in one.wires]
        assert sum(group.get("data-a") is not None for group in edges) == sum(bool(w.source or w.target) for w in wires)


@pytest.mark.parametrize("level", BUDGET)
@each_representative
def test_zoo_fits_on_a_page(name: str, level: Level) -> None:
    """Few enough boxes above each other, hardly larger than a sheet, which may lie on its side, and no title cut short."""
    ((_, typed, scene),) = scenes(f"zoo {name}", level)
    if scene.details:
        most = MAX_WITH_SUBJECT if sheets(scene.details[0]) <= MAX_WITH_DETAILS else MAX_WITH_DETAILS
        assert sheets(scene) <= most
        scene = draw(typed, level, details=["none"]).scene
    columns: dict[int, int] = {}
    for box in scene.boxes:
        middle = round(box.x + box.width / 2)
        columns[middle] = columns.get(middle, 0) + 1
    assert max(columns.values()) <= TALLER.get((name, level), BUDGET[level])
    upright, on_its_side = (min(1.0, wide / scene.width, high / scene.height) for wide, high in ((1200, 1500), (1500, 1200)))
    shrunk = 10 * max(upright, on_its_side)
    assert shrunk >= (SHRUNK.get(name, 9.0) if level == "full" else 9.8)
    ends = [text.text for box in scene.boxes for text in box.texts if text.text.endswith("…")]
    assert all(end.endswith(" · …") for end in ends)  # a closed block tells that there is more in it


def sheets(one: Scene | Detail) -> float:
    """Return how many times larger than a sheet something is, which may lie on its side."""
    wide, high = one.width, one.height
    return min(max(wide / 1200, high / 1500), max(wide / 1500, high / 1200))


def test_forms_are_drawn() -> None:
    """The folder of well-known forms is found."""
    assert len(FORMS) >= 7


def _numbers(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
