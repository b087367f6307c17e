"""The loss from a few logits at a time equals the loss from all of them, with its gradients."""

from __future__ import annotations

import copy

import pytest
import torch

from composer.language.tasks import TASKS
from composer.lower.tail_module import tail
from composer.train.losses import IGNORED, loss, task_of
from tests.conformance.cases import CASES, each_of, models
from tests.conformance.inputs import draw

LENGTHS = {"batch": 3, "time": 7, "source_time": 5}


def ends(case):
    """Return copies of the models of a case whose loss can be computed in chunks, in float64."""
    made = [model for model in models(case) if TASKS.get(task_of(model) or "") and TASKS[task_of(model)].targets]
    return [copy.deepcopy(model).double() for model in made if tail(model) is not None]


def gradients(model, batch, **how):
    """Return the loss and the gradient of every parameter."""
    model.zero_grad()
    torch.manual_seed(0)
    total = loss(model, batch, **how).total
    total.backward()
    return total.detach(), {name: one.grad for name, one in model.named_parameters()}


@each_of(CASES, every=3)
def test_chunks_give_the_loss_and_the_gradients_of_all_positions(case):
    """Chunks of four positions, of which the last is shorter, with targets left out and label smoothing."""
    for model in ends(case):
        task = task_of(model)
        given = draw(model.program, LENGTHS, dtype=torch.float64)
        shape = model(**given).logits.shape
        targets = torch.randint(shape[-1], shape[:2], generator=torch.Generator().manual_seed(1))
        targets[:, ::3] = IGNORED
        batch = {**given, TASKS[task].targets: targets}
        whole, expected = gradients(model, batch, label_smoothing=0.1)
        parts, found = gradients(model, batch, label_smoothing=0.1, logits_chunk=4)
        torch.testing.assert_close(parts, whole)
        torch.testing.assert_close(found, expected)
        with torch.no_grad():
            torch.testing.assert_close(loss(model, batch, logits_chunk=4).total, loss(model, batch).total)


def test_logits_are_computed_only_where_there_are_targets():
    """Of a masked language model, in chunks of two and one."""
    (model,) = ends("zoo bert")
    counts: list[int] = []
    model.head.register_forward_hook(lambda _, inputs, output: counts.append(output.shape[1]))
    for name, module in model.head.named_children():
        module.register_forward_hook(lambda _, inputs, output, name=name: counts.append(output.shape[1]))
    labels = torch.full((2, 6), IGNORED)
    labels[0, 1] = labels[1, 3] = labels[1, 4] = 2
    given = draw(model.program, {"batch": 2, "time": 6}, dtype=torch.float64)
    loss(model, {**given, "labels": labels}, logits_chunk=2)
    assert set(counts) == {1, 2}  # that of the call of the model is of one position, too


def test_the_end_has_the_modules_that_the_model_has_now():
    """Also after one was replaced, and in a copy."""
    (model,) = ends("zoo gpt_mini")
    tail(model)
    other = torch.nn.Linear(model.head.in_features, model.head.out_features, bias=False, dtype=torch.float64)
    model.head = other
    assert tail(model).module.head is other
    copied = copy.deepcopy(model)
    assert tail(copied).module.head is copied.head is not other


def test_a_chunked_loss_has_its_gradients_once():
    """They are scaled in place."""
    (model,) = ends("zoo gpt_mini")
    total = loss(model, draw(model.program, LENGTHS), logits_chunk=4).total
    total.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="only once"):
        total.backward()


def test_the_end_of_a_model_is_found():
    """Of the usual decoders, encoders and translators, from the last norm or the head's first layer on."""
    first = {case: ends(case)[0] for case in ("zoo gpt_mini", "zoo gemma2", "zoo t5", "zoo bert")}
    assert {case: [*dict(tail(model).module.named_children())] for case, model in first.items()} == {
        "zoo gpt_mini": ["norm", "head"],
        "zoo gemma2": ["norm", "head"],
        "zoo t5": ["decoder_norm", "drop_out", "head"],
        "zoo bert": ["head"],
    }
