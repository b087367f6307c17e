"""The needle in a haystack: whether a model finds what stands at any depth of a text of any length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from composer.atomic_files import StrPath
from composer.draw.export.heat_map import HeatMap, svg_of_heat_map
from composer.evaluate.answers import answering, count_right, distinct
from composer.evaluate.synthetic import examples_of, hidden_needle
from composer.train.errors import TrainingError
from composer.train.run.trained import Build


@dataclass(frozen=True)
class NeedleScore:
    """How many needles at one depth of texts of one length a model tells exactly.

    Examples:
        >>> from composer.evaluate import NeedleScore
        >>> NeedleScore(length=32, depth=0.5, examples=20, right=15).accuracy
        0.75
    """

    length: int
    """Words of hay."""
    depth: float
    """The share of the hay before the needle, from 0 to 1."""
    examples: int
    right: int

    @property
    def accuracy(self) -> float:
        """Share of the answers that are right, from 0 to 1."""
        return self.right / self.examples


@dataclass(frozen=True)
class NeedleEvaluation:
    """The scores of all depths and lengths.

    Examples:
        >>> from composer.evaluate import NeedleEvaluation, NeedleScore
        >>> scores = [NeedleScore(8, depth, 20, right) for depth, right in [(0.0, 20), (1.0, 15)]]
        >>> print(NeedleEvaluation("runs/needle", tuple(scores)))
        depth       8
           0%  100.0%
         100%   75.0%
    """

    name: str
    """The run."""
    scores: tuple[NeedleScore, ...]

    @property
    def lengths(self) -> list[int]:
        """The lengths, in order."""
        return list(dict.fromkeys(score.length for score in self.scores))

    @property
    def depths(self) -> list[float]:
        """The depths, in order."""
        return list(dict.fromkeys(score.depth for score in self.scores))

    def accuracy(self, length: int, depth: float) -> float:
        """Return the share of right answers of a cell.

        Args:
            length: Words of hay.
            depth: The share of the hay before the needle.
        """
        return next(score.accuracy for score in self.scores if (score.length, score.depth) == (length, depth))

    def to_json(self) -> dict[str, Any]:
        """Return all numbers as data for JSON."""
        return {"run": self.name, "task": "needle", "cells": [asdict(each) | {"accuracy": each.accuracy} for each in self.scores]}

    def svg(self) -> str:
        """Return a heat map over depth and length as the text of an SVG file."""
        return svg_of_heat_map(
            HeatMap(
                title=f"Needles found by {self.name}",
                x_title="words of hay",
                y_title="depth of the needle",
                columns=[f"{length:,}" for length in self.lengths],
                rows=[f"{depth:.0%}" for depth in self.depths],
                values=[[self.accuracy(length, depth) for length in self.lengths] for depth in self.depths],
                value_text=lambda share: f"{share:.0%}",
            )
        )

    def __str__(self) -> str:
        width = max(7, *(len(f"{length:,}") + 1 for length in self.lengths))
        lines = [f"depth {''.join(f'{length:>{width},}' for length in self.lengths)}"]
        for depth in self.depths:
            lines.append(f"{depth:>5.0%} {''.join(f'{self.accuracy(length, depth):>{width}.1%}' for length in self.lengths)}")
        return "\n".join(lines)


def evaluate_needle(
    run: StrPath,
    lengths: Sequence[int],
    depths: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
    *,
    examples: int = 20,
    seed: int = 0,
    build: Build | None = None,
    checkpoint: str | None = None,
) -> NeedleEvaluation:
    """Let the model of a run find needles at given depths of texts of given lengths, none of which is in a text of
    `synthetic_text`.

    Args:
        run: The run folder.
        lengths: Words of hay, which may be more than those of training.
        depths: The shares of the hay before the needle, from 0 to 1.
        examples: The number of different needles of each cell.
        seed: Random seed of the needles.
        build: Compiles the text of the recipe; pass your own if the recipe uses blocks of yours.
        checkpoint: The name of a checkpoint, such as `step-000500`; by default, the latest.

    Raises:
        TrainingError: The folder is not a run folder or is damaged, the model is none of causal_lm or cannot read a text of this
            length, or a depth is not from 0 to 1.
        RecipeError: The recipe does not compile, such as for lack of your own blocks.
    """
    if wrong := [depth for depth in depths if not 0 <= depth <= 1]:
        raise TrainingError(f"the depth of a needle is {wrong[0]:g}; it must be from 0 to 1")
    trained = answering(run, examples=examples, build=build, checkpoint=checkpoint)
    scores = []
    for length in dict.fromkeys(lengths):
        for depth in dict.fromkeys(depths):
            stream = examples_of("needle", length, held_out=True, seed=seed, draw=partial(hidden_needle, depth=depth))
            asked = distinct(stream, examples)
            right = count_right(trained, asked, task="needle", what=f"{length} words of hay")
            scores.append(NeedleScore(length, depth, len(asked), right))
    return NeedleEvaluation(str(run), tuple(scores))
