"""The HTML page in a real browser: by events, and by what is on the page afterward."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import composer
from composer.draw.export.node_facts import facts
from composer.graph.passes.roll_layers.roll_layers import as_written
from composer.printable import printable
from composer.recipe import zoo_names
from tests.draw.browser import data_of, find, keys, needs_browser, paths, visit, wires
from tests.draw.edges import Readers
from tests.draw.test_formats import HOSTILE

ATTENTION, FEED_FORWARD = "layers.attn.body", "layers.ffn.body"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of llama3."""
    path = tmp_path_factory.mktemp("page") / "llama3.html"
    composer.load("llama3").draw().save(path)
    return path


@pytest.fixture
def page(chromium: Any, llama: Path) -> Any:
    """The page, opened anew."""
    visit(chromium, llama)
    return chromium


def test_page_is_small_and_reaches_for_nothing(llama: Path) -> None:
    """Under 85 KB; the only address in it is the name of SVG's namespace."""
    text = llama.read_text(encoding="utf-8")
    assert len(text.encode()) < 87_000
    assert set(re.findall(r"https?://[^\s\"'<>\\]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<link|src=|@import|url\(|fetch\(|XMLHttpRequest", text)


FEW = ("bert", "gemma3", "lecture_block", "lstm_lm", "switch")
"""Recipes whose pages are looked through by `make test`."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*FEW, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in zoo_names() if name not in FEW)]
)
def test_pages_of_the_zoo_hold_every_level(name: str) -> None:
    """Each view leads to others that exist, and every level is there; each picture is the one that is drawn by itself, with what
    is opened there.
    """
    recipe = composer.load(name)
    html = recipe.draw().html()
    assert len(html.encode()) < 240_000
    data = data_of(html)
    assert {"overview", "block", "full"} <= set(data["views"])
    for key, view in data["views"].items():
        assert {*view["opens"].values(), *view["closes"].values()} <= set(data["views"])
        level, *opened = key.split("+")
        alone = recipe.draw(level)  # type: ignore[arg-type]  # a level
        svg = (alone.at(level, opened) if opened else alone).svg()  # type: ignore[arg-type]
        assert view["picture"] == svg
        edges = svg.count('<g class="edge')
        assert all(wire < edges for _, _, wires in view["links"] for wire in wires)
        assert all(path in facts(as_written(recipe.program)) for path in view["opens"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "title",
    [
        pytest.param(title, id=name, marks=() if name in ("markup", "quotes") else pytest.mark.exhaustive)
        for title, name in zip(HOSTILE, ("markup", "quotes", "right to left", "long"), strict=True)
    ],
)
def test_hostile_names_stay_text_in_the_page(title: str) -> None:
    """Two scripts, ours, whatever a name says."""
    figure = composer.load("gpt_mini").draw(title=title)
    data = data_of(figure.html())
    assert data["views"]["block"]["picture"] == figure.svg()
    assert printable(title)[:40] in unescape(figure.svg())


def test_facts_are_those_of_the_summary() -> None:
    """FLOPs per token of all top-level nodes sum to the model's; parameters are the model's where nothing is tied."""
    recipe = composer.load("llama3")
    told = facts(as_written(recipe.program))
    assert told[ATTENTION]["parameters"] == f"{4096 * 4096 * 2 + 2 * 4096 * 1024:,}"
    assert told[ATTENTION]["reads"] == "x: B × T × 4096, valid: B × T"
    assert told[ATTENTION]["weights"].startswith("q.weight 4096 × 4096; k.weight 1024 × 4096")
    assert told[f"{ATTENTION}.k"]["weights"] == "weight 1024 × 4096"
    # 2 FLOPs a weight, and 4 × 4096 for each of the (8192 + 1) / 2 keys that a query sees on average
    assert told[ATTENTION]["per token"] == f"{round((2 * 41_943_040 + 4 * 4096 * 8193 / 2) / 1e6)} MFLOPs"


def test_parameters_that_all_passes_share_are_told() -> None:
    """Those of ALBERT's one layer: four square maps with their biases, for its attention."""
    told = facts(as_written(composer.load("albert").program))
    assert told["layers.attn.body"]["parameters"] == f"{4 * (768 * 768 + 768):,}"


@needs_browser
def test_hover_tells_shapes_parameters_flops_and_marks_the_recipe(page: Any) -> None:
    """The tip is there while the mouse is, and the lines beside the picture are those of the block."""
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(page).move_to_element(find(page, f'[data-id="{ATTENTION}"]')).perform()
    said = find(page, "#tip").text
    assert find(page, "#tip").is_displayed()
    for part in ("Grouped-query attention", "B × T × 4096", "41,943,040", "MFLOPs", ATTENTION):
        assert part in said
    marked = [line.text for line in page.find_elements("css selector", ".recipe .marked")]
    assert "type: attention" in "\n".join(marked)
    assert "type: gated_ffn" not in "\n".join(marked)
    ActionChains(page).move_to_element(find(page, "header")).perform()
    assert not find(page, "#tip").is_displayed()
    assert not page.find_elements("css selector", ".recipe .marked")


@needs_browser
def test_click_follows_the_data(page: Any) -> None:
    """What lies before it, what comes after it, and what goes past it are told apart; what touches it is bold."""
    find(page, f'[data-id="{ATTENTION}"]').click()
    truth = Readers(composer.load("llama3").program, quiet=True).pairs
    before = {maker for maker, reader, _ in truth if reader == ATTENTION}
    assert {"layers.attn.norm"} <= before & paths(page, ".node.near.up")
    assert paths(page, ".node.near.down") == {"layers.attn.add"}
    assert {"embed", "tokens"} <= paths(page, ".node.up")
    assert {FEED_FORWARD, "head", "outputs/logits"} <= paths(page, ".node.down")
    assert ("layers", "layers.attn.add") in wires(page, ".edge.dim")
    assert (ATTENTION, "layers.attn.add") in wires(page, ".edge.near.down")
    assert paths(page, '#picture [aria-pressed="true"]') == {ATTENTION}
    keys(page, "\ue00c")
    assert not page.find_elements("css selector", "#picture .dim, #picture .up, #picture .chosen")


@needs_browser
def test_levels_open_and_close(page: Any) -> None:
    """By buttons, by signs in the picture, by keys and by double click; the path stays chosen."""
    find(page, "[data-level=overview]").click()
    assert "layers" in paths(page, ".node")
    find(page, "#picture [data-sign='open layers']").click()
    assert find(page, "[data-level=block]").get_attribute("aria-pressed") == "true"
    find(page, f"#picture [data-sign='open {ATTENTION}']").click()
    assert f"{ATTENTION}.q" in paths(page, ".node")
    assert f"{FEED_FORWARD}.up" not in paths(page, ".node")
    assert page.switch_to.active_element.get_attribute("data-id").startswith(ATTENTION)
    keys(page, "-")
    assert ATTENTION in paths(page, ".node")
    assert page.switch_to.active_element.get_attribute("data-id") == ATTENTION
    keys(page, "+")
    assert f"{ATTENTION}.q" in paths(page, ".node")
    find(page, "[data-level=full]").click()
    assert {f"{ATTENTION}.q", f"{FEED_FORWARD}.up"} <= paths(page, ".node")
    find(page, "[data-level=block]").click()
    find(page, "#picture [data-sign='close layers']").click()
    assert find(page, "[data-level=overview]").get_attribute("aria-pressed") == "true"


@needs_browser
def test_search_finds_by_title_and_path(page: Any) -> None:
    """The slash goes to the field, Enter to the next one found."""
    keys(page, "/")
    keys(page, "rope")
    assert find(page, "#hits").text == "1 found"
    assert len(paths(page, ".hit")) == 1
    keys(page, "\ue007")
    assert paths(page, ".chosen") == paths(page, ".hit")
    find(page, "#search").clear()
    find(page, "#search").send_keys("rmsnorm")
    assert find(page, "#hits").text == "3 found"


@needs_browser
def test_keyboard_walks_along_the_wires(page: Any) -> None:
    """Upwards with the data, down against it; Enter chooses; every block can be reached and says what it is."""
    page.execute_script("document.querySelector('[data-id=tokens]').focus()")
    keys(page, "\ue013")
    assert page.switch_to.active_element.get_attribute("data-id") == "embed"
    keys(page, "\ue007")
    assert paths(page, ".chosen") == {"embed"}
    keys(page, "\ue015")
    assert page.switch_to.active_element.get_attribute("data-id") == "tokens"
    nodes = page.find_elements("css selector", "#picture .node")
    assert all(node.get_attribute("tabindex") == "0" and node.get_attribute("role") == "button" for node in nodes)
    assert all(node.accessible_name for node in nodes)
    assert find(page, f'[data-id="{ATTENTION}"]').accessible_name.startswith("Grouped-query attention")


@needs_browser
def test_a_line_of_the_recipe_chooses_its_block(page: Any) -> None:
    """The innermost one that is written there."""
    line = next(line for line in page.find_elements("css selector", ".recipe li") if "type: gated_ffn" in line.text)
    line.click()
    assert paths(page, ".chosen") == {FEED_FORWARD}


@needs_browser
def test_dark_mode_changes_the_picture_and_the_page(page: Any) -> None:
    """And back again; text stays readable on its box."""
    box = f'[data-id="{ATTENTION}"] > .s'
    light = find(page, box).value_of_css_property("fill")
    find(page, "#theme").click()
    dark = find(page, box).value_of_css_property("fill")
    assert (light, dark) == ("rgb(169, 207, 255)", "rgb(0, 70, 107)")
    assert find(page, "body").value_of_css_property("background-color") == "rgba(13, 17, 23, 1)"
    assert find(page, f'[data-id="{ATTENTION}"] text').value_of_css_property("fill") == "rgb(243, 244, 246)"
    find(page, "#theme").click()
    assert find(page, box).value_of_css_property("fill") == light


@needs_browser
def test_implied_edges_are_shown_apart(page: Any) -> None:
    """Those that the recipe does not write: the head reads the norm above it, while attention is told which positions count."""
    dotted = {"head", "norm", "embed", "layers.attn.norm"}
    assert find(page, '[data-b="head"] > path').value_of_css_property("stroke-dasharray") == "none"
    find(page, "#implied").click()
    for path in dotted:
        assert find(page, f'[data-b="{path}"] > path').value_of_css_property("stroke-dasharray") != "none", path
    rope, past = '[data-a="layers.attn.body.positions"]', '[data-a="layers"][data-b="layers.attn.add"]'
    written = ('[data-b="outputs/logits"]', rope, past)
    for css in written:
        assert find(page, f"{css} > path").value_of_css_property("stroke-dasharray") == "none", css
    drawn = len(page.find_elements("css selector", ".edge"))
    counts = [int(count) for count in re.findall(r"\((\d+)", find(page, "#legend").text)]
    assert sum(counts) == drawn and counts[0] == len(page.find_elements("css selector", ".edge.implied"))
    find(page, "#implied").click()
    assert not find(page, "#legend").is_displayed()
    assert find(page, '[data-b="head"] > path').value_of_css_property("stroke-dasharray") == "none"


@needs_browser
def test_copy_gives_the_svg_that_is_shown(page: Any) -> None:
    """That of the level, byte by byte, as the command writes it."""
    page.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    find(page, "[data-level=overview]").click()
    find(page, "#copy").click()
    copied = page.execute_async_script("navigator.clipboard.readText().then(arguments[0], error => arguments[0](String(error)))")
    assert copied == composer.load("llama3").draw("overview").svg()


@needs_browser
def test_the_page_asks_the_network_for_nothing(page: Any) -> None:
    """One request: the page itself; and it complains of nothing."""
    page.get_log("performance")
    page.get_log("browser")
    page.refresh()
    find(page, "[data-level=full]").click()
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith("file:") or not url.endswith("llama3.html")] == []
    assert page.get_log("browser") == []


