"""Constructor calls of blocks: of a torch module that equals the block, else of its own class with all that its code reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, assert_never

from blocks.core import Builtin, Expert, Part
from composer.graph.dims import Symbolic
from composer.graph.ir import Adapter
from composer.graph.passes.adapt import LINEAR
from composer.graph.type_patterns import declared, size
from composer.graph.typed import TypedBlock, TypedGroup, TypedNode, TypedRepeat, TypedScan
from composer.language.expressions.ast import RefPath
from composer.lower.emit.block_source import LORA_CLASS, CopiedSource
from composer.lower.emit.constructor_trees import Literal, New, Tree
from composer.lower.passes.hoist import Preparation
from composer.lower.passes.node_queries import tensor_names


class Constructors:
    """Writes constructor calls, and has the source of the classes that they call copied."""

    def __init__(self, copied: CopiedSource, nested: Callable[[TypedGroup], Tree]) -> None:
        self.copied = copied
        self.nested = nested
        """Returns the constructor call of a graph that fills a slot."""

    def is_plain(self, block: TypedBlock) -> bool:
        """Return whether a block becomes a plain object and no torch module: an activation without weights."""
        return (
            block.part.build(block.sizes) is None and not block.copies and self.copied.part(type(block.part)) in self.copied.plain
        )

    def block(self, block: TypedBlock) -> Tree:
        """Return the constructor call of a block's module."""
        part = block.part
        call = part.build(block.sizes)
        if call is not None:
            if ":" in call.function:
                home, _, name = call.function.partition(":")
                self.copied.imports.add(f"from {home} import {name}")
            function = call.function.rpartition(":")[2]
            keywords = tuple((name, Literal(_argument(value, block))) for name, value in call.keywords.items())
            plain = New(
                function,
                tuple(Literal(_argument(value, block)) for value in call.arguments),
                _without_defaults(function, keywords),
            )
            return self._adapted(plain, block.adapters.get(""))
        kind = part.grouped if isinstance(part, Expert) and block.copies else type(part)
        name = self.copied.part(kind)
        reached = self.copied.attributes[kind]
        attributes: dict[str, Tree] = {}
        own = {key: getattr(part, key) for key in type(part).model_fields if key not in block.slots}
        for key, value in {**block.sizes, **own}.items():
            if key in reached and not isinstance(value, Symbolic) and key != "..." and not isinstance(value, Builtin):
                attributes[key] = self._value(value)
        if "requested_outputs" in reached:
            attributes["requested_outputs"] = Literal(frozenset(block.node.requested_outputs))
        for key in tensor_names(part, block):
            attributes[key] = Literal(None)
        for parameter in block.parameters:
            if "." not in parameter.name:
                attributes[parameter.name] = _parameter(parameter.shape)
        attributes |= _buffers(block)
        for key, (width, out, bias, *_) in block.modules.items():
            if block.copies:
                held = _parameter((block.copies, out)) if bias else Literal(None)
                attributes[key] = New("Module", (), (("weight", _parameter((block.copies, out, width))), ("bias", held)))
                continue
            plain = New(LINEAR, (Literal(width), Literal(out)), (("bias", Literal(bias)),) if not bias else ())
            attributes[key] = self._adapted(plain, block.adapters.get(key))
        for key, slot in block.slots.items():
            attributes[key] = self._slot(slot)
        return New(name, (), tuple(sorted(attributes.items(), key=lambda item: isinstance(item[1], New))))

    def _adapted(self, linear: New, adapter: Adapter | None) -> New:
        """Return the constructor call of a linear map with what is added to it."""
        if adapter is None:
            return linear
        self.copied.adapters = True
        added = [("rank", Literal(adapter.rank)), ("scale", Literal(adapter.scale))]
        added += [("dropout", Literal(adapter.dropout))] if adapter.dropout else []
        return New(LORA_CLASS, linear.arguments, (*linear.keywords, *added))

    def _slot(self, slot: TypedNode | None) -> Tree:
        match slot:
            case TypedBlock():
                return self.block(slot)
            case TypedGroup():
                return self.nested(slot)
            case TypedScan() | TypedRepeat() | None:  # in a slot, the first two stand in a group of their own
                return Literal(None)
            case _:
                assert_never(slot)

    def _value(self, value: Any, extra: Sequence[tuple[str, Any]] = ()) -> Tree:
        if not isinstance(value, Part):
            return Literal(str(value) if isinstance(value, str) else value)
        name = self.copied.part(type(value))
        reached = self.copied.attributes[type(value)]
        fields = {key: getattr(value, key) for key in type(value).model_fields}
        pairs = [(key, self._value(item)) for key, item in fields.items() if key in reached]
        return New(name, (), (*pairs, *((key, Literal(item)) for key, item in extra if key in reached)))

    def hoisted(self, preparation: Preparation) -> Tree:
        """Return the constructor call of a part that is prepared once per call."""
        tree = self._value(preparation.part, preparation.attributes)
        assert isinstance(tree, New)
        values = {key: getattr(preparation.part, key) for key in type(preparation.part).model_fields}
        nested = {key: value for key, value in values.items() if isinstance(value, Part)}
        keywords = tuple(
            (key, self._value(nested[key], preparation.attributes) if key in nested else item) for key, item in tree.keywords
        )
        return New(tree.function, tree.arguments, keywords)


def held_buffers(block: TypedBlock) -> Tree:
    """Return the constructor call of a module that holds the buffers of a block, for one whose forward is an expression."""
    return New("Module", (), tuple(_buffers(block).items()))


def _buffers(block: TypedBlock) -> dict[str, Tree]:
    return {buffer.name: New("nn.Buffer", _parameter(buffer.shape).arguments) for buffer in block.buffers}


def _parameter(shape: tuple[int, ...]) -> New:
    return New("nn.Parameter", (New("torch.empty", (Literal(shape),)),))


def _argument(value: Any, block: TypedBlock) -> Any:
    if not isinstance(value, str):
        return value
    expression = declared(value)
    if isinstance(expression, RefPath) and expression.text in type(block.part).model_fields:
        return getattr(block.part, expression.text)
    return size(expression, block.sizes)


_TORCH_DEFAULTS = {"bias": True, "elementwise_affine": True, "padding_idx": None}


def _without_defaults(function: str, keywords: tuple[tuple[str, Tree], ...]) -> tuple[tuple[str, Tree], ...]:
    """Return the keywords of a torch module without those that repeat its defaults."""
    if not function.startswith("nn."):
        return keywords
    return tuple(
        (n, t) for n, t in keywords if not (isinstance(t, Literal) and n in _TORCH_DEFAULTS and t.value is _TORCH_DEFAULTS[n])
    )
