"""Beam search: the most probable texts, looked for several at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from composer.decode.errors import DecodeError
from composer.decode.generate import EncoderInputs, Reading, Refuse, check_encoder_inputs, check_length, rows_of, uncached


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is looked for after a prompt: the text with the highest `Σ log p / length ** length_penalty`, the sum over its tokens
    and a stop token at its end, which the length counts too.
    """

    num_beams: int = 4
    """How many texts are followed at a time, and how many are found."""
    length_penalty: float = 1.0
    """At 0 the most probable text wins, which favors short ones; at 1 the one with the best mean of its tokens."""
    max_new_tokens: int = 200
    """Where a text ends at the latest."""
    stop: frozenset[int] = frozenset()
    """Tokens that end it; they are not part of it."""
    limit: Refuse | None = None
    """The model's longest context; None where it has none."""
    vocabulary: int | None = None
    """Tokens from this one on have no text and are never taken."""

    def __post_init__(self) -> None:
        if self.num_beams < 1:
            raise DecodeError(f"num_beams is {self.num_beams}; it must be at least 1")
        if not math.isfinite(self.length_penalty):
            raise DecodeError(f"the length penalty is {self.length_penalty}; it must be finite")

    def score(self, total: float, length: int) -> float:
        """Return the score of a text.

        Args:
            total: The sum of its tokens' log-probabilities.
            length: How many tokens it has, a stop token at its end included.

        Examples:
            >>> from composer.decode import Search
            >>> Search(length_penalty=1.0).score(-6.0, 3)
            -2.0
        """
        return total / math.pow(length, self.length_penalty)

    def bound(self, total: float, length: int) -> float:
        """Return the best score that a growing text can still reach: each further token costs, but the length may pay.

        Args:
            total: The sum of its tokens' log-probabilities.
            length: How many tokens it would have if it ended now.
        """
        return max(self.score(total, length), self.score(total, self.max_new_tokens))


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A text that was found."""

    tokens: list[int]
    score: float


class Hunt:
    """The search after one prompt: texts that are still growing, and the best that have ended."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.growing: list[tuple[float, list[int]]] = [(0.0, [])]
        self.found: list[Hypothesis] = []

    @property
    def over(self) -> bool:
        """Whether no growing text can become better than all that are kept."""
        if len(self.found) < self.search.num_beams:
            return not self.growing
        best = max((self.search.bound(total, len(tokens) + 1) for total, tokens in self.growing), default=-math.inf)
        return best <= self.found[-1].score

    def advance(self, scores: Tensor) -> list[int]:
        """Lengthen the growing texts by one token, given log p [beams, V]; return which of them each new one comes from."""
        if not self.growing:
            return []
        totals = torch.tensor([total for total, _ in self.growing], dtype=scores.dtype, device=scores.device)
        sums = (totals[:, None] + scores).flatten()  # [beams · V]
        enough = self.search.num_beams * (1 + len(self.search.stop))  # so many that go on are among them, whatever ends
        best = sums.topk(min(enough, len(sums)))
        before, self.growing = self.growing, []
        parents: list[int] = []
        for rank, (total, place) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):
            parent, token = divmod(place, scores.shape[1])
            if total == -math.inf:
                break
            if token in self.search.stop:
                if rank < self.search.num_beams:  # an end that is no better than the texts that go on
                    self.end(before[parent][1], total, len(before[parent][1]) + 1)
            elif len(self.growing) < self.search.num_beams:
                self.growing.append((total, [*before[parent][1], token]))
                parents.append(parent)
        if self.over:
            self.growing, parents = [], []
        return parents

    def end(self, tokens: list[int], total: float, length: int) -> None:
        """Keep a text among the best that have ended."""
        self.found.append(Hypothesis(tokens, self.search.score(total, length)))
        self.found = sorted(self.found, key=lambda found: -found.score)[: self.search.num_beams]


@torch.no_grad()
def beam_search(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    search: Search,
    *,
    encoder_inputs: EncoderInputs | None = None,
    reading: Reading = uncached,
) -> list[list[Hypothesis]]:
    """Return the best texts that follow each prompt, best first.

    Args:
        model: A compiled recipe that writes.
        prompts: Tokens to continue, one list for each text.
        search: How many texts are followed, how they are scored, and where they end.
        encoder_inputs: What the model reads beside its text, by name, with a row for each prompt.
        reading: `cached` reads each token once; `uncached` reads everything again at each step.

    Raises:
        DecodeError: A prompt is empty or longer than the model reads, or `encoder_inputs` does not fit the model.
    """
    check_encoder_inputs(model, encoder_inputs or {}, len(prompts))
    was_training = model.training
    model.eval()
    answers: list[list[Hypothesis]] = [[] for _ in prompts]
    try:
        for length in sorted({len(prompt) for prompt in prompts}):
            check_length(length, search.max_new_tokens, search.limit)
            rows = [row for row, prompt in enumerate(prompts) if len(prompt) == length]
            found = _together(model, [prompts[row] for row in rows], search, rows_of(encoder_inputs or {}, rows), reading)
            for row, best in zip(rows, found, strict=True):
                answers[row] = best
    finally:
        model.train(was_training)
    return answers


def _together(
    model: nn.Module, prompts: Sequence[Sequence[int]], search: Search, encoder_inputs: EncoderInputs, reading: Reading
) -> list[list[Hypothesis]]:
    """Return the best texts after prompts of equal length: every text of every hunt is a row of one batch."""
    device = next(model.parameters()).device
    hunts = [Hunt(search) for _ in prompts]
    unread = torch.tensor(prompts, dtype=torch.int64, device=device)
    encoder_inputs = {name: value.to(device) for name, value in encoder_inputs.items()}
    with reading(model, encoder_inputs, unread.shape[1] + search.max_new_tokens - 1) as step:
        for _ in range(search.max_new_tokens):
            logits = step(unread)[:, -1, : search.vocabulary].double()
            if not torch.isfinite(logits.amax(-1)).all():
                raise DecodeError("the model's logits are not finite")
            scores = logits.log_softmax(-1)
            parents, first = list[int](), 0
            for hunt in hunts:
                rows = len(hunt.growing)
                parents += [first + parent for parent in hunt.advance(scores[first : first + rows])]
                first += rows
            if not parents:
                break
            step.reorder(torch.tensor(parents, device=device))
            unread = torch.tensor([[tokens[-1]] for hunt in hunts for _, tokens in hunt.growing], device=device)
    for hunt in hunts:
        for total, tokens in hunt.growing:
            hunt.end(tokens, total, max(len(tokens), 1))
    return [hunt.found for hunt in hunts]
