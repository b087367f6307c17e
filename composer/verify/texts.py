"""Properties of models that generate a text: nothing looks ahead, and a session computes what one call computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from blocks.masks.mask import Mask
from composer.decode import DecodeError
from composer.decode.noise import without_noise
from composer.decode.session import session
from composer.graph.dims import names
from composer.graph.typed import TypedBlock
from composer.language.tasks import TASKS
from composer.verify.inputs import Draw, blocks, shape_of, text_axis
from composer.verify.subject import ROUNDING, DoesNotApply, Subject, Violation, difference

PACKED = 1e-5
"""Relative difference of packed documents: tables of rotary angles are float32."""


def _task_outputs(subject: Subject) -> list[str]:
    """Return the outputs that the task asks for: others may be computed from the whole text."""
    return list(TASKS[subject.recipe.task].outputs) if subject.recipe.task else []


def _growing(subject: Subject) -> dict[str, int] | None:
    """Return each input that grows with the text and the axis along which; None if one depends on the length in another way."""
    axis = text_axis(subject.program)
    if axis is None:
        return None
    found = {}
    for name, type_ in subject.program.inputs.items():
        if axis in type_.sizes:
            found[name] = type_.sizes.index(axis)
        elif any(names(axis) & names(size) for size in type_.sizes):
            return None
    return found


@torch.no_grad()
def nothing_looks_ahead(subject: Subject) -> Iterator[Violation]:
    """Check that what comes later in a text changes no earlier logit."""
    growing = _growing(subject)
    if growing is None:
        raise DoesNotApply
    positions = {ref.node for _, ref in subject.program.untyped.positions}
    for how in subject.draws:
        worst: tuple[float, str, int, int] | None = None
        for attempt in range(3 if subject.selects else 1):
            given = subject.draw(Draw(how.lengths, 60 + attempt, optional=how.optional))
            other = subject.draw(Draw(how.lengths, 80 + attempt, optional=how.optional))
            text = given[TASKS[subject.recipe.task or ""].text]
            before, worst = subject.outputs(given), None
            for cut in range(max(1, prefix(subject)), text.shape[1]):
                changed = {
                    name: after(value, other[name], growing[name], cut) if name in growing and name not in positions else value
                    for name, value in given.items()
                }
                for name, value in subject.outputs(changed).items():
                    if name in _task_outputs(subject):
                        by = (value[:, :cut] - before[name][:, :cut]).abs().amax(dim=(0, 2))
                        by = by / max(1.0, float(before[name].abs().max()))
                        if float(by.max()) > ROUNDING and (worst is None or float(by.max()) > worst[0]):
                            worst = float(by.max()), name, int(by.argmax()), cut
            if worst is None:
                break
        if worst is not None:
            by_, name, query, cut = worst
            yield Violation("causal", f"`{name}` at token {query} changes by {by_:.2g} when the tokens from {cut} on change")
            return


def after(value: torch.Tensor, other: torch.Tensor, axis: int, cut: int) -> torch.Tensor:
    """Return the value with another one's numbers from `cut` on."""
    return torch.cat([value.narrow(axis, 0, cut), other.narrow(axis, cut, value.shape[axis] - cut)], dim=axis)


def prefix(subject: Subject) -> int:
    """Return the length of the longest prefix that every token sees, by a number in a mask."""
    found = [_prefix(mask) for block in blocks(subject.program) for mask in _masks(block)]
    return max(found, default=0)


def _prefix(mask: Mask) -> int:
    own = getattr(mask, "length", 0) if type(mask).node_refs.get("length") == "int[batch]" else 0
    inner = [value for name in type(mask).model_fields for value in _parts(getattr(mask, name))]
    return max([own if isinstance(own, int) else 0, *map(_prefix, inner)])


def _parts(value: object) -> Sequence[Mask]:
    several = value if isinstance(value, tuple | list) else [value]
    return [each for each in several if isinstance(each, Mask)]


def _masks(block: TypedBlock) -> Iterator[Mask]:
    for name in type(block.part).model_fields:
        yield from _parts(getattr(block.part, name))


@torch.no_grad()
def sessions_equal_one_call(subject: Subject) -> Iterator[Violation]:
    """Check that a session gives the logits of one call, in steps of 1, 3 and all, padded left, right and not, or refuses."""
    growing = _growing(subject)
    if growing is None:
        raise DoesNotApply
    how = subject.draws[0]
    for padding in ("none", "left", "right"):
        found: list[Violation] = []
        for attempt in range(3 if subject.selects else 1):
            given = padded(subject, subject.draw(Draw(how.lengths, 100 + attempt, optional=padding != "none")), growing, padding)
            if given is None:
                break
            found = list(_sessions(subject, given, growing, padding))
            if not found:
                break
        if found:
            yield found[0]
            return


