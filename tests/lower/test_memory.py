"""A process that compiles one recipe after another keeps nothing of them, and everything of those that are in use."""

from __future__ import annotations

import ast
import copy
import gc
import inspect
import linecache
import pickle
import subprocess
import sys
import traceback
import typing
from abc import ABCMeta
from collections import Counter
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from pathlib import Path
from types import ModuleType

import pytest
import torch

import blocks
import composer
import composer.lower.model
from composer.diagnostics import RecipeError
from composer.lower.generated import execute
from composer.lower.model import Model

RECIPE = """
recipe: r{number}
inputs: {{x: "float[batch, time, {width}]", m: "bool[batch, time]"}}
init: {{"*.b{number}.weight": {{normal: 0.02}}}}
blocks:
  own{number}:
    inputs: {{x: "float[..., d{number}]"}}
    params: {{wide: {hidden}}}
    graph: {{b{number}: {{type: linear, out: wide}}, back: {{type: linear, out: d{number}}}}}
graph:
  first: {{type: linear, out: {width}}}
  own: own{number}
  layers:
    repeat: 2
    graph:
      attn: {{type: attention, heads: 1, mask: "window({hidden}) and valid(m)"}}
      body: {{type: residual, norm: layernorm, body: {{type: ffn, hidden: {hidden}}}}}
"""
WRONG = (
    "recipe: wrong{number}\ninputs: {{x: 'float[batch, {number}]'}}\ngraph: {{a: {{type: lineer{number}, out: b{number} + 1}}}}\n"
)


@pytest.fixture(autouse=True)
def frozen() -> Iterator[None]:
    """After the tests that look at all objects, put those that stand for good out of the collector's sight again."""
    stood = gc.get_freeze_count()
    yield
    if gc.get_freeze_count() < stood:
        gc.freeze()


def text(number: int) -> str:
    """Return a recipe unlike all others."""
    return RECIPE.format(number=number, width=2 + number % 7, hidden=3 + number % 97)


def use(number: int) -> None:
    """Do with a recipe what one does, and forget it."""
    recipe = composer.load(text(number))
    model = recipe.compile(seed=0)
    width = 2 + number % 7
    model(torch.zeros(1, 3, width), torch.ones(1, 3, dtype=torch.bool))
    if number % 10 == 0:
        recipe.summary()
        composer.load(recipe.expand()).diff(recipe)
        recipe.draw().svg()
        pickle.loads(pickle.dumps(model))
    with pytest.raises(RecipeError):
        _ = composer.load(WRONG.format(number=number)).program


def compiled(number: int) -> Model:
    """Return the model of a recipe."""
    return composer.load(text(number)).compile(seed=0)


