"""Every command, every line of Python and every link of the pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, examples
from tests.docs.sessions import Session, agree

RUN = [page for page in PAGES if any(example.language in ("console", "pycon") for example in examples(page))]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_outputs_are_those_that_are_shown(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page read from top to bottom in an empty folder does what it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    session = Session()
    for example in examples(page):
        for run in session.run(example):
            assert run.agrees, f"{example}: {run.written}\n--- is shown\n{run.shown}\n--- came\n{run.came}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Files exist, and so do the headings that links name in them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not link.startswith(("http://", "https://")):
            name, _, heading = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            assert target.exists(), f"{page.name}: {link}"
            assert not heading or heading in headings(target), f"{page.name}: {link}"


def headings(page: Path) -> set[str]:
    """Return the anchors that GitHub gives a page's headings."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_make_has_every_target_that_a_page_names() -> None:
    """`make demo` and its kin."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {target for page in PAGES for target in re.findall(r"\bmake ([a-z-]+)(?=[\s`])", _code(page))}
    assert {"demo", "test"} <= named
    assert {target for target in named if not re.search(rf"^{target}:", makefile, re.MULTILINE)} == set()


def _code(page: Path) -> str:
    """Return what a page writes as code: its blocks, and what stands between single backquotes."""
    text = page.read_text(encoding="utf-8")
    return "\n".join([*(example.text for example in examples(page)), *re.findall(r"`[^`\n]+`", text)])


@pytest.mark.parametrize(
    ("shown", "came", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a\nb", "a\nc\n", False),
        ("loss … at the end", "loss 1.25 at the end", True),
        ("loss … at the end", "loss 1.25\nat the end", False),
        ("a\n…\nd", "a\nb\nc\nd", True),
        ("a\n…\nd", "a\nd", True),
        ("a", "a\nb", False),
        ("", "a", False),
        ("1.5", "125", False),
    ],
)
def test_outputs_are_compared_line_by_line(shown: str, came: str, same: bool) -> None:
    """The comparison itself, which must be able to fail."""
    assert agree(shown, came) == same
