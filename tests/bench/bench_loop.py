"""The host time of a step of the training loop: what a step of `train` takes beyond the same step by hand.

The model is as good as none: an embedding of width 1 and a head of it. After every twenty steps of `train`, a callback makes as
many by hand on each of two copies of the model, as a plain loop would: forward pass, loss, backward pass, clipping, learning
rate, fused AdamW, and the loss as a number, on a batch that is there already; the second copy is a control. So all three are
measured in turn, in one process. What remains of a step of `train` is the draw of the batch, the loss by its recipe, checks,
progress and metrics. A step's time is the mean of twenty, with the two that are logged, and the median of those is told. Times
are those of the thread on the processor, since a machine is seldom quiet; where others use its caches too, the fastest of all
steps is nearest to what a quiet one takes, of a step that is not logged.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import tempfile
import time
from pathlib import Path
from statistics import mean, median

import torch
from torch import nn
from torch.nn import functional as F

import composer
from composer.train import Callback, TrainSettings, characters_of, read_text, tokenize, train

RECIPE = """
recipe: nothing
language: 1
task: causal_lm
params: {vocab: 67}
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: vocab, dim: 1}
  head: {type: linear, out: vocab}
outputs: {logits: head}
"""


TURN = 20
"""Steps until it is another's turn."""


class ByHand:
    """A plain loop over one batch."""

    def __init__(self, model: nn.Module) -> None:
        self.model = copy.deepcopy(model)
        groups = composer.param_groups(self.model, weight_decay=0.1)
        self.optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), fused=True)
        self.tokens = torch.randint(60, (2, 9), generator=torch.Generator().manual_seed(0))
        self.seconds: list[float] = []

    def step(self) -> None:
        """Make a step, and keep how long it took."""
        start = time.thread_time()
        logits = self.model(self.tokens[:, :-1]).logits
        loss = F.cross_entropy(logits.flatten(0, 1), self.tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = 1e-3
        self.optimizer.step()
        self.optimizer.zero_grad()
        loss.item()
        self.seconds.append(time.thread_time() - start)


class Beside(Callback):
    """Measures each step of `train`, and makes others by hand in between."""

    def __init__(self, model: nn.Module) -> None:
        self.hand, self.control = ByHand(model), ByHand(model)
        self.seconds: list[float] = []
        self.start = 0.0

    def before_step(self, step: int, *, logged: bool) -> None:
        """End the step before, and begin this one."""
        if self.start:
            self.seconds.append(time.thread_time() - self.start)
        if step % TURN == 0:
            for by_hand in (self.hand, self.control):
                for _ in range(TURN):
                    by_hand.step()
        self.start = time.thread_time()


def turns(seconds: list[float]) -> list[float]:
    """Return the mean of each turn but the first three."""
    return [mean(seconds[start : start + TURN]) for start in range(3 * TURN, len(seconds) - TURN + 1, TURN)]


def main() -> None:
    """Print the medians of a step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = read_text(Path(composer.__file__).parent / "data" / "shakespeare.txt")
    tokenizer = characters_of(text)
    recipe = composer.load(RECIPE, {"vocab": tokenizer.size})
    data = tokenize(text, tokenizer, path="plays")
    model = recipe.compile(seed=0)
    beside = Beside(model)
    settings = TrainSettings(steps=options.steps, batch_size=2, seq_len=8, validate_every=0, validation_batches=1, save_every=0)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        train(model, tokenizer, data, settings, Path(folder) / "run", recipe=recipe.text, callbacks=[beside])
    loop, hand, control = (1000 * median(turns(each)) for each in (beside.seconds, beside.hand.seconds, beside.control.seconds))
    print(f"train {loop:.3f} ms, by hand {hand:.3f} ms, control {control:.3f} ms: {loop - hand:.3f} ms more for each step")
    loop, hand, control = (1000 * min(each[3 * TURN :]) for each in (beside.seconds, beside.hand.seconds, beside.control.seconds))
    print(f"the fastest of all steps: train {loop:.3f} ms, by hand {hand:.3f} ms, control {control:.3f} ms")


if __name__ == "__main__":
    main()
