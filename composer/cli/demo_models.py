"""`arco demo --compare`: six small models trained on the same plays, in one table with n-grams."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.output import say, write_file
from composer.cli.running import rebuild, refusals
from composer.cli.training.train import RUNS, option_of, trained
from composer.package_data import plays

if TYPE_CHECKING:
    from composer.train import TextData, Tokenizer, TrainSettings

SETTINGS = {
    "steps": 1000, "batch_size": 16, "seq_len": 128, "learning_rate": 3e-3, "warmup_steps": 50, "min_lr_ratio": 0.02,
    "beta2": 0.99, "validate_every": 250, "validation_batches": 20, "save_every": 100,
}  # fmt: skip
"""The same for all models: each reads the same characters in the same order."""
MODELS: Mapping[str, Mapping[str, object]] = {
    "rnn_lm": {"hidden": 256},
    "mlp_lm": {},
    "conv_lm": {},
    "lstm_lm": {},
    "gpt_mini": {},
    "mixtral": {
        "context": 128, "d_model": 128, "n_layers": 4, "n_heads": 4, "n_kv_heads": 2, "hidden": 128, "theta": 10000,
    },
}  # fmt: skip
"""The recipes with their overrides, in the order of the table."""
NGRAMS = ("unigrams", "bigrams", "trigrams", "4-grams", "5-grams")
PAGE = """# Models on the plays

Six small character-level models are trained on nine plays by Shakespeare and evaluated on the last tenth of the text, which is
held out. Each makes {steps:,} steps of {batch_size} sequences of {seq_len} characters, with the same schedule. The first
rows are n-grams on the same text ([Witten and Bell 1991](https://doi.org/10.1109/18.87000)). Lower is better.

{table}

`arco demo --compare -o docs/models-on-plays.md` wrote this page, with {threads}. Finished rows are kept in `runs/compare`,
so the command can be interrupted and resumed. Seconds cover the training steps only. More steps, larger widths or a schedule
tuned for each model may rank them differently. To train one of them:

```sh
{command}
```
"""


@dataclass(frozen=True)
class ResultRow:
    """A row of the table."""

    name: str
    nats: float
    """Per character of the held-out text."""
    parameters: int | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        count = f"{self.parameters:,}" if self.parameters is not None else ""
        return f"| {self.name} | {count} | {self.nats:.3f} | {f'{self.seconds:.0f}' if self.seconds is not None else ''} |"


def run(arguments: argparse.Namespace) -> int:
    """Train the models that are not yet trained, and print the table."""
    import torch

    from composer.train import TrainSettings, characters_of, read_text, tokenize

    text = read_text(plays())
    tokenizer = characters_of(text)
    data = tokenize(text, tokenizer, path=plays())
    steps = SETTINGS["steps"] if arguments.steps is None else arguments.steps
    settings = TrainSettings(**{**SETTINGS, "steps": steps, "seed": arguments.seed})
    folder = arguments.folder or RUNS / "compare"
    say(f"run folders: {folder}")
    rows = list(counted(text))
    with refusals():
        for name in arguments.only or MODELS:
            rows.append(row(name, folder / name, settings, tokenizer, data, arguments.device))
    shown = "\n".join(["| model | parameters | nats per character | seconds |", "|---|---:|---:|---:|", *map(str, rows)])
    print(f"\n{shown}")
    if arguments.output is not None:
        print()
        write_file(Path(arguments.output), page(shown, settings, torch.get_num_threads()))
    return 0


def page(table: str, settings: TrainSettings, threads: int) -> str:
    """Return the page around the table."""
    return PAGE.format(
        table=table,
        steps=settings.steps,
        batch_size=settings.batch_size,
        seq_len=settings.seq_len,
        threads=f"{threads} thread{'s' * (threads != 1)}",
        command=command("mixtral"),
    )


def command(name: str) -> str:
    """Return the command that trains one of the models."""
    by_set = "".join(f" --set {path}={value}" for path, value in MODELS[name].items())
    words = [f"{option_of(key)} {value}" for key, value in SETTINGS.items()]
    lines = [f"arco train {name}{by_set}", "--data composer/data/shakespeare.txt", " ".join(words[:6]), " ".join(words[6:])]
    return " \\\n  ".join(lines)


def counted(text: str) -> Iterator[ResultRow]:
    """Yield the rows of the n-grams."""
    from composer.evaluate.ngrams import witten_bell
    from composer.train import split

    for name, nats in zip(NGRAMS, witten_bell(*split(text)), strict=True):
        yield ResultRow(name, nats)


def row(name: str, folder: Path, settings: TrainSettings, tokenizer: Tokenizer, data: TextData, device: str | None) -> ResultRow:
    """Return the row of a model, after training it or finishing its run."""
    from composer.compare.runs import clear
    from composer.loading import load
    from composer.train import RunFolder, resume
    from composer.train.run.reader import read_run

    recipe = load(name, overrides={**MODELS[name], "vocab": tokenizer.size})
    begun = RunFolder(folder).manifest.exists()
    if begun and (saved := read_run(folder)).manifest.latest is None:
        clear(saved)
        begun = False
    if not begun:
        trained(recipe, tokenizer, data, settings, folder, device)
    elif done(folder, settings) is None:
        say(f"resuming {name}; run folder {folder}")
        resume(folder, build=rebuild((), device), settings=settings, recipe=recipe.text, data=plays())
    last = done(folder, settings)
    assert last is not None  # training ends with a validation
    return ResultRow(name, last["validation_loss_per_character"], recipe.summary().costs.parameters, last["seconds"])


def done(folder: Path, settings: TrainSettings) -> Mapping[str, float] | None:
    """Return the last metrics of a finished run; None if the run is unfinished or has other settings.

    Raises:
        TrainingError: A file of the run is damaged.
    """
    from composer.train.run.reader import last_line, read_run

    run = read_run(folder)
    if run.settings != settings or run.manifest.latest is None:
        return None
    last = last_line(run.metrics(run.manifest.latest), run.folder.metrics)
    return last if last is not None and last["step"] == settings.steps else None
