"""The end of a model as a module of its own, which computes logits from hidden states for as many positions as it is given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from composer.graph.anatomy import with_wires
from composer.graph.flatten import flatten
from composer.graph.ir import Graph, GraphInput, Ref
from composer.graph.typed import TypedBlock, TypedGraph, TypedProgram
from composer.graph.types import TensorType
from composer.lower.emit.module_source import lower
from composer.lower.generated import execute
from composer.lower.model import Model, TailSource, module_at
from composer.lower.passes.tail import LOGITS, tail_nodes


class Tail:
    """The end of a model, which has the modules that the model has now.

    Args:
        model: The model.
        source: The source of its end.
    """

    def __init__(self, model: Model, source: TailSource) -> None:
        self.first = model.get_submodule(source.reads)
        namespace, _ = execute(source.module)
        with torch.device("meta"):
            self.module = cast(nn.Module, namespace[source.module.name]())
        for name, _ in self.module.named_children():
            self.module._modules[name] = model._modules[name]

    def __call__(self, hidden: Tensor) -> Tensor:
        """Return the logits [rows, positions, vocab] of hidden states [rows, positions, dim]."""
        return cast(Tensor, self.module(hidden).logits)

    @contextmanager
    def taken(self) -> Iterator[list[Tensor]]:
        """Yield a list into which calls of the model put their hidden states, while they compute the logits of one position."""
        found: list[Tensor] = []

        def take(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            hidden, *others = arguments
            found.append(hidden)
            return (hidden[:, :1].detach(), *others)

        handle = self.first.register_forward_pre_hook(take)
        try:
            yield found
        finally:
            handle.remove()


def tail(model: Model) -> Tail | None:
    """Return the end of a model that computes its logits from hidden states, each row and each position by itself, from its first
    module on; None if it has no such end.
    """
    if "tail_source" not in model.__dict__:
        model.__dict__["tail_source"] = _source(model)
    source = model.tail_source
    return None if source is None else Tail(model, source)


def _source(model: Model) -> TailSource | None:
    """Return the source of a model's end, in terms of one input."""
    typed = model.program
    flat = flatten(typed)
    nodes = tail_nodes(flat)
    reading = [node for node in nodes if node.node.wires]
    while reading and (module_at(model, reading[0].name) is None or len(_refs(reading[0])) != 1):
        reading = reading[1:]  # an operator has no module where its input could be taken; of several inputs, not all can be
    if not reading:
        return None
    first = reading[0]
    nodes = tuple(node for node in nodes if node in reading or not node.node.wires)
    hidden = "hidden"
    while hidden in {node.name for node in nodes}:
        hidden += "_"
    inside = tuple(_untied(_reading(node, hidden) if node is first else node) for node in nodes)
    graph = Graph((GraphInput(hidden),), tuple(node.node for node in inside), ((LOGITS, dict(flat.root.graph.outputs)[LOGITS]),))
    type_ = first.first_input
    assert isinstance(type_, TensorType)
    outputs = {LOGITS: flat.root.outputs[LOGITS]}
    root = TypedGraph(graph, {hidden: type_}, inside, outputs, {node.name: node for node in inside})
    declared = replace(typed.untyped.inputs[0], name=hidden, optional=False, default=None)
    untyped = replace(typed.untyped, graph=graph, inputs=(declared,), positions=(), init=(), losses={})
    return TailSource(lower(TypedProgram(untyped, root, {hidden: type_}, {})), first.name)


def _refs(block: TypedBlock) -> list[Ref]:
    """Return what a block reads."""
    return [ref for wire in block.node.wires for ref in wire.refs]


def _reading(block: TypedBlock, name: str) -> TypedBlock:
    """Return a block that reads an input of the graph."""
    changed = with_wires(block, lambda wire, _: replace(wire, refs=(Ref(name),)) if wire.refs else wire)
    return cast(TypedBlock, changed)


def _untied(block: TypedBlock) -> TypedBlock:
    """Return a block whose parameters are its own: in the model, its modules hold what they are tied to."""
    return replace(block, node=replace(block.node, ties=()))
