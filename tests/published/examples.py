"""The published folders that examples of the command line name, tiny and without transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tokenizers
from safetensors.torch import load_file, save_file

import composer
from composer.weights import save_published

LLAMA: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 300, "max_position_embeddings": 64, "hidden_size": 16, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 16, "rms_norm_eps": 1e-5, "rope_theta": 500000,
}  # fmt: skip
BERT: dict[str, Any] = {
    "model_type": "bert", "vocab_size": 300, "max_position_embeddings": 64, "type_vocab_size": 2, "hidden_size": 16,
    "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1, "layer_norm_eps": 1e-12,
}  # fmt: skip
ALBERT: dict[str, Any] = {**BERT, "model_type": "albert", "embedding_size": 8}
CONFIGS = {
    "Llama-3.2-1B": ("llama3", LLAMA), "SmolLM2-135M-Instruct": ("llama3", LLAMA), "bert-base-uncased": ("bert", BERT),
    "all-MiniLM-L6-v2": ("bert", BERT), "albert-chem": ("albert", ALBERT),
}  # fmt: skip
CHAT = "{% for message in messages %}<|user|>{{ message['content'] }}{% endfor %}<|assistant|>"


def write_example(name: str, folder: Path) -> None:
    """Write the folder of a name: configuration, weights, and a tokenizer of bytes."""
    recipe, config = CONFIGS[name]
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    save_published(composer.load(recipe).with_config(config).compile(seed=0), folder)
    if name.startswith("all-"):  # a body
        tensors = {key: tensor for key, tensor in load_file(folder / "model.safetensors").items() if not key.startswith("cls.")}
        save_file(tensors, folder / "model.safetensors")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    special = ["[MASK]", "<|user|>", "<|assistant|>"]
    pieces = tokenizers.Tokenizer(tokenizers.models.BPE({word: index for index, word in enumerate((*special, *alphabet))}, []))
    pieces.add_special_tokens(special)
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = tokenizers.decoders.ByteLevel()
    pieces.save(str(folder / "tokenizer.json"))
    settings = {"mask_token": "[MASK]", **({"chat_template": CHAT} if "Instruct" in name else {})}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
