"""Tiny published folders with a tokenizer, as transformers writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tokenizers
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

TEXT = "the cat sat on the mat and the dog lay by the door while rain fell on the roof\n" * 20
CHAT = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' }}{{ message['content'] | trim }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def tokenizer(*special: str, **roles: str) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE of a few dozen tokens with special tokens, wrapped as transformers has it."""
    pieces = tokenizers.Tokenizer(tokenizers.models.BPE())
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[*special],
        show_progress=False,
    )
    pieces.train_from_iterator([TEXT], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=pieces, **roles)


def save(model: PreTrainedModel, made: PreTrainedTokenizerFast, folder: Path, **generation: Any) -> None:
    """Write a published folder, its parameters moved so that texts differ."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    model.eval()
    for key, value in generation.items():
        setattr(model.generation_config, key, value)
    model.save_pretrained(folder)
    made.save_pretrained(folder)
