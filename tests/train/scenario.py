"""A run of a second to which accidents happen, and what may become of it: the same numbers, or one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from composer.train import TrainingError, TrainSettings, characters_of, open_run, resume, tokenize, train
from composer.train.run.folder import RunFolder
from composer.train.run.reader import read_run
from tests.train.small import TEXT, Quiet, SmallGPT

SETTINGS = TrainSettings(
    steps=6, batch_size=2, seq_len=7, learning_rate=3e-3, warmup_steps=2, seed=5,
    log_every=1, validate_every=3, validation_batches=2, save_every=2,
)  # fmt: skip
"""Validations after steps 3 and 6, checkpoints after 2, 4 and 6: one with both, and each alone."""
RECIPE = "composer: 1\nname: small\n"
SHORT_TEXT = TEXT[:1500]
TIMES = ("seconds", "tokens_per_second")
KEPT = "complete, bit-equal"
REFUSED = "refused in one line"
ANEW = "nothing to lose yet, begun anew: bit-equal"


def build(recipe: str) -> SmallGPT:
    """Return the small model with its first weights."""
    torch.manual_seed(11)
    return SmallGPT(characters_of(SHORT_TEXT).size)


def trained(folder: Path, after: Callable[[int], None] = lambda step: None) -> None:
    """Train the small model in a new folder."""
    tokenizer, path = characters_of(SHORT_TEXT), folder.parent / "text.txt"
    path.write_text(SHORT_TEXT, encoding="utf-8", newline="")
    train(
        build(RECIPE), tokenizer, tokenize(SHORT_TEXT, tokenizer, path=path), SETTINGS, folder, recipe=RECIPE, show=Quiet(after)
    )


def continued(folder: Path, **options: Any) -> None:
    """Continue the training in a folder."""
    resume(folder, build=build, show=Quiet(), **options)


def result(folder: Path) -> tuple[Any, ...]:
    """Return all that a finished run leaves: every number but those of the clock, and every tensor, as bytes."""
    lines = [json.loads(line) for line in RunFolder(folder).metrics.read_text(encoding="utf-8").splitlines()]
    run = read_run(folder)
    saved = run.checkpoint(run.name(None))
    parts = {"model": saved.model, "optimizer": saved.optimizer, "random": saved.random}
    tensors = {f"{part}/{name}": t.numpy().tobytes() for part, tensors in parts.items() for name, t in tensors.items()}
    kept = [{key: value for key, value in line.items() if key not in TIMES} for line in lines]
    return saved.step, saved.tokens, kept, sorted(tensors.items())


def recovered(folder: Path, expected: tuple[Any, ...]) -> str:
    """Do what a user would do after an accident, and return what comes of it.

    Raises:
        AssertionError: The run ends with other numbers.
    """
    try:
        continued(folder)
    except TrainingError as error:
        assert "\n" not in str(error), error
        message = str(error)
        if "has already completed" not in message:
            assert error.hint, error
            if "is not a run folder" in message:
                trained(folder)
            elif "has no checkpoint yet" in message:
                folder = folder.with_name(f"{folder.name}-again")
                trained(folder)
            else:
                raise
            assert result(folder) == expected
            return ANEW
    assert result(folder) == expected
    return KEPT


def interrupted(folder: Path) -> None:
    """Leave a run that died after step 5, with checkpoints of steps 2 and 4, and a line that no checkpoint has sealed."""

    def die(step: int) -> None:
        if step == 5:
            raise KeyboardInterrupt

    try:
        trained(folder, die)
    except KeyboardInterrupt:
        return


def ended(folder: Path, **options: Any) -> tuple[Any, ...]:
    """Return the result of a run after it was continued."""
    continued(folder, **options)
    return result(folder)


def weights(folder: Path) -> tuple[Any, ...]:
    """Return what a run is opened for."""
    run = open_run(folder, build=build)
    tensors = {name: tensor.numpy().tobytes() for name, tensor in run.model.state_dict().items()}
    return run.step, run.tokenizer, run.settings, sorted(tensors.items())


def tried(work: Callable[[], object], expected: object, file: Path) -> str:
    """Return whether some work on a damaged run gave what it should or one line about the file.

    Raises:
        AssertionError: It gave something else.
    """
    try:
        found = work()
    except TrainingError as error:
        assert "\n" not in str(error) and error.hint and file.name in str(error), error
        return REFUSED
    assert found == expected, "other numbers"
    return KEPT
