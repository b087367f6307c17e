"""The HTML page of two models in a real browser: by events, and by what is on the page afterward."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import composer
from composer.cli import main
from composer.diff.changes import Nodes
from composer.diff.difference import Difference
from composer.diff.figure.layout import marked_drawings
from composer.diff.figure.sides import SIDES
from composer.diff.render import caption
from composer.draw.build.levels import LEVELS
from composer.draw.paths import plain
from composer.draw.style.palette import LIGHT
from tests.draw.browser import data_of, find, keys, needs_browser, paths, visit
from tests.draw.test_formats import HOSTILE

THETA = "layers.*.attn.body (32×)"
"""How the change of the rotation's base is called."""
ROPE = {f"{side}layers.attn.body.positions" for side in SIDES}


@cache
def difference() -> Difference:
    """Return what differs between a dense decoder and a mixture of experts."""
    return composer.load("llama3").diff(composer.load("mixtral"))


@cache
def html() -> str:
    """Return the page."""
    return difference().draw().html()


@pytest.fixture
def page(chromium: Any, tmp_path: Path) -> Any:
    """The page, opened anew."""
    (tmp_path / "both.html").write_text(html(), encoding="utf-8")
    visit(chromium, (tmp_path / "both.html"))
    return chromium


def changes(page: Any) -> list[Any]:
    """Return the list of changes."""
    return page.find_elements("css selector", "#changes button")  # type: ignore[no-any-return]


def change(page: Any, name: str) -> Any:
    """Return the change that a name occurs in."""
    return next(one for one in changes(page) if name in one.text)


def marked(page: Any, recipe: int) -> str:
    """Return the lines that stand out in one of the recipes."""
    return "\n".join(
        line.text for line in page.find_elements("css selector", ".recipe")[recipe].find_elements("css selector", ".marked")
    )


@pytest.mark.slow
def test_page_is_one_small_file() -> None:
    """Under 160 KB, at every level both models, and what is copied is the picture with its notes."""
    assert len(html().encode()) < 160_000
    data = data_of(html())
    assert set(data["views"]) == set(LEVELS)
    for level in LEVELS:
        view = data["views"][level]
        assert view["picture"] == marked_drawings(difference(), level).svg()
        assert view["copied"] == difference().draw(level).svg()


@pytest.mark.slow
def test_changes_are_told_of_their_nodes() -> None:
    """Each once at every level, in the words of the text, at nodes of the change, parts of them, or what holds them."""
    data = data_of(html())
    assert [(one["where"], one["what"]) for one in data["changes"]] == [caption(one) for one in difference().changes]
    for view in data["views"].values():
        assert sorted(one["change"] for one in view["changes"]) == list(range(len(data["changes"])))
        for one in view["changes"]:
            for number, side in enumerate(SIDES):
                nodes = getattr(difference().changes[one["change"]], ("before", "after")[number], None)
                meant = set(map(plain, nodes.paths)) if isinstance(nodes, Nodes) else set()
                here = [path.removeprefix(side) for path in one["places"] if path.startswith(side)]
                assert bool(here) >= bool(meant), one
                assert all(any(f"{a}.".startswith(f"{b}.") or f"{b}.".startswith(f"{a}.") for b in meant) for a in here if meant)


@pytest.mark.slow
@pytest.mark.parametrize("title", HOSTILE, ids=["markup", "quotes", "right to left", "long"])
def test_hostile_names_stay_text(title: str) -> None:
    """Two scripts, ours, whatever the models are called."""
    found = replace(difference(), before=title, after=title)
    assert data_of(found.draw().html())["models"] == [title, title]


@pytest.mark.slow
def test_command_writes_and_prints_the_page(tmp_path: Path) -> None:
    """By the name's ending, and by the format to a pipe."""
    assert main(["diff", "llama3", "mixtral", "-o", str(tmp_path / "both.html")]) == 1
    assert (tmp_path / "both.html").read_text(encoding="utf-8") == html()
    words = [sys.executable, "-m", "composer", "diff", "llama3", "mixtral", "--format", "html", "-o", "-"]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == 1 and done.stdout.decode() == html()


