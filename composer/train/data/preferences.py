"""Rows of a table as preferences: a prompt with a chosen and a rejected answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from composer.graph.typed import TypedProgram
from composer.graph.types import TensorType
from composer.language.suggestions import DID_YOU_MEAN, suggest
from composer.language.tasks import TASKS
from composer.train.data.examples import (
    EVERY,
    ExampleData,
    Rows,
    encoder_of_wholes,
    examples_of,
    marks_of,
    padded,
    rows_by_table,
    text_at,
    text_of,
)
from composer.train.data.fields import PROMPT, fields_of, mapping_of
from composer.train.data.forecasting.series import Scales
from composer.train.data.forecasting.windows import FORECAST, windows_of
from composer.train.data.objectives import END
from composer.train.data.tables import Table
from composer.train.data.tokenizers import MarkedTokenizer, Tokenizer
from composer.train.errors import TrainingError
from composer.train.losses import IGNORED
from composer.train.settings import TrainSettings

CHOSEN, REJECTED = "chosen", "rejected"
PREFERENCES = ("dpo", "reward")
"""The objectives that are learned from preferences."""


def examples_for(
    objective: str,
    table: Table,
    program: TypedProgram,
    tokenizer: Tokenizer,
    *,
    columns: Sequence[str] = (),
    seq_len: int,
    labels: Mapping[str, Sequence[str]] | None = None,
    scales: Scales | None = None,
    unseen: bool = False,
    sample_rate: int = TrainSettings.sample_rate,
) -> ExampleData:
    """Return the rows of a table as what an objective learns from; other arguments are those of `examples_of` and `windows_of`.

    Raises:
        TrainingError: A column is missing, or a value cannot be read or does not fit the model.
    """
    if objective in PREFERENCES:
        return preferences_of(table, program, tokenizer, columns=columns, seq_len=seq_len, unseen=unseen)
    if objective == FORECAST:
        return windows_of(table, program, columns=columns, seq_len=seq_len, scales=scales, unseen=unseen)
    return examples_of(
        table, program, tokenizer, columns=columns, seq_len=seq_len, labels=labels, unseen=unseen, sample_rate=sample_rate
    )


def text_for(objective: str, table: Table, program: TypedProgram, columns: Sequence[str]) -> str:
    """Return all texts of a table that an objective reads, to learn a tokenizer from."""
    if objective == FORECAST:
        return ""
    if objective not in PREFERENCES:
        return text_of(table, fields_of(program, table.columns, columns, source=table.name))
    chosen = preference_columns(table, columns)
    return "\n".join(text_at(table, column, row) for column in chosen if column for row in range(len(table)))


def marks_for(objective: str, program: TypedProgram) -> tuple[str, ...]:
    """Return the special tokens that an objective on a table needs."""
    return () if objective == "reward" else marks_of(program)


def preferences_of(
    table: Table,
    program: TypedProgram,
    tokenizer: Tokenizer,
    *,
    columns: Sequence[str] = (),
    seq_len: int,
    unseen: bool = False,
) -> ExampleData:
    """Return the rows of a table as pairs of answers, of which the first is preferred; every tenth row is held out.

    A batch of B rows has 2 B sequences, all chosen ones first: `tokens` [2 B, T], for a language model `targets` [2 B, T], which
    are in the answer and the end token alone, and `valid` [2 B, T] where the model reads it. A row with a sequence that is too
    long is left out.

    Args:
        table: The table, with the columns `chosen`, `rejected` and, unless these are whole texts, `prompt`.
        program: The model's graph, `Recipe.program`.
        tokenizer: The tokenizer, with an end token for a language model.
        columns: `NAME=COLUMN` for each of these columns that has another name.
        seq_len: The largest number of tokens.
        unseen: Whether all rows are held out, to evaluate a model on them.

    Raises:
        TrainingError: A column is missing, a cell has no text, both answers are the same, or the model tells more than a reward.
    """
    writes = bool(TASKS[program.untyped.recipe.task or ""].text)
    if not writes:
        check_reward(program)
    prompt, *answers = preference_columns(table, columns)
    starts = [text_at(table, prompt, row) if prompt else "" for row in range(len(table))]
    read: list[list[int]] = []
    targets: list[list[int]] = []
    for column in answers:
        for row, start in enumerate(starts):
            text = text_at(table, column, row)
            if column == answers[1] and text == text_at(table, answers[0], row):
                raise TrainingError(f"{table.place(row)}: the chosen and the rejected answer are the same")
            try:
                tokens, asked = answered(tokenizer, start, text) if writes else judged(tokenizer, start, text)
            except TrainingError as error:
                raise TrainingError(f"{table.place(row)}: {error}", hint=error.hint) from None
            read.append(tokens)
            targets.append(asked)
    count = len(table)
    fits = np.array([len(tokens) <= seq_len for tokens in read]).reshape(2, count).all(0)
    entries, filling = {"tokens": read}, {"tokens": 0}
    if writes:
        entries, filling = entries | {"targets": targets}, filling | {"targets": IGNORED}
    unequal = len({len(tokens) for tokens in read}) > 1
    batch = padded(entries, filling, "valid" if "valid" in program.inputs or (unequal and not writes) else None)

    def pairs(rows: Rows) -> dict[str, Tensor]:
        return batch(np.concatenate([rows, rows + count]))

    kept = np.flatnonzero(fits)
    held = (np.arange(len(kept)) % EVERY == EVERY - 1) | unseen
    first, *more = table.paths
    left_out = count - len(kept)
    train, validation, sources = kept[~held], kept[held], rows_by_table(table, kept[~held])
    return ExampleData(
        first, table.sha256, train, validation, (pairs,), {}, left_out, more_paths=tuple(more), sources=sources
    )  # fmt: skip


def answered(tokenizer: Tokenizer, prompt: str, answer: str) -> tuple[list[int], list[int]]:
    """Return the tokens that a language model reads of an answer, and the token that follows each, in the answer alone."""
    if not isinstance(tokenizer, MarkedTokenizer) or END not in tokenizer.marks:
        raise TrainingError(f"the tokenizer has no token {END}", hint="train the model on prompts and answers first")
    given = tokenizer.encode(prompt)
    whole = [*given, *tokenizer.encode(answer), tokenizer.mark(END)]
    skipped = max(len(given) - 1, 0)
    return whole[:-1], [*[IGNORED] * skipped, *whole[1 + skipped :]]


def judged(tokenizer: Tokenizer, prompt: str, answer: str) -> tuple[list[int], list[int]]:
    """Return the tokens that a reward model reads of an answer, and no targets."""
    return encoder_of_wholes(tokenizer)(prompt + answer), []


def check_reward(program: TypedProgram) -> None:
    """Raise `TrainingError` unless a classifier has one logit."""
    logits = program.root.outputs["logits"]
    size = logits.sizes[-1] if isinstance(logits, TensorType) else None
    if isinstance(size, int) and size != 1:
        params = program.untyped.params
        hint = "set the number of classes to 1" + (": --set n_classes=1" if "n_classes" in params else "")
        raise TrainingError(f"a reward is one number for each text, and this recipe tells {size}", hint=hint)


def preference_columns(table: Table, given: Sequence[str]) -> tuple[str, str, str]:
    """Return the columns with the prompts, the chosen and the rejected answers; no prompts are an empty string.

    Raises:
        TrainingError: A column is missing, or is given for something else.
    """
    known = (PROMPT, CHOSEN, REJECTED)
    named = mapping_of(given)
    for name in named:
        if name not in known:
            raise TrainingError(f"preferences have the columns {', '.join(known)}, and no `{name}`")
    found = {name: named.get(name, (name,))[0] for name in known}
    for name, column in found.items():
        if column not in table.columns and not (name == PROMPT and name not in named):
            near = suggest(column, table.columns)
            raise TrainingError(
                f"{table.name} has no column `{column}`; its columns are {', '.join(table.columns)}",
                hint=DID_YOU_MEAN + " or ".join(near) + "?" if near else f"name it: --column {name}=COLUMN",
            )
    prompt = found[PROMPT] if found[PROMPT] in table.columns else ""
    return prompt, found[CHOSEN], found[REJECTED]
