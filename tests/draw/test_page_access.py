"""The HTML page as axe judges it, which knows the rules of accessible pages (WCAG) that a program can check."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import composer
from tests.draw.browser import find, needs_browser, visit
from tests.draw.test_page_look import PHONE

AXE = os.environ.get("AXE_CORE", "")
needs_axe = pytest.mark.skipif(
    not AXE, reason="ACCESSIBILITY IS NOT JUDGED: AXE_CORE names no axe.min.js (npm pack axe-core, which has it)"
)
RUN = """
  const done = arguments[0], told = one => [one.id, one.nodes.length, one.nodes[0].html];
  axe.run().then(found => done(found.violations.map(told)));
"""


def violations(page: Any) -> list[Any]:
    """Return what axe finds on a page as it is seen."""
    page.execute_script(Path(AXE).read_text(encoding="utf-8"))
    found: list[Any] = page.execute_async_script(RUN)
    return found


def gpt2() -> Any:
    """The page of a model."""
    return composer.load("gpt2").draw()


def wide() -> Any:
    """That of a model whose stream runs to the right, with layers of two kinds."""
    return composer.load("gemma3").draw(direction="right", color="params", legend=True)


@needs_axe
@needs_browser
@pytest.mark.parametrize("drawn", [gpt2, wide])
def test_axe_finds_nothing(drawn: Callable[[], Any], chromium: Any, tmp_path: Path) -> None:
    """In light and in dark, with a block chosen, the options open, at every level, on a phone."""
    drawn().save(tmp_path / "page.html")
    visit(chromium, tmp_path / "page.html")
    assert violations(chromium) == []
    chromium.execute_script("dress(true); choose(3); document.getElementById('figure').open = true")
    assert violations(chromium) == []
    for level in ("overview", "full"):
        find(chromium, f"[data-level={level}]").click()
        assert violations(chromium) == []
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    found = violations(chromium)
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert found == []