def batch(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs of such a model."""
    return torch.zeros(1, 3, 2 + number % 7), torch.ones(1, 3, dtype=torch.bool)


def take_out() -> None:
    """Have what is gone taken out, as it is before another model is compiled."""
    gc.collect()
    compiled(1000)
    gc.collect()


def living() -> tuple[Counter[str], set[str], set[str]]:
    """Return how many objects of each type live, the names of modules, and the files of which lines are kept.

    Tables of results that have a bound are emptied; so is what abstract classes remember of every class that was compared with
    them, which is two objects each, gone whenever any class is registered with any of them, and there again after the next use.
    """
    gc.unfreeze()  # what stands for good, the tables among it, is counted too
    for table in [thing for thing in gc.get_objects() if type(thing) is _lru_cache_wrapper]:
        if table.__module__.startswith(("composer.", "blocks.")) and table.cache_parameters()["maxsize"] is not None:
            table.cache_clear()
    for kind in [thing for thing in gc.get_objects() if issubclass(type(thing), ABCMeta)]:
        kind._abc_caches_clear()  # type: ignore[attr-defined]  # for tests, as its docstring says
    for _ in range(3):  # what finalizers let go of is found by the next collection
        take_out()
    return Counter(type(thing).__name__ for thing in gc.get_objects()), {*sys.modules}, {*linecache.cache}


@pytest.mark.slow
@pytest.mark.parametrize("uses", [15, pytest.param(30, marks=pytest.mark.exhaustive)])
def test_recipes_that_are_gone_leave_nothing(uses: int) -> None:
    """After the first ones, which load what all share: no module, no lines, no class, and no more objects than before."""
    for number in range(21):
        use(number)
    objects, modules, files = living()
    for number in range(21, 21 + uses):
        use(number)
    more, modules_then, files_then = living()
    assert modules_then - modules == set()
    assert {file for file in files_then - files if file.startswith("<")} == set()
    grown = {kind: count for kind, count in (more - objects).items() if count >= uses}
    assert not grown, f"one of each is kept for each recipe: {grown}"


@pytest.mark.exhaustive
def test_what_abstract_classes_remember_is_not_counted() -> None:
    """It is of all classes of the process, comes with the first comparison, and goes when a module registers a class."""

    Fresh = ABCMeta("Fresh", (), {})  # which was compared with nothing yet
    objects = living()[0]
    assert not any(issubclass(kind, Fresh) for kind in object.__subclasses__()[:100])
    grown = {kind: count for kind, count in (living()[0] - objects).items() if count >= 30}
    assert not grown, f"the count depends on what was compared: {grown}"


EXHAUSTIVE = """
import gc, re, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.lower.test_memory import use

def resident():
    gc.collect()
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

for number in range(500):
    use(number)
before = resident()
for number in range(500, 2500):
    use(number)
print(resident() - before)
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="counts resident memory as Linux does")
def test_thousands_of_recipes_take_no_more_memory_than_hundreds() -> None:
    """Two thousand more: under 8 KiB of each stay, where the source and the classes of one took 80."""
    root = Path(__file__).parents[2]
    script = EXHAUSTIVE.format(root=str(root))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 2000 * 8 / 1024


def test_equal_sources_are_one_module_as_long_as_one_is_in_use() -> None:
    """And another one afterwards, which whoever kept the entry of the first finds there, as `torch.compile` does."""
    one, two = compiled(1001), compiled(1001)
    name = type(one).__module__
    first = sys.modules[name]
    assert type(two).__module__ == name and type(one).__mro__[2] is type(two).__mro__[2]
    del one
    gc.collect()
    assert sys.modules[name] is first and two(*batch(1001))
    del two
    take_out()
    assert name not in sys.modules
    again = compiled(1001)
    assert sys.modules[name] is first and first.Output is type(again(*batch(1001)))


