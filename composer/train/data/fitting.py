"""Params of a recipe that follow from its data: lengths of axes, numbers of categories and classes, and the padding token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from composer.diagnostics import RecipeError
from composer.graph.anatomy import wires_of
from composer.graph.typed import TypedBlock, TypedProgram
from composer.graph.types import UNKNOWN, TensorType, each_of
from composer.language.tasks import TASKS
from composer.language.yaml.nodes import YamlList, YamlMapping, YamlNode, YamlScalar
from composer.train.data.examples import classes_of, in_order, is_whole, shape_in
from composer.train.data.fields import BatchField, FieldKind, axis_params, fields_of, list_param
from composer.train.data.marks import PADDING
from composer.train.data.tables import Table
from composer.train.data.tokenizers import MarkedTokenizer, PiecesTokenizer, Tokenizer
from composer.train.errors import TrainingError

if TYPE_CHECKING:
    from composer.recipe import Recipe

PADDING_FIELD = "padding_idx"
"""The field of an embedding whose value is the padding token."""


def fitted(recipe: Recipe, table: Table, *, columns: Sequence[str] = ()) -> Recipe:
    """Return a recipe whose params have the lengths of rows and the numbers of categories and classes of a table, where they are
    not overridden.

    A param is set that is written as the length of an axis of an input, such as `n_numbers` in `float[batch, n_numbers]`, a list
    whose length is one, `sizes` in `int[batch, len(sizes)]`, to the number of values of each column, and the only one from which
    the number of classes follows.

    Args:
        recipe: The recipe.
        table: The table.
        columns: `NAME=COLUMN` for each entry of a batch whose column has another name.

    Raises:
        TrainingError: A column is missing, or the model has fewer classes than the table.

    Examples:
        >>> import composer
        >>> from composer.train import fitted, read_table
        >>> from pathlib import Path
        >>> written = Path("iris.csv").write_text("length,width,color,label\\n5,3,blue,a\\n7,3,red,b\\n6,2,red,c\\n")
        >>> recipe = composer.load("mlp_table")
        >>> names = ["numbers=length", "numbers=width", "categories=color"]
        >>> found = fitted(recipe, read_table(["iris.csv"]), columns=names)
        >>> [found.program.untyped.params[name] for name in ("n_numbers", "n_outputs", "sizes")]
        [2, 3, (2,)]
    """
    for field in fields_of(recipe.program, table.columns, columns, source=table.name):
        shape = shape_in(table, field)
        if field.type is None or shape is None or len(shape) != len(field.type.axes) - 1:
            continue
        params = axis_params(recipe.program, field.name)[1:]
        found = {name: length for name, length in zip(params, shape, strict=True) if name is not None}
        changed = {name: length for name, length in found.items() if recipe.program.untyped.params[name] != length}
        recipe = recipe.with_overrides({name: length for name, length in changed.items() if not recipe.overridden(name)})
        listed, sizes = list_param(recipe.program, field.name), category_sizes(table, field)
        if listed is not None and sizes and not recipe.overridden(listed) and recipe.program.untyped.params[listed] != sizes:
            recipe = recipe.with_overrides({listed: [*sizes]})
    for field in fields_of(recipe.program, table.columns, columns, source=table.name):
        if field.target and field.kind in (FieldKind.CLASS, FieldKind.TAGS):
            names = in_order(name for row in classes_of(table, field) for name in row)
            recipe = _with_classes(recipe, field, names, table)
    return recipe


def category_sizes(table: Table, field: BatchField) -> tuple[int, ...] | None:
    """Return how many values each column of categories has, counted from 0 where they are whole numbers; None for other fields,
    where a cell holds several or none, and where numbers are larger than the table has rows, as years and keys are.
    """
    if field.kind is not FieldKind.NUMBERS or field.type is None or field.type.dtype != "int":
        return None
    sizes = []
    for column in field.columns:
        values = table.columns[column]
        cells = values.tolist() if isinstance(values, np.ndarray) else [values[row] for row in range(len(table))]
        if not cells or any(cell is None or isinstance(cell, list | dict) for cell in cells):
            return None
        sizes.append(1 + max(map(int, cells)) if all(map(is_whole, cells)) else len({str(cell) for cell in cells}))
        if not 0 < sizes[-1] <= len(table):
            return None
    return tuple(sizes)


def _with_classes(recipe: Recipe, field: BatchField, names: Sequence[str], table: Table) -> Recipe:
    """Return a recipe that tells as many classes as there are, if the number of a param decides how many."""
    known = classes_told(recipe.program, field)
    if known is None or known == len(names):
        return recipe
    params = recipe.program.untyped.params
    alike = [name for name, value in params.items() if type(value) is int and value == known and not recipe.overridden(name)]
    found: list[Recipe] = []
    for name in alike:
        other = recipe.with_overrides({name: len(names)})
        try:
            if classes_told(other.program, field) == len(names):
                found.append(other)
        except RecipeError:
            continue
    if len(found) == 1:
        return found[0]
    if known < len(names):
        shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        raise TrainingError(
            f"`{field.columns[0]}` of {table.name} has {len(names)} classes ({shown}), and the model tells {known}",
            hint="set the number of classes in the recipe",
        )
    return recipe


def classes_told(program: TypedProgram, field: BatchField) -> int | None:
    """Return how many classes a model has scores for, where its task or one of its losses compares them with an entry."""
    task = program.untyped.recipe.task
    types: list[object] = []
    if task and TASKS[task].targets == field.name:
        types.append(program.root.outputs.get("logits"))
    for node in program.untyped.losses.values():
        loss = program.root[node]
        reads = {wire.port: wire.refs for wire in wires_of(loss)}
        if isinstance(loss, TypedBlock) and any(ref.node == field.name for ref in reads.get("target", ())):
            types += each_of(loss.inputs.get("input", UNKNOWN))
    sizes = [type_.sizes[-1] for type_ in types if isinstance(type_, TensorType) and type_.sizes]
    return next((size for size in sizes if isinstance(size, int)), None)


def padding_params(recipe: Recipe) -> tuple[str, ...]:
    """Return the params of a recipe that are the padding token of an embedding, without those that an override sets.

    Their defaults are ids of the published tokenizer. With another one, such an id is an ordinary token, whose embedding would be
    zero and, in RoBERTa, have no position; or it is none at all.

    Args:
        recipe: The recipe.
    """
    params = recipe.program.untyped.params
    found = dict.fromkeys(_written(recipe.document.root))
    return tuple(name for name in found if name in params and not recipe.overridden(name))


def _written(node: YamlNode | None) -> Iterator[str]:
    """Yield how the padding token of each embedding is written."""
    if isinstance(node, YamlList):
        for item in node.items:
            yield from _written(item)
    elif isinstance(node, YamlMapping):
        for entry in node:
            if entry.key.text == PADDING_FIELD and isinstance(entry.value, YamlScalar):
                yield entry.value.text
            yield from _written(entry.value)


def padding_of(tokenizer: Tokenizer) -> int | None:
    """Return the id of a tokenizer's padding token; None if it has none.

    Args:
        tokenizer: The tokenizer.
    """
    if isinstance(tokenizer, MarkedTokenizer):
        return tokenizer.mark(PADDING) if PADDING in tokenizer.marks else padding_of(tokenizer.text)
    if not isinstance(tokenizer, PiecesTokenizer) or "pad_token" not in tokenizer.words:
        return None
    return tokenizer.pieces.token_to_id(tokenizer.words["pad_token"])


def with_padding(tokenizer: Tokenizer, *recipes: Recipe) -> Tokenizer:
    """Return a tokenizer that has a padding token if one of some recipes has a param for it.

    Args:
        tokenizer: The tokenizer, with the special tokens of the task.
        recipes: The recipes.
    """
    if padding_of(tokenizer) is not None or not any(map(padding_params, recipes)):
        return tokenizer
    if isinstance(tokenizer, MarkedTokenizer):
        return MarkedTokenizer(tokenizer.text, (*tokenizer.marks, PADDING))
    return MarkedTokenizer(tokenizer, (PADDING,))


def padding_values(recipe: Recipe, tokenizer: Tokenizer) -> dict[str, int]:
    """Return the values of the params of a recipe that are its padding token, as overrides: the tokenizer's, where they differ.

    Args:
        recipe: The recipe.
        tokenizer: The tokenizer, with a padding token.
    """
    params, token = recipe.program.untyped.params, padding_of(tokenizer)
    return {} if token is None else {name: token for name in padding_params(recipe) if params[name] != token}


def vocabulary_values(recipe: Recipe, tokenizer: Tokenizer | int, *, kept: bool = False, trained: bool = False) -> dict[str, int]:
    """Return the params of a recipe that follow from a tokenizer, `vocab` and the padding token, as overrides: where they differ,
    and no override sets them.

    Args:
        recipe: The recipe.
        tokenizer: The tokenizer, or its size alone.
        kept: Whether a larger vocabulary stays: published embeddings often have rows that no token uses.
        trained: Whether the recipe was trained, so that its padding token stays what it was.
    """
    size = tokenizer if isinstance(tokenizer, int) else tokenizer.size
    vocab = recipe.program.untyped.params.get("vocab")
    larger = kept and isinstance(vocab, int) and vocab > size
    sizes = {} if vocab in (None, size) or larger or recipe.overridden("vocab") else {"vocab": size}
    ids = {} if trained or isinstance(tokenizer, int) else padding_values(recipe, tokenizer)
    return {**sizes, **ids}
