"""What holds for every recipe: the zoo at tiny sizes, every block by itself, and hundreds of generated recipes.

A new block, and a new recipe of the zoo, is in here without a test being written for it; what the generator cannot yet write
fails in `test_coverage.py`.
"""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch

import composer
from blocks.core import standard
from composer.decode.session import session
from composer.graph.parameters import parameters
from composer.graph.types import TensorType
from composer.lower import Model
from composer.recipe import zoo_names
from tests.conformance.declared import alone, blocks
from tests.conformance.generator import COUNT, generated
from tests.conformance.inputs import DRAWS, draw, shape_of
from tests.conformance.interpreter import Interpreter

TINY: Mapping[str, dict[str, Any]] = {
    "gpt2": {"vocab": 11, "context": 16, "d_model": 24, "n_layers": 3, "n_heads": 3},
    "llama3": {"vocab": 11, "d_model": 16, "n_layers": 3, "n_heads": 4, "n_kv_heads": 2, "hidden": 20, "context": 16},
    "gemma3": {
        "vocab": 11,
        "d_model": 12,
        "n_layers": 7,
        "n_heads": 2,
        "head_dim": 8,
        "hidden": 20,
        "sliding_window": 3,
        "period": 3,
    },
    "gpt_mini": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2},
}
"""Sizes for every recipe of the zoo; one that is not here runs as it is."""
ZOO = zoo_names()
ALONE = sorted(blocks(standard()))
CHUNKS = 24
EVERYTHING = [*(f"zoo {name}" for name in ZOO), *(f"block {kind}" for kind in ALONE), *(f"chunk {n}" for n in range(CHUNKS))]


def recipes(case: str) -> list[composer.Recipe]:
    """The recipes of a case."""
    kind, _, name = case.partition(" ")
    match kind:
        case "zoo":
            return [composer.load(name, set=TINY.get(name, {}))]
        case "block":
            return [composer.load(alone(blocks(standard())[name], standard(), seed)) for seed in range(3)]
    return [composer.load(generated(seed)) for seed in range(int(name), COUNT, CHUNKS)]


@lru_cache(maxsize=24)
def models(case: str) -> tuple[Model, ...]:
    """The compiled models of a case, every parameter moved from where it starts, so that none is zero or one."""
    made = []
    for recipe in recipes(case):
        model = recipe.compile(seed=1).eval()
        with torch.no_grad():
            for number, parameter in enumerate(model.parameters()):
                generator = torch.Generator().manual_seed(number)
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
        made.append(model)
    return tuple(made)


def said(model: Model) -> str:
    """The recipe of a model, for the message of a failure."""
    return model.recipe.text


@pytest.fixture(params=EVERYTHING)
def case(request: pytest.FixtureRequest) -> str:
    """One case after the other."""
    name: str = request.param
    return name


def test_generated_code_computes_what_the_graph_says(case: str, device: str) -> None:
    """Bit for bit, for every output, with and without optional inputs; every node's shape is the one that was inferred."""
    for model in models(case):
        for position, lengths in enumerate(DRAWS):
            given = on(device, draw(model.program, lengths, seed=position, optional=position == 0))
            with torch.no_grad():
                real = model.to(device)(**given)
                walk = Interpreter(model, dense=False)
                outputs = walk(**given)
            for (field, name), value in zip(model.module.outputs, outputs.values(), strict=True):
                assert torch.equal(getattr(real, field), value), (name, said(model))
            for path, (node, values) in walk.seen.items():
                for port, value in values.items():
                    promised = node.outputs.get(port)
                    if isinstance(promised, TensorType) and isinstance(value, torch.Tensor):
                        assert tuple(value.shape) == shape_of(promised, lengths), (path, port, said(model))


def test_fast_paths_compute_what_the_masks_say(case: str) -> None:
    """In float64, against every mask as the matrix that its predicate makes."""
    for model in models(case):
        wide = copy.deepcopy(model).double()
        given = draw(model.program, DRAWS[1], seed=5, dtype=torch.float64)
        with torch.no_grad():
            real, walked = wide(**given), Interpreter(wide, dense=True)(**given)
        for (field, _), value in zip(model.module.outputs, walked.values(), strict=True):
            torch.testing.assert_close(getattr(real, field), value, rtol=1e-9, atol=1e-9)


