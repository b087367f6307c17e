"""Estimates of a recipe: its training step, forward pass and next token, run on tensors without storage."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from blocks.losses.loss import Loss
from composer.cost.lengths import axes, lengths_of, unknown_axis
from composer.decode.session import Session
from composer.diagnostics import RecipeError
from composer.estimate.devices import DeviceSpec, EstimateError
from composer.estimate.estimates import Estimate, TrainingMemory
from composer.estimate.tracing import BACKWARD, FORWARD, STEP, Phases, places, tracing
from composer.estimate.work import Work, duration
from composer.graph.dims import names, substitute
from composer.graph.typed import TypedBlock, TypedProgram
from composer.graph.types import TensorType
from composer.language.tasks import TASKS
from composer.train.data.hiding.corruption import SHARE
from composer.train.loop import build_optimizer, update, with_logits_chunk
from composer.train.losses import IGNORED, OUTPUT_LOSSES, output_of
from composer.train.settings import TrainSettings
from composer.train.starts import freeze
from composer.train.techniques.precision import autocast, is_bfloat16
from composer.train.techniques.recompute import recomputing

if TYPE_CHECKING:
    from composer.lower.model import Model
    from composer.lower.passes.cache_layout import GrowingInput
    from composer.recipe import Recipe

DTYPES = {"int": torch.long, "float": torch.float32, "bool": torch.bool}
CPU = torch.device("cpu")


def estimate(
    recipe: Recipe,
    lengths: Mapping[str, int] | None = None,
    *,
    device: DeviceSpec | None = None,
    settings: TrainSettings | None = None,
) -> Estimate:
    """Return the memory that a model is estimated to take, and on a device also the time.

    The step of `arco train` itself runs, forward, backward and optimizer, on tensors without storage, so that every model can be
    estimated, however large. Nothing is compiled by `torch.compile`. Memory is what tensors hold, to which the driver of a GPU
    adds some hundred MB, and an allocator its gaps.

    Args:
        recipe: The recipe.
        lengths: Lengths of axes, such as `{"batch": 8, "time": 1024}`; the others are those of `Recipe.summary`.
        device: One of `DEVICES`, or from `measure_device` or `read_device`; without one, memory is that of a GPU.
        settings: The settings of training, of which `optimizer`, `grad_accum`, `precision`, `recompute`, `freeze`,
            `logits_chunk` and `average` count. The precision `auto` is that in which `arco train` trains on the device.

    Raises:
        RecipeError: The recipe has errors, or no such axis.
        TrainingError: A pattern of the settings matches nothing.
        EstimateError: The shape of a value depends on other values in a way that cannot be guessed, or is too large.

    Examples:
        >>> import composer
        >>> from composer.estimate import DEVICES, estimate
        >>> found = estimate(composer.load("gpt2"), {"batch": 8}, device=DEVICES["h200"])
        >>> found.training.weights == 4 * 124_439_808
        True
        >>> found.training.peak < DEVICES["h200"].memory
        True
    """
    settings = settings or TrainSettings()
    if settings.precision == "auto":
        settings = replace(settings, precision="bf16" if device is None else device.precision)
    on_gpu = device is None or device.overlaps
    model = recipe.compile(device="meta")
    typed = model.program
    if unknown := [name for name in lengths or {} if name not in axes(typed)]:
        raise RecipeError([unknown_axis(unknown[0], axes(typed))])
    at = lengths_of(typed, lengths or {})
    forward = traced_forward(model, at, settings, on_gpu=on_gpu)
    found = Estimate(
        name=recipe.name,
        lengths=at,
        parameters=sum(each.numel() for each in model.parameters()),
        precision="bf16" if is_bfloat16(settings.precision, "cpu") else "fp32",
        optimizer=settings.optimizer,
        device=device,
        tokens=_tokens(typed, at, settings),
        rows=at.get("batch", 1) * settings.grad_accum,
        forward=None if device is None else duration(forward.work, device),
        forward_peak=forward.peak,
    )
    if is_trainable(model):
        step = traced_step(model, at, settings, on_gpu=on_gpu)
        repeated = dict.fromkeys((FORWARD, BACKWARD), settings.grad_accum / step.batches)
        time = None if device is None else duration(step.work, device, repeated)
        found = replace(found, training=step.memory, step=time)
    if (session := traced_session(model, at, settings, on_gpu=on_gpu)) is not None:
        token = None if device is None else duration(session.work, device)
        found = replace(found, session=session.kept, token=token)
    return found


@dataclass(frozen=True)
class TracedStep:
    """A training step that ran without storage."""

    memory: TrainingMemory
    work: Work
    batches: int
    """Its forward passes; two stand for more, since all after the first are alike."""


@dataclass(frozen=True)
class TracedPass:
    """A pass that ran without storage."""

    work: Work
    peak: int
    kept: int
    """The bytes that are held afterwards, besides weights and inputs."""


def is_trainable(model: Model) -> bool:
    """Return whether the recipe says what the model learns, and any parameter is trained."""
    task = model.recipe.task
    learns = bool(model.program.untyped.losses) or (bool(task) and (task in OUTPUT_LOSSES or bool(TASKS[task or ""].targets)))
    return learns and any(each.requires_grad for each in model.parameters())


def traced_step(model: Model, lengths: Mapping[str, int], settings: TrainSettings, *, on_gpu: bool) -> TracedStep:
    """Run a training step without storage.

    Raises:
        TrainingError: A pattern of the settings matches nothing.
        EstimateError: A shape depends on values in a way that cannot be guessed.
    """
    batches = min(settings.grad_accum, 2)
    freeze(model, settings.freeze)
    model = copy.deepcopy(model)  # it is changed in place
    with tracing(on_gpu=on_gpu) as tracer, _guessing(), Phases(tracer) as phases:
        model = model.to_empty(device=CPU).train()
        weights = tracer.live
        optimizer = build_optimizer(model, settings)
        for group in optimizer.param_groups if on_gpu else ():
            group["foreach"] = not group.get("fused")  # as torch chooses on a GPU: faster, with copies of all parameters at once
        settings = with_logits_chunk(settings, model)
        batch = batch_of(model.program, lengths)
        before = tracer.by_place()
        tracer.work.clear()
        tracer.peaks.clear()

        def begins(module: object, args: object) -> None:
            tracer.phase = FORWARD

        gradients = _Gradients()
        handles = [model.register_forward_pre_hook(begins)]
        handles += [
            each.register_post_accumulate_grad_hook(gradients)  # type: ignore[no-untyped-call]  # torch has no annotation
            for each in model.parameters()
            if each.requires_grad
        ]
        try:
            with recomputing(model, settings.recompute), places(model, tracer):
                update(model, optimizer, [batch] * batches, settings, rate=settings.learning_rate)
        finally:
            for handle in handles:
                handle.remove()
        inputs = sum(value.untyped_storage().nbytes() for value in batch.values())
        state = tracer.live - weights - inputs
    kept = Counter(phases.kept[0])
    kept.subtract(before)
    by_node: Counter[str] = Counter()
    for place, size in kept.items():
        if size > 0:
            by_node[node_of(place)] += size
    # The first step makes the optimizer's state, which later steps hold from the beginning.
    peaks = {phase: peak + (0 if phase == STEP else state) for phase, peak in tracer.peaks.items()}
    phase = max(peaks, key=peaks.__getitem__)
    memory = TrainingMemory(
        weights=weights,
        gradients=gradients.size,
        optimizer=state,
        activations=sum(by_node.values()),
        by_node=dict(by_node.most_common()),
        peak=peaks[phase],
        peak_phase=phase,
    )
    return TracedStep(memory, tracer.work, batches)


class _Gradients:
    """Adds up the gradients of parameters when they are there."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.size = 0

    def __call__(self, parameter: Tensor) -> None:
        if id(parameter) not in self.seen and parameter.grad is not None:
            self.seen.add(id(parameter))
            self.size += parameter.grad.untyped_storage().nbytes()