@needs_browser
def test_a_change_is_shown_in_both_drawings_and_recipes(page: Any) -> None:
    """Its places are lit and seen, all else is dim, its lines are marked; a second click lets go."""
    change(page, THETA).click()
    assert paths(page, ".node.lit") == ROPE
    assert paths(page, ".node.dim") == paths(page, ".node") - ROPE
    assert {ring.get_attribute("data-of") for ring in page.find_elements("css selector", "rect.lit")} == ROPE
    assert "positions: {type: rotary" in marked(page, 0) and "positions: {type: rotary" in marked(page, 1)
    assert "500000 → 1000000" in find(page, "#about").text
    number = change(page, THETA).text.split("\n")[0][:3]
    at = [badge for badge in page.find_elements("css selector", ".badge") if badge.text.strip() == number.strip()]
    assert len(at) == 2
    for badge in at:
        assert page.execute_script(
            "const a = arguments[0].getBoundingClientRect(); return a.top >= 0 && a.bottom <= innerHeight", badge
        )
    assert change(page, THETA).get_attribute("aria-pressed") == "true"
    change(page, THETA).click()
    assert not page.find_elements("css selector", "#picture .lit, #picture .dim, .recipe .marked, #changes [aria-pressed=true]")


@needs_browser
def test_a_badge_picks_its_change(page: Any) -> None:
    """As its line of the list does."""
    badge = next(one for one in page.find_elements("css selector", ".badge.pickable") if one.text.startswith("→"))
    badge.click()
    assert next(one.text for one in changes(page) if one.get_attribute("aria-pressed") == "true").startswith("→")
    assert "before:layers.ffn.body" in paths(page, ".node.lit")


@needs_browser
def test_a_block_finds_its_change_and_its_partner(page: Any) -> None:
    """Both blocks are chosen, and data followed in both; the change is marked in the list."""
    find(page, '[data-id="before:layers.attn.body.positions"]').click()
    assert paths(page, ".chosen") == ROPE
    assert {path.partition(":")[0] for path in paths(page, ".node.down")} == {"before", "after"}
    here = page.find_elements("css selector", "#changes .here")
    assert [THETA in one.text for one in here] == [True]


@needs_browser
def test_hover_tells_both_values_and_both_places(page: Any) -> None:
    """The value that it had and the one that it has, and the lines of either recipe, which are marked."""
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(page).move_to_element(find(page, '[data-id="after:layers.attn.body.positions"]')).perform()
    said = find(page, "#tip").text
    places = [
        recipe.get_attribute("data-lines") for recipe in page.find_elements("css selector", '[data-id$="attn.body.positions"]')
    ]
    assert "500000 → 1000000" in said
    for model, lines in zip(("llama3", "mixtral"), places, strict=True):
        first, last = lines.split("-")
        assert f"{model} line{'s' * (first != last)} {first}" in said
    assert "rotary" in marked(page, 0) and "rotary" in marked(page, 1)


@needs_browser
def test_keys_go_from_change_to_change(page: Any) -> None:
    """Forwards, backwards, around, and Escape lets go; the focus stands in the list."""
    count = len(changes(page))
    keys(page, "n", "n")
    assert [one.get_attribute("aria-pressed") for one in changes(page)].index("true") == 1
    keys(page, "p", "p")
    assert [one.get_attribute("aria-pressed") for one in changes(page)].index("true") == count - 1
    assert page.switch_to.active_element == changes(page)[-1]
    keys(page, "\ue00c")
    assert "true" not in [one.get_attribute("aria-pressed") for one in changes(page)]


@needs_browser
def test_a_level_keeps_the_change(page: Any) -> None:
    """It may have another number there; levels follow from signs and buttons."""
    change(page, THETA).click()
    find(page, "[data-level=overview]").click()
    assert change(page, THETA).get_attribute("aria-pressed") == "true"
    assert paths(page, ".node.lit") == {f"{side}layers" for side in SIDES}
    find(page, "#picture [data-sign='open before:layers']").click()
    assert find(page, "[data-level=block]").get_attribute("aria-pressed") == "true"
    find(page, "#picture [data-sign='close after:layers']").click()
    assert find(page, "[data-level=overview]").get_attribute("aria-pressed") == "true"


@needs_browser
def test_changed_lines_stand_out_in_the_recipes(page: Any) -> None:
    """The blocks and the params that differ, and nothing that is the same."""
    texts = [
        [line.text for line in recipe.find_elements("css selector", ".changed")]
        for recipe in page.find_elements("css selector", ".recipe")
    ]
    assert any("vocab: 32000" in line for line in texts[1]) and any("type: moe" in line for line in texts[1])
    assert any("gated_ffn" in line for line in texts[0])
    assert not any("norm: rms" in line or line.startswith("doc:") for lines in texts for line in lines)