def test_every_parameter_learns(case: str, device: str) -> None:
    """A nonzero gradient for every trainable parameter, in float64, in one of a few draws; none for a frozen one.

    What adds the same to every score of a softmax has no influence by construction: a parameter without a gradient must prove
    it, by changing no output when it is moved.
    """
    for model in models(case):
        wide = copy.deepcopy(model).double().to(device)
        waiting = {name for name, parameter in wide.named_parameters() if parameter.requires_grad}
        for seed in range(4):
            if not waiting:
                break
            given = on(device, draw(wide.program, DRAWS[seed % 2], seed=seed, optional=seed % 2 == 0, dtype=torch.float64))
            wide.zero_grad(set_to_none=True)
            loss(wide(**given)).backward()
            waiting -= {n for n, p in wide.named_parameters() if p.grad is not None and p.grad.abs().max() > 1e-12}
        for name in waiting:
            assert not moves(wide, name, device), (name, said(model))
        assert all(p.grad is None for p in wide.parameters() if not p.requires_grad)


def loss(output: Any) -> torch.Tensor:
    """One number that depends on every output in its own way."""
    parts = [value for value in output if isinstance(value, torch.Tensor) and value.dtype.is_floating_point]
    return sum((p * torch.linspace(0.5, 1.5, p.numel(), dtype=p.dtype, device=p.device).view_as(p)).sin().sum() for p in parts)  # type: ignore[return-value]  # never empty


def moves(model: Model, name: str, device: str) -> bool:
    """Whether a parameter has any influence on any output."""
    given = [on(device, draw(model.program, lengths, seed=9, dtype=torch.float64)) for lengths in DRAWS]
    with torch.no_grad():
        before = [loss(model(**one)) for one in given]
        parameter = model.get_parameter(name)
        kept = parameter.clone()
        parameter.add_(torch.randn_like(parameter))
        after = [loss(model(**one)) for one in given]
        parameter.copy_(kept)
    return any((a - b).abs().item() > 1e-9 * (1 + a.abs().item()) for a, b in zip(before, after, strict=True))


def test_declared_parameters_are_the_built_ones(case: str) -> None:
    """Names, shapes, number and who owns what."""
    for model in models(case):
        table = parameters(model.program)
        own = {entry.name: entry.parameter.shape for entry in table if not entry.tied_to}
        assert own == {name: tuple(value.shape) for name, value in model.state_dict().items()}, said(model)
        assert sum(map(math.prod, own.values())) == sum(p.numel() for p in model.parameters())
        for entry in table:
            assert model.get_parameter(entry.name) is model.get_parameter(entry.owner)
            assert model.get_parameter(entry.owner).requires_grad or not entry.trainable


def test_causal_models_leak_nothing(case: str) -> None:
    """What comes later changes no earlier logit."""
    for model in models(case):
        if model.recipe.task != "causal_lm":
            continue
        given = draw(model.program, DRAWS[1], seed=3, optional=False)
        for cut in (1, 4):
            changed = {name: later(value, cut) if follows_time(model, name) else value for name, value in given.items()}
            with torch.no_grad():
                before, after = model(**given).logits, model(**changed).logits
            torch.testing.assert_close(before[:, :cut], after[:, :cut], rtol=1e-5, atol=1e-5)


def follows_time(model: Model, name: str) -> bool:
    """Whether an input has a value for each token, other than where it stands."""
    type_ = model.program.inputs[name]
    return "time" in map(str, type_.sizes) and name not in ("positions_given", "columns")


def later(value: torch.Tensor, cut: int) -> torch.Tensor:
    """The value with other numbers from `cut` on."""
    return torch.cat([value[:, :cut], value[:, cut:].roll(1, 0).flip(1)], dim=1)


def test_cached_decoding_continues_the_text(case: str, device: str) -> None:
    """At every split, the logits of two calls in a session are those of one call; with left padding too."""
    for model in models(case):
        if model.recipe.task != "causal_lm" or "memory" in model.program.inputs:
            continue
        model.to(device)
        for optional in (False, True):
            given = on(device, draw(model.program, DRAWS[1], seed=4, optional=optional))
            given.pop("length", None)
            if "valid" in given:
                given["valid"][1, :2] = False
            with torch.no_grad():
                whole = model(**given).logits
            for split in range(1, DRAWS[1]["time"]):
                with session(model, capacity=3):
                    parts = [model(**part(model, given, *span)).logits for span in ((0, split), (split, None))]
                torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-4, atol=1e-4)