def traced_forward(model: Model, lengths: Mapping[str, int], settings: TrainSettings, *, on_gpu: bool) -> TracedPass:
    """Run a forward pass without storage, without gradients, in evaluation mode.

    Raises:
        EstimateError: A shape depends on values in a way that cannot be guessed.
    """
    model = copy.deepcopy(model)  # it is changed in place
    with tracing(on_gpu=on_gpu) as tracer, _guessing(), torch.no_grad():
        model = model.to_empty(device=CPU).eval()
        batch = batch_of(model.program, lengths)
        before = tracer.live
        tracer.work.clear()
        with autocast(CPU, settings.precision):
            output = output_of(model, batch)
        kept = tracer.live - before
        del output
    return TracedPass(tracer.work, tracer.peaks[FORWARD], kept)


def traced_session(model: Model, lengths: Mapping[str, int], settings: TrainSettings, *, on_gpu: bool) -> TracedPass | None:
    """Run a session without storage up to the given length, and count its last token; None if the model writes no text.

    Raises:
        EstimateError: A shape depends on values in a way that cannot be guessed.
    """
    task = model.recipe.task
    text = TASKS[task].text if task else ""
    layout = model.cache_layout
    if not text or layout is None:
        return None
    model = copy.deepcopy(model)  # it is changed in place
    if is_bfloat16(settings.precision, "cpu"):
        model = model.to(torch.bfloat16)
    with tracing(on_gpu=on_gpu) as tracer, _guessing():
        model = model.to_empty(device=CPU).eval()
        batch = inputs_of(model.program, lengths)
        length = batch[text].shape[1]
        before = tracer.live
        with Session(model, length, last_only=True):
            for start, stop in ((0, length - 1), (length - 1, length)):
                tracer.work.clear()
                if stop > start:
                    model(**{name: _part(value, layout.inputs.get(name), start, stop) for name, value in batch.items()})
            kept = tracer.live - before
    return TracedPass(tracer.work, tracer.peaks[FORWARD], kept)


