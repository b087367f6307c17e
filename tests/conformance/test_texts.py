"""Models that write texts: nothing leaks from the future, and a text that is continued is the text that is read at once."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import pytest
import torch

from blocks.masks.data_masks import Documents
from blocks.masks.position_masks import Causal, Local, Window
from composer.decode import DecodeError
from composer.decode.session import session
from composer.graph.types import TensorType
from composer.lower import Model
from composer.verify.subject import Subject
from tests.conformance.cases import CASES, each_of, language_models, models
from tests.conformance.inputs import DRAWS, POSITIONS, blocks, draw, on

TIME = DRAWS[1]["time"]
WRITING = [case for case in CASES if not case.startswith("block ")]
"""Blocks by themselves have no task."""
each_case = each_of(WRITING)


def of_time(model: Model, name: str) -> bool:
    """Return whether an input has a value for each position of the text."""
    return "time" in map(str, model.program.inputs[name].sizes)


def stretch(model: Model, given: Mapping[str, torch.Tensor], start: int, stop: int | None) -> dict[str, torch.Tensor]:
    """Return the inputs of a stretch of tokens; what has no time is given whole, as it is with every call."""
    return {name: value[:, start:stop] if of_time(model, name) else value for name, value in given.items()}


def wide(model: Model, device: str) -> Model:
    """Return the model in float64, where a difference is one of meaning and not of rounding."""
    return copy.deepcopy(model).double().to(device)


def inputs(model: Model, device: str, *, optional: bool, padding: str = "", seed: int = 4) -> dict[str, torch.Tensor]:
    """Return the inputs of three rows; with padding on the left the second starts two tokens late, on the right it ends early."""
    given = on(device, draw(model.program, DRAWS[1], seed=seed, optional=optional, dtype=torch.float64))
    if padding and "valid" in given:
        given["valid"][:] = True
        given["valid"][1, {"left": slice(0, 2), "right": slice(-2, None)}[padding]] = False
    return given


def close(ours: torch.Tensor, theirs: torch.Tensor, model: Model, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance, msg=lambda m: f"{m}\n{model.recipe.text}")


@each_case
@torch.no_grad()
def test_causal_models_leak_nothing(case: str, device: str) -> None:
    """What comes later changes no earlier logit: every input of the text is replaced from some position on,
    other than where its tokens stand.
    """
    for model in (wide(model, device) for model in language_models(case)):
        for optional in (False, True):
            given = inputs(model, device, optional=optional)
            before = model(**given).logits
            for cut in (1, 4):
                following = {name for name in given if of_time(model, name) and name not in POSITIONS}
                changed = {name: later(value, cut) if name in following else value for name, value in given.items()}
                close(model(**changed).logits[:, :cut], before[:, :cut], model)


def later(value: torch.Tensor, cut: int) -> torch.Tensor:
    """Return the value with other rows' numbers from `cut` on, each row's for itself still in order."""
    return torch.cat([value[:, :cut], value[:, cut:].roll(1, 0)], dim=1)


@each_case
@torch.no_grad()
def test_a_text_can_be_continued_at_every_split(case: str, device: str) -> None:
    """The logits of two calls in a session, and of calls of one, three and all tokens, are those of one call, with padding on
    either side too; or a session refuses a call that does not hold the prefix, before it computes.
    """
    for model in (wide(model, device) for model in language_models(case)):
        for padding in ("", "left", "right"):
            given = inputs(model, device, optional=bool(padding), padding=padding)
            whole = model(**given).logits
            splits = [[(0, split), (split, None)] for split in range(1, TIME)]
            steps = [[(at, min(at + step, TIME)) for at in range(0, TIME, step)] for step in (1, 3, TIME)]
            for spans in splits + steps:
                if spans[0][1] is not None and spans[0][1] < prefix(model, given):
                    with pytest.raises(DecodeError, match="the first call must hold them all"):
                        in_pieces(model, given, spans)
                else:
                    close(in_pieces(model, given, spans), whole, model)


def prefix(model: Model, given: Mapping[str, torch.Tensor]) -> int:
    """Return the number of tokens at the start that see each other."""
    assert model.cache_layout is not None
    lengths = [given[length].max() if isinstance(length, str) else length for length in model.cache_layout.prefixes]
    return max([0, *(int(length) for length in lengths if length is not None)])


@each_case
@torch.no_grad()
def test_the_last_logits_alone_are_those_of_the_last_position(case: str, device: str) -> None:
    """Of each call, also where the model has other outputs, and of a model whose last nodes work on each position alone, only the
    last position passes through them.
    """
    for model in (wide(model, device) for model in language_models(case)):
        given = inputs(model, device, optional=False)
        spans = [(0, TIME - 2), (TIME - 2, None)] if prefix(model, given) <= TIME - 2 else [(0, None)]
        with session(model, initial_length=3):
            expected = [model(**stretch(model, given, *span)) for span in spans]
        with session(model, initial_length=3, last_only=True):
            found = [model(**stretch(model, given, *span)) for span in spans]
        for one, other in zip(found, expected, strict=True):
            close(one.logits, other.logits[:, -1:], model)
            for name, value in other._asdict().items():
                if name != "logits" and isinstance(value, torch.Tensor):
                    close(getattr(one, name), value, model)


def in_pieces(model: Model, given: Mapping[str, torch.Tensor], spans: list[tuple[int, int | None]]) -> torch.Tensor:
    """Return the logits of several calls, one after the other; the cache starts too small for them."""
    with session(model, initial_length=3):
        return torch.cat([model(**stretch(model, given, *span)).logits for span in spans], dim=1)


@each_case
@torch.no_grad()
def test_a_session_goes_back_and_changes_rows(case: str, device: str) -> None:
    """After `truncate` another text goes on from there; after `reorder` each row goes on from the row that was chosen for it.
    Where a block carries a state, there is no way back, and the session says so.
    """
    for model in (wide(model, device) for model in language_models(case)):
        given = inputs(model, device, optional=False)
        rows = torch.tensor([2, 0, 0], device=device)
        batched = {name for name, type_ in model.program.inputs.items() if type_.sizes and str(type_.sizes[0]) == "batch"}
        chosen = {name: value[rows] if name in batched else value for name, value in given.items()}
        whole, other = model(**given).logits, model(**chosen).logits
        with session(model) as writing:
            if carries(model):
                model(**stretch(model, given, 0, 4))
                with pytest.raises(DecodeError, match="cannot go back to 3"):
                    writing.truncate(3)
                writing.truncate(0)
                model(**stretch(model, given, 0, 3))
            else:
                model(**given)
                writing.truncate(3)
            assert writing.length in (0, 3)  # nothing to remember is no length
            again = model(**stretch(model, given, 3, 5)).logits
            writing.reorder(rows)
            after = model(**stretch(model, chosen, 5, None)).logits
        close(again, whole[:, 3:5], model)
        close(after, other[:, 5:], model)


def carries(model: Model) -> bool:
    """Return whether a block has a state, which a session replaces at each call."""
    assert model.cache_layout is not None
    kept = [kept for node in model.cache_layout.nodes for kept in node.slots.values()]
    return any(each.axis is None and each.batch is not None and not each.whole for each in kept)


@each_of(CASES)
@torch.no_grad()
def test_rows_do_not_mix(case: str, device: str) -> None:
    """In another order of the batch, each row gives the same. Where tokens are selected by rank, a row that has a token twice has
    a tie, which rounding decides: one of three draws has none.
    """
    for model in (wide(model, device) for model in models(case)):
        seeds = range(4, 7 if Subject(model.recipe).selects else 5)
        assert any(rows_keep_apart(model, inputs(model, device, optional=True, seed=seed)) for seed in seeds), model.recipe.text


def rows_keep_apart(model: Model, given: Mapping[str, torch.Tensor]) -> bool:
    """Return whether the rows of a batch give the same in the opposite order."""
    batched = {name for name, type_ in model.program.inputs.items() if type_.sizes and str(type_.sizes[0]) == "batch"}
    turned = {name: value.flip(0) if name in batched else value for name, value in given.items()}
    outputs = zip(model.program.root.outputs.values(), model(**given), model(**turned), strict=False)
    return all(
        torch.allclose(before, after.flip(0), rtol=1e-9, atol=1e-9)
        for type_, before, after in outputs
        if isinstance(type_, TensorType) and type_.axes and str(type_.axes[0].size) == "batch"
    )


@each_case
@torch.no_grad()
def test_packed_documents_are_separate(case: str, device: str) -> None:
    """Two documents in one row give the logits of each alone, where nothing but distances within a document counts."""
    for model in (wide(model, device) for model in language_models(case)):
        if not packs(model):
            continue
        given = inputs(model, device, optional=False)
        documents = torch.tensor([[0] * 3 + [1] * (TIME - 3)] * 3, device=device)
        alone = [model(**stretch(model, given, *span)).logits for span in ((0, 3), (3, None))]
        # Rotary tables are float32, so a distance gives the same only to that precision wherever it lies.
        close(model(**given, documents=documents).logits, torch.cat(alone, dim=1), model, tolerance=1e-5)


def packs(model: Model) -> bool:
    """Return whether every mask keeps documents apart and else looks at distances, no position counts in itself, no state goes
    on, and nothing else looks at other positions.
    """
    masks = [block.part.mask for block in blocks(model.program.root) if hasattr(block.part, "mask")]
    apart = [{type(term) for term in mask.conjuncts()} for mask in masks]
    distances = {Causal, Window, Local, Documents}
    counted = any(
        block.part.kind in ("learned_positions", "sinusoidal_positions", "conv1d", "arange")
        for block in blocks(model.program.root)
    )
    known = bool(masks) and not counted and not carries(model)
    return known and all(Documents in terms and terms <= distances for terms in apart)
