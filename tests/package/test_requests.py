"""What is asked for most is a class, a row or an argument where docs/architecture.md says: planted there, it works."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import composer
from blocks.masks.mask import CELLS
from composer.atomic_files import save
from composer.cli import main
from composer.decode import session
from composer.draw.export.formats import FORMATS, Format
from composer.draw.layout import frames, page
from composer.draw.scene import Scene
from composer.language.tasks import TASKS, Task
from composer.train import TrainingError, TrainSettings, losses
from composer.train.data.objectives import TEXT_TASKS, NextToken, TextTask
from composer.train.optimization.optimizers import OPTIMIZERS, OptimizerRow
from tests.draw.browser import data_of

TEXT = "the quick brown fox jumps over the lazy dog\n" * 40
HEAD = """from typing import Any

from blocks.core import Block, Cost, append_to_cache, torch
from blocks.masks.mask import Mask


"""
Arco = Callable[..., tuple[int, str]]


@pytest.fixture
def arco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Arco:
    """Runs `arco WORDS` in an empty folder; returns the exit code and what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str]:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return code, "".join(capsys.readouterr())

    return run


@pytest.fixture
def own(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a file of blocks."""

    def write(text: str) -> Path:
        save(tmp_path / "own.py", (HEAD + text).encode())
        return tmp_path / "own.py"

    return write


# -- in a file of blocks


def test_a_mask(own: Callable[[str], Path]) -> None:
    """One class with a predicate is counted, drawn, computed and decoded, and follows its own predicate in all of them."""
    file = own(
        'class Odd(Mask, kind="odd_keys"):\n'
        '    """A query sees itself and the keys an odd number of positions before it."""\n\n'
        "    def allows(self, q: Any, k: Any, **edges: Any) -> Any:\n"
        "        return (q == k) | ((q - k) % 2 == 1)\n"
    )
    text = """recipe: r
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 9, dim: 8}
  look: {type: attention, heads: 1, mask: MASK}
  head: {type: linear, out: 9}
outputs: {logits: head}
"""
    recipe, all_seen = (composer.load(text.replace("MASK", mask), blocks=[file]) for mask in ("causal and odd_keys", "causal"))
    assert recipe.check() == []
    counted, causal = (one.summary({"time": 12}).to_json()["flops"] for one in (recipe, all_seen))
    seen = [[q == k or (k < q and (q - k) % 2 == 1) for k in range(12)] for q in range(12)]
    per_pair = (causal["dense"] - causal["masked"]) // (12 * 12 - 12 * 13 // 2)
    assert causal["masked"] - counted["masked"] == per_pair * (12 * 13 // 2 - sum(map(sum, seen)))
    (box,) = (box for box in recipe.draw().scene.boxes if box.about.path == "look")
    assert box.icons[0].icon.seen == tuple(tuple(row[:CELLS]) for row in seen[:CELLS])
    model = recipe.compile(seed=0).double().eval()
    tokens = torch.arange(12)[None] % 9
    changed = tokens.clone()
    changed[0, 9] = 0 if tokens[0, 9] else 1
    whole = model(tokens).logits
    moved = (model(changed).logits != whole).any(-1)[0].tolist()
    assert moved == [q >= 9 and seen[q][9] for q in range(12)]  # who sees key 9
    with session(model):
        pieces = [model(piece).logits for piece in tokens.split(5, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, 1), whole)


def test_a_cached_block(own: Callable[[str], Path]) -> None:
    """A declaration of what it keeps, and one call: the session, the cache's size and the generated code follow."""
    file = own(
        'class Before(Block, kind="before"):\n'
        '    """The sum of each position and the one before it."""\n\n'
        '    inputs = {"x": "float[batch, time, dim]"}\n'
        '    outputs = {"y": "float[batch, time, dim]"}\n'
        '    cache_slots = {"seen": "float[batch, time, dim]"}\n\n'
        "    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:\n"
        '        seen = append_to_cache(self, "seen", x)\n'
        "        padded = torch.cat([torch.zeros_like(seen[:, :1]), seen], dim=1)\n"
        "        return x + padded[:, -1 - x.shape[1] : -1]\n"
    )
    recipe = composer.load(
        'recipe: r\ntask: causal_lm\ninputs: {tokens: "int[batch, time]"}\n'
        "graph:\n  embed: {type: embedding, vocab: 9, dim: 8}\n  mix: before\n  head: {type: linear, out: 9}\n"
        "outputs: {logits: head}\n",
        blocks=[file],
    )
    assert recipe.check() == []
    assert recipe.summary().to_json()["cache_bytes_per_token"]["fp32"] == 4 * 8
    model, tokens = recipe.compile(seed=0).eval(), torch.tensor([[1, 5, 2, 7, 3, 8, 8]])
    whole = model(tokens).logits
    with session(model):
        pieces = [model(piece).logits for piece in tokens.split([3, 1, 1, 2], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, 1), whole)


