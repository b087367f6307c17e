"""The source of blocks, copied with all that it uses, so that it needs nothing but torch."""

from __future__ import annotations

import ast
import inspect
import io
import sys
import textwrap
import tokenize
import types
from collections.abc import Mapping
from typing import Any

from blocks.core import Activation, Part
from blocks.core.lazy import F, nn, torch
from composer.lower.emit.constructor_trees import literal
from composer.lower.emit.part_source import CodeText, NoSource, code_of, part_code
from composer.lower.passes.always import Always
from composer.memo import IdentityKey
from composer.printable import printable

HEADER = '''

class Module(nn.Module):
    """A block: its settings, its weights and the parts in its slots are attributes."""

    cache = None

    def __init__(self, /, **attributes):
        super().__init__()
        for name, value in attributes.items():
            setattr(self, name, value)

    def __getattr__(self, name):
        try:
            return self.__dict__["_modules"][name]  # which torch would look for last
        except KeyError:
            return super().__getattr__(name)

    def extra_repr(self):
        return ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if name[0] != "_" and name != "training")


class Plain:
    """A part without weights: its settings are attributes."""

    cache = None

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"
'''
TIED = '''

class Tied(nn.Module):
    """A model in which parameters or buffers are one tensor; its `state_dict` names each once, under its owner."""

    _ties = {}

    def __init__(self):
        super().__init__()
        self.register_state_dict_post_hook(Tied._drop_aliases)
        self.register_load_state_dict_pre_hook(Tied._add_aliases)
        self.register_load_state_dict_post_hook(Tied._tie)

    def _tie(self, *_):
        for alias, owner in self._ties.items():
            (tensors, name), (others, other) = self._place(alias), self._place(owner)
            tensors[name] = others[other]

    def _place(self, path):
        module, (*above, name) = self, path.split(".")
        for each in above:
            module = module._modules[each]
        return module._parameters if name in module._parameters else module._buffers, name

    def named_modules(self, *args, **kwargs):
        if any(hasattr(tensors.get(name), "placements") for tensors, name in map(self._place, self._ties)):
            self._tie()  # `parallelize_module` forgets them too; whoever asks for parameters finds them tied
        return super().named_modules(*args, **kwargs)

    def _drop_aliases(self, state, prefix, *_):
        for alias in self._ties:
            state.pop(prefix + alias, None)

    def _add_aliases(self, state, prefix, *_):
        for alias, owner in self._ties.items():
            if prefix + owner in state:
                state.setdefault(prefix + alias, state[prefix + owner])

    def _apply(self, *args, **kwargs):
        super()._apply(*args, **kwargs)
        self._tie()  # torch forgets ties where it replaces tensors, as `to_empty` does
        return self
'''
"""The base of a model with ties, which hold through materializing, loading, copying and tensor parallelism."""
LORA_CLASS = "LoRALinear"
LORA = '''

class LoRALinear(nn.Linear):
    """A linear map with a low-rank addition (LoRA): `y = x Wᵀ + b + scale · x Aᵀ Bᵀ`, with A [rank, in] and B [out, rank]."""

    def __init__(self, in_features, out_features, bias=True, *, rank, scale, dropout=0.0):
        super().__init__(in_features, out_features, bias)
        self.scale, self.dropout = scale, dropout
        self.lora_a = nn.Parameter(torch.empty(rank, in_features))
        self.lora_b = nn.Parameter(torch.empty(out_features, rank))

    def forward(self, x):
        read = torch.dropout(x, self.dropout, self.training) if self.dropout else x
        return super().forward(x) + F.linear(F.linear(read, self.lora_a) * self.scale, self.lora_b)

    def extra_repr(self):
        return f"{super().extra_repr()}, rank={self.lora_a.shape[0]}, scale={self.scale}"
'''
SETUP = """    def __init__(self, **attributes):
        super().__init__(**attributes)
        self.setup()
"""
"""The constructor of a part with a method `setup`."""
_PROXIES = {IdentityKey(torch): "torch", IdentityKey(nn): "nn", IdentityKey(F): "F"}
_IMPORTED = frozenset({*sys.stdlib_module_names, "torch"})
"""Packages that an exported file may import; from all others it has copies."""


