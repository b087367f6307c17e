"""`arco demo`: from a recipe to generated text in about three minutes on a laptop."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli import demo_models
from composer.cli.arguments import Parser, Problem, StoreOnce, integer
from composer.cli.output import add_output, say
from composer.cli.running import add_device, rebuild, refusals
from composer.cli.training.train import free_folder, trained
from composer.cli.training.vocabulary import sized
from composer.cli.writing.generate import write
from composer.cli.writing.voices import voice_of_run
from composer.diagnostics import report
from composer.package_data import plays

if TYPE_CHECKING:
    from composer.recipe import Recipe
    from composer.train import Result

RECIPE = "gpt_mini"
SETTINGS = {
    "steps": 900, "batch_size": 16, "seq_len": 128, "learning_rate": 3e-3, "warmup_steps": 50, "min_lr_ratio": 0.02,
    "beta2": 0.99, "validate_every": 300, "validation_batches": 20, "save_every": 450,
}  # fmt: skip
"""Tuned on two CPU cores: about 100 s of training, down to 1.65 nats per character."""
PROMPT = "HAMLET"


def declare(parser: Parser, name: str) -> None:
    """Declare how long to train, and where to write the runs."""
    parser.add_argument(
        "--steps",
        metavar="N",
        type=integer,
        help=f"Number of optimizer steps (default: {SETTINGS['steps']}; with --compare, {demo_models.SETTINGS['steps']} for each "
        "model)",
    )
    parser.add_argument("--seed", metavar="N", type=integer, default=0, help="Random seed")
    parser.add_argument(
        "--run",
        metavar="RUN",
        action=StoreOnce,
        type=Path,
        dest="folder",
        help="Run folder to write (default: runs/demo); with --compare, it holds a run folder for each model",
    )
    add_device(parser)
    several = parser.add_argument_group("Comparison")
    several.add_argument(
        "--compare", action="store_true", help="Train six small models on the same plays instead, in about 15 minutes"
    )
    several.add_argument(
        "--only", metavar="RECIPE", choices=tuple(demo_models.MODELS), action="append", default=[], help="Train only this model"
    )
    add_output(several, "Also write the table to this file, as a Markdown page")
    parser.examples = [
        ("Run all of it on nine plays by Shakespeare", "arco demo"),
        ("Take a quick look", "arco demo --steps 100 --run runs/quick"),
        ("Compare recurrent, convolutional, attention and mixture-of-experts models", "arco demo --compare -o comparison.md"),
    ]
    parser.notes = (
        "The demo checks, measures and trains gpt_mini, compares it with n-grams, draws it and generates text, and prints the "
        "command for each step. An interrupted comparison resumes where it stopped."
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check, measure, train, compare with n-grams, draw and generate; with `--compare`, compare six models."""
    from composer.loading import load
    from composer.train.run.folder import new_folder

    if arguments.compare:
        return demo_models.run(arguments)
    for name in ("only", "output"):
        if getattr(arguments, name):
            raise Problem(f"arco demo: --{name} only works with --compare", "add --compare, or `arco demo -h` lists the options")
    with refusals():
        folder = free_folder("demo") if arguments.folder is None else new_folder(arguments.folder).path
    say(f"run folder: {folder}")
    recipe = load(RECIPE)
    heading(f"arco check {RECIPE}")
    found = recipe.check()
    print(report(found) if found else f"{RECIPE}: no problems found")
    if any(diagnostic.severity == "error" for diagnostic in found):
        return 1
    with refusals():
        result = train(recipe, folder, arguments)
        beside_ngrams(result)
        draw(recipe, result)
        sample(result, arguments)
    return 0


def heading(command: str) -> None:
    """Print the command that does what follows."""
    print(f"\n$ {command}\n", flush=True)


def train(recipe: Recipe, folder: Path, arguments: argparse.Namespace) -> Result:
    """Train the recipe on the plays, with its summary first."""
    from composer.train import TrainSettings, characters_of, read_text, tokenize

    text = read_text(plays())
    tokenizer = characters_of(text)
    recipe = sized(recipe, tokenizer)
    settings = TrainSettings(
        **{**SETTINGS, "steps": SETTINGS["steps"] if arguments.steps is None else arguments.steps, "seed": arguments.seed}
    )
    heading(f"arco summary {RECIPE} --at time={settings.seq_len}")
    print(recipe.summary({"time": settings.seq_len}))
    heading(f"arco train {RECIPE} --data shakespeare.txt --run {folder}")
    data = tokenize(text, tokenizer, path=plays())
    return trained(recipe, tokenizer, data, settings, folder, arguments.device)


def beside_ngrams(result: Result) -> None:
    """Print the validation loss beside those of n-grams on the same held-out text."""
    from composer.evaluate.ngrams import witten_bell
    from composer.train import read_text, split

    print(f"\n{result.step} steps in {result.seconds:.0f} s. Validation loss in nats per character (lower is better):\n")
    kept, held_out = split(read_text(plays()))
    for name, nats in zip(demo_models.NGRAMS, witten_bell(kept, held_out), strict=True):
        print(f"  {name:<10}{nats:.2f}")
    print(f"  {RECIPE:<10}{result.validation.per_character:.2f}")


def draw(recipe: Recipe, result: Result) -> None:
    """Draw the model into its run folder."""
    path = result.run / f"{RECIPE}.svg"
    heading(f"arco draw {RECIPE} -o {path}")
    recipe.draw().save(path)
    say(f"wrote {path}")


def sample(result: Result, arguments: argparse.Namespace) -> None:
    """Generate text with the trained model."""
    from composer.decode import Sampling, cached
    from composer.train import open_run

    heading(f"arco generate {result.run} --prompt {PROMPT} --max-new-tokens 500 --temperature 0.8")
    model = open_run(result.run, build=rebuild((), arguments.device))
    drawn = Sampling(temperature=0.8)
    write(voice_of_run(model, PROMPT), max_new_tokens=500, sampling=drawn, seed=arguments.seed, reading=cached)
    say(f"\nThe run folder is {result.run}; to train further: arco train --resume {result.run} --steps 3000")
