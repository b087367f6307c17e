"""The block of docs/own-block.md in a stranger's hands: an empty folder, a process of its own, nothing of Composer changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, examples

FILES = {example.option("file"): example.text for example in examples(ROOT / "docs" / "own-block.md") if example.option("file")}
USE = """
import torch
import composer
from composer.decode import session

model = composer.load("mixed.yaml", blocks=["my_blocks.py"]).compile(seed=0).double()
block = model.layers[0].mix.body
x = torch.randn(2, 7, 32, dtype=torch.float64)

# the formula, one token after the other
before, expected = torch.zeros(2, 32, dtype=torch.float64), []
for token in x.unbind(1):
    z = block.mix * token + (1 - block.mix) * before
    expected.append(torch.sigmoid(z @ block.gate.weight.T) * (torch.relu(z @ block.up.weight.T) ** 2 @ block.down.weight.T))
    before = token
torch.testing.assert_close(block(x), torch.stack(expected, 1))

# cached equals uncached, wherever the text is cut, and a token later changes nothing before it
tokens = torch.randint(67, (2, 8))
whole = model(tokens).logits
for cut in range(1, 8):
    with session(model):
        pieces = [model(piece).logits for piece in tokens.split([cut, 8 - cut], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, 1), whole)
torch.testing.assert_close(model(tokens[:, :5]).logits, whole[:, :5])

# every parameter is declared, built and reached
changed = {"layers.mix.body.activation": "gelu", "layers.mix.body.shifted": 5}
recipe = composer.load("mixed.yaml", overrides=changed, blocks=["my_blocks.py"])
model = recipe.compile(seed=1)
assert model.layers[1].mix.body.mix.shape == (5,)
assert sum(p.numel() for p in model.parameters()) == recipe.summary().to_json()["parameters"]
model(tokens).logits.square().mean().backward()
assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
torch.compile(model, fullgraph=True, backend="aot_eager")(tokens)
print("all well")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The two files of the page, alone."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Return a fresh interpreter in the folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
    return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, encoding="utf-8", env=environment)


def test_a_block_in_one_file_trains_compiles_and_decodes(folder: Path) -> None:
    """Values, gradients, counts, compilation and cached decoding."""
    done = python(folder, "-c", USE)
    assert done.stdout == "all well\n", done.stderr


def test_its_mistakes_are_located_without_torch(folder: Path) -> None:
    """A value in the recipe's file is pointed at, and the front half still loads no torch."""
    wrong = (folder / "mixed.yaml").read_text(encoding="utf-8").replace("hidden: 48", "shifted: 40")
    (folder / "wrong.yaml").write_text(wrong, encoding="utf-8")
    code = "import sys; from composer.cli import main; print(main(sys.argv[1:]), 'torch' in sys.modules)"
    done = python(folder, "-c", code, "check", "wrong.yaml", "--blocks", "my_blocks.py", "--format", "concise")
    column = wrong.splitlines()[10].index("40") + 1
    assert done.stdout.splitlines()[0] == f"wrong.yaml:11:{column}: error[rejected]: 40 channels cannot be shifted, there are 32"
    assert done.stdout.splitlines()[-1] == "1 False"


def test_nothing_knows_the_block() -> None:
    """Its name stands in no file of either package."""
    files = [file for package in ("blocks", "composer") for file in (ROOT / package).rglob("*.py")]
    assert files
    assert not [file for file in files if "channel_mix" in file.read_text(encoding="utf-8")]
