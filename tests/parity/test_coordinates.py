"""Models whose rotary positions have several coordinates, against transformers."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import PixtralVisionConfig, PixtralVisionModel, Qwen2VLTextConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLTextModel

import composer
from composer.decode.session import session
from composer.weights import load_published
from tests.parity.reference import perturbed
from tests.parity.test_transformers import close
from tests.zoo import PARAMETERS

TINY = {"vocab_size": 31, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}


@torch.no_grad()
def test_a_text_with_an_image_is_placed_as_in_qwen2_vl() -> None:
    """By time, row and column, also token by token; without coordinates, as a text alone."""
    rope = {"rope_type": "default", "rope_theta": 300.0, "mrope_section": [2, 3, 3]}
    config = Qwen2VLTextConfig(**TINY, intermediate_size=40, bos_token_id=None, eos_token_id=None, rope_parameters=rope)
    reference = perturbed(Qwen2VLTextModel(config))
    weights = {f"model.{name}": tensor for name, tensor in reference.state_dict().items()}
    model = composer.load("qwen2_vl_text").with_config(config.to_dict()).compile(seed=0).eval()
    load_published(model, {**weights, "lm_head.weight": weights["model.embed_tokens.weight"]})
    tokens = torch.randint(31, (2, 9), generator=torch.Generator().manual_seed(0))
    # two tokens of text, an image of two rows and three columns, and one more token of text
    image = [[2, 2 + row, 2 + column] for row in range(2) for column in range(3)]
    place = torch.tensor([[0, 0, 0], [1, 1, 1], *image, [5, 5, 5]]).expand(2, -1, -1)
    place = torch.stack([place[0], place[1] + 4])

    def logits(**given: torch.Tensor) -> torch.Tensor:
        return reference(input_ids=tokens, **given).last_hidden_state @ weights["model.embed_tokens.weight"].T

    expected = logits(position_ids=place.movedim(-1, 0))
    close(model(tokens, place=place).logits, expected)
    close(model(tokens).logits, logits())
    for length in (None, 12):
        with session(model, max_length=length):
            parts = zip(tokens.split([5, 1, 3], dim=1), place.split([5, 1, 3], dim=1), strict=True)
            close(torch.cat([model(some, place=at).logits for some, at in parts], dim=1), expected)


@torch.no_grad()
def test_the_folder_of_a_language_model_is_read(tmp_path: Path) -> None:
    """As transformers writes the one of Qwen2-VL, which has no head of its own."""
    rope = {"rope_type": "default", "rope_theta": 300.0, "mrope_section": [2, 3, 3]}
    reference = perturbed(Qwen2VLTextModel(Qwen2VLTextConfig(**TINY, intermediate_size=40, rope_parameters=rope)))
    reference.save_pretrained(tmp_path)
    tokens = torch.randint(31, (2, 9), generator=torch.Generator().manual_seed(0))
    close(composer.load(tmp_path).pretrained()(tokens).hidden, reference(input_ids=tokens).last_hidden_state)


def test_the_language_model_has_the_published_sizes() -> None:
    """Qwen2-VL 7B's, whose head is beside it in transformers."""
    sizes = {"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28}
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]}
    config = Qwen2VLTextConfig(**sizes, num_key_value_heads=4, rms_norm_eps=1e-6, rope_parameters=rope)
    with torch.device("meta"):
        theirs = Qwen2VLTextModel(config)
    recipe = composer.load("qwen2_vl_text")
    assert recipe.with_config(config.to_dict()).program.untyped.params == recipe.program.untyped.params
    assert theirs.num_parameters() + 152064 * 3584 == recipe.summary().costs.parameters == PARAMETERS["qwen2_vl_text"]


@torch.no_grad()
def test_an_image_of_another_shape_is_placed_as_in_pixtral() -> None:
    """By row and column, which have frequencies in turn."""
    sizes = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = PixtralVisionConfig(**sizes, image_size=20, patch_size=4, hidden_act="silu")
    reference = perturbed(PixtralVisionModel(config))
    model = composer.load("pixtral_vision").with_config(config.to_dict()).compile(seed=0).eval()
    load_published(model, reference.state_dict())
    for height, width in ((12, 20), (20, 8)):
        image = torch.randn(1, 3, height, width, generator=torch.Generator().manual_seed(0))
        close(model(image).hidden, reference(image).last_hidden_state)
