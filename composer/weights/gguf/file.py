"""Files of llama.cpp: a header of settings, and tensors, which are given the names and the layout that transformers publishes."""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.weights.gguf.architectures import ARCHITECTURES, Architecture, Layout
from composer.weights.gguf.numbers import KINDS, Kind
from composer.weights.other_formats import StoredTensor, as_tensor, refuse

if TYPE_CHECKING:
    from torch import Tensor

GGUF = ".gguf"
MAGIC = b"GGUF"
"""How a file begins."""
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
"""The formats of values by their number in a file."""
STRING, ARRAY = 8, 9
MOST = 1 << 24
"""Entries of a list, and tensors, that are read."""
LONGEST = 1 << 26
"""Bytes of a text that are read."""


@dataclass(frozen=True)
class GgufTensor:
    """A tensor in a file."""

    shape: tuple[int, ...]
    kind: Kind
    start: int
    """Where its bytes begin in the file."""

    @property
    def size(self) -> int:
        """The number of its bytes."""
        return math.prod(self.shape) // self.kind.numbers * self.kind.size


@dataclass(frozen=True)
class GgufHeader:
    """What a file says before its numbers."""

    settings: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]
    """By the names of llama.cpp."""

    @property
    def architecture(self) -> str:
        """The architecture, such as `llama`."""
        return str(self.settings.get("general.architecture", ""))


class _Damaged(Exception):
    """A file is not what its header says."""


class _Reader:
    """Reads values one after the other, none beyond the end of the file."""

    def __init__(self, content: mmap.mmap | bytes) -> None:
        self.content, self.place = content, 0

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        if count > len(self.content) - self.place:
            raise _Damaged("it ends before its header does")
        found = self.content[self.place : self.place + count]
        self.place += count
        return found

    def number(self, form: str) -> Any:
        """Return the next number."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self) -> str:
        """Return the next text."""
        length = self.number("<Q")
        if length > LONGEST:
            raise _Damaged("a text in its header is too long")
        return self.take(length).decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        """Return the next value of a kind; the items of a list are plain values."""
        if kind in SCALARS:
            return self.number(SCALARS[kind])
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            inner, length = self.number("<I"), self.number("<Q")
            if length > MOST or (inner not in SCALARS and inner != STRING):
                raise _Damaged("a list in its header is too long or of lists")
            if inner in SCALARS:
                form = f"<{length}{SCALARS[inner][1:]}"
                return list(struct.unpack(form, self.take(struct.calcsize(form))))
            return [self.text() for _ in range(length)]
        raise _Damaged(f"a value in its header is of the unknown kind {kind}")


def read_header(file: Path) -> GgufHeader:
    """Return what a file says before its numbers.

    Raises:
        RecipeError: It is no such file, is cut off, or has numbers of a kind that is not read.
    """
    with ExitStack() as stack:
        return _header(_mapped(file, stack), file)


def gguf_tensors(file: Path, stack: ExitStack) -> Mapping[str, StoredTensor]:
    """Return the tensors of a file under their published names, each read on access.

    Raises:
        RecipeError: It is no such file, is cut off, or is of an architecture that is not read.
    """
    content = _mapped(file, stack)
    header = _header(content, file)
    architecture = read_as(header, file)
    found = {}
    for name, tensor in header.tensors.items():
        layout = _layout(header, architecture, name)
        published = StoredTensor(layout.shape(tensor.shape), partial(_read, content, tensor, layout))
        found[architecture.published(name)] = published
    return found


def read_as(header: GgufHeader, file: Path) -> Architecture:
    """Return the architecture of a file.

    Raises:
        RecipeError: It is one that is not read.
    """
    if header.architecture not in ARCHITECTURES:
        message = f"GGUF files of the architecture {header.architecture or 'none'} are not read"
        refuse("unreadable-file", message, file, hint=f"known are {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[header.architecture]


def _layout(header: GgufHeader, architecture: Architecture, name: str) -> Layout:
    heads = header.settings.get(f"{header.architecture}.attention.head_count")
    return architecture.layout(name, heads, header.settings.get(f"{header.architecture}.attention.head_count_kv", heads))


def _read(content: mmap.mmap, tensor: GgufTensor, layout: Layout) -> Tensor:
    import numpy

    raw = numpy.frombuffer(content, "u1", tensor.size, tensor.start).reshape(-1, tensor.kind.size)
    with numpy.errstate(all="ignore"):  # a scale may be infinite
        numbers = tensor.kind.read(raw).reshape(tensor.shape)
        return as_tensor(layout.published(numbers), "numbers")


def _mapped(file: Path, stack: ExitStack) -> mmap.mmap:
    try:
        handle = stack.enter_context(file.open("rb"))
        return mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        refuse("missing-file", "there is no such file", file)
    except (OSError, ValueError) as error:
        refuse("unreadable-file", f"this is not a GGUF file of llama.cpp: {error}", file)


def _header(content: mmap.mmap, file: Path) -> GgufHeader:
    try:
        return _parsed(_Reader(content), len(content))
    except _Damaged as no:
        refuse("unreadable-file", f"this is not a GGUF file of llama.cpp: {no}", file)


def _parsed(reader: _Reader, size: int) -> GgufHeader:
    if reader.take(len(MAGIC)) != MAGIC:
        raise _Damaged("it does not begin as one")
    version, tensors, values = reader.number("<I"), reader.number("<Q"), reader.number("<Q")
    if version not in (2, 3):
        raise _Damaged(f"it has the version {version}; 2 and 3 are read")
    if max(tensors, values) > MOST:
        raise _Damaged("its header is too long")
    settings = {}
    for _ in range(values):
        key = reader.text()
        settings[key] = reader.value(reader.number("<I"))
    entries = [_entry(reader) for _ in range(tensors)]
    step = settings.get("general.alignment", 32)
    if not isinstance(step, int) or step < 1:
        raise _Damaged("its alignment is no number")
    start = -(-reader.place // step) * step
    found: dict[str, GgufTensor] = {}
    for name, shape, kind, offset in entries:
        tensor = GgufTensor(shape, kind, start + offset)
        if name in found or math.prod(shape) % kind.numbers or (shape and shape[-1] % kind.numbers):
            raise _Damaged(f"{name} is there twice, or has no whole blocks of {kind.name}")
        if tensor.start + tensor.size > size:
            raise _Damaged(f"it ends before {name} does")
        found[name] = tensor
    return GgufHeader(settings, found)


def _entry(reader: _Reader) -> tuple[str, tuple[int, ...], Kind, int]:
    name, axes = reader.text(), reader.number("<I")
    if axes > 8:
        raise _Damaged(f"{name} has {axes} axes")
    shape = tuple(reversed([reader.number("<Q") for _ in range(axes)]))
    kind, offset = reader.number("<I"), reader.number("<Q")
    if kind not in KINDS:
        known = ", ".join(each.name for each in KINDS.values())
        raise _Damaged(f"{name} has numbers of the kind {kind}, which is not read; known are {known}")
    return name, shape, KINDS[kind], offset
