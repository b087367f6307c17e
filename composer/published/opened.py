"""A published folder opened to be run: the model with its weights, the tokenizer, and how a text begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.atomic_files import StrPath
from composer.published.folder import CONFIG, published_folder
from composer.published.tokenizer import PublishedTokenizer, published_tokenizer
from composer.recipe import Recipe
from composer.weights.other_formats import refuse
from composer.weights.published_files import read_json

if TYPE_CHECKING:
    import torch

    from composer.lower import Model


@dataclass(frozen=True, eq=False)
class PublishedModel:
    """A published model with its tokenizer, opened from its folder."""

    model: Model[Recipe]
    tokenizer: PublishedTokenizer
    folder: Path

    @property
    def context(self) -> int | None:
        """The number of tokens that the model reads at most; None if the recipe does not say."""
        found = self.model.recipe.program.untyped.params.get("context")
        return found if isinstance(found, int) else None

    @property
    def start(self) -> int:
        """The token with which a decoder begins.

        Raises:
            RecipeError: The settings name none.
        """
        for name in ("generation_config.json", CONFIG):
            settings: dict[str, Any] = read_json(self.folder / name) if (self.folder / name).is_file() else {}
            for key in ("decoder_start_token_id", "pad_token_id", "bos_token_id"):
                if isinstance(settings.get(key), int):
                    return int(settings[key])
        refuse("missing-file", "the settings name no decoder_start_token_id", self.folder)


def open_published(
    path: StrPath, *, load: Callable[[Path], Recipe], device: torch.device | str | None = None, int8: bool = False
) -> PublishedModel:
    """Return the model of a published folder with its tokenizer.

    Args:
        path: The folder, with a `config.json`, weights and a tokenizer.
        load: Returns the recipe of the folder.
        device: Device of the model; by default, that of torch.
        int8: Whether matrices are rounded to 8 bits, as by `Recipe.pretrained`.

    Raises:
        RecipeError: The folder cannot be read as a model, or it has no tokenizer.
    """
    folder = Path(path)
    published_folder(folder)  # tells what else it is, such as a run folder
    tokenizer = published_tokenizer(folder)  # before the weights, which take longer
    return PublishedModel(load(folder).pretrained(device=device, int8=int8), tokenizer, folder)
