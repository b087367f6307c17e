"""What a typed graph computes, by the shortest way: node after node, passes as loops, nothing hoisted."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from types import MethodType
from typing import Any

import torch
from torch import nn

from blocks.core import Part
from blocks.core.fields import formula_of
from blocks.linear_recurrences.elementwise import recurrence, running_sum, states_before
from blocks.masks.mask import Mask
from blocks.masks.plans import pair, plan
from blocks.masks.views import DenseView, FullView, matrix
from composer.graph.anatomy import wires_of
from composer.graph.flatten import flatten
from composer.graph.ir import Ref, Wire
from composer.graph.leading_axes import LeadingPart, declared_inputs, leading_part
from composer.graph.scans.hoist_steps import hoist_steps
from composer.graph.type_patterns import declared, pattern, size
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan, is_renewal
from composer.graph.types import TensorType
from composer.language.expressions.evaluator import evaluate
from composer.lower import Model
from composer.lower.passes.node_queries import is_optional
from composer.lower.passes.shared_weights import modules_of
from tests.formulas import tensor_value


class Running:
    """A part that is no module as the object that runs: its fields, its methods, and what its holder knows."""

    def __init__(self, part: Part, **known: Any) -> None:
        self.__dict__.update(known, cache=None, _part=part, _known=known)

    def __getattr__(self, name: str) -> Any:
        method = getattr(type(self._part), name, None)
        if inspect.isfunction(method):
            return MethodType(method, self)
        value = getattr(self._part, name)
        return Running(value, **self._known) if isinstance(value, Part) else value


class Interpreter:
    """A compiled model's weights, and its typed graph walked instead of its generated code.

    With `dense`, every mask is the matrix that its predicate makes; else attention takes the ways that the masks' plans take.
    With `at_once`, what scans do not carry is computed for all steps at once, and several axes in front of a block as one, as in
    the code: torch's functions of many numbers at once and of few differ in the last bit. Else each step and each place along
    these axes is computed alone.
    """

    def __init__(self, model: Model, *, dense: bool, at_once: bool = False) -> None:
        self.model, self.program, self.dense, self.at_once = model, model.program.untyped, dense, at_once
        self.typed = model.program
        flat = flatten(model.program) if at_once else self.typed
        if at_once and (hoisted := hoist_steps(flat)).root is not flat.root:
            self.typed = hoisted
        self.seen: dict[str, tuple[TypedNode, dict[str, Any]]] = {}
        """Every node by its path, with what it gave in the last call."""

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the model."""
        return next((one.dtype for one in self.model.state_dict().values() if one.is_floating_point()), torch.get_default_dtype())

    def __call__(self, **inputs: Any) -> dict[str, Any]:
        """The outputs by the recipe's names; the recipe's own losses are among what is seen."""
        self.seen, self.given = {}, inputs
        for item in self.program.inputs:
            inputs.setdefault(item.name, None)
            if item.default is not None and inputs[item.name] is None:
                value = evaluate(item.default.expression, {**self.program.params, "true": True, "false": False})
                given = {name: tensor for name, tensor in inputs.items() if tensor is not None}
                known = {
                    axis: n for name, t in given.items() for axis, n in zip(self.typed.inputs[name].sizes, t.shape, strict=True)
                }
                shape = [known.get(size, size) for size in self.typed.inputs[item.name].sizes]
                dtype = {"int": torch.long, "bool": torch.bool, "float": self.dtype}[item.type.dtype]
                inputs[item.name] = torch.full(shape, value, dtype=dtype, device=next(iter(given.values())).device)
        self.root: dict[str, Any] = dict(inputs)
        return self.graph(self.typed.root, self.root, "")

    def graph(self, graph: TypedGraph, values: dict[str, Any], path: str) -> dict[str, Any]:
        """Return a graph's outputs; `values` are its inputs, to which every node's outputs are added."""
        for node in graph.nodes:
            if is_renewal(node) or (node.name in self.program.losses.values() and self.lacks(node, values)):
                continue
            match node:
                case TypedBlock():
                    values[node.name] = self.block(node, self.wires(node.node.wires, values), path + node.name)
                case TypedGroup():
                    values[node.name] = self.graph(node.graph, self.wires(node.node.wires, values), f"{path}{node.name}.")
                case TypedScan():
                    values[node.name] = self.scan(node, self.wires(node.node.wires, values), f"{path}{node.name}.")
                case TypedRepeat():
                    passes = values[node.name] = []
                    for module, one, inner in zip(modules_of(node), node.node.passes, node.passes, strict=True):
                        passes.append(self.graph(inner, self.wires(one.wires, values), f"{path}{module}."))
            if not isinstance(node, TypedRepeat):
                self.seen[path + node.name] = node, values[node.name]
        return {name: read(values, ref) for name, ref in graph.graph.outputs}

    def scan(self, scan: TypedScan, given: dict[str, Any], path: str) -> dict[str, Any]:
        """Return what a scan gives: its graph walked once for each step, or, where it is linear, the recurrence's."""
        walked = next(iter(scan.steps))
        carried = {name: given[name].expand(*given[walked].shape[:n], *given[name].shape) for name, n in scan.widened.items()}
        if scan.linear:
            return recurrences(scan, given, carried)
        steps: list[dict[str, Any]] = []
        for step in range(given[walked].shape[scan.steps[walked]]):
            here = {name: None if given[name] is None else given[name].select(axis, step) for name, axis in scan.steps.items()}
            steps.append(self.graph(scan.graph, {**given, **here, **carried}, path))
            carried = {name: steps[-1][output] for name, output in scan.carried.items()}
        every = list(scan.outputs.items())[: scan.stacked]
        return steps[-1] | {name: torch.stack([step[name] for step in steps], scan.place_in(type_)) for name, type_ in every}

    def lacks(self, node: TypedNode, values: Mapping[str, Any]) -> bool:
        """Return whether a loss asks for what was not given."""
        wires = (wire for wire in wires_of(node.node) if not is_optional(node, wire.port))
        return any(read(values, ref) is None for wire in wires for ref in wire.refs)

    def wires(self, wires: tuple[Wire, ...], values: Mapping[str, Any]) -> dict[str, Any]:
        return {wire.port: self.wire(wire, values) for wire in wires}

    def wire(self, wire: Wire, values: Mapping[str, Any]) -> Any:
        """Return one value, or a tuple where a port takes several."""
        found = [read(values, ref) for ref in wire.refs]
        if len(found) == 1 and wire.port != "xs":
            return found[0]
        return tuple(item for value in found for item in (value if isinstance(value, tuple) else (value,)))

    def block(self, block: TypedBlock, given: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return the outputs of a block, by the module that the model has for it."""
        if block.leading:
            return self.as_one_batch(block, given, path) if self.at_once else self.one_by_one(block, given, path)
        part = block.part
        forward = self.leaf(block, path) if formula_of(part) is None else None
        taken = inspect.signature(type(part).forward).parameters if type(part).forward else given
        several = [value for port in given if port + "*" in part.inputs for value in as_tuple(given[port])]
        if block.expansions and len(block.expansions) == len(several):
            several = [
                x.permute([p for p in e if p is not None])[tuple(slice(None) if p is not None else None for p in e)]
                for x, e in zip(several, block.expansions, strict=False)
            ]
            if (formula := formula_of(part)) is not None:
                first = next((x.dtype for x in several if x.is_floating_point()), None)
                return {"y": tensor_value(formula, several, first or self.dtype)}
            several = list(torch.broadcast_tensors(*several))
        required = {port: given[port] for port in part.inputs if port in given}
        keywords = {port: given[port] for port in given if port + "?" in part.inputs and port in taken} | self.needs(block, given)
        if several:
            keywords |= required  # what follows several values has to be named
        walked = {self.model.get_submodule(f"{path}.{n}"): (n, s) for n, s in block.slots.items() if isinstance(s, TypedGroup)}
        for module, (name, slot) in walked.items():
            # In place of its code, among the instance's own attributes: a node may be called `forward`.
            vars(module)["forward"] = partial(self.slot, slot, f"{path}.{name}.")
        assert forward is not None
        result = forward(*(several or required.values()), **keywords)
        for module in walked:
            del vars(module)["forward"]
        first, *others = [name.rstrip("?") for name in (block.outputs or ("y",))]
        names = [first, *(name for name in others if name in block.node.requested_outputs or name + "?" not in part.outputs)]
        return dict(zip(names, as_tuple(result), strict=True))

    def as_one_batch(self, block: TypedBlock, given: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return the outputs of a block with several axes in front: one call, for which they are one axis."""
        count, declared = len(block.leading), declared_inputs(block.part)
        lengths = given[next(iter(type(block.part).inputs))].shape[:count]
        values, types = dict(given), dict(block.inputs)
        for port in block.part.position_inputs:
            ref = self.named_positions(block, port)
            if given.get(port) is None and ref is not None and (named := read(self.root, ref)) is not None:
                values[port], types[port] = named, self.typed.root.type_of(ref)
        for port, type_ in types.items():
            assert isinstance(type_, TensorType)
            which, has = self.in_front(declared[port], type_, block)
            if which == "none":
                continue
            types[port] = replace(type_, axes=(block.leading[0], *type_.axes[has:]))
            if (value := values[port]) is not None:
                missing = (1,) * (count - has)
                own = (*missing, *value.shape[:has]) if which == "last" else (*value.shape[:has], *missing)
                values[port] = value.reshape(*own, *value.shape[has:]).expand(*lengths, *value.shape[has:]).flatten(0, count - 1)
        results = self.block(replace(block, leading=(), inputs=types), values, path)
        return {
            name: value.unflatten(0, lengths) if getattr(block.outputs[name], "axes", ())[:count] == block.leading else value
            for name, value in results.items()
        }

    @staticmethod
    def in_front(declared: str, type_: TensorType, block: TypedBlock) -> tuple[LeadingPart, int]:
        """Return which of the axes in front of a block a value has, and how many."""
        has = len(type_.axes) - len(pattern(declared).axes) + (not pattern(declared).leading)
        return leading_part(declared, type_, block.leading), has

    def one_by_one(self, block: TypedBlock, given: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return the outputs of a block with several axes in front: a call for each place along those behind the batch."""
        count, declared = len(block.leading), declared_inputs(block.part)
        first = given[next(iter(type(block.part).inputs))]
        results = []
        for place in product(*map(range, first.shape[1:count])):
            values, types = dict(given), dict(block.inputs)
            for port, type_ in block.inputs.items():
                assert isinstance(type_, TensorType)
                which, has = self.in_front(declared[port], type_, block)
                if which == "none":
                    continue
                value = given[port]
                if value is not None and which == "last":
                    values[port] = value[place[-has:]].expand(len(first), *value.shape[has:])
                elif value is not None:
                    values[port] = value[(slice(None), *place[: has - 1])]
                types[port] = replace(type_, axes=(block.leading[0], *type_.axes[has:]))
            results.append(self.block(replace(block, leading=(), inputs=types), values, path))
        return {
            name: torch.stack([one[name] for one in results], 1).unflatten(1, first.shape[1:count])
            if getattr(block.outputs[name], "axes", ())[:count] == block.leading
            else value
            for name, value in results[0].items()
        }

    def slot(self, slot: TypedGroup, path: str, x: torch.Tensor) -> Any:
        """Return a graph in the slot of a block that computes, walked."""
        stream = slot.graph.graph.inputs[0].name
        return next(iter(self.graph(slot.graph, {stream: x}, path).values()))

    def leaf(self, block: TypedBlock, path: str) -> Any:
        """Return the model's own module; what is written as an operator in its code has none, and what the code has for all
        steps of a scan is another one.
        """
        if type(block.part).over_steps is not Part.over_steps:
            return Running(block.part, **block.sizes).forward
        found: Any = self.model
        for name in path.split("."):
            held = found._modules if isinstance(found, nn.Module) else {}
            plain = vars(found).get(f"_node_{name}", vars(found).get(name))
            found = held[name] if name in held else plain if hasattr(plain, "forward") else None
            if found is None:
                call = block.part.build(block.sizes)
                return nn.Identity() if call is not None and call.function == "nn.Identity" else Running(block.part).forward
        return found

    def needs(self, block: TypedBlock, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is prepared for a block's forward: views of masks, tables of angles, positions."""
        part = block.part
        needs: dict[str, Any] = {}
        for name, prepared in part.per_call(frozenset(given)).items():
            held = getattr(part, prepared.slot)
            if isinstance(held, Mask):
                at = [self.counted(block, port, given) for port in prepared.ports]
                needs[name] = self.view(block, held, prepared.ports, at, given)
            else:
                at = [
                    self.positions(block, port, given) if port in part.position_inputs else given.get(port)
                    for port in prepared.ports
                ]
                known = {key: size(declared(text), block.sizes) for key, text in prepared.sizes.items()}
                needs[name] = Running(held, **known).prepare(*at)
        taken = inspect.signature(type(part).forward).parameters if type(part).forward else {}
        needs.update(
            {
                port: self.positions(block, port, given)
                for port in part.position_inputs
                if given.get(port) is None and port in taken
            }
        )
        return needs

    def view(self, block: TypedBlock, mask: Mask, ports: tuple[str, ...], at: list[Any], given: Mapping[str, Any]) -> Any:
        edges = {name: given[name] for name in mask.edge_types() if name in given}
        sizes = [block.sizes[block.part.position_inputs[port]] for port in ports]
        grows = sizes[0] == sizes[-1]
        if self.dense:
            pairs = {name: pair(Running(mask, grows=grows), name, value, at[-1].shape[-1]) for name, value in edges.items()}
            allowed = matrix(mask, *at, pairs)
            return FullView() if allowed is None else DenseView(allowed)
        optional = frozenset(name for name in edges if block.inputs[name].optional)  # type: ignore[union-attr]  # an edge is one value
        running = Running(plan(mask, optional), grows=grows)
        return running.prepare(*at, **edges)

    def positions(self, block: TypedBlock, port: str, given: Mapping[str, Any]) -> torch.Tensor:
        """Return what is wired and not absent, what the recipe names for the axis, or 0, 1, 2 …"""
        if given.get(port) is not None:
            return given[port]
        ref = self.named_positions(block, port)
        named = None if ref is None else read(self.root, ref)
        return self.counted(block, port, given) if named is None else named

    def named_positions(self, block: TypedBlock, port: str) -> Ref | None:
        """Return what the recipe names as the positions of the axis of a port."""
        return dict(self.program.positions).get(str(block.sizes[block.part.position_inputs[port]]))

    def counted(self, block: TypedBlock, port: str, given: Mapping[str, Any]) -> torch.Tensor:
        """Return 0, 1, 2 … along the axis of a port of positions, which a mask compares whatever is wired."""
        axis = block.sizes[block.part.position_inputs[port]]
        there = {name: type_ for name, type_ in block.inputs.items() if given.get(name) is not None}
        name = next(name for name, type_ in there.items() if not isinstance(type_, tuple) and axis in type_.sizes)
        x = given[name]
        return torch.arange(x.shape[block.inputs[name].sizes.index(axis)], device=x.device)


def read(values: Mapping[str, Any], ref: Ref) -> Any:
    """Return the value that a reference names."""
    value = values[ref.node]
    if isinstance(value, list):
        value = value[-1 if ref.index is None else ref.index]
    if isinstance(value, dict):
        value = value[ref.port] if ref.port in value else next(iter(value.values()))
    return value


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def recurrences(scan: TypedScan, given: dict[str, Any], widened: dict[str, Any]) -> dict[str, Any]:
    """Return what a scan gives whose steps are linear in what is carried, by the function that the code calls."""
    found: dict[str, Any] = {}
    refs, every = dict(scan.graph.graph.outputs), list(scan.outputs)[: scan.stacked]
    for carry, step in scan.linear.items():
        start = widened.get(carry, given[carry])
        place = min(next(iter(scan.steps.values())), start.dim())
        beside = [one if isinstance(one, float) else aligned(given[one.port], one.way) for one in step[:2]]
        states = running_sum(start, beside[1], place) if step.keep == 1 else recurrence(start, *beside, place)
        states = states.to(start.dtype) if step.rounded else states
        after = refs[scan.carried[carry]]
        for name, ref in refs.items():
            if name in every and ref == after:
                found[name] = states
            elif name in every and ref.node == carry:
                found[name] = states_before(start, states, place)
            elif name == scan.carried[carry]:
                found[name] = states.select(place, -1)
    return found


def aligned(x: torch.Tensor, way: tuple[int | None, ...]) -> torch.Tensor:
    """Return a value with its axes where they stand among those of another."""
    x = x.permute([axis for axis in way if axis is not None])
    for place, axis in enumerate(way):
        x = x.unsqueeze(place) if axis is None else x
    return x
