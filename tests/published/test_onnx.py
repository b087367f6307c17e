"""Models as ONNX files: ONNX Runtime computes the same for all lengths, and what ONNX lacks is refused at its block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

import composer
from composer.diagnostics import RecipeError
from composer.published import export_onnx, exported_onnx
from composer.published.exported_onnx import output_name
from composer.verify.inputs import Draw, draw
from tests.cli.conftest import Arco, arco
from tests.published.test_programs import FEW, LENGTHS, STEPS, small
from tests.zoo import REPRESENTATIVES

__all__ = ["arco"]
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

STEPS_OF_ONNX = {**STEPS, "qwen3_next": {"time": 5}}
"""There, a triangular system of a chunk is written out too."""
EXACT = 1e-4
"""By how much outputs may differ, relative to the largest."""


def session(file: Path) -> Any:
    return onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])


def assert_same(file: Path, model: Any, lengths: dict[str, int], number: int) -> None:
    """Assert that ONNX Runtime computes what a model does for inputs of these lengths."""
    given = draw(model.program, Draw(lengths, number), torch.float32)
    with torch.no_grad():
        result = model.eval()(**given)
    wanted = {name: getattr(result, field).numpy() for field, name in model.module.outputs}
    runs = session(file)
    assert [each.name for each in runs.get_inputs()] == list(model.program.inputs)
    assert [each.name for each in runs.get_outputs()] == [output_name(name, model.program) for name in wanted]
    found = dict(zip(wanted, runs.run(None, {name: value.numpy() for name, value in given.items()}), strict=True))
    for name, value in wanted.items():
        atol = EXACT * max(numpy.abs(value).max(), 1) if value.dtype.kind == "f" else 0
        numpy.testing.assert_allclose(found[name], value, rtol=0, atol=atol, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*FEW, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in REPRESENTATIVES if name not in FEW)]
)
def test_a_file_computes_what_its_model_does(name: str, tmp_path: Path) -> None:
    """For lengths and paddings that it was not exported with, down to a single row."""
    model = small(name)
    file, fixed = tmp_path / "model.onnx", STEPS_OF_ONNX.get(name, {})
    export_onnx(model, file, fixed)
    assert model.training and [each.name for each in tmp_path.iterdir()] == ["model.onnx"]
    for number, lengths in ((5, LENGTHS), (6, {**LENGTHS, "batch": 1, "time": 9, "source_time": 5, "height": 33})):
        assert_same(file, model, {**lengths, **fixed}, number)
    for each in session(file).get_inputs():
        sizes = [str(size) for size in model.program.inputs[each.name].sizes]
        assert [str(size) for size in each.shape] == [str(fixed.get(size, size)) for size in sizes]


@pytest.mark.slow
def test_a_file_says_what_it_is_and_not_where_it_was_made(tmp_path: Path) -> None:
    """The name and the description of the recipe, and no lines of files of this machine."""
    export_onnx(small("mlp_lm"), tmp_path / "model.onnx")
    made = onnx.load(tmp_path / "model.onnx")
    assert (made.graph.name, made.producer_name) == ("mlp_lm", "arco-composer") and made.doc_string.startswith("A feed-")
    content = (tmp_path / "model.onnx").read_bytes()
    assert b".py" not in content and str(Path.cwd()).encode() not in content


TWICE = """
recipe: twice
inputs:
  x: float[batch, time, 6]
graph:
  first: {type: linear, out: 6}
  second: {type: linear, out: 5}
outputs:
  y: second
  z: second
  first: first
  w: x
