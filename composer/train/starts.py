"""What a run starts from, and what of it stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import torch
from torch import Tensor, nn

from composer.atomic_files import StrPath
from composer.language.name_patterns import folded
from composer.language.wording import counted
from composer.train.data.tokenizers import MarkedTokenizer, Tokenizer
from composer.train.errors import TrainingError
from composer.train.run.reader import read_run
from composer.train.techniques.average import AVERAGE
from composer.train.techniques.names import none_called


@dataclass(frozen=True)
class Start:
    """What a model took over from a run."""

    run: str
    """The folder and the checkpoint."""
    loaded: tuple[str, ...]
    """The names of the tensors that were loaded."""
    new: tuple[str, ...]
    """Names that the run lacks, which keep the values that they had."""
    misfits: tuple[str, ...]
    """Names whose tensor has another shape in the run; they keep the values that they had."""
    unused: tuple[str, ...]
    """Names of the run that the model lacks."""
    grown: tuple[str, ...] = ()
    """Names of those loaded whose rows for added special tokens keep the values that they had."""

    def __str__(self) -> str:
        lines = [f"loaded {counted(len(self.loaded), 'tensor')} of {self.run}"]
        added = "loaded, with new rows for special tokens"
        for what, names in (
            (added, self.grown),
            ("new", self.new),
            ("of another shape, so new", self.misfits),
            ("left out", self.unused),
        ):
            if names:
                lines.append(f"{what}: {folded(names)}")
        return "\n".join(lines)


@torch.no_grad()
def start_from(model: nn.Module, run: StrPath, *, checkpoint: str | None = None, tokenizer: Tokenizer | None = None) -> Start:
    """Load what fits of the weights of a run into a model, by name and shape, and say what does not.

    Args:
        model: A model, such as one of another recipe with the same body.
        run: The run folder.
        checkpoint: The name of a checkpoint, such as `step-000500`; by default, the latest.
        tokenizer: The tokenizer of the model. If it is that of the run with other special tokens, the rows of all other tokens
            are loaded into embeddings and heads too.

    Raises:
        TrainingError: The folder is not a run folder or is damaged, there is no such checkpoint, or nothing of it fits.

    Examples:
        >>> import composer
        >>> from composer.train import TrainSettings, characters_of, start_from, tokenize, train
        >>> text = "to be or not to be\\n" * 20
        >>> tokenizer = characters_of(text)
        >>> recipe = composer.load("gpt_mini", {"vocab": tokenizer.size, "d_model": 16, "n_layers": 1})
        >>> settings = TrainSettings(steps=1, batch_size=2, seq_len=8, log_every=100)
        >>> data = tokenize(text, tokenizer, path="hamlet.txt")
        >>> result = train(recipe.compile(seed=0), tokenizer, data, settings, "runs/first", recipe=recipe.text)
        step 1/1  loss …
        validation at step 1: …
        >>> deeper = composer.load("gpt_mini", {"vocab": tokenizer.size, "d_model": 16, "n_layers": 2}).compile(seed=1)
        >>> len(start_from(deeper, "runs/first").new)
        8
    """
    saved = read_run(Path(run))
    name = saved.name(checkpoint)
    weights = {**saved.weights(name)}
    if saved.settings.average:
        moments = saved.moments(name)
        weights |= {key: moments[f"{key}/{AVERAGE}"] for key in weights if f"{key}/{AVERAGE}" in moments}
    rows = 0 if tokenizer is None else _shared_tokens(saved.tokenizer, tokenizer)
    return taken_over(model, weights, where=f"{saved.folder.path}, {name}", recipe=str(saved.folder.recipe), rows=rows)


def _shared_tokens(one: Tokenizer, other: Tokenizer) -> int:
    """Return how many tokens the texts of two tokenizers have if they differ in special tokens alone; 0 for others."""
    texts = [each.text if isinstance(each, MarkedTokenizer) else each for each in (one, other)]
    return texts[0].size if one.size != other.size and texts[0].to_json() == texts[1].to_json() else 0


@torch.no_grad()
def taken_over(model: nn.Module, weights: Mapping[str, Tensor], *, where: str, recipe: str, rows: int = 0) -> Start:
    """Load what fits of some weights into a model, and return what became of them.

    Args:
        model: The model.
        weights: The weights by name.
        where: What they are of, for messages.
        recipe: Their recipe.
        rows: How many rows are loaded of what has a row for each token, if it has another number of them; 0 loads none.

    Raises:
        TrainingError: Nothing of them fits.
    """
    own = model.state_dict()
    loaded = [key for key, value in own.items() if key in weights and weights[key].shape == value.shape]
    if not loaded:
        message = f"nothing of {where} fits the recipe: no tensor has the same name and shape"
        raise TrainingError(message, hint=f"its recipe, with its sizes, is {recipe}")
    for key in loaded:
        own[key].copy_(weights[key])
    misfits = [key for key, value in own.items() if key in weights and weights[key].shape != value.shape]
    grown = [key for key in misfits if rows and _has_rows(own[key], weights[key], rows)]
    for key in grown:
        own[key][:rows].copy_(weights[key][:rows])
    misfits = [key for key in misfits if key not in grown]
    new = [key for key in own if key not in weights]
    unused = sorted(weights.keys() - own.keys())
    return Start(where, tuple(loaded), tuple(new), tuple(misfits), tuple(unused), tuple(grown))


def _has_rows(own: Tensor, other: Tensor, rows: int) -> bool:
    """Return whether two tensors differ in the number of their rows alone, and both have so many."""
    alike = own.dim() == other.dim() and own.dim() > 0 and own.shape[1:] == other.shape[1:]
    return alike and min(len(own), len(other)) >= rows


def freeze(model: nn.Module, patterns: Sequence[str]) -> None:
    """Leave the parameters untrained whose names match one of some patterns, such as `layers.*` or `embed.weight`.

    Args:
        model: The model.
        patterns: Patterns as of a shell, for whole names.

    Raises:
        TrainingError: A pattern matches nothing, or nothing is left to be trained.
    """
    named = dict(model.named_parameters(remove_duplicate=False))
    for pattern in patterns:
        found = [parameter for name, parameter in named.items() if fnmatchcase(name, pattern)]
        if not found:
            raise none_called("freeze", "parameter", pattern, named)
        for parameter in found:
            parameter.requires_grad_(False)
    if patterns and not any(parameter.requires_grad for parameter in model.parameters()):
        raise TrainingError("`freeze` leaves nothing to be trained", hint="freeze fewer parameters")
