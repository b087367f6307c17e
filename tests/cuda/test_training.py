"""Training on a GPU: precisions, resuming, memory, and no waiting for the device."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

import composer
from composer.cost.lengths import lengths_of
from composer.estimate.estimating import batch_of, traced_step
from composer.lower.accelerate import accelerate
from composer.train import RunFolder, TrainSettings, characters_of, resume, tokenize, train
from composer.train.loop import build_optimizer, update, with_logits_chunk
from composer.train.run.reader import read_run
from tests.train.small import TEXT, Quiet

SETTINGS: dict[str, Any] = {
    "steps": 8, "batch_size": 4, "seq_len": 24, "learning_rate": 3e-3, "warmup_steps": 2, "seed": 5, "log_every": 1,
    "validate_every": 4, "validation_batches": 2, "save_every": 4,
}  # fmt: skip
SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_layers": 2, "d_model": 64, "n_heads": 4, "context": 64, "dropout": 0.1},
    "llama3": {"n_layers": 2, "d_model": 64, "n_heads": 4, "n_kv_heads": 2, "hidden": 96},
    "mixtral": {"n_layers": 2, "d_model": 64, "n_heads": 4, "n_kv_heads": 2, "hidden": 96},
    "mamba": {"n_layers": 2, "d_model": 64},
    "lstm_lm": {},
}
TIMES = ("seconds", "tokens_per_second")


def recipe(name: str, vocab: int) -> composer.Recipe:
    """Return a recipe of the zoo in the size of a test."""
    return composer.load(name, {**SIZES[name], "vocab": vocab})


def trained(name: str, folder: Path, gpu: str, *, stop: int | None = None, **changed: Any) -> None:
    """Train in a new folder; at `stop`, as if by Control-C, and on to the end from there."""
    tokenizer, path = characters_of(TEXT), folder.parent / "text.txt"
    path.write_text(TEXT, encoding="utf-8", newline="")
    settings = TrainSettings(**{**SETTINGS, **changed})
    model = recipe(name, tokenizer.size).compile(seed=1).to(gpu)

    def after(step: int) -> None:
        if step == stop:
            raise KeyboardInterrupt

    def begin() -> None:
        train(
            model, tokenizer, tokenize(TEXT, tokenizer, path=path), settings, folder, recipe=model.recipe.text, show=Quiet(after)
        )

    if stop is None:
        begin()
        return
    with pytest.raises(KeyboardInterrupt):
        begin()
    resume(folder, build=lambda text: recipe(name, tokenizer.size).compile(seed=2).to(gpu), show=Quiet())


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return all that a run measured, but for what the clock and the allocator decide."""
    found = [json.loads(line) for line in RunFolder(folder).metrics.read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in line.items() if key not in (*TIMES, "memory")} for line in found]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", SIZES)
def test_a_run_that_stops_and_goes_on_is_the_run_that_never_stopped(name: str, precision: str, gpu: str, tmp_path: Path) -> None:
    """Bit for bit, dropout included: every number and every tensor."""
    trained(name, tmp_path / "whole", gpu, precision=precision)
    trained(name, tmp_path / "run", gpu, precision=precision, stop=6)
    assert lines(tmp_path / "run") == lines(tmp_path / "whole")
    whole, run = (read_run(tmp_path / each) for each in ("whole", "run"))
    one, two = (each.checkpoint(each.name(None)) for each in (whole, run))
    for ours, theirs in ((one.model, two.model), (one.optimizer, two.optimizer), (one.random, two.random)):
        assert ours.keys() == theirs.keys()
        assert [key for key in ours if not torch.equal(ours[key], theirs[key])] == []


