"""The training loop, for one model on one device."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from composer.language.wording import counted
from composer.lower.model import Model
from composer.lower.tail_module import tail
from composer.train.chunked_loss import positions_at_a_time
from composer.train.criteria.criterion import TASK_LOSS, Criterion
from composer.train.data.objectives import Batches
from composer.train.data.order import at_batch
from composer.train.device import on_device
from composer.train.errors import TrainingError
from composer.train.following.callbacks import Callback, Callbacks, RunStart
from composer.train.interrupt import Interrupted, stop_requests
from composer.train.losses import Batch, task_of
from composer.train.memory import enough_memory
from composer.train.optimization.accumulation import shares
from composer.train.optimization.optimizers import OPTIMIZERS
from composer.train.optimization.schedule import learning_rate
from composer.train.progress import Display, Moment
from composer.train.run.checkpoint import Checkpoint, Report
from composer.train.run.state import capture, restore
from composer.train.run.trained import vocabulary_of
from composer.train.run.writer import RunWriter
from composer.train.settings import TrainSettings
from composer.train.techniques.average import averaged, update_averages
from composer.train.techniques.compiling import compiled_modules
from composer.train.techniques.precision import autocast
from composer.train.techniques.recompute import recomputing
from composer.train.validation import Validation, unit_of, validate

D = TypeVar("D")

STEPS_AHEAD = 16
"""For how many small steps batches are drawn at a time."""
SMALL_STEP = 2**13
"""The tokens of a step that is small; a larger one takes much longer than its draw."""


@dataclass(frozen=True)
class TrainStep:
    """Measurements of one step, taken before the weights change."""

    loss: float
    by_name: dict[str, float]
    gradient_norm: float
    """Norm of all gradients together, before clipping."""
    tokens: int
    """Number of targets."""

    @property
    def parts(self) -> dict[str, float]:
        """The losses by name, if there are several."""
        return self.by_name if len(self.by_name) > 1 else {}

    def line(self) -> dict[str, float | int]:
        """Return the entries for the file of metrics."""
        parts = {f"loss/{name}": value for name, value in self.parts.items()}
        return {"loss": self.loss, **parts, "gradient_norm": self.gradient_norm}


class Pace:
    """The speed of the latest 50 steps, enough to smooth the estimate of the time left."""

    seconds_per_step: float
    """Mean duration of a step."""
    tokens_per_second: float
    """Targets per second."""

    def __init__(self) -> None:
        self.tokens: deque[int] = deque(maxlen=50)
        self.seconds: deque[float] = deque(maxlen=50)

    def add(self, tokens: int, seconds: float) -> None:
        """Add a step."""
        self.tokens.append(tokens)
        self.seconds.append(seconds)
        total = sum(self.seconds)
        self.seconds_per_step, self.tokens_per_second = total / len(self.seconds), sum(self.tokens) / total


@dataclass(frozen=True)
class Result:
    """The result of a finished run."""

    run: Path
    task: str
    """The task of the model."""
    step: int
    loss: float
    """Training loss of the last step."""
    validation: Validation
    seconds: float
    """Time spent in training steps, before and after interruptions."""

    def __str__(self) -> str:
        return f"{counted(self.step, 'step')} in {self.seconds:.0f} s: validation {self.validation}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def fit(
    model: nn.Module,
    data: D,
    settings: TrainSettings,
    run: RunWriter,
    *,
    objective: Batches[D],
    display: Display,
    start: Checkpoint | None = None,
    report: Report | None = None,
    recipe: str = "",
    callbacks: Sequence[Callback] = (),
    criterion: Criterion = TASK_LOSS,
    validated_by: Criterion = TASK_LOSS,
) -> Result:
    """Train from the beginning, or from a checkpoint exactly as if the run had not stopped.

    A step with a validation is saved before it, with its report, so that nothing is lost if the process dies while it validates.

    Raises:
        TrainingError: A loss or gradient is not finite, or the run folder cannot be written.
        Interrupted: The process was asked to stop, and a checkpoint is saved.
    """
    optimizer = build_optimizer(model, settings)
    settings = with_logits_chunk(settings, model)
    generator = torch.Generator()  # of the data
    torch.manual_seed(settings.seed)  # dropout
    first, tokens, seconds = 1, 0, 0.0
    if start is not None:
        restore(start, model, optimizer)
        first, tokens, seconds = start.step + 1, start.tokens, start.seconds

    def save(step: int, report: Report | None) -> None:
        run.save(capture(model, optimizer, step=step, tokens=tokens, seconds=seconds, report=report))

    def validated(step: int, report: Report) -> Validation:
        sizes = {"batch_size": settings.batch_size, "seq_len": settings.seq_len, "logits_chunk": settings.logits_chunk or 0}
        with averaged(optimizer), torch.compiler.set_stance("force_eager"):  # compiled, it may depend on lengths seen before
            reading = {**sizes, "batches": report.batches}
            held_out = validate(model, data, objective, **reading, precision=settings.precision, criterion=validated_by)
        display.validated(step, held_out)
        line = {**report.line, **held_out.line()}
        run.append(line)
        followers.logged(line)
        return held_out

    followers = Callbacks(callbacks)
    model.train()
    pace = Pace()
    unit, utilization = criterion.unit or unit_of(model, data), None
    dynamic = not objective.windows
    with (
        display,
        last_words(display, run),
        stop_requests(display.note) as stop,
        recomputing(model, settings.recompute),
        compiled_modules(model, settings.compile, dynamic=dynamic),
        followers.following(RunStart(model, settings, run.folder, recipe, first - 1)),
    ):
        if start is not None and report is not None:
            held_out, loss = validated(start.step, report), report.line["loss"]
            run.seal()
        drawn = batches_by_step(first, objective, data, settings, generator)
        for step in range(first, settings.steps + 1):
            began = time.perf_counter()
            rate = learning_rate(settings, settings.schedule, step)
            last = step == settings.steps
            validating = last or every(settings.validate_every, step)
            logged = validating or every(settings.log_every, step)
            followers.before_step(step, logged=logged)
            with enough_memory(settings):
                batches = next(drawn)
                then = partial(followers.after_backward, step)
                measured = update(model, optimizer, batches, settings, rate=rate, criterion=criterion, then=then)
            if not measured.gradient_norm < float("inf"):
                raise not_a_number(measured, step, rate, run)
            elapsed = time.perf_counter() - began
            tokens, seconds, loss = tokens + measured.tokens, seconds + elapsed, measured.loss
            pace.add(measured.tokens, elapsed)

            left = pace.seconds_per_step * (settings.steps - step)
            if logged:
                line = {"step": step, **measured.line(), "learning_rate": rate, "tokens": tokens, "seconds": round(seconds, 3)}
                line["tokens_per_second"] = round(pace.tokens_per_second, 1)
                line = followers.with_metrics(line)
                utilization = line.get("mfu", utilization)
            moment = Moment(
                step, settings.steps, measured.loss, rate, pace.tokens_per_second, left, measured.parts, unit, utilization
            )
            display.step(moment, logged=logged)
            saving = last or stop.made or every(settings.save_every, step)
            if validating:
                report = Report(line, 0 if last else settings.validation_batches)
                if saving:
                    save(step, report)
                held_out = validated(step, report)
                if saving:
                    run.seal()
            elif logged:
                run.append(line)
                followers.logged(line)
            if not (saving and validating) and (saving or stop.made):  # the request may have come during the validation
                save(step, None)
            if stop.made and not last:
                display.note(f"saved step {step}; to continue: {run.folder.resume_command}")
                raise Interrupted(stop.number)
    return Result(run.folder.path, task_of(model) or "", settings.steps, loss, held_out, seconds)


def batches_by_step(
    first: int, objective: Batches[D], data: D, settings: TrainSettings, generator: torch.Generator
) -> Iterator[list[Batch]]:
    """Yield the batches of each step, from the first on.

    Small windows of text are drawn for several steps at a time: right after another one, a draw takes a third of what it takes
    after a step, which has driven it out of the caches of the processor.
    """
    small = objective.windows and settings.batch_size * settings.seq_len * settings.grad_accum <= SMALL_STEP
    ahead = STEPS_AHEAD if small else 1
    for begin in range(first, settings.steps + 1, ahead):
        steps = range(begin, min(begin + ahead, settings.steps + 1))
        yield from [batches_of_step(step, objective, data, settings, generator) for step in steps]


def batches_of_step(
    step: int, objective: Batches[D], data: D, settings: TrainSettings, generator: torch.Generator
) -> list[Batch]:
    """Return the batches of a step, which depend on the seed and the number of the step alone."""
    begun = (step - 1) * settings.grad_accum
    return [
        objective.draw(
            data, batch_size=settings.batch_size, seq_len=settings.seq_len,
            generator=at_batch(generator, settings.seed, begun + number),
        )
        for number in range(settings.grad_accum)
    ]  # fmt: skip


def with_logits_chunk(settings: TrainSettings, model: nn.Module) -> TrainSettings:
    """Return the settings with the positions whose logits are computed at a time, chosen by the vocabulary unless given."""
    if settings.logits_chunk is not None:
        return settings
    end = tail(model) if isinstance(model, Model) else None
    weights = 0 if end is None else sum(each.numel() for each in end.module.parameters())
    return replace(settings, logits_chunk=positions_at_a_time(vocabulary_of(model) or 0, weights))


def build_optimizer(model: nn.Module, settings: TrainSettings) -> Optimizer:
    """Return the optimizer of the settings over the model's parameters, with decay by role."""
    return OPTIMIZERS[settings.optimizer].build(model, settings)


