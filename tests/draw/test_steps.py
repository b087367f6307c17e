"""Figures that are built up: nothing moves, nothing vanishes, and the last step is the figure."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import composer
from composer.draw.export.formats import NotDrawn
from composer.draw.scene import Scene
from composer.draw.steps import save_steps, steps
from tests.draw.browser import find, needs_browser
from tests.draw.cases import each_of, sources

CASES = ["zoo gpt2", "zoo t5", "zoo mixtral", "zoo gemma3", "zoo jamba", "form unet", "form clip"]


def things(scene: Scene) -> set[object]:
    """Return all that stands on a page; of a frame, where it is."""
    solid = (*scene.boxes, *scene.merges, *scene.wires, *scene.dots, *scene.texts, *scene.references)
    return {*map(repr, solid), *((frame.key, frame.area, frame.texts) for frame in scene.frames)}


@each_of(CASES)
def test_each_step_adds_to_the_one_before(case: str) -> None:
    """In places that stay; a wire is there once both its ends are."""
    for _, source in sources(case):
        figure = composer.load(source).draw()
        built = steps(figure)
        scenes = [one.figure.scene for one in built]
        assert scenes[-1] == figure.scene and len({(scene.width, scene.height) for scene in scenes}) == 1
        for before, after in pairwise(scenes):
            assert things(before) <= things(after) and before != after
        for scene in scenes:
            drawn = {one.about.path for one in (*scene.boxes, *scene.merges, *scene.frames)}
            whole = {one.about.path for one in (*figure.scene.boxes, *figure.scene.merges, *figure.scene.frames)}
            assert not [wire for wire in scene.wires if {wire.source, wire.target} & (whole - drawn)]


def test_a_decoder_is_told_from_the_embedding_to_the_head() -> None:
    """One layer with what is in it, before it is a stack."""
    told = [one.title for one in steps(composer.load("gpt2").draw())]
    assert told == [
        "Token embedding",
        "Decoder layer",
        "Multi-head attention",
        "Feed-forward",
        "× 12 Decoder layer",
        "LM head",
    ]
    merged = composer.load("gpt2").draw(merge={"MLP": ["layers.ffn"]}, hide=["norm"])
    assert "MLP" in [one.title for one in steps(merged)]


def test_steps_are_a_folder_a_pdf_or_slides(tmp_path: Path) -> None:
    """Each kind holds all of them; another kind of file is refused."""
    figure = composer.load("gpt2").draw("overview")
    count = len(steps(figure))
    files = save_steps(figure, tmp_path / "steps")
    figure.save(tmp_path / "whole.svg")
    assert files[-1].read_text() == (tmp_path / "whole.svg").read_text()
    assert len(files) == count and files[0].name == "1-token-embedding.svg"
    save_steps(figure, tmp_path / "steps.pdf")
    assert len(re.findall(rb"/Type /Page\b", (tmp_path / "steps.pdf").read_bytes())) == count
    save_steps(figure, tmp_path / "steps.html")
    assert (tmp_path / "steps.html").read_text().count("<figure") == count
    with pytest.raises(NotDrawn, match="which a file of svg does not hold"):
        save_steps(figure, tmp_path / "steps.svg")


@needs_browser
def test_slides_are_flipped_through_with_keys(chromium: Any, tmp_path: Path) -> None:
    """One is seen at a time; a block stands where it stood; the page has no complaints."""
    from selenium.webdriver.common.keys import Keys

    path = tmp_path / "steps.html"
    save_steps(composer.load("gpt2").draw(), path)
    chromium.get(path.as_uri())
    seen, places = [], set()
    for _ in range(7):  # the last one stays
        shown = [one for one in chromium.find_elements("css selector", "figure") if one.is_displayed()]
        seen.append(shown[0].find_element("css selector", "figcaption").text)
        places.add(str(shown[0].find_element("css selector", "[data-id='embed']").rect))
        assert len(shown) == 1
        find(chromium, "body").send_keys(Keys.ARROW_RIGHT)
    assert seen[0] == "1 / 6 · Token embedding" and seen[5] == seen[6] == "6 / 6 · LM head"
    assert len(places) == 1 and not [one for one in chromium.get_log("browser") if one["level"] == "SEVERE"]
