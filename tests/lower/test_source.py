"""The generated source: what it reads like, and that nothing in a recipe can bend it."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import composer
from tests.cases.case import FILES, FOLDER, cases
from tests.conformance.cases import TINY as TINY_SIZES
from tests.draw.cases import FORMS
from tests.zoo import REPRESENTATIVES, each_representative, rest

TINY = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16, "dropout": 0}

HOSTILE = """
recipe: hostile
task: causal_lm
params: {d: 16, x: 3}
inputs: {tokens: "int[batch, time]", valid: "bool[batch, time]?"}
graph:
  self: {type: embedding, vocab: 29, dim: d}
  torch: {type: linear, out: d}
  norm: layernorm
  x:
    type: residual
    norm: rmsnorm
    body: {type: attention, heads: 2, mask: causal and valid(valid)}
  values: {type: residual, in: x, norm: layernorm, body: ffn}
  forward: {type: linear, out: d}
  del:
    graph:
      input_: {type: add, in: [input, norm]}
      train: relu
      parameters: {type: linear, out: d}
      class: {type: add, in: [parameters, values]}
  print: {type: multiply, in: [del, self]}
  weight:
    repeat: x
    graph:
      add: {type: linear, out: d}
      F: {type: residual, norm: layernorm, body: {type: gated_ffn, hidden: 2 * d}}
      sum: {type: add, in: [F, norm]}
  state_dict: {type: linear, out: 29}
outputs: {logits: state_dict}
"""


def tokens(vocab: int, *, rows: int = 2, time: int = 7) -> torch.Tensor:
    """Return token ids from a fixed seed, [B, T]."""
    return torch.randint(vocab, (rows, time), generator=torch.Generator().manual_seed(1))


def by_hand(model: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """Return the hostile recipe, read as it is written."""
    m = model._modules

    def residual(block: torch.nn.Module, x: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        return x + block.body(block.norm(x), *args, **kwargs)

    embedded = m["self"](ids)
    norm = m["norm"](m["torch"](embedded))
    at = torch.arange(ids.shape[1])
    x = residual(m["x"], norm, mask=model.mask.prepare(at, at, valid_valid=None))
    values = residual(m["values"], x)
    inside = m["del"]._modules
    total = inside["parameters"](torch.relu(m["forward"](values) + norm)) + values
    y = total * embedded
    for one in m["weight"]:
        y = residual(one.F, one.add(y)) + norm
    return m["state_dict"](y)


def test_names_of_torch_and_python_do_no_harm() -> None:
    """Nodes called `self`, `norm`, `del`, `forward`, `weight` compute what they say."""
    model = composer.load(HOSTILE).compile(seed=0).eval()
    ids = tokens(29)
    torch.testing.assert_close(model(ids).logits, by_hand(model, ids), rtol=0, atol=0)
    assert {name.partition(".")[0] for name in model.state_dict()} == {
        "self", "torch", "norm", "x", "values", "forward", "del", "weight", "state_dict"
    }  # fmt: skip


@pytest.mark.slow
def test_exported_source_runs_without_the_composer(tmp_path: Path) -> None:
    """The file needs torch alone, and gives the logits of the model that it came from."""
    model = composer.load("gpt2", overrides=TINY).compile(seed=0).eval()
    (tmp_path / "model.py").write_text(model.source, encoding="utf-8")
    torch.save(
        {"state": model.state_dict(), "tokens": tokens(61), "logits": model(tokens(61)).logits.detach()}, tmp_path / "saved.pt"
    )
    script = (
        "import sys, torch, model\n"
        "assert 'composer' not in sys.modules and 'blocks' not in sys.modules\n"
        "saved = torch.load('saved.pt')\n"
        "gpt = model.Gpt2().eval()\n"
        "gpt.load_state_dict(saved['state'], strict=True)\n"
        "assert gpt.state_dict().keys() == saved['state'].keys()\n"
        "assert gpt.head.weight is gpt.embed.weight\n"
        "torch.testing.assert_close(gpt(saved['tokens']).logits, saved['logits'], rtol=1e-5, atol=1e-6)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_exported_is_what_ran() -> None:
    """The model's source is the text that was executed, and that `source()` gives without compiling."""
    recipe = composer.load(
        "gemma3", overrides={"n_layers": 6, "d_model": 16, "n_heads": 2, "head_dim": 8, "hidden": 24, "vocab": 31}
    )
    model = recipe.compile(device="meta")
    assert model.source == recipe.source() if callable(getattr(recipe, "source", None)) else model.source
    assert type(model).__mro__[2].forward.__code__.co_filename == model.__dict__["filename"]


