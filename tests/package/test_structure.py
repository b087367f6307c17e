"""The floor plan: folders that one overlooks, imports without circles, names of types that mean one thing each, and a front half
in which what a function depends on is among its arguments.
"""

import ast
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

from blocks.core import standard

ROOT = Path(__file__).parents[2]
MAX_FILES = 20
"""Modules in a folder, the package's own file not counted."""
FRONT_HALF = ("diagnostics", "language", "graph", "cost", "diff", "draw")
SEEN_THROUGH = {"composer.graph.passes.resolve": "tests/graph/test_passes.py"}
"""Packages that unit tests reach by what is written in recipes alone, each with such a test."""


def modules() -> dict[str, Path]:
    """Every module of both packages by its dotted name."""
    files = [file for package in ("blocks", "composer") for file in (ROOT / package).rglob("*.py")]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


def imported(module: str, file: Path, known: set[str]) -> Iterator[str]:
    """The modules that a file imports anywhere: at its top, inside of functions, and for types alone."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module=str(source), names=names):
                for name in names:
                    inner = f"{source}.{name.name}"
                    yield inner if inner in known else source
            case ast.Import(names=names):
                yield from (name.name for name in names)


def test_no_import_goes_in_a_circle_not_even_for_types() -> None:
    """A chapter can be read once those that it names have been read."""
    files = modules()
    graph = nx.DiGraph(
        (module, target)
        for module, file in files.items()
        for target in imported(module, file, set(files))
        if target in files and target != module
    )
    circles = {
        tuple(sorted({".".join(module.split(".")[:2]) for module in found}))
        for found in nx.strongly_connected_components(graph)
        if len(found) > 1
    }
    assert circles == set()


def test_no_public_type_has_the_name_of_another() -> None:
    """Of two classes or aliases called alike a reader never knows which is meant."""
    homes = defaultdict(list)
    for module, file in modules().items():
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            match node:
                case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                    if not name.startswith("_"):
                        homes[name].append(module)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_no_folder_holds_more_than_one_overlooks() -> None:
    """A folder with more files than this has parts that want names."""
    count = Counter(file.parent for file in modules().values() if file.name != "__init__.py")
    assert {str(folder.relative_to(ROOT)): n for folder, n in count.items() if n > MAX_FILES} == {}


def restored(tree: ast.Module) -> set[str]:
    """The attributes that a function sets for the calls in it and restores, and context variables."""
    found = {"ContextVar" for node in ast.walk(tree) if isinstance(node, ast.Call) and "ContextVar" in ast.unparse(node.func)}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= _put_back(function) | _counted_up_and_down(function) | _set_at_the_end(function)
            if any("contextmanager" in ast.unparse(decorator) for decorator in function.decorator_list):
                found |= set(_stored(function))
    return found


def _stored(tree: ast.AST) -> Iterator[str]:
    """The attributes that are assigned anywhere below."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return map(ast.unparse, nodes)


def _assignments(function: ast.AST) -> Iterator[tuple[str, str]]:
    """Each target with its value, pair by pair where several are assigned at once."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                match target, node.value:
                    case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                        yield from zip(map(ast.unparse, targets), map(ast.unparse, values), strict=True)
                    case _:
                        yield ast.unparse(target), ast.unparse(node.value)


def _put_back(function: ast.AST) -> set[str]:
    """The attributes that are kept under a local name and assigned from it again."""
    pairs = set(_assignments(function))
    return {name for name in _stored(function) if any((local, name) in pairs for local in (v for n, v in pairs if n == name))}


def _counted_up_and_down(function: ast.AST) -> set[str]:
    """The attributes that are increased and decreased by the same."""
    steps = [node for node in ast.walk(function) if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute)]
    up, down = (
        {(ast.unparse(step.target), ast.unparse(step.value)) for step in steps if isinstance(step.op, operator)}
        for operator in (ast.Add, ast.Sub)
    )
    return {name for name, _ in up & down}


def _set_at_the_end(function: ast.AST) -> set[str]:
    """The attributes that are assigned in a `finally`."""
    ends = (end for node in ast.walk(function) if isinstance(node, ast.Try) for end in node.finalbody)
    return {name for end in ends for name in _stored(end)}


def test_no_attribute_of_the_front_half_is_set_for_a_call_and_restored() -> None:
    """Nor is there a context variable: what a function depends on is among its arguments, and thus in the keys of memos."""
    found = {
        (module, name)
        for module, file in modules().items()
        if module.startswith(tuple(f"composer.{package}." for package in FRONT_HALF))
        for name in restored(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert found == set()


@pytest.mark.parametrize(
    "body",
    [
        "before = self.x.y\n    self.x.y = new\n    call()\n    self.x.y = before",
        "before, self.x.y = self.x.y, new\n    call()\n    self.x.y = before",
        "self.x.y = new\n    try:\n        call()\n    finally:\n        self.x.y = None",
        "self.x.y += 1\n    call()\n    self.x.y -= 1",
    ],
)
def test_each_way_to_restore_an_attribute_is_found(body: str) -> None:
    """By a local name, one by one or as a pair, in a `finally`, or by counting."""
    assert restored(ast.parse(f"def work(self, new):\n    {body}")) == {"self.x.y"}


def test_context_variables_and_context_managers_that_set_an_attribute_are_found() -> None:
    """The other two ways."""
    assert restored(ast.parse("place = contextvars.ContextVar('place')")) == {"ContextVar"}
    assert restored(ast.parse("@contextmanager\ndef within(self, new):\n    self.x = new\n    yield")) == {"self.x"}


def test_an_attribute_that_a_function_counts_or_sets_is_not_found() -> None:
    """Where nothing is restored."""
    assert (
        restored(ast.parse("def work(self):\n    self.count += 1\n    place = self.place\n    self.place = place + 1")) == set()
    )


@pytest.mark.exhaustive
def test_every_package_has_unit_tests_among_the_fast_ones() -> None:
    """A file with a test that `make fast` runs imports something of it; what a block is, recipes reach by its name."""
    words = ["--collect-only", "-q", "-m", "not slow and not exhaustive", "-p", "no:cacheprovider"]
    run = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    fast = {line.partition("::")[0] for line in run.stdout.splitlines() if "::" in line}
    known = modules()
    reached = {module for file in fast for module in imported(file, ROOT / file, set(known))}
    packages = {name for name, file in known.items() if file.name == "__init__.py" and name.startswith("composer")}
    tested = {name for name in packages if any(module == name or module.startswith(f"{name}.") for module in reached)}
    assert packages - tested == SEEN_THROUGH.keys()
    assert fast >= {*SEEN_THROUGH.values()}


def named_kinds(tree: ast.AST) -> set[str]:
    """The kinds of blocks with which a `kind` is compared."""
    found: set[str] = set()
    for node in ast.walk(tree):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        if any(isinstance(side, ast.Attribute) and side.attr == "kind" for side in sides):
            words = [each.value for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)]
            found |= {word for word in words if isinstance(word, str)} & {*standard()}
    return found


def test_composer_knows_no_block_by_its_name() -> None:
    """What a stage must know of a block is declared by its class, so that a block of one's own can say it too."""
    assert named_kinds(ast.parse("block.part.kind in ('gru', 'other')")) == {"gru"}
    files = {name: file for name, file in modules().items() if name.startswith("composer.")}
    found = {name: kinds for name, file in files.items() if (kinds := named_kinds(ast.parse(file.read_text(encoding="utf-8"))))}
    assert found == {}
