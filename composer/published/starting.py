"""Training that starts from a published model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from composer.atomic_files import StrPath
from composer.own_blocks import Blocks

if TYPE_CHECKING:
    from torch import nn

    from composer.train.data.tokenizers import PiecesTokenizer
    from composer.train.starts import Start


def start_from_published(model: nn.Module, folder: StrPath, *, blocks: Blocks = ()) -> Start:
    """Load what fits of the weights of a published model into a model, by name and shape, and say what does not.

    Args:
        model: A model, such as one of a recipe that extends the one of the folder.
        folder: The published folder, or a GGUF file.
        blocks: Block classes of your own, or Python files that define some.

    Raises:
        RecipeError: The folder cannot be read as a model.
        TrainingError: Nothing of it fits.

    Examples:
        >>> import composer
        >>> from composer.published import export_folder, start_from_published
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> export_folder(composer.load("gpt2", tiny).compile(seed=0), "mine")
        >>> text = "extends: gpt2\\nrecipe: tuned\\nadapters: {'*.down': {rank: 4}}\\n"
        >>> print(start_from_published(composer.load(text, tiny).compile(seed=1), "mine"))
        loaded 36 tensors of mine
        new: layers.<n>.ffn.body.down.lora_a (2), layers.<n>.ffn.body.down.lora_b (2)
    """
    from composer.loading import load
    from composer.train.starts import taken_over

    published = load(Path(folder), blocks=blocks).pretrained(device="cpu")
    recipe = f"written by `arco import {folder} -o recipe.yaml`"
    return taken_over(model, published.state_dict(), where=str(folder), recipe=recipe)


def tokenizer_to_train(folder: StrPath) -> PiecesTokenizer:
    """Return the tokenizer of a published folder as one that a model can be trained with.

    Args:
        folder: The published folder, or a GGUF file.

    Raises:
        RecipeError: There is none, or it is of a kind that is not read.
    """
    from composer.published.tokenizer import published_tokenizer

    return published_tokenizer(Path(folder)).to_train()
