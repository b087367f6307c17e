"""Translations of a trained model against those of a text: exact matches, BLEU and chrF."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import torch
from torch import nn

from composer.decode import GREEDY, Request, cached, generate
from composer.language.wording import counted
from composer.train.data.objectives import END, START, Translation
from composer.train.data.text import TextData
from composer.train.errors import TrainingError


@dataclass(frozen=True)
class Translations:
    """How close the translations of a model come to those of a text.

    Examples:
        >>> from composer.evaluate import Translations
        >>> print(Translations(pairs=8, exact_match=0.5, bleu=61.25, chrf=70.5))
        8 pairs     50.00% exactly right, BLEU 61.25, chrF 70.50
    """

    pairs: int
    """Number of sources."""
    exact_match: float
    """Share of the translations that are the target, character by character, from 0 to 1."""
    bleu: float
    """BLEU of the corpus, from 0 to 100, as sacrebleu computes it by default (Papineni et al. 2002, Post 2018)."""
    chrf: float
    """chrF2 of the corpus, from 0 to 100, as sacrebleu computes it by default (Popović 2015)."""

    def __str__(self) -> str:
        scores = f"BLEU {self.bleu:.2f}, chrF {self.chrf:.2f}"
        return f"{counted(self.pairs, 'pair'):<10}  {self.exact_match:.2%} exactly right, {scores}"


def check_installed() -> None:
    """Raise `TrainingError` if sacrebleu is not installed."""
    if find_spec("sacrebleu") is None:
        raise TrainingError("BLEU and chrF need sacrebleu", hint='pip install "arco-composer[metrics]"')


def translations_of(model: nn.Module, objective: Translation, data: TextData, *, batch_size: int, longest: int) -> Translations:
    """Return how the translations of the held-out sources of a text compare with their targets.

    Args:
        model: A compiled recipe of the task seq2seq_lm.
        objective: Its objective.
        data: The text.
        batch_size: Sources of one length that are translated together.
        longest: The largest number of tokens of a translation.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    tokenizer = objective.tokenizer
    start, end = tokenizer.mark(START), tokenizer.mark(END)
    pairs = objective.pairs(data.validation)
    request = Request(max_new_tokens=longest, sampling=GREEDY, stop=frozenset({end}), vocabulary=tokenizer.size)
    written = [""] * len(pairs)
    for length in sorted({len(source) for source, _ in pairs}):  # sources of one length need no padding
        rows = [row for row, (source, _) in enumerate(pairs) if len(source) == length]
        for first in range(0, len(rows), batch_size):
            some = rows[first : first + batch_size]
            source = torch.tensor([pairs[row][0].tolist() for row in some])
            answers = generate(model, [[start]] * len(some), request, encoder_inputs={"source": source}, reading=cached)
            for row, answer in zip(some, answers, strict=True):
                written[row] = tokenizer.decode(answer)
    wanted = [tokenizer.decode(target[1:-1].tolist()) for _, target in pairs]
    exact = sum(mine == theirs for mine, theirs in zip(written, wanted, strict=True))
    return Translations(
        pairs=len(pairs),
        exact_match=exact / len(pairs),
        bleu=float(BLEU().corpus_score(written, [wanted]).score),
        chrf=float(CHRF().corpus_score(written, [wanted]).score),
    )
