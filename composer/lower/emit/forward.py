"""The statements of a graph's forward, and with them the inputs that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from composer.graph.ir import Ref
from composer.graph.state_update import SUFFIX
from composer.graph.typed import TypedBlock, TypedGroup, TypedNode, TypedRepeat, TypedScan, is_renewal
from composer.lower.emit.calls import call
from composer.lower.emit.identifiers import attribute
from composer.lower.emit.loops import loop
from composer.lower.emit.scan_loops import scan
from composer.lower.emit.scope import Argument, ForwardScope, Signature
from composer.lower.emit.skeletons import Class, Classes
from composer.lower.emit.statements import Naming, Statement
from composer.lower.passes.hoist import pass_names
from composer.lower.passes.node_queries import Key, key_of
from composer.lower.passes.shared_weights import modules_of


def signatures(classes: Classes, inner_first: Iterable[Class]) -> dict[Class, Signature]:
    """Return what the forward of each class takes, given classes after those that they call."""
    found: dict[Class, Signature] = {}
    for class_ in inner_first:
        found[class_] = _signature(ForwardScope(classes, class_, found, {}))
    return found


def _signature(scope: ForwardScope) -> Signature:
    """Return the inputs that the statements use; the inputs of a mask, for one, are used where the mask is prepared."""
    used = {key[0] for statement in forward(scope) for key in statement.uses}
    used |= {key_of(scope.graph, ref)[0] for _, ref in scope.graph.graph.outputs}
    lists = [
        [name for name in (*(item.name for item in one.graph.graph.inputs), *one.hoisted.inputs) if name in used]
        for one in scope.class_.instances
    ]
    required = tuple(name for name in lists[0] if all(name in names for names in lists))
    anywhere = dict.fromkeys(name for names in lists for name in names)
    return Signature(required, tuple(name for name in anywhere if name not in required))


def forward(scope: ForwardScope) -> list[Statement]:
    """Return the statements of all nodes in the order of the graph, each after the preparation of what is hoisted for it."""
    statements: list[Statement] = []
    prepared: set[str] = set()
    for node in scope.graph.nodes:
        for module in pass_names(node) if isinstance(node, TypedRepeat) else [node.name]:
            statements += _preparations(scope, scope.hoisted_arguments(module).values(), node, prepared)
        statements += _node(scope, node)
    return statements


def _preparations(scope: ForwardScope, refs: Iterable[Ref], reader: TypedNode, prepared: set[str]) -> Iterator[Statement]:
    """Yield the calls of `prepare` for hoisted values that are not `prepared` yet, sources first."""
    for ref in refs:
        need = scope.hoisted.local.get(ref.node)
        if need is None or ref.node in prepared:
            continue
        prepared.add(ref.node)
        sources = [source for source in need.sources if isinstance(source, Ref)]
        yield from _preparations(scope, sources, reader, prepared)
        keys = [scope.key(source) for source in sources]
        heads = [""] * len(need.arguments) + [f"{word}=" for word, _ in need.keywords]

        def write(name: Naming, keys: list[Key] = keys, heads: list[str] = heads, target: str = attribute(ref.node)) -> str:
            return f"{target}.prepare({', '.join(head + name(key) for head, key in zip(heads, keys, strict=True))})"

        note = f"{reader.name}, preparing its {need.label}"
        yield Statement([(ref.node, 0, None)], keys, write, reader.node.name_span, note, name=ref.node)


def _node(scope: ForwardScope, node: TypedNode) -> Sequence[Statement]:
    match node:
        case TypedBlock() if is_renewal(node):
            return [_renewal(scope, node)]
        case TypedBlock():
            return [call(scope, node)]
        case TypedGroup():
            return [_group(scope, node)]
        case TypedScan():
            return scan(scope, node)
        case TypedRepeat():
            return _repeat(scope, node)
        case _:
            assert_never(node)


def _renewal(scope: ForwardScope, block: TypedBlock) -> Statement:
    key, state = scope.key(block.node.wires[0].refs[0]), block.name.removesuffix(SUFFIX)
    method = f"{attribute(state)}.renew"
    return Statement([], [key], lambda name: f"{method}({name(key)})", block.node.name_span, state, updates=True)


def _group(scope: ForwardScope, group: TypedGroup) -> Statement:
    given: dict[str, Sequence[Ref]] = {wire.port: wire.refs for wire in group.node.wires}
    given |= {name: (ref,) for name, ref in scope.hoisted_arguments(group.name).items()}
    arguments = scope.arguments(scope.instance_of(group.graph, group.name), given)
    return _module_call(scope, group, group.name, arguments, scope.results(group.name, group.graph))


def _repeat(scope: ForwardScope, repeat: TypedRepeat) -> list[Statement]:
    """Return all passes as one loop, or else one by one."""
    given: list[Mapping[str, Sequence[Ref]]] = []
    inners = []
    for name, one, graph in zip(pass_names(repeat), repeat.node.passes, repeat.passes, strict=True):
        inners.append(scope.instance_of(graph, name))
        hoisted = {name: (ref,) for name, ref in scope.hoisted_arguments(name).items()}
        given.append({**{wire.port: wire.refs for wire in one.wires}, **hoisted})
    if (together := loop(scope, repeat, inners, given)) is not None:
        return [together]
    own = {scope.key(ref) for one in repeat.node.passes for wire in one.wires for ref in wire.refs}
    return [
        _module_call(
            scope, repeat, module, scope.arguments(inner, given[index]), scope.results(repeat.name, inner.graph, index, own)
        )
        for index, (module, inner) in enumerate(zip(modules_of(repeat), inners, strict=True))
    ]


def _module_call(
    scope: ForwardScope, node: TypedNode, module: str, arguments: Sequence[Argument], results: Sequence[Key | None]
) -> Statement:
    def write(name: Naming) -> str:
        return f"{attribute(module)}({', '.join(scope.text(argument, name) for argument in arguments)})"

    uses = [key for argument in arguments for key in argument.keys]
    return Statement(results, uses, write, node.node.name_span, node.name)
