"""Every recipe of the zoo trains: `python -m tests.train.every_recipe [NAME…]`, which takes some minutes.

Those that `arco train` trains are trained by their command, on a text, on pairs or on images, all made here; `--list` prints the
commands. Others learn one batch by `composer.loss`, or a loss of one's own. The sizes are those of the conformance suite. In
each, the loss must be finite and fall, and a run must be whole.
"""

from __future__ import annotations

import json
import math
import random
import shlex
import sys
import tempfile
import time
import traceback
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

import composer
from composer.cli import main
from composer.estimate.estimating import batch_of
from composer.graph.dims import names
from composer.graph.types import TensorType
from composer.language.tasks import TASKS
from composer.recipe import zoo_names
from composer.train import open_run
from composer.train.data.fitting import padding_params
from tests.conformance.cases import TINY

STEPS, ROWS, LENGTH = 24, 8, 12
LONGEST = 64
"""Tokens of a source and of a target, at most; pairs are not cut."""
FEW = 4
"""Steps at either end whose mean losses are compared."""
SAMPLES = 24
"""Of a series of numbers: enough frames for a transcript, whose CTC is infinite otherwise."""
SIDE = 16
"""Height and width of images, where a recipe leaves them open."""
VOCAB = 128
"""More than the few letters of the text and all marks of any objective."""
RATE = 3e-3
FEWEST = 2
"""Ids that every table has at tiny sizes."""
TEXT, PAIRS, IMAGES = "text.txt", "pairs.tsv", "images.npz"
DATA: Mapping[str, str] = {
    "causal_lm": TEXT, "masked_lm": TEXT, "denoising": TEXT, "seq2seq_lm": PAIRS, "image_classification": IMAGES,
}  # fmt: skip


def recipe_of(name: str) -> composer.Recipe:
    """Return a recipe at its tiny sizes, with room for the tokens of the data."""
    sizes: dict[str, Any] = dict(TINY.get(name, TINY["llama1"]))
    return composer.load(name, {**sizes, **({"vocab": VOCAB} if "vocab" in sizes else {})})


def command(name: str) -> list[str]:
    """Return the words after `arco` that train a recipe small."""
    recipe = recipe_of(name)
    given = dict(each.partition("=")[::2] for each in map(str, recipe.overrides))
    for param in ("vocab", *padding_params(composer.load(name))):
        given.pop(param, None)  # it follows from the tokenizer of any text
    pairs = recipe.task == "seq2seq_lm"
    if pairs and "context" in given:
        given["context"] = str(LONGEST)
    words = [word for param, value in given.items() for word in ("--set", f"{param}={value}")]
    settings = {
        "data": DATA[recipe.task or ""], "run": f"runs/{name}", "steps": STEPS, "batch-size": ROWS, "learning-rate": RATE,
        "warmup-steps": 2, "log-every": 1, "device": "cpu",
    }  # fmt: skip
    if settings["data"] != IMAGES:
        settings |= {"seq-len": LONGEST if pairs else LENGTH}
    return ["train", name, *words, *(word for key, value in settings.items() for word in (f"--{key}", str(value)))]


def write_data(folder: Path) -> None:
    """Write a text of few letters, pairs of lines of it, and images of colors."""
    draws = random.Random(0)
    lines = ["".join(draws.choice(("bad ", "cab ", "fed ", "ace ")) for _ in range(4)).strip() for _ in range(300)]
    (folder / TEXT).write_text("\n".join(lines), encoding="utf-8")
    (folder / PAIRS).write_text("\n".join(f"{line[:8]}\t{line[:8]}" for line in lines), encoding="utf-8")


def write_images(folder: Path, shape: Sequence[int], classes: int) -> None:
    """Write images of one color each, which is that of their class."""
    labels = np.arange(64) % classes
    pixels = np.random.default_rng(0).normal(0, 0.1, (64, *shape)) + np.linspace(-1, 1, classes)[labels][:, None, None, None]
    np.savez(folder / IMAGES, image=pixels.astype("float32"), label=labels)


