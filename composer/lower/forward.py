"""The calls of one graph, as statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from blocks.core import leave, ports, resume
from composer.graph.ir import Ref
from composer.graph.renewal import SUFFIX
from composer.graph.typed import TypedBlock, TypedGroup, TypedNode, TypedRepeat, TypedScan, is_renewal
from composer.lower.construct import Hole, pattern
from composer.lower.keepers import goes_on, writes_along
from composer.lower.names import STREAM, attribute, safe
from composer.lower.questions import inline_fields, key_of, optional_output, takes, wires_of
from composer.lower.shared import modules_of
from composer.lower.statements import Key, Loop, Statement, Steps

if TYPE_CHECKING:
    from composer.lower.skeleton import Class, Classes, Instance


class Forward:
    """The statements of one graph."""

    def __init__(self, classes: Classes, written: Class, instance: Instance, names: Mapping[str, str]) -> None:
        self.classes, self.written, self.instance, self.names = classes, written, instance, names
        self.graph, self.hoisted = instance.graph, instance.hoisted
        self.prepared: set[str] = set()
        self.statements: list[Statement] = []
        self.read = self._read()

    def all(self) -> list[Statement]:
        for node in self.graph.nodes:
            if node.node.dropped:
                continue
            match node:
                case TypedBlock() if is_renewal(node):
                    self._renewal(node)
                case TypedBlock():
                    self._block(node)
                case TypedGroup():
                    self._group(node)
                case TypedScan():
                    self._scan(node)
                case TypedRepeat():
                    self._repeat(node)
        return self.statements

    def _read(self) -> set[Key]:
        """Every value of this graph that something reads."""
        read = {key_of(self.graph, ref) for _, ref in self.graph.graph.outputs}
        if self.graph is self.classes.typed.root:
            read |= {(name, 0, None) for name in self.classes.typed.program.losses.values()}
        for node in self.graph.nodes:
            wires = self.written.wires[node.name].values() if isinstance(node, TypedBlock) else wires_of(node)
            itself = isinstance(node, TypedRepeat)  # which pass it reads of itself is the loop's own business
            read.update(key_of(self.graph, ref) for wire in wires for ref in wire.refs if not (itself and ref.node == node.name))
        return read

    def _key(self, ref: Ref) -> Key:
        if ref.node in self.hoisted.local or ref.node in self.hoisted.inputs:
            return (ref.node, 0, None)
        return key_of(self.graph, ref)

    def _ready(self, refs: Sequence[Ref], reader: TypedNode) -> None:
        """Prepares what is hoisted to this graph before its first use."""
        for ref in refs:
            need = self.hoisted.local.get(ref.node)
            if need is None or ref.node in self.prepared:
                continue
            self.prepared.add(ref.node)
            sources = [*need.arguments, *(source for _, source in need.keywords)]
            self._ready([s for s in sources if isinstance(s, Ref)], reader)
            keys = [self._key(s) for s in sources if isinstance(s, Ref)]
            count, target = len(need.arguments), attribute(ref.node)
            words = [name for name, _ in need.keywords]

            def write(
                name: Callable[[Key], str],
                keys: list[Key] = keys,
                count: int = count,
                words: list[str] = words,
                target: str = target,
            ) -> str:
                values = [name(key) for key in keys]
                given = [*values[:count], *(f"{word}={value}" for word, value in zip(words, values[count:], strict=True))]
                return f"{target}.prepare({', '.join(given)})"

            note = f"{reader.name}, preparing its {need.label}"
            self.statements.append(Statement([(ref.node, 0, None)], keys, write, reader.node.name_span, note, name=ref.node))

    def _block(self, block: TypedBlock) -> None:
        wires, place = self.written.wires[block.name], block.node.name_span
        extra = dict(self.hoisted.arguments.get(block.name, {}))
        self._ready(list(extra.values()), block)
        marks = ports(type(block.part))
        given: list[tuple[str, str, Key, bool]] = []
        for port, mark in marks.items():
            for ref in wires[port].refs if port in wires else ():
                given.append((port, mark, self._key(ref), self._is_list(self._key(ref))))
        taken = takes(type(block.part))
        given = [
            item
            for item in given
            if item[0] in taken or block.part.build(block.sizes) is not None or inline_fields(block) is not None
        ]
        uses = [key for _, _, key, _ in given] + [self._key(ref) for ref in extra.values()]
        write = self._inline(block, given) if inline_fields(block) is not None else self._call(block, given, extra)
        outputs = [name.rstrip("?") for name in (block.outputs or ("y",))]
        wanted = [outputs[0], *(name for name in outputs[1:] if name in block.node.wanted or not optional_output(block, name))]
        gives = [key if (key := (block.name, outputs.index(name), None)) in self.read else None for name in wanted]
        self.statements.append(Statement(gives, uses, write, place, block.name))

    def _renewal(self, block: TypedBlock) -> None:
        key, state = self._key(block.node.wires[0].refs[0]), block.name.removesuffix(SUFFIX)

        def write(name: Callable[[Key], str]) -> str:
            return f"{attribute(state)}.renew({name(key)})"

        self.statements.append(Statement([], [key], write, block.node.name_span, state))

    def _inline(self, block: TypedBlock, given: list[tuple[str, str, Key, bool]]) -> Callable[[Callable[[Key], str]], str]:
        template = block.part.inline()
        assert template is not None
        fields = {name: self.written.template[f"{block.name}:{name}"] for name in inline_fields(block) or ()}

        def write(name: Callable[[Key], str]) -> str:
            texts = []
            for position, (_, _, key, many) in enumerate(given):
                text = name(key)
                places = block.expansions[position] if block.expansions and not any(m for *_, m in given) else ()
                texts.append(f"*{text}" if many else text + _index(places))
            if any(text.startswith("*") for text in texts):
                joiner = re.search(r"\{xs:([^}]*)\}", template)
                assert joiner is not None
                operator = {"+": "sum", "*": "math.prod"}[joiner.group(1).strip()]
                if operator == "math.prod":
                    self.classes.pasted.imports.add("import math")
                return f"{operator}([{', '.join(texts)}])" if operator == "sum" else f"math.prod([{', '.join(texts)}])"
            text = re.sub(r"\{xs:([^}]*)\}", lambda m: m.group(1).join(texts), template)
            for field, tree in fields.items():
                text = text.replace(
                    f"{{{field}}}", tree.text() if not isinstance(tree, Hole) else f"self._{block.name.replace('.', '_')}_{field}"
                )
            return text.replace("{x}", texts[0])

        return write

    def _call(
        self, block: TypedBlock, given: list[tuple[str, str, Key, bool]], extra: Mapping[str, Ref]
    ) -> Callable[[Callable[[Key], str]], str]:
        def write(name: Callable[[Key], str]) -> str:
            texts = []
            leading, marks = True, {mark for _, mark, _, _ in given}
            for position, (port, mark, key, many) in enumerate(given):
                text = name(key)
                if block.expansions and not many and mark == "*":
                    text += _index(block.expansions[position])
                leading = leading and mark in ("", "*") and not (mark == "" and "*" in marks)
                texts.append(f"*{text}" if many else text if leading else f"{port}={text}")
            if block.expansions and any(None in places for places in block.expansions):
                texts = [f"*torch.broadcast_tensors({', '.join(texts)})"]
            texts = self._spread(texts, [key for _, _, key, _ in given])
            texts += [f"{word}={name(self._key(ref))}" for word, ref in extra.items()]
            module = not self.classes.constructors.is_plain(block)
            return f"{attribute(block.name, module=module)}({', '.join(texts)})"

        return write

    def _spread(self, texts: list[str], keys: list[Key]) -> list[str]:
        """Arguments, those that are what all passes of a repeat returned written as one: `*layers_y`."""
        found: list[str] = []
        while texts:
            node = self.graph.by_name.get(keys[0][0]) if keys else None
            count = len(node.passes) if isinstance(node, TypedRepeat) else 0
            kept = texts[0].removesuffix("[0]")
            if count > 1 and texts[:count] == [f"{kept}[{index}]" for index in range(count)]:
                found.append(f"*{kept}")
                texts, keys = texts[count:], keys[count:]
            else:
                found.append(texts[0])
                texts, keys = texts[1:], keys[1:]
        return found

    def _group(self, group: TypedGroup) -> None:
        wires = {wire.port: wire.refs for wire in group.node.wires}
        extra = self.hoisted.arguments[group.name]
        self._ready(list(extra.values()), group)
        inner = self.classes.instances[id(group.graph), id(self.hoisted.inner[group.name])]
        arguments = self._arguments(inner, {**wires, **{name: (ref,) for name, ref in extra.items()}})
        gives = [key if (key := (group.name, i, None)) in self.read else None for i in range(len(group.graph.graph.outputs))]
        uses = [key for _, keys, _ in arguments for key in keys]

        def write(name: Callable[[Key], str]) -> str:
            return f"{attribute(group.name)}({', '.join(self._text(a, name) for a in arguments)})"

        self.statements.append(Statement(gives, uses, write, group.node.name_span, group.name))

    def _arguments(self, inner: Instance, given: Mapping[str, Sequence[Ref]]) -> list[tuple[str, list[Key], bool]]:
        """For each parameter of the class: its keyword (nothing where it stands in its place), its values, and whether it is a
        list.
        """
        always, sometimes = self.classes.inputs(self.classes.by_key[inner.key])
        many = {item.name for item in inner.graph.graph.inputs if item.many}
        found = [("", [self._key(ref) for ref in given.get(name, ())], name in many) for name in always]
        names: list[str] = []
        for position, name in enumerate([*always, *sometimes]):
            names.append(safe(STREAM[0] if position == 0 and name == "input" else name, names))
        found += [
            (names[len(always) + i], [self._key(ref) for ref in given[name]], name in many)
            for i, name in enumerate(sometimes)
            if given.get(name)
        ]
        return found

    def _text(self, argument: tuple[str, list[Key], bool], name: Callable[[Key], str]) -> str:
        word, keys, many = argument
        texts = [f"*{name(key)}" if self._is_list(key) else name(key) for key in keys]
        text = f"[{', '.join(texts)}]" if many else texts[0] if texts else "None"
        return f"{word}={text}" if word else text

    def _is_list(self, key: Key) -> bool:
        """Whether a value is a list that the graph is given, such as a range of passes."""
        return isinstance(self.graph.inputs.get(key[0]), tuple) and key[0] not in self.graph.by_name

    # -- scans

    def _scan(self, scan: TypedScan) -> None:
        """A loop over the steps of what is walked, with what is carried in variables of its own."""
        wires = {wire.port: wire.refs for wire in scan.node.wires}
        extra = self.hoisted.arguments[scan.name]
        self._ready(list(extra.values()), scan)
        inner = self.classes.instances[id(scan.graph), id(self.hoisted.inner[scan.name])]
        own: dict[str, Key] = {port: (f"{scan.name}:{port}", 0, None) for port in (*scan.steps, *scan.carried)}
        inside = {**wires, **{name: (ref,) for name, ref in extra.items()}, **{p: (Ref(key[0]),) for p, key in own.items()}}
        arguments = self._arguments(inner, inside)
        outputs = [name for name, _ in scan.graph.graph.outputs]
        sources = {port: self._key(wires[port][0]) for port in (*scan.steps, *scan.carried)}
        whole = [key for _, keys, _ in arguments for key in keys if key not in own.values()]
        gives = [key if (key := (scan.name, i, None)) in self.read else None for i in range(len(outputs))]
        first, place = next(iter(scan.steps.items()))
        remembers = goes_on(scan, writes_along(self.classes.typed))
        module = attribute(scan.name)

        def walk(name: Callable[[Key], str]) -> list[str]:
            rows = []
            for port, axis in scan.steps.items():
                row = f"{name(sources[port])}.unbind({axis})"
                if getattr(scan.graph.inputs[port], "optional", False):
                    row = f"[None] * {name(sources[first])}.shape[{place}] if {name(sources[port])} is None else {row}"
                rows.append(row)
            return rows

        def start(port: str, name: Callable[[Key], str]) -> str:
            text = name(sources[port])
            if lacking := scan.widened[port]:
                before = ", ".join(f"{name(sources[first])}.shape[{axis}]" for axis in range(lacking))
                text = f"{text}.expand({before}, *{text}.shape)"
            return f"{self.classes.pasted.function(resume)}({module}, {port!r}, {text})" if remembers else text

        def end(name: Callable[[Key], str]) -> str:
            states = ", ".join(f"{port}={name(own[port])}" for port in scan.carried)
            return f"{self.classes.pasted.function(leave)}({module}, {name(sources[first])}.shape[{place}], {states})"

        def call(name: Callable[[Key], str]) -> str:
            return f"{module}({', '.join(self._text(a, name) for a in arguments)})"

        steps = Steps(
            {own[port]: "x_t" if port == "input" else f"{port}_t" for port in scan.steps},
            walk,
            {own[port]: (port, outputs.index(output)) for port, output in scan.carried.items()},
            start,
            call,
            outputs,
            scan.place,
            end if remembers else None,
        )
        uses = [*sources.values(), *whole]
        self.statements.append(Statement(gives, uses, call, scan.node.name_span, scan.name, steps=steps))

    # -- repeats

    def _repeat(self, repeat: TypedRepeat) -> None:
        place, modules = repeat.node.name_span, modules_of(repeat)
        given = []
        inners = []
        for index, (one, graph) in enumerate(zip(repeat.node.passes, repeat.passes, strict=True)):
            extra = self.hoisted.arguments[f"{repeat.name}[{index}]"]
            self._ready(list(extra.values()), repeat)
            inners.append(self.classes.instances[id(graph), id(self.hoisted.inner[f"{repeat.name}[{index}]"])])
            given.append({**{wire.port: wire.refs for wire in one.wires}, **{name: (ref,) for name, ref in extra.items()}})
        loop = self._loop(repeat, inners, given)
        if loop is not None:
            self.statements.append(loop)
            return
        read = self.read | {self._key(ref) for one in repeat.node.passes for wire in one.wires for ref in wire.refs}
        for index, inner in enumerate(inners):
            arguments = self._arguments(inner, given[index])
            uses = [key for _, keys, _ in arguments for key in keys]
            count = len(inner.graph.graph.outputs)
            gives = [key if (key := (repeat.name, i, index)) in read else None for i in range(count)]

            def write(name: Callable[[Key], str], arguments: Any = arguments, index: int = index) -> str:
                return f"{attribute(modules[index])}({', '.join(self._text(a, name) for a in arguments)})"

            self.statements.append(Statement(gives, uses, write, place, repeat.name))

    def _loop(
        self, repeat: TypedRepeat, inners: Sequence[Instance], given: Sequence[Mapping[str, Sequence[Ref]]]
    ) -> Statement | None:
        """All passes as one loop, where each input is carried, the same for all, or one of several from outside."""
        count = len(inners)
        outputs = [name for name, _ in inners[0].graph.graph.outputs]
        signatures = [self.classes.inputs(self.classes.by_key[inner.key]) for inner in inners]
        if (
            count < 2
            or any([n for n, _ in i.graph.graph.outputs] != outputs for i in inners)
            or any(s != signatures[0] for s in signatures)
        ):
            return None
        always, sometimes = signatures[0]
        many = {item.name for item in inners[0].graph.graph.inputs if item.many}
        carried: dict[str, int] = {}
        same: dict[str, Sequence[Ref]] = {}
        varying: dict[str, list[Ref | None]] = {}
        history: dict[str, tuple[int, str]] = {}
        for name in [*always, *sometimes]:
            refs = [one.get(name, ()) for one in given]
            own = [[key_of(self.graph, ref) for ref in r if ref.node == repeat.name] for r in refs]
            if name in many:
                shown = {key[1] for keys in own for key in keys}
                if len(shown) > 1 or any(
                    [k[2] for k in own[i]] != list(range(i)) or len(own[i]) != len(refs[i]) for i in range(count)
                ):
                    return None
                history[name] = (next(iter(shown), 0), "all")
            elif not any(own):
                if all(r == refs[0] for r in refs):
                    same[name] = refs[0]
                else:
                    varying[name] = [r[0] if r else None for r in refs]
            elif (
                not own[0]
                and refs[0]
                and all(len(own[i]) == 1 and own[i][0][2] == i - 1 for i in range(1, count))
                and len({k[0][1] for k in own[1:]}) == 1
            ):
                carried[name] = own[1][0][1]
            elif (
                not refs[0]
                and all(len(own[i]) == 1 and own[i][0][2] == i - 1 for i in range(1, count))
                and len({k[0][1] for k in own[1:]}) == 1
            ):
                history[name] = (own[1][0][1], "last")
            else:
                return None
        if len(set(carried.values())) != len(carried):
            return None
        needed = {key for key in self.read if key[0] == repeat.name}
        collect = {index for index, _ in history.values()}
        collect |= {key[1] for key in needed if key[2] != count - 1 or key[1] not in carried.values()}
        last = repeat.name.rpartition(".")[2]
        suffixes = [re.sub(r"\W", "_", outputs[i]) or "passes" for i in sorted(collect)]
        collected = [
            (i, safe(f"{last}_{suffix}", self.names.values())) for i, suffix in zip(sorted(collect), suffixes, strict=True)
        ]
        lists = dict(collected)
        order = list(carried)
        loop_names = {name: safe(f"each_{name}", self.names.values()) for name in varying}

        row_names = {name: safe(f"{name}s", self.names.values()) for name in varying}

        def rows(name: Callable[[Key], str]) -> list[tuple[str, str]]:
            return [
                (row_names[key], pattern(["None" if ref is None else name(self._key(ref)) for ref in refs]))
                for key, refs in varying.items()
            ]

        modules = modules_of(repeat)
        alone = attribute(repeat.name) if len({*modules}) == 1 else ""  # the module of all passes, where there is one

        def header(module: str) -> str:
            walked = attribute(repeat.name) if repeat.node.share is None else pattern(list(map(attribute, modules)))
            targets, sources = [module] * (not alone), [walked] * (not alone)
            targets, sources = [*targets, *loop_names.values()], [*sources, *row_names.values()]
            if not targets:
                return f"for _ in range({count}):"
            together = sources[0] if len(sources) == 1 else f"zip({', '.join(sources)})"
            return f"for {', '.join(targets)} in {together}:"

        names: list[str] = []
        for position, key in enumerate([*always, *sometimes]):
            names.append(safe(STREAM[0] if position == 0 and key == "input" else key, names))

        def call(name: Callable[[Key], str], module: str, current: dict[Key, str]) -> str:
            texts = []
            for position, key in enumerate([*always, *sometimes]):
                if key in carried:
                    text = current[repeat.name, carried[key], count - 1]
                elif key in varying:
                    text = loop_names[key]
                elif key in history:
                    kept = lists[history[key][0]]
                    text = kept if history[key][1] == "all" else f"{kept}[-1] if {kept} else None"
                elif same[key]:
                    text = name(self._key(same[key][0]))
                else:
                    text = "None"
                texts.append(text if key in always else f"{names[position]}={text}")
            return f"{alone or module}({', '.join(texts)})"

        uses = [self._key(ref) for name in order for ref in given[0][name]]
        uses += [self._key(ref) for refs in same.values() for ref in refs]
        uses += [self._key(ref) for refs in varying.values() for ref in refs if ref is not None]
        pairs = [(self._key(given[0][name][0]), (repeat.name, carried[name], count - 1)) for name in order]
        indices = [carried[name] for name in order]
        singular = last[:-1] if last.endswith("s") and len(last) > 2 else f"{last}_pass"
        loop = Loop(rows, header, singular, pairs, call, len(outputs), indices, collected)
        return Statement(sorted(needed), uses, lambda name: "", repeat.node.name_span, repeat.name, loop)


def _index(places: tuple[int | None, ...]) -> str:
    """`[:, None]`: new axes where a value lacks them."""
    if None not in places:
        return ""
    trimmed = list(places)
    while trimmed and trimmed[-1] is not None:
        trimmed.pop()
    kept = [":" if place is not None else "None" for place in trimmed]
    first = next((i for i, item in enumerate(kept) if item == ":"), len(kept))
    if first == len(kept) and len(trimmed) < len(places):
        return "" if all(item == "None" for item in kept) else f"[{', '.join(kept)}]"
    return f"[{', '.join(kept)}]" if ":" in kept else ""
