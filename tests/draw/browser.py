"""A page in a real Chromium, without a window, driven by ChromeDriver; and what it holds, read without a browser."""

from __future__ import annotations

import gzip
import json
import shutil
from base64 import b64decode
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="THE HTML PAGE IS NOT TESTED: no Chromium here (apt-get install chromium chromium-driver)"
)


def browser(folder: Path) -> Iterator[Any]:
    """Yield the browser, closed in the end; what its page complains of is kept."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000"):
        options.add_argument(word)
    options.add_argument(f"--user-data-dir={folder}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


# -- what is on the page


def visit(page: Any, path: Path) -> None:
    """Opens a page, and waits until its pictures are unpacked."""
    from selenium.webdriver.support.wait import WebDriverWait

    page.get(path.as_uri())
    WebDriverWait(page, 20).until(lambda page: not find(page, "main").get_property("inert"))


def find(page: Any, css: str) -> Any:
    return page.find_element("css selector", css)


def paths(page: Any, css: str) -> set[str]:
    """Return the paths of all that a selector finds."""
    return {one.get_attribute("data-id") for one in page.find_elements("css selector", css)}


def wires(page: Any, css: str) -> set[tuple[str, str]]:
    """Return both ends of all wires that a selector finds."""
    found = page.find_elements("css selector", css)
    return {(one.get_attribute("data-a"), one.get_attribute("data-b")) for one in found}


def keys(page: Any, *words: str) -> None:
    """Type keys where the focus is."""
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(page).send_keys(*words).perform()


# -- what a page is told


class Script(HTMLParser):
    """Finds the page's data as a browser would."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.text, self.scripts = False, "", 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = ("id", "data") in attrs
        self.scripts += tag == "script"

    def handle_data(self, data: str) -> None:
        self.text += data if self.inside else ""

    def handle_endtag(self, tag: str) -> None:
        self.inside = False


def data_of(html: str) -> Any:
    """Return the data in a page."""
    script = Script()
    script.feed(html)
    assert script.scripts == 2
    return json.loads(gzip.decompress(b64decode(json.loads(script.text)["packed"])))
