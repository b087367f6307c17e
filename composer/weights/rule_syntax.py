"""Checks of the form of values under `checkpoints:`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from composer.diagnostics import Diagnostic, Span
from composer.language.unknown_names import unknown
from composer.language.wording import BOOLEANS
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar


class Forms:
    """Base of the parsers of `checkpoints:`: reads nodes of a document, and collects diagnostics."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []

    def text(self, node: YamlNode, what: str) -> str:
        """Return the text of a scalar node; report any other."""
        return node.text if self.is_scalar(node, what) else ""

    def is_scalar(self, node: YamlNode, what: str) -> TypeGuard[YamlScalar]:
        """Return whether a node is a scalar; report any other."""
        if not isinstance(node, YamlScalar):
            self.error("checkpoints-form", node.span, f"{what} one word")
        return isinstance(node, YamlScalar)

    def boolean(self, node: YamlNode | None, what: str) -> bool:
        """Return whether a node is `true`; False without a node."""
        if node is not None and not (isinstance(node, YamlScalar) and node.text in BOOLEANS):
            self.error("checkpoints-form", node.span, f"{what} is true or false")
        return isinstance(node, YamlScalar) and BOOLEANS.get(node.text, False)

    def entries(self, node: YamlNode | None, what: str) -> Iterator[YamlEntry]:
        """Yield the entries of a mapping; report any other node."""
        if isinstance(node, YamlMapping):
            yield from node
        elif node is not None:
            self.error("checkpoints-form", node.span, what)

    def items(self, node: YamlNode | None, what: str, such_as: str) -> Iterator[YamlNode]:
        """Yield the items of a list; report any other node."""
        if isinstance(node, YamlList):
            yield from node.items
        elif node is not None:
            self.error("checkpoints-form", node.span, what, hint=such_as)

    def keys(self, node: YamlMapping, known: tuple[str, ...], what: str) -> None:
        """Report every unknown key."""
        for entry in node:
            if (name := entry.key.text) not in known:
                self.diagnostics.append(unknown("unknown-key", entry.key.span, "key", name, known, of=f"a {what}"))

    def error(self, code: str, span: Span, message: str, *, hint: str = "") -> None:
        """Add a diagnostic."""
        self.diagnostics.append(Diagnostic(code, message, span, hint=hint))
