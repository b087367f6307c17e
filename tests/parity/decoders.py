"""The families of decoders whose published models the zoo describes: transformers' model of each, as published and tiny."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import (
    ArceeConfig,
    ArceeForCausalLM,
    BloomConfig,
    BloomForCausalLM,
    DeepseekV2Config,
    DeepseekV2ForCausalLM,
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    Ernie4_5Config,
    Ernie4_5ForCausalLM,
    FalconConfig,
    FalconForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GemmaConfig,
    GemmaForCausalLM,
    Glm4Config,
    Glm4ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTJConfig,
    GPTJForCausalLM,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    GptOssConfig,
    GptOssForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    HeliumConfig,
    HeliumForCausalLM,
    JambaConfig,
    JambaForCausalLM,
    Llama4ForCausalLM,
    Llama4TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MptConfig,
    MptForCausalLM,
    Olmo2Config,
    Olmo2ForCausalLM,
    Olmo3Config,
    Olmo3ForCausalLM,
    OlmoeConfig,
    OlmoeForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    OPTConfig,
    OPTForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    PhiConfig,
    PhiForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
    RecurrentGemmaConfig,
    RecurrentGemmaForCausalLM,
    RwkvConfig,
    RwkvForCausalLM,
    SeedOssConfig,
    SeedOssForCausalLM,
    SmolLM3Config,
    SmolLM3ForCausalLM,
)

VOCAB = 53


@dataclass(frozen=True)
class Family:
    """A recipe's model in transformers."""

    model: type[PreTrainedModel]
    config: type[PreTrainedConfig]
    published: dict[str, Any]
    """What the published configuration of the recipe's default size has, in place of what transformers has by default."""
    parameters: int | None
    """Of that size, each tensor counted once; None for a recipe's own size, which is told with those of the zoo."""
    tiny: dict[str, Any]
    """What makes it tiny, with every number another than that of any other."""
    wide: dict[str, Any] = field(default_factory=lambda: {"vocab_size": 128, "hidden_size": 96, "intermediate_size": 160})
    """What makes it wide enough to tell how its initial weights spread."""
    reads_padding: bool = False
    """Whether transformers takes padding for text, so that rows are compared with what each gives by itself."""

    def real_logits(self, reference: PreTrainedModel, tokens: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        """Return transformers' logits of the tokens that are no padding, [N, V]."""
        if not self.reads_padding:
            logits: torch.Tensor = reference(tokens, attention_mask=valid.long()).logits
            return logits[valid]
        return torch.cat([reference(row[seen][None]).logits[0] for row, seen in zip(tokens, valid, strict=True)])

    def small(self, **changes: Any) -> PreTrainedModel:
        """Return a tiny model."""
        return self.model(self.config(**{**NOTHING, "vocab_size": VOCAB, **self.tiny, **changes}))

    def whole(self) -> PreTrainedModel:
        """Return the published model, for the meta device."""
        return self.model(self.config(**self.published))


NOTHING = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
"""Tokens that a vocabulary of 53 would not have."""


def rope(theta: float, **more: Any) -> dict[str, Any]:
    """Return rotary positions as transformers configures them."""
    return {"rope_parameters": {"rope_type": "default", "rope_theta": float(theta), **more}}


def yarn(theta: float, **more: Any) -> dict[str, Any]:
    """Return rotary positions that are scaled by YaRN, beyond a text of 8 tokens."""
    return {"rope_parameters": {"rope_type": "yarn", "rope_theta": theta, "original_max_position_embeddings": 8, **more}}


def by_layer(theta: float, **more: Any) -> dict[str, Any]:
    """Return rotary positions that are scaled by YaRN in layers that see the whole text alone."""
    local = {"rope_type": "default", "rope_theta": theta}
    return {"rope_parameters": {"sliding_attention": local, "full_attention": yarn(theta, **more)["rope_parameters"]}}


def llama3_bands(factor: float, length: int) -> dict[str, Any]:
    """Return rotary positions whose low frequencies are divided by a factor, beyond a text of some length."""
    bands = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": length}
    return {"rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": factor, **bands}}


