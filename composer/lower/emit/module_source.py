"""Typed graph to Python source: a module that imports nothing but torch, with a class for each kind of graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from keyword import iskeyword
from pathlib import PurePath
from types import MappingProxyType

from composer.graph.anatomy import wires_of
from composer.graph.dims import Dim
from composer.graph.flatten import flatten
from composer.graph.parameters import parameters
from composer.graph.passes.adapt import MATRICES
from composer.graph.scans.hoist_steps import hoist_steps
from composer.graph.typed import TypedProgram
from composer.graph.types import TensorType
from composer.lower.emit.block_source import HEADER, LORA, TIED, docstring
from composer.lower.emit.constructor_trees import Hole, New, literal, pretty, together, trim
from composer.lower.emit.containers import bound_containers
from composer.lower.emit.forward import forward, signatures
from composer.lower.emit.identifiers import attribute, one_line, safe
from composer.lower.emit.scope import ForwardScope
from composer.lower.emit.skeletons import Class, Classes
from composer.lower.emit.statements import LOSSES, LossValue, SourceLines, StatementWriter
from composer.lower.model import Module
from composer.lower.passes.fixed_nodes import outputs_left_out
from composer.lower.passes.node_queries import is_optional, key_of
from composer.lower.passes.shared_weights import copies

ALWAYS_IMPORTED = {
    *(
        "import torch",
        "import torch.nn as nn",
        "import torch.nn.functional as F",
        "from torch import nn",
        "from torch import Tensor",
    ),
    *("from typing import Any", "from typing import NamedTuple"),
}
"""Imports that stand at the head of every generated module, as a block may write them."""


def lower(typed: TypedProgram) -> Module:
    """Return the source of a typed recipe's module."""
    return _ModuleWriter(typed).module()


