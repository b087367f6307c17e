"""Parameter groups with and without weight decay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from torch import nn

from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedGraph, TypedProgram
from composer.train.errors import TrainingError
from composer.train.unwrap import ADAPTER, own_name, unwrapped

HINT = "make the groups before FSDP merges parameters, or pass it use_orig_params=True"

DECAYED = frozenset({"matrix", "experts", "embedding", "adapter"})
"""Roles with weight decay. Embeddings are included because GPT-2's are also its output matrix (as in nanoGPT, transformers)."""


def param_groups(model: nn.Module, *, weight_decay: float) -> list[dict[str, Any]]:
    """Return the parameters of a model in groups for an optimizer, with and without weight decay.

    The role of a parameter, which its block declares, decides: matrices, experts and embeddings decay; biases and gains do not.
    A tied parameter is listed once, a frozen one is left out.

    Args:
        model: A compiled recipe, also in wrappers such as those of DDP, PEFT and `torch.compile`.
        weight_decay: The decay of the first group; that of the second is 0.

    Returns:
        Dicts with `params` and `weight_decay`, as `torch.optim` takes them; empty groups are left out.

    Raises:
        TrainingError: There is no compiled recipe in the model, or a parameter is none of the recipe.

    Examples:
        >>> import composer
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> groups = composer.param_groups(composer.load("gpt2", tiny).compile(), weight_decay=0.1)
        >>> [group["weight_decay"] for group in groups]
        [0.1, 0.0]
    """
    role_of = roles_of(model)
    decayed = [parameter for parameter, role in role_of.items() if role in DECAYED]
    kept = [parameter for parameter, role in role_of.items() if role not in DECAYED]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": kept, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def roles_of(model: nn.Module) -> dict[nn.Parameter, str]:
    """Return the role of each parameter that is trained; of a tied one, that of its owner.

    Raises:
        TrainingError: A parameter is none of the recipe, such as one into which FSDP has merged several.
    """
    inner = unwrapped(model)
    roles = cast("dict[str, str]", inner.roles)
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in inner.named_parameters(remove_duplicate=False):
        if parameter.requires_grad:
            names.setdefault(parameter, []).append("adapter" if ADAPTER.search(name) else own_name(name))
    roles = {**roles, "adapter": "adapter"}
    found: dict[nn.Parameter, str] = {}
    for parameter, tied in names.items():
        role = next((roles[name] for name in tied if name in roles), None)
        if role is None:
            raise TrainingError(f"the role of {tied[0]} is not known: it is no parameter of the recipe", hint=HINT)
        found[parameter] = role
    return found


def hidden_matrices(model: nn.Module) -> set[nn.Parameter]:
    """Return the matrices that are trained, but for those of the nodes that compute the outputs of a compiled recipe."""
    program = cast("TypedProgram | None", getattr(model, "program", None))
    heads = () if program is None else tuple(f"{name}." for name in output_nodes(program.root))
    of_heads = {parameter for name, parameter in model.named_parameters(remove_duplicate=False) if name.startswith(heads)}
    return {parameter for parameter, role in roles_of(model).items() if role == "matrix" and parameter.dim() == 2} - of_heads


def output_nodes(graph: TypedGraph) -> Iterator[str]:
    """Yield the names of the last nodes with matrices before each output."""
    for _, ref in graph.graph.outputs:
        found: Ref | None = ref
        while found is not None:
            node = graph.by_name.get(found.node)
            if not isinstance(node, TypedBlock):
                break
            if any(each.role == "matrix" for each in node.parameters) or node.modules:
                yield node.name
                break
            read = [each for wire in node.node.wires for each in wire.refs]
            found = read[0] if read else None
