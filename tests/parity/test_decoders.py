"""The decoders of the zoo against transformers' models, whose configurations and weights they take, at tiny sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion

import composer
from composer.decode import session
from composer.diagnostics import RecipeError
from composer.published import export_folder
from composer.weights import load_published
from tests.parity.decoders import FAMILIES, yarn
from tests.parity.reference import loaded, perturbed, published, weight_map
from tests.parity.test_initial import assert_same_spread
from tests.parity.test_transformers import close, real, text
from tests.parity.tiers import recipe_of, thorough

each_family = pytest.mark.parametrize("name", FAMILIES)


def pair(name: str) -> tuple[composer.Model, PreTrainedModel]:
    """Return the recipe's model, as transformers' configuration sets it, and transformers', with the same weights."""
    torch.manual_seed(0)
    reference = perturbed(FAMILIES[name].small())
    return loaded(recipe_of(name), reference), reference


@torch.no_grad()
@each_family
@pytest.mark.parametrize("padding", [[0, 3, 6], [0, -3, -6]], ids=["right", "left"])
def test_logits_are_those_of_transformers(name: str, padding: list[int]) -> None:
    """At the real tokens of padded rows, and of rows without padding."""
    model, reference = pair(name)
    tokens, valid = text(), real(padding)
    close(model(tokens, valid=valid).logits[valid], FAMILIES[name].real_logits(reference, tokens, valid))
    close(model(tokens).logits, reference(tokens).logits)


@torch.no_grad()
@each_family
def test_steps_with_a_cache_are_those_of_transformers(name: str) -> None:
    """Padded on the left, as prompts of unequal length are, a few tokens and then one at a time."""
    model, reference = pair(name)
    tokens, valid = text(), real([0, -2, -4])
    theirs = FAMILIES[name].real_logits(reference, tokens, valid)
    with session(model):
        parts = zip(tokens.split([5, 1, 1, 4], dim=1), valid.split([5, 1, 1, 4], dim=1), strict=True)
        ours = torch.cat([model(some, valid=seen).logits for some, seen in parts], dim=1)
    close(ours[valid], theirs)
    with session(model):
        ours = torch.cat([model(some).logits for some in tokens.split([5, 1, 1, 4], dim=1)], dim=1)
    close(ours, reference(tokens).logits)


@torch.no_grad()
def test_an_average_of_fewer_channels_is_that_of_transformers() -> None:
    """Of RWKV, which transformers computes without a cache only."""
    reference = perturbed(FAMILIES["rwkv"].small(attention_hidden_size=40))
    close(loaded("rwkv", reference)(text()).logits, reference(text()).logits)


