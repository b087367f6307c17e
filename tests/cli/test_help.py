"""Help: every command in its group, every option in its group, and examples that run."""

from __future__ import annotations

import json
import random
import re
import shlex
from pathlib import Path

import pytest

from composer.cli import COMMANDS, GROUPS, declare
from composer.cli.arguments import Parser
from tests.cli.conftest import Arco
from tests.docs.pages import ROOT, examples
from tests.published.examples import CONFIGS, write_example
from tests.train.test_transcripts import RATE, TONES, write_tones

PARSERS = {name: declare(Parser(prog=f"arco {name}"), name) for name in COMMANDS}
EXAMPLES = [(name, command) for name, parser in PARSERS.items() for _, command in parser.examples]
TRAINS = ("train", "demo", "compare", "evaluate", "generate", "export", "report")
"""Commands whose examples train first, which takes seconds: where tests are not exhaustive, every third of them runs."""
SHARES = [
    () if name not in TRAINS else pytest.mark.slow if index % 3 == 0 else pytest.mark.exhaustive
    for index, (name, _) in enumerate(EXAMPLES)
]
METAVARS = {
    "AXIS=LENGTH", "BLOCK", "CODE", "DEPTHS", "DIR", "DEVICE", "FILE", "FILE.py", "FOLDER", "LENGTH", "LENGTHS", "MASK", "N",
    "NAME", "NAME=COLUMN", "NAME=N", "NAME=NUMBERS", "OTHER", "P", "PATH", "PATH[=PASSES]", "PATH=TEXT", "PATH=VALUE", "PATTERN",
    "RECIPE", "RECIPE|REVISION", "RUN", "SHELL", "SIZE", "TEXT", "TITLE=PATHS", "X",
}  # fmt: skip
"""What values are called; choices are called as their option."""
EXPERIMENT = """experiment: depth
data: input.txt
variants: {one: {recipe: gpt_mini, set: {n_layers: 1, d_model: 16}}, two: {recipe: gpt_mini, set: {d_model: 16}}}
seeds: 2
budget: {steps: 2}
train: {batch_size: 2, seq_len: 8, warmup_steps: 1}
"""
QUICK = ["--steps", "2", "--device", "cpu"]
TINY = ["--seq-len", "8", "--batch-size", "2", "--warmup-steps", "1", "--set", "d_model=16", "--set", "n_heads=2"]


def test_every_command_has_a_line_in_its_group(arco: Arco) -> None:
    """Also for bare `arco` and `arco help`."""
    done = arco()
    assert (done.code, done.err) == (0, "") and done == arco("help") == arco("-h") == arco("--help")
    place = -1
    for title, commands in GROUPS.items():
        place = done.out.index(f"\n\n{title}:\n", place + 1)
        for name, (_, does) in commands.items():
            place = done.out.index(f"\n  {name:<10}  {does}\n", place)
    assert "\nExit codes:\n  0 " in done.out
    assert max(map(len, done.out.splitlines())) <= 100


def test_the_readme_has_the_same_groups() -> None:
    """And the same order."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text[text.index("| | command |") :].partition("\n\n")[0].splitlines()[2:]
    groups: dict[str, list[str]] = {}
    name = ""
    for title, commands in (line.split(" | ")[:2] for line in table):
        name = title.strip("| ") or name
        groups.setdefault(name, []).extend(re.findall(r"`arco (\w+)", commands))
    assert groups == {title: [*commands] for title, commands in GROUPS.items()}


BLOCKS = 'blocks: {up: {inputs: {x: "float[..., d]"}, graph: {a: {type: linear, out: d}}}}\n'
CLASS = """from blocks.core import Block


class Same(Block, kind="same"):
    inputs, outputs = {"x": "float[...]"}, {"y": "float[...]"}

    def forward(self, x):
        return x
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, arco: Arco) -> None:
    """A summary in one line, the usage, every option, examples; and all three ways to ask for it."""
    done = arco(command, "-h")
    assert (done.code, done.err) == (0, "")
    assert done == arco(command, "--help") == arco("help", command)
    lines = done.out.splitlines()
    assert lines[0] == f"{COMMANDS[command][1]}." and lines[2].startswith(f"Usage: arco {command}")
    assert "Examples:" in lines
    for action in PARSERS[command]._actions:
        for option in action.option_strings:
            assert re.search(rf"^  +(-., )?{re.escape(option)}\b", done.out, re.MULTILINE), option


@pytest.mark.parametrize("command", COMMANDS)
def test_arguments_are_called_alike(command: str) -> None:
    """A metavar has one meaning, and a text of help starts with a capital and has no full stop at its end."""
    for action in PARSERS[command]._actions:
        if action.nargs != 0:
            assert action.metavar in METAVARS or action.choices
        text = action.help or ""
        assert text[:1].isupper() and not text.endswith(".") and "%" not in text, text


