"""`arco demo`: from a recipe to text, in about three minutes on a laptop."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.generate import write
from composer.cli.running import add_device, rebuild, refusals
from composer.cli.train import free_folder, sized, trained
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
"""Found on two cores: about 100 s of steps, and 1.65 nats per character."""
PROMPT = "HAMLET"


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """How long, and where to keep the run."""
    parser.add_argument(
        "--steps", metavar="N", type=int, default=SETTINGS["steps"], help="updates of the weights (default: %(default)s)"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="decides every random number (default: 0)")
    parser.add_argument("--run", metavar="FOLDER", type=Path, dest="folder", help="where to keep the run (default: runs/demo)")
    add_device(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check, summarize, train, compare with counting, draw, write."""
    from composer.recipe import load

    recipe = load(RECIPE)
    heading(f"arco check {RECIPE}")
    wrong = recipe.check()
    print(report(wrong) if wrong else f"{RECIPE}: nothing wrong")
    if any(diagnostic.severity == "error" for diagnostic in wrong):
        return 1
    with refusals():
        result = train(recipe, arguments)
        compare(result)
        draw(recipe, result)
        listen(result, arguments)
    return 0


def heading(command: str) -> None:
    """The command that shows by itself what follows."""
    print(f"\n$ {command}\n", flush=True)


def train(recipe: Recipe, arguments: argparse.Namespace) -> Result:
    """Train the recipe on the plays."""
    from composer.train import TrainSettings, characters_of, read_text, tokenize

    text = read_text(plays())
    tokenizer = characters_of(text)
    recipe = sized(recipe, tokenizer)
    settings = TrainSettings(**{**SETTINGS, "steps": arguments.steps, "seed": arguments.seed})
    heading(f"arco summary {RECIPE} --at time={settings.seq_len}")
    print(recipe.summary({"time": settings.seq_len}))
    folder = arguments.folder or free_folder("demo")
    heading(f"arco train {RECIPE} --data shakespeare.txt --run {folder}")
    data = tokenize(text, tokenizer, path=plays())
    return trained(recipe, tokenizer, data, settings, folder, arguments.device)


def compare(result: Result) -> None:
    """What was reached, beside what counting reaches on the same held-out text."""
    from composer.evaluate.ngrams import witten_bell
    from composer.train import read_text, split

    print(f"\n{result.step} steps in {result.seconds:.0f} s. Held-out text, in nats per character; less is better:\n")
    kept, held_out = split(read_text(plays()))
    names = ["counting characters", "counting pairs", *(f"counting {n} in a row" for n in (3, 4, 5))]
    for name, nats in zip(names, witten_bell(kept, held_out), strict=True):
        print(f"  {name:<24}{nats:.2f}")
    print(f"  {RECIPE:<24}{result.validation.per_character:.2f}")


def draw(recipe: Recipe, result: Result) -> None:
    """The figure of what was trained, beside its measurements."""
    path = result.run / f"{RECIPE}.svg"
    heading(f"arco draw {RECIPE} -o {path}")
    recipe.draw().save(path)
    print(path)


def listen(result: Result, arguments: argparse.Namespace) -> None:
    """Let the trained model write."""
    from composer.decode import Sampling
    from composer.train import open_run

    heading(f"arco generate {result.run} --prompt {PROMPT} --temperature 0.8")
    model = open_run(result.run, build=rebuild((), arguments.device))
    write(model, PROMPT, tokens=500, sampling=Sampling(temperature=0.8), seed=arguments.seed)
    print(f"\nThe run is in {result.run}: go on with `arco train --resume {result.run} --steps 3000`.")
