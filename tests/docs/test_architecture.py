"""docs/architecture.md names files, functions and declarations that there are, and leaves out none that it promises."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from blocks.core import Part, standard
from composer.graph.passes import PASSES
from tests.docs.pages import ROOT
from tests.docs.test_glossary import CELLS, declarations, packages
from tests.language import test_keys
from tests.package import test_requests

PAGE = ROOT / "docs" / "architecture.md"
TEXT = re.sub(r"^```.*?^```$", "", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
CODE = sorted({*re.findall(r"`([^`\n]+)`", TEXT)})
PATHS = [word for word in CODE if re.fullmatch(r"(blocks|composer|tests|docs|recipes)/[\w/.]*", word)]
FUNCTIONS = [word for word in CODE if re.fullmatch(r"[a-z]\w*(\.[a-z]\w*){2,}", word)]
TITLES = {
    "a mask": test_requests.test_a_mask,
    "a block with a cache": test_requests.test_a_cached_block,
    "FLOPs of a block": test_requests.test_flops_of_a_block,
    "an output format": test_requests.test_an_output_format,
    "an optimizer": test_requests.test_an_optimizer,
    "a task": test_requests.test_a_task,
    "a top-level key": test_keys.test_a_new_key_is_read_suggested_and_written,
    "the icon of a block": test_requests.test_an_icon,
    "more about a node on the HTML page": test_requests.test_what_a_page_says_of_a_node,
    "residual connections on the left": test_requests.test_residual_connections_on_the_left,
}
"""Each request of the page with the test that plants one."""


def rows(section: str) -> list[list[str]]:
    """Return the cells of the first table below a heading."""
    lines = TEXT.partition(f"\n## {section}\n")[2].partition("\n## ")[0].splitlines()
    return [[cell.strip() for cell in CELLS.split(line)[1:-1]] for line in lines if line.startswith("|")][2:]


@pytest.mark.parametrize("path", PATHS)
def test_every_file_that_is_named_is_there(path: str) -> None:
    """Folders end in a slash."""
    assert (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_that_is_named_is_there(function: str) -> None:
    """By its path inside the package."""
    module, _, name = function.rpartition(".")
    assert callable(getattr(import_module(f"composer.{module}"), name))


def test_what_is_checked_is_found() -> None:
    """The patterns above meet what they are for."""
    assert len(PATHS) > 40 and len(FUNCTIONS) > 8


def test_every_package_has_its_row() -> None:
    """In the table of packages."""
    named = {path for row in rows("Where things are") for path in re.findall(r"`([\w/]+/)`", row[0])}
    assert sorted(packages() - named) == []


def test_every_declaration_of_a_block_has_its_row() -> None:
    """In the table of the contract, and every row that names one names one that there is."""
    standard()  # families are declared beside their blocks
    named = {name for row in rows("The block contract") for name in re.findall(r"`(\w+)`", row[0])}
    assert sorted(declarations() - named - {"kind"}) == []
    below = {name for family in Part.__subclasses__() for part in (family, *family.__subclasses__()) for name in dir(part)}
    annotated = {
        name for part in Part.__subclasses__() for family in (part, *part.__subclasses__()) for name in family.__annotations__
    }
    assert sorted(named - {*dir(Part)} - below - annotated - {"Activation", "Expert", "Positions", "Router"}) == []


def test_each_request_is_tested_and_touches_few_files() -> None:
    """Three at most; the tables that the page tells to add a row to are in these files."""
    table = rows("Ten common changes")
    assert {row[0] for row in table} == TITLES.keys()
    for request, files, what in table:
        named = re.findall(r"`([\w/]+\.py)`", files)
        assert len(named) <= 3, request
        assert named or files.startswith(("a file of your own", "the block's file")), request
        texts = "".join((ROOT / file).read_text(encoding="utf-8") for file in named)
        assert [name for name in re.findall(r"`([A-Z]+_?[A-Z]+)`", what) if f"\n{name}: " not in texts] == [], request


def test_the_passes_of_the_page_are_those_that_run_in_their_order() -> None:
    """One table names them, and `check_causality` where it is called from."""
    table = TEXT.partition("| pass | what it does |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [each.__name__ for each in PASSES]
