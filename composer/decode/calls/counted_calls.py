"""How the calls of a session with a maximum length are checked and counted: outside of what `torch.compile` traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from composer.decode.errors import DecodeError

Counted = Callable[[tuple[Any, ...], Mapping[str, Any]], AbstractContextManager[object]]
"""Given the arguments of a call, checks it on entering and counts it on leaving."""


class CountedCalls:
    """Stands in the place of the forward of a model, and of what runs the compiled model, while a session is entered."""

    def __init__(self, model: nn.Module, compiled: nn.Module | None, counted: Counted, finished: Callable[[Any], Any]) -> None:
        self.model, self.compiled, self.counted, self.finished = model, compiled, counted, finished
        self.is_counted = False
        """Whether the call that runs is one of the compiled model, which is counted around it."""
        self.replaced: list[tuple[nn.Module, str, Any]] = []

    def attach(self) -> None:
        """Take the places."""
        self.forward = self.model.forward
        self._replace(self.model, "forward", self)
        in_place = self.model.__dict__.get("_compiled_call_impl")
        if in_place is not None:  # of `nn.Module.compile`
            self._replace(self.model, "_compiled_call_impl", self._around(in_place))
        if self.compiled is not None:
            self._replace(self.compiled, "forward", self._around(self.compiled.forward))

    def detach(self) -> None:
        """Give the places back."""
        for module, name, before in self.replaced:
            if before is None:
                module.__dict__.pop(name, None)
            else:
                module.__dict__[name] = before
        self.replaced = []

    def _replace(self, module: nn.Module, name: str, value: Any) -> None:
        self.replaced.append((module, name, module.__dict__.get(name)))
        module.__dict__[name] = value

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self.is_counted:
            return self.forward(*arguments, **named)
        if torch.compiler.is_compiling():
            raise DecodeError("open the session with the compiled model: session(compiled, max_length=…)")
        with self.counted(arguments, named):
            return self.finished(self.forward(*arguments, **named))

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            with self.counted(arguments, named):
                self.is_counted = True
                try:
                    return self.finished(call(*arguments, **named))
                finally:
                    self.is_counted = False

        return counted
