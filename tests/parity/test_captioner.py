"""The captioner: the logits, the captions and the weights of transformers' encoder-decoder of ViT and GPT-2."""

from __future__ import annotations

import math
from typing import Any

import torch
from transformers import GPT2Config, VisionEncoderDecoderConfig, VisionEncoderDecoderModel, ViTConfig

import composer
from composer.decode import GREEDY, Request, cached, generate
from composer.graph.parameters import parameters
from composer.weights import load_published, mapping
from composer.weights.mapping import shapes_of
from tests.parity.reference import perturbed, published

OURS: dict[str, Any] = {
    "vocab": 31, "context": 12, "d_model": 48, "n_layers": 2, "n_heads": 6, "dropout": 0.1,
    "size": 20, "n_channels": 2, "patch": 6, "d_image": 48, "n_image_layers": 3, "n_image_heads": 4,
}  # fmt: skip
T = 7


def reference() -> VisionEncoderDecoderModel:
    """Return the same sizes in transformers' configurations, every weight away from its start."""
    encoder = ViTConfig(
        image_size=20,
        num_channels=2,
        patch_size=6,
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=192,
    )
    decoder = GPT2Config(
        vocab_size=31, n_positions=12, n_embd=48, n_layer=2, n_head=6, add_cross_attention=True, is_decoder=True,
        bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    return perturbed(VisionEncoderDecoderModel(VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)))


def images() -> torch.Tensor:
    return torch.randn(3, 2, 20, 20, generator=torch.Generator().manual_seed(2))  # [B, channels, height, width]


@torch.no_grad()
def test_logits_are_those_of_transformers() -> None:
    """With padding and without."""
    theirs = reference()
    ours = composer.load("captioner", overrides=OURS).compile(seed=0).eval()
    load_published(ours, published(theirs))
    tokens = torch.randint(31, (3, T), generator=torch.Generator().manual_seed(3))
    valid = torch.arange(T) < torch.tensor([[T], [4], [5]])
    wanted = theirs(pixel_values=images(), decoder_input_ids=tokens, decoder_attention_mask=valid.long()).logits
    found = ours(images(), tokens, valid=valid).logits
    torch.testing.assert_close(found[valid], wanted[valid], rtol=0, atol=1e-5 * wanted.abs().max().item())
    wanted = theirs(pixel_values=images(), decoder_input_ids=tokens).logits
    torch.testing.assert_close(ours(images(), tokens).logits, wanted, rtol=0, atol=1e-5 * wanted.abs().max().item())


def test_weights_come_back_bit_for_bit() -> None:
    theirs = published(reference())
    model = composer.load("captioner", overrides=OURS).compile(seed=0)
    load_published(model, theirs)
    rules = model.program.untyped.recipe.checkpoints
    assert rules is not None
    ours = model.state_dict()
    saved = mapping(rules, "vision-encoder-decoder", shapes_of(ours), model.program.untyped.params).save(ours)
    assert theirs.keys() - saved.keys() == {"encoder.pooler.dense.weight", "encoder.pooler.dense.bias", "decoder.lm_head.weight"}
    assert all(torch.equal(theirs[name], tensor) for name, tensor in saved.items())


@torch.no_grad()
def test_captions_are_those_of_transformers() -> None:
    """Greedy, token by token, with what the image gives kept."""
    theirs = reference().eval()
    ours = composer.load("captioner", overrides=OURS).compile(seed=0).eval()
    load_published(ours, published(theirs))
    start = torch.ones(3, 1, dtype=torch.long)
    wanted = theirs.generate(pixel_values=images(), decoder_input_ids=start, max_new_tokens=8, do_sample=False)
    request = Request(max_new_tokens=8, sampling=GREEDY, stop=frozenset({2}))
    found = generate(ours, start.tolist(), request, encoder_inputs={"image": images()}, reading=cached)
    assert [row[1:].tolist() for row in wanted] == [row + [2] * (len(row) < 8) + [0] * (7 - len(row)) for row in found]


def test_the_published_size() -> None:
    """That of nlpconnect/vit-gpt2-image-captioning without the pooler, which a captioner does not use."""
    with torch.device("meta"):
        config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(ViTConfig(), GPT2Config(add_cross_attention=True))
        theirs = VisionEncoderDecoderModel(config)
    pooler = sum(value.numel() for name, value in theirs.named_parameters() if "pooler" in name)
    ours = sum(math.prod(each.parameter.shape) for each in parameters(composer.load("captioner").program) if not each.tied_to)
    assert ours == sum(value.numel() for value in theirs.parameters()) - pooler == 238_605_312
