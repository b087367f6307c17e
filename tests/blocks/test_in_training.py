"""What is computed in training alone, and the choice among all positions of a text that only training can make."""

from __future__ import annotations

import math

import pytest
import torch

import composer
from composer.decode import session
from tests.blocks.alone import alone, refusal

SCORES = "float[batch, time]"
ROUTED = """
recipe: routed
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 8}
  score: {type: mean, axis: last}
  best: {type: top_share, share: 0.3}
  likely: {compute: score > 0}
  taken: {type: in_training, in: {x: best, otherwise: likely}}
  x: {compute: "where(taken, 2 * embed, embed)"}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""


@pytest.mark.parametrize("share", [0.001, 0.3, 1.0])
def test_the_best_share_of_the_valid_positions_is_marked(share: float) -> None:
    """Rounded up, row by row; of equal scores the first ones."""
    model = alone(f"type: top_share, share: {share}", "{x: x, valid: v}", x=SCORES, v="bool[batch, time]?")
    x = torch.randint(4, (5, 9), generator=torch.Generator().manual_seed(0)).float()
    valid = torch.arange(9) >= torch.tensor([[0], [3], [8], [9], [5]])
    expected = torch.zeros(5, 9, dtype=torch.bool)
    for row in range(5):
        there = [t for t in range(9) if valid[row, t]]
        for t in sorted(there, key=lambda t, row=row: (-x[row, t].item(), t))[: math.ceil(share * len(there))]:
            expected[row, t] = True
    assert torch.equal(model(x, valid).block, expected)
    assert torch.equal(model(x).block, model(x, torch.ones_like(valid)).block)


def test_what_training_reads_is_not_read_in_evaluation() -> None:
    """Ints, floats and booleans, each one or the other as it is."""
    for dtype, numbers in (("int", torch.long), ("float", torch.float), ("bool", torch.bool)):
        model = alone("type: in_training", "{x: x, otherwise: z}", x=f"{dtype}[batch, 3]", z=f"{dtype}[batch, 3]")
        x, z = torch.zeros(2, 3, dtype=numbers), torch.ones(2, 3, dtype=numbers)
        assert model.train()(x, z).block is x and model.eval()(x, z).block is z


def test_both_values_have_one_type() -> None:
    """Else what is behind would be right in one of the two alone."""
    found = refusal("type: in_training", "{x: x, otherwise: z}", x="bool[batch, 3]", z="float[batch, 3]")
    assert found.endswith("takes bool[batch, 3], as in training, not float[batch, 3]")


@torch.no_grad()
def test_a_model_that_writes_may_look_ahead_in_training_alone() -> None:
    """A later token changes what comes before in training, and nothing in evaluation or in a session."""
    model, tokens = composer.load(ROUTED).compile(seed=0), torch.arange(9)[None]
    whole = model.eval()(tokens).logits
    with session(model):
        torch.testing.assert_close(torch.cat([model(part).logits for part in tokens.split([4, 1, 3, 1], dim=1)], 1), whole)
    changed = torch.cat([tokens[:, :5], torch.full((1, 4), 10)], 1)
    assert torch.equal(model(changed).logits[:, :5], whole[:, :5])
    model.embed.weight[10] = 9  # the best score of all
    assert not torch.allclose(model.train()(changed).logits[:, :5], model(tokens).logits[:, :5])


@pytest.mark.parametrize("read", ["x: likely, otherwise: best", "x: best, otherwise: best"])
def test_what_evaluation_reads_may_not_look_ahead(read: str) -> None:
    """The first node that does is shown, with the way out."""
    text = ROUTED.replace("x: best, otherwise: likely", read).replace(
        "  likely: {compute: score > 0}\n" * ("likely" not in read), ""
    )
    found = [each for each in composer.load(text).check() if each.severity == "error"]
    assert [each.code for each in found] == ["not-causal"]
    assert "top_share mixes the positions of `time`" in found[0].message
    assert "`in_training`" in found[0].hint