def padded(
    subject: Subject, given: dict[str, torch.Tensor], growing: Mapping[str, int], padding: str
) -> dict[str, torch.Tensor] | None:
    """Return the inputs with the last row padded at one side; None where no input says what is padding."""
    if padding == "none":
        return given
    flags = [name for name in given if name in growing and given[name].dtype == torch.bool and given[name].dim() == 2]
    if not flags:
        return None
    for name in flags:
        length = given[name].shape[1]
        given[name] = torch.ones_like(given[name])
        given[name][-1, : length // 2 if padding == "left" else 0] = False
        if padding == "right":
            given[name][-1, -(length // 2) :] = False
    return given


def _sessions(
    subject: Subject, given: Mapping[str, torch.Tensor], growing: Mapping[str, int], padding: str
) -> Iterator[Violation]:
    wanted = _task_outputs(subject)
    with without_noise(subject.model):
        whole = subject.outputs(given)
    length = given[TASKS[subject.recipe.task or ""].text].shape[1]
    tolerance: float | None = None
    for step in (1, 3, length):
        pieces: dict[str, list[torch.Tensor]] = {name: [] for name in wanted}
        try:
            with session(subject.model, initial_length=2):
                for start in range(0, length, step):
                    now = {
                        name: value.narrow(growing[name], start, min(step, length - start)) if name in growing else value
                        for name, value in given.items()
                    }
                    result = subject.outputs(now)
                    for name in wanted:
                        pieces[name].append(result[name])
        except DecodeError:
            continue
        for name, value in subject.running.items():
            if not torch.equal(subject.model.get_buffer(name), value):
                yield Violation("cached", f"a session changes `{name}`, so that it depends on the pieces in which a text is read")
                return
        for name in wanted:
            joined = torch.cat(pieces[name], dim=1)
            by = difference(whole[name], joined)
            if tolerance is None and by > ROUNDING:
                with without_noise(subject.model):
                    tolerance = subject.tolerance(given)
            if tolerance is not None and by > tolerance:
                place = "with one call for all tokens" if step == length else f"with calls of {step} token{'s' * (step > 1)}"
                pads = "" if padding == "none" else f", with padding on the {padding}"
                yield Violation(
                    "cached", f"in a session {place}{pads}, `{name}` differs by {by:.2g} from a call without a session"
                )
                return


@torch.no_grad()
def documents_are_apart(subject: Subject) -> Iterator[Violation]:
    """Check that two documents in one row give the logits of each alone, where nothing but distances within a document counts."""
    growing = _growing(subject)
    name = _documents(subject)
    if growing is None or name not in growing or not _packs(subject):
        raise DoesNotApply
    how = Draw(subject.draws[0].lengths, 7, optional=False)
    given = subject.draw(how)
    time = given[TASKS[subject.recipe.task or ""].text].shape[1]
    ids = torch.zeros(shape_of(subject.program.inputs[name], how.lengths), dtype=torch.int64)
    cut = time // 2
    ids[:, cut:] = 1
    with without_noise(subject.model):
        together = subject.outputs({**given, name: ids})
    for start, stop in ((0, cut), (cut, time)):
        part = {n: v.narrow(growing[n], start, stop - start) if n in growing else v for n, v in given.items()}
        with without_noise(subject.model):
            alone = subject.outputs({**part, name: ids[:, start:stop]})
        for output in _task_outputs(subject):
            by = difference(alone[output], together[output][:, start:stop])
            if by > PACKED:
                yield Violation("packed", f"`{output}` of a document differs by {by:.2g} when another document is packed with it")
                return


def _documents(subject: Subject) -> str:
    """Return the input that numbers the documents of a row, whatever it is called: that of integers which is no text and no
    position; nothing where there is none, or several.
    """
    text = TASKS[subject.recipe.task].text if subject.recipe.task else ""
    positions = {ref.node for _, ref in subject.program.untyped.positions}
    integers = [name for name, type_ in subject.program.inputs.items() if type_.dtype == "int" and name not in {text, *positions}]
    return integers[0] if len(integers) == 1 else ""


def _packs(subject: Subject) -> bool:
    """Return whether every mask keeps documents apart and else looks at distances and padding, and nothing else looks at other
    positions.
    """
    masks = [mask for block in blocks(subject.program) for mask in _masks(block)]
    axis = text_axis(subject.program)
    other = any(
        block.part.length_field
        or axis in block.part.mixed_axes(block.sizes)
        or (not list(_masks(block)) and (block.part.position_inputs or axis in block.part.past_axes(block.sizes)))
        for block in blocks(subject.program)
    )
    scans = any(node for node in _scans(subject))
    return bool(masks) and all(map(_apart, masks)) and not other and not scans


def _apart(mask: Mask) -> bool:
    """Return whether a mask keeps documents apart, and what else it asks for counts from nowhere: distances, and padding."""
    terms = [(term, term.structure()) for term in mask.conjuncts()]
    counts = any(
        structure.chunk is not None if structure else {*type(term).node_refs.values()} != {"bool[batch, key]"}
        for term, structure in terms
    )
    return not counts and any(structure and structure.documents is not None for _, structure in terms)


def _scans(subject: Subject) -> Iterator[object]:
    from composer.graph.typed import TypedScan
    from composer.graph.visit import walk

    return (visit.node for visit in walk(subject.program.root, once=True) if isinstance(visit.node, TypedScan))
