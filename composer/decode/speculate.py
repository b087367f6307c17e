"""Speculative decoding: a small model drafts tokens, and the model reads several of them in one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor, nn

from composer.decode.encoder_inputs import EncoderInputs, text_of
from composer.decode.errors import DecodeError
from composer.decode.request import Request, Slide, check_length, latest
from composer.decode.sample import Sampling, probabilities
from composer.decode.session import Session, session
from composer.graph.types import TensorType
from composer.lower import Model
from composer.lower.passes.tail import LOGITS


@dataclass
class Draft:
    """A model that drafts tokens for another one, and how many of them were accepted.

    What is written does not depend on it: with greedy decoding, the tokens are those of the model alone; sampled ones have its
    distribution. It saves time if it is much faster than the model and often agrees with it.

    Args:
        model: A compiled recipe with the same vocabulary as the model that it drafts for.
        tokens: The number of tokens that are drafted at a time.

    Examples:
        >>> import composer
        >>> from composer.decode import GREEDY, Draft, Request, generate
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
        >>> draft = Draft(composer.load("gpt2", {**tiny, "n_layers": 1}).compile(seed=0).eval())
        >>> request = Request(max_new_tokens=6, sampling=GREEDY)
        >>> generate(model, [[1, 2, 3]], request, draft=draft) == generate(model, [[1, 2, 3]], request)
        True
    """

    model: nn.Module
    tokens: int = 4
    proposed: int = field(default=0, init=False)
    """Number of tokens that were drafted."""
    accepted: int = field(default=0, init=False)
    """Number of drafted tokens that the model accepted."""
    rounds: int = field(default=0, init=False)
    """Number of rounds, in each of which the model accepts some drafted tokens and adds one of its own."""

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise DecodeError(f"the draft has {self.tokens} tokens at a time; it must be at least 1")


class _Reader:
    """A model in a session, which gives the logits behind some tokens, and takes tokens back."""

    def __init__(self, model: Model, opened: Session, encoder_inputs: EncoderInputs) -> None:
        self.model, self.opened, self.encoder_inputs, self.text = model, opened, encoder_inputs, text_of(model)
        self.device = next(model.parameters()).device
        self.read = 0
        """Number of tokens of the sequence that the session has."""
        assert model.cache_layout is not None
        slots = [slot for node in model.cache_layout.nodes for slot in node.slots.values()]
        self.apart = any(slot.kept or (slot.axis is None and slot.batch and not slot.whole) for slot in slots)
        """Whether drafted tokens are read by themselves, so that the others need not be read again if the session goes back to a
        mark, as it has to where blocks have a state or keys were dropped.
        """

    def behind(self, sequence: Tensor, count: int) -> Tensor:
        """Read what is unread of a sequence [1, T], and return the logits behind each of its last `count` tokens, [count, V]."""
        self.opened.positions = count
        tokens = sequence[:, self.read :].to(self.device)
        self.read = sequence.shape[1]
        logits: Tensor = self.model(**{self.text: tokens}, **self.encoder_inputs).logits[0]
        return logits

    def mark(self) -> None:
        """Keep what is read, to go back to."""
        self.marked = self.opened.mark(), self.read

    def take_back(self, length: int) -> None:
        """Take back the tokens from `length` on, or all behind the mark, which are then read again."""
        if length >= self.read:
            return
        if self.opened.can_go_back(length):
            self.opened.truncate(length)
            self.read, self.apart = length, False
        else:
            mark, self.read = self.marked
            self.opened.rewind(mark)
            self.apart = True


def drafted_continuation(
    model: nn.Module,
    prompt: Sequence[int],
    request: Request,
    encoder_inputs: EncoderInputs,
    generator: torch.Generator,
    draft: Draft,
) -> Iterator[int]:
    """Yield the tokens that follow a prompt, up to `max_new_tokens`; stop tokens do not end it.

    As in "Fast Inference from Transformers via Speculative Decoding" (arXiv:2211.17192), a drafted token x is accepted with
    probability min(1, p(x) / q(x)), for the distributions p of the model and q of the draft, and the first that is not is drawn
    anew, from max(0, p − q) normalized. If all are accepted, one more is drawn from p.

    Raises:
        DecodeError: The prompt does not fit, the models choose among different tokens, or one of them has to read a text again.
    """
    sequence = torch.tensor([list(prompt)], dtype=torch.int64)
    check_length(sequence.shape[1], request.max_new_tokens, request.limit)
    both = model, draft.model
    if model is draft.model:
        raise DecodeError("a model cannot draft for itself; a draft is a smaller one")
    with ExitStack() as entered:
        for one in both:
            entered.callback(one.train, one.training)
            one.eval()
        left = request.max_new_tokens
        while left:
            window = latest(sequence, request.limit)
            room = left if not isinstance(request.limit, Slide) else request.limit.length - window.shape[1] + 1
            before = sequence[:, : sequence.shape[1] - window.shape[1]]
            for tokens in _rounds(both, window, min(left, room), request, encoder_inputs, generator, draft, before):
                sequence = torch.cat([sequence, torch.tensor([tokens])], dim=1)
                left -= len(tokens)
                yield from tokens


@torch.no_grad()  # as a decorator, it restores autograd's mode at every yield
def _rounds(
    both: tuple[nn.Module, nn.Module],
    sequence: Tensor,
    count: int,
    request: Request,
    encoder_inputs: EncoderInputs,
    generator: torch.Generator,
    draft: Draft,
    before: Tensor,
) -> Iterator[list[int]]:
    """Yield `count` tokens that follow a text [1, T], those of a round at once; `before`, [1, t], is what is not read of it."""
    with ExitStack() as entered:
        target, drafting = (_opened(one, sequence.shape[1] + count, encoder_inputs, entered) for one in both)
        sizes = [_choices(reader.model, request.vocabulary) for reader in (target, drafting)]
        if sizes[0] != sizes[1]:
            raise DecodeError(f"the draft chooses among {sizes[1]} tokens, and the model among {sizes[0]}")
        while count:
            drafted = min(draft.tokens, count - 1)
            proposals, following = [], sequence
            for number in range(drafted):
                if number == 1:
                    drafting.mark()
                logits = drafting.behind(following, 1)[:, : request.vocabulary]
                q = probabilities(logits, request.sampling, torch.cat([before, following], dim=1)).to(generator.device)
                following = torch.cat([following, torch.multinomial(q, 1, generator=generator)], dim=1)
                proposals.append(q[0])
            rows = [target.behind(sequence, 1)] if target.apart else []
            target.mark()
            if drafted or not rows:
                rows.append(target.behind(following, drafted + 1 - len(rows)))
            found = accepted_of(
                torch.cat(rows)[:, : request.vocabulary], proposals, following, request.sampling, before, generator
            )
            draft.proposed, draft.accepted, draft.rounds = (
                draft.proposed + drafted,
                draft.accepted + len(found) - 1,
                draft.rounds + 1,
            )
            length = sequence.shape[1] + len(found) - 1
            for reader in (target, drafting):
                reader.take_back(length)
            sequence = torch.cat([sequence, torch.tensor([found])], dim=1)
            count -= len(found)
            yield found


def _opened(model: nn.Module, most: int, encoder_inputs: EncoderInputs, entered: ExitStack) -> _Reader:
    """Return a reader of a model, in a session that is entered."""
    opened = entered.enter_context(session(cast(Model, model), most, last_only=True))
    if opened.reads_again:
        raise DecodeError(
            "a model that encodes positions by the length of the text has to read it again, so it works without a draft"
        )
    device = next(model.parameters()).device
    return _Reader(opened.model, opened, {name: value.to(device) for name, value in encoder_inputs.items()})


def _choices(model: Model, vocabulary: int | None) -> int:
    """Return among how many tokens a model chooses."""
    type_ = model.program.root.outputs[LOGITS]
    assert isinstance(type_, TensorType) and isinstance(type_.sizes[-1], int)
    return min(type_.sizes[-1], vocabulary or type_.sizes[-1])


def accepted_of(
    logits: Tensor, proposals: list[Tensor], following: Tensor, sampling: Sampling, before: Tensor, generator: torch.Generator
) -> list[int]:
    """Return the drafted tokens that are accepted, and one more that is drawn.

    Args:
        logits: The logits of the model for each drafted token and for the one behind them, [k + 1, V].
        proposals: The distributions from which the drafted tokens were drawn, [V] each.
        following: The text with the drafted tokens, [1, T].
        sampling: How tokens are drawn.
        before: The text before, [1, t].
        generator: The random generator.
    """
    found: list[int] = []
    first = following.shape[1] - len(proposals)
    for number, row in enumerate(logits):
        text = torch.cat([before, following[:, : first + number]], dim=1)
        p = probabilities(row[None], sampling, text)[0].to(generator.device)
        if number == len(proposals):
            return [*found, int(torch.multinomial(p, 1, generator=generator))]
        q, token = proposals[number], int(following[0, first + number])
        if float(torch.rand((), dtype=torch.float64, generator=generator)) * q[token] < p[token]:
            found.append(token)
            continue
        rest = (p - q).clamp(min=0)
        return [*found, int(torch.multinomial(rest if bool(rest.sum() > 0) else p, 1, generator=generator))]
    raise AssertionError("there are more logits than drafted tokens")
