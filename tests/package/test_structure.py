"""The floor plan: folders that one overlooks, imports without circles, names of types that mean one thing each."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).parents[2]
MAX_FILES = 20
"""Modules in a folder, the package's own file not counted."""
REMAINING = {("composer.lower", "composer.recipe")}
"""Packages in which files still import one another in a circle: the writer of classes that contain classes. A circle that has
been broken is taken out here, and none is added."""


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
    assert circles == REMAINING


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