@needs_browser
def test_search_and_copy_work_on_both(page: Any) -> None:
    """One script serves both pages."""
    keys(page, "/")
    keys(page, "rope")
    assert paths(page, ".hit") == ROPE
    assert find(page, "#hits").text == "2 found"
    page.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    find(page, "#copy").click()
    copied = page.execute_async_script("navigator.clipboard.readText().then(arguments[0], error => arguments[0](String(error)))")
    assert copied == difference().draw().svg()


@needs_browser
def test_signs_have_the_colors_of_the_picture(page: Any) -> None:
    """In the list and at the blocks, light and dark."""
    for _ in ("light", "dark"):
        colors = {
            find(page, "#changes .c-altered").value_of_css_property("background-color").replace("a(", "(").replace(", 1)", ")"),
            find(page, "#picture .b-altered > .s").value_of_css_property("fill"),
        }
        assert len(colors) == 1
        find(page, "#theme").click()
    assert LIGHT.hues["attn"].stroke == "#0C68A6"
    assert colors != {"rgb(12, 104, 166)"}


@needs_browser
def test_the_page_asks_the_network_for_nothing(page: Any) -> None:
    """Nor does it complain."""
    page.get_log("performance")
    page.get_log("browser")
    page.refresh()
    keys(page, "n")
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.endswith("both.html")] == []
    assert page.get_log("browser") == []


def test_changes_of_wires_are_those_that_the_picture_marks() -> None:
    """Between a decoder and an encoder the residual connections read something else; every wire so drawn is of one change."""
    data = data_of(composer.load("gpt2").diff(composer.load("bert")).draw().html())
    for view in data["views"].values():
        edges = re.findall(r'<g class="edge e-(\w+)"', view["picture"])
        rewired = [wire for one in view["changes"] for wire in one["wires"]]
        assert sorted(set(rewired)) == [number for number, style in enumerate(edges) if style == "rewired"]
    assert rewired


@needs_browser
def test_one_file_of_both_models_is_shown_once(chromium: Any, tmp_path: Path) -> None:
    """Layers that are gone are found at their number, and in the file where the repeat begins."""
    gpt2 = composer.load("gpt2")
    gpt2.diff(composer.load("gpt2", overrides={"n_layers": 6})).draw().save(tmp_path / "both.html")
    visit(chromium, (tmp_path / "both.html"))
    change(chromium, "layers.(6-11)").click()
    assert len(chromium.find_elements("css selector", ".recipe")) == 1
    assert marked(chromium, 0).strip() == "layers:"
    (ring,) = chromium.find_elements("css selector", "rect.lit")
    assert ring.get_attribute("data-of") == "before:layers" and ring.size["height"] < 50


@needs_browser
def test_equal_models_have_no_changes_to_pick(chromium: Any, tmp_path: Path) -> None:
    """The verdict says so, and keys that go through changes do nothing."""
    gpt2 = composer.load("gpt2")
    gpt2.diff(gpt2).draw().save(tmp_path / "both.html")
    visit(chromium, (tmp_path / "both.html"))
    chromium.get_log("browser")
    keys(chromium, "n", "p")
    assert "the same model" in find(chromium, "#differences summary").text
    assert changes(chromium) == [] and chromium.get_log("browser") == []


@needs_browser
def test_hostile_names_and_recipes_run_nothing(chromium: Any, tmp_path: Path) -> None:
    """Neither what models are called nor what their files say, wherever the page tells it."""
    evil = "</script><script>window.ran = 1</script><!-- <img src=x onerror='window.ran = 2'> {{script}}"
    text = f'recipe: evil\ndoc: "{evil}"\ninputs: {{x: "float[batch, time, 16]"}}\ngraph:\n  a: {{type: linear, out: 8}}\n'
    found = composer.load(text).diff(composer.load(text.replace("out: 8", "out: 9")))
    replace(found, before=evil, after="{{data}}</title>").draw().save(tmp_path / "evil.html")
    visit(chromium, (tmp_path / "evil.html"))
    chromium.execute_script("nodes.forEach((_, at) => { choose(at); beside(at); }); view.changes.forEach((_, at) => pick(at));")
    assert chromium.execute_script("return window.ran") is None
    assert chromium.title == f"{evil} → {{{{data}}}}</title>"
    assert evil in find(chromium, ".recipe").text
    assert chromium.get_log("browser") == []
