"""What verification needs of a recipe: to be read again with other text, checked, compiled, written and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from blocks.core import Library, Part
from composer.diagnostics import Diagnostic, Source
from composer.graph.typed import TypedProgram
from composer.language.yaml.nodes import Document

if TYPE_CHECKING:
    import torch

    from composer.lower.model import Model


class VerifiableRecipe(Protocol):
    """A recipe; `composer.recipe` cannot be named here, since its `Recipe` offers `verify`."""

    def __init__(self, source: Source, overrides: Any = (), blocks: Any = ()) -> None: ...

    @property
    def source(self) -> Source: ...
    @property
    def overrides(self) -> Any: ...
    @property
    def blocks(self) -> Sequence[type[Part] | Path | str]: ...
    @property
    def library(self) -> Library: ...
    @property
    def document(self) -> Document: ...
    @property
    def program(self) -> TypedProgram: ...
    @property
    def task(self) -> str | None: ...

    def check(self) -> list[Diagnostic]:
        """Return all errors and warnings."""

    def expand(self) -> str:
        """Return the text with everything written out."""

    def draw(self, level: Any = "block") -> Any:
        """Return a figure."""

    def compile(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None, seed: int | None = None
    ) -> Model[Any]:
        """Return the model."""
