"""Answers of a trained model to the examples of a synthetic task that are held out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from composer.atomic_files import StrPath
from composer.decode import GREEDY, Request, cached, generate
from composer.evaluate.synthetic import SyntheticExample, examples_of
from composer.train.errors import TrainingError
from composer.train.losses import task_of
from composer.train.run.trained import Build, Trained, open_run

TOGETHER = 64
"""Questions that are answered in one batch."""
PATIENCE = 1000
"""Draws without a new question after which there are taken to be no others."""


@dataclass(frozen=True)
class AnswerScore:
    """How many questions of one length a model answers exactly.

    Examples:
        >>> from composer.evaluate import AnswerScore
        >>> AnswerScore(length=4, examples=200, right=150).accuracy
        0.75
    """

    length: int
    examples: int
    right: int

    @property
    def accuracy(self) -> float:
        """Share of the answers that are right, character by character, from 0 to 1."""
        return self.right / self.examples


def evaluate_answers(
    run: StrPath,
    task: str,
    lengths: Sequence[int],
    *,
    examples: int = 200,
    seed: int = 0,
    build: Build | None = None,
    checkpoint: str | None = None,
) -> tuple[AnswerScore, ...]:
    """Let the model of a run answer questions of a synthetic task, none of which is in a text of `synthetic_text`.

    The model continues a question with the most probable tokens, up to a line break.

    Args:
        run: The run folder.
        task: `copy`, `recall`, `arithmetic` or `needle`.
        lengths: The lengths, which may be larger than those of training.
        examples: The number of different questions of each length; fewer where there are not so many.
        seed: Random seed of the questions.
        build: Compiles the text of the recipe; pass your own if the recipe uses blocks of yours.
        checkpoint: The name of a checkpoint, such as `step-000500`; by default, the latest.

    Raises:
        TrainingError: The folder is not a run folder or is damaged, the model is none of causal_lm or cannot read a question, or
            there is no such task or length.
        RecipeError: The recipe does not compile, such as for lack of your own blocks.
    """
    trained = answering(run, examples=examples, build=build, checkpoint=checkpoint)
    scores = []
    for length in lengths:
        asked = distinct(examples_of(task, length, held_out=True, seed=seed), examples)
        scores.append(AnswerScore(length, len(asked), count_right(trained, asked, task=task, what=f"{task} of length {length}")))
    return tuple(scores)


def answering(run: StrPath, *, examples: int, build: Build | None, checkpoint: str | None) -> Trained:
    """Return the model of a run that is going to answer questions.

    Raises:
        TrainingError: It does not continue a text, or there is no example to be asked.
    """
    if examples < 1:
        raise TrainingError(f"`examples` is {examples}; it must be at least 1")
    trained = open_run(run, build=build, checkpoint=checkpoint)
    if (name := task_of(trained.model)) != "causal_lm":
        raise TrainingError(f"a model of the task {name} does not continue a question", hint="those of causal_lm do")
    return trained


def count_right(trained: Trained, asked: Sequence[SyntheticExample], *, task: str, what: str) -> int:
    """Return how many questions of a task a model answers exactly; `what` is what they are called where it cannot read them.

    Raises:
        TrainingError: It cannot read them.
    """
    tokenizer, right = trained.tokenizer, 0
    for first in range(0, len(asked), TOGETHER):
        some = asked[first : first + TOGETHER]
        try:
            prompts = [tokenizer.encode(each.prompt) for each in some]
        except TrainingError as error:
            hint = f"train the run on a text of the task: arco data {task}"
            raise TrainingError(f"the tokenizer of the run cannot write {what}: {error}", hint=hint) from None
        most = 1 + max(len(each.answer) for each in some)  # a token has a character at least
        request = Request(max_new_tokens=most, sampling=GREEDY, vocabulary=tokenizer.size)
        try:
            answers = generate(trained.model, prompts, request, reading=cached)
        except IndexError as error:  # learned positions, of which there is a number
            raise TrainingError(f"the model cannot read {what}: {str(error).splitlines()[0]}") from None
        said = [tokenizer.decode(answer).partition("\n") for answer in answers]
        right += sum(end != "" and text == each.answer for (text, end, _), each in zip(said, some, strict=True))
    return right


def distinct(stream: Iterable[SyntheticExample], count: int) -> list[SyntheticExample]:
    """Return the first different examples of an endless stream, `count` or as many as there are."""
    found: dict[str, SyntheticExample] = {}
    old = 0
    for each in stream:
        old = old + 1 if each.question in found else 0
        found[each.question] = each
        if len(found) == count or old == PATIENCE:
            break
    return list(found.values())
