"""docs/one-model.md: its picture, its recipe and its code are one model."""

from __future__ import annotations

import re

import composer
from composer.package_data import zoo
from tests.docs.pages import ROOT, examples

PAGE = ROOT / "docs" / "one-model.md"
RECIPE = composer.load("lecture_block")
PICTURE = next(example.text for example in examples(PAGE) if example.language == "text")


def drawn(picture: str) -> dict[str, list[str]]:
    """Return what each name of the picture reads: the one above it, and at a ⊕ what left on the side before."""
    reads: dict[str, list[str]] = {}
    above, aside = "", ""
    for line in picture.splitlines():
        if name := re.match(r"\w+", line):
            reads[name[0]] = [aside, above] if "⊕─┘" in line else [above]
            above = name[0]
        elif "├" in line:
            aside = above
    return {name: edges for name, edges in reads.items() if edges != [""]}


def test_the_picture_has_the_nodes_and_the_edges_of_the_recipe() -> None:
    """In the order of the file, which begins with the input."""
    graph = RECIPE.program.untyped.graph
    wired = {node.name: [str(ref.node) for wire in node.wires for ref in wire.refs] for node in graph.nodes}
    assert drawn(PICTURE) == wired
    assert list(drawn(PICTURE)) == [node.name for node in RECIPE.program.root.nodes]


def test_every_line_of_the_table_is_one_of_the_recipe_with_its_lines_of_code() -> None:
    """The code that comes from a line of the recipe says so at its end, and all of it stands in the table."""
    recipe = (zoo() / "lecture_block.yaml").read_text(encoding="utf-8").splitlines()
    code = re.findall(r"^ *(.*?)  # lecture_block\.yaml:(\d+)$", RECIPE.export(), re.MULTILINE)
    rows = re.findall(r"^\| [^`|]+ \| `([^`]+)` \| (`.*`) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [line for line, _ in rows] == [line.strip() for line in recipe if re.match(r"  \w+:", line) and named(line)]
    for line, written in rows:
        number = str(recipe.index(f"  {line}") + 1)
        assert re.findall(r"`([^`]+)`", written) == [statement for statement, at in code if at == number]


def named(line: str) -> bool:
    """Return whether a line of the recipe is that of a node."""
    return line.strip().partition(":")[0] in {node.name for node in RECIPE.program.root.nodes}
