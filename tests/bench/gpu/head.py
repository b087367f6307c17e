"""A training step with the logits of all positions at once, and in the chunks that `arco train` takes."""

from __future__ import annotations

import torch

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
        with setting.case(f"{words:,} words", positions=rows * length) as row:
            sizes = {"vocab": words, "d_model": dim, "n_layers": LAYERS, "n_heads": dim // 16, "context": length, "dropout": 0}
            model = composer.load("gpt2", sizes).compile(seed=0, device=setting.device).train()
            tokens = torch.randint(words, (rows, length), device=setting.device)
            usual = positions_at_a_time(words, words * dim)

            def step(chunk: int) -> Work:
                def run() -> None:
                    model.zero_grad()  # noqa: B023
                    with autocast(setting.device, "bf16"):
                        loss = composer.loss(model, {"tokens": tokens}, logits_chunk=chunk).total  # noqa: B023
                    loss.backward()

                return run

            ways = {"all at once": step(0), f"{usual} at a time": step(usual), "1024 at a time": step(1024)}
            for name, work in ways.items():
                with setting.part(row, name):
                    work()
                    model.zero_grad()
                    row[f"{name}, most MiB"] = mib(setting.peak(work))
            found, apart = setting.times(ways)
            row |= {f"{name}, ms": 1000 * seconds for name, seconds in found.items()} | {"A/A": apart}
            del model
