"""The source of blocks, copied with all that it uses, so that it needs nothing but torch."""

from __future__ import annotations

import ast
import inspect
import io
import re
import textwrap
import tokenize
import types
from collections.abc import Iterable, Iterator
from typing import Any

from blocks.core import Activation, Block, Part, declares, fields
from blocks.core.fields import SlotOf
from blocks.core.lazy import F, nn, torch
from composer.errors import ComposerError
from composer.lower.emit.constructor_trees import literal
from composer.memo import IdentityKey

HEADER = '''

class Module(nn.Module):
    """A block: its settings, its weights and the parts in its slots are attributes."""

    cache = None

    def __init__(self, /, **attributes):
        super().__init__()
        for name, value in attributes.items():
            setattr(self, name, value)

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
SETUP = """    def __init__(self, **attributes):
        super().__init__(**attributes)
        self.setup()
"""
"""The constructor of a part with a method `setup`."""
_PROXIES = {IdentityKey(torch): "torch", IdentityKey(nn): "nn", IdentityKey(F): "F"}
_SELF = re.compile(r"\bself: Any\b")


class NoSource(ComposerError, ValueError):
    """The source of a block cannot be read."""

    def __init__(self, part: Any) -> None:
        super().__init__(f"the source of {part.__qualname__} cannot be read: define it in a file or a notebook cell")


class CopiedSource:
    """Copied classes, functions and constants by name, each after what it uses; two of one name get two names."""

    def __init__(self) -> None:
        self.pieces: dict[str, str] = {}
        self.imports: set[str] = set()
        self.names: dict[IdentityKey[Any], str] = {}
        self.attributes: dict[type[Part], frozenset[str]] = {}
        self.defaults: dict[str, dict[str, Any]] = {}
        """For each class, the attributes that have a default."""
        self.plain: set[str] = set()
        """Classes that are no torch modules."""
        self.taken: set[str] = {"torch", "nn", "F", "Any", "Module", "Plain", "Output", "NamedTuple", "Tensor"}

    def part(self, part: type[Part]) -> str:
        """Return the name of a part's class in the generated module."""
        if IdentityKey(part) in self.names:
            return self.names[IdentityKey(part)]
        name = self._claim(part, part.__name__)
        methods = list(_methods(part))
        sources = {method.__name__: _source(method) for method in methods}
        renamed = self._uses(method for method in methods)
        reached = self.attributes[part] = self._reached(methods)
        curve = issubclass(part, Activation) and part.weights == {} and "training" not in reached
        base = "Module" if (part.outputs or "output_types" in vars(part)) and not curve else "Plain"
        defaults = self.defaults[name] = {key: value for key, value in _defaults(part) if key in reached}
        body = ["\n".join(docstring(_summary(part))) + "\n"]
        if defaults:
            body.append("".join(f"    {key} = {literal(value)}\n" for key, value in defaults.items()))
        body += [textwrap.indent(_rename(source, renamed), "    ") for source in sources.values()]
        if "setup" in sources:
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

    def _reached(self, methods: Iterable[Any]) -> frozenset[str]:
        """Return every attribute that the code of a part may read, and perhaps more."""
        seen: set[int] = set()
        found: set[str] = set()
        stack: list[Any] = list(methods)
        while stack:
            function = stack.pop()
            if id(function) in seen:
                continue
            seen.add(id(function))
            for code in _codes(function.__code__):
                found.update(code.co_names)
                for name in code.co_names:
                    value = function.__globals__.get(name)
                    if isinstance(value, types.FunctionType):
                        stack.append(value)
                    elif inspect.isclass(value) and not issubclass(value, Part):
                        stack.extend(f for f in vars(value).values() if isinstance(f, types.FunctionType))
        return frozenset(found)

    def _claim(self, thing: Any, wanted: str) -> str:
        name, count = wanted, 1
        while name in self.taken:
            count += 1
            name = f"{wanted}{count}" if wanted[0].isupper() else f"{wanted}_{count}"
        self.taken.add(name)
        self.names[IdentityKey(thing)] = name
        return name

    def _uses(self, functions: Iterable[Any]) -> dict[str, str]:
        """Copy what functions use; return the names that had to change."""
        renamed: dict[str, str] = {}
        for function in functions:
            for code in _codes(function.__code__):
                for name in code.co_names:
                    if name in function.__globals__:
                        given = self._global(name, function.__globals__[name])
                        if given != name:
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
        home = getattr(value, "__module__", "") or ""
        if isinstance(value, types.FunctionType) and not home.startswith(("torch", "typing")):
            given = self._claim(value, name)
            renamed = self._uses([value])
            self.pieces[given] = _rename(_source(value), {**renamed, name: given})
            return given
        if inspect.isclass(value) and home.partition(".")[0] not in ("torch", "builtins", "typing", "math"):
            given = self._claim(value, name)
            own = (f for f in vars(value).values() if isinstance(f, types.FunctionType) and f.__module__ == home)
            renamed = self._uses(own)  # without the methods that `collections` gives a named tuple
            self.pieces[given] = _rename(_source(value), {**renamed, name: given})
            return given
        if isinstance(value, bool | int | float | str | tuple | frozenset | None):
            given = self._claim(value, name) if not isinstance(value, bool | None) else name
            self.pieces[given] = f"{given} = {value!r}\n"
            return given
        self.imports.add(
            f"from {home} import {getattr(value, '__name__', name)}"
            + ("" if getattr(value, "__name__", name) == name else f" as {name}")
        )
        return name


def _defaults(part: type[Part]) -> Iterator[tuple[str, Any]]:
    """Yield plain fields with a default. A slot for a module has none, since Python would find it before the module."""
    names = _strings(part.weights)
    for name, field in fields(part).items():
        if name in names:
            continue  # a parameter may have this name
        holds_module = isinstance(field.form, SlotOf) and bool(field.form.family.outputs or field.form.family is Block)
        if not (field.required or field.derived or holds_module or isinstance(field.default, Part | dict)):
            yield name, field.default
    if part.outputs:
        yield "requested_outputs", frozenset()


def _strings(weights: Any) -> set[str]:
    """Return every name that a part may give a weight."""
    if not isinstance(weights, types.FunctionType):
        return set(weights)
    waiting, found = list(weights.__code__.co_consts), set[str]()
    while waiting:
        match waiting.pop():
            case str() as name:
                found.add(name)
            case tuple() as items:
                waiting.extend(items)
    return found


def _methods(part: type[Part]) -> Iterator[Any]:
    """Yield the methods that run in the model, its own before inherited ones."""
    seen: set[str] = set()
    for owner in part.__mro__:
        if owner is Part or not issubclass(owner, Part):
            break
        for name, value in vars(owner).items():
            runs = isinstance(value, types.FunctionType) and value.__module__ == owner.__module__
            if runs and name not in seen and not declares(part, name) and not name.startswith(("__", "model_")):
                seen.add(name)
                yield value


def _source(thing: Any) -> str:
    try:
        source = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        raise NoSource(thing) from None
    return _SELF.sub("self", source).replace("    # type: ignore", "  # type: ignore")


def _summary(part: type[Part]) -> str:
    return inspect.cleandoc(part.__doc__ or part.kind).partition("\n\n")[0]


def docstring(text: str) -> list[str]:
    """Return the wrapped docstring of a class; whatever the text contains cannot end it."""
    plain = "".join(character if character.isprintable() else "?" for character in " ".join(text.split()))
    lines = textwrap.wrap(plain.replace("\\", "\\\\").replace('"', "'"), 100)
    return (
        [f'    """{lines[0]}"""']
        if len(lines) == 1
        else [f'    """{lines[0]}', *(f"    {line}" for line in lines[1:]), '    """']
    )


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


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