@pytest.mark.parametrize("columns", [60, 80, 300])
def test_help_fits_its_terminal(columns: int, arco: Arco, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples aside, which stay whole."""
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in ([], *([command, "-h"] for command in COMMANDS)):
        lines = [line for line in arco(*words).out.splitlines() if not line.startswith(("  $", "  #"))]
        assert max(map(len, lines)) <= min(columns, 100)


@pytest.mark.parametrize(
    ("name", "command"),
    [pytest.param(*each, id=each[1], marks=mark) for each, mark in zip(EXAMPLES, SHARES, strict=True)],
)
def test_examples_run(name: str, command: str, arco: Arco, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are typed; training is cut short."""
    words = shlex.split(re.sub(r" [|>] .*", "", re.sub(r'eval "\$\((.*)\)"', r"\1", command)))
    assert words[:2] == ["arco", name]
    prepare(tmp_path, name, words, arco, monkeypatch)
    done = arco(*words[1:], *shortened(name, words))
    assert done.code == (1 if name == "diff" and "gpt_mini" not in words[-1:] else 0), done.err
    if "-o" in words:
        assert Path(words[words.index("-o") + 1]).stat().st_size


def shortened(name: str, words: list[str]) -> list[str]:
    """Return what makes a long example short."""
    match name:
        case "train" if "forecast" in words:
            return QUICK
        case "train":
            return ["--steps", "4", "--device", "cpu"] if "--resume" in words else [*QUICK, *TINY]
        case "demo":
            return [*QUICK, *(["--only", "rnn_lm"] if "--compare" in words else [])]
        case "evaluate":
            return ["--examples", "3", "--device", "cpu"] if "--task" in words else ["--device", "cpu"]
        case "generate":
            return ["--max-new-tokens", "3", "--device", "cpu"]
    return []


def prepare(folder: Path, name: str, words: list[str], arco: Arco, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the files that the examples name, and a run folder where one is read."""
    (folder / "blocks.yaml").write_text(BLOCKS, encoding="utf-8")
    (folder / "my_blocks.py").write_text(CLASS, encoding="utf-8")
    text = "To be, or not to be: that is the question. HAMLET\n" * 60 + "abcdefghij=\nhay 0123456789 ?=\n"
    (folder / "input.txt").write_text(text, encoding="utf-8")
    (folder / "depth.yaml").write_text(EXPERIMENT, encoding="utf-8")
    pages = (("README.md", "small.yaml"), ("docs/getting-started.md", "config.json"), ("docs/training.md", "nlinear.yaml"))
    for page, file in ((ROOT / page, file) for page, file in pages):
        text = next(example.text for example in examples(page) if example.option("file") == file)
        (folder / file).write_text(text, encoding="utf-8")
    for module in ("demo", "demo_models"):
        monkeypatch.setattr(f"composer.cli.{module}.plays", lambda: folder / "input.txt")
    for word in words:
        if word in CONFIGS:
            write_example(word, folder / word)
    run = next((word for word in words if word.startswith("runs/")), None)
    if name == "transcribe":
        (folder / "tones.yaml").write_text(TONES, encoding="utf-8")
        write_tones(folder, ["ab", "cd", "ea"] * 4, random.Random(0))
        for number, word in enumerate(word for word in words if word.endswith(".wav")):
            (folder / f"{number}.wav").rename(folder / word)
            (folder / f"{number}.wav").write_bytes((folder / word).read_bytes())
        sizes = ["--seq-len", "8", "--batch-size", "2", "--warmup-steps", "1", "--sample-rate", str(RATE)]
        assert arco("train", "tones.yaml", "--data", "tones.csv", "--run", run, *QUICK, *sizes).code == 0
    elif {"load.csv", "runs/nlinear"} & {*words}:
        (folder / "load.csv").write_text("load\n" + "".join(f"{hour % 24}\n" for hour in range(150)), encoding="utf-8")
        if run:
            series = ("--data", "load.csv", "--objective", "forecast", "--column", "past=load")
            assert arco("train", "nlinear.yaml", *series, "--run", run, *QUICK).code == 0
    elif "pairs.jsonl" in words:
        row = {"prompt": "a", "answer": "b"}
        (folder / "answers.jsonl").write_text(f"{json.dumps(row)}\n" * 20, encoding="utf-8")
        row = {"prompt": "a", "chosen": "b", "rejected": "a"}
        (folder / "pairs.jsonl").write_text(f"{json.dumps(row)}\n" * 20, encoding="utf-8")
        assert arco("train", "gpt_mini", "--data", "answers.jsonl", "--run", run, *QUICK, *TINY).code == 0
    elif run and (
        name in ("generate", "evaluate", "export", "inspect", "report") or {"--resume", "--teacher", "--grow"} & {*words}
    ):
        assert (
            arco("train", "gpt2" if name == "export" else "gpt_mini", "--data", "input.txt", "--run", run, *QUICK, *TINY).code
            == 0
        )
