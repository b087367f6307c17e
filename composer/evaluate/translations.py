"""Translations of a trained model against those of a text or a table: exact matches, BLEU and chrF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import torch
from torch import nn

from composer.decode import GREEDY, EncoderInputs, Request, cached, generate
from composer.language.wording import counted
from composer.lower.model import Model
from composer.train.data.examples import ExampleData, Examples
from composer.train.data.objectives import END, START, Translation
from composer.train.data.text import TextData
from composer.train.data.tokenizers import MarkedTokenizer
from composer.train.errors import TrainingError
from composer.train.losses import IGNORED


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
    pairs = objective.pairs(data.validation)
    examples = [({"source": torch.tensor(source.tolist())}, target[1:-1].tolist()) for source, target in pairs]
    return compared(model, objective.tokenizer, examples, batch_size=batch_size, longest=longest)


def translations_of_rows(
    model: Model, tokenizer: MarkedTokenizer, data: ExampleData, *, batch_size: int, longest: int
) -> Translations:
    """Return how the translations of the held-out sources of a table compare with their targets.

    Args:
        model: A compiled recipe of the task seq2seq_lm, which may read more than the source, as `task`.
        tokenizer: Its tokenizer.
        data: The rows.
        batch_size: Sources of one length that are translated together.
        longest: The largest number of tokens of a translation.
    """
    examples: list[tuple[EncoderInputs, list[int]]] = []
    for batch in Examples().held_out(data, batch_size=batch_size, seq_len=longest):
        others = [name for name in batch if name in model.program.inputs and name not in ("target", "valid", "source_valid")]
        lengths = batch["source_valid"].sum(1).tolist()
        for row, length in enumerate(lengths):
            read = {name: batch[name][row] for name in others}
            wanted = batch["targets"][row]
            examples.append(({**read, "source": read["source"][:length]}, wanted[wanted != IGNORED].tolist()[:-1]))
    return compared(model, tokenizer, examples, batch_size=batch_size, longest=longest)


def compared(
    model: nn.Module,
    tokenizer: MarkedTokenizer,
    examples: Sequence[tuple[EncoderInputs, Sequence[int]]],
    *,
    batch_size: int,
    longest: int,
) -> Translations:
    """Return how the translations of sources compare with their targets: of each, what the model reads, and the target."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    start, end = tokenizer.mark(START), tokenizer.mark(END)
    request = Request(max_new_tokens=longest, sampling=GREEDY, stop=frozenset({end}), vocabulary=tokenizer.size)
    written = [""] * len(examples)
    lengths = [len(read["source"]) for read, _ in examples]
    for length in sorted({*lengths}):  # sources of one length need no padding
        rows = [row for row, own in enumerate(lengths) if own == length]
        for first in range(0, len(rows), batch_size):
            some = rows[first : first + batch_size]
            inputs = {name: torch.stack([examples[row][0][name] for row in some]) for name in examples[some[0]][0]}
            answers = generate(model, [[start]] * len(some), request, encoder_inputs=inputs, reading=cached)
            for row, answer in zip(some, answers, strict=True):
                written[row] = tokenizer.decode(answer)
    wanted = [tokenizer.decode(target) for _, target in examples]
    exact = sum(mine == theirs for mine, theirs in zip(written, wanted, strict=True))
    return Translations(
        pairs=len(examples),
        exact_match=exact / len(examples),
        bleu=float(BLEU().corpus_score(written, [wanted]).score),
        chrf=float(CHRF().corpus_score(written, [wanted]).score),
    )
