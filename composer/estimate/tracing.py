"""A run of a program on tensors without storage, which counts what its operators compute and move, and the memory that is held.

The program itself runs, on tensors that have shapes and no values: nothing that it does can be forgotten. Values that depend on
no weight are known all the same. Where the program asks for another, such as whether the gradient is finite, the answer is yes;
where a shape depends on values that are not known, all of them count.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from composer.estimate.gpu_kernels import gpu_kernels
from composer.estimate.known_values import KnownValues
from composer.estimate.work import ATTENTION, MATMUL, MEMORY, Operation, Work
from composer.train import chunked_loss

FORWARD, BACKWARD, STEP = "forward pass", "backward pass", "optimizer step"
"""The phases of a training step."""
PRECISIONS = {torch.float32: "fp32", torch.float64: "fp32", torch.bfloat16: "bf16", torch.float16: "bf16"}
# fmt: off
FUNCTION_OPERATORS = frozenset({
    "exp", "exp2", "expm1", "log", "log1p", "log2", "sigmoid", "tanh", "erf", "sin", "cos", "pow", "rsqrt", "sqrt", "softplus",
    "gelu", "silu", "mish", "elu", "asinh", "log_sigmoid_forward", "log_sigmoid_backward", "sigmoid_backward", "tanh_backward",
    "gelu_backward", "silu_backward", "softplus_backward", "mish_backward", "elu_backward", "_softmax", "_log_softmax",
    "_softmax_backward_data", "_log_softmax_backward_data", "logsumexp", "atan2",
})
"""Operators that take longer than memory needs to bring their values, on a CPU."""
RANDOM_OPERATORS = frozenset({
    "native_dropout", "bernoulli", "bernoulli_", "normal_", "uniform_", "rand", "rand_like", "randn", "randn_like",
})
# fmt: on
"""Operators that draw random numbers."""
FUNCTIONS_OF_A_DRAW = 7
"""How many functions such as exp take as long as one random number, which a CPU draws one after the other: 7 by
`bernoulli_` with two threads."""
ROW_OPERATORS = frozenset({"embedding", "index_select", "index", "gather", "_index_put_impl_", "index_put", "index_put_"})
"""Operators that read or write as many values of a table as they return, and not the table."""
FLAG_OPERATORS = frozenset({"index", "index_put", "index_put_", "_index_put_impl_"})
"""Operators that take flags for indices."""
FREE_OPERATORS = frozenset(
    {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "alias", "_unsafe_view"}
)
"""Operators that touch no values."""


class Tracer(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no annotation
    """Counts operators and the memory of tensors, by the phase and the part of the model that runs."""

    def __init__(self, *, on_gpu: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.on_gpu = on_gpu
        self.known = KnownValues()
        self.work: Work = Counter()
        self.phase = FORWARD
        self.times = 1
        """How many operators alike each one stands for."""
        self.place = ""
        """The name of the module that runs; empty outside of all."""
        self.live = 0
        """Bytes of all storages that are held."""
        self.peaks: dict[str, int] = {}
        """The most that was held, by phase."""
        self.held: dict[int, tuple[weakref.ref[Any], int, str]] = {}
        """The storages that are held: their sizes, and the places where they were made."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator, and count it."""
        kwargs = kwargs or {}
        space, _, name = func._schema.name.partition("::")
        if space == "prim":  # a question for the device of a tensor without storage, which a real one answers itself
            return func(*args, **kwargs)
        if name in ANSWERS:
            known = self.known.compute(func, args, kwargs)
            return ANSWERS[name](*args) if known is None else known
        if name in DEPENDING:
            known = self.known.compute(func, args, kwargs)
            result = DEPENDING[name](*args) if known is None else args[0].new_empty(known.shape, dtype=known.dtype)
            if known is not None:
                self.known.say(result, known)
            self._count(func, name, args, kwargs, result)
            return result
        if name in FLAG_OPERATORS and any(_is_flags(each) for each in args[1]):
            places = [place for each in args[1] for place in (self._places(each) if _is_flags(each) else [each])]
            args = (args[0], places, *args[2:])
        result = func(*args, **kwargs)
        if name == "mkldnn_rnn_layer":
            result = (*result[:3], _workspace(args[0], args[2], on_gpu=self.on_gpu))
        self.known.note(func, args, kwargs, result)
        self._count(func, name, args, kwargs, result)
        return result

    def _places(self, flags: Tensor) -> Sequence[Tensor]:
        """Return the indices of the flags that are true, of those that are not known all."""
        found: Tensor = self.__torch_dispatch__(torch.ops.aten.nonzero.default, (), (flags,))
        return found.unbind(1)

    def _count(self, func: Any, name: str, args: Any, kwargs: Any, result: Any) -> None:
        """Add an operator to the work, and the storages that it returns to what is held."""
        returned = [value for value in tree_leaves(result) if isinstance(value, Tensor)]
        allocated = sum([self._hold(value) for value in returned])
        given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
        read = written = flops = functions = 0
        kind, precision = MEMORY, "fp32"
        if not (func.is_view or name in FREE_OPERATORS):
            changed = returned or given[:1]  # one that works in place may return nothing
            written = sum(map(_size, changed))
            rows = name in ROW_OPERATORS
            read = min(sum(map(_size, given)), 2 * written) if rows else sum(map(_size, given))
            if flops := flops_of(func, name, args, kwargs, result):
                kind = ATTENTION if ATTENTION in name else MATMUL
                precision = PRECISIONS.get(returned[0].dtype, "fp32")
            elif name in FUNCTION_OPERATORS | RANDOM_OPERATORS:
                values = max((value.numel() for value in changed), default=0)
                functions = values * (FUNCTIONS_OF_A_DRAW if name in RANDOM_OPERATORS else 1)
        if self.phase == STEP and name == "zeros_like":
            return  # the optimizer makes its state once
        steps = given[0].shape[0] if name in RECURRENT_OPERATORS else 1
        parts = (each // steps for each in (flops, functions, read, written, allocated))
        self.work[Operation(self.phase, kind, precision, *parts)] += steps * self.times

    def _hold(self, value: Tensor) -> int:
        """Add the storage of a tensor to what is held, and return its size; 0 if it is held already."""
        storage = value.untyped_storage()
        key = id(storage)
        if key in self.held:
            return 0
        size = storage.nbytes()

        def gone(_: object) -> None:
            self.live -= size
            del self.held[key]

        self.held[key] = (weakref.ref(storage, gone), size, self.place)
        self.live += size
        self.peaks[self.phase] = max(self.peaks.get(self.phase, 0), self.live)
        return size

    def by_place(self) -> dict[str, int]:
        """Return the bytes that are held, by the place where they were made."""
        found: Counter[str] = Counter()
        for _, size, place in self.held.values():
            found[place] += size
        return dict(found)


def _size(value: Tensor) -> int:
    """Return the bytes of a tensor; one that repeats its values has those of its storage."""
    return min(value.numel() * value.element_size(), value.untyped_storage().nbytes())


def _is_flags(value: object) -> bool:
    return isinstance(value, Tensor) and value.dtype in (torch.bool, torch.uint8)


def _workspace(x: Tensor, of_states: Tensor, *, on_gpu: bool) -> Tensor:
    """Return what an LSTM keeps for its backward pass besides its output, given x [T, B, I] and the matrix of the states [4H, H].

    On a CPU, oneDNN keeps gates, states and room for their gradients, in rows as wide as the wider of input and state; measured,
    within a twentieth. On a GPU, gates, the state of the cell and its tanh are counted.
    """
    steps, rows, width = x.shape
    hidden = of_states.shape[-1]
    values = 6 * steps * hidden if on_gpu else 9 * steps * hidden + 6 * (steps + 1) * max(width, hidden)
    return x.new_empty(4 * rows * values, dtype=torch.uint8)


ANSWERS: Mapping[str, Callable[..., Any]] = {
    "_local_scalar_dense": lambda value: True if value.dtype == torch.bool else 1.0 if value.is_floating_point() else 1,
    "is_nonzero": lambda value: True,
    "equal": lambda one, other: True,
}
"""What is answered where a program asks for a value."""
DEPENDING: Mapping[str, Callable[..., Any]] = {
    "nonzero": lambda flags: flags.new_empty((flags.numel(), flags.dim()), dtype=torch.long),
    "masked_select": lambda value, flags: value.new_empty(value.numel()),
}
"""Operators whose shapes depend on values: as if all flags were true."""


def flops_of(func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> int:
    """Return the FLOPs of an operator; 0 for one that torch does not count, as it moves values only."""
    if ATTENTION in name:
        return _attention_flops(func, name, args, kwargs)
    packet = func._overloadpacket
    formula = OWN_FORMULAS.get(name) or flop_registry.get(packet)
    return 0 if formula is None else int(formula(*args, **kwargs, out_val=result))


def _attention_flops(func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """Return the FLOPs of fused attention, of which a causal mask leaves half; its backward pass computes the scores again."""
    given = {each.name: each.default_value for each in func._schema.arguments}
    given |= dict(zip(given, args, strict=False)) | dict(kwargs)
    query, key, value = given["query"], given["key"], given["value"]
    *before, rows, width = query.shape
    pairs = prod(before) * rows * key.shape[-2]
    if given["is_causal"] and rows > 1:
        pairs //= 2
    each = 6 * width + 4 * value.shape[-1] if name.endswith("backward") else 2 * (width + value.shape[-1])
    return int(pairs * each)


OWN_FORMULAS: Mapping[str, Callable[..., int]] = {
    "mkldnn_rnn_layer": lambda x, first, second, *_, **__: _recurrent_flops(x, first, second),
    "mkldnn_rnn_layer_backward": lambda x, first, second, *_, **__: 2 * _recurrent_flops(x, first, second),
}
"""The FLOPs of operators that torch does not count."""


def _recurrent_flops(x: Tensor, first: Tensor, second: Tensor) -> int:
    """Return those of a recurrent layer: each row x [T, B, D] and each state is multiplied by a matrix."""
    return 2 * (x.numel() // x.shape[-1]) * (first.numel() + second.numel())


RECURRENT_OPERATORS = frozenset({"mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"})
"""Operators that compute one step after the other."""


BACKWARD_OF_TENSOR: Any = Tensor.backward


class Phases(TorchFunctionMode):
    """Tells a tracer where the backward pass begins and ends, and what is held between the passes."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self.tracer = tracer
        self.kept: list[Mapping[str, int]] = []
        """What is held at the end of each forward pass, by place."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function of torch."""
        if func is not BACKWARD_OF_TENSOR:
            return func(*args, **(kwargs or {}))
        self.kept.append(self.tracer.by_place())
        self.tracer.phase = BACKWARD
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.tracer.phase = STEP


@contextmanager
def tracing(*, on_gpu: bool = False) -> Iterator[Tracer]:
    """Run what is inside on tensors without storage.

    Args:
        on_gpu: Whether the operators are those of a GPU, where they differ.
    """
    tracer = Tracer(on_gpu=on_gpu)
    with FakeTensorMode(allow_non_fake_inputs=True), tracer, _few_chunks(tracer), gpu_kernels() if on_gpu else nullcontext():
        yield tracer


@contextmanager
def _few_chunks(tracer: Tracer) -> Iterator[None]:
    """Let the third chunk of a loss in chunks stand for all that follow but the last: they are alike, and there may be millions.

    As with the kernels of a GPU, a function is replaced in this process.
    """
    all_of = chunked_loss.chunks

    def some(count: int, positions: int) -> Iterator[slice]:
        number = -(-count // positions)
        for index in sorted({0, *range(1, min(number, 3)), number - 1} if number else ()):
            tracer.times = number - 3 if index == 2 and number > 3 else 1
            yield slice(index * positions, (index + 1) * positions)
        tracer.times = 1

    chunked_loss.chunks = some
    try:
        yield
    finally:
        chunked_loss.chunks = all_of


@contextmanager
def places(model: nn.Module, tracer: Tracer) -> Iterator[None]:
    """Let the tracer know which module of a model runs."""
    above: list[str] = []

    def enter(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Sequence[Any]) -> None:
            above.append(tracer.place)
            tracer.place = name

        return hook

    def leave(module: nn.Module, args: Sequence[Any], output: Any) -> None:
        tracer.place = above.pop()

    with ExitStack() as stack:
        for name, module in model.named_modules():
            if name:
                stack.callback(module.register_forward_pre_hook(enter(name)).remove)
                stack.callback(module.register_forward_hook(leave).remove)
        yield