@needs_browser
def test_hostile_titles_run_nothing(chromium: Any, tmp_path: Path) -> None:
    """The heading reads as it was given."""
    composer.load("gpt2").draw(title=HOSTILE[0]).save(tmp_path / "a.html")
    visit(chromium, (tmp_path / "a.html"))
    assert chromium.title == " ".join(HOSTILE[0].split())
    assert HOSTILE[0] in [text.text for text in chromium.find_elements("css selector", "#picture svg > text")]


@needs_browser
def test_tab_goes_with_the_data_and_is_seen(page: Any) -> None:
    """From the buttons to the blocks, inputs first; each has a name, a role and a line around it while it has the focus."""
    visited = []
    while len(visited) < 9 and not (visited and visited[-1] == "layers.attn.add"):
        keys(page, "\ue004")
        focused = page.switch_to.active_element
        if path := focused.get_attribute("data-id"):
            visited.append(path)
            assert focused.value_of_css_property("outline-style") != "none", path
            assert focused.aria_role == "button" and focused.accessible_name, path
            assert find(page, "#tip").is_displayed() and path in find(page, "#tip").text
    flow = ("tokens", "embed", "layers.attn.norm", ATTENTION, "layers.attn.add")
    assert [path for path in visited if path in flow] == list(flow)