def test_flops_of_a_block(own: Callable[[str], Path]) -> None:
    """An expression of its sizes, in the summary at any lengths."""
    file = own(
        'class Sorted(Block, kind="sorted"):\n'
        '    """The numbers of each vector in order."""\n\n'
        '    inputs = {"x": "float[batch, time, dim]"}\n'
        '    outputs = {"y": "float[batch, time, dim]"}\n\n'
        "    def cost(self, sizes: Any, wired: Any) -> Cost:\n"
        '        return Cost("7 * batch * time * dim")\n\n'
        "    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:\n"
        "        return x.sort(dim=-1).values\n"
    )
    recipe = composer.load('recipe: r\ninputs: {x: "float[batch, time, 16]"}\ngraph: {y: sorted}\n', blocks=[file])
    assert recipe.check() == []
    assert recipe.summary({"batch": 3, "time": 5}).to_json()["flops"]["masked"] == 7 * 3 * 5 * 16


def test_an_icon(own: Callable[[str], Path]) -> None:
    """What a class declares stands in its box and in the file, also in that of a norm and of a block with a look of its own; a
    block without it has none."""
    text = (
        'class {name}(Block, kind="{kind}"):\n'
        '    """The numbers as they are."""\n\n'
        '    inputs = {{"x": "float[...]"}}\n'
        '    outputs = {{"y": "float[...]"}}\n\n'
        "    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:\n"
        "        return x\n\n"
    )
    icon = "    def icon(self) -> Curve:\n        return Curve(((0.0, 0.125), (0.5, 0.875), (1.0, 0.25)))\n\n\n"
    first, second = text.format(name="Peak", kind="peak"), text.format(name="Bare", kind="bare")
    third = 'class Bell(LayerNorm, kind="bell"):\n' + icon
    fourth = 'class Wave(Conv1d, kind="wave"):\n' + icon
    names = {"core.look": "Curve", "norms.layernorm": "LayerNorm", "convolution.conv1d": "Conv1d"}
    imports = "".join(f"from blocks.{module} import {name}\n" for module, name in names.items())
    file = own(f"{imports}\n\n{first}{icon}{third}{fourth}{second}")
    recipe = 'recipe: r\ninputs: {x: "float[batch, 8]"}\ngraph: {one: KIND}\n'
    peak, bare = (composer.load(recipe.replace("KIND", kind), blocks=[file]).draw() for kind in ("peak", "bare"))
    for kind in ("peak", "bell", "{type: wave, kernel_size: 3, out: 8, causal: true}"):
        text = recipe.replace("batch, 8", "batch, time, 8").replace("KIND", kind)
        drawn = composer.load(text, blocks=[file]).draw()
        shown = [[placed.icon.points for placed in box.icons] for box in drawn.scene.boxes if box.about.path == "one"]
        assert shown == [[((0.0, 0.125), (0.5, 0.875), (1.0, 0.25))]], kind
    assert peak.svg().count("<path") > bare.svg().count("<path")


# -- in a table


