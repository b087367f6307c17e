"""A model as an ONNX file, which runtimes of ONNX run without torch and without Composer."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from composer.atomic_files import StrPath
from composer.diagnostics import Diagnostic, RecipeError, Span
from composer.graph.dims import names
from composer.graph.typed import TypedProgram
from composer.graph.visit import every_node, every_pass, walk
from composer.published.exported_program import TOLERANCE, Traced, prove, refuse_lengths, sample_inputs, traced
from composer.version import __version__
from composer.weights.other_formats import refuse, refused_if_unwritten

if TYPE_CHECKING:
    import onnx_ir
    from torch.export import ExportedProgram
    from torch.onnx import ONNXProgram

    from composer.lower import Model
    from composer.recipe import Recipe

LARGEST = 2**31 - 2**26
"""Bytes of weights in a file, which with the graph has less than 2 GiB; more weights are in a file of their own."""
NEEDED = ("onnx", "onnxscript")


def export_onnx(model: Model[Recipe], path: StrPath, lengths: Mapping[str, int] | None = None) -> None:
    """Write a model with its weights as an ONNX file; above 2 GiB, the weights are beside it, in a file that ends in `.data`.

    Inputs, outputs and open axes have their names in the recipe; optional inputs are given too, and there are no losses. It is
    the model in evaluation, in its dtype. Before the file gets its name, the traced program computes what the model does for
    inputs of other lengths, and so does ONNX Runtime if it is installed and the model is in float32.

    Args:
        model: A compiled recipe.
        path: The file to write, usually `.onnx`; an existing one is replaced.
        lengths: Axes that get a fixed length in the file, such as `{"time": 128}`.

    Raises:
        RecipeError: ONNX has no form of an operator of a block, an axis without a fixed length is fixed by how torch traces a
            block, as of a loop over the steps of a text, there is no such axis, `onnx` is not installed, or the file cannot be
            written.

    Examples:
        >>> import composer
        >>> from composer.published import export_onnx
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0)
        >>> export_onnx(model, "gpt2.onnx")  # doctest: +SKIP
    """
    file, fixed = Path(path), dict(lengths or {})
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        refuse("missing-file", f"ONNX files need {' and '.join(missing)}", file, hint='pip install "arco-composer[onnx]"')
    from composer.lower.operators_of_onnx import InOperatorsOfOnnx

    found = traced(model, fixed, InOperatorsOfOnnx())
    refuse_lengths(model, fixed, lambda: prove(found.model, found.program.module(), sample_inputs(model, 1, fixed)))
    program = _converted(found, model.program)
    _name(program.model, found, model.program)
    with refused_if_unwritten(file), _folder_beside(file) as folder:
        _save(program, folder / file.name)
        refuse_lengths(model, fixed, lambda: _prove(folder / file.name, found, model, fixed))
        for part in sorted(folder.iterdir(), key=lambda each: each.name == file.name):  # the weights before what reads them
            part.replace(file.resolve().with_name(part.name if part.name != file.name else file.resolve().name))


def _converted(found: Traced, typed: TypedProgram) -> ONNXProgram:
    """Return a program in operators of ONNX.

    Raises:
        RecipeError: ONNX has no form of an operator, at the block that computes it.
    """
    import torch
    from torch.onnx.errors import OnnxExporterError

    from composer.lower.operators_of_onnx import translations

    with _quiet("torch.onnx", "onnxscript", "onnx_ir"):
        try:
            program = torch.onnx.export(found.program, custom_translation_table=translations(), dynamo=True, verbose=False)
        except OnnxExporterError as error:
            chain = list(_causes(error))
            message = next((str(each) for each in chain if "No ONNX function found for" in str(each)), str(chain[-1]))
            known = re.search(r"op='([\w.]+)'", message)
            operator = known[1] if known else ""
            where, span = _home(operator, found.program, typed)
            what = f"the operator {operator}{where}" if operator else f"this model: {message.splitlines()[0]}"
            hint = "`arco export --to torch` writes it for torch"
            raise RecipeError([Diagnostic("unknown-operator", f"ONNX has no form of {what}", span, hint=hint)]) from None
    assert program is not None  # with `dynamo`, it returns one
    return program


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _home(operator: str, program: ExportedProgram, typed: TypedProgram) -> tuple[str, Span]:
    """Return the name of the innermost node that computes an operator, and where it is written."""
    first = typed.untyped.recipe.name_scalar.span
    paths = {visit.path: visit.node.node.span for visit in walk(typed.root, every_pass, every_node)}
    for node in program.graph.nodes:
        if operator and str(node.target).startswith(operator):
            stack = [path.removeprefix("L['self'].") for path, _ in node.meta.get("nn_module_stack", {}).values()]
            above = [".".join(path.split(".")[:count]) for path in stack[-1:] for count in range(path.count(".") + 1, 0, -1)]
            if (home := next((path for path in above if path in paths), None)) is not None:
                return f" in {home}", paths[home]
    return "", first


def _name(made: onnx_ir.Model, found: Traced, typed: TypedProgram) -> None:
    """Give outputs and axes the names of the recipe, and leave out how and where the program was traced."""
    import onnx_ir

    graph = made.graph
    for value, name in zip(graph.inputs, found.program.graph_signature.user_inputs, strict=True):
        value.name = str(name)
    for place, (value, name) in enumerate(zip(list(graph.outputs), found.outputs, strict=True)):
        if value.is_graph_input() or value in graph.outputs[:place]:  # a name of its own takes a value of its own
            again = onnx_ir.node("Identity", [value])
            graph.append(again)
            graph.outputs[place] = again.outputs[0]
            again.outputs[0].shape, again.outputs[0].type = value.shape, value.type
        graph.outputs[place].name = output_name(name, typed)

    axes: dict[str, str] = {}
    for node in found.program.graph.find_nodes(op="placeholder"):
        sizes = typed.inputs[node.name].sizes if node.name in typed.inputs else ()
        for size, length in zip(sizes, node.meta["val"].shape if sizes else (), strict=True):
            if not isinstance(length, int) and len(free := names(size)) == 1 and str(size) in free:
                axes.setdefault(str(length), str(size))
    values = [*made.graph.inputs, *made.graph.initializers.values()]
    values += [value for node in made.graph.all_nodes() for value in node.outputs]
    taken = {*(each.name for each in graph.outputs), *(value.name for value in made.graph.inputs)}
    kept = {id(value) for value in (*made.graph.inputs, *made.graph.outputs)}
    for value in values:
        if value.shape is not None:
            value.shape = onnx_ir.Shape([each if isinstance(each, int) else _renamed(each.value, axes) for each in value.shape])
        if value.name in taken and id(value) not in kept:
            value.name = f"{value.name}.inner"
        value.metadata_props.clear()
    for node in made.graph.all_nodes():
        node.metadata_props.clear()
    made.graph.name = typed.untyped.recipe.name
    made.producer_name, made.producer_version = "arco-composer", __version__
    made.doc_string = typed.untyped.recipe.doc


def output_name(name: str, typed: TypedProgram) -> str:
    """Return the name of an output in a file of ONNX, where no input may be called alike."""
    return f"{name}.out" if name in typed.inputs else name


def _renamed(length: str | None, axes: Mapping[str, str]) -> str | None:
    return None if length is None else re.sub(r"\b[a-z]+\d+\b", lambda found: axes.get(found[0], found[0]), length)


def _save(program: ONNXProgram, file: Path) -> None:
    import onnx
    import onnx_ir

    size = sum(value.const_value.nbytes for value in program.model.graph.initializers.values() if value.const_value is not None)
    onnx_ir.save(program.model, file, external_data=f"{file.name}.data" if size > LARGEST else None)
    onnx.checker.check_model(str(file))


def _prove(file: Path, found: Traced, model: Model[Recipe], fixed: Mapping[str, int]) -> None:
    """Check that ONNX Runtime computes what the model does, if it is installed and has such numbers."""
    import torch

    if importlib.util.find_spec("onnxruntime") is None or {each.dtype for each in model.parameters()} - {torch.float32}:
        return
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    for number in (0, 1):
        given = sample_inputs(model, number, fixed)
        computed = session.run(None, {name: value.cpu().numpy() for name, value in given.items()})
        results = dict(zip(found.outputs, map(torch.from_numpy, computed), strict=True))
        with torch.no_grad():
            wanted = found.model(**given)
        for name, value in wanted.items():
            torch.testing.assert_close(
                results[name], value.cpu(), rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True, check_stride=False, msg=name
            )


@contextmanager
def _folder_beside(file: Path) -> Iterator[Path]:
    """Yield a folder beside a file, which is removed in the end."""
    home = file.resolve().parent
    if file.is_dir():
        raise IsADirectoryError(21, os.strerror(21), str(file))
    folder = Path(tempfile.mkdtemp(prefix=f".{file.name[:100]}.", suffix=".part", dir=home))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _quiet(*loggers: str) -> Iterator[None]:
    """Keep quiet what torch says while it exports, such as that torchvision is not installed."""
    before = {name: logging.getLogger(name).level for name in loggers}
    try:
        for name in loggers:
            logging.getLogger(name).setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
