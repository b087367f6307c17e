"""Positions that are added to the stream or to the scores, against their formulas and transformers."""

import math

import pytest
import torch
from transformers import T5Config
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.models.whisper.modeling_whisper import sinusoids

from tests.blocks.alone import alone, recipe, refusal

B, T, S, D = 2, 7, 5, 6
STREAM = f"float[batch, time, {D}]"


@pytest.fixture(autouse=True)
def seed():
    """The same numbers in every run."""
    torch.manual_seed(0)


def test_sinusoidal_positions_are_the_paper_s_formula():
    """Number by number, at positions that do not start at 0."""
    model = alone(
        "type: sinusoidal_positions, base: 100", "{x: x, position_ids: position_ids}", x=STREAM, position_ids="int[batch, time]"
    )
    x, at = torch.randn(B, T, D), torch.arange(T) + torch.tensor([[3], [500]])
    y = model(x, at)[0]
    for row in range(B):
        for t in range(T):
            for i in range(D):
                angle = at[row, t].item() / 100 ** (2 * (i // 2) / D)
                wave = math.cos(angle) if i % 2 else math.sin(angle)
                assert y[row, t, i].item() == pytest.approx(x[row, t, i].item() + wave, abs=1e-4)


def test_sinusoidal_halves_are_marian_s():
    """Sines first, then cosines, from position 0."""
    table = MarianSinusoidalPositionalEmbedding(T, D).create_weight()
    y = alone("type: sinusoidal_positions, layout: halves", x=STREAM)(torch.zeros(1, T, D))[0]
    torch.testing.assert_close(y[0], table)


def test_sinusoidal_endpoints_are_tensor2tensor_s():
    """As M2M100 has them, from position 2 on, and Whisper's encoder."""
    stream = "type: sinusoidal_positions, layout: halves, endpoint: true"
    y = alone(f"{stream}, offset: 2", x=STREAM)(torch.zeros(1, T, D))[0]
    torch.testing.assert_close(y[0], M2M100SinusoidalPositionalEmbedding.get_embedding(T + 2, D)[2:])
    y = alone(f"{stream}, base: 50", x=STREAM)(torch.zeros(1, T, D))[0]
    torch.testing.assert_close(y[0], sinusoids(T, D, 50))


@pytest.mark.parametrize(("endpoint", "steps"), [("false", D // 2), ("true", D // 2 - 1)])
def test_sinusoidal_exponents_begin_with_the_first_pair(endpoint, steps):
    """Number by number."""
    fields = f"type: sinusoidal_positions, base: 100, first_pair: 1, endpoint: {endpoint}, offset: 3"
    y = alone(fields, x=STREAM)(torch.zeros(1, T, D))[0]
    for t in range(T):
        for pair in range(D // 2):
            angle = (t + 3) / 100 ** ((pair + 1) / steps)
            assert y[0, t, 2 * pair : 2 * pair + 2].tolist() == pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-6)


@pytest.mark.parametrize("in_front", [0, 1, 4])
def test_learned_positions_may_start_at_the_sinusoids_of_a_grid(in_front):
    """Number by number: of a square of nine places column before row, behind zeros."""
    made = recipe(f"type: learned_positions, max_length: {9 + in_front}, init: grid_sinusoids", x="float[batch, time, 12]")
    table = made.compile(seed=0)(torch.zeros(1, 9 + in_front, 12))[0][0]
    assert not table[:in_front].any()
    for place in range(9):
        row, column = divmod(place, 3)
        angles = [[at / 10000 ** (i / 3) for i in range(3)] for at in (column, row)]
        waves = [wave(angle) for axis in angles for wave in (math.sin, math.cos) for angle in axis]
        assert table[in_front + place].tolist() == pytest.approx(waves, abs=1e-6)


@pytest.mark.parametrize(("start", "channels"), [("sinusoids", 7), ("grid_sinusoids", 6)])
def test_sinusoids_that_channels_cannot_hold_are_refused(start, channels):
    """One of columns and rows needs four in a group."""
    told = refusal(f"type: learned_positions, max_length: 9, init: {start}", x=f"float[batch, time, {channels}]")
    assert f"{channels} channels cannot be split into sines and cosines" in told


def test_sinusoidal_dropout_is_of_the_sum():
    """In training, a number is zero or grows by the others' share."""
    model = alone("type: sinusoidal_positions, dropout: 0.5", x=STREAM)
    x = torch.randn(B, T, D)
    whole, dropped = model(x)[0], model.train()(x)[0]
    kept = dropped != 0
    assert 0 < kept.sum() < kept.numel()
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])


@pytest.mark.parametrize("heads", [1, 3, 8, 12])
def test_alibi_differs_from_bloom_s_by_a_number_per_query(heads):
    """Bloom counts from the first key, which a softmax does not see; also where heads are no power of two."""
    ours = alone(f"type: alibi, heads: {heads}", x=STREAM)(torch.randn(B, T, D))[0]
    theirs = build_alibi_tensor(torch.ones(1, T), heads, torch.float32).view(heads, 1, T)
    assert ours.shape == (heads, T, T)
    for query in range(T):
        ours_from_first = ours[:, query, : query + 1] - ours[:, query, :1]
        torch.testing.assert_close(ours_from_first, theirs[:, 0, : query + 1] - theirs[:, 0, :1])
    assert torch.equal(ours, ours.mT)  # a key after the query is as far away as one before it
    assert torch.equal(ours.diagonal(dim1=1, dim2=2), torch.zeros(heads, T))


@pytest.mark.parametrize("bidirectional", [True, False])
def test_t5_bias_is_that_of_transformers(bidirectional):
    """At distances on both sides of the last bucket, for other numbers of queries and keys."""
    heads, queries, keys = 3, 40, 50
    config = T5Config(num_heads=heads, relative_attention_num_buckets=8, relative_attention_max_distance=20, d_model=D, d_kv=2)
    config.is_decoder = not bidirectional
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    fields = f"type: t5_bias, heads: {heads}, buckets: 8, max_distance: 20, bidirectional: {str(bidirectional).lower()}"
    ours = alone(fields, "{x: x, memory: memory}", x=STREAM, memory="float[batch, source, 4]")
    with torch.no_grad():
        theirs.relative_attention_bias.weight.copy_(ours.block.weight)
        expected = theirs.compute_bias(queries, keys)[0]
    assert torch.equal(ours(torch.randn(B, queries, D), torch.randn(B, keys, 4))[0], expected)


def test_a_distance_bias_has_what_each_query_says_of_the_distance_of_a_key():
    """Of given positions or of counted ones; the nearest distance there is stands for those beyond."""
    products = torch.randn(B, T, 3, 5)  # of distances −2 … 2
    shapes = {
        "x": "float[batch, time, 3, 5]",
        "memory": "float[batch, source, 4]",
        "here": "int[batch, time]",
        "there": "int[batch, source]",
    }
    here, there = torch.randint(9, (B, T)), torch.randint(-5, 9, (B, S))
    wired = "{x: x, memory: memory, position_ids: here, memory_position_ids: there}"
    y = alone("type: distance_bias, ahead: 2", wired, **shapes)(products, torch.randn(B, S, 4), here, there)[0]
    itself = alone("type: distance_bias, ahead: 2", x=shapes["x"])(products)[0]
    for row in range(B):
        for query in range(T):
            for key in range(S):
                near = min(max(here[row, query].item() - there[row, key].item(), -2), 2)
                assert torch.equal(y[row, :, query, key], products[row, query, :, near + 2])
                near = min(max(query - key, -2), 2)
                assert torch.equal(itself[row, :, query, key], products[row, query, :, near + 2])
    assert y.shape == (B, 3, T, S)


def test_what_cannot_be_a_position_is_refused_where_it_stands():
    """An odd width, buckets without halves, distances that are all exact, and keys that are counted where queries are not."""
    assert "5 channels" in refusal("type: sinusoidal_positions", x="float[batch, time, 5]")
    assert "a single pair" in refusal("type: sinusoidal_positions, endpoint: true", x="float[batch, time, 2]")
    assert refusal("type: t5_bias, heads: 2, buckets: 6", x=STREAM).startswith("6: 6 buckets")
    assert refusal("type: t5_bias, heads: 2, max_distance: 8", x=STREAM).startswith("8: distances below 8")
    assert "5 cannot be ahead" in refusal("type: distance_bias, ahead: 5", x="float[batch, time, 2, 5]")
    wired = "{x: x, position_ids: position_ids}"
    assert "count from 0" in refusal("type: alibi, heads: 2", wired, x=STREAM, position_ids="int[batch, time]")


def test_more_positions_than_a_learned_table_has_are_refused_where_their_number_is_known():
    """As many as the table has are not, nor are positions that are given."""
    node = "type: learned_positions, max_length: 9"
    assert refusal(node, x="float[batch, 10, 4]") == "9: 10 positions need a vector each, there are 9"
    assert recipe(node, x="float[batch, 9, 4]").check() == []
    assert recipe(node, "{x: x, position_ids: at}", x="float[batch, 10, 4]", at="int[batch, 10]").check() == []
