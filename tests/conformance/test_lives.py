"""What becomes of a model: it is copied, saved, loaded, sent to another process, computed in bfloat16, compiled."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import composer
from blocks.core import standard
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan
from composer.lower import Model
from composer.recipe import zoo_names
from tests.conformance.cases import CASES, TINY, each_of, models
from tests.conformance.declared import alone, blocks, draws
from tests.conformance.features import covering
from tests.conformance.generator import COUNT, generated
from tests.conformance.inputs import DRAWS, draw, on
from tests.conformance.test_computes import loss
from tests.zoo import NAMED, UNNAMED

ROOT = str(Path(composer.__file__).parent.parent)
each_case = each_of(CASES)


def tied(model: Model) -> bool:
    """Return whether every tied parameter is its owner's."""
    return all(model.get_parameter(alias) is model.get_parameter(owner) for alias, owner in model.module.ties)


@each_of(CASES, every=3)
@torch.no_grad()
def test_ties_and_values_survive_copying_and_loading(case: str, tmp_path: Path) -> None:
    """A copy, a model of the meta device that takes tensors as its own, one that is given memory and loads a file, and one
    that was moved to another precision and back.
    """
    for model in models(case):
        given = draw(model.program, DRAWS[0], seed=7)
        state = {name: value.clone() for name, value in model.state_dict().items()}
        save_file(state, tmp_path / "model.safetensors")
        assigned = model.recipe.compile(device="meta").eval()
        assigned.load_state_dict(state, strict=True, assign=True)
        filled = model.recipe.compile(device="meta").eval().to_empty(device="cpu")
        assert tied(filled)
        filled.load_state_dict(load_file(tmp_path / "model.safetensors"), strict=True)
        moved = copy.deepcopy(model).double().float()
        for again in (copy.deepcopy(model), assigned, filled, moved):
            assert tied(again), model.recipe.text
            assert all(torch.equal(a, b) for a, b in zip(model(**given)[:-1], again(**given)[:-1], strict=True)), (
                model.recipe.text
            )


OTHER = """
import pickle, sys
from pathlib import Path
import torch
for model, given, outputs in pickle.loads(Path(sys.argv[1]).read_bytes()):
    assert all(model.get_parameter(alias) is model.get_parameter(owner) for alias, owner in model.module.ties)
    with torch.no_grad():
        again = model(**given)[:-1]
    assert all(torch.equal(a, b) for a, b in zip(outputs, again, strict=True)), model.recipe.text
"""


