"""The generated source: what it reads like, and that nothing in a recipe can bend it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import composer

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
    state = {**model.state_dict(), "head.weight": model.state_dict()["embed.weight"]}
    torch.save({"state": state, "tokens": tokens(61), "logits": model(tokens(61)).logits.detach()}, tmp_path / "saved.pt")
    script = (
        "import sys, torch, model\n"
        "assert 'composer' not in sys.modules and 'blocks' not in sys.modules\n"
        "saved = torch.load('saved.pt')\n"
        "gpt = model.Gpt2().eval()\n"
        "gpt.load_state_dict(saved['state'])\n"
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


def test_a_mistake_at_run_time_names_its_node() -> None:
    """A shape that only the data can get wrong is reported with the node and its line in the recipe."""
    model = composer.load("gpt2", overrides=TINY).compile(seed=0)
    with pytest.raises(IndexError) as caught:
        model(torch.zeros(1, 20, dtype=torch.long))
    assert "there are 16" in str(caught.value)
    assert caught.value.__notes__ and caught.value.__notes__[0].startswith("in positions (gpt2.yaml:")
    with pytest.raises((RuntimeError, IndexError)) as caught_deep:
        model(torch.zeros(1, 4, dtype=torch.long), valid=torch.ones(1, 3, dtype=torch.bool))
    assert caught_deep.value.__notes__[0].startswith("in layers, preparing its mask (gpt2.yaml:")


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