def update(
    model: nn.Module,
    optimizer: Optimizer,
    batches: Sequence[Batch],
    settings: TrainSettings,
    *,
    rate: float,
    criterion: Criterion = TASK_LOSS,
    then: Callable[[], None] = lambda: None,
) -> TrainStep:
    """Update the weights by the gradient of the mean loss over all batches, unless the gradient is not finite; `then` is called
    as soon as it is there.
    """
    gradients = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    device = gradients[0].device
    task = task_of(model) or ""
    counts = [criterion.count(batch, task) for batch in batches]
    by_name: dict[str, Tensor] = {}
    for batch, count, share in zip(batches, counts, shares(model, batches, counts, task), strict=True):
        with autocast(device, settings.precision):
            part = criterion.loss(
                model,
                on_device(batch, device),
                label_smoothing=settings.label_smoothing,
                logits_chunk=settings.logits_chunk or 0,
                count=count,
            )[0]  # without the output, which would be held through the backward pass
        # Not 1 / len(batches): every target counts the same, however unequal the batches.
        weighed = {name: scaled(value, share.get(name, share[task])) for name, value in part.by_name.items()}
        several = [*weighed.values()]
        (several[0] if len(several) == 1 else torch.stack(several).sum()).backward()  # type: ignore[no-untyped-call]  # torch's
        for name, value in weighed.items():
            by_name[name] = by_name[name] + value.detach() if name in by_name else value.detach()
    then()
    norm = float(nn.utils.clip_grad_norm_(gradients, settings.max_grad_norm or float("inf")))
    if isfinite(norm):
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("rate", 1.0)  # of muP
        optimizer.step()
        if settings.average:
            update_averages(optimizer, settings.average)
    optimizer.zero_grad()
    measured = {name: float(value) for name, value in by_name.items()}
    return TrainStep(sum(measured.values()), measured, norm, sum(counts))


