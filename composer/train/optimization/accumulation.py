"""Gradient accumulation: the weight of each batch in each loss, and the models for which it cannot be exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NoReturn, TypeAlias

from torch import Tensor, nn

from blocks.losses.loss import Loss
from composer.graph.anatomy import regions
from composer.graph.dims import names, substitute
from composer.graph.ir import Ref
from composer.graph.row_mixing import mixing
from composer.graph.state_update import SUFFIX
from composer.graph.type_patterns import declared, size
from composer.graph.typed import TypedBlock, TypedGraph, TypedProgram, TypedScan, is_renewal
from composer.graph.types import TensorType
from composer.graph.visit import walk
from composer.lower.model import Model
from composer.train.errors import TrainingError

Batch: TypeAlias = Mapping[str, Tensor]


def shares(model: nn.Module, batches: Sequence[Batch], counts: Sequence[int], task: str) -> list[dict[str, float]]:
    """Return, for each batch, the factor of each of its losses, such that the products sum to the losses of one large batch.

    Args:
        model: The model.
        batches: The batches of one step.
        counts: The number of targets of the task's loss in each batch.
        task: The task's name; empty without one.

    Raises:
        TrainingError: No such factors exist; the message names the block or loss that depends on the whole batch.
    """
    found = {task: list(counts)}
    if isinstance(model, Model):
        several = len(batches) > 1
        if several:
            _refuse_memory(model.program)
        for name, node in model.program.untyped.losses.items():
            found[name] = [_count(model.program, name, node, batch) for batch in batches] if several else [1]
    wholes = {name: max(sum(each), 1) for name, each in found.items()}
    return [{name: each[index] / wholes[name] for name, each in found.items()} for index in range(len(batches))]


def _refuse_memory(typed: TypedProgram) -> None:
    """Raise an error if a block updates a state in every batch, or a node lets the rows of a batch depend on each other."""
    for visit in walk(typed.root):
        path, block = visit.path, visit.node
        if is_renewal(block):
            _refuse(
                f"the state `{path.removesuffix(SUFFIX)}` changes with every batch, so several batches do not equal one large one"
            )
    for found in mixing(typed, training=True):
        _refuse(f"`{found.path}` {found.does}, so several batches do not equal one large one")


def _count(typed: TypedProgram, name: str, node: str, batch: Batch) -> int:
    """Return the number of terms that a loss of the recipe averages; 0 if the batch lacks its inputs."""
    loss = typed.root[node]
    assert isinstance(loss, TypedBlock)
    lengths = _lengths(typed, batch)
    assert isinstance(loss.part, Loss)
    if loss.part.of_means:
        refs = [ref for wire in loss.node.wires for ref in wire.refs]
        several = {_made(typed, name, ref, lengths, batch) for ref in refs}
        if len(several) > 1:
            _refuse(
                f"the loss `{name}` reads means over unequal numbers of positions, so it cannot be accumulated over batches", name
            )
        return several.pop()
    return _judged(typed, name, loss, lengths, batch)


def _made(typed: TypedProgram, name: str, ref: Ref, lengths: Mapping[str, int], batch: Batch) -> int:
    """Return the number of terms that the referenced scalar averages."""
    block, port = _source(typed.root, ref, name)
    if isinstance(block.part, Loss) and not block.part.of_means:
        return _judged(typed, name, block, lengths, batch)
    if port not in block.part.mean_outputs:
        _refuse(
            f"the loss `{name}` reads `{ref}`, which depends on the whole batch, so it cannot be accumulated over batches", name
        )
    return substitute(size(declared(block.part.mean_outputs[port]), block.sizes), lengths)


def _judged(typed: TypedProgram, name: str, loss: TypedBlock, lengths: Mapping[str, int], batch: Batch) -> int:
    """Return the number of targets of a loss: the elements of its target, without those that are ignored."""
    assert isinstance(loss.part, Loss)
    sources = {wire.port: wire.refs[0].node for wire in loss.node.wires if wire.port != "input"}
    if typed.root.by_name.get(loss.name) is not loss:
        sources = {}  # inside another graph, inputs have other names
    optional = {port for port, type_ in loss.inputs.items() if isinstance(type_, TensorType) and type_.optional}
    if any(sources[port] not in batch for port in optional & sources.keys() & set(type(loss.part).inputs)):
        return 0
    given = {port: batch[name] for port, name in sources.items() if name in batch}
    target = loss.inputs.get("target")
    numbers = prod(substitute(one, lengths) for one in target.sizes) if isinstance(target, TensorType) else None
    count = loss.part.counted(numbers, given)
    if count is None:
        why = "compares all rows of a batch" if numbers is None else "has targets that the model computes"
        _refuse(f"the loss `{name}` {why}, so it cannot be accumulated over batches", name)
    return count


def _source(graph: TypedGraph, ref: Ref, name: str) -> tuple[TypedBlock, str]:
    """Return the block that computes a referenced value, and the name of its output."""
    while True:
        node = graph.by_name.get(ref.node)
        if node is None or isinstance(node, TypedScan):
            how = "is a single number" if node is None else "is computed by a scan"
            _refuse(f"the loss `{name}` reads `{ref}`, which {how}, so it cannot be accumulated over batches", name)
        if isinstance(node, TypedBlock):
            return node, ref.port or next(iter(node.outputs))
        graph = regions(node)[-1 if ref.index is None else ref.index].graph
        outputs = dict(graph.graph.outputs)
        ref = outputs[ref.port] if ref.port in outputs else next(iter(outputs.values()))


def _lengths(typed: TypedProgram, batch: Batch) -> dict[str, int]:
    """Return the lengths of the input axes in a batch."""
    found: dict[str, int] = {}
    for name in typed.inputs.keys() & batch.keys():
        pairs = zip(typed.inputs[name].sizes, batch[name].shape, strict=True)
        found |= {str(axis): length for axis, length in pairs if names(axis) == {str(axis)}}
    return found


def _refuse(message: str, loss: str = "") -> NoReturn:
    hint = "use one large batch per step: --grad-accum 1" + (f", or leave the loss out: --set losses.{loss}=null" if loss else "")
    raise TrainingError(message, hint=hint)