@pytest.mark.parametrize("optimizer", ["adamw", "adafactor", "muon", "sgd"])
def test_a_run_learns_on_the_gpu_what_it_learns_on_the_cpu(optimizer: str, gpu: str, tmp_path: Path) -> None:
    """Without dropout and in fp32, to rounding; with matrix products in bfloat16, nearly so."""
    found = []
    for place, precision in (("cpu", "fp32"), (gpu, "fp32"), (gpu, "bf16")):
        folder = tmp_path / str(len(found))
        trained("llama3", folder, place, precision=precision, optimizer=optimizer)
        found.append(torch.tensor([line["loss"] for line in lines(folder) if "loss" in line]))
    expected, full, half = found
    assert expected[-1] < expected[0]
    torch.testing.assert_close(full, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(half, expected, rtol=0.02, atol=0.02)


@contextmanager
def no_waiting(gpu: str) -> Iterator[None]:
    """Raises where an operator waits for the device."""
    if gpu == "cuda":
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        if gpu == "cuda":
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", ["gpt2", "llama3", "mamba", "mixtral"])
def test_a_forward_and_a_backward_pass_never_wait_for_the_gpu(name: str, gpu: str) -> None:
    """So the host can run ahead, and a CUDA graph can capture them. Experts have a kernel where widths are multiples of 8."""
    model = recipe(name, 64).compile(seed=1).to(gpu).train()
    text = torch.randint(64, (2, 16), generator=torch.Generator().manual_seed(0)).to(gpu)
    for attempt in range(2):  # the first call may measure, and loads kernels
        with no_waiting(gpu if attempt else "cpu"), torch.autocast(gpu, torch.bfloat16):
            output = model(text)
            (output.logits.float().square().mean() + sum(output.losses.values())).backward()


def workspaces() -> int:
    """Return the bytes that cuBLAS takes for itself: once for the thread of the forward pass, and once for that of the backward
    pass.
    """
    return 2 * ((32 << 20) if torch.cuda.get_device_capability() >= (9, 0) else 8_519_680)


@pytest.mark.parametrize(("name", "lengths"), [("gpt2", {"batch": 8, "time": 256}), ("llama3", {"batch": 4, "time": 512})])
@pytest.mark.parametrize("chosen", [{}, {"precision": "bf16"}, {"recompute": ("layers.*",)}, {"logits_chunk": 300}])
def test_the_estimated_peak_is_what_the_allocator_holds(name: str, lengths: dict[str, int], chosen: Any, gpu: str) -> None:
    """Within a tenth."""
    from composer.train.techniques.recompute import recomputing

    if gpu != "cuda":
        pytest.skip("torch has no peak of a CPU")
    sizes = {"vocab": 20_011, "d_model": 512, "n_layers": 6, "n_heads": 8}
    own = {"context": 512} if name == "gpt2" else {"n_kv_heads": 4, "hidden": 1024}
    loaded = composer.load(name, {**sizes, **own})
    settings = TrainSettings(**{"precision": "fp32", **chosen})
    at = lengths_of(loaded.program, lengths)
    estimated = traced_step(loaded.compile(device="meta"), at, settings, on_gpu=True).memory.peak
    model = loaded.compile(seed=0).to(gpu).train()
    optimizer = build_optimizer(model, settings)
    settings = with_logits_chunk(settings, model)
    batch = {key: value.to(gpu) for key, value in batch_of(model.program, at).items()}
    with recomputing(model, settings.recompute):
        for _ in range(2):
            update(model, optimizer, [batch], settings, rate=1e-3)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        update(model, optimizer, [batch], settings, rate=1e-3)
        torch.cuda.synchronize()
    assert estimated + workspaces() == pytest.approx(torch.cuda.max_memory_allocated(), rel=0.1)


@pytest.mark.parametrize("name", ["gpt2", "llama3", "mixtral"])
def test_blocks_compiled_for_the_gpu_compute_the_same(name: str, gpu: str) -> None:
    """Logits and gradients of `accelerate`, in fp32."""
    model = recipe(name, 61).compile(seed=3).to(gpu).eval()
    fast = accelerate(copy.deepcopy(model))
    text = torch.randint(61, (2, 19), generator=torch.Generator().manual_seed(0)).to(gpu)
    outputs = [each(text).logits for each in (model, fast)]
    torch.testing.assert_close(outputs[1], outputs[0], rtol=1e-3, atol=1e-3)
    for output in outputs:
        output.square().mean().backward()
    for (path, one), two in zip(model.named_parameters(), fast.parameters(), strict=True):
        torch.testing.assert_close(two.grad, one.grad, rtol=1e-3, atol=1e-4, msg=lambda m, path=path: f"{path}: {m}")


@pytest.mark.parametrize("name", ["gpt2", "llama3", "mixtral", "mamba", "lstm_lm"])
def test_a_model_drawn_on_the_gpu_has_the_numbers_of_the_cpu(name: str, gpu: str) -> None:
    """The first weights depend on the seed alone."""
    one, two = recipe(name, 61).compile(seed=4), recipe(name, 61).compile(seed=4, device=gpu)
    for (path, ours), theirs in zip(one.named_parameters(), two.parameters(), strict=True):
        assert theirs.device.type == gpu
        assert torch.equal(ours, theirs.cpu()), path