def scaled(loss: Tensor, share: float) -> Tensor:
    """Return a loss times the share of its batch, which is 1 where there is one batch."""
    return loss if share == 1 else loss * share


def every(interval: int, step: int) -> bool:
    """Return whether the step is a multiple of the interval; an interval of 0 means never."""
    return interval > 0 and step % interval == 0


@contextmanager
def last_words(display: Display, run: RunWriter) -> Iterator[None]:
    """Tell how a run goes on that is stopped at once, within a step, a validation or a save."""
    try:
        yield
    except Interrupted:  # which has told
        raise
    except KeyboardInterrupt as error:
        lost = "stopped before the first checkpoint; there is nothing to continue"
        text = lost if run.last is None else f"stopped at once; to continue from {run.last}: {run.folder.resume_command}"
        display.note(text)
        error.add_note(text)
        raise


def not_a_number(measured: TrainStep, step: int, rate: float, run: RunWriter) -> TrainingError:
    """Return the error of a run that diverged; the weights are those before the step."""
    what = "gradient" if abs(measured.loss) < float("inf") else f"loss ({measured.loss})"
    kept = "no checkpoint has been saved yet" if run.last is None else f"the last good checkpoint is {run.last}"
    return TrainingError(
        f"the {what} is not finite at step {step}, with a learning rate of {rate:.2g}; {kept}",
        hint="lower the learning rate, lengthen the warm-up, or clip the gradients",
    )
