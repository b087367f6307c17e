"""Beam search for the most probable texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from composer.decode.encoder_inputs import EncoderInputs, check_encoder_inputs, rows_of
from composer.decode.errors import DecodeError
from composer.decode.reading import Reading, uncached
from composer.decode.request import Refuse, check_count, check_length


@dataclass(frozen=True, kw_only=True)
class Search:
    """Settings of beam search, which maximizes `Σ log p / length ** length_penalty`; both the sum and the length include a stop
    token at the end.

    Examples:
        >>> from composer.decode import Search
        >>> Search(num_beams=2, max_new_tokens=20).length_penalty
        1.0
    """

    num_beams: int = 4
    """Number of partial texts kept at each step, and of texts returned."""
    length_penalty: float = 1.0
    """Exponent of the length: 0 favors short texts, 1 compares the mean log-probability of tokens."""
    max_new_tokens: int = 200
    """Maximum number of new tokens."""
    stop: frozenset[int] = frozenset()
    """Tokens that end a text and are not part of it."""
    limit: Refuse | None = None
    """The longest context of the model; None if it is unlimited."""
    vocabulary: int | None = None
    """Number of tokens with a text; higher ids of the model are never used."""

    def __post_init__(self) -> None:
        check_count(self.max_new_tokens)
        if self.num_beams < 1:
            raise DecodeError(f"`num_beams` is {self.num_beams}; it must be at least 1")
        if not math.isfinite(self.length_penalty):
            raise DecodeError(f"`length_penalty` is {self.length_penalty}; it must be finite")

    def score(self, total: float, length: int) -> float:
        """Return the score of a text.

        Args:
            total: The sum of the tokens' log-probabilities.
            length: The number of tokens, including a stop token at the end.

        Examples:
            >>> from composer.decode import Search
            >>> Search(length_penalty=1.0).score(-6.0, 3)
            -2.0
        """
        return total / math.pow(length, self.length_penalty)

    def bound(self, total: float, length: int) -> float:
        """Return an upper bound on the score of all continuations: each token lowers the sum, but a greater length may raise the
        score.

        Args:
            total: The sum of the tokens' log-probabilities.
            length: The number of tokens if the text ended now.

        Examples:
            >>> from composer.decode import Search
            >>> Search(max_new_tokens=6).bound(-6.0, 3)
            -1.0
        """
        return max(self.score(total, length), self.score(total, self.max_new_tokens))


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A text found by beam search, with its score."""

    tokens: list[int]
    score: float


class Hunt:
    """The beam search of one prompt: unfinished texts, and the best finished ones."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.growing: list[tuple[float, list[int]]] = [(0.0, [])]
        self.found: list[Hypothesis] = []

    @property
    def over(self) -> bool:
        """Whether no unfinished text can still enter the best finished ones."""
        if len(self.found) < self.search.num_beams:
            return not self.growing
        best = max((self.search.bound(total, len(tokens) + 1) for total, tokens in self.growing), default=-math.inf)
        return best <= self.found[-1].score

    def advance(self, scores: Tensor) -> list[int]:
        """Extend the unfinished texts by one token, given log p [beams, V]; return the index of the parent of each new text."""
        if not self.growing:
            return []
        totals = torch.tensor([total for total, _ in self.growing], dtype=scores.dtype, device=scores.device)
        sums = (totals[:, None] + scores).flatten()  # [beams · V]
        enough = self.search.num_beams * (
            1 + len(self.search.stop)
        )  # enough unfinished ones even if every beam has all stop tokens among its best
        best = sums.topk(min(enough, len(sums)))
        before, self.growing = self.growing, []
        parents: list[int] = []
        for rank, (total, place) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):
            parent, token = divmod(place, scores.shape[1])
            if total == -math.inf:
                break
            if token in self.search.stop:
                if rank < self.search.num_beams:  # as in transformers: a stop token counts only among the best `num_beams`
                    self.end(before[parent][1], total, len(before[parent][1]) + 1)
            elif len(self.growing) < self.search.num_beams:
                self.growing.append((total, [*before[parent][1], token]))
                parents.append(parent)
        if self.over:
            self.growing, parents = [], []
        return parents

    def end(self, tokens: list[int], total: float, length: int) -> None:
        """Add a finished text, and keep the best."""
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
    """Return the best continuations of each prompt, best first.

    Args:
        model: A compiled recipe with a generative task.
        prompts: Tokens to continue, one list per text.
        search: The settings of the search.
        encoder_inputs: The other inputs of the model by name, with a row for each prompt.
        reading: `cached` reads each token once; `uncached` reads the whole text again at each step.

    Raises:
        DecodeError: A prompt is empty or too long for the context, or `encoder_inputs` does not fit the model.

    Examples:
        >>> import composer
        >>> from composer.decode import Search, beam_search
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0)
        >>> ((best, second),) = beam_search(model, [[1, 2, 3]], Search(num_beams=2, max_new_tokens=4))
        >>> len(best.tokens), best.score >= second.score
        (4, True)
    """
    check_encoder_inputs(model, encoder_inputs or {}, len(prompts))
    was_training = model.training
    model.eval()
    answers: list[list[Hypothesis]] = [[] for _ in prompts]
    try:
        for length in sorted({len(prompt) for prompt in prompts}):
            check_length(length, search.max_new_tokens, search.limit)
            rows = [row for row, prompt in enumerate(prompts) if len(prompt) == length]
            found = _together(model, [prompts[row] for row in rows], search, rows_of(model, encoder_inputs or {}, rows), reading)
            for row, best in zip(rows, found, strict=True):
                answers[row] = best
    finally:
        model.train(was_training)
    return answers


def _together(
    model: nn.Module, prompts: Sequence[Sequence[int]], search: Search, encoder_inputs: EncoderInputs, reading: Reading
) -> list[list[Hypothesis]]:
    """Return the best continuations of prompts of equal length; all unfinished texts are rows of one batch."""
    device = next(model.parameters()).device
    hunts = [Hunt(search) for _ in prompts]
    unread = torch.tensor(prompts, dtype=torch.int64, device=device)
    encoder_inputs = {name: value.to(device) for name, value in encoder_inputs.items()}
    with reading(model, encoder_inputs, unread.shape[1] + search.max_new_tokens - 1) as step:
        for _ in range(search.max_new_tokens):
            logits = step(unread)[:, : search.vocabulary].double()
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
