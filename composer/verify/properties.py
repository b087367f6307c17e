"""The properties that every recipe without errors has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from composer.verify.computing import (
    calls_repeat,
    exported_is_equal,
    gradients_reach,
    rows_are_apart_in_a_model,
    state_is_whole,
    training_repeats,
    types_are_declared,
)
from composer.verify.static import check_repeats, draws_at_every_level, expands, parameters_are_declared, source_parses
from composer.verify.subject import Subject, Violation
from composer.verify.texts import documents_are_apart, nothing_looks_ahead, sessions_equal_one_call


@dataclass(frozen=True, slots=True)
class Property:
    """One property, and how much it takes to try it."""

    name: str
    try_: Callable[[Subject], Iterator[Violation]]
    price: Literal["cheap", "costly"]
    says: str
    """What holds, in plain words."""


PROPERTIES = (
    Property("check", check_repeats, "cheap", "check gives the same diagnostics each time"),
    Property("expand", expands, "cheap", "the expanded recipe is read again, to the same model"),
    Property("parameters", parameters_are_declared, "cheap", "the model has exactly the declared parameters"),
    Property("source", source_parses, "cheap", "the generated source is Python, and imports only torch"),
    Property("types", types_are_declared, "cheap", "every output has the declared shape and dtype"),
    Property("gradients", gradients_reach, "costly", "gradients reach every trainable parameter"),
    Property("rows", rows_are_apart_in_a_model, "costly", "the rows of a batch do not see each other"),
    Property("repeatable", calls_repeat, "costly", "the same inputs give the same outputs"),
    Property("training", training_repeats, "costly", "in training, the same seed gives the same outputs"),
    Property("causal", nothing_looks_ahead, "costly", "no logit depends on a later token"),
    Property("cached", sessions_equal_one_call, "costly", "a session computes what one call computes"),
    Property("packed", documents_are_apart, "costly", "documents that every mask keeps apart give what each alone gives"),
    Property("state", state_is_whole, "costly", "the state_dict holds the whole model"),
    Property("export", exported_is_equal, "costly", "the exported file computes the same"),
    Property("draw", draws_at_every_level, "costly", "it is drawn at every level"),
)