PARTS: dict[str, typing.Callable[[Model], object]] = {
    "the model": lambda model: model,
    "a copy": copy.deepcopy,
    "a layer": lambda model: model.get_submodule("layers")[0],  # type: ignore[index]
    "a method": lambda model: model.forward,
    "a class": lambda model: type(model.get_submodule("layers")[0]),  # type: ignore[index]
    "an output": lambda model: model(*batch(1002)),
    "the class of outputs": lambda model: type(model(*batch(1002))),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_module_lives_as_long_as_anything_of_it(part: str) -> None:
    """Whatever that is, `sys.modules`, `linecache` and pickles know it until it is gone."""
    model = compiled(1002)
    name, filename = type(model).__module__, model.filename
    kept = PARTS[part](model)
    del model
    gc.collect()
    assert name in sys.modules
    assert linecache.getline(filename, 1).startswith('"""r1002: ')
    output = sys.modules[name].Output
    assert pickle.loads(pickle.dumps(output)) is output
    del kept, output
    take_out()
    assert name not in sys.modules and filename not in linecache.cache


def test_what_looks_a_module_up_finds_all_of_it() -> None:
    """`inspect`, `typing`, `vars`, `dir`, pickles of layers and outputs, and a traceback with its line."""
    model = compiled(1003)
    layer = model.get_submodule("layers")[0]  # type: ignore[index]
    module = sys.modules[type(layer).__module__]
    assert isinstance(module, ModuleType) and module.__name__ == type(layer).__module__
    assert vars(module)["nn"] is torch.nn is module.nn and "nn" in dir(module)
    assert getattr(module, type(layer).__name__) is type(layer)
    assert inspect.getsource(type(layer).forward) in model.source
    output = model(*batch(1003))
    assert typing.get_type_hints(type(output))["losses"] == dict[str, torch.Tensor]
    assert type(pickle.loads(pickle.dumps(output))) is type(output)
    assert type(pickle.loads(pickle.dumps(layer))) is type(layer)
    assert type(copy.deepcopy(layer)) is type(layer)
    broken = copy.deepcopy(model)
    broken.get_submodule("first").weight = torch.nn.Parameter(torch.zeros(4, 5000))
    with pytest.raises(RuntimeError) as failed:
        broken(*batch(1003))
    frames = [each for each in traceback.extract_tb(failed.value.__traceback__) if each.filename == model.filename]
    assert frames and all(each.line for each in frames)
    module.__dict__["added"] = 1
    assert module.added == 1
    module.added = 2
    assert vars(module)["added"] == 2
    del module.added
    assert not hasattr(module, "added")


def test_a_module_whose_parts_are_all_gone_says_so() -> None:
    """To whoever has kept the entry alone, or walks through all modules before it is taken out."""
    model = compiled(1004)
    name = type(model).__module__
    entry = sys.modules[name]
    del model
    gc.collect()
    assert not hasattr(entry, "Output") and "Output" not in {*vars(entry), *dir(entry)}
    with pytest.raises(AttributeError, match="in use any more"):
        _ = entry.Output
    take_out()
    assert name not in sys.modules


def test_a_walk_through_all_modules_is_not_disturbed() -> None:
    """Making the list collects garbage, models among it."""
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for number in range(1010, 1015):
            compiled(number)
            assert [name for name, _ in list(sys.modules.items())]
    finally:
        gc.set_threshold(*threshold)


def test_a_source_that_fails_leaves_nothing() -> None:
    """Neither a module nor its lines."""
    source = composer.lower.model.Module("raise RuntimeError('no')\n", "Failing", {}, (), (), ())
    before = {*sys.modules}, {*linecache.cache}
    with pytest.raises(RuntimeError):
        execute(source)
    assert ({*sys.modules} - before[0], {each for each in {*linecache.cache} - before[1] if "Failing" in each}) == (set(), set())


@pytest.mark.slow
def test_a_compiled_model_is_traced_once() -> None:
    """And a layer of it alone, without guards that fail at every call."""
    model = compiled(1005).eval()
    torch._dynamo.reset()
    traced: list[int] = []

    def backend(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> typing.Callable[..., typing.Any]:
        traced.append(1)
        return graph.forward

    fast = torch.compile(model, backend=backend, fullgraph=True)
    for _ in range(3):
        torch.testing.assert_close(fast(*batch(1005)), model(*batch(1005)))
    assert len(traced) == 1
    torch._dynamo.reset()


def unbounded(tree: ast.AST) -> list[str]:
    """Return the functions with parameters whose results are kept without end."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (node.args.args or node.args.kwonlyargs or node.args.vararg):
            for decorator in map(ast.unparse, node.decorator_list):
                if decorator in {"cache", "functools.cache", "lru_cache", "functools.lru_cache"} or "maxsize=None" in decorator:
                    found.append(node.name)
    return found


def test_no_table_of_results_grows_without_end() -> None:
    """A function of texts or numbers keeps its last results, and one of classes keeps them in the class."""
    assert unbounded(ast.parse("@cache\ndef one(x): ...\n@lru_cache(maxsize=2)\ndef two(x): ...\n@cache\ndef three(): ...")) == [
        "one"
    ]
    for package in (composer, blocks):
        for file in Path(package.__file__ or "").parent.rglob("*.py"):
            assert unbounded(ast.parse(file.read_text(encoding="utf-8"))) == [], file