@pytest.mark.parametrize("name", ["gpt2", "llama3", "gemma3", "gpt_mini"])
def test_equal_layers_are_one_class(name: str) -> None:
    """A zoo model has one class for its layers, however many there are and whatever differs among them."""
    tree = ast.parse(composer.load(name).compile(device="meta").source if name == "gpt_mini" else _source(name))
    layers = [node.name for node in tree.body if isinstance(node, ast.ClassDef) and "Layers" in node.name]
    assert len(layers) == 1, layers


def _source(name: str) -> str:
    from composer.lower.emit.module_source import lower

    return lower(composer.load(name).program).text


@pytest.mark.slow
def test_source_is_the_same_in_every_process() -> None:
    """No order of a set or a dict reaches the text."""
    script = "import zlib, composer; print(zlib.crc32(composer.load('gemma3').export().encode()))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", script], env={**_environment(), "PYTHONHASHSEED": seed}, capture_output=True, text=True
        ).stdout
        for seed in ("0", "7")
    }
    assert len(texts) == 1 and texts != {""}


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(Path(composer.__file__).parent.parent)}


def test_text_of_a_recipe_never_becomes_code() -> None:
    """A doc that closes the docstring and goes on as Python stays a docstring."""
    doc = 'three quotes """ and a backslash \\\\ then import os; os.abort()'
    text = HOSTILE.replace("task:", f"doc: '{doc}'\ntask:")
    source = composer.load(text).compile(device="meta").source
    last = ast.parse(source).body[-1]
    assert isinstance(last, ast.ClassDef)
    assert "os.abort" in (ast.get_docstring(last) or "")
    assert not any(isinstance(node, ast.Name) and node.id == "os" for node in ast.walk(ast.parse(source)))


WINDOWS = """
recipe: windows
inputs: {x: "float[batch, time, 8]"}
graph:
  layers:
    repeat: 2
    graph:
      windows: {type: rearrange, pattern: "b (n w) d -> b n w d", lengths: {w: 4}}
      back: {type: rearrange, pattern: "b n w d -> b (n w) d"}
"""


def test_a_mistake_at_run_time_names_its_node() -> None:
    """A shape that only the data can get wrong is reported with the node and its line in the recipe."""
    model = composer.load("gpt2", overrides=TINY).compile(seed=0)
    with pytest.raises(IndexError) as caught:
        model(torch.zeros(1, 20, dtype=torch.long))
    assert "there are 16" in str(caught.value)
    assert caught.value.__notes__ and caught.value.__notes__[0].startswith("in positions (gpt2.yaml:")
    deep = composer.load(WINDOWS).compile(seed=0)
    with pytest.raises(RuntimeError) as caught_deep:
        deep(torch.zeros(1, 6, 8))
    assert caught_deep.value.__notes__[0].startswith("in layers.0.windows (<text>:")


def test_values_are_freed_at_their_last_use() -> None:
    """What nothing reads any more is deleted, or its variable is used again."""
    text = """
recipe: wide
inputs: {x: "float[batch, time, 8]"}
graph:
  a: {type: linear, out: 64}
  b: {type: linear, out: 8}
  c: {type: linear, out: 8, in: x}
  d: {type: multiply, in: [b, c]}
  e: {type: linear, out: 8}
"""
    source = composer.load(text).compile(device="meta").source
    forward = source[source.rindex("def forward") :]
    assert "del" in forward and "return" in forward
    live, most = _simulate(forward)
    assert most <= 3, live