class CopiedSource:
    """Copied classes, functions and constants by name, each after what it uses; two of one name get two names."""

    def __init__(self, always: Mapping[type[Part], Always]) -> None:
        self.always = always
        """What holds for all blocks of a kind in the model."""
        self.pieces: dict[str, str] = {}
        self.imports: set[str] = set()
        self.names: dict[IdentityKey[Any], str] = {}
        self.attributes: dict[type[Part], frozenset[str]] = {}
        self.defaults: dict[str, Mapping[str, Any]] = {}
        """For each class, the attributes that have a default."""
        self.plain: set[str] = set()
        """Classes that are no torch modules."""
        self.adapters = False
        """Whether any linear map has an adapter."""
        self.taken: set[str] = {
            "torch",
            "nn",
            "F",
            "Any",
            "Module",
            "Plain",
            "Tied",
            "Output",
            "NamedTuple",
            "Tensor",
            LORA_CLASS,
        }

    def part(self, part: type[Part]) -> str:
        """Return the name of a part's class in the generated module."""
        if IdentityKey(part) in self.names:
            return self.names[IdentityKey(part)]
        name = self._claim(part, part.__name__)
        found = part_code(part, self.always.get(part, Always()))
        self.attributes[part] = found.attributes
        renamed: dict[str, str] = {}
        for method in found.methods:
            renamed |= self._uses(method.code, method.known)
        curve = issubclass(part, Activation) and part.weights == {} and "training" not in found.attributes
        base = "Module" if (part.outputs or "output_types" in vars(part)) and not curve else "Plain"
        defaults = self.defaults[name] = found.defaults
        body = ["\n".join(docstring(_summary(part))) + "\n"]
        if defaults:
            body.append("".join(f"    {key} = {literal(value)}\n" for key, value in defaults.items()))
        body += [textwrap.indent(_rename(method.code.text, renamed), "    ") for method in found.methods]
        if any(method.name == "setup" for method in found.methods):
            body.append(SETUP)
        if base == "Plain":
            self.plain.add(name)
        if curve:
            body.append("    __call__ = forward\n")  # as cheap as a function; without weights, torch need not know it
        self.pieces[name] = f"class {name}({base}):\n" + "\n".join(body)
        return name

    def function(self, function: Any) -> str:
        """Return the name of a function in the generated module."""
        return self._global(function.__name__, function)

    def _claim(self, thing: Any, wanted: str) -> str:
        name, count = wanted, 1
        while name in self.taken:
            count += 1
            name = f"{wanted}{count}" if wanted[0].isupper() else f"{wanted}_{count}"
        self.taken.add(name)
        self.names[IdentityKey(thing)] = name
        return name

    def _uses(self, source: CodeText, known: Mapping[str, Any]) -> dict[str, str]:
        """Copy what a function or a class uses, given the globals where it stands; return the names that had to change."""
        renamed: dict[str, str] = {}
        for name in source.reads:
            if name in known and name[:2] != "__" and (given := self._global(name, known[name])) != name:
                renamed[name] = given
        return renamed

    def _global(self, name: str, value: Any) -> str:
        if IdentityKey(value) in _PROXIES:
            return _PROXIES[IdentityKey(value)]
        if IdentityKey(value) in self.names:
            return self.names[IdentityKey(value)]
        if inspect.isclass(value) and issubclass(value, Part):
            return self.part(value)
        if isinstance(value, types.ModuleType):
            self.imports.add(f"import {value.__name__}" if value.__name__ == name else f"import {value.__name__} as {name}")
            return name
        home = getattr(value, "__module__", None) or ""
        function = inspect.unwrap(value) if callable(value) else value
        if home.partition(".")[0] in _IMPORTED:
            original = getattr(value, "__name__", name)
            self.imports.add(f"from {home} import {original}" + ("" if original == name else f" as {name}"))
            return name
        if isinstance(function, types.FunctionType):
            return self._copy(name, value, function.__globals__)
        if inspect.isclass(value):
            return self._copy(name, value, vars(sys.modules[home]))
        if value is None or isinstance(value, bool):
            self.pieces[name] = f"{name} = {value!r}\n"
            return name
        given = self._claim(value, name)
        self.pieces[given] = f"{given} = {_constant(name, value)}\n"
        return given

    def _copy(self, name: str, value: Any, known: Mapping[str, Any]) -> str:
        """Copy a function or a class; return its name in the generated module."""
        given, source = self._claim(value, name), code_of(value)
        renamed = self._uses(source, known)
        self.pieces[given] = _rename(source.text, {**renamed, name: given})
        return given


def _constant(name: str, value: Any) -> str:
    """Return the source of a global value.

    Raises:
        NoSource: for a value that is not plain.
    """
    match value:
        case list() | set():
            inside = ", ".join(_constant(name, item) for item in value)
            return f"[{inside}]" if isinstance(value, list) else f"{{{inside}}}" if value else "set()"
        case dict():
            return f"{{{', '.join(f'{literal(key)}: {_constant(name, item)}' for key, item in value.items())}}}"
        case _ if type(value).__module__ == "torch" and str(value).startswith("torch."):
            return str(value)  # a dtype
    try:
        return literal(value)
    except TypeError:
        raise NoSource(name) from None


def _summary(part: type[Part]) -> str:
    return inspect.cleandoc(part.__doc__ or part.kind).partition("\n\n")[0]


def docstring(text: str) -> list[str]:
    """Return the wrapped docstring of a class; whatever the text contains cannot end it."""
    plain = printable(" ".join(text.split()))
    lines = textwrap.wrap(plain.replace("\\", "\\\\").replace('"', "'"), 100)
    return (
        [f'    """{lines[0]}"""']
        if len(lines) == 1
        else [f'    """{lines[0]}', *(f"    {line}" for line in lines[1:]), '    """']
    )


def _rename(source: str, names: dict[str, str]) -> str:
    """Return the source with global names replaced; attributes and keywords of the same spelling stay."""
    changed = {old: new for old, new in names.items() if old != new}
    if not changed:
        return source
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for before, token, after in reversed(list(zip(tokens, tokens[1:], tokens[2:], strict=False))):
        if (
            token.type == tokenize.NAME
            and token.string in changed
            and before.string != "."
            and not (after.string == "=" and before.string in "(,")
        ):
            row, column = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:column] + changed[token.string] + line[column + len(token.string) :]
    ast.parse("".join(lines))
    return "".join(lines)
