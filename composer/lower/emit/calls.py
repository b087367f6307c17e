"""Calls of blocks: of their modules, or expressions in their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from blocks.core import ports
from blocks.core.folded import unfolded
from composer.graph.anatomy import optional_output
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedRepeat
from composer.graph.types import TensorType, each_given
from composer.lower.emit.constructor_trees import Hole
from composer.lower.emit.identifiers import attribute
from composer.lower.emit.scope import ForwardScope, aligned
from composer.lower.emit.statements import Naming, Statement
from composer.lower.passes.node_queries import Key, folded_ports, inline_fields, takes

VARIADIC = re.compile(r"\{xs:([^}]*)\}")
"""In the template of an expression: all values of a variadic port, with what joins them."""


ONE_OF = re.compile(r"\{xs\[(\d+)\]\}(\.dtype)?")
"""In the template of an expression: one of the values of a variadic port, perhaps its dtype alone."""


@dataclass(frozen=True, slots=True)
class CallArgument:
    """One value at an input port of a block."""

    port: str
    mark: str
    """`*` for a port that takes several values, `?` for one that may be left out, else nothing."""
    key: Key
    is_list: bool
    expansion: tuple[int | None, ...]
    """For a block that broadcasts: the axis of the value at each axis of the output; None where it has none."""


def call(scope: ForwardScope, block: TypedBlock) -> Statement:
    """Return the statement of a block."""
    wires = scope.class_.wires[block.name]
    extra = scope.hoisted_arguments(block.name)
    inline = inline_fields(block)
    taken = takes(type(block.part))
    by_name = inline is None and block.part.build(block.sizes) is None
    given = [
        one
        for port, mark in ports(type(block.part)).items()
        if (port in taken or not by_name) and port in wires and port not in extra
        for one in _at_port(scope, block, port, mark, wires[port].refs)
    ]
    uses = [one.key for one in given] + [scope.key(ref) for ref in extra.values()]
    write = _module(scope, block, given, extra) if inline is None else _expression(scope, block, given, inline)
    outputs = [name.rstrip("?") for name in (block.outputs or ("y",))]
    wanted = returned_names(block)
    results = [key if (key := (block.name, outputs.index(name), None)) in scope.read else None for name in wanted]
    return Statement(results, uses, write, block.node.name_span, block.name)


def returned_names(block: TypedBlock) -> list[str]:
    """Return the outputs that the forward of a block returns, in their order."""
    first, *others = [name.rstrip("?") for name in (block.outputs or ("y",))]
    return [first, *(name for name in others if name in block.node.requested_outputs or not optional_output(block, name))]


def _at_port(scope: ForwardScope, block: TypedBlock, port: str, mark: str, refs: Sequence[Ref]) -> Iterator[CallArgument]:
    """Yield the values at one port; a list is one of them."""
    place = 0
    for ref in refs:
        key = scope.key(ref)
        several = scope.graph.inputs[key[0]] if scope.is_list(key) else None
        if isinstance(several, tuple):
            yield CallArgument(port, mark, key, True, ())
            place += len(several)
        else:
            yield CallArgument(port, mark, key, False, block.expansions[place] if block.expansions and mark == "*" else ())
            place += 1


def _expression(
    scope: ForwardScope, block: TypedBlock, given: Sequence[CallArgument], inline: Sequence[str]
) -> Callable[[Naming], str]:
    template = block.part.inline(block.sizes)
    assert template is not None
    fields = {name: scope.class_.template[f"{block.name}:{name}"] for name in inline}
    lists = any(one.is_list for one in given)
    math = lists and (joiner := VARIADIC.search(template)) is not None and joiner[1].strip() == "*"
    if math:
        scope.classes.copied.imports.add("import math")

    def write(name: Naming) -> str:
        if lists:
            texts = [f"*{name(one.key)}" if one.is_list else name(one.key) for one in given]
            return f"{'math.prod' if math else 'sum'}([{', '.join(texts)}])"
        texts = [name(one.key) + aligned(one.expansion) for one in given]
        text = VARIADIC.sub(lambda match: match[1].join(texts), template)
        names = [name(one.key) for one in given]
        text = ONE_OF.sub(lambda match: f"{names[int(match[1])]}.dtype" if match[2] else texts[int(match[1])], text)
        text = text.replace("{self}", attribute(block.name))
        for field, tree in fields.items():
            own = f"self._{block.name.replace('.', '_')}_{field}"
            text = text.replace(f"{{{field}}}", own if isinstance(tree, Hole) else tree.text())
        return text.replace("{x}", texts[0])

    return write


def _module(
    scope: ForwardScope, block: TypedBlock, given: Sequence[CallArgument], extra: Mapping[str, Ref]
) -> Callable[[Naming], str]:
    marks = {one.mark for one in given}
    folds, count = folded_ports(block), len(block.leading)
    types = [type_ for name, type_ in block.outputs.items() if name in returned_names(block)]
    unfolds = count and isinstance(types[0], TensorType) and types[0].axes[:count] == block.leading
    several = scope.classes.copied.function(unfolded) if unfolds and len(types) > 1 else ""
    added = [one for one in each_given(block.inputs) if isinstance(one, TensorType)] if block.expansions else []
    stretched = any(one.sizes != whole.sizes for whole in types[:1] for one in added if isinstance(whole, TensorType))

    def write(name: Naming) -> str:
        texts = []
        leading = True
        for one in given:
            text = name(one.key) + aligned(one.expansion)
            text += f".flatten(0, {count - 1})" if one.port in folds else ""
            leading = leading and one.mark in ("", "*") and not (one.mark == "" and "*" in marks)
            texts.append(f"*{text}" if one.is_list else text if leading else f"{one.port}={text}")
        if stretched:
            texts = [f"*torch.broadcast_tensors({', '.join(texts)})"]
        texts = _spread(scope, texts, [one.key for one in given])
        texts += [f"{word}={name(scope.key(ref))}" for word, ref in extra.items()]
        module = not scope.classes.constructors.is_plain(block)
        text = f"{attribute(block.name, module=module)}({', '.join(texts)})"
        if not unfolds:
            return text
        shape = f"{name(given[0].key)}.shape[:{count}]"
        return f"{several}({text}, {shape})" if several else f"{text}.unflatten(0, {shape})"

    return write


def _spread(scope: ForwardScope, texts: list[str], keys: list[Key]) -> list[str]:
    """Return the arguments, with outputs of all passes of a repeat, in their order, as one: `*layers_y`."""
    found: list[str] = []
    while texts:
        node = scope.graph.by_name.get(keys[0][0]) if keys else None
        count = len(node.passes) if isinstance(node, TypedRepeat) else 0
        kept = texts[0].removesuffix("[0]")
        whole = count > 1 and texts[:count] == [f"{kept}[{index}]" for index in range(count)]
        found.append(f"*{kept}" if whole else texts[0])
        texts, keys = texts[count if whole else 1 :], keys[count if whole else 1 :]
    return found