def latent_yarn(weight: float) -> dict[str, Any]:
    """Return rotary positions as transformers reads those of DeepSeek-V2 and DeepSeek-V3, from 4096 tokens to 163840."""
    published = {"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": weight, "mscale_all_dim": weight}
    return yarn(10000.0, **{**published, "original_max_position_embeddings": 4096})


LLAMA = {"hidden_size": 48, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 6}
GROUPED = {**LLAMA, "num_key_value_heads": 2}
GRANITE = {
    "embedding_multiplier": 12.0, "attention_multiplier": 0.0078125, "residual_multiplier": 0.22, "logits_scaling": 16.0,
}  # fmt: skip
LATENT = {
    "hidden_size": 48, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 6,
    "kv_lora_rank": 14, "qk_nope_head_dim": 10, "qk_rope_head_dim": 4, "v_head_dim": 7, "moe_intermediate_size": 20,
    "num_experts_per_tok": 3, **rope(300),
}  # fmt: skip
FAMILIES: dict[str, Family] = {
    "llama1": Family(
        LlamaForCausalLM,
        LlamaConfig,
        {"rms_norm_eps": 1e-6},
        None,
        {**LLAMA, **rope(300)},
    ),
    "transformer_pp": Family(
        LlamaForCausalLM,
        LlamaConfig,
        {
            "vocab_size": 50257, "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12,
            "num_attention_heads": 12, "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
        },
        None,
        {**LLAMA, "tie_word_embeddings": True, **rope(300)},
    ),
    "llama2": Family(
        LlamaForCausalLM,
        LlamaConfig,
        {"max_position_embeddings": 4096, "rms_norm_eps": 1e-5},
        None,
        {**GROUPED, **rope(200)},
    ),
    "mistral": Family(
        MistralForCausalLM,
        MistralConfig,
        {"max_position_embeddings": 32768, "rms_norm_eps": 1e-5, "sliding_window": 4096},
        None,
        {**GROUPED, "head_dim": 10, "sliding_window": 4, **rope(300)},
    ),
    "qwen2": Family(
        Qwen2ForCausalLM,
        Qwen2Config,
        {
            "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
            "num_attention_heads": 28, "num_key_value_heads": 4, "max_position_embeddings": 131072, **rope(1e6),
        },
        None,
        {**GROUPED, **rope(300)},
    ),
    "qwen3": Family(
        Qwen3ForCausalLM,
        Qwen3Config,
        {
            "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_key_value_heads": 8,
            "max_position_embeddings": 40960, **rope(1e6),
        },
        None,
        {**GROUPED, "head_dim": 10, **rope(300)},
    ),
    "olmo2": Family(
        Olmo2ForCausalLM,
        Olmo2Config,
        {"vocab_size": 100352, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, **rope(500000)},
        None,
        {**GROUPED, **rope(300)},
    ),
    "olmo3": Family(
        Olmo3ForCausalLM,
        Olmo3Config,
        {
            "vocab_size": 100278, "max_position_embeddings": 65536, "rms_norm_eps": 1e-6,
            **by_layer(500000.0, factor=8.0, original_max_position_embeddings=8192, attention_factor=1.2079441541679836),
        },
        None,
        {**GROUPED, "num_hidden_layers": 5, "sliding_window": 4, **by_layer(300.0, factor=4.0, attention_factor=1.3)},
    ),
    "phi3": Family(
        Phi3ForCausalLM,
        Phi3Config,
        {"sliding_window": 2047},
        None,
        {**GROUPED, "sliding_window": 4, **rope(300, partial_rotary_factor=0.5)},
    ),
    "gpt_neox": Family(
        GPTNeoXForCausalLM,
        GPTNeoXConfig,
        {"hidden_act": "gelu_fast"},
        None,
        {**LLAMA, "hidden_act": "gelu_fast", **rope(300, partial_rotary_factor=0.5)},
    ),
    "pythia": Family(
        GPTNeoXForCausalLM,
        GPTNeoXConfig,
        {"hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 32, "num_attention_heads": 32},
        None,
        {**LLAMA, "num_attention_heads": 3, **rope(300, partial_rotary_factor=0.25)},
    ),
    "gpt_neox RedPajama": Family(
        GPTNeoXForCausalLM,
        GPTNeoXConfig,
        {
            "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32, "num_attention_heads": 32,
            "use_parallel_residual": False, **rope(10000, partial_rotary_factor=1.0),
        },
        2_775_864_320,
        {**LLAMA, "use_parallel_residual": False, **rope(300, partial_rotary_factor=1.0)},
    ),
    "gptj": Family(
        GPTJForCausalLM,
        GPTJConfig,
        {},
        None,
        {"n_embd": 48, "n_layer": 2, "n_head": 3, "n_inner": 56, "rotary_dim": 12, "n_positions": 16},
        {"n_embd": 96, "n_inner": 160},
    ),
    "phi2": Family(
        PhiForCausalLM,
        PhiConfig,
        {
            "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32, "resid_pdrop": 0.1,
            **rope(10000, partial_rotary_factor=0.4),
        },
        None,
        {**GROUPED, **rope(300, partial_rotary_factor=0.5)},
    ),
    "opt": Family(
        OPTForCausalLM,
        OPTConfig,
        {"hidden_size": 4096, "ffn_dim": 16384, "num_hidden_layers": 32, "num_attention_heads": 32},
        None,
        {"hidden_size": 48, "ffn_dim": 40, "num_hidden_layers": 2, "num_attention_heads": 6, "max_position_embeddings": 16},
        {"ffn_dim": 160, "hidden_size": 96, "max_position_embeddings": 64},
    ),
    "opt 350M": Family(
        OPTForCausalLM,
        OPTConfig,
        {
            "hidden_size": 1024, "ffn_dim": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "word_embed_proj_dim": 512,
            "do_layer_norm_before": False,
        },
        331_196_416,
        {
            "hidden_size": 48, "ffn_dim": 40, "num_hidden_layers": 2, "num_attention_heads": 6, "max_position_embeddings": 16,
            "word_embed_proj_dim": 20, "do_layer_norm_before": False,
        },
        {"ffn_dim": 160, "hidden_size": 96, "max_position_embeddings": 64},
    ),
    "bloom": Family(
        BloomForCausalLM,
        BloomConfig,
        {"hidden_size": 14336, "n_layer": 70, "n_head": 112},
        None,
        {"hidden_size": 48, "n_layer": 2, "n_head": 6},
        {"hidden_size": 96},
    ),
    "falcon": Family(
        FalconForCausalLM,
        FalconConfig,
        {},
        None,
        {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 6, "ffn_hidden_size": 56, **rope(300)},
        {"hidden_size": 96},
    ),
    "falcon 40B": Family(
        FalconForCausalLM,
        FalconConfig,
        {
            "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8,
            "new_decoder_architecture": True,
        },
        41_303_293_952,
        {
            "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 6, "num_kv_heads": 2,
            "new_decoder_architecture": True, **rope(300),
        },
        {"hidden_size": 96},
    ),
    "gpt_neo": Family(
        GPTNeoForCausalLM,
        GPTNeoConfig,
        {"hidden_size": 2560, "num_layers": 32, "num_heads": 20, "attention_types": [[["global", "local"], 16]]},
        None,
        {
            "hidden_size": 48, "num_layers": 3, "num_heads": 6, "attention_types": [[["global", "local"], 1], [["global"], 1]],
            "window_size": 4, "intermediate_size": 56, "max_position_embeddings": 16,
        },
        {"hidden_size": 96, "intermediate_size": 160, "max_position_embeddings": 64},
    ),
    "mpt": Family(
        MptForCausalLM,
        MptConfig,
        {"d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432},
        None,
        {"d_model": 48, "n_heads": 8, "n_layers": 2, "max_seq_len": 16},
        {"d_model": 96},
    ),
    "gemma": Family(
        GemmaForCausalLM,
        GemmaConfig,
        {},
        None,
        {**GROUPED, "head_dim": 10, "num_key_value_heads": 3, **rope(300)},
    ),
    "gemma2": Family(
        Gemma2ForCausalLM,
        Gemma2Config,
        {},
        None,
        {
            **GROUPED, "num_hidden_layers": 3, "head_dim": 10, "sliding_window": 4, "query_pre_attn_scalar": 7,
            "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0, **rope(300),
        },
    ),
    "qwen3_moe": Family(
        Qwen3MoeForCausalLM,
        Qwen3MoeConfig,
        {
            "num_hidden_layers": 48, "head_dim": 128, "norm_topk_prob": True, "max_position_embeddings": 40960, **rope(1e6),
        },
        None,
        {
            **GROUPED, "head_dim": 10, "moe_intermediate_size": 20, "num_experts": 5, "num_experts_per_tok": 3,
            "router_aux_loss_coef": 0.01, **rope(300),
        },
        {"hidden_size": 96, "moe_intermediate_size": 160},
    ),
    "qwen3_next": Family(
        Qwen3NextForCausalLM,
        Qwen3NextConfig,
        {"max_position_embeddings": 262144, **rope(1e7, partial_rotary_factor=0.25)},
        None,
        {
            **GROUPED, "num_hidden_layers": 5, "head_dim": 10, "linear_num_key_heads": 3, "linear_num_value_heads": 9,
            "linear_key_head_dim": 12, "linear_value_head_dim": 7, "linear_conv_kernel_dim": 3, "moe_intermediate_size": 20,
            "shared_expert_intermediate_size": 14, "num_experts": 5, "num_experts_per_tok": 3, "router_aux_loss_coef": 0.01,
            **rope(300, partial_rotary_factor=0.4),
        },
        {"vocab_size": 128, "hidden_size": 96, "moe_intermediate_size": 160, "shared_expert_intermediate_size": 64},
    ),
    "jamba": Family(
        JambaForCausalLM,
        JambaConfig,
        {},
        None,
        {
            **GROUPED, "num_hidden_layers": 5, "attn_layer_period": 3, "attn_layer_offset": 1, "expert_layer_period": 2,
            "expert_layer_offset": 1, "mamba_expand": 2, "mamba_d_state": 7, "mamba_dt_rank": 5, "mamba_d_conv": 3,
            "num_experts": 5, "num_experts_per_tok": 3, "router_aux_loss_coef": 0.01,
        },
        {"vocab_size": 128, "hidden_size": 96, "intermediate_size": 160, "mamba_dt_rank": 20},
    ),
    "recurrent_gemma": Family(
        RecurrentGemmaForCausalLM,
        RecurrentGemmaConfig,
        {"num_key_value_heads": 1, "intermediate_size": 15360},
        None,
        {
            **GROUPED, "num_hidden_layers": 5, "num_key_value_heads": 2, "lru_width": 36, "intermediate_size": 80,
            "attention_window_size": 4, "conv1d_width": 3, "logits_soft_cap": 3.0, "attention_bias": True,
            **rope(300, partial_rotary_factor=0.5),
        },
        {"vocab_size": 128, "hidden_size": 96, "intermediate_size": 320, "lru_width": 120},
        reads_padding=True,
    ),
    "rwkv": Family(
        RwkvForCausalLM,
        RwkvConfig,
        {"hidden_size": 768, "num_hidden_layers": 12},
        None,
        {"hidden_size": 48, "num_hidden_layers": 3, "intermediate_size": 56, "context_length": 16, "use_cache": False},
        {"vocab_size": 128, "hidden_size": 96, "intermediate_size": 160},
        reads_padding=True,
    ),
    "gpt_oss": Family(
        GptOssForCausalLM,
        GptOssConfig,
        {"num_hidden_layers": 24, "num_local_experts": 32, "router_aux_loss_coef": 0.9},
        None,
        {
            **GROUPED, "num_hidden_layers": 3, "head_dim": 10, "sliding_window": 4, "num_local_experts": 5,
            "num_experts_per_tok": 3, "swiglu_limit": 0.5, "router_aux_loss_coef": 0.01, **yarn(300, factor=4.0, truncate=False),
        },
        {"hidden_size": 96, "intermediate_size": 160, "num_attention_heads": 24, "num_local_experts": 64},
    ),
    "deepseek_v2": Family(
        DeepseekV2ForCausalLM,
        DeepseekV2Config,
        {
            "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 60,
            "num_attention_heads": 128, "first_k_dense_replace": 1, "n_routed_experts": 160, "num_experts_per_tok": 6,
            "n_group": 8, "topk_group": 3, "topk_method": "group_limited_greedy", "routed_scaling_factor": 16.0,
            "max_position_embeddings": 163840, **latent_yarn(0.707),
        },
        None,
        {
            **LATENT, "q_lora_rank": 18, "first_k_dense_replace": 1, "n_routed_experts": 8, "n_group": 4, "topk_group": 2,
            "topk_method": "group_limited_greedy", "routed_scaling_factor": 2.0,
            **yarn(300.0, factor=4.0, mscale=0.7, mscale_all_dim=1.5),
        },
        {"vocab_size": 128, "hidden_size": 96, "intermediate_size": 160, "moe_intermediate_size": 64},
    ),
    "deepseek_v2 Lite": Family(
        DeepseekV2ForCausalLM,
        DeepseekV2Config,
        {
            "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 27,
            "num_attention_heads": 16, "first_k_dense_replace": 1, "n_routed_experts": 64, "num_experts_per_tok": 6,
            "q_lora_rank": None, "n_group": 1, "topk_group": 1, "max_position_embeddings": 163840,
            **latent_yarn(0.707),
        },
        15_706_484_224,
        {**LATENT, "q_lora_rank": None, "first_k_dense_replace": 2, "n_routed_experts": 5, "n_shared_experts": 1},
        {"vocab_size": 128, "hidden_size": 96, "intermediate_size": 160, "moe_intermediate_size": 64},
    ),
    "deepseek_v3": Family(
        DeepseekV3ForCausalLM,
        DeepseekV3Config,
        {"max_position_embeddings": 163840, **latent_yarn(1.0)},
        None,
        {
            **LATENT, "q_lora_rank": 18, "first_k_dense_replace": 1, "n_routed_experts": 12, "n_group": 4, "topk_group": 2,
            "n_shared_experts": 2, "attention_bias": True, **yarn(300.0, factor=5.0, mscale_all_dim=1.2),
        },
        {"vocab_size": 128, "hidden_size": 96, "intermediate_size": 160, "moe_intermediate_size": 64},
    ),
    "llama4": Family(
        Llama4ForCausalLM,
        Llama4TextConfig,
        {"max_position_embeddings": 262144, **llama3_bands(8.0, 8192)},
        None,
        {
            **GROUPED, "num_hidden_layers": 5, "head_dim": 10, "intermediate_size_mlp": 56, "num_local_experts": 5,
            "num_experts_per_tok": 2, "interleave_moe_layer_step": 2, "no_rope_layer_interval": 3, "attention_chunk_size": 4,
            "floor_scale": 3, "attn_scale": 0.7, **llama3_bands(4.0, 8),
        },
        {"vocab_size": 128, "hidden_size": 96, "intermediate_size": 160, "intermediate_size_mlp": 160},
        reads_padding=True,
    ),
    "granite": Family(
        GraniteForCausalLM,
        GraniteConfig,
        {
            "vocab_size": 49159, "intermediate_size": 12800, "num_hidden_layers": 40, "num_key_value_heads": 8,
            "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "tie_word_embeddings": True, **rope(1e7), **GRANITE,
        },
        None,
        {
            **GROUPED, "embedding_multiplier": 5.0, "attention_multiplier": 0.3, "residual_multiplier": 0.4,
            "logits_scaling": 1.5, **rope(300),
        },
    ),
    "olmoe": Family(
        OlmoeForCausalLM,
        OlmoeConfig,
        {"intermediate_size": 1024, **rope(10000)},
        None,
        {
            **GROUPED, "intermediate_size": 20, "num_experts": 5, "num_experts_per_tok": 3, "router_aux_loss_coef": 0.02,
            **rope(300),
        },
    ),
    "smollm3": Family(
        SmolLM3ForCausalLM,
        SmolLM3Config,
        {"max_position_embeddings": 65536, **rope(5e6)},
        None,
        {**GROUPED, "num_hidden_layers": 5, "no_rope_layer_interval": 3, **rope(300)},
    ),
    "arcee": Family(
        ArceeForCausalLM,
        ArceeConfig,
        {
            "vocab_size": 128005, "num_hidden_layers": 36, "num_attention_heads": 20, "num_key_value_heads": 4,
            "max_position_embeddings": 65536, **yarn(10000.0, factor=20.0, original_max_position_embeddings=4096),
        },
        None,
        {**GROUPED, **yarn(300.0, factor=4.0)},
    ),
    "helium": Family(
        HeliumForCausalLM,
        HeliumConfig,
        {},
        None,
        {**GROUPED, "head_dim": 8, **rope(300)},
        {"vocab_size": 128, "hidden_size": 96, "head_dim": 16, "intermediate_size": 160},
    ),
    "helium ERNIE": Family(
        Ernie4_5ForCausalLM,
        Ernie4_5Config,
        {},
        360_748_032,
        {**GROUPED, "head_dim": 10, "tie_word_embeddings": False, **rope(300)},
    ),
    "seed_oss": Family(
        SeedOssForCausalLM,
        SeedOssConfig,
        {"hidden_size": 5120, **rope(1e7)},
        None,
        {**GROUPED, "head_dim": 10, **rope(300)},
    ),
    "glm4": Family(
        Glm4ForCausalLM,
        Glm4Config,
        {"max_position_embeddings": 32768, "rms_norm_eps": 1e-5, **rope(10000, partial_rotary_factor=0.5)},
        None,
        {**GROUPED, "head_dim": 12, **rope(300, partial_rotary_factor=0.5)},
    ),
    "glm4 32B": Family(
        Glm4ForCausalLM,
        Glm4Config,
        {
            "hidden_size": 6144, "intermediate_size": 23040, "num_hidden_layers": 61, "num_attention_heads": 48,
            "attention_bias": False, "max_position_embeddings": 32768, "rms_norm_eps": 1e-5,
            **rope(10000, partial_rotary_factor=0.5),
        },
        32_566_081_536,
        {**GROUPED, "head_dim": 12, "attention_bias": False, **rope(300, partial_rotary_factor=0.5)},
    ),
    "gpt3": Family(
        GPT2LMHeadModel,
        GPT2Config,
        {"n_embd": 12288, "n_layer": 96, "n_head": 96, "n_positions": 2048},
        None,
        {"n_embd": 48, "n_layer": 3, "n_head": 6, "n_positions": 16},
        {"n_embd": 96, "n_positions": 64},
    ),
    "gpt1": Family(
        OpenAIGPTLMHeadModel,
        OpenAIGPTConfig,
        {},
        None,
        {"n_embd": 48, "n_layer": 2, "n_head": 6, "n_positions": 16},
        {"n_embd": 96, "n_positions": 64},
    ),
}  # fmt: skip
"""By the recipe's name, behind which another kind of model that it describes may be named: `falcon 40B`."""
