"""A training step with the logits of all positions at once, and in the chunks that `arco train` takes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import composer
from composer.train.chunked_loss import positions_at_a_time
from composer.train.techniques.precision import autocast
from tests.bench.gpu.setting import Setting, Work, mib

ROWS, LENGTH, DIM, LAYERS = 8, 1024, 768, 2
VOCABULARIES = (50_257, 128_256)


def run(setting: Setting) -> None:
    """Measure both vocabularies."""
    rows, length, dim = (2, 32, 32) if setting.toy else (ROWS, LENGTH, DIM)
    for words in (17_001,) if setting.toy else VOCABULARIES:
        sizes = {"vocab": words, "d_model": dim, "n_layers": LAYERS, "n_heads": dim // 16, "context": length, "dropout": 0}
        model = composer.load("gpt2", sizes).compile(seed=0, device=setting.device).train()
        tokens = torch.randint(words, (rows, length), device=setting.device)
        usual = positions_at_a_time(words, words * dim)
        steps = {chunk: step(setting, model, tokens, chunk) for chunk in (0, usual, 1024, 4096)}
        found, apart = setting.times({str(chunk): work for chunk, work in steps.items()})
        for chunk, work in steps.items():
            name = f"{chunk:,} at a time" if chunk else "all at once"
            with setting.case(name, words=words, positions=rows * length, usual=chunk == usual) as row:
                row |= {"ms": 1000 * found[str(chunk)], "times as fast": found["0"] / found[str(chunk)], "A/A": apart}
                row["most MiB"] = mib(setting.peak(work))


def step(setting: Setting, model: nn.Module, tokens: Tensor, chunk: int) -> Work:
    """Return a step with logits in chunks of positions; all at once for 0."""

    def run() -> None:
        with autocast(setting.device, "bf16"):
            loss = composer.loss(model, {"tokens": tokens}, logits_chunk=chunk).total
        loss.backward()
        model.zero_grad()

    return run
