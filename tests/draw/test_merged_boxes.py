"""Nodes that a figure draws as one box or under other words: what the box says, and what an option does not reach."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import composer
from composer.cli import main
from composer.draw.arrange.arrangement import titled
from composer.draw.build.levels import Level
from tests.draw.flows import leaf
from tests.draw.read_back import Model
from tests.draw.test_sheet import wrong


def test_a_merged_box_in_each_pass_that_is_drawn() -> None:
    """A box for each pass, with the parameters of that pass."""
    recipe = composer.load("gpt2").with_overrides("n_layers=2")
    svg = recipe.draw(unroll=True, merge={"MLP": ["layers.ffn"]}, labels={"layers.attn.body": "Attention"}).svg()
    assert len(re.findall(">MLP<", svg)) == len(re.findall(">Attention<", svg)) == 2
    assert wrong(svg, Model(recipe.program)) == []


@pytest.mark.parametrize(
    ("merged", "level", "title", "count"),
    [
        ("layers.ffn.body", "block", "MLP", "4.72 M"),
        ("layers.ffn.body", "full", "MLP", "4.72 M"),
        ("layers", "block", "× 12 MLP", "85.1 M"),
        ("layers", "overview", "× 12 MLP", "85.1 M"),
    ],
)
def test_a_single_node_is_one_box_with_the_title(merged: str, level: Level, title: str, count: str) -> None:
    """Whether it is a block, is open at this level, or a repeat, which tells its passes."""
    recipe = composer.load("gpt2")
    figure = recipe.draw(level, merge={"MLP": [merged]})
    (box,) = [box for box in figure.scene.boxes if any("MLP" in text.text for text in box.texts)]
    said = [text.text for text in box.texts]
    assert title in said and count in said and (level != "block" or wrong(figure.svg(), Model(recipe.program)) == [])
    assert recipe.draw("overview", labels={"layers": "Block"}).svg().count(">× 12 Block<") == 1


def test_a_merged_residual_tells_its_dropout_in_the_box() -> None:
    """Since it is before the sum, and so not on the stream that leaves the box."""
    scene = composer.load("gpt2").draw(merge={"MLP": ["layers.ffn"]}).scene
    (box,) = [box for box in scene.boxes if box.about.path == "layers.ffn.add"]
    assert any(text.text.endswith("dropout 0.1") for text in box.texts)
    assert [text.text for text in scene.texts].count("dropout 0.1") == 2  # of the embeddings and of attention


def test_what_an_option_does_not_reach_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A node inside of a box of this level, with the option that draws it; nothing where all is drawn."""
    folder = ["-o", str(tmp_path / "a.svg")]
    for option in ("--merge A=layers.ffn.body.up", "--hide layers.ffn.body.up", "--label layers.ffn.body.up=A"):
        assert main(["draw", "gpt2", *option.split(), *folder]) == 0
        told = capsys.readouterr().err
        assert "inside of a box: layers.ffn.body.up (`--open layers.ffn.body` draws layers.ffn.body.up)" in told
        assert main(["draw", "gpt2", *option.split(), "--open", "layers.ffn.body", *folder]) == 0
        assert capsys.readouterr().err == ""
    assert main(["draw", "gpt2", "--level", "overview", "--hide", "norm", *folder]) == 0
    assert "inside of a box: norm" in capsys.readouterr().err


@pytest.mark.parametrize("times", ["× 12 ", "× 3, 4, 6, 3 ", "× T + 1 ", "× ceil(T / 4) ", "× 12\u00a0288 ", ""])
def test_a_label_keeps_how_many_passes_a_box_stands_for(times: str) -> None:
    """However their number is written."""
    assert titled(leaf("a", title=f"{times}Decoder layer"), "Block").look.title == f"{times}Block"
