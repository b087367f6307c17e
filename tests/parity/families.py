"""Families besides decoders whose published models the zoo describes: transformers' model of each, as published and tiny, and
what both are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BigBirdConfig,
    BigBirdForMaskedLM,
    CamembertConfig,
    CamembertForMaskedLM,
    CLIPConfig,
    CLIPModel,
    ConvNextConfig,
    ConvNextForImageClassification,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    DeiTConfig,
    DeiTForImageClassificationWithTeacher,
    DistilBertConfig,
    DistilBertForMaskedLM,
    FNetConfig,
    FNetForMaskedLM,
    LongformerConfig,
    LongformerForMaskedLM,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    ModernBertConfig,
    ModernBertForMaskedLM,
    MT5Config,
    MT5ForConditionalGeneration,
    PerceiverConfig,
    PerceiverForMaskedLM,
    PixtralVisionConfig,
    PixtralVisionModel,
    PLBartConfig,
    PLBartForConditionalGeneration,
    PreTrainedConfig,
    PreTrainedModel,
    ResNetConfig,
    ResNetForImageClassification,
    RobertaConfig,
    RobertaForMaskedLM,
    SwinConfig,
    SwinForImageClassification,
    ViTMAEConfig,
    ViTMAEForPreTraining,
    Wav2Vec2Config,
    Wav2Vec2ForCTC,
    WhisperConfig,
    WhisperForConditionalGeneration,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLNetConfig,
    XLNetLMHeadModel,
)
from transformers.core_model_loading import WeightRenaming
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

VOCAB, T = 53, 11
RIGHT = torch.arange(T) < torch.tensor([[T], [T - 3], [T - 6]])
"""What is no padding, where this is on the right of each row; then on the left."""
LEFT = RIGHT.flip(1)


@dataclass(frozen=True)
class Given:
    """One call of both models."""

    ours: Mapping[str, Tensor]
    theirs: Mapping[str, Tensor]
    compared: Tensor | None = None
    """True at the positions whose outputs have a meaning; None where all have."""


@dataclass(frozen=True)
class Family:
    """A recipe's model in transformers."""

    model: Callable[[Any], PreTrainedModel]
    config: type[PreTrainedConfig]
    published: Mapping[str, Any]
    """What the published configuration of the recipe's default size has, in place of what transformers has by default."""
    tiny: Mapping[str, Any]
    """What makes it tiny, with every number another than that of any other."""
    wide: Mapping[str, Any]
    """What makes the tiny one wide enough to tell how its initial weights spread."""
    given: Callable[[], Mapping[str, Given]]
    """Calls that together show all that it does."""
    refused: Mapping[str, Any] = field(default_factory=dict)
    """Values of `config.json` by which transformers does what the recipe does not."""
    outputs: Mapping[str, str] = field(default_factory=lambda: {"logits": "logits"})
    """The recipe's outputs, with what transformers calls them."""
    parameters: int | None = None
    """Of the published size, where that is not the recipe's own, which is told with those of the zoo."""

    def small(self, **changes: Any) -> PreTrainedModel:
        """Return a tiny model."""
        return self.model(self.config(**{**self.tiny, **changes}))

    def whole(self) -> PreTrainedModel:
        """Return the published model, for the meta device."""
        return self.model(self.config(**self.published))


def images(height: int, width: int | None = None, channels: int = 2, count: int = 2) -> Callable[[], Mapping[str, Given]]:
    """Return what gives both the same images, square ones unless a width is given."""

    def given() -> Mapping[str, Given]:
        image = torch.randn(count, channels, height, width or height, generator=torch.Generator().manual_seed(2))
        return {"images": Given({"image": image}, {"pixel_values": image})}

    return given


def noisy_images(size: int, patches: int, channels: int = 2) -> Callable[[], Mapping[str, Given]]:
    """Return what gives both the same images, and the same noise by which patches are seen."""

    def given() -> Mapping[str, Given]:
        generator = torch.Generator().manual_seed(2)
        image = torch.randn(2, channels, size, size, generator=generator)
        noise = torch.rand(2, patches, generator=generator)
        return {"images": Given({"image": image, "noise": noise}, {"pixel_values": image, "noise": noise})}

    return given


