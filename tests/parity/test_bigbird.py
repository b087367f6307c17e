"""Big Bird's blocks, of which transformers takes pieces, and the recipe a mask, with the same random blocks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BigBirdConfig
from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention

import composer
from composer.weights import load_published
from tests.parity.families import BERT, VOCAB, bigbird
from tests.parity.reference import perturbed, published

BLOCK, BLOCKS = 2, 8
DRAWN = [4, 6, 1, 2, 3, 1]
"""The random block of each block but the first and the last, which see all: none that it sees anyway."""
GIVEN = """
recipe: drawn
extends: bigbird
inputs: {drawn: "bool[batch, time, time]"}
graph: {layers: {graph: {attn: {body: {mask: (near or pairs(drawn)) and valid(valid)}}}}}
"""


@torch.no_grad()
@pytest.mark.parametrize("lengths", [[16, 16, 16], [16, 13, 9]], ids=["whole", "padded"])
def test_blocks_are_those_of_transformers(lengths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens see three blocks, the first, the last and the one that is drawn; those of the first and the last see all."""
    draw = lambda *_args, num_heads, **_options: [np.array(DRAWN)[:, None]] * num_heads  # noqa: E731
    monkeypatch.setattr(BigBirdBlockSparseAttention, "_bigbird_block_rand_mask_with_head", draw)
    config = BigBirdConfig(
        **BERT, attention_type="block_sparse", block_size=BLOCK, num_random_blocks=1, pad_token_id=1, type_vocab_size=2
    )
    torch.manual_seed(0)
    reference = perturbed(bigbird(config))
    sizes = composer.load("bigbird").with_config(config.to_dict()).program.untyped.params
    model = composer.load(GIVEN, overrides={**sizes, "n_random": 0}).compile(seed=0).eval()
    load_published(model, published(reference))
    time = torch.arange(BLOCK * BLOCKS)
    drawn = (torch.tensor([0, *DRAWN, 0])[time // BLOCK][:, None] == time // BLOCK).expand(3, -1, -1)
    tokens = torch.randint(4, VOCAB, (3, len(time)), generator=torch.Generator().manual_seed(2))
    valid = time < torch.tensor(lengths)[:, None]
    ours = model(tokens=tokens, valid=valid, drawn=drawn).logits[valid]
    theirs = reference(tokens, attention_mask=valid.long()).logits[valid]
    assert reference.bert.attention_type == "block_sparse"
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * theirs.abs().max().item())
    nothing = model(tokens=tokens, valid=valid, drawn=torch.zeros_like(drawn)).logits[valid]
    assert not torch.allclose(nothing, theirs, atol=1e-3)
