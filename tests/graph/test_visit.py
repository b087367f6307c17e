"""Traversals: only one module takes nodes apart, and whoever must know a kind of node is found by the type checker."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import composer
from composer.graph.anatomy import TYPED
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode
from composer.graph.visit import Fold, Inside, Map, every_pass, owned, walk

ROOT = Path(__file__).parents[2]
KINDS = {"TypedBlock", "TypedGroup", "TypedRepeat", "TypedScan", "BlockNode", "GroupNode", "RepeatNode", "ScanNode"}
KNOWS_EACH_KIND = {
    "composer/cost/budget.py",
    "composer/cost/flops.py",
    "composer/cost/summarize.py",
    "composer/diff/flatten.py",
    "composer/draw/build/texts/descriptions.py",
    "composer/draw/build/diagram_builder.py",
    "composer/draw/export/node_facts.py",
    "composer/graph/anatomy.py",
    "composer/graph/describe.py",
    "composer/graph/networkx_view.py",
    "composer/graph/passes/check_causality.py",
    "composer/graph/passes/unite_passes.py",
    "composer/graph/passes/infer/infer.py",
    "composer/graph/passes/roll_layers/node_kinds.py",
    "composer/graph/row_mixing.py",
    "composer/graph/unparse/expanded_recipe.py",
    "composer/lower/emit/constructors.py",
    "composer/lower/emit/forward.py",
    "composer/lower/emit/skeletons.py",
    "composer/lower/passes/cache_layout.py",
    "composer/lower/passes/fixed_nodes.py",
    "composer/lower/passes/hoist.py",
    "composer/lower/passes/node_queries.py",
}
"""What a new kind of node has to be told to: the types that it has, its cost, its words, and the code that it becomes."""
INTERPRETERS = {
    "composer/diff/flatten.py",
    "composer/draw/build/diagram_builder.py",
    "composer/draw/build/simpler/polynomials.py",
    "composer/draw/details/dilations.py",
    "composer/graph/networkx_view.py",
    "composer/graph/passes/infer/infer.py",
    "composer/graph/row_mixing.py",
    "composer/graph/unparse/expanded_recipe.py",
    "composer/lower/emit/constructors.py",
    "composer/lower/emit/skeletons.py",
    "composer/lower/passes/cache_layout.py",
    "composer/lower/passes/fixed_nodes.py",
    "composer/train/growing/new_passes.py",
    "composer/draw/steps.py",
    "composer/train/growing/pairs.py",
}
"""What runs a graph with something else than tensors: values go along the wires, and each kind hands them on in its own way. The
last two go through a graph and something else at once: the frames of its drawing, or a smaller model.
"""
RECIPE = """\
recipe: nested
language: 1
inputs:
  x: float[batch, time, 8]
graph:
  first:
    graph:
      norm: rmsnorm
      gone: {type: rmsnorm, when: false}
  layers:
    repeat: 3
    graph:
      ffn: {type: ffn, hidden: 16}
  shared:
    repeat: 2
    share: true
    graph:
      norm: layernorm