class _ModuleWriter:
    def __init__(self, typed: TypedProgram) -> None:
        self.program = typed
        self.classes = Classes(hoist_steps(flatten(typed)))
        *self.inner, self.top = self.classes.all()
        self.signatures = signatures(self.classes, self.inner)

    def module(self) -> Module:
        table = parameters(self.program)
        owners = {entry.name: entry.owner for entry in table}
        ties = tuple((entry.name, entry.tied_to) for entry in table if entry.tied_to)
        ties += tuple((copy, owners.get(name, name)) for copy, name in copies(self.program.root))
        frozen = tuple(entry.name for entry in table if not entry.trainable and not entry.tied_to)
        fields = self._fields()
        sources = [self._class(class_, self._forward(class_), (), ()) for class_ in self.inner]
        sources.append(self._class(self.top, self._root_forward(self.top, fields), ties, frozen))
        header = HEADER + TIED * bool(ties) + LORA * self.classes.copied.adapters
        text, lines = self._text(sources, fields, header)
        return Module(text, self.top.name, lines, ties, frozen, fields)

    def _fields(self) -> tuple[tuple[str, str], ...]:
        """Return the fields of the named tuple, each with the name of the recipe's output."""
        taken: list[str] = []
        for name, _ in self.program.root.graph.outputs:
            given = name.replace(".", "_") or "output"
            while iskeyword(given) or hasattr(tuple, given) or given in ("losses", *taken):
                given += "_"
            taken.append(given)
        return tuple(zip(taken, (name for name, _ in self.program.root.graph.outputs), strict=True))

    def _forward(self, class_: Class) -> SourceLines:
        signature = self.signatures[class_]
        names = signature.parameters
        taken = [*(names[name] for name in signature.required), *(f"{names[name]}=None" for name in signature.optional)]
        body = self._body(class_, names, keep=False, result=lambda texts: ", ".join(texts))
        return [
            (f"def forward({', '.join(['self', *taken])}):", None, ""),
            *((f"    {line}", span, node) for line, span, node in body),
        ]

    def _root_forward(self, class_: Class, fields: Sequence[tuple[str, str]]) -> SourceLines:
        declared = self.program.untyped.inputs
        names: dict[str, str] = {}
        for item in declared:
            names[item.name] = safe(item.name, names.values())
        required = [names[i.name] for i in declared if not i.optional and i.default is None]
        others = [f"{names[i.name]}=None" for i in declared if i.optional or i.default is not None]
        keyword = [names[i.name] for i in declared]
        in_order = keyword[: len(required)] == required
        signature = ", ".join(["self", *required, *others]) if in_order else ", ".join(["self", *(f"{n}=None" for n in keyword)])
        lines: SourceLines = [(f"def forward({signature}):", None, "")]
        lines += [(f"    {line}", None, "") for line in self._defaults(names)]

        losses, held = self._losses(), "{}"
        if losses:
            held = names[LOSSES[0]] = safe("losses", names.values())

        left_out = outputs_left_out(self.program.root)

        def result(texts: Sequence[str]) -> str:
            given = [
                f"{name}={text} if self.cache is None else None" if output in left_out else f"{name}={text}"
                for (name, output), text in zip(fields, texts, strict=True)
            ]
            return f"Output({', '.join(given)}, losses={held})"

        body = self._body(class_, names, keep=True, result=result, losses=losses, left_out=left_out)
        return [*lines, *((f"    {line}", span, node) for line, span, node in body)]

    def _losses(self) -> dict[str, LossValue]:
        """Return the recipe's own losses, by their nodes."""
        root, found = self.classes.program.root, {}
        for name, node in self.program.untyped.losses.items():
            wires = [wire for wire in wires_of(root.graph[node]) if not is_optional(root[node], wire.port)]
            read = [ref.node for wire in wires for ref in wire.refs]
            optional = [one for one in dict.fromkeys(read) if one in self.program.inputs and self.program.inputs[one].optional]
            found[node] = LossValue(name, (node, 0, None), [(one, 0, None) for one in optional])
        return found

    def _defaults(self, names: Mapping[str, str]) -> list[str]:
        """Return the lines that give inputs their defaults, in the shape of inputs that are always given."""
        lines = []
        types, defaults = self.program.inputs, self.program.defaults
        given = {name: type_ for name, type_ in types.items() if not type_.optional and name not in defaults}
        of_model = "next(self.parameters()).dtype" if parameters(self.program) else "torch.get_default_dtype()"
        for item, value in defaults.items():
            type_, name, first = types[item], names[item], names[next(iter(given))]
            sizes = ", ".join(_length(size, given, names) for size in type_.sizes)
            dtype = {"int": "torch.long", "bool": "torch.bool", "float": of_model}[type_.dtype]
            made = f"torch.full(({sizes},), {literal(value)}, dtype={dtype}, device={first}.device)"
            lines += [f"if {name} is None:", f"    {name} = {made}"]
        return lines

    def _body(
        self,
        class_: Class,
        names: Mapping[str, str],
        *,
        keep: bool,
        result: Callable[[Sequence[str]], str],
        losses: Mapping[str, LossValue] = MappingProxyType({}),
        left_out: Collection[str] = (),
    ) -> SourceLines:
        graph = class_.instances[0].graph
        statements = forward(ForwardScope(self.classes, class_, self.signatures, names))
        outputs = [key_of(graph, ref) for _, ref in graph.graph.outputs]
        inputs = [((name, 0, None), given) for name, given in names.items()]
        writer = StatementWriter(inputs, keep, outputs)
        skipped = {key_of(graph, ref) for name, ref in graph.graph.outputs if name in left_out}
        return bound_containers(writer.write(statements, lambda name: result([name(key) for key in outputs]), losses, skipped))

    def _class(self, class_: Class, forward: SourceLines, ties: Sequence[tuple[str, str]], frozen: Sequence[str]) -> SourceLines:
        signature = ", ".join(["self", *(name for name, _ in class_.holes)])
        root = class_ is self.top
        base = "Tied" if ties else "nn.Module" if root else "Module"
        lines: SourceLines = [(f"class {class_.name}({base}):", None, "")]
        if root and (doc := self.program.untyped.recipe.doc):
            lines += [*((line, None, "") for line in docstring(doc)), ("", None, "")]
        if class_.carry_is_cached or (root and (self.program.untyped.losses or outputs_left_out(self.program.root))):
            lines += [("    cache = None", None, ""), ("", None, "")]
        if ties:
            lines += [(line, None, "") for line in ("    _ties = {", *(f"        {a!r}: {o!r}," for a, o in ties), "    }", "")]
        lines += [(f"    def __init__({signature}):", None, ""), ("        super().__init__()", None, "")]
        for name, tree in class_.template.items():
            if ":" in name and isinstance(tree, Hole):
                lines.append((f"        self._{re.sub(r'[.:]', '_', name)} = {tree.text()}", None, ""))
        modules = {name: trim(tree, self.classes.copied.defaults) for name, tree in class_.template.items() if ":" not in name}
        for name, tree in together(modules).items():
            first, *rest = pretty(tree, 8)
            module = not (isinstance(tree, New) and tree.function in self.classes.copied.plain)
            lines.append((f"        {attribute(name, module=module)} = {first}", None, ""))
            lines += [(line, None, "") for line in rest]
        if ties:
            lines.append(("        self._tie()", None, ""))
        lines += [(f"        {line}", None, "") for line in self._frozen(frozen)]
        if not class_.is_called:
            return lines
        lines.append(("", None, ""))
        return lines + [(f"    {line}", span, node) for line, span, node in forward]

    def _frozen(self, frozen: Sequence[str]) -> list[str]:
        """Return the lines that freeze parameters; with adapters, which most are without, those that name what is trained."""
        if not (frozen and self.classes.copied.adapters):
            return [f"{attribute(name)}.requires_grad_(False)" for name in frozen]
        whole = [each.name for each in parameters(self.program) if each.trainable and not each.tied_to]
        whole = [name for name in whole if name.rpartition(".")[2] not in MATRICES]
        trained = f'name.rpartition(".")[2] in {literal(MATRICES)}' + (" or name in trained" if whole else "")
        named = ["trained = {", *(f"    {name!r}," for name in whole), "}"] if whole else []
        return [*named, "for name, parameter in self.named_parameters():", f"    parameter.requires_grad_({trained})"]

    def _text(
        self, sources: Sequence[SourceLines], fields: Sequence[tuple[str, str]], header: str
    ) -> tuple[str, Mapping[int, tuple[str, str]]]:
        """Return the text of the module, and for each line that computes a node the node and its place in the recipe."""
        recipe = self.program.untyped.recipe
        head = [
            f'"""{recipe.name}: generated from a recipe; plain torch, nothing else is needed."""',
            "",
            "from __future__ import annotations",
            "",
        ]
        imports = sorted({*self.classes.copied.imports, "from typing import Any, NamedTuple"} - ALWAYS_IMPORTED)
        head += [
            *(line for line in imports if line.startswith("import ")),
            *(line for line in imports if not line.startswith("import ")),
        ]
        head += ["", "import torch", "import torch.nn.functional as F", "from torch import Tensor, nn", ""]
        text = "\n".join(head) + header
        for piece in self.classes.copied.pieces.values():
            text += "\n\n" + piece.strip("\n") + "\n" if not re.match(r"[A-Z_]+ = ", piece) else "\n" + piece
        left_out = outputs_left_out(self.program.root)
        text += (
            "\n\nclass Output(NamedTuple):\n"
            + "".join(f"    {name}: Tensor{' | None' * (output in left_out)}\n" for name, output in fields)
            + "    losses: dict[str, Tensor]\n"
        )
        count = text.count("\n")
        lines: dict[int, tuple[str, str]] = {}
        for source in sources:
            text += "\n\n"
            count += 2
            for line, span, node in source:
                count += 1
                place = ""
                if span is not None and not span.source.name.startswith("<declar"):
                    place = f"{PurePath(span.source.name).name}:{span.line}"
                    lines[count] = (node, f"{span.source.name}:{span.line}")
                    if not span.source.name.startswith("<"):
                        line = f"{line}  # {one_line(place)}"
                text += line + "\n"
        return text, lines


def _length(size: Dim, given: Mapping[str, TensorType], names: Mapping[str, str]) -> str:
    """Return the length of an axis as an expression of inputs that are always given."""
    if isinstance(size, int):
        return str(size)
    name, type_ = next((name, type_) for name, type_ in given.items() if size in type_.sizes)
    return f"{names[name]}.shape[{type_.sizes.index(size)}]"
