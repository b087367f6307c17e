"""What a recipe asks of a table: the entries of a batch, by the inputs of the model and the targets of its task, and the columns
that each is made from."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy.typing as npt

from composer.graph.alignments import alignments
from composer.graph.anatomy import wires_of
from composer.graph.typed import TypedProgram
from composer.graph.types import TensorType
from composer.language.expressions.ast import PathStep, RefPath
from composer.language.recipe.ast import InputDecl
from composer.language.suggestions import DID_YOU_MEAN, suggest
from composer.language.tasks import TASKS
from composer.train.data.prefixes import prefix_input
from composer.train.errors import TrainingError

PROMPT, ANSWER = "prompt", "answer"
"""The columns of a causal language model that answers: the loss is on the answer alone."""
TASKS_OF_TEXTS = ("masked_lm", "denoising")
"""Tasks whose targets are made from the text itself, so that a table has nothing to tell."""


class MissingColumnError(TrainingError):
    """The exception raised where a table has no column for what a model needs."""


class FieldKind(Enum):
    """What the values of a column become."""

    TEXT = "text"
    """Token ids, [B, T]."""
    CLASS = "class"
    """The number of a class, [B]."""
    TAGS = "tags"
    """The number of a class for each word of a text, [B, T]."""
    NUMBERS = "numbers"
    """Numbers, or the numbers of categories, [B, …]."""
    IMAGE = "image"
    """Pixels, [B, C, H, W]."""
    RECORDING = "recording"
    """Samples of sound, [B, T], from files, or numbers."""


@dataclass(frozen=True)
class BatchField:
    """An entry of a batch."""

    name: str
    kind: FieldKind
    columns: tuple[str, ...]
    type: TensorType | None
    """Of the model's input; None for a target that the model does not read."""
    target: bool = False
    """Whether a loss compares the model's outputs with it."""

    def __str__(self) -> str:
        return f"`{self.name}`" + (f", {self.type}" if self.type is not None else "")


