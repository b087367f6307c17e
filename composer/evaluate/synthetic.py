"""Synthetic tasks, whose answers are known: texts to train on, and examples that these texts never have."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase, digits

from composer.train.errors import TrainingError

HELD_OUT_SHARE = 10
"""One question in so many is never in a text, and kept for the evaluation."""
ATTEMPTS = 200
"""How many questions are drawn for each one that is kept, at most."""
HAY = "hay "
"""The word in which a needle is hidden. It says nothing, so that a model is taught by needles alone."""
NEEDLE_DIGITS = 4
COPIED = ascii_lowercase[:10]
"""The letters of what is copied."""


@dataclass(frozen=True)
class SyntheticExample:
    """A question with its answer; a line of a text is `question=answer`.

    Examples:
        >>> from composer.evaluate import SyntheticExample
        >>> SyntheticExample("12+7", "19").line
        '12+7=19\\n'
    """

    question: str
    answer: str

    @property
    def prompt(self) -> str:
        """What a model continues: a line break and the question."""
        return f"\n{self.question}="

    @property
    def line(self) -> str:
        """The example in a text."""
        return f"{self.question}={self.answer}\n"

    @property
    def held_out(self) -> bool:
        """Whether it is kept for the evaluation, which its question alone decides."""
        return zlib.crc32(self.question.encode()) % HELD_OUT_SHARE == 0


@dataclass(frozen=True)
class SyntheticTask:
    """A task with an example of any length."""

    doc: str
    draw: Callable[[random.Random, int], SyntheticExample]
    longest: int


def copied(chance: random.Random, length: int) -> SyntheticExample:
    """Return a word of so many letters, to be written again."""
    word = "".join(chance.choices(COPIED, k=length))
    return SyntheticExample(word, word)


def recalled(chance: random.Random, length: int) -> SyntheticExample:
    """Return so many pairs of a letter and a digit, and one of the letters, whose digit is asked for."""
    keys = chance.sample(ascii_lowercase, length)
    values = chance.choices(digits, k=length)
    place = chance.randrange(length)
    pairs = "".join(key + value for key, value in zip(keys, values, strict=True))
    return SyntheticExample(f"{pairs}?{keys[place]}", values[place])


def added(chance: random.Random, length: int) -> SyntheticExample:
    """Return two numbers of so many digits, and their sum."""
    first, second = (chance.randrange(10 ** (length - 1) if length > 1 else 0, 10**length) for _ in range(2))
    return SyntheticExample(f"{first}+{second}", str(first + second))


def hidden_needle(chance: random.Random, length: int, depth: float | None = None) -> SyntheticExample:
    """Return a number of four digits among so many words of hay, to be told at their end.

    Args:
        chance: What draws the number, and the depth if it is not given.
        length: The number of words.
        depth: The share of the words that stand before the number, from 0 to 1.
    """
    before = chance.randint(0, length) if depth is None else round(depth * length)
    needle = f"{chance.randrange(10**NEEDLE_DIGITS):0{NEEDLE_DIGITS}}"
    return SyntheticExample(f"{HAY * before}{needle} {HAY * (length - before)}?", needle)


SYNTHETIC_TASKS: Mapping[str, SyntheticTask] = {
    "copy": SyntheticTask("a word of `length` letters is written again", copied, 1000),
    "recall": SyntheticTask(
        "after `length` pairs of a letter and a digit, the digit of one letter (associative recall)", recalled, 26
    ),
    "arithmetic": SyntheticTask("the sum of two numbers of `length` digits", added, 100),
    "needle": SyntheticTask(
        "a number among `length` words of hay, at any depth, is told at the end (needle in a haystack)", hidden_needle, 100_000
    ),
}
"""The tasks by name."""


def examples_of(
    task: str, length: int, *, held_out: bool, seed: int, draw: Callable[[random.Random, int], SyntheticExample] | None = None
) -> Iterator[SyntheticExample]:
    """Yield random examples of one length without end, held out or not; the same for a seed. `draw` draws only some of them.

    Raises:
        TrainingError: There is no such task or length, or hardly any example that is held out.
    """
    if task not in SYNTHETIC_TASKS:
        raise TrainingError(f"there is no synthetic task called {task}", hint=f"there are {', '.join(SYNTHETIC_TASKS)}")
    longest = SYNTHETIC_TASKS[task].longest
    if not 1 <= length <= longest:
        raise TrainingError(f"the length of {task} is {length}; it must be from 1 to {longest}")
    chance = random.Random(f"{task} {length} {held_out} {seed}")
    while True:
        drawn = ((draw or SYNTHETIC_TASKS[task].draw)(chance, length) for _ in range(ATTEMPTS))
        kept = next((each for each in drawn if each.held_out == held_out), None)
        if kept is None:
            raise TrainingError(f"{task} of length {length} has no example that is held out", hint="choose a larger length")
        yield kept


def synthetic_text(task: str, lengths: Sequence[int], *, lines: int, seed: int = 0) -> str:
    """Return a text of a synthetic task, an example on each line, none of which is held out.

    Args:
        task: `copy`, `recall`, `arithmetic` or `needle`.
        lengths: The lengths, of which each line has one by chance.
        lines: The number of lines.
        seed: Random seed of the examples.

    Raises:
        TrainingError: There is no such task or length, or nothing is asked for.

    Examples:
        >>> from composer.evaluate import synthetic_text
        >>> print(synthetic_text("arithmetic", [1, 2], lines=2, seed=3).count("="))
        2
    """
    if not lengths or lines < 1:
        raise TrainingError("a text of a synthetic task needs a length and a line, at least")
    streams = [examples_of(task, length, held_out=False, seed=seed) for length in lengths]
    chance = random.Random(seed)
    return "".join(next(chance.choice(streams)).line for _ in range(lines))
