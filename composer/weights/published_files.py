"""Published checkpoints on disk: one safetensors file, or a folder of them with an index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from composer.atomic_files import StrPath
from composer.diagnostics import Diagnostic, RecipeError, Source, Span
from composer.language.source_file import content_of

if TYPE_CHECKING:
    from torch import Tensor

ONE = "model.safetensors"
INDEX = "model.safetensors.index.json"
MAX_JSON_BYTES = 64 * 2**20
"""Bytes of an index or a configuration: the index of a model of a trillion parameters has some 20 million."""


class PublishedCheckpoint(Mapping[str, "Tensor"]):
    """The tensors of a checkpoint by name, each read on access; a context manager, since the files stay open.

    Examples:
        >>> import composer
        >>> from composer.weights import PublishedCheckpoint, save_published
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> save_published(composer.load("gpt2", tiny).compile(seed=0), "model.safetensors")
        >>> with PublishedCheckpoint("model.safetensors") as tensors:
        ...     tensors.shapes["wte.weight"]
        (61, 32)
    """

    def __init__(self, path: StrPath) -> None:
        self._stack = ExitStack()
        self._files: dict[str, Any] = {}  # safetensors' handles have no public type
        try:
            for file in files(Path(path)):
                handle = self._open(file)
                self._files.update(dict.fromkeys(handle.keys(), handle))
        except BaseException:
            self._stack.close()
            raise
        self.shapes: Mapping[str, tuple[int, ...]] = {
            name: tuple(handle.get_slice(name).get_shape()) for name, handle in self._files.items()
        }

    def _open(self, file: Path) -> Any:
        from safetensors import SafetensorError, safe_open

        content_of(file, 0)  # a pipe would be waited for
        try:
            return self._stack.enter_context(safe_open(file, framework="pt"))
        except (OSError, SafetensorError) as error:
            refuse("unreadable-file", f"this is not a safetensors file: {error}", file)

    def __enter__(self) -> PublishedCheckpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __getitem__(self, name: str) -> Tensor:
        tensor: Tensor = self._files[name].get_tensor(name)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def files(path: Path) -> list[Path]:
    """Return the safetensors files of a checkpoint.

    Raises:
        RecipeError: There are none, or the file is a pickle.
    """
    if not path.is_dir():
        if path.suffix in (".bin", ".pt", ".pth", ".ckpt"):
            refuse(
                "unreadable-file",
                "this is a pickle, which can run code when it is loaded",
                path,
                hint="convert it to safetensors first",
            )
        return [path]
    if (path / INDEX).is_file():
        names = read_json(path / INDEX).get("weight_map")
        if not isinstance(names, dict) or not all(map(_is_shard, names.values())):
            refuse("unreadable-file", "this index has no `weight_map` of files in its folder", path / INDEX)
        return [path / name for name in sorted(set(names.values()))]
    if not (path / ONE).is_file():
        refuse("missing-file", f"there is neither {ONE} nor {INDEX} in this folder", path)
    return [path / ONE]


def _is_shard(name: object) -> bool:
    """Return whether something in an index names a file beside it."""
    return isinstance(name, str) and "\0" not in name and Path(name).name == name and Path(name).suffix != ""


def type_of(path: Path) -> str | None:
    """Return the model type in the `config.json` of a folder, or None without one."""
    config = path / "config.json"
    kind = read_json(config).get("model_type") if config.is_file() else None
    return kind if isinstance(kind, str) else None


def read_json(file: Path) -> dict[str, Any]:
    """Return the object of a JSON file; an empty one if it contains another value.

    Raises:
        RecipeError: The file cannot be read as JSON.
    """
    content = content_of(file, MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        refuse("too-large", f"a JSON file of a checkpoint has at most {MAX_JSON_BYTES} bytes", file)
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        refuse("unreadable-file", f"this is not a JSON file: {error}", file)
    return value if isinstance(value, dict) else {}


def refuse(code: str, message: str, file: Path, *, hint: str = "") -> NoReturn:
    """Raise a diagnostic about a file."""
    raise RecipeError([Diagnostic(code, message, Span(Source(str(file), ""), 1, 1, 1, 1), hint=hint)])
