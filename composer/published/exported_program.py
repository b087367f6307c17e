"""A model as an exported program of torch: one file that is loaded without Composer."""

from __future__ import annotations

import copy
import functools
import keyword
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from composer.atomic_files import StrPath, aside
from composer.cost.lengths import axes, unknown_axis
from composer.diagnostics import Diagnostic, RecipeError
from composer.graph.dims import names
from composer.graph.typed import TypedProgram
from composer.weights.other_formats import refused_if_unwritten

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.export import ExportedProgram
    from torch.overrides import TorchFunctionMode

    from composer.lower import Model
    from composer.recipe import Recipe

TOLERANCE = 1e-3
"""By how much outputs of the file may differ from the model's, relative to the largest: torch may sum in another order."""


def export_program(model: Model[Recipe], path: StrPath, lengths: Mapping[str, int] | None = None) -> None:
    """Write a model with its weights as an exported program of torch, which `torch.export.load` reads.

    The program takes the recipe's inputs by name, optional ones too, and returns a dict of its outputs, without the losses. It is
    the model in evaluation, in its dtype, on its device, with the names of its weights (`class` becomes `class_`). It takes any
    length of an axis that the recipe leaves open. Before anything is written, it is loaded again, and computes what the model
    does for inputs of other lengths.

    Args:
        model: A compiled recipe.
        path: The file to write, usually `.pt2`; an existing one is replaced.
        lengths: Axes that get a fixed length in the program, such as `{"time": 128}`.

    Raises:
        RecipeError: An axis without a fixed length is fixed by how torch traces a block, as of a loop over the steps of a text,
            there is no such axis, or the file cannot be written.

    Examples:
        >>> import composer, torch
        >>> from composer.published import export_program
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0)
        >>> export_program(model, "gpt2.pt2")
        >>> program = torch.export.load("gpt2.pt2").module()
        >>> tokens = torch.arange(7)[None]
        >>> program(tokens=tokens, valid=torch.ones_like(tokens, dtype=torch.bool))["logits"].shape
        torch.Size([1, 7, 61])
    """
    import torch

    from composer.lower.operators_of_torch import InOperatorsOfTorch

    fixed = dict(lengths or {})
    found = traced(model, fixed, InOperatorsOfTorch())
    file = Path(path)
    with refused_if_unwritten(file), aside(file, ".pt2") as temporary:  # torch wants this ending
        temporary.touch()
        torch.export.save(found.program, temporary)
        again = torch.export.load(temporary).module()
        refuse_lengths(model, fixed, lambda: prove(found.model, again, sample_inputs(model, 1, fixed)))


class Traced(NamedTuple):
    """A model as torch has traced it."""

    program: ExportedProgram
    model: nn.Module
    """What was traced: it returns a dict of the outputs."""
    outputs: list[str]


def traced(model: Model[Recipe], fixed: Mapping[str, int], operators: TorchFunctionMode) -> Traced:
    """Return a model in evaluation as torch traces it.

    Args:
        model: The model.
        fixed: Axes that get a fixed length.
        operators: What replaces operators while the model is traced.

    Raises:
        RecipeError: There is no such axis, or one is fixed by how torch traces a block.
        Int8Error: The model has weights of 8 bits.
    """
    import torch
    from torch.export import Dim

    from composer.lower.int8 import refuse_int8

    refuse_int8(model, "be exported")

    program, known = model.program, axes(model.program)
    for name in fixed:
        if name not in known:
            raise RecipeError([unknown_axis(name, known)])
    called = _named(model)
    shapes = {
        name: {place: Dim.AUTO for place, size in enumerate(type_.sizes) if names(size) - fixed.keys()}
        for name, type_ in program.inputs.items()
    }
    with torch.no_grad(), operators:  # with gradients, attention has other kernels, which may fix lengths
        made = torch.export.export(called, (), kwargs=sample_inputs(model, 0, fixed), dynamic_shapes=shapes)
    # Losses are not among the outputs; an operator of ours in one would be asked for where the file is read.
    made.graph.eliminate_dead_code(lambda node: node.is_impure() and not str(node.target).startswith("composer."))
    _refuse_fixed(program, made, fixed)
    _without_keywords(made)
    return Traced(made, called, [name for _, name in model.module.outputs])


