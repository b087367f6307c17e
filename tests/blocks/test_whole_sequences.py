"""Images and sequences as a whole: patches, a first token, one vector for all, and attention by a small network."""

import pytest
import torch
from transformers import ViTConfig
from transformers.models.vit.modeling_vit import ViTPatchEmbeddings

from tests.blocks.alone import alone, refusal

B, T, D = 2, 5, 6
STREAM = f"float[batch, time, {D}]"


@pytest.fixture(autouse=True)
def seed():
    """The same numbers in every run."""
    torch.manual_seed(0)


def test_patch_embedding_is_that_of_vit():
    """Patches in rows, with the weights under the names of the convolution."""
    config = ViTConfig(image_size=[6, 8], patch_size=2, num_channels=3, hidden_size=D)
    theirs = ViTPatchEmbeddings(config)
    ours = alone(f"type: patch_embedding, patch_size: 2, dim: {D}", image="float[batch, 3, 6, 8]")
    theirs.projection.load_state_dict(ours.block.state_dict())
    image = torch.randn(B, 3, 6, 8)
    torch.testing.assert_close(ours(image)[0], theirs(image))
    assert ours(image)[0].shape == (B, 12, D)


def test_prepended_token_is_the_first_position():
    """The same in every row, before all that there was."""
    model, x = alone("type: prepend_token", x=STREAM), torch.randn(B, T, D)
    y = model(x)[0]
    assert torch.equal(y[:, 1:], x)
    assert torch.equal(y[:, 0], model.block.weight.expand(B, D))


@pytest.mark.parametrize("how", ["first", "last", "mean", "max"])
def test_padding_does_not_count_in_a_pool(how):
    """Each row gives what its real positions alone give, padded before, after, or not at all."""
    whole = alone(f"type: pool, mode: {how}", x=STREAM)
    padded = alone(f"type: pool, mode: {how}", "{x: x, valid: valid}", x=STREAM, valid="bool[batch, time]?")
    x, valid = torch.randn(3, T, D), torch.ones(3, T, dtype=torch.bool)
    valid[0, :2], valid[1, 3:] = False, False
    y = padded(x, valid)[0]
    expected = {"first": lambda r: r[0], "last": lambda r: r[-1], "mean": lambda r: r.mean(0), "max": lambda r: r.amax(0)}[how]
    for row in range(3):
        torch.testing.assert_close(y[row], expected(x[row][valid[row]]))
    torch.testing.assert_close(whole(x)[0], padded(x)[0])
    torch.testing.assert_close(whole(x)[0], torch.stack([expected(row) for row in x]))


def test_additive_attention_is_its_formula():
    """Position after position in a loop; what is not valid has no weight."""
    types = {"query": "float[batch, 4]", "memory": f"float[batch, source, {D}]", "valid": "bool[batch, source]?"}
    model = alone("type: additive_attention, hidden: 3", "{query: query, memory: memory, valid: valid}", **types)
    query, memory, valid = torch.randn(B, 4), torch.randn(B, T, D), torch.ones(B, T, dtype=torch.bool)
    valid[1, 2] = False
    q, k, v = (getattr(model.block, name).weight for name in "qkv")
    y = model(query, memory, valid)[0]
    for row in range(B):
        real = memory[row][valid[row]]
        scores = torch.stack([(v @ torch.tanh(q @ query[row] + k @ position))[0] for position in real])
        weights = scores.exp() / scores.exp().sum()
        torch.testing.assert_close(y[row], sum(w * position for w, position in zip(weights, real, strict=True)))


def test_a_patch_larger_than_the_image_is_refused_at_its_size():
    """Where it is known how large the image is."""
    message = "9: a patch of 9 pixels does not fit in a height of 8"
    assert refusal("type: patch_embedding, patch_size: 9, dim: 4", image="float[batch, 3, 8, 16]") == message
