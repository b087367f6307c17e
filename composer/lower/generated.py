"""Generated source as a module, which is found by name as long as anything of it is in use."""

from __future__ import annotations

import builtins
import hashlib
import linecache
import sys
import weakref
from collections import deque
from types import ModuleType
from typing import Any

from composer.lower.model import Module

_gone: deque[tuple[str, str]] = deque()
"""Names and files of modules of which nothing is left; they are taken out before the next one is executed."""
_own_dict: Any = vars(ModuleType)["__dict__"].__get__
"""Returns the namespace of a module, whatever its class says that it is."""


class _Entry(ModuleType):
    """A module in `sys.modules` that does not keep what it shows alive.

    `torch.compile`, `pickle`, `inspect` and `typing` look modules up by name. The table keeps its values, and a module keeps its
    classes, so that a module in the table would never end. Where nothing is left of the module, this one is empty.
    """

    shown: weakref.ref[ModuleType]

    def show(self, module: ModuleType) -> None:
        """Show this module from now on."""
        _own_dict(self)["shown"] = weakref.ref(module)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # what `vars` and `typing` read
        namespace: dict[str, Any] = _own_dict(self.shown() or self)
        return namespace

    def __getattr__(self, name: str) -> Any:
        module = self.shown()
        if module is None:
            raise AttributeError(f"nothing of {self.__name__} is in use any more")
        return getattr(module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        vars(self)[name] = value

    def __delattr__(self, name: str) -> None:
        del vars(self)[name]

    def __dir__(self) -> list[str]:
        return [*vars(self)]


_entries: weakref.WeakValueDictionary[str, _Entry] = weakref.WeakValueDictionary()
"""The entry of each name, which shows the next module of that name too: `torch.compile` keeps it among its own globals."""


def execute(source: Module) -> tuple[dict[str, Any], str]:
    """Execute the source; return its namespace and the file that tracebacks name.

    Equal sources are one module. Its lines, for tracebacks and debuggers, and its entry in `sys.modules` are kept as long as one
    of its classes or functions, and are gone when another source is executed after that.
    """
    _take_out()
    digest = hashlib.sha256(source.text.encode()).hexdigest()[:12]
    name, filename = f"composer.generated.{source.name}_{digest}", f"<{source.name} {digest}>"
    known = sys.modules.get(name)
    if isinstance(known, _Entry) and (module := known.shown()) is not None:
        return module.__dict__, filename
    module = sys.modules[name] = ModuleType(name)  # a dataclass looks up the module of its class
    linecache.cache[filename] = (len(source.text), None, source.text.splitlines(keepends=True), filename)
    try:
        exec(builtins.compile(source.text, filename, "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[name], linecache.cache[filename]
        raise
    for thing in [*module.__dict__.values()]:
        if isinstance(thing, type) and thing.__module__ == name:
            thing.__generated_module__ = module  # type: ignore[attr-defined]  # not all have functions, which would keep it
    module.__dict__["__generated_module__"] = module
    entry = sys.modules[name] = _entries.setdefault(name, _Entry(name))
    entry.show(module)
    weakref.finalize(module, _gone.append, (name, filename)).atexit = False
    return module.__dict__, filename


def _take_out() -> None:
    """Take out the modules of which nothing is left.

    Not as soon as they end, since that may be in the midst of a walk through `sys.modules`, which must not change then.
    """
    while _gone:
        name, filename = _gone.popleft()
        entry = sys.modules.get(name)
        if isinstance(entry, _Entry) and entry.shown() is None:  # else an equal source was executed since
            del sys.modules[name]
            linecache.cache.pop(filename, None)
