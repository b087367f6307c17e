"""`arco inspect`: attention and the lens, as text and as a figure."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
import torch

from composer.cli import main
from composer.decode import attention_maps, logit_lens
from composer.train import open_run
from tests.evaluate.conftest import run_of

__all__ = ["run_of"]  # a fixture


@pytest.mark.slow
def test_attention_and_lens_of_a_run_are_shown(run_of, tmp_path, capsys) -> None:
    """Each head with its largest weights; a figure of the means, or of each head of the layers that are named."""
    run = run_of(name="gpt_mini", n_layers=2)
    trained = open_run(run)
    tokens = torch.tensor([trained.tokenizer.encode("7 sheep")])
    words = ["inspect", str(run), "--prompt", "7 sheep", "--device", "cpu"]
    figure = tmp_path / "maps.svg"
    assert main([*words, "--token", "3", "--figure", str(figure)]) == 0
    head, *lines, wrote = capsys.readouterr().out.splitlines()
    assert head == "'h' at 3 attends to" and len(lines) == 4 and wrote == f"wrote {figure}"
    weights = attention_maps(trained.model, tokens=tokens)[1].weights[0, 1, 3]
    key = int(weights.argmax())
    assert lines[3].startswith(f"layers.1.attn.body  head  1  {float(weights.max()):.3f} {'7 sheep'[key]!r} at {key}")

    def titles() -> list[str | None]:
        root = ElementTree.parse(figure).getroot()
        return [each.text for each in root.iter("{http://www.w3.org/2000/svg}text") if each.get("class") == "t"]

    assert titles() == [f"layers.{layer}.attn.body, mean of the heads" for layer in (0, 1)]
    assert main([*words, "--layer", "layers.1.*", "--figure", str(figure)]) == 0
    assert titles() == [f"layers.1.attn.body, head {head}" for head in (0, 1)]
    capsys.readouterr()
    assert main([*words, "--lens"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    said = logit_lens(trained.model, tokens=tokens)[1][1][0, -1].softmax(-1)
    assert head == "after 'p' at 6"
    assert lines[1].startswith(f"layers.1  {float(said.max()):.3f} {trained.tokenizer.decode([int(said.argmax())])!r}")
    for more, message in (
        (["--token", "7"], "there is no token 7"),
        (["--layer", "ffn"], "there is no attention ffn"),
        (["--lens", "--layer", "a"], "--layer is for attention"),
        (["--figure", "a.png"], "does not end in .svg"),
    ):
        assert main([*words, *more]) == 2 and message in capsys.readouterr().err
