"""What blocks say in their source: the text of their methods, and of the functions and classes that these use, each with the
globals that it reads.

Source is found by parsing whole files. That of this package is read once; a file of the user may change from one model to the
next.
"""

from __future__ import annotations

import dis
import inspect
import re
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from blocks.core import Block, Part, declares, fields
from blocks.core.fields import SlotOf
from composer.errors import ComposerError
from composer.lower.emit.specialize import specialized
from composer.lower.passes.always import Always

_SELF = re.compile(r"\bself: Any\b")


class NoSource(ComposerError, ValueError):
    """The source of a block cannot be read."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the source of {name} cannot be read: define it in a file or a notebook cell")


@dataclass(frozen=True, slots=True)
class CodeText:
    """The source of a function or a class."""

    text: str
    reads: tuple[str, ...]
    """The globals that it reads when it runs: in its body, in defaults, decorators and bases; no annotation runs."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a part."""

    name: str
    code: CodeText
    known: Mapping[str, Any]
    """The globals where it is defined."""


@dataclass(frozen=True, slots=True)
class PartCode:
    """What is copied of a part."""

    methods: tuple[Method, ...]
    """Those that run in the model."""
    attributes: frozenset[str]
    """Every attribute that its code may read, and perhaps more."""
    defaults: Mapping[str, Any]
    """The plain fields with a default that its code may read."""


def code_of(thing: Any) -> CodeText:
    """Return the source of a function or a class.

    Raises:
        NoSource: It is not there, as for what was typed at a prompt.
    """
    bare = thing if isinstance(thing, type) else inspect.unwrap(thing)
    return _known_code(bare) if _is_ours(bare) else _code(bare)


def part_code(part: type[Part], always: Always) -> PartCode:
    """Return what is copied of a part, without what cannot happen in a model.

    Raises:
        NoSource: Its source is not there.
    """
    return _known_part_code(part, always) if _is_ours(part) else _part_code(part, always)


def _is_ours(thing: type | types.FunctionType) -> bool:
    """Return whether a class or a function is of this package."""
    return str(thing.__module__).partition(".")[0] == "blocks"


@lru_cache(maxsize=1024)
def _known_code(thing: type | types.FunctionType) -> CodeText:
    return _code(thing)


@lru_cache(maxsize=1024)
def _known_part_code(part: type[Part], always: Always) -> PartCode:
    return _part_code(part, always)


def _code(thing: type | types.FunctionType) -> CodeText:
    try:
        source = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        raise NoSource(thing.__qualname__) from None
    return _code_text(_SELF.sub("self", source).replace("    # type: ignore", "  # type: ignore"))


def _code_text(text: str) -> CodeText:
    return CodeText(text, tuple(dict.fromkeys(_loaded(_compiled(text)))))


def _compiled(text: str) -> types.CodeType:
    """Return the code of a source, whose annotations do not run."""
    return compile(f"from __future__ import annotations\n{text}", "<copied>", "exec", dont_inherit=True)


def _loaded(code: types.CodeType) -> Iterator[str]:
    for each in _codes(code):
        for instruction in dis.get_instructions(each):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                yield instruction.argval


def _part_code(part: type[Part], always: Always) -> PartCode:
    methods = list(_methods(part))
    always = _as_far_as_it_holds(always, methods)
    read = {each.__name__: _method(each, always) for each in methods}
    reached = _reached(read.values())
    while more := [each for each in _properties(part) if each.__name__ in reached and each.__name__ not in read]:
        read |= {each.__name__: _method(each, Always()) for each in more}
        reached = _reached(read.values())
    return PartCode(tuple(read.values()), reached, {key: value for key, value in _defaults(part) if key in reached})


def _as_far_as_it_holds(always: Always, methods: Sequence[Any]) -> Always:
    """Return what holds of a part in spite of its own methods, which may set its attributes and call its `forward`."""
    code = [each for method in methods for each in _codes(method.__code__)]
    stored = {each.argval for one in code for each in dis.get_instructions(one) if each.opname == "STORE_ATTR"}
    called = any("forward" in one.co_names for one in code)
    return Always(frozenset() if called else always.absent, tuple(each for each in always.attributes if each[0] not in stored))


def _method(function: Any, always: Always) -> Method:
    code = code_of(function)
    text = specialized(code.text, always) if always != Always() else code.text
    return Method(function.__name__, code if text == code.text else _code_text(text), function.__globals__)


def _reached(methods: Iterable[Method]) -> frozenset[str]:
    """Return every attribute that methods may read, and perhaps more."""
    seen: set[int] = set()
    found: set[str] = set()
    stack: list[tuple[types.CodeType, Mapping[str, Any]]] = [(_compiled(each.code.text), each.known) for each in methods]
    while stack:
        whole, known = stack.pop()
        for code in _codes(whole):
            found.update(code.co_names)
            for name in code.co_names:
                value = known.get(name)
                functions = [value] if isinstance(value, types.FunctionType) else []
                if inspect.isclass(value) and not issubclass(value, Part):
                    functions = [each for each in vars(value).values() if isinstance(each, types.FunctionType)]
                stack += [(each.__code__, each.__globals__) for each in functions if id(each) not in seen]
                seen.update(map(id, functions))
    return frozenset(found)


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
    for owner, name, value in _members(part):
        if isinstance(value, types.FunctionType) and value.__module__ == owner.__module__ and not name.startswith("model_"):
            yield value


def _properties(part: type[Part]) -> Iterator[Any]:
    """Yield the functions of its properties, class methods and static methods."""
    for _, _, value in _members(part):
        match value:
            case property(fget=function) if function is not None:
                yield function
            case staticmethod(__func__=function) | classmethod(__func__=function):
                yield function
            case cached_property(func=function):
                yield function


def _members(part: type[Part]) -> Iterator[tuple[type[Part], str, Any]]:
    """Yield what the classes of a part define and do not declare, each with the class and its name."""
    seen: set[str] = set()
    for owner in part.__mro__:
        if owner is Part or not issubclass(owner, Part):
            break
        for name, value in vars(owner).items():
            if name not in seen and not declares(part, name) and not name.startswith("__"):
                seen.add(name)
                yield owner, name, value


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
