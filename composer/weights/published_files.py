"""Published checkpoints on disk: one file, or a folder of them with an index."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.atomic_files import StrPath
from composer.diagnostics import Source, Span
from composer.language.name_patterns import folded
from composer.language.source_file import content_of
from composer.weights.gguf.file import GGUF, gguf_tensors
from composer.weights.json_places import places
from composer.weights.other_formats import ARRAYS, OTHERS, PICKLES, StoredTensor, arrays, pickled, refuse

if TYPE_CHECKING:
    from torch import Tensor

ONE = "model.safetensors"
INDEX = "model.safetensors.index.json"
IN_FOLDERS = (ONE, INDEX, "pytorch_model.bin", "pytorch_model.bin.index.json")
"""What a folder may hold, the first that is there being read: a checkpoint, or the index of one in pieces."""
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
        self._tensors: dict[str, StoredTensor] = {}
        try:
            for file, promised in _files(Path(path)).items():
                opened = self._open(file)
                if twice := sorted(opened.keys() & self._tensors.keys()):
                    refuse("unreadable-file", f"a file beside this one has {folded(twice)} too", file)
                if lacking := [name for name in promised if name not in opened]:
                    refuse("unreadable-file", f"the index says that {folded(lacking)} is here", file)
                self._tensors.update(opened)
        except BaseException:
            self._stack.close()
            raise
        self.shapes: Mapping[str, tuple[int, ...]] = {name: each.shape for name, each in self._tensors.items()}
        self.others: Mapping[str, str] = {name: each.other for name, each in self._tensors.items() if each.other}
        """The dtypes of the tensors that hold no floats, by name."""

    def _open(self, file: Path) -> Mapping[str, StoredTensor]:
        content_of(file, 0)  # a pipe would be waited for
        match file.suffix:
            case suffix if suffix in PICKLES:
                return pickled(file)
            case suffix if suffix in ARRAYS:
                return arrays(file, self._stack)
            case suffix if suffix == GGUF:
                return gguf_tensors(file, self._stack)
        return self._safetensors(file)

    def _safetensors(self, file: Path) -> Mapping[str, StoredTensor]:
        from safetensors import SafetensorError, safe_open

        try:
            handle = self._stack.enter_context(safe_open(file, framework="np"))  # which needs no torch
        except (OSError, SafetensorError) as error:
            known = OTHERS.get(file.suffix)
            hint = "" if known is None else f"{known}; safetensors, .gguf, .npz and files of torch.save can be read"
            refuse("unreadable-file", f"this is not a safetensors file: {error}", file, hint=hint)
        names: Sequence[str] = handle.keys()
        whole = cache(lambda: self._stack.enter_context(safe_open(file, framework="pt")))
        found = {}
        for name in names:
            part = handle.get_slice(name)
            dtype = part.get_dtype()
            other = "" if dtype.startswith(("F", "BF")) else dtype
            found[name] = StoredTensor(tuple(part.get_shape()), partial(_read, whole, name), other)
        return found

    def __enter__(self) -> PublishedCheckpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name].read()

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def _read(whole: Callable[[], Any], name: str) -> Tensor:
    """Return a tensor of an open file."""
    tensor: Tensor = whole().get_tensor(name)
    return tensor


def files(path: Path) -> list[Path]:
    """Return the files of a checkpoint.

    Raises:
        RecipeError: There are none.
    """
    return list(_files(path))


def _files(path: Path) -> dict[Path, list[str]]:
    """Return the files of a checkpoint, with the names of tensors that an index says to be in each."""
    if not path.is_dir():
        return {path: []}
    found = next((path / name for name in IN_FOLDERS if (path / name).is_file()), None)
    if found is None:
        there = sorted(each.name for each in path.iterdir() if each.suffix in (".safetensors", GGUF, *PICKLES, *ARRAYS, *OTHERS))
        hint = f"name a file: {', '.join(there[:4])}" if there else ""
        refuse("missing-file", f"there is neither {' nor '.join(IN_FOLDERS)} in this folder", path, hint=hint)
    if not found.name.endswith(".index.json"):
        return {found: []}
    names = read_json(found).get("weight_map")
    if not isinstance(names, dict) or not all(map(_is_shard, names.values())):
        refuse("unreadable-file", "this index has no `weight_map` of files in its folder", found)
    homes: dict[Path, list[str]] = {path / home: [] for home in sorted(set(names.values()))}
    for name, home in names.items():
        homes[path / home].append(name)
    return homes


def _is_shard(name: object) -> bool:
    """Return whether something in an index names a file beside it."""
    return isinstance(name, str) and "\0" not in name and Path(name).name == name and Path(name).suffix != ""


def type_of(path: Path) -> str | None:
    """Return the model type in the `config.json` of a folder, or None without one."""
    config = path / "config.json"
    kind = read_json(config).get("model_type") if config.is_file() else None
    return kind if isinstance(kind, str) else None


def type_span(path: Path) -> Span | None:
    """Return where the model type of a folder is written, or None without one."""
    config = path / "config.json"
    if type_of(path) is None:
        return None
    return places(Source(str(config), config.read_text(encoding="utf-8")))["model_type"].value


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
