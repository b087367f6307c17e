"""Weights of 8 bits: matrices as whole numbers with a scale for each row, for models that only run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from composer.errors import ComposerError
from composer.lower.model import Model

LEVELS = 127
"""The largest whole number; −128 is left out, so that a row and its negative are rounded alike."""
BLOCK_BYTES = {"cpu": 2 * 2**20}
"""Bytes of a matrix that are floats at a time, by device: on a CPU, what its cache holds."""
MOST_BLOCK_BYTES = 64 * 2**20
"""The same on other devices."""
WITHOUT = "load the model without int8"
NOT_HELD = "it has numbers that are not finite, which int8 cannot hold"
TRAINABLE = (Tensor.requires_grad_, vars(torch._C.TensorBase)["requires_grad"].__set__)
"""The functions by which a tensor becomes one that is trained."""
REPLACED = vars(torch._C.TensorBase)["data"].__set__
aten = torch.ops.aten
M = TypeVar("M", bound=nn.Module)


class Int8Error(ComposerError, ValueError):
    """Weights cannot be rounded to 8 bits, or not be trained or written because they were; `hint` says what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Int8Matrix(Tensor):
    """A matrix [out, in], or several [experts, out, in], as whole numbers of 8 bits and a scale for each row: `W = integers ·
    scale`, with scale = max |row| / 127 (absmax quantization, as in LLM.int8(), Dettmers et al. 2022). An entry is wrong by half
    a scale at most.

    It stands where a parameter stood, in the dtype of its scales. Linear maps, those of experts and embeddings compute with the
    integers, any other operator with floats that are made for it; what would change it raises `Int8Error`.
    """

    integers: Tensor
    """int8 [..., out, in]."""
    scale: Tensor
    """float [..., out, 1]."""

    @staticmethod
    def __new__(cls, integers: Tensor, scale: Tensor) -> Int8Matrix:
        made: Any = Tensor._make_wrapper_subclass
        new: Int8Matrix = made(cls, integers.shape, dtype=scale.dtype, device=integers.device, requires_grad=False)
        return new

    def __init__(self, integers: Tensor, scale: Tensor) -> None:
        self.integers, self.scale = integers, scale

    @classmethod
    def empty(cls, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Int8Matrix:
        """Return a matrix whose numbers are to be filled in."""
        scale = torch.empty((*shape[:-1], 1), dtype=dtype, device=device)
        return cls(torch.empty(tuple(shape), dtype=torch.int8, device=device), scale)

    @property
    def nbytes(self) -> int:  # type: ignore[override]  # a property in torch too
        """Bytes of the integers and the scales."""
        return self.integers.nbytes + self.scale.nbytes

    @torch.no_grad()
    def fill(self, source: Tensor) -> None:
        """Round another matrix of the same shape into this one, some rows at a time.

        Raises:
            Int8Error: It has numbers that are not finite.
        """
        if source.shape != self.shape:
            raise ValueError(f"{list(source.shape)} does not fill {list(self.shape)}")
        integers, scale = self.integers.flatten(0, -2), self.scale.flatten(0, -2)  # views: both are contiguous
        source = source.flatten(0, -2) if source.dim() > 2 else source
        for rows in _blocks(integers, torch.float32):
            given = source[rows].to(scale.device)
            wide = given.to(torch.promote_types(given.dtype, torch.float32))
            top = wide.abs().amax(dim=-1, keepdim=True) / LEVELS
            scale[rows] = top.clamp(min=torch.finfo(scale.dtype).tiny)
            if not scale[rows].isfinite().all():
                raise Int8Error(NOT_HELD, hint=WITHOUT)
            integers[rows] = (wide / scale[rows].to(wide.dtype)).round_().clamp_(-LEVELS, LEVELS).to(torch.int8)

    def holds(self, source: Tensor) -> bool:
        """Return whether all numbers of a matrix can be rounded into this one, so that `fill` takes it."""
        if source.is_meta or not source.numel():
            return True
        ends = torch.stack((source.float() if source.element_size() == 1 else source).aminmax())
        return bool((ends.to(torch.promote_types(ends.dtype, torch.float32)) / LEVELS).to(self.scale.dtype).isfinite().all())

    def floats(self) -> Tensor:
        """Return the matrix that this one stands for."""
        return self.integers.to(self.scale.dtype) * self.scale

    def linear(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return y = x Wᵀ + b for x [..., in]; of W, some rows are floats at a time.

        Where torch computes with integers itself, which is with bfloat16 on a CPU, it does.
        """
        rows = x.reshape(-1, x.shape[-1])
        scale = self.scale[:, 0].to(x.dtype)
        if x.device.type == "cpu" and x.dtype == torch.bfloat16 and not torch.is_grad_enabled():
            y = torch._weight_int8pack_mm(rows.contiguous(), self.integers, scale)
        else:
            blocks = [rows @ self.integers[block].to(x.dtype).T for block in _blocks(self.integers, x.dtype)]
            y = (blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=-1)) * scale
        y = y if bias is None else y + bias.to(y.dtype)
        return y.reshape(*x.shape[:-1], -1)

    def looked_up(self, ids: Tensor) -> Tensor:
        """Return the rows of some ids."""
        return self.integers[ids].to(self.scale.dtype) * self.scale[ids]

    def of_experts(self, x: Tensor, counts: Tensor) -> Tensor:
        """Return what `composer::grouped_linear` does: the rows x [N, in], each multiplied by the matrix of its expert."""
        y, start = x.new_zeros(x.shape[0], self.shape[1]), 0
        for integers, scale, count in zip(self.integers, self.scale, counts.tolist(), strict=False):
            if count:
                y[start : start + count] = Int8Matrix(integers, scale).linear(x[start : start + count])
            start += count
        return y

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.linear and type(args[0]) is not cls and isinstance(args[1], cls):
            return args[1].linear(args[0], *args[2:], **kwargs)
        if func is F.embedding and isinstance(args[1], cls):
            return args[1].looked_up(args[0])  # `padding_idx` says which row gets no gradient
        if func in TRAINABLE and (*args[1:], *kwargs.values(), True)[0]:
            raise Int8Error("weights of 8 bits cannot be trained", hint=WITHOUT)
        if func == REPLACED and isinstance(args[0], cls):
            raise Int8Error("weights of 8 bits cannot be changed in place", hint=WITHOUT)
        return torch._C._disabled_torch_function_impl(func, types, args, kwargs)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch's own is no class method
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is aten.detach.default:
            return cls(args[0].integers, args[0].scale)
        if func in (aten._to_copy.default, aten.clone.default, aten.empty_like.default):
            kind = kwargs.get("dtype")
            if kind is None or kind.is_floating_point:
                same = {key: value for key, value in kwargs.items() if key != "dtype"}
                return cls(func(args[0].integers, *args[1:], **same), func(args[0].scale, *args[1:], **kwargs))
        if func.name() == "composer::grouped_linear" and isinstance(args[1], cls):
            return args[1].of_experts(args[0], args[2])
        for declared, value in zip(func._schema.arguments, args, strict=False):
            if isinstance(value, cls) and declared.alias_info is not None and declared.alias_info.is_write:
                raise Int8Error("weights of 8 bits cannot be changed in place", hint=WITHOUT)
        args, kwargs = tree_map_only(cls, cls.floats, (args, kwargs))
        return func(*args, **kwargs)

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["integers", "scale"], None

    @staticmethod
    def __tensor_unflatten__(inner: Mapping[str, Tensor], _: object, size: object, stride: object) -> Int8Matrix:
        return Int8Matrix(inner["integers"], inner["scale"])

    def __reduce_ex__(self, protocol: object) -> Any:
        return _restored, (self.integers, self.scale, isinstance(self, nn.Parameter))

    def __deepcopy__(self, memo: dict[int, Any]) -> Int8Matrix:
        if id(self) not in memo:
            memo[id(self)] = _restored(self.integers.clone(), self.scale.clone(), isinstance(self, nn.Parameter))
        new: Int8Matrix = memo[id(self)]
        return new

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]  # torch has no name for it
        return f"Int8Matrix({list(self.shape)}, {self.dtype}, {self.device})"


def _restored(integers: Tensor, scale: Tensor, is_parameter: bool) -> Any:
    new = Int8Matrix(integers, scale)
    return nn.Parameter(new, requires_grad=False) if is_parameter else new


def _blocks(integers: Tensor, dtype: torch.dtype) -> Iterator[slice]:
    """Yield groups of the rows of a matrix [out, in] that are small enough as floats of a dtype."""
    most = BLOCK_BYTES.get(integers.device.type, MOST_BLOCK_BYTES)
    step = max(1, most // max(1, integers.shape[1] * dtype.itemsize))
    yield from (slice(start, start + step) for start in range(0, integers.shape[0], step))


@torch.no_grad()
def to_int8(model: M) -> M:
    """Round the matrices of a model to 8 bits, one after the other, in place; the rest keeps its dtype, and nothing is trained
    any more.

    These are the weights of linear maps and of experts, and tables of embeddings, with which a head may be tied. Maps of routers
    stay as they are: which experts compute depends on them.

    Args:
        model: A compiled recipe.

    Returns:
        The same model.

    Raises:
        Int8Error: A matrix has numbers that are not finite.

    Examples:
        >>> import composer
        >>> from composer.weights import to_int8, weight_bytes
        >>> model = composer.load("gpt_mini").compile(seed=0)
        >>> before = weight_bytes(model)
        >>> before / weight_bytes(to_int8(model)) > 3.8
        True
    """
    model.requires_grad_(False)
    made: dict[int, nn.Parameter] = {}
    for path, module in _of_matrices(model):
        given = module.weight
        if id(given) not in made:
            new = Int8Matrix.empty(given.shape, given.dtype, given.device)
            if not given.is_meta:
                try:
                    new.fill(given)
                except Int8Error as error:
                    raise Int8Error(f"{path}.weight: {error}", hint=error.hint) from None
            made[id(given)] = nn.Parameter(new, requires_grad=False)
        module.weight = made[id(given)]
    return model


def _of_matrices(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """Yield the modules whose `weight` is rounded, with their paths."""
    routed = {child for each in model.modules() if hasattr(each, "router") for child in each.children()}
    roles = model.roles if isinstance(model, Model) else {}
    for path, module in model.named_modules():
        linear = isinstance(module, nn.Linear) and module not in routed
        table = type(module).__name__ == "Embedding"  # torch's, or the block
        if (linear or table or roles.get(f"{path}.weight") == "experts") and not isinstance(module.weight, Int8Matrix):
            yield path, module


def weight_bytes(model: nn.Module) -> int:
    """Return the bytes of a model's parameters and buffers, each tied one counted once."""
    return sum(each.nbytes for each in (*model.parameters(), *model.buffers()))


def refuse_int8(model: nn.Module, what: str) -> None:
    """Raise `Int8Error` if a model has weights of 8 bits.

    Args:
        model: Any module.
        what: What cannot be done with such a model: "be trained".
    """
    if any(isinstance(each, Int8Matrix) for each in model.parameters()):
        raise Int8Error(f"a model with weights of 8 bits cannot {what}", hint=WITHOUT)