@needs_browser
def test_what_is_chosen_is_said(page: Any) -> None:
    """In a region that readers of screens follow; Enter lets go again."""
    assert find(page, "#about").get_attribute("aria-live") == "polite"
    page.execute_script("document.querySelector('[data-id=head]').focus()")
    keys(page, "\ue007")
    assert "LM head" in find(page, "#about").text and "525,336,576" in find(page, "#about").text
    assert page.switch_to.active_element.get_attribute("aria-pressed") == "true"
    keys(page, "\ue007")
    assert page.switch_to.active_element.get_attribute("aria-pressed") == "false"
    assert "Click a block" in find(page, "#about").text


@needs_browser
def test_picture_grows_and_fits(page: Any) -> None:
    """By buttons; a picture that is larger than its place can be scrolled."""
    svg = "#picture > svg"
    natural = find(page, svg).size["width"]
    for _ in range(4):
        find(page, "#larger").click()
    assert find(page, svg).size["width"] == pytest.approx(natural * 1.25**4, abs=2)
    assert page.execute_script("return picture.scrollHeight > picture.clientHeight")
    find(page, "#smaller").click()
    assert find(page, svg).size["width"] == pytest.approx(natural * 1.25**3, abs=2)
    find(page, "#fit").click()
    assert find(page, svg).size["width"] == natural