def mapping_of(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the patterns of columns by entry, from `NAME=COLUMN`, of which several may have one name.

    Raises:
        TrainingError: One has another form.
    """
    found: dict[str, tuple[str, ...]] = {}
    for text in given:
        name, equals, column = text.partition("=")
        if not (name.strip() and equals and column.strip()):
            raise TrainingError(f"`{text}` is not NAME=COLUMN", hint="such as label=species: an input or target, and a column")
        found[name.strip()] = (*found.get(name.strip(), ()), column.strip())
    return found


def fields_of(
    program: TypedProgram, columns: Collection[str], given: Sequence[str] = (), *, source: str = "the table"
) -> tuple[BatchField, ...]:
    """Return what a batch for a model has, and from which columns of a table.

    An entry is made from the columns that are given for it, else from the column of its name.

    Args:
        program: The model.
        columns: The columns of the table, or their names; by their values, an error offers one that fits.
        given: `NAME=COLUMN` for entries that are named otherwise; a pattern such as `x*` takes several columns.
        source: The table, for errors.

    Raises:
        TrainingError: A column is missing, or a name is of no input and no target.
    """
    return _Asked(program, columns, mapping_of(given), source).fields()


class _Asked:
    def __init__(
        self, program: TypedProgram, columns: Collection[str], given: Mapping[str, tuple[str, ...]], source: str
    ) -> None:
        self.program, self.columns, self.given, self.source = program, columns, given, source
        self.task = program.untyped.recipe.task or None
        self.asked = TASKS[self.task].targets if self.task else ""
        self.text = TASKS[self.task].text if self.task else ""
        self.continues = self.task is not None and TASKS[self.task].continues

    def fields(self) -> tuple[BatchField, ...]:
        if self.task in TASKS_OF_TEXTS:
            raise TrainingError(f"a recipe with the task {self.task} is trained on texts, not on a table")
        entries = dict(self._entries())
        self._check_names(entries)
        found: list[BatchField] = []
        for name, (kind, type_, target) in entries.items():
            columns = self._columns(name)
            if columns:
                found.append(BatchField(name, kind, columns, type_, target))
            elif not (type_ is not None and (type_.optional or name in self.program.defaults or self._is_prefix(name))):
                raise self._missing(name, kind, type_)
        self._check_judged({field.name for field in found})
        return tuple(found)

    def _entries(self) -> Iterator[tuple[str, tuple[FieldKind, TensorType | None, bool]]]:
        """Yield what a batch may have: inputs of the model, and the target of its task where it is not made from the text."""
        compared = compared_inputs(self.program)
        for name, type_ in self.program.inputs.items():
            if not (is_padding(name) and type_.dtype == "bool" and name not in self.given):
                yield name, (self._kind(name, type_, compared), type_, name in compared or name == self.asked)
        if self.asked and not self.text and self.asked not in self.program.inputs:
            yield self.asked, (FieldKind.TAGS if self.task == "token_classification" else FieldKind.CLASS, None, True)

    def _kind(self, name: str, type_: TensorType, compared: Collection[str]) -> FieldKind:
        if type_.dtype == "int" and self._is_text(name, type_):
            return FieldKind.TEXT
        if type_.dtype == "int" and len(type_.axes) == 1 and (name in compared or name == self.asked):
            return FieldKind.CLASS
        if type_.dtype == "float" and len(type_.axes) == 4:
            return FieldKind.IMAGE
        if type_.dtype == "float" and len(type_.axes) == 2 and not isinstance(type_.sizes[1], int):
            return FieldKind.RECORDING
        return FieldKind.NUMBERS

    def _is_text(self, name: str, type_: TensorType) -> bool:
        if len(type_.axes) != 2 or isinstance(type_.sizes[1], int):
            return False
        named = self.task is not None and name in TASKS[self.task].inputs
        aligned = any(name == each.target for each in alignments(self.program))
        return named or aligned or "vocab" in self.program.untyped.params

    def _columns(self, name: str) -> tuple[str, ...]:
        """Return the columns of an entry; none if there are none."""
        answers = name == self.text and self.continues and name not in self.given
        if answers and all(self._chosen(part) for part in (PROMPT, ANSWER)):
            return (*self._chosen(PROMPT), *self._chosen(ANSWER))
        return self._chosen(name)

    def _is_prefix(self, name: str) -> bool:
        """Return whether an input is the length of the prompt."""
        return self.continues and name == prefix_input(self.program) and bool(self._chosen(PROMPT))

    def _chosen(self, name: str) -> tuple[str, ...]:
        return chosen_columns(name, self.columns, self.given, source=self.source)

    def _check_names(self, entries: Collection[str]) -> None:
        check_entries(self.given, [*entries, *((PROMPT, ANSWER) if self.continues else ())])
        if self.continues and (PROMPT in self.given) != (ANSWER in self.given):
            both = {PROMPT, ANSWER} & {*self.given, *self.columns}
            if len(both) < 2:
                raise TrainingError(f"an answer needs a prompt: `{PROMPT}` and `{ANSWER}` are given together")

    def _missing(self, name: str, kind: FieldKind, type_: TensorType | None) -> MissingColumnError:
        what = f"`{name}`, {type_}" if type_ is not None else f"the target `{name}`"
        text = f", or `{PROMPT}` and `{ANSWER}`" if name == self.text and self.continues else ""
        given = self.columns.values() if isinstance(self.columns, Mapping) else [()] * len(self.columns)
        fitting = [column for column, values in zip(self.columns, given, strict=True) if may_become(kind, values)]
        return MissingColumnError(
            f"the model needs {what}{text}, and {self.source} has no column of that name; its columns are "
            f"{', '.join(self.columns)}",
            hint=f"name it: --column {shlex.quote(f'{name}={fitting[0]}')}" if fitting else f"none of them has {kind.value}s",
        )

    def _check_judged(self, names: Collection[str]) -> None:
        """Raise an error if no loss has what it reads."""
        if self.task is not None and (self.asked or TASKS[self.task].streams):
            return
        needed = {loss: inputs_of_loss(self.program, node) for loss, node in self.program.untyped.losses.items()}
        if not needed:
            raise TrainingError("the recipe has no losses and no task with one, so there is nothing to train")
        if not any(wanted <= {*names} for wanted in needed.values()):
            wanted = " or ".join(f"`{name}`" for name in dict.fromkeys(name for each in needed.values() for name in sorted(each)))
            raise TrainingError(
                f"no loss can be computed: {self.source} has no column for {wanted}; its columns are {', '.join(self.columns)}",
                hint="name it: --column NAME=COLUMN",
            )


def may_become(kind: FieldKind, values: Sequence[Any] | npt.NDArray[Any]) -> bool:
    """Return whether the first value of a column may become an entry of a kind, as far as its type tells."""
    first = next(iter(values), "")
    match kind:
        case FieldKind.TEXT:
            return isinstance(first, str)
        case FieldKind.IMAGE:
            return isinstance(first, str | Path | list) or getattr(first, "ndim", 0) > 1
    return not isinstance(first, Path)


def chosen_columns(name: str, columns: Collection[str], given: Mapping[str, tuple[str, ...]], *, source: str) -> tuple[str, ...]:
    """Return the columns of an entry of a batch: those that its patterns match, else the one of its name; none if there is none.

    Raises:
        TrainingError: A pattern matches no column.
    """
    patterns = given.get(name)
    if patterns is None:
        return (name,) if name in columns else ()
    found: list[str] = []
    for pattern in patterns:
        matching = [pattern] if pattern in columns else [each for each in columns if fnmatchcase(each, pattern)]
        if not matching:
            near = suggest(pattern, columns)
            raise TrainingError(
                f"{source} has no column `{pattern}`; its columns are {', '.join(columns)}",
                hint=DID_YOU_MEAN + " or ".join(near) + "?" if near else "",
            )
        found += (each for each in matching if each not in found)
    return tuple(found)


def check_entries(given: Collection[str], known: Sequence[str]) -> None:
    """Raise `TrainingError` if columns are given for an entry that no batch has."""
    for name in given:
        if name not in known:
            near = suggest(name, known)
            raise TrainingError(
                f"the model has no input `{name}`, and its losses no such target; a batch has {', '.join(known)}",
                hint=DID_YOU_MEAN + " or ".join(near) + "?" if near else "",
            )


def is_padding(name: str) -> bool:
    """Return whether an input is named as flags of real tokens are."""
    return name == "valid" or name.endswith("_valid")


def inputs_of_loss(program: TypedProgram, node: str) -> frozenset[str]:
    """Return the inputs of the model that a loss reads itself, without flags of padding."""
    read = (ref.node for wire in wires_of(program.root[node]) for ref in wire.refs)
    return frozenset(name for name in read if name in program.inputs and not is_padding(name))


def compared_inputs(program: TypedProgram) -> frozenset[str]:
    """Return the inputs of the model that are targets of its own losses."""
    return frozenset(
        ref.node
        for node in program.untyped.losses.values()
        for wire in wires_of(program.root[node])
        if wire.port == "target"
        for ref in wire.refs
        if ref.node in program.inputs
    )


def axis_params(program: TypedProgram, name: str) -> tuple[str | None, ...]:
    """Return for each axis of an input the param that is its length, as it is written; None for another axis."""
    declared: InputDecl = next(each for each in program.untyped.inputs if each.name == name)
    texts = (axis.text if isinstance(axis, RefPath) else None for axis in declared.type.axes)
    return tuple(text if text in program.untyped.params else None for text in texts)


def list_param(program: TypedProgram, name: str) -> str | None:
    """Return the param whose number of items is the length of the last axis of an input, `len(PARAM)`; None if there is none."""
    declared: InputDecl = next(each for each in program.untyped.inputs if each.name == name)
    match declared.type.axes:
        case (*_, RefPath(steps=(PathStep(name="len", arguments=(RefPath() as listed,)),))) if isinstance(
            program.untyped.params.get(listed.text), tuple
        ):
            return listed.text
    return None