def refuse_lengths(model: Model[Recipe], fixed: Mapping[str, int], check: Callable[[], None]) -> None:
    """Raise `RecipeError` if a check of other lengths fails: torch may have found a condition on lengths while it traced."""
    try:
        check()
    except AssertionError as error:
        known = axes(model.program)
        first = model.program.untyped.recipe.inputs[0]
        message = f"the program that torch exports does not hold for other lengths: {str(error).splitlines()[0]}"
        hint = f"fix the lengths, such as `--at {known[-1]}=128`" if known else ""
        raise RecipeError([Diagnostic("fixed-length", message, first.span, hint=hint)]) from None


def _named(model: Model[Recipe]) -> nn.Module:
    """Return a model in evaluation, with the same weights, that returns a dict of the outputs by their names in the recipe."""
    kind, outputs = type(model), model.module.outputs

    @functools.wraps(kind.forward)
    def forward(self: Any, **given: Tensor) -> dict[str, Tensor]:
        result = kind.forward(self, **given)
        return {name: getattr(result, field) for field, name in outputs}

    weights = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    found = copy.deepcopy(model, weights).eval()
    found.__class__ = type(kind.__name__, (kind,), {"forward": forward})
    return found


def sample_inputs(model: Model[Recipe], number: int, fixed: Mapping[str, int]) -> dict[str, Tensor]:
    """Return random inputs of short lengths, which differ from number to number, and of the lengths that are fixed."""
    import torch

    from composer.verify.inputs import Draw, draw
    from composer.verify.inputs import lengths as short_lengths

    lengths = {**short_lengths(model.program, number), **fixed}
    kinds = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
    devices = [parameter.device for parameter in model.parameters()]
    given = draw(model.program, Draw(lengths, number), kinds.pop() if len(kinds) == 1 else torch.float32)
    return {name: value.to(devices[0]) if devices else value for name, value in given.items()}


def _without_keywords(made: ExportedProgram) -> None:
    """Rename what is called like a keyword of Python, such as a node `class`: a program reads its weights as attributes."""

    def renamed(name: str) -> str:
        return ".".join(f"{part}_" if keyword.iskeyword(part) else part for part in name.split("."))

    for spec in made.graph_signature.input_specs:
        if spec.target is not None:
            spec.target = renamed(spec.target)
    for name in list(made.state_dict):
        made.state_dict[renamed(name)] = made.state_dict.pop(name)


def _refuse_fixed(program: TypedProgram, made: ExportedProgram, fixed: Mapping[str, int]) -> None:
    """Raise `RecipeError` for an axis that the program takes at one length alone, though nobody has fixed it."""
    from torch.fx.experimental.symbolic_shapes import is_concrete_int

    values = {node.name: node.meta["val"] for node in made.graph.find_nodes(op="placeholder")}
    for declared in program.untyped.recipe.inputs:
        if (value := values.get(declared.name)) is None:
            continue
        for size, length in zip(program.inputs[declared.name].sizes, value.shape, strict=True):
            if is_concrete_int(length) and (free := sorted(names(size) - fixed.keys())):
                message = f"torch exports a program for one length of `{free[0]}` alone, and the recipe leaves it open"
                hint = f"loops over steps, as of recurrent layers, are written out: fix the length, `--at {free[0]}=128`"
                raise RecipeError([Diagnostic("fixed-length", message, declared.span, hint=hint)])


def prove(model: nn.Module, made: Callable[..., Any], given: Mapping[str, Tensor]) -> None:
    """Check that a program computes what its model does."""
    import torch

    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        wanted = model(**given)
        torch.manual_seed(0)
        found = made(**given)
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True, msg=name)
