"""The threat model: each of its lines names tests, and all of these exist."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
KINDS = {
    *("Recipes", "Names and texts", "Pictures and pages", "Repositories", "Checkpoints and configurations", "Run folders"),
    *("Prompt caches", "Tokenizers and texts"),
}


def rows() -> dict[str, list[str]]:
    """Return the lines of each table, by its heading."""
    found: dict[str, list[str]] = {}
    for section in PAGE.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        lines = [line for line in text.split("\n") if line.startswith("|")]
        if lines:
            found[title] = lines[2:]
    return found


def test_every_line_names_a_test() -> None:
    """Of every kind of file."""
    assert rows().keys() == KINDS
    for title, lines in rows().items():
        assert len(lines) >= 2, title
        for line in lines:
            claim, shown = line.strip("|").split("|")
            assert claim.strip() and TEST.search(shown), line
            assert TEST.sub("", shown).strip(" ,") == "", line


@pytest.mark.parametrize(("file", "name"), sorted({*TEST.findall(PAGE)}))
def test_every_test_that_is_named_exists(file: str, name: str) -> None:
    """And is one that runs: a function of its file, which no mark leaves out everywhere."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert name in functions
    marks = [ast.unparse(decorator) for decorator in functions[name].decorator_list]
    assert not any(mark.startswith(("pytest.mark.skip(", "pytest.mark.xfail")) for mark in marks)


def test_the_page_is_found() -> None:
    """On the site, from the README, and from the policy at the root; the policy gives no address that could go stale."""
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "docs/threat-model.md" in policy and "docs/threat-model.md" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "SECURITY.md" in PAGE and "SECURITY.md" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "threat-model.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert not re.search(r"\S+@\S+\.\w+|https?://", policy)
    assert "`--blocks FILE.py`" in policy and "executed" in policy