def texts(*, padded: bool = True, kinds: int = 1, token: int = 1) -> Callable[[], Mapping[str, Given]]:
    """Return what gives both the same texts, where they say what is padding on either side of them too.

    Args:
        padded: Whether the model knows of padding.
        kinds: How many kinds of tokens there are.
        token: What stands in padding.
    """

    def given() -> Mapping[str, Given]:
        generator = torch.Generator().manual_seed(2)
        tokens = torch.randint(4, VOCAB, (3, T), generator=generator)
        sorts = torch.randint(kinds, (3, T), generator=generator)
        ours, theirs = ({"token_types": sorts}, {"token_type_ids": sorts}) if kinds > 1 else ({}, {})
        calls = {"whole": Given({"tokens": tokens, **ours}, {"input_ids": tokens, **theirs})}
        for side, valid in {"right": RIGHT, "left": LEFT}.items() if padded else ():
            filled = tokens.where(valid, token)
            mask = {"input_ids": filled, "attention_mask": valid.long()}
            calls[side] = Given({"tokens": filled, **ours, "valid": valid}, {**mask, **theirs}, valid)
        return calls

    return given


def with_globals(given: Callable[[], Mapping[str, Given]]) -> Callable[[], Mapping[str, Given]]:
    """Return what also marks tokens that see all and that all see, in every row and in none, and then leaves them out."""

    def marked() -> Mapping[str, Given]:
        some = torch.tensor([[0, 5], [7, 8], [6, 6]])
        seen = torch.zeros(3, T, dtype=torch.bool).scatter(1, some, value=True)
        calls = given()
        here = {
            f"{name} with some": Given(
                {**each.ours, "sees_all": seen}, {**each.theirs, "global_attention_mask": seen.long()}, each.compared
            )
            for name, each in calls.items()
        }
        return {**here, **calls}

    return marked


def in_an_order(given: Callable[[], Mapping[str, Given]]) -> Callable[[], Mapping[str, Given]]:
    """Return what also has each row predicted in an order of its own, of which a token sees what comes before it, and then leaves
    out the order, and the kinds of tokens.
    """

    def ordered() -> Mapping[str, Given]:
        order = torch.rand(3, T, generator=torch.Generator().manual_seed(4)).argsort(1)
        pairs = order[:, None] < order[:, :, None]
        calls = given()
        here = {
            f"{name} in an order": Given(
                {**each.ours, "pairs": pairs}, {**each.theirs, "perm_mask": 1.0 - pairs.float()}, each.compared
            )
            for name, each in calls.items()
        }
        tokens = calls["whole"].ours["tokens"]
        return {**here, **calls, "of one kind": Given({"tokens": tokens}, {"input_ids": tokens})}

    return ordered


def translations() -> Mapping[str, Given]:
    """Return what gives both the same sources and targets, without padding and with padding on the right of either."""
    generator = torch.Generator().manual_seed(2)
    source, target = torch.randint(4, VOCAB, (2, 3, T), generator=generator)
    seen = RIGHT.roll(1, 0)
    ours, theirs = {"source": source, "target": target}, {"input_ids": source, "decoder_input_ids": target}
    return {
        "whole": Given(ours, theirs),
        "padded": Given(
            {**ours, "source_valid": seen, "valid": RIGHT},
            {**theirs, "attention_mask": seen.long(), "decoder_attention_mask": RIGHT.long()},
            RIGHT,
        ),
    }


def speech(mels: int, frames: int) -> Callable[[], Mapping[str, Given]]:
    """Return what gives both the same sounds, and texts without padding and with padding on the right."""

    def given() -> Mapping[str, Given]:
        generator = torch.Generator().manual_seed(2)
        features = torch.randn(3, mels, frames, generator=generator)
        tokens = torch.randint(VOCAB, (3, T), generator=generator)
        ours, theirs = {"features": features, "tokens": tokens}, {"input_features": features, "decoder_input_ids": tokens}
        return {
            "whole": Given(ours, theirs),
            "padded": Given({**ours, "valid": RIGHT}, {**theirs, "decoder_attention_mask": RIGHT.long()}, RIGHT),
        }

    return given


