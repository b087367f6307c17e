"""What a reader makes of the HTML page's picture: its size, its link, its colors, the files it is saved as."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import composer
from tests.draw.browser import find, needs_browser, paths, visit, wires
from tests.draw.test_page import ATTENTION, FEED_FORWARD

PHONE = {"width": 390, "height": 600, "deviceScaleFactor": 1, "mobile": True}
SAVED = """
  const done = arguments[0], made = URL.createObjectURL;
  HTMLAnchorElement.prototype.click = function () { window.called = this.download; };
  URL.createObjectURL = blob => { (window.blobs ??= []).push(blob); return made(blob); };
  document.getElementById("svg").onclick();
  document.getElementById("png").onclick().then(() => setTimeout(async () => {
    const picture = await createImageBitmap(window.blobs.at(-1));
    done([await window.blobs[0].text(), window.blobs.at(-1).type, picture.width, picture.height, window.called]);
  }, 200));
"""


@pytest.fixture(scope="module")
def page(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page of llama3, opened once, which complains of nothing."""
    path = tmp_path_factory.mktemp("look") / "llama3.html"
    composer.load("llama3").draw().save(path)
    visit(chromium, path)
    yield chromium
    assert not [one for one in chromium.get_log("browser") if one["level"] == "SEVERE"]


@pytest.fixture
def phone(page: Any) -> Iterator[None]:
    """The size and the screen of a phone."""
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    page.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    yield
    page.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    page.execute_script("resize(0)")