@needs_browser
def test_page_fits_a_phone(page: Any) -> None:
    """Nothing is wider than the window; the picture is above the recipe, and its texts are read."""
    screen = {"width": 400, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        page.refresh()
        assert page.execute_script("return document.documentElement.scrollWidth") <= 400
        assert find(page, "#picture").rect["y"] + find(page, "#picture").rect["height"] <= find(page, ".recipe").rect["y"]
        assert page.execute_script("return document.querySelector('#picture text').getBoundingClientRect().height") > 7
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@needs_browser
def test_page_is_printed_whole(page: Any) -> None:
    """The picture and all of the recipe, without buttons."""
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not find(page, "header").is_displayed()
        assert find(page, "#picture > svg").is_displayed()
        assert (
            page.execute_script("const list = document.querySelector('.recipe'); return list.scrollHeight - list.clientHeight")
            <= 0
        )
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@needs_browser
def test_copy_works_where_the_clipboard_is_kept_from_pages(page: Any) -> None:
    """By the command that browsers had before."""
    page.execute_script("""
      navigator.clipboard.writeText = () => Promise.reject(new Error("not allowed"));
      document.execCommand = command => { window.said = [command, document.activeElement.value]; return true; };
    """)
    find(page, "#copy").click()
    assert page.execute_script("return window.said") == ["copy", composer.load("llama3").draw().svg()]


@needs_browser
def test_the_first_theme_is_that_of_the_reader(chromium: Any, llama: Path, tmp_path: Path) -> None:
    """Unless the drawing was asked for in the dark."""
    for wish in ("light", "dark"):
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": wish}]})
        visit(chromium, llama)
        assert find(chromium, "html").get_attribute("data-theme") == wish
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "light"}]})
    composer.load("gpt2").draw(theme="dark").save(tmp_path / "dark.html")
    visit(chromium, (tmp_path / "dark.html"))
    assert find(chromium, "html").get_attribute("data-theme") == "dark"
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@needs_browser
def test_lines_of_other_files_are_shown(chromium: Any, tmp_path: Path) -> None:
    """A block that stands in a recipe which this one uses is marked there, and a line of that chooses it."""
    composer.load("captioner").draw().save(tmp_path / "captioner.html")
    visit(chromium, (tmp_path / "captioner.html"))
    find(chromium, '[data-id="encoder.layers.attn.body"]').click()
    own, used = chromium.find_elements("css selector", ".recipe")
    assert (own.accessible_name, used.accessible_name) == ("captioner.yaml", "vit.yaml")
    assert not own.find_elements("css selector", ".marked")
    (line,) = used.find_elements("css selector", ".marked")
    assert "body: {type: attention" in line.text
    assert re.search(r"vit\.yaml, line \d+", find(chromium, "#about").text)
    find(chromium, '[data-id="encoder.layers.ffn.body"]').click()
    line.click()
    assert paths(chromium, ".chosen") == {"encoder.layers.attn.body"}


