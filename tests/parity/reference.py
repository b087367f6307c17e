"""The models of transformers that the zoo's recipes describe, at any size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Mamba2Config,
    Mamba2ForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    PreTrainedModel,
    SwitchTransformersConfig,
    SwitchTransformersForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
)
from transformers.core_model_loading import revert_weight_conversion

import composer
from composer.weights import load_published, mapping
from composer.weights.mapping import WeightMap, shapes_of


def gpt2(params: Mapping[str, Any]) -> PreTrainedModel:
    """Return GPT-2 with the recipe's params; those not given as published."""
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=params.get("vocab", 50257),
            n_positions=params.get("context", 1024),
            n_embd=params.get("d_model", 768),
            n_layer=params.get("n_layers", 12),
            n_head=params.get("n_heads", 12),
            bos_token_id=None,
            eos_token_id=None,
        )
    )


def llama3(params: Mapping[str, Any]) -> PreTrainedModel:
    """Return Llama 3 with the recipe's params; those not given as in meta-llama/Meta-Llama-3-8B."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=params.get("vocab", 128256),
            hidden_size=params.get("d_model", 4096),
            intermediate_size=params.get("hidden", 14336),
            num_hidden_layers=params.get("n_layers", 32),
            num_attention_heads=params.get("n_heads", 32),
            num_key_value_heads=params.get("n_kv_heads", 8),
            max_position_embeddings=8192,
            rms_norm_eps=1e-5,
            tie_word_embeddings=params.get("tied", False),
            rope_parameters=params.get("rope", {"rope_type": "default", "rope_theta": float(params.get("theta", 500000))}),
        )
    )


def mixtral(params: Mapping[str, Any]) -> PreTrainedModel:
    """Return Mixtral with the recipe's params; those not given as in mistralai/Mixtral-8x7B-v0.1."""
    return MixtralForCausalLM(
        MixtralConfig(
            vocab_size=params.get("vocab", 32000),
            hidden_size=params.get("d_model", 4096),
            intermediate_size=params.get("hidden", 14336),
            num_hidden_layers=params.get("n_layers", 32),
            num_attention_heads=params.get("n_heads", 32),
            num_key_value_heads=params.get("n_kv_heads", 8),
            num_local_experts=params.get("n_experts", 8),
            num_experts_per_tok=params.get("top_k", 2),
            router_aux_loss_coef=params.get("balance", 0.02),
            max_position_embeddings=32768,
            rms_norm_eps=1e-5,
            rope_parameters={"rope_type": "default", "rope_theta": float(params.get("theta", 1e6))},
        )
    )


def gemma3(params: Mapping[str, Any]) -> PreTrainedModel:
    """Return Gemma 3 with the recipe's params; those not given as in google/gemma-3-1b-pt."""
    return Gemma3ForCausalLM(
        Gemma3TextConfig(
            vocab_size=params.get("vocab", 262144),
            hidden_size=params.get("d_model", 1152),
            intermediate_size=params.get("hidden", 6912),
            num_hidden_layers=params.get("n_layers", 26),
            num_attention_heads=params.get("n_heads", 4),
            num_key_value_heads=params.get("n_kv_heads", 1),
            head_dim=params.get("head_dim", 256),
            query_pre_attn_scalar=params.get("query_scale", params.get("head_dim", 256)),
            max_position_embeddings=32768,
            sliding_window=params.get("sliding_window", 512),
            sliding_window_pattern=params.get("period", 6),  # type: ignore[call-arg]  # a key of published files alone
            rope_parameters={
                "sliding_attention": {"rope_type": "default", "rope_theta": float(params.get("local_theta", 1e4))},
                "full_attention": {"rope_type": "default", "rope_theta": float(params.get("global_theta", 1e6))},
            },
        )
    )


def bert(params: Mapping[str, Any]) -> PreTrainedModel:
    """Return BERT with the recipe's params; those not given as in google-bert/bert-base-uncased."""
    return BertForMaskedLM(
        BertConfig(
            vocab_size=params.get("vocab", 30522),
            max_position_embeddings=params.get("context", 512),
            type_vocab_size=params.get("n_token_types", 2),
            hidden_size=params.get("d_model", 768),
            num_hidden_layers=params.get("n_layers", 12),
            num_attention_heads=params.get("n_heads", 12),
            intermediate_size=params.get("hidden", 3072),
        )
    )


def albert(params: Mapping[str, Any]) -> PreTrainedModel:
    """Return ALBERT with the recipe's params; those not given as in albert/albert-base-v2."""
    return AlbertForMaskedLM(
        AlbertConfig(
            vocab_size=params.get("vocab", 30000),
            embedding_size=params.get("d_embed", 128),
            hidden_size=params.get("d_model", 768),
            num_hidden_layers=params.get("n_layers", 12),
            num_attention_heads=params.get("n_heads", 12),
            intermediate_size=params.get("hidden", 3072),
            max_position_embeddings=params.get("context", 512),
        )
    )


def vit(params: Mapping[str, Any]) -> PreTrainedModel:
    """Return ViT with the recipe's params; those not given as in google/vit-base-patch16-224."""
    return ViTForImageClassification(
        ViTConfig(
            image_size=params.get("size", 224),
            num_channels=params.get("n_channels", 3),
            patch_size=params.get("patch", 16),
            hidden_size=params.get("d_model", 768),
            num_hidden_layers=params.get("n_layers", 12),
            num_attention_heads=params.get("n_heads", 12),
            intermediate_size=params.get("hidden", 3072),
            num_labels=params.get("n_classes", 1000),
        )
    )