"""


@pytest.mark.slow
def test_a_value_may_have_several_names(tmp_path: Path) -> None:
    """As an input, as outputs and as a node."""
    (tmp_path / "twice.yaml").write_text(TWICE, encoding="utf-8")
    model = composer.load(tmp_path / "twice.yaml").compile(seed=0)
    export_onnx(model, tmp_path / "model.onnx")
    assert_same(tmp_path / "model.onnx", model, LENGTHS, 5)


@pytest.mark.slow
def test_a_file_has_the_dtype_of_its_model(tmp_path: Path) -> None:
    """Of its weights and its outputs."""
    export_onnx(small("gpt2", dtype=torch.bfloat16), tmp_path / "model.onnx")
    made = onnx.load(tmp_path / "model.onnx")
    kinds = {each.data_type for each in made.graph.initializer if len(each.dims) > 1}
    assert kinds == {made.graph.output[0].type.tensor_type.elem_type} == {onnx.TensorProto.BFLOAT16}


@pytest.mark.slow
def test_many_weights_are_in_a_file_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which both are found from another folder."""
    monkeypatch.setattr(exported_onnx, "LARGEST", 1000)
    model = small("gpt2")
    export_onnx(model, tmp_path / "model.onnx")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    assert_same(tmp_path / "model.onnx", model, LENGTHS, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rnn_lm", pytest.param("qwen3_next", marks=pytest.mark.exhaustive)])
def test_what_is_written_out_for_one_length_is_refused_unless_it_is_fixed(name: str, tmp_path: Path) -> None:
    """At the input that leaves it open, and what is there already stays."""
    (tmp_path / "model.onnx").write_bytes(b"kept")
    with pytest.raises(RecipeError) as error:
        export_onnx(small(name), tmp_path / "model.onnx")
    (found,) = error.value.diagnostics
    assert found.code == "fixed-length" and "--at time=" in found.hint and found.span.line > 1
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("model.onnx", b"kept")]


OWN = '''
from blocks.core import Block, torch


class Orthogonal(Block, kind="orthogonal"):
    """Add to each channel what is orthogonal in the products of channels."""

    inputs = {"x": "float[batch, time, dim]"}
    outputs = {"y": "float[batch, time, dim]"}

    def forward(self, x):
        return x @ torch.linalg.qr(x.mT @ x)[0]
'''
RECIPE = """
recipe: own
inputs:
  x: float[batch, time, 6]
graph:
  layers:
    repeat: 2
    graph:
      first: {type: linear, out: 6}
      second: orthogonal
outputs:
  y: layers
"""


@pytest.mark.slow
def test_an_operator_that_onnx_lacks_is_refused_at_its_block(tmp_path: Path) -> None:
    """By its name and that of the node."""
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    (tmp_path / "own.yaml").write_text(RECIPE, encoding="utf-8")
    model = composer.load(tmp_path / "own.yaml", blocks=[tmp_path / "own.py"]).compile(seed=0)
    with pytest.raises(RecipeError) as error:
        export_onnx(model, tmp_path / "model.onnx")
    (found,) = error.value.diagnostics
    assert found.code == "unknown-operator" and found.span.line == 10
    assert found.message == "ONNX has no form of the operator aten.linalg_qr in layers.0.second"
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.slow
@pytest.mark.parametrize("missing", exported_onnx.NEEDED)
def test_a_missing_package_is_named(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that brings it."""
    found = exported_onnx.importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == missing else found(name))
    with pytest.raises(RecipeError, match="ONNX files need") as error:
        export_onnx(small("mlp_lm"), tmp_path / "model.onnx")
    (told,) = error.value.diagnostics
    assert told.message == f"ONNX files need {missing}" and "arco-composer[onnx]" in told.hint
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_places_that_take_no_file_are_refused(tmp_path: Path) -> None:
    """An axis that is not there, too."""
    for place in (tmp_path / "none" / "model.onnx", tmp_path):
        with pytest.raises(RecipeError, match="cannot be written"):
            export_onnx(small("mlp_lm"), place)
    with pytest.raises(RecipeError, match="there is no axis called `tim`"):
        export_onnx(small("mlp_lm"), tmp_path / "model.onnx", {"tim": 3})
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_command_writes_a_file(arco: Arco, tmp_path: Path) -> None:
    """With a length that is fixed."""
    done = arco("export", "rnn_lm", "--to", "onnx", "--at", "time=4", "-o", "model.onnx")
    assert done == (0, "wrote model.onnx (initial weights: none come with the recipe)\n", "")
    assert session(tmp_path / "model.onnx").get_inputs()[0].shape == ["batch", 4]
    assert arco("export", "rnn_lm", "--to", "onnx").err.startswith("arco export: --to onnx writes a file\n  = name it with -o")
