"""What a run may learn from its data, besides what its task asks for by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from composer.train.errors import TrainingError


@dataclass(frozen=True, slots=True)
class ObjectiveKind:
    """An objective, the recipes that it is for, and the settings that only some objectives read."""

    tasks: tuple[str, ...] = ()
    """The tasks of recipes that it is for; none for those of every task, and an empty one for recipes without a task."""
    table: bool = False
    """Whether it is learned from a table; otherwise from texts."""
    reads: frozenset[str] = frozenset()


AUTO = "auto"
OBJECTIVES: Mapping[str, ObjectiveKind] = {
    AUTO: ObjectiveKind(reads=frozenset({"end_tokens"})),
    "whole_words": ObjectiveKind(("masked_lm",)),
    "spans": ObjectiveKind(("masked_lm",)),
    "infilling": ObjectiveKind(("denoising",)),
    "permuted_sentences": ObjectiveKind(("denoising",)),
    "bart": ObjectiveKind(("denoising",)),
    "prefix_lm": ObjectiveKind(("causal_lm",)),
    "skip_gram": ObjectiveKind(("",), reads=frozenset({"window", "negatives"})),
    "forecast": ObjectiveKind(("",), table=True),
    "dpo": ObjectiveKind(("causal_lm",), table=True, reads=frozenset({"dpo_beta"})),
    "reward": ObjectiveKind(("sequence_classification",), table=True),
}
"""The objectives by name; `auto` is that of the recipe's task."""


@dataclass(frozen=True, slots=True)
class EndTokens:
    """Where a text has end tokens."""

    reads: frozenset[str] = frozenset()


END_TOKENS: Mapping[str, EndTokens] = {"none": EndTokens(), "line": EndTokens(), "file": EndTokens()}


def check_objective(name: str, task: str | None, *, table: bool, end_tokens: str = "none") -> None:
    """Raise an error if an objective is not for a recipe or for the data.

    Args:
        name: The objective.
        end_tokens: Where end tokens stand.
        task: The task of the recipe; None without one.
        table: Whether the data is a table.

    Raises:
        TrainingError: The objective is for other recipes, or for other data.
    """
    kind = OBJECTIVES[name]
    if kind.tasks and (task or "") not in kind.tasks:
        others = [other for other, row in OBJECTIVES.items() if not row.tasks or (task or "") in row.tasks]
        wanted = f"with the task {' or '.join(kind.tasks)}" if all(kind.tasks) else "without a task"
        raise TrainingError(
            f"the objective {name} is for recipes {wanted}; this one has {task or 'no task'}",
            hint=f"objectives for it: {', '.join(others)}",
        )
    if kind.tasks and kind.table != table:
        wanted = "a table, such as a .jsonl file" if kind.table else "texts"
        raise TrainingError(f"the objective {name} is learned from {wanted}, not from {'a table' if table else 'a text'}")
    if end_tokens != "none" and (table or task != "causal_lm"):
        what = "a table has an end token after each answer anyway" if table else f"the recipe has the task {task}"
        raise TrainingError(f"end tokens are for texts of a causal_lm; {what}", hint="leave them out")
