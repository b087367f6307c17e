"""What happens inside a model while it reads: which positions attend to which, and what each layer would say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from composer.decode.errors import DecodeError
from composer.lower.model import Model
from composer.lower.tail_module import tail

WEIGHTS = "weights"


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The weights of one attention."""

    name: str
    """The node, such as `layers.0.attn.body`."""
    weights: Tensor
    """[batch, heads, queries, keys]; each row sums to 1, or to less with sinks and where a query sees nothing."""


@torch.no_grad()
def attention_maps(model: Model, **inputs: Tensor) -> list[AttentionMap]:
    """Return the weights of each attention while a model reads, in order of computation.

    Args:
        model: A compiled recipe.
        **inputs: The inputs of the model by name, such as `tokens` [batch, time].

    Raises:
        DecodeError: The model has no attention of the kinds `attention` and `cross_attention`.

    Examples:
        >>> import composer, torch
        >>> from composer.decode import attention_maps
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0)
        >>> first, second = attention_maps(model, tokens=torch.tensor([[1, 2, 3]]))
        >>> second.name, tuple(second.weights.shape)
        ('layers.1.attn.body', (1, 4, 3, 3))
    """
    found: list[AttentionMap] = []
    with _evaluating(model), _weights_told(model, found):
        model(**inputs)
    return found


@contextmanager
def _weights_told(model: Model, found: list[AttentionMap]) -> Iterator[None]:
    """Let each attention put its weights into a list, and return what it returns without them."""
    attentions: dict[str, Any] = {
        name: module
        for name, module in model.named_modules()
        if all(hasattr(module, mark) for mark in ("requested_outputs", "heads", "kv_heads", "q"))
    }
    if not attentions:
        raise DecodeError("the model has no attention whose weights can be told: no attention or cross_attention")
    asked = {name: module.requested_outputs for name, module in attentions.items()}
    handles = []
    for name, module in attentions.items():

        def take(module: nn.Module, given: Any, returned: Any, name: str = name) -> Any:
            *others, weights = returned  # the last of the optional outputs
            found.append(AttentionMap(name, weights))
            if WEIGHTS in asked[name]:
                return returned
            return tuple(others) if len(others) > 1 else others[0]

        module.requested_outputs = asked[name] | {WEIGHTS}
        handles.append(module.register_forward_hook(take))
    try:
        yield
    finally:
        for name, module in attentions.items():
            module.requested_outputs = asked[name]
        for handle in handles:
            handle.remove()


@torch.no_grad()
def logit_lens(model: Model, **inputs: Tensor) -> list[tuple[str, Tensor]]:
    """Return what a model would say after each of its layers: logits [batch, time, vocab] of the hidden states there, by the name
    of the layer.

    The last of them are those of the model (nostalgebraist 2020, *Interpreting GPT: the logit lens*).

    Args:
        model: A compiled recipe.
        **inputs: The inputs of the model by name, such as `tokens` [batch, time].

    Raises:
        DecodeError: Its logits do not follow position by position from the last of its layers.

    Examples:
        >>> import composer, torch
        >>> from composer.decode import logit_lens
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0)
        >>> [(name, tuple(logits.shape)) for name, logits in logit_lens(model, tokens=torch.tensor([[1, 2, 3]]))]
        [('layers.0', (1, 3, 61)), ('layers.1', (1, 3, 61))]
    """
    end = tail(model)
    layers = {
        f"{name}.{index}": layer
        for name, repeat in model.named_children()
        if isinstance(repeat, nn.ModuleList)
        for index, layer in repeat.named_children()
    }
    hidden: list[tuple[str, Tensor]] = []
    read: list[Tensor] = []
    handles = []
    for name, layer in layers.items():

        def take(module: nn.Module, given: Any, returned: Any, name: str = name) -> None:
            hidden.append((name, returned[0] if isinstance(returned, tuple) else returned))

        handles.append(layer.register_forward_hook(take))
    if end is not None:
        handles.append(end.first.register_forward_pre_hook(lambda module, given: read.append(given[0])))
    try:
        with _evaluating(model):
            model(**inputs)
            if end is None or not hidden or len(read) != 1 or not torch.equal(hidden[-1][1], read[0]):
                raise DecodeError("the logits of the model do not follow position by position from the last of its layers")
            read.clear()
            return [(name, end(state)) for name, state in hidden if state.shape == hidden[-1][1].shape]
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