def sounds() -> Mapping[str, Given]:
    """Return what gives both the same waveforms, whole and with padding on the right, where some frames are padding too."""
    samples = torch.randn(3, 230, generator=torch.Generator().manual_seed(2))
    lengths = torch.tensor([[230], [185], [90]])
    valid = torch.arange(230) < lengths
    frames = (lengths - 10) // 5 + 1
    frames = ((frames - 3) // 2 - 1) // 2 + 1  # kernels of 10, 3 and 2, steps of 5, 2 and 2
    padded = samples * valid
    return {
        "whole": Given({"samples": samples}, {"input_values": samples}),
        "padded": Given(
            {"samples": padded, "valid": valid},
            {"input_values": padded, "attention_mask": valid.long()},
            torch.arange(11) < frames,
        ),
    }


def fnet(config: FNetConfig) -> PreTrainedModel:
    """Return FNet without what the first token goes through for other tasks, and its head never reads."""
    model = FNetForMaskedLM(config)
    model.fnet.pooler = None
    return model


def captions() -> Mapping[str, Given]:
    """Return what gives both the same images and captions, each of which ends with the last token of the vocabulary."""
    generator = torch.Generator().manual_seed(2)
    image = torch.randn(3, 2, 12, 12, generator=generator)
    tokens = torch.randint(4, VOCAB - 1, (3, T), generator=generator)
    ends = RIGHT.sum(1, keepdim=True) - 1
    tokens = tokens.where(torch.arange(T) < ends, VOCAB - 1)
    ours, theirs = {"image": image, "tokens": tokens}, {"pixel_values": image, "input_ids": tokens}
    return {
        "whole": Given(ours, theirs),
        "padded": Given({**ours, "valid": RIGHT}, {**theirs, "attention_mask": RIGHT.long()}),
    }


def with_bias(model: type[PreTrainedModel]) -> Callable[[Any], PreTrainedModel]:
    """Return what makes a model whose bias of the logits is a parameter, as it is here, and no buffer, and whose sinusoids, which
    are not published, are no parameters.
    """

    def made(config: PreTrainedConfig) -> PreTrainedModel:
        reference = model(config)
        bias = reference._buffers.pop("final_logits_bias")
        reference.register_parameter("final_logits_bias", torch.nn.Parameter(bias, requires_grad=False))
        for module in reference.modules():
            if isinstance(module, MarianSinusoidalPositionalEmbedding):
                module.register_buffer("weight", module._parameters.pop("weight"), persistent=False)
        return reference

    return made


def mt5(config: MT5Config) -> PreTrainedModel:
    """Return mT5 with a head of its own, which the published weights have and its configuration in transformers says they have
    not, and one embedding.
    """
    config.tie_word_embeddings = False
    model = MT5ForConditionalGeneration(config)
    model.set_input_embeddings(model.shared)
    return model


def bigbird(config: BigBirdConfig) -> PreTrainedModel:
    """Return Big Bird without what its first token goes through for other tasks."""
    model = BigBirdForMaskedLM(config)
    model.bert.pooler = model.bert.activation = None
    return model


def mae(config: ViTMAEConfig) -> PreTrainedModel:
    """Return MAE whose patches, positions and tokens start as in the authors' code, which transformers overwrites or passes over,
    and whose layers are saved by their published names.
    """
    model = ViTMAEForPreTraining(config)
    model.vit.embeddings.patch_embeddings.projection._is_hf_initialized = False
    model.vit.embeddings.initialize_weights()
    model.decoder.initialize_weights(model.vit.embeddings.patch_embeddings.num_patches)
    names = {
        r"^vit\.encoder\.layer\.": "vit.layers.", "attention.attention.query": "attention.q_proj",
        "attention.attention.key": "attention.k_proj", "attention.attention.value": "attention.v_proj",
        "attention.output.dense": "attention.o_proj", "intermediate.dense": "mlp.fc1", "output.dense": "mlp.fc2",
    }  # fmt: skip
    model._weight_conversions = [WeightRenaming(theirs, ours) for theirs, ours in names.items()]
    return model


def xlnet(config: XLNetConfig) -> PreTrainedModel:
    """Return XLNet without what its second stream starts from, which predicts some tokens while it is trained."""
    model = XLNetLMHeadModel(config)
    model.transformer.mask_emb = None
    return model


BERT = {
    "vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40,
    "max_position_embeddings": 16,
}  # fmt: skip
WIDE = {"vocab_size": 128, "hidden_size": 96, "intermediate_size": 160, "max_position_embeddings": 64}
SPECIAL = dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0)
BART = {
    "vocab_size": VOCAB, "d_model": 24, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "max_position_embeddings": 16, "pad_token_id": 1,
    "decoder_start_token_id": 2,
}  # fmt: skip
WIDE_BART = {"vocab_size": 128, "d_model": 96, "encoder_ffn_dim": 160, "decoder_ffn_dim": 160, "max_position_embeddings": 64}
CAPTIONS = {**BERT, "eos_token_id": VOCAB - 1, "projection_dim": 10}
PICTURES = {
    "image_size": 12, "patch_size": 4, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 20, "num_channels": 2, "projection_dim": 10,
}  # fmt: skip
DEBERTA = {
    "relative_attention": True, "position_biased_input": False, "pos_att_type": "p2c|c2p", "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
}  # fmt: skip
CLASSES = {"num_labels": 1000}
SPEECH = {
    "vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40,
    "conv_dim": [8, 16, 12], "conv_kernel": [10, 3, 2], "conv_stride": [5, 2, 2], "num_conv_pos_embeddings": 6,
    "num_conv_pos_embedding_groups": 4, "mask_time_prob": 0,
}  # fmt: skip
UNMASKED = {"mask_time_prob": 0, "feat_proj_dropout": 0.1}
"""No vector stands for what is hidden, which only training reads."""
LARGE_SPEECH = {"feat_extract_norm": "layer", "do_stable_layer_norm": True, "conv_bias": True}
FAMILIES: dict[str, Family] = {
    "swin": Family(
        SwinForImageClassification,
        SwinConfig,
        CLASSES,
        {
            "image_size": 36, "patch_size": 3, "embed_dim": 12, "depths": [2, 3], "num_heads": [2, 4], "window_size": 3,
            "num_channels": 2, "mlp_ratio": 1.5, "num_labels": 5,
        },
        {"image_size": 48, "patch_size": 8, "embed_dim": 64, "depths": [1, 1], "num_labels": 32},
        images(36),
        {"qkv_bias": False, "hidden_act": "relu", "use_absolute_embeddings": True},
    ),
    "deit": Family(
        DeiTForImageClassificationWithTeacher,
        DeiTConfig,
        CLASSES,
        {
            "image_size": 12, "patch_size": 4, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
            "intermediate_size": 20, "num_channels": 2, "num_labels": 5,
        },
        {"hidden_size": 96, "intermediate_size": 160, "image_size": 64, "num_labels": 32},
        images(12),
        {"hidden_act": "relu", "qkv_bias": False},
    ),
    "pixtral_vision": Family(
        PixtralVisionModel,
        PixtralVisionConfig,
        {"hidden_act": "silu"},
        {
            "image_size": 20, "patch_size": 4, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
            "intermediate_size": 40, "num_channels": 2, "hidden_act": "silu", "rope_parameters": {"rope_theta": 300.0},
        },
        {"hidden_size": 192, "intermediate_size": 160},
        images(16, 20, count=1),  # of which transformers puts several in a row
        {"hidden_act": "gelu", "attention_dropout": 0.1},
        {"hidden": "last_hidden_state"},
    ),
    "mae": Family(
        mae,
        ViTMAEConfig,
        {},
        {
            "image_size": 12, "patch_size": 3, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
            "intermediate_size": 20, "num_channels": 2, "mask_ratio": 0.625, "decoder_hidden_size": 16,
            "decoder_num_hidden_layers": 3, "decoder_num_attention_heads": 4, "decoder_intermediate_size": 28,
        },
        {
            "hidden_size": 192, "intermediate_size": 160, "image_size": 48, "decoder_hidden_size": 96,
            "decoder_intermediate_size": 224,
        },
        noisy_images(12, 16),
        {"hidden_act": "relu", "qkv_bias": False, "hidden_dropout_prob": 0.1},
    ),
    "convnext": Family(
        ConvNextForImageClassification,
        ConvNextConfig,
        CLASSES,
        {
            "image_size": 24, "patch_size": 3, "hidden_sizes": [8, 20], "depths": [2, 1], "num_stages": 2, "num_channels": 2,
            "num_labels": 5,
        },
        {"hidden_sizes": [96, 64], "num_labels": 32},
        images(32, 23),
        {"hidden_act": "relu", "num_stages": 1},
    ),
    "resnet": Family(
        ResNetForImageClassification,
        ResNetConfig,
        CLASSES,
        {"embedding_size": 6, "hidden_sizes": [8, 20], "depths": [2, 2], "num_channels": 2, "num_labels": 5},
        {"embedding_size": 64, "hidden_sizes": [64, 128], "num_labels": 32},
        images(37, 52),
        {"hidden_act": "gelu", "layer_type": "basic", "downsample_in_first_stage": True, "downsample_in_bottleneck": True},
    ),
    "bart": Family(
        with_bias(BartForConditionalGeneration),
        BartConfig,
        {"attention_dropout": 0.1, "activation_dropout": 0.1},
        BART,
        WIDE_BART,
        translations,
        {"activation_function": "tanh", "encoder_layerdrop": 0.1, "encoder_ffn_dim": 24},
    ),
    "bart plbart": Family(
        with_bias(PLBartForConditionalGeneration),
        PLBartConfig,
        {},
        {**BART, "scale_embedding": True},
        WIDE_BART,
        translations,
        parameters=139_270_741,
    ),
    "mbart": Family(
        with_bias(MBartForConditionalGeneration),
        MBartConfig,
        {"vocab_size": 250027, "scale_embedding": True},
        {**BART, "scale_embedding": True},
        WIDE_BART,
        translations,
        {"activation_function": "tanh", "decoder_layerdrop": 0.1},
    ),
    "marian": Family(
        with_bias(MarianMTModel),
        MarianConfig,
        {
            "vocab_size": 58101, "d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 8,
            "decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "max_position_embeddings": 512,
            "activation_function": "swish", "scale_embedding": True,
        },
        {**BART, "activation_function": "swish", "scale_embedding": True},
        WIDE_BART,
        translations,
        {"share_encoder_decoder_embeddings": False},
    ),
    "mt5": Family(
        mt5,
        MT5Config,
        {"d_model": 768, "d_ff": 2048, "num_layers": 12, "num_heads": 12},
        {
            "vocab_size": VOCAB, "d_model": 24, "d_kv": 10, "d_ff": 20, "num_layers": 2, "num_heads": 3,
            "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16,
        },
        {
            "vocab_size": 128, "d_model": 96, "d_kv": 32, "d_ff": 160, "num_heads": 4, "relative_attention_num_buckets": 1024,
            "relative_attention_max_distance": 4096,
        },
        translations,
        {"feed_forward_proj": "gated-silu", "num_decoder_layers": 3},
    ),
    "clip": Family(
        CLIPModel,
        CLIPConfig,
        {},
        {"projection_dim": 10, "text_config": CAPTIONS, "vision_config": PICTURES},
        {
            "text_config": {**CAPTIONS, "hidden_size": 96, "intermediate_size": 160},
            "vision_config": {**PICTURES, "hidden_size": 128, "intermediate_size": 192},
        },
        captions,
        {"projection_dim": 12},
        {"a": "image_embeds", "b": "text_embeds"},
    ),
    "whisper": Family(
        WhisperForConditionalGeneration,
        WhisperConfig,
        {},
        {
            "vocab_size": VOCAB, "num_mel_bins": 5, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
            "decoder_attention_heads": 4, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "d_model": 24, "max_source_positions": 7,
            "max_target_positions": 16, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0, "decoder_start_token_id": 1,
        },
        {"d_model": 96, "encoder_ffn_dim": 160, "decoder_ffn_dim": 160, "max_target_positions": 64, "vocab_size": 128},
        speech(5, 14),
        {"scale_embedding": True, "activation_function": "relu", "encoder_layerdrop": 0.1, "encoder_ffn_dim": 24},
    ),
    "wav2vec2": Family(
        Wav2Vec2ForCTC,
        Wav2Vec2Config,
        UNMASKED,
        SPEECH,
        {},
        sounds,
        {"hidden_act": "relu", "feat_extract_activation": "relu", "add_adapter": True, "adapter_attn_dim": 4,
         "output_hidden_size": 20},
    ),
    "wav2vec2 large": Family(
        Wav2Vec2ForCTC,
        Wav2Vec2Config,
        {
            **UNMASKED, **LARGE_SPEECH, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
            "intermediate_size": 4096,
        },
        {**SPEECH, **LARGE_SPEECH, "num_conv_pos_embeddings": 7},
        {},
        sounds,
        parameters=315_470_496,
    ),
    "roberta": Family(
        RobertaForMaskedLM,
        RobertaConfig,
        {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
        {**BERT, "type_vocab_size": 2, "pad_token_id": 2},
        {**WIDE, "type_vocab_size": 32},
        texts(token=2),
        {"hidden_act": "relu", "is_decoder": True},
    ),
    "roberta camembert": Family(
        CamembertForMaskedLM,
        CamembertConfig,
        {"vocab_size": 32005, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
        {**BERT, "type_vocab_size": 2, "pad_token_id": 2},
        {**WIDE, "type_vocab_size": 32},
        texts(token=2),
        parameters=110_655_493,
    ),
    "roberta xlm": Family(
        XLMRobertaForMaskedLM,
        XLMRobertaConfig,
        {"vocab_size": 250002, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
        {**BERT, "type_vocab_size": 2, "pad_token_id": 2},
        {**WIDE, "type_vocab_size": 32},
        texts(token=2),
        parameters=278_295_186,
    ),
    "distilbert": Family(
        DistilBertForMaskedLM,
        DistilBertConfig,
        {},
        {"vocab_size": VOCAB, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40, "max_position_embeddings": 16},
        {"vocab_size": 128, "dim": 96, "hidden_dim": 160, "max_position_embeddings": 64},
        texts(),
        {"activation": "relu", "tie_word_embeddings": False},
    ),
    "fnet": Family(
        fnet,
        FNetConfig,
        {},
        {key: value for key, value in {**BERT, "type_vocab_size": 4}.items() if key != "num_attention_heads"},
        {**WIDE, "type_vocab_size": 32},
        texts(padded=False, kinds=4),
        {"hidden_act": "gelu", "use_tpu_fourier_optimizations": True},
    ),
    "bigbird": Family(
        bigbird,
        BigBirdConfig,
        {},
        {**BERT, "attention_type": "original_full", "pad_token_id": 1, "type_vocab_size": 4},
        {**WIDE, "type_vocab_size": 32},
        texts(kinds=4),
        {"hidden_act": "gelu", "use_bias": False, "rescale_embeddings": True},
    ),
    "longformer": Family(
        LongformerForMaskedLM,
        LongformerConfig,
        {
            "vocab_size": 50265, "max_position_embeddings": 4098, "type_vocab_size": 1, "layer_norm_eps": 1e-5,
            "attention_window": [512] * 12,
        },
        {**BERT, "type_vocab_size": 2, "pad_token_id": 2, "attention_window": [4, 6]},
        {**WIDE, "type_vocab_size": 32},
        with_globals(texts(token=2)),
        {"hidden_act": "relu"},
    ),
    "deberta_v2": Family(
        DebertaV2ForMaskedLM,
        DebertaV2Config,
        {
            **DEBERTA, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
            "position_buckets": 256,
        },
        {**DEBERTA, **BERT, "position_buckets": 6, "pad_token_id": 1},
        {**WIDE, "position_buckets": 32},
        texts(),
        {
            "hidden_act": "relu", "position_biased_input": True, "share_att_key": False, "pos_att_type": ["c2p"],
            "norm_rel_ebd": "none", "relative_attention": False, "legacy": False, "type_vocab_size": 2, "conv_kernel_size": 3,
            "max_relative_positions": 8,
        },
    ),
    "xlnet": Family(
        xlnet,
        XLNetConfig,
        {},
        {"vocab_size": VOCAB, "d_model": 24, "n_layer": 2, "n_head": 3, "d_inner": 40},
        {"vocab_size": 128, "d_model": 96, "d_inner": 160, "n_head": 3},
        in_an_order(texts(kinds=2)),
        {"ff_activation": "relu", "attn_type": "uni", "bi_data": True, "clamp_len": 4, "d_head": 6, "untie_r": False},
    ),
    "perceiver": Family(
        PerceiverForMaskedLM,
        PerceiverConfig,
        {"qk_channels": 256, "v_channels": 1280},
        {
            "vocab_size": VOCAB, "d_model": 24, "num_latents": 5, "d_latents": 40, "num_blocks": 3,
            "num_self_attends_per_block": 2, "num_self_attention_heads": 4, "num_cross_attention_heads": 2, "qk_channels": 12,
            "v_channels": 40, "max_position_embeddings": T, "self_attention_widening_factor": 2,
            "cross_attention_widening_factor": 3,
        },
        {
            "vocab_size": 128, "d_model": 96, "num_latents": 32, "d_latents": 160, "qk_channels": 64, "v_channels": 160,
            "max_position_embeddings": 64,
        },
        texts(),
        {"hidden_act": "relu", "v_channels": 20, "use_query_residual": False},
    ),
    "modernbert": Family(
        ModernBertForMaskedLM,
        ModernBertConfig,
        {},
        {
            **BERT, "num_hidden_layers": 4, "local_attention": 6, "global_attn_every_n_layers": 2, "pad_token_id": 1, **SPECIAL,
            "rope_parameters": {
                "full_attention": {"rope_type": "default", "rope_theta": 300.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
            },
        },
        WIDE,
        texts(),
        {"hidden_activation": "relu", "norm_bias": True, "mlp_dropout": 0.1, "layer_types": ["full_attention"] * 4},
    ),
}  # fmt: skip
"""By the recipe's name, behind which another kind of model that it describes may be named: `bert large`."""
