"""How many programs `torch.compile` makes of a model, counted in a process of its own: a warm one hides what breaks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import composer

SCRIPT = """
import json, sys
import torch
from torch._dynamo.testing import CompileCounterWithBackend
import composer
from composer.lower.accelerate import accelerate

counts = {}
for name, (recipe, settings, whole) in json.loads(sys.argv[1]).items():
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("eager")
    model = composer.load(recipe, overrides=settings).compile(seed=0).eval()
    tokens = torch.randint(61, (2, 9), generator=torch.Generator().manual_seed(0))
    before = model(tokens).logits
    after = accelerate(model, whole=whole, backend=counter)(tokens).logits
    torch.testing.assert_close(before, after, rtol=1e-5, atol=1e-6)
    counts[name] = counter.frame_count
print(json.dumps(counts))
"""

STACK = """
recipe: stack
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 61, dim: 16}
  layers:
    repeat: 6
    each: {share: 1 / (layer + 1)}
    graph:
      ffn: {type: residual, norm: rmsnorm, body: ffn, scale: share}
      mix: MIX
  head: {type: linear, out: 61}
outputs: {logits: head}
"""
ALL_BEFORE = "{type: weighted_sum, in: [ffn, layers(:layer)]}"
TINY = {"n_layers": 4, "d_model": 32, "n_heads": 4, "vocab": 61}
GEMMA = {**TINY, "head_dim": 8, "hidden": 24, "sliding_window": 4, "period": 2}

CASES = {
    "equal layers": ("gpt2", {**TINY, "context": 16, "dropout": 0}, False, 1),
    "local and global layers": ("gemma3", GEMMA, False, 2),
    "the whole model": ("gemma3", GEMMA, True, 1),
    "a number that differs in every layer": (STACK.replace("MIX", "relu"), {}, False, 3),
    "layers that read all before them": (STACK.replace("MIX", ALL_BEFORE), {}, False, 6),
}


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    """Programs compiled for each case."""
    root = str(Path(composer.__file__).parent.parent)
    cases = json.dumps({name: case[:3] for name, case in CASES.items()})
    script = f"import sys; sys.path.insert(0, {root!r})\n{SCRIPT}"
    done = subprocess.run([sys.executable, "-c", script, cases], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_programs_are_as_many_as_the_layers_differ(name: str, counts: dict[str, int]) -> None:
    """One for layers that agree, one more for each that does not; torch turns a number that keeps changing into an input."""
    assert counts[name] == CASES[name][3]