def test_figures_on_one_page_keep_their_own_colors(chromium: Any, tmp_path: Path) -> None:
    """As in a notebook where the screen is dark: what follows it is dark, and a light one beside it stays light."""
    recipe = composer.load("gpt2")
    figures = [recipe.draw(theme=theme).svg() for theme in ("light", "auto", "dark")]
    path = tmp_path / "notebook.html"
    path.write_text("<!doctype html><meta charset=utf-8>" + "".join(f"<div>{svg}</div>" for svg in figures), encoding="utf-8")
    asked = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", asked)
    try:
        chromium.get((path).as_uri())
        boxes = chromium.find_elements("css selector", f'[data-id="{FEED_FORWARD}"] .s')
        assert [box.value_of_css_property("fill") for box in boxes] == [
            "rgb(189, 242, 204)",
            "rgb(22, 64, 41)",
            "rgb(22, 64, 41)",
        ]
        assert not chromium.find_elements("css selector", "svg [id]")  # which would have to be told apart
    finally:
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@needs_browser
def test_a_browser_without_decompression_says_so(chromium: Any, llama: Path, tmp_path: Path) -> None:
    """The first picture and the recipe are there all the same."""
    page = re.sub(
        r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", llama.read_text(encoding="utf-8")
    )  # it knows the script
    text = page.replace("<script>", "<script>delete window.DecompressionStream;", 1)
    (tmp_path / "old.html").write_text(text, encoding="utf-8")
    visit(chromium, tmp_path / "old.html")
    assert "DecompressionStream" in find(chromium, "#legend").text
    assert ATTENTION in paths(chromium, ".node")
    find(chromium, ".recipe li").click()
    assert chromium.get_log("browser") == []