def _simulate(forward: str) -> tuple[list[int], int]:
    """Return how many values are held after each statement."""
    function = ast.parse(forward.replace("\n    ", "\n")).body[0]
    assert isinstance(function, ast.FunctionDef)
    names = {argument.arg for argument in function.args.args} - {"self"}
    counts = []
    for statement in function.body:
        if isinstance(statement, ast.Assign):
            names |= {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
        if isinstance(statement, ast.Delete):
            names -= {target.id for target in statement.targets if isinstance(target, ast.Name)}
        counts.append(len(names))
    return counts, max(counts)


SOUND = [case for file in FILES for case in cases(file) if "error[" not in case.expected.text and not case.before]
"""Cases with warnings alone."""
WRITTEN: dict[str, Callable[[], composer.Recipe]] = {
    **{name: partial(composer.load, name) for name in REPRESENTATIVES},
    **{path.stem: partial(composer.load, path) for path in FORMS},
    **{str(case): partial(composer.load, case.text, case.settings) for case in SOUND},
}


@pytest.mark.parametrize("name", [*WRITTEN, *rest])
def test_every_source_can_be_parsed(name: str) -> None:
    """What is checked is written as Python, at the sizes of the paper too."""
    with chdir(FOLDER):
        source = WRITTEN.get(name, partial(composer.load, name))().export()
    compile(source, name, "exec", dont_inherit=True)


@pytest.mark.parametrize("each", ["[2, 2, 2]", "[2, 4, 8]", "[2, 4, 2]"])
@pytest.mark.parametrize("wide", ["[16, 16, 16]", "[16, 24, 32]", "[16, 24, 16]"])
@pytest.mark.parametrize("inner", ["4", "4 if layer == 0 else 2 * dim", "2 ** layer"])
def test_repeats_in_repeats_can_be_parsed(each: str, wide: str, inner: str) -> None:
    """Passes that are equal, that differ, and that alternate, where a constructor call takes several lines."""
    text = f"""
recipe: stages
inputs: {{x: "float[batch, time, 16]"}}
graph:
  stages:
    repeat: 3
    each: {{wide: {wide}, heads: {each}}}
    graph:
      stage:
        repeat: 3
        graph:
          attn: {{type: residual, norm: rmsnorm, body: {{type: attention, heads: heads, mask: causal, bias: true}}}}
          ffn:
            type: residual
            norm: rmsnorm
            body: {{type: gated_ffn, hidden: {inner}, bias: true, activation: {{type: clamped_silu, alpha: heads}}}}
      down: {{type: linear, out: wide}}
"""
    recipe = composer.load(text)
    compile(recipe.export(), "stages", "exec", dont_inherit=True)
    model = recipe.compile(seed=0)
    assert model(torch.ones(1, 2, 16)).stages.shape == (1, 2, recipe.program.root.outputs["stages"].axes[-1].size)


@pytest.mark.parametrize("assign", [False, True])
@each_representative
def test_an_exported_file_takes_the_state_of_the_model(name: str, assign: bool) -> None:
    """The keys are the same, and ties hold."""
    model = composer.load(name, TINY_SIZES.get(name, {})).compile(seed=0)
    namespace: dict[str, Any] = {"__name__": "builtins"}
    exec(compile(model.source, name, "exec", dont_inherit=True), namespace)
    exported = namespace[model.module.name]()
    exported.load_state_dict(model.state_dict(), strict=True, assign=assign)
    assert exported.state_dict().keys() == model.state_dict().keys()
    exported.to(torch.float64)
    exported.load_state_dict(exported.state_dict(), strict=True, assign=assign)
    tied = dict(exported.named_parameters(remove_duplicate=False))
    assert all(tied[alias] is tied[owner] for alias, owner in model.module.ties)
    assert tied.keys() == dict(model.named_parameters(remove_duplicate=False)).keys()


OWN = '''import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from blocks.core import Block

HALF = 0.5
NEVER = float("-inf")
FACTORS = {"one": [1.0, HALF], "two": [2.0]}


class Pair(NamedTuple):
    left: Tensor
    right: Optional[Tensor] = None


@dataclass(frozen=True)
class Settings:
    factor: float = HALF
    names: Sequence[str] = ()


class Counter:
    def count(self) -> int:
        return 1


class Twice(Counter):
    @property
    def total(self) -> int:
        return 2 * self.count()


@functools.cache
def table(length: int) -> Sequence[float]:
    return tuple(range(length))


def helper(x: Tensor, pair: Optional[Pair] = None, by: float = HALF, *, root=math.sqrt) -> Sequence[Tensor]:
    y: Optional[Tensor] = x
    return [y * by * root(4.0)]


def paired(x: "Tensor", curve=torch.relu) -> Pair:
    return Pair(curve(x))


class Annotated(Block, kind="annotated"):
    """Everything that Python allows around a forward."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def forward(self, x: Tensor, more: float = HALF) -> Tensor:
        settings: Settings = Settings()

        def first(values: Sequence[Tensor], by: Optional[float] = HALF) -> Tensor:
            return values[0] * by

        known = len(table(3)) + Twice().total + FACTORS["two"][0] + max(more, NEVER)
        return first(helper(x)) + paired(x).left * settings.factor + known + self.nine

    @property
    def nine(self) -> int:
        return 8 + self.one()

    @staticmethod
    def one() -> int:
        return 1
'''


def test_the_source_of_a_block_of_ones_own_has_all_that_it_uses(tmp_path: Path) -> None:
    """What stands in defaults, decorators, bases and bodies of classes, whatever the annotations name."""
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    text = 'recipe: own\ninputs: {x: "float[batch, 8]"}\ngraph: {a: annotated}\n'
    recipe = composer.load(text, blocks=[tmp_path / "own.py"])
    assert recipe.check() == []
    torch.testing.assert_close(recipe.compile()(torch.ones(1, 8)).a, torch.full((1, 8), 0.5 + 0.5 + 3 + 2 + 2 + 0.5 + 9))
    alone: dict[str, object] = {"__name__": "builtins"}
    exec(compile(recipe.export(), "own", "exec", dont_inherit=True), alone)
    assert callable(alone["Own"])


def test_a_value_that_has_no_source_is_refused(tmp_path: Path) -> None:
    """An object that the file has made."""
    (tmp_path / "own.py").write_text(
        OWN.replace("HALF = 0.5", "HALF = 0.5\nMADE = object()").replace("return 1", "return 1 if MADE else 0"), "utf-8"
    )
    recipe = composer.load('recipe: own\ninputs: {x: "float[batch, 8]"}\ngraph: {a: annotated}\n', blocks=[tmp_path / "own.py"])
    with pytest.raises(composer.ComposerError, match="the source of MADE cannot be read"):
        recipe.export()


def test_an_exported_file_says_what_it_is_and_of_which_recipe(tmp_path: Path) -> None:
    """Its format, who wrote it, and the digest of the text that `show` prints, which differs with every override."""
    small = composer.load("gpt2", overrides=TINY)
    digests = set()
    for recipe in (small, small.with_overrides({"d_model": 64}), composer.load(small.text)):
        _, _, *about = recipe.export().split("\n")[:5]
        digest = hashlib.sha256(recipe.text.encode()).hexdigest()
        assert about == ["# format: 1", f"# written by: arco-composer {composer.__version__}", f"# recipe: sha256 {digest}"]
        digests.add(digest)
    assert len(digests) == 2
    tree = ast.parse(small.export())
    assert ast.get_docstring(tree) == "gpt2: generated from a recipe; plain torch, nothing else is needed."
    assert ast.dump(tree) == ast.dump(ast.parse(small.compile(device="meta").source))


def test_modules_that_are_arguments_of_a_constructor_are_modules_of_their_own() -> None:
    """Passes that differ in whole modules, such as linear maps with a bias and without: equal ones are still several tensors."""
    text = """
recipe: stages
inputs: {x: "float[batch, time, 8]"}
graph:
  stages:
    repeat: 3
    graph:
      attn: {type: attention, heads: 2, bias: layer == 1}
      inner: {repeat: 2, graph: {look: {type: attention, heads: 2, bias: layer == 1}}}
"""
    recipe = composer.load(text)
    model = recipe.compile(seed=0)
    assert sum(parameter.numel() for parameter in model.parameters()) == recipe.summary().costs.parameters


def test_a_class_stands_behind_those_that_any_of_its_instances_holds() -> None:
    """Here the second layer holds a graph that the first one lacks, and the two are of one class."""
    text = """
recipe: norms
inputs: {x: "float[batch, time, 8]"}
graph:
  one: {graph: {attn: {type: residual, norm: layernorm, body: {type: attention, heads: 2}}}}
  two:
    graph:
      attn:
        type: residual
        norm: layernorm
        body: {type: attention, heads: 2, qk_norm: {graph: {first: layernorm, then: {type: layernorm, affine: false}}}}
"""
    recipe = composer.load(text)
    model = recipe.compile(seed=0)
    assert "two.attn.body.q_norm.first.weight" in model.state_dict()
    assert sum(parameter.numel() for parameter in model.parameters()) == recipe.summary().costs.parameters
    y = model(torch.randn(1, 3, 8))[0]
    assert y.shape == (1, 3, 8)


@pytest.mark.parametrize("name", ["own", "attention"])
def test_the_class_of_a_model_is_called_like_the_recipe(name: str) -> None:
    """A block of that name, of the recipe or of the standard library, has a number behind it."""
    text = f"""
recipe: {name}
inputs: {{x: "float[batch, time, 8]"}}
blocks:
  own: {{inputs: {{x: "float[batch, time, dim]"}}, graph: {{a: {{type: attention, heads: 2}}, b: relu}}}}
graph: {{one: own, two: own}}
"""
    model = composer.load(text).compile(seed=0)
    assert type(model.get_submodule("one")).__name__ == ("Own2" if name == "own" else "Own")
    assert type(model.get_submodule("one.a")).__name__ == ("Attention" if name == "own" else "Attention2")
    names = [each.name for each in ast.parse(model.source).body if isinstance(each, ast.ClassDef)]
    assert names[-1] == name.capitalize()
    assert len(set(names)) == len(names)
    assert model(torch.randn(1, 3, 8))[0].shape == (1, 3, 8)


def test_an_output_has_the_name_that_the_recipe_gives_it() -> None:
    """But for an underscore behind what is a keyword, a method of tuples, or beside the losses."""
    names = ["count", "index", "losses", "losses_", "class", "sum", "self", "cls", "Tensor", "Output", "dict", "type", "a"]
    outputs = ", ".join(f"{name}: a" for name in names)
    text = f'recipe: outputs\ninputs: {{x: "float[batch, 8]"}}\ngraph: {{a: relu}}\noutputs: {{{outputs}}}\n'
    model = composer.load(text).compile()
    x = torch.randn(2, 8)
    found = model(x)
    first = ["count_", "index_", "losses_", "losses__", "class_"]
    assert found._fields == (*first, *names[5:], "losses")
    assert all(torch.equal(value, x.relu()) for value in found[:-1])
    assert found.losses == {}


@pytest.mark.parametrize(
    ("node", "shape", "given", "said"),
    [
        ("{type: conv2d, out: 8, kernel_size: 9}", "3, height, width", (2, 3, 20, 5), "width is 5 here, of which kernel_size 9"),
        ("{type: max_pool1d, kernel_size: 9}", "time, 8", (2, 5, 8), "time is 5 here, of which kernel_size 9"),
        ("{type: patch_embedding, patch_size: 9, dim: 2}", "3, high, w", (2, 3, 5, 9), "high is 5 here, of which patch_size 9"),
        (
            "{repeat: 2, graph: {c: {type: conv2d, out: 3, kernel_size: 4}}}", "3, height, width", (2, 3, 5, 20),
            "height is 2 here, of which kernel_size 4",
        ),
    ],
)  # fmt: skip
def test_a_kernel_that_is_longer_than_an_axis_of_a_call_is_named(
    node: str, shape: str, given: tuple[int, ...], said: str
) -> None:
    """Beside torch's own error, with the node."""
    model = composer.load(f'recipe: r\ninputs: {{x: "float[batch, {shape}]"}}\ngraph:\n  c: {node}\n').compile(seed=0)
    with pytest.raises(RuntimeError) as caught:
        model(torch.zeros(given))
    where, short = caught.value.__notes__
    assert where.startswith("in c") and short == f"{said} leaves no place"


def test_a_kernel_of_a_block_of_a_recipe_is_named_by_its_own_axes() -> None:
    """In the names of its declaration; where the call fails for another reason, nothing is said of kernels."""
    text = """recipe: r
blocks:
  narrow: {inputs: {x: "float[batch, 3, high, wide]"}, graph: {c: {type: conv2d, out: 3, kernel_size: 4}}}
inputs: {x: "float[batch, 3, height, width]"}
graph: {n: narrow}
"""
    with pytest.raises(RuntimeError) as caught:
        composer.load(text).compile(seed=0)(torch.zeros(2, 3, 9, 2))
    with pytest.raises(RuntimeError) as other:
        composer.load(text).compile(seed=0)(torch.zeros(2, 3, 9, 8, dtype=torch.float64))
    assert (
        len(other.value.__notes__) == 1 and caught.value.__notes__[1] == "wide is 2 here, of which kernel_size 4 leaves no place"
    )