def _part(value: Tensor, growing: GrowingInput | None, start: int, stop: int) -> Tensor:
    """Return what a call with some tokens is given of an input."""
    if growing is None:
        return value
    part = value.narrow(growing.rows, start, stop - start)
    return part if growing.all_rows is None else part.narrow(growing.all_rows, 0, stop)


class _guessing:
    """Turns what torch says of shapes that depend on values, or are too large, into an error that tells what to do."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, DataDependentOutputException | DynamicOutputShapeException | GuardOnDataDependentSymNode):
            raise EstimateError(
                f"the shape of a value depends on other values: {str(error).splitlines()[0]}",
                hint="a block of your own does this; torch.library.custom_op with register_fake can say the shape",
            ) from error
        if isinstance(error, RuntimeError) and "overflow" in str(error):
            raise EstimateError(
                "a tensor would have more than 2^63 bytes", hint="give smaller lengths, such as --at time=512"
            ) from error


def node_of(place: str) -> str:
    """Return the node of a recipe that a module belongs to, with what it holds: `layers.*.attn`; `loss` outside of the model."""
    found: list[str] = []
    for part in place.split("."):
        found.append("*" if part.isdigit() else part)
        if len([each for each in found if each != "*"]) == 2:
            break
    return ".".join(found) or "loss"


def inputs_of(typed: TypedProgram, lengths: Mapping[str, int], more: frozenset[str] = frozenset()) -> dict[str, Tensor]:
    """Return a tensor for each input that must be given, and for `more`."""
    return {name: _tensor(type_, lengths) for name, type_ in typed.inputs.items() if not type_.optional or name in more}


def _tensor(type_: TensorType, lengths: Mapping[str, int]) -> Tensor:
    """Return zeros, so that all tokens of a row are in one document; true, so that none is padding."""
    return torch.full([substitute(size, lengths) for size in type_.sizes], type_.dtype == "bool", dtype=DTYPES[type_.dtype])


def batch_of(typed: TypedProgram, lengths: Mapping[str, int]) -> dict[str, Tensor]:
    """Return the inputs and targets of a training step: those that must be given, and those that losses compare with."""
    compared: set[str] = set()
    for node in typed.untyped.losses.values():
        loss = typed.root[node]
        if isinstance(loss, TypedBlock) and isinstance(loss.part, Loss):
            compared |= {ref.node for wire in loss.node.wires for ref in wire.refs}
    batch = inputs_of(typed, lengths, frozenset(compared))
    task = typed.untyped.recipe.task
    targets = TASKS[task].targets if task else ""
    if not task or not targets or TASKS[task].text or targets in batch:
        return batch
    logits = typed.root.outputs["logits"]
    assert isinstance(logits, TensorType)
    batch[targets] = torch.zeros([substitute(size, lengths) for size in logits.sizes[:-1]], dtype=torch.long)
    if task == "masked_lm":
        batch[targets][:, max(1, round(SHARE * batch[targets].shape[1])) :] = IGNORED  # as many as training masks
    return batch


def _tokens(typed: TypedProgram, lengths: Mapping[str, int], settings: TrainSettings) -> int | None:
    """Return the positions of text in a training step."""
    task = typed.untyped.recipe.task
    if not task or TASKS[task].targets not in ("targets", "labels"):
        return None
    logits = typed.root.outputs["logits"]
    assert isinstance(logits, TensorType)
    sizes = [substitute(size, lengths) for size in logits.sizes[:-1]]
    assert not any(names(size) - lengths.keys() for size in logits.sizes[:-1])
    return settings.grad_accum * sizes[0] * sizes[1]
