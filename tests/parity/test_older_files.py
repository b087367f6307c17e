"""Configurations in the form of the files that were published first, with keys that transformers no longer writes."""

from __future__ import annotations

from typing import Any

import pytest

import composer

LABELS = {"id2label": {str(index): f"LABEL_{index}" for index in range(1000)}}
EMPTY: dict[str, Any] = {
    "_name_or_path": "", "add_cross_attention": False, "architectures": None, "bad_words_ids": None, "chunk_size_feed_forward": 0,
    "cross_attention_hidden_size": None, "is_decoder": False, "is_encoder_decoder": False, "max_length": 20, "pruned_heads": {},
    "sep_token_id": None, "tie_encoder_decoder": False, "tie_word_embeddings": True, "torchscript": False, "use_bfloat16": False,
}  # fmt: skip
"""What is written of a part that has nothing of its own to say."""
SEQUENCES: dict[str, Any] = {
    "add_bias_logits": False, "bos_token_id": 0, "classifier_dropout": 0.0, "d_model": 1024, "decoder_attention_heads": 16,
    "decoder_ffn_dim": 4096, "decoder_layerdrop": 0.0, "decoder_layers": 12, "dropout": 0.1, "encoder_attention_heads": 16,
    "encoder_ffn_dim": 4096, "encoder_layerdrop": 0.0, "encoder_layers": 12, "eos_token_id": 2, "gradient_checkpointing": False,
    "init_std": 0.02, "is_encoder_decoder": True, "max_position_embeddings": 1024, "normalize_embedding": True,
    "num_hidden_layers": 12, "pad_token_id": 1,
}  # fmt: skip
"""What BART and mBART share."""
PUBLISHED: dict[str, dict[str, Any]] = {
    "roberta": {
        "architectures": ["RobertaForMaskedLM"], "attention_probs_dropout_prob": 0.1, "bos_token_id": 0, "eos_token_id": 2,
        "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
        "intermediate_size": 3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "model_type": "roberta",
        "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 50265,
    },
    "distilbert": {
        "activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1, "dim": 768, "dropout": 0.1,
        "hidden_dim": 3072, "initializer_range": 0.02, "max_position_embeddings": 512, "model_type": "distilbert", "n_heads": 12,
        "n_layers": 6, "pad_token_id": 0, "qa_dropout": 0.1, "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": False,
        "tie_weights_": True, "transformers_version": "4.10.0.dev0", "vocab_size": 30522,
    },
    "modernbert": {
        "architectures": ["ModernBertForMaskedLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 50281,
        "classifier_activation": "gelu", "classifier_bias": False, "classifier_dropout": 0.0, "classifier_pooling": "mean",
        "cls_token_id": 50281, "decoder_bias": True, "deterministic_flash_attn": False, "embedding_dropout": 0.0,
        "eos_token_id": 50282, "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "gradient_checkpointing": False,
        "hidden_activation": "gelu", "hidden_size": 768, "initializer_cutoff_factor": 2.0, "initializer_range": 0.02,
        "intermediate_size": 1152, "layer_norm_eps": 1e-05, "local_attention": 128, "local_rope_theta": 10000.0,
        "max_position_embeddings": 8192, "mlp_bias": False, "mlp_dropout": 0.0, "model_type": "modernbert", "norm_bias": False,
        "norm_eps": 1e-05, "num_attention_heads": 12, "num_hidden_layers": 22, "pad_token_id": 50283,
        "position_embedding_type": "absolute", "sep_token_id": 50282, "tie_word_embeddings": True, "torch_dtype": "float32",
        "transformers_version": "4.47.0.dev0", "vocab_size": 50368,
    },
    "marian": {
        "activation_dropout": 0.0, "activation_function": "swish", "add_bias_logits": False, "add_final_layer_norm": False,
        "architectures": ["MarianMTModel"], "attention_dropout": 0.0, "bad_words_ids": [[58100]], "bos_token_id": 0,
        "classif_dropout": 0.0, "classifier_dropout": 0.0, "d_model": 512, "decoder_attention_heads": 8, "decoder_ffn_dim": 2048,
        "decoder_layerdrop": 0.0, "decoder_layers": 6, "decoder_start_token_id": 58100, "dropout": 0.1,
        "encoder_attention_heads": 8, "encoder_ffn_dim": 2048, "encoder_layerdrop": 0.0, "encoder_layers": 6, "eos_token_id": 0,
        "init_std": 0.02, "is_encoder_decoder": True, "max_length": 512, "max_position_embeddings": 512, "model_type": "marian",
        "normalize_before": False, "normalize_embedding": False, "num_beams": 6, "num_hidden_layers": 6, "pad_token_id": 58100,
        "scale_embedding": True, "static_position_embeddings": True, "vocab_size": 58101,
    },
    "bart": {
        **SEQUENCES, "activation_dropout": 0.1, "activation_function": "gelu", "add_final_layer_norm": False,
        "architectures": ["BartForConditionalGeneration"], "attention_dropout": 0.1, "classif_dropout": 0.1,
        "decoder_start_token_id": 2, "early_stopping": True, "forced_eos_token_id": 2, "model_type": "bart",
        "no_repeat_ngram_size": 3, "normalize_before": False, "num_beams": 4, "scale_embedding": False,
        "task_specific_params": {"summarization": {"length_penalty": 1.0}}, "vocab_size": 50265,
    },
    "mbart": {
        **SEQUENCES, "activation_dropout": 0.0, "activation_function": "gelu", "add_final_layer_norm": True,
        "architectures": ["MBartForConditionalGeneration"], "attention_dropout": 0.0, "classif_dropout": 0.0, "max_length": 1024,
        "model_type": "mbart", "normalize_before": True, "num_beams": 5, "output_past": True, "scale_embedding": True,
        "static_position_embeddings": False, "task_specific_params": {"translation_en_to_ro": {"decoder_start_token_id": 250020}},
        "vocab_size": 250027,
    },
    "whisper": {
        "activation_dropout": 0.0, "activation_function": "gelu", "architectures": ["WhisperForConditionalGeneration"],
        "attention_dropout": 0.0, "begin_suppress_tokens": [220, 50257], "bos_token_id": 50257, "d_model": 384,
        "decoder_attention_heads": 6, "decoder_ffn_dim": 1536, "decoder_layerdrop": 0.0, "decoder_layers": 4,
        "decoder_start_token_id": 50258, "dropout": 0.0, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536,
        "encoder_layerdrop": 0.0, "encoder_layers": 4, "eos_token_id": 50257,
        "forced_decoder_ids": [[1, 50259], [2, 50359], [3, 50363]], "init_std": 0.02, "is_encoder_decoder": True,
        "max_length": 448, "max_source_positions": 1500, "max_target_positions": 448, "model_type": "whisper",
        "num_hidden_layers": 4, "num_mel_bins": 80, "pad_token_id": 50257, "scale_embedding": False,
        "suppress_tokens": [1, 2, 7], "torch_dtype": "float32", "use_cache": True, "vocab_size": 51865,
    },
    "swin": {
        "architectures": ["SwinForImageClassification"], "attention_probs_dropout_prob": 0.0, "depths": [2, 2, 6, 2],
        "drop_path_rate": 0.1, "embed_dim": 96, "encoder_stride": 32, "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
        "hidden_size": 768, **LABELS, "image_size": 224, "initializer_range": 0.02, "layer_norm_eps": 1e-05, "mlp_ratio": 4.0,
        "model_type": "swin", "num_channels": 3, "num_heads": [3, 6, 12, 24], "num_layers": 4, "path_norm": True,
        "patch_size": 4, "qkv_bias": True, "torch_dtype": "float32", "use_absolute_embeddings": False, "window_size": 7,
    },
    "convnext": {
        "architectures": ["ConvNextForImageClassification"], "depths": [3, 3, 9, 3], "drop_path_rate": 0.0, "hidden_act": "gelu",
        "hidden_sizes": [96, 192, 384, 768], **LABELS, "image_size": 224, "initializer_range": 0.02, "layer_norm_eps": 1e-12,
        "layer_scale_init_value": 1e-06, "model_type": "convnext", "num_channels": 3, "num_stages": 4, "patch_size": 4,
        "torch_dtype": "float32",
    },
    "resnet": {
        "architectures": ["ResNetForImageClassification"], "depths": [3, 4, 6, 3], "downsample_in_first_stage": False,
        "embedding_size": 64, "hidden_act": "relu", "hidden_sizes": [256, 512, 1024, 2048], **LABELS, "layer_type": "bottleneck",
        "model_type": "resnet", "num_channels": 3, "torch_dtype": "float32",
    },
    "deit": {
        "architectures": ["DeiTForImageClassificationWithTeacher"], "attention_probs_dropout_prob": 0.0, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0, "hidden_size": 768, **LABELS, "image_size": 224, "initializer_range": 0.02,
        "intermediate_size": 3072, "layer_norm_eps": 1e-12, "model_type": "deit", "num_attention_heads": 12, "num_channels": 3,
        "num_hidden_layers": 12, "patch_size": 16,
    },
    "clip": {
        "architectures": ["CLIPModel"], "initializer_factor": 1.0, "logit_scale_init_value": 2.6592, "model_type": "clip",
        "projection_dim": 512, "text_config_dict": None, "torch_dtype": "float32", "vision_config_dict": None,
        "text_config": {
            **EMPTY, "attention_dropout": 0.0, "bos_token_id": 0, "dropout": 0.0, "eos_token_id": 2,
            "hidden_act": "quick_gelu", "hidden_size": 512, "initializer_factor": 1.0, "initializer_range": 0.02,
            "intermediate_size": 2048, "layer_norm_eps": 1e-05, "max_position_embeddings": 77,
            "model_type": "clip_text_model", "num_attention_heads": 8, "num_hidden_layers": 12, "pad_token_id": 1,
            "projection_dim": 512, "vocab_size": 49408,
        },
        "vision_config": {
            **EMPTY, "attention_dropout": 0.0, "dropout": 0.0, "hidden_act": "quick_gelu", "hidden_size": 768, "image_size": 224,
            "initializer_factor": 1.0, "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-05,
            "model_type": "clip_vision_model", "num_attention_heads": 12, "num_hidden_layers": 12, "patch_size": 32,
            "projection_dim": 512,
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_older_files_are_read_too(name: str) -> None:
    """They set what the recipe has by default."""
    recipe = composer.load(name)
    assert recipe.with_config(PUBLISHED[name]).program.untyped.params == recipe.program.untyped.params
