"""Properties of what is written: the source, the expanded recipe, the declared parameters, the drawings."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

import torch

from composer.cost.costs import costs
from composer.diagnostics import Source, full
from composer.diff.difference import compare
from composer.draw.build.levels import LEVELS
from composer.graph.parameters import buffers, parameters
from composer.verify.subject import Subject, Violation


def check_repeats(subject: Subject) -> Iterator[Violation]:
    """Check that check gives the same diagnostics each time, and no errors."""
    recipe = subject.recipe
    again = type(recipe)(recipe.source, recipe.overrides, recipe.blocks)
    if list(map(full, again.check())) != list(map(full, recipe.check())):
        yield Violation("check", "a second check of the same text gives other diagnostics")


def source_parses(subject: Subject) -> Iterator[Violation]:
    """Check that the generated source is Python, and depends on torch alone."""
    try:
        tree = ast.parse(subject.module.text)
    except SyntaxError as error:
        yield Violation("source", f"the generated source is no Python: line {error.lineno}: {error.msg}")
        return
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else modules
        for name in modules:
            if name.partition(".")[0] in ("composer", "blocks"):
                yield Violation("source", f"the generated source imports {name}")


def expands(subject: Subject) -> Iterator[Violation]:
    """Check that what `expand` writes is read again to the same model."""
    text = subject.recipe.expand()
    again = type(subject.recipe)(Source("<text>", text), (), subject.recipe.blocks)
    errors = [found for found in again.check() if found.severity == "error"]
    if errors:
        yield Violation("expand", f"the expanded recipe has an error: {errors[0].code}: {errors[0].message}")
        return
    lengths = subject.draws[0].lengths
    ours, theirs = costs(subject.program, lengths), costs(again.program, lengths)
    if (ours.parameters, ours.trainable) != (theirs.parameters, theirs.trainable):
        yield Violation("expand", f"the recipe has {ours.parameters} parameters, the expanded one {theirs.parameters}")
    elif ours.flops != theirs.flops:
        yield Violation("expand", f"the recipe has {ours.flops.dense} FLOPs, the expanded one {theirs.flops.dense}")
    found = compare(subject.program, again.program)
    if not found.equal:
        first = str(found).strip().splitlines()
        yield Violation("expand", f"the expanded recipe is another model: {' '.join(' '.join(first[:4]).split())}")


def parameters_are_declared(subject: Subject) -> Iterator[Violation]:
    """Check that the model has the parameters that the table lists: names, shapes, dtypes, owners, and their number."""
    model = subject.model
    table = parameters(subject.program)
    declared = {entry.name: tuple(entry.parameter.shape) for entry in table if not entry.tied_to}
    declared |= {name: tuple(buffer.shape) for name, buffer in buffers(subject.program).items()}
    built = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    for name in sorted(declared.keys() | built.keys()):
        if declared.get(name) != built.get(name):
            yield Violation(
                "parameters", f"`{name}` is declared as {_shape(declared.get(name))} and built as {_shape(built.get(name))}"
            )
    for name, parameter in model.named_parameters():
        if parameter.dtype != torch.float64:
            yield Violation("parameters", f"`{name}` stays {str(parameter.dtype)[6:]} in a model of float64")
    own = {entry.name: entry for entry in table if not entry.tied_to}
    for entry in table:
        owner = entry.owner
        if entry.name in built and owner in built and model.get_parameter(entry.name) is not model.get_parameter(owner):
            yield Violation("parameters", f"`{entry.name}` is tied to `{owner}`, and is another tensor")
        if owner in own and owner in built and model.get_parameter(owner).requires_grad < own[owner].trainable:
            yield Violation("parameters", f"`{owner}` is declared trainable, and is frozen")
    counted = costs(subject.program).parameters
    numel = sum(math.prod(shape) for name, shape in built.items() if name in own)
    if counted != numel:
        yield Violation("parameters", f"the summary counts {counted} parameters, the model has {numel}")


def _shape(shape: tuple[int, ...] | None) -> str:
    return "nothing" if shape is None else f"[{', '.join(map(str, shape))}]"


def draws_at_every_level(subject: Subject) -> Iterator[Violation]:
    """Check that it is drawn at every level of detail."""
    for level in LEVELS:
        if not subject.recipe.draw(level).svg():
            yield Violation("draw", f"nothing is drawn at the level {level}")
