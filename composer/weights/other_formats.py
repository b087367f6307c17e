"""Checkpoints that are no safetensors: pickles of torch and arrays of numpy, of which nothing but numbers is read."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from composer.diagnostics import Diagnostic, RecipeError, Source, Span

if TYPE_CHECKING:
    from torch import Tensor

PICKLES = (".bin", ".pt", ".pth", ".ckpt")
ARRAYS = (".npz",)
CONVERTED = 'convert it: safetensors.torch.save_file(torch.load("{}", weights_only=True), "model.safetensors")'
OTHERS = {
    ".h5": "TensorFlow writes it", ".msgpack": "Flax writes it", ".onnx": "it holds a graph",
    ".npy": "it holds one array without a name", ".pkl": "a pickle can run code when it is loaded",
}  # fmt: skip


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file."""

    shape: tuple[int, ...]
    read: Callable[[], Tensor]
    other: str = ""
    """The dtype, if it is none of floats."""


class Tensors(Mapping[str, "Tensor"]):
    """Tensors or arrays by name, each as a tensor when it is read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if not isinstance(name, str):
                refuse("unreadable-file", f"tensors have names, and {name!r} is none", "checkpoint")
            if not hasattr(value, "shape") or not hasattr(value, "dtype"):
                kind = type(value).__name__
                refuse("unreadable-file", f"{name!r} is a {kind}, not a tensor", "checkpoint", hint=_inner(values, "the mapping"))
        none = {name: as_tensor(each[:0] if each.shape else each, name) for name, each in values.items()}  # if torch has these
        self._values = values
        self.others: Mapping[str, str] = {name: other for name, each in none.items() if (other := other_than_floats(each))}
        self.shapes: Mapping[str, tuple[int, ...]] = {name: tuple(value.shape) for name, value in values.items()}

    def __getitem__(self, name: str) -> Tensor:
        return as_tensor(self._values[name], name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def as_tensor(value: Any, name: str) -> Tensor:
    """Return a tensor, or an array as one.

    Raises:
        RecipeError: torch has no such numbers.
    """
    import numpy
    import torch

    if isinstance(value, torch.Tensor):
        return value
    array = numpy.array(value)  # a copy: torch wants memory that it may write to
    try:
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
    except TypeError:
        message = f"{name!r} is an array of {array.dtype}, which torch cannot read"
        refuse("unreadable-file", message, "checkpoint", hint='convert it: array.astype("float32")')


def pickled(file: Path) -> Mapping[str, StoredTensor]:
    """Return the tensors of a file that `torch.save` wrote; they are mapped into memory, and no code of the file is run.

    Raises:
        RecipeError: The file has another form, or holds anything but tensors by name.
    """
    import torch

    if not file.is_file():
        refuse("missing-file", "there is no such file", file)
    if not zipfile.is_zipfile(file):
        message = "this is not a file that torch.save wrote from version 1.6 on"
        refuse("unreadable-file", message, file, hint=CONVERTED.format(file.name))
    with zipfile.ZipFile(file) as archive:
        refuse_damage(archive, file)
    try:
        found = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # whatever the reader of a damaged or refused pickle raises
        reason = str(error).partition("\n")[0]
        refuse("unreadable-file", f"torch does not load this without running code of it: {reason}", file)
    if not isinstance(found, Mapping) or not all(isinstance(each, torch.Tensor) for each in found.values()):
        hint = _inner(found, f'torch.load("{file.name}", weights_only=True)')
        refuse("unreadable-file", "this file holds other things than tensors by name", file, hint=hint)
    return {
        str(name): StoredTensor(tuple(each.shape), partial(as_tensor, each, str(name)), other_than_floats(each))
        for name, each in found.items()
    }


def arrays(file: Path, stack: ExitStack) -> Mapping[str, StoredTensor]:
    """Return the arrays of a file that `numpy.savez` wrote, of which shapes are read first and numbers on access.

    Raises:
        RecipeError: The file has another form.
    """
    import numpy

    try:
        archive = stack.enter_context(zipfile.ZipFile(file))
        refuse_damage(archive, file)
        loaded = stack.enter_context(numpy.load(file, allow_pickle=False))
        return {name: _array(archive, loaded, name) for name in loaded}
    except FileNotFoundError:
        refuse("missing-file", "there is no such file", file)
    except RecipeError:  # which is a ValueError too
        raise
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        refuse("unreadable-file", f"this is not a file of arrays: {error}", file)


def refuse_damage(archive: zipfile.ZipFile, file: Path) -> None:
    """Raise `RecipeError` if a member of an archive does not have its checksum, before any of them is used."""
    try:
        damaged = archive.testzip()
    except Exception as error:  # whatever the reader of a damaged member raises
        refuse("unreadable-file", f"this file is damaged: {error}", file)
    if damaged is not None:
        refuse("unreadable-file", f"this file is damaged: {damaged} does not have its checksum", file)


def _loaded(arrays: Mapping[str, Any], name: str) -> Tensor:
    """Return an array, which is read now, as a tensor."""
    return as_tensor(arrays[name], name)


def other_than_floats(tensor: Tensor) -> str:
    """Return the dtype of a tensor that does not hold floats; nothing of another."""
    return "" if tensor.dtype.is_floating_point else str(tensor.dtype).removeprefix("torch.")


def _array(archive: zipfile.ZipFile, arrays: Mapping[str, Any], name: str) -> StoredTensor:
    """Return an array, of which the header is read now and the numbers on access."""
    import numpy
    from numpy.lib import format as header

    with archive.open(f"{name}.npy") as member:
        version = header.read_magic(member)
        shape, _, dtype = (header.read_array_header_1_0 if version == (1, 0) else header.read_array_header_2_0)(member)
    if dtype.hasobject:
        raise ValueError(f"{name} holds objects")
    other = other_than_floats(as_tensor(numpy.empty(0, dtype), name))
    return StoredTensor(tuple(shape), partial(_loaded, arrays, name), other)


def _inner(found: object, shown: str) -> str:
    """Return the hint that names what inside of a mapping holds the tensors."""
    if not isinstance(found, Mapping):
        return "pass the tensors by name: load_published(model, {NAME: TENSOR, …})"
    inner = [str(name) for name, value in found.items() if isinstance(value, Mapping) and value]
    if not inner:
        return "pass the tensors alone, by name: load_published(model, {NAME: TENSOR, …})"
    return f'pass what holds the tensors: {shown}["{inner[0]}"]'


@contextmanager
def refused_if_unwritten(file: Path) -> Iterator[None]:
    """Raise a diagnostic about a file that cannot be written, in place of the system's error."""
    try:
        yield
    except OSError as error:
        refuse("unreadable-file", f"this file cannot be written: {(error.strerror or str(error)).lower()}", file)


def refuse(code: str, message: str, file: Path | str, *, hint: str = "") -> NoReturn:
    """Raise a diagnostic about a file."""
    raise RecipeError([Diagnostic(code, message, Span(Source(str(file), ""), 1, 1, 1, 1), hint=hint)])