@thorough(FAMILIES)
def test_gradients_are_those_of_transformers(name: str) -> None:
    """Of every parameter, by its published name."""
    model, reference = pair(name)
    tokens = text()
    direction = torch.randn(*tokens.shape, FAMILIES[name].small().config.vocab_size, generator=torch.Generator().manual_seed(3))
    for logits in (model(tokens).logits, reference(tokens).logits):
        (logits * direction).sum().backward()
    made = weight_map(model, reference, dict(model.named_parameters()))
    ours = made.save(dict(gradients(model)))
    theirs = revert_weight_conversion(reference, gradients(reference))
    found = made.found(published(reference))
    largest = max(each.abs().max().item() for each in theirs.values())
    assert {found[key] for key in ours} == theirs.keys()
    for key, gradient in ours.items():
        torch.testing.assert_close(
            gradient, theirs[found[key]], rtol=1e-4, atol=1e-5 * largest, msg=lambda m, key=key: f"{key}: {m}"
        )


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return those of all parameters."""
    return {name: each.grad for name, each in model.named_parameters() if each.grad is not None}


@each_family
def test_weights_come_back_bit_for_bit(name: str) -> None:
    """Saved again, what was loaded is the `state_dict` of transformers, but for names that repeat another."""
    model, reference = pair(name)
    made, theirs = weight_map(model, reference, model.state_dict()), published(reference)
    saved, found = made.save(model.state_dict()), made.found(theirs)
    assert found.keys() - saved.keys() <= {copy.name for copy in made.rules.copies} and saved.keys() <= found.keys()
    assert all(torch.equal(saved[key], theirs[found[key]]) for key in saved)


@torch.no_grad()
@thorough(FAMILIES)
def test_a_folder_that_transformers_wrote_is_the_model(name: str, tmp_path: Path) -> None:
    """In one call, from its `config.json` and its weights."""
    reference = perturbed(FAMILIES[name].small())
    reference.save_pretrained(tmp_path)
    model = composer.load(tmp_path).pretrained()
    close(model(text()).logits, reference(text()).logits)


@torch.no_grad()
def test_layers_that_predict_further_tokens_are_passed_over() -> None:
    """Behind those of DeepSeek-V3 itself, its checkpoint has one more, with weights of its own kinds."""
    model, reference = pair("deepseek_v3")
    theirs = published(reference)
    further = {key.replace("layers.2.", "layers.3."): value + 1 for key, value in theirs.items() if "layers.2." in key}
    assert further
    load_published(model, {**theirs, **further, "model.layers.3.eh_proj.weight": torch.ones(48, 96)}, "deepseek_v3")
    close(model(text()).logits, reference(text()).logits)


@thorough(FAMILIES)
def test_initial_weights_spread_as_in_transformers(name: str) -> None:
    """Of a model wide enough to tell."""
    torch.manual_seed(0)
    reference = FAMILIES[name].small(**FAMILIES[name].wide)
    model = composer.load(recipe_of(name)).with_config(reference.config.to_dict()).compile(seed=0)
    assert_same_spread(model, reference)


OLDER: dict[str, dict[str, Any]] = {
    "gpt_neox": {
        "architectures": ["GPTNeoXForCausalLM"], "attention_probs_dropout_prob": 0.1, "bos_token_id": 0, "eos_token_id": 0,
        "hidden_act": "gelu_fast", "hidden_dropout_prob": 0.1, "hidden_size": 6144, "initializer_range": 0.02,
        "intermediate_size": 24576, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "gpt_neox",
        "num_attention_heads": 64, "num_hidden_layers": 44, "rotary_emb_base": 10000, "rotary_pct": 0.25,
        "tie_word_embeddings": False, "torch_dtype": "float16", "use_cache": True, "vocab_size": 50432,
    },
    "gptj": {
        "activation_function": "gelu_new", "architectures": ["GPTJForCausalLM"], "attn_pdrop": 0.0, "bos_token_id": 50256,
        "embd_pdrop": 0.0, "eos_token_id": 50256, "gradient_checkpointing": False, "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05, "model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_inner": None, "n_layer": 28,
        "n_positions": 2048, "resid_pdrop": 0.0, "rotary": True, "rotary_dim": 64, "scale_attn_weights": True,
        "summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
        "summary_use_proj": True, "task_specific_params": {"text-generation": {"do_sample": True}}, "vocab_size": 50400,
        "tie_word_embeddings": False, "tokenizer_class": "GPT2Tokenizer",
    },
    "bloom": {
        "apply_residual_connection_post_layernorm": False, "architectures": ["BloomForCausalLM"], "attention_dropout": 0.0,
        "attention_softmax_in_fp32": True, "bias_dropout_fusion": True, "hidden_dropout": 0.0, "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": True, "model_type": "bloom", "n_embed": 14336, "n_inner": None,
        "n_layer": 70, "num_attention_heads": 112, "offset_alibi": 100, "pretraining_tp": 4, "seq_length": 2048,
        "skip_bias_add": True, "skip_bias_add_qkv": False, "slow_but_exact": False, "unk_token_id": 0, "use_cache": False,
        "vocab_size": 250880,
    },
    "falcon": {
        "alibi": False, "apply_residual_connection_post_layernorm": False, "architectures": ["FalconForCausalLM"],
        "attention_dropout": 0.0, "auto_map": {
            "AutoConfig": "configuration_falcon.FalconConfig", "AutoModel": "modeling_falcon.FalconModel",
            "AutoModelForCausalLM": "modeling_falcon.FalconForCausalLM",
        },
        "bias": False, "bos_token_id": 11, "eos_token_id": 11, "hidden_dropout": 0.0, "hidden_size": 4544,
        "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "falcon", "multi_query": True,
        "new_decoder_architecture": False, "num_attention_heads": 71, "num_hidden_layers": 32, "parallel_attn": True,
        "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 65024,
    },
    "gpt_neo": {
        "activation_function": "gelu_new", "architectures": ["GPTNeoForCausalLM"], "attention_dropout": 0,
        "attention_layers": ["global", "local"] * 16, "attention_types": [[["global", "local"], 16]], "bos_token_id": 50256,
        "embed_dropout": 0, "eos_token_id": 50256, "gradient_checkpointing": False, "hidden_size": 2560,
        "initializer_range": 0.02, "intermediate_size": None, "layer_norm_epsilon": 1e-05, "max_position_embeddings": 2048,
        "model_type": "gpt_neo", "num_heads": 20, "num_layers": 32, "resid_dropout": 0, "summary_activation": None,
        "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index", "summary_use_proj": True,
        "vocab_size": 50257, "window_size": 256,
    },
    "mpt": {
        "architectures": ["MPTForCausalLM"], "attn_config": {
            "alibi": True, "alibi_bias_max": 8, "attn_impl": "torch", "attn_pdrop": 0, "attn_type": "multihead_attention",
            "attn_uses_sequence_id": False, "clip_qkv": None, "prefix_lm": False, "qk_ln": False, "softmax_scale": None,
        },
        "auto_map": {"AutoConfig": "configuration_mpt.MPTConfig", "AutoModelForCausalLM": "modeling_mpt.MPTForCausalLM"},
        "d_model": 4096, "emb_pdrop": 0, "embedding_fraction": 1.0, "expansion_ratio": 4,
        "init_config": {"emb_init_std": None, "name": "kaiming_normal_", "verbose": 0}, "init_device": "cpu",
        "learned_pos_emb": True, "logit_scale": None, "max_seq_len": 2048, "model_type": "mpt", "n_heads": 32, "n_layers": 32,
        "no_bias": True, "norm_type": "low_precision_layernorm", "resid_pdrop": 0, "tokenizer_name": "EleutherAI/gpt-neox-20b",
        "use_cache": False, "verbose": 0, "vocab_size": 50432,
    },
    "gpt1": {
        "afn": "gelu", "architectures": ["OpenAIGPTLMHeadModel"], "attn_pdrop": 0.1, "embd_pdrop": 0.1, "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05, "model_type": "openai-gpt", "n_ctx": 512, "n_embd": 768, "n_head": 12, "n_layer": 12,
        "n_positions": 512, "n_special": 0, "predict_special_tokens": True, "resid_pdrop": 0.1, "summary_activation": None,
        "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index", "summary_use_proj": True,
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, "vocab_size": 40478,
    },
    "gpt_oss": {
        "architectures": ["GptOssForCausalLM"], "attention_bias": True, "attention_dropout": 0.0, "eos_token_id": 200002,
        "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880, "initial_context_length": 4096,
        "initializer_range": 0.02, "intermediate_size": 2880, "layer_types": ["sliding_attention", "full_attention"] * 12,
        "max_position_embeddings": 131072, "model_type": "gpt_oss", "num_attention_heads": 64, "num_experts_per_tok": 4,
        "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32, "output_router_logits": False,
        "pad_token_id": 199999, "rms_norm_eps": 1e-05, "rope_scaling": {
            "beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096, "rope_type": "yarn",
            "truncate": False,
        },
        "rope_theta": 150000, "router_aux_loss_coef": 0.9, "sliding_window": 128, "swiglu_limit": 7.0,
        "tie_word_embeddings": False, "use_cache": True, "vocab_size": 201088,
    },
    "deepseek_v2": {
        "architectures": ["DeepseekV2ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "auto_map": {
            "AutoConfig": "configuration_deepseek.DeepseekV2Config", "AutoModel": "modeling_deepseek.DeepseekV2Model",
            "AutoModelForCausalLM": "modeling_deepseek.DeepseekV2ForCausalLM",
        },
        "aux_loss_alpha": 0.001, "bos_token_id": 100000, "eos_token_id": 100001, "ep_size": 1, "first_k_dense_replace": 1,
        "hidden_act": "silu", "hidden_size": 5120, "initializer_range": 0.02, "intermediate_size": 12288, "kv_lora_rank": 512,
        "max_position_embeddings": 163840, "model_type": "deepseek_v2", "moe_intermediate_size": 1536, "moe_layer_freq": 1,
        "n_group": 8, "n_routed_experts": 160, "n_shared_experts": 2, "norm_topk_prob": False, "num_attention_heads": 128,
        "num_experts_per_tok": 6, "num_hidden_layers": 60, "num_key_value_heads": 128, "pretraining_tp": 1,
        "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_scaling": {
            "beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707,
            "original_max_position_embeddings": 4096, "type": "yarn",
        },
        "rope_theta": 10000, "routed_scaling_factor": 16.0, "scoring_func": "softmax", "seq_aux": True,
        "tie_word_embeddings": False, "topk_group": 3, "topk_method": "group_limited_greedy", "torch_dtype": "bfloat16",
        "transformers_version": "4.39.3", "use_cache": True, "v_head_dim": 128, "vocab_size": 102400,
    },
    "deepseek_v3": {
        "architectures": ["DeepseekV3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "auto_map": {
            "AutoConfig": "configuration_deepseek.DeepseekV3Config", "AutoModel": "modeling_deepseek.DeepseekV3Model",
            "AutoModelForCausalLM": "modeling_deepseek.DeepseekV3ForCausalLM",
        },
        "bos_token_id": 0, "eos_token_id": 1, "ep_size": 1, "first_k_dense_replace": 3, "hidden_act": "silu",
        "hidden_size": 7168, "initializer_range": 0.02, "intermediate_size": 18432, "kv_lora_rank": 512,
        "max_position_embeddings": 163840, "model_type": "deepseek_v3", "moe_intermediate_size": 2048, "moe_layer_freq": 1,
        "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": True, "num_attention_heads": 128,
        "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
        "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_scaling": {
            "beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 4096, "type": "yarn",
        },
        "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "tie_word_embeddings": False,
        "topk_group": 4, "topk_method": "noaux_tc", "torch_dtype": "bfloat16", "transformers_version": "4.33.1",
        "use_cache": True, "v_head_dim": 128, "vocab_size": 129280,
    },
    "qwen3_next": {
        "architectures": ["Qwen3NextForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 151643,
        "decoder_sparse_step": 1, "eos_token_id": 151645, "full_attention_interval": 4, "head_dim": 256, "hidden_act": "silu",
        "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 5120, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
        "max_position_embeddings": 262144, "mlp_only_layers": [], "model_type": "qwen3_next", "moe_intermediate_size": 512,
        "norm_topk_prob": True, "num_attention_heads": 16, "num_experts": 512, "num_experts_per_tok": 10,
        "num_hidden_layers": 48, "num_key_value_heads": 2, "output_router_logits": False, "partial_rotary_factor": 0.25,
        "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 10000000, "router_aux_loss_coef": 0.001,
        "shared_expert_intermediate_size": 512, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "transformers_version": "4.57.0.dev0", "use_cache": True, "use_sliding_window": False, "vocab_size": 151936,
    },
    "jamba": {
        "architectures": ["JambaForCausalLM"], "attention_dropout": 0.0, "attn_layer_offset": 4, "attn_layer_period": 8,
        "auto_map": {
            "AutoConfig": "configuration_jamba.JambaConfig", "AutoModel": "modeling_jamba.JambaModel",
            "AutoModelForCausalLM": "modeling_jamba.JambaForCausalLM",
            "AutoModelForSequenceClassification": "model.JambaForSequenceClassification",
        },
        "bos_token_id": 1, "calc_logits_for_entire_prompt": False, "eos_token_id": 2, "expert_layer_offset": 1,
        "expert_layer_period": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
        "intermediate_size": 14336, "mamba_conv_bias": True, "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_dt_rank": 256,
        "mamba_expand": 2, "mamba_inner_layernorms": True, "mamba_proj_bias": False, "max_position_embeddings": 262144,
        "model_type": "jamba", "num_attention_heads": 32, "num_experts": 16, "num_experts_per_tok": 2, "num_hidden_layers": 32,
        "num_key_value_heads": 8, "output_router_logits": False, "pad_token_id": 0, "rms_norm_eps": 1e-06,
        "router_aux_loss_coef": 0.001, "sliding_window": None, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "transformers_version": "4.40.0.dev0", "use_cache": True, "use_mamba_kernels": True, "vocab_size": 65536,
    },
    "recurrent_gemma": {
        "architectures": ["RecurrentGemmaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "attention_window_size": 2048, "block_types": ["recurrent", "recurrent", "attention"], "bos_token_id": 2,
        "conv1d_width": 4, "embeddings_scale_by_sqrt_dim": True, "eos_token_id": 1,
        "final_w_init_variance_scale": 0.07692307692307693, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 2560, "intermediate_size": 15360, "logits_soft_cap": 30.0, "lru_width": 2560,
        "model_type": "recurrent_gemma", "num_attention_heads": 10, "num_hidden_layers": 26, "num_key_value_heads": 1,
        "pad_token_id": 0, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
        "tie_word_embeddings": True, "torch_dtype": "float32", "use_cache": True, "vocab_size": 256000,
        "w_init_variance_scale": 0.01,
    },
    "rwkv": {
        "architectures": ["RwkvForCausalLM"], "attention_hidden_size": 768, "bos_token_id": 0, "context_length": 1024,
        "eos_token_id": 0, "hidden_size": 768, "intermediate_size": 3072, "layer_norm_epsilon": 1e-05, "model_type": "rwkv",
        "num_hidden_layers": 12, "rescale_every": 6, "tie_word_embeddings": False, "use_cache": True, "vocab_size": 50277,
    },
    "granite": {
        "architectures": ["GraniteForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "attention_multiplier": 0.0078125, "bos_token_id": 0, "embedding_multiplier": 12.0, "eos_token_id": 0,
        "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 12800,
        "logits_scaling": 16.0, "max_position_embeddings": 131072, "mlp_bias": False, "model_type": "granite",
        "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8, "pad_token_id": 0,
        "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000000.0,
        "tie_word_embeddings": True, "torch_dtype": "bfloat16", "transformers_version": "4.49.0", "use_cache": True,
        "vocab_size": 49159,
    },
    "smollm3": {
        "architectures": ["SmolLM3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": None,
        "eos_token_id": 128012, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
        "intermediate_size": 11008, "layer_types": ["full_attention"] * 36, "max_position_embeddings": 65536,
        "max_window_layers": 28, "mlp_bias": False, "model_type": "smollm3", "no_rope_layer_interval": 4,
        "no_rope_layers": [1, 1, 1, 0] * 9, "num_attention_heads": 16, "num_hidden_layers": 36, "num_key_value_heads": 4,
        "pad_token_id": 128004, "pretraining_tp": 2, "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 5000000.0,
        "sliding_window": None, "torch_dtype": "bfloat16", "transformers_version": "4.54.0.dev0", "use_cache": False,
        "use_sliding_window": False, "vocab_size": 128256,
    },
    "olmo3": {
        "architectures": ["Olmo3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "eos_token_id": 100257,
        "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 11008,
        "layer_types": [*["sliding_attention"] * 3, "full_attention"] * 8, "max_position_embeddings": 65536,
        "model_type": "olmo3", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
        "pad_token_id": 100277, "rms_norm_eps": 1e-06, "rope_scaling": {
            "attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0, "factor": 8.0,
            "original_max_position_embeddings": 8192, "rope_type": "yarn",
        },
        "rope_theta": 500000, "sliding_window": 4096, "tie_word_embeddings": False, "transformers_version": "4.57.0",
        "use_cache": False, "vocab_size": 100278,
    },
    "helium": {
        "architectures": ["HeliumForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 1,
        "eos_token_id": 2, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2560, "initializer_range": 0.02,
        "intermediate_size": 7040, "max_position_embeddings": 4096, "mlp_bias": False, "model_type": "helium",
        "num_attention_heads": 20, "num_hidden_layers": 24, "num_key_value_heads": 20, "pretraining_tp": 1,
        "rms_norm_eps": 1e-08, "rope_theta": 100000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "transformers_version": "4.45.0.dev0", "use_cache": True, "vocab_size": 48000,
    },
    "phi3": {
        "architectures": ["Phi3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "auto_map": {
            "AutoConfig": "configuration_phi3.Phi3Config", "AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM",
        },
        "bos_token_id": 1, "embd_pdrop": 0.0, "eos_token_id": 32000, "hidden_act": "silu", "hidden_size": 3072,
        "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 4096, "model_type": "phi3",
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "original_max_position_embeddings": 4096,
        "pad_token_id": 32000, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000.0,
        "sliding_window": 2047, "tie_word_embeddings": False, "vocab_size": 32064,
    },
}  # fmt: skip
"""In the form of the files that were published first, with keys that transformers no longer writes."""


@pytest.mark.parametrize("name", OLDER)
def test_older_files_are_read_too(name: str) -> None:
    """They set what the recipe has by default."""
    recipe = composer.load(name)
    read = recipe.with_config(OLDER[name])
    assert read.program.untyped.params == recipe.program.untyped.params
    assert recipe.diff(read).equal


@pytest.mark.parametrize(
    ("name", "change", "key"),
    [
        ("mistral", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, "rope_type"),
        ("qwen2", {"use_sliding_window": True}, "use_sliding_window"),
        ("qwen3", {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types"),
        ("olmo2", {"attention_bias": True}, "attention_bias"),
        ("mistral", {"rope_parameters": {"rope_type": "axial", "rope_theta": 1e4}}, "rope_type"),
        ("mistral", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "beta_fast": 4.0}}, "beta_fast"),
        (
            "llama2",
            {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 8}},
            "original_max_position_embeddings",
        ),
        ("qwen2", {"rope_parameters": {"rope_type": "longrope", "short_factor": "2", "factor": 2.0}}, "short_factor"),
        ("qwen3", {"rope_parameters": {"rope_type": "yarn", "factor": 2.0, "mrope_section": [2, 2]}}, "mrope_section"),
        ("phi3", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0}}, "rope_type"),
        ("phi3", {"auto_map": {"AutoModelForCausalLM": "modeling_mine.Phi3ForCausalLM"}}, "AutoModelForCausalLM"),
        ("gpt_neox", {"attention_bias": False}, "attention_bias"),
        ("gpt_neox", {"hidden_act": "silu"}, "hidden_act"),
        ("gptj", {"embd_pdrop": 0.1}, "resid_pdrop"),
        ("phi2", {"qk_layernorm": True}, "qk_layernorm"),
        ("opt", {"enable_bias": False}, "enable_bias"),
        ("opt", {"_remove_final_layer_norm": True}, "_remove_final_layer_norm"),
        ("bloom", {"apply_residual_connection_post_layernorm": True}, "apply_residual_connection_post_layernorm"),
        ("falcon", {"alibi": True}, "alibi"),
        ("falcon", {"parallel_attn": False}, "parallel_attn"),
        ("falcon", {"multi_query": False}, "multi_query"),
        ("falcon 40B", {"num_ln_in_parallel_attn": 1}, "num_ln_in_parallel_attn"),
        ("gpt_neo", {"attention_layers": ["local", "global", "global"]}, "attention_layers"),
        ("gpt_neo", {"num_layers": 4}, "num_layers"),
        ("mpt", {"n_heads": 6}, "n_heads"),
        ("gemma", {"hidden_act": "silu"}, "hidden_act"),
        ("gemma2", {"layer_types": ["full_attention"] * 3}, "layer_types"),
        ("qwen3_moe", {"mlp_only_layers": [0]}, "mlp_only_layers"),
        ("qwen3_moe", {"decoder_sparse_step": 2}, "decoder_sparse_step"),
        ("qwen3_next", {"layer_types": ["linear_attention"] * 5}, "layer_types"),
        ("qwen3_next", {"mlp_only_layers": [0]}, "mlp_only_layers"),
        ("qwen3_next", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0}}, "rope_type"),
        ("jamba", {"mamba_inner_layernorms": False}, "mamba_inner_layernorms"),
        ("jamba", {"hidden_act": "gelu"}, "hidden_act"),
        ("recurrent_gemma", {"hidden_activation": "silu"}, "hidden_activation"),
        ("recurrent_gemma", {"embeddings_scale_by_sqrt_dim": False}, "embeddings_scale_by_sqrt_dim"),
        ("recurrent_gemma", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}}, "rope_type"),
        ("gpt_oss", {"layer_types": ["full_attention"] * 3}, "layer_types"),
        ("gpt_oss", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "factor": 1.0}}, "rope_type"),
        ("gpt_oss", {"attention_bias": False}, "attention_bias"),
        ("gpt_oss", {"quantization_config": {"quant_method": "mxfp4"}}, "quant_method"),
        ("deepseek_v2", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}}, "rope_type"),
        ("deepseek_v2", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "factor": 2.0}}, "rope_type"),
        ("deepseek_v3", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "mscale_all_dim": 1.0}}, "rope_type"),
        ("deepseek_v2", {"norm_topk_prob": True}, "norm_topk_prob"),
        ("deepseek_v2", {"topk_method": "noaux_tc"}, "topk_method"),
        ("deepseek_v2", {"moe_layer_freq": 2}, "moe_layer_freq"),
        ("deepseek_v2", {"num_key_value_heads": 2}, "num_key_value_heads"),
        ("deepseek_v2", {"mlp_bias": True}, "mlp_bias"),
        ("deepseek_v3", {"scoring_func": "softmax"}, "scoring_func"),
        ("olmoe", {"clip_qkv": 8.0}, "clip_qkv"),
        ("olmoe", {"attention_bias": True}, "attention_bias"),
        ("smollm3", {"no_rope_layers": [1, 0, 1, 1, 0]}, "no_rope_layers"),
        ("smollm3", {"use_sliding_window": True}, "use_sliding_window"),
        ("olmo3", {"layer_types": ["full_attention"] * 5}, "layer_types"),
        ("olmo3", {"rope_parameters": yarn(300.0, factor=4.0)["rope_parameters"]}, "rope_type"),
        ("olmo3", {"rope_parameters": {"sliding_attention": {"rope_type": "yarn", "factor": 4.0}}}, "rope_type"),
        ("arcee", {"hidden_act": "silu"}, "hidden_act"),
        ("arcee", {"mlp_bias": True}, "mlp_bias"),
        ("helium", {"attention_bias": True}, "attention_bias"),
        ("helium ERNIE", {"use_bias": True}, "use_bias"),
        ("seed_oss", {"attention_bias": False}, "attention_bias"),
        ("seed_oss", {"attention_out_bias": True}, "attention_out_bias"),
        ("glm4", {"hidden_act": "gelu"}, "hidden_act"),
        ("granite", {"attention_bias": True}, "attention_bias"),
        ("granite", {"mlp_bias": True}, "mlp_bias"),
        ("gpt1", {"afn": "tanh"}, "afn"),
        ("mpt", {"attn_config": {"clip_qkv": 8}}, "clip_qkv"),
        ("mpt", {"attn_config": {"alibi": False}}, "alibi"),
    ],
)
def test_what_a_recipe_does_not_do_is_refused_by_its_key(name: str, change: dict[str, Any], key: str) -> None:
    """What transformers does by another value of a key is never passed over."""
    with pytest.raises(RecipeError) as error:
        composer.load(recipe_of(name)).with_config({**FAMILIES[name].small().config.to_dict(), **change})
    spans = [wrong.span for wrong in error.value.diagnostics]
    assert f'"{key}"' in [span.source.lines[span.line - 1][span.column - 1 : span.end_column - 1] for span in spans]


NOT_OUT = {"gpt_neo": "attention_layers"}
"""Families whose config.json has a key that is not computed back, each with what is named."""


WRITTEN = {*NOT_OUT, "falcon", "llama2", "gpt_neox RedPajama", "mpt", "gpt_oss", "deepseek_v2", "gemma2"}
"""Families whose maps have every kind of rule, and whose configurations every kind of key."""


@torch.no_grad()
@thorough(FAMILIES, WRITTEN)
def test_a_decoder_goes_out_as_a_folder(name: str, tmp_path: Path) -> None:
    """Which plain classes of transformers load."""
    model, reference = pair(name)
    if name in NOT_OUT:
        with pytest.raises(RecipeError, match=NOT_OUT[name]):
            export_folder(model, tmp_path / "out")
        assert not (tmp_path / "out").exists()
        return
    several = len([*(model.recipe.checkpoints or ())]) > 1
    export_folder(model, tmp_path / "out", reference.config.model_type if several else None)
    back = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    assert type(back) is type(reference)
    close(model(text()).logits, back(text()).logits)