def test_an_output_format(arco: Arco, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row makes the commands offer it, and names of files choose it."""
    assert arco("draw", "gpt_mini", "--format", "outline")[0] == 2
    row = Format(lambda drawn: f"{len(drawn.scene.boxes)} boxes\n".encode(), (".outline", ".olx"), source=True)
    monkeypatch.setitem(FORMATS, "outline", row)
    boxes = len(composer.load("gpt_mini").draw().scene.boxes)
    assert arco("draw", "gpt_mini", "--format", "outline") == (0, f"{boxes} boxes\n")
    assert arco("draw", "gpt_mini", "-o", "small.olx")[0] == 0
    assert Path("small.olx").read_text(encoding="utf-8") == f"{boxes} boxes\n"
    assert {"outline", ".outline"} <= {*re.split(r"[^\w.]+", arco("draw", "-h")[1])}
    assert "outline" in arco("completion", "bash")[1]
    assert "outline" not in arco("diff", "-h")[1]  # a text about one model
    assert ".olx" in arco("draw", "gpt_mini", "-o", "small.unknown")[1]
    monkeypatch.setitem(FORMATS, "outline", Format(row.make, row.endings))
    assert arco("diff", "gpt_mini", "gpt2", "-o", "both.outline")[0] == 1
    assert re.fullmatch(r"\d+ boxes\n", Path("both.outline").read_text(encoding="utf-8"))


def test_an_optimizer(arco: Arco, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is accepted by the settings, the command and the loop, and a run continues with it."""
    with pytest.raises(TrainingError, match=r"plain_sgd.*adamw"):
        TrainSettings(optimizer="plain_sgd")
    made: list[torch.optim.Optimizer] = []

    def plain_sgd(model: torch.nn.Module, settings: Any) -> torch.optim.Optimizer:
        made.append(torch.optim.SGD(model.parameters(), lr=0.0))
        return made[-1]

    monkeypatch.setitem(OPTIMIZERS, "plain_sgd", OptimizerRow(plain_sgd))
    assert TrainSettings(optimizer="plain_sgd").optimizer == "plain_sgd"
    Path("text.txt").write_text(TEXT, encoding="utf-8")
    sizes = ("--set", "n_layers=1", "--set", "d_model=16", "--set", "n_heads=2")
    run = ("--data", "text.txt", "--run", "run", "--seq-len", 8, "--batch-size", 2)
    assert arco("train", "gpt_mini", *sizes, *run, "--steps", 2, "--optimizer", "plain_sgd")[0] == 0
    assert json.loads(Path("run/settings.json").read_text(encoding="utf-8"))["optimizer"] == "plain_sgd"
    assert arco("train", "--resume", "run", "--steps", 3)[0] == 0
    assert len(made) == 2
    assert "plain_sgd" in arco("train", "-h")[1]


def test_a_task(arco: Arco, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row makes a recipe name it, be checked against it and have a loss; a second one makes it learn from a text."""
    text = """recipe: r
task: other_lm
params: {vocab: 30}
inputs: {tokens: "int[batch, time]"}
graph: {embed: {type: embedding, vocab: vocab, dim: 8}, head: {type: linear, out: vocab}}
outputs: {logits: head}
"""
    assert [mistake.code for mistake in composer.load(text).check()] == ["unknown-task"]
    row = Task({"tokens": "int[batch, time]"}, {"logits": "float[batch, time, vocab]"}, "targets", text="tokens")
    monkeypatch.setitem(TASKS, "other_lm", row)  # type: ignore[index]  # a dict, which nothing but this test changes
    assert composer.load(text).check() == []
    (mistake,) = composer.load(text.replace("logits: head", "scores: head")).check()
    assert mistake.code == "task" and "`logits`" in mistake.message
    model = composer.load(text).compile(seed=0)
    tokens = torch.arange(12).reshape(2, 6)
    wanted = torch.nn.functional.cross_entropy(model(tokens).logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    torch.testing.assert_close(composer.loss(model, {"tokens": tokens}).total, wanted)
    with session(model):
        model(tokens)

    Path("r.yaml").write_text(text, encoding="utf-8")
    Path("text.txt").write_text(TEXT, encoding="utf-8")
    training = ("train", "r.yaml", "--data", "text.txt", "--run", "run", "--steps", 2, "--seq-len", 8, "--batch-size", 2)
    code, printed = arco(*training)
    assert code == 2 and "other_lm" in printed and "Traceback" not in printed
    monkeypatch.setitem(TEXT_TASKS, "other_lm", TextTask(NextToken))  # type: ignore[index]
    assert arco(*training)[0] == 0
    assert arco("generate", "run", "--prompt", "the", "--max-new-tokens", 3)[0] == 0

    monkeypatch.setitem(losses.OUTPUT_LOSSES, "other_lm", lambda output: output.logits.square().mean())  # type: ignore[index]
    torch.testing.assert_close(composer.loss(model, {"tokens": tokens}).total, model(tokens).logits.square().mean())


# -- in a function


def test_what_a_page_says_of_a_node(arco: Arco, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the one function gives is in the page, and its script shows whatever is there."""
    from composer.draw.export import html, node_facts

    def more(model: Any) -> dict[str, dict[str, str]]:
        return {path: {**rows, "owner": f"team of {path}"} for path, rows in node_facts.facts(model).items()}

    monkeypatch.setattr(html, "facts", more)
    shown = composer.load("gpt_mini").draw().html()
    assert data_of(shown)["facts"]["layers.attn.body"]["owner"] == "team of layers.attn.body"
    assert "Object.entries(data.facts[path]" in shown


def residual_sides(scene: Scene) -> set[str]:
    """Return the side of the column at which the wires that lead past blocks to a sum go."""
    sums = {merge.about.path: merge.x for merge in scene.merges}
    ways = [(wire.points, sums[wire.target]) for wire in scene.wires if wire.target in sums]
    turns = [(points[1][0], middle) for points, middle in ways if len(points) > 2]
    assert len(turns) == len(sums) > 0
    return {"left" if x < middle else "right" for x, middle in turns}


@pytest.mark.parametrize("width", ["", "240pt"])
def test_residual_connections_on_the_left(width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One constant says at which side of a column its lanes are, also on a narrow page."""
    recipe = composer.load("gpt_mini")
    assert residual_sides(recipe.draw(width=width).scene) == {"right"}
    for module in (page, frames):  # all that read it
        monkeypatch.setattr(module, "LANE_SIDE", -1)
    assert residual_sides(recipe.draw(width=width).scene) == {"left"}