def part(model: Model, given: Mapping[str, torch.Tensor], start: int, stop: int | None) -> dict[str, torch.Tensor]:
    """The inputs of a stretch of tokens."""
    return {
        name: value[:, start:stop] if "time" in map(str, model.program.inputs[name].sizes) else value
        for name, value in given.items()
    }


def test_rows_do_not_mix(case: str) -> None:
    """In another order of the batch, each row gives the same."""
    for model in models(case):
        given = draw(model.program, DRAWS[1], seed=6)
        batched = {name for name, type_ in model.program.inputs.items() if str(type_.sizes[0] if type_.sizes else "") == "batch"}
        turned = {name: value.flip(0) if name in batched else value for name, value in given.items()}
        with torch.no_grad():
            before, after = model(**given), model(**turned)
        for (field, name), type_ in zip(model.module.outputs, model.program.root.outputs.values(), strict=True):
            if isinstance(type_, TensorType) and type_.axes and str(type_.axes[0].size) == "batch":
                same = getattr(after, field).flip(0)
                torch.testing.assert_close(getattr(before, field), same, rtol=1e-4, atol=1e-4, msg=lambda m, n=name: f"{n}: {m}")


def test_ties_and_values_survive_copying_and_loading(case: str) -> None:
    """A copy, and a model that loads the state by assigning, compute the same and are tied as before."""
    for model in models(case):
        given = draw(model.program, DRAWS[0], seed=7)
        other = model.recipe.compile(device="meta").eval()
        other.load_state_dict({name: value.clone() for name, value in model.state_dict().items()}, strict=True, assign=True)
        with torch.no_grad():
            before = model(**given)
            for again in (copy.deepcopy(model), other):
                for alias, owner in model.module.ties:
                    assert again.get_parameter(alias) is again.get_parameter(owner)
                assert all(torch.equal(a, b) for a, b in zip(before[:-1], again(**given)[:-1], strict=True)), said(model)


def test_bf16_autocast_is_finite(case: str, device: str) -> None:
    """Forward and backward."""
    for model in models(case):
        again = copy.deepcopy(model).to(device).train()
        with torch.autocast(device, dtype=torch.bfloat16):
            output = again(**on(device, draw(model.program, DRAWS[0], seed=8)))
        total = loss([value.float() for value in output[:-1]])
        if total.requires_grad:  # a block without parameters, by itself, has nothing to learn
            total.backward()
        assert all(value.isfinite().all() for value in output[:-1]), said(model)
        assert all(p.grad.isfinite().all() for p in again.parameters() if p.grad is not None), said(model)


def on(device: str, given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The inputs on a device."""
    return {name: value.to(device) for name, value in given.items()}


# -- torch.compile, in processes of its own

COLD = """
import json, sys
import torch
import composer
from tests.conformance.inputs import DRAWS, draw

device, texts = json.loads(sys.argv[1])
for text, settings in texts:
    torch._dynamo.reset()
    recipe = composer.load(text, set=settings)
    model = recipe.compile(seed=1).eval().to(device)
    given = {name: value.to(device) for name, value in draw(model.program, DRAWS[0], seed=2).items()}
    with torch.no_grad():
        before = model(**given)
        after = torch.compile(model, fullgraph=True, backend="aot_eager")(**given)
    for a, b in zip(before[:-1], after[:-1], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
"""
COVERING = [*range(0, 60, 6)]
"""Generated recipes that are also compiled: with their neighbours they share every scenario."""


def cold(texts: list[tuple[str, dict[str, Any]]], device: str) -> None:
    """Compiles recipes whole, without a break, in a process that has traced nothing before."""
    root = str(Path(composer.__file__).parent.parent)
    script = f"import sys; sys.path.insert(0, {root!r})\n{COLD}"
    done = subprocess.run([sys.executable, "-c", script, json.dumps([device, texts])], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("name", ZOO)
def test_zoo_compiles_without_a_break_in_a_fresh_process(name: str, device: str) -> None:
    """Each in a process of its own, since a warm one hides what a cold one trips over."""
    cold([(name, dict(TINY.get(name, {})))], device)


@pytest.mark.parametrize("half", [0, 1])
def test_generated_recipes_compile_without_a_break(half: int, device: str) -> None:
    """A covering subset, and every second block by itself."""
    texts = [generated(seed) for seed in COVERING[half::2]]
    texts += [alone(blocks(standard())[kind], standard(), 0) for kind in ALONE[half::2]]
    cold([(text, {}) for text in texts], device)