def trained_by_command(name: str) -> list[float]:
    """Return the losses of a run in this folder, which is opened again."""
    recipe = recipe_of(name)
    if DATA[recipe.task or ""] == IMAGES:
        image, logits = recipe.program.inputs["image"], recipe.program.root.outputs["logits"]
        assert isinstance(logits, TensorType)
        shape = [SIDE if names(size) else int(size) for size in image.sizes[1:]]
        write_images(Path(), shape, int(logits.sizes[-1]))
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = main(command(name))
    assert code == 0, said.getvalue()
    assert open_run(f"runs/{name}").step == STEPS
    lines = (Path("runs") / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [row["loss"] for row in map(json.loads, lines) if "loss" in row]


def learned_by_loop(name: str) -> list[float]:
    """Return the losses of one batch of random numbers that is learned by heart."""
    recipe = recipe_of(name)
    model = recipe.compile(seed=0).train()
    typed, task = model.program, TASKS.get(recipe.task or "")
    generator = torch.Generator().manual_seed(0)
    open_axes = {axis for type_ in typed.inputs.values() for size in type_.sizes for axis in names(size)}
    measured = {axis for type_ in typed.inputs.values() if type_.dtype == "float" for size in type_.sizes for axis in names(size)}
    batch = batch_of(typed, {axis: 4 if axis == "batch" else SAMPLES if axis in measured else 6 for axis in open_axes})
    for key, value in batch.items():
        if value.is_floating_point():
            batch[key] = torch.randn(value.shape, generator=generator)
        elif value.dtype == torch.long and (task is None or key != task.targets):
            batch[key] = torch.randint(0, FEWEST, value.shape, generator=generator)
    optimizer = torch.optim.AdamW(composer.param_groups(model, weight_decay=0.0), lr=RATE)
    losses = []
    for _ in range(STEPS):
        torch.manual_seed(0)  # what is drawn, such as patches that are hidden, is the same in each step
        total = loss_of(model, batch)
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(total.detach()))
    return losses


def loss_of(model: composer.Model, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Return the loss; of a recipe without one, such as of diffusion, the mean squared distance of its outputs from ones."""
    typed = model.program.untyped
    if typed.losses or (typed.recipe.task or "encoder") != "encoder":
        return composer.loss(model, batch).total
    outputs = [each for each in model(**batch)._asdict().values() if isinstance(each, torch.Tensor) and each.is_floating_point()]
    return torch.stack([(each - 1).square().mean() for each in outputs]).sum()


def learn(name: str) -> str:
    """Train a recipe in this folder, and return what its loss did.

    Raises:
        AssertionError: The loss is not finite, or has not fallen.
    """
    way: Callable[[str], list[float]] = trained_by_command if (recipe_of(name).task or "") in DATA else learned_by_loop
    losses = way(name)
    assert len(losses) == STEPS and all(map(math.isfinite, losses)), losses
    first, last = (sum(some) / FEW for some in (losses[:FEW], losses[-FEW:]))
    assert last < first, f"the loss went from {first:.3f} to {last:.3f}"
    return f"{first:.3f} → {last:.3f}"


def run(recipes: Sequence[str]) -> int:
    """Train recipes one after the other, say how each went, and return how many failed."""
    failed = []
    for name in recipes:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            write_data(Path())
            try:
                found = learn(name)
            except Exception:
                failed.append(name)
                found = f"FAILED\n{traceback.format_exc()}"
        print(f"{name:24} {found}  ({time.perf_counter() - start:.1f} s)", flush=True)
    print(f"{len(recipes) - len(failed)} of {len(recipes)} recipes train" + (f"; not {', '.join(failed)}" if failed else ""))
    return len(failed)


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="recipes (default: all)")
    parser.add_argument("--list", action="store_true", help="print the commands alone")
    given = parser.parse_args()
    chosen = given.names or zoo_names()
    if given.list:
        print("\n".join(shlex.join(["arco", *command(each)]) for each in chosen if (recipe_of(each).task or "") in DATA))
        sys.exit()
    sys.exit(1 if run(chosen) else 0)