def t5(params: Mapping[str, Any]) -> PreTrainedModel:
    """Return T5 with the recipe's params; those not given as in google-t5/t5-base."""
    return T5ForConditionalGeneration(T5Config(**of_t5(params)))


def switch(params: Mapping[str, Any]) -> PreTrainedModel:
    """Return Switch with the recipe's params; those not given as in google/switch-base-8."""
    layers = params.get("n_layers", 12)
    sparse = {"num_sparse_encoder_layers": layers // 2, "num_sparse_decoder_layers": layers // 2}
    experts = {"num_experts": params.get("n_experts", 8), "expert_capacity": params.get("capacity", 64)}
    return SwitchTransformersForConditionalGeneration(SwitchTransformersConfig(**of_t5(params), **sparse, **experts))


def of_t5(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what T5's configuration and that of its descendants call the recipe's params."""
    return {
        "vocab_size": params.get("vocab", 32128),
        "d_model": params.get("d_model", 768),
        "d_kv": params.get("head_dim", 64),
        "d_ff": params.get("hidden", 3072),
        "num_layers": params.get("n_layers", 12),
        "num_decoder_layers": params.get("n_layers", 12),
        "num_heads": params.get("n_heads", 12),
        "relative_attention_num_buckets": params.get("buckets", 32),
        "relative_attention_max_distance": params.get("max_distance", 128),
        "decoder_start_token_id": 0,
    }


def mamba(params: Mapping[str, Any]) -> PreTrainedModel:
    """Return Mamba with the recipe's params; those not given as in state-spaces/mamba-130m."""
    width = params.get("d_model", 768)
    inner = params.get("inner", 2 * width)
    return MambaForCausalLM(
        MambaConfig(
            vocab_size=params.get("vocab", 50280),
            hidden_size=width,
            num_hidden_layers=params.get("n_layers", 24),
            expand=inner // width,
            state_size=params.get("state", 16),
            time_step_rank=params.get("rank", "auto"),
            conv_kernel=params.get("kernel", 4),
            use_bias=params.get("bias", False),
            use_conv_bias=params.get("conv_bias", True),
            tie_word_embeddings=params.get("tied", True),
        )
    )


def mamba2(params: Mapping[str, Any]) -> PreTrainedModel:
    """Return Mamba-2 with the recipe's params; those not given as in state-spaces/mamba2-130m."""
    width, heads, head_dim = (params.get(name, value) for name, value in (("d_model", 768), ("n_heads", 24), ("head_dim", 64)))
    return Mamba2ForCausalLM(
        Mamba2Config(
            vocab_size=params.get("vocab", 50288),
            hidden_size=width,
            num_hidden_layers=params.get("n_layers", 24),
            num_heads=heads,
            head_dim=head_dim,
            expand=heads * head_dim // width,
            n_groups=params.get("n_groups", 1),
            state_size=params.get("state", 128),
            conv_kernel=params.get("kernel", 4),
            use_bias=params.get("bias", False),
            use_conv_bias=params.get("conv_bias", True),
            tie_word_embeddings=params.get("tied", True),
            chunk_size=params.get("chunk_size", 256),
        )
    )


REFERENCE = {
    "gpt2": gpt2,
    "llama3": llama3,
    "gemma3": gemma3,
    "mixtral": mixtral,
    "albert": albert,
    "bert": bert,
    "vit": vit,
    "t5": t5,
    "switch": switch,
    "mamba": mamba,
    "mamba2": mamba2,
}


def published(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """Return the tensors by the names and in the shapes of published files, which for Mixtral are not
    those that transformers runs.
    """
    return {name: tensor.contiguous() for name, tensor in revert_weight_conversion(model, model.state_dict()).items()}


def perturbed(model: PreTrainedModel) -> PreTrainedModel:
    """Return the model with every parameter moved at random, also gains and biases that start at 1 or 0, and every number that it
    saves besides, ready to be compared.
    """
    generator = torch.Generator().manual_seed(1)
    saved = model.state_dict().keys()
    kept = [buffer for name, buffer in model.named_buffers() if name in saved and buffer.is_floating_point()]
    with torch.no_grad():
        for tensor in (*model.parameters(), *kept):
            tensor.add_(torch.randn(tensor.shape, generator=generator), alpha=0.1)
    model.train(False)
    return model


def loaded(recipe: str, reference: PreTrainedModel) -> composer.Model:
    """Return a recipe's model, as transformers' configuration sets it, with the weights of transformers' model."""
    model = composer.load(recipe).with_config(reference.config.to_dict()).compile(seed=0).eval()
    load_published(model, published(reference), reference.config.model_type)
    return model


def weight_map(model: composer.Model, reference: PreTrainedModel, ours: Mapping[str, torch.Tensor]) -> WeightMap:
    """Return how published tensors are read and written, for those of the model that are given."""
    untyped = model.program.untyped
    assert untyped.recipe.checkpoints is not None
    return mapping(untyped.recipe.checkpoints, reference.config.model_type, shapes_of(ours), untyped.params)
