"""The models that are measured: GPT-2 with 124 M parameters, and the shape of Llama 3.2 1B with 32,000 words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a model, and of its batches in training."""

    recipe: str
    vocab: int
    dim: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    rows: int
    length: int

    @property
    def overrides(self) -> Mapping[str, Any]:
        """The params of the recipe; nothing is dropped."""
        own = {"vocab": self.vocab, "d_model": self.dim, "n_layers": self.layers, "n_heads": self.heads, "context": self.length}
        if self.recipe == "gpt2":
            return {**own, "dropout": 0}
        return {**own, "n_kv_heads": self.kv_heads, "hidden": self.hidden, "tied": True}

    def theirs(self) -> Any:
        """Return the model of transformers with these sizes."""
        common: dict[str, Any] = {"attn_implementation": "sdpa", "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
        if self.recipe == "gpt2":
            config: Any = GPT2Config(
                vocab_size=self.vocab, n_embd=self.dim, n_layer=self.layers, n_head=self.heads, n_positions=self.length,
                resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **common,
            )  # fmt: skip
            return GPT2LMHeadModel(config)
        config = LlamaConfig(
            vocab_size=self.vocab, hidden_size=self.dim, intermediate_size=self.hidden, num_hidden_layers=self.layers,
            num_attention_heads=self.heads, num_key_value_heads=self.kv_heads, max_position_embeddings=self.length,
            tie_word_embeddings=True, rms_norm_eps=1e-5, **common,
        )  # fmt: skip
        return LlamaForCausalLM(config)


def sizes_of(model: str, *, toy: bool) -> Sizes:
    """Return the sizes of `gpt2` or `llama`."""
    if model == "gpt2":
        if toy:
            return Sizes(recipe="gpt2", vocab=211, dim=32, layers=2, heads=4, kv_heads=4, hidden=128, rows=2, length=32)
        return Sizes(recipe="gpt2", vocab=50_257, dim=768, layers=12, heads=12, kv_heads=12, hidden=3072, rows=16, length=1024)
    if toy:
        return Sizes(recipe="llama3", vocab=211, dim=32, layers=2, heads=4, kv_heads=2, hidden=96, rows=2, length=32)
    return Sizes(recipe="llama3", vocab=32_000, dim=2048, layers=16, heads=32, kv_heads=8, hidden=8192, rows=4, length=2048)
