"""What a session keeps, as named tensors and a description of them: the form in which it lies in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge
from pydantic import ConfigDict
from torch import Tensor

from composer.decode.caches.cache import RunSnapshot
from composer.decode.caches.contents import CacheSnapshots
from composer.decode.caches.kept_rows import RowsSnapshot
from composer.decode.errors import PromptCacheError
from composer.lower.passes.cache_layout import CachedNode, CacheLayout, CacheSlot

Count = Annotated[int, Ge(0)]


@dataclass(frozen=True)
class KeptTensor:
    """A tensor by its name, with its axes in the order in which they lie in memory: how a sum is rounded may depend on that."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    axes: list[Count]


@dataclass(frozen=True)
class KeptRowsOfSlot:
    """The rows of a slot that grows; without a tensor if there are none yet."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    held: Count
    dropped: Count
    rows: KeptTensor | None


@dataclass(frozen=True)
class KeptRun:
    """The contents of a cache for one run per call."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    counted: Count
    states: dict[str, KeptTensor]
    whole: dict[str, KeptTensor]
    rows: dict[str, KeptRowsOfSlot]


@dataclass(frozen=True)
class KeptCache:
    """The contents of the cache of one node of the cache layout."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    node: str
    runs: list[KeptRun]


class TensorWriter:
    """Gathers the tensors of a file."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.storages: set[int] = set()

    def add(self, name: str, tensor: Tensor) -> KeptTensor:
        """Add a tensor on any device."""
        strides = tensor.stride()
        axes = sorted(range(tensor.dim()), key=lambda axis: (-strides[axis], axis))
        plain = tensor.detach().permute(axes).cpu().contiguous()
        if plain.untyped_storage().data_ptr() in self.storages:  # a file of safetensors has every number once
            plain = plain.clone()
        self.storages.add(plain.untyped_storage().data_ptr())
        self.tensors[name] = plain
        return KeptTensor(name, axes)


def tensor_of(kept: KeptTensor, tensors: Mapping[str, Tensor]) -> Tensor:
    """Return a tensor with its axes in order.

    Raises:
        KeyError: There is no such tensor.
        ValueError: It has other axes.
    """
    tensor = tensors[kept.name]
    if sorted(kept.axes) != list(range(tensor.dim())):
        raise ValueError(f"{kept.name!r:.80} has other axes")
    return tensor.permute([kept.axes.index(axis) for axis in range(tensor.dim())])


def kept_caches(caches: CacheSnapshots, layout: CacheLayout, writer: TensorWriter) -> list[KeptCache]:
    """Return the description of the contents of caches, whose tensors the writer gathers."""
    found = []
    for node, runs in zip(layout.nodes, caches, strict=True):
        name = _name(node)
        found.append(KeptCache(name, [_kept(run, node, f"{name}:{number}", writer) for number, run in enumerate(runs)]))
    return found


def _kept(run: RunSnapshot, node: CachedNode, name: str, writer: TensorWriter) -> KeptRun:
    rows = {}
    for slot, held in run.rows.items():
        kept = None
        if held.buffer is not None:
            axis = held.buffer.dim() + _axis(node.slots[slot])
            kept = writer.add(f"{name}:{slot}", held.buffer.narrow(axis, 0, held.held))
        rows[slot] = KeptRowsOfSlot(held.held, held.dropped, kept)
    states = {slot: writer.add(f"{name}:{slot}", state) for slot, state in run.states.items()}
    whole = {slot: writer.add(f"{name}:{slot}", value) for slot, value in run.whole.items()}
    return KeptRun(run.counted, states, whole, rows)


def kept_results(
    once: Mapping[str, Sequence[Any]], writer: TensorWriter
) -> dict[str, list[KeptTensor | list[KeptTensor | None] | None]]:
    """Return the description of what was computed once, by the paths of the modules.

    Raises:
        PromptCacheError: A module gave something else than tensors.
    """

    def kept(value: Any, name: str) -> KeptTensor | None:
        if value is not None and not isinstance(value, Tensor):
            raise PromptCacheError(f"`{name.partition(':')[0]}` gives a {type(value).__name__}, which no file can hold")
        return None if value is None else writer.add(name, value)

    found: dict[str, list[KeptTensor | list[KeptTensor | None] | None]] = {}
    for path, results in once.items():
        found[path] = []
        for number, result in enumerate(results):
            name = f"{path}:once:{number}"
            several = isinstance(result, tuple)
            found[path].append([kept(one, f"{name}:{at}") for at, one in enumerate(result)] if several else kept(result, name))
    return found


def restored_caches(
    caches: Sequence[KeptCache], layout: CacheLayout, tensors: Mapping[str, Tensor], rows: int, length: int
) -> CacheSnapshots:
    """Return the contents of caches.

    Args:
        caches: Their description.
        layout: What the model caches.
        tensors: The tensors by name.
        rows: The number of rows of the batch.
        length: The number of tokens.

    Raises:
        KeyError: There is no such tensor or slot.
        ValueError: The description is of another model, or a tensor does not fit it.
    """
    if [one.node for one in caches] != [_name(node) for node in layout.nodes]:
        raise ValueError("it has the caches of other nodes")
    return tuple(
        tuple(_restored(run, node, tensors, rows, length) for run in one.runs)
        for one, node in zip(caches, layout.nodes, strict=True)
    )


def _restored(run: KeptRun, node: CachedNode, tensors: Mapping[str, Tensor], rows: int, length: int) -> RunSnapshot:
    if run.counted > length:
        raise ValueError(f"{_name(node)!r:.80} has counted other tokens")

    def value(slot: str, kept: KeptTensor, *, grows: bool = False, whole: bool = False) -> Tensor:
        tensor, declared = tensor_of(kept, tensors), node.slots[slot]
        if (declared.axis is not None, declared.whole) != (grows, whole):
            raise ValueError(f"{kept.name!r:.80} is of another kind")
        batch = declared.batch
        if batch is not None and batch.before == batch.behind == 1 and tensor.dim() > 1 and tensor.shape[batch.index] != rows:
            raise ValueError(f"{kept.name!r:.80} has other rows")
        return tensor

    found = {}
    for slot, kept in run.rows.items():
        buffer = None if kept.rows is None else value(slot, kept.rows, grows=True)
        axis = _axis(node.slots[slot])
        if buffer is not None and (buffer.dim() < -axis or buffer.shape[axis] != kept.held or kept.held + kept.dropped != length):
            raise ValueError(f"the slot {slot!r:.40} of {_name(node)!r:.80} has other tokens")
        found[slot] = RowsSnapshot(buffer, kept.held, kept.dropped)
    states = {slot: value(slot, kept) for slot, kept in run.states.items()}
    whole = {slot: value(slot, kept, whole=True) for slot, kept in run.whole.items()}
    return RunSnapshot(run.counted, states, whole, found)


def _name(node: CachedNode) -> str:
    """Return the name of a node of the cache layout, of which a module may have several."""
    return ".".join([node.module, *node.attribute])


def _axis(slot: CacheSlot) -> int:
    """Return the axis of a slot that grows, counted from the last."""
    if slot.axis is None:
        raise ValueError("a slot that does not grow has rows")
    return slot.axis