outputs: {y: shared}
"""


# -- walk, fold and map


@pytest.fixture(scope="module")
def root() -> TypedGraph:
    """A graph with graphs of several kinds."""
    return composer.load(RECIPE).program.root


def test_walk_has_the_names_of_the_state_dict(root: TypedGraph) -> None:
    """From the outside in and in order; passes with one set of weights are one place."""
    paths = [visit.path for visit in walk(root, owned)]
    assert [path for path in paths if path.count(".") < 3 and not path.endswith("activation")] == [
        "first",
        "first.norm",
        "layers",
        "layers.0.ffn",
        "layers.1.ffn",
        "layers.2.ffn",
        "shared",
        "shared.norm",
    ]


def test_walk_over_every_pass_and_over_each_graph_once(root: TypedGraph) -> None:
    """Equal passes are one graph."""
    assert sum(isinstance(visit.node, TypedBlock) and visit.graph is not None for visit in walk(root, every_pass)) == 6
    assert sum(isinstance(visit.node, TypedBlock) and visit.graph is not None for visit in walk(root, every_pass, once=True)) == 3


def test_walk_tells_what_is_around(root: TypedGraph) -> None:
    """The nearest first."""
    visit = next(visit for visit in walk(root) if visit.path == "layers.1.ffn")
    assert [each.path for each in visit.around] == ["layers.1.ffn", "layers"]
    assert visit.region is not None
    assert visit.region.number == 1


def test_fold_looks_at_equal_graphs_once(root: TypedGraph) -> None:
    """And knows of how many passes and of which places a value is."""
    seen: list[str] = []

    def blocks(node: TypedNode, inside: Inside[TypedGraph, int, int]) -> int:
        seen.extend(inside.places)
        return sum(inside.passes()) if inside.regions else 1

    assert Fold(TYPED, blocks, lambda _, found: sum(found)).graph(root, ("",)) == 6
    assert [place for place in seen if place.endswith("ffn")] == ["layers.0.ffn", "layers.1.ffn", "layers.2.ffn"]


def test_map_keeps_what_does_not_change(root: TypedGraph) -> None:
    """And rewrites equal graphs to one."""
    assert Map(lambda graph: graph).graph(root) is root
    graphs: list[TypedGraph] = []
    Map(lambda graph: graphs.append(graph) or graph).graph(root)
    assert len(graphs) == 4


# -- who takes nodes apart


def recursive(path: Path) -> set[str]:
    """Return the functions of a module that tell kinds of nodes apart and come back to themselves."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    methods = [node for each in tree.body if isinstance(each, ast.ClassDef) for node in each.body]
    functions: dict[str, list[ast.FunctionDef]] = {}
    for prefix, nodes in (("", tree.body), (".", methods)):
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(prefix + node.name, []).append(node)
    calls = {name: {found for one in several for found in called(one)} & functions.keys() for name, several in functions.items()}
    return {name for name, several in functions.items() if any(map(tells_apart, several)) and name in reached(name, calls)}


def called(function: ast.FunctionDef) -> Iterator[str]:
    """Yield functions that a function mentions: the module's by name, its own object's methods with a dot."""
    given = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name) if name not in given:
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                yield f".{name}"


def reached(start: str, calls: dict[str, set[str]]) -> set[str]:
    """Return all that is called on the way from a function."""
    found: set[str] = set()
    waiting = [*calls[start]]
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += calls[name]
    return found


def tells_apart(function: ast.FunctionDef) -> bool:
    """Return whether a function asks of a node what kind it is."""
    for node in ast.walk(function):
        match node:
            case ast.MatchClass(cls=ast.Name(id=name)) if name in KINDS:
                return True
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                if any(isinstance(each, ast.Name) and each.id in KINDS for each in ast.walk(kinds)):
                    return True
    return False


def test_nodes_are_taken_apart_in_one_place() -> None:
    """Whoever wants what is inside of a node walks, folds or maps; but for what interprets a graph."""
    found = {path.relative_to(ROOT).as_posix(): names for path in (ROOT / "composer").rglob("*.py") if (names := recursive(path))}
    assert found.keys() == INTERPRETERS


FIFTH = {
    "ir.py": """

@dataclass(frozen=True, slots=True)
class FifthNode:
    name: str
    wires: tuple[Wire, ...]
    ties: tuple[Tie, ...]
    trainable: bool
    span: Span
    name_span: Span


Node: TypeAlias = BlockNode | GroupNode | RepeatNode | ScanNode | FifthNode
""",
    "typed.py": """

@dataclass(frozen=True, slots=True, eq=False)
class TypedFifth:
    node: FifthNode
    name: str
    outputs: PortTypes


TypedNode: TypeAlias = TypedBlock | TypedGroup | TypedRepeat | TypedScan | TypedFifth
""",
}


@pytest.mark.exhaustive
def test_a_fifth_kind_of_node_is_reported_wherever_a_kind_must_be_known(tmp_path: Path) -> None:
    """The type checker names each of the places, and no other."""
    for package in ("composer", "blocks"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, kind in FIFTH.items():
        path = tmp_path / "composer" / "graph" / name
        text = re.sub(
            r"(\nfrom composer\.graph\.ir import .*)BlockNode,", r"\1BlockNode, FifthNode,", path.read_text(encoding="utf-8")
        )
        planted, count = re.subn(r"\n\n(Typed)?Node: TypeAlias = .*\n", lambda _, kind=kind: kind, text)
        assert count == 1
        path.write_text(planted, encoding="utf-8")
    run = subprocess.run([sys.executable, "-m", "mypy", "composer"], cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = {line.partition(":")[0] for line in run.stdout.splitlines() if ": error:" in line}
    assert errors == KNOWS_EACH_KIND, run.stdout


def test_the_places_that_know_each_kind_are_documented() -> None:
    """By their names, on the page on the architecture."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert not [path for path in KNOWS_EACH_KIND if f"{path.rpartition('/')[2]}`" not in page]