def areas(page: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Return where the picture is in the window, and the place that it has."""
    found = page.execute_script("return [drawing(), picture].map(one => one.getBoundingClientRect().toJSON())")
    return found[0], found[1]


def go(page: Any, link: str) -> None:
    """Open a link to a part of the page, which may be where it is already."""
    page.execute_async_script(
        "if (location.hash === arguments[0]) return arguments[1]();"
        "addEventListener('hashchange', () => arguments[1](), { once: true }); location.hash = arguments[0]",
        link,
    )


def touch(page: Any, points: list[tuple[float, float]], *, first: bool) -> None:
    """Put fingers on the picture, move them, or lift them all."""
    kind = "touchStart" if first else "touchMove" if points else "touchEnd"
    page.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})


@needs_browser
def test_all_fits_a_phone_and_two_fingers_enlarge_it(page: Any, phone: None) -> None:
    """What is between the fingers stays there; a map tells which part is seen, and moves it."""
    page.execute_script("resize(0)")
    drawn, place = areas(page)
    assert place["left"] <= drawn["left"] and drawn["right"] <= place["right"] <= PHONE["width"]
    assert place["top"] <= drawn["top"] and drawn["bottom"] <= place["bottom"] <= PHONE["height"]
    assert not find(page, "#map").is_displayed()
    x, y = drawn["left"] + drawn["width"] / 2, drawn["top"] + drawn["height"] / 3
    for apart in (20, 40, 60, None):
        touch(page, [] if apart is None else [(x - apart, y), (x + apart, y)], first=apart == 20)
    larger, _ = areas(page)
    assert larger["width"] == pytest.approx(3 * drawn["width"], rel=0.02)
    assert larger["top"] + larger["height"] / 3 == pytest.approx(y, abs=3)
    assert larger["left"] + larger["width"] / 2 == pytest.approx(x, abs=3)
    assert find(page, "#map").is_displayed()
    for down in (0, 40, 80, 120, None):
        touch(page, [] if down is None else [(x, y + down)], first=down == 0)
    assert areas(page)[0]["top"] > larger["top"] + 60
    box = page.execute_script("return map.getBoundingClientRect().toJSON()")
    corner = {"clientX": box["left"] + 1, "clientY": box["top"] + 1, "buttons": 1}
    page.execute_script(
        "map.setPointerCapture = () => {}; map.dispatchEvent(new PointerEvent('pointerdown', arguments[0]))", corner
    )
    assert page.execute_script("return [picture.scrollLeft, picture.scrollTop]") == [0, 0]


@needs_browser
def test_a_mouse_drags_what_is_larger_than_its_place(page: Any) -> None:
    """And chooses nothing by that, even if it lets go on a block."""
    from selenium.webdriver.common.action_chains import ActionChains

    page.execute_script("grow(3); choose(-1)")
    block = find(page, f'[data-id="{FEED_FORWARD}"]')
    ActionChains(page).move_to_element(block).perform()
    before = areas(page)[0]
    ActionChains(page).click_and_hold().move_by_offset(20, 30).move_by_offset(20, 30).release().perform()
    after = areas(page)[0]
    assert after["top"] - before["top"] == pytest.approx(60, abs=2)
    assert not paths(page, ".chosen")
    page.execute_script("resize(0)")
    block.click()
    assert paths(page, ".chosen") == {FEED_FORWARD}


@needs_browser
def test_a_link_leads_to_every_block_and_level(page: Any) -> None:
    """The address is that of what is seen, and opening it shows that again; of a block that is gone, what held it."""
    page.execute_script("show('full'); choose(view.nodes.indexOf(arguments[0]))", f"{ATTENTION}.q")
    address = page.current_url
    assert address.endswith(f"#full/{ATTENTION}.q")
    go(page, "#overview")
    assert page.current_url.endswith("#overview") and not paths(page, ".chosen")
    visit(page, Path(re.sub("#.*|file://", "", address)))
    assert find(page, "[data-level=block]").get_attribute("aria-pressed") == "true"
    page.get(address)
    assert paths(page, ".chosen") == {f"{ATTENTION}.q"}
    go(page, f"#block+{ATTENTION}/{ATTENTION}.nothing?color=params&shapes=false&highlight=layers.ffn")
    (chosen,) = paths(page, ".chosen")
    assert chosen.startswith(ATTENTION)
    assert find(page, "#color").get_property("value") == "params"
    assert paths(page, ".faded.node") >= {"head", "embed"} and FEED_FORWARD not in paths(page, ".faded")
    assert "4096" not in "".join(text.text for text in page.find_elements("css selector", ".shape"))
    go(page, "#somewhere/nothing")
    assert "no block" in find(page, "#hits").text


@needs_browser
def test_colors_and_what_is_left_out_are_those_of_the_figure_sheet(page: Any, tmp_path: Path) -> None:
    """The same shades as in the figure; copied as a sheet they make it; what is saved is what is seen."""
    look = "#block?color=flops&params=false&optional_inputs=false&highlight=layers.ffn"
    go(page, look)
    figure = composer.load("llama3").draw(color="flops").scene
    shades = {box.about.path: box.shade for box in figure.boxes if box.shade is not None}
    assert all(paths(page, f".node.shade{step}") == {path for path, own in shades.items() if own == step} for step in range(5))
    assert "share of the FLOPs" in find(page, "#legend").text
    assert not find(page, ".reference").is_displayed()
    page.execute_script("document.getElementById('figure').open = true")
    find(page, "#highlight").send_keys(", outputs/logits")  # a slash elsewhere goes to the search
    assert paths(page, ".node:not(.faded)") == {"layers.ffn.norm", FEED_FORWARD, "layers.ffn.add", "outputs/logits"}
    go(page, look)
    page.execute_script(
        "navigator.clipboard.writeText = async text => { window.copied = text; }; document.getElementById('sheet').click()"
    )
    sheet = page.execute_script("return window.copied")
    (tmp_path / "sheet.yaml").write_text(sheet, encoding="utf-8")
    again = composer.load("llama3").draw(sheet=tmp_path / "sheet.yaml")
    assert re.findall(r"^\w+", sheet, re.MULTILINE) == ["level", "color", "params", "optional_inputs", "highlight"]
    assert (again.color, again.highlight) == ("flops", ("layers.ffn",))
    assert not any(text.role == "params" for box in again.scene.boxes for text in box.texts)
    page.execute_script("dress(true)")
    svg, kind, wide, high, name = page.execute_async_script(SAVED)
    assert (kind, wide, high) == ("image/png", 2 * figure.width, 2 * figure.height)
    assert name == "Llama-3-8B-block.png"
    assert 'class="paper"' in svg and re.search(r'class="paper"[^>]*fill="#0D1117"', svg)
    assert ">525 M<" not in svg and ">valid" not in svg and "sign" not in svg
    assert re.search(r'data-id="head"[^>]*opacity="0.35"', svg)
    assert find(page, '[data-id="head"] > .s').value_of_css_property("fill") != "rgb(251, 214, 147)"
    page.execute_script("dress(false)")


@needs_browser
@pytest.mark.parametrize("hidden", [["layers.attn.norm", "layers.ffn"], [ATTENTION, "head"], ["norm"], ["layers.attn"]], ids=str)
def test_what_is_hidden_is_what_a_sheet_hides(hidden: list[str], page: Any, tmp_path: Path) -> None:
    """The same blocks stay, what read a hidden one reads what that read, the link keeps it, and the sheet says it."""
    go(page, f"#block?hide={','.join(hidden)}")
    assert page.current_url.endswith(f"#block?hide={','.join(hidden)}")
    page.execute_script(
        "navigator.clipboard.writeText = async text => { window.copied = text; }; document.getElementById('sheet').click()"
    )
    (tmp_path / "sheet.yaml").write_text(page.execute_script("return window.copied"), encoding="utf-8")
    scene = composer.load("llama3").draw(sheet=tmp_path / "sheet.yaml").scene
    assert paths(page, ".node:not(.gone)") == {thing.about.path for thing in (*scene.boxes, *scene.merges)}
    joined = wires(page, ".bridge")
    assert joined and joined <= {(wire.source, wire.target) for wire in scene.wires}
    count = re.search(r"(\d+) nodes? not drawn", " ".join(text.text for text in scene.texts))
    assert count and f"{count[1]} block" in find(page, "#legend").text
    go(page, "#overview")
    assert not paths(page, ".gone") and "not drawn" not in find(page, "#legend").text


@needs_browser
def test_what_cannot_be_hidden_is_told(page: Any) -> None:
    """As for a sheet: a sum of two streams, what computes from nothing, and what is not there."""
    go(page, "#block?hide=layers.ffn.add,tokens,nothing")
    said = find(page, "#hits").text
    assert "without layers.ffn.add, its readers would read several values" in said
    assert "nothing flows through tokens" in said and "no block nothing" in said and not paths(page, ".gone")
    go(page, "#overview")
    assert find(page, "#hits").text == ""


@needs_browser
def test_what_is_merged_is_what_a_sheet_merges(page: Any, tmp_path: Path) -> None:
    """One box over the same blocks, the others stay, the link keeps it, and the sheet says it."""
    link = "#block?merge=MLP=layers.ffn;End=norm,head"
    go(page, link)
    assert page.current_url.endswith(link) and find(page, "#hits").text == ""
    page.execute_script(
        "navigator.clipboard.writeText = async text => { window.copied = text; }; document.getElementById('sheet').click()"
    )
    (tmp_path / "sheet.yaml").write_text(page.execute_script("return window.copied"), encoding="utf-8")
    scene = composer.load("llama3").draw(sheet=tmp_path / "sheet.yaml").scene
    boxes = {box.texts[0].text: {box.about.path, *box.about.covers} for box in scene.boxes if box.about.merged}
    drawn = page.execute_script(
        "return [...picture.querySelectorAll('.merged')].map(one =>"
        " [[...one.querySelectorAll('text')].map(text => text.textContent), one.dataset.merged.split(' ')])"
    )
    assert {texts[0]: {*inside} for texts, inside in drawn} == boxes and set(boxes) == {"MLP", "End"}
    counts = {box.texts[0].text: next(t.text for t in box.texts if t.role == "params") for box in scene.boxes if box.about.merged}
    assert dict(texts for texts, _ in drawn) == counts
    apart = {thing.about.path for thing in (*scene.boxes, *scene.merges)} - set().union(*boxes.values())
    assert paths(page, ".node:not(.within)") == apart
    go(page, "#block?merge=All=embed,norm;Far=layers.ffn,norm;No=nothing")
    said = find(page, "#hits").text
    assert "stands between the blocks of All" in said and "no block nothing" in said and not paths(page, ".within")
    assert "the blocks of Far do not stand in the same frame" in said
    go(page, "#block")
    assert not paths(page, ".merged, .within")


@needs_browser
def test_a_dark_page_is_printed_in_light(page: Any) -> None:
    """Paper is white."""
    go(page, "#block")
    page.execute_script("dress(true)")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert find(page, f'[data-id="{ATTENTION}"] > .s').value_of_css_property("fill") == "rgb(169, 207, 255)"
        assert find(page, "body").value_of_css_property("background-color") == "rgba(255, 255, 255, 1)"
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        page.execute_script("dress(false)")