@torch.no_grad()
def test_models_go_to_another_process(tmp_path: Path) -> None:
    """Pickled with their weights, ties and frozen parameters, they compute the same there."""
    some = [model for case in CASES[:: len(CASES) // 12] for model in models(case)]
    some += [model for case in CASES for model in models(case) if model.module.ties][::2]
    rows = []
    for model in some:
        given = draw(model.program, DRAWS[0], seed=7)
        rows.append((model, given, tuple(model(**given)[:-1])))
    (tmp_path / "models.pkl").write_bytes(pickle.dumps(rows))
    alone_there(OTHER, str(tmp_path / "models.pkl"))


@cache
def has_lstm_in_bf16(device: str) -> bool:
    """Whether torch has an LSTM in bfloat16 here: on a CPU without AVX-512 it has none."""
    try:
        with torch.autocast(device, dtype=torch.bfloat16):
            torch.nn.LSTM(8, 8).to(device)(torch.zeros(4, 2, 8, device=device))
    except RuntimeError:
        return False
    return True


@each_case
def test_bf16_autocast_is_finite(case: str, device: str) -> None:
    """Forward and, where there is something to learn, backward."""
    for model in models(case):
        if "torch.lstm" in model.source and not has_lstm_in_bf16(device):
            continue
        again = copy.deepcopy(model).to(device).train()
        with torch.autocast(device, dtype=torch.bfloat16):
            outputs = again(**on(device, draw(model.program, DRAWS[0], seed=8)))[:-1]
        assert all(value.isfinite().all() for value in outputs), model.recipe.text
        if any(value.requires_grad for value in outputs):
            loss([value.float() for value in outputs]).backward()
        assert all(p.grad.isfinite().all() for p in again.parameters() if p.grad is not None), model.recipe.text


# -- torch.compile, in processes of its own, since a warm one hides what a cold one trips over

COLD = """
import json, sys
import torch
import composer
from tests.conformance.inputs import DRAWS, draw

device, texts = json.loads(sys.stdin.read())
for text, settings in texts:
    torch._dynamo.reset()
    recipe = composer.load(text, overrides=settings)
    model = recipe.compile(seed=1).eval().to(device)
    given = {name: value.to(device) for name, value in draw(model.program, DRAWS[0], seed=2).items()}
    with torch.no_grad():
        before = model(**given)
        after = torch.compile(model, fullgraph=True, backend="aot_eager")(**given)
    assert before.losses.keys() == after.losses.keys()
    values = zip([*before[:-1], *before.losses.values()], [*after[:-1], *after.losses.values()], strict=True)
    for a, b in values:
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4, msg=lambda m: f"{m}\\n{recipe.text}")
"""


def alone_there(script: str, *arguments: str, said: str = "") -> str:
    """Return what a script prints in a process of its own, which must end well."""
    whole = f"import sys; sys.path.insert(0, {ROOT!r})\n{script}"
    done = subprocess.run([sys.executable, "-c", whole, *arguments], input=said, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def compiles(texts: list[tuple[str, dict[str, Any]]], device: str) -> None:
    """Assert that each recipe becomes one program, which computes the same."""
    alone_there(COLD, said=json.dumps([device, texts]))


COMPILED = ("lstm_lm", "switch")
"""Recipes of the zoo that are compiled by `make test`; each takes a process of its own."""


@pytest.mark.parametrize(
    "name", [name if name in COMPILED else pytest.param(name, marks=pytest.mark.exhaustive) for name in zoo_names()]
)
def test_the_zoo_compiles_without_a_break(name: str, device: str) -> None:
    """Each recipe in a process that has traced nothing before."""
    compiles([(name, dict(TINY.get(name, {})))], device)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(4))
def test_generated_recipes_compile_without_a_break(part: int, device: str) -> None:
    """As many of them as have, together, everything that any of them has; and what only a block by itself has."""
    texts = [generated(seed) for seed in range(COUNT)]
    texts += [alone(block, standard(), seed) for block in blocks(standard()).values() for seed in range(draws(block))]
    compiles([(text, {}) for text in covering(texts)[part::4]], device)


COUNTED = """
import json, sys
import torch
from torch._dynamo.testing import CompileCounterWithBackend
import composer
from composer.lower.accelerate import accelerate
from tests.conformance.inputs import DRAWS, draw

device, texts = json.loads(sys.stdin.read())
for text, settings in texts:
    torch._dynamo.reset()
    model = composer.load(text, overrides=settings).compile(seed=1).eval().to(device)
    given = {name: value.to(device) for name, value in draw(model.program, DRAWS[0], optional=False).items()}
    counter = CompileCounterWithBackend("eager")
    with torch.no_grad():
        before = model(**given)
        after = accelerate(model, backend=counter)(**given)
    for a, b in zip(before[:-1], after[:-1], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    print(counter.frame_count)
"""


ALIKE = ("bigbird", "convnext", "resnet", "swin")
"""Recipes whose layers of several kinds are of the same code: wider in each stage, or with masks that are made outside."""


@pytest.mark.parametrize("names", [NAMED, pytest.param(UNNAMED, marks=pytest.mark.exhaustive)], ids=["named", "unnamed"])
def test_layers_compile_once_for_each_kind(names: tuple[str, ...], device: str) -> None:
    """For each representative of the zoo one program for each kind of layer, or fewer, where layers differ in width or in a
    mask alone.
    """
    expected = {name: sum(kinds(composer.load(name, overrides=TINY.get(name, {})))) for name in names}
    said = alone_there(COUNTED, said=json.dumps([device, [(name, dict(TINY.get(name, {}))) for name in names]]))
    counts = dict(zip(names, map(int, said.split()), strict=True))
    assert {name: count for name, count in counts.items() if name not in ALIKE} == {
        name: count for name, count in expected.items() if name not in ALIKE
    }
    assert all(1 <= counts[name] < expected[name] for name in ALIKE if name in names)


@pytest.mark.parametrize("step", [12, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_repeats_compile_once_for_passes_that_agree(step: int, device: str) -> None:
    """Of generated recipes, torch may make one program more of a repeat, whose first pass can be given memory that is laid out in
    another way than what passes hand on, and fewer, where passes differ in what no code depends on.
    """
    texts = [text for text in map(generated, range(0, COUNT, step)) if kinds(composer.load(text))]
    said = alone_there(COUNTED, said=json.dumps([device, [(text, {}) for text in texts]]))
    for text, count in zip(texts, map(int, said.split()), strict=True):
        several = kinds(composer.load(text))
        assert 1 <= count <= sum(several) + len(several), text


def kinds(recipe: composer.Recipe) -> list[int]:
    """Return how many different passes each repeat has."""
    repeats = [node for node in below(recipe.program.root) if isinstance(node, TypedRepeat)]
    return [len({id(one) for one in repeat.passes}) for repeat in repeats]


def below(graph: TypedGraph) -> Iterator[TypedNode]:
    """Yield every node of a graph, at any depth; what is in equal passes, once."""
    for node in graph.nodes:
        yield node
        match node:
            case TypedBlock(slots=slots):
                inner = [slot.graph for slot in slots.values() if isinstance(slot, TypedGroup)]
            case TypedGroup(graph=one) | TypedScan(graph=one):
                inner = [one]
            case TypedRepeat(passes=passes):
                inner = list({id(one): one for one in passes}.values())
        for one in inner:
            yield from below(one)
